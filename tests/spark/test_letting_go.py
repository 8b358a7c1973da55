"""Stand-ins for Java objects that nobody needs go soon, whatever Python itself is up to."""

from __future__ import annotations

import gc
import time
import weakref

import pytest

from engine.spark.letting_go import letting_go


class StandIn:
    """It holds itself, as a Java object's stand-in does by the methods it remembers."""

    def __init__(self) -> None:
        self.methods = {"call": self}


@pytest.fixture
def no_collector():
    """Python by itself looks for nothing."""
    gc.disable()
    yield
    gc.enable()


def made():
    """One that nobody holds but itself."""
    return weakref.ref(StandIn())


def gone(one, seconds=20.0):
    deadline = time.monotonic() + seconds
    while one() is not None and time.monotonic() < deadline:
        time.sleep(0.01)
    return one() is None


@pytest.mark.usefixtures("no_collector")
def test_what_is_made_meanwhile_goes_and_what_was_there_is_not_looked_at():
    before = made()
    with letting_go(0.02):
        assert gc.get_freeze_count() > 0
        meanwhile = made()
        assert gone(meanwhile)
        assert before() is not None
    assert gc.get_freeze_count() == 0
    gc.collect()
    assert before() is None


@pytest.mark.usefixtures("no_collector")
def test_frames_over_rows_that_were_handed_over_do_not_pile_up_in_java(spark):
    import pyarrow as pa

    with letting_go(0.02):
        frame = spark.createDataFrame(pa.table({"n": list(range(1000))})).groupBy("n").count()
        assert frame.toArrow().num_rows == 1000
        held = weakref.ref(frame._jdf)
        del frame
        assert gone(held)

"""Which records are in time, and where views end: just before what may still have equals. No Spark."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from engine.operators.streams import MICROS
from engine.spark.stream_edges import before_s, edges_with, in_time, last_us
from engine.spark.stream_feeds import Arrival
from engine.spark.stream_versions import Version

NOON = 1_800_000_000 * MICROS


def batch(*micros: int) -> Arrival:
    return Arrival("b", max(micros), len(micros))


def taken(safe_us: int | None, *micros: int) -> list[bool]:
    column = pa.chunked_array([pa.array(micros, pa.int64())])
    return in_time(column, safe_us, NOON / MICROS).to_pylist()


def test_a_record_as_old_as_the_newest_one_is_in_time_where_none_may_be_late() -> None:
    fresh, safe = edges_with(Version(), [batch(NOON - 1, NOON)], 0.0)
    assert (fresh, safe) == (NOON, NOON - 1)
    assert taken(safe, NOON, NOON - 1) == [True, False]


def test_a_record_just_as_late_as_the_bound_allows_is_in_time() -> None:
    _, safe = edges_with(Version(fresh_us=NOON, safe_us=0), [], 10.0)
    assert taken(safe, NOON - 10 * MICROS, NOON - 10 * MICROS - 1) == [True, False]


def test_a_promise_is_for_its_own_moment_too_and_the_safe_edge_never_goes_back() -> None:
    promise = Arrival("p", None, 0, safe_us=NOON)
    assert edges_with(Version(), [promise], 0.0) == (None, NOON)
    assert edges_with(Version(fresh_us=NOON, safe_us=NOON), [batch(NOON - 5)], 60.0) == (NOON, NOON)
    assert taken(NOON, NOON, NOON + 1) == [False, True]


def test_a_file_that_is_gone_moves_no_edge() -> None:
    lost = batch(NOON + 5)
    lost.gone = True
    assert edges_with(Version(), [batch(NOON), lost], 0.0) == (NOON, NOON - 1)


def test_what_has_no_time_or_one_that_cannot_be_is_not_taken() -> None:
    column = pa.chunked_array([pa.array([None, NOON + 7200 * MICROS, NOON], pa.int64())])
    assert in_time(column, None, NOON / MICROS).to_pylist() == [False, False, True]


@given(st.integers(0, 4_000_000_000 * MICROS))
def test_the_edges_of_journal_and_scheduler_are_one(micros: int) -> None:
    assert last_us(before_s(micros)) == micros


@given(
    st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=4), min_size=1, max_size=8),
    st.integers(0, 5),
)
def test_a_view_over_what_was_taken_is_never_changed_by_what_is_taken_later(
    batches: list[list[int]], bound: int
) -> None:
    version, held, newest = Version(), list[int](), None
    for records in batches:
        good = taken(version.safe_us, *records)
        if newest is not None:
            assert good == [at >= newest - bound for at in records], "older than the bound is late, and nothing else"
        seen = [at for at in held if version.safe_us is not None and at <= version.safe_us]
        held += [at for at, fits in zip(records, good, strict=True) if fits]
        assert [at for at in held if version.safe_us is not None and at <= version.safe_us] == seen
        newest = max([*records, *([] if newest is None else [newest])])
        fresh, safe = edges_with(version, [batch(*records)], bound / MICROS)
        version = Version(fresh_us=fresh, safe_us=safe)

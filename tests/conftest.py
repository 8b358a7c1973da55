"""Fixtures that more than one folder of tests uses."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest_plugins = ["tests.fixtures_postgres"]

# A busy machine is no bug, so examples have no deadline. In CI the same examples are tried each time: a change is
# judged by what it changed, and new examples are for those who can look into what they find.
settings.register_profile("papilio", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("papilio")

# A shell starts what it puts into the background deaf to Ctrl-C, and so would be every program that the tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def tpch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small TPC-H data set."""
    from engine.experiments.data import generate_tpch

    folder = tmp_path_factory.mktemp("tpch") / "data"
    generate_tpch(folder, 0.01)
    return folder


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The one Spark session that tests share: it takes seconds to start."""
    from engine.spark.session import SparkSettings, close_session, open_session

    # Thousands of tiny queries: Java's quick compiler alone is done with them sooner.
    quick = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
    master = os.environ.get("PAPILIO_TEST_MASTER", "local[2]")  # `sail` tells what runs there as it does on Spark
    extra = quick if master.startswith("local") else {}
    session = open_session(SparkSettings(master, scratch=tmp_path_factory.mktemp("spark"), extra=extra))
    yield session
    close_session(session)

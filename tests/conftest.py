"""Fixtures that more than one folder of tests uses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest_plugins = ["tests.fixtures_postgres"]


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The one Spark session that tests share: it takes seconds to start."""
    from engine.spark.session import SparkSettings, close_session, open_session

    session = open_session(SparkSettings(master="local[2]", scratch=tmp_path_factory.mktemp("spark")))
    yield session
    close_session(session)

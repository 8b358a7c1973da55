"""Streams and streaming tables as operators: what a preview shows of them, and what is wrong with their settings."""

from __future__ import annotations

import os
from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from tests.operators.harness import findings, make, run

START = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_generator_shows_ten_batches(spark):
    rows = run(spark, make("generator_stream", period_s=2, rows_per_s=3, columns={"k": "id % 2"}))["out"]
    assert [row[0] for row in rows] == list(range(60))
    assert [row[2] for row in rows[:3]] == [0, 1, 0]
    assert (rows[6][1] - rows[0][1]).total_seconds() == pytest.approx(2)


def test_a_folder_stream_shows_what_has_arrived(spark, tmp_path):
    (tmp_path / "a.csv").write_text("ts,n\n2026-01-01T00:00:01Z,1\n")
    (tmp_path / "b.csv").write_text("ts,n\n2026-01-01T00:00:02Z,2\n")
    columns = {"ts": "timestamp", "n": "bigint"}
    rows = run(spark, make("folder_stream", path=str(tmp_path), columns=columns), folder=tmp_path)["out"]
    assert sorted(row[1] for row in rows) == [1, 2]


def test_a_postgresql_stream_shows_the_table(spark, postgresql, monkeypatch):
    import psycopg

    from engine.spark.adbc import register

    monkeypatch.setenv("PAPILIO_TEST_PASSWORD", postgresql.password)
    with psycopg.connect(postgresql.dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE events AS SELECT now() AS ts, n FROM generate_series(1, 3) AS n")
    register(spark, ["PAPILIO_TEST_PASSWORD"])
    stream = make(
        "postgresql_stream", host=postgresql.host, port=postgresql.port, database=postgresql.database, user=postgresql.user,
        password="${env:PAPILIO_TEST_PASSWORD}", table="events", columns={"n": "int"},
    )  # fmt: skip
    assert sorted(run(spark, stream)["out"]) == [(1,), (2,), (3,)]


def test_a_time_bucket_begins_where_its_seconds_do(spark):
    data = spark.sql("SELECT timestamp'2026-01-01 00:00:59.5' AS ts UNION ALL SELECT timestamp'1969-12-31 23:59:59'")
    rows = run(spark, make("time_bucket", column="ts", every_s=15), {"in": data})["out"]
    found = sorted(row[1].astimezone(UTC) if os.environ.get("TZ") else row[1] for row in rows)
    assert [moment.second for moment in found] == [45, 45]


def test_a_streaming_table_passes_its_rows_on(spark):
    data = spark.sql("SELECT current_timestamp() AS ts, 1 AS n")
    assert len(run(spark, make("stream_table", path="t", time_column="ts"), {"in": data})["out"]) == 1


@pytest.mark.parametrize(
    ("name", "settings", "told"),
    [
        ("generator_stream", {"period_s": -1}, "greater than 0"),
        ("generator_stream", {"rows_per_s": 0}, "greater than 0"),
        ("folder_stream", {"path": "in", "columns": {}}, "at least 1 item"),
        ("stream_table", {"path": "t", "time_column": "ts", "period_s": -3}, "greater than 0"),
        ("stream_table", {"path": "t", "time_column": "ts", "lateness_bound_s": -3}, "greater than or equal to 0"),
    ],
)
def test_settings_that_cannot_be_are_refused(name, settings, told):
    with pytest.raises(ValidationError, match=told):
        make(name, **settings)


def test_what_does_not_fit_is_told():
    table = make("stream_table", path="t", time_column="ts")
    assert findings(table, in_={"ts": "date"}) == ["`ts` is a `date`, not a timestamp"]
    assert "no column `ts`" in findings(table, in_={"tss": "timestamp"})[0]
    assert findings(make("generator_stream", columns={"id": "1"})) != []
    bucket = make("time_bucket", column="ts", every_s=5)
    assert findings(bucket, in_={"ts": "timestamp", "bucket": "int"}) == [
        "there is already a column `bucket`; choose another name"
    ]
    folder = make("folder_stream", path="in", columns={"ts": "timestamp"}, format="json", separator=";")
    assert "for CSV" in findings(folder)[0]

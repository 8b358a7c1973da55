"""A workflow from database to database."""

from __future__ import annotations

import adbc_driver_postgresql.dbapi as postgres
import pytest

from tests.end_to_end.helpers import answer, papilio_here, snapshot, write


@pytest.mark.slow
def test_a_workflow_reads_one_postgresql_table_and_loads_another(spark, postgresql, tmp_path):
    uri = postgresql.dsn
    with postgres.connect(uri) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE sales (id int, amount numeric(10,2), day date)")
        cursor.execute("INSERT INTO sales SELECT i, i * 1.25, date '2024-01-01' + i % 3 FROM generate_series(1, 300) i")
        connection.commit()
    where = {
        "host": postgresql.host, "port": postgresql.port, "database": postgresql.database, "user": postgresql.user,
        "password": "${env:SALES_PASSWORD}",
    }  # fmt: skip
    nodes = {
        "sales": {"operator": "postgresql_source", **where, "table": "sales", "partition_column": "id", "partitions": 2},
        "by_day": {"operator": "aggregate", "group": ["day"], "aggregates": [
            {"name": "total", "expression": "sum(amount)"}, {"name": "n", "expression": "count(*)"}]},
        "days": {"operator": "postgresql_target", **where, "table": "days", "mode": "upsert", "key": ["day"]},
    }  # fmt: skip
    file = write(tmp_path, nodes, ["sales -> by_day.in", "by_day -> days.in"])
    secret = {"SALES_PASSWORD": postgresql.password}
    done = papilio_here(
        "run", file, "--json", "--run-dir", tmp_path / "run", home=tmp_path / "home", environment=secret, spark=spark
    )
    assert answer(done)["targets"]["days"]["rows"] == 3
    with postgres.connect(uri) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT day::text, total::text, n::bigint FROM days ORDER BY day")
        found = cursor.fetchall()
        cursor.execute("SELECT day::text, sum(amount)::text, count(*) FROM sales GROUP BY day ORDER BY day")
        assert found == cursor.fetchall()
    kept = snapshot(tmp_path / "run") | snapshot(tmp_path / "home")
    assert not [name for name, data in kept.items() if postgresql.password.encode() in data], (
        "the secret was written down"
    )


def test_a_database_that_cannot_be_reached_is_named_and_the_run_does_not_start(tmp_path):
    nodes = {
        "sales": {"operator": "postgresql_source", "host": "127.0.0.1", "port": 1, "database": "d", "user": "u",
                  "password": "${env:SALES_PASSWORD}", "table": "sales"},
        "step": {"operator": "copy"},
        "target": {"operator": "parquet_target", "path": "out"},
    }  # fmt: skip
    file = write(tmp_path, nodes, ["sales -> step.in", "step -> target.in"])
    done = papilio_here("run", file, home=tmp_path / "home", environment={"SALES_PASSWORD": "x"})
    assert done.returncode == 2, done.stderr
    assert "test.butterfly.yaml: node `sales`" in done.stderr
    assert papilio_here("check", file, home=tmp_path / "home").returncode == 0, "checking opens no connection"

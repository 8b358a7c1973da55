"""The Fig. 1 butterfly, run by the real program, against DuckDB's answer on the same data."""

from __future__ import annotations

import json
import subprocess
import sys

import duckdb
import pytest

from engine.events import LogReader, NodeCounted, RowsRefused, RunFinished, RunStarted, TargetCommitted
from tests.end_to_end.helpers import WORKFLOWS, answer, environment_for, papilio, papilio_here, parquet_rows

FIG1 = WORKFLOWS / "fig1.butterfly.yaml"
CLEAN = """
CREATE VIEW partsupp AS SELECT *, CAST(ps_availqty * ps_supplycost AS DECIMAL(26,2)) AS ps_totalcost
  FROM '{data}/partsupp.parquet'
  WHERE ps_partkey IS NOT NULL AND ps_suppkey IS NOT NULL AND ps_availqty IS NOT NULL AND ps_supplycost IS NOT NULL;
CREATE VIEW supplier AS SELECT * REPLACE ('+' || replace(s_phone, '-', ' ') AS s_phone)
  FROM '{data}/supplier.parquet'
  WHERE s_suppkey IS NOT NULL AND s_nationkey IS NOT NULL AND s_phone IS NOT NULL;
CREATE VIEW joined AS SELECT * FROM partsupp JOIN supplier ON ps_suppkey = s_suppkey;
CREATE VIEW view_1 AS SELECT s_nationkey, ps_partkey, sum(ps_totalcost) AS total_cost,
  CAST(sum(ps_availqty) AS BIGINT) AS quantity, count(*) AS suppliers FROM joined GROUP BY ALL;
CREATE VIEW view_2 AS SELECT ps_partkey, sum(ps_totalcost), CAST(sum(ps_availqty) AS BIGINT), count(*) FROM joined GROUP BY ALL;
CREATE VIEW view_3 AS SELECT s_nationkey, s_suppkey, sum(ps_totalcost), count(*) FROM joined GROUP BY ALL;
CREATE VIEW view_4 AS SELECT s_suppkey, sum(ps_totalcost), count(*) FROM joined GROUP BY ALL;
"""
TARGETS = ("partsupp", "supplier", "joined", "view_1", "view_2", "view_3", "view_4")


def expected(data):
    with duckdb.connect() as connection:
        connection.execute(CLEAN.format(data=data))
        return {name: sorted(connection.sql(f"SELECT * FROM {name}").fetchall(), key=repr) for name in TARGETS}


@pytest.fixture(scope="module")
def finished(dirty_tpch, tmp_path_factory):
    """One run of the program over data with NULLs."""
    home = tmp_path_factory.mktemp("fig1")
    done = papilio(
        "run", FIG1, "--json", "--param", f"data_folder={dirty_tpch}", "--param", f"warehouse_folder={home}/out",
        "--run-dir", home / "run", home=home,
    )  # fmt: skip
    return home, answer(done)


def test_all_seven_targets_hold_what_duckdb_computes(finished, dirty_tpch):
    home, summary = finished
    wanted = expected(dirty_tpch)
    for name in TARGETS:
        found = parquet_rows(home / "out" / name)
        assert len(found) == len(wanted[name]) > 0
        assert found == wanted[name], f"{name} differs"
    rows = {target["path"].rpartition("/")[2]: target["rows"] for target in summary["targets"].values()}
    assert rows == {name: len(wanted[name]) for name in TARGETS}


def test_counts_that_are_called_exact_are_exact(finished, dirty_tpch):
    _, summary = finished
    sizes = {name: len(rows) for name, rows in expected(dirty_tpch).items()}
    nodes = summary["nodes"]
    assert nodes["not_null_partsupp"] == {
        "rows_in": 8000, "rows_out": sizes["partsupp"], "count": "exact",
        "refused": {"quarantine": 8000 - sizes["partsupp"]},
    }  # fmt: skip
    assert nodes["partsupp"] == {"rows_in": 0, "rows_out": 8000, "count": "exact"}
    assert nodes["join"]["rows_in"] == sizes["partsupp"] + sizes["supplier"]
    assert nodes["join"]["rows_out"] == sizes["joined"]
    assert nodes["view_2_by"] == {"rows_in": sizes["view_1"], "rows_out": sizes["view_2"], "count": "exact"}
    assert all(node["count"] == "exact" for node in nodes.values())


def test_the_log_tells_the_run_from_beginning_to_end(finished):
    home, summary = finished
    reader = LogReader(home / "run" / "events.jsonl")
    events = list(reader)
    assert reader.damage is None
    assert not reader.skipped
    assert isinstance(events[0], RunStarted)
    assert events[0].workflow == "fig1"
    assert isinstance(events[-1], RunFinished)
    assert events[-1].status == "done"
    committed = {event.node: event.rows for event in events if isinstance(event, TargetCommitted)}
    assert committed == {node: target["rows"] for node, target in summary["targets"].items()}
    refused = {event.node: event.rows for event in events if isinstance(event, RowsRefused)}
    assert refused == {
        node: sum(info["refused"].values()) for node, info in summary["nodes"].items() if "refused" in info
    }
    counted = {event.node: event.rows_out for event in events if isinstance(event, NodeCounted)}
    assert counted == {node: info["rows_out"] for node, info in summary["nodes"].items()}


def test_history_knows_the_run(finished):
    home, summary = finished
    runs = answer(papilio_here("history", "--json", home=home))
    assert [(run["run"], run["workflow"], run["status"]) for run in runs] == [(summary["run"], "fig1", "done")]


@pytest.mark.slow
def test_the_exported_script_gives_the_same_targets_on_its_own(finished, dirty_tpch, tmp_path):
    home, _ = finished
    script = tmp_path / "fig1.py"
    done = papilio(
        "export", FIG1, "--to", "pyspark", "-o", script, "--param", f"data_folder={dirty_tpch}",
        "--param", f"warehouse_folder={tmp_path}/out", home=home,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    text = script.read_text()
    assert "engine" not in text.replace("engineer", ""), "the script stands on its own"
    ran = subprocess.run(
        [sys.executable, script],
        env=environment_for(home, {"SPARK_LOCAL_IP": "127.0.0.1"}),
        capture_output=True,
        check=False,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    for name in TARGETS:
        assert parquet_rows(tmp_path / "out" / name) == parquet_rows(home / "out" / name), f"{name} differs"


def test_a_script_over_columns_that_nobody_knows_is_refused_with_file_and_node(tmp_path):
    missing = f"data_folder={tmp_path / 'nothing'}"
    done = papilio_here("export", FIG1, "--to", "pyspark", "--param", missing, home=tmp_path)
    assert done.returncode == 2
    assert f"{FIG1}: node `join`: its input's columns are not known without Spark; declare" in done.stderr


def test_xml_export_comes_back_as_the_same_workflow(tmp_path):
    from engine.model.file import load, to_yaml, workflow_from
    from engine.store.xml import workflow_from_xml

    done = papilio_here("export", FIG1, "--to", "xml", home=tmp_path)
    assert done.returncode == 0, done.stderr
    again = workflow_from(workflow_from_xml(done.stdout), "xml")
    assert to_yaml(again) == to_yaml(load(FIG1).workflow)


def test_check_tells_every_schema_without_spark(dirty_tpch, tmp_path):
    found = answer(papilio("check", FIG1, "--json", "--param", f"data_folder={dirty_tpch}", home=tmp_path))
    assert found["problems"] == []
    assert found["schemas"]["view_1.out"] == {
        "s_nationkey": "bigint", "ps_partkey": "bigint", "total_cost": "decimal(36,2)",
        "quantity": "bigint", "suppliers": "bigint",
    }  # fmt: skip


def test_partition_finds_the_butterfly_and_its_parts(dirty_tpch, tmp_path):
    found = answer(papilio_here("partition", FIG1, "--json", "--param", f"data_folder={dirty_tpch}", home=tmp_path))
    assert found["archetype"] == "balanced butterfly"
    assert found["wings"]["body"] == ["joined"]
    assert len(found["wings"]["left"]) == 9
    assert len(found["wings"]["right"]) == 8
    assert json.dumps(found["strata"])  # strata are covered in tests/partition
    assert {unit["id"] for unit in found["fused"]} == {
        "dw_partsupp", "dw_supplier", "joined", "view_1", "view_2", "view_3", "view_4",
    }  # fmt: skip

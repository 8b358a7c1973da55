"""The log of a real run on Spark, as a recording tells it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

from engine.model.binding import bind
from engine.model.file import WorkflowFile
from engine.model.workflow import Workflow
from engine.operators import catalogue
from engine.recording import RunRecording, State
from engine.recording.jobs import JobSeries
from engine.recording.series import figures, largest
from engine.request import RunRequest
from engine.spark.backend import cores_of
from engine.spark.session import lent


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAPILIO_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PAPILIO_STORE", str(tmp_path / "store.db"))


def test_a_run_on_spark_is_recorded_as_its_summary_says(spark: SparkSession, tpch: Path, tmp_path: Path) -> None:
    workflow = Workflow.model_validate(
        {
            "papilio": 1,
            "name": "recorded",
            "roots": {"data": str(tpch), "out": str(tmp_path / "out")},
            "nodes": {
                "supplier": {"operator": "parquet_source", "settings": {"path": "${data}/supplier.parquet"}},
                "rich": {"operator": "filter", "settings": {"condition": "s_acctbal > 0"}},
                "held": {"operator": "parquet_target", "settings": {"path": "${out}/rich"}},
            },
            "edges": [{"from": "supplier", "to": "rich"}, {"from": "rich.match", "to": "held"}],
        }
    )
    bound = bind(WorkflowFile(workflow, tmp_path / "recorded.butterfly.yaml"), catalogue())
    request = RunRequest.from_plain({"master": "local[2]", "granularity": "operator", "policy": "mm", "pack_rows": 20})
    with lent(spark):
        summary = request.start(bound, folder=tmp_path / "run")
    recording = RunRecording.load(tmp_path / "run")
    assert recording.damage is None
    assert recording.skipped == {}
    state = recording.state()
    for node, told in summary["nodes"].items():
        shown = state.nodes[node]
        assert shown.state is State.FINISHED
        assert (shown.rows_in, shown.rows_out, shown.count) == (told["rows_in"], told["rows_out"], told["count"])
    found = figures(recording)
    assert found.activations == summary["activations"]
    assert found.seconds == pytest.approx(summary["seconds"], abs=0.01)
    assert (found.max_bytes, found.max_packs) == (summary["queue"]["max_bytes"], summary["queue"]["max_packs"])
    assert found.avg_bytes == pytest.approx(summary["queue"]["avg_bytes"])
    logged = [json.loads(line) for line in (tmp_path / "run" / "events.jsonl").read_text().splitlines()]
    shots = [event for event in logged if event["event"] == "queue-snapshot"]
    # The run sums up every moment, the snapshots only some.
    assert 0 < max(sum(held[2] for held in shot["queues"].values()) for shot in shots) <= found.max_bytes
    assert max(largest(recording).values()) == max(held[2] for shot in shots for held in shot["queues"].values())
    turns = [event for event in logged if event["event"] == "unit-activated"]
    middle = turns[len(turns) // 2]["time"]
    taken = sum(event["rows_in"] for event in turns if event["unit"] == "rich" and event["time"] <= middle)
    assert recording.state(middle - recording.begin).units["rich"].rows_in == taken
    assert recording.jobs
    assert all(job.status == "succeeded" for job in recording.jobs.values())
    assert recording.cores == spark.sparkContext.defaultParallelism
    series = JobSeries()
    series.read(recording)
    busy = series.busy(np.array([0.0, recording.end]), recording.end)
    assert busy is not None
    assert 0 < float(busy[0]) <= spark.sparkContext.defaultParallelism


def test_the_cores_of_a_master_are_told_by_its_name() -> None:
    named = {"local": 1, "local[3]": 3, "local[2, 5]": 2, "local-cluster[2,4,1024]": 8, "spark://host:7077": None}
    assert {master: cores_of(master) for master in named} == named

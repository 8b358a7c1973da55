"""Code of a file's own runs only where a person trusts it, whatever command runs the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from engine.cli._workflow import Given
from engine.errors import BadInput
from engine.operators.columns import Derive
from engine.refresh.live.launch import _trusted
from engine.request import RunRequest
from engine.store.trust import trust
from tests.end_to_end.helpers import papilio_here

CODE = "def transform(batches):\n    return batches\n"
OWN = {"operator": "python", "settings": {"style": "batches", "code": CODE, "columns": {"shop": "string"}}}
TABLE = {"path": "out/sale", "time_column": "ts", "partition_s": 60}
# Python cannot stand before a streaming table; an operator of a plug-in that runs code of the file can.
CODED = {"operator": "derive", "settings": {"columns": [{"name": "code", "expression": "'return batches'"}]}}
STREAMING: dict[str, Any] = {
    "nodes": {
        "arriving": {"operator": "folder_stream", "settings": {"path": "in", "columns": {"ts": "timestamp"}}},
        "own": CODED,
        "sale": {"operator": "stream_table", "settings": TABLE},
    },
    "edges": ["arriving -> own", "own -> sale"],
}
ELASTIC: dict[str, Any] = {
    "nodes": {
        "shops": {"operator": "csv_source", "settings": {"path": "shops.csv", "columns": {"shop": "string"}}},
        "own": OWN,
        "facts": {"operator": "parquet_target", "settings": {"path": "out/facts"}},
    },
    "edges": ["shops -> own", "own -> facts"],
    "elastic": {
        "rate": {"kind": "ramp", "from_rows_s": 1, "to_rows_s": 1, "seconds": 1},
        "live": {"source": "shops", "facts": "facts", "key": "shop"},
    },
}


def written(folder: Path, workflow: dict[str, Any]) -> Path:
    edges = [dict(zip(("from", "to"), edge.split(" -> "), strict=True)) for edge in workflow["edges"]]
    file = folder / "own.butterfly.yaml"
    file.write_text(yaml.safe_dump({"papilio": 1, **workflow, "edges": edges}))
    (folder / "shops.csv").write_text("shop\na\n")
    (folder / "in").mkdir()
    return file


@pytest.fixture(autouse=True)
def coded(monkeypatch):
    monkeypatch.setattr(Derive, "needs_trust", True)


# What is refused next, where the code is trusted.
COMMANDS: list[tuple[dict[str, Any], tuple[str, ...], tuple[str, ...], str]] = [
    (STREAMING, ("stream", "run"), ("--policy", "none"), "none"),
    (ELASTIC, ("scale", "run"), ("--master", "nowhere"), "--master nowhere"),
]


@pytest.mark.parametrize(("workflow", "words", "wrong", "next_"), COMMANDS, ids=["stream", "scale"])
def test_a_file_with_code_of_its_own_is_refused_until_it_is_trusted(workflow, words, wrong, next_, tmp_path):
    file = written(tmp_path, workflow)
    asked = (*words, file, *wrong)
    refused = papilio_here(*asked, home=tmp_path)
    assert refused.returncode == 2
    assert f"{file}: node `own`: `{workflow['nodes']['own']['operator']}` runs code of the file's own" in refused.stderr
    assert "papilio trust" in refused.stderr
    once = papilio_here(*asked, "--trust", home=tmp_path)
    assert (once.returncode, "papilio trust" in once.stderr) == (2, False)
    assert next_ in once.stderr
    assert papilio_here("trust", file, "--yes", home=tmp_path).returncode == 0
    assert "papilio trust" not in papilio_here(*asked, home=tmp_path).stderr
    file.write_text(file.read_text().replace("return batches", "return list(batches)"))
    assert "papilio trust" in papilio_here(*asked, home=tmp_path).stderr, "changed code is trusted anew"


def test_an_elastic_run_from_the_run_bar_asks_as_well(tmp_path, monkeypatch):
    monkeypatch.setenv("PAPILIO_HOME", str(tmp_path))
    monkeypatch.setenv("PAPILIO_STORE", "")
    bound = Given(written(tmp_path, ELASTIC)).open()
    request = RunRequest(policy="elastic", master="nowhere")
    with pytest.raises(BadInput, match="node `own`: `python` runs code"):
        request.start(bound)
    with pytest.raises(BadInput, match="--master nowhere"):
        request.model_copy(update={"trust": True}).start(bound)


def test_code_that_changes_while_a_warehouse_runs_must_be_trusted_too(tmp_path, monkeypatch):
    monkeypatch.setenv("PAPILIO_HOME", str(tmp_path))
    file = written(tmp_path, STREAMING)
    given = Given(file)
    first = given.open()
    with pytest.raises(BadInput, match="node `own`"):
        _trusted(given.open, None)()
    assert _trusted(given.open, first)().operators == first.operators
    file.write_text(file.read_text().replace("return batches", "return list(batches)"))
    with pytest.raises(BadInput, match="node `own`"):
        _trusted(given.open, first)()
    trust(given.open())
    assert _trusted(given.open, None)() is not None

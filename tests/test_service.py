"""The engine process's commands about runs: started, driven, resumed; what is wrong with one is answered."""

from __future__ import annotations

import io
import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from engine.model.binding import bind
from engine.model.file import load, to_yaml
from engine.operators import catalogue
from engine.schedule.settings import ScheduleSettings
from engine.service import Service, _killed
from engine.spark.launch import _begun_with
from engine.spark.progress import FILE
from engine.store import MetadataStore, RunRecord

FIG1 = Path(__file__).parent.parent / "workflows" / "fig1.butterfly.yaml"


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAPILIO_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PAPILIO_STORE", str(tmp_path / "store.db"))


class Served:
    """A service without a process: commands in, its answers as they were written."""

    def __init__(self) -> None:
        self.out = io.StringIO()
        self.service = Service(self.out)
        self.service._worker.start()

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.getvalue().splitlines()]

    def ask(self, seconds: float = 30, **command: Any) -> dict[str, Any]:
        """The last answer to a command."""
        self.service.take({"id": 7, **command})
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            answers = [event for event in self.events() if event.get("id") == 7 and event["event"] != "run-started"]
            if answers:
                return answers[-1]
            time.sleep(0.02)
        raise TimeoutError(self.out.getvalue())


@pytest.fixture
def served() -> Any:
    made = Served()
    yield made
    made.service.stop()


def test_a_simulated_run_is_started_and_ends_with_its_log_told(served: Served) -> None:
    settings = {"backend": "simulated", "policy": "mm"}
    answer = served.ask(command="run", text=FIG1.read_text(), path=str(FIG1), settings=settings)
    assert (answer["event"], answer["status"]) == ("run-ended", "done")
    started = next(event for event in served.events() if event["event"] == "run-started")
    first, *_, last = Path(started["log"]).read_text().splitlines()
    assert json.loads(first)["policy"] == "mm"
    assert json.loads(last)["status"] == "done"


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ({"command": "run", "text": "papilio: 1", "settings": {"policy": "best"}}, "no such policy"),
        ({"command": "run", "text": "papilio: 1", "settings": {"pack_rows": 0}}, "pack_rows"),
        ({"command": "run", "text": "papilio: 1", "settings": {"dance": True}}, "dance"),
        ({"command": "run", "settings": {}}, "needs its `text`"),
        ({"command": "run", "text": "nodes: [", "settings": {}}, "untitled"),
        ({"command": "resume", "run": "nothing"}, "there is no such run"),
        ({"command": "control", "folder": "/nowhere", "action": "pause"}, "no run is under way"),
        ({"command": "control", "folder": "/nowhere", "action": "dance"}, "does not understand"),
        ({"command": "peek", "folder": "/nowhere", "queue": "a > b"}, "nothing to look into"),
    ],
)
def test_what_cannot_be_done_is_answered_with_its_reason(served: Served, command: dict[str, Any], told: str) -> None:
    answer = served.ask(**command)
    assert answer["event"] == "failed"
    assert told in answer["message"]


def test_a_killed_run_goes_on_with_the_workflow_and_the_parameters_it_was_begun_with(tmp_path: Path) -> None:
    """Also where the file was changed since, or the workflow never had one."""
    folder = tmp_path / "run"
    folder.mkdir()
    bound = bind(load(FIG1), catalogue(), parameters={"data_folder": "/elsewhere"})
    (folder / "workflow.butterfly.yaml").write_text(to_yaml(bound.workflow))
    begun = {"fingerprints": {}, "settings": ScheduleSettings(policy="mc").as_dict(), "values": bound.values}
    (folder / FILE).write_text(json.dumps(begun) + "\n")
    record = RunRecord(
        run="r1", workflow="fig1", file=str(FIG1), content_hash=bound.workflow.content_hash(), status="running",
        started=datetime.now(UTC), finished=None, policy="mc", granularity="operator", master="local[2]",
        folder=str(folder), summary={},
    )  # fmt: skip
    with MetadataStore() as store:
        store.put_run(record)
    asked = _killed("r1")
    assert asked["settings"] == {"master": "local[2]", "resume": "r1"}
    again = Service(io.StringIO())._bound(asked["text"], asked["path"], asked["parameters"])
    assert not again.errors
    assert again.values == bound.values
    assert again.workflow.content_hash() == record.content_hash
    assert _begun_with(begun, again).policy == "mc"

"""`papilio watch`, `replay`, `control` and `packs`: a run seen and driven from a terminal."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from engine.cli import papilio
from engine.cli._watching import bar, picture, size_text, sparkline
from engine.control import RunControl, driven
from engine.errors import BadInput, PapilioError
from engine.events import LogReader, RunPaused, UnitActivated
from engine.recording import QueueState, RunRecording
from engine.store.runs import find_run
from tests.test_control import Running, until


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAPILIO_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PAPILIO_STORE", str(tmp_path / "store.db"))


def call(*arguments: object) -> Result:
    return CliRunner().invoke(papilio, [str(one) for one in arguments])


def failed(*arguments: object) -> PapilioError:
    error = call(*arguments).exception
    assert isinstance(error, PapilioError), error
    return error


@pytest.fixture
def ended(tmp_path: Path) -> dict[str, Any]:
    return Running(tmp_path / "run").end()


def test_a_run_is_found_by_id_beginning_folder_log_and_as_the_last_one(ended: dict[str, Any], tmp_path: Path) -> None:
    folder = (tmp_path / "run").resolve()
    for name in (ended["run"], ended["run"][:12], "last", folder, folder / "events.jsonl"):
        assert find_run(str(name)) == folder
    with pytest.raises(BadInput, match="there is no such run"):
        find_run("20010101-nothing")


def test_the_picture_of_an_ended_run_has_the_rows_of_its_log(ended: dict[str, Any], tmp_path: Path) -> None:
    answer = call("watch", "last", "--json")
    told = json.loads(answer.output)
    assert answer.exit_code == 0
    assert told["status"] == "done"
    assert {node: state["rows_out"] for node, state in told["nodes"].items()} == {
        node: rows["rows_out"] for node, rows in ended["nodes"].items()
    }
    shown = call("watch", tmp_path / "run")
    assert shown.exit_code == 0
    assert "policy mm" in shown.output
    assert f"{ended['nodes']['join']['rows_in']:,}" in shown.output
    turns = sum(isinstance(event, UnitActivated) for event in LogReader(tmp_path / "run" / "events.jsonl"))
    assert f"decision {turns}: mm picks" in shown.output


def test_a_killed_run_is_interrupted_and_a_cut_off_line_does_no_harm(ended: dict[str, Any], tmp_path: Path) -> None:
    log = tmp_path / "run" / "events.jsonl"
    text = log.read_bytes()
    lines = text.splitlines(keepends=True)
    log.write_bytes(b"".join(lines[: len(lines) // 2]) + b'{"event":"unit-dec')
    shown = call("watch", log)
    assert shown.exit_code == 1
    assert "interrupted" in shown.output
    log.write_bytes(b"".join(lines[:20]) + b"damage\n" + b"".join(lines[20:]))
    shown = call("watch", log)
    assert "line 21 is" in shown.output
    again = call("replay", log, "--speed", 100_000)
    assert again.exit_code == 0
    assert "line 21 is" in again.output
    log.write_bytes(b"damage\n")
    assert "line 1 is damaged" in str(failed("replay", log))


def test_a_paused_run_is_driven_from_the_terminal(tmp_path: Path) -> None:
    run = Running(tmp_path / "run", paused=True)
    until(lambda: run.count(RunPaused))
    try:
        assert "paused already" in call("control", "last", "pause").output
        assert "One decision more" in call("control", "last", "step").output
        assert json.loads(call("watch", "last", "--json").output)["status"] == "paused"
        assert "2 simulated seconds in one of ours" in call("control", "last", "speed", "2").output
        assert "As fast as it goes" in call("control", "last", "speed", "max").output
        assert "such as 10" in str(failed("control", "last", "speed", "quick"))
        assert "takes no number" in str(failed("control", "last", "step", "3"))
        assert "nothing to look into" in str(failed("packs", "last"))
        assert "It goes on" in call("control", "last", "resume").output
    finally:
        run.control.send("resume")
    run.end()
    assert "no run is under way" in str(failed("control", "last", "step"))


def test_a_queue_is_green_yellow_or_red_and_memory_is_a_line_of_small_bars() -> None:
    assert [bar(QueueState(packs, 0, 0, 100)).spans[0].style for packs in (10, 60, 61, 85, 86, 100)] == [
        "green", "green", "yellow", "yellow", "red", "red"
    ]  # fmt: skip
    assert bar(QueueState(3, 0, 0, None)).plain.strip() == "staged"
    assert sparkline([0, 0, 5, 10]) == "▁▁▅█"
    assert len(sparkline([1.0] * 1000)) == 40
    assert sparkline([0.0]) == "▁"
    assert [size_text(count) for count in (999, 1000, 2_500_000, 3_000_000_000)] == [
        "999 B",
        "1.0 kB",
        "2.5 MB",
        "3.00 GB",
    ]


def test_a_small_terminal_shows_what_happens_now(ended: dict[str, Any], tmp_path: Path) -> None:
    recording = RunRecording.load(tmp_path / "run")
    console = Console(width=100, height=18, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(picture(recording, recording.end / 2, None, 18))
    text = console.export_text()
    console.file.close()
    assert len(text.splitlines()) <= 20
    assert "… and" in text
    assert "running" in text
    assert "of 100" in text, "a queue with its capacity"


def test_a_log_that_breaks_off_is_replayed_and_compared_with_a_word_about_it(
    ended: dict[str, Any], tmp_path: Path
) -> None:
    log = tmp_path / "run" / "events.jsonl"
    assert "no end" not in call("replay", log, "--speed", 100_000).output
    text = log.read_bytes()
    log.write_bytes(text[:-30])
    shown = call("replay", log, "--speed", 100_000)
    assert shown.exit_code == 0
    assert "the last line is cut off" in " ".join(shown.output.replace("│", " ").split())
    assert "interrupted" in shown.output
    assert json.loads(call("watch", log, "--json").output)["damage"].endswith("the events before it are good")
    compared = call("compare", log)
    assert "the last line is cut off" in compared.output
    log.write_bytes(b"".join(text.splitlines(keepends=True)[:-1]))
    assert "the log has no end" in call("compare", log).output
    with driven(log.parent, RunControl()):  # as a run holds its folder
        assert "the log has no end" not in call("compare", log).output


def test_runs_are_compared_by_a_command(ended: dict[str, Any], tmp_path: Path) -> None:
    other = Running(tmp_path / "other", policy="rr").end()
    page, table = tmp_path / "report.html", tmp_path / "report.csv"
    answer = call("compare", tmp_path / "run", other["run"], "--html", page, "--csv", table, "--json")
    assert answer.exit_code == 0
    told = json.loads(answer.output)["runs"]
    for one, summary, folder in zip(told, (ended, other), ("run", "other"), strict=True):
        last = json.loads((tmp_path / folder / "events.jsonl").read_text().splitlines()[-1])
        assert (one["run"], one["policy"], one["status"]) == (summary["run"], summary["policy"], "done")
        assert one["seconds"] == last["seconds"]
        assert one["activations"] == summary["activations"]
        assert {name: one[name] for name in last["queue"]} == last["queue"]
    assert [row["run"] for row in csv.DictReader(table.read_text().splitlines())] == [ended["run"], other["run"]]
    assert all(run["run"] in page.read_text() for run in (ended, other))
    shown = call("compare", "last", tmp_path / "run").output
    assert ended["run"] in shown
    assert f"{ended['activations']:,}" in shown
    assert "there is no such run" in str(failed("compare", "nowhere"))


def test_the_designer_replays_at_the_speed_that_was_asked_for(
    ended: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []

    def opened(*arguments: str) -> None:
        asked.append(arguments)
        raise SystemExit

    monkeypatch.setattr("engine.cli.design.open_designer", opened)
    log = str((tmp_path / "run" / "events.jsonl").resolve())
    call("replay", "last", "--designer", "--speed", 2.5)
    call("replay", "last", "--designer")
    assert asked == [("--replay", log, "--speed", "2.5"), ("--replay", log)]

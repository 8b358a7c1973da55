"""A recording knows a run at any moment, as a plain replay of its log would."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.events import Event, SparkJob, event_from
from engine.recording import RunRecording, State
from engine.recording.bottleneck import bottleneck
from engine.recording.compare import Comparison
from engine.recording.jobs import JobSeries, tasks
from engine.recording.palette import colour
from engine.recording.series import figures, staleness

UNITS = ("a", "b", "c")
QUEUES = {"a > b": 4, "b > c": 2}


def begun(**more: Any) -> dict[str, Any]:
    return {
        "event": "run-started", "time": 1000.0, "run": "r1", "workflow": "w", "file": None, "content_hash": "",
        "policy": "rr", "granularity": "operator", "backend": "spark", "master": None, "edges": [],
        "nodes": {unit: {"operator": "filter", "title": unit, "role": "activity", "category": "row-synchronized"} for unit in UNITS},
        "units": {unit: {"nodes": [unit], "reads": []} for unit in UNITS},
        "queues": {queue: {"producer": queue[0], "consumer": queue[-1], "capacity_packs": packs, "link": []} for queue, packs in QUEUES.items()},
        **more,
    }  # fmt: skip


@st.composite
def logs(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A run under any scheduler: decisions, turns, snapshots, spills, a kill and a failure, in some order."""
    now = 1000.0
    events = [begun()]
    running: set[str] = set()
    over: set[str] = set()
    for number in range(draw(st.integers(0, 40))):
        now += draw(st.sampled_from((0.0, 0.0, 0.1, 0.7, -0.05)))
        unit = draw(st.sampled_from(UNITS))
        what = draw(
            st.sampled_from(("turn", "turn", "turn", "snapshot", "spill", "end", "kill", "progress", "new", "pause"))
        )
        at: dict[str, Any] = {"time": round(now, 3)}
        if what == "turn" and unit in running:
            running.discard(unit)
            rows = draw(st.integers(0, 500))
            events.append(
                {
                    "event": "unit-activated",
                    **at,
                    "activation": number,
                    "unit": unit,
                    "step": "process",
                    "packs_in": 1,
                    "rows_in": rows,
                    "packs_out": 1,
                    "rows_out": rows // 2,
                    "seconds": 0.1,
                }
            )
        elif what == "turn" and unit not in over:
            running.add(unit)
            events.append(
                {
                    "event": "unit-decided",
                    **at,
                    "activation": number,
                    "unit": unit,
                    "step": "process",
                    "packs": 1,
                    "policy": "rr",
                    "group": "",
                    "candidates": [[unit, 1.5]],
                }
            )
        elif what == "snapshot":
            held = {queue: [draw(st.integers(1, 6)), 7, 8] for queue in QUEUES if draw(st.booleans())}
            events.append(
                {
                    "event": "queue-snapshot",
                    **at,
                    "queues": held,
                    "memory_bytes": number,
                    "disk_bytes": 0,
                    "running": sorted(running),
                }
            )
        elif what == "spill":
            events.append({"event": "queue-spilled", **at, "queue": "a > b", "packs": 4 + number})
        elif what == "end" and unit not in running and unit not in over:
            over.add(unit)
            kind = draw(st.sampled_from(("unit-finished", "unit-failed")))
            rest = {"seconds": 1.0, "rows": 3} if kind == "unit-finished" else {"node": unit, "reason": "no"}
            events.append({"event": kind, **at, "unit": unit, **rest})
        elif what == "kill":
            running.clear()
            events.append(begun(**at, resumed=True))
        elif what == "progress":
            events.append(
                {"event": "node-counted", **at, "node": unit, "rows_in": number, "rows_out": None, "count": "exact"}
            )
        elif what == "new":
            events.append({"event": "of-a-later-version", **at, "unit": 5})
        else:
            events.append({"event": "run-paused", **at, "running": []})
    if draw(st.booleans()):
        events.append(
            {
                "event": "run-finished",
                "time": now + 1,
                "status": draw(st.sampled_from(("done", "cancelled"))),
                "seconds": 1.0,
                "reason": None,
            }
        )
    return events


class Plain:
    """A run replayed event by event, with nothing but dictionaries."""

    def __init__(self) -> None:
        self.turns = dict.fromkeys(UNITS, 0)
        self.rows_in = dict.fromkeys(UNITS, 0)
        self.rows_out = dict.fromkeys(UNITS, 0)
        self.running: set[str] = set()
        self.finished: set[str] = set()
        self.failed: dict[str, str] = {}
        self.counted: dict[str, int] = {}
        self.queues: dict[str, list[int]] = {}
        self.capacity = dict(QUEUES)
        self.status = "running"

    def take(self, event: dict[str, Any]) -> None:
        unit = event.get("unit")
        match event["event"]:
            case "unit-decided":
                self.running.add(str(unit))
            case "unit-activated":
                self.running.discard(str(unit))
                self.turns[str(unit)] += 1
                self.rows_in[str(unit)] += event["rows_in"]
                self.rows_out[str(unit)] += event["rows_out"]
            case "unit-finished":
                self.finished.add(str(unit))
            case "unit-failed":
                self.failed[str(unit)] = event["reason"]
            case "queue-snapshot":
                self.queues = event["queues"]
            case "queue-spilled":
                self.capacity[event["queue"]] = event["packs"]
            case "node-counted":
                self.counted[event["node"]] = event["rows_in"]
            case "run-paused":
                self.status = "paused"
            case "run-started":
                self.status = "running"
                self.running.clear()
                self.failed.clear()
            case "run-finished":
                self.status = event["status"]
                self.running.clear()
                if self.status == "done":
                    self.queues = {}

    def state(self, unit: str) -> State:
        if unit in self.failed:
            return State.FAILED
        if unit in self.finished or self.status == "done":
            return State.FINISHED
        if unit in self.running:
            return State.RUNNING
        return State.STALLED if self.turns[unit] else State.WAITING


def lines(events: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


@settings(max_examples=60, deadline=None)
@given(logs(), st.data())
def test_the_state_at_any_moment_is_that_of_a_plain_replay(events: list[dict[str, Any]], data: st.DataObject) -> None:
    recording = RunRecording(Path("log"))
    text, at = lines(events), 0
    while at < len(text):  # as it may grow: some lines at a time
        step = data.draw(st.integers(at + 1, len(text)))
        end = text.find(b"\n", step - 1) + 1
        recording.feed(text[at:end])
        at = end
    assert recording.damage is None
    times, latest = [], 0.0
    for event in events:
        if event["event"] != "of-a-later-version":  # what nobody knows does not move the clock either
            latest = max(latest, event["time"] - 1000.0)
        times.append(latest)
    moment = data.draw(st.sampled_from(times)) + data.draw(st.sampled_from((0.0, 0.03)))
    plain = Plain()
    for event, time in zip(events, times, strict=True):
        if time <= moment:
            plain.take(event)
    state = recording.state(moment)
    assert state.status == plain.status
    assert {unit: state.units[unit].state for unit in UNITS} == {unit: plain.state(unit) for unit in UNITS}
    assert {unit: state.units[unit].turns for unit in UNITS} == plain.turns
    assert {unit: state.units[unit].rows_in for unit in UNITS} == plain.rows_in
    assert {unit: state.units[unit].rows_out for unit in UNITS} == plain.rows_out
    for unit in UNITS:
        known = plain.rows_in[unit] if plain.turns[unit] else None
        assert state.nodes[unit].rows_in == plain.counted.get(unit, known)
        assert state.nodes[unit].message == plain.failed.get(unit)
    for queue in QUEUES:
        assert state.queues[queue].packs == plain.queues.get(queue, [0])[0]
        assert state.queues[queue].capacity == plain.capacity[queue]


def test_events_by_the_thousand_are_folded_from_checkpoints() -> None:
    events = [begun()]
    for number in range(3000):
        events.append(
            {
                "event": "node-counted",
                "time": 1000.0 + number,
                "node": "a",
                "rows_in": number,
                "rows_out": 0,
                "count": "exact",
            }
        )
    recording = RunRecording(Path("log"))
    recording.feed(lines(events))
    for moment in (2999.0, 0.0, 255.0, 256.0, 1234.5):  # forwards and backwards
        assert recording.state(moment).nodes["a"].rows_in == int(moment)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a simulated run of Fig. 1 under mm."""
    from engine.experiments.scheduling import archetype
    from engine.schedule.costs import SimulationSettings
    from engine.simulation import launch_simulated

    folder = tmp_path_factory.mktemp("recording")
    store = f"sqlite:///{folder}/store.db"
    launch_simulated(archetype("butterfly", 0.02), SimulationSettings(policy="mm"), folder=folder / "run", store=store)
    return folder / "run"


def test_a_recorded_run_ends_as_its_summary_says(run: Path) -> None:
    recording = RunRecording.load(run)
    summary = json.loads((run / "summary.json").read_text())
    state = recording.state()
    assert recording.damage is None
    assert not recording.cut_off
    assert state.status == summary["status"] == "done"
    assert sum(unit.turns for unit in state.units.values()) == summary["activations"]
    for node, counted in summary["nodes"].items():
        shown = state.nodes[node]
        assert (shown.rows_in, shown.rows_out, shown.count) == (counted["rows_in"], counted["rows_out"], "simulated")
        assert shown.state is State.FINISHED
    before = recording.state(recording.end - 1e-6)  # the same rows, from the turns alone
    for node, counted in summary["nodes"].items():
        assert before.nodes[node].rows_out == counted["rows_out"], node
    half = recording.state(recording.end / 2)
    assert {node.state for node in half.nodes.values()} >= {State.WAITING, State.FINISHED}


def test_a_decision_is_read_from_the_log_with_its_candidates(run: Path) -> None:
    recording = RunRecording.load(run)
    logged = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    decided = [event for event in logged if event["event"] == "unit-decided"]
    assert len(recording.decisions) == len(decided)
    for number in (0, len(decided) // 2, len(decided) - 1):
        found = recording.decision(number)
        assert found.unit == decided[number]["unit"]
        assert [list(one) for one in found.candidates] == decided[number]["candidates"]


def test_a_log_is_the_same_in_however_small_texts_it_is_read(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = RunRecording.load(run)
    monkeypatch.setattr("engine.recording.recording.TEXT_BYTES", 300)  # shorter than some of its lines
    small = RunRecording.load(run)
    assert (small.count, small.end, small.bytes_read) == (whole.count, whole.end, whole.bytes_read)
    for name in ("decisions", "snapshots", "held"):
        ours, theirs = getattr(small, name), getattr(whole, name)
        assert all(np.array_equal(ours[column], theirs[column]) for column in ours._place)
    for mine, its in zip(small.lanes, whole.lanes, strict=True):
        assert all(np.allclose(mine[column], its[column], rtol=1e-12) for column in mine._place)
    number = len(small.decisions) - 1
    assert small.decision(number) == whole.decision(number)


def test_a_cut_off_line_waits_for_its_rest(tmp_path: Path) -> None:
    log = tmp_path / "events.jsonl"
    text = lines([begun(), {"event": "unit-started", "time": 1001.0, "unit": "a"}])
    log.write_bytes(text[:-20])
    recording = RunRecording.load(log)
    assert recording.count == 1
    assert recording.cut_off
    log.write_bytes(text)
    assert recording.read() == 1
    assert not recording.cut_off
    assert recording.state().nodes["a"].state is State.RUNNING


@pytest.mark.parametrize(
    "bad", [b'{"event":"unit-star', b"", b"[1, 2]", b"\xff\xfe\x00", b'{"event":"run-started","time":1002.0,"run":"x","workflow":"w","file":null,"content_hash":"","policy":"","granularity":"","backend":"","master":null,"nodes":3,"edges":3,"units":3}']
)  # fmt: skip
def test_a_damaged_log_is_read_up_to_the_damage(tmp_path: Path, bad: bytes) -> None:
    log = tmp_path / "events.jsonl"
    good = lines([begun(), {"event": "unit-decided", "time": 1001.0, "unit": "a", "activation": 1, "candidates": []}])
    log.write_bytes(good + bad + b"\n" + lines([{"event": "unit-started", "time": 1003.0, "unit": "b"}]))
    recording = RunRecording.load(log)
    assert recording.damage is not None
    assert f"{log}: line 3 is damaged" in recording.damage
    state = recording.state()
    assert state.nodes["a"].state is State.RUNNING
    assert state.nodes["b"].state is State.WAITING
    assert recording.read() == 0


def test_a_unit_that_finishes_before_the_event_of_its_last_turn_has_no_turn_more() -> None:
    recording = RunRecording(Path("log"))
    turn = {"activation": 1, "unit": "a", "step": "process", "packs_in": 1, "rows_in": 7, "packs_out": 1, "rows_out": 5}
    recording.feed(lines([
        begun(units={"a": {"nodes": ["a"], "reads": [], "work": "stream"}}),
        {"event": "unit-decided", "time": 1001.0, "unit": "a", "activation": 1, "candidates": []},
        {"event": "unit-started", "time": 1001.0, "unit": "a"},
        {"event": "unit-finished", "time": 1003.0, "unit": "a", "seconds": 2.0, "rows": 5},
        {"event": "unit-activated", "time": 1003.0, **turn, "seconds": 1.9},
    ]))  # fmt: skip
    unit = recording.state().units["a"]
    assert (unit.state, unit.turns, unit.rows_in, unit.rows_out) == (State.FINISHED, 1, 7, 5)
    assert recording.lanes[0]["begin"].tolist() == [1.0]


def test_events_that_nobody_knows_are_skipped_and_counted() -> None:
    recording = RunRecording(Path("log"))
    recording.feed(
        lines(
            [begun(), {"event": "teleported", "time": 1001.0}, {"event": "unit-started", "time": 1002.0, "unit": "a"}]
        )
    )
    assert recording.skipped == {"teleported": 1}
    assert recording.state().nodes["a"].state is State.RUNNING


def test_the_updates_of_a_streaming_warehouse_are_turns_of_their_tables() -> None:
    recording = RunRecording(Path("log"))
    update: dict[str, Any] = {"job": 1, "track": 0, "tables": ["a", "b"]}
    recording.feed(lines([
        begun(),
        {"event": "update-started", "time": 1001.0, **update, "expected_s": 1.0},
        {"event": "table-staleness", "time": 1001.5, "table": "a", "staleness": 4.0, "bound": 9.0},
        {"event": "update-finished", "time": 1003.0, **update, "seconds": 2.0, "rows": 70},
        {"event": "table-staleness", "time": 1003.0, "table": "a", "staleness": 0.5, "bound": 9.0},
        {"event": "update-started", "time": 1004.0, **update, "tables": ["b"], "expected_s": 1.0},
    ]))  # fmt: skip
    assert recording.state(2.0).units["a"].state is State.RUNNING
    assert recording.state(3.5).units["a"].state is State.STALLED
    assert (recording.state().units["a"].turns, recording.state().units["a"].rows_out) == (1, 70)
    assert recording.state().units["b"].state is State.RUNNING
    xs, ys = staleness(recording, recording.end)["a"]
    assert list(zip(xs.tolist(), ys.tolist(), strict=True)) == [(1.5, 4.0), (3.0, 5.5), (3.0, 0.5), (4.0, 1.5)]
    assert recording.bounds == {"a": 9.0}


def test_every_kind_of_event_has_a_time_by_which_it_is_found() -> None:
    assert all("time" in kind.__dataclass_fields__ for kind in Event.kinds.values())
    assert event_from({"event": "table-staleness", "time": 1.0, "table": "v", "staleness": 2.0}) is not None


def test_a_pause_is_in_no_average(tmp_path: Path) -> None:
    def shot(time: float, size: int) -> dict[str, Any]:
        return {"event": "queue-snapshot", "time": time, "queues": {"a > b": [1, 10, size]}}

    def pause(time: float) -> dict[str, Any]:
        return {"event": "run-paused", "time": time, "running": []}

    def average(*events: dict[str, Any]) -> float:
        log = tmp_path / "events.jsonl"
        log.write_text("".join(json.dumps(event) + "\n" for event in (begun(), *events)))
        return figures(RunRecording.load(log)).avg_bytes

    assert average(shot(1001, 100), shot(1002, 300), shot(1003, 0)) == pytest.approx(200)
    paused = [
        shot(1001, 100), shot(1002, 300), {**pause(1002.5), "running": ["a"]}, pause(1002.5),
        {"event": "run-stepped", "time": 1010}, pause(1010), {"event": "run-resumed", "time": 1102.5}, shot(1103, 0),
    ]  # fmt: skip
    assert average(*paused) == pytest.approx(200), "a hundred seconds of standing still weigh nothing"


def test_what_queues_held_is_exact_once_the_run_tells_it_and_from_snapshots_before(tmp_path: Path) -> None:
    shots = [
        {"event": "queue-snapshot", "time": 1000 + at, "queues": {"a > b": [1, 10, size]}}
        for at, size in enumerate((100, 300, 0), 1)
    ]
    exact = {"avg_bytes": 180, "max_bytes": 420, "avg_packs": 0.6, "max_packs": 2, "avg_rows": 6.0, "max_rows": 20}
    ended = {"event": "run-finished", "time": 1004, "status": "done", "seconds": 4.0, "queue": exact}
    again = {**begun(), "time": 1003.5, "resumed": True}

    def told(*events: dict[str, Any]) -> tuple[str, float, int]:
        log = tmp_path / "events.jsonl"
        log.write_text("".join(json.dumps(event) + "\n" for event in (begun(), *shots, *events)))
        found = figures(RunRecording.load(log))
        return found.queues_from, found.avg_bytes, found.max_bytes

    assert told() == ("snapshots", 200.0, 300)
    assert told(ended) == ("exact", 180, 420)
    assert told({**ended, "queue": None}) == ("snapshots", 200.0, 300), "a log of before has no such figures"
    assert told(again, ended) == ("snapshots", 200.0, 300), "the end of a resumed run tells only of its last part"


def test_the_report_calls_units_by_their_titles(tmp_path: Path) -> None:
    titles = {"a": "Orders", "b": "Not null", "c": "Not null", "d": "Daily view"}
    first = {
        **begun(),
        "nodes": {id_: {"title": title} for id_, title in titles.items()},
        "units": {"a": {"nodes": ["a"]}, "b": {"nodes": ["b"]}, "u": {"nodes": ["c", "d"]}},
    }
    log = tmp_path / "events.jsonl"
    starts = [{"event": "unit-started", "time": 1001, "unit": unit} for unit in ("a", "b", "u")]
    log.write_text("".join(json.dumps(event) + "\n" for event in (first, *starts)))
    recording = RunRecording.load(log)
    assert recording.titles() == ["Orders", "b", "Daily view +1"], "an id where two nodes have the same title"
    page = Comparison.of([recording]).html()
    assert all(f">{title}<" in page for title in recording.titles())
    assert ">from snapshots<" in page


def test_a_log_that_breaks_off_says_so_once_the_run_is_over(tmp_path: Path) -> None:
    log = tmp_path / "events.jsonl"
    whole = lines(
        [
            begun(),
            {"event": "unit-started", "time": 1001.0, "unit": "a"},
            {"event": "run-finished", "time": 1002.0, "status": "done", "seconds": 2.0},
        ]
    )
    endless = whole[: whole.rindex(b"\n", 0, -1) + 1]

    def told(text: bytes, over: bool) -> tuple[str | None, str]:
        log.write_bytes(text)
        recording = RunRecording.load(log)
        recording.over = over
        return recording.flaw, recording.status

    assert told(whole, True) == (None, "done")
    assert told(whole[:-10], True) == (f"{log}: the last line is cut off; the events before it are good", "interrupted")
    assert told(endless, True) == (
        f"{log}: the log has no end: the run was killed, or the log was cut off",
        "interrupted",
    )
    assert told(whole[:-10], False) == (None, "running"), "the rest of the line is on its way"
    assert told(endless, False) == (None, "running")
    assert told(lines([begun(granularity="streaming")]), True)[0] is None, "a warehouse may go on for ever"


def test_a_node_has_one_colour_at_each_granularity_and_in_the_report(tmp_path: Path) -> None:
    ids = [f"n{number}" for number in range(12)]
    nodes = {id_: {"title": id_, "role": "activity"} for id_ in ids}
    turn = {"event": "unit-activated", "time": 1002.0, "activation": 1, "unit": "n11", "seconds": 1.0}

    def recorded(units: dict[str, list[str]], *more: dict[str, Any]) -> RunRecording:
        log = tmp_path / "events.jsonl"
        facts = {unit: {"nodes": members} for unit, members in units.items()}
        log.write_bytes(lines([begun(nodes=nodes, units=facts, queues={}), *more]))
        return RunRecording.load(log)

    single = recorded({id_: [id_] for id_ in reversed(ids)}, turn)
    fused = recorded({"whole": ids[:4], "n11": ids[4:]})
    assert single.places()["n3"] == fused.places()["whole"] == 3
    assert single.places()["n11"] == fused.places()["n11"] == 11
    stale = recorded({}, {"event": "table-staleness", "time": 1001.0, "table": "n11", "staleness": 1.0})
    assert stale.places()["n11"] == 11, "a table is as its node"
    assert colour(11) != colour(1), "the second round is not the first"
    page = Comparison.of([single]).html()
    assert f'fill="{colour(11)}"' in page
    assert f'fill="{colour(1)}"' not in page


def test_of_several_nodes_in_a_unit_those_are_counted_by_which_rows_come_and_go() -> None:
    recording = RunRecording(Path("log"))
    ids = ("a", "b", "c", "d")
    queues = {
        "a > u": {"producer": "a", "consumer": "u", "capacity_packs": 4, "link": ["a", "out", "b", "in"]},
        "u > d": {"producer": "u", "consumer": "d", "capacity_packs": 4, "link": ["c", "out", "d", "in"]},
    }
    units = {"a": {"nodes": ["a"]}, "u": {"nodes": ["b", "c"]}, "d": {"nodes": ["d"]}}
    turn = {
        "activation": 1,
        "unit": "u",
        "step": "process",
        "packs_in": 1,
        "rows_in": 70,
        "packs_out": 1,
        "rows_out": 50,
    }
    first = begun(nodes={id_: {"role": "activity"} for id_ in ids}, units=units, queues=queues)
    recording.feed(lines([first, {"event": "unit-activated", "time": 1001.0, **turn, "seconds": 1.0}]))
    nodes = recording.state().nodes
    assert (nodes["b"].rows_in, nodes["b"].rows_out, nodes["b"].count) == (70, None, "fused")
    assert (nodes["c"].rows_in, nodes["c"].rows_out, nodes["c"].count) == (None, 50, "fused")
    assert (nodes["a"].rows_out, nodes["a"].count) == (None, None), "it had no turn"


def test_a_fused_unit_tells_its_tasks_while_it_runs_and_its_rows_once_they_are_written() -> None:
    recording = RunRecording(Path("log"))
    nodes = {"a": {"role": "source"}, "b": {"role": "activity"}, "c": {"role": "target"}}
    recording.feed(lines([
        begun(granularity="fused", queues={}, nodes=nodes, units={"c": {"nodes": ["a", "b", "c"], "reads": []}}),
        {"event": "unit-started", "time": 1001.0, "unit": "c"},
        {"event": "unit-progress", "time": 1002.0, "unit": "c", "tasks_done": 3, "tasks_total": 12},
        {"event": "unit-finished", "time": 1004.0, "unit": "c", "seconds": 3.0, "rows": 77},
    ]))  # fmt: skip
    before, during, after = (recording.state(at).nodes for at in (0.5, 2.5, 4.0))
    assert {node.count for node in before.values()} == {None}
    assert {(node.count, node.progress, node.rows_out) for node in during.values()} == {("fused", 0.25, None)}
    assert (after["c"].rows_in, after["c"].rows_out, after["c"].count) == (77, 77, "exact")
    assert (after["b"].rows_out, after["b"].count, after["b"].progress) == (None, "fused", None)


def test_the_bottleneck_is_where_rows_pile_up_else_the_busiest_unit() -> None:
    def narrow(held: dict[str, list[int]], *more: dict[str, Any]) -> str | None:
        recording = RunRecording(Path("log"))
        turns = [
            {"event": "unit-activated", "time": 1001.0, "unit": unit, "activation": 1, "seconds": seconds, "rows_in": 1}
            for unit, seconds in (("a", 0.3), ("b", 0.1), ("c", 0.2))
        ]
        shot = {"event": "queue-snapshot", "time": 1001.0, "queues": held}
        recording.feed(lines([begun(), *turns, shot, *more]))
        return bottleneck(recording, recording.state())

    assert narrow({"a > b": [4, 40, 400]}) == "b", "its queue is full and there is room behind it"
    assert narrow({"a > b": [4, 40, 400], "b > c": [2, 20, 200]}) == "c", "b cannot go on because of c"
    assert narrow({"a > b": [2, 20, 200]}) == "a", "nothing piles up: the busiest"
    failed = {"event": "unit-failed", "time": 1001.5, "unit": "a", "node": "a", "reason": "no"}
    assert narrow({}, failed) == "c", "a is none any more"
    assert narrow({}, {"event": "run-finished", "time": 1002.0, "status": "done", "seconds": 2.0}) is None


def stage(number: int, begin: float, end: float | None, busy: float, running: int = 0) -> dict[str, Any]:
    ended = None if end is None else 1000.0 + end
    return {"stage": number, "name": "s", "tasks": 4, "tasks_done": 4 if end else 1, "tasks_running": running,
            "status": "x", "started": 1000.0 + begin, "ended": ended, "busy_s": busy}  # fmt: skip


def job(number: int, told: float, begin: float, end: float | None, *stages: dict[str, Any]) -> dict[str, Any]:
    return {"event": "spark-job", "time": 1000.0 + told, "job": number, "unit": "a", "stages": list(stages),
            "status": "running" if end is None else "succeeded", "started": 1000.0 + begin,
            "ended": None if end is None else 1000.0 + end}  # fmt: skip


def test_the_cores_that_tasks_kept_busy_are_those_of_their_stages() -> None:
    recording = RunRecording(Path("log"))
    shared = stage(1, 1.0, 3.0, 3.0)
    recording.feed(lines([
        begun(),
        job(0, 1.5, 1.0, None, stage(1, 1.0, None, 0.0, running=2)),
        job(0, 4.0, 1.0, 3.0, shared),
        job(1, 4.0, 2.0, 4.0, shared, stage(2, 3.0, 4.0, 0.5)),
    ]))  # fmt: skip
    series = JobSeries()
    series.read(recording)
    edges = np.linspace(0.0, 5.0, 51)
    busy = series.busy(edges, recording.end)
    assert busy is not None
    assert float((busy * np.diff(edges)).sum()) == pytest.approx(3.5), "a stage that two jobs share counts once"
    assert busy[5] == 0
    assert busy[15] == pytest.approx(1.5)
    assert busy[35] == pytest.approx(0.5)
    assert [one.lane for one in series.jobs] == [0, 1], "they ran at the same time"
    skipped = {**stage(4, 1.0, None, 0.0), "status": "skipped"}
    both = event_from(job(9, 1.0, 1.0, 2.0, shared, skipped))
    assert isinstance(both, SparkJob)
    assert tasks(both) == (4, 4), "a stage that was skipped has no tasks to do"
    assert [tasks(event) for event in (series.jobs[0].at(2.0), series.jobs[0].at(3.0)) if event] == [(1, 4), (4, 4)]
    recording.feed(lines([job(2, 5.0, 4.5, None, stage(3, 4.5, None, 0.0, running=2)), begun(resumed=True, time=1006.0),
                          job(0, 7.0, 6.5, 7.0, stage(1, 6.5, 7.0, 1.0))]))  # fmt: skip
    series.read(recording)
    assert [one.number for one in series.jobs] == [0, 1, 2, 0], "another JVM counts anew"


def test_a_job_under_way_keeps_as_many_cores_as_tasks_were_seen() -> None:
    recording = RunRecording(Path("log"))
    told = [(1.5, 2), (2.0, 1)]
    recording.feed(lines([begun(), *(job(0, at, 1.0, None, stage(1, 1.0, None, 0.0, seen)) for at, seen in told)]))
    recording.feed(lines([{"event": "unit-started", "time": 1003.0, "unit": "a"}]))
    series = JobSeries()
    series.read(recording)
    busy = series.busy(np.array([0.0, 1.0, 2.0, 3.0, 4.0]), recording.end)
    assert busy is not None
    assert busy.tolist() == pytest.approx([0.0, 2.0, 1.0, 0.0])


def test_the_cores_of_a_run_are_those_that_spark_has() -> None:
    recording = RunRecording(Path("log"))
    recording.feed(lines([begun(settings={"cores": 8})]))
    assert recording.cores == 8
    recording.feed(
        lines(
            [
                {
                    "event": "spark-ready",
                    "time": 1001.0,
                    "version": "4",
                    "master": "spark://x",
                    "seconds": 1.0,
                    "cores": 3,
                }
            ]
        )
    )
    assert recording.cores == 3

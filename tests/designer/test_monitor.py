"""Panels show what the log says, the timeline moves through it, and the canvas follows."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QFont, QMouseEvent, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from designer.canvas.node import NodeItem
from designer.canvas.scene import Hit
from designer.canvas.view import CanvasView
from designer.document.layout import NODE_WIDTH
from designer.monitor.colours import level_colour
from designer.monitor.compare import CompareWindow
from designer.monitor.overlay import NodeMark, fitting, legible, node_texts, state_colour
from designer.monitor.panel import PROJECTOR, Panel, panel_kinds
from designer.monitor.panels.activity import ActivityPanel
from designer.monitor.panels.decisions import DecisionsPanel
from designer.monitor.panels.jobs import JobsPanel
from designer.monitor.panels.memory import MemoryPanel
from designer.monitor.panels.operators import OperatorsPanel
from designer.monitor.panels.parallelism import ParallelismPanel
from designer.monitor.panels.staleness import StalenessPanel
from designer.monitor.player import Player
from designer.monitor.scrubber import speed_of
from designer.monitor.still import Still
from designer.monitor.units import bytes_text, count_text, seconds_text
from designer.session.settings import Settings
from designer.window.window import MainWindow
from engine.control import RunControl, driven
from engine.events import EventLog, QueueSpilled, SparkJob, SparkReady, TableStaleness, UnitFailed
from engine.experiments.scheduling import archetype
from engine.recording import NodeState, QueueState, State
from engine.schedule.costs import SimulationSettings
from engine.simulation import launch_simulated


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Logs of Fig. 1 under three policies, simulated."""
    folder = tmp_path_factory.mktemp("runs")
    bound = archetype("butterfly", 0.1)
    for policy in ("rr", "mc", "mm"):
        store = f"sqlite:///{folder}/store.db"
        launch_simulated(bound, SimulationSettings(policy=policy), folder=folder / policy, store=store)
    return {policy: folder / policy / "events.jsonl" for policy in ("rr", "mc", "mm")}


def logged(log: Path, kind: str) -> list[dict[str, Any]]:
    """The events of a kind, read plainly."""
    return [event for event in map(json.loads, log.read_text().splitlines()) if event["event"] == kind]


@pytest.fixture
def player(qapp: QApplication) -> Iterator[Player]:
    made = Player()
    yield made
    made.close()


def shown(kind: type[Panel], player: Player, log: Path) -> Any:
    """A panel that shows a log."""
    panel = kind(player)
    panel.resize(900, 420)
    panel.show()
    player.open(log)
    player.wait_until_loaded()
    QApplication.processEvents()
    player.redraw()
    return panel


def test_the_memory_panel_draws_the_snapshots_of_the_log(player: Player, runs: dict[str, Path]) -> None:
    panel = shown(MemoryPanel, player, runs["mm"])
    snapshots = logged(runs["mm"], "queue-snapshot")
    zero = logged(runs["mm"], "run-started")[0]["time"]
    expected = {round(one["time"] - zero, 6): one["held"][2] for one in snapshots}
    xs, ys = panel.total.getData()
    assert len(xs) >= min(len(snapshots), 100)
    for x, y in zip(xs.tolist(), ys.tolist(), strict=True):
        assert expected[round(x, 6)] == y
    assert max(ys) == max(expected.values())  # thinned, but not its peak
    stacked = [curve.getData()[1] for curve in panel.curves.values() if curve.isVisible()]
    tops = np.max(stacked, axis=0)
    assert (tops <= ys + 1e-6).all()
    sums = {round(one["time"] - zero, 6): sum(held[2] for held in one["queues"].values()) for one in snapshots}
    assert any(expected[time] < total for time, total in sums.items()), "some packs wait in two queues"
    for x, y, top in zip(xs.tolist(), ys.tolist(), tops.tolist(), strict=True):
        if sums[round(x, 6)] >= y:  # else some wait before the queues
            assert top == pytest.approx(y), "on top of each other the queues come to what is held"
    exact = logged(runs["mm"], "run-finished")[0]["queue"]
    assert exact["max_bytes"] >= max(expected.values())
    assert bytes_text(exact["max_bytes"]) in panel.headline.text()


def test_memory_is_told_in_packs_and_by_queue_too(player: Player, runs: dict[str, Path]) -> None:
    panel = shown(MemoryPanel, player, runs["rr"])
    panel.measure.setCurrentIndex(panel.measure.findData("packs"))
    panel.style_.setCurrentIndex(panel.style_.findData("lines"))
    player.redraw()
    most: dict[str, int] = {}
    for one in logged(runs["rr"], "queue-snapshot"):
        for queue, held in one["queues"].items():
            most[queue] = max(held[0], most.get(queue, 0))
    drawn = {name: int(curve.getData()[1].max()) for name, curve in panel.curves.items() if curve.isVisible()}
    named = {name: value for name, value in drawn.items() if name in most}
    assert named
    assert named == {name: most[name] for name in named}


def test_spills_and_the_budget_are_marked(player: Player, runs: dict[str, Path], tmp_path: Path) -> None:
    log = tmp_path / "events.jsonl"
    lines = [json.loads(line) for line in runs["rr"].read_text().splitlines()]
    lines[0]["settings"] = {"memory_bytes": 3_000_000}
    queue = next(iter(lines[0]["queues"]))
    lines.insert(40, {**QueueSpilled(time=lines[39]["time"], queue=queue, packs=120).as_dict()})
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    panel = shown(MemoryPanel, player, log)
    assert panel.budget.isVisible()
    assert panel.budget.value() == 3_000_000
    assert panel.spilled.getData()[0].tolist() == [pytest.approx(lines[39]["time"] - lines[0]["time"])]
    assert not panel.above.isVisible()


def test_a_budget_far_above_the_queues_is_told_at_the_top(
    player: Player, runs: dict[str, Path], tmp_path: Path
) -> None:
    log = tmp_path / "events.jsonl"
    lines = [json.loads(line) for line in runs["rr"].read_text().splitlines()]
    full = lines[0]["settings"]["full_bytes"]
    row_bytes = full / (lines[0]["settings"]["queue_packs"] * lines[0]["settings"]["pack_rows"])
    assert row_bytes > len(lines[0]["queues"]), "a simulated run tells what its queues hold when they are full"
    lines[0]["settings"] = {"memory_bytes": 900_000_000_000}
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    panel = shown(MemoryPanel, player, log)
    assert not panel.budget.isVisible()
    assert panel.above.isVisible()
    assert panel.above.toPlainText() == "budget 900 GB, above this picture"
    assert panel.above.pos().y() == pytest.approx(panel.view.viewRange()[1][1])
    panel.measure.setCurrentIndex(panel.measure.findData("packs"))
    player.redraw()
    assert not panel.above.isVisible(), "a budget is in bytes"
    panel = shown(MemoryPanel, player, runs["rr"])
    told = panel.budget.label.format if panel.budget.isVisible() else panel.above.toPlainText()
    assert told.startswith(f"all queues full: {bytes_text(full)}")


def test_a_run_without_queues_says_so_and_has_no_axis_of_bytes(
    player: Player, runs: dict[str, Path], tmp_path: Path
) -> None:
    log = tmp_path / "events.jsonl"
    lines = [json.loads(line) for line in runs["rr"].read_text().splitlines()]
    lines = [
        line for line in lines if line["event"] in ("run-started", "unit-started", "unit-finished", "run-finished")
    ]
    lines[0] |= {"granularity": "fused", "queues": {}, "settings": {}}
    lines[-1].pop("queue")
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    panel = shown(MemoryPanel, player, log)
    assert panel.empty.isVisible()
    assert panel.empty.toPlainText().startswith("No queues in this run: it is fused")
    assert not panel.values.style["showValues"]
    assert not panel.values.label.isVisible()
    assert "no queues" in panel.headline.text()
    assert "0 B" not in panel.headline.text()
    assert not panel.measure.isVisible()
    again = shown(MemoryPanel, player, runs["rr"])
    for one in (panel, again):  # the same panel shows another run
        assert not one.empty.isVisible()
        assert one.values.style["showValues"]
        assert one.values.label.isVisible()
        assert one.measure.isVisible()


@pytest.mark.parametrize("top", [0.4, 1.0, 2.0, 3.0, 9.0, 1020.0, 5_100.0, 2_345_678.0])
def test_no_two_ticks_of_memory_have_one_text_and_none_is_a_part_of_a_byte(
    player: Player, runs: dict[str, Path], top: float
) -> None:
    axis = shown(MemoryPanel, player, runs["rr"]).values
    values = [value for _, level in axis.tickValues(0.0, top * 1.08, 300.0) for value in level]
    texts = [text for spacing, level in axis.tickValues(0.0, top * 1.08, 300.0)
             for text in axis.tickStrings(level, 1.0, spacing)]  # fmt: skip
    assert values
    assert values == [round(value) for value in values]
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("scale", [1.0, PROJECTOR])
@pytest.mark.parametrize("width", [330, 470, 700, 1100])
def test_no_head_of_a_table_is_cut(
    player: Player, runs: dict[str, Path], tmp_path: Path, width: int, scale: float
) -> None:
    unit = next(iter(logged(runs["rr"], "run-started")[0]["units"]))
    log = with_a_job(runs["rr"], tmp_path / "events.jsonl", unit)
    for kind in (JobsPanel, DecisionsPanel):
        panel = shown(kind, player, log)
        panel.set_scale(scale)
        panel.resize(width, 320)
        QApplication.processEvents()
        player.redraw()
        header = panel.list.header() if kind is JobsPanel else panel.table.horizontalHeader()
        seen = [column for column in range(5) if not header.isSectionHidden(column)]
        assert {0, 1 if kind is JobsPanel else 2} <= set(seen), "who did it when is always told"
        assert len(seen) == 5 or width < 1100 * scale
        for column in seen:
            assert header.sectionSize(column) >= header.sectionSizeHint(column), column
        cells = panel.list if kind is JobsPanel else panel.table
        if kind is JobsPanel and scale == 1.0:
            assert len(seen) >= {330: 2, 470: 3, 700: 5, 1100: 5}[width], "how many tasks are done is what it is for"
        fits = cells.viewport().width() >= header.length()
        assert fits or len(seen) == 2, "columns go before the table scrolls"


def test_the_activity_panel_has_a_bar_for_every_turn(player: Player, runs: dict[str, Path]) -> None:
    panel = shown(ActivityPanel, player, runs["rr"])
    zero = logged(runs["rr"], "run-started")[0]["time"]
    begun = {one["activation"]: one["time"] - zero for one in logged(runs["rr"], "unit-decided")}
    expected: dict[str, list[tuple[float, float]]] = {}
    for one in logged(runs["rr"], "unit-activated"):
        expected.setdefault(one["unit"], []).append((begun[one["activation"]], one["time"] - zero))
    assert {name for name, begin, _ in panel.bars.lanes if len(begin)} == set(expected)
    for name, begin, end in panel.bars.lanes:
        assert np.allclose(np.column_stack((begin, end)), np.array(expected.get(name, [])).reshape(-1, 2))


def test_where_turns_are_many_each_pixel_is_as_strong_as_its_turns(
    player: Player, runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("designer.monitor.panels.activity.EXACT", 10)
    panel = shown(ActivityPanel, player, runs["mm"])
    picture = panel.bars.picture
    assert picture is not None
    zero = logged(runs["mm"], "run-started")[0]["time"]
    begun = {one["activation"]: one["time"] - zero for one in logged(runs["mm"], "unit-decided")}
    active: dict[str, float] = {}
    for one in logged(runs["mm"], "unit-activated"):
        active[one["unit"]] = active.get(one["unit"], 0.0) + one["time"] - zero - begun[one["activation"]]
    width = (panel.bars.stop - panel.bars.start) / picture.shape[1]
    names = [name for name, _, _ in panel.bars.lanes]
    assert {name: picture[number].sum() * width for number, name in enumerate(names)} == pytest.approx(active, abs=1e-3)


def test_operators_have_their_throughput_selectivity_and_share(player: Player, runs: dict[str, Path]) -> None:
    panel = shown(OperatorsPanel, player, runs["mc"])
    rows: dict[str, list[float]] = {}
    for one in logged(runs["mc"], "unit-activated"):
        sums = rows.setdefault(one["unit"], [0.0, 0.0, 0.0])
        sums[0], sums[1], sums[2] = sums[0] + one["rows_in"], sums[1] + one["rows_out"], sums[2] + one["seconds"]
    whole = sum(sums[2] for sums in rows.values())
    chart = panel.chart
    assert {share.unit for share in chart.found} == set(rows)
    values = zip(*(column.values for column in chart.columns), strict=True)
    for share, (rate, part, time), text in zip(chart.found, values, chart.columns[2].texts, strict=True):
        taken, given, seconds = rows[share.unit]
        assert rate == pytest.approx(taken / seconds)
        assert time == pytest.approx(seconds / whole)
        assert text == f"{seconds / whole * 100:.1f} %"
        if share.selectivity is not None:
            assert part == pytest.approx(given / taken)
    picture = chart.grab().toImage()
    for number, column in enumerate(chart.columns):
        frame, longest = chart.column_frame(number), max(column.values)
        bars = chart.bars(number)
        for bar, value in zip(bars, column.values, strict=True):
            assert bar.width() == pytest.approx(max(one.width() for one in bars) * value / longest)
            assert bar.right() < frame.right()
        most = bars[column.values.index(longest)]
        ends = [picture.pixelColor(round(x), round(most.center().y())) for x in (most.right() - 3, frame.right() + 3)]
        assert ends[0] != ends[1], "a bar is painted as long as it is said to be"


def test_staleness_grows_with_time_and_falls_at_a_refresh(
    player: Player, runs: dict[str, Path], tmp_path: Path
) -> None:
    log = tmp_path / "events.jsonl"
    started = logged(runs["rr"], "run-started")[0]
    zero = started["time"]
    events = [
        TableStaleness(time=zero, table="view", staleness=5.0, bound=9.0),
        TableStaleness(time=zero + 6, table="view", staleness=2.0, bound=9.0),
        TableStaleness(time=zero + 8, table="other", staleness=1.0),
    ]
    log.write_text("".join(json.dumps(line) + "\n" for line in [started, *(event.as_dict() for event in events)]))
    panel = shown(StalenessPanel, player, log)
    xs, ys = panel.curves["view"].getData()
    assert np.allclose(np.column_stack((xs, ys)), [(0, 5), (6, 11), (6, 2), (8, 4)])
    assert panel.lines["view"].value() == 9.0
    player.seek(5.5)
    player.redraw()
    assert "1</span>" in panel.headline.text()  # beyond its bound at that moment
    assert seconds_text(10.5) in panel.headline.text()


def test_batch_targets_are_as_stale_as_their_last_run_says(
    player: Player, runs: dict[str, Path], tmp_path: Path
) -> None:
    log = tmp_path / "events.jsonl"
    started = logged(runs["rr"], "run-started")[0]
    target = next(node for node, facts in started["nodes"].items() if facts["role"] == "target")
    started["refreshed"] = {target: started["time"] - 100.0}
    committed = {"event": "target-committed", "time": started["time"] + 7.0, "node": target, "rows": 3, "path": "x"}
    log.write_text("".join(json.dumps(line) + "\n" for line in [started, committed]))
    panel = shown(StalenessPanel, player, log)
    xs, ys = panel.curves[target].getData()
    assert np.allclose(np.column_stack((xs, ys)), [(0, 100), (7, 107), (7, 7), (7, 7)])


def with_a_job(run: Path, log: Path, unit: str) -> Path:
    """The log of a run with a job of Spark in it."""
    log.write_bytes(run.read_bytes())
    zero = logged(log, "run-started")[0]["time"]
    written = EventLog(log)
    stage = {
        "stage": 1, "name": "s", "tasks": 2, "tasks_done": 2, "status": "succeeded", "started": zero + 1,
        "ended": zero + 2, "busy_s": 1.5,
    }  # fmt: skip
    written.add(SparkReady(time=zero, version="4", master="local[3]", seconds=0.1, cores=3))
    written.add(
        SparkJob(time=zero + 3, job=1, unit=unit, status="succeeded", started=zero + 1, ended=zero + 2, stages=[stage])
    )
    written.close()
    return log


def test_parallelism_counts_units_and_spark_jobs(player: Player, runs: dict[str, Path], tmp_path: Path) -> None:
    log = with_a_job(runs["rr"], tmp_path / "events.jsonl", "x")
    panel = shown(ParallelismPanel, player, log)
    edges, units = panel.running.getData()
    assert float((units * np.diff(edges)).sum()) == pytest.approx(
        sum(lane.last("active") for lane in player.recording.lanes), rel=1e-3
    )
    edges, busy = panel.busy.getData()
    assert float((busy * np.diff(edges)).sum()) == pytest.approx(1.5, rel=1e-3)
    assert panel.cores.value() == 3
    assert "Spark jobs, 1 stages" in panel.headline.text()
    player.seek(1.75)
    player.redraw()
    assert "1.1</span>" in panel.headline.text(), "three quarters of the last second at one and a half"
    assert "of 3 cores busy" in panel.headline.text()
    jobs = shown(JobsPanel, player, log)
    assert [(job.number, job.unit, job.begin, job.end) for job in jobs.bars.shown] == [
        (1, "x", pytest.approx(1.0), pytest.approx(2.0))
    ]
    assert jobs.bar_texts(jobs.bars.shown[0]) == ["1 x 2/2", "1  2/2", "1"]
    assert [jobs.list.topLevelItem(0).text(column) for column in range(5)] == ["Job 1", "x", "2/2", "1.00", "done"]
    assert [jobs.list.topLevelItem(0).child(0).text(column) for column in (0, 2, 3)] == ["Stage 1", "2/2", "1.00"]
    assert jobs.list.headerItem().text(3) == "Time (s)"
    player.seek(0.5)
    player.redraw()
    assert jobs.list.topLevelItemCount() == 0, "it had not begun"


def test_the_decision_log_tells_why_and_a_click_goes_there(player: Player, runs: dict[str, Path]) -> None:
    panel = shown(DecisionsPanel, player, runs["mm"])
    decided = logged(runs["mm"], "unit-decided")
    assert panel.model.rowCount() == len(decided)
    row = next(number for number, one in enumerate(decided) if len(one["candidates"]) > 1)
    index = panel.model.index(row, 2)
    panel.table.scrollTo(index)
    QTest.mouseClick(panel.table.viewport(), Qt.MouseButton.LeftButton, pos=panel.table.visualRect(index).center())
    zero = logged(runs["mm"], "run-started")[0]["time"]
    assert player.at == pytest.approx(decided[row]["time"] - zero)
    assert not player.following
    for key, step in ((Qt.Key.Key_Down, 1), (Qt.Key.Key_Down, 2), (Qt.Key.Key_Up, 1), (Qt.Key.Key_Up, 0)):
        QTest.keyClick(panel.table, key)
        player.draw_all()
        assert player.at == pytest.approx(decided[row + step]["time"] - zero), "the keys go there too"
        assert panel.table.currentIndex().row() == row + step
    ranked = panel.candidates.ranked()
    assert sorted(ranked) == sorted((unit, score) for unit, score in decided[row]["candidates"])
    assert panel.candidates.decision.unit == decided[row]["unit"]


def test_every_panel_is_drawn_in_both_themes_and_for_the_back_row(player: Player, runs: dict[str, Path]) -> None:
    from designer.theme.theme import themes

    before = themes().choice
    panels = [shown(kind, player, runs["rr"]) for kind in panel_kinds()]
    pictures = []
    try:
        for theme, scale in (("light", 1.0), ("dark", 1.0), ("dark", PROJECTOR)):
            themes().choose(theme)
            for panel in panels:
                panel.set_scale(scale)
            player.redraw()
            QApplication.processEvents()
            pictures.append([panel.grab().toImage() for panel in panels])
    finally:
        themes().choose(before)
    for light, dark, large in zip(*pictures, strict=True):
        assert light.pixelColor(5, 5).lightness() > 200
        assert dark.pixelColor(5, 5).lightness() < 80
        assert dark != large


def test_a_player_follows_until_somebody_scrubs_and_plays_both_ways(
    player: Player, runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [100.0]
    monkeypatch.setattr("designer.monitor.player.time.monotonic", lambda: clock[0])
    player.open(runs["rr"])
    player.wait_until_loaded()
    assert player.following
    assert player.at == player.end > 2
    player.seek(1.0)
    assert not player.following
    player.set_speed(2.0)
    player.play(1)
    clock[0] += 0.25
    player.tick()
    assert player.at == pytest.approx(1.5)
    player.play(-1)
    clock[0] += 0.5
    player.tick()
    assert player.at == pytest.approx(0.5)
    clock[0] += 5
    player.tick()
    assert (player.at, player.playing) == (0.0, 0)
    player.to_decision(1)
    times = player.recording.decisions["time"] if player.recording else np.empty(0)
    assert player.at == float(times[times > 0][0])
    player.follow()
    assert player.at == player.end


def replayed(window: MainWindow, runs: dict[str, Path], policy: str = "rr") -> CanvasView:
    view = window.files.open(runs[policy].parent / "workflow.butterfly.yaml")
    assert view is not None
    window.runs.replay(str(runs[policy]), view.editor)
    assert window.monitor.player is not None
    window.monitor.player.wait_until_loaded()
    QApplication.processEvents()
    return view


def test_a_streaming_run_is_shown_by_the_staleness_of_its_tables(
    window: MainWindow, runs: dict[str, Path], tmp_path: Path
) -> None:
    started = {**logged(runs["rr"], "run-started")[0], "granularity": "streaming"}
    stale = TableStaleness(time=started["time"], table="view", staleness=5.0, bound=9.0)
    log = tmp_path / "events.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in (started, stale.as_dict())))
    window.monitor.open(str(log))
    assert window.docks["staleness"].isVisible()
    assert window.docks["activity"].isVisible()
    assert not window.docks["memory"].isVisible()


@pytest.mark.parametrize("first", ["a run", "a command"])
def test_run_panels_come_back_to_where_they_were(window: MainWindow, runs: dict[str, Path], first: str) -> None:
    replayed(window, runs)
    side = Qt.DockWidgetArea.RightDockWidgetArea
    window.addDockWidget(side, window.docks["decisions"])
    window.docks["decisions"].show()
    window.docks["memory"].hide()
    window.settings.keep(window)
    again = MainWindow(Settings(window.settings.folder))
    again.resize(1400, 900)
    again.show()
    if first == "a run":
        replayed(again, runs)
        assert again.docks["decisions"].isVisible()
        assert not again.docks["memory"].isVisible()
    else:
        again.run("monitor.memory")
        assert again.docks["memory"].isVisible()
        assert not again.docks["decisions"].isVisible(), "only what was asked for"
    assert again.dockWidgetArea(again.docks["decisions"]) == side
    assert again.dockWidgetArea(again.docks["memory"]) == Qt.DockWidgetArea.BottomDockWidgetArea
    again.close()
    again.deleteLater()


def test_a_run_is_replayed_on_the_canvas_and_in_the_panels(window: MainWindow, runs: dict[str, Path]) -> None:
    view = replayed(window, runs)
    monitor = window.monitor
    assert monitor.player is not None
    assert monitor.overlay is not None
    assert window.docks["memory"].isVisible()
    assert window.docks["activity"].isVisible()
    assert monitor.scrubber is not None
    assert monitor.scrubber.isVisible()
    summary = json.loads((runs["rr"].parent / "summary.json").read_text())
    for node, told in summary["nodes"].items():
        state = monitor.overlay.nodes[node]
        assert (state.rows_in, state.rows_out, state.state) == (told["rows_in"], told["rows_out"], State.FINISHED)
        assert "simulated" in node_texts(state)[0]
    # In the middle the bars of the queues hold what the last snapshot before says.
    snapshots = logged(runs["rr"], "queue-snapshot")
    zero = logged(runs["rr"], "run-started")[0]["time"]
    fullest = max(snapshots, key=lambda one: sum(held[2] for held in one["queues"].values()))
    monitor.player.seek(fullest["time"] - zero + 1e-4)
    assert {queue: bar.queue.packs for queue, bar in monitor.overlay.bars.items() if bar.queue.packs} == {
        queue: held[0] for queue, held in fullest["queues"].items()
    }
    full = max(monitor.overlay.bars.values(), key=lambda bar: bar.queue.fill or 0.0)
    assert (full.queue.fill or 0) > 0.85
    assert full.queue.level == "red"
    assert monitor.overlay.narrow in view.canvas.nodes
    picture = view.grab().toImage()
    monitor.player.seek(0.0)
    QApplication.processEvents()
    assert view.grab().toImage() != picture
    assert all(state.state in (State.WAITING, State.RUNNING) for state in monitor.overlay.nodes.values())


def test_a_failed_node_says_why(window: MainWindow, runs: dict[str, Path], tmp_path: Path) -> None:
    log = tmp_path / "events.jsonl"
    lines = runs["rr"].read_text().splitlines()[:30]
    started = json.loads(lines[0])
    unit = next(iter(started["units"]))
    failed = UnitFailed(time=json.loads(lines[-1])["time"], unit=unit, node=unit, reason="no column `l_qty`")
    log.write_text("\n".join([*lines, json.dumps(failed.as_dict())]) + "\n")
    view = window.files.open(runs["rr"].parent / "workflow.butterfly.yaml")
    assert view is not None
    window.runs.replay(str(log), view.editor)
    assert window.monitor.player is not None
    window.monitor.player.wait_until_loaded()
    assert window.monitor.overlay is not None
    state = window.monitor.overlay.nodes[unit]
    assert (state.state, state.message) == (State.FAILED, "no column `l_qty`")


def test_a_damaged_log_is_replayed_up_to_the_damage_and_said_so(
    window: MainWindow, runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "events.jsonl"
    lines = runs["rr"].read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:50]) + b'{"event": "unit-dec\n' + b"".join(lines[50:]))
    told: list[str] = []
    monkeypatch.setattr(window, "complain", lambda title, text: told.append(text))
    view = window.files.open(runs["rr"].parent / "workflow.butterfly.yaml")
    assert view is not None
    window.runs.replay(str(log), view.editor)
    player = window.monitor.player
    assert player is not None
    player.wait_until_loaded()
    assert told == [f"{log}: line 51 is damaged; the events before it are good"]
    assert player.recording is not None
    assert player.recording.count == 50
    assert player.at == pytest.approx(json.loads(lines[49])["time"] - json.loads(lines[0])["time"])


def test_the_timeline_is_scrubbed_with_the_mouse_and_the_keys(window: MainWindow, runs: dict[str, Path]) -> None:
    replayed(window, runs)
    player, scrubber = window.monitor.player, window.monitor.scrubber
    assert player is not None
    assert scrubber is not None
    strip = scrubber.strip
    QTest.mouseClick(strip, Qt.MouseButton.LeftButton, pos=QPoint(strip.width() // 2, 20))
    assert player.at == pytest.approx(player.end / 2, rel=0.02)
    QTest.keyClick(strip, Qt.Key.Key_Home)
    assert player.at == 0
    QTest.keyClick(strip, Qt.Key.Key_Space)
    assert player.playing == 1
    scrubber.live.click()
    assert player.following


def test_a_panel_pops_out_and_fills_the_screen(window: MainWindow, runs: dict[str, Path]) -> None:
    replayed(window, runs)
    window.monitor.pop_out("memory", full_screen=True)
    dock = window.docks["memory"]
    assert dock.isFloating()
    assert dock.isFullScreen()
    window.monitor.pop_out("memory", full_screen=True)
    assert not dock.isFloating()
    overlay, scrubber = window.monitor.overlay, window.monitor.scrubber
    assert overlay is not None
    assert scrubber is not None
    desk = overlay.least, scrubber.clock.font().pixelSize()
    window.run("monitor.project")
    assert window.monitor.panels["memory"].scale == PROJECTOR
    assert overlay.least == desk[0] * PROJECTOR
    assert scrubber.clock.font().pixelSize() == round(desk[1] * PROJECTOR)
    window.run("monitor.project")
    window.run("monitor.room")
    assert not window.docks["palette"].isVisible()
    window.run("monitor.room")
    assert window.docks["palette"].isVisible()


@pytest.mark.parametrize("size", [(1280, 800), (1920, 1080)])
def test_a_run_fits_into_the_window_that_shows_it(
    window: MainWindow, runs: dict[str, Path], size: tuple[int, int]
) -> None:
    window.resize(*size)
    QApplication.processEvents()
    replayed(window, runs)
    for _ in range(3):
        QApplication.processEvents()
    assert (window.width(), window.height()) == size
    widths = [window.docks[name].width() for name in ("memory", "activity")]
    assert min(widths) > 0.8 * max(widths), "side by side, with the same room"
    for name in ("memory", "activity"):
        panel = window.monitor.panels[name]
        assert panel.headline.text()
        assert all(axis.label.sceneBoundingRect().left() >= 0 for axis in [panel.item.getAxis("left")])  # type: ignore[attr-defined]
    lanes = window.monitor.panels["activity"].item.getAxis("left")._tickLevels[0]  # type: ignore[attr-defined]
    assert len(lanes) == len(window.monitor.panels["activity"].labels)  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", [ActivityPanel, OperatorsPanel])
@pytest.mark.parametrize("scale", [1.0, PROJECTOR])
@pytest.mark.parametrize("size", [(470, 290), (950, 290), (950, 600)])
def test_the_names_of_lanes_never_overlap(
    player: Player, runs: dict[str, Path], kind: type[Panel], scale: float, size: tuple[int, int]
) -> None:
    panel = shown(kind, player, runs["rr"])
    panel.resize(*size)
    panel.set_scale(scale)
    for _ in range(3):
        QApplication.processEvents()
    player.redraw()
    if kind is OperatorsPanel:
        letters, every = panel.chart.lettering()
        assert len(panel.chart.found) // every > 3
        assert panel.chart.lane_height * every >= letters.pixelSize() * 0.9
        return
    plot = panel.item
    axis, (low, high) = plot.getAxis("left"), plot.getViewBox().viewRange()[1]
    places = [place for place, _ in axis._tickLevels[0]]
    assert len(places) > 3
    apart = (places[1] - places[0]) * plot.getViewBox().height() / (high - low)
    assert apart >= axis.style["tickFont"].pixelSize() * 0.9


def test_how_rows_were_counted_is_explained_on_the_canvas(window: MainWindow, runs: dict[str, Path]) -> None:
    view = replayed(window, runs)
    assert [text for text, _ in view.legend.rows] == ["simulated: reckoned, no row was read or written"]
    assert view.legend.isVisible()
    nodes = view.canvas.content()
    assert view.mapFromScene(nodes.bottomLeft()).y() <= view.legend.y(), "nothing lies behind the legend"
    overlay = window.monitor.overlay
    assert overlay is not None
    item = next(iter(view.canvas.nodes.values()))
    assert "simulated: reckoned" in overlay.tell(Hit("node", item))


def test_letters_on_the_canvas_stay_legible_and_say_less_where_there_is_less_room(qapp: QApplication) -> None:
    state = NodeState(State.RUNNING, 12_345, 4050, "exact", 1500.0)
    texts = node_texts(state)
    font = QFont(qapp.font())
    font.setPixelSize(11)
    told = []
    for zoom in (1.0, 0.6, 0.31):
        letters = legible(font, zoom, 10.5)
        assert letters.pixelSize() * zoom >= 9
        told.append(fitting(texts, letters, 216))
    assert told[0] == "12.3 k → 4,050  exact · 1,500/s"
    assert [len(text) for text in told] == sorted((len(text) for text in told), reverse=True)
    assert "4.05 k" in told[-1]


def test_runs_are_compared_on_the_same_axes_and_exported(
    qapp: QApplication, runs: dict[str, Path], tmp_path: Path
) -> None:
    shown = CompareWindow([runs["rr"], runs["mc"], runs["mm"]])
    try:
        shown.show()
        for player in shown.players:
            player.wait_until_loaded()
        shown.conductor.redraw()
        QApplication.processEvents()
        shown.conductor.redraw()
        ranges = {(tuple(panel.view.viewRange()[0]), tuple(panel.view.viewRange()[1])) for panel in shown.memory}
        assert len(ranges) == 1
        assert len({tuple(panel.view.viewRange()[0]) for panel in (*shown.memory, *shown.activity)}) == 1
        shown.players[0].seek(1.0)
        assert [player.at for player in shown.players] == [1.0, 1.0, 1.0]
        for name, write in (
            ("png", shown.save_png),
            ("svg", shown.save_svg),
            ("csv", shown.save_csv),
            ("html", shown.save_html),
        ):
            write(tmp_path / f"report.{name}")
    finally:
        shown.close()
    assert (tmp_path / "report.png").read_bytes().startswith(b"\x89PNG")
    drawing = (tmp_path / "report.svg").read_text()
    assert "<svg" in drawing
    turns = sum(len(logged(log, "unit-activated")) for log in runs.values())
    assert drawing.count("<rect") > turns, "every bar is a shape of its own, none is in a picture"
    rows = list(csv.DictReader((tmp_path / "report.csv").read_text().splitlines()))
    page = (tmp_path / "report.html").read_text()
    found = re.search(r'<script type="application/json" id="numbers">(.*?)</script>', page, re.S)
    assert found is not None
    numbers = json.loads(found[1])["runs"]
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")  # it needs nothing from anywhere
    for policy, row, told in zip(("rr", "mc", "mm"), rows, numbers, strict=True):
        expected = measured(runs[policy])
        assert row["policy"] == told["policy"] == policy
        for name, value in expected.items():
            assert float(row[name]) == told[name] == pytest.approx(value), name
        assert row["queues_from"] == told["queues_from"] == "exact"
        assert told["max_bytes"] >= peak_in_snapshots(runs[policy])


def measured(log: Path) -> dict[str, float]:
    """Time, memory and turns of a run as its log and its own summary have them."""
    summary = json.loads((log.parent / "summary.json").read_text())
    return {
        "seconds": logged(log, "run-finished")[0]["seconds"],
        "activations": len(logged(log, "unit-activated")),
        **summary["queue"],
    }


def peak_in_snapshots(log: Path) -> int:
    return max(one["held"][2] for one in logged(log, "queue-snapshot"))


def test_numbers_are_written_with_their_units() -> None:
    assert [bytes_text(value) for value in (0, 999, 1000, 1_360_000, 12e6, 512e6)] == [
        "0 B",
        "999 B",
        "1 kB",
        "1.4 MB",
        "12 MB",
        "512 MB",
    ]
    assert [count_text(value) for value in (0, 9999, 12_345, 1_234_567)] == ["0", "9,999", "12.3 k", "1.23 M"]
    assert [seconds_text(value) for value in (0.5, 12.34, 65, 3723)] == ["0.50 s", "12.3 s", "1:05.0", "1:02:03"]


def complaints(window: MainWindow, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    told: list[tuple[str, str]] = []
    monkeypatch.setattr(window, "complain", lambda title, text: told.append((title, text)))
    return told


def test_a_log_that_breaks_off_is_replayed_and_said_so_unless_its_run_goes_on(
    window: MainWindow, runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = complaints(window, monkeypatch)
    log = tmp_path / "run" / "events.jsonl"
    log.parent.mkdir()

    def replay(text: bytes) -> list[tuple[str, str]]:
        told.clear()
        log.write_bytes(text)
        window.runs.replay(str(log))
        assert window.monitor.player is not None
        window.monitor.player.wait_until_loaded()
        return list(told)

    text = runs["rr"].read_bytes()
    endless = b"".join(text.splitlines(keepends=True)[:-1])
    assert replay(text) == []
    assert replay(text[:-20]) == [
        ("The log breaks off", f"{log}: the last line is cut off; the events before it are good")
    ]
    assert replay(text[:-20]) != [], "it is told each time it is opened"
    (title, reason), *more = replay(endless)
    assert (title, more) == ("The log breaks off", [])
    assert "the log has no end" in reason
    with driven(log.parent, RunControl()):  # as a run holds its folder
        assert replay(text[:-20]) == []
        assert replay(endless) == []
        assert window.monitor.player is not None
        assert window.monitor.player.live


def test_a_comparison_tells_of_logs_that_break_off_and_has_the_figures_of_the_others(
    qapp: QApplication, runs: dict[str, Path], tmp_path: Path
) -> None:
    log = tmp_path / "events.jsonl"
    log.write_bytes(runs["mc"].read_bytes()[:-20])
    window = CompareWindow([runs["rr"], log], remark="All alike.")
    try:
        window.show()
        for player in window.players:
            player.wait_until_loaded()
        window.conductor.redraw()
        flaw = f"{log}: the last line is cut off; the events before it are good"
        assert window.remarks.text() == f"All alike.\n{flaw}"
        assert window.remarks.isVisible()
        cells = [[window.table.item(row, column).text() for column in range(11)] for row in range(2)]  # type: ignore[union-attr]
        header = window.table.horizontalHeader()
        for width in (700, 1000, 1900):
            window.resize(width, 800)
            QApplication.processEvents()
            seen = [column for column in range(11) if not header.isSectionHidden(column)]
            assert {0, 1, 3, 4, 5, 8} <= set(seen), "time, average and peak memory and turns are always told"
            assert all(header.sectionSize(column) >= header.sectionSizeHint(column) for column in seen)
        assert len(seen) == 11
        window.save_html(tmp_path / "report.html")
    finally:
        window.close()
    whole = measured(runs["rr"])
    assert cells[0] == [
        logged(runs["rr"], "run-started")[0]["run"], "RR", "done", f"{whole['seconds']:,.2f}",
        bytes_text(whole["avg_bytes"]), bytes_text(whole["max_bytes"]), f"{whole['avg_packs']:,.1f}",
        f"{whole['max_packs']:,}", f"{whole['activations']:,}", "0", "exact",
    ]  # fmt: skip
    assert [cells[1][column] for column in (1, 2, 10)] == ["MC", "interrupted", "from snapshots"]
    assert cells[1][8] == f"{len(logged(runs['mc'], 'unit-activated')):,}"
    page = (tmp_path / "report.html").read_text()
    assert flaw in page
    assert "All alike." in page


def test_a_table_has_the_colour_of_its_node_in_every_panel(
    player: Player, runs: dict[str, Path], tmp_path: Path
) -> None:
    log = tmp_path / "events.jsonl"
    lines = [json.loads(line) for line in runs["rr"].read_text().splitlines()[:40]]
    tables = [node for node, facts in lines[0]["nodes"].items() if facts["role"] == "target"][::-1]
    for table in tables:
        lines.append(TableStaleness(time=lines[-1]["time"], table=table, staleness=1.0).as_dict())
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    stale, active = shown(StalenessPanel, player, log), shown(ActivityPanel, player, log)
    player.redraw()
    pens = {table: QColor(stale.curves[table].opts["pen"].color()).name() for table in tables}
    assert pens == {table: active.colours.unit(table).name() for table in tables}
    assert len(set(pens.values())) == len(tables)


def colours_at(panel: Any, time: float, lane: float) -> list[QColor]:
    """What is painted at a moment of a lane, within two pixels up and down."""
    point = panel.plot.mapFromScene(panel.view.mapViewToScene(QPointF(time, lane)))
    picture = panel.plot.grab().toImage()
    return [picture.pixelColor(point.x(), point.y() + aside) for aside in range(-2, 3)]


def test_a_long_bar_has_an_arrow_and_a_short_one_has_none(
    player: Player, runs: dict[str, Path], tmp_path: Path
) -> None:
    log = tmp_path / "events.jsonl"
    started = logged(runs["rr"], "run-started")[0]
    (first, *_), zero = started["units"], started["time"]
    started["units"] = {first: started["units"][first]}
    turn = logged(runs["rr"], "unit-activated")[0]
    turns = [
        {**turn, "unit": first, "time": zero + end, "seconds": seconds} for end, seconds in ((8.0, 8.0), (9.2, 0.2))
    ]
    rest = {"event": "run-finished", "time": zero + 10.0, "status": "done", "seconds": 10.0}
    log.write_text("".join(json.dumps(line) + "\n" for line in (started, *turns, rest)))
    panel = shown(ActivityPanel, player, log)
    bar = panel.colours.unit(first)
    assert set(map(QColor.name, colours_at(panel, 4.0, 0.2))) == {bar.name()}
    lightest = max(color.lightness() for color in colours_at(panel, 4.0, 0.0))
    assert lightest > bar.lightness() + 60, "the shaft of the arrow"
    assert set(map(QColor.name, colours_at(panel, 9.1, 0.0))) == {bar.name()}, "too short for one"


def test_who_zooms_into_one_panel_zooms_into_all(player: Player, runs: dict[str, Path]) -> None:
    memory, active = shown(MemoryPanel, player, runs["rr"]), shown(ActivityPanel, player, runs["rr"])
    player.redraw()
    before = memory.view.viewRange()[0]
    middle = QPointF(memory.plot.rect().center())
    wheel = QWheelEvent(
        middle, memory.plot.mapToGlobal(middle), QPoint(), QPoint(0, 240), Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(memory.plot.viewport(), wheel)
    player.redraw()
    zoomed = memory.view.viewRange()[0]
    assert zoomed[1] - zoomed[0] < before[1] - before[0]
    assert active.view.viewRange()[0] == pytest.approx(zoomed)
    assert (active.bars.start, active.bars.stop) == pytest.approx(tuple(zoomed)), "its bars are those of that span"
    player.span.reset()
    player.redraw()
    assert active.view.viewRange()[0] == pytest.approx(before)


def test_scrubbing_moves_the_line_and_the_veil_and_draws_no_plot_anew(
    player: Player, runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Still] = []
    render = Still.render
    monkeypatch.setattr(Still, "render", lambda self, *words: (drawn.append(self), render(self, *words)))
    panel = shown(ActivityPanel, player, runs["rr"])
    plot, end = panel.plot, player.end
    player.seek(end * 0.25)
    player.draw_all()
    for _ in range(3):
        QApplication.processEvents()
    before = plot.grab().toImage()
    drawn.clear()
    for part in (0.3, 0.8, 0.5):
        player.seek(end * part)
        player.draw_all()
        QApplication.processEvents()
    now = plot.grab().toImage()
    assert drawn == []
    assert plot.grip.geometry().center().x() == pytest.approx(plot.place_of(end * 0.5), abs=1.0)
    rows = range(plot.grip.y(), plot.grip.geometry().bottom(), 5)
    changed = [x for x in range(now.width()) if any(before.pixelColor(x, y) != now.pixelColor(x, y) for y in rows)]
    inside = [x for x in changed if plot.place_of(end * 0.25) - 2 <= x <= plot.place_of(end * 0.5) + 2]
    assert changed == inside, "only what lies between the two moments looks different"
    assert len(inside) > 10
    plot.forget()
    assert plot.grab().toImage() == now, "as if it had been drawn anew"
    panel.resize(700, 300)
    QApplication.processEvents()
    assert drawn


def test_the_line_at_the_moment_is_dragged_to_another(player: Player, runs: dict[str, Path]) -> None:
    panel = shown(MemoryPanel, player, runs["rr"])
    player.seek(player.end * 0.5)
    player.draw_all()
    grip, middle = panel.plot.grip, panel.plot.grip.rect().center()
    QTest.mousePress(grip, Qt.MouseButton.LeftButton, pos=middle)
    far = middle + QPoint(60, 0)
    goal = panel.plot.time_at(grip.mapToParent(far).x())
    move = QMouseEvent(
        QMouseEvent.Type.MouseMove, QPointF(far), grip.mapToGlobal(QPointF(far)), Qt.MouseButton.NoButton,
        Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier,
    )  # fmt: skip
    QApplication.sendEvent(grip, move)
    assert player.at == pytest.approx(goal)
    assert goal > player.end * 0.5
    player.draw_all()
    assert grip.geometry().center().x() == pytest.approx(panel.plot.place_of(goal), abs=1.0)
    player.follow()
    player.draw_all()
    assert panel.plot.veil().isEmpty(), "nothing comes after the end"


def test_any_speed_can_be_typed_and_nonsense_changes_nothing(window: MainWindow, runs: dict[str, Path]) -> None:
    replayed(window, runs)
    player, scrubber = window.monitor.player, window.monitor.scrubber
    assert player is not None
    assert scrubber is not None
    field = scrubber.speed.lineEdit()
    assert field is not None
    for typed, speed, told in (("3.7", 3.7, "3.7 ×"), ("250 x", 250.0, "250 ×"), ("fast", 250.0, "250 ×")):
        field.selectAll()
        QTest.keyClicks(field, typed)
        QTest.keyClick(field, Qt.Key.Key_Return)
        assert (player.speed, scrubber.speed.currentText()) == (speed, told)
    scrubber.speed.setCurrentIndex(scrubber.speed.findText("5 ×"))
    scrubber.speed.activated.emit(scrubber.speed.currentIndex())
    assert player.speed == 5.0
    assert [speed_of(text) for text in ("0,5 ×", "0", "-1", "inf", "nan", "")] == [0.5, None, None, None, None, None]
    player.set_speed(42.0)
    field.clearFocus()
    assert scrubber.speed.currentText() == "42 ×", "whoever sets it"


def test_the_designer_opens_a_log_with_room_for_its_panels_and_plays_it(
    qapp: QApplication, runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from designer import app

    seen: list[tuple[float, float, int]] = []

    class Application:
        def exec(self) -> int:
            window = next(one for one in QApplication.topLevelWidgets() if isinstance(one, MainWindow))
            player = window.monitor.player
            assert player is not None
            for _ in range(5):
                QApplication.processEvents()
            player.wait_until_loaded()
            for _ in range(5):
                QApplication.processEvents()
            height = min(window.docks[name].height() for name in ("memory", "activity"))
            seen.append((height / window.height(), player.speed, player.playing))
            window.close()
            window.deleteLater()
            return 0

    monkeypatch.setattr(app, "make_application", lambda arguments: Application())
    monkeypatch.setattr(app, "ENGINE_AFTER_MS", 10**8)
    assert app.main(["--replay", str(runs["rr"]), "--speed", "0.01"]) == 0
    (share, speed, playing) = seen[0]
    assert share >= 1 / 3
    assert (speed, playing) == (0.01, 1)


def test_an_edge_tells_what_its_queue_holds(window: MainWindow, runs: dict[str, Path]) -> None:
    view = replayed(window, runs)
    overlay, player = window.monitor.overlay, window.monitor.player
    assert overlay is not None
    assert player is not None
    fullest = max(logged(runs["rr"], "queue-snapshot"), key=lambda one: sum(held[2] for held in one["queues"].values()))
    player.seek(fullest["time"] - logged(runs["rr"], "run-started")[0]["time"] + 1e-4)
    queue, (packs, rows, size) = max(fullest["queues"].items(), key=lambda entry: entry[1][0])
    bar = overlay.bars[queue]
    told = overlay.tell(Hit("edge", bar.edge))
    assert f"{packs:,} of {bar.queue.capacity:,} packs: {packs / (bar.queue.capacity or 1) * 100:.0f} % full" in told
    assert f"{rows:,} rows" in told
    assert bytes_text(size) in told
    whole = sum(held[2] for held in fullest["queues"].values())
    assert f"{size / whole * 100:.0f} % of what all queues hold" in told
    bar.show_queue(QueueState(3, 5, 7, None))
    assert "3 packs, staged on disk" in overlay.tell(Hit("edge", bar.edge))
    del overlay.bars[queue]
    assert "no queue: both ends are in the same unit" in overlay.tell(Hit("edge", bar.edge))
    view.canvas.removeItem(bar)


@pytest.mark.parametrize("state", State)
def test_a_node_is_painted_in_the_colour_of_its_state(window: MainWindow, runs: dict[str, Path], state: State) -> None:
    view = replayed(window, runs)
    overlay = window.monitor.overlay
    assert overlay is not None
    item = next(iter(view.canvas.nodes.values()))
    overlay.nodes[item.id] = NodeState(state, 1, 1, "exact", None)
    overlay.narrow = None
    view.zoom_to(1.0)
    view.centerOn(item.frame().center())
    view.canvas.update()
    QApplication.processEvents()
    picture = view.viewport().grab().toImage()
    badge = view.mapFromScene(item.mapToScene(QPointF(NODE_WIDTH - 34 - 5, 1)))
    assert picture.pixelColor(badge).name() == state_colour(state).name()
    assert len({state_colour(one).name() for one in State}) == len(State)


def test_a_step_of_the_run_paints_the_marks_that_change_and_no_node(
    window: MainWindow, runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    view = replayed(window, runs)
    overlay, player = window.monitor.overlay, window.monitor.player
    assert overlay is not None
    assert player is not None
    view.zoom_to(0.8)
    player.seek(player.end * 0.2)
    QApplication.processEvents()
    faces: list[str] = []
    marks: set[str] = set()
    monkeypatch.setattr(NodeItem, "_paint_face", lambda item, *_: faces.append(item.id))
    monkeypatch.setattr(overlay, "paint_node", lambda _, item: marks.add(item.id))
    before = overlay.nodes
    player.seek(player.end * 0.6)
    QApplication.processEvents()
    seen = {id_ for id_, item in view.canvas.nodes.items() if view.visible_frame().contains(item.frame())}
    changed = {id_ for id_, state in overlay.nodes.items() if state != before[id_]}
    assert changed & seen
    assert changed & seen <= marks
    assert faces == []
    node = min(seen)
    view.canvas.select([node])
    window.run("edit.delete")
    view.editor.stack.undo()
    QApplication.processEvents()
    assert overlay.marks[node].item is view.canvas.nodes[node], "a node that comes back has its mark again"
    assert overlay.marks.keys() == view.canvas.nodes.keys()
    window.monitor._leave_canvas()
    assert [item for item in view.canvas.items() if isinstance(item, NodeMark)] == []


@pytest.mark.parametrize(("packs", "level"), [(60, "green"), (61, "yellow"), (85, "yellow"), (86, "red"), (140, "red")])
def test_a_queue_is_painted_in_the_colour_of_its_filling(
    window: MainWindow, runs: dict[str, Path], packs: int, level: str
) -> None:
    view = replayed(window, runs)
    overlay = window.monitor.overlay
    assert overlay is not None
    bar = max(overlay.bars.values(), key=lambda one: one.width)
    view.zoom_to(1.0)
    view.centerOn(bar.pos())
    bar.show_queue(QueueState(packs, 10, 10, 100))
    QApplication.processEvents()
    picture = view.viewport().grab().toImage()
    colors = []
    for part in (0.2, 0.5, 0.75):
        at = view.mapFromScene(bar.pos() + QPointF((part - 0.5) * bar.width, 0))
        colors.append(picture.pixelColor(at).name())
    expected = level_colour(level).name()
    assert colors[:2] == [expected, expected]
    assert (colors[2] == expected) == (packs > 75), "it is as long as the queue is full"


def test_a_fused_node_says_how_many_of_its_tasks_are_done(qapp: QApplication) -> None:
    running = NodeState(State.RUNNING, None, None, "fused", None, progress=0.4)
    assert node_texts(running) == ["fused · 40 % of its tasks", "fused · 40 %", "40 %"]
    assert node_texts(NodeState(State.FINISHED, None, None, "fused", None)) == ["fused"]
    assert node_texts(NodeState(State.RUNNING, None, None, None, None, progress=0.4)) == []

"""Panels show what the log says, at the moment that the player is at."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, QRect, Qt
from PySide6.QtGui import QColor, QImage, QMouseEvent, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from designer.monitor.panel import PROJECTOR, Panel, panel_kinds
from designer.monitor.panels.activity import ActivityPanel
from designer.monitor.panels.decisions import DecisionsPanel
from designer.monitor.panels.jobs import JobsPanel
from designer.monitor.panels.memory import OTHERS, MemoryPanel
from designer.monitor.panels.operators import OperatorsPanel
from designer.monitor.panels.parallelism import ParallelismPanel
from designer.monitor.panels.staleness import StalenessPanel
from designer.monitor.player import Player
from designer.monitor.scrubber import Scrubber
from designer.monitor.still import Still
from designer.monitor.units import bytes_text, count_text, seconds_text
from engine.events import EventLog, QueueSpilled, SparkJob, SparkReady, TableStaleness
from engine.recording.series import Memory
from tests.designer.conftest import logged


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


def test_of_queues_that_were_as_full_those_that_were_so_for_longest_have_a_colour(player: Player) -> None:
    panel = MemoryPanel(player)
    times = np.arange(40.0)
    queues = {f"q{number}": np.where(times < 2 + number, 4e6, 0.0) for number in range(20)}
    queues["lower"] = np.full(40, 3e6)
    found = Memory(times, np.sum(list(queues.values()), axis=0), queues)
    shown_ = panel._chosen(found, without={"q19"})
    assert set(shown_) == {OTHERS, *(f"q{number}" for number in range(12, 19))}
    assert (np.sum(list(shown_.values()), axis=0) == found.total - queues["q19"]).all()


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


def test_lanes_of_a_narrow_panel_have_names_of_their_own(player: Player, runs: dict[str, Path]) -> None:
    panel = shown(ActivityPanel, player, runs["rr"])
    panel.resize(380, 420)
    player.redraw()
    names = [text for _, text in panel.item.getAxis("left")._tickLevels[0]]
    assert any("…" in name for name in names)
    assert len(set(names)) == len(names)


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
    for height in (420, 210):
        panel.resize(900, height)
        QApplication.processEvents()
        player.redraw()
        peak = panel.view.mapViewToScene(QPointF(0, panel.total.getData()[1].max())).y()
        assert peak >= panel.above.mapRectToScene(panel.above.boundingRect()).bottom() - 1, "it lies over no curve"
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
    assert ", 1 of " in panel.headline.text()  # beyond its bound at that moment
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
    assert "1.1 of 3 cores busy" in panel.headline.text(), "three quarters of the last second at one and a half"
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


def letters_height(image: QImage) -> int:
    """From the highest to the lowest pixel of the letters in a picture of one line, without the line below it."""
    ground = image.pixelColor(1, 1)
    rows = [
        y
        for y in range(image.height() - 2)
        if any(image.pixelColor(x, y) != ground for x in range(2, image.width() - 2))
    ]
    return rows[-1] - rows[0] + 1


@pytest.mark.parametrize("kind", [DecisionsPanel, JobsPanel])
def test_the_heads_of_a_table_can_be_read_from_the_back_row(
    player: Player, runs: dict[str, Path], kind: type[Panel]
) -> None:
    from designer.theme.theme import themes

    before = themes().choice
    panel = shown(kind, player, runs["mm"])
    header = panel.table.horizontalHeader() if kind is DecisionsPanel else panel.list.header()
    try:
        themes().choose("dark")  # its style sheet is what paints them
        tall = []
        for scale in (1.0, PROJECTOR):
            panel.set_scale(scale)
            QApplication.processEvents()
            tall.append(letters_height(header.grab(QRect(0, 0, header.sectionSize(0), header.height())).toImage()))
    finally:
        themes().choose(before)
    assert tall[1] >= 1.4 * tall[0]


def test_the_clock_of_the_timeline_stays_large_when_the_theme_changes(player: Player) -> None:
    from designer.theme.theme import themes

    before = themes().choice
    scrubber = Scrubber(player)
    scrubber.show()
    try:
        scrubber.set_scale(PROJECTOR)
        large = scrubber.clock.fontMetrics().height()
        themes().choose("dark" if before == "light" else "light")
        QApplication.processEvents()
        assert scrubber.clock.fontMetrics().height() == large
    finally:
        themes().choose(before)
        scrubber.close()


def test_the_queues_without_a_colour_of_their_own_look_like_no_other(player: Player, runs: dict[str, Path]) -> None:
    from designer.theme.theme import themes

    before = themes().choice
    panel = shown(MemoryPanel, player, runs["mm"])
    try:
        for theme in ("light", "dark"):
            themes().choose(theme)
            others = panel.queue_colour(OTHERS)
            for queue in panel.recording.queues.names:
                own = panel.queue_colour(queue)
                apart = np.abs(np.subtract(own.getRgb(), others.getRgb())).max()
                assert apart >= 30, (theme, panel.queue_text(queue))
    finally:
        themes().choose(before)


def test_what_a_panel_says_for_want_of_jobs_stands_in_the_middle(player: Player, runs: dict[str, Path]) -> None:
    panel = JobsPanel(player)
    panel.resize(900, 420)
    panel.show()
    player.open(runs["mm"])
    player.wait_until_loaded()
    assert panel.empty.pos().y() == panel.view.viewRect().center().y()
    assert "No jobs of Spark" in panel.empty.toPlainText()


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

"""A run is replayed in the window: the timeline moves through its log, panels and canvas follow."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QFont
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from designer.canvas.scene import Hit
from designer.canvas.view import CanvasView
from designer.document.layout import NODE_WIDTH
from designer.monitor.colours import level_colour
from designer.monitor.compare import CompareWindow
from designer.monitor.overlay import NodeMark, fitting, legible, node_texts, state_colour
from designer.monitor.panel import PROJECTOR
from designer.monitor.panels.memory import OTHERS
from designer.monitor.scrubber import speed_of
from designer.monitor.units import bytes_text
from designer.session.settings import Settings
from designer.theme.theme import theme, themes
from designer.window.window import MainWindow
from engine.control import RunControl, driven
from engine.events import TableStaleness, UnitFailed
from engine.recording import NodeState, QueueState, State
from engine.recording.bottleneck import bottleneck
from tests.designer.conftest import logged


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


@pytest.mark.parametrize("name", ["decisions", "jobs"])
def test_a_table_keeps_its_size_for_the_back_row_in_a_window_of_its_own(
    window: MainWindow, runs: dict[str, Path], name: str
) -> None:
    replayed(window, runs)
    window.run("monitor.project")
    panel = window.monitor.panels[name]
    table = panel.table if name == "decisions" else panel.list
    large = table.font().pixelSize()
    assert large == round(13 * PROJECTOR)
    window.monitor.pop_out(name)
    QTest.qWait(50)
    assert table.font().pixelSize() == large


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


def complaints(window: MainWindow, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    told: list[tuple[str, str]] = []
    monkeypatch.setattr(window, "complain", lambda title, text: told.append((title, text)))
    return told


def test_a_comparison_takes_another_theme_and_is_large_for_the_back_row(
    qapp: QApplication, runs: dict[str, Path]
) -> None:
    before = themes().choice
    shown = CompareWindow([runs["rr"], runs["mm"]], PROJECTOR)
    try:
        shown.show()
        for player in shown.players:
            player.wait_until_loaded()
        for name in ("dark", "light"):
            themes().choose(name)
            shown.conductor.redraw()
            QApplication.processEvents()
            key = shown.key.text()
            assert f"color:{theme().text.name()}" in key
            assert f"color:{shown.memory[0].queue_colour(OTHERS).name()}" in key
            assert shown.scrubber.clock.font().pixelSize() == round(13 * PROJECTOR)
            assert shown.table.font().pixelSize() == round(14 * PROJECTOR)
    finally:
        themes().choose(before)
        shown.close()


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


def test_the_bottleneck_is_outlined_and_said_to_be_one(window: MainWindow, runs: dict[str, Path]) -> None:
    view = replayed(window, runs)
    overlay, player = window.monitor.overlay, window.monitor.player
    assert overlay is not None
    assert player is not None
    player.seek(player.end * 0.4)
    player.draw_all()
    recording = player.recording
    assert recording is not None
    assert recording.started is not None
    unit = bottleneck(recording, recording.state(player.at))
    assert unit is not None
    assert overlay.narrow == recording.started.units[unit]["nodes"][-1]
    item = view.canvas.nodes[overlay.narrow]
    view.zoom_to(1.0)
    view.centerOn(item.frame().center())

    def far_from_its_colour() -> list[int]:
        """How far each point of the node's lower edge is from the colour of a bottleneck."""
        view.canvas.update()
        QApplication.processEvents()
        picture, wanted = view.viewport().grab().toImage(), theme().body.getRgb()
        edge = [view.mapFromScene(item.mapToScene(QPointF(x, item.height))) for x in range(40, int(NODE_WIDTH) - 40)]
        found = [picture.pixelColor(point).getRgb() for point in edge]
        return [max(abs(one - other) for one, other in zip(color, wanted, strict=True)) for color in found]

    outlined = far_from_its_colour()
    assert "the bottleneck" in overlay.tell(Hit("node", item))
    overlay.narrow = None
    plain = far_from_its_colour()
    assert "the bottleneck" not in overlay.tell(Hit("node", item))
    assert sum(after < before - 40 for before, after in zip(plain, outlined, strict=True)) > len(plain) / 2


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
    monkeypatch.setattr("designer.canvas.node.draw_node", lambda _, item, *__, **___: faces.append(item.id))
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

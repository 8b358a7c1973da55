"""What a person does on the canvas, by real mouse and key events. Each is one undo step."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, Qt
from PySide6.QtGui import (
    QGuiApplication,
    QImage,
    QPainter,
    QPaintEvent,
    QRegion,
    QWheelEvent,
)
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QGraphicsItem,
    QLineEdit,
    QPlainTextEdit,
    QStyleOptionGraphicsItem,
    QWidget,
)

from designer.canvas import tips
from designer.canvas.guides import Guides
from designer.canvas.minimap import LATER_MS
from designer.canvas.node import NodeItem
from designer.canvas.sheet import traced
from designer.document import arranging, changes
from designer.document.layout import NODE_WIDTH, groups, notes, positions
from designer.drawing.node import PORT, form_of, outline
from designer.session.settings import Settings
from designer.theme.theme import theme
from designer.window.window import MainWindow
from engine.experiments.bench_large_file import large_workflow
from engine.model.file import save
from engine.model.operator import Carries, Category, Role
from engine.operators import catalogue
from tests.designer.conftest import edges, opened, state, steps, undo_gives_back
from tests.designer.examples import empty, fig1, small

CTRL = Qt.KeyboardModifier.ControlModifier
ALT = Qt.KeyboardModifier.AltModifier
SHIFT = Qt.KeyboardModifier.ShiftModifier


# ---------------------------------------------------------------- moving


def test_dragging_a_node_moves_it_in_one_step_and_its_edges_follow(window: MainWindow) -> None:
    hand = opened(window, small())
    before = state(hand)
    x, y = hand.middle("some")
    hand.drag((x, y), (x + 40, y + 150))
    assert positions(hand.view.editor.document.workflow)["some"] == (260.0, 150.0)
    item = next(item for item in hand.view.canvas.edges.values() if item.edge.target == "some")
    assert item.path().pointAtPercent(0).toTuple() == hand.port("rows", True, "out")
    assert item.sceneBoundingRect().bottom() > 150
    assert steps(hand) == 1
    undo_gives_back(hand, before)


def test_escape_takes_a_drag_back(window: MainWindow) -> None:
    hand = opened(window, small())
    x, y = hand.middle("some")
    hand.press(x, y)
    hand.move(x + 100, y + 100)
    assert hand.view.canvas.nodes["some"].pos().toTuple() != (220.0, 0.0)
    hand.key(Qt.Key.Key_Escape)
    hand.release(x + 100, y + 100)
    assert hand.view.canvas.nodes["some"].pos().toTuple() == (220.0, 0.0)
    assert steps(hand) == 0


def test_a_dragged_node_snaps_to_the_line_of_another_and_a_guide_shows_it() -> None:
    guides = Guides([(0, 0, 100, 50)])
    snapped = guides.snap((303, 4, 403, 54), reach=6)
    assert (snapped.dx, snapped.dy) == (-3, -4)  # the grid across, the other's top down
    assert [line[1] for line in snapped.lines] == [0]


def test_guides_are_seen_while_a_node_is_dragged_and_only_then(window: MainWindow) -> None:
    hand = opened(window, small())
    x, y = hand.middle("some")
    hand.press(x, y)
    hand.move(x + 3, y + 120)
    hand.move(x + 3, y + 4)  # nearly in line with the others
    assert [line[1] == line[3] for line in hand.view._lines if line[1] == line[3]] == [True]
    assert hand.view.canvas.nodes["some"].pos().y() == 0
    level = hand.at(0, next(line[1] for line in hand.view._lines if line[1] == line[3])).y()

    def drawn() -> bool:
        """Whether the guide's colour is seen between two nodes, however faint."""
        seen = hand.view.grab().toImage()
        spots = [seen.pixelColor(at, level) for at in range(hand.at(396, 0).x() + 2, hand.at(440, 0).x() - 2)]
        return any(spot.red() - spot.green() > 30 for spot in spots)

    assert theme().guide.red() - theme().guide.green() > 100
    assert drawn()
    hand.release(x + 3, y + 4)
    assert hand.view._lines == ()
    assert not drawn()


@pytest.mark.parametrize(
    ("side", "axis", "line"),
    [("left", 0, 0), ("center", 0, 300), ("right", 0, 600), ("top", 1, -50), ("middle", 1, 25), ("bottom", 1, 100)],
)
def test_aligned_nodes_stand_on_one_line(window: MainWindow, side: str, axis: int, line: float) -> None:
    hand = opened(window, small())
    document = hand.view.editor.document
    places = {"rows": (0.0, 0.0), "some": (200.0, 100.0), "more": (600.0, -50.0)}
    hand.view.editor.push(arranging.move(document, places))
    hand.view.canvas.select(places)
    window.run(f"arrange.{side}")
    there = positions(document.workflow)
    assert {there[id_][axis] for id_ in places} == {line}
    assert all(there[id_][1 - axis] == at[1 - axis] for id_, at in places.items())
    assert there["table"] == (660.0, 0.0), "it was not selected"
    assert steps(hand) == 2


@pytest.mark.parametrize(("way", "axis"), [("across", 0), ("down", 1)])
def test_distributed_nodes_have_equal_distances(window: MainWindow, way: str, axis: int) -> None:
    hand = opened(window, small())
    document = hand.view.editor.document
    places = {"rows": (0.0, 0.0), "some": (30.0, 10.0), "more": (50.0, 300.0), "table": (600.0, 360.0)}
    hand.view.editor.push(arranging.move(document, places))
    hand.view.canvas.select(places)
    window.run(f"arrange.{way}")
    found = sorted(at[axis] for at in positions(document.workflow).values())
    assert [one - other for one, other in zip(found[1:], found, strict=False)] == [found[-1] / 3] * 3
    assert (found[0], found[-1]) == (0.0, places["table"][axis])


def test_several_selected_nodes_move_together(window: MainWindow) -> None:
    hand = opened(window, small())
    hand.click(*hand.middle("some"))
    hand.click(*hand.middle("more"), CTRL)
    x, y = hand.middle("more")
    hand.drag((x, y), (x, y + 200))
    there = positions(hand.view.editor.document.workflow)
    assert (there["some"], there["more"]) == ((220.0, 200.0), (440.0, 200.0))
    assert steps(hand) == 1


# ---------------------------------------------------------------- selecting, deleting, copying


def test_a_rubber_band_selects_what_it_touches(window: MainWindow) -> None:
    hand = opened(window, small())
    hand.drag((150, -120), (500, 120))
    assert hand.view.canvas.selected_nodes() == ["rows", "some", "more"]
    assert steps(hand) == 0


def test_delete_heals_and_undo_brings_back(window: MainWindow) -> None:
    hand = opened(window, small())
    before = state(hand)
    hand.click(*hand.middle("some"))
    hand.key(Qt.Key.Key_Delete)
    assert edges(hand) == {"rows.out more.in", "more.out table.in"}
    assert set(hand.view.canvas.nodes) == {"rows", "more", "table"}
    undo_gives_back(hand, before)
    assert set(hand.view.canvas.nodes) == {"rows", "some", "more", "table"}


def test_a_selected_edge_is_deleted_alone(window: MainWindow) -> None:
    hand = opened(window, small())
    a, b = hand.port("rows", True, "out"), hand.port("some", False, "in")
    hand.click((a[0] + b[0]) / 2, (a[1] + b[1]) / 2)
    hand.key(Qt.Key.Key_Delete)
    assert edges(hand) == {"some.match more.in", "more.out table.in"}
    assert len(hand.view.canvas.nodes) == 4


def test_nodes_and_edges_that_are_selected_together_go_in_one_step(window: MainWindow) -> None:
    hand = opened(window, small())
    before = state(hand)
    last = next(edge for edge in hand.view.editor.document.workflow.edges if edge.target == "table")
    hand.view.canvas.select(["some"], [last])
    QApplication.processEvents()
    hand.key(Qt.Key.Key_Delete)
    assert edges(hand) == {"rows.out more.in"}
    assert steps(hand) == 1
    undo_gives_back(hand, before)


def test_the_edges_that_a_frame_selects_between_its_nodes_do_not_keep_the_gap_open(window: MainWindow) -> None:
    hand = opened(window, small())
    document = hand.view.editor.document
    last = next(edge for edge in document.workflow.edges if edge.target == "table")
    hand.view.editor.push(changes.add_node(document, "sort", (660, 0), on_edge=last)[0])
    x, _ = hand.middle("some")
    hand.drag((x, -120), (500, 120))
    assert hand.view.canvas.selected_nodes() == ["some", "more"]
    assert len(hand.view.canvas.selected_edges()) == 1
    hand.key(Qt.Key.Key_Delete)
    assert edges(hand) == {"rows.out sort.in", "sort.out table.in"}
    assert steps(hand) == 2


def test_copy_and_paste_go_through_the_clipboard_as_text_into_another_window(window: MainWindow) -> None:
    hand = opened(window, small())
    hand.drag((150, -120), (500, 120))
    hand.key(Qt.Key.Key_C, CTRL)
    assert "operator: filter" in QGuiApplication.clipboard().text()
    other = opened(window, empty())
    other.key(Qt.Key.Key_V, CTRL)
    assert edges(other) == {"rows.out some.in", "some.match more.in"}
    assert steps(other) == 1
    QGuiApplication.clipboard().setText("not a workflow")
    other.key(Qt.Key.Key_V, CTRL)
    assert steps(other) == 1
    assert "Nothing to paste" in window.statusBar().currentMessage()


def test_what_is_copied_in_one_window_is_pasted_in_another(window: MainWindow, tmp_path: Path) -> None:
    hand = opened(window, small())
    hand.view.canvas.select(["some", "more"])
    window.run("edit.copy")
    second = MainWindow(Settings(tmp_path / "second"))
    second.show()
    other = opened(second, empty())
    second.run("edit.paste")
    assert edges(other) == {"some.match more.in"}
    assert steps(other) == 1
    assert steps(hand) == 0
    other.view.editor.stack.setClean()
    second.close()
    second.deleteLater()


def test_duplicate_stands_beside_its_original(window: MainWindow) -> None:
    hand = opened(window, small())
    hand.click(*hand.middle("some"))
    hand.key(Qt.Key.Key_D, CTRL)
    assert positions(hand.view.editor.document.workflow)["some_2"] == (260.0, 40.0)


def test_rename_in_place(window: MainWindow) -> None:
    hand = opened(window, small())
    hand.click(*hand.middle("some"))
    hand.key(Qt.Key.Key_F2)
    assert isinstance(QApplication.focusWidget(), QLineEdit)
    hand.type("Few rows")
    hand.key(Qt.Key.Key_Return)
    assert hand.view.editor.document.workflow.nodes["some"].title == "Few rows"
    assert steps(hand) == 1
    hand.double_click(*hand.middle("some"))
    hand.type("Other")
    hand.key(Qt.Key.Key_Escape)
    assert hand.view.editor.document.workflow.nodes["some"].title == "Few rows"


# ---------------------------------------------------------------- looking around


def test_pictures_of_nodes_are_kept_near_by_and_not_from_afar(window: MainWindow) -> None:
    hand = opened(window, small())
    item = hand.view.canvas.nodes["some"]
    hand.view.zoom_to(1.0)
    assert item.cacheMode() == QGraphicsItem.CacheMode.DeviceCoordinateCache
    hand.view.zoom_to(0.1)
    assert item.cacheMode() == QGraphicsItem.CacheMode.NoCache


def test_the_wheel_zooms_to_the_pointer(window: MainWindow) -> None:
    hand = opened(window, small())
    at = hand.at(440, 0)
    before, zoom = hand.view.mapToScene(at), hand.view.zoom
    event = QWheelEvent(
        QPointF(at), QPointF(hand.view.viewport().mapToGlobal(at)), QPoint(), QPoint(0, 120),
        Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(hand.view.viewport(), event)
    assert hand.view.zoom > zoom
    after = hand.view.mapToScene(at)
    assert abs(after.x() - before.x()) < 2
    assert abs(after.y() - before.y()) < 2


@pytest.mark.parametrize("by", ["space", "middle button"])
def test_panning_moves_the_view_and_nothing_else(window: MainWindow, by: str) -> None:
    hand = opened(window, small())
    start = hand.view.visible_frame().center()
    button = Qt.MouseButton.LeftButton if by == "space" else Qt.MouseButton.MiddleButton
    if by == "space":
        QTest.keyPress(hand.view, Qt.Key.Key_Space)
    x, y = hand.middle("some")
    a, b = hand.at(x, y), hand.at(x, y) + QPoint(60, 40)
    QTest.mousePress(hand.view.viewport(), button, Qt.KeyboardModifier.NoModifier, a)
    QTest.mouseMove(hand.view.viewport(), b)
    QTest.mouseRelease(hand.view.viewport(), button, Qt.KeyboardModifier.NoModifier, b)
    if by == "space":
        QTest.keyRelease(hand.view, Qt.Key.Key_Space)
    moved = hand.view.visible_frame().center() - start
    assert abs(moved.x() + 60 / hand.view.zoom) < 3
    assert steps(hand) == 0


def test_arrow_keys_walk_along_the_edges(window: MainWindow) -> None:
    hand = opened(window, fig1())
    hand.view.canvas.select(["joined"])
    seen = []
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Down, Qt.Key.Key_Left, Qt.Key.Key_Left):
        hand.key(key)
        seen += hand.view.canvas.selected_nodes()
    assert seen == ["view_1_by", "view_3_by", "joined", "join"]


def test_everything_fits_into_the_view(window: MainWindow) -> None:
    hand = opened(window, fig1())
    hand.key(Qt.Key.Key_0, CTRL)
    assert hand.view.visible_frame().contains(hand.view.canvas.content())


class Painted(QObject):
    """The part of a widget that was painted since it was last asked."""

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self.region = QRegion()
        widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QPaintEvent):
            self.region = self.region.united(event.region())
        return False


def test_a_pan_paints_what_comes_into_sight_and_nothing_below_the_minimap(window: MainWindow, tmp_path: Path) -> None:
    save(large_workflow(120), tmp_path / "large.butterfly.yaml")
    view = window.files.open(tmp_path / "large.butterfly.yaml")
    assert view is not None
    minimap = view.minimap
    view.zoom_to(1.0)
    view.show_node(list(view.canvas.nodes)[60])
    QTest.qWait(2 * LATER_MS)  # the map is drawn
    below, above = Painted(view.viewport()), Painted(minimap)
    for _ in range(5):
        below.region = above.region = QRegion()
        view.horizontalScrollBar().setValue(view.horizontalScrollBar().value() + 7)
        view.verticalScrollBar().setValue(view.verticalScrollBar().value() + 5)
        QApplication.processEvents()
        assert minimap.isVisible()
        assert minimap.pos() == minimap.home
        assert below.region.contains(QPoint(view.viewport().width() - 2, 40)), "what comes in is painted"
        assert not below.region.intersects(minimap.geometry().adjusted(20, 20, -20, -20))
        area = sum(rect.width() * rect.height() for rect in below.region)
        assert area < 0.1 * view.viewport().width() * view.viewport().height()
    stored = window.screen().grabWindow(window.winId()).toImage()
    window.repaint()
    view.viewport().repaint()
    minimap.repaint()
    assert stored == window.screen().grabWindow(window.winId()).toImage(), "as if all had been painted anew"


def test_the_minimap_moves_the_view_and_can_be_put_away(window: MainWindow) -> None:
    hand = opened(window, fig1())
    hand.view.zoom_to(2.0)
    minimap = hand.view.minimap
    assert minimap.isVisible()
    minimap.grab()
    left, right = hand.view.canvas.nodes["partsupp"], hand.view.canvas.nodes["view_1"]
    spots = [minimap._to_map(item.frame()).center().toPoint() for item in (left, right)]
    QTest.mousePress(minimap, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, spots[0])
    assert hand.view.visible_frame().contains(left.frame().center())
    assert not hand.view.visible_frame().contains(right.frame().center())
    QTest.mouseMove(minimap, spots[1])
    QTest.mouseRelease(minimap, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, spots[1])
    QApplication.processEvents()
    assert hand.view.visible_frame().contains(right.frame().center())
    window.run("view.minimap")
    assert not minimap.isVisible()
    window.run("view.minimap")
    assert minimap.isVisible()
    hand.view.fit()
    assert not minimap.isVisible(), "where all is seen no map is needed"


def test_the_three_categories_and_recordsets_have_outlines_of_their_own() -> None:
    height = 64.0
    spots = {"left": QPointF(3, 3), "right": QPointF(NODE_WIDTH - 3, 3), "in": QPointF(7, 7)}
    inside = {
        form: {name for name, at in spots.items() if traced(outline, form, height).contains(at)}
        for form in ("recordset", Category.ROW_SYNCHRONIZED, Category.SEMI_BLOCKING, Category.BLOCKING)
    }
    assert inside == {
        "recordset": {"left", "right", "in"},
        Category.ROW_SYNCHRONIZED: set(),  # round
        Category.SEMI_BLOCKING: {"right", "in"},  # cut on the left
        Category.BLOCKING: {"in"},  # cut on both sides
    }
    kinds = catalogue()
    assert [form_of(kinds[name]) for name in ("filter", "sort", "csv_source")] == [
        Category.ROW_SYNCHRONIZED,
        Category.BLOCKING,
        "recordset",
    ]
    assert {kind.category for kind in kinds.values() if kind.role is Role.ACTIVITY} == set(Category)


def test_ports_of_refused_rows_are_red_and_others_are_not(qapp: QApplication) -> None:
    document = small()
    item = NodeItem("rows")
    ports = document.ports.of("rows")
    item.show_node("csv_source", document.catalogue["csv_source"], "rows", ports)
    item.connected = {(True, port.name) for port in ports.outputs}
    image = QImage(400, 200, QImage.Format.Format_ARGB32)
    image.fill(theme().canvas)
    painter = QPainter(image)
    painter.translate(100, 50)
    item.paint(painter, QStyleOptionGraphicsItem())
    painter.end()

    def color(port: str) -> str:
        at = item.port_place(True, port) + QPointF(100 + PORT / 2, 50)
        return image.pixelColor(at.toPoint()).name()

    shown = {port.carries: color(port.name) for port in ports.outputs}
    assert shown[Carries.REFUSED] == theme().refused.name()
    assert shown[Carries.ROWS] == theme().muted.name()
    assert theme().refused.red() > 150 > theme().refused.green()


def test_a_port_tells_its_columns(window: MainWindow) -> None:
    hand = opened(window, small())
    hit = hand.view.canvas.hit(QPointF(*hand.port("more", True, "out")), 5)
    text = tips.text(hit, hand.view.editor.analysis, hand.view.editor.document)
    assert "c" in text
    assert "int" in text
    assert (hit.kind, hit.output, hit.port) == ("port", True, "out")


# ---------------------------------------------------------------- notes, groups, overlays


def test_notes_are_written_in_place_and_never_change_what_runs(window: MainWindow) -> None:
    hand = opened(window, small())
    logic = hand.view.editor.document.workflow.content_hash()
    window.run("insert.note")
    assert isinstance(QApplication.focusWidget(), QPlainTextEdit)
    hand.type("why")
    hand.key(Qt.Key.Key_Return, CTRL)
    assert [note.text for note in notes(hand.view.editor.document.workflow).values()] == ["why"]
    assert hand.view.editor.document.workflow.content_hash() == logic


def test_a_note_is_moved_and_resized_by_the_keyboard(window: MainWindow) -> None:
    hand = opened(window, small())
    window.run("insert.note")
    hand.key(Qt.Key.Key_Return, CTRL)
    (id_, before), *_ = notes(hand.view.editor.document.workflow).items()
    hand.view.canvas.select_item(hand.view.canvas.notes[id_], False)
    hand.key(Qt.Key.Key_Right, CTRL)
    hand.key(Qt.Key.Key_Down, ALT | SHIFT)
    after = notes(hand.view.editor.document.workflow)[id_]
    assert after.at == (before.at[0] + 10, before.at[1])
    assert after.size == (before.size[0], before.size[1] + 20)
    hand.view.editor.stack.undo()
    hand.view.editor.stack.undo()
    assert notes(hand.view.editor.document.workflow)[id_] == before


def test_a_collapsed_group_hides_its_nodes_and_keeps_its_edges(window: MainWindow) -> None:
    hand = opened(window, small())
    logic = hand.view.editor.document.workflow.content_hash()
    hand.view.canvas.select(["some", "more"])
    window.run("insert.group")
    hand.type("Cleansing")
    hand.key(Qt.Key.Key_Return)
    (id_, group), *_ = groups(hand.view.editor.document.workflow).items()
    assert (group.title, set(group.nodes)) == ("Cleansing", {"some", "more"})
    toggle = hand.view.canvas.groups[id_].toggle().center()
    hand.click(toggle.x(), toggle.y())
    shown = {id_ for id_, item in hand.view.canvas.nodes.items() if item.isVisible()}
    assert shown == {"rows", "table"}
    assert sorted(item.isVisible() for item in hand.view.canvas.edges.values()) == [False, True, True]
    assert hand.view.editor.document.workflow.content_hash() == logic
    hand.view.editor.stack.undo()
    assert all(item.isVisible() for item in hand.view.canvas.nodes.values())


@pytest.mark.parametrize(("overlay", "regions"), [("trees", 7), ("categories", 4)])
def test_an_overlay_shows_regions_with_a_legend(window: MainWindow, overlay: str, regions: int) -> None:
    hand = opened(window, fig1())
    window.run(f"view.{overlay}")
    assert len(hand.view.canvas.backdrop.regions()) == regions
    assert len(hand.view.legend.rows) == regions
    assert hand.view.legend.isVisible()
    window.run(f"view.{overlay}")
    assert not hand.view.legend.isVisible()


def test_the_lanes_are_the_wings(window: MainWindow) -> None:
    hand = opened(window, fig1())
    bands = dict(hand.view.canvas.backdrop.bands())
    assert list(bands) == ["left", "body", "right"]
    assert bands["body"].contains(hand.view.canvas.nodes["joined"].frame())
    assert not bands["left"].intersects(bands["body"])

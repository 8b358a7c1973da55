"""Nodes are connected and added by real mouse and key events. Each is one undo step."""

from __future__ import annotations

from PySide6.QtCore import QByteArray, QMimeData, QPointF, Qt
from PySide6.QtGui import (
    QDragEnterEvent,
    QDragMoveEvent,
    QDropEvent,
)
from PySide6.QtWidgets import (
    QApplication,
)

from designer.canvas.drop import MIME
from designer.document import changes
from designer.document.layout import positions
from designer.window.window import MainWindow
from tests.designer.conftest import Hand, edges, opened, state, steps, undo_gives_back
from tests.designer.examples import empty, small

CTRL = Qt.KeyboardModifier.ControlModifier


# ---------------------------------------------------------------- connecting


def test_dragging_from_port_to_port_connects(window: MainWindow) -> None:
    hand = opened(window, small())
    before = state(hand)
    hand.drag(hand.port("rows", True, "out"), hand.port("more", False, "in"))
    assert "rows.out more.in" in edges(hand)
    assert steps(hand) == 1
    undo_gives_back(hand, before)


def test_dragging_backwards_from_an_input_connects_too(window: MainWindow) -> None:
    hand = opened(window, small())
    hand.drag(hand.port("more", False, "in"), hand.port("rows", True, "out"))
    assert "rows.out more.in" in edges(hand)


def test_two_selected_nodes_are_connected_by_a_key(window: MainWindow) -> None:
    hand = opened(window, small())
    hand.view.editor.push(changes.add_node(hand.view.editor.document, "sort", (500, 200))[0])
    hand.view.canvas.select(["some", "sort"])
    QApplication.processEvents()
    hand.key(Qt.Key.Key_K, CTRL)
    assert "some.rest sort.in" in edges(hand)  # the port that is free
    assert steps(hand) == 2


def test_a_circle_is_refused_with_its_reason(window: MainWindow) -> None:
    hand = opened(window, small())
    start, end = hand.port("more", True, "out"), hand.port("some", False, "in")
    hand.press(*start)
    hand.move(*end)
    assert "circle" in window.statusBar().currentMessage()
    hand.release(*end)
    assert steps(hand) == 0


def test_an_edge_dropped_on_empty_canvas_asks_what_fits_and_connects_it(window: MainWindow) -> None:
    hand = opened(window, small())
    x, y = hand.port("some", True, "rest")
    hand.drag((x, y), (x + 60, y + 220))
    adder = hand.view.adder
    assert adder.isVisible()
    names = {adder.list.item(row).data(Qt.ItemDataRole.UserRole) for row in range(adder.list.count())}
    assert "sort" in names
    assert "csv_source" not in names  # has no input to connect
    hand.type("sort")
    hand.key(Qt.Key.Key_Return)
    assert "some.rest sort.in" in edges(hand)
    assert steps(hand) == 1
    assert hand.view.canvas.selected_nodes() == ["sort"]


def test_behind_a_recordset_only_activities_fit(window: MainWindow) -> None:
    hand = opened(window, small())
    x, y = hand.port("table", True, "out")
    hand.drag((x, y), (x + 60, y + 220))
    adder = hand.view.adder
    names = {adder.list.item(row).data(Qt.ItemDataRole.UserRole) for row in range(adder.list.count())}
    assert "filter" in names
    assert "parquet_target" not in names


# ---------------------------------------------------------------- adding


def test_double_click_on_empty_canvas_adds_by_typing(window: MainWindow) -> None:
    hand = opened(window, empty())
    hand.double_click(0, 0)
    hand.type("parq")
    hand.key(Qt.Key.Key_Return)
    assert [node.operator for node in hand.view.editor.document.workflow.nodes.values()] == ["parquet_source"]
    assert steps(hand) == 1


def test_escape_leaves_quick_add_and_adds_nothing(window: MainWindow) -> None:
    hand = opened(window, empty())
    hand.double_click(0, 0)
    hand.type("parq")
    hand.key(Qt.Key.Key_Escape)
    assert not hand.view.adder.isVisible()
    assert steps(hand) == 0


def test_tab_with_nothing_selected_adds_a_node_that_stands_alone(window: MainWindow) -> None:
    hand = opened(window, small())
    before = edges(hand)
    hand.key(Qt.Key.Key_Tab)
    assert hand.view.adder.isVisible()
    hand.type("sort")
    hand.key(Qt.Key.Key_Return)
    assert hand.view.canvas.selected_nodes() == ["sort"]
    assert edges(hand) == before
    assert steps(hand) == 1


def test_tab_adds_behind_the_selected_node(window: MainWindow) -> None:
    hand = opened(window, small())
    hand.click(*hand.middle("table"))
    hand.key(Qt.Key.Key_Tab)
    hand.type("aggr")
    hand.key(Qt.Key.Key_Return)
    assert "table.out aggregate.in" in edges(hand)
    assert positions(hand.view.editor.document.workflow)["aggregate"][0] > 660


def test_double_click_on_an_edge_inserts_there(window: MainWindow) -> None:
    hand = opened(window, small())
    a, b = hand.port("rows", True, "out"), hand.port("some", False, "in")
    hand.double_click((a[0] + b[0]) / 2, (a[1] + b[1]) / 2)
    hand.type("dedup")
    hand.key(Qt.Key.Key_Return)
    assert {"rows.out deduplicate.in", "deduplicate.unique some.in"} <= edges(hand)
    assert steps(hand) == 1


def drop(hand: Hand, operator: str, x: float, y: float) -> None:
    data = QMimeData()
    data.setData(MIME, QByteArray(operator.encode()))
    at = hand.at(x, y)
    move = Qt.DropAction.CopyAction
    buttons, modifiers = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    for event in (
        QDragEnterEvent(at, move, data, buttons, modifiers),
        QDragMoveEvent(at, move, data, buttons, modifiers),
        QDropEvent(QPointF(at), move, data, buttons, modifiers),
    ):
        QApplication.sendEvent(hand.view.viewport(), event)


def test_an_operator_dropped_on_an_edge_is_inserted(window: MainWindow) -> None:
    hand = opened(window, small())
    a, b = hand.port("some", True, "match"), hand.port("more", False, "in")
    drop(hand, "sort", (a[0] + b[0]) / 2, (a[1] + b[1]) / 2)
    assert {"some.match sort.in", "sort.out more.in"} <= edges(hand)
    assert steps(hand) == 1


def test_a_short_edge_takes_an_operator_also_when_seen_from_afar(window: MainWindow) -> None:
    hand = opened(window, small())
    hand.view.zoom_to(0.35)
    a, b = hand.port("some", True, "match"), hand.port("more", False, "in")
    drop(hand, "sort", (a[0] + b[0]) / 2, (a[1] + b[1]) / 2)
    assert {"some.match sort.in", "sort.out more.in"} <= edges(hand)
    assert steps(hand) == 1


def test_what_stands_behind_makes_room_for_what_is_put_on_a_short_edge(window: MainWindow) -> None:
    hand = opened(window, small())
    before = state(hand)
    a, b = hand.port("some", True, "match"), hand.port("more", False, "in")
    drop(hand, "sort", (a[0] + b[0]) / 2, (a[1] + b[1]) / 2)
    places = positions(hand.view.editor.document.workflow)
    frames = {id_: item.frame() for id_, item in hand.view.canvas.nodes.items()}
    touching = {(one, other) for one in frames for other in frames
                if one < other and frames[one].intersects(frames[other])}  # fmt: skip
    assert touching == set()
    assert places["some"][0] < places["sort"][0] < places["more"][0] < places["table"][0]
    assert steps(hand) == 1
    undo_gives_back(hand, before)


def test_a_node_that_stands_alone_is_put_on_an_edge_by_moving_it_there_as_one_step(window: MainWindow) -> None:
    hand = opened(window, small())
    drop(hand, "sort", 200, 500)
    before = state(hand)
    a, b = hand.port("some", True, "match"), hand.port("more", False, "in")
    hand.drag(hand.middle("sort"), ((a[0] + b[0]) / 2, (a[1] + b[1]) / 2))
    assert {"some.match sort.in", "sort.out more.in"} <= edges(hand)
    assert "some.match more.in" not in edges(hand)
    assert steps(hand) == 2
    undo_gives_back(hand, before)


def test_an_edge_takes_neither_a_connected_node_nor_one_that_is_dragged_back(window: MainWindow) -> None:
    hand = opened(window, small())
    before = edges(hand)
    a, b = hand.port("rows", True, "out"), hand.port("some", False, "in")
    on_edge = (a[0] + b[0]) / 2, (a[1] + b[1]) / 2
    hand.drag(hand.middle("table"), on_edge)
    assert (edges(hand), steps(hand)) == (before, 1)
    hand.view.editor.stack.undo()
    drop(hand, "sort", 200, 500)
    hand.press(*hand.middle("sort"))
    hand.move(*on_edge)
    assert [item.edge.target for item in hand.view.canvas.edges.values() if item.hot] == ["some"]
    hand.key(Qt.Key.Key_Escape)
    assert not any(item.hot for item in hand.view.canvas.edges.values())
    hand.release(*on_edge)
    assert edges(hand) == before


def test_what_tab_adds_stands_free_of_other_nodes(window: MainWindow) -> None:
    hand = opened(window, small())
    hand.click(*hand.middle("some"))
    hand.key(Qt.Key.Key_Tab)
    hand.type("sort")
    hand.key(Qt.Key.Key_Return)
    added = hand.view.canvas.nodes["sort"].frame()
    assert [id_ for id_, item in hand.view.canvas.nodes.items() if item.frame().intersects(added)] == ["sort"]


def test_an_operator_dropped_near_a_port_is_connected_to_it(window: MainWindow) -> None:
    hand = opened(window, small())
    x, y = hand.port("table", True, "out")
    drop(hand, "aggregate", x + 180, y)
    assert "table.out aggregate.in" in edges(hand)


def test_an_operator_dropped_elsewhere_stands_alone(window: MainWindow) -> None:
    hand = opened(window, small())
    before = edges(hand)
    drop(hand, "aggregate", 200, 500)
    assert edges(hand) == before
    assert "aggregate" in hand.view.editor.document.workflow.nodes

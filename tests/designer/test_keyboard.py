"""What the mouse can do the keyboard can do too: edges, notes, groups, panels and the run bar."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from designer.document import arranging, changes
from designer.document.layout import groups, notes, positions
from designer.properties.columns import ColumnsTable
from designer.properties.form import NodeForm
from designer.window.window import MainWindow
from tests.designer.conftest import Hand, opened
from tests.designer.examples import fig1, small

CTRL = Qt.KeyboardModifier.ControlModifier
ALT = Qt.KeyboardModifier.AltModifier
SHIFT = Qt.KeyboardModifier.ShiftModifier


def chosen(hand: Hand) -> list[str]:
    return [f"{edge.from_} {edge.to}" for edge in hand.view.canvas.selected_edges()]


def edges(hand: Hand) -> set[str]:
    return {f"{edge.from_} {edge.to}" for edge in hand.view.editor.document.workflow.edges}


def inside(window: MainWindow, name: str) -> bool:
    focused = QApplication.focusWidget()
    return focused is not None and window.docks[name].isAncestorOf(focused)


# ---------------------------------------------------------------- edges


def test_a_nodes_edge_is_selected_and_deleted_alone(window: MainWindow) -> None:
    hand = opened(window, small())
    hand.view.canvas.select(["some"])
    hand.key(Qt.Key.Key_E, ALT)
    assert chosen(hand) == ["some.match more.in"]
    assert hand.view.canvas.selected_nodes() == []
    hand.key(Qt.Key.Key_Delete)
    assert edges(hand) == {"rows.out some.in", "more.out table.in"}
    assert len(hand.view.editor.document.workflow.nodes) == 4


def test_edges_are_gone_through_in_both_directions_and_left_to_their_ends(window: MainWindow) -> None:
    hand = opened(window, small())
    hand.view.canvas.select(["some"])
    hand.key(Qt.Key.Key_E, ALT | SHIFT)
    seen = chosen(hand)
    for key, modifiers in ((Qt.Key.Key_E, ALT), (Qt.Key.Key_Down, Qt.KeyboardModifier.NoModifier),
                           (Qt.Key.Key_E, ALT), (Qt.Key.Key_Up, Qt.KeyboardModifier.NoModifier)):  # fmt: skip
        hand.key(key, modifiers)
        seen += chosen(hand)
    first, second, third = "rows.out some.in", "some.match more.in", "more.out table.in"
    assert seen == [first, second, third, first, third]
    hand.key(Qt.Key.Key_Left)
    assert hand.view.canvas.selected_nodes() == ["more"]
    hand.key(Qt.Key.Key_E, ALT)
    hand.key(Qt.Key.Key_Right)
    assert hand.view.canvas.selected_nodes() == ["table"]


def test_every_edge_of_a_workflow_is_reached_and_seen(window: MainWindow) -> None:
    hand = opened(window, fig1())
    hand.view.zoom_to(1.0)
    seen = []
    for _ in range(len(hand.view.canvas.edges)):
        hand.key(Qt.Key.Key_E, ALT)
        seen += chosen(hand)
        item = next(item for item in hand.view.canvas.edges.values() if item.chosen)
        assert hand.view.visible_frame().intersects(item.sceneBoundingRect())
    assert sorted(seen) == sorted(edges(hand))


def test_a_selected_edge_is_looked_at_and_takes_an_operator(
    window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[dict[str, Any]] = []
    monkeypatch.setattr(window.engine, "send", lambda command, **fields: sent.append(fields) or 1)
    hand = opened(window, small())
    hand.view.canvas.select(["some"])
    hand.key(Qt.Key.Key_E, ALT)
    hand.key(Qt.Key.Key_F5)
    assert [(one["node"], one["port"]) for one in sent] == [("some", "match")]
    hand.key(Qt.Key.Key_F6)
    hand.key(Qt.Key.Key_Tab)
    hand.type("sort")
    hand.key(Qt.Key.Key_Return)
    assert {"some.match sort.in", "sort.out more.in"} <= edges(hand)
    assert "some.match more.in" not in edges(hand)


def test_the_packs_of_an_edge_are_looked_into_during_a_pause(
    window: MainWindow, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hand = opened(window, small())
    asked: list[list[str]] = []
    monkeypatch.setattr(window.driver.packs, "ask", lambda folder, facts, ends: asked.append(ends))
    monkeypatch.setattr(window.runs, "state", "paused")
    monkeypatch.setattr(window.runs, "log_path", str(tmp_path / "events.jsonl"))
    hand.view.canvas.select(["rows"])
    hand.key(Qt.Key.Key_E, ALT)
    assert asked == [["rows", "out", "some", "in"]]
    monkeypatch.undo()


# ---------------------------------------------------------------- notes and groups


def test_notes_are_selected_moved_and_written(window: MainWindow) -> None:
    hand = opened(window, small())
    document = hand.view.editor.document
    for at in ((0.0, 300.0), (400.0, 300.0)):
        hand.view.editor.push(arranging.add_note(document, at, "why")[0])
    hand.view.canvas.select(["some"])
    hand.key(Qt.Key.Key_N, ALT)
    hand.key(Qt.Key.Key_N, ALT)
    assert hand.view.canvas.selected_notes() == ["note_2"]
    hand.key(Qt.Key.Key_Right, CTRL)
    hand.key(Qt.Key.Key_F2)
    hand.type("because")
    hand.key(Qt.Key.Key_Return, CTRL)
    assert notes(document.workflow)["note_2"].at == (410.0, 300.0)
    assert notes(document.workflow)["note_2"].text == "because"
    hand.key(Qt.Key.Key_N, ALT | SHIFT)
    assert hand.view.canvas.selected_notes() == ["note"]
    hand.key(Qt.Key.Key_Delete)
    assert list(notes(document.workflow)) == ["note_2"]


def test_groups_are_selected_moved_renamed_and_collapsed(window: MainWindow) -> None:
    hand = opened(window, small())
    document = hand.view.editor.document
    hand.view.editor.push(arranging.group(document, ["rows"], "Sources")[0])
    edit, id_ = arranging.group(document, ["some", "more"], "Cleansing")
    hand.view.editor.push(edit)
    hand.view.canvas.select(["more"])
    hand.key(Qt.Key.Key_G, ALT)
    assert hand.view.canvas.selected_groups() == [id_]
    hand.key(Qt.Key.Key_Down, CTRL)
    there = positions(document.workflow)
    assert (there["some"], there["more"], there["rows"]) == ((220.0, 10.0), (440.0, 10.0), (0.0, 0.0))
    hand.key(Qt.Key.Key_F2)
    hand.type("Clean")
    hand.key(Qt.Key.Key_Return)
    hand.key(Qt.Key.Key_E, CTRL)
    found = groups(document.workflow)
    assert (found[id_].title, found[id_].collapsed) == ("Clean", True)
    assert not found["group"].collapsed, "only the selected one"
    hand.key(Qt.Key.Key_Up, CTRL)
    assert positions(document.workflow)["some"] == (220.0, 0.0), "also while it is collapsed"
    hand.key(Qt.Key.Key_G, ALT)
    assert hand.view.canvas.selected_groups() == ["group"]
    hand.key(Qt.Key.Key_E, CTRL)
    found = groups(document.workflow)
    assert found["group"].collapsed
    assert found[id_].collapsed


def test_where_there_is_no_note_the_selection_stays(window: MainWindow) -> None:
    hand = opened(window, small())
    hand.view.canvas.select(["some"])
    hand.key(Qt.Key.Key_N, ALT)
    assert hand.view.canvas.selected_nodes() == ["some"]
    assert "none" in window.statusBar().currentMessage()


# ---------------------------------------------------------------- panels


@pytest.mark.parametrize("of", ["a node", "an edge"])
def test_enter_on_a_column_shows_its_way(window: MainWindow, of: str) -> None:
    hand = opened(window, small())
    document = hand.view.editor.document
    hand.view.editor.push(changes.add_node(document, "sort", (0, 300))[0])
    hand.view.editor.check()
    first = next(edge for edge in document.workflow.edges if edge.source == "rows")
    hand.view.canvas.select(*((["rows"],) if of == "a node" else ((), [first])))
    window.properties.show_selection()
    assert isinstance(window.properties.form, NodeForm) is (of == "a node")
    table = window.properties.findChild(ColumnsTable)
    table.tree.setCurrentItem(table.tree.topLevelItem(0).child(0))
    QTest.keyClick(table.tree, Qt.Key.Key_Return)
    assert hand.view.legend.isVisible()
    assert [id_ for id_, item in hand.view.canvas.nodes.items() if item.dimmed] == ["sort"]


@pytest.mark.parametrize("name", ["palette", "outline", "properties", "problems", "preview", "history", "plan"])
def test_a_panel_that_is_shown_by_its_command_has_the_keyboard(window: MainWindow, name: str) -> None:
    hand = opened(window, small())
    if window.in_front(name):
        window.run(f"view.dock_{name}")
        assert QApplication.focusWidget() is hand.view
    window.run(f"view.dock_{name}")
    assert inside(window, name)
    window.run(f"view.dock_{name}")
    assert not window.in_front(name)
    assert QApplication.focusWidget() is hand.view


def test_the_keyboard_goes_from_panel_to_panel_and_back_to_the_canvas(window: MainWindow) -> None:
    hand = opened(window, small())
    QApplication.processEvents()
    seen = [name for name in window.docks if window.in_front(name)]
    assert set(seen) == {"palette", "properties", "problems"}
    for name in seen:
        hand.key(Qt.Key.Key_F6, SHIFT)
        assert inside(window, name)
    hand.key(Qt.Key.Key_F6, SHIFT)
    assert QApplication.focusWidget() is hand.view


def test_the_boxes_of_the_run_bar_are_reached(window: MainWindow) -> None:
    hand = opened(window, small())
    hand.key(Qt.Key.Key_B, CTRL | SHIFT)
    bar = window.driver.bar
    seen = [QApplication.focusWidget()]
    for _ in range(3):
        hand.key(Qt.Key.Key_Tab)
        seen.append(QApplication.focusWidget())
    assert seen == [bar.preset, bar.policy, bar.granularity, bar.backend]
    before = bar.backend.currentText()
    hand.key(Qt.Key.Key_Down)
    assert bar.backend.currentText() != before
    hand.key(Qt.Key.Key_R, CTRL | SHIFT)
    assert bar.more.isVisible()
    assert bar.more.isAncestorOf(bar.more.focusWidget())
    bar.more.close()

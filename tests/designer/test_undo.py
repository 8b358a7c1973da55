"""Whatever is done and undone, canvas and document stay the same thing."""

from __future__ import annotations

import copy

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from designer.canvas.scene import CanvasScene
from designer.document.document import Document
from designer.document.layout import groups, notes, positions
from designer.editor import Editor
from designer.undo import HistoryPanel
from designer.window.window import MainWindow
from tests.designer.conftest import opened
from tests.designer.examples import edits, empty, fig1, small


def agrees(scene: CanvasScene, document: Document) -> None:
    """The canvas shows the document, no more and no less."""
    workflow = document.workflow
    assert set(scene.nodes) == set(workflow.nodes)
    assert {id_: item.pos().toTuple() for id_, item in scene.nodes.items()} == positions(workflow)
    assert {id_: item.title for id_, item in scene.nodes.items()} == {
        id_: document.title_of(id_) for id_ in workflow.nodes
    }
    assert {id(item.edge) for item in scene.edges.values()} == {id(edge) for edge in workflow.edges}
    assert {id_: item.note for id_, item in scene.notes.items()} == notes(workflow)
    assert {id_: item.held for id_, item in scene.groups.items()} == groups(workflow)
    hidden = {node for group in groups(workflow).values() if group.collapsed for node in group.nodes}
    assert {id_ for id_, item in scene.nodes.items() if not item.isVisible()} == hidden
    for item in scene.edges.values():
        if item.edge.source not in hidden:
            start = scene.nodes[item.edge.source].port_at(True, item.source_port)
            assert (item.path().pointAtPercent(0) - start).manhattanLength() < 0.01


@given(st.data())
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_push_undo_and_redo_in_any_order(qapp: QApplication, data: st.DataObject) -> None:
    document = data.draw(st.sampled_from([empty, small, fig1]))()
    editor = Editor(document)
    scene = CanvasScene(document)
    states = {0: copy.deepcopy(document.workflow.document())}
    for _ in range(data.draw(st.integers(1, 20))):
        move = data.draw(st.sampled_from(["push", "push", "push", "undo", "redo"]))
        if move == "push":
            index = editor.stack.index()
            edit = data.draw(edits(document))
            pushed = editor.push(edit)
            if pushed and edit.merge is None:
                assert editor.stack.index() == index + 1
            if not pushed:  # what changes nothing is no step, and nothing that was undone is lost by it
                continue
            for later in [number for number in states if number > index]:
                del states[later]
            states[editor.stack.index()] = copy.deepcopy(document.workflow.document())
        elif move == "undo":
            editor.stack.undo()
        else:
            editor.stack.redo()
        assert document.workflow.document() == states[editor.stack.index()]
        agrees(scene, document)
    editor.stack.setIndex(0)
    assert document.workflow.document() == states[0]
    agrees(scene, document)
    editor.close()


def test_typing_in_one_field_is_one_step_and_another_field_another(qapp: QApplication) -> None:
    from designer.document import changes

    editor = Editor(small())
    for text in ("a", "a >", "a > 5"):
        editor.push(changes.set_setting(editor.document, "some", "condition", text))
    assert editor.stack.count() == 1
    editor.push(changes.set_remark(editor.document, "some", "because"))
    assert editor.stack.count() == 2
    editor.stack.undo()
    editor.stack.undo()
    assert editor.document.workflow.nodes["some"].settings == {"condition": "a > 1"}
    editor.close()


def test_a_change_taken_back_by_typing_leaves_no_step(qapp: QApplication) -> None:
    from designer.document import changes

    editor = Editor(small())
    editor.push(changes.set_setting(editor.document, "some", "condition", "a > 12"))
    editor.push(changes.set_setting(editor.document, "some", "condition", "a > 1"))
    assert not editor.modified
    editor.close()


@pytest.mark.parametrize("many", [3000])
def test_thousands_of_steps_are_undone(qapp: QApplication, many: int) -> None:
    from designer.document import arranging

    editor = Editor(small())
    for number in range(many):
        editor.push(arranging.move(editor.document, {"some": (number + 1000.0, 0.0)}))
    assert editor.stack.count() == many
    editor.stack.setIndex(0)
    assert positions(editor.document.workflow)["some"] == (220.0, 0.0)
    editor.close()


# ---------------------------------------------------------------- the history


def row_at(panel: HistoryPanel, row: int) -> QPoint:
    return panel.visualItemRect(panel.item(row)).center()


def history_agrees(panel: HistoryPanel, editor: Editor) -> None:
    """One row for each step and one for the beginning; the last step that is done stands out, and only that."""
    stack = editor.stack
    assert [panel.item(row).text() for row in range(1, panel.count())] == [step.text for step in stack.steps]
    assert panel.currentRow() == stack.index()
    assert [index.row() for index in panel.selectedIndexes()] == [stack.index()]
    grey = panel.palette().placeholderText()
    assert [panel.item(row).foreground() == grey for row in range(panel.count())] == [
        row > stack.index() for row in range(panel.count())
    ]


def test_the_history_goes_where_it_is_clicked_dragged_or_walked_to(window: MainWindow) -> None:
    from designer.document import arranging

    hand = opened(window, small())
    editor, panel = hand.view.editor, window.history
    window.docks["history"].raise_()
    window.docks["history"].show()
    states = [editor.document.workflow.document()]
    for number in range(6):
        editor.push(arranging.move(editor.document, {"some": (1000.0 + number, 0.0)}))
        states.append(copy.deepcopy(editor.document.workflow.document()))
        history_agrees(panel, editor)
    QApplication.processEvents()

    QTest.mouseClick(panel.viewport(), Qt.MouseButton.LeftButton, pos=row_at(panel, 2))
    assert editor.stack.index() == 2
    history_agrees(panel, editor)

    QTest.mousePress(panel.viewport(), Qt.MouseButton.LeftButton, pos=row_at(panel, 1))
    at = row_at(panel, 1)
    while at.y() < panel.viewport().height() - 1:  # over a row that is seen in part, too: the list scrolls
        at += QPoint(0, 5)
        held = Qt.MouseButton.LeftButton
        event = QMouseEvent(QEvent.Type.MouseMove, QPointF(at), panel.viewport().mapToGlobal(QPointF(at)),
                            Qt.MouseButton.NoButton, held, Qt.KeyboardModifier.NoModifier)  # fmt: skip
        QApplication.sendEvent(panel.viewport(), event)
        history_agrees(panel, editor)
    assert editor.stack.index() > 1
    QTest.mouseRelease(panel.viewport(), Qt.MouseButton.LeftButton, pos=at)
    history_agrees(panel, editor)

    for key, index in ((Qt.Key.Key_Home, 0), (Qt.Key.Key_End, 6), (Qt.Key.Key_Up, 5), (Qt.Key.Key_Up, 4)):
        QTest.keyClick(panel, key)
        assert editor.stack.index() == index
        assert editor.document.workflow.document() == states[index]
        history_agrees(panel, editor)

    editor.push(arranging.move(editor.document, {"some": (0.0, 900.0)}))  # what was undone is gone
    assert panel.count() == 6
    history_agrees(panel, editor)


def test_the_history_follows_the_tab_and_ends_with_it(window: MainWindow) -> None:
    from designer.document import arranging

    one, other = opened(window, small()), opened(window, fig1())
    one.view.editor.push(arranging.move(one.view.editor.document, {"some": (1000.0, 0.0)}))
    assert window.history.count() == 1
    window.tabs.setCurrentWidget(one.view)
    history_agrees(window.history, one.view.editor)
    one.view.editor.stack.undo()
    history_agrees(window.history, one.view.editor)
    assert window.close_tab(window.tabs.indexOf(one.view))
    history_agrees(window.history, other.view.editor)
    assert window.close_tab(0)
    assert window.history.count() == 0


def test_saving_in_the_middle_and_undoing_past_it_is_unsaved_and_coming_back_is_saved(qapp: QApplication) -> None:
    from designer.document import changes

    editor = Editor(small())
    told: list[bool] = []
    editor.stack.cleanChanged.connect(told.append)
    for text in ("a > 2", "a > 3"):
        editor.push(changes.set_setting(editor.document, "some", "condition", text))
    editor.stack.setClean()
    editor.push(changes.set_setting(editor.document, "some", "condition", "a > 4"))  # no part of what is saved
    assert editor.stack.count() == 2
    editor.stack.undo()
    assert not editor.modified
    editor.stack.undo()
    assert editor.modified
    editor.stack.redo()
    assert not editor.modified
    editor.stack.undo()
    editor.push(changes.set_setting(editor.document, "some", "condition", "a > 5"))
    editor.stack.undo()
    assert editor.modified  # what was saved cannot be reached any more
    assert told == [False, True, False, True, False, True, False]
    editor.close()

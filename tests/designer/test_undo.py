"""Whatever is done and undone, canvas and document stay the same thing."""

from __future__ import annotations

import copy

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PySide6.QtWidgets import QApplication

from designer.canvas.scene import CanvasScene
from designer.document.document import Document
from designer.document.layout import groups, notes, positions
from designer.editor import Editor
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

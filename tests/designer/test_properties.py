"""The form is made from the operator's settings, and every change in it is a step that can be undone."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit

from designer.document import arranging, changes
from designer.document.document import Document
from designer.document.edits import ABSENT
from designer.document.places import steps
from designer.editor import Editor
from designer.properties.editors.expression import ExpressionEditor
from designer.properties.editors.many import ListEditor, MappingEditor
from designer.properties.editors.simple import ChoiceEditor, ColumnEditor, DateEditor, LineEditor, SecretEditor
from designer.properties.fields import fields_of
from designer.properties.form import NodeForm
from designer.properties.workflow_form import WorkflowForm
from designer.session.templates import shipped
from designer.window.window import MainWindow
from engine.model.workflow import Edge, Parameter
from engine.operators import catalogue
from tests.designer.conftest import opened
from tests.designer.examples import empty, fig1, small


def form(window: MainWindow, node: str) -> NodeForm:
    assert window.view is not None
    window.view.canvas.select([node])
    window.properties.show_selection()
    found = window.properties.form
    assert isinstance(found, NodeForm)
    return found


@pytest.mark.parametrize("name", sorted(catalogue()))
def test_every_operator_has_a_form_that_leaves_its_settings_as_they_are(qapp: QApplication, name: str) -> None:
    document = empty()
    edit, node = changes.add_node(document, name, (0, 0))
    document.apply(edit)
    editor = Editor(document)
    editor.analyse_now()
    made = NodeForm(editor, node)
    assert list(made.editors) == [spec.name for spec in fields_of(catalogue()[name])]
    assert {key: one.value() for key, one in made.editors.items() if one.value() is not ABSENT} == {}
    made.refresh()
    assert editor.stack.count() == 0
    editor.close()


def test_the_settings_of_every_shipped_workflow_pass_through_their_forms_unchanged(qapp: QApplication) -> None:
    seen = set()
    for name, workflow in shipped():
        editor = Editor(Document(workflow, catalogue()))
        editor.analyse_now()
        for id_, node in editor.document.workflow.nodes.items():
            kind = (node.operator, tuple(sorted(node.settings)))
            if kind in seen:  # once for each operator and choice of settings
                continue
            seen.add(kind)
            made = NodeForm(editor, id_)
            kept = {spec.name: spec.default for spec in fields_of(catalogue()[node.operator])}
            shown = {key: one.value() for key, one in made.editors.items() if one.value() is not ABSENT}
            # What a file says although it is the default may be left out; nothing else may change.
            assert shown == {
                key: value for key, value in node.settings.items() if shown.get(key) or value != kept[key]
            }, f"{name}.{id_}"
        assert editor.stack.count() == 0
        editor.close()


def test_each_kind_of_setting_has_its_editor() -> None:
    kinds = {spec.name: spec.value.kind for spec in fields_of(catalogue()["join"])}
    assert kinds == {
        "kind": "choice",
        "keys": "list",
        "null_safe": "boolean",
        "condition": "expression",
        "form": "choice",
        "right_suffix": "text",
    }
    keys = next(spec.value for spec in fields_of(catalogue()["join"]) if spec.name == "keys")
    assert keys.item is not None
    assert [(spec.name, spec.value.kind, spec.value.port) for spec in keys.item.fields] == [
        ("left", "column", "left"),
        ("right", "column", "right"),
    ]
    kinds = {spec.name: spec.value.kind for spec in fields_of(catalogue()["postgresql_source"])}
    assert kinds["password"] == "secret"
    assert kinds["schema"] == "text"  # as the file calls it
    assert kinds["port"] == "integer"
    assert next(spec.value for spec in fields_of(catalogue()["csv_source"]) if spec.name == "columns").kind == "mapping"


def test_typing_a_condition_changes_the_setting_as_one_step_and_undo_shows_the_old_text(window: MainWindow) -> None:
    hand = opened(window, small())
    made = form(window, "some")
    box = made.editors["condition"]
    assert isinstance(box, ExpressionEditor)
    box.text.selectAll()
    QTest.keyClicks(box.text, "b = 'x'")
    assert hand.view.editor.document.workflow.nodes["some"].settings["condition"] == "b = 'x'"
    assert hand.view.editor.stack.count() == 1
    hand.view.editor.stack.undo()
    assert box.text.toPlainText() == "a > 1"
    assert window.properties.form is made


def test_an_expression_says_its_type_or_its_error_as_one_types(window: MainWindow) -> None:
    opened(window, small())
    box = form(window, "some").editors["condition"]
    assert isinstance(box, ExpressionEditor)
    assert box.verdict_on("a > 5") == (True, "gives boolean")
    good, message = box.verdict_on("a + 1")
    assert (good, message) == (False, "gives int, not true or false")
    good, message = box.verdict_on("aa > 1")
    assert not good
    assert "did you mean `a`" in message or "no column `aa`" in message
    good, message = box.verdict_on("a > (SELECT 1)")
    assert not good
    assert "query" in message


def test_columns_and_functions_are_completed(window: MainWindow) -> None:
    opened(window, small())
    box = form(window, "more").editors["columns"]
    assert isinstance(box, ListEditor)
    expression = box.editors[box.rows[0]].editors["expression"]  # type: ignore[attr-defined]
    offered = expression.completions()
    assert offered[:2] == ["a", "b"]
    assert "concat" in offered
    assert "sum" not in offered  # an aggregate has no place in a derivation
    expression.text.setFocus()
    expression.text.selectAll()
    QTest.keyClicks(expression.text, "conca")
    assert expression.text.completer.currentCompletion() == "concat"
    expression.text._complete("concat")
    assert expression.text.toPlainText() == "concat()"


def test_a_column_is_picked_from_those_of_its_own_input(window: MainWindow) -> None:
    hand = opened(window, small())
    document = hand.view.editor.document
    edit, source = changes.add_node(document, "csv_source", (0, 200), settings={"path": "x", "columns": {"k": "int"}})
    hand.view.editor.push(edit)
    edit, join = changes.add_node(document, "join", (800, 0), behind=("more", "out"))
    hand.view.editor.push(edit)
    hand.view.editor.push(changes.connect(document, source, "out", join, "right"))
    hand.view.editor.push(changes.set_setting(document, join, "keys", [{"left": "a", "right": "k"}]))
    hand.view.editor.analyse_now()
    keys = form(window, join).editors["keys"]
    assert isinstance(keys, ListEditor)
    row = keys.editors[keys.rows[0]]
    left, right = row.editors["left"], row.editors["right"]  # type: ignore[attr-defined]
    assert isinstance(left, ColumnEditor)
    assert [name for name, _ in left.suggestions()] == ["a", "b", "c"]
    assert [name for name, _ in right.suggestions()] == ["k"]


def test_columns_are_ticked_in_a_menu(window: MainWindow) -> None:
    hand = opened(window, small())
    hand.view.editor.push(changes.change_operator(hand.view.editor.document, "some", "not_null"))
    hand.view.editor.analyse_now()
    box = form(window, "some").editors["columns"]
    assert isinstance(box, ListEditor)
    menu = box.columns_menu()
    b = next(action for action in menu.actions() if action.text().startswith("b "))
    b.trigger()
    assert hand.view.editor.document.workflow.nodes["some"].settings["columns"] == ["b"]
    box.toggle_column("b", False)
    assert "columns" not in hand.view.editor.document.workflow.nodes["some"].settings


def test_rows_are_added_moved_and_removed(window: MainWindow) -> None:
    hand = opened(window, small())
    box = form(window, "more").editors["columns"]
    assert isinstance(box, ListEditor)
    box.add.click()
    second = box.editors[box.rows[1]]
    second.editors["name"].line.setText("d")  # type: ignore[attr-defined]
    second.editors["name"]._edited()  # type: ignore[attr-defined]
    columns = hand.view.editor.document.workflow.nodes["more"].settings["columns"]
    assert [column.get("name") for column in columns] == ["c", "d"]
    box._up(box.rows[1])
    columns = hand.view.editor.document.workflow.nodes["more"].settings["columns"]
    assert [column.get("name") for column in columns] == ["d", "c"]
    hand.view.editor.stack.setIndex(0)
    assert len(box.rows) == 1


def test_a_default_is_not_written_into_the_file(window: MainWindow) -> None:
    hand = opened(window, small())
    made = form(window, "table")
    box = made.editors["mode"]
    assert isinstance(box, ChoiceEditor)
    box.box.setCurrentIndex(box.box.findText("append"))
    box.changed.emit()
    assert hand.view.editor.document.workflow.nodes["table"].settings["mode"] == "append"
    box.box.setCurrentIndex(box.box.findText("overwrite"))
    box.changed.emit()
    assert "mode" not in hand.view.editor.document.workflow.nodes["table"].settings


def test_numbers_are_numbers_and_a_reference_may_stand_for_one(window: MainWindow) -> None:
    hand = opened(window, small())
    hand.view.editor.push(changes.change_operator(hand.view.editor.document, "some", "limit"))
    hand.view.editor.analyse_now()
    box = form(window, "some").editors["rows"]
    assert isinstance(box, LineEditor)
    for text, value in (("10", 10), ("${count}", "${count}"), ("ten", "ten")):
        box.line.setText(text)
        box._edited()
        assert hand.view.editor.document.workflow.nodes["some"].settings["rows"] == value
    assert box.line.property("wrong") is True


def test_a_mapping_keeps_its_order_and_its_types(window: MainWindow) -> None:
    hand = opened(window, small())
    box = form(window, "rows").editors["columns"]
    assert isinstance(box, MappingEditor)
    assert list(box.value()) == ["a", "b"]
    box._row("z", "date")
    box.changed.emit()
    settings = hand.view.editor.document.workflow.nodes["rows"].settings
    assert list(settings["columns"].items()) == [("a", "int"), ("b", "string"), ("z", "date")]


def test_a_problem_is_shown_at_its_field_and_a_click_leads_there(window: MainWindow) -> None:
    hand = opened(window, small())
    document = hand.view.editor.document
    broken = [{"name": "c", "expression": "a + nothing"}]
    hand.view.editor.push(changes.set_setting(document, "more", "columns", broken))
    QTest.qWait(100)
    assert hand.view.canvas.nodes["more"].level is not None
    assert window.problems.topLevelItemCount() == 1
    row = window.problems.topLevelItem(0)
    assert "no column `nothing`" in row.text(1)
    window.problems.itemClicked.emit(row, 0)
    assert hand.view.canvas.selected_nodes() == ["more"]
    made = window.properties.form
    assert isinstance(made, NodeForm)
    assert "no column `nothing`" in made.wrong["columns"].text()
    focused = QApplication.focusWidget()
    assert focused is not None
    assert focused.accessibleName() == "columns[0].expression"


def test_a_click_on_a_badge_leads_to_the_first_problems_field(window: MainWindow) -> None:
    hand = opened(window, small())
    broken = [{"name": "c", "expression": "a + 1"}, {"name": "d", "expression": "a + nothing"}]
    hand.view.editor.push(changes.set_setting(hand.view.editor.document, "more", "columns", broken))
    hand.view.editor.check()
    badge = hand.view.canvas.nodes["more"].badge_frame().center()
    hand.click(badge.x(), badge.y())
    focused = QApplication.focusWidget()
    assert focused is not None
    assert focused.accessibleName() == "columns[1].expression"


@pytest.mark.parametrize("section", ["roots", "parameters"])
def test_a_click_on_a_problem_of_the_workflow_leads_to_its_parameter_or_root(window: MainWindow, section: str) -> None:
    document = small()
    document.workflow.roots.update({"a": "in", "data": "${nobody}" if section == "roots" else "in"})
    if section == "parameters":
        document.workflow.parameters.update({"alpha": Parameter(default=1), "data": Parameter(default=1)})
    hand = opened(window, document)
    hand.view.canvas.select(["some"])
    rows = [window.problems.topLevelItem(row) for row in range(window.problems.topLevelItemCount())]
    row = next(row for row in rows if row.text(2) == f"{section}.data")
    window.problems.itemActivated.emit(row, 0)
    assert hand.view.canvas.selected_nodes() == []
    made = window.properties.form
    assert isinstance(made, WorkflowForm)
    table = made.roots if section == "roots" else made.parameters
    assert QApplication.focusWidget() is table
    assert table.item(table.currentRow(), 0).text() == "data"
    assert row.text(1) in made.wrong.text()


def test_edges_that_lead_nowhere_are_told_and_removed_in_one_step(window: MainWindow) -> None:
    document = small()
    document.workflow.edges.append(Edge.model_validate({"from": "more.out", "to": "ghost.in"}))
    hand = opened(window, document)
    window.problems.itemClicked.emit(window.problems.topLevelItem(0), 0)
    made = window.properties.form
    assert isinstance(made, WorkflowForm)
    assert "ghost" in made.wrong.text()
    made.loose.click()
    assert len(document.workflow.edges) == 3
    hand.view.editor.check()
    assert not made.loose.isVisible()
    assert not made.wrong.isVisible()
    hand.view.editor.stack.undo()
    assert len(document.workflow.edges) == 4


def test_a_problem_of_a_node_in_a_collapsed_group_brings_the_node_out(window: MainWindow) -> None:
    hand = opened(window, small())
    document = hand.view.editor.document
    edit, group = arranging.group(document, ["some", "more"], "Cleansing")
    hand.view.editor.push(edit)
    hand.view.editor.push(arranging.collapse(document, group, True))
    hand.view.editor.push(changes.set_setting(document, "some", "condition", "nothing"))
    hand.view.editor.check()
    window.run("view.next_problem")
    assert hand.view.canvas.selected_nodes() == ["some"]
    assert isinstance(window.properties.form, NodeForm)


def test_a_secret_is_not_shown_but_the_name_of_its_variable_is(window: MainWindow) -> None:
    hand = opened(window, small())
    hand.view.editor.push(changes.change_operator(hand.view.editor.document, "rows", "postgresql_source"))
    box = form(window, "rows").editors["password"]
    assert isinstance(box, SecretEditor)
    QTest.keyClicks(box.line, "hunter2")
    assert box.line.echoMode() == QLineEdit.EchoMode.Password
    assert "hunter2" not in box.line.displayText()
    assert box.line.property("wrong") is True
    box.line.clear()
    for letter in "${env:PG_PASSWORD}":
        QTest.keyClicks(box.line, letter)
        assert box.line.echoMode() == QLineEdit.EchoMode.Normal
    assert not box.line.property("wrong")
    assert hand.view.editor.document.workflow.nodes["rows"].settings["password"] == "${env:PG_PASSWORD}"
    box.show_value("hunter2")  # from a file
    assert "hunter2" not in box.line.displayText()


def test_a_day_is_checked_and_taken_from_a_calendar(window: MainWindow) -> None:
    hand = opened(window, empty())
    document = hand.view.editor.document
    edit, node = changes.add_node(document, "date_dimension", (0, 0))
    hand.view.editor.push(edit)
    box = form(window, node).editors["first_day"]
    assert isinstance(box, DateEditor)
    for text, wrong in (
        ("2024-02-30", True),
        ("yesterday", True),
        ("20240229", True),
        ("2024-02-29", False),
        ("${from}", False),
    ):
        box.line.setText(text)
        box._edited()
        assert bool(box.line.property("wrong")) is wrong, text
    box.show_value("2024-02-28")
    calendar = box.open_calendar()
    assert calendar.selectedDate().toString(Qt.DateFormat.ISODate) == "2024-02-28"
    calendar.activated.emit(calendar.selectedDate().addDays(1))
    assert document.workflow.nodes[node].settings["first_day"] == "2024-02-29"
    assert not calendar.isVisible()


def test_the_id_is_changed_with_everything_that_names_it(window: MainWindow) -> None:
    hand = opened(window, small())
    made = form(window, "some")
    made.ident.setText("few rows")
    made.ident.editingFinished.emit()
    workflow = hand.view.editor.document.workflow
    assert "few_rows" in workflow.nodes
    assert {edge.source for edge in workflow.edges} == {"rows", "few_rows", "more"}
    hand.view.editor.stack.undo()
    assert "some" in hand.view.editor.document.workflow.nodes


def test_parameters_and_roots_of_the_workflow_are_edited_and_undone(window: MainWindow) -> None:
    hand = opened(window, fig1())
    hand.view.canvas.select()
    window.properties.show_selection()
    made = window.properties.form
    assert isinstance(made, WorkflowForm)
    made._parameter("data_folder", "elsewhere")
    assert hand.view.editor.document.workflow.parameters["data_folder"].default == "elsewhere"
    assert hand.view.editor.document.workflow.parameters["data_folder"].description == "Where the TPC-H tables are"
    made._root("extra", "x")
    made._root("extra", None)
    hand.view.editor.stack.setIndex(0)
    assert hand.view.editor.document.workflow.parameters["data_folder"].default == "../data/tpch"
    assert made.parameters.item(0, 1).text() == "../data/tpch"


def test_a_problems_place_is_read_in_both_ways_of_writing() -> None:
    assert list(steps("columns[0].expression")) == ["columns", 0, "expression"]
    assert list(steps("columns.0.name")) == ["columns", 0, "name"]


def test_unknown_operators_are_shown_not_lost(window: MainWindow) -> None:
    document = small()
    document.workflow.nodes["some"] = document.workflow.nodes["some"].model_copy(update={"operator": "from_plugin"})
    hand = opened(window, document)
    made = form(window, "some")
    assert made.editors == {}
    hand.key(Qt.Key.Key_Escape)
    assert hand.view.editor.document.workflow.nodes["some"].settings == {"condition": "a > 1"}


def test_renaming_a_sources_column_offers_to_rename_it_in_the_nodes_behind(window: MainWindow) -> None:
    hand = opened(window, small())
    box = form(window, "rows").editors["columns"]
    assert isinstance(box, MappingEditor)
    key, _ = box.editors[box.rows[0]]
    assert isinstance(key, LineEditor)
    key.line.setFocus()
    key.line.selectAll()
    QTest.keyClicks(key.line, "amount")
    assert window.banner.isVisible()
    assert "amount" in window.banner.text.text()
    window.banner.buttons[0].click()
    nodes = hand.view.editor.document.workflow.nodes
    assert nodes["some"].settings["condition"] == "amount > 1"
    assert nodes["more"].settings["columns"][0]["expression"] == "amount + 1"
    hand.view.editor.analyse_now()
    assert hand.view.editor.analysis.problems == []
    hand.view.editor.stack.setIndex(0)
    assert hand.view.editor.document.workflow.document() == small().workflow.document()


def test_a_columns_way_stands_out_until_something_else_is_selected(window: MainWindow) -> None:
    hand = opened(window, fig1())
    document = hand.view.editor.document
    for node, columns in (("partsupp", {"ps_partkey": "bigint", "ps_suppkey": "bigint", "ps_availqty": "int", "ps_supplycost": "double"}),
                          ("supplier", {"s_suppkey": "bigint", "s_nationkey": "bigint", "s_phone": "string"})):  # fmt: skip
        hand.view.editor.push(changes.set_setting(document, node, "columns", columns))
    hand.view.editor.analyse_now()
    made = form(window, "view_1_by")
    made.columns.asked.emit("out", "total_cost")
    shown = {id_ for id_, item in hand.view.canvas.nodes.items() if not item.dimmed}
    assert {"partsupp", "total_cost", "join", "view_1_by", "view_2"} <= shown
    assert not {"supplier", "view_3", "phone_format"} & shown
    assert hand.view.legend.isVisible()
    hand.key(Qt.Key.Key_Escape)
    hand.view.canvas.select(["join"])
    assert not any(item.dimmed for item in hand.view.canvas.nodes.values())

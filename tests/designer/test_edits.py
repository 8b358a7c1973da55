"""Every edit can be taken back and made again, whatever went before it."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from designer.document import changes, clipboard
from designer.document.analysis import analyse
from designer.document.document import Document
from designer.document.edits import Edit
from designer.document.layout import bends, groups, notes, positions
from designer.document.replacing import replaced
from engine.errors import BadInput
from engine.model.binding import Known
from engine.model.comments import comments_of
from engine.model.file import to_yaml, workflow_from
from engine.model.workflow import Workflow
from engine.model.yamldata import read_yaml
from tests.designer.examples import edits, empty, fig1, small


@given(st.data())
@settings(max_examples=60)
def test_any_sequence_of_edits_is_undone_and_redone_step_by_step(data: st.DataObject) -> None:
    document = data.draw(st.sampled_from([empty, small, fig1]))()
    states, made = [copy.deepcopy(document.workflow.document())], []
    for _ in range(data.draw(st.integers(1, 25))):
        edit = data.draw(edits(document))
        document.apply(edit)
        made.append(edit)
        states.append(copy.deepcopy(document.workflow.document()))
        if not edit:
            assert states[-1] == states[-2]
    for edit, before in zip(reversed(made), reversed(states[:-1]), strict=True):
        document.apply(edit.inverse())
        assert document.workflow.document() == before
    for edit, after in zip(made, states[1:], strict=True):
        document.apply(edit)
        assert document.workflow.document() == after


@given(st.data())
@settings(max_examples=40)
def test_edits_leave_a_workflow_that_can_be_saved_and_read_and_two_merged_are_one(data: st.DataObject) -> None:
    document = data.draw(st.sampled_from([empty, small, fig1]))()
    start = copy.deepcopy(document.workflow.document())
    whole: Edit | None = None
    for _ in range(data.draw(st.integers(1, 15))):
        edit = data.draw(edits(document))
        document.apply(edit)
        whole = whole.then(edit) if whole else edit
    text = to_yaml(document.workflow)
    assert to_yaml(workflow_from(read_yaml(text, "text")[0], "text")) == text
    assert set(positions(document.workflow)) == set(document.workflow.nodes)
    for edge in document.workflow.edges:
        assert {edge.source, edge.target} <= set(document.workflow.nodes)
    analyse(document)
    assert whole is not None
    document.apply(whole.inverse())
    assert document.workflow.document() == start


@given(st.data())
@settings(max_examples=40)
def test_a_check_that_looks_only_at_what_an_edit_reached_finds_what_a_whole_one_does(data: st.DataObject) -> None:
    document = data.draw(st.sampled_from([empty, small, fig1]))()
    known = Known()
    made: list[Edit] = []
    for _ in range(data.draw(st.integers(1, 20))):
        if made and data.draw(st.booleans()):
            document.apply(made.pop().inverse())
        else:
            edit = data.draw(edits(document))
            document.apply(edit)
            made.append(edit)
        again, whole = analyse(document, known=known), analyse(document)
        assert again.problems == whole.problems
        assert again.bound.schemas == whole.bound.schemas
        assert (again.feeding, again.wings) == (whole.feeding, whole.wings)


def test_only_what_an_edit_reaches_is_checked_again() -> None:
    document, known = small(), Known()
    before = analyse(document, known=known).bound
    document.apply(changes.set_settings(document, "some", {"condition": "no_such > 1"}))
    after = analyse(document, known=known)
    assert [problem.node for problem in after.problems] == ["some"]
    changed = {id_ for id_, operator in after.bound.operators.items() if operator is not before.operators[id_]}
    assert changed == {"some"}
    for spot in (("rows", "out"), ("more", "out")):  # before it, and behind it, where the same columns arrive
        assert after.bound.schemas[spot] is before.schemas[spot] is not None


def edges(document: Document) -> set[str]:
    return {f"{edge.from_} {edge.to}" for edge in document.workflow.edges}


def test_deleting_a_node_that_rows_only_passed_closes_the_gap() -> None:
    document = small()
    document.apply(changes.remove(document, ["some"]))
    assert edges(document) == {"rows.out more.in", "more.out table.in"}


def test_deleting_a_chain_closes_the_gap_over_all_of_it_but_not_between_recordsets() -> None:
    document = small()
    document.apply(changes.remove(document, ["some", "more"]))
    assert edges(document) == set()  # a source into a target would need an activity between them
    document = fig1()
    document.apply(changes.remove(document, ["not_null_partsupp"]))
    assert "partsupp.out total_cost.in" in edges(document)


def test_deleting_a_join_guesses_nothing() -> None:
    document = fig1()
    document.apply(changes.remove(document, ["join"]))
    assert not any("joined.in" in edge for edge in edges(document))


def test_refused_rows_are_never_sent_on_by_healing() -> None:
    document = small()
    document.apply(changes.remove(document, ["some", "more", "table"]))
    edit, node = changes.add_node(document, "not_null", (0, 0), behind=("rows", "out"))
    document.apply(edit)
    edit, errors = changes.add_node(document, "copy", (0, 0), behind=(node, "quarantine"))
    document.apply(edit)
    document.apply(changes.remove(document, [node]))
    assert edges(document) == set()
    assert errors in document.workflow.nodes


def test_a_second_edge_on_a_port_that_takes_one_replaces_the_first() -> None:
    document = small()
    document.apply(changes.connect(document, "rows", "out", "more", "in"))
    assert edges(document) == {"rows.out some.in", "rows.out more.in", "more.out table.in"}


def test_no_edge_makes_a_circle() -> None:
    document = small()
    assert changes.why_not(document, "more", "out", "some", "in") == "the flow would go in a circle"
    assert not changes.connect(document, "more", "out", "some", "in")


def test_an_operator_dropped_on_an_edge_stands_between_its_ends_in_one_step() -> None:
    document = small()
    edit, node = changes.add_node(document, "sort", (0, 0), on_edge=document.workflow.edges[1])
    document.apply(edit)
    assert {f"some.match {node}.in", f"{node}.out more.in"} <= edges(document)
    document.apply(edit.inverse())
    assert edges(document) == edges(small())


def test_what_is_copied_is_text_that_another_window_can_paste() -> None:
    source, target = fig1(), empty()
    text = clipboard.copied(source, ["partsupp", "not_null_partsupp"])
    assert "papilio: 1" in text
    edit, ids = clipboard.pasted(target, text, None)
    target.apply(edit)
    assert sorted(ids) == ["not_null_partsupp", "partsupp"]
    assert edges(target) == {"partsupp.out not_null_partsupp.in"}
    assert set(target.workflow.roots) == {"data"}
    assert set(target.workflow.parameters) == {"data_folder"}
    edit, again = clipboard.pasted(target, text, None)
    target.apply(edit)
    assert sorted(again) == ["not_null_partsupp_2", "partsupp_2"]


@pytest.mark.parametrize(
    "text", ["", "hello", "- 1", "papilio: 1", "papilio: 99\nnodes: {}", "a: [", "papilio: 1\nnodes: 3"]
)
def test_pasting_something_else_is_a_message_and_changes_nothing(text: str) -> None:
    with pytest.raises(BadInput):
        clipboard.pasted(small(), text, None)


def test_a_node_without_the_settings_it_needs_still_has_its_ports() -> None:
    document = empty()
    edit, node = changes.add_node(document, "router", (0, 0))
    document.apply(edit)
    assert [port.name for port in document.ports.of(node).inputs] == ["in"]
    routes = [{"port": "big", "condition": "a > 1"}, {"port": "small", "condition": "a <= 1"}]
    document.apply(changes.set_setting(document, node, "routes", routes))
    assert [port.name for port in document.ports.of(node).outputs] == ["big", "small", "rest"]


def test_a_new_id_takes_edges_place_and_groups_along() -> None:
    document = small()
    document.apply(changes.change_id(document, "some", "few"))
    assert {"rows.out few.in", "few.match more.in"} <= edges(document)
    assert positions(document.workflow)["few"] == (220.0, 0.0)


WHOLE = """# ours
papilio: 1
name: Nightly
description: What changed
parameters: {day: {default: 3}}
roots: {data: elsewhere}
nodes: {rows: {operator: csv_source, settings: {path: x}}, other: {operator: sort}}
edges: [{from: rows.out, to: other.in}]
plan: {pin: {other: external_sort}, memory_rows: 9}
elastic: {pool: 12, rate: {kind: ramp, from_rows_s: 1, to_rows_s: 9, seconds: 60}}
layout: {nodes: {rows: [5, 6]}, notes: {n: {text: why, at: [1, 2], size: [80, 60]}}, later: 7}
only_later: [1, 2]
"""


def test_a_document_becomes_another_in_every_field_and_back_again() -> None:
    data = read_yaml(WHOLE, "text")[0]
    assert set(data) >= set(Workflow.model_fields), "every field there is"
    other = Document(workflow_from(data, "text"), fig1().catalogue)
    other.comments = comments_of(WHOLE)
    for start in (empty, small, fig1):
        document = start()
        before, text = document.workflow.document(), document.text()
        edit = replaced(document, other, "Read again")
        document.apply(edit)
        assert document.workflow.document() == other.workflow.document()
        assert document.text() == other.text()
        assert not replaced(document, other, "Read again")
        document.apply(edit.inverse())
        assert document.workflow.document() == before
        assert document.text() == text


RATE = {"kind": "ramp", "from_rows_s": 1, "to_rows_s": 9, "seconds": 60}


def test_a_limit_that_is_written_out_although_it_is_the_default_counts() -> None:
    one, other = (Document(Workflow.model_validate({"elastic": limits}), fig1().catalogue)
                  for limits in ({"rate": RATE}, {"rate": RATE, "pool": 12}))  # fmt: skip
    one.apply(replaced(one, other, "Read again"))
    assert one.workflow.document() == other.workflow.document()


def test_what_is_copied_keeps_its_bends_and_its_whole_groups_and_every_note() -> None:
    document = small()
    layout = document.workflow.layout
    layout["bends"] = {"some.match → more.in": [400, 90, 420, 90]}
    layout["groups"] = {"group": {"title": "Cleansing", "nodes": ["some", "more"], "collapsed": False}}
    note = {"text": "why", "at": [0, 300], "size": [80, 60]}
    layout["notes"] = {"note": note, "note_2": note}
    edit, _ = clipboard.pasted(document, clipboard.copied(document, ["some", "more"], ["note", "note_2"]), None)
    document.apply(edit)
    assert bends(document.workflow)["some_2.match → more_2.in"] == [(440.0, 130.0), (460.0, 130.0)]
    assert groups(document.workflow)["group_2"].nodes == ("some_2", "more_2")
    assert groups(document.workflow)["group"].nodes == ("some", "more")
    assert len(notes(document.workflow)) == 4
    part = read_yaml(clipboard.copied(document, ["some"]), "text")[0]
    assert set(part["layout"]) == {"nodes"}, "half a group is none"

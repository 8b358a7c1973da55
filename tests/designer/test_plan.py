"""The plan explorer: plans listed, drawn and explained, wishes as undo steps that the file keeps, offers for views."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from designer.commands.registry import commands
from designer.document.changes import change_id, remove
from designer.document.document import Document
from designer.plan import changes, panel
from designer.plan.drawing import EdgeSorter
from designer.plan.explore import Explored, explore
from designer.plan.panel import COST, SIGNATURE, PlanPanel
from designer.window.window import MainWindow
from engine.experiments.generate import generate
from engine.experiments.planning import FIG_6
from engine.model.file import load
from engine.operators import catalogue
from tests.designer.conftest import opened
from tests.end_to_end.helpers import WORKFLOWS

BALANCED = WORKFLOWS / "plan_balanced.butterfly.yaml"


def shipped(name: str) -> Document:
    return Document.open(WORKFLOWS / f"{name}.butterfly.yaml", catalogue())


def planned(window: MainWindow, qtbot) -> PlanPanel:
    """The explorer with its plans there."""
    window.show_dock("plan")
    QApplication.processEvents()
    explorer = window.plan
    explorer.plan_now()
    qtbot.waitUntil(lambda: explorer.said.text() not in ("", "Planning…"), timeout=10_000)
    return explorer


def replanned(explorer: PlanPanel, qtbot) -> None:
    """Wait until what was changed has been planned."""
    assert explorer.editor is not None
    explorer.editor.analyse_now()
    explorer.plan_now()
    qtbot.waitUntil(lambda: explorer.said.text() != "Planning…", timeout=10_000)


@pytest.fixture
def balanced(window, qtbot) -> PlanPanel:
    opened(window, shipped("plan_balanced"))
    return planned(window, qtbot)


def test_the_explorer_is_made_when_it_is_first_asked_for_and_the_keyboard_is_in_it(window, qtbot):
    assert "plan" not in vars(window)
    hand = opened(window, shipped("plan_balanced"))
    hand.key(Qt.Key.Key_7, Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier)
    assert window.plan.isVisible()
    assert window.plan.isAncestorOf(window.focusWidget())
    qtbot.waitUntil(lambda: window.plan.list.topLevelItemCount() == len(FIG_6), timeout=10_000)
    other = opened(window, shipped("fig1"))
    assert window.plan.editor is other.view.editor


def test_the_published_table_is_listed_and_the_best_plan_is_drawn(window, balanced):
    rows = [balanced.list.topLevelItem(number) for number in range(balanced.list.topLevelItemCount())]
    assert [(row.text(SIGNATURE), int(row.text(COST).replace(",", ""))) for row in rows] == [
        (signature, cost) for signature, cost, _, _ in FIG_6
    ]
    assert [(int(row.text(1)), int(row.text(2).replace(",", ""))) for row in rows] == [
        (sorters, cost) for _, _, sorters, cost in FIG_6
    ]
    assert balanced.signature == FIG_6[1][0]  # of the two cheapest the one with fewer sorters
    assert "181 signatures, all looked at" in balanced.said.text()
    assert balanced.drawing is not None
    assert balanced.drawing.ways == {"1": "F", "2": "SO", "3": "MJ", "4": "SO", "5": "SO"}
    (diamond,) = (item for item in window.view.canvas.items() if isinstance(item, EdgeSorter))
    assert (diamond.edge.edge.source, diamond.edge.edge.target, diamond.text) == ("1", "3", "A")
    balanced.list.setCurrentItem(rows[3])
    assert balanced.drawing.recordsets == {"S": "A", "V": "B"}
    assert not any(isinstance(item, EdgeSorter) for item in window.view.canvas.items())
    balanced.drawn.setChecked(False)
    assert balanced.drawing.ways == balanced.drawing.recordsets == {}


def test_a_diamond_goes_with_its_edge(window, balanced):
    canvas = window.view.canvas
    (diamond,) = (item for item in canvas.items() if isinstance(item, EdgeSorter))
    before = diamond.scenePos()
    canvas.shift({"1"}, 60.0, 90.0)
    QApplication.processEvents()
    assert diamond.scenePos() != before
    on_edge = diamond.edge.path().toSubpathPolygons()
    assert any(abs(point.y() - diamond.pos().y()) < 60 for line in on_edge for point in line)


def test_every_cost_line_is_explained_and_leads_to_its_node(window, balanced):
    tree = balanced.costs.tree
    lines = {tree.topLevelItem(number).text(0): tree.topLevelItem(number) for number in range(tree.topLevelItemCount())}
    assert lines["1_3(A)"].text(4) == "sort 10,000 rows (n·log₂ n) = 132,877 + look at 10,000 rows = 10,000"
    assert sum(int(line.text(3).replace(",", "")) for line in lines.values()) == pytest.approx(2_560_021, abs=5)
    lines["3@MJ  ⋈ A"].setSelected(True)
    assert window.view.canvas.selected_nodes() == ["3"]
    assert [balanced.costs.ways.itemData(i) for i in range(balanced.costs.ways.count())] == [
        "MJ",
        "HJ",
        "SMJ",
        "NL",
        "BJ",
    ]
    assert balanced.costs.ways.currentData() == "MJ"
    assert balanced.costs.why.text() == (
        "3@MJ  ⋈ A: go through 50,000 rows in step = 50,000; rows come in order of (A) and (A)"
    )
    tree.clearSelection()
    assert balanced.costs.why.text() == "Choose a line to see why, to pin or to forbid."


def test_pins_bans_and_limits_are_undo_steps_that_the_file_keeps(window, balanced, qtbot, tmp_path):
    editor = balanced.editor
    assert editor is not None
    tree = balanced.costs.tree
    next(line for line in map(tree.topLevelItem, range(9)) if line and line.text(0).startswith("3@")).setSelected(True)
    balanced.costs.ways.setCurrentIndex(1)
    balanced.costs.pin_way()
    replanned(balanced, qtbot)
    assert {plan.implementations["3"] for plan in balanced.found.plans} == {"HJ"}
    assert balanced.drawing is not None
    assert balanced.drawing.pinned == {"3"}
    assert window.history.item(window.history.count() - 1).text() == "Pin ⋈ A to HJ"
    editor.save(tmp_path / "saved.butterfly.yaml")
    assert load(tmp_path / "saved.butterfly.yaml").workflow.plan.pin == {"3": "HJ"}
    assert "3 is pinned" not in balanced.wishes.list.item(0).text()
    assert balanced.wishes.list.item(0).text() == "⋈ A is pinned to HJ"
    balanced.costs.forbid_way()  # what was pinned is no longer
    assert editor.document.workflow.plan.pin == {}
    assert editor.document.workflow.plan.forbid["3"] == ["HJ"]
    balanced.costs.set_limit(100)
    replanned(balanced, qtbot)
    assert "the limit 3=100 asks for 100 at most" in balanced.said.text()
    assert "on the tab Wishes" in balanced.said.text()
    assert balanced.said.objectName() == "wrong"
    assert balanced.list.topLevelItemCount() == 0
    for _ in range(3):
        editor.stack.undo()
    assert editor.document.workflow.plan == load(BALANCED).workflow.plan
    assert balanced.plan is None or balanced.plan.implementations["3"] == "MJ"


def test_wishes_are_taken_back_and_limits_set_as_numbers(window, balanced, qtbot):
    editor = balanced.editor
    assert editor is not None
    wishes = balanced.wishes
    # Two nodes are called γ A: those are told apart by their ids.
    assert [wishes.list.item(i).text() for i in range(3)] == [
        f"γ {key} must not be HB" for key in ("A (2)", "A (4)", "B")
    ]
    wishes.list.setCurrentRow(0)
    wishes.take_back()
    assert editor.document.workflow.plan.forbid == {"4": ["HB"], "5": ["HB"]}
    wishes.memory.setText("5000")
    wishes.memory.editingFinished.emit()
    wishes.resumption.setText("9000000")
    wishes.resumption.editingFinished.emit()
    assert (editor.document.workflow.plan.memory_rows, editor.document.workflow.plan.resumption) == (5_000, 9e6)
    editor.push(changes.set_resumption(editor.document, 2_560_021.5))
    wishes.refresh()
    assert wishes.resumption.text() == "2560021.5"  # to the last digit, in digits
    assert wishes.resumption.hasAcceptableInput()
    editor.stack.undo()
    for _ in range(3):
        editor.stack.undo()
    assert editor.document.workflow.plan == load(BALANCED).workflow.plan


def test_a_pin_that_cannot_be_had_is_told_in_the_canvas_s_words(balanced, qtbot):
    editor = balanced.editor
    assert editor is not None
    editor.push(changes.pin(editor.document, "3", "HJ"))
    editor.push(changes.set_memory(editor.document, 5))
    replanned(balanced, qtbot)
    assert balanced.said.text() == (
        "these cannot be had together: ⋈ A pinned to HJ; at most 5 rows in memory. "
        "What is asked of plans is on the tab Wishes."
    )
    assert balanced.drawing is not None
    assert balanced.drawing.ways == {}  # no plan is drawn that would not be run


def test_wishes_go_with_their_nodes():
    document = shipped("plan_balanced")
    document.apply(changes.pin(document, "3", "HJ"))
    document.apply(changes.add_limit(document, ["3", "4"], 10.0))
    document.apply(change_id(document, "3", "joined"))
    assert document.workflow.plan.pin == {"joined": "HJ"}
    assert document.workflow.plan.limits[0].nodes == ["joined", "4"]
    gone = remove(document, ["joined", "2", "4", "5"])
    document.apply(gone)
    assert document.workflow.plan is None
    document.apply(gone.inverse())
    assert document.workflow.plan.pin == {"joined": "HJ"}


def test_a_view_is_answered_from_a_finer_one_in_one_step_or_stays_as_drawn(window, qtbot):
    opened(window, shipped("order_fork"))
    explorer = planned(window, qtbot)
    editor = explorer.editor
    assert editor is not None
    explorer.tabs.setCurrentWidget(explorer.views)
    explorer.views.list.setCurrentRow(0)
    offer = explorer.views.offer
    assert offer is not None
    assert explorer.tabs.tabText(2) == "Views (1)"
    assert (
        explorer.views.list.item(0)
        .text()
        .startswith(
            "By order can be answered from Order and flag, where By order and flag has summed up the same rows: "
        )
    )
    assert explorer.drawing is not None
    assert explorer.drawing._ghost is not None  # the dashed line from where it would read
    before = editor.document.text()
    explorer.views.take()
    edge = next(edge for edge in editor.document.workflow.edges if edge.target == offer.node)
    assert edge.source == offer.source[0]
    assert editor.document.workflow.nodes[offer.node].settings["aggregates"][0]["expression"] == "sum(`price`)"
    editor.stack.undo()
    assert editor.document.text() == before
    replanned(explorer, qtbot)
    explorer.views.list.setCurrentRow(0)
    explorer.views.leave()
    assert editor.document.workflow.plan.as_drawn == [offer.node]
    replanned(explorer, qtbot)
    assert explorer.tabs.tabText(2) == "Views"
    assert explorer.views.list.item(0).text().startswith("Refused: ")


def test_planning_never_blocks_the_window_and_late_answers_are_not_shown(window, balanced, qtbot, monkeypatch):
    go_on, threads = threading.Event(), []

    def slow(bound, costs):
        threads.append(threading.current_thread())
        assert go_on.wait(10)
        return Explored(costs, problem="too late")

    monkeypatch.setattr(panel, "explore", slow)
    balanced.plan_now()
    qtbot.waitUntil(lambda: bool(threads), timeout=5_000)
    assert balanced.said.text() == "Planning…"
    assert threads[0] is not threading.main_thread()
    monkeypatch.setattr(panel, "explore", explore)
    balanced.plan_now()  # overtakes
    qtbot.waitUntil(lambda: "signatures" in balanced.said.text(), timeout=10_000)
    go_on.set()
    qtbot.wait(100)
    assert "signatures" in balanced.said.text()


def test_a_large_workflow_is_searched_fast_and_says_so(window, qtbot):
    opened(window, Document(generate(60), catalogue()))
    explorer = planned(window, qtbot)
    assert explorer.found.states > 1_000_000
    assert "fast search" in explorer.said.text()
    assert f"{explorer.found.states:,} states are too many to look at" in explorer.said.text()
    assert explorer.list.topLevelItemCount() == 10


def test_what_has_problems_waits_and_a_closed_tab_leaves_nothing(window, qtbot, tmp_path):
    hand = opened(window, shipped("plan_balanced"))
    explorer = planned(window, qtbot)
    editor = explorer.editor
    assert editor is not None
    editor.push(remove(editor.document, ["R"]))
    editor.analyse_now()
    explorer.plan_now()
    assert explorer.said.text() == "Plans come once the workflow has no problems."
    editor.stack.setClean()
    window.close_tab(window.tabs.indexOf(hand.view))
    assert explorer.view is None
    assert explorer.drawing is None
    assert explorer.list.topLevelItemCount() == 0


def test_the_explorer_is_a_command():
    assert commands()["view.dock_plan"].shortcut == "Ctrl+Shift+7"
    assert Path(panel.__file__).parent.name == "plan"

"""What a person asks of a plan is kept, and what cannot be had is named."""

from __future__ import annotations

import pytest

from engine.errors import BadInput
from engine.plan import limited
from engine.plan.constraints import Constraints, Limit, constraints, stretches
from engine.plan.costs import PaperCosts, units
from engine.plan.graph import Graph
from engine.plan.planner import rank
from engine.plan.signature import signature
from engine.plan.space import Plan
from tests.plan.graphs import Sketch, balanced, group, join, right_deep
from tests.plan.published import FIG_6


def best(graph, asked: Constraints):
    ranking = rank(graph, PaperCosts(), asked)
    return ranking.best


def test_a_pinned_implementation_is_the_one_of_every_plan():
    ranking = rank(balanced(), PaperCosts(), constraints([("3", "NL")], []))
    assert {plan.implementations["3"] for plan in ranking.plans} == {"NL"}
    assert round(units(ranking.plans[0].cost)) == 2_943_325 - 130_000 + 10_000 * 40_000


def test_a_pinned_sorted_filter_brings_its_sorter_along():
    plan = best(right_deep(), constraints([("3", "SF")], []))
    assert plan.implementations["3"] == "SF"
    assert "V!" in {position.name for position in plan.sorters}


def test_a_forbidden_implementation_is_in_no_plan():
    ranking = rank(balanced(), PaperCosts(), constraints([], [("3", "MJ"), ("3", "HJ")]))
    assert {plan.implementations["3"] for plan in ranking.plans} == {"SMJ"}


def test_tables_that_do_not_fit_into_memory_are_not_built():
    graph = balanced()
    assert best(graph, constraints([], [("3", "MJ")], memory_rows=10_000)).implementations["3"] == "HJ"
    assert best(graph, constraints([], [("3", "MJ")], memory_rows=9_999)).implementations["3"] == "SMJ"


@pytest.mark.parametrize(
    ("pins", "bans", "message"),
    [
        ([("33", "NL")], [], "there is no node `33`"),
        ([("V", "NL")], [], "`V` is a recordset, for which nothing is chosen"),
        ([("3", "SO")], [], "node `3` has no implementation `SO`; it has MJ, HJ, SMJ, NL"),
        ([], [("3", "XX")], "node `3` has no implementation `XX`"),
        ([("3", "NL"), ("3", "HJ")], [], "`3` is pinned to `NL` and to `HJ`"),
        ([("3", "NL")], [("3", "NL")], "`3` is pinned to `NL`, which is forbidden"),
        ([], [("2", "SO")], r"`2`: all its implementations \(SO\) are forbidden"),
    ],
)
def test_choices_that_cannot_be_made_are_named(pins, bans, message):
    with pytest.raises(BadInput, match=message):
        rank(balanced(), PaperCosts(), constraints(pins, bans))


def test_two_pins_that_need_the_same_rows_in_two_orders_are_named_and_others_are_not():
    draw = Sketch()
    draw.recordset("V", 1_000)
    draw.recordset("D", 1_000)
    draw.activity("1", join("A"), 1_000, "V", "D")
    draw.recordset("X", 1_000, "1")
    draw.activity("2", join("B"), 1_000, "V", "D")
    draw.recordset("Y", 1_000, "2")
    draw.activity("3", group("A"), 100, "X")
    draw.recordset("Z", 100, "3")
    asked = constraints([("1", "MJ"), ("2", "MJ"), ("3", "SO")], [])
    with pytest.raises(BadInput) as error:
        rank(draw.graph(), PaperCosts(), asked)
    assert "`1` pinned to `MJ`; `2` pinned to `MJ`" in str(error.value)
    assert "`3`" not in str(error.value)


def test_memory_that_a_pinned_implementation_exceeds_is_named():
    with pytest.raises(BadInput, match="`3` pinned to `HJ`; at most 5 rows in memory"):
        rank(balanced(), PaperCosts(), constraints([("3", "HJ")], [], memory_rows=5))


def test_a_limit_on_a_part_is_kept_even_if_the_whole_costs_more():
    free = best(right_deep(), Constraints())
    part = frozenset({"6"})
    costly = sum(line.cost for line in free.lines if line.node in part)
    assert units(costly) > 100_000
    plan = best(right_deep(), constraints([], [], limits=[Limit(part, 100_000, "6=100000")]))
    assert units(sum(line.cost for line in plan.lines if line.node in part)) <= 100_000
    assert plan.cost > free.cost


def test_a_limit_that_nothing_keeps_is_named_with_what_is_possible():
    limit = Limit(frozenset({"6"}), 10, "6=10")
    with pytest.raises(BadInput, match="limit 6=10 asks for 10 at most, and the cheapest way costs 80,000"):
        rank(right_deep(), PaperCosts(), constraints([], [], limits=[limit]))
    with pytest.raises(BadInput, match="there is no node `66`; did you mean `6`"):
        rank(right_deep(), PaperCosts(), constraints([], [], limits=[Limit(frozenset({"66"}), 1, "66=1")]))


def test_after_a_failure_no_more_than_the_asked_cost_is_done_again():
    graph = balanced()

    def redone(plan: Plan) -> int:
        parts = [[line.cost for line in plan.lines if line.node in part] for part in stretches(graph)]
        return round(units(max(map(sum, parts))))

    assert [sorted(part) for part in stretches(graph)] == [["1", "3"], ["2"], ["4"], ["5"]]
    assert redone(best(graph, Constraints())) == 1_760_964  # aggregate 2 sorts all of S
    plan = best(graph, constraints([], [], resumption=480_000))
    assert redone(plan) == 476_180  # S is sorted where it is stored; aggregate 5 sorts the body
    assert signature(graph, plan) == FIG_6[0][0]
    with pytest.raises(
        BadInput,
        match=r"each can be kept alone; these cannot be kept together: "
        r"resumption \(4\), at most 450,000; resumption \(5\), at most 450,000$",
    ):
        best(graph, constraints([], [], resumption=450_000))  # 4 and 5 need the body in two orders
    with pytest.raises(BadInput, match=r"the limit resumption \(1, 3\) asks for 1,000 at most"):
        best(graph, constraints([], [], resumption=1_000))


def many_small_views(sorted_views: int = 1) -> Graph:
    """Views that cost much only if they are sorted in place, among many small ones with a choice each."""
    draw = Sketch()
    for number in range(sorted_views):
        draw.recordset(f"V{number}", 100_000)
        draw.recordset(f"X{number}", 10, draw.activity(f"x{number}", group("A", hashing=True), 10, f"V{number}"))
    for number in range(9):
        draw.recordset(f"S{number}", 8)
        draw.recordset(f"T{number}", 4, draw.activity(f"t{number}", group("A", "B", hashing=True), 4, f"S{number}"))
    return draw.graph()


def test_a_limit_is_kept_however_many_cheaper_plans_break_it():
    graph = many_small_views()
    free = rank(graph, PaperCosts(), top=5_000)
    assert {plan.implementations["x0"] for plan in free.plans} == {"HB"}, "none of the 5,000 cheapest sorts"
    limit = Limit(frozenset({"x0"}), 150_000, "x0=150000")
    ranking = rank(graph, PaperCosts(), constraints(limits=[limit]), top=3)
    for plan in ranking.plans:
        assert plan.implementations["x0"] == "SO"
        assert "V0!" in {position.name for position in plan.sorters}
    assert ranking.plans[0].cost > free.plans[-1].cost


def test_limits_that_cannot_be_kept_together_are_named_and_no_others():
    graph = many_small_views(3)
    alone = [Limit(frozenset({f"x{number}"}), 150_000, f"x{number}=150000") for number in range(3)]
    assert len(rank(graph, PaperCosts(), constraints(limits=alone), top=1).best.sorters) == 3
    together = Limit(frozenset({"V0", "x0", "V2", "x2"}), 2_000_000, "V0,x0,V2,x2=2000000")
    with pytest.raises(BadInput) as error:
        rank(graph, PaperCosts(), constraints(limits=[*alone, together]))
    assert str(error.value).endswith(
        "these cannot be kept together: x0=150000, at most 150,000; x2=150000, at most 150,000; "
        "V0,x0,V2,x2=2000000, at most 2,000,000"
    )


def test_too_many_ways_to_keep_the_limits_are_said_so(monkeypatch):
    asked = constraints(limits=[Limit(frozenset({"2", "3", "4", "5"}), 2_500_000, "part")])
    free = rank(right_deep(), PaperCosts(), asked)
    assert free.remarks == ()
    monkeypatch.setattr(limited, "LABELS", 1)
    found = rank(right_deep(), PaperCosts(), asked)
    assert found.remarks == ("too many ways to keep the limits meet: no sorters are tried; better plans may exist",)
    assert found.best.cost >= free.best.cost
    monkeypatch.setattr(limited, "LABELS", 0)
    with pytest.raises(BadInput, match="too many ways to keep the limits meet in one place"):
        rank(right_deep(), PaperCosts(), asked)

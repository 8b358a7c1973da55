"""What is computed once, what is melted together, and what is as cheap to compute again."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.experiments.generate import Shape, generate
from engine.model.binding import bind
from engine.model.operator import Role
from engine.model.workflow import Workflow
from engine.operators import catalogue
from engine.partition.fused import Held, counted_ports, fuse

PARQUET = {"operator": "parquet_source", "settings": {"path": "in/p"}}
CSV = {"operator": "csv_source", "settings": {"path": "in/c.csv", "columns": {"a": "int"}}}
FILTER = {"operator": "filter", "settings": {"condition": "a > 1"}}
SORT = {"operator": "sort", "settings": {"by": [{"column": "a"}]}}
COPY = {"operator": "copy"}
DERIVE = {"operator": "derive", "settings": {"columns": [{"name": "b", "expression": "a + 1"}]}}


def target(name, operator="parquet_target", **settings):
    return {"operator": operator, "settings": {"path": f"out/{name}", **settings}}


def bound_of(nodes, *edges):
    document = {
        "papilio": 1,
        "nodes": nodes,
        "edges": [dict(zip(("from", "to"), edge.split(">"), strict=True)) for edge in edges],
    }
    bound = bind(Workflow.model_validate(document), catalogue())
    assert not bound.errors, [problem.text() for problem in bound.errors]
    return bound


def units(nodes, *edges):
    return {unit.id: (unit.held, unit.nodes, unit.reads) for unit in fuse(bound_of(nodes, *edges)).units}


def test_a_line_is_one_unit():
    found = units({"s": PARQUET, "f": FILTER, "o": SORT, "t": target("t")}, "s>f", "f>o", "o>t")
    assert found == {"t": (Held.TARGET, ("s", "f", "o", "t"), ())}


def test_a_costly_result_that_two_read_is_staged_once():
    nodes = {"s": PARQUET, "o": SORT, "x": COPY, "y": COPY, "t": target("t"), "u": target("u")}
    found = units(nodes, "s>o", "o>x", "o>y", "x>t", "y>u")
    assert found["o"] == (Held.STAGED, ("s", "o"), ())
    assert found["t"] == (Held.TARGET, ("x", "t"), ("o",))


def test_filters_over_columnar_files_are_computed_again_where_that_is_cheaper():
    nodes = {"s": PARQUET, "f": FILTER, "x": COPY, "y": COPY, "t": target("t"), "u": target("u")}
    found = units(nodes, "s>f", "f>x", "f>y", "x>t", "y>u")
    assert set(found) == {"t", "u"}
    assert found["u"][1] == ("s", "f", "y", "u")


def test_text_files_are_not_parsed_twice():
    nodes = {"s": CSV, "x": COPY, "y": COPY, "t": target("t"), "u": target("u")}
    found = units(nodes, "s>x", "s>y", "x>t", "y>u")
    assert found["s"][0] == Held.STAGED


def test_a_target_that_holds_the_rows_serves_the_other_readers():
    nodes = {"s": PARQUET, "o": SORT, "x": COPY, "t": target("t"), "u": target("u")}
    found = units(nodes, "s>o", "o>t", "o>x", "x>u")
    assert found == {"t": (Held.TARGET, ("s", "o", "t"), ()), "u": (Held.TARGET, ("x", "u"), ("t",))}


def test_a_target_that_loses_types_or_holds_older_rows_too_does_not_serve_others():
    for keeper in (target("t", "csv_target"), target("t", mode="append")):
        found = units({"s": PARQUET, "o": SORT, "x": COPY, "t": keeper, "u": target("u")}, "s>o", "o>t", "o>x", "x>u")
        assert found["o"][0] == Held.STAGED


def test_values_that_differ_from_time_to_time_are_computed_once():
    random = {"operator": "derive", "settings": {"columns": [{"name": "r", "expression": "rand()"}]}}
    nodes = {"s": PARQUET, "r": random, "x": COPY, "y": COPY, "t": target("t"), "u": target("u")}
    assert units(nodes, "s>r", "r>x", "r>y", "x>t", "y>u")["r"][0] == Held.STAGED


def test_rows_that_are_counted_on_the_way_are_counted_once():
    check = {"operator": "not_null", "settings": {"columns": ["a"]}}
    nodes = {"s": PARQUET, "n": check, "x": COPY, "y": COPY, "t": target("t"), "u": target("u")}
    assert units(nodes, "s>n", "n>x", "n>y", "x>t", "y>u")["n"][0] == Held.STAGED


def test_both_ports_of_a_split_over_a_costly_input_are_staged_together():
    nodes = {"s": PARQUET, "o": SORT, "f": FILTER, "x": COPY, "y": COPY, "t": target("t"), "u": target("u")}
    found = units(nodes, "s>o", "o>f", "f.match>x", "f.rest>y", "x>t", "y>u")
    assert found["f"] == (Held.STAGED, ("s", "o", "f"), ())


def test_rows_that_are_nearly_as_their_files_have_them_do_not_wait_for_the_target_that_keeps_them():
    nodes = {"s": PARQUET, "d": DERIVE, "x": SORT, "t": target("t"), "u": target("u")}
    edges = ("s>d", "d>t", "d>x", "x>u")
    found = units(nodes, *edges)
    assert found == {"t": (Held.TARGET, ("s", "d", "t"), ()), "u": (Held.TARGET, ("s", "d", "x", "u"), ())}
    for waits in ({"s": CSV}, {"d": FILTER}, {"d": SORT}):  # to parse, perhaps much less than the files hold, dear
        assert units({**nodes, **waits}, *edges)["u"][2] == ("t",)


def test_rows_that_a_check_refuses_are_counted_by_one_of_the_units_that_make_it():
    check = {"operator": "not_null", "settings": {"columns": ["a"]}}
    nodes = {"s": PARQUET, "n": check, "x": SORT, "t": target("t"), "u": target("u")}
    plan = fuse(bound_of(nodes, "s>n", "n>t", "n>x", "x>u"))
    assert [unit.nodes for unit in plan.units if "n" in unit.nodes] == [("s", "n", "t"), ("s", "n", "x", "u")]
    assert plan.counters["n"] == "t"


def test_rows_that_a_plan_keeps_sorted_in_a_target_are_read_from_there():
    nodes = {"s": PARQUET, "d": DERIVE, "x": SORT, "t": target("t"), "u": target("u")}
    bound = bound_of(nodes, "s>d", "d>t", "d>x", "x>u")
    assert fuse(bound, kept=["t"]).unit("u").reads == ("t",)
    assert fuse(bound, there=None).unit("u").reads == ("t",)


def test_who_reads_a_target_whose_rows_are_at_hand_does_not_wait_for_it():
    nodes = {"s": PARQUET, "d": DERIVE, "t": target("t"), "x": SORT, "u": target("u")}
    edges = ("s>d", "d>t", "t>x", "x>u")
    assert units(nodes, *edges)["u"] == (Held.TARGET, ("s", "d", "x", "u"), ())
    for waits in (
        {"s": CSV},
        {"d": FILTER},
        {"t": target("t", mode="append")},
        {"t": target("t", "orc_target", mode="append")},
    ):
        assert units({**nodes, **waits}, *edges)["u"][2] == ("t",)


def test_what_a_killed_run_had_kept_is_read_by_the_run_that_goes_on():
    check = {"operator": "not_null", "settings": {"columns": ["a"]}}
    nodes = {"s": PARQUET, "n": check, "u": target("u"), "x": SORT, "t": target("t")}
    bound = bound_of(nodes, "s>n", "n>t", "n>x", "x>u")
    assert fuse(bound).counters["n"] == "t", "so that what was refused is known with it"
    plan = fuse(bound, there=["t"])
    assert plan.unit("u").reads == ("t",)
    assert plan.counters["n"] == "t"


def test_a_join_is_done_once_and_read_from_its_target():
    join = {"operator": "join", "settings": {"keys": [{"left": "a"}], "right_suffix": "_2"}}
    group = {
        "operator": "aggregate",
        "settings": {"group": ["a"], "aggregates": [{"name": "n", "expression": "count(*)"}]},
    }
    nodes = {"s": PARQUET, "r": PARQUET, "j": join, "g": group, "t": target("t"), "u": target("u")}
    assert units(nodes, "s>j.left", "r>j.right", "j>t", "t>g", "g>u")["u"][2] == ("t",)


def test_the_way_from_a_unit_on_is_as_long_as_the_units_that_wait_for_each_other():
    nodes = {"s": CSV, "o": SORT, "x": SORT, "y": SORT, **{name: target(name) for name in "tuv"}}
    alone = {"c": CSV, "p": COPY, "z": target("z")}
    bound = bound_of({**nodes, **alone}, "s>o", "o>t", "t>x", "x>u", "u>y", "y>v", "c>p", "p>z")
    assert fuse(bound).ways() == {"t": 3, "u": 2, "v": 1, "z": 1}


def test_what_takes_much_work_is_not_done_twice():
    texts = {
        "operator": "derive",
        "settings": {"columns": [{"name": "b", "expression": "sha2(cast(a AS string), 256)"}]},
    }
    pattern = {
        "operator": "derive",
        "settings": {"columns": [{"name": "b", "expression": "cast(a AS string) RLIKE '1+'"}]},
    }
    for costly in (texts, pattern):
        nodes = {"s": PARQUET, "d": costly, "x": SORT, "t": target("t"), "u": target("u")}
        assert units(nodes, "s>d", "d>t", "d>x", "x>u")["u"][2] == ("t",)


@given(st.sampled_from(list(Shape)), st.integers(1, 10_000), st.data())
@settings(max_examples=60, deadline=None)
def test_units_of_any_workflow_run_one_after_the_other_and_count_once_also_after_a_kill(shape, seed, data):
    bound = bind(generate(24, shape, seed), catalogue())
    targets = [node for node in bound.order if bound.role(node) is Role.TARGET]
    plan = fuse(bound)
    done: set[str] = set()
    for unit in plan.units:
        assert set(unit.reads) <= done, "what a unit reads is there before it"
        assert not set(unit.reads) & plan.passed.keys()
        done.add(unit.id)
    assert set(targets) <= done
    for node in bound.order:
        computing = [unit.id for unit in plan.units if node in unit.nodes]
        assert plan.counters[node] in computing
        assert node not in targets or computing == [node], "a target is written once"
    ways = plan.ways()
    for unit in plan.units:
        assert all(ways[read] > ways[unit.id] for read in unit.reads)
        assert ways[unit.id] == 1 or any(
            unit.id in other.reads and ways[other.id] == ways[unit.id] - 1 for other in plan.units
        )

    killed = data.draw(st.integers(0, len(plan.units)), label="units that were done")
    there = {unit.id for unit in plan.units[:killed]}
    after = fuse(bound, there=there)
    for node in bound.order:
        if counted_ports(bound, node):
            before, now = plan.counters[node], after.counters[node]
            assert before == now or not {before, now} & there, "what was refused is told once"

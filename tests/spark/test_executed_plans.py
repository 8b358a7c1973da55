"""What the measured model counts of a plan is what Spark's executed plan does: the same exchanges, the same sorts."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import engine.spark.launch as launching
from engine.model.binding import Bound, bind
from engine.model.file import workflow_from
from engine.model.physical import HashBased, HashJoin, NestedLoops, Step
from engine.operators import catalogue
from engine.plan.apply import applied
from engine.plan.constraints import constraints
from engine.plan.costs import MeasuredCosts
from engine.plan.graph import Graph, graph_of, positions
from engine.plan.planner import Ranking, only, rank
from engine.plan.rows import rows_of
from engine.plan.space import Line, Plan
from engine.spark.launch import launch
from engine.spark.runner import RunSettings
from engine.spark.session import SparkSettings, lent
from engine.spark.staged import StagedResult
from engine.spark.targets import FileDelivery
from engine.store.plans import RunPlan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Moves = dict[str, int]  # how often rows are exchanged and sorted
COLUMNS = {"a": "int", "b": "int", "c": "int"}
COUNT = [{"name": "n", "expression": "count(*)"}]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("executed")
    with duckdb.connect() as database:
        for name, factor in (("r", 7919), ("s", 104729)):
            rows = f"SELECT (i * {factor} % 90)::INT AS a, (i % 13)::INT AS b, (i % 7)::INT AS c FROM range(900) t(i)"
            database.execute(f"COPY ({rows}) TO '{folder}/{name}.parquet' (FORMAT parquet)")
        wide = f"SELECT a::BIGINT AS a, b, c FROM '{folder}/s.parquet'"
        database.execute(f"COPY ({wide}) TO '{folder}/wide.parquet' (FORMAT parquet)")
    return folder


def source(name: str, **types: str) -> dict[str, Any]:
    settings = {"path": f"${{data}}/{name}.parquet", "columns": {**COLUMNS, **types}}
    return {"operator": "parquet_source", "settings": settings, "hints": {"rows": 2_000_000}}


def step(operator: str, **settings: Any) -> dict[str, Any]:
    return {"operator": operator, "settings": settings}


def group(*columns: str, of: tuple[str, ...] = ()) -> dict[str, Any]:
    """Groups with a figure of each column that is not to be left out, as Spark does with those that nobody reads."""
    figures = [{"name": f"m{number}", "expression": f"max({name})"} for number, name in enumerate(of)]
    return step("aggregate", group=list(columns), aggregates=[*COUNT, *figures])


def target(name: str) -> dict[str, Any]:
    return step("parquet_target", path=f"${{out}}/{name}")


def drawn(nodes: dict[str, Any], edges: tuple[str, ...], data: Path, out: Path) -> Bound:
    document = {
        "papilio": 1,
        "name": "executed",
        "roots": {"data": str(data), "out": str(out)},
        "nodes": nodes,
        "edges": [dict(zip(("from", "to"), edge.split(" -> "), strict=True)) for edge in edges],
    }
    bound = bind(workflow_from(document, "executed"), catalogue())
    bound.raise_errors()
    return bound


# ---------------------------------------------------------------- what is counted, and what is done


def counted(graph: Graph, plan: Plan) -> Moves:
    """The exchanges and sorts that a plan's lines count; those of a sorter on a recordset are part of storing it."""
    found = {"exchanges": 0, "sorts": 0}
    for line in plan.lines:
        if line.is_sorter:
            on_edge = not line.name.endswith("!")
            moves = [(on_edge, on_edge)]
        else:
            moves = [_moves(made, graph, line) for made, _ in line.steps]
        found["exchanges"] += sum(exchange for exchange, _ in moves)
        found["sorts"] += sum(sort for _, sort in moves)
    return found


def _moves(made: Step, graph: Graph, line: Line) -> tuple[bool, bool]:
    """Whether a step exchanges rows, and whether it sorts them."""
    activity = graph.activity(line.node)
    assert activity is not None
    (way,) = (one for one in activity.physical.implementations if one.name == line.name)
    assert not isinstance(way, HashJoin | NestedLoops), "which are priced as one"
    if isinstance(way, HashBased):
        return made is Step.GATHER, False
    return made is Step.SORT, made in (Step.SORT, Step.REORDER)


def done(plans: list[str]) -> Moves:
    """The exchanges and sorts of executed plans."""
    text = "\n".join(plans)
    thinned = len(re.findall(r"WindowGroupLimit .*, Partial", text))  # Spark's own: fewer rows are then exchanged
    exchanges = len(re.findall(r"\bExchange (hashpartitioning|rangepartitioning|SinglePartition)", text))
    return {"exchanges": exchanges, "sorts": text.count("Sort [") - thinned}


Check = Callable[[Bound, Ranking, Plan | None], tuple[Moves, Moves]]


@pytest.fixture
def check(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Check:
    """Runs a workflow by a plan as the measured model has it; gives what it counts, and what Spark does."""
    plans: list[str] = []
    store = str(tmp_path_factory.mktemp("store") / "store.db")

    def noting(kind: type, frames: Callable[[Any, Any], list[Any]]) -> None:
        write = kind.write  # type: ignore[attr-defined]

        def noted(self: Any, given: Any) -> None:
            plans.extend(frame._jdf.queryExecution().executedPlan().toString() for frame in frames(self, given))
            write(self, given)

        monkeypatch.setattr(kind, "write", noted)

    noting(FileDelivery, lambda _, frame: [frame])
    noting(StagedResult, lambda self, unit: list(self._frames(unit).values()))

    def check(bound: Bound, ranking: Ranking, plan: Plan | None) -> tuple[Moves, Moves]:
        plans.clear()
        graph, model = ranking.space.graph, MeasuredCosts()
        signature, chosen = "no plan", None
        if plan is not None:
            signature = ranking.signature(plan)
            chosen = RunPlan(signature, 0, model, "signature", applied(graph, plan), (), (), ranking)
        monkeypatch.setattr(launching, "plan_for_run", lambda *_, **__: chosen)
        with lent(spark):
            summary = launch(bound, RunSettings(SparkSettings("local[2]")), store=store)
        assert summary["status"] == "done"
        print("\n".join([signature, *plans]))  # shown where what is asked of them does not hold
        return counted(graph, plan) if plan is not None else {}, done(plans)

    return check


@pytest.fixture
def agrees(check: Check, data: Path, tmp_path: Path) -> Callable[..., None]:
    """One source, one step after the other, and a target; by a signature."""

    def agrees(signature: str, *steps: dict[str, Any], ports: tuple[str, ...] = ()) -> None:
        names = [chr(ord("x") + number) for number in range(len(steps))]
        nodes = {"R": source("r"), **dict(zip(names, steps, strict=True)), "T": target("t")}
        line = ["R", *names, "T"]
        edges = [f"{one} -> {two}" for one, two in pairwise(line)]
        if ports:
            nodes["S"] = source("s")
            edges[0] = f"R -> x.{ports[0]}"
            edges.append(f"S -> x.{ports[1]}")
        bound = drawn(nodes, tuple(edges), data, tmp_path)
        graph = graph_of(bound, rows_of(bound), on_spark=True)
        ranking = only(signature, graph, MeasuredCosts())
        expected, found = check(bound, ranking, ranking.best)
        assert found == expected

    return agrees


UNIQUE_A, UNIQUE_AB = step("deduplicate", keys=["a"]), step("deduplicate", keys=["a", "b"])
RANKED = step("window", partition=["a"], order=[{"column": "b"}], functions=[{"name": "p", "function": "rank()"}])
FALLING = step(
    "window", partition=["a"], order=[{"column": "b", "descending": True}],
    functions=[{"name": "p", "function": "rank()"}],
)  # fmt: skip
COUNTED_AB = step("window", partition=["a", "b"], functions=[{"name": "p", "function": "count(*)"}])
NUMBERED = step("sequence", into="p", partition=["a"], order=[{"column": "b"}])
IN_ORDER = step("sort", by=[{"column": "a"}, {"column": "b"}])


SELECTED = step("select", rename={"c": "d"})
DERIVED = step("derive", columns=[{"name": "d", "expression": "c + 1"}])
HASHED = step("checksum", columns=["c"], into="h")


@pytest.mark.parametrize(
    ("signature", "steps"),
    [
        # One row of each group is the first by all columns: Spark sorts, in the part that a sorter has made.
        ("R.R!(a).x@SO.T", [UNIQUE_A]),
        ("R.R!(b,a).x@SO.T", [UNIQUE_AB]),
        # Groups by fewer columns than the rows before them were sorted by for their own sake.
        ("R.x@SO.y@SO.T", [UNIQUE_AB, group("a")]),
        ("R.x@SO.y@SO.T", [group("a", "b"), group("a")]),
        ("R.x@HB.y@HB.T", [group("a", "b"), group("a")]),
        ("R.x.y@SO.T", [COUNTED_AB, group("a", of=("p",))]),
        # A sorter's order in another arrangement than the groups have it.
        ("R.R!(a,b).x@SO.T", [group("b", "a")]),
        ("R.R!(a,b).x@HB.T", [group("a", "b")]),
        # Groups that are ordered inside.
        ("R.R!(a).x.T", [FALLING]),
    ],
)
def test_what_a_plan_counts_is_what_spark_does(agrees, signature, steps):
    agrees(signature, *steps)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("signature", "steps"),
    [
        ("R.x@SO.T", [UNIQUE_AB]),
        ("R.x@SO.y@HB.T", [UNIQUE_AB, group("a")]),
        ("R.x@SO.y@SO.T", [UNIQUE_AB, group("a", "b")]),
        ("R.x@SO.y@SO.T", [UNIQUE_AB, group("b")]),
        ("R.x@SO.y@HB.T", [group("a", "b"), group("b")]),
        ("R.x.y@SO.T", [COUNTED_AB, group("a", "b", of=("p",))]),
        ("R.R!(a).x@SO.y@SO.T", [UNIQUE_AB, group("a")]),
        ("R.R!(b).x@SO.y@SO.T", [UNIQUE_AB, group("a")]),
        ("R.R!(a,b).x@SO.T", [group("a", "b")]),
        ("R.R!(a,b).x@HB.T", [group("b", "a")]),
        ("R.R!(a).x@SO.y@SO.T", [group("a", "c"), group("a")]),
        ("R.x.x_y(a).y@SO.T", [step("filter", condition="c > 1"), group("a")]),
        ("R.R!(a,b).x.T", [RANKED]),
        ("R.R!(a,b).x.y@SO.T", [RANKED, group("a", "b", of=("p",))]),
        ("R.x.y@SO.T", [FALLING, group("a", of=("p",))]),
        ("R.R!(a).x.T", [NUMBERED]),
        ("R.x.y@SO.T", [NUMBERED, group("a", of=("p",))]),
        ("R.x.T", [IN_ORDER]),
        ("R.x.y@SO.T", [IN_ORDER, group("a")]),
        # Rows pass in their order.
        ("R.x@SO.y.z@SO.T", [UNIQUE_AB, SELECTED, group("a", "b")]),
        ("R.x@SO.y.z@SO.T", [UNIQUE_AB, DERIVED, group("a", "b", of=("d",))]),
        ("R.x@SO.y.z@SO.T", [UNIQUE_AB, step("not_null", columns=["c"]), group("a", "b")]),
        ("R.x@SO.y.z@SO.T", [UNIQUE_AB, HASHED, group("a", "b", of=("h",))]),
    ],
)
def test_what_more_plans_count_is_what_spark_does(agrees, signature, steps):
    agrees(signature, *steps)


def join(*keys: str, **more: Any) -> dict[str, Any]:
    return step("join", keys=[{"left": key} for key in keys], right_suffix="_2", **more)


@pytest.mark.parametrize(
    ("signature", "steps"),
    [
        ("((R.R!(a,b))//(S.S!(a,b))).x@MJ.y@SO.T", [join("a", "b"), group("a")]),
        ("((R.R!(b,a))//(S.S!(b,a))).x@MJ.y@SO.T", [join("a", "b"), group("b")]),
        ("((R)//(S.S!(b,a))).x@SMJ.T", [join("a", "b")]),
        ("((R.R!(a,b))//(S.S!(b,a))).x@SMJ.T", [join("a", "b")]),
        ("((R)//(S)).x@SMJ.T", [join("a", null_safe=True)]),
    ],
)
def test_what_a_join_counts_is_what_spark_does(agrees, signature, steps):
    agrees(signature, *steps, ports=("left", "right"))


@pytest.mark.parametrize(
    ("first", "keys", "signature"),
    [
        (UNIQUE_A, ["a"], "((R.x@SO)//(S.S!(a))).j@MJ.T"),
        (RANKED, ["a", "b"], "((R.x)//(S.S!(a,b))).j@MJ.T"),
    ],
    ids=["unique", "ranked"],
)
def test_what_spark_sorts_itself_meets_a_sorter_in_step(check, data, tmp_path, first, keys, signature):
    nodes = {"R": source("r"), "x": first, "S": source("s"), "j": join(*keys), "T": target("t")}
    bound = drawn(nodes, ("R -> x", "x -> j.left", "S -> j.right", "j -> T"), data, tmp_path)
    ranking = only(signature, graph_of(bound, rows_of(bound), on_spark=True), MeasuredCosts())
    expected, found = check(bound, ranking, ranking.best)
    assert found == expected


@pytest.mark.parametrize(
    ("first", "keys", "signature"),
    [
        (UNIQUE_A, ["a", "b"], "((R.x@SO)//(S.S!(a,b))).j@SMJ.T"),
        (FALLING, ["b", "a"], "((R.x)//(S.S!(b,a))).j@SMJ.T"),
        (COUNTED_AB, ["a", "b"], "((R.x)//(S.S!(b,a))).j@SMJ.T"),
        (UNIQUE_AB, ["a", "b"], "((R.x@SO)//(S)).j@SMJ.T"),
    ],
    ids=["unique", "ranked", "in another order", "in order itself"],
)
def test_the_side_of_a_sort_merge_join_that_is_in_order_stays_as_it_is(check, data, tmp_path, first, keys, signature):
    """Whatever Spark has divided the other side by before, which it could make do with."""
    nodes = {"R": source("r"), "x": first, "S": source("s"), "j": join(*keys), "T": target("t")}
    bound = drawn(nodes, ("R -> x", "x -> j.left", "S -> j.right", "j -> T"), data, tmp_path)
    ranking = only(signature, graph_of(bound, rows_of(bound), on_spark=True), MeasuredCosts())
    expected, found = check(bound, ranking, ranking.best)
    assert found == expected


@pytest.mark.parametrize(
    "signature",
    ["((R.R!(a))//(S.S!(a))).x@MJ.y@SO.T", "((R.R!(a))//(S)).x@SMJ.y@HB.T", "((R)//(S.S!(a))).x@SMJ.y@HB.T"],
)
def test_rows_that_are_known_elsewhere_are_found_in_step(agrees, signature):
    exists = step("exists", keys=[{"main": "a", "reference": "a"}])
    agrees(signature, exists, group("c" if "HB" in signature else "a"), ports=("main", "reference"))


def test_a_sorter_is_by_the_key_of_a_join_that_those_behind_it_name(check, data, tmp_path):
    """To Spark, rows that are divided by one of two equal columns are not divided by the other one."""
    by_other = step("join", keys=[{"left": "a", "right": "b"}], right_suffix="_2")
    nodes = {"R": source("r"), "S": source("s"), "j": by_other, "V": target("v"), "g": group("b_2"), "T": target("t")}
    edges = ("R -> j.left", "S -> j.right", "j -> V", "V -> g", "g -> T")
    bound = drawn(nodes, edges, data, tmp_path)
    graph = graph_of(bound, rows_of(bound), on_spark=True)
    ranking = only("((R)//(S)).j@SMJ.V.V!(b_2).g@SO.T", graph, MeasuredCosts())
    expected, found = check(bound, ranking, ranking.best)
    assert found == expected == {"exchanges": 2, "sorts": 2}  # those of the join


@pytest.mark.parametrize("operator", ["join", "lookup", "exists"])
def test_keys_of_different_types_make_no_use_of_an_order(check, data, tmp_path, operator):
    """Spark converts one of them, and its rows are then divided and sorted by no column that they have."""
    keys = [{"left": "a"}] if operator == "join" else [{"main": "a", "reference": "a"}]
    more = {"join": {"right_suffix": "_2"}, "lookup": {"take": [{"column": "b", "name": "d"}]}}.get(operator, {})
    ports = ("left", "right") if operator == "join" else ("main", "reference")
    nodes = {
        "R": source("r"), "S": source("wide", a="bigint"), "u": UNIQUE_A, "j": step(operator, keys=keys, **more),
        "T": target("t"),
    }  # fmt: skip
    edges = (f"R -> j.{ports[0]}", "S -> u", f"u -> j.{ports[1]}", "j.match -> T" if operator == "exists" else "j -> T")
    graphs = []
    for kind in ("bigint", "int"):
        nodes["S"] = source("wide" if kind == "bigint" else "s", a=kind)
        bound = drawn(nodes, edges, data, tmp_path)
        graphs.append((bound, graph_of(bound, rows_of(bound), on_spark=True)))
    (converted, of_two), (_, of_one) = graphs
    assert [position.name for position in positions(of_two)] == ["S!"]  # for those that are to be unique
    assert [position.name for position in positions(of_one)] == ["R!", "S!", "u_j"]
    ranking = only("((R)//(S.u@SO)).j@SMJ.T", of_two, MeasuredCosts())
    expected, found = check(converted, ranking, ranking.best)
    assert expected["exchanges"] >= 3
    assert found["exchanges"] <= expected["exchanges"]
    assert found["sorts"] <= expected["sorts"]


@pytest.mark.parametrize(
    "passing",
    [step("sample", fraction=0.9), step("limit", rows=500), step("unpivot", keep=["a", "b"], columns=["c"])],
    ids=lambda passing: passing["operator"],
)
def test_behind_what_spark_forgets_an_order_at_a_sorter_is_credited_with_nothing(passing, data, tmp_path):
    edges = ("R -> x", "x -> y", "y -> T")
    bound = drawn({"R": source("r"), "x": passing, "y": group("a", "b"), "T": target("t")}, edges, data, tmp_path)
    graph = graph_of(bound, rows_of(bound), on_spark=True)
    assert [position.name for position in positions(graph)] == ["x_y"]
    assert all(line.takes == ((),) for plan in rank(graph, MeasuredCosts()).plans for line in plan.lines[:1])


# ---------------------------------------------------------------- any workflow, any plan


@st.composite
def flows(draw: st.DrawFn) -> tuple[dict[str, Any], tuple[str, ...]]:
    """One or two lines of steps, perhaps joined, and a target; now and then a staging area between two steps."""
    nodes: dict[str, Any] = {}
    edges: list[str] = []

    def some_of(columns: list[str]) -> list[str]:
        return draw(st.permutations(columns))[: draw(st.integers(1, min(2, len(columns))))]

    def line(name: str, most: int, columns: list[str]) -> tuple[str, list[str], list[str]]:
        """Its last step, the columns that are left, and those that a figure must read: Spark would not make them."""
        at = name
        made: list[str] = []
        last = draw(st.integers(1, most)) - 1
        for number in range(last + 1):
            id_ = f"{name.lower()}{number}"
            some = some_of(columns)
            match draw(st.sampled_from(["filter", "unique", "group", "window", "sequence", "staging"])):
                case "unique":
                    nodes[id_] = step("deduplicate", keys=some)
                case "group":
                    nodes[id_], columns = group(*some, of=tuple(made)), some
                    made = []
                case "window":
                    order = [{"column": columns[0], "descending": draw(st.booleans())}]
                    functions = [{"name": f"w{id_}", "function": "rank()"}]
                    nodes[id_] = step("window", partition=some, order=order, functions=functions)
                    made.append(f"w{id_}")
                case "sequence":
                    nodes[id_] = step("sequence", into=f"q{id_}", partition=some, order=[{"column": columns[-1]}])
                    made.append(f"q{id_}")
                case "staging" if 0 < number < last and nodes[at]["operator"] != "staging":
                    nodes[id_] = step("staging")
                case _:
                    nodes[id_] = step("filter", condition=f"{some[0]} >= 0")
            edges.append(f"{at} -> {id_}")
            at = id_
        return at, columns, made

    nodes["R"] = source("r")
    last, columns, made = line("R", 3, ["a", "b", "c"])
    if draw(st.booleans()):
        nodes["S"] = source("s")
        other, others, more = line("S", 2, ["a", "b", "c"])
        shared = [name for name in columns if name in others]
        if shared:
            nodes["j"] = join(*some_of(shared))
            edges += [f"{last} -> j.left", f"{other} -> j.right"]
            last = "j"
            made += more
        else:
            nodes["U"] = target("u")
            edges.append(f"{other} -> U")
    if draw(st.booleans()):
        nodes["g"] = group(*some_of(columns), of=tuple(made))
        edges.append(f"{last} -> g")
        last = "g"
    nodes["T"] = target("t")
    edges.append(f"{last} -> T")
    return nodes, tuple(edges)


@pytest.mark.slow
@given(flow=flows(), chance=st.randoms(use_true_random=False))
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_spark_never_does_more_than_a_plan_counts_and_gives_the_same_rows(check, data, tmp_path_factory, flow, chance):
    """It may do less: groups that were hashed stay in their parts, of which the model makes nothing."""
    out = tmp_path_factory.mktemp("random")
    bound = drawn(*flow, data, out / "planned")
    graph = graph_of(bound, rows_of(bound), on_spark=True)
    bans = [("j", way) for way in ("HJ", "NL", "BJ")] if "j" in graph.nodes else []
    ranking = rank(graph, MeasuredCosts(), constraints(bans=bans), 300)
    expected, found = check(bound, ranking, chance.choice(ranking.plans))
    assert found["exchanges"] <= expected["exchanges"]
    assert found["sorts"] <= expected["sorts"]
    check(drawn(*flow, data, out / "plain"), ranking, None)
    assert rows_in(out / "planned") == rows_in(out / "plain")


def rows_in(folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    """What the targets hold, in an order that does not mind how they were written."""
    with duckdb.connect() as database:
        return {
            name.name: sorted(database.sql(f"SELECT * FROM read_parquet('{name}/*.parquet')").fetchall(), key=repr)
            for name in sorted(folder.iterdir())
            if name.is_dir()
        }

"""Plans on Spark: what a sorter makes is used by those behind it, and every plan gives the same targets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.events import LogReader, PlanChosen
from engine.model.binding import Bound, bind
from engine.model.file import load, workflow_from
from engine.operators import catalogue
from engine.plan.constraints import constraints
from engine.plan.costs import MeasuredCosts, PaperCosts
from engine.plan.graph import graph_of
from engine.plan.planner import rank
from engine.plan.rows import rows_of
from engine.spark.launch import launch
from engine.spark.runner import RunSettings, ScheduleSettings
from engine.spark.session import SparkSettings, lent
from engine.spark.targets import FileDelivery
from engine.store import MetadataStore
from tests.end_to_end.helpers import WORKFLOWS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Rows = dict[str, list[tuple[Any, ...]]]
Run = Callable[[Bound, str], dict[str, Any]]

BALANCED = WORKFLOWS / "plan_balanced.butterfly.yaml"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plan")
    numbers = (
        "SELECT (i * {0} % 15000)::INT AS A, (i % 37)::INT AS B, CASE WHEN i % 9 > 0 THEN (i % 11)::INT END AS C "
        "FROM range({1}) t(i)"
    )
    with duckdb.connect() as database:
        for name, factor, rows in (("r", 7919, 2_000), ("s", 104729, 3_000)):
            database.execute(f"COPY ({numbers.format(factor, rows)}) TO '{folder}/{name}.parquet' (FORMAT parquet)")
    return folder


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("store") / "store.db")


@pytest.fixture(scope="module")
def run(spark: SparkSession, store: str) -> Run:
    """Runs a workflow by a plan on the shared session."""

    def run(bound: Bound, plan: str, **more: Any) -> dict[str, Any]:
        with lent(spark):
            return launch(bound, RunSettings(SparkSettings("local[2]"), plan=plan, **more), store=store)

    return run


def balanced(data: Path, out: Path) -> Bound:
    bound = bind(
        load(BALANCED), catalogue(), parameters={"data_folder": str(data), "warehouse_folder": str(out)}
    )  # fmt: skip
    bound.raise_errors()
    return bound


def rows_in(bound: Bound) -> Rows:
    """What every target holds, in an order that does not mind how it was written."""
    found = {}
    for node, operator in bound.operators.items():
        if operator.name == "parquet_target":
            path = bound.place().path(operator.path)  # type: ignore[attr-defined]
            with duckdb.connect() as database:
                rows = database.sql(f"SELECT * FROM read_parquet('{path}/*.parquet')").fetchall()
            found[node] = sorted(rows, key=repr)
    return found


def plans_of(bound: Bound, top: int) -> list[str]:
    """The cheapest plans by both models."""
    found: dict[str, None] = {}
    for model in (PaperCosts(), MeasuredCosts()):
        ranking = rank(graph_of(bound, rows_of(bound)), model, constraints(planning=bound.workflow.plan), top)
        found.update(dict.fromkeys(map(ranking.signature, ranking.plans)))
    return list(found)


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What Spark was to do for each target that was loaded."""
    found: dict[str, str] = {}
    write = FileDelivery.write

    def noting(self: FileDelivery, frame: Any) -> None:
        found[self.node] = frame._jdf.queryExecution().executedPlan().toString()
        write(self, frame)

    monkeypatch.setattr(FileDelivery, "write", noting)
    return found


def test_what_a_sorter_makes_is_used_and_told(run, spark, data, store, executed, tmp_path):
    before = dict(spark.conf.getAll)
    bound = balanced(data, tmp_path / "none")
    summary = run(bound, "none")
    assert summary["plan"] is None
    assert "Exchange" in executed["Z"]
    expected = rows_in(bound)
    assert min(map(len, expected.values())) > 0

    signature = "((R.1.1_3(A))//(S.2@SO.P.P!(A))).3@MJ.V.V!(A).((4@SO.Z)//(5@SO.W))"
    planned = balanced(data, tmp_path / "planned")
    summary = run(planned, signature)
    assert rows_in(planned) == expected
    assert dict(spark.conf.getAll) == before  # the session is lent: it and its catalogue are left as they were
    assert spark.catalog.listTables() == []
    assert "Exchange" not in executed["Z"]  # the rows of V are divided and sorted by A
    assert "SortAggregate" in executed["Z"]
    assert " Sort " not in executed["Z"]
    assert "SortAggregate" in executed["W"]  # sort-based, as the signature says: sorted on its way in
    assert " Sort " in executed["W"]
    join = executed["V"]
    assert join.count("Exchange") == join.count("Sort [") == 1  # of R's rows, on the edge; P comes in order
    assert "SortMergeJoin" in join

    assert summary["plan"]["signature"] == signature
    assert summary["plan"]["model"] == "measured"
    assert [sorter["position"] for sorter in summary["plan"]["sorters"]] == ["P!", "1_3", "V!"]
    events = list(LogReader(Path(summary["folder"]) / "events.jsonl"))
    (told,) = (event for event in events if isinstance(event, PlanChosen))
    assert told.signature == signature
    assert told.implementations["3"] == "MJ"
    with MetadataStore(store) as opened:
        assert signature in {plan.signature for plan in opened.list_plans(bound.name)}
        record = opened.get_run(summary["run"])
    assert record is not None
    assert record.summary["plan"]["signature"] == signature


@pytest.mark.parametrize(
    ("condition", "order"), [("A < 4000", "A"), ("A >= 196000", "A desc")], ids=["ascending", "descending"]
)
def test_a_sorted_filter_skips_most_of_the_rows_that_a_sorter_stored_for_it(
    run, tmp_path, monkeypatch, condition, order
):
    rows = 200_000
    with duckdb.connect() as database:
        numbers = f"SELECT (i * 7919 % {rows})::INT AS A, uuid()::VARCHAR AS filler FROM range({rows}) t(i)"
        database.execute(f"COPY ({numbers}) TO '{tmp_path}/r.parquet' (FORMAT parquet)")
    document = {
        "papilio": 1,
        "name": "sorted_filter",
        "roots": {"here": str(tmp_path)},
        "nodes": {
            "R": {
                "operator": "parquet_source",
                "settings": {"path": "${here}/r.parquet", "columns": {"A": "int", "filler": "string"}},
                "hints": {"rows": rows},
            },
            "f": {"operator": "filter", "settings": {"condition": condition}, "hints": {"rows": 4_000}},
            "T": {"operator": "parquet_target", "settings": {"path": "${here}/t"}},
        },
        "edges": [{"from": "R", "to": "f"}, {"from": "f.match", "to": "T"}],
    }
    scanned: list[int] = []
    write = FileDelivery.write

    def counting(self: FileDelivery, frame: Any) -> None:
        scanned.append(_scanned(frame))
        write(self, frame)

    monkeypatch.setattr(FileDelivery, "write", counting)
    answers = []
    for plan in ("none", f"R.R!({order}).f.T"):
        bound = bind(workflow_from(document, "sorted_filter"), catalogue())
        bound.raise_errors()
        summary = run(bound, plan)
        assert summary["targets"]["T"]["rows"] == 4_000
        answers.append(rows_in(bound))
    assert answers[0] == answers[1]
    assert scanned[0] == rows
    assert scanned[1] < rows / 2


def test_a_descending_sorter_serves_the_filter_and_the_groups_behind_it(run, data, executed, tmp_path):
    """A filter from above wants rows from the greatest value down; groups do not mind, and get no exchange, no sort."""
    nodes = {
        "R": {
            "operator": "parquet_source",
            "settings": {"path": "${data}/r.parquet", "columns": {"A": "int", "B": "int", "C": "int"}},
            "hints": {"rows": 2_000},
        },
        "f": {"operator": "filter", "settings": {"condition": "A >= 100"}, "hints": {"rows": 1_900}},
        "g": {
            "operator": "aggregate",
            "settings": {"group": ["A"], "aggregates": [{"name": "n", "expression": "count(*)"}]},
            "hints": {"rows": 1_500},
        },
        "T": {"operator": "parquet_target", "settings": {"path": "${out}/t"}},
    }
    edges = [{"from": "R", "to": "f"}, {"from": "f.match", "to": "g"}, {"from": "g", "to": "T"}]
    answers = {}
    for plan in ("none", "R.R!(A desc).f.g@SO.T"):
        document = {
            "papilio": 1, "name": "down", "roots": {"data": str(data), "out": str(tmp_path / plan[:4])},
            "nodes": nodes, "edges": edges,
        }  # fmt: skip
        bound = bind(workflow_from(document, "down"), catalogue())
        bound.raise_errors()
        run(bound, plan)
        answers[plan] = rows_in(bound), executed["T"]
    (plain, by_itself), (same, planned) = answers.values()
    assert plain == same
    assert "Exchange" in by_itself
    assert "Exchange" not in planned
    assert " Sort " not in planned
    assert "SortAggregate" in planned


@pytest.mark.parametrize(
    ("signature", "operator", "others"),
    [
        ("((R)//(S)).x@BJ.T", "BroadcastHashJoin", "Exchange hashpartitioning"),
        ("((R)//(S)).x@HJ.T", "ShuffledHashJoin", "SortMergeJoin"),
        ("((R)//(S)).x@SMJ.T", "SortMergeJoin", "HashJoin"),
        ("((R)//(S)).x@NL.T", "CartesianProduct", "SortMergeJoin"),
        ("R.R!(A).x@SO.T", "SortAggregate", "HashAggregate"),
        ("R.R!(A).x@HB.T", "HashAggregate", "SortAggregate"),
    ],
)
def test_an_activity_is_carried_out_as_the_signature_says(run, data, executed, tmp_path, signature, operator, others):
    def source(name: str) -> dict[str, Any]:
        columns = {"A": "int", "B": "int", "C": "int"}
        settings = {"path": f"${{data}}/{name}.parquet", "columns": columns}
        return {"operator": "parquet_source", "settings": settings, "hints": {"rows": 2_000}}

    total = {"group": ["A"], "aggregates": [{"name": "n", "expression": "sum(B)"}]}
    nodes: dict[str, Any] = {"R": source("r"), "x": {"operator": "aggregate", "settings": total}}
    edges = [("R", "x"), ("x", "T")]
    if "S" in signature.split(".x@")[0]:
        joined = {"keys": [{"left": "A"}], "right_suffix": "_2"}
        nodes |= {"S": source("s"), "x": {"operator": "join", "settings": joined}}
        edges = [("R", "x.left"), ("S", "x.right"), ("x", "T")]
    nodes["T"] = {"operator": "parquet_target", "settings": {"path": "${out}/t"}}
    document = {
        "papilio": 1, "name": "as_said", "roots": {"data": str(data), "out": str(tmp_path)},
        "nodes": nodes, "edges": [{"from": one, "to": other} for one, other in edges],
    }  # fmt: skip
    bound = bind(workflow_from(document, "as_said"), catalogue())
    bound.raise_errors()
    run(bound, signature)
    assert operator in executed["T"]
    assert others not in executed["T"].replace(operator, "")


def _scanned(frame: Any) -> int:
    """The rows that leave the scan, before the filter looks at each."""
    frame.collect()
    nodes = [frame._jdf.queryExecution().executedPlan()]
    while nodes:
        node = nodes.pop()
        if "Scan" in node.nodeName():
            return int(node.metrics().apply("numOutputRows").value())
        nodes += [node.children().apply(index) for index in range(node.children().size())]
    raise AssertionError("no scan")


def test_rows_that_travel_in_packs_have_implementations_but_no_sorters(run, data, tmp_path):
    from engine.errors import BadInput
    from engine.partition.granularity import Granularity

    packs = ScheduleSettings(granularity=Granularity.SUBFLOW)
    with pytest.raises(BadInput, match="rows that travel in packs"):
        run(balanced(data, tmp_path), "((R.1)//(S.S!(A).2@SO.P)).3@HJ.V.((4@SO.Z)//(5@SO.W))", schedule=packs)
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- every plan gives the same targets


@pytest.mark.slow
def test_every_published_plan_gives_the_same_targets(run, data, tmp_path):
    bound = balanced(data, tmp_path / "none")
    run(bound, "none")
    expected = rows_in(bound)
    for number, signature in enumerate(plans_of(bound, 10)):
        planned = balanced(data, tmp_path / str(number))
        run(planned, signature)
        assert rows_in(planned) == expected, signature


_CONDITIONS = st.sampled_from(["A < 9000", "B > 5", "C IS NOT NULL", "A >= 100 AND A < 14000"])
_GROUPS = st.sampled_from([["A"], ["B"], ["A", "B"], ["B", "C"], ["C"]])


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """A small butterfly: one or two sources, cleansed, perhaps joined, a body, and views of it and of each other."""

    def aggregate(group: list[str], total: str) -> dict[str, Any]:
        measures = [{"name": "total", "expression": f"sum({total})"}, {"name": "least", "expression": f"min({total})"}]
        return {"operator": "aggregate", "settings": {"group": group, "aggregates": measures}}

    def source(name: str) -> dict[str, Any]:
        columns = {"A": "int", "B": "int", "C": "int"}
        settings = {"path": f"${{data}}/{name}.parquet", "columns": columns}
        return {"operator": "parquet_source", "settings": settings, "hints": {"rows": 2_000}}

    nodes: dict[str, Any] = {"R": source("r"), "V": {"operator": "parquet_target", "settings": {"path": "${out}/v"}}}
    edges = []
    nodes["f"] = {"operator": "filter", "settings": {"condition": draw(_CONDITIONS)}}
    edges.append(("R", "f"))
    last = "f.match"
    if draw(st.booleans()):
        nodes["S"] = source("s")
        nodes["g"] = aggregate(["A"], "B")
        edges.append(("S", "g"))
        side = "g"
        if draw(st.booleans()):
            nodes["P"] = {"operator": "staging"}
            edges.append(("g", "P"))
            side = "P"
        kind = draw(st.sampled_from(["inner", "left"]))
        settings = {"keys": [{"left": "A"}], "kind": kind, "right_suffix": "_2"}
        nodes["j"] = {"operator": "join", "settings": settings}
        edges += [(last, "j.left"), (side, "j.right")]
        last = "j"
    edges.append((last, "V"))
    for number in range(draw(st.integers(1, 3))):
        view = f"v{number}"
        nodes[view] = aggregate(draw(_GROUPS), "B")
        nodes[f"W{number}"] = {"operator": "parquet_target", "settings": {"path": f"${{out}}/w{number}"}}
        edges += [("V", view), (view, f"W{number}")]
    return {
        "papilio": 1,
        "name": "random",
        "parameters": {"data_folder": "", "warehouse_folder": ""},
        "roots": {"data": "${data_folder}", "out": "${warehouse_folder}"},
        "nodes": nodes,
        "edges": [{"from": one, "to": other} for one, other in edges],
    }


def check_plans(run: Run, data: Path, out: Path, document: dict[str, Any], chosen: Callable[[list[str]], str]) -> None:
    """No plan, the best one and a chosen one: the same rows."""
    answers = {}
    signature = ""
    for number, plan in enumerate(("none", "best", "chosen")):
        folder = {"data_folder": str(data), "warehouse_folder": str(out / str(number))}
        bound = bind(workflow_from(document, "random"), catalogue(), parameters=folder)
        bound.raise_errors()
        if plan == "chosen":
            plan = signature = chosen(plans_of(bound, 60))
        run(bound, plan)
        answers[number] = rows_in(bound)
    assert answers[0] == answers[1]
    assert answers[0] == answers[2], signature


_AGAIN = settings(
    max_examples=1, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@given(document=documents(), chance=st.randoms(use_true_random=False))
@_AGAIN
def test_a_random_workflow_has_the_same_targets_whatever_its_plan(run, data, tmp_path_factory, document, chance):
    check_plans(run, data, tmp_path_factory.mktemp("random"), document, chance.choice)


@pytest.mark.slow
@given(document=documents(), chance=st.randoms(use_true_random=False))
@settings(_AGAIN, max_examples=25)
def test_many_random_workflows_have_the_same_targets_whatever_their_plans(
    run, data, tmp_path_factory, document, chance
):
    check_plans(run, data, tmp_path_factory.mktemp("random"), document, chance.choice)

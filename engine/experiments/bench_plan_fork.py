"""A fork on Spark: one body, several views, with and without a sorter on the body."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.experiments.bench import Contender, Options, Report
from engine.experiments.bench_plan_steps import ROWS, generate
from engine.model.physical import NO_ORDER, Passing, grouping, ordered_by
from engine.plan.apply import Layout
from engine.plan.costs import MeasuredCosts
from engine.plan.graph import Activity, Edge, Graph, Recordset
from engine.plan.space import Space

VIEWS: tuple[tuple[str, ...], ...] = (("a",), ("a", "b"), ("a", "c"), ("a",), ("a", "b"), ("a",))
BODY = ("a", "b")  # the order of the sorter


def benchmark(options: Options) -> Report:
    """Stage a body once and aggregate it six times: plain, and sorted and bucketed by the views' order."""
    from engine.spark.session import SparkSettings, close_session, open_session

    rows = round(ROWS * (options.scale or 1))
    options.folder.mkdir(parents=True, exist_ok=True)
    data = generate(options.folder, rows)
    spark = open_session(SparkSettings(log=options.folder / "spark.log"))
    try:
        return _measured(spark, data, rows, options)
    finally:
        close_session(spark)


def _measured(spark: Any, data: Path, rows: int, options: Options) -> Report:
    from engine.spark.sorted_staging import SETTINGS, SortedStage

    folder = options.folder / "fork"
    table = spark.read.parquet(str(data)).where("b > 10")
    buckets = spark.sparkContext.defaultParallelism * 2

    def plain() -> list[Any]:
        table.write.mode("overwrite").parquet(str(folder / "plain"))
        return _views(spark.read.parquet(str(folder / "plain")))

    def with_sorter() -> list[Any]:
        stage = SortedStage("papilio_fork", folder / "sorted", Layout(ordered_by(*BODY), 1), buckets)
        try:
            stage.write(table)
            return _views(stage.read(spark))
        finally:
            stage.delete(spark)

    contenders: dict[str, Callable[[], list[Any]]] = {"no sorter": plain, "sorter on the body": with_sorter}
    report = Report({name: Contender() for name in contenders})
    answers: dict[str, list[Any]] = {}
    for number in range(options.rounds + 1):  # the first warms up
        for name, run in contenders.items():
            options.say(f"round {number}: {name}")
            for setting, value in SETTINGS.items():
                spark.conf.set(setting, value if name == "sorter on the body" else "false")
            begun = time.perf_counter()
            answers[name] = run()
            if number:
                report.contenders[name].seconds.append(time.perf_counter() - begun)
    shutil.rmtree(folder, ignore_errors=True)
    report.identical = answers["no sorter"] == answers["sorter on the body"]
    found = report.ratio("no sorter", "sorter on the body")
    predicted = _predicted(rows)
    report.facts = {"rows": rows, "views": len(VIEWS), "predicted ratio": round(predicted, 2)}
    report.claim("a sorter on a fork's body pays", found > 1, f"{found:.2f} times as fast with it")
    agrees = (predicted > 1) == (found > 1)
    report.claim("the measured model says so too", agrees, f"{predicted:.2f} times predicted, {found:.2f} measured")
    return report


def _views(body: Any) -> list[Any]:
    """Every view computed to its end; of each a sum that tells whether it is the same."""
    answers = []
    for number, group in enumerate(VIEWS):
        view = body.groupBy(*group).agg({"c": ("sum", "max", "min")[number % 3], "*": "count"})
        names = ", ".join(f"`{name}`" for name in view.columns)
        answers.append(view.selectExpr(f"xxhash64({names}) % 1000003 AS h").groupBy().sum("h").collect()[0][0])
    return answers


def _predicted(rows: int) -> float:
    """The best plan without sorters over the best one with a sorter on the body, as the measured model counts."""
    nodes: dict[str, Recordset | Activity] = {"V": Recordset("V", rows)}
    edges = []
    for number, group in enumerate(VIEWS):
        id_ = f"γ{number}"
        out = rows // 2 if len(group) == 1 else rows
        nodes[id_] = Activity(id_, grouping(group, Passing(renamed={name: name for name in group}, only=True)), out)
        nodes[f"W{number}"] = Recordset(f"W{number}", out)
        edges += [Edge("V", id_, 0, rows), Edge(id_, f"W{number}", 0, out)]
    graph, model = Graph(nodes, tuple(edges)), MeasuredCosts()
    space = Space(graph, model)
    (body,) = (position for position in space.positions if position.node == "V")
    costs = {}
    for digit in (body.orders.index(ordered_by(*BODY)), len(body.orders)):
        best = 0
        for number in range(len(VIEWS)):
            id_ = f"γ{number}"
            activity = graph.activity(id_)
            assert activity is not None
            order = body.orders[digit] if digit < len(body.orders) else NO_ORDER
            taken = [space.take(activity, choice, (order,)) for choice in range(len(space.choices[id_]))]
            best += min(one.cost for one in taken if one is not None)
        costs[digit] = best + (space.sorter_cost(body) if digit < len(body.orders) else 0)
    sorted_, plain = costs.values()
    return plain / sorted_

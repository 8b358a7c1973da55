"""Opening large workflow files: reading, checking and classifying 10,000 nodes, and 20,000 beside them."""

from __future__ import annotations

import time

from engine.experiments.bench import Contender, Options, Report
from engine.model.binding import bind
from engine.model.file import load, save
from engine.model.shape import shape
from engine.model.workflow import Workflow
from engine.operators import catalogue
from engine.partition.flow import flow_of
from engine.partition.subflows import break_into_subflows, with_readers_and_writers
from engine.partition.trees import execution_trees

LINE_NODES = 18  # of each line between its source and the union that all lines meet in


def large_workflow(nodes: int, *, one_source: bool = False) -> Workflow:
    """Lines of derivations and filters, each expression different, that meet in one table with views.

    Each line has a source of its own, or all begin at one.
    """
    document: dict[str, dict[str, object]] = {}
    edges: list[dict[str, str]] = []

    def node(id_: str, operator: str, **settings: object) -> str:
        document[id_] = {"operator": operator, "settings": settings}
        return id_

    def edge(source: str, target: str) -> None:
        edges.append({"from": source, "to": target})

    lines = max(1, (nodes - 20) // (LINE_NODES + 1))
    union = node("all", "union")
    for line in range(lines):
        at = f"source_{0 if one_source else line}"
        if at not in document:
            node(at, "csv_source", path=f"in/{line}.csv", columns={"a": "int", "b": "decimal(12,2)"})
        for step in range(LINE_NODES):
            if step % 2:
                new = node(f"filter_{line}_{step}", "filter", condition=f"a > {line} AND b < {step * 7 + line}")
            else:
                columns = [{"name": "b", "expression": f"cast(b * {line + 2} + {step} AS decimal(12,2))"}]
                new = node(f"derive_{line}_{step}", "derive", columns=columns)
            edge(at, new)
            at = new
        edge(at, union)
    node("table", "parquet_target", path="out/table")
    edge(union, "table")
    for view in range(9):
        node(f"view_{view}_by", "aggregate", group=["a"], aggregates=[{"name": "n", "expression": f"sum(b) + {view}"}])
        node(f"view_{view}", "parquet_target", path=f"out/view_{view}")
        edge("table", f"view_{view}_by")
        edge(f"view_{view}_by", f"view_{view}")
    return Workflow.model_validate({"papilio": 1, "name": f"large {nodes}", "nodes": document, "edges": edges})


def benchmark(options: Options) -> Report:
    """Read, check and classify files of 10,000 and 20,000 nodes; cut them into trees and subflows."""
    options.folder.mkdir(parents=True, exist_ok=True)
    report = Report()
    report.contenders = {f"{what} {size:,}": Contender() for size in (10_000, 20_000) for what in ("open", "partition")}
    for size in (10_000, 20_000):
        save(large_workflow(size), options.folder / f"large_{size}.butterfly.yaml")
    for number in range(options.rounds):
        for size in (10_000, 20_000):
            options.say(f"round {number + 1}: {size:,} nodes")
            begun = time.perf_counter()
            bound = bind(load(options.folder / f"large_{size}.butterfly.yaml"), catalogue())
            shape(bound)
            report.contenders[f"open {size:,}"].seconds.append(time.perf_counter() - begun)
            assert not bound.problems, bound.problems[:3]
            begun = time.perf_counter()
            flow = flow_of(bound)
            execution_trees(flow)
            break_into_subflows(with_readers_and_writers(flow))
            report.contenders[f"partition {size:,}"].seconds.append(time.perf_counter() - begun)
            # Each round parses anew.
            from engine.model.expressions import _parsed

            _parsed.cache_clear()
    opening = report.contenders["open 10,000"].as_dict()["median"]
    cutting = report.contenders["partition 10,000"].as_dict()["median"]
    report.claim("10,000 nodes are read, checked and classified in under 2 s", opening < 2, f"{opening:.2f} s")
    report.claim("10,000 nodes are cut into trees, subflows and strata in under 1 s", cutting < 1, f"{cutting:.2f} s")
    longer = report.ratio("partition 20,000", "partition 10,000")
    report.claim("20,000 nodes take at most 2.3 times as long to cut", longer <= 2.3, f"{longer:.2f} times")
    report.ratio("open 20,000", "open 10,000")
    return report

"""Data three times the size of Spark's memory: the run still finishes, and stays within bounds."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from engine.errors import RunFailed
from engine.experiments.bench import Contender, Options, Report
from engine.experiments.data import generate_tpch
from engine.experiments.measure import measure
from engine.model.file import save
from engine.model.workflow import Workflow

SMALL_HEAP_MB = 512
LARGE_HEAP_MB = 6144
TIMES = 3
SCALE = 7.0  # lineitem and orders as Parquet are then more than three times the small heap


def benchmark(options: Options) -> Report:
    """Join, sort, stage and aggregate more data than memory: a 512 MB heap beside a 6 GB one."""
    scale = options.scale or SCALE
    data = options.folder / f"tpch-{scale:g}"
    options.say(f"TPC-H scale {scale:g}: lineitem and orders")
    generate_tpch(data, scale, tables=("lineitem", "orders"))
    size = sum(file.stat().st_size for file in data.glob("*.parquet"))
    report = Report(facts={"data_mb": round(size / 2**20), "heap_mb": SMALL_HEAP_MB})
    report.claims[f"the data is more than {TIMES} times the heap"] = size > TIMES * SMALL_HEAP_MB * 2**20
    answers = {}
    for number in range(options.rounds):
        for heap in (SMALL_HEAP_MB, LARGE_HEAP_MB):
            name = f"heap {heap} MB"
            options.say(f"round {number + 1}: {name}")
            contender = report.contenders.setdefault(name, Contender())
            answers[name] = _run(data, options.folder / f"out-{heap}", heap, contender)
    report.identical = len({json.dumps(answer, sort_keys=True) for answer in answers.values()}) == 1
    report.claims["it finishes with a heap of a third of the data"] = True
    report.ratio(f"heap {SMALL_HEAP_MB} MB", f"heap {LARGE_HEAP_MB} MB")
    return report


def _run(data: Path, out: Path, heap: int, contender: Contender) -> dict[str, list[int | str]]:
    file = out.parent / f"spill-{heap}.butterfly.yaml"
    save(_workflow(data, out), file)
    done = measure([sys.executable, "-m", "engine", "run", str(file), "--json", "--driver-memory", str(heap)])
    if done.code != 0:
        raise RunFailed(f"{file}: the run ended with {done.code}: {done.errors.strip()[-500:]}")
    contender.seconds.append(done.seconds)
    contender.peak_mb.append(done.peak_mb)
    return {target.name: _digest(target) for target in sorted(out.iterdir()) if target.is_dir()}


def _digest(target: Path) -> list[int | str]:
    """A target's rows and, for the small ones, a hash of its content that does not mind the order."""
    from pyarrow import dataset

    table = dataset.dataset(target, exclude_invalid_files=True)
    rows = table.count_rows()
    if rows > 1_000_000:
        return [rows]
    return [rows, *sorted(str(row) for row in table.to_table().to_pylist())[:1000]]


def _workflow(data: Path, out: Path) -> Workflow:
    return Workflow.model_validate(
        {
            "papilio": 1,
            "name": "spill",
            "roots": {"data": str(data), "out": str(out)},
            "nodes": {
                "lineitem": {"operator": "parquet_source", "settings": {"path": "${data}/lineitem.parquet"}},
                "orders": {"operator": "parquet_source", "settings": {"path": "${data}/orders.parquet"}},
                "join": {
                    "operator": "join",
                    "settings": {"keys": [{"left": "l_orderkey", "right": "o_orderkey"}], "form": "merge"},
                },
                "staged": {"operator": "staging"},
                "sort": {"operator": "sort", "settings": {"by": [{"column": "l_extendedprice"}]}},
                "sorted": {"operator": "parquet_target", "settings": {"path": "${out}/sorted"}},
                "by_customer": {
                    "operator": "aggregate",
                    "settings": {
                        "group": ["o_custkey"],
                        "aggregates": [{"name": "paid", "expression": "sum(l_extendedprice)"}],
                    },
                },
                "customers": {"operator": "parquet_target", "settings": {"path": "${out}/customers"}},
            },
            "edges": [
                {"from": "lineitem", "to": "join.left"},
                {"from": "orders", "to": "join.right"},
                {"from": "join", "to": "staged"},
                {"from": "staged", "to": "sort"},
                {"from": "sort", "to": "sorted"},
                {"from": "staged", "to": "by_customer"},
                {"from": "by_customer", "to": "customers"},
            ],
        }
    )

"""Data three times the size of Spark's memory: the run still finishes, and stays within bounds."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

from engine.errors import BadInput
from engine.experiments.bench import Contender, Options, Report
from engine.experiments.data import generate_tpch
from engine.experiments.measure import measure
from engine.model.file import save
from engine.model.workflow import Workflow

ROUNDS = 1  # what is asked is whether it finishes, and within how much memory
SMALL_HEAP_MB = 512  # the least that Spark takes
LARGE_HEAP_MB = 6144
TIMES = 3
SCALE = 1.8  # lineitem and orders as text are then more than three times the small heap
ROOM_FACTOR = 6  # on disk: the data, two shuffles of it, the staged result, the targets, and some air

COLUMNS = {
    "lineitem": {
        "l_orderkey": "bigint", "l_partkey": "bigint", "l_suppkey": "bigint", "l_linenumber": "int",
        "l_quantity": "decimal(15,2)", "l_extendedprice": "decimal(15,2)", "l_discount": "decimal(15,2)",
        "l_tax": "decimal(15,2)", "l_returnflag": "string", "l_linestatus": "string", "l_shipdate": "date",
        "l_commitdate": "date", "l_receiptdate": "date", "l_shipinstruct": "string", "l_shipmode": "string",
        "l_comment": "string",
    },
    "orders": {
        "o_orderkey": "bigint", "o_custkey": "bigint", "o_orderstatus": "string", "o_totalprice": "decimal(15,2)",
        "o_orderdate": "date", "o_orderpriority": "string", "o_clerk": "string", "o_shippriority": "int",
        "o_comment": "string",
    },
}  # fmt: skip


def benchmark(options: Options) -> Report:
    """Join, sort, stage and aggregate more data than memory: a 512 MB heap beside a 6 GB one."""
    scale = options.scale or SCALE
    data = options.folder / f"tpch-{scale:g}-tbl"
    options.say(f"TPC-H scale {scale:g} as text: lineitem and orders")
    generate_tpch(data, scale, format="tbl", tables=tuple(COLUMNS))
    size = sum(file.stat().st_size for file in data.glob("*.tbl"))
    _check_room(options.folder, size)
    report = Report(facts={"data_mb": round(size / 2**20), "heap_mb": SMALL_HEAP_MB})
    times = size / (SMALL_HEAP_MB * 2**20)
    report.claim(f"the data is more than {TIMES} times the heap", times > TIMES, f"{times:.2f} times")
    small, large = f"heap {SMALL_HEAP_MB} MB", f"heap {LARGE_HEAP_MB} MB"
    report.contenders = {small: Contender(), large: Contender()}
    answers: dict[str, dict[str, Any]] = {}
    for number in range(options.rounds):
        for name, heap in ((small, SMALL_HEAP_MB), (large, LARGE_HEAP_MB)):
            options.say(f"round {number + 1} of {options.rounds}: {name}")
            if report.contenders[name].failed:
                continue
            found = _run(data, options, heap, report.contenders[name])
            if found is not None:
                answers[name] = found
    finished = report.contenders[small]
    text = "it finishes with a heap of a third of the data"
    report.claim(text, finished.failed is None, finished.failed or f"in {finished.median:.0f} s")
    if finished.peak_mb:
        report.facts["peak_mb_of_all_processes"] = round(max(finished.peak_mb))
        most = max(finished.peak_mb)
        text = "all its processes together stay below the size of the data"
        report.claim(text, most < size / 2**20, f"{most:,.0f} MB of {size / 2**20:,.0f} MB")
    if small in answers:
        found, lines = answers[small]["sorted"], _lines(data)
        report.claim(
            "every order line arrives, in order", found["ordered"] and found["rows"] == lines,
            f"{found['rows']:,} of {lines:,}, {'in order' if found['ordered'] else 'not in order'}",
        )  # fmt: skip
    if report.finished(small, large):
        report.identical = answers[small] == answers[large]
        report.facts["rows"] = {target: answer["rows"] for target, answer in answers[small].items()}
        report.ratio(small, large)
    return report


def _lines(data: Path) -> int:
    """The lines of the larger table, each of which has its order."""
    with (data / "lineitem.tbl").open("rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(2**24), b""))


def _check_room(folder: Path, size: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < ROOM_FACTOR * size:
        needed = ROOM_FACTOR * size / 2**30
        raise BadInput(f"{folder}: {free / 2**30:.1f} GiB are free and {needed:.1f} are needed; name another --folder")


def _run(data: Path, options: Options, heap: int, contender: Contender) -> dict[str, Any] | None:
    """One run of the program in processes of its own. None where it failed, which the contender then says."""
    out = options.folder / f"out-{heap}"
    home = options.folder / f"home-{heap}"
    scratch = options.folder / f"scratch-{heap}"
    for folder in (out, home, scratch):
        shutil.rmtree(folder, ignore_errors=True)
    file = options.folder / f"spill-{heap}.butterfly.yaml"
    try:
        scratch.mkdir(parents=True)
        save(_workflow(data, out), file)
        done = measure(
            [sys.executable, "-m", "engine", "run", str(file), "--json", "--driver-memory", str(heap)],
            environment={**os.environ, "PAPILIO_HOME": str(home), "PAPILIO_STORE": "", "TMPDIR": str(scratch)},
            progress=lambda seconds, mb: options.say(f"  {seconds:4.0f} s, {mb:,.0f} MB in memory"),
        )
        if done.code != 0:
            contender.failed = f"exit {done.code}: {done.errors.strip()[-500:]}"
            options.say(f"  {contender.failed}")
            return None
        contender.seconds.append(done.seconds)
        contender.peak_mb.append(done.peak_mb)
        options.say(f"  done in {done.seconds:.0f} s, at most {done.peak_mb:,.0f} MB")
        return {"sorted": _sums(out / "sorted", "l_extendedprice"), "customers": _digest(out / "customers")}
    except OSError as error:
        contender.failed = f"{type(error).__name__}: {error}"
        options.say(f"  {contender.failed}")
        return None
    finally:
        for folder in (out, home, scratch):
            shutil.rmtree(folder, ignore_errors=True)


def _sums(target: Path, column: str) -> dict[str, Any]:
    """Rows and sum of a large target, read batch by batch, and whether its files, one after the other, are in order."""
    import pyarrow.compute as pc
    from pyarrow import parquet

    rows, total, last, ordered = 0, Decimal(0), None, True
    for file in sorted(target.glob("*.parquet")):
        for batch in parquet.ParquetFile(file).iter_batches(columns=[column]):
            values = batch.column(0)
            if not len(values):
                continue
            bounds = pc.min_max(values)
            ordered &= last is None or bounds["min"].as_py() >= last
            last = bounds["max"].as_py()
            rows += len(values)
            total += pc.sum(values).as_py()
    return {"rows": rows, "sum": str(total), "ordered": ordered}


def _digest(target: Path) -> dict[str, Any]:
    """Rows of a small target and a hash of its content that does not mind the order."""
    from pyarrow import dataset

    table = dataset.dataset(target, exclude_invalid_files=True).to_table()
    lines = sorted(map(str, table.to_pylist()))
    return {"rows": table.num_rows, "hash": hashlib.sha256("\n".join(lines).encode()).hexdigest()}


def _workflow(data: Path, out: Path) -> Workflow:
    sources = {
        table: {"operator": "tbl_source", "settings": {"path": f"${{data}}/{table}.tbl", "columns": columns}}
        for table, columns in COLUMNS.items()
    }
    total = {"name": "paid", "expression": "sum(l_extendedprice)"}
    return Workflow.model_validate(
        {
            "papilio": 1,
            "name": "spill",
            "roots": {"data": str(data), "out": str(out)},
            "nodes": {
                **sources,
                "join": {
                    "operator": "join",
                    "settings": {"keys": [{"left": "l_orderkey", "right": "o_orderkey"}], "form": "merge"},
                },
                "staged": {"operator": "staging"},
                "sort": {"operator": "sort", "settings": {"by": [{"column": "l_extendedprice"}]}},
                "sorted": {"operator": "parquet_target", "settings": {"path": "${out}/sorted"}},
                "by_customer": {"operator": "aggregate", "settings": {"group": ["o_custkey"], "aggregates": [total]}},
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

"""TPC-H to SSB with Bonobo: a graph of functions for each table, rows passed on in threads, CSV files in and out."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import bonobo  # type: ignore[import-not-found, unused-ignore]
import ssb_rows  # type: ignore[import-not-found, unused-ignore]


def job(data: Path, out: Path, parts: int) -> None:
    """Load the five tables."""

    def read(table: str) -> Iterator[dict[str, str]]:
        with (data / f"{table}.csv").open(encoding="utf-8", newline="") as file:
            yield from csv.DictReader(file)

    def load(name: str, rows: Callable[[], Iterable[Any]], step: Callable[[Any], dict[str, Any]]) -> None:
        with (out / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")

            def write(row: dict[str, Any]) -> None:
                if file.tell() == 0:
                    writer.writerow(row)
                writer.writerow(row.values())

            bonobo.run(bonobo.Graph(rows, step, write), strategy="naive")

    regions = {row["r_regionkey"]: row["r_name"] for row in read("region")}
    nations = {row["n_nationkey"]: (row["n_name"], regions[row["n_regionkey"]]) for row in read("nation")}
    for table, letter, key in (("customer", "c", "c_custkey"), ("supplier", "s", "s_suppkey")):
        kept = [row for row in read(table) if ssb_rows.is_kept(row[key])]
        load(table, partial(iter, kept), partial(ssb_rows.person, letter=letter, nations=nations))
    load("part", lambda: (row for row in read("part") if int(row["p_partkey"]) <= parts), ssb_rows.part)
    load("date", ssb_rows.days, lambda row: row)
    costs: dict[tuple[str, str], int] = {}
    for row in read("partsupp"):
        found = ssb_rows.cents(row["ps_supplycost"])
        offer = row["ps_partkey"], row["ps_suppkey"]
        costs[offer] = min(found, costs.get(offer, found))
    orders = {row["o_orderkey"]: row for row in read("orders")}

    def fact(line: dict[str, str]) -> dict[str, Any]:
        cost = costs[line["l_partkey"], line["l_suppkey"]]
        return ssb_rows.lineorder(line, orders[line["l_orderkey"]], cost, parts)

    load("lineorder", lambda: read("lineitem"), fact)


if __name__ == "__main__":
    ssb_rows.run(job)

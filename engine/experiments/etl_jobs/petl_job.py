"""TPC-H to SSB with petl: lazy tables over CSV files, hash joins, one CSV file for each table of the star."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import petl  # type: ignore[import-not-found, unused-ignore]
import ssb_rows  # type: ignore[import-not-found, unused-ignore]


def job(data: Path, out: Path, parts: int) -> None:
    """Load the five tables."""

    def read(table: str) -> Any:
        return petl.fromcsv(str(data / f"{table}.csv"))

    def mapped(table: Any, function: Callable[[Any], dict[str, Any]]) -> Any:
        first = next(iter(petl.dicts(petl.head(table, 1))))
        return petl.rowmap(table, lambda row: list(function(row).values()), header=list(function(first)))

    nation, region = read("nation"), read("region")
    named = petl.hashjoin(nation, region, lkey="n_regionkey", rkey="r_regionkey")
    nations = {row["n_nationkey"]: (row["n_name"], row["r_name"]) for row in petl.dicts(named)}
    for table, letter, key in (("customer", "c", "c_custkey"), ("supplier", "s", "s_suppkey")):
        kept = petl.select(read(table), key, ssb_rows.is_kept)
        people = mapped(kept, partial(ssb_rows.person, letter=letter, nations=nations))
        petl.tocsv(people, str(out / f"{table}.csv"))
    kept = petl.select(read("part"), "p_partkey", lambda key: int(key) <= parts)
    petl.tocsv(mapped(kept, ssb_rows.part), str(out / "part.csv"))
    petl.tocsv(petl.fromdicts(list(ssb_rows.days())), str(out / "date.csv"))
    # A lookup in memory instead of a second join: on the smallest scales an offer stands twice, the cheaper counts.
    offers = petl.cut(read("partsupp"), "ps_partkey", "ps_suppkey", "ps_supplycost")
    costs: dict[tuple[str, str], int] = {}
    for part, supplier, cost in petl.data(offers):
        found = ssb_rows.cents(cost)
        costs[part, supplier] = min(found, costs.get((part, supplier), found))
    names = ("o_orderkey", "o_custkey", "o_orderdate", "o_orderpriority", "o_shippriority", "o_totalprice")
    ordered = petl.hashjoin(read("lineitem"), petl.cut(read("orders"), *names), lkey="l_orderkey", rkey="o_orderkey")
    facts = mapped(ordered, lambda row: ssb_rows.lineorder(row, row, costs[row["l_partkey"], row["l_suppkey"]], parts))
    petl.tocsv(facts, str(out / "lineorder.csv"))


if __name__ == "__main__":
    ssb_rows.run(job)

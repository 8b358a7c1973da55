"""TPC-H to SSB with pygrametl: dimension and fact table objects over a database, here SQLite, from CSV files."""

from __future__ import annotations

import csv
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pygrametl  # type: ignore[import-not-found, unused-ignore]
import ssb_rows  # type: ignore[import-not-found, unused-ignore]
from pygrametl.datasources import CSVSource, HashJoiningSource  # type: ignore[import-not-found, unused-ignore]
from pygrametl.tables import Dimension, FactTable  # type: ignore[import-not-found, unused-ignore]


def job(data: Path, out: Path, parts: int) -> Callable[[], None]:
    """Load the five tables; writing them out for the comparison is not part of it."""
    connection = sqlite3.connect(out / ".warehouse.sqlite")
    connection.execute("PRAGMA synchronous = OFF")
    wrapper = pygrametl.ConnectionWrapper(connection)
    made: list[str] = []

    def read(table: str) -> Any:
        # The files stay open until the rows are used up.
        return CSVSource((data / f"{table}.csv").open(encoding="utf-8", newline=""))

    def table_for(name: str, first: dict[str, Any]) -> None:
        columns = ", ".join(f"{key} {'INTEGER' if isinstance(value, int) else 'TEXT'}" for key, value in first.items())
        connection.execute(f'CREATE TABLE "{name}" ({columns})')
        made.append(name)

    def load_dimension(name: str, rows: Iterable[dict[str, Any]]) -> None:
        rows = list(rows)
        table_for(name, rows[0])
        key, *attributes = rows[0]
        dimension = Dimension(name=f'"{name}"', key=key, attributes=attributes)
        for row in rows:
            dimension.insert(row)

    regions = {row["r_regionkey"]: row["r_name"] for row in read("region")}
    nations = {row["n_nationkey"]: (row["n_name"], regions[row["n_regionkey"]]) for row in read("nation")}
    for table, letter, key in (("customer", "c", "c_custkey"), ("supplier", "s", "s_suppkey")):
        kept = (row for row in read(table) if ssb_rows.is_kept(row[key]))
        load_dimension(table, (ssb_rows.person(row, letter, nations) for row in kept))
    load_dimension("part", (ssb_rows.part(row) for row in read("part") if int(row["p_partkey"]) <= parts))
    load_dimension("date", ssb_rows.days())
    costs: dict[tuple[str, str], int] = {}
    for row in read("partsupp"):
        found = ssb_rows.cents(row["ps_supplycost"])
        offer = row["ps_partkey"], row["ps_suppkey"]
        costs[offer] = min(found, costs.get(offer, found))
    fact_table: Any = None
    for row in HashJoiningSource(read("lineitem"), "l_orderkey", read("orders"), "o_orderkey"):
        fact = ssb_rows.lineorder(row, row, costs[row["l_partkey"], row["l_suppkey"]], parts)
        if fact_table is None:
            table_for("lineorder", fact)
            keys = [name for name in fact if name.endswith("key")]
            fact_table = FactTable("lineorder", keys, [name for name in fact if name not in keys])
        fact_table.insert(fact)
    wrapper.commit()

    def write_out() -> None:
        for name in made:
            rows = connection.execute(f'SELECT * FROM "{name}"')
            with (out / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file, lineterminator="\n")
                writer.writerow(column[0] for column in rows.description)
                writer.writerows(rows)
        wrapper.close()

    return write_out


if __name__ == "__main__":
    ssb_rows.run(job)

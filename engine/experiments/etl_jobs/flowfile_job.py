"""TPC-H to SSB with Flowfile: its frames are Polars' underneath and make a flow that its designer can show."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import flowfile as ff  # type: ignore[import-not-found, unused-ignore]
import ssb_rows  # type: ignore[import-not-found, unused-ignore]


def job(data: Path, out: Path, parts: int) -> None:
    """Load the five tables."""

    def read(table: str, *columns: str) -> Any:
        frame = ff.scan_parquet(str(data / f"{table}.parquet"))
        return frame.select(*columns) if columns else frame

    def write(name: str, frame: Any, columns: list[str]) -> None:
        # Flowfile's own writer collects the whole flow; its lazy result goes to the file as it is computed.
        frame.data.select(columns).sink_parquet(out / f"{name}.parquet", compression="snappy")

    def cents(name: str) -> Any:
        return (ff.col(name) * 100).cast(ff.Int32)

    def day_key(name: str) -> Any:
        day = ff.col(name).dt
        return day.year().cast(ff.Int32) * 10_000 + day.month().cast(ff.Int32) * 100 + day.day().cast(ff.Int32)

    nations = read("nation", "n_nationkey", "n_name", "n_regionkey").join(
        read("region", "r_regionkey", "r_name"), left_on="n_regionkey", right_on="r_regionkey"
    )
    for table, letter, key in (("customer", "c", "c_custkey"), ("supplier", "s", "s_suppkey")):
        people = read(table).filter(ff.col(key) % 5 == 1).join(
            nations, left_on=f"{letter}_nationkey", right_on="n_nationkey"
        )  # fmt: skip
        city = ff.col("n_name").str.slice(0, 9).str.pad_end(9) + ff.col(f"{letter}_phone").str.tail(1)
        made = people.with_columns(
            ((ff.col(key) + 4) // 5).cast(ff.Int32).alias(key),
            ff.col(f"{letter}_address").str.slice(0, 25),
            city.alias(f"{letter}_city"),
            ff.col("n_name").alias(f"{letter}_nation"),
            ff.col("r_name").alias(f"{letter}_region"),
        )
        names = [key, *(f"{letter}_{what}" for what in ("name", "address", "city", "nation", "region", "phone"))]
        write(table, made, [*names, "c_mktsegment"] if letter == "c" else names)
    write_parts(read("part"), parts, write)
    days = list(ssb_rows.days())
    write("date", ff.from_dict({name: [day[name] for day in days] for name in days[0]}), list(days[0]))
    # On the smallest scales an offer stands twice; the cheaper counts.
    costs = read("partsupp", "ps_partkey", "ps_suppkey", "ps_supplycost").group_by("ps_partkey", "ps_suppkey").agg(
        ff.col("ps_supplycost").min()
    )  # fmt: skip
    orders = read(
        "orders", "o_orderkey", "o_custkey", "o_orderdate", "o_orderpriority", "o_shippriority", "o_totalprice"
    )
    lines = read(
        "lineitem", "l_orderkey", "l_linenumber", "l_partkey", "l_suppkey", "l_quantity", "l_extendedprice",
        "l_discount", "l_tax", "l_commitdate", "l_shipmode",
    )  # fmt: skip
    facts = lines.join(orders, left_on="l_orderkey", right_on="o_orderkey").join(
        costs, left_on=["l_partkey", "l_suppkey"], right_on=["ps_partkey", "ps_suppkey"]
    )
    price, discount = (ff.col("l_extendedprice") * 100).cast(ff.Int64), (ff.col("l_discount") * 100).cast(ff.Int64)
    columns = {
        "lo_orderkey": ff.col("l_orderkey"),
        "lo_linenumber": ff.col("l_linenumber"),
        "lo_custkey": ((ff.col("o_custkey") + 4) // 5).cast(ff.Int32),
        "lo_partkey": ((ff.col("l_partkey") - 1) % parts + 1).cast(ff.Int32),
        "lo_suppkey": ((ff.col("l_suppkey") + 4) // 5).cast(ff.Int32),
        "lo_orderdate": day_key("o_orderdate"),
        "lo_orderpriority": ff.col("o_orderpriority"),
        "lo_shippriority": ff.col("o_shippriority").cast(ff.String),
        "lo_quantity": ff.col("l_quantity").cast(ff.Int32),
        "lo_extendedprice": cents("l_extendedprice"),
        "lo_ordtotalprice": cents("o_totalprice"),
        "lo_discount": cents("l_discount"),
        "lo_revenue": (price * (100 - discount) // 100).cast(ff.Int32),
        "lo_supplycost": cents("ps_supplycost"),
        "lo_tax": cents("l_tax"),
        "lo_commitdate": day_key("l_commitdate"),
        "lo_shipmode": ff.col("l_shipmode"),
    }
    write("lineorder", facts.with_columns(*(value.alias(name) for name, value in columns.items())), list(columns))


def write_parts(rows: Any, parts: int, write: Any) -> None:
    """The parts. Flowfile has no MD5 and passes functions of Python's on as text, so brands are numbered beside it."""
    names = rows.data.select("p_name").unique().collect()["p_name"].to_list()
    numbers = [str(int(hashlib.md5(name.encode()).hexdigest()[:8], 16) % 40 + 1) for name in names]
    numbered = ff.from_dict({"p_name": names, "brand_number": numbers})
    words = ff.col("p_name").str.split(" ")
    category = ff.lit("MFGR#") + ff.col("p_brand").str.tail(2)
    made = rows.filter(ff.col("p_partkey") <= parts).join(numbered, on="p_name").with_columns(
        ff.col("p_partkey").cast(ff.Int32),
        category.str.slice(0, 6).alias("p_mfgr"),
        category.alias("p_category"),
        (category + ff.col("brand_number")).alias("p_brand1"),
        words.list.get(2).alias("p_color"),
        words.list.slice(0, 2).list.join(" ").alias("p_name"),
    )  # fmt: skip
    columns = ("partkey", "name", "mfgr", "category", "brand1", "color", "type", "size", "container")
    write("part", made, [f"p_{name}" for name in columns])


if __name__ == "__main__":
    ssb_rows.run(job)

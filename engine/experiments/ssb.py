"""The star schema benchmark (SSB), derived from TPC-H.

Each order line becomes a row of `lineorder`, `partsupp` and `nation` melt away, and a date dimension joins. SSB has a
fifth of TPC-H's customers and suppliers, so every five of them become one. The workflow `tpch_to_ssb` does the same
step by step on Spark; here it is done on columns in memory, for data in seconds. Money is in whole cents, as SSB's
own generator writes it.
"""

from __future__ import annotations

import hashlib
import math
import shutil
import time
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.experiments.data import (
    CLEAN,
    DataSet,
    Generated,
    Progress,
    check_room,
    check_scale,
    count_table,
    data_of_kind,
    find_generator,
    folder_beside,
    generator_version,
    move_into_place,
    run_generator,
)
from engine.experiments.dirt import SSB, Dirt, make_dirty

if TYPE_CHECKING:
    import pyarrow as pa

SSB_TABLES = ("lineorder", "customer", "supplier", "part", "date")

#: TPC-H's tables at scale 1 while they are read, and SSB's.
TPCH_BYTES, SSB_BYTES = 330_000_000, 190_000_000

FOLD = 5  # TPC-H's customers and suppliers to one of SSB's
PARTS = 200_000
FIRST_DAY, LAST_DAY = date(1992, 1, 1), date(1998, 12, 30)  # 2,556 days, as SSB's own generator counts its 7 years
BATCH_ROWS = 1 << 19

#: The first month of each selling season; Christmas lasts to the year's end.
SEASONS = {1: "Winter", 4: "Spring", 5: "Summer", 9: "Fall", 11: "Christmas"}
#: Month and day of each holiday, as SSB's own generator has them.
HOLIDAYS = ((1, 1), (2, 20), (4, 20), (5, 20), (7, 20), (8, 20), (9, 20), (10, 20), (11, 20), (12, 24))


def parts_at(scale: float) -> int:
    """How many parts SSB has: 200,000 × (1 + log2 scale), and proportionally fewer below scale 1."""
    return int(PARTS * (1 + math.floor(math.log2(scale)))) if scale >= 1 else round(PARTS * scale)


def generate_ssb(
    folder: Path,
    scale: float,
    *,
    replace: bool = False,
    dirt: Dirt = CLEAN,
    progress: Progress = lambda done, total: None,
) -> Generated:
    """Put SSB's five tables into `folder` as Parquet, unless they are there already."""
    started = time.monotonic()
    check_scale(scale)
    folder = folder.expanduser().resolve()
    present = data_of_kind(folder, "ssb", scale, "parquet", replace, dirt)
    if present is not None and present.is_complete_in(folder):
        return Generated(folder, present, kept=True, seconds=time.monotonic() - started)
    generator = find_generator()
    tpch_bytes, ssb_bytes = int(TPCH_BYTES * scale), int(SSB_BYTES * scale)
    expected = tpch_bytes + ssb_bytes
    with folder_beside(folder) as unfinished:
        check_room(unfinished, expected)
        tpch = unfinished / "tpch"
        tpch.mkdir()
        tables = {"lineitem", "orders", "partsupp", "part", "customer", "supplier", "nation", "region"}
        run_generator(generator, tpch, scale, "parquet", tables, lambda done: progress(done, expected))
        derive_ssb(tpch, unfinished, scale, lambda share: progress(tpch_bytes + int(ssb_bytes * share), expected))
        shutil.rmtree(tpch)
        dirtied = make_dirty(unfinished, SSB_TABLES, dirt, SSB) if dirt else {}
        data = DataSet(
            benchmark="ssb",
            scale=scale,
            format="parquet",
            generator=generator_version(generator),
            tables={table: count_table(unfinished / f"{table}.parquet") for table in SSB_TABLES},
            dirt=dirt.as_dict(),
            dirtied=dirtied,
        )
        data.write_marker(unfinished)
        move_into_place(unfinished, folder)
    return Generated(folder, data, kept=False, seconds=time.monotonic() - started)


def derive_ssb(tpch: Path, folder: Path, scale: float, progress: Any = lambda share: None) -> None:
    """Write SSB's tables into `folder` from the TPC-H tables in `tpch`, which `tpchgen-cli` wrote in key order."""
    import pyarrow.parquet as pq

    parts = parts_at(scale)
    pq.write_table(_dates(), folder / "date.parquet")
    pq.write_table(_people(tpch, "customer", "c", {"c_mktsegment": "c_mktsegment"}), folder / "customer.parquet")
    pq.write_table(_people(tpch, "supplier", "s", {}), folder / "supplier.parquet")
    pq.write_table(_parts(tpch, parts), folder / "part.parquet")
    total = pq.read_metadata(tpch / "lineitem.parquet").num_rows
    writer = None
    done = 0
    try:
        for batch in _lineorders(tpch, parts):
            if writer is None:
                writer = pq.ParquetWriter(folder / "lineorder.parquet", batch.schema)
            writer.write_table(batch)
            done += batch.num_rows
            progress(done / total)
    finally:
        if writer is not None:
            writer.close()


def _read(tpch: Path, table: str, *columns: str) -> dict[str, Any]:
    """Columns of a table, each as one Arrow array; texts as Arrow's plain strings."""
    import pyarrow.parquet as pq

    read = pq.read_table(tpch / f"{table}.parquet", columns=list(columns))
    return {name: _plain(read.column(name)) for name in columns}


def _plain(column: Any) -> Any:
    import pyarrow as pa

    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return whole.cast(pa.string()) if whole.type == pa.string_view() else whole


def _cents(column: Any) -> Any:
    """A decimal with two places as whole cents: its stored number, the lower half of 128 bits."""
    import numpy as np

    stored = np.frombuffer(column.buffers()[1], dtype="<i8")[::2]
    return stored[column.offset : column.offset + len(column)]


def _table(**columns: Any) -> pa.Table:
    """Columns as a table; numbers are narrowed to 32 bits where they are wider."""
    import numpy as np
    import pyarrow as pa

    made = {}
    for name, values in columns.items():
        wide = isinstance(values, np.ndarray) and name != "lo_orderkey"
        made[name] = pa.array(values.astype(np.int32) if wide else values)
    return pa.table(made)


def _lineorders(tpch: Path, parts: int) -> Iterator[pa.Table]:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = ("o_orderkey", "o_custkey", "o_orderdate", "o_orderpriority", "o_shippriority", "o_totalprice")
    orders = _read(tpch, "orders", *names)
    order_keys = orders["o_orderkey"].to_numpy()
    order_days = _date_keys(orders["o_orderdate"])
    order_customers = _folded(orders["o_custkey"].to_numpy())
    order_totals = _cents(orders["o_totalprice"])
    shipping = orders["o_shippriority"].cast(pa.string())
    supply = _read(tpch, "partsupp", "ps_partkey", "ps_suppkey", "ps_supplycost")
    offers = supply["ps_suppkey"].to_numpy().reshape(-1, 4)  # each part has four, one below the other
    costs = _cents(supply["ps_supplycost"]).reshape(-1, 4)
    wanted = [
        "l_orderkey", "l_partkey", "l_suppkey", "l_linenumber", "l_quantity", "l_extendedprice", "l_discount", "l_tax",
        "l_commitdate", "l_shipmode",
    ]  # fmt: skip
    with pq.ParquetFile(tpch / "lineitem.parquet") as file:
        for batch in file.iter_batches(BATCH_ROWS, columns=wanted):
            line = {name: _plain(batch.column(name)) for name in wanted}
            keys, part = line["l_orderkey"].to_numpy(), line["l_partkey"].to_numpy()
            supplier = line["l_suppkey"].to_numpy()
            at = np.searchsorted(order_keys, keys)
            price, discount = _cents(line["l_extendedprice"]), _cents(line["l_discount"])
            # On the smallest scales a part has one supplier twice; the cheaper offer counts.
            offered = np.where(offers[part - 1] == supplier[:, None], costs[part - 1], np.iinfo(np.int64).max)
            yield _table(
                lo_orderkey=keys,
                lo_linenumber=line["l_linenumber"].to_numpy(),
                lo_custkey=order_customers[at],
                lo_partkey=(part - 1) % parts + 1,
                lo_suppkey=_folded(supplier),
                lo_orderdate=order_days[at],
                lo_orderpriority=orders["o_orderpriority"].take(pa.array(at)),
                lo_shippriority=shipping.take(pa.array(at)),
                lo_quantity=_cents(line["l_quantity"]) // 100,
                lo_extendedprice=price,
                lo_ordtotalprice=order_totals[at],
                lo_discount=discount,
                lo_revenue=price * (100 - discount) // 100,
                lo_supplycost=offered.min(axis=1),
                lo_tax=_cents(line["l_tax"]),
                lo_commitdate=_date_keys(line["l_commitdate"]),
                lo_shipmode=line["l_shipmode"],
            )


def _folded(keys: Any) -> Any:
    return (keys + FOLD - 1) // FOLD


def _date_keys(days: Any) -> Any:
    """Dates as numbers that read like them: 19980802."""
    import numpy as np

    numbers = days.view("int32").to_numpy()
    first = int(numbers.min())
    known = [date(1970, 1, 1) + timedelta(days=number) for number in range(first, int(numbers.max()) + 1)]
    keys = np.array([day.year * 10_000 + day.month * 100 + day.day for day in known])
    return keys[numbers - first]


def _people(tpch: Path, table: str, letter: str, more: dict[str, str]) -> pa.Table:
    """Customers or suppliers with their city, nation and region: the first of every five."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    key = "c_custkey" if letter == "c" else "s_suppkey"
    names = [key, *(f"{letter}_{what}" for what in ("name", "address", "nationkey", "phone")), *more]
    rows = _read(tpch, table, *names)
    kept = pa.array(np.flatnonzero(rows[key].to_numpy() % FOLD == 1))
    rows = {name: column.take(kept) for name, column in rows.items()}
    nations = _read(tpch, "nation", "n_name", "n_regionkey")  # both tables stand in the order of their keys, from 0
    regions = _read(tpch, "region", "r_name")["r_name"]
    nation = nations["n_name"].take(rows[f"{letter}_nationkey"])
    region = regions.take(nations["n_regionkey"].take(rows[f"{letter}_nationkey"]))
    short = pc.utf8_rpad(pc.utf8_slice_codeunits(nation, 0, 9), 9, " ")
    digit = pc.utf8_slice_codeunits(rows[f"{letter}_phone"], -1)
    return _table(
        **{
            key: _folded(rows[key].to_numpy()),
            f"{letter}_name": rows[f"{letter}_name"],
            f"{letter}_address": pc.utf8_slice_codeunits(rows[f"{letter}_address"], 0, 25),
            f"{letter}_city": pc.binary_join_element_wise(short, digit, ""),
            f"{letter}_nation": nation,
            f"{letter}_region": region,
            f"{letter}_phone": rows[f"{letter}_phone"],
            **{name: rows[source] for name, source in more.items()},
        }
    )


def _parts(tpch: Path, parts: int) -> pa.Table:
    import numpy as np
    import pyarrow as pa

    rows = _read(tpch, "part", "p_partkey", "p_name", "p_brand", "p_type", "p_size", "p_container")
    kept = pa.array(np.flatnonzero(rows["p_partkey"].to_numpy() <= parts))
    rows = {name: column.take(kept) for name, column in rows.items()}
    names = rows["p_name"].to_pylist()
    words = [name.split(" ") for name in names]
    categories = [f"MFGR#{brand[-2:]}" for brand in rows["p_brand"].to_pylist()]
    numbers = [int(hashlib.md5(name.encode()).hexdigest()[:8], 16) % 40 + 1 for name in names]
    return _table(
        p_partkey=rows["p_partkey"].to_numpy(),
        p_name=[" ".join(word[:2]) for word in words],
        p_mfgr=[category[:6] for category in categories],
        p_category=categories,
        p_brand1=[f"{category}{number}" for category, number in zip(categories, numbers, strict=True)],
        p_color=[word[2] for word in words],
        p_type=rows["p_type"],
        p_size=rows["p_size"].to_numpy(),
        p_container=rows["p_container"],
    )


def _dates() -> pa.Table:
    import numpy as np

    days = [FIRST_DAY + timedelta(days=number) for number in range((LAST_DAY - FIRST_DAY).days + 1)]

    def numbers(values: Iterator[int]) -> Any:
        return np.array(list(values))

    def flags(values: Iterator[bool]) -> list[str]:
        return ["1" if value else "0" for value in values]

    # English names whatever the machine's language: `strftime` would follow it.
    months = [
        "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
        "December",
    ]  # fmt: skip
    weekdays = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
    return _table(
        d_datekey=numbers(day.year * 10_000 + day.month * 100 + day.day for day in days),
        d_date=[f"{months[day.month - 1]} {day.day}, {day.year}" for day in days],
        d_dayofweek=[weekdays[day.weekday()] for day in days],
        d_month=[months[day.month - 1] for day in days],
        d_year=numbers(day.year for day in days),
        d_yearmonthnum=numbers(day.year * 100 + day.month for day in days),
        d_yearmonth=[f"{months[day.month - 1][:3]}{day.year}" for day in days],
        d_daynuminweek=numbers((day.weekday() + 1) % 7 + 1 for day in days),
        d_daynuminmonth=numbers(day.day for day in days),
        d_daynuminyear=numbers(day.timetuple().tm_yday for day in days),
        d_monthnuminyear=numbers(day.month for day in days),
        d_weeknuminyear=numbers((day.timetuple().tm_yday - 1) // 7 + 1 for day in days),
        d_sellingseason=[SEASONS[max(month for month in SEASONS if month <= day.month)] for day in days],
        d_lastdayinweekfl=flags(day.weekday() == 5 for day in days),
        d_lastdayinmonthfl=flags((day + timedelta(days=1)).day == 1 for day in days),
        d_holidayfl=flags((day.month, day.day) in HOLIDAYS for day in days),
        d_weekdayfl=flags(day.weekday() < 5 for day in days),
    )

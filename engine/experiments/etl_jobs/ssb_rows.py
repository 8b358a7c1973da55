"""The steps of TPC-H to SSB on single rows, for tools that hand rows to functions. Standard library only."""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Any

Row = dict[str, Any]

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
SEASONS = ((11, "Christmas"), (9, "Fall"), (5, "Summer"), (4, "Spring"), (1, "Winter"))
HOLIDAYS = {(1, 1), (2, 20), (4, 20), (5, 20), (7, 20), (8, 20), (9, 20), (10, 20), (11, 20), (12, 24)}


def run(job: Callable[[Path, Path, int], Callable[[], None] | None]) -> None:
    """Run a job as the command line says; what it returns is done after the clock has stopped."""
    data, out, parts = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    begun = time.monotonic()
    after = job(data, out, parts)
    seconds = time.monotonic() - begun
    peak_mb = _peak_mb()
    if after is not None:
        after()
    sys.stdout.write(json.dumps({"seconds": seconds, "peak_mb": peak_mb}) + "\n")


def _peak_mb() -> float:
    """The most memory this process had. `getrusage` would count that of the process it was forked from."""
    status = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


def cents(text: str) -> int:
    """An amount with two places as whole cents."""
    whole, _, rest = text.partition(".")
    return int(whole + (rest + "00")[:2])


def day_key(text: str) -> int:
    """`1998-08-02` as 19980802."""
    return int(text.replace("-", ""))


def is_kept(key: str) -> bool:
    """Whether a customer or supplier is the first of five."""
    return int(key) % 5 == 1


def person(row: Mapping[str, str], letter: str, nations: Mapping[str, tuple[str, str]]) -> Row:
    """A customer or a supplier."""
    key = "c_custkey" if letter == "c" else "s_suppkey"
    nation, region = nations[row[f"{letter}_nationkey"]]
    made: Row = {
        key: (int(row[key]) + 4) // 5,
        f"{letter}_name": row[f"{letter}_name"],
        f"{letter}_address": row[f"{letter}_address"][:25],
        f"{letter}_city": nation[:9].ljust(9) + row[f"{letter}_phone"][-1],
        f"{letter}_nation": nation,
        f"{letter}_region": region,
        f"{letter}_phone": row[f"{letter}_phone"],
    }
    return {**made, "c_mktsegment": row["c_mktsegment"]} if letter == "c" else made


def part(row: Mapping[str, str]) -> Row:
    """A part."""
    name, category = row["p_name"], f"MFGR#{row['p_brand'][-2:]}"
    words = name.split(" ")
    number = int(hashlib.md5(name.encode()).hexdigest()[:8], 16) % 40 + 1
    return {
        "p_partkey": int(row["p_partkey"]),
        "p_name": " ".join(words[:2]),
        "p_mfgr": category[:6],
        "p_category": category,
        "p_brand1": f"{category}{number}",
        "p_color": words[2],
        "p_type": row["p_type"],
        "p_size": int(row["p_size"]),
        "p_container": row["p_container"],
    }


def lineorder(line: Mapping[str, str], order: Mapping[str, str], cost: int, parts: int) -> Row:
    """A line with its order and its supply cost."""
    price, discount = cents(line["l_extendedprice"]), cents(line["l_discount"])
    return {
        "lo_orderkey": int(line["l_orderkey"]),
        "lo_linenumber": int(line["l_linenumber"]),
        "lo_custkey": (int(order["o_custkey"]) + 4) // 5,
        "lo_partkey": (int(line["l_partkey"]) - 1) % parts + 1,
        "lo_suppkey": (int(line["l_suppkey"]) + 4) // 5,
        "lo_orderdate": day_key(order["o_orderdate"]),
        "lo_orderpriority": order["o_orderpriority"],
        "lo_shippriority": order["o_shippriority"],
        "lo_quantity": cents(line["l_quantity"]) // 100,
        "lo_extendedprice": price,
        "lo_ordtotalprice": cents(order["o_totalprice"]),
        "lo_discount": discount,
        "lo_revenue": price * (100 - discount) // 100,
        "lo_supplycost": cost,
        "lo_tax": cents(line["l_tax"]),
        "lo_commitdate": day_key(line["l_commitdate"]),
        "lo_shipmode": line["l_shipmode"],
    }


def days() -> Iterator[Row]:
    """The date dimension."""
    day, last = date(1992, 1, 1), date(1998, 12, 30)
    while day <= last:
        of_year, month = day.timetuple().tm_yday, MONTHS[day.month - 1]
        yield {
            "d_datekey": day.year * 10_000 + day.month * 100 + day.day,
            "d_date": f"{month} {day.day}, {day.year}",
            "d_dayofweek": WEEKDAYS[day.weekday()],
            "d_month": month,
            "d_year": day.year,
            "d_yearmonthnum": day.year * 100 + day.month,
            "d_yearmonth": f"{month[:3]}{day.year}",
            "d_daynuminweek": (day.weekday() + 1) % 7 + 1,
            "d_daynuminmonth": day.day,
            "d_daynuminyear": of_year,
            "d_monthnuminyear": day.month,
            "d_weeknuminyear": (of_year - 1) // 7 + 1,
            "d_sellingseason": next(name for first, name in SEASONS if day.month >= first),
            "d_lastdayinweekfl": str(int(day.weekday() == 5)),
            "d_lastdayinmonthfl": str(int((day + timedelta(days=1)).day == 1)),
            "d_holidayfl": str(int((day.month, day.day) in HOLIDAYS)),
            "d_weekdayfl": str(int(day.weekday() < 5)),
        }
        day += timedelta(days=1)

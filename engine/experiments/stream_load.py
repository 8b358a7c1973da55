"""A streaming warehouse of asked size for benchmarks: three hierarchies, two classes of periods, a load to order."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from engine.model.binding import Bound, bind
from engine.model.file import load, save
from engine.model.workflow import Workflow
from engine.operators import catalogue

TABLES = 30
FAST_S = 1.0
FIRST_FAST_ROWS_PER_S, FIRST_SLOW_ROWS_PER_S = 1_000.0, 15_000.0  # to begin with
LEAST_ROWS_PER_S = 50.0  # of the fast stream
FAST_BOUND_S, SLOW_BOUND_S = 10.0, 3.0  # the second in periods
USUAL, IMPORTANT = 1, 10  # priorities of section 4.4
HASHES = 40  # of each record that is cleaned, so that its cost is Spark's own work and not moving it
FAST_SHARE = 0.6  # of the load; the benchmark tells by simulation what other splits would give
FEWEST_FAST, MOST_FAST = 4, 18  # tables; the slow hierarchies have some as well
FAST = ("fast",)
NEAR = 0.06  # so near to what is wanted a try has to come, in all and by the share of the fast tables
LEFT = 0.05  # of a slow period on all tracks: so much may be left undone at the end of a try
FURTHEST = 3.0  # times the records of a try that the next one may have
FLATTEST = 0.25  # of an update's time, at least, that grows with its records: guesses go no further


@dataclass(frozen=True)
class Load:
    """How many tables are fast, how often the slow ones get data, and how much both get."""

    fast_tables: int
    slow_s: float
    slow_rows_per_s: float
    fast_rows_per_s: float = FIRST_FAST_ROWS_PER_S

    def period_s(self, table: str) -> float:
        """How often a table gets data."""
        return FAST_S if is_fast(table) else self.slow_s

    @property
    def sizes(self) -> dict[str, int]:
        """The tables of each hierarchy."""
        rest = TABLES - self.fast_tables
        return {"fast": self.fast_tables, "slow": rest - rest // 2, "bulk": rest // 2}


def is_fast(table: str) -> bool:
    """Whether a table is of the hierarchy that gets data each second."""
    return table.partition("_")[0] in FAST


def is_light(table: str) -> bool:
    """Whether an update of a table is short, and much of it overhead: not of the slow base tables."""
    return is_fast(table) or not table.endswith("_0")


def described(load_: Load, folder: Path) -> Bound:
    """The warehouse as a workflow: in each hierarchy a base table, views over it, and views over the first view.

    It puts together what sections 4.4 to 4.6 of the paper look at one by one. There are two classes of periods, with
    priorities that are the inverse of the period (section 4.6), and in both classes some tables matter ten times as
    much as others (section 4.4): here every other one, so that a base table, which nobody asks, matters less than the
    first view over it. The slow hierarchies are those of a nightly load made often: the base table is cleaned at
    length, one view sums it up, and the others are small and read that one. As dumps are made by the clock, two long
    jobs are due at once, twice a minute; each takes several periods of the fast tables, as in sections 1.1 and 4.6.
    """
    nodes: dict[str, Any] = {}
    edges: list[dict[str, str]] = []
    for name, size in load_.sizes.items():
        fast = name in FAST
        period = FAST_S if fast else load_.slow_s
        rate = load_.fast_rows_per_s if fast else load_.slow_rows_per_s
        _hierarchy(nodes, edges, name, size, period, rate, fast)
    document = {
        "papilio": 1,
        "name": "stream-bench",
        "roots": {"out": str(folder / "tables")},
        "nodes": nodes,
        "edges": edges,
    }
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "stream.butterfly.yaml"
    save(Workflow.model_validate(document), file)
    bound = bind(load(file), catalogue())
    bound.raise_errors()
    return bound


def _hierarchy(
    nodes: dict[str, Any], edges: list[dict[str, str]], name: str, size: int, period: float, rate: float, fast: bool
) -> None:

    def table(number: int, time_column: str) -> dict[str, Any]:
        weight = IMPORTANT if number % 2 else USUAL
        settings = {
            "path": f"${{out}}/{name}_{number}",
            "time_column": time_column,
            "priority": round(weight * 30 / period, 3),
            "partition_s": 10 * period,
            "staleness_bound_s": FAST_BOUND_S if fast else SLOW_BOUND_S * period,
        }
        return {"operator": "stream_table", "settings": settings}

    columns = {"key": "CAST(id % 16 AS INT)", "value": "id % 1000"}
    nodes[f"{name}_stream"] = {
        "operator": "generator_stream",
        "settings": {"period_s": period, "rows_per_s": rate, "columns": columns},
    }
    base = f"{name}_0"
    nodes[f"{name}_clean"] = {"operator": "filter", "settings": {"condition": _hashed("id", HASHES)}}
    nodes[base] = table(0, "ts")
    edges += [{"from": f"{name}_stream", "to": f"{name}_clean"}, {"from": f"{name}_clean.match", "to": base}]
    for number in range(1, size):
        view, source = f"{name}_{number}", base if number <= (2 * size // 3 if fast else 1) else f"{name}_1"
        if source == base:
            condition = _hashed(f"id + {number}", HASHES if fast else 0)
            nodes[f"{view}_part"] = {"operator": "filter", "settings": {"condition": condition}}
            nodes[f"{view}_view"] = {
                "operator": "materialized_view",
                "settings": {
                    "group": ["bucket", "key"],
                    "refresh": "incremental",
                    "aggregates": [
                        {"name": "n", "expression": "count(*)"},
                        {"name": "total", "expression": "sum(value)"},
                    ],
                },
            }
            nodes[f"{view}_time"] = {"operator": "time_bucket", "settings": {"column": "ts", "every_s": period}}
            chain = [source, f"{view}_part", f"{view}_time", f"{view}_view", view]
        else:
            nodes[f"{view}_part"] = {"operator": "filter", "settings": {"condition": f"key % 3 <> {number % 3}"}}
            chain = [source, f"{view}_part", view]
        nodes[view] = table(number, "bucket")
        for one, other in pairwise(chain):
            edges.append({"from": f"{one}.match" if one.endswith("_part") else one, "to": other})


def _hashed(value: str, times: int) -> str:
    """A condition that holds for every record and takes some time."""
    hard = f"CAST({value} AS STRING)"
    for _ in range(times):
        hard = f"sha2({hard}, 256)"
    return f"{hard} <> ''"


# ---------------------------------------------------------------- what its updates ask for


def utilization(load_: Load, costs: Mapping[str, float], tracks: int) -> tuple[float, float]:
    """The share of the tracks that the fast tables and the slow ones ask for."""
    fast = sum(cost for name, cost in costs.items() if is_fast(name)) / FAST_S
    slow = sum(cost for name, cost in costs.items() if not is_fast(name)) / load_.slow_s
    return fast / tracks, slow / tracks


def of_tables(load_: Load, costs: Mapping[str, float]) -> dict[str, float]:
    """What the tables of a load cost, by what those of another with as many records did."""
    fast = statistics.median(cost for name, cost in costs.items() if is_fast(name))
    light = statistics.median(cost for name, cost in costs.items() if is_light(name) and not is_fast(name))
    tables = [f"{name}_{number}" for name, size in load_.sizes.items() for number in range(size)]
    return {name: costs.get(name, fast if is_fast(name) else light) for name in tables}


def scaled(costs: Mapping[str, float], fast: float, slow: float) -> dict[str, float]:
    """What updates cost where those of the fast tables take so many times as long, and those of the heavy ones."""
    return {
        name: cost * fast if is_fast(name) else cost if is_light(name) else cost * slow for name, cost in costs.items()
    }


def first_guess(slow_s: float, wanted: float, tracks: int) -> tuple[Load, dict[str, float]]:
    """The load to begin with, and what its updates would cost if it were right."""
    load_ = Load(MOST_FAST, slow_s, FIRST_SLOW_ROWS_PER_S, FIRST_FAST_ROWS_PER_S)
    tables = [f"{name}_{number}" for name, size in load_.sizes.items() for number in range(size)]
    one = FAST_SHARE * wanted * tracks * FAST_S / MOST_FAST
    heavy = (1 - FAST_SHARE) * wanted * tracks * slow_s / sum(not is_light(name) for name in tables)
    return load_, {name: one if is_light(name) else heavy for name in tables}


@dataclass(frozen=True)
class Try:
    """What a short run asked of the tracks, as a share of what they can do, and what was left undone at its end."""

    fast_rate: float  # records a second
    slow_rate: float
    fast: float
    slow: float
    left: float = 0.0  # work that should have been done, as a share of a slow period on all tracks

    @property
    def asked(self) -> float:
        """By all tables."""
        return self.fast + self.slow

    @property
    def keeps_up(self) -> bool:
        """Whether next to nothing was left. Work that piles up is merged and looks cheaper than it is."""
        return self.left <= LEFT

    def fits(self, wanted: float) -> bool:
        """Whether it asked for what was wanted, and the fast tables for about their share of it."""
        near = abs(self.asked - wanted) <= NEAR and abs(self.fast / self.asked - FAST_SHARE) <= NEAR
        return self.keeps_up and near


def next_load(load_: Load, tries: Sequence[Try], wanted: float) -> Load:
    """The load to try next: other rates, and fewer fast tables where these ask for too much with hardly a record."""
    last, aim = tries[-1], FAST_SHARE * wanted
    fast, slow = next_rates(tries, wanted)
    tables = load_.fast_tables
    if last.fast_rate <= LEAST_ROWS_PER_S and last.fast > aim + NEAR:
        tables = max(FEWEST_FAST, math.floor(tables * aim / last.fast))
    return replace(load_, fast_tables=tables, fast_rows_per_s=fast, slow_rows_per_s=slow)


def next_rates(tries: Sequence[Try], wanted: float) -> tuple[float, float]:
    """The records a second of the fast and of the slow stream to try next, by the last two tries alone.

    Earlier ones say little: updates get cheaper for minutes while Java compiles. A try that does not keep up is too
    much, whatever its updates seemed to cost. Where the fast tables cannot ask for less, the slow ones have to.
    """
    last = tries[-1]
    aim = FAST_SHARE * wanted
    grows = 1.0  # how much of what is asked grows with the records; of the slow tables, nearly all
    if len(tries) > 1 and abs(tries[-2].fast_rate / last.fast_rate - 1) > NEAR:
        slope = (last.fast - tries[-2].fast) / (last.fast_rate - tries[-2].fast_rate)
        grows = min(max(slope * last.fast_rate / last.fast, FLATTEST), 1.0)
    fast = max(_towards(last.fast_rate, last.fast, aim, grows), LEAST_ROWS_PER_S)
    if last.fast_rate <= LEAST_ROWS_PER_S and last.fast > aim:
        aim = last.fast
    slow = _towards(last.slow_rate, last.slow, max(wanted - aim, 0.1), 1.0)
    if not last.keeps_up:
        slow = min(slow, last.slow_rate * (1 - min(last.left, 0.5) / 2))
    return round(fast), round(slow)


def _towards(rate: float, asked: float, aim: float, grows: float) -> float:
    """The rate at which tables may ask for their aim, where such a part of what they ask grows with it."""
    return rate * min(max(1 + (aim / asked - 1) / grows, 1 / FURTHEST), FURTHEST)

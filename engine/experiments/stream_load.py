"""A streaming warehouse of asked size for benchmarks: three hierarchies, two classes of periods, a load to order."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from engine.model.binding import Bound, bind
from engine.model.file import load, save
from engine.model.workflow import Workflow
from engine.operators import catalogue
from engine.operators.streams import MICROS, Stream
from engine.partition.tables import TablePlan, tables_of
from engine.spark.stream_feeds import feed_of
from engine.spark.stream_store import RecentRows, TableStore
from engine.spark.stream_update import BULK_ROWS, Updater

TABLES = 30
FAST_S = 1.0
FAST_ROWS_PER_S = 50.0
FAST_BOUND_S, SLOW_BOUND_S = 10.0, 3.0  # the second in periods
HASHES = 40  # of each slow record, so that its cost is Spark's own work and not moving it
FAST_SHARE = 0.6  # of the load; the benchmark tells by simulation what other splits would give
MOST_FAST = 22  # tables, so that the slow hierarchies have some as well
WARM_ROUNDS, WARM_S, SETTLED = 10, 90.0, 0.95  # until Java is done compiling: rounds at a time, at most, no quicker
FAST = ("fast",)
LEFT = 0.05  # of a slow period on all tracks: so much may be left undone at the end of a try
BRACKET = 0.15  # a try comes no nearer than this share of the gap to one that was too little or too much
BULKY = 1.5  # times the rows from which on Spark makes Java of an update: the first probe has so many


@dataclass(frozen=True)
class Load:
    """How many tables are fast, how often the slow ones get data, and how much."""

    fast_tables: int
    slow_s: float
    slow_rows_per_s: float

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
    """Whether the updates of a table are nearly all overhead: not the slow base tables, whose records are hashed."""
    return is_fast(table) or not table.endswith("_0")


def described(load_: Load, folder: Path) -> Bound:
    """The warehouse as a workflow: in each hierarchy a base table, views over it, and views over the first view.

    The slow hierarchies are those of a nightly load made often: the base table is cleaned at length, one view sums it
    up, and the others are small and read that one. Two long jobs are due at once, twice a minute.
    """
    nodes: dict[str, Any] = {}
    edges: list[dict[str, str]] = []
    for name, size in load_.sizes.items():
        fast = name in FAST
        period = FAST_S if fast else load_.slow_s
        _hierarchy(nodes, edges, name, size, period, FAST_ROWS_PER_S if fast else load_.slow_rows_per_s, fast)
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
    weigh = {
        "priority": round(30 / period, 3),  # so that all weigh the same at the end of their periods, as in section 4.6
        "partition_s": 10 * period,
        "staleness_bound_s": FAST_BOUND_S if fast else SLOW_BOUND_S * period,
    }
    columns = {"key": "CAST(id % 16 AS INT)", "value": "id % 1000"}
    nodes[f"{name}_stream"] = {
        "operator": "generator_stream",
        "settings": {"period_s": period, "rows_per_s": rate, "columns": columns},
    }
    hard = "CAST(id AS STRING)"
    for _ in range(0 if fast else HASHES):
        hard = f"sha2({hard}, 256)"
    base = f"{name}_0"
    nodes[f"{name}_clean"] = {"operator": "filter", "settings": {"condition": f"{hard} <> ''"}}
    nodes[base] = {"operator": "stream_table", "settings": {"path": f"${{out}}/{base}", "time_column": "ts", **weigh}}
    edges += [{"from": f"{name}_stream", "to": f"{name}_clean"}, {"from": f"{name}_clean.match", "to": base}]
    for number in range(1, size):
        view, source = f"{name}_{number}", base if number <= (2 * size // 3 if fast else 1) else f"{name}_1"
        if source == base:
            condition = f"CAST(id + {number} AS STRING) <> ''"
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
        time_column = "bucket"
        nodes[view] = {
            "operator": "stream_table", "settings": {"path": f"${{out}}/{view}", "time_column": time_column, **weigh}
        }  # fmt: skip
        for one, other in pairwise(chain):
            edges.append({"from": f"{one}.match" if one.endswith("_part") else one, "to": other})


# ---------------------------------------------------------------- what an update costs here and now


def warmed(folder: Path, spark: Any) -> float:
    """Update small tables until that gets no quicker; how long one then takes. What is measured cold is too much."""
    bound = described(Load(8, 30.0, 100.0), folder)
    plans = {plan.name: plan for plan in tables_of(bound)}
    probe = _Probe(bound, plans, spark)
    fast = [name for name in plans if is_fast(name)]
    ends, before, took = time.monotonic() + WARM_S, float("inf"), 0.0
    while time.monotonic() < ends and took < SETTLED * before:
        before, began = took or before, time.monotonic()
        for _ in range(WARM_ROUNDS):
            for name in fast:
                probe.update(name)
        took = (time.monotonic() - began) / (WARM_ROUNDS * len(fast))
    probe.close()
    return took


def measured(load_: Load, folder: Path, spark: Any, fast_rounds: int = 12) -> dict[str, float]:
    """E(P) of every table: seconds that an update with one period's data takes while another one runs beside it."""
    bound = described(load_, folder)
    plans = {plan.name: plan for plan in tables_of(bound)}
    probe = _Probe(bound, plans, spark)
    slow_done = threading.Event()
    failed: list[BaseException] = []

    def work(names: list[str], rounds: int, until: threading.Event | None) -> None:
        try:
            done = 0
            while done < rounds or (until is not None and not until.is_set() and done < 20 * rounds):
                done += 1
                for name in names:
                    probe.update(name)
        except BaseException as error:
            failed.append(error)
        finally:
            if until is None:
                slow_done.set()

    fast = [name for name in plans if is_fast(name)]
    slow = [name for name in plans if name not in fast]
    threads = [
        threading.Thread(target=work, args=(fast, fast_rounds, slow_done)),
        threading.Thread(target=work, args=(slow, 2, None)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    probe.close()
    if failed:
        raise failed[0]
    # The first updates of a table pay for compiling it.
    return {name: statistics.median(times[len(times) // 2 :]) for name, times in probe.seconds.items()}


class _Probe:
    """Updates tables one by one, in a time of its own, and writes down how long each update took."""

    def __init__(self, bound: Bound, plans: Mapping[str, TablePlan], spark: Any) -> None:
        recent, place = RecentRows(), bound.place()
        self.plans = plans
        self.stores = {
            name: TableStore(place.path(plan.operator.path), plan.operator.time_column, plan.partition_us, recent)
            for name, plan in plans.items()
        }
        self.updater = Updater(bound, plans, self.stores, spark, place)
        self.updater.prepare()
        self.begin = time.time()
        self.clock = dict.fromkeys(plans, self.begin)
        self.seconds: dict[str, list[float]] = {name: [] for name in plans}
        self.feeds = {}
        for name, plan in plans.items():
            if plan.stream is not None:
                stream = bound.operators[plan.stream]
                assert isinstance(stream, Stream)
                assert plan.stream_time is not None
                schema = self.updater.arrow[plan.stream]
                feed = feed_of(
                    stream, place, self.stores[name], schema, plan.stream_time, self.begin, lambda text: None
                )
                self.feeds[name] = feed

    def update(self, name: str) -> None:
        plan = self.plans[name]
        if plan.is_base:
            self.clock[name] += plan.period_s or FAST_S
            arrivals = self.feeds[name].poll(self.clock[name])
        began = time.monotonic()
        if plan.is_base:
            self.updater.load(plan, self.feeds[name], arrivals, self.clock[name])
        else:
            self.updater.follow(plan, round((self.begin + 1e9) * MICROS))
        self.seconds[name].append(time.monotonic() - began)

    def close(self) -> None:
        for store in self.stores.values():
            store.close()


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
    return {name: fast if is_fast(name) else light if is_light(name) else costs[name] for name in tables}


def at_rate(costs: Mapping[str, float], times: float) -> dict[str, float]:
    """What updates cost with so many times the slow records."""
    return {name: cost if is_light(name) else cost * times for name, cost in costs.items()}


def fast_tables_for(share: float, update_s: float, wanted: float, tracks: int, most: int = MOST_FAST) -> int:
    """How many fast tables ask for a share of the load, when an update of one takes so long."""
    return max(4, min(most, round(share * wanted * tracks / (update_s / FAST_S))))


def first_guess(
    folder: Path, spark: Any, slow_s: float, wanted: float, tracks: int, say: Any
) -> tuple[Load, dict[str, float]]:
    """A load that may ask for the wanted share of the tracks, once Spark is warm, and what its updates cost."""
    say(f"warm: an update with little data takes {1000 * warmed(folder / 'warm', spark):.0f} ms by itself")
    # As many rows as the slow tables will have: fewer go another way through Spark, at another price.
    probe = Load(8, slow_s, BULKY * BULK_ROWS / slow_s)
    costs = measured(probe, folder / "probe", spark)
    one = statistics.median(cost for name, cost in costs.items() if is_fast(name))
    found = replace(probe, fast_tables=fast_tables_for(FAST_SHARE, one, wanted, tracks))
    say(f"and {1000 * one:.0f} ms beside others: {found.fast_tables} of {TABLES} tables get data each second")
    guessed = of_tables(found, costs)
    rate = next_rate([Try(probe.slow_rows_per_s, *utilization(found, guessed, tracks))], wanted)
    guessed = at_rate(guessed, rate / probe.slow_rows_per_s)
    return replace(found, slow_rows_per_s=rate), guessed


@dataclass(frozen=True)
class Try:
    """What a short run asked of the tracks, as a share of what they can do, and what was left undone at its end."""

    rate: float  # of the slow tables' records
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


def next_rate(tries: Sequence[Try], wanted: float) -> float:
    """The rate to try next: on the line through the last two tries, between one that was too little and one too much.

    A try that does not keep up is too much, whatever its updates seemed to cost.
    """
    last = tries[-1]
    aim = max(wanted - last.fast, 0.1)
    guess = last.rate * aim / last.slow
    if len(tries) > 1 and tries[-2].rate != last.rate:
        slope = (last.slow - tries[-2].slow) / (last.rate - tries[-2].rate)
        if slope > 0 and all(one.keeps_up for one in tries[-2:]):
            guess = last.rate + (aim - last.slow) / slope
    if not last.keeps_up:
        guess = min(guess, last.rate * (1 - min(last.left, 0.5) / 2))
    guess = min(max(guess, last.rate / 4), last.rate * 4)
    low = max((one.rate for one in tries if one.keeps_up and one.asked <= wanted), default=0.0)
    high = min((one.rate for one in tries if not one.keeps_up or one.asked > wanted), default=float("inf"))
    if low < high < float("inf") and low:
        inside = BRACKET * (high - low)
        return min(max(guess, low + inside), high - inside)
    return guess


def best_try(tries: Sequence[Try], wanted: float) -> int:
    """Which of the tries to take: of those that keep up the one nearest to what is wanted, else the least of them."""
    good = [number for number, one in enumerate(tries) if one.keeps_up]
    if good:
        return min(good, key=lambda number: abs(tries[number].asked - wanted))
    return min(range(len(tries)), key=lambda number: tries[number].rate)

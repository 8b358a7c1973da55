"""A streaming warehouse live on Spark: the default policy against FIFO and EDF, at a load that fills this machine.

Three hierarchies of 30 tables in all, two classes of periods (1 s and 30 s; less where the run is short), priorities 1
and 10 in each class, one contender after the other on the same session with the same streams; `stream_load.described`
says why. How much of the load the fast tables bring is a choice; what other splits would give is told by simulation.
One track is what section 3.2 calls so: one queue that all processors work off. EDF with one job at a time, which cannot
carry such a load, is simulated unless `--full` runs it as well.

The load is found first by short runs, in turn under the default and under FIFO, until two in a row asked for about 92 %
of what the tracks can do, with the same records, and kept up with it. Utilisation is the paper's: the sum over all
tables of what one period's data cost, for each second of the period. As Java may compile for long and updates may cost
more beside others, each contender's own updates say afterwards what it was for that one: those that load one table, for
what a job for several saves is the policy's doing and not the load.

Which staleness bounds hold is predicted by simulation twice. Before the runs, from what updates cost in the trials: a
real forecast, wrong where the machine is slower or faster later on; it is told. After each run, from what updates cost
in that very run and from its own arrivals: this asks whether the model of the warehouse is right, not whether costs can
be foretold, and the claim is judged by it. It has nothing to say where the run was overloaded and no bound is predicted
to hold, so the number of those that are stands beside it. A bound counts as predicted to hold where it holds with every
seed. Staleness and bounds are those of the asked time, and busy tracks those from the first data of the slow tables on;
what is still running when it is over is left out.
"""

from __future__ import annotations

import math
import shutil
import statistics
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.events import EventLog
from engine.experiments.bench import Contender, Options, Report
from engine.experiments.stream_load import (
    FAST_SHARE,
    Load,
    Try,
    described,
    first_guess,
    is_fast,
    is_light,
    next_load,
    of_tables,
    scaled,
    utilization,
)
from engine.experiments.stream_seen import Seen
from engine.refresh.described import warehouse_of
from engine.refresh.estimates import Learnt
from engine.refresh.inheritance import Inheritance
from engine.refresh.live.warehouse import LiveSettings, LiveWarehouse
from engine.refresh.model import Warehouse
from engine.refresh.report import weighted_staleness
from engine.refresh.scheduler import Settings
from engine.refresh.simulator import Cost, Stream, World, simulate
from engine.spark.session import SparkSettings, close_session, open_session

ROUNDS = 1
SECONDS = 60.0  # of each contender; five minutes are the real thing
RESULTS = ("--seconds", "300")
TRACKS = 2
WANTED = 0.92  # of what the tracks can do
LEAST, MOST = 0.8, 1.0  # of it, for every contender
HALF = 0.5
FEWEST, TRIALS, PERIODS = 4, 8, 3  # to find the load: how many at least and at most, and how long each
LIGHT_DATA, HEAVY_DATA = 0.25, 0.9  # of an update's time, as the trials' costs are simulated
MOMENT_S = 0.1  # before the next slow data a trial ends
SEEDS = 5  # of a prediction
ASKED = "asked of the tracks, by the trials"
BY_TRIALS = "bounds, simulated by the costs of the trials"
BY_OWN = "bounds, simulated by the costs and arrivals of the run itself"
DEFAULT, FIFO, EDF, EDF_ALONE = "default", "FIFO", "EDF, one track", "EDF, one job at a time"

_PLAIN: dict[str, Any] = {
    "sharing": "one", "inheritance": Inheritance.NONE, "chop": None, "bounds": False, "together": False,
}  # fmt: skip
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)  # of the fast tables, for the splits that are simulated
CONTENDERS = {  # in this order, and every other round the other way round: Java gets faster for long
    FIFO: Settings(policy="fifo", tracks=TRACKS, **_PLAIN),
    DEFAULT: Settings(tracks=TRACKS),
    EDF: Settings(policy="edf", tracks=TRACKS, **_PLAIN),
    EDF_ALONE: Settings(policy="edf", tracks=1, **_PLAIN),
}
# The load is reckoned from tables that are updated one by one; nor does a simulation know what a job for several saves.
ONE_BY_ONE = {name: replace(settings, together=False) for name, settings in CONTENDERS.items()}


def benchmark(options: Options) -> Report:
    """A streaming warehouse live: the default policy against FIFO and EDF at 80-100 % utilisation (`--seconds`)."""
    folder = options.folder / "stream"
    shutil.rmtree(folder, ignore_errors=True)
    seconds = options.seconds or SECONDS
    slow_s = slow_period(seconds)
    spark = options.spark or open_session(SparkSettings(f"local[{TRACKS}]"))
    try:
        return _contest(options, spark, folder, seconds, slow_s)
    finally:
        if options.spark is None:
            close_session(spark)
        shutil.rmtree(folder, ignore_errors=True)


def slow_period(seconds: float) -> float:
    """The longer period, in whole tenths: three of them at least in a run."""
    return min(30.0, math.floor(10 * seconds / 3) / 10)


def _contest(options: Options, spark: Any, folder: Path, seconds: float, slow_s: float) -> Report:
    report = Report()
    load, costs = _tried(options, spark, folder, *first_guess(slow_s, WANTED, TRACKS))
    fast, slow = utilization(load, costs, TRACKS)
    report.facts |= {
        "seconds a contender": seconds, "tables": sum(load.sizes.values()), "by hierarchy": load.sizes,
        "periods, s": [1.0, slow_s],
        "records a second": {"fast": load.fast_rows_per_s, "slow": load.slow_rows_per_s},
        ASKED: round(fast + slow, 3), "by the fast tables": round(fast, 3),
    }  # fmt: skip
    world = _world(load, folder, _as_line(load, costs))
    known = {name: Learnt(cost, 0.0, None, 0) for name, cost in costs.items()}
    predicted = {name: _predicted(world, known, settings, seconds) for name, settings in ONE_BY_ONE.items()}
    for name in (FIFO, EDF, EDF_ALONE):
        report.facts[f"by simulation, default / {name}"] = round(predicted[DEFAULT][0] / predicted[name][0], 3)
    told = f"by simulation, default / {FIFO} and default / {EDF} at other shares of the fast tables"
    report.facts[told] = _splits(load, folder, costs, seconds)
    live = {name: settings for name, settings in CONTENDERS.items() if name != EDF_ALONE or options.full}
    for number in range(options.rounds):
        for name, settings in list(live.items())[:: -1 if number % 2 else 1]:
            kept = report.contenders.setdefault(name, Contender())
            if kept.failed:
                continue
            options.say(f"{name}, {seconds:g} s")
            try:
                found, seen = _live(load, folder / f"{name}-{number}", known, settings, seconds, spark)
            except Exception as error:  # the others go on
                kept.failed = f"{type(error).__name__}: {error}"[:300]
                options.say(f"{name} failed: {kept.failed}")
                continue
            own = seen.own_costs(costs, is_light)
            fast, slow = utilization(load, costs | _period_costs(load, seen.lines(is_light)), TRACKS)
            again = _world(load, folder, own, seen)
            simulated, holds = _predicted(again, known, settings, seconds)
            staleness, broken = seen.judged(seconds)
            kept.seconds.append(found["seconds"])
            kept.add(
                weighted_staleness=staleness, utilization=seen.busy(load.slow_s, seconds), updates=found["jobs"],
                bounds_broken=len(broken), asked=fast + slow, asked_by_fast_tables=fast,
                staleness_simulated_from_trials=predicted[name][0], staleness_simulated_from_own_costs=simulated,
            )  # fmt: skip
            for text, expected in ((BY_TRIALS, predicted[name][1]), (BY_OWN, holds)):
                told = report.facts.setdefault(text, {}).setdefault(
                    name, {"predicted to hold": 0, "of them broken": []}
                )
                told["predicted to hold"] += len(expected)
                told["of them broken"] += sorted(broken & expected)
    _judge(report)
    return report


def _tried(
    options: Options, spark: Any, folder: Path, load: Load, costs: dict[str, float]
) -> tuple[Load, dict[str, float]]:
    """The load that asks for the wanted share, and what updates cost when the warehouse runs: from short runs of it.

    The first runs meet a Java that is still compiling: one does not count, and none of the next ones is the last. A
    load whose work is not done by the end is too much. A try that fits is made again under the other policy, and has to
    fit there as well; where the tries come to an end before, the load is what the last of them suggests.
    """
    tries: list[Try] = []
    again = False  # whether the load of the last try fitted, and is tried again
    ends = PERIODS * load.slow_s - MOMENT_S
    for number in range(TRIALS + 1):
        known = {name: Learnt(cost, 0.0, None, 0) for name, cost in costs.items()}
        policy = FIFO if number % 2 else DEFAULT
        _, seen = _live(load, folder / f"trial-{number}", known, ONE_BY_ONE[policy], ends, spark)
        before, costs = costs, costs | _period_costs(load, seen.lines(is_light))
        fast, slow = utilization(load, costs, TRACKS)
        undone = sum(costs[name] for name in seen.unloaded(ends) if not is_fast(name))
        undone += sum(max(job.ended_s - ends, 0.0) for job in seen.jobs)
        tried = Try(load.fast_rows_per_s, load.slow_rows_per_s, fast, slow, undone / (TRACKS * load.slow_s))
        options.say(
            f"{policy}, {tried.fast_rate:,.0f} and {tried.slow_rate:,.0f} records a second for {load.fast_tables} fast "
            f"tables and the others ask for {fast:.0%} + {slow:.0%} of {TRACKS} tracks; they were "
            f"{seen.busy(load.slow_s, ends):.0%} busy, and {tried.left:.0%} of a period was left"
        )
        if number == 0:
            continue
        tries.append(tried)
        if tried.fits(WANTED):
            if number >= FEWEST and again:
                return load, {name: (cost + before[name]) / 2 for name, cost in costs.items()}
            again = True
            continue
        again = False
        load = next_load(load, tries, WANTED)
        costs = scaled(of_tables(load, costs), FAST_SHARE * WANTED / fast, (1 - FAST_SHARE) * WANTED / slow)
    return load, costs


def _judge(report: Report) -> None:
    done = [name for name in report.contenders if report.finished(name)]
    staleness = {name: report.contenders[name].figure("weighted_staleness") for name in done}
    for name in [name for name in done if name != DEFAULT and DEFAULT in staleness]:
        report.ratios[f"{DEFAULT} / {name}, weighted staleness"] = staleness[DEFAULT] / staleness[name]
    for name in (FIFO, EDF):
        text = f"the default's weighted staleness is at most half of {name}'s"
        if not report.finished(DEFAULT, name):
            report.claim(text, False, "not measured")
            continue
        ratio = staleness[DEFAULT] / staleness[name]
        report.claim(text, ratio <= HALF, f"{ratio:.2f}")
    for text, figure in (
        ("the load asks for 80 to 100 % of the tracks, by what updates cost under each policy", "asked"),
        ("the tracks are 80 to 100 % busy under each policy", "utilization"),
    ):
        if not report.finished(DEFAULT, FIFO, EDF):
            report.claim(text, False, "not measured")
            continue
        found = {name: report.contenders[name].figure(figure) for name in (DEFAULT, FIFO, EDF)}
        told = ", ".join(f"{value:.0%} {name}" for name, value in found.items())
        report.claim(text, all(LEAST <= value <= MOST for value in found.values()), told)
    text = "no bound is broken that simulation predicts to hold"
    if not report.finished(DEFAULT):
        report.claim(text, False, "not measured")
        return
    by_own, by_trials = report.facts[BY_OWN][DEFAULT], report.facts[BY_TRIALS][DEFAULT]
    report.claim(
        text,
        not by_own["of them broken"],
        f"{len(by_own['of them broken'])} of {by_own['predicted to hold']} by the run's own costs; by those of the "
        f"trials {len(by_trials['of them broken'])} of {by_trials['predicted to hold']}",
    )


def _period_costs(load: Load, lines: Mapping[str, Cost]) -> dict[str, float]:
    """E(P) of every table: what one period's data cost."""
    return {name: cost.alpha_s + cost.beta * load.period_s(name) for name, cost in lines.items()}


def _splits(load: Load, folder: Path, costs: dict[str, float], seconds: float) -> dict[str, list[float]]:
    """The default's weighted staleness over the others', were the load split otherwise between fast and slow tables."""
    found = {}
    for share in SHARES:
        fast, slow = utilization(load, costs, TRACKS)
        light = sum(cost for name, cost in costs.items() if is_light(name) and not is_fast(name))
        light /= TRACKS * load.slow_s
        times = share * WANTED / fast, ((1 - share) * WANTED - light) / (slow - light)
        if times[1] <= 0:
            continue  # the small tables alone ask for more
        split = scaled(costs, *times)
        world = _world(load, folder, _as_line(load, split))
        known = {name: Learnt(cost, 0.0, None, 0) for name, cost in split.items()}
        default, *others = (_predicted(world, known, ONE_BY_ONE[name], seconds)[0] for name in (DEFAULT, FIFO, EDF))
        found[f"{share:.0%}"] = [round(default / one, 2) for one in others]
    return found


def _live(
    load: Load, folder: Path, known: Mapping[str, Learnt], settings: Settings, seconds: float, spark: Any
) -> tuple[dict[str, Any], Seen]:
    bound, seen = described(load, folder), Seen()
    log = EventLog(folder / "events.jsonl")
    live = LiveSettings(settings, seconds, known)
    try:
        return LiveWarehouse(bound, live, spark, log, observer=seen.observer()).run(), seen
    finally:
        log.close()
        shutil.rmtree(folder / "tables", ignore_errors=True)


def _as_line(load: Load, costs: Mapping[str, float]) -> dict[str, Cost]:
    """E(P) as alpha and beta: the updates of heavy tables are nearly all data, those of the others mostly overhead."""
    data = {name: cost * (LIGHT_DATA if is_light(name) else HEAVY_DATA) for name, cost in costs.items()}
    return {name: Cost(cost - data[name], data[name] / load.period_s(name)) for name, cost in costs.items()}


def _world(load: Load, folder: Path, costs: Mapping[str, Cost], seen: Seen | None = None) -> World:
    """The same load to simulate: with a live run, its very arrivals and what its jobs for several tables shared."""
    warehouse = warehouse_of(described(load, folder / "simulated"))
    if seen is None:
        streams = {
            name: Stream(spec.period_s, spec.period_s)
            for name, spec in warehouse.tables.items()
            if spec.is_base and spec.period_s is not None
        }
        return World(warehouse, streams, costs)
    shared = {name: table.scan.value for name, table in seen.scheduler.tables.items()}
    specs = [replace(warehouse.tables[name], scan_share=shared[name]) for name in warehouse.order]
    return World(Warehouse(specs), {}, costs, arrived=tuple(seen.arrived))


def _predicted(world: World, known: Mapping[str, Learnt], settings: Settings, seconds: float) -> tuple[float, set[str]]:
    """What simulation says of a load: the mean weighted staleness, and the tables whose bounds hold with every seed."""
    staleness, holds = [], set(world.warehouse.tables)
    for seed in range(SEEDS):
        result = simulate(replace(world, seed=seed), settings, events=10**9, until_s=seconds, learnt=known)
        result.scheduler.account(seconds)
        staleness.append(weighted_staleness(result.scheduler, seconds))
        holds &= {name for name, table in result.scheduler.tables.items() if not table.breaks}
    return statistics.fmean(staleness), holds

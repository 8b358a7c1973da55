"""The butterfly of figure 1 on X-rays: memory over time and turns of each unit (scheduling, figure A1), simulated."""

from __future__ import annotations

from collections import Counter

from engine.experiments.experiment import Cell, Options, Report, Table, judged
from engine.experiments.scheduling import archetype
from engine.experiments.scheduling_runs import NAMES, SINGLE
from engine.experiments.svg import Chart
from engine.schedule.costs import Listeners, SimulationSettings, prepare
from engine.schedule.monitor import Monitor
from engine.schedule.turn import Decided

POINTS = 200  # of a curve


def experiment(options: Options) -> Report:
    """Queue memory every 100 ms and the turns of every unit of Fig. 1 (scheduling, fig. A1)."""
    bound = archetype("butterfly", 0.05 if options.quick else 0.2)
    curves: dict[str, list[int]] = {}
    turns: dict[str, Counter[str]] = {}
    results, averages, peaks = {}, {}, {}
    for policy in SINGLE:
        curve: list[int] = []
        counted: Counter[str] = Counter()

        def snapshot(now: float, monitor: Monitor, curve: list[int] = curve) -> None:
            curve.append(monitor.statistics.packs)

        def decided(entry: Decided, counted: Counter[str] = counted) -> None:
            counted[entry.activation.unit.id] += 1

        listeners = Listeners(on_decision=decided, on_snapshot=snapshot)
        simulation, _, _ = prepare(bound, SimulationSettings(policy=policy), None, listeners)
        results[policy] = simulation.run()
        curves[policy], turns[policy] = curve, counted
        averages[policy], peaks[policy] = results[policy].queue["avg_packs"], results[policy].queue["max_packs"]
    length = min(len(curve) for curve in curves.values())
    every = max(1, length // POINTS)
    memory = [(round(place * 0.1, 1), *(curves[policy][place] for policy in SINGLE)) for place in range(length)]
    calls: list[tuple[Cell, ...]] = [(node, *(turns[policy][node] for policy in SINGLE)) for node in bound.order]
    switches = {policy: results[policy].activations + results[policy].idle_calls for policy in SINGLE}
    shown = range(0, length, every)
    return Report(
        "Scheduling, figure A1: RR, MC and MM on the butterfly of figure 1 (simulated)",
        [
            Table("schedule_figa1_memory", ("seconds", *(NAMES[policy] for policy in SINGLE)), memory),
            Table("schedule_figa1_turns", ("unit", *(NAMES[policy] for policy in SINGLE)), calls),
        ],
        [
            Chart(
                "schedule_figa1",
                "Memory of all queues over time",
                "virtual seconds",
                "row packs",
                {NAMES[policy]: [curves[policy][place] for place in shown] for policy in SINGLE},
                [round(place * 0.1, 1) for place in shown],
            )
        ],
        [
            judged(
                "RR makes useless calls to activities that have nothing to do yet",
                results["rr"].idle_calls > 0,
                f"{results['rr'].idle_calls} beside {results['rr'].activations} useful ones",
            ),
            judged(
                "MC is more compact: fewer switches than RR",
                switches["mc"] < switches["rr"],
                f"{switches['mc']} against {switches['rr']}",
            ),
            judged(
                "MC's memory is slightly better than RR's",
                averages["mc"] <= averages["rr"],
                f"{averages['mc']:.1f} against {averages['rr']:.1f} packs on average",
            ),
            judged(
                "MM switches far more often than the others",
                switches["mm"] > max(switches["rr"], switches["mc"]),
                f"{switches['mm']} turns",
            ),
            judged(
                "MM keeps memory low in its peaks too: its peak is below the averages of the other two",
                peaks["mm"] < min(averages["rr"], averages["mc"]),
                f"a peak of {peaks['mm']:.0f} packs against averages of {averages['mc']:.1f} and {averages['rr']:.1f}",
            ),
        ],
    )

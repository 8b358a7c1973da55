"""The simulated backend: how many activations a second it handles, and what the scheduling paper found."""

from __future__ import annotations

import gc
import math
import statistics
import time
from dataclasses import replace
from random import Random
from typing import Any

from engine.experiments.bench import Contender, Options, Report
from engine.experiments.scheduling import (
    ARCHETYPES,
    archetype,
    generated_workflows,
    mixed_workflows,
    with_other_costs,
)
from engine.experiments.scheduling_runs import SINGLE, run, saved_by_mixed
from engine.model.binding import Bound
from engine.model.yamldata import collector_paused
from engine.schedule.costs import Listeners, SimulationSettings, prepare
from engine.schedule.turn import Decided

SCALES = (0.1, 0.3, 1.0)
DRAWS = 20  # of costs, for each archetype
PACE = 50_000  # activations a second
REPEATS, ENOUGH_S = 3, 0.1  # so many runs in each round, and for so long, of which the quickest counts


def benchmark(options: Options) -> Report:
    """Activations a second on Fig. 1, with and without the decision log; the paper's relations at its settings."""
    report = Report()
    _pace(report, options)
    options.say("the archetypes at three scales under three policies")
    _relations(report)
    options.say("the archetypes with other costs")
    _other_costs(report)
    options.say("20 workflows of 20 to 45 nodes under the mixed policy")
    _mixed(report)
    return report


def _pace(report: Report, options: Options) -> None:
    """Seconds of the processor, not of the clock, and the least of a few: what else the machine does can only add."""
    bound = archetype("butterfly", 1.0)
    paper = SimulationSettings()
    contenders = {f"fig1 {policy}, the paper's settings": replace(paper, policy=policy) for policy in SINGLE}
    # Turns of one pack: nothing but deciding and reporting.
    contenders["fig1 mm, one pack a turn"] = replace(paper, policy="mm", slot_ms=0.01)
    contenders["fig1 mc, queues of one pack"] = replace(paper, policy="mc", queue_packs=1)
    pace: dict[str, int] = {}
    for number in range(options.rounds):
        options.say(f"round {number + 1}: the Fig. 1 butterfly at scale 1")
        for name, settings in contenders.items():
            for label, logged in ((name, False), (f"{name}, with the decision log", True)):
                found = [_seconds(bound, settings, logged)]
                while len(found) < REPEATS or sum(seconds for seconds, _ in found) < ENOUGH_S:
                    found.append(_seconds(bound, settings, logged))
                report.contenders.setdefault(label, Contender()).seconds.append(min(seconds for seconds, _ in found))
                pace[label] = found[0][1]
    rates = {label: round(count / report.contenders[label].median) for label, count in pace.items()}
    report.facts["activations a second of processor time"] = rates
    mm, one = "fig1 mm, the paper's settings", "fig1 mm, one pack a turn"
    for text, label in (
        (f"at least {PACE:,} activations a second on Fig. 1 under MM at the paper's settings", mm),
        (f"at least {PACE:,} activations a second where a turn is one pack", one),
        (f"at least {PACE:,} a second there with the decision log", f"{one}, with the decision log"),
        (f"at least {PACE:,} a second under every policy, with the log and without", min(rates, key=rates.__getitem__)),
    ):
        report.claim(text, rates[label] >= PACE, f"{rates[label]:,} ({label})")
    for name in (mm, one):
        report.ratio(f"{name}, with the decision log", name)


def _seconds(bound: Bound, settings: SimulationSettings, logged: bool) -> tuple[float, int]:
    """The processor's seconds of one run, and its activations."""
    decisions: list[Decided] = []
    listeners = Listeners(on_decision=decisions.append if logged else None)
    simulation, _, _ = prepare(bound, settings, None, listeners)
    gc.collect()
    with collector_paused():  # its walks over all that lives here are no part of the simulation
        begun = time.process_time()
        result = simulation.run()
        seconds = time.process_time() - begun
    assert not logged or len(decisions) == result.activations
    return seconds, result.activations


def _relations(report: Report) -> None:
    slower = {"mc": 0.0, "mm": math.inf}  # than RR at most, than both others at least
    most, lean, uneven = 0.0, 1.0, 0.0
    table: dict[str, Any] = {}
    identical = True
    for name in ARCHETYPES:
        seconds: dict[tuple[str, float], float] = {}
        for scale in SCALES:
            runs = {policy: run(archetype(name, scale), policy) for policy in SINGLE}
            identical &= len({str(found["targets"]) for found in runs.values()}) == 1
            for policy in SINGLE:
                seconds[policy, scale] = runs[policy]["seconds"]
            memory = {policy: runs[policy]["queue"]["avg_packs"] for policy in SINGLE}
            slower["mc"] = max(slower["mc"], seconds["mc", scale] / seconds["rr", scale])
            others = max(seconds["mc", scale], seconds["rr", scale])
            slower["mm"] = min(slower["mm"], seconds["mm", scale] / others)
            most = max(most, memory["mm"] / min(memory["rr"], memory["mc"]))
            lean = min(lean, memory["mm"] / max(memory["rr"], memory["mc"]))
            table[f"{name} at scale {scale:g}"] = {
                policy: {
                    "seconds": round(seconds[policy, scale], 3),
                    "avg_packs": memory[policy],
                    "max_packs": runs[policy]["queue"]["max_packs"],
                }
                for policy in SINGLE
            }
        for policy in SINGLE:
            grown = seconds[policy, SCALES[-1]] / seconds[policy, SCALES[0]]
            uneven = max(uneven, abs(grown / (SCALES[-1] / SCALES[0]) - 1))
    report.facts["archetypes"] = table
    report.facts["MM's least share of another policy's average memory"] = round(lean, 3)
    report.identical = identical
    report.claim(
        "MC is no slower than RR on any archetype at any scale", slower["mc"] <= 1,
        f"{slower['mc']:.3f} times RR's time at most",
    )  # fmt: skip
    report.claim(
        "MM is the slowest on every archetype at every scale", slower["mm"] > 1,
        f"{slower['mm']:.3f} times the next one's time at least",
    )  # fmt: skip
    report.claim(
        "MM's average memory is at most half of every other policy's, in the best case a tenth",
        most <= 0.5 and lean <= 0.1, f"{most:.2f} of another's at most, {lean:.3f} in the best case",
    )  # fmt: skip
    report.claim("time is linear in the data, within 5 %", uneven <= 0.05, f"{uneven:.1%} beside it at most")


def _other_costs(report: Report) -> None:
    """Whether the relations hang on the default costs: the archetypes, with each node's cost drawn at random."""
    chance = Random(1)
    held = {"MC no slower than RR": 0, "MM slowest": 0, "MM at most half the memory": 0}
    cases = 0
    for name in ARCHETYPES:
        for _ in range(DRAWS):
            bound = with_other_costs(archetype(name, SCALES[0]), chance)
            rr, mc, mm = (run(bound, policy) for policy in SINGLE)
            cases += 1
            held["MC no slower than RR"] += mc["seconds"] <= rr["seconds"]
            held["MM slowest"] += mm["seconds"] > max(rr["seconds"], mc["seconds"])
            least = min(rr["queue"]["avg_packs"], mc["queue"]["avg_packs"])
            held["MM at most half the memory"] += mm["queue"]["avg_packs"] <= least / 2
    report.facts[f"of {cases} cases in which each node costs up to five times more or less"] = held


def _mixed(report: Report) -> None:
    like = [(kind, saved_by_mixed(bound)) for kind, bound in mixed_workflows()]
    # One table outweighs all others there, and a primary flow is one line: less can run side by side.
    unlike = [(shape, saved_by_mixed(bound, rows)) for shape, bound, rows in generated_workflows()]
    for place, units in enumerate(("operators", "subflows")):
        means = _means([(kind, saved[place]) for kind, saved in like])
        report.facts[f"saved by MP against the best single policy, units are {units}"] = means
        report.facts[f"saved by MP on 20 workflows of `papilio generate` over TPC-H, units are {units}"] = _means(
            [(shape, saved[place]) for shape, saved in unlike]
        )
        report.claim(
            f"MP saves 35 to 53 % of the time on average over 20 workflows (units are {units})",
            0.35 <= means["all"] <= 0.53, f"{means['all']:.1%}, from {means['least']:.1%} to {means['most']:.1%}",
        )  # fmt: skip


def _means(saved: list[tuple[str, float]]) -> dict[str, float]:
    every = [gain for _, gain in saved]
    kinds = {kind: [gain for other, gain in saved if other == kind] for kind, _ in saved}
    means = {kind: round(statistics.mean(found), 3) for kind, found in kinds.items()}
    return {
        **means,
        "all": round(statistics.mean(every), 4),
        "least": round(min(every), 3),
        "most": round(max(every), 3),
    }

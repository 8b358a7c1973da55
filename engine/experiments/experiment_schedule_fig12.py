"""The mixed policy on large workflows (scheduling, figure 12 and section 7.4), simulated."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from random import Random

from engine.experiments.experiment import Cell, Options, Report, Table, judged
from engine.experiments.scheduling import KINDS, generated_workflows, mixed_workflows
from engine.experiments.scheduling_runs import NAMES, SINGLE, run, saved_by_mixed
from engine.experiments.svg import Chart
from engine.model.binding import Bound

ROWS = (10_000, 20_000, 40_000, 80_000, 160_000)  # of a source, about
THETAS = (0, 1, 2, 4, 6)


def _table(name: str, found: Sequence[tuple[str, Bound, float, float]]) -> Table:
    rows = [(kind, bound.name, len(bound.order), round(one, 3), round(two, 3)) for kind, bound, one, two in found]
    return Table(name, ("kind", "workflow", "nodes", "saved (operator)", "saved (subflow)"), rows)


def experiment(options: Options) -> Report:
    """MP against the single policies: three workflows as the data grow, and 20 of 20 to 45 nodes (fig. 12)."""
    sizes = ROWS[:3] if options.quick else ROWS
    policies = (*SINGLE, "mixed")
    rows: list[tuple[Cell, ...]] = []
    charts: list[Chart] = []
    saved: dict[tuple[str, int], float] = {}
    memory: dict[tuple[str, str], float] = {}  # at the largest size
    for kind, make in KINDS.items():
        options.say(kind)
        seconds: dict[str, list[float]] = {policy: [] for policy in policies}
        for size in sizes:
            bound = make(size, Random(1))
            for policy in policies:
                summary = run(bound, policy)
                seconds[policy].append(summary["seconds"])
                memory[kind, policy] = summary["queue"]["avg_packs"]
            best = min(seconds[policy][-1] for policy in SINGLE)
            saved[kind, size] = 1 - seconds["mixed"][-1] / best
            values = [round(seconds[policy][-1], 3) for policy in policies]
            rows.append((kind, len(bound.order), size, *values, round(saved[kind, size], 3)))
        charts.append(
            Chart(
                f"schedule_fig12_{kind}",
                f"{kind}: execution time by data size",
                "rows of a source, about",
                "execution time (virtual seconds)",
                {NAMES[policy]: found for policy, found in seconds.items()},
                list(sizes),
            )
        )
    options.say("workflows of 20 to 45 nodes")
    like = [(kind, bound, *saved_by_mixed(bound)) for kind, bound in mixed_workflows(6 if options.quick else 20)]
    unlike = [(shape, bound, *saved_by_mixed(bound, known)) for shape, bound, known in generated_workflows(len(like))]
    by_theta: list[tuple[Cell, ...]] = [
        (
            theta,
            *(round(run(make(sizes[-1], Random(1)), "mixed", theta=theta)["seconds"], 3) for make in KINDS.values()),
        )
        for theta in THETAS
    ]
    operators, subflows = statistics.mean(each[2] for each in like), statistics.mean(each[3] for each in like)
    uneven = statistics.mean(each[2] for each in unlike), statistics.mean(each[3] for each in unlike)
    most = {kind: max(saved[kind, size] for size in sizes) for kind in KINDS}
    grows = all(saved[kind, sizes[-1]] >= saved[kind, sizes[0]] for kind in KINDS)
    return Report(
        "Scheduling, figure 12: the mixed policy (simulated, two cores)",
        [
            Table(
                "schedule_fig12", ("workflow", "nodes", "rows", *(NAMES[policy] for policy in policies), "saved"), rows
            ),
            _table("schedule_mixed_20", like),
            _table("schedule_mixed_generated", unlike),
            Table("schedule_theta", ("theta", *KINDS), by_theta, "seconds of MP at the largest size"),
        ],
        charts,
        [
            judged(
                "in all cases the savings go up to 40 % of the time",
                min(most.values()) >= 0.4,
                f"up to {', '.join(f'{100 * value:.0f} % ({kind})' for kind, value in most.items())}: two cores share "
                "the work, and with staging in between there are fewer turns to wake up for",
            ),
            judged(
                "the savings grow with the data",
                grows,
                ", ".join(f"{kind} {saved[kind, sizes[0]]:.3f} to {saved[kind, sizes[-1]]:.3f}" for kind in KINDS),
            ),
            judged(
                "35 to 53 % on average over 20 workflows of 20 to 45 nodes",
                0.35 <= operators <= 0.53,
                f"{100 * operators:.1f} % where units are operators, {100 * subflows:.1f} % where they are subflows, "
                "against the best single policy, on the paper's three kinds with lines of like size. On workflows of "
                "`papilio generate` over TPC-H, whose line items outweigh all other tables and whose primary flows "
                f"are one line, it is {100 * uneven[0]:.1f} % and {100 * uneven[1]:.1f} %",
            ),
            judged(
                "MP improves memory utilization",
                all(memory[kind, "mixed"] < min(memory[kind, policy] for policy in SINGLE[:2]) for kind in KINDS),
                "row packs on average under MC, MM and MP: "
                + ", ".join(
                    f"{kind} {memory[kind, 'mc']:.0f}, {memory[kind, 'mm']:.0f}, {memory[kind, 'mixed']:.0f}"
                    for kind in KINDS
                )
                + "; subflows that share the cores hold their queues at the same time",
            ),
        ],
    )

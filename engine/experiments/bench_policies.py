"""Round robin, minimum cost and minimum memory on Spark: time, and what waits in the queues."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from engine.experiments.bench import Options, Report
from engine.experiments.contest import Contest, Entry, contest
from engine.experiments.data import generate_tpch

SCALE = 0.3
ROUNDS = 3  # of rr and mc, whose seconds are compared; mm, which is slow, runs once
WORKFLOWS = ("fig1", "fork", "primary_flow")
POLICIES = ("rr", "mc", "mm")
HALF, TENTH = 0.5, 0.1
NOISE = 0.05  # two runs of the same differ by as much on a machine that does something else as well


def benchmark(options: Options) -> Report:
    """Policies at granularity operator on Fig. 1, a fork and a primary flow: seconds and queue memory."""
    scale = options.scale or SCALE
    data = options.folder / f"tpch-{scale:g}"
    options.say(f"TPC-H scale {scale:g}")
    generate_tpch(data, scale)
    with contest(options) as here:
        here.report.facts["scale"] = scale
        for workflow in WORKFLOWS:
            here.hold(list(_entries(here, workflow, data)))
        _conclude(here)
        return here.report


def _entries(here: Contest, workflow: str, data: Path) -> Iterator[Entry]:
    for policy in POLICIES:
        run = here.papilio(workflow, data, granularity="operator", policy=policy)
        yield Entry(f"{workflow} {policy}", run, answer=workflow, once=policy == "mm")


def _conclude(here: Contest) -> None:
    shares = {}
    for workflow in WORKFLOWS:
        rr, mc, mm = (f"{workflow} {policy}" for policy in POLICIES)
        slower = here.compare(mc, rr)
        here.report.claim(
            f"{workflow}: mc is no slower than rr", slower is not None and slower <= 1 + NOISE,
            "not measured" if slower is None else f"mc / rr = {slower:.2f}, noise {NOISE:.0%}",
        )  # fmt: skip
        here.compare(mm, rr)
        text = f"{workflow}: mm's average queue memory is at most half of rr's"
        if not here.report.finished(rr, mm):
            here.report.claim(text, False, "not measured")
            continue
        memory = {name: here.report.contenders[name].figure("queue_avg_mb") for name in (rr, mm)}
        shares[workflow] = share = memory[mm] / memory[rr] if memory[rr] else 1.0
        here.report.ratios[f"queue memory {mm} / {rr}"] = share
        here.report.claim(
            text, share <= HALF,
            f"{memory[mm]:.2f} MB against {memory[rr]:.2f} MB: {share:.2f}",
        )  # fmt: skip
    text = "in the best case mm's average queue memory is at most a tenth of rr's"
    best = min(shares, key=shares.__getitem__, default=None)
    if best is None:
        here.report.claim(text, False, "not measured")
    else:
        here.report.claim(text, shares[best] <= TENTH, f"{best}: {shares[best]:.2f}")

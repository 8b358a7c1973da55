"""The mixed policy against one policy for the whole flow, on the scheduling paper's three kinds of workflow."""

from __future__ import annotations

from pathlib import Path

from engine.experiments.bench import Options, Report
from engine.experiments.contest import Contest, Entry, contest
from engine.experiments.data import generate_tpch

SCALE = 0.1
ROUNDS = 1
WORKFLOWS = ("mixed_extract", "mixed_transform", "mixed_load")
SINGLE = ("rr", "mc", "mm")
GAIN = 0.35


def benchmark(options: Options) -> Report:
    """Mixed at granularity subflow against rr, mc and mm, with the share of the cores that each kept busy."""
    scale = options.scale or SCALE
    data = options.folder / f"tpch-{scale:g}"
    options.say(f"TPC-H scale {scale:g}")
    generate_tpch(data, scale)
    with contest(options) as here:
        here.report.facts["scale"] = scale
        for workflow in WORKFLOWS:
            here.hold([_entry(here, workflow, policy, data) for policy in (*SINGLE, "mixed")], warm=1)
            _conclude(here, workflow)
        return here.report


def _entry(here: Contest, workflow: str, policy: str, data: Path) -> Entry:
    run = here.papilio(workflow, data, granularity="subflow", policy=policy)
    return Entry(f"{workflow} {policy}", run, answer=workflow)


def _conclude(here: Contest, workflow: str) -> None:
    """The paper's gain is over the best of the single policies: how much less time the mixed one takes."""
    mixed = f"{workflow} mixed"
    singles = [name for policy in SINGLE if here.report.finished(name := f"{workflow} {policy}")]
    text = f"{workflow}: mixed takes at least {GAIN:.0%} less time than the best single policy"
    if not here.report.finished(mixed) or not singles:
        here.report.claim(text, False, "not measured")
        return
    contenders = here.report.contenders
    for name in singles:
        here.report.ratio(name, mixed)
    best = min(singles, key=lambda name: contenders[name].median)
    gain = 1 - contenders[mixed].median / contenders[best].median
    busy = {name: contenders[name].figure("utilisation") for name in (best, mixed)}
    here.report.claim(
        text, gain >= GAIN,
        f"{gain:.0%} less than {best}; cores busy {busy[best]:.0%} under it, {busy[mixed]:.0%} under mixed",
    )  # fmt: skip

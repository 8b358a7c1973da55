"""The mixed policy against one policy for the whole flow, on the scheduling paper's three kinds of workflow.

In the paper a unit is a thread, so one policy for the whole flow keeps one core busy, and the mixed one as many as
there are subflows side by side. A Spark job of one unit can already fill all cores; what is left to win is then what it
leaves idle, and the report says how much that is. The same workflows also run with one task in each job, which is
the paper's setting.

Those that may be the best take turns for several rounds, after one that does not count: a workflow of forty units
leaves Java much to compile, and who runs later runs faster. The slowest of the three runs in the last round alone.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from engine.experiments.bench import Options, Report
from engine.experiments.contest import Contest, Entry, Run, contest, missing_data
from engine.experiments.data import generate_tpch

SCALE = 0.1
ROUNDS = 3
WORKFLOWS = ("mixed_extract", "mixed_transform", "mixed_load")
SINGLE = ("rr", "mc")
SLOWEST = "mm"
GAIN = 0.35
ONE_TASK = "one task a job"
ONE_TASK_SCALE = 0.3  # of the data of the others: it takes twice as long
SETTINGS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.files.maxPartitionBytes": str(2**40),
    "spark.sql.files.minPartitionNum": "1",
}


def benchmark(options: Options) -> Report:
    """Mixed at granularity subflow against rr, mc and mm, with the share of the cores that each kept busy."""
    scale = options.scale or SCALE
    less = scale * ONE_TASK_SCALE
    missing = missing_data(
        options, {_title(one): partial(generate_tpch, _data(options, one), one) for one in (scale, less)}
    )
    with contest(options) as here:
        here.report.facts |= {"scale": scale, f"scale, {ONE_TASK}": less}
        for size, kind, single in ((scale, "", (*SINGLE, SLOWEST)), (less, ONE_TASK, SINGLE)):
            for workflow in WORKFLOWS:
                data = _data(options, size)
                entries = [_entry(here, workflow, policy, data, kind) for policy in (*single, "mixed")]
                if reason := missing.get(_title(size)):
                    here.leave_out(entries, reason)
                else:
                    here.hold(entries)
                _conclude(here, workflow, single, kind)
        return here.report


def _title(scale: float) -> str:
    return f"TPC-H scale {scale:g}"


def _data(options: Options, scale: float) -> Path:
    return options.folder / f"tpch-{scale:g}"


def _named(workflow: str, policy: str, kind: str) -> str:
    return f"{workflow} {policy}, {kind}" if kind else f"{workflow} {policy}"


def _entry(here: Contest, workflow: str, policy: str, data: Path, kind: str = "") -> Entry:
    run = here.papilio(workflow, data, granularity="subflow", policy=policy)
    if kind == ONE_TASK:
        run = _with(here.spark, SETTINGS, run)
    return Entry(_named(workflow, policy, kind), run, answer=f"{workflow} {kind}", once=policy == SLOWEST)


def _with(spark: Any, settings: dict[str, str], run: Run) -> Run:
    """The same run while the session has these settings."""

    def run_with(out: Path) -> Any:
        before = {name: spark.conf.get(name, None) for name in settings}
        for name, value in settings.items():
            spark.conf.set(name, value)
        try:
            return run(out)
        finally:
            for name, value in before.items():
                spark.conf.unset(name) if value is None else spark.conf.set(name, value)

    return run_with


def _conclude(here: Contest, workflow: str, single: tuple[str, ...], kind: str = "") -> None:
    """The paper's gain is over the best of the single policies: how much less time the mixed one takes."""
    mixed = _named(workflow, "mixed", kind)
    singles = [name for policy in single if here.report.finished(name := _named(workflow, policy, kind))]
    told = f"{workflow}, {kind}" if kind else workflow
    text = f"{told}: mixed takes at least {GAIN:.0%} less time than the best single policy"
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
        f"{gain:.0%} less than {best}; cores busy {busy[best]:.0%} under it, {busy[mixed]:.0%} under mixed: were they "
        f"never idle, it would be {max(0.0, 1 - busy[best]):.0%} less",
    )  # fmt: skip

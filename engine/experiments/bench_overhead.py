"""What Papilio itself costs: an empty workflow, one more unit, one more activation, and the telemetry of a run.

One more costs what a run with many takes longer than one with few that does the same work otherwise. A whole run
divided by its activations would have reading, writing and what a run takes once in it.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

from engine.experiments.bench import Options, Report
from engine.experiments.contest import Contest, Entry, Run, contest
from engine.experiments.data import generate_tpch
from engine.model.file import save
from engine.model.workflow import Workflow

SCALE = 0.1
SHARE = 0.03
PACKS = 40  # the activations of the flow whose telemetry is weighed are some three times as many
FEWER_PACKS = 10
LINE = 8
TELEMETRY_TIMES = 12  # as many rounds as elsewhere: two runs differ by ten times what is looked for
WARM_ROUNDS = 3
WITH, WITHOUT = "telemetry on", "telemetry off"


def benchmark(options: Options) -> Report:
    """An empty workflow, per unit and per activation, telemetry on and off."""
    scale = options.scale or SCALE
    data = options.folder / f"tpch-{scale:g}"
    options.say(f"TPC-H scale {scale:g}: partsupp")
    rows = generate_tpch(data, scale, tables=("partsupp",)).data.tables["partsupp"].rows
    with contest(options) as here:
        here.report.facts |= {"scale": scale, "rows": rows}
        file, many = _line_file(options.folder, 1), _in_packs(rows, PACKS)
        here.hold(
            [
                Entry(WITH, _weighed(_run(here, file, data, **many)), answer="many"),
                Entry(WITHOUT, _run(here, file, data, telemetry=False, **many), answer="many"),
            ],
            rounds=TELEMETRY_TIMES * options.rounds,
            warm_rounds=WARM_ROUNDS,
        )
        _telemetry(here)
        _activations(here, file, data, rows)
        _units(here, data)
        return here.report


def _in_packs(rows: int, packs: int) -> dict[str, Any]:
    """Room for one pack between two units: a turn is one pack whatever the clock says, so that all do the same."""
    return {"granularity": "operator", "policy": "rr", "pack_rows": -(-rows // packs), "queue_packs": 1}


def _activations(here: Contest, file: Path, data: Path, rows: int) -> None:
    """The same rows in a few packs and in many, told as in any run."""
    entries = [
        Entry(f"{packs} packs", _run(here, file, data, **_in_packs(rows, packs)), answer="many")
        for packs in (FEWER_PACKS, PACKS)
    ]
    here.hold(entries)
    _judge_activations(here.report, *(entry.name for entry in entries))


def _judge_activations(report: Report, few: str, many: str) -> None:
    if not report.finished(few, many):
        return
    fewer, more = (report.contenders[name] for name in (few, many))
    activations = more.figure("activations") - fewer.figure("activations")
    if activations <= 0:
        return
    each = [1000 * (high - low) / activations for low, high in zip(fewer.seconds, more.seconds, strict=True)]
    report.facts["milliseconds for one more activation"] = round(statistics.median(each), 1)
    report.facts["found between"] = (
        f"{fewer.figure('activations'):g} activations in {fewer.median:.2f} s and "
        f"{more.figure('activations'):g} in {more.median:.2f} s; by round {min(each):.1f} to {max(each):.1f} ms"
    )


def _telemetry(here: Contest) -> None:
    """What telemetry's own calls took, and by how much runs with it and without it differ.

    Two runs one after the other differ by ten times what telemetry costs, so many rounds are needed for the second;
    it has what cannot be counted, as that others had to wait.
    """
    counted, measured = (
        f"telemetry's own calls take less than {SHARE:.0%} of a run",
        f"a run takes less than {SHARE:.0%} longer with telemetry than without",
    )
    if not here.report.finished(WITH, WITHOUT):
        here.report.claim(counted, False, "not measured")
        here.report.claim(measured, False, "not measured")
        return
    on, off = here.report.contenders[WITH], here.report.contenders[WITHOUT]
    own = statistics.median(one / all_ for one, all_ in zip(on.figures["telemetry_s"], on.seconds, strict=True))
    cost, work = _more(on.seconds, off.seconds), _more(on.figures["processor_s"], off.figures["processor_s"])
    middle, busy = statistics.median(cost), statistics.median(work)
    here.report.ratios[f"{WITH} / {WITHOUT}"] = 1 + middle
    here.report.ratios[f"{WITH} / {WITHOUT}, processor"] = 1 + busy
    here.report.claim(counted, own < SHARE, f"{own:.1%}")
    here.report.claim(
        measured, max(middle, busy) < SHARE,
        f"{middle:+.1%}, the median of {len(cost)} rounds from {cost[0]:+.1%} to {cost[-1]:+.1%}; "
        f"of the processor's time {busy:+.1%}, from {work[0]:+.1%} to {work[-1]:+.1%}",
    )  # fmt: skip
    here.report.facts["telemetry's own calls, share of a run"] = round(own, 4)


class Weight:
    """The seconds that telemetry took."""

    def __init__(self) -> None:
        self._taken: list[float] = []  # several threads add to it

    @property
    def seconds(self) -> float:
        return sum(self._taken)

    def of(self, call: Callable[..., Any], clock: Callable[[], float]) -> Callable[..., Any]:
        """The same call, weighed."""

        def weighed(*given: Any) -> Any:
            begun = clock()
            try:
                return call(*given)
            finally:
                self._taken.append(clock() - begun)

        return weighed


@contextmanager
def weighing() -> Iterator[Weight]:
    """Weigh the telemetry of the runs that are begun meanwhile.

    Decisions, turns and snapshots by the processor's time of their threads; looking for Spark's jobs by the clock,
    for meanwhile Java works: that is more than both take together.
    """
    from engine.spark.jobs import JobsTold
    from engine.spark.pack_run import PackRun

    weight = Weight()
    with ExitStack() as patched:
        for owner, name, clock in (
            (PackRun, "_decided", time.thread_time),
            (PackRun, "_tell_turn", time.thread_time),
            (PackRun, "_tell_queues", time.thread_time),
            (JobsTold, "_look", time.monotonic),
        ):
            patched.enter_context(mock.patch.object(owner, name, weight.of(getattr(owner, name), clock)))
        yield weight


def _weighed(run: Run) -> Run:
    def weighed(out: Path) -> dict[str, float]:
        with weighing() as weight:
            figures = run(out)
        return {**(figures or {}), "telemetry_s": weight.seconds}

    return weighed


def _more(one: list[float], other: list[float]) -> list[float]:
    """By how much the first is above the second in each round, the least first."""
    return sorted(value / base - 1 for value, base in zip(one, other, strict=False))


def _units(here: Contest, data: Path) -> None:
    """Lines of one and of more nodes over hardly any rows: what the longer takes longer is the cost of its units."""
    empty = _empty_file(here.folder / "nothing")
    short, long = _line_file(here.folder, 1, limit=10), _line_file(here.folder, 1 + LINE, limit=10)
    operator: dict[str, Any] = {"granularity": "operator", "policy": "rr"}
    here.hold(
        [
            Entry("empty workflow, fused", _run(here, empty, empty.parent), answer="empty"),
            Entry("empty workflow, operator", _run(here, empty, empty.parent, **operator), answer="empty"),
            Entry("1 node, fused", _run(here, short, data), answer="ten"),
            Entry(f"{1 + LINE} nodes, fused", _run(here, long, data), answer="ten"),
            Entry("1 node, operator", _run(here, short, data, **operator), answer="ten"),
            Entry(f"{1 + LINE} nodes, operator", _run(here, long, data, **operator), answer="ten"),
        ]
    )
    for granularity in ("fused", "operator"):
        few, many = f"1 node, {granularity}", f"{1 + LINE} nodes, {granularity}"
        if here.report.finished(few, many):
            more = here.report.contenders[many].median - here.report.contenders[few].median
            here.report.facts[f"milliseconds for one more node, {granularity}"] = round(1000 * more / LINE, 1)


def _run(here: Contest, file: Path, data: Path, **schedule: Any) -> Any:
    return here.workflow(file, {"data_folder": str(data)}, **schedule)


def _line_file(folder: Path, length: int, limit: int | None = None) -> Path:
    """A line of derivations behind PartSupp, of which only the first few rows may count."""
    names = [f"step_{number}" for number in range(1, length + 1)]
    nodes: dict[str, Any] = {
        name: {"operator": "derive", "settings": {"columns": [{"name": "n", "expression": "ps_availqty + 1"}]}}
        for name in names
    }
    if limit is not None:
        nodes["first"] = {"operator": "filter", "settings": {"condition": f"ps_partkey <= {limit}"}}
        names.insert(0, "first")
    nodes["source"] = {"operator": "parquet_source", "settings": {"path": "${data}/partsupp.parquet"}}
    nodes["target"] = {"operator": "parquet_target", "settings": {"path": "${out}/line"}}
    return _saved(folder, f"line-{length}{'' if limit is None else '-few'}", nodes, ["source", *names, "target"])


def _empty_file(folder: Path) -> Path:
    """A source without rows, one activity, a target: the least there is."""
    import pyarrow as pa
    from pyarrow import parquet

    folder.mkdir(exist_ok=True)
    parquet.write_table(pa.table({"a": pa.array([], pa.int64())}), folder / "nothing.parquet")
    nodes = {
        "source": {"operator": "parquet_source", "settings": {"path": "${data}/nothing.parquet"}},
        "copy": {"operator": "copy"},
        "target": {"operator": "parquet_target", "settings": {"path": "${out}/line"}},
    }
    return _saved(folder, "empty", nodes, ["source", "copy", "target"])


def _saved(folder: Path, name: str, nodes: dict[str, Any], line: list[str]) -> Path:
    file = folder / f"{name}.butterfly.yaml"
    edges = [
        {"from": f"{source}.match" if source == "first" else source, "to": target} for source, target in pairwise(line)
    ]
    save(
        Workflow.model_validate(
            {
                "papilio": 1,
                "name": f"overhead-{name}",
                "parameters": {"data_folder": {"default": "data"}, "warehouse_folder": {"default": "out"}},
                "roots": {"data": "${data_folder}", "out": "${warehouse_folder}"},
                "nodes": nodes,
                "edges": edges,
            }
        ),
        file,
    )
    return file

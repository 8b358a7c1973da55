"""What becomes of time and memory as the data and the workflow grow.

Data: two shipped workflows at four scales, three times as much each time. Seconds are of one warm session; memory is
the peak of all processes of a run of its own, for a session never gives back what an earlier run took.
Nodes: generated butterflies of 10 to 300 nodes over little data, so that what is left is the cost of a node; and lines
of as many nodes, bound and compiled without being run. A node's cost is what each further one adds: what a run takes
once, however many nodes there are, would make it look cheaper among many.
"""

from __future__ import annotations

import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from engine.experiments.bench import Contender, Options, Report
from engine.experiments.contest import ENDING, SHIPPED, Contest, Entry, contest, missing_data
from engine.experiments.data import TPCH_SMALLEST_SCALE, generate_tpch
from engine.experiments.generate import Shape, generate
from engine.experiments.measure import measure
from engine.model.binding import Bound, bind
from engine.model.file import load, save
from engine.operators import catalogue

SCALE = 3.0  # the largest
ROUNDS = 2
SHARES = (1 / 30, 1 / 10, 1 / 3, 1.0)
WORKFLOWS = {"fig1": ("partsupp", "supplier"), "fork": ("lineitem",)}
NODES = (10, 30, 100, 300)
NODE_SCALE = 0.001
UNDER_NODES = f"TPC-H scale {NODE_SCALE:g}, and workflows of {NODES[0]} to {NODES[-1]} nodes over it"
SEED = 3
EXPONENT = 1.1
FLAT = 1.25  # so much more may a further node cost among many: less is not told from noise


def benchmark(options: Options) -> Report:
    """Time and peak memory as the data grow from 0.1 to 3 and the workflows from 10 to 300 nodes."""
    top = options.scale or SCALE
    scales = sorted({max(float(f"{top * share:.2g}"), TPCH_SMALLEST_SCALE) for share in SHARES})
    tables = sorted({table for some in WORKFLOWS.values() for table in some})
    small = options.folder / f"tpch-{NODE_SCALE:g}"
    makes: dict[str, Callable[[], object]] = {
        _data(scale): partial(generate_tpch, options.folder / f"growth-{scale:g}", scale, tables=tables)
        for scale in scales
    }
    makes[UNDER_NODES] = partial(_under_nodes, options.folder, small)
    missing = missing_data(options, makes)
    with contest(options) as here:
        here.report.facts |= {"scales": scales, "nodes": list(NODES), "scale under the nodes": NODE_SCALE}
        _nodes(here, small, missing.get(UNDER_NODES))
        for workflow in WORKFLOWS:
            entries = dict(zip(scales, _by_scale(here, workflow, scales), strict=True))
            for scale in scales:
                if reason := missing.get(_data(scale)):
                    here.leave_out([entries[scale]], reason)
            here.hold(list(entries.values()))
            _judge_data(here.report, workflow, scales)
    for workflow in WORKFLOWS:  # the session is closed: its memory is not theirs
        _memory_of_data(options, here.report, workflow, scales)
    _memory_of_nodes(options, here.report, small)
    return here.report


# ---------------------------------------------------------------- data


def _data(scale: float) -> str:
    return f"TPC-H scale {scale:g}"


def _name(workflow: str, scale: float) -> str:
    return f"{workflow}, scale {scale:g}"


def _by_scale(here: Contest, workflow: str, scales: Sequence[float]) -> Iterator[Entry]:
    for scale in scales:
        name = _name(workflow, scale)
        yield Entry(name, here.papilio(workflow, here.folder / f"growth-{scale:g}"), answer=name)


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """The power of the size that the seconds grow with: the slope of the line through both logarithms."""
    xs, ys = [math.log(size) for size in sizes], [math.log(value) for value in seconds]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((one - x) * (other - y) for one, other in zip(xs, ys, strict=True)) / sum((one - x) ** 2 for one in xs)


def _judge_data(report: Report, workflow: str, scales: Sequence[float]) -> None:
    found = [scale for scale in scales if report.finished(_name(workflow, scale))]
    text = f"{workflow}: time grows with the data by a power of at most {EXPONENT:g}, also between the two largest"
    if len(found) < 2:
        report.claim(text, False, "not measured")
        return
    seconds = [report.contenders[_name(workflow, scale)].median for scale in found]
    whole, last = exponent(found, seconds), exponent(found[-2:], seconds[-2:])
    report.claim(
        text, max(whole, last) <= EXPONENT,
        f"power {whole:.2f} over all, {last:.2f} from scale {found[-2]:g} to {found[-1]:g}; "
        + ", ".join(f"{scale:g}: {value:.2f} s" for scale, value in zip(found, seconds, strict=True)),
    )  # fmt: skip


def _memory_of_data(options: Options, report: Report, workflow: str, scales: Sequence[float]) -> None:
    file, peaks = SHIPPED / f"{workflow}{ENDING}", {}
    for scale in scales:
        if found := _peak_mb(options, report, _name(workflow, scale), file, options.folder / f"growth-{scale:g}"):
            peaks[scale] = found
    if len(peaks) > 1:
        report.facts[f"{workflow}: power of the data that the peak memory grows with"] = round(
            exponent(list(peaks), list(peaks.values())), 2
        )


def _peak_mb(options: Options, report: Report, name: str, file: Path, data: Path) -> float | None:
    """A run in processes of its own, once; their peak takes the place of the shared session's."""
    contender = report.contenders[name]
    contender.peak_mb = []
    if contender.failed:
        return None
    options.say(f"memory: {name}")
    out = options.folder / "memory"
    shutil.rmtree(out, ignore_errors=True)
    command = [
        sys.executable, "-m", "engine", "run", str(file), "--json",
        "--param", f"data_folder={data}", "--param", f"warehouse_folder={out}",
    ]  # fmt: skip
    reason = None
    try:
        done = measure(command, environment={**os.environ, "PAPILIO_HOME": str(out), "PAPILIO_STORE": ""})
        if done.code:
            reason = f"exit {done.code}: {done.errors.strip()[-300:]}"
    except OSError as error:
        reason = f"{type(error).__name__}: {error}"
    shutil.rmtree(out, ignore_errors=True)
    if reason is not None:
        report.facts[f"memory of {name}"] = f"not measured: {reason}"
        options.say(f"memory of {name} not measured: {reason}")
        return None
    contender.peak_mb.append(done.peak_mb)
    return done.peak_mb


# ---------------------------------------------------------------- nodes


def _run_of(count: int) -> str:
    return f"run {count} nodes"


def _memory_of_nodes(options: Options, report: Report, data: Path) -> None:
    peaks = {}
    for count in NODES:
        file = _file_of(options.folder, Shape.BUTTERFLY, count)
        if found := _peak_mb(options, report, _run_of(count), file, data):
            peaks[f"{count} nodes"] = round(found)
    if peaks:
        report.facts["peak MB of all processes"] = peaks


def _under_nodes(folder: Path, data: Path) -> None:
    """The little data, and the workflows over them."""
    generate_tpch(data, NODE_SCALE)
    for shape in (Shape.BUTTERFLY, Shape.LINE):
        for count in NODES:
            save(generate(count, shape, SEED), _file_of(folder, shape, count))


def _nodes(here: Contest, data: Path, missing: str | None) -> None:
    parameters = {"data_folder": str(data)}
    entries = [
        Entry(
            _run_of(count), here.workflow(_file_of(here.folder, Shape.BUTTERFLY, count), parameters), answer=f"{count}"
        )
        for count in NODES
    ]
    if missing:
        here.leave_out(entries, missing)
    else:
        here.hold(entries)
        for count in NODES:
            file = _file_of(here.folder, Shape.LINE, count)
            _timed(here, f"bind {count} nodes", partial(_binding, file, data))
            _timed(here, f"compile {count} nodes", partial(_compiling, here, file, data))
    for what in ("run", "bind", "compile"):
        _judge_nodes(here.report, what)


def _file_of(folder: Path, shape: Shape, count: int) -> Path:
    return folder / f"growth-{shape.value}-{count}{ENDING}"


def _bound(file: Path, data: Path) -> Bound:
    return bind(load(file), catalogue(), parameters={"data_folder": str(data), "warehouse_folder": str(data / "out")})


def _binding(file: Path, data: Path) -> Callable[[], object]:
    return partial(_bound, file, data)


def _compiling(here: Contest, file: Path, data: Path) -> Callable[[], object]:
    """What is bound beforehand does not count."""
    return partial(_compile, here, _bound(file, data))


def _compile(here: Contest, bound: Bound) -> None:
    from engine.partition.fused import fuse
    from engine.spark.compile import Compiler

    def nothing_held(unit: Any, node: str, port: str) -> Any:
        raise AssertionError("a line is one unit")

    plan = fuse(bound)
    compiler = Compiler(bound, plan, here.spark, bound.place(os.environ), nothing_held)
    for unit in plan.units:
        compiler.compile(unit)


def _timed(here: Contest, name: str, prepared: Callable[[], Callable[[], object]]) -> None:
    """A part of a run on its own, once to warm up and once for each round."""
    here.options.say(name)
    contender = here.report.contenders.setdefault(name, Contender())
    try:
        work = prepared()
        for number in range(here.options.rounds + 1):
            begun = time.perf_counter()
            work()
            if number:
                contender.seconds.append(time.perf_counter() - begun)
    except Exception as error:
        contender.failed = f"{type(error).__name__}: {error}"[:300]
        here.options.say(f"{name} failed: {contender.failed}")


def further_ms(seconds: Mapping[int, float]) -> dict[tuple[int, int], float]:
    """What each further node costs between one number of nodes and the next."""
    return {
        (fewer, more): 1000 * (seconds[more] - seconds[fewer]) / (more - fewer)
        for fewer, more in pairwise(sorted(seconds))
    }


def _judge_nodes(report: Report, what: str) -> None:
    found = [count for count in NODES if report.finished(f"{what} {count} nodes")]
    seconds = {count: report.contenders[f"{what} {count} nodes"].median for count in found}
    fewest, many, most = NODES[0], NODES[-2], NODES[-1]
    text = (
        f"{what}: a further node costs at most {FLAT:g} times as much from {many} to {most} as from {fewest} to {many}"
    )
    if not {fewest, many, most} <= seconds.keys():
        report.claim(text, False, "not measured")
        return
    steps = further_ms(seconds)
    report.facts[f"{what}: ms for a further node"] = {
        f"{fewer} to {more} nodes": round(ms, 2) for (fewer, more), ms in steps.items()
    }
    early = further_ms({count: seconds[count] for count in (fewest, many)})[fewest, many]
    late = further_ms({count: seconds[count] for count in (many, most)})[many, most]
    if early > 0:
        report.ratios[f"{what}: a further node, {many} to {most} / {fewest} to {many}"] = late / early
    report.claim(
        text, 0 < late <= FLAT * early,
        f"{early:.2f} ms from {fewest} to {many}, {late:.2f} ms from {many} to {most}; "
        + ", ".join(f"{count} nodes: {value:.3g} s" for count, value in seconds.items()),
    )  # fmt: skip

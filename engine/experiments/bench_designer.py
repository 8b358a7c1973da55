"""The canvas with large workflows, and the first window; each measured in a process of its own, offscreen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from engine.errors import EnvironmentProblem
from engine.experiments.bench import CLOCKS, Contender, Options, Report, is_quiet
from engine.experiments.bench_large_file import large_workflow
from engine.model.file import save

SIZES = (1_000, 5_000)
FRAMES = 60
FRAME_S = 0.016  # sixty frames a second


def benchmark(options: Options) -> Report:
    """Open 1,000 and 5,000 nodes, drag and pan them frame by frame; open the first window."""
    folder = options.folder / "designer"
    folder.mkdir(parents=True, exist_ok=True)
    save(large_workflow(60), folder / "warm.butterfly.yaml")
    save(large_workflow(1_000, one_source=True), folder / "one-source.butterfly.yaml")
    for size in SIZES:
        save(large_workflow(size), folder / f"{size}.butterfly.yaml")
    quiet = is_quiet()
    report = Report()
    for number in range(options.rounds):
        options.say(f"round {number + 1}: the first window")
        _take(report, _measure(folder, "window", repr(time.monotonic())))
        for size in SIZES:
            options.say(f"round {number + 1}: {size:,} nodes")
            found = _measure(folder, "canvas", str(folder / f"{size}.butterfly.yaml"), str(FRAMES))
            _take(report, {f"{name} {size:,}": value for name, value in found.items()})
        options.say(f"round {number + 1}: an edit at the source of all")
        _take(report, _measure(folder, "check", str(folder / "one-source.butterfly.yaml")))
    report.facts["seconds"] = "wall by the clock; busy by the processor's time of the designer's process alone"
    report.facts["frames"] = f"the 95th percentile of {FRAMES} frames, painted by the processor"
    report.facts["claims"] = CLOCKS[quiet]

    def claim(text: str, name: str, limit: float) -> None:
        busy, wall = report.contenders[f"{name}, busy"].median, report.contenders[f"{name}, wall"].median
        figures = f"{busy * 1000:,.1f} ms of the processor, {wall * 1000:,.1f} ms by the clock"
        report.claim(text, (wall if quiet else busy) < limit, figures)

    claim("the first window is there in under 1.5 s", "first window", 1.5)
    claim("1,000 nodes open in under 1 s", "open 1,000", 1.0)
    for what in ("pan", "drag one", "drag fifty", "pan far"):
        claim(f"1,000 nodes: a frame of `{what}` in under 16 ms", f"{what} 1,000", FRAME_S)
        claim(f"5,000 nodes: a frame of `{what}` in under 50 ms", f"{what} 5,000", 0.05)
    claim("1,000 nodes are checked within 200 ms of an edit", "problems 1,000", 0.2)
    claim("and of one at the source that all of them hang on", "problems from the source", 0.2)
    report.ratio("open 5,000, busy", "open 1,000, busy")
    return report


def _take(report: Report, found: dict[str, dict[str, float]]) -> None:
    for name, clocks in found.items():
        for clock, seconds in clocks.items():
            report.contenders.setdefault(f"{name}, {clock}", Contender()).seconds.append(seconds)


def _measure(folder: Path, *arguments: str) -> dict[str, Any]:
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "PAPILIO_HOME": str(folder / "home")}
    done = subprocess.run(
        [sys.executable, "-m", "designer.measure", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise EnvironmentProblem(f"the designer cannot be measured here: {done.stderr.strip()[-2000:]}")
    result: dict[str, Any] = json.loads(done.stdout)
    return result

"""The canvas with large workflows, and the first window; each measured in a process of its own, offscreen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from engine.errors import EnvironmentProblem
from engine.experiments.bench import Contender, Options, Report
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
    for size in SIZES:
        save(large_workflow(size), folder / f"{size}.butterfly.yaml")
    report = Report()
    report.contenders = {"first window": Contender()}
    for number in range(options.rounds):
        options.say(f"round {number + 1}: the first window")
        found = _measure(folder, "window")
        report.contenders["first window"].seconds.append(found["first window"])
        for size in SIZES:
            options.say(f"round {number + 1}: {size:,} nodes")
            for name, value in _measure(folder, "canvas", str(folder / f"{size}.butterfly.yaml"), str(FRAMES)).items():
                seconds = value["p95"] if isinstance(value, dict) else value
                report.contenders.setdefault(f"{name} {size:,}", Contender()).seconds.append(seconds)
    report.facts["seconds"] = "of the processor, for the designer's process alone"
    report.facts["frames"] = f"the 95th percentile of {FRAMES} frames, painted by the processor"
    medians = {name: contender.as_dict()["median"] for name, contender in report.contenders.items()}
    report.claims["the first window is there in under 1.5 s"] = medians["first window"] < 1.5
    report.claims["1,000 nodes open in under 1 s"] = medians["open 1,000"] < 1
    for what in ("pan", "drag one", "drag fifty", "pan far"):
        report.claims[f"1,000 nodes: a frame of `{what}` in under 16 ms"] = medians[f"{what} 1,000"] < FRAME_S
        report.claims[f"5,000 nodes: a frame of `{what}` in under 50 ms"] = medians[f"{what} 5,000"] < 0.05
    report.claims["1,000 nodes are checked within 200 ms of an edit"] = medians["problems 1,000"] < 0.2
    report.ratio("open 5,000", "open 1,000")
    return report


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

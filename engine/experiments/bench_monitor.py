"""The panels: a log of a million events opened and scrubbed, 10,000 events a second followed, 1,000 nodes replayed."""

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
from engine.experiments.scheduling import archetype
from engine.model.binding import Bound, bind
from engine.operators import catalogue
from engine.schedule.costs import SimulationSettings
from engine.simulation import launch_simulated

ROUNDS = 1
EVENTS, HOUR_S = 1_000_000, 3600  # what the long log has to have
# The butterfly of figure 1 with so many rows that it lasts an hour, and so many in a pack that one pack a turn makes a
# little more than a million events.
SCALE, PACK_ROWS = 44.0, 750
PACE = 10_000  # events a second
LIVE_S = 10
FRAMES = 100
GAP_S = 0.050


def benchmark(options: Options) -> Report:
    """Open and scrub a log of a million events, follow 10,000 events a second, replay on 1,000 nodes; offscreen."""
    quiet = is_quiet()
    folder = options.folder / "monitor"
    folder.mkdir(parents=True, exist_ok=True)
    options.say("simulating an hour of the Fig. 1 butterfly, a million events")
    packs = SimulationSettings(policy="mm", slot_ms=0.01, pack_rows=PACK_ROWS)
    long = _log(folder, "hour", archetype("butterfly", SCALE), packs)
    options.say("simulating a workflow of 1,000 nodes")
    large = _log(folder, "large", bind(large_workflow(1_000), catalogue()), SimulationSettings(policy="mm"))
    report = Report()
    for number in range(options.rounds):
        options.say(f"round {number + 1}: opening and scrubbing")
        found = _measure(folder, "open", long, FRAMES)
        _take(report, found)
        options.say(f"round {number + 1}: following {PACE:,} events a second")
        _take_live(report, _follow(folder, long))
        options.say(f"round {number + 1}: 1,000 nodes")
        nodes = _measure(folder, "canvas", large, FRAMES)
        for place in ("near", "far"):
            for clock, value in nodes[place].items():
                name = f"replay on 1,000 nodes, {place}, {clock}"
                report.contenders.setdefault(name, Contender()).seconds.append(value)
    report.facts["seconds"] = "wall by the clock; busy by the processor's time of the designer's process alone"
    report.facts["claims"] = CLOCKS[quiet]
    report.facts["frames"] = f"the 95th percentile of {FRAMES} frames, painted by the processor"
    medians = {name: contender.median for name, contender in report.contenders.items()}
    events, lasted = report.facts["events"], report.facts["seconds of the run"]
    report.claim(
        f"the long log has {EVENTS:,} events and lasts an hour",
        events >= EVENTS and lasted >= HOUR_S,
        f"{events:,} events, {lasted:,} s",
    )
    for text, name, limit in (
        ("a log of a million events opens in under 3 s", "open", 3.0),
        ("scrubbing it takes under 50 ms a frame", "scrub", GAP_S),
        ("no gap above 50 ms while it opens", "gap while opening", GAP_S),
        (f"no gap above 50 ms at {PACE:,} events a second", "gap while following", GAP_S),
        ("1,000 nodes are replayed in under 50 ms a frame", "replay on 1,000 nodes, near", GAP_S),
        ("1,000 nodes from afar are replayed in under 50 ms a frame", "replay on 1,000 nodes, far", GAP_S),
    ):
        busy, wall = medians[f"{name}, busy"], medians[f"{name}, wall"]
        counts = wall if quiet else busy
        report.claim(
            text, counts < limit, f"{busy * 1000:,.0f} ms of the processor, {wall * 1000:,.0f} ms by the clock"
        )
    kept_up = report.facts["events a second followed"] >= 0.95 * report.facts["events a second written"]
    report.claim("the panels keep up with the log", kept_up, f"{report.facts['events a second followed']:,} a second")
    return report


def _take(report: Report, found: dict[str, Any]) -> None:
    report.facts["events"] = found["events"]
    report.facts["seconds of the run"] = round(found["run seconds"])
    for name, value in (
        ("open, wall", found["wall"]),
        ("open, busy", found["busy"]),
        ("gap while opening, wall", found["gaps"]["wall max"]),
        ("gap while opening, busy", found["gaps"]["busy max"]),
        ("scrub, wall", found["scrub"]["wall"]),
        ("scrub, busy", found["scrub"]["busy"]),
    ):
        report.contenders.setdefault(name, Contender()).seconds.append(value)


def _take_live(report: Report, found: dict[str, Any]) -> None:
    report.facts["events a second followed"] = round(found["events a second"])
    report.facts["events a second written"] = round(found["written"])
    report.facts["part of a core while following"] = round(found["processor"], 2)
    report.facts["bytes behind while following (99th percentile)"] = found["bytes behind"]
    for name, value in (
        ("gap while following, wall", found["gaps"]["wall max"]),
        ("gap while following, wall, 99 of 100", found["gaps"]["wall p99"]),
        ("gap while following, busy", found["gaps"]["busy max"]),
    ):
        report.contenders.setdefault(name, Contender()).seconds.append(value)


def _log(folder: Path, name: str, bound: Bound, settings: SimulationSettings) -> Path:
    """The folder of a simulated run; made once."""
    run = folder / name
    if not (run / "summary.json").exists():
        for left in run.glob("*"):
            left.unlink()
        launch_simulated(bound, settings, folder=run, store=f"sqlite:///{folder / 'store.db'}")
    return run


def _environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "QT_QPA_PLATFORM": "offscreen", "PAPILIO_HOME": str(folder / "home")}


def _command(what: str, run: Path, log: Path, number: int) -> list[str]:
    workflow = str(run / "workflow.butterfly.yaml")
    return [sys.executable, "-m", "designer.measure_monitor", what, workflow, str(log), str(number)]


def _measure(folder: Path, what: str, run: Path, number: int) -> dict[str, Any]:
    command = _command(what, run, run / "events.jsonl", number)
    done = subprocess.run(command, env=_environment(folder), capture_output=True, text=True, check=False)
    return _answer(done.returncode, done.stdout, done.stderr)


def _answer(code: int, out: str, error: str) -> dict[str, Any]:
    if code != 0:
        raise EnvironmentProblem(f"the panels cannot be measured here: {error.strip()[-2000:]}")
    result: dict[str, Any] = json.loads(out)
    return result


def _follow(folder: Path, run: Path) -> dict[str, Any]:
    """Write a log at a steady pace while the designer follows it."""
    growing = folder / "growing.jsonl"
    with (run / "events.jsonl").open("rb") as lines, growing.open("wb") as log:
        log.write(next(lines))
        log.flush()
        command = _command("live", run, growing, LIVE_S)
        follower = subprocess.Popen(
            command, env=_environment(folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        written, begun = 0, time.perf_counter()
        while follower.poll() is None:
            due = int((time.perf_counter() - begun) * PACE) - written
            for _ in range(due):
                line = next(lines, None)
                if line is not None:
                    log.write(line)
            log.flush()
            written += due
            time.sleep(0.01)
        passed = time.perf_counter() - begun
        out, error = follower.communicate()
    return {**_answer(follower.returncode, out, error), "written": written / passed}

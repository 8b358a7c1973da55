"""The same workflow on classic Spark and on Sail, each by its whole command: the start of Spark is in the figures."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import psutil

from engine.errors import EnvironmentProblem
from engine.experiments.bench import Contender, Options, Report
from engine.experiments.contest import ENDING, SHIPPED, Digest, digests, importable, missing_data, versions_of
from engine.experiments.data import generate_tpch
from engine.experiments.measure import watched

SCALES = (0.01, 1.0)
MASTERS = {"Spark": "local[*]", "Sail": "sail"}


def benchmark(options: Options) -> Report:
    """`papilio run` of Fig. 1 on Spark and on Sail, from the command to the last target, small and large."""
    if skipped := importable("pysail"):
        raise EnvironmentProblem(f"Sail is not installed (pip install 'papilio[sail]'); {skipped}")
    facts = {"cores": psutil.cpu_count() or 1, "rounds": options.rounds, "versions": versions_of("pyspark", "pysail")}
    report = Report(facts=facts)
    scales = (options.scale,) if options.scale else SCALES
    makes = {
        f"TPC-H scale {scale:g}": partial(generate_tpch, _data(options, scale), scale, tables=("partsupp", "supplier"))
        for scale in scales
    }
    missing = missing_data(options, makes)
    for scale in scales:
        _at(options, report, scale, missing.get(f"TPC-H scale {scale:g}"))
    return report


def _data(options: Options, scale: float) -> Path:
    return options.folder / f"tpch-{scale:g}"


def _at(options: Options, report: Report, scale: float, reason: str | None) -> None:
    """All at one scale; one that fails is out, the others go on."""
    titles = {name: f"{name}, scale {scale:g}" for name in MASTERS}
    found: dict[str, dict[str, Digest]] = {}
    for title in titles.values():
        report.contenders[title] = Contender(failed=reason)
    for number in range(options.rounds):
        for name, master in MASTERS.items():
            contender = report.contenders[titles[name]]
            if contender.failed:
                continue
            options.say(f"round {number + 1} of {options.rounds}: {titles[name]}")
            try:
                found[name] = _run(options.folder, _data(options, scale), master, contender)
            except (EnvironmentProblem, OSError) as error:
                contender.failed = f"{type(error).__name__}: {error}"
                options.say(f"{titles[name]} failed: {contender.failed}")
    if report.finished(*titles.values()):
        report.identical = found["Spark"] == found["Sail"] and report.identical is not False
        report.ratio(titles["Spark"], titles["Sail"])


def _run(folder: Path, data: Path, master: str, contender: Contender) -> dict[str, Digest]:
    out, run = folder / "targets", folder / "run"
    for old in (out, run):
        shutil.rmtree(old, ignore_errors=True)
    command = [sys.executable, "-m", "engine", "run", str(SHIPPED / f"fig1{ENDING}"), "--master", master, "--json",
               "--param", f"data_folder={data.resolve()}", "--param", f"warehouse_folder={out.resolve()}",
               "--run-dir", str(run)]  # fmt: skip
    own = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with watched() as watch:
        begun = time.monotonic()
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=own)
        seconds = time.monotonic() - begun
    if done.returncode != 0:
        raise EnvironmentProblem(f"papilio run --master {master} ended with {done.returncode}: {done.stderr[-500:]}")
    contender.seconds.append(seconds)
    contender.peak_mb.append(watch.mb)
    contender.add(run_s=json.loads(done.stdout)["seconds"], processor_s=watch.processor_seconds)
    answer = digests(out)
    shutil.rmtree(out, ignore_errors=True)
    return answer

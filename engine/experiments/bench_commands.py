"""How soon the commands answer that need no Spark, beside Python itself."""

from __future__ import annotations

import compileall
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import engine
import workflows
from engine.errors import EnvironmentProblem
from engine.experiments.bench import Contender, Options, Report
from engine.experiments.data import generate_tpch

ROUNDS = 5
LIMIT_S = 0.7
PYTHON = "python -c pass"
FIG1 = Path(workflows.__file__).parent / "fig1.butterfly.yaml"


def benchmark(options: Options) -> Report:
    """Start each command that needs no Spark, of Fig. 1 over data that is there and over data that is not."""
    data, home = options.folder / "commands-tpch", options.folder / "commands-home"
    generate_tpch(data, options.scale or 0.01, tables=["partsupp", "supplier"])
    there = ["--param", f"data_folder={data}", "--param", f"warehouse_folder={options.folder / 'commands-fig1'}"]
    run = options.folder / "commands-run"
    _prepare(run, home, there)
    gone = ["--param", f"data_folder={options.folder / 'nowhere'}"]
    commands = {
        "--help": ["--help"],
        "check": ["check", str(FIG1), *there],
        "check, data out of reach": ["check", str(FIG1), *gone],
        "partition": ["partition", str(FIG1), *there],
        "plan": ["plan", str(FIG1), *there],
        "export to pyspark": ["export", str(FIG1), "--to", "pyspark", *there],
        "export to xml": ["export", str(FIG1), "--to", "xml"],
        "operators": ["operators"],
        "schema": ["schema"],
        "store list": ["store", "list"],
        "store put": ["store", "put", str(FIG1)],
        "history": ["history"],
        "watch": ["watch", str(run)],
        "compare": ["compare", str(run), str(run)],
        "bench": ["bench"],
        "experiment": ["experiment"],
    }
    report = Report(contenders={name: Contender() for name in (PYTHON, *commands)})
    # The first round only brings the modules into the system's memory.
    for number in range(options.rounds + 1):
        options.say(f"round {number} of {options.rounds}" if number else "warm-up")
        for name, contender in report.contenders.items():
            program = ["-m", "engine", *commands[name]] if name in commands else ["-c", "pass"]
            seconds, processor = _timed(program, home)
            if number:
                contender.seconds.append(seconds)
                contender.add(processor_s=processor)
    for name in commands:
        report.ratio(name, PYTHON)
        answer = report.contenders[name]
        figures = f"median {answer.median:.2f} s, of which {answer.figure('processor_s'):.2f} s of the processor"
        report.claim(f"{name} answers in under {LIMIT_S} s", answer.median < LIMIT_S, figures)
    return report


def _prepare(run: Path, home: Path, given: list[str]) -> None:
    """A run to look at; and compiled modules, as the set-up leaves them, also where Python may not keep them itself."""
    for package in (engine, workflows):
        compileall.compile_dir(package.__path__[0], quiet=2)
    shutil.rmtree(run, ignore_errors=True)
    _timed(["-m", "engine", "run", str(FIG1), "--backend", "simulated", "--run-dir", str(run), *given], home)


def _timed(program: list[str], home: Path) -> tuple[float, float]:
    """The seconds and the processor's seconds of a program that ends well."""
    before, begun = os.times(), time.perf_counter()
    done = subprocess.run(
        [sys.executable, *program],
        env={**os.environ, "PAPILIO_HOME": str(home), "PAPILIO_STORE": ""},
        check=False,
        capture_output=True,
        text=True,
    )
    seconds, after = time.perf_counter() - begun, os.times()
    if done.returncode not in (0, 2):  # 2: a source is out of reach
        raise EnvironmentProblem(f"`{' '.join(program)}` failed: {done.stderr.strip()}")
    processor = after.children_user + after.children_system - before.children_user - before.children_system
    return seconds, processor

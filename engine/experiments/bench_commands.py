"""How soon the commands answer that need no Spark, beside Python itself."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import workflows
from engine.drawing import can_draw
from engine.errors import EnvironmentProblem
from engine.experiments.bench import Contender, Options, Report
from engine.experiments.data import generate_tpch

ROUNDS = 5
LIMIT_S = 0.7
PYTHON = "python -c pass"
OUT_OF_REACH = "check, data out of reach"
SHIPPED = Path(workflows.__file__).parent
FIG1 = SHIPPED / "fig1.butterfly.yaml"
TABLES = ("partsupp", "supplier")
RUN_BEGINS_S = 30  # a paused run has its log by then

# A window, a process that is talked to, Spark itself, and data that are made, which takes what it takes.
LEFT_OUT = ("design", "serve", "warm", "stream run", "scale run", "data ssb")


@dataclass(frozen=True)
class Places:
    """Where the commands find what they are asked about, below one folder."""

    folder: Path
    scale: float

    def __call__(self, name: str) -> Path:
        return self.folder / f"commands-{name}"


def commands(at: Places) -> dict[str, list[str]]:
    """Each command that needs no Spark, as it is written. Those that take a workflow have Fig. 1.

    Simulations are short ones: a long one takes what it takes.
    """
    there = ["--param", f"data_folder={at('tpch')}", "--param", f"warehouse_folder={at('fig1')}"]
    gone = ["--param", f"data_folder={at('nowhere')}"]
    fig1, elastic = str(FIG1), str(SHIPPED / "elastic_tpch_to_ssb.butterfly.yaml")
    stream = [str(SHIPPED / "stream_network.butterfly.yaml"), "--param", f"warehouse_folder={at('stream')}"]
    data = ["data", "tpch", "--scale", f"{at.scale:g}", "--tables", ",".join(TABLES), "--to", str(at("tpch"))]
    found = {
        "--help": ["--help"],
        "--version": ["--version"],
        "run --help": ["run", "--help"],
        "check": ["check", fig1, *there],
        OUT_OF_REACH: ["check", fig1, *gone],
        "partition": ["partition", fig1, *there],
        "plan": ["plan", fig1, *there],
        "run, simulated": ["run", fig1, "--backend", "simulated", *there],
        "export to pyspark": ["export", fig1, "--to", "pyspark", *there],
        "export to xml": ["export", fig1, "--to", "xml"],
        "generate": ["generate", "--nodes", "30", "--to", f"{at('generated')}.butterfly.yaml", "--replace"],
        "trust": ["trust", fig1, "--yes"],
        "operators": ["operators"],
        "operators, one": ["operators", "join"],
        "schema": ["schema"],
        "store list": ["store", "list"],
        "store put": ["store", "put", fig1],
        "store get": ["store", "get", "fig1"],
        "store versions": ["store", "versions", "two"],
        "store diff": ["store", "diff", "two", "1", "2"],
        "store export": ["store", "export", str(at("xml"))],
        "store import": ["store", "import", str(at("xml"))],
        "history": ["history"],
        "watch": ["watch", str(at("run"))],
        "replay": ["replay", str(at("run")), "--speed", "1000000"],
        "compare": ["compare", str(at("run")), str(at("run"))],
        "control": ["control", str(at("paused")), "step"],
        "packs": ["packs", str(at("run"))],
        "packs, of a queue": ["packs", str(at("run")), "b.in"],
        "stream simulate, 500 events": ["stream", "simulate", *stream, "--count", "500"],
        "stream show": ["stream", "show", *stream],
        "scale simulate, three minutes": ["scale", "simulate", elastic],
        "data, there already": data,
        "results": ["results", "--list"],
        "bench": ["bench"],
        "experiment": ["experiment"],
    }
    for form in ("svg", "png") if can_draw() else ("svg",):
        found[f"export to {form}"] = ["export", fig1, "--to", form, "--output", f"{at('picture')}.{form}"]
    return found


def benchmark(options: Options) -> Report:
    """Start each command that needs no Spark, of Fig. 1 over data that is there and over data that is not."""
    at = Places(options.folder, options.scale or 0.01)
    asked = commands(at)
    report = Report(contenders={name: Contender() for name in (PYTHON, *asked)})
    _prepare(at)
    with _paused(at):
        # The first round only compiles the modules and brings them into the system's memory.
        for number in range(options.rounds + 1):
            options.say(f"round {number} of {options.rounds}" if number else "warm-up")
            for name, contender in report.contenders.items():
                if contender.failed:
                    continue
                program = ["-m", "engine", *asked[name]] if name in asked else ["-c", "pass"]
                try:
                    seconds, processor = _timed(program, at("home"), ends=2 if name == OUT_OF_REACH else 0)
                except (EnvironmentProblem, OSError) as error:
                    contender.failed = f"{type(error).__name__}: {error}"[:300]
                    options.say(f"{name} failed: {contender.failed}")
                    continue
                if number:
                    contender.seconds.append(seconds)
                    contender.add(processor_s=processor)
    for name in asked:
        text, answer = f"{name} answers in under {LIMIT_S} s", report.contenders[name]
        if not report.finished(name):
            report.claim(text, False, "not measured")
            continue
        if report.finished(PYTHON):
            report.ratio(name, PYTHON)
        figures = f"median {answer.median:.2f} s, of which {answer.figure('processor_s'):.2f} s of the processor"
        report.claim(text, answer.median < LIMIT_S, figures)
    return report


def _prepare(at: Places) -> None:
    """Data, a run and a store."""
    generate_tpch(at("tpch"), at.scale, tables=list(TABLES))
    for old in (at("run"), at("paused"), at("home"), at("stream")):
        shutil.rmtree(old, ignore_errors=True)
    asked = commands(at)
    _timed(["-m", "engine", *asked["run, simulated"], "--run-dir", str(at("run"))], at("home"))
    for file in (FIG1, SHIPPED / "wishbone.butterfly.yaml"):
        _timed(["-m", "engine", "store", "put", str(file), "--name", "two"], at("home"))
    # What a paused run on Spark says of its queues.
    pack = at("tpch") / "supplier.parquet"
    held = {"a.out > b.in": [{"pack": "1", "rows": 100, "bytes": pack.stat().st_size, "path": str(pack)}]}
    (at("run") / "paused.json").write_text(json.dumps(held), encoding="utf-8")


@contextlib.contextmanager
def _paused(at: Places) -> Iterator[None]:
    """A simulated run that is paused, for those who drive one."""
    command = [*commands(at)["run, simulated"], "--paused", "--run-dir", str(at("paused"))]
    with subprocess.Popen(
        [sys.executable, "-m", "engine", *command],
        env=_environment(at("home")),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as run:
        try:
            deadline = time.monotonic() + RUN_BEGINS_S
            while not (at("paused") / "control.jsonl").exists() and run.poll() is None and time.monotonic() < deadline:
                time.sleep(0.05)
            yield
        finally:
            run.terminate()


def _environment(home: Path) -> dict[str, str]:
    """Python may keep compiled modules here, so that the warm-up leaves them all as the set-up does."""
    ours = {"PAPILIO_HOME": str(home), "PAPILIO_STORE": "", "PYTHONDONTWRITEBYTECODE": ""}
    return {**os.environ, **ours}


def _timed(program: list[str], home: Path, ends: int = 0) -> tuple[float, float]:
    """The seconds and the processor's seconds of a program that ends with the code that it should."""
    before, begun = os.times(), time.perf_counter()
    done = subprocess.run(
        [sys.executable, *program], env=_environment(home), check=False, capture_output=True, text=True
    )
    seconds, after = time.perf_counter() - begun, os.times()
    if done.returncode != ends:
        raise EnvironmentProblem(f"`{' '.join(program)}` failed: {done.stderr.strip()}")
    processor = after.children_user + after.children_system - before.children_user - before.children_system
    return seconds, processor

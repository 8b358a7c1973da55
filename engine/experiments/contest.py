"""A contest: contenders in one process on one Spark session, in turn, round after round.

Nobody's figures hold a start of Python or of Spark, and the first round, in which Java compiles, does not count. Who
begins changes from round to round. Peak memory is that of the whole process tree; Spark's heap is shared and does not
shrink at once, so it tells the contenders' memory apart only roughly.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import psutil

import workflows
from engine.errors import BadInput, EnvironmentProblem, reaching
from engine.experiments.apart import Apart
from engine.experiments.bench import Contender, Options, Report
from engine.experiments.measure import watched
from engine.partition.granularity import Granularity

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHIPPED = Path(workflows.__file__).resolve().parent
ENDING = ".butterfly.yaml"
REASON_LETTERS = 300
OWN, OURS = "in its own session", "in Papilio's session"  # where a contender on Spark runs

# Writes its targets below the folder it is given, and tells what else it measured. One that runs in a process of its
# own tells its `seconds` and `peak_mb` itself: a start of Python is not what is compared, nor is our Spark's memory.
Run = Callable[[Path], Mapping[str, float] | None]


class Digest(NamedTuple):
    """What is compared of a target: neither the order of its rows nor that of its columns counts."""

    columns: tuple[str, ...]
    rows: int
    values: str


@dataclass(frozen=True)
class Entry:
    """A contender by its name. Those whose targets must be the same name the same `answer`."""

    name: str
    run: Run
    answer: str = ""
    once: bool = False  # in the last round alone: it takes long, and by how much is not the question


@dataclass
class Contest:
    """One contest: its session, its folder, its report."""

    options: Options
    spark: SparkSession
    report: Report = field(default_factory=Report)

    def __post_init__(self) -> None:
        self.folder = self.options.folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self.store = str(self.folder / "store.sqlite")
        self.report.facts |= {"cores": psutil.cpu_count() or 1, "rounds": self.options.rounds}
        self.versions("pyspark")
        self._apart: list[Apart] = []
        self._asked: dict[str, list[str]] = {}  # answer → who was asked for it, also in an earlier `hold`
        self._answers: dict[str, dict[str, Digest]] = {}  # contender → what it wrote in its last round
        self._last = self._died_in = ""  # who ran last, and in whom Spark died

    # -- contenders

    def papilio(
        self,
        workflow: str,
        data: Path,
        settings: Mapping[tuple[str, str], Any] | None = None,
        plan: str = "best",
        **schedule: Any,
    ) -> Run:
        """A shipped workflow run by Papilio; `schedule` is what ScheduleSettings takes."""
        return self.workflow(SHIPPED / f"{workflow}{ENDING}", {"data_folder": str(data)}, settings, plan, **schedule)

    def workflow(
        self,
        file: Path,
        parameters: Mapping[str, str],
        settings: Mapping[tuple[str, str], Any] | None = None,
        plan: str = "best",
        **schedule: Any,
    ) -> Run:
        """A workflow run by Papilio as `papilio run` does it, from reading the file to the record in the store."""
        from engine.model.binding import bind
        from engine.model.file import load
        from engine.operators import catalogue
        from engine.schedule.settings import ScheduleSettings
        from engine.spark.launch import launch
        from engine.spark.runner import RunSettings
        from engine.spark.session import SparkSettings, lent
        from engine.store.sources import SourceSchemas

        if "granularity" in schedule:
            schedule["granularity"] = Granularity(schedule["granularity"])
        asked = ScheduleSettings(**schedule)
        master = SparkSettings(str(self.spark.sparkContext.master))

        def run(out: Path) -> dict[str, float]:
            if self._died_in:
                raise EnvironmentProblem("a run by Papilio needs it")
            bound = bind(
                load(file),
                catalogue(),
                parameters={**parameters, "warehouse_folder": str(out)},
                settings=dict(settings or {}),
                discover=SourceSchemas(self.store).discover,
            )
            with tempfile.TemporaryDirectory(dir=self.folder) as folder, lent(self.spark):
                summary = launch(bound, RunSettings(master, asked, folder=Path(folder), plan=plan), store=self.store)
            queue = summary["queue"]
            return {
                "activations": summary["activations"],
                "queue_avg_mb": queue["avg_bytes"] / 2**20,
                "queue_max_mb": queue["max_bytes"] / 2**20,
                "queue_avg_packs": queue["avg_packs"],
                "queue_max_packs": queue["max_packs"],
                "spills": summary["spills"],
            }

        return run

    def apart(self, module: str, *arguments: object, environment: Mapping[str, str] | None = None) -> Apart:
        """A module that answers from a process of its own, which ends with the contest."""
        log = self.folder / f"apart-{len(self._apart)}.log"

        def anew(reason: str) -> None:
            note = f"{module} starts anew, its next round has a cold start in it: {reason}"
            self.report.facts.setdefault("started anew", []).append(note)
            self.options.say(note)

        made = Apart(f"engine.experiments.{module}", [str(one) for one in arguments], log, environment, anew)
        self._apart.append(made)
        return made

    def own_session(self, module: str, kind: str) -> Apart:
        """A module in a session of its own, of one kind; it has the cores and the memory that Papilio's has."""
        from engine.spark.java import find_java
        from engine.spark.processes import spark_environment
        from engine.spark.session import SparkSettings, driver_memory_mb

        cores, memory_mb = self.spark.sparkContext.defaultParallelism, driver_memory_mb(SparkSettings())
        return self.apart(module, kind, cores, memory_mb, environment=spark_environment(find_java(), loopback=True))

    def close(self) -> None:
        """End the processes of those who run apart."""
        for one in self._apart:
            one.close()

    def versions(self, *packages: str) -> None:
        """Note what the contenders are of."""
        self.report.facts.setdefault("versions", {}).update(versions_of(*packages))

    def skip(self, name: str, reason: str) -> None:
        """A contender that cannot take part; the report says why."""
        self.report.facts[name] = f"skipped: {reason}"
        self.options.say(f"{name} skipped: {reason}")

    def leave_out(self, entries: Iterable[Entry], reason: str) -> None:
        """Those who cannot run at all count as failed; the others go on."""
        for entry in entries:
            self.report.contenders.setdefault(entry.name, Contender()).failed = reason[:REASON_LETTERS]
            self.options.say(f"{entry.name} left out: {reason}")

    # -- rounds

    def hold(self, entries: Sequence[Entry], rounds: int | None = None, warm_rounds: int = 1) -> None:
        """Let all run in turn; one that fails is out, the others go on. Then compare what they wrote.

        `warm_rounds`: so many do not count; where a round takes a second or two, Java is not done compiling after one.
        """
        rounds = rounds or self.options.rounds
        for entry in entries:
            self.report.contenders.setdefault(entry.name, Contender())
            asked = self._asked.setdefault(entry.answer, [])
            if entry.name not in asked:
                asked.append(entry.name)
        for number in range(1 - warm_rounds, rounds + 1):
            for entry in _turned(entries, max(number, 0)):
                contender = self.report.contenders[entry.name]
                if contender.failed or (entry.once and number < rounds):
                    continue
                self.options.say(f"{f'round {number} of {rounds}' if number > 0 else 'warm-up'}: {entry.name}")
                try:
                    found = self._one_round(entry, contender, counts=number > 0, last=number == rounds)
                except Exception as error:
                    contender.failed = self._reason(entry, error)
                    self.options.say(f"{entry.name} failed: {contender.failed}")
                    continue
                if found is not None:
                    self._answers[entry.name] = found
        self._compare()

    def _one_round(self, entry: Entry, contender: Contender, *, counts: bool, last: bool) -> dict[str, Digest] | None:
        out = self.folder / "targets"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        try:
            self._settle()
            for process in self._apart:
                process.asked = False
            with watched(self._others) as watch:
                begun = time.monotonic()
                figures = entry.run(out)
                seconds = time.monotonic() - begun
            self.options.say(f"  {seconds:.2f} s")
            if counts:
                found = dict(figures or {})
                spent, cores = watch.processor_seconds, psutil.cpu_count() or 1
                contender.add(processor_s=spent, utilisation=spent / seconds / cores)
                contender.seconds.append(found.pop("seconds", seconds))
                contender.peak_mb.append(found.pop("peak_mb", watch.mb))
                contender.add(**found)
            return digests(out, self.spark) if last else None
        finally:
            self._last = entry.name
            shutil.rmtree(out, ignore_errors=True)

    def _reason(self, entry: Entry, error: Exception) -> str:
        """Why a contender failed. One that takes Spark with it is named to those who miss Spark after it."""
        text = f"{type(error).__name__}: {error}"
        if not self._died_in and not alive(self.spark):
            self._died_in = self.report.facts["Spark died in"] = entry.name
            text = f"Spark died in it: {text}"
        elif self._died_in:
            text = f"Spark died in {self._died_in}: {text}"
        return text[:REASON_LETTERS]

    def _settle(self) -> None:
        """What the one before left to be done is not the next one's to wait for."""
        if not self._died_in:
            try:
                self.spark.catalog.clearCache()
                jvm: Any = self.spark._jvm
                jvm.java.lang.System.gc()
            except Exception:
                if alive(self.spark):
                    raise
                self._died_in = self.report.facts["Spark died in"] = self._last  # without a word of its own
                self.options.say(f"Spark died in {self._died_in}; only those go on that do without")
        os.sync()

    def _others(self) -> set[int]:
        """The processes that wait while another contender is measured: what they hold is not its memory."""
        return {process.pid for process in self._apart if not process.asked and process.pid is not None}

    def _compare(self) -> None:
        """Judge whether all who were asked for the same targets wrote the same; name those who could not be compared.

        One that was asked alone, or that nobody else is left to be compared with, says nothing about sameness.
        """
        verdicts: list[bool] = []
        differences: list[str] = []
        alone: list[str] = []
        failed: list[str] = []
        for asked in self._asked.values():
            wrote = {name: self._answers[name] for name in asked if name in self._answers}
            failed += [name for name in asked if name not in wrote]
            if not any(wrote.values()):
                continue  # what was measured has no targets
            if len(wrote) < 2:
                alone += wrote
                continue
            first_name, first = next(iter(wrote.items()))
            notes = [f"{name} and {first_name} differ in {_differing(one, first)}" for name, one in wrote.items()
                     if one != first]  # fmt: skip
            differences += notes
            verdicts.append(not notes)
        self.report.identical = all(verdicts) if verdicts else None
        left_out = [f"{name}, which failed" for name in failed]
        if verdicts:
            left_out += [f"{name}, whose targets nobody else wrote" for name in alone]
        elif alone:
            left_out.append("all others: no two wrote the same targets")
        for name, notes in (("differences", differences), ("not compared", left_out)):
            self.report.facts.pop(name, None)
            if notes:
                self.report.facts[name] = notes

    # -- figures

    def compare(self, slower: str, faster: str) -> float | None:
        """The ratio of two contenders, None where one has no figures."""
        return self.report.ratio(slower, faster) if self.report.finished(slower, faster) else None

    def at_least(self, text: str, slower: str, faster: str, times: float) -> None:
        """Claim that one contender takes at least so many times as long as another."""
        ratio = self.compare(slower, faster)
        self.report.claim(text, ratio is not None and ratio >= times, _said(ratio, slower, faster))

    def at_most(self, text: str, slower: str, faster: str, times: float) -> None:
        """Claim that one contender takes at most so many times as long as another."""
        ratio = self.compare(slower, faster)
        self.report.claim(text, ratio is not None and ratio <= times, _said(ratio, slower, faster))


def _differing(one: Mapping[str, Digest], other: Mapping[str, Digest]) -> str:
    """The targets in which two differ, and whether it is in the names of their columns already."""
    found = []
    for target in sorted({*one, *other}):
        mine, others = one.get(target), other.get(target)
        if mine != others:
            columns = mine is not None and others is not None and mine.columns != others.columns
            found.append(f"the columns of {target}" if columns else target)
    return ", ".join(found)


def _said(ratio: float | None, slower: str, faster: str) -> str:
    return "not measured" if ratio is None else f"{slower} / {faster} = {ratio:.2f}"


def _turned(entries: Sequence[Entry], by: int) -> list[Entry]:
    by %= len(entries) or 1
    return [*entries[by:], *entries[:by]]


@contextlib.contextmanager
def contest(options: Options) -> Iterator[Contest]:
    """A contest on the session that is open already, or on one of its own."""
    if options.spark is not None:
        with _names_given_back(options.spark), contextlib.closing(Contest(options, options.spark)) as here:
            yield here
        return
    from engine.spark.session import SparkSettings, close_session, open_session

    options.say("starting Spark")
    spark = open_session(SparkSettings(log=_spark_log(options.folder)))
    try:
        with contextlib.closing(Contest(options, spark)) as here:
            yield here
    finally:
        close_session(spark)


@contextlib.contextmanager
def _names_given_back(spark: SparkSession) -> Iterator[None]:
    """A session that is lent knows afterwards the tables that it knew before: contenders in SQL name theirs."""
    before = {table.name for table in spark.catalog.listTables()}
    try:
        yield
    finally:
        for table in spark.catalog.listTables() if alive(spark) else ():
            if table.isTemporary and table.name not in before:
                spark.catalog.dropTempView(table.name)


def alive(spark: SparkSession) -> bool:
    """Whether the session's JVM answers and its context has not been stopped."""
    context: Any = spark.sparkContext
    try:
        return not context._jsc.sc().isStopped()
    except Exception:
        return False


def _spark_log(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "spark.log"
    log.unlink(missing_ok=True)
    return log


def in_own_session(process: Apart, data: Path, warm_runs: int, **asked: Any) -> Run:
    """A run in a session apart: several in its first round, for Java compiles what runs often."""
    runs = iter([warm_runs])
    return lambda out: process.ask(data=str(data), out=str(out), runs=next(runs, 1), **asked)


def versions_of(*packages: str) -> dict[str, str]:
    """The versions of those that are installed here."""
    found = {}
    for package in packages:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


def missing_data(options: Options, makes: Mapping[str, Callable[[], object]]) -> dict[str, str]:
    """Make several sets of data. Why some cannot be made; where none can, nothing is left to go on with."""
    missing = {}
    for title, make in makes.items():
        options.say(title)
        try:
            with reaching(options.folder):
                make()
        except EnvironmentProblem as error:
            missing[title] = str(error)
            options.say(f"not there: {title}: {error}")
    if missing and len(missing) == len(makes):
        raise EnvironmentProblem("; ".join(dict.fromkeys(missing.values())))
    return missing


def importable(*modules: str) -> str | None:
    """Why one of these cannot be imported, None where all can."""
    import importlib

    for module in modules:
        try:
            importlib.import_module(module)
        except ImportError as error:
            return f"skipped: {error}"
    return None


# ---------------------------------------------------------------- what was written


def digests(out: Path, spark: SparkSession | None = None) -> dict[str, Digest]:
    """The rows of every target below a folder and a hash of their values that does not mind their order.

    DuckDB reads them, which had no part in writing them; where it is not installed, Spark does.
    """
    targets = sorted(path for path in out.iterdir() if not path.name.startswith((".", "_")))
    if importable("duckdb") is None:
        return {target.stem: _duckdb_digest(target) for target in targets}
    if spark is None:
        raise BadInput("DuckDB, which compares the targets, is not installed; install papilio[dev]")
    return {target.stem: _spark_digest(target, spark) for target in targets}


def _duckdb_digest(target: Path) -> Digest:
    import duckdb

    with duckdb.connect() as connection:
        table = connection.sql(_duckdb_reader(target))
        names = tuple(sorted(table.columns))
        columns = ", ".join(f'CAST("{name}" AS VARCHAR)' for name in names)
        query = f"SELECT count(*), coalesce(sum(hash({columns})::HUGEINT), 0) FROM ({_duckdb_reader(target)})"
        rows, total = connection.execute(query).fetchall()[0]
    return Digest(names, rows, str(total))


def _duckdb_reader(target: Path) -> str:
    if target.suffix == ".csv":
        files = f"{target}/*.csv" if target.is_dir() else str(target)
        return f"SELECT * FROM read_csv('{files}', header = true, all_varchar = true)"
    return f"SELECT * FROM read_parquet('{target}/*.parquet' )" if target.is_dir() else f"SELECT * FROM '{target}'"


def _spark_digest(target: Path, spark: SparkSession) -> Digest:
    from pyspark.sql import functions as F

    if target.suffix == ".csv":
        frame = spark.read.option("header", True).csv(str(target))
    else:
        frame = spark.read.parquet(str(target))
    names = tuple(sorted(frame.columns))
    values = F.xxhash64(*[F.col(f"`{name}`").cast("string") for name in names])
    rows, total = frame.agg(F.count(F.lit(1)), F.sum(values.cast("decimal(38,0)"))).collect()[0]
    return Digest(names, rows, str(total or 0))

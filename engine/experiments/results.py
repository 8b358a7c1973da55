"""All results again: which there are, running them one after the other, and the page that shows the latest of each."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import BadInput
from engine.experiments import named
from engine.experiments.bench import results_options
from engine.experiments.kept import KINDS, Kept, code, kept_in, other_code, revision
from engine.experiments.svg import Measured, draw_measured
from engine.model.problems import did_you_mean

LIMIT_SECONDS = 3600
QUIET_LOAD = 0.5  # of a core, by which others may be busy before it is said


# ---------------------------------------------------------------- which


@dataclass(frozen=True)
class Task:
    """A benchmark or an experiment, and how long it took the last time, of which revision of the code."""

    kind: str
    name: str
    last_seconds: float | None = None
    revision: str = ""
    older: bool = False  # than the code that is here now

    @property
    def title(self) -> str:
        """As the command line names it."""
        return f"{self.kind} {self.name}"


def tasks(folder: Path, chosen: Sequence[str] = ()) -> list[Task]:
    """All of them, or the chosen ones: `ssb`, `bench ssb` or a kind."""
    known, now = kept_in(folder), Kept("", "", {}, revision=revision(), code=code())
    every = []
    for kind in KINDS:
        for name in named.names(kind):
            last = known.get((kind, name))
            every.append(
                Task(kind, name, last.seconds, last.revision, other_code(last, now)) if last else Task(kind, name)
            )
    if not chosen:
        return every
    found = []
    for text in chosen:
        fitting = [task for task in every if text in (task.name, task.title, task.kind)]
        if not fitting:
            names = [task.name for task in every]
            raise BadInput(f"there is no benchmark and no experiment `{text}`{did_you_mean(text, names)}")
        found += [task for task in fitting if task not in found]
    return found


# ---------------------------------------------------------------- running


@dataclass(frozen=True)
class Ran:
    """What became of a task."""

    task: Task
    seconds: float
    failed: str | None = None


def command_for(task: Task, folder: Path, quick: bool) -> list[str]:
    """The command that runs a task in a process of its own and keeps its result."""
    command = [sys.executable, "-m", "engine", task.kind, task.name, "--keep", str(folder)]
    if quick:
        command += ["--quick"] if task.kind == "experiment" else ["--rounds", "1"]
    elif task.kind == "bench":
        command += results_options(task.name)
    return command


def run_all(
    todo: Iterable[Task], command: Callable[[Task], Sequence[str]], say: Callable[[str], None],
    limit_seconds: float = LIMIT_SECONDS,
) -> Iterator[Ran]:  # fmt: skip
    """Run tasks one after the other. One that fails or takes too long is said, and the rest goes on."""
    for task in todo:
        expected = f"about {_minutes(task.last_seconds)}" if task.last_seconds else "how long is not known yet"
        say(f"{task.title}: {expected}")
        begun = time.monotonic()
        failed = None
        try:
            done = subprocess.run(
                command(task), check=False, capture_output=True, text=True, timeout=limit_seconds,
                stdin=subprocess.DEVNULL,
            )  # fmt: skip
            if done.returncode:
                lines = [line for line in done.stderr.splitlines() if line.strip()]
                failed = f"it ended with {done.returncode}" + (f": {lines[-1][:300]}" if lines else "")
        except subprocess.TimeoutExpired:
            failed = f"it was not done after {_minutes(limit_seconds)}"
        except OSError as error:
            failed = str(error)
        seconds = time.monotonic() - begun
        say(f"  {'FAILED: ' + failed if failed else 'done'} ({_minutes(seconds)})")
        yield Ran(task, seconds, failed)


def _minutes(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


# ---------------------------------------------------------------- the page


def write_page(folder: Path, page: Path, pictures: Path) -> list[Path]:
    """The page with the latest results of a folder, and the pictures beside it."""
    results = kept_in(folder)
    if not results:
        raise BadInput(f"no results are kept in {folder}; `papilio results --run` makes them")
    pictures.mkdir(parents=True, exist_ok=True)
    for old in pictures.glob("*.svg"):
        old.unlink()
    written = []
    links: dict[tuple[str, str], list[str]] = {}
    for key, kept in results.items():
        for number, text in enumerate(_pictures(kept), 1):
            picture = pictures / f"{kept.kind}-{kept.name}{f'-{number}' if number > 1 else ''}.svg"
            picture.write_text(text, encoding="utf-8")
            written.append(picture)
            links.setdefault(key, []).append(_relative(picture, page.parent))
    page.write_text(page_text(results, links), encoding="utf-8")
    return [page, *written]


def _relative(file: Path, start: Path) -> str:
    return Path(os.path.relpath(file, start)).as_posix()


def _pictures(kept: Kept) -> list[str]:
    if kept.kind == "experiment":
        return kept.charts
    measured = [
        Measured(name, figures["median"], min(figures["seconds"]), max(figures["seconds"]))
        for name, figures in kept.report["contenders"].items()
        if figures.get("seconds")
    ]
    return [draw_measured(f"{kept.name}: median, fastest and slowest round", "s", measured)] if measured else []


def page_text(results: Mapping[tuple[str, str], Kept], links: Mapping[tuple[str, str], Sequence[str]]) -> str:
    """The page as Markdown."""
    lines = [
        "# Results", "",
        "The latest figures of `papilio bench` and `papilio experiment`, written by `papilio results`; nothing on this",
        "page is written by hand. Each was taken on the machine and under the load that stand beside it. Contenders",
        "of one benchmark took turns on one machine, so ratios hold where seconds do not; a ratio within the spread of",
        "the rounds says nothing. They share a process and a Spark session, except those that cannot or would not: a",
        "script with a session of its own, Sail, other ETL tools and whole commands ran in processes of their own,",
        "whose start counts only where the command is what is compared. A claim that does not hold is here as well.",
        "",
        *_machine_lines(list(results.values())), "",
        *_older_lines(results),
        *_never_lines(results),
        "## Claims", "", *_claim_lines(results), "",
    ]  # fmt: skip
    older = _older(results)
    for kind, heading in (("bench", "## Benchmarks"), ("experiment", "## The papers' figures")):
        some = {key: kept for key, kept in results.items() if key[0] == kind}
        if some:
            lines += [heading, ""]
        for key, kept in some.items():
            body = _bench_lines(kept) if kind == "bench" else _experiment_lines(kept)
            pictures = [f"![{kept.name}]({link})" for link in links.get(key, ())]
            lines += [f"### {kept.name}", "", _taken(kept, older=key in older), "", *body]
            lines += [line for picture in pictures for line in (picture, "")]
    return "\n".join(lines).rstrip() + "\n"


def _machine_lines(results: Sequence[Kept]) -> list[str]:
    kinds = {
        f"{one.machine.get('cores')} cores, {one.machine.get('memory_gb')} GB, {one.machine.get('system')}, "
        f"Python {one.machine.get('python')}, PySpark {one.machine.get('pyspark')}"
        for one in results
    }
    busy = [one.name for one in results if one.machine.get("load_before", 0) > QUIET_LOAD]
    lines = [f"Machine: {'; '.join(sorted(kinds))}."]
    if busy:
        lines += [
            f"Not quiet: when these began, others had kept at least {QUIET_LOAD:g} of a core busy for a minute: "
            f"{', '.join(sorted(busy))}."
        ]
    return lines


def _older(results: Mapping[tuple[str, str], Kept]) -> set[tuple[str, str]]:
    """Those that were measured on other code than the newest. The page stays the same while the code goes on."""
    newest = max(results.values(), key=lambda kept: kept.at)
    return {key for key, kept in results.items() if other_code(kept, newest)}


def _older_lines(results: Mapping[tuple[str, str], Kept]) -> list[str]:
    older, newest = _older(results), max(results.values(), key=lambda kept: kept.at)
    if not older:
        return []
    return [
        f"The newest code here is that of {newest.kind} {newest.name}: {_code_of(newest)}. What was measured on older "
        f"code is marked so, and may have changed since: {', '.join(sorted(name for _, name in older))}.",
        "",
    ]


def _code_of(kept: Kept) -> str:
    """The code that a result is of: its revision, where one was kept; when it was measured."""
    return f"revision {kept.revision}, {kept.at[:10]}" if kept.revision else f"as of {kept.at[:10]}"


def _never_lines(results: Mapping[tuple[str, str], Kept]) -> list[str]:
    """What has no figures on this page, so that nobody takes what is missing for what is not there."""
    lines = []
    for kind in KINDS:
        missing = [name for name in named.names(kind) if (kind, name) not in results]
        if missing:
            lines += [f"Never run here: {kind} {', '.join(missing)}.", ""]
    return lines


def _taken(kept: Kept, *, older: bool) -> str:
    load = f"load {kept.machine.get('load_before', '?')} before, {kept.machine.get('load_after', '?')} after"
    options = ", ".join(f"{key} {value}" for key, value in kept.options.items() if value not in (None, False))
    of = f", revision {kept.revision}" if kept.revision else ", of a revision that was not kept"
    of += " (older code)" if older else ""
    return f"`papilio {kept.kind} {kept.name}` on {kept.at}{of}, {_minutes(kept.seconds)}, {load}" + (
        f"; {options}." if options else "."
    )


def _claim_lines(results: Mapping[tuple[str, str], Kept]) -> list[str]:
    rows, older = [], _older(results)
    for (kind, name), kept in results.items():
        title = f"{kind} {name}" + (" (older code)" if (kind, name) in older else "")
        if kind == "bench":
            evidence = kept.report.get("evidence", {})
            rows += [
                (title, "holds" if holds else "**does not hold**", text, evidence.get(text, ""))
                for text, holds in kept.report.get("claims", {}).items()
            ]
        else:
            rows += [
                (title, claim["verdict"], claim["claim"], claim["figures"]) for claim in kept.report.get("claims", ())
            ]
    return _table(("of", "verdict", "claim", "figures"), rows)


def _bench_lines(kept: Kept) -> list[str]:
    report, lines = kept.report, []
    rows = [
        (
            name,
            _number(figures.get("median")),
            f"{100 * figures['spread']:.0f} %" if "spread" in figures else "-",
            _number(figures.get("processor_s")),
            _number(figures.get("peak_mb")),
            figures.get("failed", ""),
        )
        for name, figures in report.get("contenders", {}).items()
    ]
    if rows:
        lines += [*_table(("contender", "median s", "spread", "processor s", "peak MB", "failed"), rows), ""]
    if report.get("ratios"):
        lines += [*_table(("ratio", "times"), [(key, f"{value:.2f}") for key, value in report["ratios"].items()]), ""]
    facts = dict(report.get("facts", {}))
    if report.get("identical") is not None:
        which = "targets that were compared" if "not compared" in facts else "targets of all contenders"
        facts[f"{which} are the same"] = "yes" if report["identical"] else "**no**"
    return [*lines, *_fact_lines(facts)]


def _fact_lines(facts: Mapping[str, Any]) -> list[str]:
    """Facts in one table, and one of its own for each that has parts."""
    lines: list[str] = []
    plain = [(key, _cell(value)) for key, value in facts.items() if not isinstance(value, Mapping)]
    if plain:
        lines += [*_table(("fact", ""), plain), ""]
    for key, value in facts.items():
        if isinstance(value, Mapping):
            lines += [f"{key[:1].upper()}{key[1:]}:", "", *_parts_table(value), ""]
    return lines


def _parts_table(parts: Mapping[str, Any]) -> list[str]:
    """A row for each part; parts with the same names in each have a column for each name."""
    rows: dict[tuple[str, ...], Any] = {(name,): value for name, value in parts.items()}
    while rows and all(isinstance(value, Mapping) and any(isinstance(one, Mapping) for one in value.values())
                       for value in rows.values()):  # fmt: skip
        rows = {(*at, name): one for at, value in rows.items() for name, one in value.items()}
    depth = max(map(len, rows), default=1)
    columns = list(dict.fromkeys(name for one in rows.values() if isinstance(one, Mapping) for name in one))
    if not columns:
        return _table(("of", *[""] * depth), [(*at, _cell(value)) for at, value in rows.items()])
    return _table(
        ("of", *[""] * (depth - 1), *columns),
        [(*at, *(_cell(value[name]) if name in value else "" for name in columns))
         if isinstance(value, Mapping) else (*at, _cell(value)) for at, value in rows.items()],
    )  # fmt: skip


def _cell(value: Any) -> str:
    """A fact in a cell, also one with parts inside parts."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_cell(one)}" for name, one in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_cell, value)) or "none"
    return _number(value)


def _experiment_lines(kept: Kept) -> list[str]:
    lines: list[str] = [kept.report.get("title", ""), ""]
    for rows in kept.report.get("tables", {}).values():
        if rows:
            headings = list(rows[0])
            lines += [*_table(headings, [[_number(row[name]) for name in headings] for row in rows]), ""]
    return lines


def _number(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table; a bar inside a cell would end it."""

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"

    return [line(headings), line(["---"] * len(headings)), *map(line, rows)]

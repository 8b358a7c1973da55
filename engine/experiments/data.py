"""Data sets for experiments: TPC-H at any scale, generated in seconds by `tpchgen-cli`.

A data set is a folder with one file per table and a marker, `tpch.json`, that says what the folder holds.
It is generated in a folder beside and moved into place at the end, so a folder is complete or not there.
"""

from __future__ import annotations

import contextlib
import difflib
import glob
import json
import math
import os
import shutil
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import BadInput, EnvironmentProblem
from engine.experiments.dirt import Dirt, make_dirty

if TYPE_CHECKING:
    from engine.model.binding import Bound

#: The benchmarks whose data sets there are, as people call them.
TITLES = {"tpch": "TPC-H", "ssb": "SSB"}

TPCH_TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")

#: Bytes of all eight tables at scale 1, by format: for the room on the disk and for the progress bar.
TPCH_BYTES_AT_SCALE_1 = {"parquet": 330_000_000, "tbl": 1_080_000_000, "csv": 1_090_000_000}

#: Ten suppliers. Below 0.01 the specification's own formula (4.2.3) gives some parts the same supplier twice,
#: so that the key of partsupp repeats; from 0.01 on all keys are unique.
TPCH_SMALLEST_SCALE = 0.001
TPCH_UNIQUE_SCALE = 0.01

FIRST_SCALE = 0.01  # to try a workflow with

CLEAN = Dirt()

POLL_SECONDS = 0.1

#: Told how many bytes are written so far, and how many there will be, more or less.
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class TableFile:
    """One table of a data set, counted in the file that was written."""

    file: str
    rows: int
    bytes: int


@dataclass(frozen=True)
class DataSet:
    """What a marker says: the tables a folder holds, their scale and format, and what generated them."""

    benchmark: str
    scale: float
    format: str
    generator: str
    tables: dict[str, TableFile]
    dirt: dict[str, float] = field(default_factory=dict)  # the shares of dirty rows and the seed
    dirtied: dict[str, dict[str, int]] = field(default_factory=dict)  # how many rows of each table were hit

    @property
    def kind(self) -> str:
        """What this data is, in words: benchmark, scale, format and dirt."""
        shares = ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in self.dirt.items())
        dirt = f", dirty ({shares})" if shares else ""
        return f"{TITLES[self.benchmark]} at scale {self.scale:g} as {self.format}{dirt}"

    @property
    def rows(self) -> int:
        return sum(table.rows for table in self.tables.values())

    @property
    def bytes(self) -> int:
        return sum(table.bytes for table in self.tables.values())

    def write_marker(self, folder: Path) -> None:
        (folder / f"{self.benchmark}.json").write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")

    @classmethod
    def read_marker(cls, folder: Path, benchmark: str) -> DataSet | None:
        """The data set that `folder` says it holds; None where it has no marker that makes sense."""
        try:
            fields = json.loads((folder / f"{benchmark}.json").read_text(encoding="utf-8"))
            fields["tables"] = {name: TableFile(**table) for name, table in fields["tables"].items()}
            return cls(**fields)
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None

    def is_complete_in(self, folder: Path) -> bool:
        """Whether every table's file is there, with the size it was written with."""
        for table in self.tables.values():
            path = folder / table.file
            if not path.is_file() or path.stat().st_size != table.bytes:
                return False
        return True


@dataclass(frozen=True)
class Generated:
    """The answer to a request for data: what is in the folder now, and whether it was there before."""

    folder: Path
    data: DataSet
    kept: bool
    seconds: float


def generate_tpch(
    folder: Path,
    scale: float,
    *,
    format: str = "parquet",
    tables: Iterable[str] = TPCH_TABLES,
    replace: bool = False,
    dirt: Dirt = CLEAN,
    progress: Progress = lambda done, total: None,
) -> Generated:
    """Put TPC-H tables into `folder`, unless they are there already.

    Data of another scale, format or dirt is replaced only when asked to, and files that are not ours never are.
    """
    started = time.monotonic()
    wanted = _check_tables(tables)
    check_scale(scale)
    if dirt and format != "parquet":
        raise BadInput(f"--format {format}: dirt is for Parquet only; a workflow can write it on as {format}")
    folder = folder.expanduser().resolve()

    present = data_of_kind(folder, "tpch", scale, format, replace, dirt)
    if present is not None:
        if wanted <= present.tables.keys() and present.is_complete_in(folder):
            return Generated(folder, present, kept=True, seconds=time.monotonic() - started)
        wanted |= present.tables.keys()

    generator = find_generator()
    expected = int(TPCH_BYTES_AT_SCALE_1[format] * scale)
    with folder_beside(folder) as unfinished:
        check_room(unfinished, expected)
        run_generator(generator, unfinished, scale, format, wanted, lambda done: progress(done, expected))
        made = [table for table in TPCH_TABLES if table in wanted]
        dirtied = make_dirty(unfinished, made, dirt) if dirt else {}
        data = DataSet(
            benchmark="tpch",
            scale=scale,
            format=format,
            generator=generator_version(generator),
            tables={table: count_table(unfinished / f"{table}.{format}") for table in made},
            dirt=dirt.as_dict(),
            dirtied=dirtied,
        )
        data.write_marker(unfinished)
        move_into_place(unfinished, folder)
    return Generated(folder, data, kept=False, seconds=time.monotonic() - started)


def check_scale(scale: float) -> None:
    """Refuse a scale that makes no data."""
    if not (math.isfinite(scale) and scale >= TPCH_SMALLEST_SCALE):
        raise BadInput(f"scale {scale:g}: give a number of at least {TPCH_SMALLEST_SCALE:g} (1 is about 1 GB as text)")


def _check_tables(tables: Iterable[str]) -> set[str]:
    wanted = set(tables)
    for unknown in sorted(wanted - set(TPCH_TABLES)):
        near = difflib.get_close_matches(unknown, TPCH_TABLES, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"its tables are {', '.join(TPCH_TABLES)}"
        raise BadInput(f"TPC-H has no table {unknown!r}; {hint}")
    if not wanted:
        raise BadInput(f"no table was named; the tables are {', '.join(TPCH_TABLES)}")
    return wanted


def data_of_kind(
    folder: Path, benchmark: str, scale: float, format: str, replace: bool, dirt: Dirt = CLEAN
) -> DataSet | None:
    """The data set in `folder` if it is the one asked for; another is refused unless it may be replaced."""
    present = data_in(folder, benchmark)
    if present is None or (present.scale, present.format, present.dirt) == (scale, format, dirt.as_dict()):
        return present
    if not replace:
        raise BadInput(f"{folder} holds {present.kind}; choose another folder, or replace it with --replace")
    return None


def data_in(folder: Path, benchmark: str) -> DataSet | None:
    """The data set in `folder`, None where it is free; refuses a folder that holds anything else."""
    try:
        entries = {entry.name for entry in folder.iterdir()}
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        raise BadInput(f"{folder} is a file; name a folder for the tables") from None
    except OSError as error:
        raise EnvironmentProblem(f"{folder} cannot be read: {error.strerror}") from error
    if not entries:
        return None
    data = DataSet.read_marker(folder, benchmark)
    ours = {f"{benchmark}.json", *(table.file for table in data.tables.values())} if data else set()
    foreign = sorted(entries - ours)
    if foreign:
        raise BadInput(f"{folder} holds other files ({', '.join(foreign[:3])}); name a new or an empty folder")
    return data


def find_generator() -> Path:
    """`tpchgen-cli` of this Python environment, or else of the PATH."""
    own = Path(sysconfig.get_path("scripts")) / "tpchgen-cli"
    if own.is_file():
        return own
    found = shutil.which("tpchgen-cli")
    if found is None:
        raise EnvironmentProblem("tpchgen-cli, which generates TPC-H, is not installed; run make setup")
    return Path(found)


def generator_version(generator: Path) -> str:
    """What the generator calls itself."""
    return subprocess.run([generator, "--version"], capture_output=True, text=True, check=True).stdout.strip()


@contextlib.contextmanager
def folder_beside(folder: Path) -> Iterator[Path]:
    """A new folder on the same disk as `folder`, gone at the end unless it was moved into place."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(folder)
        unfinished = Path(tempfile.mkdtemp(prefix=f".{folder.name}.{os.getpid()}.", dir=folder.parent))
    except OSError as error:
        raise EnvironmentProblem(f"{folder.parent} cannot be written to: {error.strerror}") from error
    try:
        unfinished.chmod(0o755)  # mkdtemp makes folders that nobody else can read
        yield unfinished
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _remove_abandoned(folder: Path) -> None:
    """Remove what generations that were killed outright left beside `folder`."""
    import psutil

    for left in folder.parent.glob(f".{glob.escape(folder.name)}.*.*"):
        pid = left.name.removeprefix(f".{folder.name}.").split(".")[0]
        if pid.isdigit() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(left, ignore_errors=True)


def how_to_make(bound: Bound, said: str) -> str | None:
    """The command that makes the data of a shipped workflow, where a message says that something in it is missing.

    A shipped workflow has its data in a parameter `data_folder`, whose default is a folder named as the data are.
    """
    parameter = bound.workflow.parameters.get("data_folder")
    name = Path(str(parameter.default)).name if parameter is not None else ""
    kind = next((kind for kind in TITLES if name == kind or name.endswith(f"_{kind}")), None)
    if kind is None:
        return None
    base = bound.file.parent if bound.file is not None else Path.cwd()
    folder = (base / str(bound.values.get("data_folder", ""))).resolve()
    if folder.exists() or str(folder) not in said:
        return None
    return f"`papilio data {kind} --scale {FIRST_SCALE:g} --to {folder}` makes it"


def check_room(folder: Path, expected: int) -> None:
    """Refuse to begin what will not fit."""
    free = shutil.disk_usage(folder).free
    if free < expected:
        raise EnvironmentProblem(
            f"no room in {folder.parent}: the tables take about {expected / 1e6:,.0f} MB, "
            f"and {free / 1e6:,.0f} MB are free"
        )


def run_generator(
    generator: Path,
    folder: Path,
    scale: float,
    format: str,
    tables: set[str],
    progress: Callable[[int], None],
) -> None:
    """Run the generator to its end; it ends with us, however we end."""
    arguments = [
        format,
        "--scale-factor",
        repr(scale),
        "--output-dir",
        str(folder),
        "--tables",
        ",".join(sorted(tables)),
    ]
    with tempfile.TemporaryFile(mode="w+", encoding="utf-8") as messages:
        process = subprocess.Popen(
            [generator, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=messages,
        )
        try:
            while process.poll() is None:
                progress(_bytes_in(folder))
                time.sleep(POLL_SECONDS)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        progress(_bytes_in(folder))
        if process.returncode != 0:
            messages.seek(0)
            reason = messages.read().strip() or f"tpchgen-cli ended with status {process.returncode}"
            if "No space left" in reason:
                reason = f"no room left in {folder.parent}"
            raise EnvironmentProblem(f"the tables could not be generated: {reason}")


def _bytes_in(folder: Path) -> int:
    total = 0
    for entry in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):  # renamed by the generator just now
            total += entry.stat().st_size
    return total


def count_table(path: Path) -> TableFile:
    """Count the rows of a file that was written: from the Parquet footer, or line by line."""
    if path.suffix == ".parquet":
        import pyarrow.parquet

        rows = pyarrow.parquet.read_metadata(path).num_rows
    else:
        with path.open("rb") as file:
            lines = sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
        rows = lines - 1 if path.suffix == ".csv" else lines  # only CSV has a header
    return TableFile(file=path.name, rows=rows, bytes=path.stat().st_size)


def move_into_place(unfinished: Path, folder: Path) -> None:
    """Make `unfinished` be `folder`. Older data steps aside first and comes back if that fails."""
    old = unfinished.with_name(f"{unfinished.name}.old")
    try:
        if folder.exists():
            folder.rename(old)
        try:
            unfinished.rename(folder)
        except BaseException:
            if old.exists():
                old.rename(folder)
            raise
    except OSError as error:
        raise EnvironmentProblem(f"the tables could not be moved to {folder}: {error.strerror}") from error
    shutil.rmtree(old, ignore_errors=True)

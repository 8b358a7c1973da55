"""Atomic deliveries: a target keeps its old rows until all of a run went well, then changes in one step.

Rows are written beside the target, into a hidden folder on the same file system. Committing swaps the two.
"""

from __future__ import annotations

import bz2
import contextlib
import ctypes
import errno
import gzip
import importlib
import json
import os
import shutil
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from engine.errors import BadInput, EnvironmentProblem, RunFailed
from engine.model.operator import Mode, Operator, PassOn, Place
from engine.model.types import UNKNOWN
from engine.operators import _formats
from engine.operators._sql import plain, quoted
from engine.operators.file_targets import FileTarget, TblTarget, TextTarget
from engine.spark.compile import writable
from engine.spark.failures import is_full
from engine.spark.sorted_staging import SortedStage
from engine.spark.tools import SparkTools


class Delivery(Protocol):
    """One target in one run."""

    node: str

    def write(self, frame: DataFrame) -> None:
        """Stage the rows; the target is not touched."""

    def read(self, spark: SparkSession) -> DataFrame:
        """What the nodes behind the target read, before the commit."""

    def rows(self) -> int:
        """The exact number of rows delivered."""

    def check(self) -> None:
        """Refuse where the target is no longer what the staged rows were made for."""

    def commit(self) -> None:
        """Let the target change, in one step. Doing it again does nothing."""

    def discard(self) -> None:
        """Remove what was staged. Doing it again does nothing."""

    def record(self) -> dict[str, Any]:
        """Plain data from which another process can commit or discard."""

    def state(self) -> dict[str, Any]:
        """Plain data by which a resumed run knows what was staged."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on with what a killed run had staged."""


def delivery(operator: Operator, node: str, place: Place, run_id: str) -> Delivery:
    """The delivery to a node's target. Refuses a target that must not be replaced."""
    if isinstance(operator, FileTarget):
        path = place.path(operator.path)
        problem = operator.missing(place)
        if problem:
            raise BadInput(f"node `{node}`: {problem}")
        return FileDelivery(node, path, _staging_place(path, run_id), operator, place)
    made: Delivery = _databases().delivery(operator, node, place, run_id)
    return made


def from_record(record: Mapping[str, Any]) -> Delivery:
    """A delivery as a journal remembers it: it can be committed or discarded."""
    if record["kind"] == FileDelivery.kind:
        return FileDelivery(record["node"], Path(record["path"]), Path(record["staged"]))
    made: Delivery = _databases().from_record(record)
    return made


def _databases() -> Any:
    """The deliveries to databases, which only those who need them load."""
    return importlib.import_module("engine.spark.database_targets")


def _staging_place(path: Path, run_id: str) -> Path:
    return path.parent / f".{path.name}.papilio-{run_id}"


# ---------------------------------------------------------------- files


class FileDelivery:
    """A delivery to a folder of files, or to one file.

    The hidden folder holds `rows` (what this run delivers), `table` where the target will hold more or something
    else than that, and `ready` once all of it is written: which of the two takes the target's place, and its
    inode, by which a second commit sees that the first was done.
    """

    kind = "files"

    def __init__(
        self, node: str, path: Path, staged: Path, operator: FileTarget | None = None, place: Place | None = None
    ) -> None:
        self.node = node
        self.path = path
        self.staged = staged
        self._operator = operator
        self._place = place
        self._columns: list[str] = []  # as they were delivered
        self._schema: Any = None  # as they stand in the files
        self._delivered: Path | None = None  # what `pass_on: delivered` reads, where it can be read as it is
        self._rows = 0
        self._syncing: _Syncing | None = None
        self.stage: SortedStage | None = None  # a sorter: the files hold the rows divided and in order

    def record(self) -> dict[str, Any]:
        return {"kind": self.kind, "node": self.node, "path": str(self.path), "staged": str(self.staged)}

    def state(self) -> dict[str, Any]:
        return {
            "rows": self._rows,
            "columns": self._columns,
            "schema": self._schema.jsonValue(),
            "delivered": self._delivered is not None,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self._rows = state["rows"]
        self._columns = list(state["columns"])
        self._schema = StructType.fromJson(state["schema"])
        self._delivered = self.staged / "rows" if state["delivered"] else None

    def sort_again(self, spark: SparkSession) -> None:
        """What a killed run had staged by a sorter is known to this session as well."""
        if self.stage is not None:
            self.stage.restore(spark, self._schema)

    # -- writing

    @property
    def operator(self) -> FileTarget:
        """The target's settings; a delivery from a journal has none, and only commits or discards."""
        assert self._operator is not None
        return self._operator

    def write(self, frame: DataFrame) -> None:
        with self._room():
            self.discard()
            self.staged.mkdir(parents=True)
            before = _content_mark(self.path)
            final = self._write(writable(frame))
            self._mark_ready(final, before)
        self._syncing = _Syncing(self.staged, final)

    @contextlib.contextmanager
    def _room(self) -> Iterator[None]:
        """Whatever fails because the disk is full is told as that."""
        try:
            yield
        except Exception as error:
            if is_full(error):
                raise EnvironmentProblem(
                    f"node `{self.node}`: the disk is full: there is no room for `{self.path}`; the target is as it was"
                ) from error
            raise

    def _write(self, frame: DataFrame) -> Path:
        """Stage the rows and give the file or folder that is to take the target's place."""
        operator, there = self.operator, bool(_formats.data_files(self.path))
        self._columns = frame.columns
        if problem := operator.unfit(self._columns):
            raise RunFailed(problem)
        rows, table = self.staged / "rows", self.staged / "table"
        if there and operator.mode is not Mode.OVERWRITE:
            frame = self._fitted(frame)
        self._schema = frame.schema
        if operator.mode is Mode.UPSERT:
            self._upsert(frame, rows, table, there)
        else:
            self._save(frame, rows)
            self._delivered = rows
            self._rows = sum(operator.count_rows(file) for file in _formats.data_files(rows))
            if operator.mode is Mode.APPEND and there and not operator.is_single_file:
                _link_all(self.path, table, operator.ending)
                _link_all(rows, table, operator.ending)
        final = table if table.exists() else rows
        return self._joined(final, frame.columns) if operator.is_single_file else final

    def _save(self, frame: DataFrame, folder: Path) -> None:
        operator = self.operator
        options = operator.write_options()
        if operator.is_single_file:
            options.pop("header", None)  # it is written once, above all parts
        prepared = operator.prepared(frame, self._tools(frame.sparkSession))
        if self.stage is not None:
            self.stage.write(prepared, options)
        else:
            prepared.write.format(operator.format).options(**options).save(str(folder))
        _tidy(folder, operator.ending)

    def _upsert(self, frame: DataFrame, rows: Path, table: Path, there: bool) -> None:
        """The rows that are there and have no delivered row's key, and the delivered rows."""
        spark, key = frame.sparkSession, self.operator.key
        frame.write.option("compression", "lz4_raw").parquet(str(rows))  # read twice, so written once
        _tidy(rows, ".parquet")
        self._rows = sum(_formats.count_parquet_rows(file) for file in _formats.data_files(rows))
        delivered = spark.read.schema(frame.schema).parquet(str(rows))
        self._refuse_repeated_keys(delivered, key)
        result = delivered
        if there:
            before = self.operator.read_back(str(self.path), frame, self._tools(spark)).alias("before")
            keys = delivered.select(*[plain(name) for name in key]).alias("keys")
            same = [F.col(f"before.{quoted(name)}").eqNullSafe(F.col(f"keys.{quoted(name)}")) for name in key]
            result = before.join(keys, same, "left_anti").unionByName(delivered)
        self._save(result, table)

    def _refuse_repeated_keys(self, delivered: DataFrame, key: Sequence[str]) -> None:
        columns = [plain(name) for name in key]
        twice = delivered.groupBy(*columns).count().where("count > 1").limit(1).collect()
        if twice:
            names = ", ".join(f"`{name}`" for name in key)
            values = ", ".join(f"{name} = {value!r}" for name, value in zip(key, twice[0], strict=False))
            raise RunFailed(
                f"{twice[0]['count']:,} delivered rows have the same key ({names}): {values}; "
                "an upsert cannot tell which of them to keep"
            )

    def _fitted(self, frame: DataFrame) -> DataFrame:
        """The frame with the columns of the table that is there, in their order; refused where they differ."""
        operator, files = self.operator, _formats.data_files(self.path)
        if operator.is_single_file and self.path.is_dir():
            raise RunFailed(f"`{self.path}` is a folder; with `single_file` it can be overwritten, not added to")
        if any(file.parent != self.path for file in files if self.path.is_dir()):
            raise RunFailed(f"`{self.path}` is divided into folders; it can be overwritten, not added to")
        if isinstance(operator, TblTarget):
            fields = operator.fields_in(files)
            if fields is not None and fields != len(frame.columns):
                raise RunFailed(f"`{self.path}` has {fields} columns, and {len(frame.columns)} are delivered")
        there = operator.columns_in(files)
        if there is None:
            return frame
        new = {name.lower(): (name, kind) for name, kind in frame.dtypes}
        for name, kind in there.items():
            own = new.pop(name.lower(), None)
            if own is None:
                raise RunFailed(f"`{self.path}` has a column `{name}`, which is not delivered")
            if UNKNOWN not in (kind, own[1]) and kind != own[1]:
                raise RunFailed(
                    f"the column `{name}` of `{self.path}` is of type `{kind}`, and `{own[1]}` is delivered"
                )
        if new:
            name, kind = next(iter(new.values()))
            raise RunFailed(f"`{self.path}` has no column `{name}`, and one of type `{kind}` is delivered")
        # A text file has no names, or one set of them: what is added stands in its order.
        return frame.select(*[F.col(quoted(name)).alias(name) for name in there])

    def _joined(self, folder: Path, columns: Sequence[str]) -> Path:
        """All parts as one file, in their order, behind what is there already where it is added to."""
        operator = self.operator
        assert isinstance(operator, TextTarget)
        single = self.staged / f"file{operator.ending}{operator.compressed_ending}"
        with single.open("wb") as out:
            added = operator.mode is Mode.APPEND and self.path.exists() and self.path.stat().st_size > 0
            if added:
                with self.path.open("rb") as old:
                    shutil.copyfileobj(old, out)
                if not _ends_line(self.path):
                    out.write(_compressed(b"\n", operator.compression))
            elif header := operator.header_line(columns):
                out.write(_compressed(header, operator.compression))
            for part in _formats.data_files(folder):
                with part.open("rb") as opened:
                    shutil.copyfileobj(opened, out)
        if operator.pass_on is PassOn.TABLE or not added:
            self._delivered = None  # the file itself holds what is passed on
        return single

    def _mark_ready(self, final: Path, before: str | None) -> None:
        status = final.stat()
        ready = {"final": final.name, "inode": [status.st_dev, status.st_ino], "before": before}
        written = self.staged / "ready.new"
        written.write_text(json.dumps(ready))
        written.rename(self.staged / "ready")

    def _tools(self, spark: SparkSession) -> SparkTools:
        assert self._place is not None
        return SparkTools(spark, self.operator, self._place)

    # -- what was written

    def rows(self) -> int:
        return self._rows

    def read(self, spark: SparkSession) -> DataFrame:
        return self._passed_on(spark).select(*[plain(name) for name in self._columns])

    def _passed_on(self, spark: SparkSession) -> DataFrame:
        operator = self.operator
        delivered = self.staged / "rows"
        if operator.pass_on is PassOn.DELIVERED and operator.mode is Mode.UPSERT:
            return spark.read.schema(self._schema).parquet(str(delivered))
        if operator.pass_on is PassOn.DELIVERED and self._delivered is not None:
            return self._read(spark, delivered, single=False)
        ready = self._ready()
        assert ready is not None, "read before it was written"
        return self._read(spark, self.staged / ready["final"], single=operator.is_single_file)

    def _read(self, spark: SparkSession, path: Path, single: bool) -> DataFrame:
        operator = self.operator
        if self.stage is not None:
            return self.stage.read(spark)
        if operator.lossless:  # told the columns, Spark starts no job to find them in the files
            return spark.read.schema(self._schema).format(operator.format).load(str(path))
        frame = spark.createDataFrame([], self._schema)
        if operator.is_single_file and not single and hasattr(operator, "header"):  # its parts have none
            operator = operator.model_copy(update={"header": False})
        return operator.read_back(str(path), frame, self._tools(spark))

    # -- committing

    def _ready(self) -> dict[str, Any] | None:
        try:
            ready: dict[str, Any] = json.loads((self.staged / "ready").read_text())
        except FileNotFoundError:
            return None
        return ready

    def check(self) -> None:
        ready, operator = self._ready(), self.operator
        if ready is None:
            raise RunFailed(f"node `{self.node}`: nothing was staged for `{self.path}`")
        with self._room():
            (self._syncing or _Syncing(self.staged, self.staged / ready["final"])).wait()
        if operator.mode is not Mode.OVERWRITE and _content_mark(self.path) != ready["before"]:
            raise RunFailed(f"node `{self.node}`: `{self.path}` changed while the run worked on it; nothing was loaded")
        problem = _formats.occupied(self.path, operator.ending, keeps=operator.mode is Mode.APPEND)
        if problem:
            raise RunFailed(f"node `{self.node}`: {problem}")

    def commit(self) -> None:
        ready = self._ready()
        if ready is not None:
            final = self.staged / ready["final"]
            if not _is_inode(self.path, ready["inode"]):
                _put_in_place(final, self.path, aside=self.staged / "old")
            sync(self.path.parent)
        # Without `ready` it was done before, and only cleaning up was left.
        _remove(self.staged)

    def discard(self) -> None:
        old = self.staged / "old"
        if old.exists() and not self.path.exists():  # killed in the middle of a swap that was no exchange
            old.rename(self.path)
        _remove(self.staged)


# ---------------------------------------------------------------- the file system

_AT_FDCWD = -100
_NOREPLACE, _EXCHANGE = 1, 2
_NO_SUCH_CALL = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP)


def _put_in_place(new: Path, place: Path, aside: Path) -> None:
    """Let `new` stand at `place`. What stood there is then at `new` or at `aside`, or is gone.

    Where the file system can exchange two names this is one step. Elsewhere there is a moment in which nothing
    stands at `place`; who is killed in it leaves the old at `aside`, from where the journal has it mended.
    """
    try:
        if not place.exists():
            _rename(new, place, _NOREPLACE)
        elif new.is_file() and place.is_file():
            os.replace(new, place)
        else:
            _rename(new, place, _EXCHANGE)
    except OSError as error:
        if error.errno == errno.EEXIST:  # it came into being just now
            _put_in_place(new, place, aside)
        elif error.errno not in _NO_SUCH_CALL:
            raise
        else:
            if place.exists():
                os.rename(place, aside)
            os.rename(new, place)


def _rename(source: Path, target: Path, flag: int) -> None:
    """Linux's `renameat2`."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if sys.platform == "linux" else None
    if call is None:
        raise OSError(errno.ENOSYS, "no renameat2 here")
    done = call(_AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), ctypes.c_uint(flag))
    if done != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(source), None, str(target))


def _is_inode(path: Path, inode: Sequence[int]) -> bool:
    try:
        status = path.stat()
    except FileNotFoundError:
        return False
    return [status.st_dev, status.st_ino] == list(inode)


def sync(path: Path) -> None:
    """Have a file or a folder on the disk itself before going on."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


class _Syncing:
    """Brings what was staged to the disk itself, while those who read it go on. Before a commit it is waited for."""

    def __init__(self, staged: Path, final: Path) -> None:
        self._places = (*_files_below(final), final, staged / "ready", staged)
        self._error: OSError | None = None
        self._thread = threading.Thread(target=self._run, name=f"sync-{final}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            for place in self._places:
                sync(place)
        except OSError as error:  # also where it was discarded meanwhile, and nobody waits
            self._error = error

    def wait(self) -> None:
        """Until all of it is on the disk. Raises what kept it from that."""
        self._thread.join()
        if self._error is not None:
            raise self._error


def _remove(folder: Path) -> None:
    """Remove a folder, its mark first: what is left of it after a kill is no longer ready."""
    with contextlib.suppress(FileNotFoundError):
        (folder / "ready").unlink()
    shutil.rmtree(folder, ignore_errors=True)


def _files_below(path: Path) -> list[Path]:
    return [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]


def _content_mark(path: Path) -> str | None:
    return _formats.fingerprint(path) if path.exists() else None


def _tidy(folder: Path, ending: str) -> None:
    """Remove Hadoop's checksums and markers, and give the parts the name and the ending of their kind."""
    for file in list(folder.rglob("*")):
        name = file.name
        if name == "_SUCCESS" or (name.startswith(".") and file.suffix == ".crc"):
            file.unlink()
        elif file.is_file():
            if not name.startswith("part-"):  # Sail's, which are known as ours by this name from now on
                name = f"part-{name}"
            if ending == ".tbl" and ".csv" in name:
                name = name.replace(".csv", ".tbl")
            if name != file.name:
                file.rename(file.with_name(name))


def _link_all(source: Path, folder: Path, ending: str) -> None:
    """The data files of a target in another folder, without copying them where links are possible."""
    folder.mkdir(exist_ok=True)
    for file in _formats.data_files(source):
        name = file.name
        if file == source:  # a single file becomes one of several
            name = f"part-before-{name}" if _formats.is_data(name, ending) else f"part-before-{name}{ending}"
        try:
            os.link(file, folder / name)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EXDEV, errno.EMLINK):
                raise
            shutil.copy2(file, folder / name)


def _ends_line(file: Path) -> bool:
    with _formats.open_bytes(file) as opened:
        last = b"\n"
        while chunk := opened.read(1 << 20):
            last = chunk[-1:]
    return bool(last == b"\n")


def _compressed(data: bytes, how: str) -> bytes:
    match how:
        case "gzip":
            return gzip.compress(data)
        case "bzip2":
            return bz2.compress(data)
    return data

"""A table of a streaming warehouse on disk: files by time, and a journal whose last whole line is what readers see.

A version is published by one line of the journal, written to the disk before anybody hears of it. Files are written
before their line and never changed, so a reader that holds a version reads that version. What a killed process left
half done has no line, and is removed when the table is opened again.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import math
import os
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from engine.errors import EnvironmentProblem
from engine.spark.stream_versions import (
    DATA,
    JOURNAL,
    LATE,
    QUARANTINE,
    STATE,
    Change,
    DataFile,
    Version,
    apply,
    journal_line,
    plain_change,
    plain_version,
    replayed,
)

LOCK = "lock"
CHECKPOINT_LINES = 500  # then the journal begins anew behind a checkpoint
MOST_FILES = 24  # of a partition, before they become one
KEEP_S = 30.0  # so long at least a file that was replaced stays for those who still read it
CACHE_BYTES = 256 * 2**20
NAME_BYTES = 255  # of a file
REASON = ".reason"  # what the file with the reason ends with, beside one that was put aside


class RecentRows:
    """The rows of files read or written last, in memory: files never change, so these are always right."""

    def __init__(self, most_bytes: int = CACHE_BYTES) -> None:
        self.most_bytes = most_bytes
        self._rows: OrderedDict[str, pa.Table] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def put(self, path: str, rows: pa.Table) -> None:
        """Keep a file's rows, as long as there is room."""
        with self._lock:
            if path not in self._rows and rows.nbytes <= self.most_bytes // 4:
                self._rows[path] = rows
                self._bytes += rows.nbytes
                while self._bytes > self.most_bytes:
                    _, gone = self._rows.popitem(last=False)
                    self._bytes -= gone.nbytes

    def get(self, path: str) -> pa.Table:
        """A file's rows."""
        with self._lock:
            if path in self._rows:
                self._rows.move_to_end(path)
                return self._rows[path]
        rows = parquet.read_table(path, partitioning=None)
        self.put(path, rows)
        return rows


class TableStore:
    """The writer's side of a table. One process at a time; readers need no lock (`published`)."""

    def __init__(self, folder: Path, time_column: str, partition_us: int, recent: RecentRows | None = None) -> None:
        self.folder = folder
        self.time_column = time_column
        self.partition_us = partition_us
        self.recent = recent or RecentRows()
        for name in (DATA, LATE, QUARANTINE):
            (folder / name).mkdir(parents=True, exist_ok=True)
        self._lock = (folder / LOCK).open("a")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise EnvironmentProblem(f"{folder}: another process keeps this table; stop it first") from None
        try:
            self.version, whole, self._lines = replayed(folder)
        except EnvironmentProblem:
            self._lock.close()
            raise
        journal = folder / JOURNAL
        if journal.exists() and journal.stat().st_size > whole:
            os.truncate(journal, whole)  # a kill cut a line off; it was never published
        self._journal = journal.open("ab", buffering=0)
        self._gone: list[tuple[float, Path]] = []  # files that were dropped, and when by a clock that nobody puts
        self._reading: list[float] = []  # since when each update reads that does
        self._counting = Lock()
        self._remove_strays()

    def close(self) -> None:
        """Let another process keep the table."""
        self._journal.close()
        self._lock.close()

    # -- reading

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """While this lasts, no file goes of a version that was taken within it."""
        since = time.monotonic()
        with self._counting:
            self._reading.append(since)
        try:
            yield
        finally:
            with self._counting:
                self._reading.remove(since)

    def read(self, first_us: int | None, last_us: int | None, version: Version | None = None) -> pa.Table | None:
        """The rows of a version with times from `first_us` to `last_us`, both included; None where it has no file."""
        version = version or self.version
        parts = []
        for file in self.files_between(first_us, last_us, version):
            rows = self.recent.get(str(self.folder / DATA / file.name))
            inside = (first_us is None or first_us <= file.first_us) and (last_us is None or file.last_us <= last_us)
            parts.append(rows if inside else between(rows, self.time_column, first_us, last_us))
        return pa.concat_tables(parts) if parts else None

    def files_between(self, first_us: int | None, last_us: int | None, version: Version) -> list[DataFile]:
        """The files that may hold rows of a span."""
        return [
            file
            for file in version.files.values()
            if (first_us is None or file.last_us >= first_us) and (last_us is None or file.first_us <= last_us)
        ]

    # -- writing

    def stage(self, rows: pa.Table) -> list[DataFile]:
        """Write rows into files by partition; nobody sees them before they are published."""
        if not rows.num_rows:
            return []
        partitions = times_us(rows, self.time_column).to_numpy() // self.partition_us
        if partitions.min() == partitions.max():
            return [self._write(DATA, rows, int(partitions[0]))]
        order = np.argsort(partitions, kind="stable")
        found, begins = np.unique(partitions[order], return_index=True)
        return [
            self._write(DATA, rows.take(place), int(partition))
            for partition, place in zip(found, np.split(order, begins[1:]), strict=True)
        ]

    def cut_from(self, begin_us: int | None, version: Version) -> tuple[list[str], pa.Table | None]:
        """The files of a version that hold rows from a time on, and the rows before it that they hold as well."""
        files = self.files_between(begin_us, None, version)
        astride = [] if begin_us is None else [file for file in files if file.first_us < begin_us]
        parts = [
            between(self.recent.get(str(self.folder / DATA / file.name)), self.time_column, None, (begin_us or 0) - 1)
            for file in astride
        ]
        return [file.name for file in files], pa.concat_tables(parts) if parts else None

    def stage_late(self, rows: pa.Table) -> list[DataFile]:
        """Write records that came too late beside the table."""
        return [self._write(LATE, rows, 0)] if rows.num_rows else []

    def compacted(self, add: Sequence[DataFile]) -> tuple[list[DataFile], list[str]]:
        """Where a partition has become many small files: one file for all of them, and those that it replaces."""
        files, drop = list(add), []
        for partition in {file.partition for file in add}:
            old = [file for file in self.version.files.values() if file.partition == partition]
            if len(old) >= MOST_FILES:
                new = [file for file in files if file.partition == partition]
                rows = [self.recent.get(str(self.folder / DATA / file.name)) for file in (*old, *new)]
                files = [file for file in files if file.partition != partition]
                files.append(self._write(DATA, pa.concat_tables(rows).combine_chunks(), partition))
                drop += [file.name for file in old]
                for file in new:
                    self._gone.append((-math.inf, self.folder / DATA / file.name))
        return files, drop

    def publish(self, change: Change) -> Version:
        """Make a change visible, as a whole and for good: it is on the disk when this returns."""
        if change.add or change.late:
            _sync_folder(self.folder / DATA)
            if change.late:
                _sync_folder(self.folder / LATE)
        number = self.version.number + 1
        now = time.time()
        body = {"number": number, "published": now, **plain_change(change)}
        self._append(journal_line(body))
        self.version = apply(self.version, change, number, now)
        dropped = time.monotonic()
        for name in change.drop:
            self._gone.append((dropped, self.folder / DATA / name))
        self._lines += 1
        with contextlib.suppress(OSError):  # it is published; upkeep that fails is tried again with the next change
            if self._lines >= CHECKPOINT_LINES:
                self._checkpoint()
            self._remove_gone()
        return self.version

    def describe(self, made: Mapping[str, Any], *, anew: bool = False) -> Version:
        """Write down what the table is made of; where it is made anew, none of its rows stays."""
        now = self.version
        if anew:
            return self.publish(Change(None, None, drop=list(now.files), made=made))
        return self.publish(Change(now.fresh_us, now.safe_us, made=made))

    def _append(self, line: bytes) -> None:
        """A line of the journal, on the disk; one that does not get there whole is taken back."""
        handle = self._journal.fileno()
        whole = os.fstat(handle).st_size
        try:
            if self._journal.write(line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.folder / JOURNAL))
            os.fsync(handle)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(handle, whole)
            raise

    def quarantine(self, file: Path, reason: str) -> Path:
        """Put an arrival that cannot be read aside, with the reason beside it."""
        begin = f"{time.time_ns()}-"
        name = file.name.encode(errors="surrogateescape")[: NAME_BYTES - len(begin) - len(REASON)]
        place = self.folder / QUARANTINE / (begin + name.decode(errors="ignore"))
        place.with_name(place.name + REASON).write_text(reason + "\n", encoding="utf-8", errors="replace")
        try:
            os.replace(file, place)
        except OSError:  # on another file system
            place.write_bytes(file.read_bytes())
            with contextlib.suppress(OSError):  # it may be read, and not be removed
                file.unlink()
        return place

    def quarantined(self) -> list[Path]:
        """What was put aside."""
        return sorted(path for path in (self.folder / QUARANTINE).iterdir() if path.suffix != REASON)

    def _write(self, room: str, rows: pa.Table, partition: int) -> DataFile:
        name = f"{partition}-{self.version.number + 1}-{time.time_ns():x}.parquet"
        path = self.folder / room / name
        with path.open("wb") as sink:
            parquet.write_table(rows, sink, compression="NONE")
            sink.flush()
            os.fsync(sink.fileno())
            size = sink.tell()
        if room == DATA:
            self.recent.put(str(path), rows)
        micros = times_us(rows, self.time_column)
        return DataFile(name, partition, rows.num_rows, size, pc.min(micros).as_py() or 0, pc.max(micros).as_py() or 0)

    # -- upkeep

    def _checkpoint(self) -> None:
        """Write the whole state down, so that the journal can begin anew. A kill in between loses nothing."""
        body = {"number": self.version.number, "published": self.version.published, **plain_version(self.version)}
        fresh = self.folder / f"{STATE}.new"
        with fresh.open("wb") as file:
            file.write(journal_line(body))
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, self.folder / STATE)
        _sync_folder(self.folder)
        # Lines up to the checkpoint are passed over when both are read, so this may come late, or not at all.
        os.ftruncate(self._journal.fileno(), 0)
        self._lines = 0

    def _remove_strays(self) -> None:
        """Files without a line in the journal: a kill came before they were published."""
        for room, known in ((DATA, self.version.files), (LATE, self.version.late)):
            for path in (self.folder / room).iterdir():
                if path.name not in known:
                    path.unlink()

    def _remove_gone(self) -> None:
        with self._counting:
            before = min([time.monotonic() - KEEP_S, *self._reading])
        while self._gone and self._gone[0][0] < before:
            with contextlib.suppress(FileNotFoundError):
                self._gone[0][1].unlink()
            self._gone.pop(0)


# ---------------------------------------------------------------- versions


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# ---------------------------------------------------------------- rows by time


def times_us(rows: pa.Table, column: str) -> pa.ChunkedArray:
    """The times of rows, in microseconds since 1970."""
    return pc.cast(pc.cast(rows.column(column), pa.timestamp("us", "UTC")), pa.int64())


def between(rows: pa.Table, column: str, first_us: int | None, last_us: int | None) -> pa.Table:
    """The rows with times of a span, both its ends included; rows without a time are in none."""
    micros = times_us(rows, column)
    if first_us is not None:
        after = pc.greater_equal(micros, pa.scalar(first_us))
        rows, micros = rows.filter(after), micros.filter(after)
    if last_us is not None:
        rows = rows.filter(pc.less_equal(micros, pa.scalar(last_us)))
    return rows

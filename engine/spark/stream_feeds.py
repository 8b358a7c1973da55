"""Streams as they arrive: what came, in which order, up to which time, and its records when they are loaded.

A feed keeps no data: files stay in their folder, rows in their database, and generated records can be made again.
What was taken is in the table's journal, so a feed goes on behind it after a restart or a kill.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, json, parquet

from engine.model.operator import Place
from engine.operators import _formats
from engine.operators._database import DatabaseProblem, identifier
from engine.operators._postgresql import Session
from engine.operators.streams import (
    ID,
    MICROS,
    TIME,
    ArrivalFormat,
    FolderStream,
    GeneratorStream,
    PostgresqlStream,
    Stream,
)
from engine.spark.stream_store import TableStore, times_us

FUTURE_S = 3600.0  # a record from further ahead than this has a wrong time; it must not move the table's edge
MOST_AWAY_S = 30.0  # so long at most until a database that is away is asked again
WHOLE_S = 2.0  # a file that cannot be read and has not changed for so long is not being written any more
KEPT_BYTES = 4 * 2**20  # an arrival up to this size is kept from the look at it until it is loaded
ALL_KEPT_BYTES = 64 * 2**20  # but no more than this of one stream; others are read again
LOOK_FILES = 200  # of a folder are taken at one look, as far as they are read within
LOOK_S = 0.2  # seconds; the other streams and the jobs wait for it
AGAIN_FILES = 100  # of those that were taken are looked at again at one look

PUNCTUATION = ".punctuation"
Tell = Callable[[str], None]
Mark = tuple[int, int]  # a file's size, and when it changed last


@dataclass
class Arrival:
    """A batch that came: its records are loaded later. Without rows it is a punctuation."""

    id: str
    upto_us: int | None  # the largest time in it
    rows: int
    position: Any = None
    facts: list[Any] | None = None  # of a file: name, size, last change
    safe_us: int | None = None  # a punctuation: no record of this time or an earlier one comes any more
    kept: pa.Table | None = None
    gone: bool = False  # when it was to be loaded, nothing was there any more


class Feed(ABC):
    """One base table's stream."""

    def __init__(self, store: TableStore, schema: pa.Schema, time_column: str, tell: Tell) -> None:
        self.store = store
        self.schema = schema
        self.time_column = time_column  # of the stream's records
        self.tell = tell
        self.next_look = 0.0

    @abstractmethod
    def poll(self, now: float) -> list[Arrival]:
        """What came since the last look, in its order."""

    @abstractmethod
    def read(self, arrivals: Sequence[Arrival]) -> pa.Table:
        """The records of some batches."""

    def close(self) -> None:
        """No more looks."""
        return

    def upto(self, rows: pa.Table, now: float) -> int | None:
        """The largest time among records, leaving out what cannot be yet."""
        micros = times_us(rows, self.time_column)
        micros = micros.filter(pc.less_equal(micros, pa.scalar(round((now + FUTURE_S) * MICROS))))
        found: int | None = pc.max(micros).as_py()
        return found


def feed_of(
    stream: Stream, place: Place, store: TableStore, schema: pa.Schema, time_column: str, now: float, tell: Tell
) -> Feed:
    """The feed of a stream operator."""
    match stream:
        case FolderStream():
            return FolderFeed(stream, place.path(stream.path), store, schema, time_column, tell)
        case PostgresqlStream():
            return PostgresqlFeed(stream, place, store, schema, time_column, tell)
        case GeneratorStream():
            return GeneratorFeed(stream, store, schema, now, tell)
    raise NotImplementedError(stream.name)


# ---------------------------------------------------------------- a watched folder


class FolderFeed(Feed):
    """Files in a folder. A file's content is its identity: delivered again under any name, it has no effect.

    Files keep lying there once they are taken, so a look must not cost more the more there are: a name that is known
    is passed over, and only a few of them are looked at again each time, to see whether one has changed.
    """

    def __init__(
        self, stream: FolderStream, folder: Path, store: TableStore, schema: pa.Schema, time_column: str, tell: Tell
    ) -> None:
        super().__init__(store, schema, time_column, tell)
        self.stream = stream
        self.folder = folder
        self._seen: dict[str, Mark] = {
            facts[0]: (facts[1], facts[2]) for facts in store.version.batches.values() if facts
        }
        self._aside: dict[str, Mark] = {}  # what was quarantined under a name, and is still there
        self._known = set(store.version.batches)
        self.steady: Callable[[], float] = time.monotonic  # nobody can put it
        self._since: dict[str, tuple[Mark, float]] = {}  # files that are new: how they were, and since when by it
        self._settled: deque[str] = deque()  # new files that wait to be taken, in their order
        self._again: deque[str] = deque()  # names that are known, and have yet to be looked at again
        self._unread: set[str] = set()  # told to be unreadable
        self._kept: dict[str, int] = {}  # bytes of arrivals that are kept until they are loaded
        self._kept_bytes = 0
        self._keeping = Lock()  # the driver looks while a track reads
        self._away = False

    def poll(self, now: float) -> list[Arrival]:
        if now < self.next_look:
            return []
        try:
            if not self._settled:
                self._find(self.steady())
        except OSError as error:
            if not self._away:
                self.tell(f"{self.folder} cannot be looked at: {error.strerror}; what arrives later is taken then")
            self._away = True
            self.next_look = now + self.stream.check_s
            return []
        if self._away:
            self.tell(f"{self.folder} can be looked at again")
        self._away = False
        found = []
        end = time.monotonic() + LOOK_S
        for _ in range(LOOK_FILES):
            if not self._settled:
                break
            arrival = self._look(self.folder / self._settled.popleft(), now)
            if arrival is not None:
                found.append(arrival)
            if time.monotonic() > end:
                break
        # What is left of many files comes with the next look, and nobody waits for it.
        self.next_look = now if self._settled else now + self.stream.check_s
        return found

    def _find(self, at: float) -> None:
        """The files that are new or have changed, and have not changed any more for long enough, in their order."""
        there: dict[str, Mark] = {}
        with os.scandir(self.folder) as entries:
            for entry in entries:
                name = entry.name
                if name in self._seen or name in self._aside:
                    continue
                if _formats.is_hidden(name) or name.endswith((".tmp", ".part")) or not entry.is_file():
                    continue
                with contextlib.suppress(FileNotFoundError):
                    there[name] = _mark(entry.stat())
        there |= self._changed()
        # By what this process saw: a file's time may lie anywhere, and a clock may be put.
        self._since = {
            name: self._since[name] if name in self._since and self._since[name][0] == mark else (mark, at)
            for name, mark in there.items()
        }
        settled = [name for name, (_, since) in self._since.items() if at - since >= self.stream.settle_s]
        self._settled.extend(sorted(settled, key=lambda name: (there[name][1], name)))

    def _changed(self) -> dict[str, Mark]:
        """Of the names that are known, those that are something else by now; some of them are looked at each time."""
        if not self._again:
            self._again.extend((*self._seen, *self._aside))
        found = {}
        changing = [name for name in self._since if name in self._seen or name in self._aside]
        for name in (*changing, *(self._again.popleft() for _ in range(min(AGAIN_FILES, len(self._again))))):
            try:
                mark = _mark((self.folder / name).stat())
            except OSError:
                continue
            if mark not in (self._seen.get(name), self._aside.get(name)):
                found[name] = mark
        return found

    def _look(self, path: Path, now: float) -> Arrival | None:
        try:
            with path.open("rb") as file:
                content = file.read()
                mark = _mark(os.fstat(file.fileno()))
        except FileNotFoundError:
            return None
        except OSError as error:
            if path.name not in self._unread:
                self.tell(f"{path} cannot be read: {error.strerror}; it is taken once it can be")
            self._unread.add(path.name)
            return None
        self._unread.discard(path.name)
        before, since = self._since.get(path.name, (mark, self.steady()))
        if len(content) != mark[0] or mark != before:
            return None  # it grows; the next look will see
        id_ = hashlib.blake2b(content, digest_size=16).hexdigest()
        if id_ in self._known:
            self._seen[path.name] = mark
            self._since.pop(path.name, None)
            self.tell(f"{path.name} was delivered before; it has no effect")
            return None
        try:
            arrival = self._arrival(path.name, content, id_, mark, now)
        except Exception as error:  # whatever a file can do to those who parse it, the table goes on
            if self.steady() - since >= WHOLE_S:  # else it is perhaps still being written
                self._put_aside(path, mark, (str(error).strip() or type(error).__name__).splitlines()[0], "read")
            return None
        self._seen[path.name] = mark
        self._since.pop(path.name, None)
        self._known.add(id_)
        return arrival

    def _arrival(self, name: str, content: bytes, id_: str, mark: Mark, now: float) -> Arrival:
        """What a file brings; raises where it cannot be taken."""
        facts = [name, *mark]
        if name in self._seen:
            raise ValueError("it changed after it was taken; a stream only adds files")
        if name.endswith(PUNCTUATION):
            promised = _moment_us(content.decode())
            if promised > (now + FUTURE_S) * MICROS:
                raise ValueError("it promises what lies in the future; every record to come would be late")
            return Arrival(id_, None, 0, facts=facts, safe_us=promised)
        rows = self._parse(content)
        upto = self.upto(rows, now)
        if upto is None and rows.num_rows:
            self.tell(f"{name}: no record has a time that can be")
        arrival = Arrival(id_, upto, rows.num_rows, facts=facts)
        with self._keeping:
            if rows.nbytes <= KEPT_BYTES and self._kept_bytes + rows.nbytes <= ALL_KEPT_BYTES:
                arrival.kept = rows
                self._kept[id_] = rows.nbytes
                self._kept_bytes += rows.nbytes
        return arrival

    def put_aside(self, arrival: Arrival, reason: str) -> None:
        """Take a file out that was read and cannot be loaded, so that the others can."""
        if self._content(arrival) is not None:
            assert arrival.facts is not None
            name, size, changed = arrival.facts
            arrival.gone = True
            self._put_aside(self.folder / name, (size, changed), reason, "loaded")
            self._known.discard(arrival.id)  # where it is given again, it is tried again
            self._seen.pop(name, None)

    def _put_aside(self, path: Path, mark: Mark, reason: str, done: str) -> None:
        self._aside[path.name] = mark  # where it may not be removed, it is still there
        try:
            place = self.store.quarantine(path, reason)
        except OSError as error:
            self.tell(f"{path.name} cannot be {done}: {reason}; nor can it be put aside: {error.strerror}")
            return
        if not path.exists():
            del self._aside[path.name]
        self.tell(f"{path.name} cannot be {done} and was put aside as {place}: {reason}")

    def read(self, arrivals: Sequence[Arrival]) -> pa.Table:
        parts = []
        for arrival in arrivals:
            if arrival.kept is not None:
                parts.append(arrival.kept)
                with self._keeping:
                    self._kept_bytes -= self._kept.pop(arrival.id, 0)
            elif arrival.facts is not None and arrival.safe_us is None:
                content = self._content(arrival)
                if content is not None:
                    parts.append(self._parse(content))
        return pa.concat_tables(parts) if parts else self.schema.empty_table()

    def _content(self, arrival: Arrival) -> bytes | None:
        """A file that arrived; None where it is gone, or another one by now: then it is as if it had not come."""
        assert arrival.facts is not None
        path = self.folder / arrival.facts[0]
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            if not self.folder.is_dir():
                raise
            content, reason = None, "was removed before it was loaded; it is taken if it comes again"
        else:
            if hashlib.blake2b(content, digest_size=16).hexdigest() != arrival.id:
                content, reason = None, "changed before it was loaded, and cannot be any more"
        if content is None:
            arrival.gone = True
            self._known.discard(arrival.id)
            if not path.exists():
                self._seen.pop(path.name, None)
            self.tell(f"{path.name} {reason}")
        return content

    def _parse(self, content: bytes) -> pa.Table:
        """The records of a file, in the declared columns and types; raises where one does not fit."""
        if self.stream.format is ArrivalFormat.PARQUET:
            rows = parquet.read_table(pa.BufferReader(content))
            _has_columns(rows.column_names, self.schema.names)
            return rows.select(self.schema.names).cast(self.schema)
        try:
            return self._parse_text(content, self.schema)
        except pa.ArrowInvalid as error:
            if "zone offset" not in str(error):
                raise
        # A time without a zone is UTC.
        plain = [pa.field(f.name, pa.timestamp("us")) if pa.types.is_timestamp(f.type) else f for f in self.schema]
        return self._parse_text(content, pa.schema(plain)).cast(self.schema)

    def _parse_text(self, content: bytes, schema: pa.Schema) -> pa.Table:
        source = pa.BufferReader(content)
        if self.stream.format is ArrivalFormat.JSON:
            options = json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
            return json.read_json(source, parse_options=options).select(schema.names)
        reading = csv.ReadOptions() if self.stream.header else csv.ReadOptions(column_names=schema.names)
        parsing = csv.ParseOptions(delimiter=self.stream.separator, newlines_in_values=True)
        types = {field.name: field.type for field in schema}
        converting = csv.ConvertOptions(column_types=types, strings_can_be_null=True, null_values=[""])
        rows = csv.read_csv(source, reading, parsing, converting)
        _has_columns(rows.column_names, schema.names)
        return rows.select(schema.names)


def _mark(status: os.stat_result) -> Mark:
    return status.st_size, status.st_mtime_ns


def _has_columns(found: Sequence[str], wanted: Sequence[str]) -> None:
    for name in wanted:
        if found.count(name) != 1:
            count = "no column" if name not in found else f"{found.count(name)} columns"
            raise ValueError(f"it has {count} `{name}`; its columns are {', '.join(found)}")


def _moment_us(text: str) -> int:
    moment = datetime.fromisoformat(text.strip())
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * MICROS)


# ---------------------------------------------------------------- a PostgreSQL table


class PostgresqlFeed(Feed):
    """Rows of transactions that ended, by their transaction ids: all of those before the oldest that still runs.

    A row is known by the transaction that wrote it last. So only a table to which rows are added, and in which none is
    changed, is a stream: a row that is changed has a new transaction, and is loaded once more.
    """

    def __init__(
        self,
        stream: PostgresqlStream,
        place: Place,
        store: TableStore,
        schema: pa.Schema,
        time_column: str,
        tell: Tell,
    ) -> None:
        super().__init__(store, schema, time_column, tell)
        self.stream = stream
        self.place = place
        self._taken: int | None = store.version.position  # every transaction before it was looked at
        self._session: Session | None = None
        self._asking = Lock()  # the driver looks while a track reads
        self._away = 0  # so many looks found no database

    def poll(self, now: float) -> list[Arrival]:
        if now < self.next_look or not self._asking.acquire(blocking=False):
            return []
        self.next_look = now + self.stream.check_s
        try:
            session = self._connected()
            horizon = int(session.rows("SELECT pg_snapshot_xmin(pg_current_snapshot())::text")[0][0])
            if self._taken is not None and horizon <= self._taken:
                return []
            latest = round((now + FUTURE_S) * MICROS)
            micros = f"floor(extract(epoch FROM {_finite(self.time_column)}) * 1000000)::bigint"
            rows, upto = session.rows(
                f"SELECT count(*), max(CASE WHEN {micros} <= {latest} THEN {micros} END) "
                f"FROM {self._table()} WHERE {_transactions(self._taken, horizon)}"
            )[0]
        except DatabaseProblem as problem:
            self._lost(problem)
            self.next_look = now + max(self.stream.check_s, min(2.0 ** min(self._away, 10), MOST_AWAY_S))
            return []
        finally:
            self._asking.release()
        if self._away:
            self.tell("the database answers again")
        self._away = 0
        if not rows:
            return []
        before, self._taken = self._taken, horizon
        return [Arrival(f"{before}-{horizon}", upto, rows, position=horizon)]

    def read(self, arrivals: Sequence[Arrival]) -> pa.Table:
        before = arrivals[0].id.rpartition("-")[0]
        where = _transactions(None if before == "None" else int(before), int(arrivals[-1].position))
        columns = ", ".join(
            f"{_finite(field.name)} AS {identifier(field.name)}"
            if pa.types.is_temporal(field.type)
            else identifier(field.name)
            for field in self.schema
        )
        with self._asking:
            try:
                batches = list(self._connected().batches(f"SELECT {columns} FROM {self._table()} WHERE {where}"))
            except DatabaseProblem:
                self._hang_up()  # the next try begins with a new connection
                raise
        parts = [pa.Table.from_batches([batch]).cast(self.schema) for batch in batches]
        return pa.concat_tables(parts) if parts else self.schema.empty_table()

    def close(self) -> None:
        with self._asking:
            self._hang_up()

    def _hang_up(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None

    def _table(self) -> str:
        return f"{identifier(self.stream.db_schema)}.{identifier(self.stream.table)}"

    def _connected(self) -> Session:
        if self._session is None:
            self._session = self.stream.session(self.place)
        return self._session

    def _lost(self, problem: DatabaseProblem) -> None:
        if not self._away:
            self.tell(f"{problem}; it is tried again until it works")
        self._away += 1
        self._hang_up()


def _finite(column: str) -> str:
    """A time or a day; none where it is `infinity`, which is no moment and which Arrow does not know."""
    name = identifier(column)
    return f"CASE WHEN {name}::text NOT IN ('infinity', '-infinity') THEN {name} END"


def _transactions(after: int | None, before: int) -> str:
    """Rows by the transactions that wrote them, which the server counts in 32 bits, round and round."""
    ring, half = 1 << 32, 1 << 31
    own = "xmin::text::bigint"
    if after is None:
        return f"(({before % ring} - {own} + {ring}) % {ring}) BETWEEN 1 AND {half}"
    return f"(({own} - {after % ring} + {ring}) % {ring}) < {before - after}"


# ---------------------------------------------------------------- a generator


class GeneratorFeed(Feed):
    """Records made by number: batch k holds the ids from k times its rows on. It waits while nobody runs it."""

    def __init__(self, stream: GeneratorStream, store: TableStore, schema: pa.Schema, now: float, tell: Tell) -> None:
        super().__init__(store, schema, TIME, tell)
        self.stream = stream
        self._next = 0 if store.version.position is None else int(store.version.position[0]) + 1
        self._begin = now
        self._first = self._next
        # Records never go back in time, whatever the clock does between two runs.
        self._floor_us = store.version.fresh_us or 0

    def poll(self, now: float) -> list[Arrival]:
        found = []
        while (due := self._due(self._next)) <= now:
            rows = self.stream.rows_per_batch()
            ends_us = max(round((due - self._jitter(self._next)) * MICROS), self._floor_us + rows)
            begins_us = max(ends_us - round(self.stream.period_s * MICROS), self._floor_us)
            self._floor_us = ends_us
            found.append(Arrival(f"batch-{self._next}", ends_us, rows, position=[self._next, begins_us, ends_us]))
            self._next += 1
        self.next_look = due
        return found

    def _due(self, number: int) -> float:
        return self._begin + (number - self._first + 1) * self.stream.period_s + self._jitter(number)

    def _jitter(self, number: int) -> float:
        if not self.stream.jitter_s:
            return 0.0
        return random.Random(f"{self.stream.seed}/{number}").uniform(0, self.stream.jitter_s)

    def read(self, arrivals: Sequence[Arrival]) -> pa.Table:
        rows = self.stream.rows_per_batch()
        ids, times = [], []
        for arrival in arrivals:
            number, begins_us, ends_us = arrival.position
            ids.append(np.arange(number * rows, (number + 1) * rows, dtype=np.int64))
            back = np.arange(rows - 1, -1, -1, dtype=np.int64) * (ends_us - begins_us) // rows
            if self.stream.disorder_s:
                chance = np.random.default_rng([self.stream.seed, number])
                back = back + chance.integers(0, round(self.stream.disorder_s * MICROS) + 1, rows)
                back[-1] = 0  # one record tells how far the batch goes
            times.append(ends_us - back)
        micros = pa.array(np.concatenate(times)).cast(pa.timestamp("us", "UTC"))
        return pa.table({ID: np.concatenate(ids), TIME: micros})

"""Streams as they arrive: what came, in which order, up to which time, and its records when they are loaded.

A feed keeps no data: files stay in their folder, rows in their database, and generated records can be made again.
What was taken is in the table's journal, so a feed goes on behind it after a restart or a kill.
"""

from __future__ import annotations

import hashlib
import os
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
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
WHOLE_S = 2.0  # a file that cannot be read and has not changed for so long is not being written any more
KEPT_BYTES = 4 * 2**20  # an arrival up to this size is kept from the look at it until it is loaded

PUNCTUATION = ".punctuation"
Tell = Callable[[str], None]


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
    """Files in a folder. A file's content is its identity: delivered again under any name, it has no effect."""

    def __init__(
        self, stream: FolderStream, folder: Path, store: TableStore, schema: pa.Schema, time_column: str, tell: Tell
    ) -> None:
        super().__init__(store, schema, time_column, tell)
        self.stream = stream
        self.folder = folder
        self._aside: dict[str, tuple[int, int]] = {}  # what was quarantined under a name
        self._seen: dict[str, tuple[int, int]] = {
            facts[0]: (facts[1], facts[2]) for facts in store.version.batches.values() if facts
        }
        self._known = set(store.version.batches)
        self._away = False

    def poll(self, now: float) -> list[Arrival]:
        if now < self.next_look:
            return []
        self.next_look = now + self.stream.check_s
        try:
            entries = sorted(self._new(), key=lambda entry: (entry[1].st_mtime_ns, entry[0].name))
        except OSError as error:
            if not self._away:
                self.tell(f"{self.folder} cannot be looked at: {error.strerror}; what arrives later is taken then")
            self._away = True
            return []
        self._away = False
        found = (self._look(Path(entry.path), status, now) for entry, status in entries)
        return [arrival for arrival in found if arrival is not None]

    def _new(self) -> Iterator[tuple[os.DirEntry[str], os.stat_result]]:
        with os.scandir(self.folder) as entries:
            for entry in entries:
                name = entry.name
                if _formats.is_hidden(name) or name.endswith((".tmp", ".part")) or not entry.is_file():
                    continue
                status = entry.stat()
                if (status.st_size, status.st_mtime_ns) in (self._seen.get(name), self._aside.get(name)):
                    continue
                if time.time() - status.st_mtime >= self.stream.settle_s:
                    yield entry, status

    def _look(self, path: Path, status: os.stat_result, now: float) -> Arrival | None:
        try:
            content = path.read_bytes()
        except OSError as error:
            self.tell(f"{path} cannot be read: {error.strerror}")
            return None
        mark = (status.st_size, status.st_mtime_ns)
        if len(content) != status.st_size:
            return None  # it grows; the next look will see
        id_ = hashlib.blake2b(content, digest_size=16).hexdigest()
        if id_ in self._known:
            self._seen[path.name] = mark
            self.tell(f"{path.name} was delivered before; it has no effect")
            return None
        facts = [path.name, *mark]
        try:
            if path.name in self._seen:
                raise ValueError("it changed after it was taken; a stream only adds files")
            if path.name.endswith(PUNCTUATION):
                promised = _moment_us(content.decode())
                if promised > (now + FUTURE_S) * MICROS:
                    raise ValueError("it promises what lies in the future; every record to come would be late")
                arrival = Arrival(id_, None, 0, facts=facts, safe_us=promised)
            else:
                rows = self._parse(content)
                upto = self.upto(rows, now)
                if upto is None and rows.num_rows:
                    self.tell(f"{path.name}: no record has a time that can be")
                kept = rows if rows.nbytes <= KEPT_BYTES else None
                arrival = Arrival(id_, upto, rows.num_rows, facts=facts, kept=kept)
        except (pa.ArrowException, ValueError, OSError) as error:
            if time.time() - status.st_mtime < WHOLE_S:
                return None  # perhaps it is still being written
            reason = str(error).strip().splitlines()[0]
            place = self.store.quarantine(path, reason)
            self._aside[path.name] = mark  # where it may not be removed, it is still there
            self.tell(f"{path.name} cannot be read and was put aside as {place}: {reason}")
            return None
        self._seen[path.name] = mark
        self._known.add(id_)
        return arrival

    def read(self, arrivals: Sequence[Arrival]) -> pa.Table:
        parts = []
        for arrival in arrivals:
            if arrival.kept is not None:
                parts.append(arrival.kept)
            elif arrival.facts is not None and arrival.safe_us is None:
                content = (self.folder / arrival.facts[0]).read_bytes()
                if hashlib.blake2b(content, digest_size=16).hexdigest() != arrival.id:
                    raise OSError(
                        f"{self.folder / arrival.facts[0]} changed after it arrived; a stream only adds files"
                    )
                parts.append(self._parse(content))
        return pa.concat_tables(parts) if parts else self.schema.empty_table()

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


def _has_columns(found: Sequence[str], wanted: Sequence[str]) -> None:
    lost = [name for name in wanted if name not in found]
    if lost:
        raise ValueError(f"it has no column `{lost[0]}`; its columns are {', '.join(found)}")


def _moment_us(text: str) -> int:
    moment = datetime.fromisoformat(text.strip())
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * MICROS)


# ---------------------------------------------------------------- a PostgreSQL table


class PostgresqlFeed(Feed):
    """Rows of transactions that ended, by their transaction ids: all of those before the oldest that still runs."""

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
        self._away = False

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
            time_ = identifier(self.time_column)
            micros = f"floor(extract(epoch FROM {time_}) * 1000000)::bigint"
            rows, upto = session.rows(
                f"SELECT count(*), max(CASE WHEN {micros} <= {latest} THEN {micros} END) "
                f"FROM {self._table()} WHERE {_transactions(self._taken, horizon)}"
            )[0]
        except DatabaseProblem as problem:
            self._lost(problem)
            return []
        finally:
            self._asking.release()
        self._away = False
        if not rows:
            return []
        before, self._taken = self._taken, horizon
        return [Arrival(f"{before}-{horizon}", upto, rows, position=horizon)]

    def read(self, arrivals: Sequence[Arrival]) -> pa.Table:
        before = arrivals[0].id.rpartition("-")[0]
        where = _transactions(None if before == "None" else int(before), int(arrivals[-1].position))
        columns = ", ".join(identifier(name) for name in self.schema.names)
        with self._asking:
            batches = list(self._connected().batches(f"SELECT {columns} FROM {self._table()} WHERE {where}"))
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
            self.tell(f"{problem}; it is tried again")
        self._away = True
        self._hang_up()


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

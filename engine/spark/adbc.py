"""Databases behind Spark's Python data source: tables come in as Arrow batches and go out by bulk copies, over ADBC.

Options name a table, and the environment variable of a password. The password itself travels inside the pickled
data source, so that no option, plan or log ever holds it, and workers need not share the driver's environment.
"""

from __future__ import annotations

import importlib
import os
import re
import secrets as chance
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from engine.model.types import ddl
from engine.operators import _postgresql, _sqlite
from engine.operators._database import (
    FORMAT,
    DatabaseProblem,
    TableColumn,
    identifier,
    match_column,
    text_literal,
)
from engine.operators._postgresql import Server, Session

if TYPE_CHECKING:  # the many Pythons that Spark starts for a query load this module, and need no operator
    from engine.model.operator import Operator, Place

ATTEMPT = "_papilio_attempt"  # which attempt of a task wrote a staged row
OPEN = "_open"  # the end of a staging table's name while tasks still write to it
SQLITE_BATCH_ROWS = 16384
ONE_MOMENT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"

_FIRST = datetime(1, 1, 1)  # noqa: DTZ001 - the bounds of a column without a zone
_LAST = datetime(9999, 12, 31, 23, 59, 59, 999999)  # noqa: DTZ001


# ---------------------------------------------------------------- for a session, for a run


def register(
    spark: SparkSession,
    secrets: Mapping[str, str] | Iterable[str] = (),
    snapshots: Mapping[str, str] | None = None,
    name: str = FORMAT,
) -> None:
    """Make the format known to a session, with the secrets it may use.

    `secrets` are environment variables by name, or names with values. `snapshots` are moments that PostgreSQL
    holds for us, by server. What was registered before under the name is replaced.
    """
    if not isinstance(secrets, Mapping):
        unset = [one for one in secrets if one not in os.environ]
        if unset:
            raise DatabaseProblem(f"the environment variable `{unset[0]}` is not set")
        secrets = {one: os.environ[one] for one in secrets}
    carried = {"format_name": name, "secrets": dict(secrets), "snapshots": dict(snapshots or {})}
    # A class of its own is pickled with its attributes; AdbcDataSource itself would be pickled by its name alone.
    spark.dataSource.register(type(name, (AdbcDataSource,), carried))


@contextmanager
def databases(spark: SparkSession, operators: Iterable[Operator], place: Place) -> Iterator[None]:
    """For as long as a run reads: the format with the run's secrets, and one snapshot of each PostgreSQL database.

    The snapshot is a transaction that is kept open here and that every reader joins. So all partitions of all
    sources of a database, read again or not, see the same moment.
    """
    from engine.operators.databases import PostgresqlSource, PostgresqlTarget
    from engine.operators.streams import PostgresqlStream

    secrets: dict[str, str] = {}
    sources: dict[str, tuple[Server, str | None]] = {}
    for operator in operators:
        if isinstance(operator, (PostgresqlSource, PostgresqlStream, PostgresqlTarget)):
            server = operator.server()
            password = place.secret(operator.password) if operator.password else None
            if server.password_env and password is not None:
                secrets[server.password_env] = password
            if not isinstance(operator, PostgresqlTarget):
                sources[str(server)] = server, password
    with ExitStack() as held:
        snapshots = {}
        for key, (server, password) in sources.items():
            session = held.enter_context(Session(server, password, "papilio snapshot"))
            session.run("SET idle_in_transaction_session_timeout = 0")
            session.begin([ONE_MOMENT])
            snapshots[key] = session.rows("SELECT pg_export_snapshot()")[0][0]
        register(spark, secrets, snapshots)
        yield


def reason(error: BaseException) -> str | None:
    """The words of a database's problem that Spark wrapped on its way here; None where it is something else."""
    if isinstance(error, DatabaseProblem):
        return str(error)
    found = re.findall(rf"{DatabaseProblem.__name__}: (.+)", str(error))
    return found[-1].strip() if found else None


# ---------------------------------------------------------------- the data source


class AdbcDataSource(DataSource):
    """A table of a database."""

    format_name: ClassVar[str] = FORMAT
    secrets: ClassVar[Mapping[str, str]] = {}
    snapshots: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def name(cls) -> str:
        return cls.format_name

    def schema(self) -> str:
        """All columns, each with the Spark type that holds its values."""
        return ddl({column.name: column.spark for column in self._columns()})

    def reader(self, schema: StructType) -> DataSourceReader:
        if self.options["kind"] == "sqlite":
            return SqliteReader(self.options["file"], self.options["table"], schema)
        server = Server.of(self.options)
        return PostgresqlReader(
            server,
            server.password(self.secrets),
            self.options["schema"],
            self.options["table"],
            schema,
            self.options.get("partition_column"),
            int(self.options.get("partitions", 1)),
            None if "fresh" in self.options else self.snapshots.get(str(server)),
        )

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        server = Server.of(self.options)
        return StagingWriter(server, server.password(self.secrets), self.options["schema"], self.options["table"])

    def _columns(self) -> Sequence[TableColumn]:
        if self.options["kind"] == "sqlite":
            return _sqlite.existing_columns(Path(self.options["file"]), self.options["table"])
        server = Server.of(self.options)
        with Session(server, server.password(self.secrets)) as session:
            return session.existing(self.options["schema"], self.options["table"]).columns


def _wanted(schema: StructType, columns: Sequence[TableColumn], table: str) -> list[tuple[TableColumn, str]]:
    """The table's columns that a schema asks for, with the types it asks for."""
    by_name = {column.name: column for column in columns}
    wanted = []
    for item in schema.fields:
        match = match_column(item.name, by_name)
        if match is None:
            raise DatabaseProblem(_sqlite.no_column(table, item.name, list(columns)))
        wanted.append((by_name[match], item.dataType.simpleString()))
    return wanted


def _shaped(batch: Any, schema: Any, wanted: list[tuple[TableColumn, str]], table: str) -> Any:
    """A batch of the driver's types as one of Spark's. Nothing is rounded or cut; what does not fit is refused."""
    arrays = []
    for index, (column, kind) in enumerate(wanted):
        array = batch.column(index)
        try:
            if kind == "boolean" and pa.types.is_integer(array.type):
                array = _flags(array)
            array = array.cast(schema.field(index).type)
            if kind in ("date", "timestamp", "timestamp_ntz"):
                _check_times(array)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise DatabaseProblem(
                f"table `{table}`: column `{column.name}` is `{column.written}` and holds what cannot be read as "
                f"`{kind}`: {error}; name a type for it in `columns`"
            ) from None
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _flags(array: Any) -> Any:
    bounds = pc.min_max(array)
    if len(array) != array.null_count and (bounds["min"].as_py() < 0 or bounds["max"].as_py() > 1):
        raise pa.ArrowInvalid("a number other than 0 and 1")
    return array


def _check_times(array: Any) -> None:
    """Infinity and times beyond a calendar's end come out of the driver as other times."""
    if len(array) == array.null_count:
        return
    if pa.types.is_date32(array.type):
        bounds = pc.min_max(array.cast(pa.int32()))
        first, last = ((day.date() - date(1970, 1, 1)).days for day in (_FIRST, _LAST))
    else:
        bounds = pc.min_max(array.cast(pa.int64()))
        epoch = datetime(1970, 1, 1)  # noqa: DTZ001
        first, last = ((moment - epoch) // timedelta(microseconds=1) for moment in (_FIRST, _LAST))
    if bounds["min"].as_py() < first or bounds["max"].as_py() > last:
        raise pa.ArrowInvalid("a time before the year 1 or after 9999, or infinity")


# ---------------------------------------------------------------- PostgreSQL


@dataclass(frozen=True)
class Range(InputPartition):
    """The rows of one partition: from `lower` on, below `upper`; the first takes those without a value too."""

    column: str | None = None
    lower: int | str | None = None
    upper: int | str | None = None

    def condition(self) -> str:
        """The rows as a condition of SQL."""
        if self.column is None:
            return ""
        name = identifier(self.column)
        parts = []
        if self.lower is not None:
            parts.append(f"{name} >= {_bound(self.lower)}")
        if self.upper is not None:
            parts.append(f"{name} < {_bound(self.upper)}")
        condition = " AND ".join(parts)
        return f" WHERE {condition} OR {name} IS NULL" if self.lower is None else f" WHERE {condition}"


def _bound(value: int | str) -> str:
    return str(value) if isinstance(value, int) else f"DATE {text_literal(value)}"


def ranges(column: str, low: int | date, high: int | date, count: int) -> list[Range]:
    """Ranges of equal width that leave nothing out: the first and the last are open."""
    start = low.toordinal() if isinstance(low, date) else low
    width = (high.toordinal() if isinstance(high, date) else high) - start + 1
    count = min(count, width)
    numbers = [start + width * index // count for index in range(1, count)]
    is_date = isinstance(low, date)
    cuts = [date.fromordinal(number).isoformat() if is_date else number for number in numbers]
    if not cuts:
        return [Range()]
    return [Range(column, lower, upper) for lower, upper in pairwise([None, *cuts, None])]


class PostgresqlReader(DataSourceReader):
    """Reads a table in one transaction, or in several that share a snapshot."""

    def __init__(
        self, server: Server, password: str | None, schema_name: str, table: str, schema: StructType,
        partition_column: str | None, partitions: int, snapshot: str | None,
    ) -> None:  # fmt: skip
        self.server = server
        self.password = password
        self.schema_name = schema_name
        self.table = table
        self.schema = schema
        self.partition_column = partition_column
        self.count = partitions
        self.snapshot = snapshot

    def _moment(self) -> list[str]:
        return [ONE_MOMENT] + ([f"SET TRANSACTION SNAPSHOT {text_literal(self.snapshot)}"] if self.snapshot else [])

    def _from(self) -> str:
        return f"{identifier(self.schema_name)}.{identifier(self.table)}"

    def partitions(self) -> list[InputPartition]:
        """The ranges; one alone where no snapshot is held, for then several readers could see several moments."""
        if self.partition_column is None or self.count < 2 or self.snapshot is None:
            return [Range()]
        with Session(self.server, self.password) as session, session.transaction(self._moment()):
            table = session.existing(self.schema_name, self.table)
            match = match_column(self.partition_column, [column.name for column in table.columns])
            column = next((one for one in table.columns if one.name == match), None)
            if column is None:
                raise DatabaseProblem(_sqlite.no_column(self.table, self.partition_column, list(table.columns)))
            if column.is_array or column.kind not in ("int2", "int4", "int8", "date"):
                raise DatabaseProblem(
                    f"table `{self.table}`: `{column.name}` is `{column.written}`; "
                    "a table is read in parallel by whole numbers or dates"
                )
            name = identifier(column.name)
            finite = f" WHERE isfinite({name})" if column.kind == "date" else ""
            low, high = session.rows(f"SELECT min({name}), max({name}) FROM {self._from()}{finite}")[0]
        return [Range()] if low is None else [*ranges(column.name, low, high, self.count)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, Range)
        schema = to_arrow_schema(self.schema, timezone="UTC")
        with Session(self.server, self.password) as session, session.transaction(self._moment()):
            table = session.existing(self.schema_name, self.table)
            wanted = _wanted(self.schema, table.columns, self.table)
            values = [_postgresql.selected(column, kind) for column, kind in wanted]
            arrays = [identifier(one.name) for one, kind in wanted if one.is_array and kind != "string"]
            nested = [f"array_ndims({name}) > 1" for name in arrays]
            values += [f"coalesce({' OR '.join(nested)}, false)"] if nested else []
            names = [f"{value} AS c{index}" for index, value in enumerate(values)]
            for batch in session.batches(f"SELECT {', '.join(names)} FROM {self._from()}{partition.condition()}"):
                if nested and pc.any(batch.column(len(wanted))).as_py():
                    raise DatabaseProblem(f"table `{self.table}`: an array of arrays, which cannot be read")
                yield _shaped(batch, schema, wanted, self.table)


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """What one attempt of a task wrote."""

    attempt: int
    rows: int


class StagingWriter(DataSourceArrowWriter):
    """Fills a staging table: each attempt of a task in one transaction, and only those count that Spark counts."""

    def __init__(self, server: Server, password: str | None, schema_name: str, table: str) -> None:
        self.server = server
        self.password = password
        self.schema_name = schema_name
        self.table = table

    def _session(self) -> Session:
        # The name lets the delivery find and end writers that outlive a cancelled run.
        return Session(self.server, self.password, self.table)

    def write(self, iterator: Iterator[Any]) -> Written:
        attempt, rows = chance.randbits(62), 0
        first = next(iterator, None)
        if first is None:
            return Written(attempt, 0)
        schema = first.schema.append(pa.field(ATTEMPT, pa.int64()))

        def tagged() -> Iterator[Any]:
            nonlocal rows
            batch = first
            while batch is not None:
                rows += batch.num_rows
                mark = pa.repeat(pa.scalar(attempt, pa.int64()), batch.num_rows)
                yield pa.RecordBatch.from_arrays([*batch.columns, mark], schema=schema)
                batch = next(iterator, None)

        with self._session() as session, session.transaction():
            reader = pa.RecordBatchReader.from_batches(schema, tagged())
            session.ingest(self.schema_name, self.table + OPEN, reader)
        return Written(attempt, rows)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Close the staging table: what other attempts wrote is deleted, and under its new name none can write."""
        written = [message for message in messages if isinstance(message, Written)]
        table = f"{identifier(self.schema_name)}.{identifier(self.table + OPEN)}"
        attempts = ", ".join(str(message.attempt) for message in written) or "-1"
        with self._session() as session, session.transaction():
            session.run(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
            counted = f"count(*) FILTER (WHERE {identifier(ATTEMPT)} IN ({attempts}))"
            everything, rows = session.rows(f"SELECT count(*), {counted} FROM {table}")[0]
            if rows != sum(message.rows for message in written):
                raise DatabaseProblem(f"{self.server}: {rows} rows were staged where the tasks wrote another number")
            if everything != rows:
                session.run(f"DELETE FROM {table} WHERE {identifier(ATTEMPT)} NOT IN ({attempts})")
            session.run(f"ALTER TABLE {table} DROP COLUMN {identifier(ATTEMPT)}")
            session.run(f"ALTER TABLE {table} RENAME TO {identifier(self.table)}")


# ---------------------------------------------------------------- SQLite


class SqliteReader(DataSourceReader):
    """Reads a table of a file in one statement, which sees one moment."""

    def __init__(self, file: str, table: str, schema: StructType) -> None:
        self.file = file
        self.table = table
        self.schema = schema

    def read(self, partition: InputPartition) -> Iterator[Any]:
        schema = to_arrow_schema(self.schema, timezone="UTC")
        wanted = _wanted(self.schema, _sqlite.existing_columns(Path(self.file), self.table), self.table)
        asked = [_sqlite.selected(column, kind) for column, kind in wanted]
        # ADBC tells a column's type by the first rows it sees: this one makes it the type that is due.
        first = ", ".join(f"{sample} AS c{index}" for index, (_, sample) in enumerate(asked))
        rest = ", ".join(value for value, _ in asked)
        sql = f"SELECT {first} UNION ALL SELECT {rest} FROM {identifier(self.table)}"
        due = {"0": pa.int64(), "0.0": pa.float64(), "''": pa.string(), "x''": pa.binary()}
        types = [due[sample] for _, sample in asked]
        skip = 1
        for batch in self._batches(sql, wanted, types):
            yield _shaped(batch.slice(skip), schema, wanted, self.table)
            skip = 0

    def _batches(self, sql: str, wanted: list[tuple[TableColumn, str]], types: list[Any]) -> Iterator[Any]:
        try:
            dbapi = importlib.import_module("adbc_driver_sqlite.dbapi")
        except ImportError:
            raise DatabaseProblem("SQLite needs the package `adbc-driver-sqlite`, which is not installed") from None
        size = {"adbc.sqlite.query.batch_rows": str(SQLITE_BATCH_ROWS)}
        try:
            with (
                dbapi.connect(_sqlite.uri(self.file), autocommit=True) as connection,
                connection.cursor(adbc_stmt_kwargs=size) as cursor,
            ):
                cursor.execute(sql)
                reader = cursor.fetch_record_batch()
                for index, kind in enumerate(types):
                    if reader.schema.field(index).type != kind:
                        raise self._unfit(wanted[index], str(reader.schema.field(index).type))
                yield from reader
        except DatabaseProblem:
            raise
        except Exception as error:
            if type(error).__module__.partition(".")[0] not in ("adbc_driver_manager", "pyarrow", "builtins"):
                raise
            mismatch = re.search(r"Type mismatch in column (\d+): expected \w+ but got (\w+)", str(error))
            if mismatch:
                raise self._unfit(wanted[int(mismatch.group(1))], mismatch.group(2)) from None
            raise DatabaseProblem(_sqlite.words(self.file, error)) from None

    def _unfit(self, column: tuple[TableColumn, str], held: str) -> DatabaseProblem:
        return DatabaseProblem(
            f"{self.file}: table `{self.table}`: column `{column[0].name}` is declared `{column[0].written}` and also "
            f"holds values of another kind ({held.lower()}), which cannot be read as `{column[1]}`; "
            "name a type for it in `columns`"
        )

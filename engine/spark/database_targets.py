"""Loading tables of databases, all rows or none: rows are staged beside the table, and moved in one transaction.

A delivery can be committed or discarded by another process, from its record: what is staged is in the database (or
beside the file), and a commit that was done before is found to be done.
"""

from __future__ import annotations

import importlib
import os
import secrets as chance
import shutil
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from engine.model.operator import Mode, Operator, PassOn, Place
from engine.operators import _postgresql, _sqlite
from engine.operators._database import (
    DatabaseProblem,
    TableColumn,
    identifier,
    identifiers,
    match_column,
    match_columns,
    staging_name,
    text_literal,
)
from engine.operators._postgresql import Server, Session
from engine.operators._sql import quoted
from engine.operators.databases import PostgresqlTarget, SqliteTarget
from engine.spark.adbc import ATTEMPT, OPEN, reason, register

ROW = "_papilio_row"  # tells staged rows apart in SQLite; a column of theirs may be called `rowid`


class DatabaseDelivery(ABC):
    """A run's rows on their way into one table."""

    def __init__(self, node: str, table: str, staging: str, mode: Mode, key: Sequence[str], pass_on: PassOn) -> None:
        self.node = node
        self.table = table
        self.staging = staging  # the name of what is staged
        self.mode = mode
        self.key = list(key)
        self.pass_on = pass_on
        self._columns: dict[str, str] = {}  # as delivered, with their Spark types
        self._rows: int | None = None

    # -- what the runner calls

    def write(self, frame: DataFrame) -> None:
        """Stage the rows, and find out all that would keep them from being loaded."""
        self._columns = {item.name: item.dataType.simpleString() for item in frame.schema.fields}
        self.key = [match_column(name, self._columns) or name for name in self.key]
        self._prepare()
        empty = [name for name, kind in self._columns.items() if kind == "void"]
        if empty:
            frame = frame.withColumns({name: F.col(quoted(name)).cast("string") for name in empty})
        try:
            self._stage(frame)
        except Exception as error:
            words = reason(error)
            if words is None:
                raise
            raise DatabaseProblem(words) from None
        self._check_staged()

    def read(self, spark: SparkSession) -> DataFrame:
        """What those behind the target read before the commit: the rows delivered, or the table as it will be."""
        staged = self._staged(spark)
        if self.pass_on is PassOn.DELIVERED or self.mode is Mode.OVERWRITE:
            return staged
        before = self._before(spark)
        if before is None:
            return staged
        if self.mode is Mode.UPSERT:
            keys = staged.select(*(F.col(quoted(name)).alias(f"_papilio_{name}") for name in self.key))
            same = [F.col(quoted(name)).eqNullSafe(F.col(quoted(f"_papilio_{name}"))) for name in self.key]
            before = before.join(keys, same, "left_anti")
        return before.unionByName(staged)

    def rows(self) -> int:
        """The exact number of rows delivered."""
        if self._rows is None:
            self._rows = self._count()
        return self._rows

    @abstractmethod
    def check(self) -> None:
        """Refuse where the table is no longer one that the staged rows can go into."""

    @abstractmethod
    def commit(self) -> None:
        """Show the rows. Done again, it does nothing."""

    @abstractmethod
    def discard(self) -> None:
        """Remove what is staged. Done again, it does nothing."""

    @abstractmethod
    def record(self) -> dict[str, Any]:
        """The delivery as plain data, from which `from_record` makes it again. It names the password's variable."""

    def state(self) -> dict[str, Any]:
        """Plain data by which a resumed run knows what was staged."""
        return {"rows": self.rows(), "columns": self._columns}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on with what a killed run had staged."""
        self._rows, self._columns = state["rows"], dict(state["columns"])

    # -- what a database does in its own way

    @abstractmethod
    def _prepare(self) -> None:
        """Raise where the rows cannot go into the table; make room for them."""

    @abstractmethod
    def _stage(self, frame: DataFrame) -> None: ...

    @abstractmethod
    def _check_staged(self) -> None: ...

    @abstractmethod
    def _staged(self, spark: SparkSession) -> DataFrame: ...

    @abstractmethod
    def _before(self, spark: SparkSession) -> DataFrame | None: ...

    @abstractmethod
    def _count(self) -> int: ...

    # -- what they share

    def _common_record(self, kind: str) -> dict[str, Any]:
        return {
            "kind": kind,
            "node": self.node,
            "table": self.table,
            "staging": self.staging,
            "mode": self.mode.value,
            "key": list(self.key),
            "pass_on": self.pass_on.value,
        }

    def _types(self, where: str, column_type: Callable[[str], str | None]) -> dict[str, str]:
        """The database's types of the delivered columns."""
        types = {name: column_type(kind) for name, kind in self._columns.items()}
        for name, kind in types.items():
            if kind is None:
                raise DatabaseProblem(
                    f"{where}: `{name}` is a `{self._columns[name]}`, which a column cannot hold; "
                    "turn it into text (`to_json`), or take it apart"
                )
        lost = [name for name in self.key if name not in types]
        if lost:
            raise DatabaseProblem(f"{where}: the key's column `{lost[0]}` is not delivered")
        return {name: kind for name, kind in types.items() if kind is not None}

    def _refuse_duplicates(self, where: str, rows: Sequence[tuple[Any, ...]]) -> None:
        if rows:
            *values, count = rows[0]
            example = ", ".join(f"{name} = {value}" for name, value in zip(self.key, values, strict=True))
            raise DatabaseProblem(
                f"{where}: {count} of the rows delivered have the key {example}; "
                "an upsert needs one row for each key (deduplicate them before)"
            )

    def _refuse_nulls(self, where: str, nulls: Mapping[str, int]) -> None:
        for name, count in nulls.items():
            if count:
                raise DatabaseProblem(
                    f"{where}: its column `{name}` takes no NULL, and {count} of the rows delivered have no value there"
                )

    def _not_staged(self, where: str) -> DatabaseProblem:
        return DatabaseProblem(f"{where}: the rows were not staged to the end; discard them and run again")


# ---------------------------------------------------------------- PostgreSQL


class PostgresqlDelivery(DatabaseDelivery):
    """Rows for a PostgreSQL table, staged in a table beside it."""

    def __init__(self, server: Server, password: str | None, schema: str, **common: Any) -> None:
        super().__init__(**common)
        self.server = server
        self.schema = schema
        self._password = password
        self._where = f"{server}, table `{schema}.{self.table}`"

    def record(self) -> dict[str, Any]:
        return self._common_record("postgresql") | self.server.options() | {"schema": self.schema}

    def _session(self) -> Session:
        return Session(self.server, self._password)

    def _name(self, table: str) -> str:
        return f"{identifier(self.schema)}.{identifier(table)}"

    # -- staging

    def _prepare(self) -> None:
        types = self._types(self._where, _postgresql.column_type)
        for name in types:
            if problem := _postgresql.name_problem(name):
                raise DatabaseProblem(f"{self._where}: {problem}")
        with self._session() as session:
            table = session.table(self.schema, self.table)
            if table is not None:
                if table.is_view:
                    raise DatabaseProblem(f"{self._where}: it is a view; rows are loaded into tables")
                match_columns(self._where, self._columns, table.columns, _postgresql.misfit)
            columns = [f"{identifier(name)} {kind}" for name, kind in types.items()]
            columns.append(f"{identifier(ATTEMPT)} bigint")
            with session.transaction():
                self._drop(session)
                session.run(f"CREATE TABLE {self._name(self.staging + OPEN)} ({', '.join(columns)})")

    def _format(self, spark: SparkSession) -> str:
        """A format of the delivery's own, which carries its password."""
        secrets = {self.server.password_env: self._password} if self.server.password_env and self._password else {}
        register(spark, secrets, name=self.staging)
        return self.staging

    def _stage(self, frame: DataFrame) -> None:
        options = self.server.options() | {"schema": self.schema, "table": self.staging}
        name = self._format(frame.sparkSession)
        frame.write.format(name).options(**options).mode("append").save()

    def check(self) -> None:
        with self._session() as session:
            table = session.table(self.schema, self.table)
            if table is not None:
                match_columns(self._where, self._columns, table.columns, _postgresql.misfit)

    def _check_staged(self) -> None:
        with self._session() as session:
            staging = self._name(self.staging)
            table = session.table(self.schema, self.table)
            needed = {}
            if table is not None:
                match = match_columns(self._where, self._columns, table.columns, _postgresql.misfit)
                needed = {name: column.name for name, column in match.items() if column.not_null}
            nulls = [f"count(*) FILTER (WHERE {identifier(name)} IS NULL)" for name in needed]
            rows, *missing = session.rows(f"SELECT {', '.join(['count(*)', *nulls])} FROM {staging}")[0]
            self._rows = rows
            self._refuse_nulls(self._where, dict(zip(needed.values(), missing, strict=True)))
            if self.mode is Mode.UPSERT:
                keys = identifiers(self.key)
                texts = ", ".join(f"CAST({identifier(name)} AS text)" for name in self.key)
                self._refuse_duplicates(
                    self._where,
                    session.rows(
                        f"SELECT {texts}, count(*) FROM {staging} GROUP BY {keys} HAVING count(*) > 1 LIMIT 1"
                    ),
                )
            session.run(f"ANALYZE {staging}")

    def _staged(self, spark: SparkSession) -> DataFrame:
        return self._table_frame(spark, self.staging)

    def _before(self, spark: SparkSession) -> DataFrame | None:
        with self._session() as session:
            if session.table(self.schema, self.table) is None:
                return None
        return self._table_frame(spark, self.table)

    def _table_frame(self, spark: SparkSession, table: str) -> DataFrame:
        columns = ", ".join(f"{quoted(name)} {_readable(kind)}" for name, kind in self._columns.items())
        options = self.server.options() | {"schema": self.schema, "table": table, "fresh": "true"}
        return spark.read.format(self._format(spark)).schema(columns).options(**options).load()

    def _count(self) -> int:
        with self._session() as session:
            return int(session.rows(f"SELECT count(*) FROM {self._name(self.staging)}")[0][0])

    # -- the end

    def commit(self) -> None:
        with self._session() as session, session.transaction():
            staged = session.table(self.schema, self.staging)
            if staged is None:
                if session.table(self.schema, self.staging + OPEN) is not None:
                    raise self._not_staged(self._where)
                return
            table = session.table(self.schema, self.table)
            if table is None:
                session.run(f"ALTER TABLE {self._name(self.staging)} RENAME TO {identifier(self.table)}")
                return
            types = {column.name: column.spark for column in staged.columns}
            match = match_columns(self._where, types, table.columns, _loose_misfit)
            values = {
                column.name: _postgresql.stored(one, column)
                for one, column in ((one, match[one.name]) for one in staged.columns)
            }
            identity = any(column.always_identity for column in match.values())
            target = self._name(self.table)
            into = f"INSERT INTO {target} ({identifiers(values)}) "
            into += "OVERRIDING SYSTEM VALUE " if identity else ""
            into += f"SELECT {', '.join(values.values())} FROM {self._name(self.staging)} AS s"
            if self.mode is Mode.OVERWRITE:
                # Other tables' foreign keys forbid to truncate; then the rows are deleted one by one.
                session.run(f"DELETE FROM {target}" if session.refers(table.oid) else f"TRUNCATE {target}")
            if self.mode is Mode.UPSERT:
                key = [match_column(name, types) or name for name in self.key]
                self._upsert(session, values, {name: match[name].name for name in key}, into)
            else:
                session.run(into)
            session.run(f"DROP TABLE {self._name(self.staging)}")

    def _upsert(self, session: Session, values: Mapping[str, str], key: Mapping[str, str], into: str) -> None:
        """Update the rows whose keys are there, insert the others. Rows that others refer to are never deleted."""
        target, staging = self._name(self.table), self._name(self.staging)
        session.run(f"LOCK TABLE {target} IN SHARE ROW EXCLUSIVE MODE")  # readers go on, writers wait
        rest = [name for name in values if name not in key.values()]
        changed = ", ".join(f"{identifier(name)} = {values[name]}" for name in rest)
        whole = " AND ".join(f"s.{identifier(name)} IS NOT NULL" for name in key)
        # Keys are compared with `=`, which can use an index or a hash; only those with a NULL need the slow way.
        for rows, sign in ((whole, "="), (f"NOT ({whole})", "IS NOT DISTINCT FROM")):
            if not session.rows(f"SELECT 1 FROM {staging} AS s WHERE {rows} LIMIT 1"):
                continue
            same = " AND ".join(f"t.{identifier(name)} {sign} {values[name]}" for name in key.values())
            texts = ", ".join(f"CAST(s.{identifier(name)} AS text)" for name in key)
            twice = session.rows(
                f"SELECT {texts}, count(*) FROM {target} AS t JOIN {staging} AS s ON {same} WHERE {rows} "
                f"GROUP BY {identifiers(key, 's.')} HAVING count(*) > 1 LIMIT 1"
            )
            if twice:
                example = ", ".join(f"{name} = {value}" for name, value in zip(key, twice[0], strict=False))
                raise DatabaseProblem(
                    f"{self._where}: it has {twice[0][-1]} rows with the key {example}; "
                    "an upsert cannot tell which of them to replace"
                )
            if changed:
                session.run(f"UPDATE {target} AS t SET {changed} FROM {staging} AS s WHERE {same} AND {rows}")
            session.run(f"{into} WHERE {rows} AND NOT EXISTS (SELECT 1 FROM {target} AS t WHERE {same})")

    def discard(self) -> None:
        with self._session() as session:
            session.rows(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                f"WHERE application_name = {text_literal(self.staging)} AND usename = current_user"
            )
            with session.transaction():
                self._drop(session)

    def _drop(self, session: Session) -> None:
        for name in (self.staging, self.staging + OPEN):
            session.run(f"DROP TABLE IF EXISTS {self._name(name)}")


def _loose_misfit(kind: str, column: TableColumn) -> str | None:
    """At the commit: types were compared when the rows were staged, and a column of NULLs only is staged as text."""
    return None if kind in ("string", "array<string>") else _postgresql.misfit(kind, column)


def _readable(kind: str) -> str:
    return "string" if kind == "void" else kind


# ---------------------------------------------------------------- SQLite


class SqliteDelivery(DatabaseDelivery):
    """Rows for a table of a SQLite file, staged in a folder beside it: as Parquet by Spark, then as a database.

    SQLite lets one process write at a time, and a reader can keep it waiting; so the file itself is not touched
    before the commit.
    """

    def __init__(self, file: Path, **common: Any) -> None:
        super().__init__(**common)
        self.file = file
        self.folder = file.parent / f".{self.staging}"
        self._where = f"{file}, table `{self.table}`"

    def record(self) -> dict[str, Any]:
        return self._common_record("sqlite") | {"file": str(self.file)}

    def _existing(self) -> list[TableColumn] | None:
        if not self.file.is_file() or not self.file.stat().st_size:
            return None
        with _sqlite.look(self.file) as connection:
            return _sqlite.table_columns(connection, self.table)

    # -- staging

    @property
    def _parquet(self) -> Path:
        return self.folder / "rows"

    @property
    def _database(self) -> Path:
        return self.folder / "rows.sqlite"

    def _prepare(self) -> None:
        self._types(self._where, _sqlite.column_type)
        columns = self._existing()
        if columns is not None:
            match_columns(self._where, self._columns, columns, _sqlite.misfit)
        self.discard()
        self.folder.mkdir(parents=True)

    def _stage(self, frame: DataFrame) -> None:
        frame.write.parquet(f"file://{self._parquet}")
        self._convert(self._existing())

    def _convert(self, columns: list[TableColumn] | None) -> None:
        """What Spark wrote as a SQLite database of its own, whose values are already as the table keeps them."""
        match = {} if columns is None else match_columns(self._where, self._columns, columns, _sqlite.misfit)
        kinds = {
            name: match[name].kind if name in match else _sqlite.affinity(_sqlite.column_type(kind) or "")
            for name, kind in self._columns.items()
        }
        part = self.folder / "rows.part"
        files = sorted(str(file) for file in self._parquet.glob("*.parquet"))
        with closing_sqlite(part) as connection:
            declared = ", ".join(f"{identifier(name)} {kind}" for name, kind in kinds.items())
            connection.execute(f"CREATE TABLE delivered ({ROW} INTEGER PRIMARY KEY, {declared})")
            connection.execute("CREATE TABLE columns (name TEXT, declared TEXT)")
            made = [(name, _sqlite.column_type(kind)) for name, kind in self._columns.items()]
            connection.executemany("INSERT INTO columns VALUES (?, ?)", made)
        self._rows = 0
        if files:
            layout = pd.ParquetFileFormat(coerce_int96_timestamp_unit="us")
            rows = pd.dataset(files, format=layout)
            self._rows = rows.count_rows()
            dbapi = importlib.import_module("adbc_driver_sqlite.dbapi")
            schema = pa.schema([(name, _kept_type(kind)) for name, kind in self._columns.items()])
            reader = pa.RecordBatchReader.from_batches(schema, self._kept(rows, schema))
            with (
                dbapi.connect(_sqlite.uri(part, read_only=False), autocommit=True) as connection,
                connection.cursor() as cursor,
            ):
                cursor.adbc_ingest("delivered", reader, mode="append")
        if self.mode is Mode.UPSERT:
            with closing_sqlite(part) as connection:
                connection.execute(f"CREATE INDEX by_key ON delivered ({identifiers(self.key)})")
        os.replace(part, self._database)

    def _kept(self, rows: Any, schema: Any) -> Iterator[Any]:
        for batch in rows.to_batches():
            arrays = []
            for name, kind in self._columns.items():
                array = batch.column(name)
                if kind in ("float", "double") and pc.any(pc.is_nan(array)).as_py():
                    raise DatabaseProblem(f"{self._where}: `{name}` holds NaN, for which SQLite has no value")
                arrays.append(_kept(array, kind))
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def check(self) -> None:
        columns = self._existing()
        if columns is not None:
            match_columns(self._where, self._columns, columns, _sqlite.misfit)

    def _check_staged(self) -> None:
        with closing_sqlite(self._database) as connection:
            count = connection.execute("SELECT count(*) FROM delivered").fetchone()[0]
            if count != self._rows:
                raise DatabaseProblem(f"{self._where}: {count} of {self._rows} rows were staged")
            columns = self._existing()
            if columns is not None:
                match = match_columns(self._where, self._columns, columns, _sqlite.misfit)
                nulls = {
                    column.name: connection.execute(
                        f"SELECT count(*) FROM delivered WHERE {identifier(name)} IS NULL"
                    ).fetchone()[0]
                    for name, column in match.items()
                    if column.not_null and not column.filled
                }
                self._refuse_nulls(self._where, nulls)
            if self.mode is Mode.UPSERT:
                keys = identifiers(self.key)
                self._refuse_duplicates(
                    self._where,
                    connection.execute(
                        f"SELECT {keys}, count(*) FROM delivered GROUP BY {keys} HAVING count(*) > 1 LIMIT 1"
                    ).fetchall(),
                )

    def _staged(self, spark: SparkSession) -> DataFrame:
        columns = ", ".join(f"{quoted(name)} {_readable(kind)}" for name, kind in self._columns.items())
        return spark.read.schema(columns).parquet(f"file://{self._parquet}")

    def _before(self, spark: SparkSession) -> DataFrame | None:
        if self._existing() is None:
            return None
        register(spark, name=self.staging)
        columns = ", ".join(f"{quoted(name)} {_readable(kind)}" for name, kind in self._columns.items())
        options = {"kind": "sqlite", "file": str(self.file), "table": self.table}
        return spark.read.format(self.staging).schema(columns).options(**options).load()

    def _count(self) -> int:
        with closing_sqlite(self._database) as connection:
            return int(connection.execute("SELECT count(*) FROM delivered").fetchone()[0])

    # -- the end

    def commit(self) -> None:
        """Move the rows and leave a mark, in one transaction; the mark goes when nothing is staged any more."""
        new = not self.file.exists()
        try:
            if self.folder.exists():
                if not (self._marked() or self._database.exists()):
                    raise self._not_staged(self._where)
                with closing_sqlite(self.file) as connection:
                    self._move(connection)
                shutil.rmtree(self.folder)
            if self._marked():
                with closing_sqlite(self.file) as connection:
                    connection.execute(f"DROP TABLE {identifier(self.staging)}")
                    connection.commit()
        except sqlite3.Error as error:
            raise DatabaseProblem(_sqlite.words(self._where, error)) from None
        finally:
            if new and self.file.exists() and not self.file.stat().st_size:
                self.file.unlink()

    def _marked(self) -> bool:
        if not self.file.exists():
            return False
        with _sqlite.look(self.file) as connection:
            return _sqlite.table_columns(connection, self.staging) is not None

    def _move(self, connection: sqlite3.Connection) -> None:
        if _sqlite.table_columns(connection, self.staging) is not None:
            return  # a commit that was killed after its transaction
        connection.execute("ATTACH DATABASE ? AS staged", (str(self._database),))
        connection.execute("BEGIN IMMEDIATE")
        made = dict(connection.execute("SELECT name, declared FROM staged.columns"))
        target = f"main.{identifier(self.table)}"
        columns = _sqlite.table_columns(connection, self.table)
        if columns is None:
            declared = ", ".join(f"{identifier(name)} {kind}" for name, kind in made.items())
            connection.execute(f"CREATE TABLE {target} ({declared})")
            columns = _sqlite.table_columns(connection, self.table) or []
        by_name = {column.name: column for column in columns}
        found = {name: match_column(name, by_name) for name in made}
        lost = [name for name, column in found.items() if column is None]
        if lost:
            raise DatabaseProblem(f"{self._where}: {_sqlite.no_column(self.table, lost[0], columns)}")
        into = {column: f"s.{identifier(name)}" for name, column in found.items() if column is not None}
        insert = (
            f"INSERT INTO {target} ({identifiers(into)}) SELECT {', '.join(into.values())} FROM staged.delivered AS s"
        )
        if self.mode is Mode.OVERWRITE:
            connection.execute(f"DELETE FROM {target}")
        if self.mode is Mode.UPSERT:
            self._upsert(connection, target, into, insert)
        else:
            connection.execute(insert)
        connection.execute(f"CREATE TABLE main.{identifier(self.staging)} (done INTEGER)")
        connection.commit()

    def _upsert(self, connection: sqlite3.Connection, target: str, into: Mapping[str, str], insert: str) -> None:
        key = [name for name in into if match_column(name, self.key)]
        same = " AND ".join(f"t.{identifier(name)} IS {into[name]}" for name in key)
        connection.execute(
            f"CREATE TEMP TABLE matched AS SELECT s.{ROW} FROM {target} AS t CROSS JOIN staged.delivered AS s ON {same}"
        )
        twice = connection.execute(
            f"SELECT {', '.join(into[name] for name in key)}, count(*) FROM matched "
            f"JOIN staged.delivered AS s USING ({ROW}) GROUP BY {ROW} HAVING count(*) > 1 LIMIT 1"
        ).fetchone()
        if twice:
            example = ", ".join(f"{name} = {value}" for name, value in zip(key, twice, strict=False))
            raise DatabaseProblem(
                f"{self._where}: it has {twice[-1]} rows with the key {example}; "
                "an upsert cannot tell which of them to replace"
            )
        rest = [name for name in into if name not in key]
        if rest:
            changed = ", ".join(f"{identifier(name)} = {into[name]}" for name in rest)
            connection.execute(f"UPDATE {target} AS t SET {changed} FROM staged.delivered AS s WHERE {same}")
        connection.execute(f"{insert} WHERE s.{ROW} NOT IN (SELECT {ROW} FROM matched)")

    def discard(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def _kept_type(kind: str) -> Any:
    """The Arrow type in which SQLite is given values of a Spark type."""
    if kind in ("tinyint", "smallint", "int", "bigint", "boolean"):
        return pa.int64()
    if kind in ("float", "double"):
        return pa.float64()
    return pa.binary() if kind == "binary" else pa.string()


def _kept(array: Any, kind: str) -> Any:
    """Values as SQLite keeps them: times and decimals as text."""
    if kind == "timestamp_ntz":
        array = array.cast(pa.timestamp("us"))
    elif kind == "timestamp":
        array = array.cast(pa.timestamp("us")).cast(pa.timestamp("us", tz="UTC"))
    elif kind.startswith("decimal(") and pc.any(pc.match_substring(array.cast(pa.string()), "E")).as_py():
        plain = [None if value is None else format(value, "f") for value in array.to_pylist()]
        return pa.array(plain, pa.string())
    return array.cast(_kept_type(kind))


@contextmanager
def closing_sqlite(file: Path) -> Iterator[sqlite3.Connection]:
    """A connection whose transactions are ours to begin; what is not committed is rolled back."""
    connection = sqlite3.connect(file, timeout=_sqlite.LOCK_SECONDS, isolation_level=None)
    try:
        yield connection
    finally:
        if connection.in_transaction:
            connection.rollback()
        connection.close()


# ---------------------------------------------------------------- making them


def delivery(operator: Operator, node: str, place: Place, run_id: str) -> DatabaseDelivery:
    """A run's delivery to a node's table."""
    assert isinstance(operator, (PostgresqlTarget, SqliteTarget))
    common = {
        "node": node,
        "table": operator.table,
        "staging": staging_name(run_id, node, operator.table),
        "mode": operator.mode,
        "key": operator.key,
        "pass_on": operator.pass_on,
    }
    if isinstance(operator, SqliteTarget):
        return SqliteDelivery(place.path(operator.path), **common)
    password = place.secret(operator.password) if operator.password else None
    return PostgresqlDelivery(operator.server(), password, operator.db_schema, **common)


def from_record(record: Mapping[str, Any], secrets: Mapping[str, str] = os.environ) -> DatabaseDelivery:
    """A delivery of another process, to be committed or discarded here."""
    common = {name: record[name] for name in ("node", "table", "staging", "key")}
    common |= {"mode": Mode(record["mode"]), "pass_on": PassOn(record["pass_on"])}
    if record["kind"] == "sqlite":
        return SqliteDelivery(Path(record["file"]), **common)
    server = Server.of(record)
    return PostgresqlDelivery(server, server.password(secrets), record["schema"], **common)


def deliver(frame: DataFrame, *, table: str, mode: str = "overwrite", key: Sequence[str] = (), **where: str) -> None:
    """Load a frame into a table, all rows or none: what an exported script does at a target.

    `where` are the options that also name a table to be read: `kind`, and `file` or `host`, `port` and so on.
    """
    node = staging_name(chance.token_hex(4), table, table)
    record = {"node": table, "table": table, "staging": node, "mode": mode, "key": key, "pass_on": "table", **where}
    made = from_record(record)
    try:
        made.write(frame)
        made.commit()
    except BaseException:
        made.discard()
        raise

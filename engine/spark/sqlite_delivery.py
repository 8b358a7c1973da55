"""Rows on their way into a table of a SQLite file."""

from __future__ import annotations

import importlib
import os
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pd
from pyspark.sql import DataFrame, SparkSession

from engine.model.operator import Mode
from engine.operators import _sqlite
from engine.operators._database import (
    DatabaseProblem,
    TableColumn,
    identifier,
    identifiers,
    match_column,
    match_columns,
)
from engine.spark.adbc import register
from engine.spark.database_delivery import DatabaseDelivery

ROW = "_papilio_row"  # tells staged rows apart in SQLite; a column of theirs may be called `rowid`


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
        columns = self._readable_columns()
        return spark.read.schema(columns).parquet(f"file://{self._parquet}")

    def _before(self, spark: SparkSession) -> DataFrame | None:
        if self._existing() is None:
            return None
        register(spark, name=self.staging)
        columns = self._readable_columns()
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

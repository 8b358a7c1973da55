"""Rows on their way into a PostgreSQL table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from engine.model.operator import Mode
from engine.operators import _postgresql
from engine.operators._database import (
    DatabaseProblem,
    TableColumn,
    identifier,
    identifiers,
    match_column,
    match_columns,
    text_literal,
)
from engine.operators._postgresql import Server, Session
from engine.spark.adbc import ATTEMPT, OPEN, register
from engine.spark.database_delivery import DatabaseDelivery


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
        columns = self._readable_columns()
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

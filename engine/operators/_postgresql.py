"""PostgreSQL through ADBC: connections whose errors are words, tables' columns, and types both ways. No Spark."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from engine.model.problems import did_you_mean
from engine.model.types import decimal_of, is_integral
from engine.operators._database import (
    NAME_BYTES,
    DatabaseProblem,
    TableColumn,
    identifier,
    no_table,
    text_literal,
)

CONNECT_SECONDS = 5

_TO_SPARK = {
    "int2": "smallint", "int4": "int", "int8": "bigint", "oid": "bigint",
    "float4": "float", "float8": "double", "bool": "boolean",
    "text": "string", "varchar": "string", "bpchar": "string",
    "date": "date", "timestamp": "timestamp_ntz", "timestamptz": "timestamp", "bytea": "binary",
}  # fmt: skip
_FROM_SPARK = {
    "tinyint": "smallint", "smallint": "smallint", "int": "integer", "bigint": "bigint",
    "float": "real", "double": "double precision", "boolean": "boolean",
    "string": "text", "date": "date", "timestamp_ntz": "timestamp",
    "timestamp": "timestamp with time zone", "binary": "bytea", "void": "text",
}  # fmt: skip
_UNBOUNDED_NUMERIC = "decimal(38,18)"
_TEXTS = ("text", "varchar", "bpchar")


@dataclass(frozen=True)
class Server:
    """A database on a server and who asks. The password is named here, not held."""

    host: str
    port: int
    database: str
    user: str
    password_env: str | None = None
    sslmode: str = "prefer"

    def __str__(self) -> str:
        return f"postgresql://{self.user}@{self.host}:{self.port}/{self.database}"

    def password(self, secrets: Mapping[str, str]) -> str | None:
        """The password among a run's secrets."""
        if self.password_env is None:
            return None
        if self.password_env not in secrets:
            raise DatabaseProblem(f"{self}: the environment variable `{self.password_env}` is not set")
        return secrets[self.password_env]

    def options(self) -> dict[str, str]:
        """The server as the options of Spark's data source."""
        options = {
            "kind": "postgresql",
            "host": self.host,
            "port": str(self.port),
            "database": self.database,
            "user": self.user,
            "sslmode": self.sslmode,
        }
        return options | ({"password_env": self.password_env} if self.password_env else {})

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Server:
        """The server that options name."""
        return cls(
            options["host"],
            int(options["port"]),
            options["database"],
            options["user"],
            options.get("password_env"),
            options["sslmode"],
        )


@dataclass(frozen=True)
class Table:
    """A table as the server knows it."""

    oid: int
    is_view: bool
    columns: tuple[TableColumn, ...]


class Session:
    """One connection. What the server refuses comes back as words, which never hold the password."""

    def __init__(self, server: Server, password: str | None, application: str = "papilio") -> None:
        self.server = server
        self._password = password
        try:
            dbapi = importlib.import_module("adbc_driver_postgresql.dbapi")
        except ImportError:
            raise DatabaseProblem(
                "PostgreSQL needs the package `adbc-driver-postgresql`, which is not installed"
            ) from None
        try:
            self._connection: Any = dbapi.connect(self._conninfo(application), autocommit=True)
        except Exception as error:
            raise DatabaseProblem(self._no_connection(error)) from None
        # Texts that both sides read the same way, whatever the server's own settings are.
        self.rows(
            "SELECT set_config('TimeZone', 'UTC', false), set_config('DateStyle', 'ISO', false), "
            "set_config('standard_conforming_strings', 'on', false), set_config('extra_float_digits', '1', false)"
        )

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up; a transaction that is still open is rolled back."""
        self._connection.close()

    # -- statements

    def run(self, sql: str) -> None:
        """Run a statement."""
        with self._words(), self._connection.cursor() as cursor:
            cursor.execute(sql)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        with self._words(), self._connection.cursor() as cursor:
            cursor.execute(sql)
            return [tuple(row) for row in cursor.fetchall()]

    def batches(self, sql: str) -> Iterator[Any]:
        """The rows of a query as Arrow batches, as they come."""
        with self._words(), self._connection.cursor() as cursor:
            cursor.execute(sql)
            yield from cursor.fetch_record_batch()

    def ingest(self, schema: str, table: str, reader: Any) -> None:
        """Copy Arrow batches into a table that has their columns."""
        with self._words(), self._connection.cursor() as cursor:
            cursor.adbc_ingest(table, reader, mode="append", db_schema_name=schema)

    def begin(self, first: Sequence[str] = ()) -> None:
        """Begin a transaction. `first` are statements that must come before any other."""
        self._connection.adbc_connection.set_autocommit(False)
        for sql in first:
            self.run(sql)

    @contextmanager
    def transaction(self, first: Sequence[str] = ()) -> Iterator[None]:
        """All that is done inside, or nothing."""
        try:
            self.begin(first)
            yield
            with self._words():
                self._connection.commit()
        except BaseException:
            with suppress(Exception):  # the connection may be gone, and its transaction with it
                self._connection.rollback()
            raise
        finally:
            with suppress(Exception):
                self._connection.adbc_connection.set_autocommit(True)

    # -- the catalogue

    def table(self, schema: str, name: str) -> Table | None:
        """A table or a view with its columns; None where there is none."""
        found = self.rows(
            "SELECT c.oid::bigint, c.relkind::text FROM pg_catalog.pg_class c "
            "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
            f"WHERE n.nspname = {text_literal(schema)} AND c.relname = {text_literal(name)} "
            "AND c.relkind IN ('r', 'p', 'v', 'm', 'f')"
        )
        if not found:
            return None
        oid, kind = found[0]
        columns = self.rows(
            "SELECT a.attname::text, pg_catalog.format_type(a.atttypid, a.atttypmod), b.typname::text, "
            "  CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END::bigint, e.typname::text, "
            "  a.attnotnull, a.atthasdef, a.attidentity::text, a.attgenerated::text "
            "FROM pg_catalog.pg_attribute a "
            "JOIN pg_catalog.pg_type t ON t.oid = a.atttypid "
            "JOIN pg_catalog.pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END "
            "LEFT JOIN pg_catalog.pg_type e ON e.oid = b.typelem AND b.typcategory = 'A' "
            f"WHERE a.attrelid = {oid} AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
        )
        return Table(oid, kind in "vm", tuple(_column(*row) for row in columns))

    def existing(self, schema: str, name: str) -> Table:
        """A table that has to be there, and readable."""
        table = self.table(schema, name)
        if table is None:
            raise DatabaseProblem(self._missing(schema, name))
        return table

    def refers(self, oid: int) -> bool:
        """Whether other tables refer to this one by foreign keys."""
        return bool(
            self.rows(
                "SELECT 1 FROM pg_catalog.pg_constraint "
                f"WHERE contype = 'f' AND confrelid = {oid} AND conrelid <> {oid} LIMIT 1"
            )
        )

    def _missing(self, schema: str, name: str) -> str:
        schemas = [row[0] for row in self.rows("SELECT nspname::text FROM pg_catalog.pg_namespace")]
        if schema not in schemas:
            return f"{self.server}: there is no schema `{schema}`{did_you_mean(schema, schemas)}"
        names = self.rows(
            "SELECT c.relname::text FROM pg_catalog.pg_class c "
            "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
            f"WHERE n.nspname = {text_literal(schema)} AND c.relkind IN ('r', 'p', 'v', 'm', 'f')"
        )
        return no_table(f"{self.server}, schema `{schema}`", name, [row[0] for row in names])

    # -- words

    def _conninfo(self, application: str) -> str:
        settings = {
            "host": self.server.host,
            "port": str(self.server.port),
            "dbname": self.server.database,
            "user": self.server.user,
            "sslmode": self.server.sslmode,
            "connect_timeout": str(CONNECT_SECONDS),
            "client_encoding": "UTF8",
            "application_name": application,
        }
        if self._password is not None:
            settings["password"] = self._password
        escaped = {key: value.replace("\\", "\\\\").replace("'", "\\'") for key, value in settings.items()}
        return " ".join(f"{key}='{value}'" for key, value in escaped.items())

    @contextmanager
    def _words(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if type(error).__module__.partition(".")[0] not in ("adbc_driver_manager", "pyarrow"):
                raise
            raise DatabaseProblem(f"{self.server}: {self._without_password(_message(error))}") from None

    def _no_connection(self, error: Exception) -> str:
        said = self._without_password(_message(error))
        server = self.server
        place = f"the PostgreSQL server at {server.host}:{server.port}"
        if "password authentication failed" in said:
            held = f"the password in `{server.password_env}` is wrong" if server.password_env else "a wrong password"
            return f"{place} refused the user `{server.user}`: {held}, or there is no such user"
        if "no password supplied" in said:
            return f"{place} asks for the password of `{server.user}`; name the variable that holds it in `password`"
        if re.search(r'database ".*" does not exist', said):
            return f"{place} has no database `{server.database}`"
        if "FATAL" in said:
            return f"{place} refused the connection: {said.split('FATAL:')[-1].strip()}"
        reason = re.sub(r"^connection to server at .*? failed: ", "", said)
        return f"{place} does not answer: {reason.replace('Is the server running on that host and', 'is it')}"

    def _without_password(self, text: str) -> str:
        return text.replace(self._password, "***") if self._password else text


def _message(error: Exception) -> str:
    """What the server said, without the driver's wrapping and without the statement."""
    details = {
        key.decode() if isinstance(key, bytes) else key: value.decode(errors="replace")
        for key, value in getattr(error, "details", None) or ()
        if isinstance(value, bytes)
    }
    primary = details.get("PG_DIAG_MESSAGE_PRIMARY")
    if primary:
        more = details.get("PG_DIAG_MESSAGE_DETAIL")
        return f"{primary} ({more.rstrip('.')})" if more else primary
    text = str(error).split("\nQuery was")[0].split(". SQLSTATE")[0]
    text = re.sub(r"^[A-Z_]+: ", "", text)
    return " ".join(re.sub(r"^\[libpq\] (Failed to connect: )?", "", text).split())


# ---------------------------------------------------------------- types


def _column(
    name: str, written: str, base: str, typmod: int, element: str | None,
    not_null: bool, has_default: bool, identity: str, generated: str,
) -> TableColumn:  # fmt: skip
    kind = element or base
    inner = _numeric(typmod) if kind == "numeric" else _TO_SPARK.get(kind, "string")
    return TableColumn(
        name,
        written,
        kind,
        f"array<{inner}>" if element else inner,
        not_null=not_null,
        filled=bool(has_default or identity),
        computed=bool(generated),
        always_identity=identity == "a",
        is_array=element is not None,
    )


def _numeric(typmod: int) -> str:
    """The decimal that holds a `numeric(p, s)`; text for one of more than 38 digits."""
    if typmod < 4:
        return _UNBOUNDED_NUMERIC
    precision, scale = ((typmod - 4) >> 16) & 0xFFFF, (((typmod - 4) & 0x7FF) ^ 1024) - 1024
    if scale < 0:
        precision, scale = precision - scale, 0
    precision = max(precision, scale)
    return f"decimal({precision},{scale})" if precision <= 38 else "string"


def selected(column: TableColumn, wanted: str) -> str:
    """A column as a query asks for it, so that ADBC's type leads to the wanted one without loss."""
    name = identifier(column.name)
    inner = wanted[6:-1] if column.is_array and wanted.startswith("array<") else wanted
    if column.is_array and inner is wanted and wanted != "string":
        raise DatabaseProblem(f"column `{column.name}` is `{column.written}` and cannot be read as `{wanted}`")
    cast = _cast(column.kind, inner)
    if column.is_array and inner is wanted:
        return f"CAST({name} AS text)"
    if cast is None:
        return name
    return f"CAST({name} AS {cast}{'[]' if column.is_array else ''})"


def _cast(kind: str, wanted: str) -> str | None:
    if wanted == "string":
        return None if kind in _TEXTS else "text"
    if wanted.startswith("decimal("):
        return "text"  # Arrow turns it into the decimal, exactly
    if wanted in ("float", "double") and kind == "numeric":
        return "float8"
    return None if kind in _TO_SPARK else "text"


def column_type(kind: str) -> str | None:
    """The PostgreSQL type that holds a Spark type; None where there is none."""
    if kind.startswith("array<"):
        inner = column_type(kind[6:-1])
        return f"{inner}[]" if inner and not inner.endswith("[]") else None
    if kind.startswith("decimal("):
        return "numeric" + kind[7:]
    return _FROM_SPARK.get(kind)


def misfit(kind: str, column: TableColumn) -> str | None:
    """Why rows with a Spark type cannot go into a column without loss; None where they can."""
    if kind == "void":
        return None
    if kind.startswith("array<") != column.is_array:
        return f"`{kind}` is delivered"
    inner = kind[6:-1] if column.is_array else kind
    return None if _fits(inner, column) else f"`{kind}` is delivered; convert it before"


def _fits(kind: str, column: TableColumn) -> bool:
    to = column.kind
    if kind == "string":  # what PostgreSQL writes as text, it also reads from text: uuid, json, enums, …
        return to in _TEXTS or (to not in _TO_SPARK and to != "numeric")
    if is_integral(kind):
        return to in ("int2", "int4", "int8", "numeric", "float4", "float8")
    if kind.startswith("decimal("):
        scale = (decimal_of(kind) or (38, 18))[1]
        if to == "numeric":
            held = decimal_of(column.spark[6:-1] if column.is_array else column.spark)
            unbounded = "(" not in column.written
            return unbounded or held is None or held[1] >= scale
        return to == "float8" or (scale == 0 and to in ("int2", "int4", "int8"))
    return to in {
        "float": ("float4", "float8"),
        "double": ("float8",),
        "boolean": ("bool",),
        "date": ("date", "timestamp"),
        "timestamp": ("timestamptz",),
        "timestamp_ntz": ("timestamp",),
        "binary": ("bytea",),
    }.get(kind, ())


def stored(staged: TableColumn, column: TableColumn) -> str:
    """A staged column as it goes into its table's column."""
    value = f"s.{identifier(staged.name)}"
    explicit = staged.kind == "text" and column.kind not in _TEXTS
    return f"CAST({value} AS {column.written})" if explicit else value


def name_problem(name: str) -> str | None:
    """Why a name cannot be one in PostgreSQL; None where it can."""
    if "\0" in name:
        return "a name cannot hold a zero byte"
    if len(name.encode()) > NAME_BYTES:
        return f"`{name}`: a name in PostgreSQL has at most {NAME_BYTES} bytes"
    return None

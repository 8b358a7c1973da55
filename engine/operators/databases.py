"""Sources and targets in databases, through ADBC behind Spark's Python data source (`engine.spark.adbc`).

A password never leaves the environment as text: Spark's options, plans and logs have only the variable's name.
Names of schemas, tables and columns are always quoted; no setting is read as SQL.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from engine.errors import BadInput
from engine.model.operator import (
    BuildInputs,
    BuildTools,
    DataFrame,
    Finding,
    Inputs,
    Mode,
    PassOn,
    PathText,
    Place,
    Secret,
    Source,
    SqlType,
    Target,
)
from engine.model.types import UNKNOWN, BadType, Schema, is_integral, normal_type
from engine.operators import _postgresql, _sqlite
from engine.operators._database import FORMAT, DatabaseProblem, match_column
from engine.operators._postgresql import Server, Session
from engine.operators._sql import quoted, repeated


class SslMode(StrEnum):
    """How much the connection is protected, in libpq's words."""

    DISABLE = "disable"
    PREFER = "prefer"
    REQUIRE = "require"
    VERIFY_CA = "verify-ca"
    VERIFY_FULL = "verify-full"


def _nameable(name: str) -> str:
    problem = _postgresql.name_problem(name)
    if problem:
        raise ValueError(problem)
    return name


Name = Annotated[str, StringConstraints(min_length=1), AfterValidator(_nameable)]
_Columns = Annotated[
    dict[str, SqlType],
    Field(description="The columns to read, in this order, with their Spark types; all columns where none is named."),
]


class Postgresql(BaseModel):
    """Where a PostgreSQL table is, and who asks for it."""

    model_config = ConfigDict(defer_build=True)

    remote: ClassVar[bool] = True

    host: str = Field("localhost", min_length=1, description="The server's name or address.")
    port: int = Field(5432, ge=1, le=65535, description="The server's port.")
    database: str = Field(min_length=1, description="The database on the server.")
    user: str = Field(min_length=1, description="The user the server knows.")
    password: Secret = Field("", description="The environment variable with the password, as in `${env:NAME}`.")
    sslmode: SslMode = Field(SslMode.PREFER, description="How much the connection is protected.")
    db_schema: Name = Field("public", alias="schema", description="The schema the table is in.")
    table: Name = Field(description="The table.")

    def server(self) -> Server:
        """The server and the database, with the password's variable."""
        env = self.password[6:-1] or None
        return Server(self.host, self.port, self.database, self.user, env, self.sslmode.value)

    def session(self, place: Place) -> Session:
        """A connection; raises in words."""
        return Session(self.server(), place.secret(self.password) if self.password else None)

    def identity(self, place: Place) -> str:
        """The table's full name."""
        return f"postgresql://{self.host}:{self.port}/{self.database}/{self.db_schema}.{self.table}"


class _Sqlite(BaseModel):
    """Where a SQLite table is."""

    model_config = ConfigDict(defer_build=True)

    path: PathText = Field(description="The database's file.")
    table: str = Field(min_length=1, description="The table.")

    def identity(self, place: Place) -> str:
        """The table's full name."""
        return f"sqlite:{place.path(self.path)}#{self.table}"


class DatabaseSource(Source):
    """What the sources share: declared columns and the script's way to the data source."""

    columns: _Columns = Field(default_factory=dict)

    def declared(self) -> Schema | None:
        if not self.columns:
            return None
        return {name: _spark_type(kind) for name, kind in self.columns.items()}

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        yield from repeated(list(self.columns), "columns")

    def script_imports(self) -> tuple[str, ...]:
        return ("from engine.spark.adbc import register",)

    def options(self, tools: BuildTools) -> dict[str, Any]:
        """The source as options of Spark's data source."""
        raise NotImplementedError

    def build(self, inputs: BuildInputs, tools: BuildTools) -> DataFrame:
        reader = tools.spark.read.format(FORMAT)
        if declared := self.declared():
            reader = reader.schema(_ddl(declared))
        return reader.options(**self.options(tools)).load()


class PostgresqlSource(Postgresql, DatabaseSource):
    """Reads a table or a view of a PostgreSQL database; all sources of one database see the same moment."""

    name: ClassVar[str] = "postgresql_source"
    title: ClassVar[str] = "PostgreSQL source"

    partition_column: Name | None = Field(
        None, description="A column of whole numbers or dates by whose ranges the table is read in parallel."
    )
    partitions: int = Field(1, ge=1, le=1024, description="How many ranges are read in parallel.")

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        yield from super().check(inputs)
        if self.partitions > 1 and self.partition_column is None:
            yield Finding("a table is read in parallel by the ranges of a column", setting="partition_column")
        if self.partition_column is not None and self.partitions == 1:
            yield Finding("ranges of a column need a number of partitions", setting="partitions")
        declared = self.declared() or {}
        kind = declared.get(self.partition_column or "")
        if kind is not None and kind not in ("date", UNKNOWN) and not is_integral(kind):
            yield Finding(
                f"`{self.partition_column}` is a `{kind}`; ranges are of whole numbers or dates",
                setting="partition_column",
            )

    def missing(self, place: Place) -> str | None:
        try:
            with self.session(place) as session:
                table = session.existing(self.db_schema, self.table)
        except DatabaseProblem as problem:
            return str(problem)
        names = [column.name for column in table.columns]
        for name in [*self.columns, *([self.partition_column] if self.partition_column else [])]:
            if match_column(name, names) is None:
                return _sqlite.no_column(self.table, name, list(table.columns))
        return None

    def options(self, tools: BuildTools) -> dict[str, Any]:
        options = self.server().options() | {"schema": self.db_schema, "table": self.table}
        if self.partition_column is not None:
            options |= {"partition_column": self.partition_column, "partitions": str(self.partitions)}
        return options


class SqliteSource(_Sqlite, DatabaseSource):
    """Reads a table or a view of a SQLite file."""

    name: ClassVar[str] = "sqlite_source"
    title: ClassVar[str] = "SQLite source"

    def discover(self, place: Place) -> Schema | None:
        try:
            columns = _sqlite.existing_columns(place.path(self.path), self.table)
        except DatabaseProblem:
            return None
        return {column.name: column.spark for column in columns}

    def missing(self, place: Place) -> str | None:
        try:
            _sqlite.existing_columns(place.path(self.path), self.table)
        except DatabaseProblem as problem:
            return str(problem)
        return None

    def drift(self, place: Place) -> str | None:
        columns = _sqlite.existing_columns(place.path(self.path), self.table)
        names = [column.name for column in columns]
        lost = [name for name in self.columns if match_column(name, names) is None]
        return _sqlite.no_column(self.table, lost[0], columns) if lost else None

    def fingerprint(self, place: Place) -> str | None:
        file = place.path(self.path)
        return "|".join(_stamp(Path(f"{file}{ending}")) for ending in ("", "-wal"))

    def options(self, tools: BuildTools) -> dict[str, Any]:
        return {"kind": "sqlite", "file": tools.path("path"), "table": self.table}


def _stamp(file: Path) -> str:
    """A file's size and time; an empty log beside a database says as little as none."""
    try:
        state = file.stat()
    except FileNotFoundError:
        return ""
    return f"{state.st_size}:{state.st_mtime_ns}" if state.st_size else ""


def _spark_type(text: str) -> str:
    try:
        return normal_type(text)
    except BadType:
        return UNKNOWN  # told as a finding


def _ddl(schema: Schema) -> str:
    return ", ".join(f"{quoted(name)} {kind}" for name, kind in schema.items())


# ---------------------------------------------------------------- targets


class _DatabaseTarget(Target):
    """What the targets share: which types can be stored, and the script's way to deliver."""

    lossless: ClassVar[bool] = True

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        yield from super().check(inputs)
        for name, kind in (inputs.first() or {}).items():
            if kind != UNKNOWN and self.stored_type(kind) is None:
                yield Finding(
                    f"`{name}` is a `{kind}`, which a column of this database cannot hold; "
                    "turn it into text (`to_json`), or take it apart"
                )

    def stored_type(self, kind: str) -> str | None:
        """The database's type for a Spark type; None where there is none."""
        raise NotImplementedError

    def table_options(self, tools: BuildTools) -> dict[str, Any]:
        """The table as options of Spark's data source."""
        raise NotImplementedError

    def script_imports(self) -> tuple[str, ...]:
        return ("from engine.spark.adbc import register", "from engine.spark.database_targets import deliver")

    def script_write(self, frame: Any, tools: BuildTools) -> list[str]:
        """The lines of a script that load a frame into the table, all rows or none."""
        from engine.spark.script import Code

        how: dict[str, Any] = {"mode": self.mode.value} | ({"key": list(self.key)} if self.key else {})
        return str(Code("deliver")(frame, **self.table_options(tools), **how)).splitlines()

    def script_read(self, frame: Any, tools: BuildTools) -> Any:
        """What those behind the target read: the table once it is loaded, or the very rows."""
        if self.pass_on is PassOn.DELIVERED and self.mode is not Mode.OVERWRITE:
            return frame
        reader = tools.spark.read.format(FORMAT)
        try:
            schema = tools.schema(frame)
        except BadInput:
            schema = {}
        if schema:
            reader = reader.schema(_ddl(schema))
        return reader.options(**self.table_options(tools)).load()


class PostgresqlTarget(Postgresql, _DatabaseTarget):
    """Loads rows into a PostgreSQL table, all of them or none; a table that is not there is made."""

    name: ClassVar[str] = "postgresql_target"
    title: ClassVar[str] = "PostgreSQL target"

    def stored_type(self, kind: str) -> str | None:
        return _postgresql.column_type(kind)

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        yield from super().check(inputs)
        for name in inputs.first() or {}:
            if problem := _postgresql.name_problem(name):
                yield Finding(problem)

    def missing(self, place: Place) -> str | None:
        """Why the server cannot be reached; None where it can."""
        try:
            self.session(place).close()
        except DatabaseProblem as problem:
            return str(problem)
        return None

    def table_options(self, tools: BuildTools) -> dict[str, Any]:
        return self.server().options() | {"schema": self.db_schema, "table": self.table}


class SqliteTarget(_Sqlite, _DatabaseTarget):
    """Loads rows into a table of a SQLite file, all of them or none; file and table are made where missing."""

    name: ClassVar[str] = "sqlite_target"
    title: ClassVar[str] = "SQLite target"

    def stored_type(self, kind: str) -> str | None:
        return _sqlite.column_type(kind)

    def table_options(self, tools: BuildTools) -> dict[str, Any]:
        return {"kind": "sqlite", "file": tools.path("path"), "table": self.table}

"""A streaming warehouse in a workflow: append-only streams and the tables they feed (streaming warehouse, 2.1).

`papilio stream run` keeps the tables up to date. Read by a preview, a stream shows what has arrived so far.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from pydantic import Field

from engine.model.inference import Scope
from engine.model.operator import (
    IN,
    BuildInputs,
    BuildTools,
    Built,
    Column,
    Expression,
    Finding,
    Inputs,
    NewColumn,
    Operator,
    PathText,
    Place,
    Port,
    Role,
    Source,
    SqlType,
    column_type,
    expression_type,
)
from engine.model.physical import Known, Physical, black_box
from engine.model.types import UNKNOWN, Schema, ddl
from engine.operators import _sqlite
from engine.operators._database import DatabaseProblem, match_column
from engine.operators._sql import quoted, repeated, taken, with_columns
from engine.operators.databases import DatabaseSource, Postgresql
from engine.operators.file_sources import FileSource

FOLDER = "folder"  # what makes a watched folder the stream that it is
ID, TIME = "id", "ts"  # what every generated record has
SHOWN_BATCHES = 10  # of a generator, that a preview shows
MICROS = 1_000_000

Seconds = Annotated[float, Field(gt=0)]


class Stream(Source):
    """An append-only stream: batches of records come, and none is ever changed or taken back."""

    family: ClassVar[str] = "streams"

    @abstractmethod
    def itself(self) -> Mapping[str, Any]:
        """What makes it the stream that it is: with other values, what was taken of it says nothing any more."""

    def usual_period_s(self) -> float | None:
        """Every how many seconds a batch comes, where the stream itself knows."""
        return None


# ---------------------------------------------------------------- a watched folder


class ArrivalFormat(StrEnum):
    """What the files that arrive are."""

    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


class FolderStream(FileSource, Stream):
    """Files that arrive in a folder, each one a batch. One that cannot be read is put aside, and the others go on.

    A file is taken once it has not changed for `settle_s`. Names that begin with `.` or `_` and those that end in
    `.tmp` or `.part` are passed over: write such a file and rename it when it is whole. A file `NAME.punctuation`
    holds a time in ISO form: no record of that time or an earlier one comes any more. A file that changes after it was
    taken is put aside: streams only add.
    """

    name: ClassVar[str] = "folder_stream"
    title: ClassVar[str] = "Folder stream"
    family: ClassVar[str] = "streams"

    path: PathText = Field(description="The folder that is watched.")
    columns: dict[str, SqlType] = Field(min_length=1, description="The columns with their types.")
    format: ArrivalFormat = Field(ArrivalFormat.CSV, description="What the files are.")
    header: bool = Field(True, description="Whether the first line of a CSV file names the columns.")
    separator: str = Field(",", min_length=1, max_length=1, description="What stands between two fields of a CSV file.")
    check_s: Seconds = Field(0.2, description="Every how many seconds the folder is looked at.")
    settle_s: float = Field(
        1.0,
        ge=0,
        description="How long a file must not have changed before it is taken; 0 where files come by renaming.",
    )

    def itself(self) -> Mapping[str, Any]:
        return {FOLDER: self.path}

    def missing(self, place: Place) -> str | None:
        folder = place.path(self.path)
        if folder.is_dir():
            return None
        return f"`{folder}` is a file; a folder is watched" if folder.exists() else f"`{folder}` does not exist"

    def build(self, inputs: BuildInputs, tools: BuildTools) -> Built:
        reader = tools.spark.read.schema(ddl(tools.source_schema()))
        path = tools.path("path")
        if self.format is ArrivalFormat.CSV:
            return reader.csv(path, header=self.header, sep=self.separator, pathGlobFilter="*.csv", enforceSchema=False)
        if self.format is ArrivalFormat.JSON:
            return reader.json(path, pathGlobFilter="*.json")
        return reader.parquet(path)

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        yield from super().check(inputs)
        if self.format is not ArrivalFormat.CSV and (not self.header or self.separator != ","):
            yield Finding(f"a header and a separator are for CSV, and the files are {self.format}", setting="format")


# ---------------------------------------------------------------- a PostgreSQL table


class PostgresqlStream(Postgresql, DatabaseSource, Stream):
    """Rows that others insert into a PostgreSQL table. Those of transactions that are committed form the next batch.

    A row is taken once all transactions that began before its own have ended, so none is passed over. It is known by
    the transaction that wrote it last: the table must only be added to. A row that is changed later is loaded once
    more, beside the one that it was; a row that is deleted stays. A row whose time is `infinity` has none: it is put
    with the late ones, and counted.
    """

    name: ClassVar[str] = "postgresql_stream"
    title: ClassVar[str] = "PostgreSQL stream"
    family: ClassVar[str] = "streams"

    columns: dict[str, SqlType] = Field(min_length=1, description="The columns with their Spark types.")
    check_s: Seconds = Field(1.0, description="Every how many seconds the table is looked at.")

    def options(self, tools: BuildTools) -> dict[str, Any]:
        return self.server().options() | {"schema": self.db_schema, "table": self.table}

    def itself(self) -> Mapping[str, Any]:
        server = self.server()
        return {"server": f"{server.host}:{server.port}/{server.database}", "table": f"{self.db_schema}.{self.table}"}

    def missing(self, place: Place) -> str | None:
        try:
            with self.session(place) as session:
                table = session.existing(self.db_schema, self.table)
        except DatabaseProblem as problem:
            return str(problem)
        if table.is_view:
            return f"`{self.table}` is a view, which does not know when its rows came; name the table"
        names = [column.name for column in table.columns]
        lost = [name for name in self.columns if match_column(name, names) is None]
        return _sqlite.no_column(self.table, lost[0], list(table.columns)) if lost else None


# ---------------------------------------------------------------- a generator


class GeneratorStream(Stream):
    """Makes records: every period a batch of them, at a rate, with a jitter. For experiments and classes.

    Each record has an `id` that counts up and a time `ts`; the other columns are computed from these. Records are the
    same each time, but for their times. A preview shows ten batches.
    """

    name: ClassVar[str] = "generator_stream"
    title: ClassVar[str] = "Generator"
    family: ClassVar[str] = "streams"

    period_s: Seconds = Field(1.0, description="Every how many seconds a batch arrives.")
    rows_per_s: float = Field(100.0, gt=0, description="How many records come in a second.")
    jitter_s: float = Field(0.0, ge=0, description="A batch arrives up to so much later, by chance.")
    disorder_s: float = Field(
        0.0, ge=0, description="A record's time lies up to so much before its place in the stream."
    )
    seed: int = Field(1, description="The beginning of chance.")
    columns: dict[NewColumn, Expression] = Field(
        default_factory=dict, description="More columns, computed from `id` and `ts`."
    )

    def itself(self) -> Mapping[str, Any]:
        return {"records in a batch": self.rows_per_batch(), "seed": self.seed}

    def usual_period_s(self) -> float | None:
        return self.period_s

    def rows_per_batch(self) -> int:
        """How many records a batch has."""
        return max(1, round(self.rows_per_s * self.period_s))

    def declared(self) -> Schema | None:
        first = {ID: "bigint", TIME: "timestamp"}
        return first | {name: expression_type(text, first) or UNKNOWN for name, text in self.columns.items()}

    def scope_of(self, place: str, inputs: Inputs) -> Scope | None:
        return Scope({ID: "bigint", TIME: "timestamp"})

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        yield from repeated([ID, TIME, *self.columns], "columns")

    def identity(self, place: Place) -> str:
        return f"{self.name} {self.seed}"

    def computed(self, records: Any) -> Any:
        """Records with all their columns, from their ids and times."""
        return records.selectExpr(ID, TIME, *(f"{text} AS {quoted(name)}" for name, text in self.columns.items()))

    def build(self, inputs: BuildInputs, tools: BuildTools) -> Built:
        rows = self.rows_per_batch()
        step = self.period_s * MICROS / rows
        time = f"timestamp_micros(1767225600000000 + CAST(id * {step!r}D AS BIGINT)) AS {TIME}"
        return self.computed(tools.spark.range(SHOWN_BATCHES * rows).selectExpr(ID, time))


# ---------------------------------------------------------------- tables


class StreamTable(Operator):
    """A table of a streaming warehouse, partitioned by time, that `papilio stream run` keeps up to date.

    Fed by a stream it is a base table, to which records are added; fed by other tables it is a derived table, a view
    that follows its sources up to their safe trailing edge.
    """

    name: ClassVar[str] = "stream_table"
    title: ClassVar[str] = "Streaming table"
    family: ClassVar[str] = "streams"
    role: ClassVar[Role] = Role.TARGET
    inputs: ClassVar[tuple[Port, ...]] = (IN,)
    outputs: ClassVar[tuple[Port, ...]] = (Port("out", required=False),)
    keeps_rows: ClassVar[bool] = True

    path: PathText = Field(description="The folder of the table; made where there is none.")
    time_column: Column = Field(description="The column with a record's time.")
    partition_s: Seconds = Field(60.0, description="How many seconds' records make a partition.")
    priority: float | None = Field(
        None, gt=0, description="How much its staleness weighs; left out, that of its materialized view, or 1."
    )
    period_s: Seconds | None = Field(
        None, description="Every how many seconds new records come; left out, as the stream says, or as is learnt."
    )
    staleness_bound_s: Seconds | None = Field(None, description="How stale it should never be.")
    lateness_bound_s: float = Field(
        0.0, ge=0, description="Of a base table: how much later than a younger record one may come."
    )

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        kind = column_type(inputs.first(), self.time_column)
        if kind is not None and kind not in ("timestamp", UNKNOWN):
            yield Finding(f"`{self.time_column}` is a `{kind}`, not a timestamp", setting="time_column")
        for name in inputs.first() or ():
            if name.lower().startswith("_papilio"):
                yield Finding(f"the column `{name}` has a name that Papilio keeps for itself", port="in")
        if self.partition_s * MICROS % 1:
            yield Finding("a partition is a whole number of microseconds", setting="partition_s")

    def build(self, inputs: BuildInputs, tools: BuildTools) -> Built:
        return inputs.first()


class TimeBucket(Operator):
    """Adds the time cut down to a bucket of so many seconds: what a view groups or joins by to follow its sources."""

    name: ClassVar[str] = "time_bucket"
    title: ClassVar[str] = "Time bucket"
    family: ClassVar[str] = "streams"
    keeps_rows: ClassVar[bool] = True

    column: Column = Field(description="The column with the time.")
    every_s: Seconds = Field(description="How many seconds a bucket spans; buckets begin at midnight UTC of 1970.")
    into: NewColumn = Field("bucket", description="The new column: the time at which the bucket begins.")

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        yield from taken(inputs.first(), [self.into], "into")
        kind = column_type(inputs.first(), self.column)
        if kind is not None and kind not in ("timestamp", UNKNOWN):
            yield Finding(f"`{self.column}` is a `{kind}`, not a timestamp", setting="column")
        if self.every_s * MICROS % 1:
            yield Finding("a bucket is a whole number of microseconds", setting="every_s")

    def output_schemas(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        return {"out": with_columns(inputs.first(), {self.into: "timestamp"})}

    def physical(self, known: Known) -> Physical:
        return black_box(known.passing(lost=[self.into]))

    def build(self, inputs: BuildInputs, tools: BuildTools) -> Built:
        micros = round(self.every_s * MICROS)
        time = f"unix_micros({quoted(self.column)})"
        cut = f"timestamp_micros({time} - pmod({time}, {micros}))"
        return inputs.first().withColumn(self.into, tools.functions.expr(cut))

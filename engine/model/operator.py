"""What an operator is: one class that says all about itself.

Its fields are its settings (a form can be made from them), its class attributes name its ports and its
category, `output_schemas` is its schema rule and `build` its Spark plan. Concrete operators live in
`engine.operators`, like ones in one file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from engine.model.expression_tree import Expr, is_light, is_repeatable
from engine.model.expression_words import ExpressionError
from engine.model.expressions import parse
from engine.model.inference import Scope
from engine.model.meanings import PARSED, Meaning, Means, follow, has_paths, texts_of, whole_text
from engine.model.physical import Known, Physical, black_box
from engine.model.problems import Level
from engine.model.types import Schema

REASON = "_reason"  # the column that tells why a row was refused

DataFrame = Any  # pyspark's, which this room does not import
T = TypeVar("T")

# ---------------------------------------------------------------- categories and ports


class Category(StrEnum):
    """How an operator consumes its rows (shared caching, section 3)."""

    ROW_SYNCHRONIZED = "row-synchronized"
    SEMI_BLOCKING = "semi-blocking"
    BLOCKING = "blocking"


class Role(StrEnum):
    """A recordset's place in the flow, or an activity."""

    SOURCE = "source"
    STAGING = "staging"
    TARGET = "target"
    ACTIVITY = "activity"


class Carries(StrEnum):
    """What leaves by a port: rows that go on, or rows the operator refused."""

    ROWS = "rows"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Port:
    """A place where rows enter or leave. `many`: several edges may end here."""

    name: str
    carries: Carries = Carries.ROWS
    required: bool = True
    many: bool = False


IN = Port("in")
OUT = Port("out")


def refused(name: str) -> Port:
    """An output for the rows an operator refuses. Not connected, they are counted."""
    return Port(name, Carries.REFUSED, required=False)


# ---------------------------------------------------------------- settings with a meaning


_Text = Annotated[str, StringConstraints(min_length=1)]
Column = Annotated[_Text, Means(Meaning.COLUMN)]
ManyColumns = Annotated[list[Column], Field(min_length=1)]
LeftColumn = Annotated[_Text, Means(Meaning.COLUMN, "left")]
RightColumn = Annotated[_Text, Means(Meaning.COLUMN, "right")]
ReferenceColumn = Annotated[_Text, Means(Meaning.COLUMN, "reference")]
NewColumn = Annotated[_Text, Means(Meaning.NEW_COLUMN)]
Expression = Annotated[_Text, Means(Meaning.EXPRESSION)]
Condition = Annotated[_Text, Means(Meaning.CONDITION)]
ReferenceCondition = Annotated[_Text, Means(Meaning.CONDITION, "reference")]
Aggregate = Annotated[_Text, Means(Meaning.AGGREGATE)]
WindowFunction = Annotated[_Text, Means(Meaning.WINDOW)]
SqlType = Annotated[_Text, Means(Meaning.TYPE)]
PathText = Annotated[_Text, Means(Meaning.PATH)]
Secret = Annotated[str, Means(Meaning.SECRET)]


class Settings(BaseModel):
    """A group of settings inside an operator's settings."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


# ---------------------------------------------------------------- findings


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong with an operator's settings over its inputs."""

    message: str
    port: str | None = None
    setting: str | None = None
    level: Level = Level.ERROR


# ---------------------------------------------------------------- what `build` may return


@dataclass(frozen=True)
class Way:
    """One way out of a `Split`: rows with this condition, and the columns they leave with.

    `columns` are texts as `select` takes them: names (odd ones in backquotes), `*`, or fields of a struct,
    which leave under the field's name. None keeps all but the split's working columns.

    `frame`: where it costs more to say what these rows leave with, the same rows from a plan of their own. The
    condition then only counts them, and the plan runs only where something reads the port.
    """

    condition: str
    columns: Sequence[str] | None = None
    frame: DataFrame | None = None
    reason: Any = None  # a Column that says why a row takes this way; it leaves as `_reason`


@dataclass(frozen=True)
class Split:
    """One input divided over several ports; the runner reads it port by port, or all ports in one job.

    The conditions are written so that each row takes exactly one way (or, with `overlapping`, any number).
    `working` names columns that only the division needs.
    """

    frame: DataFrame
    ways: Mapping[str, Way]
    working: Sequence[str] = ()
    overlapping: bool = False


Built = DataFrame | Mapping[str, DataFrame] | Split


def port_frame(built: Built, port: str) -> DataFrame:
    """The frame that leaves by one port."""
    if isinstance(built, Split):
        return way_frame(built, port)
    if isinstance(built, Mapping):
        return built[port]
    return built


def way_frame(split: Split, port: str) -> DataFrame:
    """One way of a split: its rows, with the columns they leave with."""
    way = split.ways[port]
    if way.frame is not None:
        return way.frame
    return leaving(split.frame.where(way.condition), split, way)


def leaving(frame: DataFrame, split: Split, way: Way) -> DataFrame:
    """Rows that take a way, with the columns they leave with."""
    if way.columns is not None:
        return frame.select(*way.columns)
    if split.working:
        frame = frame.drop(*split.working)
    return frame if way.reason is None else frame.withColumn(REASON, way.reason)


class BuildTools:
    """What `build` may use: Spark's own modules and a few resolved values.

    The runner passes real modules; the script writer passes ones that write down what is called, so that the
    exported script is what the engine runs. `build` uses only the DataFrame API, names and literals.
    """

    ahead: Any = None  # what `prepare` or `settle` gave, where it was asked
    spark: Any  # the session
    functions: Any  # pyspark.sql.functions
    window: Any  # pyspark.sql.Window
    subqueries: bool = False  # whether one value of a frame can stand in the plan of another one

    def path(self, setting: str) -> str:
        """A path of the settings, resolved and inside the roots."""
        raise NotImplementedError

    def files(self, setting: str) -> Any:
        """What a source reads at a path of its settings: the path, or those files of it that it is built for."""
        return self.path(setting)

    def secret(self, setting: str) -> Any:
        """The value of a `${env:NAME}` reference."""
        raise NotImplementedError

    def source_schema(self) -> Schema:
        """The columns of the source that is built: those it declares, else those found in it."""
        raise NotImplementedError

    def function(self, code: str, name: str) -> Any:
        """The function of that name which a trusted text defines; a script has it as its own function."""
        raise NotImplementedError

    def columns(self, frame: DataFrame) -> list[str]:
        """The names of a frame's columns, in order."""
        raise NotImplementedError

    def spelled(self, frame: DataFrame, names: Iterable[str]) -> list[str]:
        """Names of columns as the frame has them: Spark takes upper case for lower everywhere, Sail not."""
        return list(names)

    def schema(self, frame: DataFrame) -> dict[str, str]:
        """The columns of a frame with their types, as Spark writes them."""
        raise NotImplementedError

    def gathered(self, frame: DataFrame, setting: str | None = None) -> DataFrame:
        """The frame in one piece where it comes of so little that spreading it out costs more than it saves.

        What groups or orders its rows then needs no shuffle. Who cannot tell, as a script cannot, leaves it as it is.
        `setting` is that of the path which alone it is read from, where the operator knows it.
        """
        return frame

    def unique_keys(self, setting: str, names: Sequence[str]) -> bool:
        """Whether Parquet files at a path of the settings hold no key twice, where that can be told at once. Whoever
        reads them later fails if they change meanwhile. A script cannot tell: it is run on other days.
        """
        return False

    def parquet(self, setting: str) -> DataFrame:
        """The Parquet files at a path of the settings. A run tells Spark their columns, which it would start a job
        to find; a script finds them when it runs.
        """
        return self.spark.read.parquet(self.path(setting))


# ---------------------------------------------------------------- the operator


class Operator(BaseModel):
    """An operator with its settings. Subclasses add fields (the settings) and the class attributes below."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    name: ClassVar[str]  # as the file has it
    title: ClassVar[str]  # as the palette shows it
    family: ClassVar[str]
    category: ClassVar[Category] = Category.ROW_SYNCHRONIZED
    role: ClassVar[Role] = Role.ACTIVITY
    inputs: ClassVar[tuple[Port, ...]] = (IN,)
    outputs: ClassVar[tuple[Port, ...]] = (OUT,)
    keeps_rows: ClassVar[bool] = False  # exactly one row out for each row in, on the one output
    light: ClassVar[bool] = False  # but for its expressions it costs less than to read the row, and most rows pass
    adds_rows: ClassVar[bool] = False  # may give more rows than it takes; how many is known once it has worked
    needs_trust: ClassVar[bool] = False  # runs code from the file: off until the person trusts it
    on_sail: ClassVar[bool] = False  # gives on Sail the very rows and types that it gives on Spark, by its tests
    abstract: ClassVar[bool] = True  # set to False by a concrete class, which enters the catalogue

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        # A class is concrete where it names itself; its bases stay out of the catalogue.
        cls.abstract = "name" not in cls.__dict__
        _settle_class_variables(cls)

    # -- ports, which may depend on the settings

    def input_ports(self) -> tuple[Port, ...]:
        """The ports rows enter by."""
        return self.inputs

    def output_ports(self) -> tuple[Port, ...]:
        """The ports rows leave by."""
        return self.outputs

    # -- the schema rule

    def output_schemas(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        """The schema of every output port. Default: that of the first input, unchanged."""
        schema = inputs.first()
        return {port.name: schema for port in self.output_ports()}

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        """What is wrong beyond the settings' meanings, which are checked for every operator alike."""
        return iter(())

    def named_schemas(self, inputs: Inputs) -> dict[str, Schema | None]:
        """The schemas whose columns the settings may name, by the port their marks speak of."""
        return {port.name: inputs.of(port.name) for port in self.input_ports()}

    def scope_of(self, place: str, inputs: Inputs) -> Scope | None:
        """The columns an expression at a place in the settings may name, if not those of its port."""
        return None

    # -- the planner

    def physical(self, known: Known) -> Physical:
        """How it can be carried out. Default: row by row, and nothing is known of the order the rows leave in."""
        return black_box()

    def expected_share(self) -> float:
        """Rows that leave (by the first port) for each that enters, where nobody knows better. A guess."""
        refusing = limits_of(self) is not None  # rows that are refused are the exception
        if self.keeps_rows or (refusing and self.category is Category.ROW_SYNCHRONIZED):
            return 1.0
        return 0.1 if self.category is Category.BLOCKING else 0.5

    # -- Spark

    def prepare(self, tools: BuildTools) -> Any:
        """What of the plan needs none of the inputs, for `build` to find as `tools.ahead`; None where there is none.

        A run builds it while the nodes in front of this one are built.
        """
        return None

    def settle(self, inputs: BuildInputs, tools: BuildTools, keep: Callable[[DataFrame], DataFrame]) -> Any:
        """What of the plan stays the same while batch after batch comes by the first port, for `build` to find as
        `tools.ahead`; None where there is none. `inputs` are those of the other ports, and `keep` keeps rows.
        """
        return None

    def build(self, inputs: BuildInputs, tools: BuildTools) -> Built:
        """The plan: DataFrames in, DataFrames out."""
        raise NotImplementedError(self.name)

    # -- the exported script

    def script_imports(self) -> tuple[str, ...]:
        """Import lines the script needs for this operator beyond PySpark's own."""
        return ()

    # -- facts about this instance

    def is_repeatable(self) -> bool:
        """Whether a second computation over the same rows gives the same rows."""
        return self._all_parsed(is_repeatable)

    def is_light(self) -> bool:
        """Whether to compute its rows again costs less than to read them from a copy."""
        return self.light and self._all_parsed(is_light)

    def _all_parsed(self, holds: Callable[[Expr], bool]) -> bool:
        """Whether something holds for all expressions in the settings; not, where one cannot be read."""
        try:
            return all(
                holds(parse(whole_text(text, means))) for _, text, means in self.texts() if means.meaning in PARSED
            )
        except ExpressionError:
            return False

    @classmethod
    def has_paths(cls) -> bool:
        """Whether a setting of this operator is a path."""
        return has_paths(cls)

    def texts(self) -> Iterator[tuple[str, str, Means]]:
        """Every text with a meaning in the settings: its place, itself, its meaning."""
        for name, means, inner in texts_of(type(self)):
            yield from follow(name, getattr(self, name), means, inner)


def _settle_class_variables(cls: type[Operator]) -> None:
    """Drop the types of a class's own facts: Pydantic has seen that they are no settings.

    It would read them again for every class below, which takes a third of the time that loading operators takes.
    """
    types = cls.__annotations__
    for name in cls.__class_vars__ & types.keys():
        del types[name]


_settle_class_variables(Operator)


@dataclass(frozen=True)
class Inputs:
    """The schemas on an operator's input ports, one for each edge that ends there."""

    by_port: Mapping[str, Sequence[Schema | None]]
    discovered: Schema | None = None  # of an operator that reads a recordset of its own: its columns
    _kept: dict[int, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def once(self, operator: Operator, make: Callable[[], T]) -> T:
        """What an operator works out of these inputs for its check and its schema rule alike, worked out once."""
        if id(operator) not in self._kept:
            self._kept[id(operator)] = make()
        kept: T = self._kept[id(operator)]
        return kept

    def first(self) -> Schema | None:
        """The schema of the one input most operators have."""
        for schemas in self.by_port.values():
            for schema in schemas:
                return schema
        return None

    def of(self, port: str) -> Schema | None:
        """The schema on a port with one edge."""
        schemas = self.by_port.get(port, ())
        return schemas[0] if schemas else None

    def all_of(self, port: str) -> Sequence[Schema | None]:
        """The schemas on a port that takes several edges."""
        return self.by_port.get(port, ())

    def connected(self, port: str) -> bool:
        """Whether an edge ends on the port."""
        return bool(self.by_port.get(port))


@dataclass(frozen=True)
class BuildInputs:
    """The DataFrames on an operator's input ports."""

    by_port: Mapping[str, Sequence[DataFrame]]

    def first(self) -> DataFrame:
        """The one input most operators have."""
        return next(frames[0] for frames in self.by_port.values() if frames)

    def of(self, port: str) -> Any:
        """The frame on a port with one edge, None where nothing is connected."""
        frames = self.by_port.get(port, ())
        return frames[0] if frames else None

    def all_of(self, port: str) -> Sequence[DataFrame]:
        """The frames on a port that takes several edges."""
        return self.by_port.get(port, ())


class Source(Operator):
    """A recordset that rows come from."""

    role: ClassVar[Role] = Role.SOURCE
    inputs: ClassVar[tuple[Port, ...]] = ()
    family: ClassVar[str] = "sources"
    columnar: ClassVar[bool] = False  # reading it again costs no more than reading a staged copy
    remote: ClassVar[bool] = False  # looking at it opens a connection, which only a run may do

    def declared(self) -> Schema | None:
        """The schema the settings declare, if they do."""
        return None

    def discover(self, place: Place) -> Schema | None:
        """The schema read cheaply from the source itself; None where it cannot be told without running."""
        return None

    def identity(self, place: Place) -> str:
        """What this source reads, as a text that names it for the store and the log."""
        return self.name

    def fingerprint(self, place: Place) -> str | None:
        """What changes when the source changes; None where there is no cheap way to tell."""
        return None

    def missing(self, place: Place) -> str | None:
        """Why the source cannot be read, before anything starts; None where it can."""
        return None

    def held_rows(self, place: Place) -> int | None:
        """How many rows it holds, told cheaply; None where it would have to be read for that."""
        return None

    def drift(self, place: Place) -> str | None:
        """How the source differs from what the settings declare, told cheaply; None where it does not."""
        return None

    def output_schemas(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        return {port.name: inputs.discovered for port in self.output_ports()}


@dataclass(frozen=True)
class Place:
    """Where a workflow's paths and secrets lead: resolves a setting's text, inside the roots."""

    path: Callable[[str], Path]
    secret: Callable[[str], str]


class Mode(StrEnum):
    """What loading does to the rows a target already has."""

    OVERWRITE = "overwrite"
    APPEND = "append"
    UPSERT = "upsert"


class PassOn(StrEnum):
    """What those read who read on from a target: the whole table after loading, or this run's rows."""

    TABLE = "table"
    DELIVERED = "delivered"


class Target(Operator):
    """A recordset that rows are loaded into. What it holds can be read on by others."""

    role: ClassVar[Role] = Role.TARGET
    family: ClassVar[str] = "targets"
    keeps_rows: ClassVar[bool] = True
    remote: ClassVar[bool] = False  # looking at it opens a connection, which only a run may do
    lossless: ClassVar[bool] = False  # reading it back gives the very rows and types that were written
    layouts: ClassVar[bool] = False  # its files can hold the rows divided and sorted as those behind it need them

    mode: Mode = Field(Mode.OVERWRITE, description="Replace what is there, add to it, or replace by key.")
    key: list[Column] = Field(default_factory=list, description="The columns that tell rows apart, for upsert.")
    pass_on: PassOn = Field(PassOn.TABLE, description="What the nodes behind this one read.")

    @property
    def keeps_layout(self) -> bool:
        """Whether what is read on is all in the order that the run wrote it in."""
        return self.layouts and self.mode is Mode.OVERWRITE

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        if self.mode is Mode.UPSERT and not self.key:
            yield Finding("an upsert needs the columns of its key", setting="key")
        if self.mode is not Mode.UPSERT and self.key:
            yield Finding(f"a key is for upserts, and the mode is `{self.mode}`", setting="key")

    def output_schemas(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        return {port.name: inputs.first() for port in self.output_ports()}

    def identity(self, place: Place) -> str:
        """What this target writes, as a text: two nodes must not write the same."""
        return self.name

    def missing(self, place: Place) -> str | None:
        """Why the target cannot be loaded, before anything starts; None where it can."""
        return None

    def script_write(self, frame: DataFrame, tools: BuildTools) -> list[str]:
        """The lines by which the exported script loads a frame into this target."""
        raise NotImplementedError(self.name)

    def script_read(self, frame: DataFrame, tools: BuildTools) -> DataFrame:
        """How the exported script reads the target afterwards; `frame` is what was loaded."""
        raise NotImplementedError(self.name)


def limits_of(operator: object) -> Refusing | None:
    """The limits of an operator that may refuse rows; None for the others."""
    return operator if isinstance(operator, Refusing) else None


class Refusing(BaseModel):
    """Settings of every operator that may refuse rows: how many are too many."""

    model_config = ConfigDict(defer_build=True)

    strict: ClassVar[bool] = False  # no limits are set and no port takes them: one refused row is too many

    max_refused: int | None = Field(None, ge=0, description="The run stops when more rows than this are refused.")
    max_refused_percent: float | None = Field(
        None, ge=0, le=100, description="The run stops when a larger share of the rows is refused."
    )

    def limit_broken(self, refused: int, total: int, connected: bool = False) -> str | None:
        """Why the run must stop, None while the limits hold. `connected`: the refused rows leave by a port."""
        if self.max_refused is not None and refused > self.max_refused:
            return f"{refused:,} of {total:,} rows were refused, and {self.max_refused:,} are allowed"
        unlimited = self.max_refused is None and self.max_refused_percent is None
        if self.strict and unlimited and refused and not connected:
            return (
                f"{refused:,} of {total:,} rows were refused, and nothing reads the port they leave by; "
                "connect it, or allow some with `max_refused`"
            )
        total = max(total, refused)
        percent = 100 * refused / total if total else 0.0
        if self.max_refused_percent is not None and percent > self.max_refused_percent:
            return (
                f"{percent:.2f} % of the rows ({refused:,} of {total:,}) were refused, "
                f"and {self.max_refused_percent:g} % are allowed"
            )
        return None


# ---------------------------------------------------------------- columns and their types


def expression_type(text: str, schema: Schema | None, **qualified: Schema | None) -> str | None:
    """The type of an expression over a schema, `None` where it is not known or the expression is wrong."""
    try:
        return Scope(schema, qualified).kind(text)
    except ExpressionError:
        return None


def is_secret_reference(text: str) -> bool:
    """Whether a text is nothing but `${env:NAME}`."""
    return text.startswith("${env:") and text.endswith("}") and text.count("$") == 1 and len(text) > 7


def has_column(schema: Schema, name: str) -> bool:
    """Whether a schema has a column, in any case."""
    return name in schema or name.lower() in (other.lower() for other in schema)


def column_type(schema: Schema | None, name: str) -> str | None:
    """The type of a column in any case, None where it is not known."""
    if schema is None:
        return None
    if name in schema:
        return schema[name]
    return next((kind for other, kind in schema.items() if other.lower() == name.lower()), None)

"""Operators that put texts in order: clean them, search them for a pattern, cut them into parts."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from engine.model.operator import (
    BuildInputs,
    BuildTools,
    Column,
    DataFrame,
    Finding,
    Inputs,
    ManyColumns,
    NewColumn,
    Operator,
)
from engine.model.physical import Known, Physical, black_box
from engine.model.problems import Level
from engine.model.types import Schema
from engine.operators._sql import not_text, plain, repeated, taken, with_columns


class Case(StrEnum):
    """How letters are written."""

    UPPER = "upper"
    LOWER = "lower"
    TITLE = "title"


class CleanText(Operator):
    """Puts texts in order: spaces, control characters, upper and lower case, empty texts."""

    name: ClassVar[str] = "clean_text"
    title: ClassVar[str] = "Clean text"
    family: ClassVar[str] = "cleansing"
    keeps_rows: ClassVar[bool] = True

    columns: ManyColumns = Field(description="The text columns to clean.")
    trim: bool = Field(True, description="Remove white space of any kind at both ends.")
    collapse_spaces: bool = Field(False, description="Make one space of each run of white space, line ends too.")
    remove_control: bool = Field(
        False,
        description="Remove control characters (also tabs and line ends) and zero-width spaces.",
    )
    case: Case | None = Field(None, description="Write all letters in upper or lower case, or as in a title.")
    empty_to_null: bool = Field(False, description="Make null of a text in which nothing is left.")

    def output_schemas(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        return {"out": with_columns(inputs.first(), dict.fromkeys(self.columns, "string"))}

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        yield from repeated(self.columns, "columns")
        yield from not_text(inputs.first(), self.columns, "columns")
        if not (self.trim or self.collapse_spaces or self.remove_control or self.case or self.empty_to_null):
            yield Finding("nothing is cleaned; choose what to do", setting="trim", level=Level.WARNING)

    def physical(self, known: Known) -> Physical:
        return black_box(known.passing(lost=self.columns))

    def build(self, inputs: BuildInputs, tools: BuildTools) -> DataFrame:
        return inputs.first().withColumns({name: self._clean(plain(name), tools) for name in self.columns})

    def _clean(self, name: str, tools: BuildTools) -> Any:
        functions = tools.functions
        text = functions.col(name)
        # Spark's own `trim` knows only the plain space; (?U) makes \s all white space of Unicode.
        if self.collapse_spaces:
            text = functions.regexp_replace(text, r"(?U)\s+", " ")
        if self.remove_control:
            text = functions.regexp_replace(text, r"[\p{Cc}\x{FEFF}\x{200B}]", "")
        if self.trim:
            text = functions.regexp_replace(text, r"(?U)^\s+|\s+\z", "")
        if self.case is not None:
            change = {Case.UPPER: functions.upper, Case.LOWER: functions.lower, Case.TITLE: functions.initcap}
            text = change[self.case](text)
        return functions.nullif(text, functions.lit("")) if self.empty_to_null else text


class RegexMode(StrEnum):
    """What is done with what a pattern finds."""

    REPLACE = "replace"
    EXTRACT = "extract"
    MATCH = "match"


class Regex(Operator):
    """Searches texts for a pattern: replaces every match, takes out the first, or says if there is one."""

    name: ClassVar[str] = "regex"
    title: ClassVar[str] = "Regular expression"
    family: ClassVar[str] = "cleansing"
    keeps_rows: ClassVar[bool] = True
    on_sail: ClassVar[bool] = True

    column: Column = Field(description="The text column to search.")
    pattern: str = Field(min_length=1, description="The regular expression, as Java writes them.")
    mode: RegexMode = Field(
        RegexMode.REPLACE,
        description="Replace all matches; extract the first (null if there is none); match: true or false.",
    )
    replacement: str = Field("", description="What stands for each match; `$1` is the first group.")
    group: int = Field(0, ge=0, description="The group to extract; 0 is the whole match.")
    into: NewColumn | None = Field(None, description="A new column for the result; without it, the column itself.")

    def output_schemas(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        kind = "boolean" if self.mode is RegexMode.MATCH else "string"
        return {"out": with_columns(inputs.first(), {self.into or self.column: kind})}

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        schema = inputs.first()
        if self.into and self.into.lower() != self.column.lower():
            yield from taken(schema, [self.into], "into")
        yield from not_text(schema, [self.column], "column")
        if self.replacement and self.mode is not RegexMode.REPLACE:
            yield Finding(f"a replacement is not used by `{self.mode}`", setting="replacement", level=Level.WARNING)
        if self.group and self.mode is not RegexMode.EXTRACT:
            yield Finding(f"a group is not used by `{self.mode}`", setting="group", level=Level.WARNING)
        yield from _pattern_findings(self.pattern, self.group)

    def physical(self, known: Known) -> Physical:
        return black_box(known.passing(lost=[self.into or self.column]))

    def build(self, inputs: BuildInputs, tools: BuildTools) -> DataFrame:
        functions = tools.functions
        text = functions.col(plain(self.column))
        if self.mode is RegexMode.REPLACE:
            result = functions.regexp_replace(text, self.pattern, self.replacement)
        elif self.mode is RegexMode.MATCH:
            result = text.rlike(self.pattern)
        else:  # `regexp_extract` alone gives an empty text where nothing matches
            found = functions.regexp_extract(text, self.pattern, self.group)
            result = functions.when(text.rlike(self.pattern), found)
        return inputs.first().withColumn(self.into or self.column, result)


class SplitInto(StrEnum):
    """Where the parts of a text go."""

    COLUMNS = "columns"
    ARRAY = "array"
    ROWS = "rows"


class SplitText(Operator):
    """Cuts a text into parts: one column for each, one array of all, or one row for each."""

    name: ClassVar[str] = "split_text"
    title: ClassVar[str] = "Split text"
    family: ClassVar[str] = "cleansing"
    adds_rows: ClassVar[bool] = True
    on_sail: ClassVar[bool] = True

    column: Column = Field(description="The text column to cut.")
    separator: str | None = Field(None, min_length=1, description="What stands between the parts, letter by letter.")
    pattern: str | None = Field(None, min_length=1, description="What stands between them, as a regular expression.")
    into: SplitInto = Field(SplitInto.COLUMNS, description="Columns, one array, or one row for each part.")
    columns: list[NewColumn] = Field(
        min_length=1,
        description="The new columns; the last takes all that is left, missing parts are null. "
        "One name for an array or for rows.",
    )

    @model_validator(mode="after")
    def _cut_in_one_way(self) -> Self:
        if (self.separator is None) == (self.pattern is None):
            raise ValueError("give either a `separator` or a `pattern`")
        if self.into is not SplitInto.COLUMNS and len(self.columns) != 1:
            raise ValueError(f"`into: {self.into}` makes one column, and {len(self.columns)} are named")
        return self

    def output_schemas(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        kind = "array<string>" if self.into is SplitInto.ARRAY else "string"
        return {"out": with_columns(inputs.first(), dict.fromkeys(self.columns, kind))}

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        schema = inputs.first()
        yield from repeated(self.columns, "columns")
        others = [name for name in self.columns if name.lower() != self.column.lower()]
        yield from taken(schema, others, "columns")
        yield from not_text(schema, [self.column], "column")
        if self.pattern is not None:
            yield from _pattern_findings(self.pattern)

    def physical(self, known: Known) -> Physical:
        return black_box(known.passing(lost=self.columns))

    def build(self, inputs: BuildInputs, tools: BuildTools) -> DataFrame:
        frame, functions = inputs.first(), tools.functions
        between = self.pattern if self.pattern is not None else _java_literal(self.separator or "")
        text = functions.col(plain(self.column))
        if self.into is SplitInto.COLUMNS:
            parts = functions.split(text, between, len(self.columns))
            return frame.withColumns({name: functions.get(parts, index) for index, name in enumerate(self.columns)})
        parts = functions.split(text, between)
        into_rows = self.into is SplitInto.ROWS
        return frame.withColumn(self.columns[0], functions.explode_outer(parts) if into_rows else parts)


def _java_literal(text: str) -> str:
    """A regular expression that finds a text as it stands."""
    return re.sub(r"[!-/:-@\[-`{-~]", lambda match: "\\" + match.group(), text)


def _pattern_findings(pattern: str, group: int = 0) -> Iterator[Finding]:
    """What is plainly wrong with a pattern. Python's rules are not Java's, so it is a warning."""
    # What Java knows and Python does not is taken out first.
    known = re.sub(r"\\Q.*?(\\E|\Z)", "x", pattern, flags=re.DOTALL)
    known = re.sub(r"\\[pP](\{[^}]*\}|\w)|\\[hHRXGzkKvV](<\w+>)?|\\x\{[0-9A-Fa-f]+\}", "x", known)
    known = re.sub(r"\(\?<(?=[A-Za-z])", "(?P<", known)
    known = re.sub(r"\(\?[a-zA-Z]*[Ud][a-zA-Z]*\)", "", known)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # `[a-z&&[^x]]` is fine in Java
            groups = re.compile(known).groups
    except (re.error, OverflowError) as error:
        yield Finding(f"the pattern seems to be broken: {error}", setting="pattern", level=Level.WARNING)
        return
    if group > groups:
        yield Finding(f"group {group} is asked for, and the pattern has {groups}", setting="group", level=Level.WARNING)

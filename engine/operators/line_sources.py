"""Sources that are files of lines: CSV, JSON lines and TPC-H's `.tbl`. Lines that cannot be read leave by a port."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field

from engine.model.operator import (
    OUT,
    BuildInputs,
    BuildTools,
    Built,
    DataFrame,
    Finding,
    Inputs,
    Place,
    Port,
    Refusing,
    Split,
    SqlType,
    Way,
    refused,
)
from engine.model.types import Schema, ddl
from engine.operators import _formats
from engine.operators._sql import literal, plain, quoted
from engine.operators.file_sources import FileSource

RECORD = "_papilio_record"  # a line as it stands in its file
BAD = "_papilio_bad"  # Spark's parser puts a record here that it could not read
REFUSED = "_papilio_refused"

REJECT_SCHEMA = {"line": "bigint", "file": "string", "record": "string", "reason": "string"}
SHOWN = 60  # characters of a value that a reason quotes

# No text holds it, so a line read with this separator is one field: the line itself.
_NO_SEPARATOR = "\uffff"
_NOT_BLANK = r"rlike '\\S'"
# Spark has the path as a URI; `+` is no space in it.
_FILE = "regexp_replace(url_decode(replace(_papilio_file, '+', '%2B')), '^file:/*', '/')"


class LineSource(FileSource, Refusing):
    """A source of lines of text. Those that cannot be read leave by `reject`."""

    strict: ClassVar[bool] = True
    outputs: ClassVar[tuple[Port, ...]] = (OUT, refused("reject"))

    def output_schemas(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        return {"out": inputs.discovered, "reject": REJECT_SCHEMA}

    def build(self, inputs: BuildInputs, tools: BuildTools) -> Built:
        columns = tools.source_schema()
        frame = self.parsed(self.records(tools), [RECORD], columns, tools)
        return Split(
            frame,
            {
                "out": Way(f"NOT {REFUSED}", [plain(name) for name in columns]),
                "reject": Way(REFUSED, frame=self.rejects(columns, tools)),
            },
        )

    # -- what a format says of itself

    def records(self, tools: BuildTools) -> DataFrame:
        """The lines that hold a record, as they stand in the files."""
        lines = tools.spark.read.text(tools.files("path"), recursiveFileLookup=True)
        return lines.selectExpr(f"value AS {RECORD}").where(f"{RECORD} {_NOT_BLANK}")

    @abstractmethod
    def parser(self, columns: Schema, tools: BuildTools) -> Any:
        """A struct of the columns and `BAD`, from `RECORD`."""

    def bad(self) -> str:
        """The condition for a record that cannot be read."""
        return f"{BAD} IS NOT NULL"

    @abstractmethod
    def explained(self, rejects: DataFrame, columns: Schema, tools: BuildTools) -> DataFrame:
        """Rejected records with their `reason`."""

    def skips_header(self) -> bool:
        """Whether the first line of every file is no record."""
        return False

    # -- what they have in common

    def parsed(self, records: DataFrame, keep: Sequence[str], columns: Schema, tools: BuildTools) -> DataFrame:
        """Records with their columns, and whether each is refused.

        `inline` makes Spark parse a record once and all of it, whichever columns are used later: so what is
        refused does not depend on them.
        """
        functions = tools.functions
        parsed = records.select(*keep, functions.inline(functions.array(self.parser(columns, tools))))
        return parsed.withColumns({REFUSED: functions.expr(self.bad())})

    def decoded(self) -> str:
        """A text file's line as text, in SQL."""
        return "value"

    def rejects(self, columns: Schema, tools: BuildTools) -> DataFrame:
        """The rejected records with their files and line numbers.

        A second look at the files, as text: Spark numbers the lines of each block it reads; the lines of the
        blocks before come from a count by block.
        """
        functions = tools.functions
        lines = tools.spark.read.text(tools.files("path"), recursiveFileLookup=True).selectExpr(
            f"{self.decoded()} AS {RECORD}",
            "_metadata.file_path AS _papilio_file",
            "_metadata.file_block_start AS _papilio_block",
            "monotonically_increasing_id() AS _papilio_row",
        )
        counts = [
            functions.expr("min(_papilio_row)").alias("_papilio_first"),
            functions.expr("count(*)").alias("_papilio_lines"),
        ]
        if self.skips_header():
            header = f"min(CASE WHEN _papilio_block = 0 AND {RECORD} {_NOT_BLANK} THEN _papilio_row END)"
            counts.append(functions.expr(header).alias("_papilio_header"))
        before = (
            "coalesce(sum(_papilio_lines) OVER (PARTITION BY _papilio_file ORDER BY _papilio_block "
            "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)"
        )
        blocks = (
            lines.groupBy("_papilio_file", "_papilio_block")
            .agg(*counts)
            .withColumns({"_papilio_before": functions.expr(before)})
        )
        keep = [RECORD, "_papilio_file", "_papilio_block", "_papilio_row"]
        bad = self.parsed(lines.where(f"{RECORD} {_NOT_BLANK}"), keep, columns, tools).where(REFUSED).select(*keep)
        numbered = bad.join(blocks, ["_papilio_file", "_papilio_block"])
        if self.skips_header():
            numbered = numbered.where("NOT _papilio_row <=> _papilio_header")
        return self.explained(numbered, columns, tools).selectExpr(
            "_papilio_before + _papilio_row - _papilio_first + 1 AS line",
            f"{_FILE} AS file",
            f"{RECORD} AS record",
            "reason",
        )


class CsvSource(LineSource):
    """Reads CSV files. Lines that do not fit the columns leave by `reject`, with their number and the reason."""

    name: ClassVar[str] = "csv_source"
    title: ClassVar[str] = "CSV"

    header: bool = Field(True, description="Whether the first line of each file names the columns.")
    separator: str = Field(",", min_length=1, description="What stands between two fields.")
    quote: str = Field('"', max_length=1, description="What fields may stand in; nothing: quotes are plain text.")
    escape: str = Field(
        '"', min_length=1, max_length=1, description="What stands before a quote that belongs to a quoted field."
    )
    encoding: Literal["UTF-8", "ISO-8859-1", "US-ASCII", "UTF-16"] = Field(
        "UTF-8", description="The files' encoding; UTF-16 needs `multi_line`."
    )
    null_text: str = Field("", description="The text that stands for no value; an empty field always does.")
    date_format: str | None = Field(None, description="How dates are written, as in `dd.MM.yyyy`; else ISO 8601.")
    timestamp_format: str | None = Field(
        None, description="How timestamps are written, as in `dd.MM.yyyy HH:mm`; else ISO 8601."
    )
    multi_line: bool = Field(
        False, description="Quoted fields may hold line breaks. Spark then reads each file in one piece."
    )

    # -- without Spark

    def _values(self) -> dict[str, str]:
        return _formats.value_options(self.date_format, self.timestamp_format, self.null_text)

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        yield from super().check(inputs)
        if self.quote and self.quote in self.separator:
            yield Finding("the separator and the quote are the same", setting="quote")
        if self.encoding == "UTF-16" and not self.multi_line:
            yield Finding("UTF-16 is read in one piece only: set `multi_line`", setting="encoding")

    def discover(self, place: Place) -> Schema | None:
        for file in self.files(place):
            names = self._first_record(file)
            if names:
                if not self.header:
                    names = [f"_c{index}" for index in range(len(names))]
                return dict.fromkeys(names, "string") if not _twice(names) else None
        return None

    def drift(self, place: Place) -> str | None:
        if not self.header:
            return None
        expected: list[str] | None = list(self.columns) or None
        origin = "declared"
        for file in self.files(place):
            names = self._first_record(file)
            if names is None:
                continue  # empty, or broken, which the run will tell
            if twice := _twice(names):
                return f"{file}: the header names the column `{twice}` twice"
            if expected is None:
                expected, origin = names, f"in {file.name}"
            elif difference := _header_difference(names, expected, origin):
                return f"{file}: header drifted: {difference}"
        return None

    def _first_record(self, file: Path) -> list[str] | None:
        return _formats.first_record(file, self.separator, self.quote, self.escape, self.encoding)

    # -- with Spark

    def skips_header(self) -> bool:
        return self.header

    def decoded(self) -> str:
        return "value" if self.encoding == "UTF-8" else f"decode(CAST(value AS BINARY), {literal(self.encoding)})"

    def build(self, inputs: BuildInputs, tools: BuildTools) -> Built:
        return self._build_multi_line(tools) if self.multi_line else super().build(inputs, tools)

    def records(self, tools: BuildTools) -> DataFrame:
        if not self.header and self.encoding == "UTF-8":
            return super().records(tools)
        # Spark's CSV reader knows how to skip the header of each file; told of no separator, it gives whole lines.
        options: dict[str, Any] = {} if self.encoding == "UTF-8" else {"encoding": self.encoding}
        return tools.spark.read.csv(
            tools.files("path"),
            schema=f"{RECORD} STRING",
            sep=_NO_SEPARATOR,
            quote="",
            escape="",
            header=self.header,
            recursiveFileLookup=True,
            **options,
        )

    def parser(self, columns: Schema, tools: BuildTools) -> Any:
        return tools.functions.from_csv(RECORD, ddl({**columns, BAD: "string"}), self._options())

    def bad(self) -> str:
        return f"{BAD} IS NOT NULL" + (f" OR {self._quote_is_open()}" if self.quote else "")

    def _options(self) -> dict[str, str]:
        given = {
            "sep": self.separator,
            "quote": self.quote,
            "escape": self.escape if self.quote else "",
            **self._values(),
            "columnNameOfCorruptRecord": BAD,
        }
        usual = {"sep": ",", "quote": '"'}
        return {name: value for name, value in given.items() if usual.get(name) != value}

    def _outside_quotes(self) -> str:
        """The record without its well-formed quoted fields, in SQL."""
        if not self.quote:
            return RECORD
        mark, between = _regex(self.quote), _regex(self.separator)
        if self.escape == self.quote:
            text = f"replace({RECORD}, {literal(self.quote * 2)}, '')"
        else:
            text = f"regexp_replace({RECORD}, {literal(_regex(self.escape) + '.')}, '')"
        field = rf"(^|{between}){mark}[^{mark}]*{mark}[ \t]*(?=$|{between})"
        return f"regexp_replace({text}, {literal(field)}, '$1')"

    def _quote_is_open(self) -> str:
        """Whether a field begins with a quote that does not end it: Spark would take what it finds."""
        begins = f"(^|{_regex(self.separator)}){_regex(self.quote)}"
        return (
            f"(contains({RECORD}, {literal(self.quote)}) AND regexp_like({self._outside_quotes()}, {literal(begins)}))"
        )

    def explained(self, rejects: DataFrame, columns: Schema, tools: BuildTools) -> DataFrame:
        functions = tools.functions
        texts = ddl({**dict.fromkeys(columns, "string"), BAD: "string"})
        without = f"replace(_papilio_outside, {literal(self.separator)}, '')"
        count = f"(length(_papilio_outside) - length({without}) + 1)"
        if len(self.separator) > 1:
            count = f"((length(_papilio_outside) - length({without})) div {len(self.separator)} + 1)"
        cases = []
        if self.quote:
            cases.append((self._quote_is_open(), "'a quoted field does not end where it should'"))
        cases.append((f"{count} <> {len(columns)}", f"concat({count}, ' fields instead of {len(columns)}')"))
        return rejects.withColumns(
            {
                "_papilio_fields": functions.from_csv(RECORD, texts, self._options()),
                "_papilio_outside": functions.expr(self._outside_quotes()),
            }
        ).withColumns({"reason": functions.expr(_reason(cases, columns, self._values()))})

    # -- records over several lines

    def _build_multi_line(self, tools: BuildTools) -> Built:
        columns = tools.source_schema()
        options = {name: value for name, value in self._options().items() if name != "columnNameOfCorruptRecord"}
        if self.encoding != "UTF-8":
            options["encoding"] = self.encoding
        frame = tools.spark.read.csv(
            tools.files("path"),
            schema=ddl({**columns, BAD: "string"}),
            header=self.header,
            enforceSchema=False,
            multiLine=True,
            columnNameOfCorruptRecord=BAD,
            recursiveFileLookup=True,
            **options,
        )
        # Spark reads no more of a record than it is asked for; to refuse the same records whatever is used
        # later, every column is asked for.
        touched = " + ".join(f"CAST({quoted(name)} IS NULL AS INT)" for name in columns)
        condition = f"{BAD} IS NOT NULL AND {touched} >= 0"
        ways = {
            "out": Way(f"{BAD} IS NULL AND {touched} >= 0", [plain(name) for name in columns]),
            "reject": Way(condition, frame=self._multi_line_rejects(frame.where(condition), columns, tools)),
        }
        return Split(frame, ways)

    def _multi_line_rejects(self, bad: DataFrame, columns: Schema, tools: BuildTools) -> DataFrame:
        """Rejected records with the line they begin on: where the file's text has them, once for each."""
        texts = tools.spark.read.text(tools.files("path"), wholetext=True, recursiveFileLookup=True).selectExpr(
            rf"concat('\n', replace({self.decoded()}, '\r\n', '\n'), '\n') AS _papilio_text",
            "_metadata.file_path AS _papilio_file",
        )
        found = (
            bad.selectExpr(rf"replace({BAD}, '\r\n', '\n') AS {RECORD}", "_metadata.file_path AS _papilio_file")
            .selectExpr(
                "*",
                f"CAST(row_number() OVER (PARTITION BY _papilio_file, {RECORD} ORDER BY {RECORD}) AS INT) "
                "AS _papilio_times",
                rf"concat('\n', {RECORD}, '\n') AS _papilio_needle",
            )
            .join(texts, "_papilio_file", "left")
            .selectExpr(
                "*",
                "substring_index(_papilio_text, _papilio_needle, _papilio_times) AS _papilio_before",
            )
        )
        return self.explained(found, columns, tools).selectExpr(
            "CASE WHEN contains(_papilio_text, _papilio_needle) THEN CAST("
            r"length(_papilio_before) - length(replace(_papilio_before, '\n', '')) + 1 AS BIGINT) END AS line",
            f"{_FILE} AS file",
            f"{RECORD} AS record",
            "reason",
        )


class TblSource(LineSource):
    """Reads `.tbl` files as TPC-H's generator writes them: fields that each end with `|`, and no header."""

    name: ClassVar[str] = "tbl_source"
    title: ClassVar[str] = "TPC-H table file"

    columns: dict[str, SqlType] = Field(min_length=1, description="The columns with their types, in their order.")

    _options: ClassVar[dict[str, str]] = {
        "sep": "|", "quote": "", "escape": "", "columnNameOfCorruptRecord": BAD,
    }  # fmt: skip

    def parser(self, columns: Schema, tools: BuildTools) -> Any:
        schema = ddl({**columns, _formats.TBL_END: "string", BAD: "string"})
        return tools.functions.from_csv(RECORD, schema, dict(self._options))

    def bad(self) -> str:
        return f"{BAD} IS NOT NULL OR {_formats.TBL_END} IS NOT NULL"

    def explained(self, rejects: DataFrame, columns: Schema, tools: BuildTools) -> DataFrame:
        functions = tools.functions
        texts = ddl({**dict.fromkeys(columns, "string"), _formats.TBL_END: "string", BAD: "string"})
        count = f"(length({RECORD}) - length(replace({RECORD}, '|', '')))"
        cases = [
            (f"NOT endswith({RECORD}, '|')", "'the line does not end with `|`'"),
            (f"{count} <> {len(columns)}", f"concat({count}, ' fields instead of {len(columns)}')"),
        ]
        return rejects.withColumns(
            {"_papilio_fields": functions.from_csv(RECORD, texts, dict(self._options))}
        ).withColumns({"reason": functions.expr(_reason(cases, columns, {}))})


class JsonSource(LineSource):
    """Reads JSON lines: one object a line. Lines that are none, or do not fit the columns, leave by `reject`."""

    name: ClassVar[str] = "json_source"
    title: ClassVar[str] = "JSON lines"

    date_format: str | None = Field(None, description="How dates are written, as in `dd.MM.yyyy`; else ISO 8601.")
    timestamp_format: str | None = Field(
        None, description="How timestamps are written, as in `dd.MM.yyyy HH:mm`; else ISO 8601."
    )

    def _values(self) -> dict[str, str]:
        return _formats.value_options(self.date_format, self.timestamp_format)

    def discover(self, place: Place) -> Schema | None:
        lines: list[str] = []
        for file in self.files(place):
            lines += _formats.first_lines(file, _formats.SAMPLE_LINES - len(lines))
            if len(lines) >= _formats.SAMPLE_LINES:
                break
        return _formats.json_columns(lines)

    def drift(self, place: Place) -> str | None:
        twice = None if self.columns else _twice(list(self.discover(place) or ()))
        return f"`{twice}` is written in different cases; declare the columns" if twice else None

    def parser(self, columns: Schema, tools: BuildTools) -> Any:
        options = {**self._values(), "columnNameOfCorruptRecord": BAD}
        return tools.functions.from_json(RECORD, ddl({**columns, BAD: "string"}), options)

    def explained(self, rejects: DataFrame, columns: Schema, tools: BuildTools) -> DataFrame:
        functions = tools.functions
        options = _sql_map({**self._values(), "columnNameOfCorruptRecord": BAD})
        reasons = []
        for name, kind in columns.items():
            schema = literal(ddl({name: kind, BAD: "string"}))
            value = f"try_element_at(_papilio_fields, {literal(name)})"
            reasons.append(
                f"CASE WHEN from_json({RECORD}, {schema}, {options}).{BAD} IS NOT NULL "
                f"THEN {_complaint(name, value, kind)} END"
            )
        reason = f"CASE WHEN _papilio_fields IS NULL THEN 'no JSON object' ELSE {_joined(reasons)} END"
        return rejects.withColumns({"_papilio_fields": functions.from_json(RECORD, "MAP<STRING, STRING>")}).withColumns(
            {"reason": functions.expr(reason)}
        )


# ---------------------------------------------------------------- reasons and headers


def _regex(text: str) -> str:
    """A text as a regular expression that matches nothing else, inside brackets too."""
    return re.sub(r"([\\.^$|?*+()\[\]{}&-])", r"\\\1", text)


def _sql_map(options: Mapping[str, str]) -> str:
    return f"map({', '.join(f'{literal(name)}, {literal(value)}' for name, value in options.items())})"


def _complaint(name: str, value: str, kind: str) -> str:
    begin, end = literal(f"column `{name}`: `"), literal(f"` cannot be read as {kind}")
    return f"concat({begin}, left({value}, {SHOWN}), {end})"


def _joined(reasons: Sequence[str]) -> str:
    joined = f"concat_ws('; ', {', '.join(reasons)})" if reasons else "''"
    return f"coalesce(nullif({joined}, ''), 'it cannot be read as the columns say')"


def _reason(cases: Sequence[tuple[str, str]], columns: Schema, options: Mapping[str, str]) -> str:
    """Why a record with `_papilio_fields` was refused, in SQL: the first case that holds, else its values."""
    every = {**options, "sep": _NO_SEPARATOR, "quote": "", "escape": "", "columnNameOfCorruptRecord": BAD}
    reasons = []
    for name, kind in columns.items():
        if kind != "string":
            value = f"_papilio_fields.{quoted(name)}"
            schema = literal(ddl({name: kind, BAD: "string"}))
            reasons.append(
                f"CASE WHEN from_csv({value}, {schema}, {_sql_map(every)}).{BAD} IS NOT NULL "
                f"THEN {_complaint(name, value, kind)} END"
            )
    when = " ".join(f"WHEN {condition} THEN {text}" for condition, text in cases)
    return f"CASE {when} ELSE {_joined(reasons)} END"


def _twice(names: Sequence[str]) -> str | None:
    """A name that stands twice, in whatever case."""
    seen = set()
    for name in names:
        if name.lower() in seen:
            return name
        seen.add(name.lower())
    return None


def _header_difference(found: Sequence[str], expected: Sequence[str], origin: str) -> str | None:
    for index, (name, wanted) in enumerate(zip(found, expected, strict=False), 1):
        if name.lower() != wanted.lower():
            return f"column {index} is `{name}`, {origin} `{wanted}`"
    if len(found) > len(expected):
        return f"column {len(expected) + 1} is `{found[len(expected)]}`, and {origin} are {len(expected)} columns"
    if len(found) < len(expected):
        return f"it has {len(found)} columns, {origin} also `{expected[len(found)]}`"
    return None

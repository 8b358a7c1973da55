"""Targets that are files: CSV, JSON lines, Parquet, ORC and TPC-H's `.tbl`; and staging areas."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field

from engine.model.operator import (
    IN,
    OUT,
    BuildInputs,
    BuildTools,
    Built,
    DataFrame,
    Finding,
    Inputs,
    Mode,
    Operator,
    PassOn,
    PathText,
    Place,
    Port,
    Role,
    Target,
)
from engine.model.types import UNKNOWN, Schema, ddl
from engine.operators import _formats
from engine.operators._sql import literal, plain, quoted


class Staging(Operator):
    """Keeps rows for the length of a run, so that they are computed once and can be looked at."""

    name: ClassVar[str] = "staging"
    title: ClassVar[str] = "Staging area"
    family: ClassVar[str] = "targets"
    role: ClassVar[Role] = Role.STAGING
    inputs: ClassVar[tuple[Port, ...]] = (IN,)
    outputs: ClassVar[tuple[Port, ...]] = (OUT,)
    keeps_rows: ClassVar[bool] = True
    on_sail: ClassVar[bool] = True

    def build(self, inputs: BuildInputs, tools: BuildTools) -> Built:
        return inputs.first()


# What Spark writes by default has milliseconds only.
_TIMESTAMPS = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


class FileTarget(Target):
    """A target that is a folder with files of one kind. It changes in one step, when the whole run went well."""

    outputs: ClassVar[tuple[Port, ...]] = (Port("out", required=False),)
    format: ClassVar[str]  # as Spark's readers and writers call it
    ending: ClassVar[str]  # of the files' names
    cannot_hold: ClassVar[re.Pattern[str]]  # types that the format has no way to write

    path: PathText = Field(description="The folder that is written; made where there is none.")

    def identity(self, place: Place) -> str:
        return str(place.path(self.path))

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        yield from super().check(inputs)
        for name, kind in (inputs.first() or {}).items():
            if self.cannot_hold.match(kind):
                yield Finding(f"the column `{name}` is a `{kind}`, which {self.title} cannot hold", port="in")
        if problem := self.unfit(list(inputs.first() or ())):
            yield Finding(problem, port="in")

    def build(self, inputs: BuildInputs, tools: BuildTools) -> Built:
        return inputs.first()

    # -- how files are written and read back

    def unfit(self, columns: Sequence[str]) -> str | None:
        """Why columns of these names cannot be written; None where they can."""
        return None

    @property
    def is_single_file(self) -> bool:
        """Whether the path is one file, not a folder."""
        return False

    def write_options(self) -> dict[str, Any]:
        """Options of Spark's writer."""
        return {}

    def read_options(self) -> dict[str, Any]:
        """Options of Spark's reader that give back what was written."""
        return {}

    def prepared(self, frame: DataFrame, tools: BuildTools) -> DataFrame:
        """The frame as it is written."""
        return frame

    def read_back(self, path: Any, frame: DataFrame, tools: BuildTools) -> DataFrame:
        """What is at a path, with the columns of the frame that was written there."""
        return getattr(tools.spark.read, self.format)(path)

    @abstractmethod
    def columns_in(self, files: Sequence[Path]) -> Schema | None:
        """The columns of files that are there; types are `?` where the format knows none."""

    @abstractmethod
    def count_rows(self, file: Path) -> int:
        """The exact number of rows in one file."""

    # -- the exported script

    def script_write(self, frame: DataFrame, tools: BuildTools) -> list[str]:
        """The script's lines that write a frame to the target."""
        path = tools.path("path")
        if self.mode is Mode.UPSERT:
            return self._script_upsert(frame, path, tools)
        return self._script_save(frame, path, self.mode.value, tools)

    def _script_save(self, frame: Any, path: Any, mode: str, tools: BuildTools) -> list[str]:
        prepared = self.prepared(frame, tools)
        if self.is_single_file:
            prepared = prepared.coalesce(1)
        writer, options = prepared.write.mode(mode), self.write_options()
        if frame._known is not None and not any("timestamp" in kind for kind in frame._known.values()):
            options = {name: value for name, value in options.items() if name not in _TIMESTAMPS}
        if options:
            writer = writer.options(**options)
        return str(getattr(writer, self.format)(path)).splitlines()

    def _script_upsert(self, frame: Any, path: Any, tools: BuildTools) -> list[str]:
        from engine.spark.script import Code

        same = ", ".join(f"before[{_python(name)}].eqNullSafe(rows[{_python(name)}])" for name in self.key)
        before = str(self.read_back(path, frame, tools)).splitlines()
        rows = Code("rows", known=frame._known)
        return [
            "# Rows that are there give way to delivered rows with the same key.",
            f"rows = {frame}",
            f"if os.path.exists({path}):",
            f"    before = {before[0]}",
            *(f"    {line}" for line in before[1:]),
            f'    kept = before.join(rows, [{same}], "left_anti")',
            "    rows = kept.unionByName(rows).localCheckpoint()  # read before it is overwritten",
            *self._script_save(rows, path, "overwrite", tools),
        ]

    def missing(self, place: Place) -> str | None:
        """Why the target cannot be written, before anything starts; None where it can."""
        return _formats.occupied(place.path(self.path), self.ending, keeps=self.mode is Mode.APPEND)

    def script_imports(self) -> tuple[str, ...]:
        return ("import os",) if self.mode is Mode.UPSERT else ()

    def script_read(self, frame: DataFrame, tools: BuildTools) -> Any:
        """What the nodes behind the target read."""
        if self.pass_on is PassOn.DELIVERED and self.mode is not Mode.OVERWRITE:
            return frame
        return self.read_back(tools.path("path"), frame, tools)


_NESTED_OR_ODD = re.compile(r"(array|map|struct)<|binary\Z|variant\Z|interval")
_ODD = re.compile(r"interval\Z|variant\Z|void\Z")


class ParquetTarget(FileTarget):
    """Writes Parquet files: columns with their types, compressed; the best choice to read on from."""

    name: ClassVar[str] = "parquet_target"
    title: ClassVar[str] = "Parquet"
    format: ClassVar[str] = "parquet"
    ending: ClassVar[str] = ".parquet"
    lossless: ClassVar[bool] = True
    layouts: ClassVar[bool] = True
    cannot_hold: ClassVar[re.Pattern[str]] = re.compile(r"interval\Z|void\Z")
    on_sail: ClassVar[bool] = True

    compression: Literal["snappy", "zstd", "gzip", "lz4_raw", "none"] = Field(
        "snappy", description="How the files are compressed."
    )

    def write_options(self) -> dict[str, Any]:
        return {} if self.compression == "snappy" else {"compression": self.compression}

    def columns_in(self, files: Sequence[Path]) -> Schema | None:
        return _formats.parquet_columns(files[0]) if files else None

    def count_rows(self, file: Path) -> int:
        return _formats.count_parquet_rows(file)


class OrcTarget(FileTarget):
    """Writes ORC files: columns with their types, compressed."""

    name: ClassVar[str] = "orc_target"
    title: ClassVar[str] = "ORC"
    format: ClassVar[str] = "orc"
    ending: ClassVar[str] = ".orc"
    lossless: ClassVar[bool] = True
    cannot_hold: ClassVar[re.Pattern[str]] = _ODD

    compression: Literal["zstd", "snappy", "zlib", "lz4", "none"] = Field(
        "zstd", description="How the files are compressed."
    )

    def write_options(self) -> dict[str, Any]:
        return {"compression": self.compression}

    def unfit(self, columns: Sequence[str]) -> str | None:
        # Spark cuts such a name off, and says nothing.
        name = next((name for name in columns if "`" in name), None)
        return f"the column `{name}` has a backquote in its name, which ORC would lose; rename it" if name else None

    def columns_in(self, files: Sequence[Path]) -> Schema | None:
        return _formats.orc_columns(files[0]) if files else None

    def count_rows(self, file: Path) -> int:
        return _formats.count_orc_rows(file)


class TextTarget(FileTarget):
    """A target whose files are lines of text."""

    path: PathText = Field(description="The folder that is written, or with `single_file` the file.")
    single_file: bool = Field(False, description="Write one file at the path itself, not a folder of files.")
    compression: Literal["none", "gzip", "bzip2"] = Field("none", description="How the files are compressed.")

    @property
    def is_single_file(self) -> bool:
        return self.single_file

    @property
    def compressed_ending(self) -> str:
        """What compression adds to a file's name."""
        return {"none": "", "gzip": ".gz", "bzip2": ".bz2"}[self.compression]

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        yield from super().check(inputs)
        if self.single_file and self.compressed_ending and not self.path.endswith(self.compressed_ending):
            yield Finding(
                f"a file compressed by {self.compression} is only read again if its name "
                f"ends with `{self.compressed_ending}`",
                setting="path",
            )

    def write_options(self) -> dict[str, Any]:
        return {} if self.compression == "none" else {"compression": self.compression}

    def header_line(self, columns: Sequence[str]) -> bytes:
        """What stands above the rows of a single file."""
        return b""

    def _script_save(self, frame: Any, path: Any, mode: str, tools: BuildTools) -> list[str]:
        if not self.single_file:
            return super()._script_save(frame, path, mode, tools)
        from engine.spark.script import Code

        parts = Code(f'{path} + ".parts"')
        lines = super()._script_save(frame, parts, "overwrite", tools)
        return [
            *lines,
            f'(part,) = Path({parts}).glob("part-*")',
            f"part.replace({path})",
            f"shutil.rmtree({parts})",
        ]

    def script_write(self, frame: DataFrame, tools: BuildTools) -> list[str]:
        if self.single_file and self.mode is Mode.APPEND:
            from engine.spark.script import Code

            path = tools.path("path")
            rows = Code("rows", known=frame._known)
            return [
                f"rows = {frame}",
                f"if os.path.exists({path}):",
                f"    rows = {self.read_back(path, frame, tools)}.unionByName(rows)",
                *self._script_save(rows, path, "overwrite", tools),
            ]
        return super().script_write(frame, tools)

    def script_imports(self) -> tuple[str, ...]:
        if not self.single_file:
            return super().script_imports()
        needed = ("import shutil", "from pathlib import Path")
        return needed if self.mode is Mode.OVERWRITE else ("import os", *needed)


class CsvTarget(TextTarget):
    """Writes CSV files. Types are not kept; empty fields stand for no value, and `""` for an empty text."""

    name: ClassVar[str] = "csv_target"
    title: ClassVar[str] = "CSV"
    format: ClassVar[str] = "csv"
    ending: ClassVar[str] = ".csv"
    cannot_hold: ClassVar[re.Pattern[str]] = _NESTED_OR_ODD
    on_sail: ClassVar[bool] = True

    header: bool = Field(True, description="Whether the first line of each file names the columns.")
    separator: str = Field(",", min_length=1, max_length=1, description="What stands between two fields.")
    quote: str = Field('"', min_length=1, max_length=1, description="What fields stand in that need it.")
    escape: str = Field(
        '"', min_length=1, max_length=1, description="What stands before a quote that belongs to a quoted field."
    )
    encoding: Literal["UTF-8", "ISO-8859-1", "US-ASCII"] = Field("UTF-8", description="The files' encoding.")
    null_text: str = Field("", description="The text that stands for no value.")
    date_format: str | None = Field(None, description="How dates are written, as in `dd.MM.yyyy`; else ISO 8601.")
    timestamp_format: str | None = Field(
        None, description="How timestamps are written, as in `dd.MM.yyyy HH:mm`; else ISO 8601."
    )

    def _values(self) -> dict[str, str]:
        return _formats.value_options(self.date_format, self.timestamp_format, self.null_text)

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        yield from super().check(inputs)
        if self.quote == self.separator:
            yield Finding("the separator and the quote are the same", setting="quote")

    def _shared_options(self) -> dict[str, Any]:
        given = {"header": self.header, "sep": self.separator, "quote": self.quote, "escape": self.escape}
        usual = {"sep": ",", "quote": '"', "header": False}
        options: dict[str, Any] = {name: value for name, value in given.items() if usual.get(name) != value}
        if self.encoding != "UTF-8":
            options["encoding"] = self.encoding
        return options

    def write_options(self) -> dict[str, Any]:
        return {
            **super().write_options(),
            **self._shared_options(),
            "ignoreLeadingWhiteSpace": False,
            "ignoreTrailingWhiteSpace": False,
            **_TIMESTAMPS,
            **self._values(),
        }

    def read_options(self) -> dict[str, Any]:
        # An empty field is no value and `""` an empty text. Spark tells them apart only where some other text
        # stands for no value.
        return {
            **self._shared_options(),
            **({"enforceSchema": False} if self.header else {}),
            "multiLine": True,
            "nullValue": "\x01",
            **self._values(),
            "mode": "FAILFAST",
        }

    def read_back(self, path: Any, frame: DataFrame, tools: BuildTools) -> DataFrame:
        return tools.spark.read.csv(path, schema=frame.schema, **self.read_options())

    def header_line(self, columns: Sequence[str]) -> bytes:
        if not self.header:
            return b""
        names = []
        for name in columns:
            if any(sign in name for sign in (self.separator, self.quote, "\n", "\r")):
                name = self.quote + name.replace(self.quote, self.escape + self.quote) + self.quote
            names.append(name)
        return (self.separator.join(names) + "\n").encode(self.encoding, "replace")

    def columns_in(self, files: Sequence[Path]) -> Schema | None:
        if not self.header:
            return None
        for file in files:
            names = _formats.first_record(file, self.separator, self.quote, self.escape, self.encoding)
            if names:
                return dict.fromkeys(names, UNKNOWN)
        return None

    def count_rows(self, file: Path) -> int:
        records = _formats.count_csv_records(file, self.quote, self.escape)
        return max(0, records - 1) if self.header and not self.single_file else records


class JsonTarget(TextTarget):
    """Writes JSON lines: one object a line, fields without a value as null."""

    name: ClassVar[str] = "json_target"
    title: ClassVar[str] = "JSON lines"
    format: ClassVar[str] = "json"
    ending: ClassVar[str] = ".json"
    cannot_hold: ClassVar[re.Pattern[str]] = re.compile(r"interval")
    on_sail: ClassVar[bool] = True

    date_format: str | None = Field(None, description="How dates are written, as in `dd.MM.yyyy`; else ISO 8601.")
    timestamp_format: str | None = Field(
        None, description="How timestamps are written, as in `dd.MM.yyyy HH:mm`; else ISO 8601."
    )

    def _values(self) -> dict[str, str]:
        return _formats.value_options(self.date_format, self.timestamp_format)

    def write_options(self) -> dict[str, Any]:
        return {**super().write_options(), "ignoreNullFields": False, **_TIMESTAMPS, **self._values()}

    def read_options(self) -> dict[str, Any]:
        return {**self._values(), "mode": "FAILFAST"}

    def read_back(self, path: Any, frame: DataFrame, tools: BuildTools) -> DataFrame:
        return tools.spark.read.json(path, schema=frame.schema, **self.read_options())

    def columns_in(self, files: Sequence[Path]) -> Schema | None:
        for file in files:
            schema = _formats.json_columns(_formats.first_lines(file, 1))
            if schema:
                return dict.fromkeys(schema, UNKNOWN)
        return None

    def count_rows(self, file: Path) -> int:
        return _formats.count_lines(file)


class TblTarget(TextTarget):
    """Writes `.tbl` files as TPC-H's generator does: every field ends with `|`, no header, nothing for no value."""

    name: ClassVar[str] = "tbl_target"
    title: ClassVar[str] = "TPC-H table file"
    format: ClassVar[str] = "csv"
    ending: ClassVar[str] = ".tbl"
    cannot_hold: ClassVar[re.Pattern[str]] = _NESTED_OR_ODD

    def write_options(self) -> dict[str, Any]:
        return {
            **super().write_options(),
            "sep": "|",
            "quote": "",
            "escapeQuotes": False,
            "emptyValue": "",
            "ignoreLeadingWhiteSpace": False,
            "ignoreTrailingWhiteSpace": False,
            **_TIMESTAMPS,
        }

    def read_options(self) -> dict[str, Any]:
        return {"sep": "|", "quote": "", "escape": "", "mode": "FAILFAST"}

    def prepared(self, frame: DataFrame, tools: BuildTools) -> DataFrame:
        functions = tools.functions
        texts = {}
        for name, kind in tools.schema(frame).items():
            if kind == "string":
                message = literal(f"column `{name}` holds a `|` or a line break, which a .tbl file cannot hold")
                column = quoted(name)
                texts[name] = functions.expr(
                    f"CASE WHEN {column} RLIKE '[|\\\\r\\\\n]' THEN raise_error({message}) ELSE {column} END"
                )
        return frame.withColumns({**texts, _formats.TBL_END: functions.expr("CAST(NULL AS STRING)")})

    def read_back(self, path: Any, frame: DataFrame, tools: BuildTools) -> DataFrame:
        schema = ddl({**tools.schema(frame), _formats.TBL_END: "string"})
        return tools.spark.read.csv(path, schema=schema, **self.read_options()).drop(_formats.TBL_END)

    def columns_in(self, files: Sequence[Path]) -> Schema | None:
        return None

    def fields_in(self, files: Sequence[Path]) -> int | None:
        """How many fields the first line there is has."""
        for file in files:
            for line in _formats.first_lines(file, 1):
                return line.count("|")
        return None

    def count_rows(self, file: Path) -> int:
        return _formats.count_lines(file)


def _python(name: str) -> str:
    """A column's name as Python's text for `frame[…]`."""
    return repr(plain(name))

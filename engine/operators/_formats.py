"""What can be told about data files without Spark: which ones are read, their columns, their first lines."""

from __future__ import annotations

import bz2
import csv
import gzip
import hashlib
import io
import json
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.model.types import UNKNOWN, Schema
from engine.operators._parquet_footer import read_footer, read_rows

SAMPLE_LINES = 1000  # of a JSON file, from which its columns are told
FOOTERS = 500  # how many files' own schemas are compared with each other

TBL_END = "_papilio_end"  # what stands behind the last `|` of a `.tbl` line: nothing

_PARTITION = re.compile(r"[^=]+=.*")
_WORD = re.compile(r"\w+\Z", re.ASCII)
_UNREADABLE = (OSError, EOFError, zlib.error, UnicodeError, csv.Error)


# ---------------------------------------------------------------- which files


def is_hidden(name: str) -> bool:
    """Whether Spark passes over a file or folder of this name."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name) or name.endswith("._COPYING_")


def data_files(path: Path) -> list[Path]:
    """The files Spark would read at a path, in the order of their names."""
    if path.is_file():
        return [path]
    found: list[Path] = []
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not is_hidden(name))
        found.extend(Path(folder, name) for name in sorted(names) if not is_hidden(name))
    return found


def unreadable(path: Path, nested: bool) -> str | None:
    """Why Spark could not read what is at a path, in words; None where it could.

    `nested`: files in folders below the path are read as well.
    """
    if not path.exists():
        return f"`{path}` does not exist"
    wild = next((sign for sign in "*?[]{}" if sign in str(path)), None)
    if wild:
        return f"`{path}`: Spark takes the `{wild}` in the path for a wildcard; rename the folder or the file"
    if path.is_file():
        if is_hidden(path.name):
            return f"`{path}`: Spark passes over files whose names begin with `_` or `.`; rename it"
        return None if os.access(path, os.R_OK) else f"`{path}` may not be read"
    if not path.is_dir():
        return f"`{path}` is neither a file nor a folder"
    if not os.access(path, os.R_OK | os.X_OK):
        return f"the folder `{path}` may not be read"
    files = data_files(path)
    if not files:
        return f"the folder `{path}` has no data files"
    for file in files:
        if not os.access(file, os.R_OK):
            return f"`{file}` may not be read"
        if not nested and any(not _PARTITION.match(name) for name in file.relative_to(path).parts[:-1]):
            return f"`{file}` would not be read, as it is not in `{path}` itself; name its folder, or move it"
    return _leads_out(path)


def _leads_out(path: Path) -> str | None:
    """A link below a folder that leads elsewhere: roots are for what is inside them."""
    for folder, folders, names in os.walk(path):
        for name in (*folders, *names):
            file = Path(folder, name)
            if file.is_symlink() and (file.is_dir() or path.resolve() not in file.resolve().parents):
                return f"`{file}` is a link to `{file.resolve()}`; only what is in the folder itself is read"
    return None


def fingerprint(path: Path) -> str:
    """What changes when any file at a path changes, comes or goes."""
    mark = hashlib.sha256()
    for file in data_files(path):
        status = file.stat()
        name = file.relative_to(path).as_posix() if file != path else ""
        facts = [name, status.st_size, status.st_mtime_ns, status.st_ino]
        mark.update(json.dumps(facts).encode() + b"\n")
    return mark.hexdigest()


def partition_columns(path: Path, file: Path) -> Schema:
    """The columns that folders like `year=2024` add. Spark tells their types from all their values."""
    names = file.relative_to(path).parts[:-1] if file != path else ()
    return {name.partition("=")[0]: UNKNOWN for name in names if _PARTITION.match(name)}


# ---------------------------------------------------------------- what a target may replace

_MARKERS = re.compile(r"_SUCCESS\Z|_metadata\Z|_common_metadata\Z|_(started|committed)_|\..*\.crc\Z")
_COMPRESSED = {"gz": b"\x1f\x8b", "bz2": b"BZh"}


def occupied(path: Path, ending: str, keeps: bool) -> str | None:
    """Why a target must not take the place of what is at a path; None where it may.

    A person may have pointed it at a folder of theirs. Only what Spark or Papilio writes is replaced: files
    named `part-…` of the target's kind, and markers. `keeps`: the files stay, and may have any name.
    """
    if not path.exists():
        return _unwritable(path.parent)
    if os.path.ismount(path):
        return f"`{path}` is the root of a file system; name a folder in it"
    if path.is_file():
        if not _looks_like(path, ending):
            return f"`{path}` is a file, and no {ending} data; it is not replaced"
        return _unwritable(path.parent)
    if not path.is_dir():
        return f"`{path}` is neither a file nor a folder"
    for folder, folders, names in os.walk(path):
        strange = next((name for name in folders if not _PARTITION.match(name)), None)
        for name in names:
            file = Path(folder, name)
            ours = is_data(name, ending) and (keeps or name.startswith("part-"))
            if file.is_symlink() or not (ours or _MARKERS.match(name)):
                strange = name
        if strange is not None:
            return (
                f"`{path}` holds `{Path(folder, strange).relative_to(path)}`, which no {ending} target wrote; "
                "nothing of it is replaced. Name another folder, or empty this one"
            )
    return _unwritable(path.parent)


def _unwritable(folder: Path) -> str | None:
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir():
        return f"`{folder}` is no folder"
    return None if os.access(folder, os.W_OK | os.X_OK) else f"nothing may be written in the folder `{folder}`"


def is_data(name: str, ending: str) -> bool:
    """Whether a file's name says that it holds data of a kind."""
    return name.endswith((ending, f"{ending}.gz", f"{ending}.bz2"))


def _looks_like(file: Path, ending: str) -> bool:
    """Whether a file could hold data of a kind, from its first bytes."""
    with file.open("rb") as opened:
        start = opened.read(4096)
    if not start:
        return True
    if ending in (".parquet", ".orc"):
        return start.startswith(b"PAR1" if ending == ".parquet" else b"ORC")
    if start.startswith(tuple(_COMPRESSED.values())):
        return file.suffix[1:] in _COMPRESSED
    if ending == ".json":
        return start.lstrip()[:1] in (b"{", b"[")
    if ending == ".tbl":
        return start.split(b"\n")[0].rstrip(b"\r").endswith(b"|")
    return b"\0" not in start


# ---------------------------------------------------------------- texts


def is_compressed(file: Path) -> bool:
    """Whether a file's ending names a compression, so that its rows may take many times its bytes."""
    return file.suffix in (".gz", ".bz2", ".deflate", ".zst", ".lz4", ".snappy")


def open_bytes(file: Path) -> Any:
    """A file's bytes, without the compression that its ending names."""
    match file.suffix:
        case ".gz":
            return gzip.open(file, "rb")
        case ".bz2":
            return bz2.open(file, "rb")
        case ".deflate":
            return io.BytesIO(zlib.decompress(file.read_bytes()))
        case ".zst" | ".lz4" | ".snappy":
            raise OSError(f"{file}: only Spark reads this compression")
    return file.open("rb")


def first_record(file: Path, separator: str, quote: str, escape: str, encoding: str) -> list[str] | None:
    """The fields of the first line that has any; None where there is none or it cannot be read."""
    python = {"UTF-8": "utf-8-sig"}.get(encoding, encoding)
    try:
        with open_bytes(file) as raw, io.TextIOWrapper(raw, python, newline="") as text:
            if len(separator) > 1:
                line = next((line.rstrip("\r\n") for line in text if line.strip()), None)
                return line.split(separator) if line is not None else None
            reader = csv.reader(
                text,
                delimiter=separator,
                quotechar=quote or None,
                quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE,
                doublequote=escape == quote,
                escapechar=escape if quote and escape != quote else None,
            )
            return next((record for record in reader if any(field.strip() for field in record)), None)
    except _UNREADABLE:
        return None


def first_lines(file: Path, count: int) -> list[str]:
    """The first lines that are not empty, as far as they can be read."""
    lines: list[str] = []
    try:
        with open_bytes(file) as raw, io.TextIOWrapper(raw, "utf-8-sig") as text:
            for line in text:
                if line.strip():
                    lines.append(line)
                if len(lines) == count:
                    break
    except _UNREADABLE:
        pass
    return lines


def count_lines(file: Path) -> int:
    """How many lines a file has."""
    with open_bytes(file) as raw:
        return sum(chunk.count(b"\n") for chunk in _chunks(raw))


def count_csv_records(file: Path, quote: str, escape: str) -> int:
    """How many records a CSV file has: its line ends outside of quotes."""
    if not quote:
        return count_lines(file)
    mark, escaped = quote.encode(), None
    if escape and escape != quote:
        escaped = re.compile(re.escape(escape.encode()) + rb".", re.DOTALL)
    records, quoted, held = 0, False, b""
    with open_bytes(file) as raw:
        for chunk in _chunks(raw):
            if escaped is not None:
                chunk = escaped.sub(b"", held + chunk)
                held = chunk[-1:] if chunk.endswith(escape.encode()) else b""
                chunk = chunk[: len(chunk) - len(held)]
            parts = chunk.split(mark)
            records += sum(part.count(b"\n") for part in parts[quoted::2])
            quoted ^= len(parts) % 2 == 0
    return records


def _chunks(raw: Any) -> Iterator[bytes]:
    while chunk := raw.read(1 << 20):
        yield chunk


# ---------------------------------------------------------------- JSON


def json_columns(lines: Iterable[str]) -> Schema | None:
    """The columns of JSON lines, as Spark would tell their types; None where no line is an object."""
    merged: Any = None
    for line in lines:
        try:
            value = json.loads(line)
        except ValueError:
            continue  # it is refused when it is read
        if isinstance(value, dict):
            merged = _merged(merged, _json_kind(value))
    if not merged:
        return None
    return {name: _json_type(kind) for name, kind in merged.items()}


# A kind is a type's name, a dict of fields, or a list of one kind for an array; None for null.
def _json_kind(value: Any) -> Any:
    match value:
        case None:
            return None
        case bool():
            return "boolean"
        case int():
            return "bigint" if -(2**63) <= value < 2**63 else "decimal" if abs(value) < 10**38 else "double"
        case float():
            return "double"
        case str():
            return "string"
        case list():
            inner: Any = None
            for item in value:
                inner = _merged(inner, _json_kind(item))
            return [inner]
        case _:
            return {name: _json_kind(item) for name, item in value.items()}


def _merged(left: Any, right: Any) -> Any:
    if left is None or right is None or left == right:
        return right if left is None else left
    if isinstance(left, dict) and isinstance(right, dict):
        return {name: _merged(left.get(name), right.get(name)) for name in {**left, **right}}
    if isinstance(left, list) and isinstance(right, list):
        return [_merged(left[0], right[0])]
    numbers = ("bigint", "decimal", "double")
    if left in numbers and right in numbers:
        return max(left, right, key=numbers.index)
    return "string"


def _json_type(kind: Any) -> str:
    match kind:
        case None:
            return "string"
        case "decimal":
            return "decimal(38,0)"
        case dict():
            if not kind or not all(_WORD.match(name) for name in kind):
                return "string"  # the object's own text, as its fields' names do not go into a type
            return f"struct<{','.join(f'{name}:{_json_type(item)}' for name, item in kind.items())}>"
        case list():
            return f"array<{_json_type(kind[0])}>"
    return str(kind)


# ---------------------------------------------------------------- Parquet and ORC

_SPARK_METADATA = b"org.apache.spark.sql.parquet.row.metadata"
_ARROW = {
    "int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint",
    "uint8": "smallint", "uint16": "int", "uint32": "bigint", "uint64": "decimal(20,0)",
    "float": "float", "double": "double", "bool": "boolean", "date32[day]": "date", "date64[ms]": "date",
    "string": "string", "large_string": "string", "string_view": "string",
    "binary": "binary", "large_binary": "binary", "binary_view": "binary",
}  # fmt: skip
_SPARK_NAMES = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}


def parquet_columns(file: Path) -> Schema:
    """The columns of a Parquet file as Spark would give them, from its footer."""
    footer = read_footer(file)
    known = footer and (_noted_columns(footer.notes) or footer.columns)
    return dict(known) if known else arrow_parquet_columns(file)


def arrow_parquet_columns(file: Path) -> Schema:
    """The same for every Parquet file there is, with pyarrow."""
    from pyarrow import parquet

    with parquet.ParquetFile(file) as opened:
        if noted := _noted_columns(opened.metadata.metadata or {}):
            return noted
        own = {
            opened.schema.column(index).path: opened.schema.column(index).physical_type
            for index in range(len(opened.schema))
        }
        return {
            field.name: "timestamp" if own.get(field.name) == "INT96" else arrow_type(field.type, orc=False)
            for field in opened.schema_arrow
        }


def _noted_columns(notes: Mapping[bytes, bytes]) -> Schema | None:
    """Spark trusts its own note of the columns before the file's types."""
    if _SPARK_METADATA not in notes:
        return None
    fields = json.loads(notes[_SPARK_METADATA])["fields"]
    return {item["name"]: _noted_type(item["type"]) for item in fields}


def orc_columns(file: Path) -> Schema:
    """The columns of an ORC file as Spark would give them, from its footer."""
    from pyarrow import orc

    return {field.name: _orc_type(field) for field in orc.ORCFile(file).schema}


def count_parquet_rows(file: Path) -> int:
    """How many rows a Parquet file has, from its footer."""
    rows = read_rows(file)
    if rows is not None:
        return rows
    from pyarrow import parquet

    return int(parquet.read_metadata(file).num_rows)


def count_orc_rows(file: Path) -> int:
    """How many rows an ORC file has, from its footer."""
    from pyarrow import orc

    return int(orc.ORCFile(file).nrows)


def _noted_type(kind: Any) -> str:
    """A type in Spark's JSON writing, as Spark's SQL writes it."""
    if isinstance(kind, str):
        return "string" if kind.startswith(("char(", "varchar(")) else _SPARK_NAMES.get(kind, kind)
    match kind["type"]:
        case "array":
            return f"array<{_noted_type(kind['elementType'])}>"
        case "map":
            return f"map<{_noted_type(kind['keyType'])},{_noted_type(kind['valueType'])}>"
        case "struct":
            fields = (f"{item['name']}:{_noted_type(item['type'])}" for item in kind["fields"])
            return f"struct<{','.join(fields)}>"
    return _noted_type(kind["sqlType"]) if "sqlType" in kind else UNKNOWN


def _orc_type(field: Any) -> str:
    noted = (field.metadata or {}).get(b"spark.sql.catalyst.type", b"").decode()
    return "timestamp_ntz" if noted == "timestamp_ntz" else arrow_type(field.type, orc=True)


def arrow_type(kind: Any, orc: bool) -> str:
    """An Arrow type as Spark would read it from Parquet or ORC; `?` where Spark has no such type."""
    from pyarrow import types

    text = str(kind)
    if text in _ARROW:
        return _ARROW[text]
    if types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})" if kind.precision <= 38 else UNKNOWN
    if types.is_timestamp(kind):
        if orc:
            return "timestamp"
        if kind.unit == "ns":
            return UNKNOWN
        return "timestamp" if kind.tz else "timestamp_ntz"
    if types.is_fixed_size_binary(kind):
        return "binary"
    if types.is_dictionary(kind):
        return arrow_type(kind.value_type, orc)
    if types.is_map(kind):
        return _holding("map", [arrow_type(kind.key_type, orc), arrow_type(kind.item_type, orc)])
    if types.is_struct(kind):
        fields = [kind.field(index) for index in range(kind.num_fields)]
        inner = [(field.name, arrow_type(field.type, orc)) for field in fields]
        if UNKNOWN in (one for _, one in inner):
            return UNKNOWN
        return f"struct<{','.join(f'{name}:{one}' for name, one in inner)}>"
    if "list" in text and hasattr(kind, "value_type"):
        return _holding("array", [arrow_type(kind.value_type, orc)])
    return UNKNOWN


def _holding(what: str, inner: Sequence[str]) -> str:
    return UNKNOWN if UNKNOWN in inner else f"{what}<{','.join(inner)}>"


# ---------------------------------------------------------------- how values are written


def value_options(date_format: str | None, timestamp_format: str | None, null_text: str = "") -> dict[str, str]:
    """Spark's options for how values are written."""
    options = {}
    if null_text:
        options["nullValue"] = null_text
    if date_format:
        options["dateFormat"] = date_format
    if timestamp_format:
        options["timestampFormat"] = options["timestampNTZFormat"] = timestamp_format
    return options

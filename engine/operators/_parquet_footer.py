"""The columns of a Parquet file from its footer, without pyarrow.

Loading pyarrow takes longer than everything else that `papilio check` does. A footer is Thrift in its compact form;
read here is what flat files need. Whatever this does not know (nested columns, encryption, a broken file) is None, and
the caller asks pyarrow.
"""

from __future__ import annotations

import os
import struct
import time
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

MAX_BYTES = 128 * 1024  # of a longer footer (many row groups) pyarrow is quicker, its loading included
_TAIL = 8 * 1024  # most footers of a few columns are shorter, and read in one go
_MAX_DEPTH = 32
_SETTLED_NS = 2_000_000_000  # a file written again within a tick of its clock could not be told from what it was


class Footer(NamedTuple):
    """What a Parquet file says of itself: its rows, columns with Spark's types where they are flat, and its notes."""

    rows: int
    columns: dict[str, str] | None
    notes: dict[bytes, bytes]


class _Unknown(Exception):
    """Something this reader does not know."""


# What a footer that is broken, or that no writer known here wrote, leads to.
_NOT_UNDERSTOOD = (_Unknown, LookupError, TypeError, ValueError, AttributeError, struct.error)


def read_footer(file: Path) -> Footer | None:
    """The footer of a file; None where pyarrow must be asked. A run asks several times: it is read once."""
    status = file.stat()
    read = _footer if time.time_ns() - status.st_mtime_ns > _SETTLED_NS else _footer.__wrapped__
    return read(file, status.st_size, status.st_mtime_ns, status.st_ino)


@lru_cache(maxsize=256)
def _footer(file: Path, size: int, mtime_ns: int, inode: int) -> Footer | None:
    try:
        data = _bytes(file)
        meta = _Thrift(data).struct(without=_ROW_GROUPS) if data is not None else None
        if meta is None:
            return None
        notes = {note[1]: note.get(2, b"") for note in meta.get(5, ())}
        return Footer(_number(meta[3]), _columns(meta[2]), notes)
    except _NOT_UNDERSTOOD:
        return None


def read_rows(file: Path) -> int | None:
    """How many rows a file has; None where pyarrow must be asked."""
    try:
        data = _bytes(file)
        return _number(_Thrift(data).struct(until=3)[3]) if data is not None else None
    except _NOT_UNDERSTOOD:
        return None


def _number(found: Any) -> int:
    if type(found) is not int:
        raise _Unknown
    return found


def _bytes(file: Path) -> bytes | None:
    """The bytes of a file's footer; None where they are not for this reader."""
    with file.open("rb") as opened:
        size = opened.seek(0, os.SEEK_END)
        opened.seek(max(0, size - _TAIL))
        tail = opened.read()
        length = int.from_bytes(tail[-8:-4], "little")
        if tail[-4:] != b"PAR1" or not 0 < length <= min(MAX_BYTES, size - 12):
            return None
        if length + 8 > len(tail):
            opened.seek(size - 8 - length)
            tail = opened.read()
    return tail[-8 - length : -8]


# ---------------------------------------------------------------- Thrift's compact protocol

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)


class _Thrift:
    """Reads values of Thrift's compact protocol: a struct becomes a dict by its fields' numbers."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def struct(self, depth: int = 0, without: int | None = None, until: int | None = None) -> dict[int, Any]:
        """`without` a field, which is passed over; `until` a field, behind which nothing is read."""
        if depth > _MAX_DEPTH:
            raise _Unknown
        fields: dict[int, Any] = {}
        number = 0
        while kind := self._byte():
            step, kind = kind >> 4, kind & 15
            number = number + step if step else self._zigzag()
            if number == without and kind == _LIST:
                self._at = _behind(self._data, self._at, kind, depth + 1)
                continue
            # In a struct a truth value is told by its field's kind alone.
            fields[number] = kind == _TRUE if kind <= _FALSE else self._value(kind, depth + 1)
            if number == until:
                break
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (_I16, _I32, _I64):
            return self._zigzag()
        if kind == _BINARY:
            return self._take(self._varint())
        if kind == _STRUCT:
            return self.struct(depth)
        if kind in (_LIST, _SET):
            return self._list(depth)
        if kind in (_TRUE, _FALSE, _BYTE):
            return self._byte()
        if kind == _DOUBLE:
            return struct.unpack("<d", self._take(8))[0]
        raise _Unknown  # a map: Parquet's footers have none

    def _list(self, depth: int) -> list[Any]:
        head = self._byte()
        count, kind = head >> 4, head & 15
        if count == 15:
            count = self._varint()
        return [self._value(kind, depth) for _ in range(count)]

    def _byte(self) -> int:
        value = self._data[self._at]
        self._at += 1
        return value

    def _take(self, count: int) -> bytes:
        taken = self._data[self._at : self._at + count]
        if len(taken) < count:
            raise _Unknown
        self._at += count
        return taken

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 64, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise _Unknown

    def _zigzag(self) -> int:
        value = self._varint()
        return value >> 1 ^ -(value & 1)


def _behind(data: bytes, at: int, kind: int, depth: int) -> int:
    """Where a value ends. In one function for all kinds: row groups are most of a footer, and nothing else is slow."""
    if depth > _MAX_DEPTH:
        raise _Unknown
    if kind in (_I16, _I32, _I64):
        while data[at] > 127:
            at += 1
        return at + 1
    if kind == _BINARY:
        size = shift = 0
        while (byte := data[at]) > 127:
            size, shift, at = size | (byte & 127) << shift, shift + 7, at + 1
        return at + 1 + (size | byte << shift)
    if kind == _STRUCT:
        while head := data[at]:
            at += 1
            kind = head & 15
            if head < 16:  # the field's number stands by itself
                at = _behind(data, at, _I32, depth)
            if kind in (_I64, _I32):  # most fields
                while data[at] > 127:
                    at += 1
                at += 1
            elif kind > _FALSE:
                at = _behind(data, at, kind, depth + 1)
        return at + 1
    if kind in (_LIST, _SET):
        head = data[at]
        at, count, kind = at + 1, head >> 4, head & 15
        if count == 15:
            count = shift = 0
            while (byte := data[at]) > 127:
                count, shift, at = count | (byte & 127) << shift, shift + 7, at + 1
            count, at = count | byte << shift, at + 1
        for _ in range(count):
            at = _behind(data, at, kind, depth + 1)
            if at > len(data):
                raise _Unknown
        return at
    if kind in (_TRUE, _FALSE, _BYTE):
        return at + 1
    if kind == _DOUBLE:
        return at + 8
    raise _Unknown


# ---------------------------------------------------------------- Parquet's types

_ROW_GROUPS = 4  # of the fields of a footer

_REQUIRED, _OPTIONAL = 0, 1
_BOOLEAN, _INT32, _INT64, _INT96, _FLOAT, _DOUBLES, _BYTES, _FIXED = range(8)
# Parquet's older marks (converted types), which writers still add to the newer ones (logical types).
_UTF8, _DECIMAL, _DATE, _MILLIS, _MICROS = 0, 5, 6, 9, 10
_UINTS = {11: "smallint", 12: "int", 13: "bigint", 14: "decimal(20,0)"}
_INTS = {15: "tinyint", 16: "smallint", 17: "int", 18: "bigint"}
_PLAIN = {_BOOLEAN: "boolean", _INT32: "int", _INT64: "bigint", _INT96: "timestamp", _FLOAT: "float",
          _DOUBLES: "double", _BYTES: "binary", _FIXED: "binary"}  # fmt: skip
# Fields of a schema's element, and of the union that is its logical type.
_KIND, _REPETITION, _NAME, _CHILDREN, _CONVERTED, _SCALE, _PRECISION, _LOGICAL = 1, 3, 4, 5, 6, 7, 8, 10
_IS_STRING, _IS_DECIMAL, _IS_DATE, _IS_TIMESTAMP, _IS_INTEGER = 1, 5, 6, 8, 10


def _columns(elements: list[dict[int, Any]]) -> dict[str, str] | None:
    root, *leaves = elements
    try:
        columns = {leaf[_NAME].decode(): _spark_type(leaf) for leaf in leaves}
    except _NOT_UNDERSTOOD:
        return None
    return columns if root.get(_CHILDREN, 0) == len(leaves) == len(columns) else None


def _spark_type(leaf: dict[int, Any]) -> str:
    """The type that Spark reads a column as."""
    if leaf.get(_REPETITION) not in (_REQUIRED, _OPTIONAL) or leaf.get(_CHILDREN):
        raise _Unknown
    kind, logical, converted = leaf[_KIND], leaf.get(_LOGICAL, {}), leaf.get(_CONVERTED)
    if not logical and converted is None:
        return _PLAIN[kind]
    if _IS_TIMESTAMP in logical:
        stamp = logical[_IS_TIMESTAMP]
        if kind != _INT64 or 3 in stamp[2]:
            raise _Unknown  # nanoseconds
        return "timestamp" if stamp[1] else "timestamp_ntz"
    if logical and not logical.keys() <= {_IS_STRING, _IS_DECIMAL, _IS_DATE, _IS_INTEGER}:
        raise _Unknown
    if kind == _BYTES and (converted == _UTF8 or _IS_STRING in logical):
        return "string"
    if converted == _DECIMAL or _IS_DECIMAL in logical:
        given = logical.get(_IS_DECIMAL, {})
        precision, scale = leaf.get(_PRECISION, given.get(2)), leaf.get(_SCALE, given.get(1, 0))
        if kind not in (_INT32, _INT64, _BYTES, _FIXED) or not 0 < precision <= 38 or not 0 <= scale <= precision:
            raise _Unknown
        return f"decimal({precision},{scale})"
    if kind == _INT32 and (converted == _DATE or _IS_DATE in logical):
        return "date"
    if kind == _INT64 and converted in (_MILLIS, _MICROS):
        return "timestamp"
    if kind in (_INT32, _INT64):
        if _IS_INTEGER in logical:
            width, signed = logical[_IS_INTEGER][1], logical[_IS_INTEGER][2]
            converted = (8, 16, 32, 64).index(width) + (15 if signed else 11)
        return (_INTS | _UINTS)[converted]  # type: ignore[index]
    raise _Unknown

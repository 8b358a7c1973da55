"""Whether Parquet files hold no key twice, told by pyarrow: it reads the keys alone, and takes a fraction of the time
that a Spark job would.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

MOST_BYTES = 64 << 20  # of keys in memory; of more, Spark finds out with all its workers
_NUMBER_BYTES, _TEXT_BYTES = 8, 32  # of a key, at least


def keys_are_unique(files: Sequence[Path], names: Sequence[str]) -> bool:
    """Whether no two rows of the files have the same key; rows with an empty (null) in their key do not count.

    False also where this cannot be told: too many keys, columns that differ from file to file or are not in the files
    (folders name them), types whose values Spark compares otherwise.
    """
    try:
        keys = _keys(files, names)
    except Exception:
        return False  # a broken file is told by Spark, in its own words
    if keys is None:
        return False
    keys = keys.drop_null()
    if keys.num_columns == 1 and _ascend(keys.column(0)):
        return True
    return bool(keys.group_by(keys.column_names).aggregate([]).num_rows == keys.num_rows)


def _ascend(key: Any) -> bool:
    """Whether each key is larger than the one before it, as in most tables: a fraction of the work of grouping them."""
    from pyarrow import compute

    values = key.combine_chunks()
    return bool(compute.all(compute.less(values[:-1], values[1:]), min_count=0).as_py())


def _keys(files: Sequence[Path], names: Sequence[str]) -> Any | None:
    """The columns of the keys from all files, None where they are too many or cannot be compared here."""
    import pyarrow as pa
    from pyarrow import parquet

    tables, left = [], MOST_BYTES
    for file in files:
        with parquet.ParquetFile(file) as opened:
            columns = _columns(opened, names)
            left -= _bytes(opened, columns)
            alike = all(_compared_alike(opened.schema_arrow.field(name).type) for name in columns)
            if len(columns) < len(names) or left < 0 or not alike:
                return None
            tables.append(opened.read(columns).rename_columns([f"key {at}" for at in range(len(names))]))
    # Files whose columns are of different types are refused by pyarrow, which the caller takes for an answer.
    return pa.concat_tables(tables) if tables else None


def _columns(opened: Any, names: Sequence[str]) -> list[str]:
    """The names as the file has them: Spark takes upper case for lower. None is there for one that is not clear."""
    own: dict[str, list[str]] = {}
    for name in opened.schema_arrow.names:
        own.setdefault(name.lower(), []).append(name)
    found = [own.get(name.lower(), []) for name in names]
    return [one[0] for one in found if len(one) == 1]


def _bytes(opened: Any, columns: Sequence[str]) -> int:
    """About the bytes of columns once they are read; texts of a dictionary are more than their file says."""
    metadata, total = opened.metadata, 0
    for group in range(metadata.num_row_groups):
        for at in range(metadata.num_columns):
            column = metadata.row_group(group).column(at)
            if column.path_in_schema in columns:
                width = _TEXT_BYTES if column.physical_type == "BYTE_ARRAY" else _NUMBER_BYTES
                total += max(column.total_uncompressed_size, width * column.num_values)
    return total


def _compared_alike(kind: Any) -> bool:
    """Whether two values of a column are the same to Spark if and only if they are to pyarrow."""
    from pyarrow import types

    return bool(
        types.is_signed_integer(kind) or types.is_string(kind) or types.is_date32(kind) or types.is_decimal(kind)
    )

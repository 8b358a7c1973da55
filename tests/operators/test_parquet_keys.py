"""Whether Parquet files hold no key twice: never said where Spark would find one twice."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from engine.operators import _parquet_keys
from engine.operators._parquet_keys import keys_are_unique


def files(folder: Path, *tables: dict[str, Any]) -> list[Path]:
    made = []
    for number, columns in enumerate(tables):
        file = folder / f"part-{number}.parquet"
        parquet.write_table(pa.table(columns), file, row_group_size=2)
        made.append(file)
    return made


@pytest.mark.parametrize(
    ("values", "twice"),
    [
        ([3, 1, 2], 1),
        ([1, 2, 3], 3),
        (["a", "b", "c"], "c"),
        (["b", "a", "A", "a "], "a"),
        ([datetime.date(2026, 1, 1), datetime.date(2026, 1, 2)], datetime.date(2026, 1, 2)),
        ([Decimal("1.50"), Decimal("1.51")], Decimal("1.50")),
    ],
)
def test_a_key_that_is_there_twice_is_found_in_one_file_and_in_two(tmp_path, values, twice):
    assert keys_are_unique(files(tmp_path, {"k": values}), ["k"])
    assert not keys_are_unique(files(tmp_path, {"k": [*values, twice]}), ["k"])
    assert not keys_are_unique(files(tmp_path, {"k": values}, {"k": [twice]}), ["k"])


def test_empty_keys_are_never_found_and_so_do_not_count(tmp_path):
    assert keys_are_unique(files(tmp_path, {"k": [None, 1, None, 2]}), ["k"])
    assert keys_are_unique(files(tmp_path, {"k": [1, 1], "l": [None, 1]}), ["k", "l"])


def test_a_key_of_two_columns_is_both_of_them(tmp_path):
    made = files(tmp_path, {"k": [1, 1, 2], "l": ["x", "y", "x"]})
    assert keys_are_unique(made, ["k", "l"])
    assert keys_are_unique(made, ["L", "K"]), "Spark takes upper case for lower"
    assert not keys_are_unique(made, ["k"])


@given(
    rows=st.lists(st.tuples(st.integers(0, 3) | st.none(), st.sampled_from(["", "a", "b"]) | st.none()), max_size=12),
    cut=st.integers(0, 12),
)
def test_it_is_what_counting_says(tmp_path_factory, rows, cut):
    types = pa.schema({"k": pa.int64(), "l": pa.string()})
    folder = tmp_path_factory.mktemp("keys")
    made = []
    for number, part in enumerate((rows[:cut], rows[cut:])):
        made.append(folder / f"{number}.parquet")
        columns = {"k": [k for k, _ in part], "l": [text for _, text in part]}
        parquet.write_table(pa.table(columns, schema=types), made[-1])
    whole = [row for row in rows if None not in row]
    assert keys_are_unique(made, ["k", "l"]) == (len(whole) == len(set(whole)))


@given(keys=st.lists(st.integers(0, 9) | st.none(), max_size=8), ordered=st.booleans(), cut=st.integers(0, 8))
def test_one_column_in_order_or_not_is_what_counting_says(tmp_path_factory, keys, ordered, cut):
    if ordered:
        keys.sort(key=lambda key: (key is None, key))
    folder = tmp_path_factory.mktemp("keys")
    schema = pa.schema({"k": pa.int64()})
    made = []
    for number, part in enumerate((keys[:cut], keys[cut:])):
        made.append(folder / f"{number}.parquet")
        parquet.write_table(pa.table({"k": part}, schema=schema), made[-1])
    there = [key for key in keys if key is not None]
    assert keys_are_unique(made, ["k"]) == (len(there) == len(set(there)))


@pytest.mark.parametrize(
    ("tables", "names", "reason"),
    [
        ([{"k": [0.0, -0.0]}], ["k"], "to Spark both are the same"),
        ([{"k": [1], "K": [2]}], ["k"], "two columns could be meant"),
        ([{"k": [1]}], ["year"], "no file has the column"),
        ([{"k": [1]}, {"k": ["2"]}], ["k"], "columns of different types"),
        ([], ["k"], "no files"),
    ],
)
def test_what_cannot_be_told_is_left_to_spark(tmp_path, tables, names, reason):
    assert not keys_are_unique(files(tmp_path, *tables), names), reason


def test_more_keys_than_memory_is_spent_on_and_broken_files_are_left_to_spark(tmp_path, monkeypatch):
    made = files(tmp_path, {"k": list(range(100))}, {"k": list(range(100, 200))})
    monkeypatch.setattr(_parquet_keys, "MOST_BYTES", 100_000)
    assert keys_are_unique(made, ["k"])
    monkeypatch.setattr(_parquet_keys, "MOST_BYTES", 200 * 8 - 1)
    assert not keys_are_unique(made, ["k"])
    monkeypatch.undo()
    made[1].write_bytes(b"broken")
    assert not keys_are_unique(made, ["k"])

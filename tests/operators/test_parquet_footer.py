"""Parquet's footers, read without pyarrow: the same answer as pyarrow gives, or none."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyarrow import parquet

from engine.operators import _formats
from engine.operators._parquet_footer import MAX_BYTES, read_footer, read_rows

FLAT = [
    pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
    pa.float32(), pa.float64(), pa.date32(), pa.string(), pa.large_string(), pa.binary(), pa.binary(7),
    pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.timestamp("ms", "Europe/Berlin"),
    pa.decimal128(1, 0), pa.decimal128(9, 2), pa.decimal128(18, 18), pa.decimal128(38, 10),
]  # fmt: skip
OTHERS = [
    pa.timestamp("ns"), pa.time32("ms"), pa.time64("us"), pa.list_(pa.int32()), pa.struct([("a", pa.int32())]),
    pa.map_(pa.string(), pa.int64()), pa.float16(), pa.decimal256(60, 2),
]  # fmt: skip
names = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=20)


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("footer") / "some.parquet"


@given(
    st.dictionaries(names, st.sampled_from(FLAT), min_size=1, max_size=20),
    st.integers(0, 40),
    st.integers(1, 7),
    st.sampled_from(["1.0", "2.4", "2.6"]),
    st.booleans(),
)
@example({"a": pa.int32()}, 0, 1, "2.6", True)
def test_flat_columns_and_rows_are_those_that_pyarrow_finds(file, columns, rows, group, version, arrow):
    schema = pa.schema([pa.field(name, kind, nullable=rows > 0) for name, kind in columns.items()])
    table = pa.table([pa.nulls(rows, kind) for kind in columns.values()], schema)
    parquet.write_table(table, file, row_group_size=group, version=version, store_schema=arrow)
    footer = read_footer(file)
    assert footer is not None
    assert footer.columns == _formats.arrow_parquet_columns(file)
    assert list(footer.columns) == list(columns)
    assert footer.rows == rows


@pytest.mark.parametrize("kind", OTHERS, ids=str)
def test_what_it_does_not_know_is_asked_of_pyarrow(file, kind):
    parquet.write_table(pa.table({"a": pa.array([], kind), "b": pa.array([], pa.int32())}), file)
    assert read_footer(file).columns is None
    assert _formats.parquet_columns(file) == _formats.arrow_parquet_columns(file)


def test_older_timestamps(file):
    table = pa.table({"t": pa.array([0], pa.timestamp("us"))})
    parquet.write_table(table, file, use_deprecated_int96_timestamps=True)
    assert _formats.parquet_columns(file) == {"t": "timestamp"} == _formats.arrow_parquet_columns(file)


def test_a_footer_of_thousands_of_row_groups_is_left_to_pyarrow(file):
    rows = 3_000
    parquet.write_table(pa.table({"a": range(rows), "b": ["x"] * rows}), file, row_group_size=1)
    assert int.from_bytes(file.read_bytes()[-8:-4], "little") > MAX_BYTES
    assert read_footer(file) is None
    assert _formats.parquet_columns(file) == {"a": "bigint", "b": "string"}
    assert _formats.count_parquet_rows(file) == rows


def test_a_file_that_is_written_again_is_read_again(file):
    for name in ("a", "b"):  # of the same size, within the same tick of the clock
        parquet.write_table(pa.table({name: [1]}), file)
        assert list(read_footer(file).columns) == [name]


def test_a_settled_file_is_read_once_until_it_changes(file):
    parquet.write_table(pa.table({"a": [1]}), file)
    os.utime(file, (0, 0))
    first = read_footer(file)
    assert read_footer(file) is first
    parquet.write_table(pa.table({"b": [1]}), file)
    os.utime(file, (1, 1))
    assert list(read_footer(file).columns) == ["b"]


def test_rows_are_read_without_what_stands_behind_them(file):
    parquet.write_table(pa.table({"a": range(1000), "b": ["x"] * 1000}), file, row_group_size=10)
    assert read_rows(file) == 1000


@given(st.data())
def test_a_broken_footer_is_never_more_than_not_understood(file, data):
    parquet.write_table(pa.table({"a": [1, 2], "b": ["x", "y"]}), file)
    whole = bytearray(file.read_bytes())
    footer = int.from_bytes(whole[-8:-4], "little")
    for at in data.draw(st.lists(st.integers(-8 - footer, -1), min_size=1, max_size=5)):
        whole[at] = data.draw(st.integers(0, 255))
    file.write_bytes(bytes(whole[: data.draw(st.sampled_from([len(whole), len(whole) - 3]))]))
    found = read_footer(file)
    assert found is None or isinstance(found.rows, int)
    assert isinstance(read_rows(file), int | None)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" * 3, b"PAR1\x00\x00\x00\x00PAR1", b"x" * 100 + b"PARE"])
def test_no_parquet_file_has_no_footer(file, content):
    file.write_bytes(content)
    assert read_footer(file) is None

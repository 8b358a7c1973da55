"""Reading a source piece by piece: the pieces are all of it, in order. No Spark is needed for it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import orc, parquet

from engine.errors import BadInput
from engine.model.operator import Place
from engine.operators.file_sources import OrcSource, ParquetSource
from engine.spark.slices import slices_of, write_packs

TABLE = pa.table({"n": range(30_000), "text": ["x" * 20] * 30_000})
HERE = Place(Path, str)


def written(kind, folder):
    if kind == "orc":
        orc.write_table(TABLE, folder / "rows.orc", stripe_size=200_000)
        return OrcSource(path=str(folder / "rows.orc"))
    parquet.write_table(TABLE, folder / "rows.parquet", row_group_size=7_000)
    return ParquetSource(path=str(folder / "rows.parquet"))


@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_the_slices_hold_every_row_once_and_in_order(kind, tmp_path):
    source = written(kind, tmp_path)
    slices = slices_of(source, HERE)
    assert len(slices) > 1
    assert sum(slice_.rows for slice_ in slices) == TABLE.num_rows
    packs = list(write_packs(source, slices, tmp_path / "packs", pack_rows=3_000))
    assert all(0 < rows <= 3_000 for _, rows in packs)
    assert [n for file, _ in packs for n in parquet.read_table(file)["n"].to_pylist()] == list(range(30_000))


def test_only_the_declared_columns_are_read(tmp_path):
    source = written("parquet", tmp_path).model_copy(update={"columns": {"n": "bigint"}})
    file, _ = next(write_packs(source, slices_of(source, HERE), tmp_path / "packs", pack_rows=3_000))
    assert parquet.read_schema(file).names == ["n"]


@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_declared_columns_are_found_in_any_case_and_have_the_declared_name(kind, tmp_path):
    source = written(kind, tmp_path).model_copy(update={"columns": {"Text": "string", "N": "bigint"}})
    files = [file for file, _ in write_packs(source, slices_of(source, HERE), tmp_path / "packs", pack_rows=9_000)]
    assert parquet.read_schema(files[0]).names == ["Text", "N"]
    assert [n for file in files for n in parquet.read_table(file)["N"].to_pylist()] == list(range(30_000))


@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_a_declared_column_that_a_file_has_not_is_refused(kind, tmp_path):
    source = written(kind, tmp_path).model_copy(update={"columns": {"n": "bigint", "txt": "string"}})
    with pytest.raises(BadInput, match=f"rows.{kind}: there is no column `txt`; did you mean `text`"):
        list(write_packs(source, slices_of(source, HERE), tmp_path / "packs", pack_rows=9_000))


def test_a_declared_column_that_a_file_has_twice_is_refused(tmp_path):
    parquet.write_table(pa.table({"n": [1], "N": [2]}), tmp_path / "rows.parquet")
    source = ParquetSource(path=str(tmp_path / "rows.parquet"), columns={"n": "bigint"})
    with pytest.raises(BadInput, match="`n` is not clear; there are `n`, `N`"):
        list(write_packs(source, slices_of(source, HERE), tmp_path / "packs", pack_rows=9_000))

"""Reading a source piece by piece, so that a reader can stop and go on without reading anything twice.

Files of columns are read by row group (Parquet) or stripe (ORC), straight into row packs: there is nothing to compute,
so no Spark job is needed. Files of lines are cut by `line_slices`. Any other source is read in one go, and its packs
wait in the reader's outbox.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import BadInput
from engine.model.operator import Place, Source
from engine.model.problems import did_you_mean
from engine.operators import _formats
from engine.operators.file_sources import ColumnarSource, OrcSource, ParquetSource

# Packs live for seconds: what counts is how fast they are written and read again.
_WRITING = {"compression": "none", "use_dictionary": False, "write_statistics": False}


@dataclass(frozen=True)
class Slice:
    """A row group or stripe of a file, or a run of its lines."""

    file: Path
    number: int  # of lines: where they begin
    rows: int  # of lines: about so many
    bytes: int  # about what its rows take
    of_lines: bool = False


def slices_of(source: Source, place: Place) -> list[Slice] | None:
    """The pieces of a source of columns in order; None where it can only be read in one go."""
    if not isinstance(source, ParquetSource | OrcSource):
        return None
    path = place.path(source.path)
    files = _formats.data_files(path)
    if any(_formats.partition_columns(path, file) for file in files):
        return None  # Spark tells the folders' types from all of them
    found: list[Slice] = []
    for file in files:
        if isinstance(source, ParquetSource):
            from pyarrow import parquet

            footer = parquet.read_metadata(file)
            if any(footer.schema.column(at).physical_type == "INT96" for at in range(footer.num_columns)):
                return None  # what Spark makes of the old timestamps depends on who wrote them
            groups = [footer.row_group(group) for group in range(footer.num_row_groups)]
            found += [Slice(file, at, group.num_rows, group.total_byte_size) for at, group in enumerate(groups)]
        else:
            from pyarrow import orc

            opened = orc.ORCFile(file)
            share = file.stat().st_size // max(1, opened.nstripes)
            first = opened.schema.names[:1]  # a stripe read without columns has no rows
            for stripe in range(opened.nstripes):
                found.append(Slice(file, stripe, opened.read_stripe(stripe, columns=first).num_rows, share))
    return found


def write_packs(
    source: ColumnarSource, slices: list[Slice], folder: Path, pack_rows: int, first: int = 0
) -> Iterator[tuple[Path, int]]:
    """Read slices and write them as packs of at most so many rows, in order."""
    from pyarrow import parquet

    folder.mkdir(parents=True, exist_ok=True)
    number = first
    spelled: dict[Path, list[str] | None] = {}
    for slice_ in slices:
        if slice_.file not in spelled:
            spelled[slice_.file] = _as_in(source, slice_.file)
        table = _read(source, slice_, spelled[slice_.file])
        for start in range(0, table.num_rows, pack_rows):
            part = table.slice(start, pack_rows)
            file = folder / f"part-{number:06d}.parquet"
            parquet.write_table(part, file, store_decimal_as_integer=True, **_WRITING)
            number += 1
            yield file, part.num_rows


def _as_in(source: ColumnarSource, file: Path) -> list[str] | None:
    """The declared columns as a file spells them; None where all are read.

    Declarations and Spark do not mind the case of a name, what reads slices does: it leaves out what it does not find.
    """
    if not source.columns:
        return None
    there = _names(source, file)
    found = []
    for name in source.columns:
        same = [other for other in there if other.lower() == name.lower()]
        if not same:
            raise BadInput(f"{file}: there is no column `{name}`{did_you_mean(name, there)}")
        if len(same) > 1:
            shown = ", ".join(f"`{other}`" for other in same)
            raise BadInput(f"{file}: the column `{name}` is not clear; there are {shown}")
        found += same
    return found


def _names(source: ColumnarSource, file: Path) -> list[str]:
    if isinstance(source, ParquetSource):
        from pyarrow import parquet

        return list(parquet.read_schema(file).names)
    from pyarrow import orc

    return list(orc.ORCFile(file).schema.names)


def _read(source: ColumnarSource, slice_: Slice, columns: list[str] | None) -> Any:
    """The rows of a slice; `columns` are those that were declared, as its file spells them."""
    if isinstance(source, ParquetSource):
        from pyarrow import parquet

        with parquet.ParquetFile(slice_.file) as opened:
            table = opened.read_row_group(slice_.number, columns=columns, use_threads=True)
    else:
        import pyarrow as pa
        from pyarrow import orc

        table = pa.Table.from_batches([orc.ORCFile(slice_.file).read_stripe(slice_.number, columns=columns)])
    if columns is None:
        return table
    return table.select(columns).rename_columns(list(source.columns))

"""Extraction, live: rows made before are replayed at the asked rate, as row packs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from engine.errors import BadInput
from engine.schedule.queues import Pack
from engine.spark.packs import PackStore


class Replay:
    """The rows of a Parquet file, over and over, in packs. It counts what it gave."""

    def __init__(self, file: Path, store: PackStore, pack_rows: int) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        table = parquet.read_table(file)
        if not table.num_rows:
            raise BadInput(f"{file}: has no rows to replay")
        # Spark reads plain strings; a generator may have written views.
        fields = [field.with_type(pa.string()) if field.type == pa.string_view() else field for field in table.schema]
        self._table = table.cast(pa.schema(fields)).combine_chunks()
        self._store = store
        self._pack_rows = pack_rows
        self._at = 0
        self.generated = 0
        self.rounds = 0  # how often the file began anew

    def take(self, rows: int, nodes: int = 1) -> list[tuple[Pack, int]]:
        """The next rows, in packs that one holds; each with the place of its first row in the file.

        The packs are alike, and as many for one node as for the other: none works on while another has nothing to do.
        """
        packs = []
        nodes = max(nodes, 1)  # while one that died is replaced there may be none
        left = math.ceil(rows / self._pack_rows / nodes) * nodes
        while rows > 0:
            wanted = math.ceil(rows / left)
            piece = self._table.slice(self._at, wanted)
            left -= piece.num_rows == wanted  # the file's end cuts one off
            packs.append((self._written(piece), self._at))
            rows -= piece.num_rows
            self._at += piece.num_rows
            if self._at == self._table.num_rows:
                self._at = 0
                self.rounds += 1
        return packs

    def given(self) -> dict[int, int]:
        """What was given so far: how many of the file's first rows, and how often."""
        whole = {self._table.num_rows: self.rounds} if self.rounds else {}
        return whole | ({self._at: 1} if self._at else {})

    def write_first(self, rows: int, file: Path) -> None:
        """The file's first rows as a file of their own."""
        _write(self._table.slice(0, rows), file)

    def _written(self, piece: Any) -> Pack:
        folder = self._store.new_folder(piece.nbytes)
        folder.mkdir()
        file = folder / "rows.parquet"
        try:
            _write(piece, file)
            pack = self._store.adopt(file, piece.num_rows, 1)
        finally:
            self._store.remove_folder(folder)
        self.generated += piece.num_rows
        return pack


def _write(rows: Any, file: Path) -> None:
    from pyarrow import parquet

    parquet.write_table(rows, file, compression="none", use_dictionary=False, store_schema=False)

"""Dirt for TPC-H and SSB: NULLs, duplicates, broken formats and key misses in so large a share of the rows, by a seed.

They are clean, and cleansing clean data shows nothing. Every kind of dirt hits each row of a table with its own chance,
so the shares are the selectivities of what a workflow checks for. `region`, `nation` and `date` stay clean, and so do
primary keys, by which a row can still be told; only the supplier of an offer, half of its key, can be one that is not
there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from engine.errors import BadInput


@dataclass(frozen=True)
class Weak:
    """Where the tables of a data set can be hit."""

    critical: Mapping[str, tuple[str, ...]]  # columns that must not be NULL: `nulls` empties one in a row that is hit
    formatted: Mapping[str, str]  # the column with a format to break
    foreign: Mapping[str, tuple[str, ...]]  # foreign keys; that of a row that is hit leads nowhere afterwards

    def tables_of(self, kind: str) -> Collection[str]:
        """The tables that can have a kind of dirt."""
        able = {"broken": self.formatted, "key_misses": self.foreign}
        return able.get(kind, self.critical)


TPCH = Weak(
    critical={
        "supplier": ("s_nationkey", "s_phone"),
        "customer": ("c_nationkey", "c_phone"),
        "part": ("p_brand", "p_type", "p_size"),
        "partsupp": ("ps_availqty", "ps_supplycost"),
        "orders": ("o_custkey", "o_orderdate", "o_totalprice"),
        "lineitem": ("l_quantity", "l_extendedprice", "l_shipdate"),
    },
    formatted={
        "supplier": "s_phone",
        "customer": "c_phone",
        "part": "p_brand",
        "orders": "o_orderpriority",
        "lineitem": "l_shipmode",
    },
    foreign={
        "supplier": ("s_nationkey",),
        "customer": ("c_nationkey",),
        "partsupp": ("ps_suppkey",),
        "orders": ("o_custkey",),
        "lineitem": ("l_partkey", "l_suppkey"),
    },
)

SSB = Weak(
    critical={
        "supplier": ("s_city", "s_region"),
        "customer": ("c_city", "c_region"),
        "part": ("p_brand1", "p_category"),
        "lineorder": ("lo_quantity", "lo_discount", "lo_revenue"),
    },
    formatted={
        "supplier": "s_phone",
        "customer": "c_phone",
        "part": "p_brand1",
        "lineorder": "lo_shipmode",
    },
    foreign={"lineorder": ("lo_custkey", "lo_partkey", "lo_suppkey", "lo_orderdate")},
)

NOWHERE = 1_000_000_000  # added to a key that shall not be found

#: Ways a format breaks. None of them gives what a clean text is.
BREAKS: tuple[Callable[[str], str], ...] = (
    lambda text: f" {text} ",
    lambda text: f"{text[:1]}?{text[1:]}",
    lambda text: f"<{text.lower()}>",
    lambda text: "n/a",
)

KINDS = ("nulls", "broken", "key_misses", "duplicates")


@dataclass(frozen=True)
class Dirt:
    """The share of the rows of each table that each kind of dirt hits, from 0 to 1."""

    nulls: float = 0.0
    duplicates: float = 0.0
    broken: float = 0.0
    key_misses: float = 0.0
    seed: int = 1

    def __post_init__(self) -> None:
        for kind in KINDS:
            share = getattr(self, kind)
            if not 0 <= share <= 1:
                raise BadInput(f"--{kind.replace('_', '-')} {share:g}: give a share of the rows, from 0 to 1")

    def __bool__(self) -> bool:
        return any(getattr(self, kind) for kind in KINDS)

    def as_dict(self) -> dict[str, float]:
        """The shares that are not zero and the seed, as a marker keeps them; nothing where there is no dirt."""
        if not self:
            return {}
        return {name: value for name, value in asdict(self).items() if value or name == "seed"}


def make_dirty(folder: Path, tables: Sequence[str], dirt: Dirt, weak: Weak = TPCH) -> dict[str, dict[str, int]]:
    """Make the Parquet files of these tables dirty. Returns how many rows of each were hit, by kind of dirt."""
    able = [table for table in tables if table in weak.critical]
    return {table: _Table(table, dirt, weak).rewrite(folder / f"{table}.parquet") for table in able}


class _Table:
    """One table on its way through the dirt, one batch after the other.

    Each kind draws from a sequence of its own, so that a row's fate depends neither on the other kinds nor on how
    the file is cut into batches.
    """

    def __init__(self, table: str, dirt: Dirt, weak: Weak) -> None:
        import numpy as np

        self.table = table
        self.weak = weak
        self.shares = {kind: getattr(dirt, kind) if table in weak.tables_of(kind) else 0.0 for kind in KINDS}
        number = list(weak.critical).index(table)
        self.chances = {
            kind: np.random.default_rng([abs(dirt.seed), int(dirt.seed < 0), number, index])
            for index, kind in enumerate(KINDS)
        }
        self.hit = {kind: 0 for kind, share in self.shares.items() if share}

    def rewrite(self, path: Path) -> dict[str, int]:
        import pyarrow.parquet as pq

        clean = path.with_suffix(".clean")
        path.rename(clean)
        writer = None
        try:
            with pq.ParquetFile(clean) as file:
                for batch in file.iter_batches():
                    rows = self.dirty(batch)
                    if writer is None:
                        writer = pq.ParquetWriter(path, rows.schema)
                    writer.write_table(rows)
        finally:
            if writer is not None:
                writer.close()
        clean.unlink()
        return self.hit

    def dirty(self, batch: Any) -> Any:
        import numpy as np
        import pyarrow as pa

        columns = {
            name: column.cast(pa.string()) if column.type == pa.string_view() else column
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        }
        self._miss_keys(columns, batch.num_rows)
        self._break(columns, batch.num_rows)
        self._empty(columns, batch.num_rows)
        rows = pa.table(columns)
        twice, _ = self._draw("duplicates", batch.num_rows)
        return rows.take(pa.array(np.repeat(np.arange(batch.num_rows), 1 + twice))) if twice.any() else rows

    def _draw(self, kind: str, rows: int) -> tuple[Any, Any]:
        """Which rows are hit, and for each row a number from 0 to 1 that chooses how."""
        numbers = self.chances[kind].random((rows, 2))
        hit = numbers[:, 0] < self.shares[kind]
        if kind in self.hit:
            self.hit[kind] += int(hit.sum())
        return hit, numbers[:, 1]

    def _miss_keys(self, columns: dict[str, Any], rows: int) -> None:
        import numpy as np
        import pyarrow as pa

        hit, which = self._draw("key_misses", rows)
        names = self.weak.foreign.get(self.table, ())
        for index, name in enumerate(names):
            mask = hit & ((which * len(names)).astype(int) == index)
            if mask.any():
                keys = np.where(mask, NOWHERE, 0) + columns[name].to_numpy()
                columns[name] = pa.array(keys, columns[name].type)

    def _break(self, columns: dict[str, Any], rows: int) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        hit, which = self._draw("broken", rows)
        if not hit.any():
            return
        name = self.weak.formatted[self.table]
        mask = pa.array(hit)
        texts = columns[name].filter(mask).to_pylist()
        ways = (which[hit] * len(BREAKS)).astype(int)
        broken = [BREAKS[way](text) for way, text in zip(ways, texts, strict=True)]
        columns[name] = pc.replace_with_mask(columns[name], mask, pa.array(broken, pa.string()))

    def _empty(self, columns: dict[str, Any], rows: int) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        hit, which = self._draw("nulls", rows)
        names = self.weak.critical[self.table]
        for index, name in enumerate(names):
            mask = hit & ((which * len(names)).astype(int) == index)
            column = columns[name]
            columns[name] = pc.if_else(pa.array(mask), pa.scalar(None, column.type), column)

"""A look into the queues of a paused run: the first rows of each pack, as they lie there. Needs no Spark.

A run that is paused and still writes down which packs each queue holds and where they are; the file is gone once it
goes on. So whoever looks need not be the process that runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import BadInput
from engine.schedule.queues import Queue
from engine.spark.figures import column_figures, shown

if TYPE_CHECKING:
    from engine.spark.packs import PackStore

FILE = "paused.json"
PACK_ROWS = 50  # the first of each pack
PACKS = 40  # of a queue
SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"


def write_packs(folder: Path, queues: Mapping[str, Queue], store: PackStore) -> None:
    """Say which packs every queue holds, for as long as the run stands still."""
    held = {
        id_: [
            {"pack": pack.name, "rows": pack.rows, "bytes": pack.bytes, "path": str(store.path(pack))}
            for pack in queue.packs
        ]
        for id_, queue in queues.items()
    }
    part = folder / f"{FILE}.new"
    part.write_text(json.dumps(held), encoding="utf-8")
    part.replace(folder / FILE)


def forget_packs(folder: Path) -> None:
    """The run goes on: what was written is no longer true."""
    (folder / FILE).unlink(missing_ok=True)


def held_packs(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The packs of every queue of a paused run."""
    try:
        found: dict[str, list[dict[str, Any]]] = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadInput(
            f"{folder}: nothing to look into: packs can be seen while a scheduled run on Spark is paused"
        ) from None
    return found


def peek(folder: Path, queue: str) -> dict[str, Any]:
    """The packs of a queue with their first rows, and figures for each column. `join.left` names it by its end."""
    held = held_packs(folder)
    queue = next((id_ for id_ in held if id_.endswith(f"> {queue}")), queue)
    if queue not in held:
        raise BadInput(f"{folder}: there is no queue `{queue}`; there are {', '.join(held) or 'none'}")
    packs = held[queue]
    samples, kinds = _read(queue, packs[:PACKS])
    names = list(kinds)
    every = [row for rows in samples for row in rows]
    figures = [column_figures(name, kinds[name], [row[at] for row in every]) for at, name in enumerate(names)]
    return {
        "queue": queue,
        "columns": [one.as_dict() for one in figures],
        "packs": [
            {"pack": pack["pack"], "rows": pack["rows"], "bytes": pack["bytes"],
             "first": [[shown(cell) for cell in row] for row in rows]}
            for pack, rows in zip(packs, samples, strict=False)
        ],
        "left_out": max(0, len(packs) - PACKS),
        "total_rows": sum(pack["rows"] for pack in packs),
        "total_bytes": sum(pack["bytes"] for pack in packs),
    }  # fmt: skip


def _read(queue: str, packs: Iterable[Mapping[str, Any]]) -> tuple[list[list[list[Any]]], dict[str, str]]:
    """The first rows of each pack, and the columns with their types."""
    import pyarrow.parquet as pq

    samples: list[list[list[Any]]] = []
    kinds: dict[str, str] = {}
    for pack in packs:
        try:
            with pq.ParquetFile(pack["path"]) as file:
                kinds = kinds or _kinds(file)
                batch = next(file.iter_batches(PACK_ROWS), None)
        except FileNotFoundError:
            raise BadInput(f"{queue}: the run has gone on; pause it again") from None
        samples.append([] if batch is None else [list(row.values()) for row in batch.to_pylist()])
    return samples, kinds


def _kinds(file: Any) -> dict[str, str]:
    """Columns and Spark types of a pack, as Spark wrote them into its footer."""
    schema = file.schema_arrow
    said = (schema.metadata or {}).get(SPARK_SCHEMA)
    spark = {field["name"]: field["type"] for field in json.loads(said)["fields"]} if said else {}
    named = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}
    found = {}
    for field in schema:
        kind = spark.get(field.name, str(field.type))
        found[field.name] = named.get(kind, kind) if isinstance(kind, str) else str(kind.get("type"))
    return found

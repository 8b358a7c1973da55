"""A process that loads batches into a streaming table and is killed on the way, at every line in turn. No Spark.

Run as `python killed_table.py FOLDER EVERY`. What is wrong is printed; nothing means all is well.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from engine.spark import stream_store, stream_versions
from engine.spark.stream_store import TableStore
from engine.spark.stream_versions import DATA, LATE, Change, published
from tests.spark.killed import in_child

BATCHES, ROWS = 4, 4


def opened(folder: Path) -> TableStore:
    return TableStore(folder, "ts", 4_000_000)


def rows_of(number: int) -> pa.Table:
    times = [number * 1_000_000 + row * 1000 for row in range(ROWS)]
    return pa.table(
        {"ts": pa.array(times).cast(pa.timestamp("us", "UTC")), "id": [number * ROWS + row for row in range(ROWS)]}
    )


def load(folder: Path) -> None:
    """Load all batches that are not in the table yet; every third one has a record that came too late."""
    store = opened(folder)
    while (number := 0 if store.version.position is None else store.version.position + 1) < BATCHES:
        rows = rows_of(number)
        late = store.stage_late(rows.slice(0, 1)) if number % 3 == 2 else []
        add, drop = store.compacted(store.stage(rows.slice(1 if late else 0)))
        edge = (number + 1) * 1_000_000
        store.publish(Change(edge, edge, add, drop, late, {f"b{number}": [f"file-{number}", 1, 2]}, number))
    store.close()


def check(folder: Path, line: int) -> None:
    """What readers see is a number of whole batches; opened again, nothing else lies about."""
    version = published(folder) if folder.exists() else None
    if version is None:
        return
    loaded = 0 if version.position is None else version.position + 1
    try:
        store = opened(folder)
    except Exception as error:
        print(f"line {line}: cannot be opened: {error}")
        return
    if store.version != version:
        print(f"line {line}: readers saw {version}, the writer {store.version}")
    rows = store.read(None, None)
    ids = sorted(rows["id"].to_pylist()) if rows is not None else []
    late = version.late_rows
    wanted = [id_ for id_ in range(loaded * ROWS) if not (id_ % ROWS == 0 and id_ // ROWS % 3 == 2)]
    if ids != wanted or late != len([n for n in range(loaded) if n % 3 == 2]):
        print(f"line {line}: after {loaded} batches the table holds {ids}, {late} late")
    if sorted(version.batches) != sorted(f"b{number}" for number in range(loaded)):
        print(f"line {line}: batches {list(version.batches)}")
    for room, known in ((DATA, version.files), (LATE, version.late)):
        lying = {path.name for path in (folder / room).iterdir()} ^ set(known)
        if lying:
            print(f"line {line}: {room} differs from the journal by {lying}")
    store.close()


def main() -> None:
    base, every = Path(sys.argv[1]), int(sys.argv[2])
    stream_store.MOST_FILES, stream_store.CHECKPOINT_LINES, stream_store.KEEP_S = 2, 3, -1.0
    line, died = 1, True
    while died:
        folder = base / "table"
        shutil.rmtree(folder, ignore_errors=True)
        died = in_child(lambda folder=folder: load(folder), line, (stream_store.__file__, stream_versions.__file__))
        check(folder, line)
        load(folder)  # a restart goes on where it was
        check(folder, line)
        if published(folder).position != BATCHES - 1:
            print(f"line {line}: the restart stopped at {published(folder).position}")
        line += every
    print(f"killed up to line {line}", file=sys.stderr)


if __name__ == "__main__":
    main()

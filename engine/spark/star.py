"""A partitioned star schema: facts distributed by hash over n nodes, dimensions on every node (elastic, section 3).

What readers see is one manifest, replaced in one step: a query reads the distribution it began with to its end, and
never a mix of an old and a new one. Files that no reader and no manifest needs any more are removed.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from engine.errors import BadInput, RunFailed
from engine.spark.session import activate

MANIFEST = "manifest.json"
_NODE = "_papilio_node"
_TASK_BYTES = 4 << 20  # a task of its own costs more than to write fewer rows
# Queries share the cores with what moves facts, and wait for a core until a task ends: so tasks are short.
_TASK_ROWS = 100_000
_READ_BYTES = 8 << 20
_OPEN_BYTES = 1 << 18  # what a file costs beside its bytes: many small ones are read by one task


@dataclass(frozen=True)
class FactFile:
    """Facts of one node: where, and how many."""

    path: str
    rows: int
    bytes: int


@dataclass(frozen=True)
class Manifest:
    """A version of the warehouse: the facts of each node, and the dimensions, of which each node has a copy."""

    version: int = 0
    facts: tuple[tuple[FactFile, ...], ...] = ((),)
    dimensions: tuple[str, ...] = ()

    @property
    def nodes(self) -> int:
        """How many nodes the facts are distributed over."""
        return len(self.facts)

    @property
    def files(self) -> set[str]:
        """All files of facts."""
        return {file.path for part in self.facts for file in part}

    @property
    def rows(self) -> int:
        """All facts."""
        return sum(file.rows for part in self.facts for file in part)

    @property
    def bytes(self) -> int:
        """The size of all facts."""
        return sum(file.bytes for part in self.facts for file in part)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Manifest:
        """The manifest that was written down."""
        facts = tuple(tuple(FactFile(**file) for file in part) for part in data["facts"])
        return cls(data["version"], facts, tuple(data["dimensions"]))


@dataclass(frozen=True)
class Moved:
    """What a rebalancing did."""

    nodes_before: int
    nodes_after: int
    rows: int
    bytes: int
    seconds: float
    version: int


@dataclass
class StarWarehouse:
    """Loads, queries and rebalances. Several threads may use it; one rebalances at a time."""

    spark: SparkSession
    folder: Path
    facts: str  # the fact table's name
    key: str  # the column by whose hash facts are distributed
    current: Manifest = field(default_factory=Manifest)
    _schemas: dict[str, StructType] = field(default_factory=dict)
    _readers: dict[int, int] = field(default_factory=dict)  # version → how many read it
    _old: dict[str, int] = field(default_factory=dict)  # file, or copy of a dimension → the last version that had it
    _numbers: int = 0
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _writing: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._moving = self.spark.newSession()  # for settings of its own
        self._moving.conf.set("spark.sql.files.maxPartitionBytes", str(_READ_BYTES))
        self._moving.conf.set("spark.sql.files.openCostInBytes", str(_OPEN_BYTES))
        with contextlib.suppress(FileNotFoundError):
            self.current = Manifest.from_dict(json.loads((self.folder / MANIFEST).read_text(encoding="utf-8")))

    # -- filling

    def set_up(self, nodes: int, facts: StructType) -> None:
        """An empty warehouse of so many nodes."""
        self._schemas[self.facts] = facts
        with self._writing:
            self._commit(replace(self.current, facts=((),) * nodes))

    def put_dimension(self, name: str, rows: DataFrame) -> int:
        """Write a dimension and copy it to every node, before anybody asks. Returns its bytes on one node."""
        self._schemas[name] = rows.schema
        with self._writing:
            for earlier in self.folder.glob(f"node-*/{name}"):  # of another run in this folder
                shutil.rmtree(earlier)
            first = self._dimension(0, name)
            rows.coalesce(1).write.parquet(str(first))
            for node in range(1, self.current.nodes):
                self._replicate(name, node)
            others = tuple(other for other in self.current.dimensions if other != name)
            self._commit(replace(self.current, dimensions=(*others, name)))
        return _size(first)

    def _replicate(self, name: str, node: int) -> int:
        """Copy a dimension to a node. Returns the bytes that were copied.

        One that left this node may still be there, for queries that began before: it is the same, and stays.
        """
        first, target = self._dimension(0, name), self._dimension(node, name)
        with self._lock:
            self._old.pop(str(target), None)
            if target.is_dir():
                return 0
        new = target.with_name(f".new-{name}")
        shutil.rmtree(new, ignore_errors=True)
        shutil.copytree(first, new)
        os.rename(new, target)  # it is there whole, or not at all
        return _size(target)

    def load(self, packs: Sequence[Path], rows: int) -> Manifest:
        """Distribute packs of facts over the nodes. They are all there afterwards, or none of them."""
        activate(self.spark)
        with self._writing:
            written = self._distribute([str(pack) for pack in packs], self.current.nodes, rows)
            facts = tuple((*old, *new) for old, new in zip(self.current.facts, written, strict=True))
            return self._commit(replace(self.current, facts=facts))

    def _distribute(self, files: Sequence[str], nodes: int, rows: int) -> list[tuple[FactFile, ...]]:
        """Write the rows of files once more, each to the node that the hash of its key says."""
        if not files:
            return [()] * nodes
        with self._lock:
            self._numbers += 1
            number = self._numbers
        folder = self.folder / f"new-{os.getpid()}-{number}"
        frame = self._moving.read.schema(self._schemas[self.facts]).parquet(*files)
        try:
            if nodes == 1:
                tasks = math.ceil(sum(os.path.getsize(file) for file in files) / _TASK_BYTES)
                frame.coalesce(max(1, tasks)).write.parquet(str(folder))
                found = [self._adopt(folder, 0, number)]
            else:
                tasks = nodes * math.ceil(rows / nodes / _TASK_ROWS)
                task = F.pmod(F.xxhash64(self.key), F.lit(tasks)).cast("int")
                # A task's rows are all of one node, which is that of their hash: tasks are a multiple of nodes.
                placed = frame.withColumn(_NODE, task % nodes).repartitionById(tasks, task)
                placed.write.partitionBy(_NODE).parquet(str(folder))
                found = [self._adopt(folder / f"{_NODE}={part}", part, number) for part in range(nodes)]
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        written = sum(file.rows for part in found for file in part)
        if written != rows:
            for part in found:
                for file in part:
                    Path(file.path).unlink(missing_ok=True)
            raise RunFailed(f"{written:,} facts were written where {rows:,} were given; none of them is loaded")
        return found

    def _adopt(self, folder: Path, node: int, number: int) -> tuple[FactFile, ...]:
        from pyarrow import parquet

        home = self.folder / f"node-{node:03d}" / self.facts
        home.mkdir(parents=True, exist_ok=True)
        files = []
        for place, file in enumerate(sorted(folder.glob("*.parquet")) if folder.is_dir() else []):
            target = home / f"{number:06d}-{place:03d}.parquet"
            os.rename(file, target)
            files.append(FactFile(str(target), parquet.read_metadata(target).num_rows, target.stat().st_size))
        return tuple(files)

    # -- rebalancing

    def rebalance(self, nodes: int) -> Moved:
        """Distribute the facts over so many nodes while loads and queries go on.

        What is loaded meanwhile is distributed at the end, when loads wait for a moment. Then readers see all of it.
        """
        if nodes < 1:
            raise BadInput("a warehouse needs one node at least")
        activate(self.spark)
        begun = time.monotonic()
        with self.pinned() as before:
            new = range(before.nodes, nodes)
            copied = sum(self._replicate(name, node) for node in new for name in before.dimensions)
            moved = self._distribute(sorted(before.files), nodes, before.rows)
            with self._writing:
                since = [file for part in self.current.facts for file in part if file.path not in before.files]
                late = self._distribute([file.path for file in since], nodes, sum(file.rows for file in since))
                facts = tuple((*old, *new) for old, new in zip(moved, late, strict=True))
                total = self.current.rows
                manifest = replace(self.current, facts=facts)
                if manifest.rows != total:
                    raise RunFailed(f"rebalancing found {manifest.rows:,} facts where there are {total:,}")
                manifest = self._commit(manifest)
        return Moved(
            before.nodes, nodes, manifest.rows, manifest.bytes + copied, time.monotonic() - begun, manifest.version
        )

    # -- reading

    @contextlib.contextmanager
    def pinned(self) -> Iterator[Manifest]:
        """The warehouse as it is now; its files stay as long as this lasts."""
        with self._lock:
            manifest = self.current
            self._readers[manifest.version] = self._readers.get(manifest.version, 0) + 1
        try:
            yield manifest
        finally:
            with self._lock:
                self._readers[manifest.version] -= 1
                if not self._readers[manifest.version]:
                    del self._readers[manifest.version]
                self._remove_old()

    def query(self, sql: str) -> tuple[list[tuple[Any, ...]], int]:
        """The answer to a query on the star schema, written as for one server, and the version that it is of."""
        with self.pinned() as manifest:
            return [tuple(row) for row in self._planned(manifest, sql).collect()], manifest.version

    def check(self, sql: str) -> None:
        """Let Spark look at a query; what it does not know raises."""
        with self.pinned() as manifest:
            self._planned(manifest, sql)

    def _planned(self, manifest: Manifest, sql: str) -> DataFrame:
        activate(self.spark)
        session = self.spark.newSession()  # its own names: another query may read another version
        session.conf.set("spark.sql.ansi.enabled", "true")
        self.frame(manifest, session).createOrReplaceTempView(self.facts)
        replica = manifest.version % manifest.nodes  # readers share the copies
        for name in manifest.dimensions:
            path = str(self._dimension(replica, name))
            session.read.schema(self._schemas[name]).parquet(path).createOrReplaceTempView(name)
        return session.sql(sql)

    def frame(self, manifest: Manifest, session: SparkSession | None = None) -> DataFrame:
        """All facts of a version."""
        reader = (session or self.spark).read.schema(self._schemas[self.facts])
        files = sorted(manifest.files)
        return (
            reader.parquet(*files) if files else (session or self.spark).createDataFrame([], self._schemas[self.facts])
        )

    # -- manifests

    def _commit(self, manifest: Manifest) -> Manifest:
        """Readers see this from now on, whole."""
        manifest = replace(manifest, version=self.current.version + 1)
        text = json.dumps(asdict(manifest))
        new = self.folder / f"{MANIFEST}.new"
        with new.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        with self._lock:
            os.replace(new, self.folder / MANIFEST)
            for path in self.current.files - manifest.files:
                self._old[path] = self.current.version
            for node in range(manifest.nodes, self.current.nodes):
                for name in self.current.dimensions:
                    self._old[str(self._dimension(node, name))] = self.current.version
            self.current = manifest
            self._remove_old()
        return manifest

    def _remove_old(self) -> None:
        oldest = min(self._readers, default=self.current.version)
        for path in [path for path, last in self._old.items() if last < oldest]:
            del self._old[path]
            if os.path.isdir(path):
                shutil.rmtree(path, ignore_errors=True)
            else:
                Path(path).unlink(missing_ok=True)

    def _dimension(self, node: int, name: str) -> Path:
        return self.folder / f"node-{node:03d}" / name


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())

"""Packs as frames and frames as packs, for the units of one run."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from engine.model.binding import Bound, Link
from engine.model.operator import Built, Category, Role, Source, Split, Target, leaving, port_frame
from engine.schedule.build import PackUnits, Port
from engine.schedule.queues import Pack, Queue
from engine.spark.compile import PORT, CountedRows, NodeBuilder, in_one_job, tagged, writable
from engine.spark.failures import is_full
from engine.spark.packs import PackStore

MARGIN = 1.5  # packs may come out so much larger than was reckoned, or than those before them
_WIDTHS = {
    "boolean": 1,
    "tinyint": 4,
    "smallint": 4,
    "int": 4,
    "date": 4,
    "float": 4,
    "bigint": 8,
    "double": 8,
    "timestamp": 8,
    "timestamp_ntz": 8,
    "decimal": 16,
}  # bytes of a value in a pack
_LEAST_WIDTH = 4  # of a text: its length

_WRITTEN = re.compile(r"part-(\d+)-.*[-.]c(\d+)\.")  # a file's name as Spark gives it

Produced = list[tuple[Pack, tuple[Queue, ...]]]

# Packs live for seconds: what counts is how fast they are written and read again.
_WRITING = {
    "compression": "none",
    "parquet.enable.dictionary": "false",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "mapreduce.fileoutputcommitter.algorithm.version": "2",
}


class PackFrames:
    """Reads the packs of queues, builds units over them, writes what they give. Several threads may use it."""

    def __init__(
        self,
        bound: Bound,
        made: PackUnits,
        builder: NodeBuilder,
        store: PackStore,
        queues: Mapping[str, Queue],
        pack_rows: int,
    ) -> None:
        self.bound = bound
        self.made = made
        self.builder = builder
        self.store = store
        self.queues = queues
        self.pack_rows = pack_rows
        self.queue_of = {link: id_ for id_, link in made.links.items()}
        self.unit_of = {node: id_ for id_, part in made.parts.items() for node in part.nodes}
        self.ordered = ordered_ports(bound)
        self._schemas: dict[Port, StructType] = {}  # as they stand in the packs
        self._splits: dict[str, Split] = {}  # nodes whose ports are written in one job
        self._growth: dict[tuple[str, ...], float] = {}  # node and ports → the most that a job gave for its input
        self._lock = threading.RLock()

    # -- packs as frames

    def frame(self, queue: str, packs: Sequence[Pack]) -> DataFrame:
        """The rows of packs, as the node at the end of a queue reads them."""
        node, port = self.made.sources[queue]
        with self._lock:
            if (node, port) not in self._schemas and node not in self._splits:
                self._find_schema(node)
            split = self._splits.get(node)
            schema = self._schemas[node, port if split is None else ""]
        frame = self.rows_of(packs, schema, (node, port) in self.ordered)
        return frame if split is None else leaving(frame, split, split.ways[port])

    def rows_of(self, packs: Sequence[Pack], schema: StructType, ordered: bool = False) -> DataFrame:
        """The rows of packs whose columns are known."""
        if not packs:
            return self.builder.spark.createDataFrame([], schema)
        reader = self.builder.spark.read.schema(schema)
        files = [str(self.store.path(pack)) for pack in packs]
        if not ordered:
            return reader.parquet(*files)
        # Spark reads the largest file first; a union keeps the order of its parts.
        frame = reader.parquet(files[0])
        for file in files[1:]:
            frame = frame.unionAll(reader.parquet(file))
        return frame

    def know_schema(self, node: str, port: str, schema: StructType) -> None:
        """What the packs of a port look like."""
        with self._lock:
            self._schemas.setdefault((node, port), schema)

    def _know_split(self, node: str, split: Split) -> None:
        with self._lock:
            if node not in self._splits:
                self._schemas[node, ""] = writable(split.frame).schema
                self._splits[node] = split

    def _find_schema(self, node: str) -> None:
        """Build the unit of a node over no rows, to know what its packs look like."""
        unit = self.unit_of[node]
        ports = [port for name, port in self.made.ports[unit] if name == node]
        inputs = [queue for queue in self.made.queues if queue.consumer == unit]
        frames = {queue.id: self.frame(queue.id, []) for queue in inputs}
        if isinstance(self.bound.operators[node], Target):
            results: Built = next(iter(frames.values()))
        else:
            results = self.built(unit, frames, None, [])[node]
        if isinstance(results, Split) and in_one_job(results, tuple(ports)):
            self._know_split(node, results)
        else:
            for port in ports:
                self.know_schema(node, port, writable(port_frame(results, port)).schema)

    # -- building

    def built(
        self,
        unit: str,
        frames: Mapping[str, DataFrame],
        source: Built | None,
        counted: list[CountedRows],
        ready: Mapping[str, Built] | None = None,
    ) -> dict[str, Built]:
        """The nodes of a unit over the frames of its queues, and of its source where that was read already.

        `ready` holds nodes that were built in another way.
        """
        built: dict[str, Built] = dict(ready or {})
        for node in self.made.parts[unit].nodes:
            if node in built:
                continue
            if source is not None and self.bound.role(node) is Role.SOURCE:
                built[node] = source
                continue
            inputs: dict[str, list[DataFrame]] = {}
            for link in self.bound.incoming.get(node, ()):
                queue = self.queue_of.get(link)
                if queue is None:
                    frame = port_frame(built[link.source], link.source_port)
                else:
                    frame = frames[queue] if queue in frames else self.frame(queue, [])
                inputs.setdefault(link.target_port, []).append(frame)
            built[node] = self.builder.build_node(node, inputs, counted)
        return built

    # -- frames as packs

    def write(self, unit: str, built: Mapping[str, Built], size: int | None) -> Produced:
        """Write what a unit gives: one job for each node, for all its ports where they can go together.

        `size` is how many bytes it is made of; where nobody can tell, it is written to disk, as it may be too much
        for the memory.
        """
        by_node: dict[str, list[str]] = {}
        for node, port in self.made.ports[unit]:
            by_node.setdefault(node, []).append(port)
        produced: Produced = []
        for node, ports in by_node.items():
            result = built[node]
            if isinstance(result, Split) and in_one_job(result, tuple(ports)):
                self._know_split(node, result)
                most = size * len(ports) if size is not None and result.overlapping else size
                produced += self._written(tagged(result, tuple(ports)), node, ports, most, by_port=True)
            else:
                for port in ports:
                    produced += self.write_port(port_frame(result, port), node, port, size)
        return produced

    def write_port(self, frame: DataFrame, node: str, port: str, size: int | None) -> Produced:
        """Write the rows that leave by one port."""
        frame = writable(frame)
        self.know_schema(node, port, frame.schema)
        return self._written(frame, node, [port], size, by_port=False)

    def _written(self, frame: DataFrame, node: str, ports: Sequence[str], size: int | None, by_port: bool) -> Produced:
        queues = {port: self.queues_of(node, port) for port in ports}
        staged = any(is_staged(queues[port]) for port in ports)
        expected = self._expected(node, ports, size, frame.schema)
        folder = self.store.new_folder(expected or 0, on_disk=staged or expected is None)
        produced: Produced = []
        try:
            folder = self._save_somewhere(writable(frame), folder, by_port)
            for port in ports:
                where = folder / f"{PORT}={port}" if by_port else folder
                for file, rows in _files(where):
                    produced.append((self.store.adopt(file, rows, len(queues[port])), queues[port]))
        finally:
            self.store.remove_folder(folder)
        if size:
            growth = sum(pack.bytes for pack, _ in produced) / size
            with self._lock:
                self._growth[node, *ports] = max(growth, self._growth.get((node, *ports), 1.0))
        return produced

    def _expected(self, node: str, ports: Sequence[str], size: int | None, schema: StructType) -> int | None:
        """About how many bytes a job gives that is made of so many, None where nobody can tell."""
        if size is None:
            return None
        with self._lock:
            growth = self._growth.get((node, *ports))
        if growth is None:
            growth = self._unseen_growth(self.unit_of[node], schema)
        return None if growth is None else int(size * growth * MARGIN)

    def _unseen_growth(self, unit: str, schema: StructType) -> float | None:
        """How many times as large as its input a unit's packs may be, before anybody has seen some.

        How long a new text is nobody knows: such packs go to disk the first time.
        """
        taken: dict[str, str] = {}
        for node in self.made.parts[unit].nodes:
            operator = self.bound.operators[node]
            if operator.adds_rows:
                return None
            if isinstance(operator, Source) and operator.role is Role.SOURCE:
                taken |= operator.declared() or operator.discover(self.builder.place) or {}
        for queue, link in self.made.links.items():
            if self.unit_of[link.target] == unit and self._is_main(link):
                known = self._schemas.get(self.made.sources[queue])
                taken |= {} if known is None else _columns(known)
        added = [width_of(kind) for name, kind in _columns(schema).items() if taken.get(name) != kind]
        if not taken or None in added:
            return None
        return 1 + sum(width or 0 for width in added) / (_LEAST_WIDTH * len(taken))

    def _is_main(self, link: Link) -> bool:
        """Whether a link ends on the port by which the rows come that its node works on."""
        return link.target_port == self.bound.operators[link.target].input_ports()[0].name

    def write_kept(self, frame: DataFrame) -> list[Pack]:
        """Write rows that a unit keeps for itself, on disk."""
        folder = self.store.new_folder(on_disk=True)
        self._save(frame, folder, by_port=False)
        kept = [self.store.adopt(file, rows, 1) for file, rows in _files(folder)]
        self.store.remove_folder(folder)
        return kept

    def _save_somewhere(self, frame: DataFrame, folder: Path, by_port: bool) -> Path:
        """Write packs; where the memory turns out to be full, as others use it too, they are written to disk."""
        try:
            self._save(frame, folder, by_port)
        except Exception as error:
            if not self.store.is_in_memory(folder) or not is_full(error):
                raise
            self.store.remove_folder(folder)
            folder = self.store.new_folder(on_disk=True)
            self._save(frame, folder, by_port)
        return folder

    def _save(self, frame: DataFrame, folder: Path, by_port: bool) -> None:
        writer = frame.write.options(**_WRITING).option("maxRecordsPerFile", self.pack_rows)
        (writer.partitionBy(PORT) if by_port else writer).parquet(str(folder))

    def queues_of(self, node: str, port: str) -> tuple[Queue, ...]:
        """The queues that the packs of a port go into."""
        return tuple(self.queues[id_] for id_ in self.made.ports[self.unit_of[node]][node, port])


def width_of(kind: str) -> int | None:
    """The bytes of a value of a type in a pack, None where they are not always the same."""
    return _WIDTHS.get(kind.partition("(")[0])


def _columns(schema: StructType) -> dict[str, str]:
    return {field.name: field.dataType.simpleString() for field in schema}


def is_staged(queues: Sequence[Queue]) -> bool:
    """Whether packs that go into these queues are kept for another subflow, and so lie on disk from the start.

    Those who read them there may work at the same time: none of them may move a file that another one reads.
    """
    return any(queue.capacity is None for queue in queues)


def _place(file: Path) -> tuple[int, int]:
    """The task that wrote a file, and how many it wrote before; as text, Spark's 1000th stands before its 101st."""
    found = _WRITTEN.match(file.name)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _files(folder: Path) -> list[tuple[Path, int]]:
    """The packs that were written into a folder, in their order, with their rows; those without rows left out."""
    from pyarrow import parquet

    files = sorted(folder.glob("*.parquet"), key=_place) if folder.is_dir() else []
    counted = [(file, parquet.read_metadata(file).num_rows) for file in files]
    return [(file, rows) for file, rows in counted if rows]


def ordered_ports(bound: Bound) -> set[Port]:
    """The ports whose packs are read in their order: behind a sort, and on the whole line that leads to several
    threads or comes from them, as far as rows pass one by one."""
    ordered: set[Port] = set()
    for node in bound.order:
        operator = bound.operators[node]
        main = bound.incoming.get(node, [])[:1]
        keeps = operator.category is Category.ROW_SYNCHRONIZED
        follows = keeps and any((link.source, link.source_port) in ordered for link in main)
        threads = bound.workflow.nodes[node].threads
        if operator.name == "sort" or follows or threads:
            ordered |= {(node, port.name) for port in operator.output_ports()}
        while threads and main and keeps:
            source = main[0].source
            ordered.add((source, main[0].source_port))
            keeps = bound.operators[source].category is Category.ROW_SYNCHRONIZED
            main = bound.incoming.get(source, [])[:1]
    return ordered

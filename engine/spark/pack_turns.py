"""Carries out the turns that the monitor decides on: a turn of a unit is one Spark job over the packs it may take.

It is several jobs where the unit has several results, or where its input is cut into splits that are worked on side
by side (shared caching, algorithm 2).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from engine.events import DegreeMeasured, EventLog
from engine.model.operator import BuildInputs, Built, Mode, PassOn, Role, Source, Target, port_frame
from engine.operators.file_sources import ColumnarSource
from engine.operators.line_sources import LineSource
from engine.operators.warehouse import Aggregate
from engine.schedule.queues import Pack, Queue
from engine.schedule.turn import Activation, Outcome, Step
from engine.schedule.unit import Unit
from engine.spark.compile import CountedRows
from engine.spark.line_slices import LineCopies, line_slices
from engine.spark.pack_frames import PackFrames, Produced, is_staged, width_of
from engine.spark.pipelines import SAMPLE_SPLITS, WORTH_MEASURING, Pipelines
from engine.spark.slices import Slice, slices_of, write_packs
from engine.spark.targets import Delivery
from engine.spark.tools import SparkTools, size_of

SUM_UP_PACKS = 4  # a blocking aggregate that puts aside so many packs at once sums them up first

_Item = TypeVar("_Item")


@dataclass
class Turn:
    """What a worker made of one activation."""

    activation: Activation
    outcome: Outcome = field(default_factory=lambda: Outcome(0.0))
    kept: list[Pack] = field(default_factory=list)  # summed-up rows that the unit keeps
    cursor: int | None = None  # of a source: how many slices were read so far; -1 for all of it in one go
    refused: list[tuple[str, int, dict[str, int]]] = field(default_factory=list)
    delivery: dict[str, Any] | None = None
    splits: int = 0  # that were worked on side by side
    split_seconds: float = 0.0
    error: BaseException | None = None

    def taken(self) -> dict[str, list[Pack]]:
        """The packs at the front of the queues that the activation is about, before they are taken."""
        return {queue.spec.id: list(queue.packs)[:count] for queue, count in self.activation.take}

    def counted(self, counted: Sequence[CountedRows]) -> None:
        """Note the rows that nodes refused in this turn."""
        self.refused += [(one.node, *one.get()) for one in counted]


@dataclass
class Reader:
    """A source and how far it was read."""

    node: str
    slices: list[Slice] | None
    cursor: int = 0
    schema: StructType | None = None
    growth: float = 1.0  # the most that its slices took as packs, for what their files say
    copies: LineCopies | None = None  # of a source of lines

    @property
    def of_lines(self) -> bool:
        """Whether the slices are lines: Spark parses them, and their rows are an estimate."""
        return bool(self.slices) and self.slices[0].of_lines  # type: ignore[index]


class PackTurns:
    """The units' own state (what they put aside, how far they read), and what they do in a turn."""

    def __init__(
        self,
        frames: PackFrames,
        units: Mapping[str, Unit],
        deliveries: Mapping[str, Delivery],
        pipelines: Pipelines,
        log: EventLog,
        enter: Callable[[str], None],
    ) -> None:
        """`enter` makes the thread it is called in one that works for a unit."""
        self.frames = frames
        self.bound = frames.bound
        self.deliveries = deliveries
        self.pipelines = pipelines
        self.log = log
        self.enter = enter
        self.spark = frames.builder.spark
        self.absorbed: dict[str, list[Pack]] = {id_: [] for id_ in frames.made.links}
        self.summed: dict[str, list[Pack]] = {}  # unit → what it summed up already
        self.readers: dict[str, Reader] = {}
        self._two_steps: dict[str, tuple[Aggregate, Aggregate] | None] = {}
        for unit in units.values():
            for node in unit.spec.nodes:
                operator = self.bound.operators[node]
                if isinstance(operator, Source) and operator.role is Role.SOURCE:
                    self.readers[unit.id] = self._reader(node, operator)

    def _reader(self, node: str, source: Source) -> Reader:
        place = self.frames.builder.place
        if isinstance(source, LineSource):
            return Reader(node, line_slices(source, place, self.frames.pack_rows), copies=LineCopies(source))
        return Reader(node, slices_of(source, place))

    def carry_out(self, turn: Turn) -> None:
        """Do what an activation says; what came of it is in the turn."""
        activation = turn.activation
        unit = activation.unit
        begun = time.monotonic()
        match activation.step:
            case Step.ABSORB:
                self._absorb(turn)
            case Step.READ:
                self._read(turn)
            case Step.PROCESS:
                self._process(turn, self._splits(unit, turn.taken()))
            case Step.WHOLE if isinstance(self.bound.operators[unit.spec.nodes[0]], Target):
                self._load(turn, unit.spec.nodes[0])
            case Step.WHOLE:
                self._whole(turn)
        if turn.splits:
            rows = turn.outcome.rows_read + sum(pack.rows for found in turn.taken().values() for pack in found)
            self.pipelines.took(unit.id, rows, turn.splits, turn.split_seconds)
        turn.outcome.seconds = time.monotonic() - begun

    def took(self, turn: Turn, taken: Mapping[str, list[Pack]]) -> list[Pack]:
        """A turn is over, or replayed: what it did to the unit's own state. Gives the packs that it lets go."""
        activation = turn.activation
        unit = activation.unit
        packs = [pack for found in taken.values() for pack in found]
        if turn.cursor is not None:
            self.readers[unit.id].cursor = turn.cursor
        if activation.step is Step.ABSORB and not turn.kept:
            for id_, found in taken.items():
                self.absorbed[id_] += found
            return []
        if activation.step is Step.ABSORB:
            self.summed.setdefault(unit.id, []).extend(turn.kept)
        if activation.step is Step.WHOLE:
            packs += self.forget(unit.inputs) + self.summed.pop(unit.id, [])
        return packs

    def forget(self, queues: Sequence[Queue]) -> list[Pack]:
        """The packs that were put aside out of these queues, which are no longer needed."""
        gone = [pack for queue in queues for pack in self.absorbed[queue.spec.id]]
        self.absorbed.update({queue.spec.id: [] for queue in queues})
        return gone

    # -- streams

    def _process(self, turn: Turn, splits: Sequence[Mapping[str, list[Pack]]]) -> None:
        unit = turn.activation.unit
        size = sum(pack.bytes for split in splits for packs in split.values() for pack in packs)
        self._side_by_side(turn, [partial(self._pipeline, unit, split, None, size) for split in splits])

    def _pipeline(
        self, unit: Unit, packs: Mapping[str, list[Pack]], source: DataFrame | None, size: int | None
    ) -> tuple[Produced, list[CountedRows]]:
        """One split through all nodes of a unit; `size` is about what it gives in bytes, where that is known."""
        counted: list[CountedRows] = []
        built = self.frames.built(unit.id, self._inputs(unit, packs), source, counted)
        return self._written(unit, built, size, counted)

    def _written(
        self, unit: Unit, built: Mapping[str, Built], size: int | None, counted: list[CountedRows]
    ) -> tuple[Produced, list[CountedRows]]:
        produced = self.frames.write(unit.id, built, size)
        for one in counted:
            one.get()  # while what was read is still there
        return produced, counted

    def _inputs(self, unit: Unit, packs: Mapping[str, list[Pack]]) -> dict[str, DataFrame]:
        """The frames of a unit's queues: these packs, and all of what it looks up in."""
        found = {id_: self.frames.frame(id_, some) for id_, some in packs.items()}
        for queue in unit.references:
            found[queue.spec.id] = self.frames.frame(queue.spec.id, self.absorbed[queue.spec.id])
        return found

    def _side_by_side(self, turn: Turn, jobs: Sequence[Callable[[], tuple[Produced, list[CountedRows]]]]) -> None:
        """Run the splits of a turn; what they give stands in their order (the row-order synchronizer)."""
        begun = time.monotonic()
        results = [jobs[0]()] if len(jobs) == 1 else self._together(turn.activation.unit, jobs)
        turn.splits, turn.split_seconds = len(jobs), time.monotonic() - begun
        turn.outcome.produced = [pack for produced, _ in results for pack in produced]
        for _, counted in results:
            turn.counted(counted)

    def _together(self, unit: Unit, jobs: Sequence[Callable[[], _Item]]) -> list[_Item]:
        """Several jobs of a unit at a time, their results in order."""
        # The pool's own queue is algorithm 2's: no more than so many splits are on their way at a time.
        with ThreadPoolExecutor(min(len(jobs), self.pipelines.most), initializer=lambda: self.enter(unit.id)) as pool:
            return [future.result() for future in [pool.submit(job) for job in jobs]]

    # -- splits

    def _splits(self, unit: Unit, taken: Mapping[str, list[Pack]]) -> list[dict[str, list[Pack]]]:
        """The packs of a turn cut into splits, in order."""
        packs = [(id_, pack) for id_, found in taken.items() for pack in found]
        count = min(len(packs), self._split_count(unit, sum(pack.rows for _, pack in packs), taken))
        if count <= 1:
            return [dict(taken)]
        splits: list[dict[str, list[Pack]]] = []
        for part in _even(packs, count):
            splits.append({})
            for id_, pack in part:
                splits[-1].setdefault(id_, []).append(pack)
        return splits

    def _split_count(self, unit: Unit, rows: int, sample: Mapping[str, list[Pack]]) -> int:
        """How many: as a node asks for, or as was measured on the first packs."""
        threads = max(self.bound.workflow.nodes[node].threads or 1 for node in unit.spec.nodes)
        if self.pipelines.must_measure(unit.id) and len(unit.spec.nodes) > 1 and rows:
            self._measure(unit, sample, rows)
        return max(threads, self.pipelines.splits(unit.id, rows))

    def _measure(self, unit: Unit, sample: Mapping[str, list[Pack]], rows: int) -> None:
        """Algorithm 3 on the first of the packs, or of the first slice's, where there are many more to take."""
        nodes = unit.spec.nodes
        feeds = {
            node: next((link.source for link in self.bound.incoming.get(node, ()) if link.source in nodes), None)
            for node in nodes
        }
        reader = self.readers.get(unit.id)
        if reader is not None and reader.of_lines:
            return
        if reader is not None:
            self._measure_read(unit, reader, feeds, rows)
            return
        packs = [(id_, pack) for id_, found in sample.items() for pack in found][:SAMPLE_SPLITS]
        if len(packs) < SAMPLE_SPLITS or rows < WORTH_MEASURING * sum(pack.rows for _, pack in packs):
            return

        def frames(splits: Sequence[int]) -> dict[str, DataFrame]:
            given: dict[str, list[Pack]] = {id_: [] for id_ in sample}
            for split in splits:
                id_, pack = packs[split]
                given[id_].append(pack)
            return self._results(unit, self._inputs(unit, given), None)

        self._measured(unit, feeds, frames, [pack.rows for _, pack in packs], 0.0)

    def _measure_read(self, unit: Unit, reader: Reader, feeds: Mapping[str, str | None], rows: int) -> None:
        slices = (reader.slices or [])[:SAMPLE_SPLITS]
        pack_rows = min(self.frames.pack_rows, rows // (WORTH_MEASURING * SAMPLE_SPLITS))
        if not slices or not pack_rows:
            return
        store, folder = self.frames.store, self._folder_for(reader, slices)
        try:
            begun = time.monotonic()
            packs = islice(self._packs_of(reader, slices, folder, pack_rows), SAMPLE_SPLITS)
            files = [(store.wrote(file), count) for file, count in packs]
            seconds = time.monotonic() - begun
            schema = self._schema_of(reader)

            def frames(splits: Sequence[int]) -> dict[str, DataFrame]:
                source = self._frame_of([files[split][0] for split in splits], schema)
                return self._results(unit, self._inputs(unit, {}), source)

            if len(files) == SAMPLE_SPLITS:
                self._measured(unit, feeds, frames, [count for _, count in files], seconds)
        finally:
            store.remove_folder(folder)

    def _results(self, unit: Unit, inputs: Mapping[str, DataFrame], source: DataFrame | None) -> dict[str, DataFrame]:
        """What each node of a unit gives by its first port."""
        built = self.frames.built(unit.id, inputs, source, [])
        ports = {node: self.bound.operators[node].output_ports()[0].name for node in unit.spec.nodes}
        return {node: port_frame(built[node], port) for node, port in ports.items()}

    def _measured(
        self,
        unit: Unit,
        feeds: Mapping[str, str | None],
        frames: Callable[[Sequence[int]], Mapping[str, DataFrame]],
        rows: Sequence[int],
        seconds: float,
    ) -> None:
        together = partial(self._together, unit)
        found = self.pipelines.measure(unit.id, unit.spec.nodes, feeds, frames, rows, together, seconds)
        self.log.add(
            DegreeMeasured(
                unit=unit.id,
                staggering=found.staggering,
                misc_seconds=found.misc_seconds,
                net_seconds=found.net_seconds,
                row_seconds=found.row_seconds,
                rows=found.rows,
            )
        )

    # -- blocking units

    def _absorb(self, turn: Turn) -> None:
        """Put packs aside, on disk; an aggregate sums them up where that is exact and worth a job."""
        unit = turn.activation.unit
        taken = turn.taken()
        packs = [pack for found in taken.values() for pack in found]
        steps = self._steps(unit)
        if steps is None or len(packs) < SUM_UP_PACKS:
            self.frames.store.to_disk(packs)
            return
        frame = self.frames.frame(unit.inputs[0].spec.id, taken[unit.inputs[0].spec.id])
        turn.kept = self.frames.write_kept(self._aggregated(steps[0], frame))

    def _steps(self, unit: Unit) -> tuple[Aggregate, Aggregate] | None:
        """The two steps of a unit that is an aggregate whose functions allow it."""
        if unit.id not in self._two_steps:
            node = unit.spec.nodes[0]
            operator = self.bound.operators[node]
            steps = None
            if isinstance(operator, Aggregate) and len(unit.inputs) == 1 and not unit.references:
                link = self.frames.made.links[unit.inputs[0].spec.id]
                schema = self.bound.schemas.get((link.source, link.source_port))
                steps = operator.in_two_steps(schema) if link.target == node else None
            self._two_steps[unit.id] = steps
        return self._two_steps[unit.id]

    def _aggregated(self, step: Aggregate, frame: DataFrame) -> DataFrame:
        made = step.build(BuildInputs({"in": [frame]}), SparkTools(self.spark, step, self.frames.builder.place))
        return port_frame(made, "out")

    def _whole(self, turn: Turn) -> None:
        """A blocking unit works on all that it put aside."""
        unit = turn.activation.unit
        packs = {queue.spec.id: self.absorbed[queue.spec.id] for queue in unit.inputs}
        counted: list[CountedRows] = []
        frames = self._inputs(unit, packs)
        ready: dict[str, Built] = {}
        summed = self.summed.get(unit.id)
        if summed:
            steps = self._steps(unit)
            assert steps is not None
            node, rest = unit.spec.nodes[0], frames[unit.inputs[0].spec.id]
            once = self._aggregated(steps[0], rest)
            kept = self.frames.rows_of(summed, once.schema)
            both = kept if not packs[unit.inputs[0].spec.id] else once.unionAll(kept)
            wanted = port_frame(self.frames.builder.build_node(node, {"in": [rest]}, []), "out").schema
            ready[node] = self._aggregated(steps[1], both).to(wanted)
        size = sum(pack.bytes for found in [*packs.values(), summed or []] for pack in found)
        built = self.frames.built(unit.id, frames, None, counted, ready)
        turn.outcome.produced = self.frames.write(unit.id, built, size)
        turn.counted(counted)

    def _load(self, turn: Turn, node: str) -> None:
        """Stage all rows of a target; those who read the table itself get it as packs."""
        unit = turn.activation.unit
        queue = unit.inputs[0].spec.id
        target = self.deliveries[node]
        target.write(self.frames.frame(queue, self.absorbed[queue]))
        turn.delivery = target.state()
        operator = self.bound.operators[node]
        assert isinstance(operator, Target)
        size = None  # what the table held before comes to it
        if operator.mode is Mode.OVERWRITE or operator.pass_on is PassOn.DELIVERED:
            size = sum(pack.bytes for pack in self.absorbed[queue])
        for _, port in self.frames.made.ports[unit.id]:
            turn.outcome.produced = self.frames.write_port(target.read(self.spark), node, port, size)

    # -- sources

    def _read(self, turn: Turn) -> None:
        """As many slices of a source as the turn allows, or all of it in one go by Spark itself."""
        unit, allowed = turn.activation.unit, turn.activation.read_packs
        reader = self.readers[unit.id]
        slices = reader.slices
        if slices is None or (reader.cursor == 0 and self._in_one_go(unit, slices, allowed)):
            self._side_by_side(turn, [partial(self._pipeline, unit, {}, None, self._pack_bytes(reader))])
            turn.cursor = -1
            turn.outcome.exhausted = True
            turn.outcome.rows_read = self._rows_read(turn, reader, slices or ()) or 0
            return
        chosen: list[Slice] = []
        packs = 0.0
        for slice_ in slices[reader.cursor :]:
            packs += self._packs_of_slice(slice_)
            if chosen and packs > allowed:
                break
            chosen.append(slice_)
        self._read_slices(turn, reader, chosen)
        turn.cursor = reader.cursor + len(chosen)
        turn.outcome.exhausted = turn.cursor == len(slices)
        rows = self._rows_read(turn, reader, chosen)
        turn.outcome.rows_read = sum(slice_.rows for slice_ in chosen) if rows is None else rows

    def _rows_read(self, turn: Turn, reader: Reader, chosen: Sequence[Slice]) -> int | None:
        """The rows that a source gave in a turn, None where nobody counted them."""
        unit = turn.activation.unit.id
        produced = dict.fromkeys(self.frames.made.ports[unit], 0)
        for pack, queues in turn.outcome.produced:
            produced[self.frames.made.sources[queues[0].spec.id]] += pack.rows
        known = self._known_rows(reader, chosen)
        if known is None:
            known = produced.pop((reader.node, "out"), None)
        if known is None and (counted := [one for one in turn.refused if one[0] == reader.node]):
            elsewhere = sum(rows for (node, _), rows in produced.items() if node == reader.node)
            known = sum(total - sum(ports.values()) for _, total, ports in counted) - elsewhere
        return known

    def _known_rows(self, reader: Reader, chosen: Sequence[Slice] = ()) -> int | None:
        """The rows of a source, or of these slices of it, that need not be read to be counted."""
        if reader.slices is not None:
            return None if reader.of_lines else sum(slice_.rows for slice_ in chosen or reader.slices)
        source = self.bound.operators[reader.node]
        return source.held_rows(self.frames.builder.place) if isinstance(source, Source) else None

    def knows_rows(self, unit: str, counted: Collection[str]) -> bool:
        """Whether the rows that a unit's source gave are known; those of nodes in `counted` were, in passing."""
        reader = self.readers[unit]
        own = (reader.node, "out") in self.frames.made.ports[unit]
        return own or reader.node in counted or self._known_rows(reader) is not None

    def _pack_bytes(self, reader: Reader) -> int | None:
        """What all rows of a source take as packs, None where nobody knows: what files say of themselves is less."""
        known = reader.slices and not reader.of_lines
        widths = [width_of(field.dataType.simpleString()) for field in self._schema_of(reader)] if known else []
        if not widths or None in widths:
            return None
        return sum(slice_.rows for slice_ in reader.slices or ()) * sum(width or 0 for width in widths)

    def _in_one_go(self, unit: Unit, slices: list[Slice], allowed: int) -> bool:
        if not slices:
            return True  # there are files, and no rows in them
        if self._packs_in(slices) > allowed or self._in_order(self.readers[unit.id]):
            return False
        rows = sum(slice_.rows for slice_ in slices)
        return len(slices) == 1 or self._split_count(unit, rows, {}) == 1

    def _in_order(self, reader: Reader) -> bool:
        """Whether a job may read one file only: of several, Spark reads the largest first."""
        return (reader.node, "out") in self.frames.ordered

    def _packs_in(self, slices: Sequence[Slice]) -> int:
        return math.ceil(sum(map(self._packs_of_slice, slices)))

    def _packs_of_slice(self, slice_: Slice) -> float:
        """A row group begins a pack of its own; lines of several files come to stand in one."""
        packs = slice_.rows / self.frames.pack_rows
        return packs if slice_.of_lines else math.ceil(packs)

    def _read_slices(self, turn: Turn, reader: Reader, chosen: list[Slice]) -> None:
        """Row groups become packs; where other nodes belong to the unit, Spark works on them at once. So it does on
        lines.
        """
        unit = turn.activation.unit
        if reader.of_lines:
            in_order = self._in_order(reader)
            rows = sum(slice_.rows for slice_ in chosen)
            count = len(chosen) if in_order else min(len(chosen), self._split_count(unit, rows, {}))
            self._side_by_side(turn, [partial(self._from_lines, unit, reader, part) for part in _even(chosen, count)])
            return
        if unit.spec.nodes != (reader.node,):
            count = min(len(chosen), self._split_count(unit, sum(slice_.rows for slice_ in chosen), {}))
            self._side_by_side(turn, [partial(self._from_slices, unit, reader, part) for part in _even(chosen, count)])
            return
        (node, port) = next(iter(self.frames.made.ports[unit.id]))
        self.frames.know_schema(node, port, self._schema_of(reader))
        queues = self.frames.queues_of(node, port)
        store, folder = self.frames.store, self._folder_for(reader, chosen, on_disk=is_staged(queues))
        turn.outcome.produced = [
            (store.adopt(file, rows, len(queues)), queues) for file, rows in self._packs_of(reader, chosen, folder)
        ]
        store.remove_folder(folder)
        self._saw(reader, chosen, sum(pack.bytes for pack, _ in turn.outcome.produced))

    def _from_lines(self, unit: Unit, reader: Reader, part: list[Slice]) -> tuple[Produced, list[CountedRows]]:
        """Lines through all nodes of a unit; how large they become as packs nobody can tell."""
        assert reader.copies is not None
        folder = self.frames.store.new_folder(on_disk=True)
        counted: list[CountedRows] = []
        try:
            copies = 1 if self._in_order(reader) else self.spark.sparkContext.defaultParallelism
            lines = reader.copies.copied(part, folder, copies)
            source = lines.told(self.frames.builder.build_node(reader.node, {}, counted, files=lines.files))
            built = self.frames.built(unit.id, self._inputs(unit, {}), source, counted)
            return self._written(unit, built, None, counted)
        finally:
            self.frames.store.remove_folder(folder)

    def _from_slices(self, unit: Unit, reader: Reader, part: list[Slice]) -> tuple[Produced, list[CountedRows]]:
        folder, files = self._sliced(reader, part)
        try:
            frame = self._frame_of(files, self._schema_of(reader))
            return self._pipeline(unit, {}, frame, size_of(files))
        finally:
            self.frames.store.remove_folder(folder)

    def _sliced(self, reader: Reader, chosen: list[Slice]) -> tuple[Path, list[Path]]:
        """Slices of a source as files of packs; with the folder all of them go."""
        folder = self._folder_for(reader, chosen)
        files = [self.frames.store.wrote(file) for file, _ in self._packs_of(reader, chosen, folder)]
        self._saw(reader, chosen, size_of(files))
        return folder, files

    def _folder_for(self, reader: Reader, chosen: list[Slice], on_disk: bool = False) -> Path:
        expected = int(reader.growth * sum(slice_.bytes for slice_ in chosen))
        return self.frames.store.new_folder(expected, on_disk)

    def _packs_of(
        self, reader: Reader, chosen: list[Slice], folder: Path, pack_rows: int | None = None
    ) -> Iterator[tuple[Path, int]]:
        operator = self.bound.operators[reader.node]
        assert isinstance(operator, ColumnarSource)
        return write_packs(operator, chosen, folder, pack_rows or self.frames.pack_rows)

    def _saw(self, reader: Reader, chosen: list[Slice], size: int) -> None:
        said = sum(slice_.bytes for slice_ in chosen)
        reader.growth = max(reader.growth, size / said if said else 1.0)

    def _frame_of(self, files: Sequence[Path], schema: StructType) -> DataFrame:
        if not files:
            return self.spark.createDataFrame([], schema)
        return self.spark.read.schema(schema).parquet(*map(str, files))

    def _schema_of(self, reader: Reader) -> StructType:
        if reader.schema is None:
            reader.schema = port_frame(self.frames.builder.build_node(reader.node, {}, []), "out").schema
        return reader.schema


def _even(items: Sequence[_Item], count: int) -> list[list[_Item]]:
    """Items in so many runs of about the same length, in order."""
    size = len(items)
    return [list(items[size * at // count : size * (at + 1) // count]) for at in range(count)]

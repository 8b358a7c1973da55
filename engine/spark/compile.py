"""Turns a unit into one Spark plan: the operators' own plans, joined where rows pass between them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from engine.model.binding import Bound
from engine.model.operator import Built, Operator, Place, Split, leaving, limits_of, port_frame
from engine.operators._sql import quoted
from engine.partition.fused import FusedPlan, Held, Unit, counted_ports
from engine.spark.backend import backend_of
from engine.spark.failures import NodeFailed, reason_of
from engine.spark.planned import Planned
from engine.spark.tools import SparkTools, build

PORT = "_papilio_port"
PREPARERS = 2  # threads for what a unit's nodes prepare; the unit's own waits for them most of the time


@dataclass
class CountedRows:
    """Counts of a unit's run: all rows a node saw, and those it refused, by port."""

    node: str
    ports: tuple[str, ...]
    query: Callable[[], DataFrame]  # the counts, asked for by themselves
    observation: Observation | None = None  # the counts, taken in passing, where Spark can
    found: dict[str, Any] | None = None

    def get(self) -> tuple[int, dict[str, int]]:
        """The counts once the unit has run. Whoever removes what it read from asks before; they are kept.

        Where Spark proved that the unit's result needs no row of this node (behind it stands a filter that nothing
        passes), it took none in passing. They are asked for then: rows are refused whoever reads the others.
        """
        found = self.found or {}
        if not found and self.observation is not None:
            with contextlib.suppress(Exception):  # PySpark's own, where there are none
                found = self.observation.get
        if "total" not in found:
            found = self.query().collect()[0].asDict()
        self.found = found
        return int(found["total"] or 0), {port: int(found[port] or 0) for port in self.ports}


@dataclass
class UnitPlan:
    """What a unit writes: one frame for each port of its result, or one frame for all ports."""

    ports: tuple[str, ...]
    frames: dict[str, DataFrame] = field(default_factory=dict)
    split: Split | None = None  # all ports in one job
    counted: list[CountedRows] = field(default_factory=list)


# Reads the result of another unit: the unit, the node and port whose rows are wanted.
ReadHeld = Callable[[Unit, str, str], DataFrame]


class NodeBuilder:
    """Builds single nodes of a bound workflow for one session; a failure knows its node."""

    def __init__(self, bound: Bound, spark: SparkSession, place: Place) -> None:
        self.bound = bound
        self.spark = spark
        self.place = place

    def build_node(
        self,
        node: str,
        inputs: Mapping[str, Sequence[DataFrame]],
        counted: list[CountedRows] | None,
        ahead: Future[Any] | None = None,
        files: Sequence[str] | None = None,
    ) -> Built:
        """A node's own plan. Spark's analyser confirms it here. `ahead`: what the node prepares elsewhere; `files`:
        those that a source reads, where it is not all of them.

        `counted` is given the counts of rows that are refused; without it nobody asks for them.
        """
        try:
            prepared = ahead.result() if ahead is not None else None
            result = build(self.bound.operators[node], inputs, self.spark, self.place, prepared, files)
            if counted is not None and isinstance(result, Split):
                ports = counted_ports(self.bound, node)
                if ports or self._needs_total(node):
                    result = self._count(node, result, ports, counted)
            return result
        except NodeFailed:
            raise
        except Exception as error:
            raise NodeFailed(node, reason_of(error)) from error

    def _needs_total(self, node: str) -> bool:
        """Whether a limit holds for rows that leave by a port: no queue may tell of how many they are."""
        limits = limits_of(self.bound.operators[node])
        return limits is not None and (limits.max_refused, limits.max_refused_percent) != (None, None)

    def _count(self, node: str, split: Split, ports: list[str], counted: list[CountedRows]) -> Split:
        """Count the rows that would leave by ports nobody reads: in the job that runs anyway, or in one by itself."""
        counts = [F.count(F.lit(1)).alias("total")]
        counts += [F.count_if(F.expr(split.ways[port].condition)).alias(port) for port in ports]
        made = CountedRows(node, tuple(ports), lambda: split.frame.agg(*counts))
        counted.append(made)
        if not backend_of(self.spark).counts_in_passing:
            return split
        made.observation = Observation(f"papilio-{node}")
        frame = split.frame.observe(made.observation, *counts)
        return Split(frame, split.ways, split.working, split.overlapping)


class Compiler(NodeBuilder):
    """Compiles fused units of a bound workflow for one session."""

    def __init__(
        self,
        bound: Bound,
        plan: FusedPlan,
        spark: SparkSession,
        place: Place,
        read_held: ReadHeld,
        planned: Planned | None = None,
    ) -> None:
        super().__init__(bound, spark, place)
        self.plan = plan
        self.read_held = read_held
        self.planned = planned

    def compile(self, unit: Unit) -> UnitPlan:
        """The plan of a unit. Spark's analyser confirms every operator here, so a failure knows its node."""
        made = UnitPlan(unit.ports)
        built: dict[str, Built] = {}
        ahead = self._prepare(unit)
        for node in unit.nodes:
            if node == unit.result and unit.held is not Held.STAGED:
                source, port = self.bound.producers(node)[0]
                frame = self.frame(unit, source, port, built)
                made.frames = dict.fromkeys(unit.ports, frame)
            else:
                inputs: dict[str, list[DataFrame]] = {}
                for link in self.bound.incoming.get(node, ()):
                    frame = self.frame(unit, link.source, link.source_port, built)
                    if self.planned is not None:
                        frame = self.planned.passed(link, frame)
                    inputs.setdefault(link.target_port, []).append(frame)
                counted = made.counted if self.plan.counters[node] == unit.id else None
                built[node] = self.build_node(node, inputs, counted, ahead.get(node))
        if unit.held is Held.STAGED:
            result = built[unit.result]
            if isinstance(result, Split) and in_one_job(result, unit.ports):
                made.split = result
            else:
                made.frames = {port: port_frame(result, port) for port in unit.ports}
        return made

    def _prepare(self, unit: Unit) -> dict[str, Future[Any]]:
        """What the unit's nodes prepare: by threads of their own, for Spark's analyser takes one core for each."""
        operators = {node: self.bound.operators[node] for node in unit.nodes}
        wanted = {node: one for node, one in operators.items() if type(one).prepare is not Operator.prepare}
        futures: dict[str, Future[Any]] = {node: Future() for node in wanted}
        left = iter(list(wanted.items()))  # each takes the next

        def work() -> None:
            for node, operator in left:
                try:
                    futures[node].set_result(operator.prepare(SparkTools(self.spark, operator, self.place)))
                except BaseException as error:  # told where the node is built
                    futures[node].set_exception(error)

        for _ in range(min(PREPARERS, len(wanted))):
            backend_of(self.spark).thread(work, f"prepare-{unit.id}").start()
        return futures

    def frame(self, unit: Unit, node: str, port: str, built: Mapping[str, Built]) -> DataFrame:
        node, port = self.plan.origin(node, port)
        holder = self.plan.holders.get((node, port))
        if holder is not None and holder != unit.id:
            return self.read_held(self.plan.unit(holder), node, port)
        try:
            return port_frame(built[node], port)
        except NodeFailed:
            raise
        except Exception as error:
            raise NodeFailed(node, reason_of(error)) from error


def in_one_job(split: Split, ports: tuple[str, ...]) -> bool:
    """Whether several ports can be written together: none of them has a plan of its own."""
    return len(ports) > 1 and all(split.ways[port].frame is None for port in ports)


def tagged(split: Split, ports: tuple[str, ...]) -> DataFrame:
    """All rows of a split that leave by `ports`, each with the name of its port (or once for each port)."""
    ways = {port: f"coalesce({split.ways[port].condition}, false)" for port in ports}
    if split.overlapping:
        names = ", ".join(f"CASE WHEN {condition} THEN '{port}' END" for port, condition in ways.items())
        return split.frame.withColumn(PORT, F.explode(F.expr(f"array_compact(array({names}))")))
    cases = " ".join(f"WHEN {condition} THEN '{port}'" for port, condition in ways.items())
    return split.frame.withColumn(PORT, F.expr(f"CASE {cases} END")).where(f"{PORT} IS NOT NULL")


def untagged(frame: DataFrame, split: Split, port: str) -> DataFrame:
    """The rows of one port, read back from what `tagged` wrote."""
    own = frame.where(F.col(PORT) == port).drop(PORT)
    return leaving(own, split, split.ways[port])


def writable(frame: Any) -> Any:
    """A frame that every format can hold: columns of nothing but NULL become text."""
    empty = [item.name for item in frame.schema.fields if item.dataType.simpleString() == "void"]
    return frame.withColumns({name: F.col(quoted(name)).cast("string") for name in empty}) if empty else frame

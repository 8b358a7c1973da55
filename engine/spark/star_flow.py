"""A workflow's own operators as the elastic transformation: rows of one source in, facts out, dimensions once."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from engine.errors import BadInput
from engine.model.binding import Bound
from engine.model.operator import Built, Target, port_frame
from engine.spark.compile import CountedRows, NodeBuilder


class StarFlow:
    """Builds the plans of a workflow whose `source` comes at a rate and whose target `facts` holds the facts."""

    def __init__(self, bound: Bound, spark: SparkSession, source: str, facts: str) -> None:
        self.bound = bound
        self._file = bound.file
        self._source, self._facts = source, facts
        self._builder = NodeBuilder(bound, spark, bound.place())
        self._check()
        self._after = self._closure(source, forward=True)
        self._before = self._closure(facts, forward=False)
        if facts not in self._after:
            raise BadInput(f"{self._file}: no rows of `{source}` reach `{facts}`")

    def _check(self) -> None:
        for name, what in ((self._source, "live.source"), (self._facts, "live.facts")):
            if name not in self.bound.operators:
                raise BadInput(f"{self._file}: `elastic.{what}`: there is no node `{name}`")
        if not isinstance(self.bound.operators[self._facts], Target):
            raise BadInput(f"{self._file}: `elastic.live.facts`: `{self._facts}` is no target")

    def _closure(self, node: str, forward: bool) -> set[str]:
        found, waiting = {node}, [node]
        while waiting:
            at = waiting.pop()
            next_ = self.bound.consumers(at) if forward else self.bound.producers(at)
            more = {other for other, _ in next_} - found
            found |= more
            waiting += more
        return found

    @cached_property
    def _references(self) -> dict[str, Built]:
        """What facts are joined with: built once, and kept in the executors' memory."""
        built: dict[str, Built] = {}
        for node in self.bound.order:
            if node in self._before and node not in self._after:
                result = self._build(node, built)
                read_by = {consumer for consumer, _ in self.bound.consumers(node)}
                if isinstance(result, DataFrame) and read_by & self._after:
                    result = result.persist()
                built[node] = result
        return built

    def _build(self, node: str, built: dict[str, Built]) -> Built:
        inputs: dict[str, list[DataFrame]] = {}
        for link in self.bound.incoming.get(node, ()):
            frame = port_frame(built[link.source], link.source_port)
            inputs.setdefault(link.target_port, []).append(frame)
        counted: list[CountedRows] = []
        return self._builder.build_node(node, inputs, counted)

    def source_path(self) -> Path:
        """Where the rows that come at a rate are kept."""
        operator = self.bound.operators[self._source]
        path = getattr(operator, "path", None)
        if path is None:
            raise BadInput(f"{self._file}: `elastic.live.source`: `{self._source}` reads no file")
        return self.bound.place().path(path)

    def transform(self, rows: DataFrame) -> DataFrame:
        """The facts that these rows of the source become."""
        built = dict(self._references)
        built[self._source] = rows
        for node in self.bound.order:
            if node in self._before and node in self._after and node not in (self._source, self._facts):
                built[node] = self._build(node, built)
        ((node, port),) = self.bound.producers(self._facts)
        return port_frame(built[node], port)

    def dimensions(self) -> dict[str, DataFrame]:
        """The rows of every other target, by the name of its file."""
        found = {}
        for target, operator in self.bound.operators.items():
            if not isinstance(operator, Target) or target == self._facts:
                continue
            needed = self._closure(target, forward=False)
            if self._source in needed:
                raise BadInput(f"{self._file}: the dimension `{target}` depends on `{self._source}`")
            built: dict[str, Built] = {}
            for node in self.bound.order:
                if node in needed and node != target:
                    built[node] = self._build(node, built)
            ((node, port),) = self.bound.producers(target)
            found[self.table_name(target)] = port_frame(built[node], port)
        return found

    def table_name(self, target: str) -> str:
        """The table that a target is: its file's name without an ending."""
        return Path(str(getattr(self.bound.operators[target], "path", target))).stem

"""A workflow's own operators as the elastic transformation: rows of one source in, facts out, dimensions once."""

from __future__ import annotations

import contextlib
import math
import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import cached_property
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from engine.errors import BadInput
from engine.model.binding import Bound
from engine.model.operator import BuildInputs, Built, Target, port_frame
from engine.model.star_queries import table_of
from engine.partition.batches import closure
from engine.spark.compile import NodeBuilder
from engine.spark.tools import SparkTools, local_files, size_of

TASK_PACKS = 3
"""Row packs of one task, at most: what else the cores are needed for waits until one ends."""
BATCH = "papilio_batch"
COPIED_BYTES = 32 << 20
"""Files of this size are copied to every node for each batch that is joined with them."""


class StarFlow:
    """Builds the plans of a workflow whose `source` comes at a rate and whose target `facts` holds the facts.

    What is the same for every batch is made once, and kept in the executors' memory: a batch is a few seconds' work.
    """

    def __init__(self, bound: Bound, spark: SparkSession, source: str, facts: str) -> None:
        self.bound = bound
        self._file = bound.file
        self._source, self._facts = source, facts
        self._spark = spark.newSession()  # for settings of its own
        # Spark would plan a batch anew after each of its stages, and start a job for each reference to look at it.
        self._spark.conf.set("spark.sql.adaptive.enabled", "false")
        # It would put small files together, by their bytes. Row packs are dealt to tasks here, each in one piece.
        most = self._spark.conf.get("spark.sql.files.maxPartitionBytes")
        assert most is not None
        self._spark.conf.set("spark.sql.files.openCostInBytes", most)
        self._builder = NodeBuilder(bound, self._spark, bound.place())
        self._kept: list[DataFrame] = []
        self._check()
        self._after = closure(bound, source, forward=True)
        self._before = closure(bound, facts, forward=False)
        if facts not in self._after:
            raise BadInput(f"{self._file}: no rows of `{source}` reach `{facts}`")

    def _check(self) -> None:
        for name, what in ((self._source, "live.source"), (self._facts, "live.facts")):
            if name not in self.bound.operators:
                raise BadInput(f"{self._file}: `elastic.{what}`: there is no node `{name}`")
        if not isinstance(self.bound.operators[self._facts], Target):
            raise BadInput(f"{self._file}: `elastic.live.facts`: `{self._facts}` is no target")

    @cached_property
    def _references(self) -> dict[str, Built]:
        """What facts are joined with."""
        built: dict[str, Built] = {}
        for node in self.bound.order:
            if node in self._before and node not in self._after:
                built[node] = self._build(node, built)
        return built

    @cached_property
    def _settled(self) -> dict[str, Future[Any]]:
        """What nodes that batches pass have made of references, once."""
        settled: dict[str, Future[Any]] = {}
        for node in self._passed:
            operator = self.bound.operators[node]
            batches_by = operator.input_ports()[0].name
            others = [link for link in self.bound.incoming[node] if link.target_port != batches_by]
            if not operator.is_repeatable() or any(link.source not in self._references for link in others):
                continue
            tools = SparkTools(self._spark, operator, self._builder.place)
            made: Future[Any] = Future()
            try:
                made.set_result(operator.settle(BuildInputs(self._inputs(node, self._references)), tools, self._keep))
            except Exception as error:  # told where the node is built
                made.set_exception(error)
            if made.exception() is not None or made.result() is not None:
                settled[node] = made
        return settled

    @cached_property
    def _joined(self) -> dict[str, Built]:
        """References as the nodes get them that join batches with them as they are."""
        joined = dict(self._references)
        readers = [node for node in self._passed if node not in self._settled]
        read = {link.source for node in readers for link in self.bound.incoming.get(node, ())}
        for node in read & set(joined):
            frame = joined[node]
            if isinstance(frame, DataFrame):
                files = local_files(frame)  # asked before it is kept: then it is read from memory
                # Else Spark copies whatever is smaller, which may be the batch: its rows would then be worked on
                # where the reference is, by one node for all.
                copied = bool(files) and size_of(files) <= COPIED_BYTES
                joined[node] = self._keep(frame.coalesce(1)).hint("broadcast") if copied else self._keep(frame)
        return joined

    def _keep(self, frame: DataFrame) -> DataFrame:
        self._kept.append(frame.persist())
        return frame

    def close(self) -> None:
        """Let go of what was kept."""
        with contextlib.suppress(Py4JError, OSError):  # of a JVM that died nothing is left
            while self._kept:
                self._kept.pop().unpersist()

    @cached_property
    def _passed(self) -> list[str]:
        """The nodes between the source and the facts."""
        ends = (self._source, self._facts)
        return [node for node in self.bound.order if node in self._before & self._after and node not in ends]

    def _inputs(self, node: str, built: Mapping[str, Built]) -> dict[str, list[DataFrame]]:
        """What is there already of a node's inputs, by port."""
        inputs: dict[str, list[DataFrame]] = {}
        for link in self.bound.incoming.get(node, ()):
            if link.source in built:
                frame = port_frame(built[link.source], link.source_port)
                inputs.setdefault(link.target_port, []).append(frame)
        return inputs

    def _build(self, node: str, built: Mapping[str, Built], settled: Future[Any] | None = None) -> Built:
        return self._builder.build_node(node, self._inputs(node, built), None, settled)

    def source_path(self) -> Path:
        """Where the rows that come at a rate are kept."""
        operator = self.bound.operators[self._source]
        path = getattr(operator, "path", None)
        if path is None:
            raise BadInput(f"{self._file}: `elastic.live.source`: `{self._source}` reads no file")
        return self.bound.place().path(path)

    @cached_property
    def _schema(self) -> StructType:
        return self._spark.read.parquet(str(self.source_path())).schema

    def transform(self, *files: Path) -> DataFrame:
        """The facts that the source's rows in these files, or folders of files, become."""
        return self._transformed(self._spark.read.schema(self._schema).parquet(*map(str, files)))

    def batches(self, folder: Path) -> Callable[[Sequence[Path]], DataFrame]:
        """What makes a batch of files into facts, one batch after the other, by way of a folder of its own.

        Spark analyses the plan once: each batch would wait a fifth of a second for it.
        """
        if not all(self.bound.operators[node].is_repeatable() for node in self._passed):
            # Chance must fall anew for each batch, and so its plan is made anew.
            return lambda files: self._dealt(self.transform(*files), len(files))
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        self._spark.read.schema(self._schema).parquet(str(folder)).createOrReplaceTempView(BATCH)
        facts = self._transformed(self._spark.table(BATCH))

        def batch(files: Sequence[Path]) -> DataFrame:
            for link in folder.iterdir():
                link.unlink()
            for file in files:
                (folder / file.name).symlink_to(file)
            self._spark.catalog.refreshTable(BATCH)
            return self._dealt(facts, len(files))  # a new frame: one remembers the files that it was computed from

        return batch

    def _dealt(self, facts: DataFrame, packs: int) -> DataFrame:
        """As many tasks for one core as for the other, and no task much longer than another."""
        cores = self._spark.sparkContext.defaultParallelism
        return facts.coalesce(cores * math.ceil(packs / cores / TASK_PACKS))

    def _transformed(self, rows: DataFrame) -> DataFrame:
        built = dict(self._joined)
        built[self._source] = rows
        for node in self._passed:
            built[node] = self._build(node, built, self._settled.get(node))
        ((node, port),) = self.bound.producers(self._facts)
        return port_frame(built[node], port)

    def dimensions(self) -> dict[str, DataFrame]:
        """The rows of every other target, by the name of its file."""
        found = {}
        for target, operator in self.bound.operators.items():
            if not isinstance(operator, Target) or target == self._facts:
                continue
            needed = closure(self.bound, target, forward=False)
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
        """The table that a target is."""
        return table_of(target, self.bound.operators[target])

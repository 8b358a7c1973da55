"""A look at the rows that leave by a port: computed on the first rows of every source, and written nowhere."""

from __future__ import annotations

import os
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from engine.errors import BadInput
from engine.model.binding import Bound
from engine.model.operator import Built, Place, Role, port_frame
from engine.spark.failures import NodeFailed, reason_of
from engine.spark.figures import column_figures, shown
from engine.spark.tools import build

SOURCE_ROWS = 20_000  # of every source; what is behind a join sees no more of them
ROWS = 1_000  # of the port, for the figures
SHOWN = 200  # of them in full


def preview(bound: Bound, node: str, port: str, spark: SparkSession) -> dict[str, Any]:
    """Sample rows of a port with figures for each column. Targets pass on what they would be given."""
    place = bound.place(os.environ)
    frame = _Frames(bound, spark, place).of(node, port)
    try:
        schema = [(item.name, item.dataType.simpleString()) for item in frame.schema.fields]
        rows = [tuple(row) for row in frame.limit(ROWS).collect()]
    except Exception as error:
        raise NodeFailed(node, reason_of(error)) from error
    figures = [column_figures(name, kind, [row[at] for row in rows]) for at, (name, kind) in enumerate(schema)]
    return {
        "columns": [one.as_dict() for one in figures],
        "rows": [[shown(value) for value in row] for row in rows[:SHOWN]],
        "sampled_rows": len(rows),
        "source_rows": SOURCE_ROWS,
    }


def needed(bound: Bound, node: str) -> list[str]:
    """A node and all it comes from, in the order rows pass them; one whose settings do not hold is told."""
    wanted, waiting = {node}, [node]
    while waiting:
        at = waiting.pop()
        # A node that nothing reads yet can be looked at all the same.
        outputs = {port.name for port in bound.operators[at].output_ports()} if at in bound.operators else set()
        for problem in bound.errors:
            if problem.node == at and not (problem.setting is None and problem.port in outputs):
                raise BadInput(problem.text())
        for source, _ in bound.producers(at):
            if source not in wanted:
                wanted.add(source)
                waiting.append(source)
    return [at for at in bound.order if at in wanted]


class _Frames:
    """The plans from the sources to a node, each built once."""

    def __init__(self, bound: Bound, spark: SparkSession, place: Place) -> None:
        self.bound, self.spark, self.place = bound, spark, place
        self._built: dict[str, Built] = {}

    def of(self, node: str, port: str) -> DataFrame:
        for at in needed(self.bound, node):
            self._built[at] = self._build(at)
        try:
            return port_frame(self._built[node], port)
        except Exception as error:
            raise NodeFailed(node, reason_of(error)) from error

    def _build(self, node: str) -> Built:
        operator = self.bound.operators[node]
        inputs: dict[str, list[DataFrame]] = {}
        for link in self.bound.incoming.get(node, ()):
            frame = port_frame(self._built[link.source], link.source_port)
            inputs.setdefault(link.target_port, []).append(frame)
        if operator.role in (Role.TARGET, Role.STAGING):
            frame = next(frames[0] for frames in inputs.values())
            return {port.name: frame for port in operator.output_ports()} or frame
        try:
            built = build(operator, inputs, self.spark, self.place)
        except NodeFailed:
            raise
        except Exception as error:
            raise NodeFailed(node, reason_of(error)) from error
        if operator.role is Role.SOURCE:
            return {port.name: port_frame(built, port.name).limit(SOURCE_ROWS) for port in operator.output_ports()}
        return built

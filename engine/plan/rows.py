"""How many rows flow where: from hints, recorded runs and the sources themselves, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from engine.model.binding import Bound
from engine.model.operator import Carries, Role
from engine.partition.flow import is_reference

SOURCE_ROWS = 100_000  # of a source of which nothing is known, which is told to the person


class Origin(StrEnum):
    """Where a number of rows comes from."""

    HINT = "hint"
    RUN = "run"
    SOURCE = "source"
    EXACT = "exact"  # follows from what enters
    ASSUMED = "assumed"


@dataclass(frozen=True)
class Recorded:
    """What a run counted at a node."""

    rows_in: int | None = None
    rows_out: int | None = None
    cost_us: float | None = None  # for one row that entered

    @property
    def selectivity(self) -> float | None:
        """Rows that left for each row that entered."""
        if self.rows_in and self.rows_out is not None:
            return self.rows_out / self.rows_in
        return None


@dataclass
class Rows:
    """The rows that leave every port of a workflow, and where each number comes from."""

    by_port: dict[tuple[str, str], int] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)
    origins: dict[str, Origin] = field(default_factory=dict)
    recorded: Mapping[str, Recorded] = field(default_factory=dict)

    def out(self, node: str) -> int:
        """The rows that leave a node by its first port; of a recordset, those it holds."""
        return self.totals[node]

    def of_port(self, node: str, port: str) -> int:
        """The rows that leave by one port."""
        return self.by_port[node, port]

    def cost_us(self, node: str) -> float | None:
        """Microseconds for one row, where a run measured the node."""
        found = self.recorded.get(node)
        return found.cost_us if found else None

    def assumed(self) -> list[str]:
        """The nodes whose rows nobody knows."""
        return [node for node, origin in self.origins.items() if origin is Origin.ASSUMED]


def rows_of(
    bound: Bound,
    sources: Mapping[str, int] | None = None,
    recorded: Mapping[str, Recorded] | None = None,
) -> Rows:
    """Count through a workflow. A hint goes before a recorded run, that before what a source says of itself."""
    rows = Rows(recorded=recorded or {})
    for node in bound.order:
        entering = sum(rows.of_port(*producer) for producer in bound.producers(node))
        count, origin = _count(bound, node, entering, sources or {}, rows)
        rows.totals[node] = count
        rows.origins[node] = origin
        _spread(bound, node, entering, rows)
    return rows


def _count(bound: Bound, node: str, entering: int, sources: Mapping[str, int], rows: Rows) -> tuple[int, Origin]:
    """The rows that leave by the first port."""
    operator = bound.operators[node]
    hints = bound.workflow.nodes[node].hints
    known = rows.recorded.get(node, Recorded())
    if hints is not None and hints.rows is not None:
        return hints.rows, Origin.HINT
    if operator.role is Role.SOURCE:
        if known.rows_out is not None:
            return known.rows_out, Origin.RUN
        if node in sources:
            return sources[node], Origin.SOURCE
        return SOURCE_ROWS, Origin.ASSUMED
    if hints is not None and hints.selectivity is not None:
        return round(hints.selectivity * entering), Origin.HINT
    if operator.role is not Role.ACTIVITY or operator.keeps_rows:
        return entering, Origin.EXACT
    if known.selectivity is not None:
        return round(known.selectivity * entering), Origin.RUN
    main = (link for link in bound.incoming.get(node, ()) if not is_reference(bound, link))
    passing = sum(rows.of_port(link.source, link.source_port) for link in main)
    return round(operator.expected_share() * passing), Origin.ASSUMED


def _spread(bound: Bound, node: str, entering: int, rows: Rows) -> None:
    """The rows of every port: the first has its own, the others what is left; ways of one kind get equal parts."""
    operator = bound.operators[node]
    ports = operator.output_ports()
    total = rows.totals[node]
    alike = len(ports) > 1 and all(port.carries is Carries.ROWS for port in ports) and operator.outputs[0] not in ports
    for index, port in enumerate(ports):
        if alike:
            share = entering // len(ports)
        elif index == 0:
            share = total
        else:
            share = max(entering - total, 0) // (len(ports) - 1)
        rows.by_port[node, port.name] = share

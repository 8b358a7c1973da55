"""The states of the search: every choice of implementations and sorters, and what each costs.

A plan is one whole number. Its lowest digits are its choices, one digit for each decision in the order of the graph;
above them stands the number of its sorters, and above that its cost. So plans compare by cost, those of equal cost by
their sorters, and adding the numbers of two parts of a plan gives the number of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.model.physical import NO_ORDER, Fit, Implementation, Order, Step, Steps, Work
from engine.plan.constraints import Constraints
from engine.plan.costs import CostModel, PaperCosts, cost_of
from engine.plan.graph import Activity, Edge, Graph, Offered, Position, Recordset, positions


@dataclass(frozen=True)
class Choice:
    """What can be decided for an activity: of these implementations the first that fits."""

    ways: tuple[Implementation, ...]


@dataclass(frozen=True)
class Decision:
    """One digit of a plan: which order a sorter makes (or that there is none), or which choice an activity takes."""

    of: Position | str
    options: int
    weight: int  # of its digit


@dataclass(frozen=True)
class Taken:
    """An implementation over the orders that come in: what it leaves, what it does and what that costs."""

    way: Implementation
    fit: Fit
    cost: int


@dataclass(frozen=True)
class Line:
    """What one implementation or sorter of a plan costs."""

    node: str
    name: str  # as signatures have it
    title: str
    rows_in: tuple[int, ...]
    rows_out: int
    takes: tuple[Order, ...]
    leaves: Order
    steps: Steps
    cost: int
    is_sorter: bool
    width: float = 1.0  # by which wide rows make a sorter dearer


@dataclass(frozen=True)
class Plan:
    """A physical graph: an implementation for every activity, sorters in some places, and what it costs."""

    number: int
    cost: int
    implementations: dict[str, str]
    by_itself: frozenset[str]  # activities whose implementation need not be named: there was nothing to choose
    sorters: dict[Position, Order]
    lines: tuple[Line, ...]

    @property
    def sorter_cost(self) -> int:
        """What its sorters cost together."""
        return sum(line.cost for line in self.lines if line.is_sorter)


@dataclass(frozen=True)
class Misfit:
    """Decisions that make no plan: an implementation over inputs that are not in the order it needs."""

    node: str


class Space:
    """All plans of a graph under a cost model and constraints."""

    def __init__(
        self,
        graph: Graph,
        model: CostModel,
        constraints: Constraints | None = None,
        counted: frozenset[str] | None = None,
        offered: Offered = Offered.ALL,
    ) -> None:
        """`counted`: only what these nodes cost matters; None: all of them."""
        self.graph = graph
        self.model = model
        self.constraints = constraints or Constraints()
        self.counted = counted
        self.offered = offered
        self.positions = positions(graph, offered)
        self.choices = {id_: self._choices(node) for id_, node in graph.nodes.items() if isinstance(node, Activity)}
        self._by_recordset = {one.node: one for one in self.positions if one.edge is None}
        self._by_edge = {one.edge: one for one in self.positions if one.edge is not None}
        self._taken: dict[tuple[str, int, tuple[Order, ...]], Taken | None] = {}
        self.decisions = self._decide()
        self._by_subject = {decision.of: decision for decision in self.decisions}
        self._one_sorter: int = self.base ** len(self.decisions)
        self._one_cost: int = self._one_sorter * (len(self.positions) + 1)

    def _choices(self, activity: Activity) -> tuple[Choice, ...]:
        physical = activity.physical
        allowed = [way for way in physical.implementations if self.constraints.allows(activity.id, way.name)]
        if self.model.name == PaperCosts.name and activity.id not in self.constraints.pinned:
            allowed = [way for way in allowed if way.in_paper] or allowed
        return tuple(Choice((way,)) for way in allowed) if physical.named else (Choice(tuple(allowed)),)

    def _decide(self) -> list[Decision]:
        """The decisions in the order of the graph; on equal terms an earlier one, and its first option, weigh more."""
        subjects: list[tuple[Position | str, int]] = []
        for id_ in self.graph.nodes:
            if id_ in self._by_recordset:
                position = self._by_recordset[id_]
                subjects.append((position, len(position.orders) + 1))
            elif id_ in self.choices:
                for edge in self.graph.incoming[id_]:
                    if edge in self._by_edge:
                        subjects.append((self._by_edge[edge], len(self._by_edge[edge].orders) + 1))
                subjects.append((id_, len(self.choices[id_])))
        self.base = max((options for _, options in subjects), default=1) + 1
        last = len(subjects) - 1
        return [Decision(of, options, self.base ** (last - at)) for at, (of, options) in enumerate(subjects)]

    # -- numbers

    def states(self) -> int:
        """How many combinations of sorters and implementations there are, also those that do not fit."""
        result = 1
        for decision in self.decisions:
            result *= max(decision.options, 1)
        return result

    def number(self, cost: int, subject: Position | str, digit: int) -> int:
        """The number of one decision with what it costs."""
        decision = self._by_subject[subject]
        sorter = isinstance(subject, Position) and digit < len(subject.orders)
        return cost * self._one_cost + (self._one_sorter if sorter else 0) + digit * decision.weight

    def cost(self, number: int) -> int:
        """The cost that stands in a plan's number."""
        return number // self._one_cost

    def sorters(self, number: int) -> int:
        """How many sorters a plan has."""
        return number % self._one_cost // self._one_sorter

    def digits(self, number: int) -> dict[Position | str, int]:
        """The decisions that stand in a plan's number."""
        found = {}
        rest = number % self._one_sorter
        for decision in self.decisions:
            found[decision.of], rest = divmod(rest, decision.weight)
        return found

    def shown(self, number: int) -> tuple[int, int, int]:
        """The key by which plans are listed: as the paper does, of equal ones that with more sorters first."""
        return self.cost(number), -self.sorters(number), number % self._one_sorter

    # -- what follows from decisions

    def position(self, at: Recordset | Edge) -> Position | None:
        """The place for a sorter on a recordset or an edge, if it is one."""
        return self._by_recordset.get(at.id) if isinstance(at, Recordset) else self._by_edge.get(at)

    def sorter_steps(self, position: Position) -> Steps:
        """A recordset is sorted where it is stored; rows between two activities are looked at once more."""
        steps: Steps = ((Step.SORT, position.rows),)
        if position.edge is not None:
            return (*steps, (Step.SCAN, position.rows))
        return (*steps, (Step.STORE, position.rows)) if position.copied else steps

    def sorter_cost(self, position: Position) -> int:
        """What a sorter in some place costs."""
        if self.counted is not None and position.owner not in self.counted:
            return 0
        return round(cost_of(self.model, self.sorter_steps(position)) * self.model.width(position.row_bytes))

    def work(self, activity: Activity, orders: Sequence[Order]) -> Work:
        """What an activity has to do with inputs in these orders."""
        rows = tuple(edge.rows for edge in self.graph.incoming[activity.id])
        return Work(rows, activity.rows_out, tuple(orders))

    def take(self, activity: Activity, choice: int, orders: tuple[Order, ...]) -> Taken | None:
        """A choice over the orders that come in; None where none of its implementations fits."""
        key = (activity.id, choice, orders)
        if key not in self._taken:
            self._taken[key] = self._fit(activity, self.choices[activity.id][choice], orders)
        return self._taken[key]

    def _fit(self, activity: Activity, choice: Choice, orders: tuple[Order, ...]) -> Taken | None:
        work = self.work(activity, orders)
        memory = self.constraints.memory_rows
        for way in choice.ways:
            if memory is not None and way.holds(work) > memory:
                continue
            fit = way.fit(work)
            if fit is not None:
                fit = replace(fit, leaves=NO_ORDER) if activity.held else fit
                counted = self.counted is None or activity.id in self.counted
                return Taken(way, fit, cost_of(self.model, fit.steps, activity.cost_us) if counted else 0)
        return None

    def minds(self, activity: Activity, number: int) -> bool:
        """Whether the order of an input can make a difference."""
        minds = activity.physical.minds
        return number < len(minds) and minds[number]

    # -- one plan

    def plan(self, number: int) -> Plan:
        """The plan that a number stands for, line by line."""
        plan = self.plan_of(self.digits(number))
        assert isinstance(plan, Plan), plan
        return plan

    def plan_of(self, digits: dict[Position | str, int]) -> Plan | Misfit:
        """The plan that some decisions make, or the node whose implementation does not fit."""
        leaves: dict[str, Order] = {}
        lines: list[Line] = []
        sorters: dict[Position, Order] = {}
        chosen: dict[str, str] = {}
        by_itself: set[str] = set()
        number = 0

        def through(position: Position | None, order: Order) -> Order:
            nonlocal number
            if position is None:
                return order
            digit = digits[position]
            if digit == len(position.orders):
                number += self.number(0, position, digit)
                return order
            cost = self.sorter_cost(position)
            number += self.number(cost, position, digit)
            sorters[position] = wanted = position.orders[digit]
            rows = position.rows
            steps = self.sorter_steps(position)
            width = self.model.width(position.row_bytes)
            lines.append(
                Line(position.owner, position.name, "sorter", (rows,), rows, (order,), wanted, steps, cost, True, width)
            )
            return wanted

        for id_, node in self.graph.nodes.items():
            incoming = self.graph.incoming[id_]
            if isinstance(node, Recordset):
                order = leaves[incoming[0].source] if len(incoming) == 1 and node.stored else NO_ORDER
                leaves[id_] = through(self._by_recordset.get(id_), order)
                continue
            orders = []
            for edge in incoming:
                order = through(self._by_edge.get(edge), leaves[edge.source])
                orders.append(order if self.minds(node, edge.number) else NO_ORDER)
            taken = self.take(node, digits[id_], tuple(orders))
            if taken is None:
                return Misfit(id_)
            number += self.number(taken.cost, id_, digits[id_])
            leaves[id_] = taken.fit.leaves
            chosen[id_] = taken.way.name
            if not node.physical.named and taken.way is self._first_fit(node, tuple(orders)):
                by_itself.add(id_)
            lines.append(
                Line(
                    id_, taken.way.name, taken.way.title, tuple(edge.rows for edge in incoming), node.rows_out,
                    tuple(orders), taken.fit.leaves, taken.fit.steps, taken.cost, False,
                )
            )  # fmt: skip
        return Plan(number, self.cost(number), chosen, frozenset(by_itself), sorters, tuple(lines))

    def _first_fit(self, activity: Activity, orders: tuple[Order, ...]) -> Implementation | None:
        """What an activity takes by itself, where nobody asks for anything else."""
        work = self.work(activity, orders)
        return next((way for way in activity.physical.implementations if way.fit(work) is not None), None)

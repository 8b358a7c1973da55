"""What a step costs: the paper's model, and one of measured microseconds.

Costs are whole numbers of millionths, so that sums do not depend on the order they are made in and plans of equal
cost are equal, whichever search found them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from engine.errors import BadInput
from engine.model.physical import Step, Steps
from engine.model.problems import did_you_mean

MILLIONTHS = 1_000_000


def units(cost: int) -> float:
    """A cost in the units of its model."""
    return cost / MILLIONTHS


def row_comparisons(rows: int) -> float:
    """What sorting takes: n·log n, the logarithm to the base of 2."""
    return rows * math.log2(rows) if rows > 1 else 0.0


class CostModel(Protocol):
    """A price for every step."""

    name: ClassVar[str]
    unit: ClassVar[str]

    def step(self, step: Step, rows: int, cost_us: float | None = None) -> int:
        """What one step over some rows costs. `cost_us`: what is known of the activity's cost for a row."""
        ...

    def width(self, row_bytes: int) -> float:
        """How many times as much a sorter costs over rows of that width; 0 bytes: nobody knows it."""
        ...


def cost_of(model: CostModel, steps: Steps, cost_us: float | None = None) -> int:
    """What several steps cost together."""
    return sum(model.step(step, rows, cost_us) for step, rows in steps)


@dataclass(frozen=True)
class PaperCosts:
    """The model that the paper's figures 6 and 9 follow: a row looked at is 1, in a hash table 2."""

    name: ClassVar[str] = "paper"
    unit: ClassVar[str] = "rows"

    def step(self, step: Step, rows: int, cost_us: float | None = None) -> int:
        """A sort costs n·log n, all else a fixed price for a row. What an activity takes in time is no part of it."""
        if step is Step.SORT:
            return round(row_comparisons(rows) * MILLIONTHS)
        if step in (Step.GIVE, Step.STORE):
            return 0
        return rows * MILLIONTHS * (2 if step in (Step.HASH, Step.GROUP) else 1)

    def width(self, row_bytes: int) -> float:
        """The paper counts rows, whatever their width."""
        return 1.0


# Microseconds for a row, with Spark 4.2 on two cores: it is their proportions that choose a plan.
# `papilio bench plan-steps` measures them on the machine it runs on.
MEASURED_US: Mapping[Step, float] = {
    Step.SCAN: 0.084,
    Step.SORT: 0.012,  # for each of the n·log n comparisons, with dividing the rows among tasks
    Step.MERGE: 0.093,
    Step.HASH: 0.25,  # with dividing the rows among tasks
    Step.EMIT: 0.072,
    Step.GROUP: 0.095,
    Step.FORM: 0.45,  # with dividing the groups among tasks: 0.70 for one sum of a whole number, less for wider groups
    Step.PAIR: 0.0018,
    Step.GIVE: 0.072,
    Step.STORE: 0.60,
}
NARROW_BYTES = 24  # of the rows that the prices were measured with
WIDER_BYTE = 0.012  # for each byte beyond that


@dataclass(frozen=True)
class MeasuredCosts:
    """Microseconds: each step by its measured price, an activity's own rows by what is known of it."""

    name: ClassVar[str] = "measured"
    unit: ClassVar[str] = "µs"

    prices_us: Mapping[Step, float] = field(default_factory=lambda: MEASURED_US)

    def step(self, step: Step, rows: int, cost_us: float | None = None) -> int:
        """A black box has its own price for each row it looks at; all else the price of its kind."""
        price = cost_us if step is Step.SCAN and cost_us is not None else self.prices_us[step]
        count = row_comparisons(rows) if step is Step.SORT else rows
        return round(count * price * MILLIONTHS)

    def width(self, row_bytes: int) -> float:
        """Rows are moved and written whole: wider ones cost more in the proportion that was measured."""
        return 1.0 + max(row_bytes - NARROW_BYTES, 0) * WIDER_BYTE


def cost_model(name: str, prices_us: Mapping[str, Any] | None = None) -> CostModel:
    """A cost model by its name; `prices_us` are for the measured one, by the names of the steps."""
    models: dict[str, CostModel] = {"paper": PaperCosts(), "measured": MeasuredCosts(_prices(prices_us or {}))}
    if name not in models:
        raise BadInput(f"there is no cost model `{name}`{did_you_mean(name, models)}; there are {', '.join(models)}")
    return models[name]


def _prices(given: Mapping[str, Any]) -> Mapping[Step, float]:
    """Prices over those that are built in."""
    prices = dict(MEASURED_US)
    known = [step.value for step in Step]
    for name, price in given.items():
        if name not in known:
            raise BadInput(f"there is no step `{name}`{did_you_mean(name, known)}; there are {', '.join(known)}")
        if isinstance(price, bool) or not isinstance(price, (int, float)) or not 0 <= price < math.inf:
            raise BadInput(f"the price of `{name}` is {price!r}, not a number of microseconds")
        prices[Step(name)] = price
    return prices

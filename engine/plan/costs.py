"""What a step costs: the paper's model, and one of measured microseconds.

Costs are whole numbers of millionths, so that sums do not depend on the order they are made in and plans of equal
cost are equal, whichever search found them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, ClassVar, Protocol

from engine.errors import BadInput
from engine.model.physical import Step, Steps
from engine.model.problems import did_you_mean

MILLIONTHS = 1_000_000
SORTING = frozenset({Step.SORT, Step.REORDER})  # cost n·log n
NOT_IN_PAPER = frozenset({Step.GIVE, Step.STORE, Step.GATHER, Step.CLOSE})  # cost nothing there


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
        if step in SORTING:
            return round(row_comparisons(rows) * MILLIONTHS)
        if step in NOT_IN_PAPER:
            return 0
        return rows * MILLIONTHS * (2 if step in (Step.HASH, Step.GROUP) else 1)

    def width(self, row_bytes: int) -> float:
        """The paper counts rows, whatever their width."""
        return 1.0


@dataclass(frozen=True)
class Prices:
    """What `papilio bench plan-steps` measures: microseconds for a row of each step; their proportions choose plans."""

    us: Mapping[Step, float]  # of sorting, for each of the n·log n comparisons
    row_bytes: float  # of the rows that they were measured with
    wider_byte: float  # by how much each byte beyond that makes a sorter dearer


@cache
def shipped_prices() -> Prices:
    """The prices that come with Papilio: a machine's whose kind, date and command stand beside them."""
    text = (resources.files("resources") / "plan" / "prices.json").read_text(encoding="utf-8")
    found = json.loads(text)["prices"]
    return Prices({step: found[step.value] for step in Step}, found[ROW_BYTES], found[WIDER_BYTE])


ROW_BYTES, WIDER_BYTE = "row_bytes", "wider_byte"  # beside the names of the steps


@dataclass(frozen=True)
class MeasuredCosts:
    """Microseconds: each step by its measured price, an activity's own rows by what is known of it."""

    name: ClassVar[str] = "measured"
    unit: ClassVar[str] = "µs"

    prices: Prices = field(default_factory=shipped_prices)

    def step(self, step: Step, rows: int, cost_us: float | None = None) -> int:
        """A black box has its own price for each row it looks at; all else the price of its kind."""
        price = cost_us if step is Step.SCAN and cost_us is not None else self.prices.us[step]
        count = row_comparisons(rows) if step in SORTING else rows
        return round(count * price * MILLIONTHS)

    def width(self, row_bytes: int) -> float:
        """Rows are moved and written whole: wider ones cost more in the proportion that was measured."""
        return 1.0 + max(row_bytes - self.prices.row_bytes, 0) * self.prices.wider_byte


def cost_model(name: str, prices: Mapping[str, Any] | None = None) -> CostModel:
    """A cost model by its name; `prices` are for the measured one, by the names of the steps."""
    models: dict[str, CostModel] = {"paper": PaperCosts(), "measured": MeasuredCosts(_prices(prices or {}))}
    if name not in models:
        raise BadInput(f"there is no cost model `{name}`{did_you_mean(name, models)}; there are {', '.join(models)}")
    return models[name]


def _prices(given: Mapping[str, Any]) -> Prices:
    """Prices over those that are shipped."""
    shipped = shipped_prices()
    known = [*(step.value for step in Step), ROW_BYTES, WIDER_BYTE]
    for name, price in given.items():
        if name not in known:
            raise BadInput(f"there is no step `{name}`{did_you_mean(name, known)}; there are {', '.join(known)}")
        if isinstance(price, bool) or not isinstance(price, (int, float)) or not 0 <= price < math.inf:
            raise BadInput(f"the price of `{name}` is {price!r}, not a number of microseconds")
    steps = {step: given.get(step.value, price) for step, price in shipped.us.items()}
    return Prices(steps, given.get(ROW_BYTES, shipped.row_bytes), given.get(WIDER_BYTE, shipped.wider_byte))

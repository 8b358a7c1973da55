"""What a person may choose about the scheduling of a run on Spark, with the measured defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from engine.partition.granularity import Granularity
from engine.schedule.mixed import DEFAULT_THETA
from engine.schedule.policy import MIXED


@dataclass(frozen=True)
class ScheduleSettings:
    """What is scheduled as one, by which policy, and how much of it travels together."""

    granularity: Granularity = Granularity.FUSED
    policy: str = MIXED
    theta: int = DEFAULT_THETA
    thetas: Mapping[str, int] = field(default_factory=dict)  # of single subflows
    pack_rows: int = 50_000
    queue_packs: int = 100
    queue_mb: float | None = None  # of one queue, beside its packs
    slot_ms: float = 600.0
    queue_memory_mb: int | None = None  # of all packs together; none given is a quarter of what is free
    degree: int | None = 1  # pipelines in a unit at a time; None has it measured
    telemetry: bool = True  # decisions and queue snapshots in the log

    def as_dict(self) -> dict[str, Any]:
        """The settings as plain data."""
        return {**asdict(self), "granularity": self.granularity.value, "thetas": dict(self.thetas)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ScheduleSettings:
        """The settings that `as_dict` wrote down."""
        return cls(**{**data, "granularity": Granularity(data["granularity"])})

"""What the log of an elastic run tells over time: nodes of each stage, their measures against the limits, decisions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from engine.events import LimitsSet, ScalingDecided, StagesSampled
from engine.recording.recording import RunRecording


@dataclass
class ElasticSeries:
    """Grows with the recording: `read` takes what is new."""

    limits: LimitsSet | None = None
    times: list[float] = field(default_factory=list)
    nodes: dict[str, list[float]] = field(default_factory=dict)
    shares: dict[str, list[float]] = field(default_factory=dict)  # measure / limit, of measures that have a limit
    rates: list[float] = field(default_factory=list)
    ready: list[float] = field(default_factory=list)
    decisions: list[tuple[float, ScalingDecided]] = field(default_factory=list)
    last: StagesSampled | None = None
    _read: int = 0

    def read(self, recording: RunRecording) -> None:
        """Take the events since the last time."""
        count = len(recording.event_times)  # an event is there before its time
        for number in range(self._read, count):
            event, at = recording.events[number], recording.event_times[number]
            match event:
                case LimitsSet():
                    self.limits = event
                case StagesSampled():
                    self._sample(at, event)
                case ScalingDecided():
                    self.decisions.append((at, event))
        self._read = count

    def _sample(self, at: float, event: StagesSampled) -> None:
        self.times.append(at)
        self.rates.append(event.rows_s)
        self.ready.append(event.ready)
        self.last = event
        for stage, number in event.nodes.items():
            self.nodes.setdefault(stage, []).append(float(number))
        for name, measure in event.measures.items():
            limit = self.limit(name).get("limit")
            if limit:
                self.shares.setdefault(name, []).append(measure / limit)

    def limit(self, name: str) -> dict[str, Any]:
        """What the limits say of a stage's measure, or of another one by its name."""
        return {} if self.limits is None else self.limits.stages.get(name) or self.limits.more.get(name, {})

    def stage_of(self, name: str) -> str:
        """The stage that a measure is of."""
        return str(self.limit(name).get("stage", name))

    def place(self, at: float) -> int:
        """The number of the last sample up to a moment; -1 before the first."""
        from bisect import bisect_right

        return bisect_right(self.times, at) - 1

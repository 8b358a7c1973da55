"""Max Benefit with lookahead (section 3.1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from engine.refresh.algorithms.max_benefit import MaxBenefit
from engine.refresh.scheduler import Scheduler
from engine.refresh.table import Table

MOST_JOBS = 8  # released jobs of which sets are made: those of the highest marginal benefit
MOST_EXPECTED = 8  # jobs to come that are looked at, the next ones first


class MaxBenefitLookahead(MaxBenefit):
    """Runs shorter jobs first where a better one will be released before the best released one were done."""

    name: ClassVar[str] = "max-benefit-lookahead"
    title: ClassVar[str] = "Max Benefit with lookahead"
    looks_ahead: ClassVar[bool] = True

    def begin(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.choices = self.others = 0  # how often it chose, and how often another job than Max Benefit would have

    def instead(self, table: Table, now: float) -> Table:
        chosen = self._chosen(table, now)
        self.choices += 1
        self.others += chosen is not table
        return chosen

    def _chosen(self, table: Table, now: float) -> Table:
        best, span = table.benefit, table.seconds
        chosen, highest = table, best
        small: list[Table] | None = None
        for expected, coming, gained in self._scheduler.expected_releases(now, now + span, MOST_EXPECTED):
            seconds = coming.alpha + coming.beta * gained
            weighted = coming.weight * gained
            if coming.group is not table.group or weighted / seconds <= best:
                continue
            if small is None:
                released = (other for other in table.group.queue.waiting() if other.seconds < span)
                small = sorted(released, key=_by_benefit)[:MOST_JOBS]
            for jobs, benefit, busy in _sets(small, span):
                if busy >= expected - now:  # never idle meanwhile
                    value = (benefit + weighted) / (busy + seconds)
                    if value > highest:
                        chosen, highest = min(jobs, key=_by_benefit), value
        return chosen


def _by_benefit(table: Table) -> tuple[float, int]:
    return -table.benefit, table.number


def _sets(jobs: Sequence[Table], span: float) -> Iterator[tuple[list[Table], float, float]]:
    """The sets of jobs that are done before `span` is over, each with its weighted delta and its seconds."""
    waiting: list[tuple[int, list[Table], float, float]] = [(0, [], 0.0, 0.0)]
    while waiting:
        start, chosen, benefit, busy = waiting.pop()
        if chosen:
            yield chosen, benefit, busy
        for index in range(start, len(jobs)):
            job = jobs[index]
            if busy + job.seconds < span:
                more = benefit + job.weight * job.delta
                waiting.append((index + 1, [*chosen, job], more, busy + job.seconds))

"""Curves over time from a recording, thinned to what a picture can show: a peak in the log is a peak in the curve."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.events import RunFinished, RunPaused, RunResumed, RunStarted, RunStepped
from engine.recording.columns import Floats, Ints

if TYPE_CHECKING:
    from engine.recording.recording import RunRecording

MEASURES = ("bytes", "packs", "rows")
EXACT, SNAPSHOTS = "exact", "snapshots"  # where the figures of the queues are from


def span(times: Floats, start: float, stop: float) -> slice:
    """The places of a sorted column that show a span of time: one more on either side, for lines that leave it."""
    first = int(np.searchsorted(times, start, side="left"))
    last = int(np.searchsorted(times, stop, side="right"))
    return slice(max(0, first - 1), min(len(times), last + 1))


def peaks(values: Floats, points: int) -> Ints:
    """At most about `points` places of a curve that keep its shape: the largest and the last of each part."""
    count = len(values)
    if count <= points or points < 4:
        return np.arange(count)
    parts = points // 2
    size = -(-count // parts)
    parts = -(-count // size)
    padded = np.full(parts * size, -np.inf)
    padded[:count] = values
    starts = np.arange(parts) * size
    largest = padded.reshape(parts, size).argmax(axis=1) + starts
    lasts = np.minimum(starts + size, count) - 1
    kept = np.zeros(count, np.bool_)  # `np.unique` loads more of numpy, for longer than a picture takes
    kept[0] = kept[largest] = kept[lasts] = True
    return np.flatnonzero(kept)


@dataclass(frozen=True)
class Memory:
    """What the queues held: in all, and each queue's own, at the same moments.

    A pack that waits in several queues is held once, so that the queues' own may come to more than is held in all.
    """

    times: Floats
    total: Floats
    queues: dict[str, Floats]


def memory(recording: RunRecording, measure: str, start: float, stop: float, points: int = 2000) -> Memory:
    """Packs, rows or bytes in all queues and in each, over a span of time, as the snapshots have them."""
    shots = recording.snapshots
    times = shots["time"]
    places = span(times, start, stop)
    total = shots[measure][: len(times)][places]
    kept = peaks(total, points)
    rows = kept + places.start
    first, last = shots["first"][rows].astype(np.int64), shots["last"][rows].astype(np.int64)
    lengths = last - first
    # The places in `held` of all that the kept snapshots tell, one after the other.
    column = np.repeat(np.arange(len(rows)), lengths)
    offsets = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    held = np.repeat(first, lengths) + offsets
    which = recording.held["queue"][held].astype(np.int64)
    values = recording.held[measure][held]
    names = recording.queues.names
    table = np.zeros((len(names), len(rows)))
    table[which, column] = values
    queues = {name: table[number] for number, name in enumerate(names) if table[number].any()}
    return Memory(times[rows], total[kept], queues)


def shared(queues: Mapping[str, Floats], total: Floats) -> dict[str, Floats]:
    """The queues' parts of what is held in all: those that a pack waits in share it."""
    if not queues:
        return {}
    sums = np.sum(list(queues.values()), axis=0)
    part = np.minimum(np.divide(total, sums, out=np.ones(len(total)), where=sums > 0), 1.0)
    return {name: values * part for name, values in queues.items()}


def largest(recording: RunRecording) -> dict[str, float]:
    """The most bytes that each queue ever held, the largest first."""
    names = recording.queues.names
    most = np.zeros(len(names))
    which, size = recording.held["queue"], recording.held["bytes"]
    count = min(len(which), len(size))
    np.maximum.at(most, which[:count].astype(np.int64), size[:count])
    order = np.argsort(-most, kind="stable").tolist()
    return {names[number]: float(most[number]) for number in order if most[number] > 0}


def activity(recording: RunRecording, edges: Floats) -> NDArray[np.float64]:
    """For each unit, the part of each span between two edges in which it was active."""
    widths = np.maximum(np.diff(edges), 1e-12)
    grid = np.zeros((len(recording.lanes), len(edges) - 1))
    now, names = recording.end, recording.units.names
    for number, lane in enumerate(recording.lanes):
        active = np.diff(lane.grown("active", edges))
        begun = recording.open.get(names[number])
        if begun is not None:  # the turn that has not ended yet
            active = active + np.diff(np.clip(edges, begun, max(now, begun)))
        grid[number] = active / widths
    return np.clip(grid, 0.0, 1.0)


def staleness(recording: RunRecording, until: float) -> dict[str, tuple[Floats, Floats]]:
    """The saw teeth of each table: staleness grows with time and falls at a refresh (streaming warehouse, fig. 1)."""
    told = recording.staleness
    times = told["time"]
    count = int(np.searchsorted(times, until, side="right"))
    times, which, values = times[:count], told["table"][:count], told["staleness"][:count]
    curves = {}
    for number, table in enumerate(recording.tables.names):
        mine = which == number
        at, fallen = times[mine], values[mine]
        if not len(at):
            continue
        ends = np.append(at[1:], max(until, float(at[-1])))
        xs = np.column_stack((at, ends)).ravel()
        ys = np.column_stack((fallen, fallen + ends - at)).ravel()
        curves[table] = (xs, ys)
    return curves


@dataclass(frozen=True)
class Figures:
    """A run in a few numbers. Of the queues: the average over time and the peak."""

    run: str
    workflow: str
    policy: str
    granularity: str
    backend: str
    status: str
    seconds: float
    activations: int
    spills: int
    avg_bytes: float
    max_bytes: int
    avg_packs: float
    max_packs: int
    avg_rows: float
    max_rows: int
    queues_from: str  # EXACT: the run's end tells what it summed up; SNAPSHOTS: reckoned from them, ten a second
    events: int


def standstills(recording: RunRecording) -> list[tuple[float, float]]:
    """When the run was paused and nothing ran; seconds since its start."""
    found: list[tuple[float, float]] = []
    begin: float | None = None
    for event, time in zip(recording.events, recording.event_times, strict=True):
        if isinstance(event, RunPaused) and not event.running:
            begin = time if begin is None else begin
        elif isinstance(event, RunResumed | RunStepped | RunFinished) and begin is not None:
            found.append((begin, time))
            begin = None
    return found


def held_exactly(recording: RunRecording) -> dict[str, float] | None:
    """What the run's last event says of its queues; None of one that goes on, or that tells only of its last part."""
    resumed = any(isinstance(event, RunStarted) and event.resumed for event in recording.events)
    return recording.finished.queue if recording.finished is not None and not resumed else None


def _held_in_snapshots(recording: RunRecording) -> dict[str, float]:
    """The average over time and the peak of all that the snapshots tell, without the time that the run stood still."""
    shots = recording.snapshots
    times = shots["time"]
    found: dict[str, float] = {}
    lengths = np.diff(times)
    for begin, end in standstills(recording):  # a pause is no part of the run, and of no average
        lengths -= np.clip(np.minimum(times[1:], end) - np.maximum(times[:-1], begin), 0.0, None)
    for measure in MEASURES:
        values = shots[measure][: len(times)]
        most = int(values.max()) if len(values) else 0
        whole = float(lengths.sum())
        found[f"max_{measure}"] = most
        found[f"avg_{measure}"] = float((values[:-1] * lengths).sum() / whole) if whole else float(most)
    return found


def figures(recording: RunRecording) -> Figures:
    """What a comparison tells of a run."""
    exact = held_exactly(recording)
    held = exact or _held_in_snapshots(recording)
    started = recording.started
    return Figures(
        recording.name,
        started.workflow if started else "",
        recording.policy,
        started.granularity if started else "",
        started.backend if started else "",
        recording.status,
        recording.finished.seconds if recording.finished else recording.end,
        int(sum(lane.last("turns") for lane in recording.lanes)),
        len(recording.spills),
        held["avg_bytes"],
        int(held["max_bytes"]),
        held["avg_packs"],
        int(held["max_packs"]),
        held["avg_rows"],
        int(held["max_rows"]),
        EXACT if exact else SNAPSHOTS,
        recording.count,
    )


@dataclass(frozen=True)
class Share:
    """What a unit did by a moment: how fast, how much it let through, and its part of all the work."""

    unit: str
    rows_per_second: float  # that it took, of the seconds in which it worked
    selectivity: float | None  # rows given for each row taken
    time_share: float
    seconds: float


def shares(recording: RunRecording, at: float) -> list[Share]:
    """Throughput, selectivity and time share of every unit that had a turn."""
    found = []
    for name, lane in zip(recording.units.names, recording.lanes, strict=False):
        ended = lane.ended(at)
        seconds = lane.at("seconds", ended - 1)
        if ended and lane.at("turns", ended - 1):
            found.append((name, seconds, lane.at("rows_in", ended - 1), lane.at("rows_out", ended - 1)))
    delivering = _delivering(recording)
    whole = sum(seconds for _, seconds, _, _ in found) or 1.0
    return [
        Share(
            name,
            (rows_in or rows_out) / seconds if seconds else 0.0,
            rows_out / rows_in if rows_in and name not in delivering else None,
            seconds / whole,
            seconds,
        )
        for name, seconds, rows_in, rows_out in found
    ]


def _delivering(recording: RunRecording) -> set[str]:
    """The units that end in a target: what they give is not what they let through."""
    started = recording.started
    if started is None:
        return set()
    targets = {node for node, facts in started.nodes.items() if facts.get("role") == "target"}
    return {unit for unit, facts in started.units.items() if targets & set(facts.get("nodes", ()))}

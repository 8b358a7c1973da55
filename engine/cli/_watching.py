"""A run as a picture in the terminal: nodes, queues, memory and the decision of the moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from engine.recording import QueueState, RunRecording, RunState, State

if TYPE_CHECKING:
    from rich.console import RenderableType

MARKS = {
    State.WAITING: ("·", "dim"),
    State.RUNNING: ("▶", "bold cyan"),
    State.STALLED: ("‖", "yellow"),
    State.FINISHED: ("✓", "green"),
    State.FAILED: ("✗", "bold red"),
}
STATUS = {"done": "green", "failed": "bold red", "cancelled": "yellow", "interrupted": "bold red", "paused": "yellow"}
BAR = 16
SPARKS = "▁▂▃▄▅▆▇█"
SPARK_WIDTH = 40
CANDIDATES = 6


def picture(recording: RunRecording, at: float, status: str | None = None, lines: int = 40) -> RenderableType:
    """The run at a moment, in so many lines of a terminal."""
    state = recording.state(at)
    started = recording.started
    if started is None:
        return Text("Nothing is in the log yet.", "dim")
    queues = [(id_, queue) for id_, queue in state.queues.items() if queue.packs]
    queues.sort(key=lambda entry: (-(entry[1].fill or 0), entry[0]))
    room = max(6, lines - 8)
    for_queues = min(len(queues), max(3, room // 3))
    parts: list[RenderableType] = [
        _head(recording, state, status or state.status),
        _nodes(recording, state, room - for_queues),
    ]
    if queues:
        parts.append(_queues(recording, queues[:for_queues], len(queues) - for_queues))
    parts.append(_decision(recording, at))
    if state.reason:
        parts.append(Text(state.reason, "red"))
    if recording.flaw:
        parts.append(Text(recording.flaw, "yellow"))
    return Panel(Group(*parts), title=f"{started.workflow}  {started.run}", title_align="left", border_style="dim")


def size_text(count: float) -> str:
    """Bytes as a person reads them."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:,.0f} {unit}" if unit == "B" else f"{count:,.1f} {unit}"
        count /= 1000
    return f"{count:,.2f} GB"


def sparkline(values: list[float], width: int = SPARK_WIDTH) -> str:
    """The largest value of each part of a series, as small bars."""
    if not values:
        return ""
    width, count = min(width, len(values)), len(values)
    parts = [values[at * count // width : (at + 1) * count // width] for at in range(width)]
    tops = [max(part) for part in parts]
    most = max(tops) or 1.0
    return "".join(SPARKS[min(len(SPARKS) - 1, round(top / most * (len(SPARKS) - 1)))] for top in tops)


def bar(queue: QueueState) -> Text:
    """How full a queue is, green up to 60 %, yellow to 85 %, red above."""
    fill = queue.fill
    if fill is None:
        return Text("staged".ljust(BAR), "dim")
    full = min(BAR, round(fill * BAR)) or 1
    return Text.assemble(("█" * full, queue.level), ("░" * (BAR - full), "dim"))


def _head(recording: RunRecording, state: RunState, status: str) -> Text:
    started = recording.started
    assert started is not None
    until = int(recording.snapshot_at(state.at)) + 1
    sizes = [float(size) for size in recording.snapshots["bytes"][:until]]
    text = Text()
    text.append(f"{status}", STATUS.get(status, "bold cyan"))
    text.append(f"  {state.at:,.1f} s   policy {started.policy}   {started.granularity}   {started.backend}\n")
    text.append(f"queues {size_text(state.bytes)}  {state.packs:,} packs  {state.rows:,} rows")
    if sizes:
        text.append("   ")
        text.append(sparkline(sizes), "cyan")
        text.append(f"  at most {size_text(max(sizes))}", "dim")
    return text


def _nodes(recording: RunRecording, state: RunState, room: int) -> Table:
    started = recording.started
    assert started is not None
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for heading, justify in (("", "left"), ("node", "left"), ("state", "left"), ("rows in", "right"),
                             ("rows out", "right"), ("rows/s", "right"), ("", "left")):  # fmt: skip
        table.add_column(heading, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    shown = list(state.nodes.items())
    if len(shown) > room:  # what happens now is what is worth its lines
        rank = {State.FAILED: 0, State.RUNNING: 1, State.STALLED: 2, State.FINISHED: 3, State.WAITING: 4}
        best = {id_ for id_, _ in sorted(shown, key=lambda entry: rank[entry[1].state])[: room - 1]}
        shown = [entry for entry in shown if entry[0] in best]
    for id_, node in shown:
        mark, style = MARKS[node.state]
        title = str(started.nodes.get(id_, {}).get("title", id_))
        rate = f"{node.rows_per_second:,.0f}" if node.rows_per_second else ""
        counts = ["" if rows is None else f"{rows:,}" for rows in (node.rows_in, node.rows_out)]
        done = f" {node.progress:.0%} of its tasks" if node.progress is not None else ""
        note = Text(node.message, "red") if node.message else Text(f"{node.count or ''}{done}".strip(), "dim")
        table.add_row(Text(mark, style), Text(title), Text(node.state.value, style), *counts, rate, note)
    if len(shown) < len(state.nodes):
        table.add_row("", Text(f"… and {len(state.nodes) - len(shown)} more", "dim"))
    return table


def _queues(recording: RunRecording, queues: list[tuple[str, QueueState]], more: int) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for heading, justify in (("queue", "left"), ("", "left"), ("packs", "right"), ("rows", "right"), ("", "right")):
        table.add_column(heading, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    for id_, queue in queues:
        packs = f"{queue.packs:,}" if queue.capacity is None else f"{queue.packs:,} of {queue.capacity:,}"
        table.add_row(Text(id_), bar(queue), packs, f"{queue.rows:,}", size_text(queue.bytes))
    if more > 0:
        table.add_row(Text(f"… and {more} more", "dim"))
    return table


def _decision(recording: RunRecording, at: float) -> Text:
    number = recording.decision_at(at)
    if number < 0:
        return Text("No decision yet." if at == 0 else "", "dim")
    made = recording.decision(number)
    others = sorted(made.candidates, key=lambda entry: -entry[1])[:CANDIDATES]
    text = Text(f"decision {made.activation}: ", "dim")
    text.append(f"{made.policy} picks {made.unit}", "bold")
    text.append(f" ({made.step}, {made.packs:,} packs)   ")
    text.append(", ".join(f"{unit} {_score(score)}" for unit, score in others), "dim")
    left = len(made.candidates) - len(others)
    return text.append(f" and {left} more", "dim") if left > 0 else text


def _score(score: float) -> str:
    return f"{score:,.0f}" if abs(score) >= 100 else f"{score:.3g}"

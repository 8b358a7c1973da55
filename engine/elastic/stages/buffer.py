"""Data buffers: swapping, scale-out, and scale-in by request (elastic, figure 6)."""

from __future__ import annotations

from collections.abc import Sequence

from engine.elastic.decision import Action, Decision, keep, out
from engine.model.elastic import Buffer


def swaps(memory_mb: float, swapping: bool, limits: Buffer) -> bool:
    """Whether a buffer swaps to disk: from above half of its memory on, until its memory is empty."""
    if memory_mb > limits.memory_mb * limits.swap_share:
        return True
    return swapping and memory_mb > 0


def decide(memory_mb: Sequence[float], disk_mb: Sequence[float], limits: Buffer) -> Decision:
    """By what each buffer holds in memory and on disk."""
    if not memory_mb:
        return keep("no buffer yet")
    fullest, most = max(memory_mb), max(disk_mb)
    if fullest >= limits.memory_mb:
        return out(
            f"a buffer's memory is full ({fullest:,.0f} of {limits.memory_mb:,g} MB): rows come faster than they are "
            "swapped to disk"
        )
    if most > limits.disk_mb * limits.disk_share:
        return out(f"a buffer's disk holds {most:,.0f} MB, above {limits.disk_share:.0%} of its {limits.disk_mb:,g} MB")
    if limits.scale_in and len(memory_mb) > 1:
        held = [memory + disk for memory, disk in zip(memory_mb, disk_mb, strict=True)]
        leaves, takes_over = sorted(range(len(held)), key=held.__getitem__)[:2]
        # It goes to the other's disk. What fits is what would not at once ask for another buffer again.
        fits = held[leaves] + disk_mb[takes_over] <= limits.disk_mb * limits.disk_share
        if fits and sum(memory_mb) / (len(memory_mb) - 1) < limits.memory_mb:
            return Decision(
                Action.IN,
                f"the {held[leaves]:,.0f} MB of a buffer fit into another, which holds {held[takes_over]:,.0f} MB",
                (leaves,),
                (takes_over,),
            )
    swapping = " and swaps to disk" if fullest > limits.memory_mb * limits.swap_share else ""
    return keep(f"the fullest buffer holds {fullest:,.0f} of {limits.memory_mb:,g} MB in memory{swapping}")

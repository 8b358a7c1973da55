"""Buffers swap to disk and scale out (elastic, figure 15), simulated."""

from __future__ import annotations

from engine.elastic.decision import Stage
from engine.experiments.ascale import run, scaled, where
from engine.experiments.experiment import Options, Report, Table, judged
from engine.experiments.svg import Chart

RATE = 350_000
MEMORY_MB, DISK_MB = 10_000, 1_000_000


def experiment(options: Options) -> Report:
    """350,000 rows/s into a buffer that nobody empties: 50 % memory, disk, a second node (elastic, fig. 15)."""
    seconds = 1200.0 if options.quick else 2400.0
    limits, result = run(
        limit_s=None,
        sample_s=5,
        settle_s=10,
        rate={"kind": "steps", "steps": [{"at_s": 0, "rows_s": RATE}], "seconds": seconds},
        extraction={"every_s": 2, "nodes": {"min": 2}},
        transformation={"queue_mb": 200, "nodes": {"min": 2}},
        switch={"limit_rows_s": 1e9},
        warehouse={"every_s": 1e9},  # no consumer
    )
    points = result.points
    outs = scaled(result, "scale out", Stage.BUFFER)
    half = MEMORY_MB * limits.buffer.swap_share
    first = [point.memory_mb[0] for point in points]
    disk = [point.disk_mb[0] for point in points]
    second = [point.memory_mb[1] if len(point.memory_mb) > 1 else 0.0 for point in points]
    begins = next(point for point in points if sum(point.disk_mb) > 0)
    before = [point for point in points if point.at_s < begins.at_s]
    added = outs[0].at_s if outs else seconds
    back = next((point.at_s for point in points if point.at_s > added and point.memory_mb[0] <= half), None)
    stays = back is not None and all(point.memory_mb[0] <= half * 1.1 for point in points if point.at_s >= back)
    held = sum(points[-1].memory_mb) + sum(points[-1].disk_mb)
    every = max(1, len(points) // 40)
    rows = [
        (point.at_s, *[(point.memory_mb[node], point.disk_mb[node])[part] if node < len(point.memory_mb) else None
                       for node in range(2) for part in range(2)], point.nodes["buffer"])
        for point in points[::every]
    ]  # fmt: skip
    return Report(
        "Elastic, figure 15: buffers (simulated)",
        [Table("ascale_fig15", ("s", "memory 1 MB", "disk 1 MB", "memory 2 MB", "disk 2 MB", "nodes"), rows)],
        [
            Chart(
                "ascale_fig15",
                "Memory and disk of the buffers",
                "time (seconds)",
                "memory (MB)",
                {"memory of node 1": first[::every], "memory of node 2": second[::every]},
                [point.at_s for point in points[::every]],
                levels={"50 % of memory": half, "all memory": MEMORY_MB},
                marks=[(change.at_s, "node added") for change in outs],
                right={"disk of node 1 (GB)": [size / 1000 for size in disk[::every]]},
                y_right="disk (GB)",
            )
        ],
        [
            judged(
                "from 50 % of memory on data are swapped to disk, before that none",
                all(sum(point.disk_mb) == 0 for point in before) and max(first[: len(before)]) <= half * 1.02,
                f"swapping begins after {begins.at_s:.0f} s at {before[-1].memory_mb[0]:,.0f} MB of memory",
            ),
            judged(
                "when memory reaches its limit all the same, a new node is added",
                bool(outs) and "memory is full" in outs[0].reason, f"{where(outs)}, after {added:.0f} s",
            ),
            judged(
                "after a new node the first one's disk empties its memory back to 50 %, where it stays",
                stays,
                f"back below {half:,.0f} MB after {back or 0:.0f} s",
            ),
            judged(
                "the buffers hold all ingress data",
                abs(held / (result.waiting_rows * limits.capacity.row_bytes / 1e6) - 1) < 0.02,
                f"{held:,.0f} MB of {result.generated_rows * limits.capacity.row_bytes / 1e6:,.0f} MB generated",
            ),
        ],
    )  # fmt: skip

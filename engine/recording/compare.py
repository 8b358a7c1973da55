"""Several runs side by side: their figures as a table, and as a report that stands on its own."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from html import escape

import numpy as np

from engine.recording import drawing
from engine.recording.recording import RunRecording
from engine.recording.series import EXACT, SNAPSHOTS, Figures, activity, figures, memory

COLUMNS = (
    "run", "workflow", "policy", "granularity", "backend", "status", "seconds", "activations", "spills",
    "avg_bytes", "max_bytes", "avg_packs", "max_packs", "avg_rows", "max_rows", "queues_from",
    "events",
)  # fmt: skip
POINTS = 500  # of a curve in the report
SLICES = 700  # of an X-ray
FROM = {EXACT: "exact", SNAPSHOTS: "from snapshots"}


@dataclass(frozen=True)
class Comparison:
    """Runs and their figures, in the order they were given."""

    recordings: list[RunRecording]
    figures: list[Figures]
    remark: str = ""  # about all of them

    @classmethod
    def of(cls, recordings: Sequence[RunRecording], remark: str = "") -> Comparison:
        """Compare these."""
        return cls(list(recordings), [figures(recording) for recording in recordings], remark)

    def remarks(self) -> list[str]:
        """What is to be known beside the figures: the remark about all, and the logs that do not tell all of a run."""
        return [text for text in (self.remark, *(recording.flaw for recording in self.recordings)) if text]

    @property
    def end(self) -> float:
        """Of the longest run."""
        return max((recording.end for recording in self.recordings), default=0.0)

    def names(self) -> list[str]:
        """What tells the runs apart: the policy, or the policy and the run."""
        policies = [one.policy for one in self.figures]
        return [
            policy.upper() if policies.count(policy) == 1 else f"{policy.upper()} {one.run[-6:]}"
            for policy, one in zip(policies, self.figures, strict=True)
        ]

    def as_dict(self) -> dict[str, object]:
        """The figures as plain data."""
        return {"runs": [asdict(one) for one in self.figures]}

    def csv(self) -> str:
        """The figures as a table for other programs."""
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for one in self.figures:
            writer.writerow(asdict(one))
        return text.getvalue()

    def curves(self) -> dict[str, tuple[list[float], list[float]]]:
        """Queue memory over time, of each run."""
        found = {}
        for name, recording in zip(self.names(), self.recordings, strict=True):
            curve = memory(recording, "bytes", 0.0, recording.end, POINTS)
            found[name] = (curve.times.tolist(), curve.total.tolist())
        return found

    def html(self) -> str:
        """A page that needs nothing else: the table, the curves, the X-rays; the numbers in it are JSON as well."""
        names = self.names()
        numbers = {**self.as_dict(), "curves": self.curves()}
        charts = [drawing.curves("Queue memory", self.curves(), self.end)]
        for name, recording in zip(names, self.recordings, strict=True):
            edges = np.linspace(0.0, max(self.end, 1e-3), SLICES + 1)
            grid = activity(recording, edges)
            places = recording.places()
            lanes = [(recording.title_of(unit), places[unit]) for unit in recording.units.names]
            charts.append(drawing.xray(f"Activity under {name}", lanes, grid, self.end))
        data = json.dumps(numbers).replace("</", "<\\/")
        title = ", ".join(sorted({one.workflow for one in self.figures})) or "runs"
        return _PAGE.format(
            title=escape(f"{title}: {' / '.join(names)}"),
            made=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
            table=_table(names, self.figures),
            remarks="".join(f'<p class="remark">{escape(text)}</p>\n' for text in self.remarks()),
            charts="\n".join(f"<figure>{chart}</figure>" for chart in charts),
            data=data,
        )


def _table(names: Sequence[str], found: Sequence[Figures]) -> str:
    head = "".join(
        f"<th>{text}</th>"
        for text in ("Run", "Policy", "Status", "Time", "Average memory", "Peak memory", "Average packs", "Peak packs",
                     "Turns", "Spills", "Queue figures")
    )  # fmt: skip
    rows = []
    for name, one in zip(names, found, strict=True):
        cells = (
            one.run, name, one.status, f"{one.seconds:.2f} s", _megabytes(one.avg_bytes), _megabytes(one.max_bytes),
            f"{one.avg_packs:,.1f}", f"{one.max_packs:,}", f"{one.activations:,}", f"{one.spills:,}",
            FROM[one.queues_from],
        )  # fmt: skip
        rows.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _megabytes(value: float) -> str:
    return f"{value / 1e6:,.2f} MB"


_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
:root {{ color-scheme: light; }}
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 2.5rem auto; max-width: 70rem; padding: 0 1rem; color: #1b2027; }}
h1 {{ font-size: 1.6rem; margin-bottom: 0; }} p {{ color: #5c6675; margin-top: .2rem; }}
table {{ border-collapse: collapse; width: 100%; margin: 1.5rem 0; font-variant-numeric: tabular-nums; }}
th {{ text-align: right; font-weight: 600; color: #5c6675; border-bottom: 2px solid #d3d8e0; padding: .4rem .6rem; }}
td {{ text-align: right; border-bottom: 1px solid #e4e8ee; padding: .4rem .6rem; }}
th:nth-child(-n+3), td:nth-child(-n+3), th:last-child, td:last-child {{ text-align: left; }}
.remark {{ color: #8a4b00; }}
figure {{ margin: 2rem 0; }} svg {{ width: 100%; height: auto; }}
</style></head><body>
<h1>{title}</h1><p>Made by Papilio, {made}. Memory and packs are what all queues held together: exact, summed up by
the run at every change; of a run that has not ended, or was resumed, from snapshots ten times a second.</p>
{table}
{remarks}{charts}
<script type="application/json" id="numbers">{data}</script>
</body></html>
"""

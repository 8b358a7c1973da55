"""How far a run has come, line by line, so that a killed run can be finished from where it was.

A step is done once its line is written. What it took is removed only after that, and what a step had made whose line
is missing is removed when the run is resumed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

FILE = "progress.jsonl"


class Progress:
    """The steps of a run, in the order they were done."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self.steps = list(read_steps(self.path))
        self.is_resumed = bool(self.steps)
        if self.is_resumed:  # a kill may have cut the last line off: it was not yet true
            kept = "".join(json.dumps(step) + "\n" for step in self.steps)
            self.path.with_suffix(".new").write_text(kept, encoding="utf-8")
            self.path.with_suffix(".new").replace(self.path)
        self._file = self.path.open("a", encoding="utf-8")

    def begin(
        self,
        fingerprints: dict[str, str],
        settings: Mapping[str, Any],
        values: Mapping[str, Any],
        plan: Mapping[str, Any],
    ) -> dict[str, str]:
        """The run begins, or goes on. Gives the sources' fingerprints from when it first began."""
        if self.is_resumed:
            known: dict[str, str] = self.steps[0]["fingerprints"]
            return known
        self.add({"fingerprints": fingerprints, "settings": dict(settings), "values": dict(values), "plan": dict(plan)})
        return fingerprints

    def done(self) -> list[dict[str, Any]]:
        """The steps that a killed run had done."""
        return self.steps[1:]

    def add(self, step: Mapping[str, Any]) -> None:
        """A step is done."""
        self._file.write(json.dumps(step) + "\n")
        self._file.flush()

    def close(self) -> None:
        """No more steps."""
        self._file.close()


def read_steps(path: Path) -> Iterator[dict[str, Any]]:
    """The steps of a run up to the first line that is not whole."""
    if not path.exists():
        return
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                step = json.loads(line)
            except ValueError:
                return
            if not isinstance(step, dict) or not line.endswith("\n"):
                return
            yield step

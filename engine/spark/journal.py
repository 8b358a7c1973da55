"""A journal in the run's folder says how far the targets of a run have come.

So a killed run can be finished or undone by whoever comes next.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.errors import RunFailed
from engine.spark.targets import from_record, sync

JOURNAL = "targets.jsonl"


class Journal:
    """How far the targets of one run have come: staging, committing (from here on only forwards), committed.

    It is locked while its run lives, so that nobody takes a living run for a killed one.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = (folder / JOURNAL).open("a", encoding="utf-8")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise RunFailed(f"{folder}: another process is running in this folder") from None
        if (folder / JOURNAL).read_bytes()[-1:] not in (b"", b"\n"):
            self._file.write("\n")  # a kill has cut the last line off
        self.knows_deliveries = any(entry["state"] == "staging" for entry in _entries(folder / JOURNAL))
        sync(folder)

    def staging(self, records: Sequence[Mapping[str, Any]]) -> None:
        """These deliveries are about to be staged."""
        self._add({"state": "staging", "deliveries": [dict(record) for record in records]})
        self.knows_deliveries = True

    def committing(self) -> None:
        """All is staged and checked; from now on the targets change."""
        self._add({"state": "committing"})

    def committed(self, node: str) -> None:
        """A target has changed. Who misses this line commits again, which does nothing: no disk is waited for."""
        self._add({"state": "committed", "node": node}, durable=False)

    def discarded(self) -> None:
        """Nothing of this run is left but the old targets."""
        self._add({"state": "discarded"})

    def close(self) -> None:
        """Let go of the run's folder."""
        self._file.close()

    def _add(self, entry: Mapping[str, Any], durable: bool = True) -> None:
        self._file.write(json.dumps(entry) + "\n")
        self._file.flush()
        if durable:
            os.fsync(self._file.fileno())


def recover(folder: Path) -> str | None:
    """Finish or undo what a killed run left half done.

    Once a run has begun to commit, all its targets are brought forward; before that, what it staged is removed.
    Gives the run's outcome, `done` or `failed`; None where the run is still alive.
    """
    file = folder / JOURNAL
    if not file.exists():
        return "failed"  # it did not come as far as its targets
    try:
        journal = Journal(folder)
    except RunFailed:
        return None
    try:
        entries = _entries(file)
        states = {entry["state"] for entry in entries}
        deliveries = [
            from_record(record) for entry in entries if entry["state"] == "staging" for record in entry["deliveries"]
        ]
        if "discarded" in states:
            return "failed"
        if "committing" not in states:
            for one in deliveries:
                one.discard()
            journal.discarded()
            return "failed"
        done = {entry["node"] for entry in entries if entry["state"] == "committed"}
        for one in deliveries:
            if one.node not in done:
                one.commit()
                journal.committed(one.node)
        return "done"
    finally:
        journal.close()


def is_committing(folder: Path) -> bool:
    """Whether a run had begun to change its targets, and did not take it back."""
    states = _states(folder)
    return "committing" in states and "discarded" not in states


def is_discarded(folder: Path) -> bool:
    """Whether a run had given up, so that nothing of it is left."""
    return "discarded" in _states(folder)


def _states(folder: Path) -> set[str]:
    file = folder / JOURNAL
    return {entry["state"] for entry in _entries(file)} if file.exists() else set()


def _entries(file: Path) -> list[dict[str, Any]]:
    """The journal's lines; the last may have been cut off by the kill, and then was not yet true."""
    entries = []
    for line in file.read_text(encoding="utf-8").splitlines():
        with contextlib.suppress(ValueError):
            entry = json.loads(line)
            if isinstance(entry, dict) and "state" in entry:
                entries.append(entry)
    return entries

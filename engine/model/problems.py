"""What can be wrong with a workflow, said so that a person can mend it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad a problem is: an error keeps the workflow from running, a warning does not."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, and where: the node, its port or setting, and the line of the file.

    Without a node the setting is the workflow's own: `parameters.day`, `roots.data`.
    """

    message: str
    node: str | None = None
    port: str | None = None
    setting: str | None = None
    level: Level = Level.ERROR
    line: int | None = None

    def text(self, file: str | None = None) -> str:
        """The problem in one line: file and line, node and port, reason."""
        place = file or ""
        if self.line is not None:
            place += f":{self.line}"
        where = []
        if self.node is not None:
            where.append(f"node `{self.node}`")
        if self.port is not None:
            where.append(f"port `{self.port}`")
        if self.setting is not None and self.node is not None:  # else the message names it
            where.append(f"setting `{self.setting}`")
        parts = [part for part in (place, ", ".join(where), self.message) if part]
        return ": ".join(parts)

    def as_dict(self) -> dict[str, str | int | None]:
        """The problem as the command line's JSON has it."""
        return {
            "node": self.node,
            "port": self.port,
            "setting": self.setting,
            "level": self.level.value,
            "message": self.message,
            "line": self.line,
        }


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """A near match as the end of a sentence, or nothing."""
    by_lower = {choice.lower(): choice for choice in choices}
    near = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    if not near:  # `qty` for `l_quantity`: the longest choice's part that the word starts or ends
        near = [lower for lower in by_lower if len(word) > 2 and word.lower() in lower][:1]
    return f"; did you mean `{by_lower[near[0]]}`?" if near else ""

"""Contenders in a process of their own that stays between rounds: a line of JSON asks for a round, a line answers.

A script that opens a Spark session of its own, as Spark ships it, cannot run in ours: a process has one. Its process
starts with the round that does not count, so nobody's figures hold a start of Python or of Spark.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.errors import EnvironmentProblem
from engine.experiments.measure import watched

CLOSE_SECONDS = 30
LAST_LETTERS = 300


class Apart:
    """A module that `answer`s, in a process of its own."""

    def __init__(
        self, module: str, arguments: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        """What the process says on stderr goes to `log`."""
        self.log = log
        self._command = [sys.executable, "-m", module, *arguments]
        own = {**os.environ, **(environment or {})}
        self._environment = {**own, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        self._process: subprocess.Popen[str] | None = None

    def ask(self, **question: Any) -> Mapping[str, float]:
        """One round: the figures that the process tells of it, its seconds and its memory among them."""
        if self._process is None:
            with self.log.open("wb") as errors:
                self._process = subprocess.Popen(
                    self._command, env=self._environment, text=True,
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                )  # fmt: skip
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # it ended; that is told below
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            said = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
            reason = "".join(said)[:LAST_LETTERS]
            raise EnvironmentProblem(f"{' '.join(self._command[1:4])} ended with {self._process.wait()}: {reason}")
        answer: dict[str, Any] = json.loads(line)
        if "failed" in answer:
            raise EnvironmentProblem(answer["failed"])
        return answer

    def close(self) -> None:
        """End the process."""
        if self._process is None:
            return
        with contextlib.suppress(subprocess.TimeoutExpired, BrokenPipeError, ValueError):
            self._process.communicate(timeout=CLOSE_SECONDS)  # which ends its stdin
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()
        self._process = None


def answer(run: Callable[[dict[str, Any]], Mapping[str, float] | None], settle: Callable[[], None]) -> None:
    """In the process itself: run whatever is asked, until nobody asks any more.

    `settle` comes before the clock starts. A run may tell figures of its own in place of those measured here.
    """
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as told:
        os.dup2(2, 1)  # no stray print is taken for an answer
        for line in sys.stdin:
            settle()
            os.sync()
            try:
                with watched() as watch:
                    begun = time.monotonic()
                    figures = run(json.loads(line))
                    seconds = time.monotonic() - begun
                found: dict[str, Any] = {"seconds": seconds, "peak_mb": watch.mb, **(figures or {})}
            except Exception as error:
                found = {"failed": f"{type(error).__name__}: {error}"}
            told.write(json.dumps(found) + "\n")
            told.flush()

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
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from engine.errors import EnvironmentProblem
from engine.experiments.measure import watched

CLOSE_SECONDS = 30
ROUND_SECONDS = 900  # the most that one answer may take
LAST_LETTERS = 300


class Apart:
    """A module that `answer`s, in a process of its own."""

    def __init__(
        self,
        module: str,
        arguments: Sequence[str],
        log: Path,
        environment: Mapping[str, str] | None = None,
        anew: Callable[[str], None] = lambda reason: None,
        limit_s: float = ROUND_SECONDS,
    ) -> None:
        """What the process says on stderr goes to `log`. `anew` hears why it is started once more."""
        self.log = log
        self.limit_s = limit_s
        self.asked = False  # since somebody last said that nobody had
        self._anew = anew
        self._ended = ""  # how the last process did, if it did so by itself
        self._command = [sys.executable, "-m", module, *arguments]
        own = {**os.environ, **(environment or {})}
        self._environment = {**own, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        self._process: subprocess.Popen[str] | None = None

    def ask(self, **question: Any) -> Mapping[str, float]:
        """One round: the figures that the process tells of it, its seconds and its memory among them."""
        self.asked = True
        if self._process is not None and self._process.poll() is not None:
            self._let_go()  # between two rounds
        if self._process is None:
            if self._ended:
                self._anew(self._ended)
            with self.log.open("ab" if self._ended else "wb") as errors:
                self._process = subprocess.Popen(
                    self._command, env=self._environment, text=True,
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                )  # fmt: skip
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # it ended; that is told below
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
        line, too_long = self._line_of(self._process)
        if too_long:
            self._let_go()
            self._ended = f"{' '.join(self._command[1:4])} did not answer within {self.limit_s:g} s and was ended"
            raise EnvironmentProblem(self._ended)
        if not line:
            self._let_go()
            raise EnvironmentProblem(self._ended)
        answer: dict[str, Any] = json.loads(line)
        if "failed" in answer:
            if answer.get("ends"):
                self._let_go()
            raise EnvironmentProblem(answer["failed"])
        return answer

    @property
    def pid(self) -> int | None:
        """The process, while there is one."""
        return None if self._process is None else self._process.pid

    def _line_of(self, process: subprocess.Popen[str]) -> tuple[str, bool]:
        """What the process answers, and whether it took too long and was ended for it, with all that it started."""
        assert process.stdout is not None
        late = threading.Event()

        def end() -> None:
            late.set()
            kill_tree(process.pid)

        timer = threading.Timer(self.limit_s, end)
        timer.start()
        try:
            line = process.stdout.readline()
        finally:
            timer.cancel()
            timer.join()
        return line, late.is_set() and not line

    def _let_go(self) -> None:
        """The process has ended or is about to; the next question starts another."""
        process, self._process = self._process, None
        assert process is not None
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        try:
            code = process.wait(CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        said = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
        self._ended = f"{' '.join(self._command[1:4])} ended with {code}: {''.join(said)[:LAST_LETTERS]}"

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


def kill_tree(pid: int) -> None:
    """End a process that was started here and those that it started: a script's JVM is one."""
    with contextlib.suppress(psutil.NoSuchProcess):
        root = psutil.Process(pid)
        for process in [*root.children(recursive=True), root]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()


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
                found = {"failed": f"{type(error).__name__}: {error}", "ends": not _settles(settle)}
            told.write(json.dumps(found) + "\n")
            told.flush()
            if found.get("ends"):
                return


def _settles(settle: Callable[[], None]) -> bool:
    """Whether what failed left behind what the next round needs; a JVM may have died in it."""
    try:
        settle()
    except Exception:
        return False
    return True

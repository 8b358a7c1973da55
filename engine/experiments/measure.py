"""Measuring a command: its seconds, and the peak memory of all the processes it starts."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

SAMPLE_SECONDS = 0.1
PROGRESS_SECONDS = 15


@dataclass(frozen=True)
class Measured:
    """What a command took. Memory is the resident set of the whole process tree, sampled."""

    seconds: float
    peak_mb: float
    output: str
    errors: str
    code: int


def measure(
    command: Sequence[str],
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    progress: Callable[[float, float], None] | None = None,
) -> Measured:
    """Run a command to its end. `progress` hears now and then of the seconds so far and the MB in memory."""
    begun = time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=dict(environment) if environment is not None else None,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    peak = _Peak(process.pid, progress)
    peak.start()
    try:
        output, errors = process.communicate()
    except BaseException:
        process.kill()
        process.wait()
        raise
    finally:
        seconds = time.monotonic() - begun
        peak.stop()
    return Measured(seconds, peak.mb, output, errors, process.returncode)


class _Peak(threading.Thread):
    """Samples the resident memory of a process and all its descendants."""

    def __init__(self, pid: int, progress: Callable[[float, float], None] | None = None) -> None:
        super().__init__(daemon=True)
        self.pid = pid
        self.progress = progress
        self.mb = 0.0
        self._done = threading.Event()

    def run(self) -> None:
        try:
            root = psutil.Process(self.pid)
            begun = told = time.monotonic()
            while not self._done.wait(SAMPLE_SECONDS):
                now_mb = self._sample(root)
                self.mb = max(self.mb, now_mb)
                if self.progress is not None and time.monotonic() - told >= PROGRESS_SECONDS:
                    told = time.monotonic()
                    self.progress(told - begun, now_mb)
        except psutil.NoSuchProcess:
            return

    def stop(self) -> None:
        self._done.set()
        self.join()

    def _sample(self, root: psutil.Process) -> float:
        total = 0
        for process in (root, *root.children(recursive=True)):
            try:
                total += process.memory_info().rss
            except psutil.NoSuchProcess:
                continue
        return total / 2**20

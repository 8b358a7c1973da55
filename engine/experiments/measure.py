"""Measuring a command, or a part of this process: its seconds, and what the whole process tree took meanwhile."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

SAMPLE_SECONDS = 0.1
GROWTH_MB = 16  # pages are counted anew once there are so many more of them: the kernel walks over all of them for it
PROGRESS_SECONDS = 15


@dataclass(frozen=True)
class Measured:
    """What a command took. Memory is that of the whole process tree, sampled; shared pages count once."""

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
    peak = Watch(process.pid, progress)
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


class Watch(threading.Thread):
    """Samples the resident memory and the processor time of a process and all its descendants."""

    def __init__(
        self,
        pid: int | None = None,
        progress: Callable[[float, float], None] | None = None,
        without: Callable[[], Collection[int]] = tuple,
    ) -> None:
        """No process given is this one. `progress` hears the seconds and the memory from time to time.

        `without` names processes that do not count at the moment, nor does what they started.
        """
        super().__init__(daemon=True)
        self.pid = pid or os.getpid()
        self.progress = progress
        self.without = without
        self.mb = 0.0
        self._resident_mb = 0.0  # when the pages were last counted
        self._done = threading.Event()
        self._processor_last: dict[int, float] = {}  # process → its processor time when it was last seen
        self.processor_seconds = 0.0  # that were spent while it was watched

    def run(self) -> None:
        try:
            root = psutil.Process(self.pid)
            begun = told = time.monotonic()
            self._sample(root)
            while not self._done.wait(SAMPLE_SECONDS):
                now_mb = self._sample(root)
                if self.progress is not None and time.monotonic() - told >= PROGRESS_SECONDS:
                    told = time.monotonic()
                    self.progress(told - begun, now_mb)
            self._sample(root)
        except psutil.NoSuchProcess:
            return

    def stop(self) -> None:
        self._done.set()
        self.join()

    def _sample(self, root: psutil.Process) -> float:
        """The memory in use now, in MB, shared pages counted for each; the peak is kept with them counted once."""
        total = 0
        found, left_out = [], set(self.without())
        for process in [root, *root.children(recursive=True)]:  # who started a process comes before it
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                times = process.cpu_times()
                spent = times.user + times.system
                more = spent - self._processor_last.get(process.pid, spent)
                self._processor_last[process.pid] = spent
                if process.pid in left_out or (left_out and process.ppid() in left_out):
                    left_out.add(process.pid)
                    continue
                found.append(process)
                total += process.memory_info().rss
                self.processor_seconds += more
        resident_mb = total / 2**20
        if not self.mb or resident_mb > self._resident_mb + GROWTH_MB:
            self._resident_mb = resident_mb
            self.mb = max(self.mb, sum(map(_own_bytes, found)) / 2**20)
        return resident_mb


@contextlib.contextmanager
def watched(without: Callable[[], Collection[int]] = tuple) -> Iterator[Watch]:
    """This process and all it started, but for processes that do not count, watched while this lasts."""
    watch = Watch(without=without)
    watch.start()
    try:
        yield watch
    finally:
        watch.stop()


def _own_bytes(process: psutil.Process) -> int:
    """A process's memory, with its share of what it has in common with others: a fork is not counted twice."""
    try:
        text = Path(f"/proc/{process.pid}/smaps_rollup").read_text(encoding="ascii")
        return next(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("Pss:"))
    except (OSError, StopIteration):
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            return int(process.memory_info().rss)
    return 0

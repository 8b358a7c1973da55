"""Row packs as files: a memory tier up to a budget, a disk tier beyond it, shared by reference count.

The memory tier is a folder on a memory-backed file system. Above half of its budget (or another share) new packs go to
disk, until the memory tier is empty again (elastic, section on buffers). Room for what is being written is kept from
before its first byte, so that several who write at a time do not fill the tier beyond its budget together. A pack that
nobody holds any more is gone from disk.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

from engine.errors import EnvironmentProblem
from engine.schedule.queues import Pack

MEMORY_FOLDER = Path("/dev/shm")
MEMORY_SHARE = 0.25  # of what is free there, and of the machine's memory
FULL_SHARE = 0.5  # of the budget: from here on packs go to disk
ENDING = ".parquet"
OWNER = "run"  # a file beside the packs in memory: the folder of their run


def default_budget_bytes() -> int:
    """How much memory the packs of a run may take where nobody says."""
    if not MEMORY_FOLDER.is_dir() or not os.access(MEMORY_FOLDER, os.W_OK):
        return 0
    return int(MEMORY_SHARE * min(shutil.disk_usage(MEMORY_FOLDER).free, psutil.virtual_memory().total))


@dataclass
class _Kept:
    """The room that is kept in memory for a folder that is being written, and what of it is taken."""

    expected: int
    taken: int = 0

    @property
    def bytes(self) -> int:
        return max(self.expected, self.taken)


@dataclass
class _Stored:
    """Where a pack is and how many hold it."""

    path: Path
    bytes: int
    in_memory: bool
    holders: int


class PackStore:
    """The packs of one run. Several threads may use it."""

    def __init__(self, name: str, disk: Path, budget_bytes: int | None = None, full_share: float = FULL_SHARE) -> None:
        """`name` tells the folder of this run apart from others' in memory."""
        self.disk = disk
        self.budget_bytes = default_budget_bytes() if budget_bytes is None else budget_bytes
        self._full_share = full_share
        self.memory = MEMORY_FOLDER / f"papilio-{name}" if self.budget_bytes and MEMORY_FOLDER.is_dir() else None
        self.memory_bytes = 0
        self.disk_bytes = 0
        self.max_memory_bytes = 0
        self.max_disk_bytes = 0
        self._to_disk = self.memory is None
        self._packs: dict[str, _Stored] = {}
        self._kept: dict[Path, _Kept] = {}
        self._next = 0
        self._lock = threading.RLock()
        for folder in self._folders():
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise EnvironmentProblem(f"{folder}: row packs cannot be kept there: {error.strerror}") from None

    def _folders(self) -> list[Path]:
        return [self.disk] if self.memory is None else [self.disk, self.memory]

    # -- writing

    def new_folder(self, expected_bytes: int = 0, on_disk: bool = False) -> Path:
        """A folder to write packs into, in the tier that has room for as much as is expected. The room is kept."""
        with self._lock:
            self._next += 1
            name = f"new-{self._next:06d}"
            if on_disk or self._to_disk or self.memory is None or not self._fits(expected_bytes):
                return self.disk / name
            folder = self.memory / name
            self._kept[folder] = _Kept(expected_bytes)
            return folder

    @property
    def kept_bytes(self) -> int:
        """The memory that is kept for what is being written."""
        with self._lock:
            return sum(kept.bytes for kept in self._kept.values())

    @property
    def used_bytes(self) -> int:
        """The memory that packs take, and what is being written."""
        with self._lock:
            return self.memory_bytes + self.kept_bytes

    def is_in_memory(self, path: Path) -> bool:
        """Whether a file or folder of ours lies in the memory tier."""
        return self.memory is not None and path.is_relative_to(self.memory)

    def _fits(self, more: int) -> bool:
        return self.used_bytes + more <= self.budget_bytes

    def wrote(self, file: Path) -> Path:
        """A file of a folder of ours that is no pack and goes with its folder; gives where it is from now on.

        What came out larger than expected and has no room in memory is on disk.
        """
        size = file.stat().st_size
        with self._lock:
            kept = self._kept_for(file)
            if kept is None:
                return file
            more = max(0, kept.taken + size - kept.bytes)
            if self._fits(more):
                kept.taken += size
                return file
            path = self.disk / file.parent.name / file.name
            path.parent.mkdir(parents=True, exist_ok=True)
            _move(file, path)
            return path

    def remove_folder(self, folder: Path) -> None:
        """All of a folder was adopted, or is no longer needed: its room is free again."""
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(self.disk / folder.name, ignore_errors=True)
        with self._lock:
            self._kept.pop(folder, None)

    def _kept_for(self, file: Path) -> _Kept | None:
        return next((self._kept[folder] for folder in file.parents if folder in self._kept), None)

    def adopt(self, file: Path, rows: int, holders: int) -> Pack:
        """Take in a file that was written into a folder of ours; it is held so often from the start."""
        size = file.stat().st_size
        with self._lock:
            self._next += 1
            name = f"p{self._next:08d}{ENDING}"
            in_memory = self.is_in_memory(file)
            if in_memory:
                kept = self._kept_for(file)
                if kept is not None:
                    kept.expected = max(0, kept.expected - size)
                in_memory = self._fits(size)
            base = self.memory if in_memory and self.memory is not None else self.disk
            path = base / name
            _move(file, path)
            self._packs[name] = _Stored(path, size, in_memory, holders)
            self._count(size, in_memory)
        return Pack(rows, size, name)

    def _count(self, size: int, in_memory: bool) -> None:
        if not in_memory:
            self.disk_bytes += size
            self.max_disk_bytes = max(self.max_disk_bytes, self.disk_bytes)
            return
        self.memory_bytes += size
        self.max_memory_bytes = max(self.max_memory_bytes, self.memory_bytes)
        if self.memory_bytes > self._full_share * self.budget_bytes:
            self._to_disk = True
        elif self.memory_bytes == 0 and self.memory is not None:
            self._to_disk = False

    # -- holding

    def path(self, pack: Pack) -> Path:
        """Where the rows of a pack are."""
        return self._packs[pack.name].path

    def hold(self, pack: Pack, more: int = 1) -> None:
        """So many more hold the pack."""
        with self._lock:
            self._packs[pack.name].holders += more

    def release(self, packs: Iterable[Pack]) -> None:
        """One fewer holds each of these packs; those that nobody holds are gone."""
        with self._lock:
            for pack in packs:
                stored = self._packs[pack.name]
                stored.holders -= 1
                if stored.holders == 0:
                    del self._packs[pack.name]
                    stored.path.unlink(missing_ok=True)
                    self._count(-stored.bytes, stored.in_memory)

    def to_disk(self, packs: Iterable[Pack]) -> None:
        """Let go of the memory of these packs: a unit absorbs them, or their queue spills."""
        with self._lock:
            for pack in packs:
                stored = self._packs[pack.name]
                if stored.in_memory:
                    path = self.disk / pack.name
                    _move(stored.path, path)
                    self._count(-stored.bytes, True)
                    stored.path, stored.in_memory = path, False
                    self._count(stored.bytes, False)

    # -- after a kill

    def restore(self, packs: Iterable[tuple[Pack, int]]) -> None:
        """Know these packs and their holders again; everything else in the folders is removed."""
        with self._lock:
            for pack, holders in packs:
                places = [folder / pack.name for folder in self._folders()]
                path = next((place for place in places if place.exists()), None)
                if path is None:
                    raise EnvironmentProblem(
                        f"the row pack {pack.name} is gone (the machine was restarted, or somebody removed it); "
                        "the run cannot be resumed"
                    )
                in_memory = self.is_in_memory(path)
                self._packs[pack.name] = _Stored(path, pack.bytes, in_memory, holders)
                self._count(pack.bytes, in_memory)
                self._next = max(self._next, int(pack.name[1:9]))
            known = {stored.path for stored in self._packs.values()}
            for folder in self._folders():
                for found in folder.iterdir():
                    if found not in known:
                        _remove(found)
            self._next += 1_000_000  # names of the killed run's last steps are not used again

    def close(self) -> None:
        """Remove all packs."""
        with self._lock:
            self._packs.clear()
            self._kept.clear()
            remove_packs(self.disk, self.memory)


def remove_packs(disk: Path, memory: Path | None) -> None:
    """Remove the folders that a run kept its packs in."""
    for folder in (disk, memory):
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def memory_folder(name: str) -> Path:
    """Where the run of this name keeps packs in memory."""
    return MEMORY_FOLDER / f"papilio-{name}"


def tell_owner(store: PackStore, run: Path) -> None:
    """Write beside packs in memory which run they are of, so that they can be removed when it was killed."""
    if store.memory is not None:
        (store.memory / OWNER).write_text(str(run.resolve()), encoding="utf-8")


def remove_ownerless(is_alive: Callable[[Path], bool]) -> None:
    """Remove what runs that were killed, and that nobody resumes, left in memory."""
    for owner in MEMORY_FOLDER.glob(f"papilio-*/{OWNER}"):
        with contextlib.suppress(OSError, ValueError):  # of another person, or gone by now
            run = Path(owner.read_text(encoding="utf-8"))
            if owner.stat().st_uid == os.getuid() and not is_alive(run):
                shutil.rmtree(owner.parent, ignore_errors=True)


def _move(source: Path, target: Path) -> None:
    try:
        os.rename(source, target)
    except OSError:  # from one file system to another: under a name that is no pack's until it is whole
        part = target.with_name(f"new-{target.name}")
        shutil.copyfile(source, part)
        os.rename(part, target)
        os.unlink(source)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)

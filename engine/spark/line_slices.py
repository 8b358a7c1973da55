"""Reading files of lines piece by piece: file by file, and a large file by runs of its lines.

A run of lines is copied out for its turn, behind the header where there is one: Spark cannot be told to read a part of
a file. That costs a small part of what parsing the lines does. Refused lines tell the number they have in their file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from pyspark.sql import functions as F

from engine.model.operator import Built, Place, Split, Way
from engine.operators import _formats
from engine.operators.line_sources import CsvSource, LineSource
from engine.spark.slices import Slice

LEAST_BYTES = 16 << 20  # of a run of lines: a job's own time is small beside reading so much
RUN_PACKS = 4  # about what a run of lines becomes, where that is more
PACKED = 4  # a compressed file's text is about so many times as long

_SAMPLE_FILES, _SAMPLE_BYTES = 8, 64 << 10
_BLOCK = 1 << 20
_LINE = re.compile(rb"[^\r\n]*(\r\n|\r|\n)")


def line_slices(source: LineSource, place: Place, pack_rows: int) -> list[Slice] | None:
    """The pieces of a source of lines, in order; None where it is only one. Their rows are an estimate."""
    files = [file for file in source.files(place) if file.stat().st_size]
    if any(sign in str(file) for file in files for sign in "*?[]{}\\"):
        return None  # Spark would take a file's name for a pattern
    width = _line_width(files)
    most = max(LEAST_BYTES, int(RUN_PACKS * pack_rows * width))
    in_one_piece = isinstance(source, CsvSource) and source.multi_line
    found: list[Slice] = []
    for file in files:
        size = file.stat().st_size
        packed = _formats.is_compressed(file)
        start = 0
        for end in [size] if in_one_piece or packed else _ends(file, 0, size, most):
            rows = int((end - start) * (PACKED if packed else 1) / width) + 1
            found.append(Slice(file, start, rows, end - start, of_lines=True))
            start = end
    return found if len(found) > 1 else None


def _line_width(files: Sequence[Path]) -> float:
    """About how many bytes a line takes."""
    size = lines = 0
    for file in files[:_SAMPLE_FILES]:
        try:
            with _formats.open_bytes(file) as opened:
                start = opened.read(_SAMPLE_BYTES)
        except (OSError, EOFError):
            continue  # a broken file is told by the run
        size += len(start)
        lines += max(1, start.count(b"\n"))
    return size / lines if lines else 100.0


def _ends(file: Path, start: int, end: int, most: float) -> list[int]:
    """Where runs of lines end between two places of a file, each behind a whole line."""
    length = end - start
    count = max(1, round(length / most))
    found: list[int] = []
    with file.open("rb") as opened:
        for at in range(1, count):
            opened.seek(max(start + length * at // count, found[-1] if found else 0))
            opened.readline()
            if opened.tell() < end and opened.tell() not in found:
                found.append(opened.tell())
    return [*found, end]


# ---------------------------------------------------------------- what one job reads


@dataclass
class Lines:
    """What a job reads of a source of lines: whole files as they are, and copies of runs of lines."""

    files: list[str] = field(default_factory=list)
    origins: dict[str, tuple[str, int]] = field(default_factory=dict)  # copy → its file, the lines left out before it

    def told(self, built: Built) -> Built:
        """The source with its refused lines as they stand in the files that it is about."""
        if not self.origins or not isinstance(built, Split):
            return built
        ways = {port: self._way(way) for port, way in built.ways.items()}
        return Split(built.frame, ways, built.working, built.overlapping)

    def _way(self, way: Way) -> Way:
        if way.frame is None:
            return way
        file, line = F.col("file"), F.col("line")
        for copy, (origin, before) in self.origins.items():
            line = F.when(F.col("file") == copy, F.col("line") + F.lit(before)).otherwise(line)
            file = F.when(F.col("file") == copy, F.lit(origin)).otherwise(file)
        return Way(way.condition, way.columns, way.frame.withColumns({"line": line, "file": file}))


class LineCopies:
    """Copies runs of lines of one source, and knows how many lines stand before them."""

    def __init__(self, source: LineSource) -> None:
        self._header = source.skips_header()
        self._before: dict[Path, dict[int, int]] = {}  # file → place in it → lines before it

    def copied(self, slices: Sequence[Slice], folder: Path, copies: int = 1) -> Lines:
        """What to read for these slices, which are in order; a run of lines in so many copies for as many cores.

        Spark would cut a single one in unequal parts, and the larger part decides how long a turn takes.
        """
        made = Lines()
        runs: list[tuple[Path, int, int]] = []
        for slice_ in slices:
            start, end = slice_.number, slice_.number + slice_.bytes
            if runs and runs[-1][0] == slice_.file and runs[-1][2] == start:
                start = runs.pop()[1]
            runs.append((slice_.file, start, end))
        for file, start, end in runs:
            if start == 0 and end == file.stat().st_size:
                made.files.append(str(file))
                continue
            folder.mkdir(parents=True, exist_ok=True)
            for place in _ends(file, start, end, (end - start) / copies):
                copy = folder / f"lines-{len(made.files):06d}.txt"
                made.origins[str(copy)] = str(file), self._copy(file, start, place, copy)
                made.files.append(str(copy))
                start = place
        return made

    def _copy(self, file: Path, start: int, end: int, copy: Path) -> int:
        """Copy a run of lines; what is to be added to a line's number in the copy."""
        with file.open("rb") as lines, copy.open("wb") as target:
            header = _header(lines.read(_BLOCK)) if self._header and start else b""
            before = self._lines_before(file, start)
            target.write(header)
            lines.seek(start)
            ends = _LineEnds(before)
            for block in _blocks(lines, end - start):
                ends.count(block)
                target.write(block)
        self._before[file][end] = ends.lines
        return before - (1 if header else 0)

    def _lines_before(self, file: Path, place: int) -> int:
        known = self._before.setdefault(file, {0: 0})
        if place not in known:
            nearest = max(at for at in list(known) if at <= place)
            with file.open("rb") as opened:
                opened.seek(nearest)
                ends = _LineEnds(known[nearest])
                for block in _blocks(opened, place - nearest):
                    ends.count(block)
                known[place] = ends.lines
        return known[place]


class _LineEnds:
    """Counts lines as Spark does: `\\n`, `\\r` and both together end one."""

    def __init__(self, lines: int = 0) -> None:
        self.lines = lines
        self._open = False  # whether the last block ended in the middle of both together

    def count(self, block: bytes) -> None:
        """The line ends of the next block."""
        returns = block.count(b"\r")
        both = block.count(b"\r\n") if returns else 0
        self.lines += block.count(b"\n") + returns - both - (1 if self._open and block.startswith(b"\n") else 0)
        self._open = block.endswith(b"\r")


def _blocks(opened: BinaryIO, length: int) -> Iterator[bytes]:
    while length > 0 and (block := opened.read(min(_BLOCK, length))):
        length -= len(block)
        yield block


def _header(start: bytes) -> bytes:
    """The first line of a file that is not blank."""
    return next((line[0] for line in _LINE.finditer(start) if line[0].strip()), b"")

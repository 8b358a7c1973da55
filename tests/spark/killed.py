"""A process that commits targets and is killed on the way, at every line of its code in turn. No Spark.

Run as `python killed.py FOLDER exchange|rename`. It forks a child for each line; the child kills itself there. Then
it looks at the targets, has the run recovered, and looks again. What is wrong is printed; nothing means all is well.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

from engine.spark import journal as journals
from engine.spark import targets
from engine.spark.journal import Journal, recover
from engine.spark.targets import FileDelivery

WATCHED = (targets.__file__, journals.__file__, shutil.__file__)


def deliveries(folder: Path) -> list[FileDelivery]:
    """A folder that is there, one that is not yet, and a single file."""
    return [FileDelivery(name, folder / name, folder / f".{name}.papilio-r1") for name in ("old", "first", "file.csv")]


def prepare(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "old").mkdir(parents=True)
    for number in range(2):
        (folder / "old" / f"part-{number}.csv").write_text("old")
    (folder / "file.csv").write_text("old")


def stage(folder: Path) -> None:
    for one in deliveries(folder):
        final = one.staged / ("file.csv" if one.node == "file.csv" else "rows")
        one.staged.mkdir()
        if one.node == "file.csv":
            final.write_text("new")
        else:
            final.mkdir()
            for number in range(3):
                (final / f"part-{number}.csv").write_text("new")
        one._mark_ready(final, None)


def run(folder: Path, journal_folder: Path) -> None:
    """What a run does with its targets once their rows are computed."""
    journal = Journal(journal_folder)
    journal.staging([one.record() for one in deliveries(folder)])
    stage(folder)
    journal.committing()
    for one in deliveries(folder):
        one.commit()
        journal.committed(one.node)
    journal.close()


def kill_at(line: int, watched: tuple[str, ...] = WATCHED) -> None:
    """Kill this process when it has run so many lines of the code under test."""
    left = line

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal left
        if frame.f_code.co_filename not in watched:
            return None
        if event == "line":
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    sys.settrace(trace)


def in_child(work: Any, line: int, watched: tuple[str, ...] = WATCHED) -> bool:
    """Do the work in a child that dies at a line; whether it died."""
    child = os.fork()
    if child == 0:
        kill_at(line, watched)
        try:
            work()
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def state(path: Path) -> str:
    """`old`, `new`, or what it is if neither."""
    if not path.exists():
        return "none"
    files = [path] if path.is_file() else sorted(path.iterdir())
    texts = {file.read_text() for file in files}
    if path.is_dir() and len(files) != (2 if texts == {"old"} else 3):
        return f"{len(files)} files of {texts}"
    return texts.pop() if len(texts) == 1 else f"mixed {texts}"


def check(folder: Path, journal: Path, line: int, second: int | None, whole: bool) -> str:
    """Look at the targets before and after a recovery; gives the outcome."""
    before = {name: state(folder / name) for name in ("old", "first", "file.csv")}
    allowed = {"old": {"old", "new"}, "first": {"none", "new"}, "file.csv": {"old", "new"}}
    if not whole:
        allowed["old"].add("none")
    for name, found in before.items():
        if found not in allowed[name]:
            print(f"line {line}: {name} is {found} after the kill")
    if second is not None:
        in_child(lambda: recover(journal), second)
    outcome = recover(journal)
    again = recover(journal)
    if outcome != again:
        print(f"line {line}: recovered {outcome}, then {again}")
    after = {name: state(folder / name) for name in before}
    wanted = {
        "done": {"old": "new", "first": "new", "file.csv": "new"},
        "failed": {"old": "old", "first": "none", "file.csv": "old"},
    }
    if after != wanted[outcome or "failed"]:
        print(f"line {line}, then {second}: {outcome} leaves {after}")
    left = [path.name for path in folder.iterdir() if path.name.startswith(".")]
    if left:
        print(f"line {line}: {left} is left behind")
    return outcome or "none"


def main() -> None:
    base, how = Path(sys.argv[1]), sys.argv[2]
    if how == "rename":

        def refuse(*_: Any) -> None:
            raise OSError(errno.ENOSYS, "not here")

        targets._rename = refuse
    outcomes = []
    line = 0
    while True:
        line += 1
        folder, journal = base / "targets", base / f"run-{line}"
        prepare(folder)
        died = in_child(lambda folder=folder, journal=journal: run(folder, journal), line)
        # Every other recovery is itself killed somewhere.
        second = None if line % 2 else 1 + (line * 37) % 150
        outcomes.append(check(folder, journal, line, second, whole=how == "exchange"))
        if not died:
            break
    kinds = [outcome for index, outcome in enumerate(outcomes) if index == 0 or outcomes[index - 1] != outcome]
    if kinds != ["failed", "done"]:
        print(f"outcomes came in the order {kinds}")
    print(f"killed at {line - 1} lines", file=sys.stderr)


if __name__ == "__main__":
    main()

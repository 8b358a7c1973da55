"""What the databases share: names and texts as their SQL writes them, and how rows meet a table's columns."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from engine.errors import RunFailed
from engine.model.problems import did_you_mean

FORMAT = "papilio_adbc"  # as Spark's readers and writers call it

NAME_BYTES = 63  # PostgreSQL cuts longer names off, silently


class DatabaseProblem(RunFailed):
    """Why a database could not do what was asked, in one line."""

    def __init__(self, words: str) -> None:
        super().__init__(" ".join(words.split()))


def identifier(name: str) -> str:
    """A name in double quotes: nothing in it is read as SQL."""
    return '"' + name.replace('"', '""') + '"'


def identifiers(names: Iterable[str], of: str = "") -> str:
    """Columns with commas between them."""
    return ", ".join(of + identifier(name) for name in names)


def text_literal(value: str) -> str:
    """A text in single quotes. PostgreSQL's sessions read backslashes in it as backslashes."""
    return "'" + value.replace("'", "''") + "'"


@dataclass(frozen=True)
class TableColumn:
    """A column as the database has it."""

    name: str
    written: str  # its type, as the database writes it
    kind: str  # the base type's name (PostgreSQL), or the type's affinity (SQLite)
    spark: str  # the Spark type that holds every value, or the nearest to it
    not_null: bool = False
    filled: bool = False  # the database fills it where no value is given
    computed: bool = False  # no value can be given
    always_identity: bool = False
    is_array: bool = False


def match_column(name: str, columns: Iterable[str]) -> str | None:
    """The column a name stands for: the very name, or the only one that differs by case."""
    choices = list(columns)
    if name in choices:
        return name
    near = [choice for choice in choices if choice.lower() == name.lower()]
    return near[0] if len(near) == 1 else None


def match_columns(
    where: str,
    delivered: Mapping[str, str],
    columns: Sequence[TableColumn],
    misfit: Callable[[str, TableColumn], str | None],
) -> dict[str, TableColumn]:
    """The column of a table for each delivered one; raises with everything that does not meet."""
    by_name = {column.name: column for column in columns}
    found: dict[str, TableColumn] = {}
    problems: list[str] = []
    for name, kind in delivered.items():
        match = match_column(name, by_name)
        if match is None:
            problems.append(f"it has no column `{name}`{did_you_mean(name, by_name).removesuffix('?')}")
            continue
        column = found[name] = by_name[match]
        if column.computed:
            problems.append(f"it computes its column `{match}` itself")
        elif reason := misfit(kind, column):
            problems.append(f"its column `{match}` is `{column.written}`, and {reason}")
    met = {column.name for column in found.values()}
    for column in columns:
        if column.name not in met and not column.filled and not column.computed:
            problems.append(f"its column `{column.name}` is not delivered")
    if problems:
        raise DatabaseProblem(f"{where}: " + "; ".join(problems))
    return found


def no_table(where: str, name: str, others: Iterable[str]) -> str:
    """That a table is missing, with the one that may have been meant."""
    return f"{where}: there is no table `{name}`{did_you_mean(name, others)}"


def staging_name(run: str, node: str, table: str) -> str:
    """The name of what a run stages for a node: to be recognised by people, and like no other."""
    unique = hashlib.sha256("\0".join((run, node, table)).encode()).hexdigest()[:8]
    return f"_papilio_{_word(run)[-24:]}_{_word(table)[:14]}_{unique}"


def _word(text: str) -> str:
    return re.sub(r"\W+", "_", text, flags=re.ASCII)

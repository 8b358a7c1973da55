"""Column lineage: where a column comes from and where it goes, and renaming it wherever it goes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from designer.document.analysis import Analysis
from designer.document.document import Document
from designer.document.edits import Drafted, Edit
from designer.document.places import get_at, set_at
from engine.model.expression_tree import Column, columns
from engine.model.expression_words import ExpressionError
from engine.model.expressions import parse
from engine.model.meanings import Meaning
from engine.model.operator import Operator

Spot = tuple[str, str, str]  # node, output port, column

_COMPUTED = (Meaning.EXPRESSION, Meaning.CONDITION, Meaning.AGGREGATE, Meaning.WINDOW)


@dataclass
class Lineage:
    """A column's way: what it is made of, what is made of it, and the nodes on the way."""

    start: Spot
    before: list[Spot] = field(default_factory=list)
    behind: list[Spot] = field(default_factory=list)

    @property
    def nodes(self) -> set[str]:
        """Every node on the way."""
        return {node for node, _, _ in (self.start, *self.before, *self.behind)}


def lineage(analysis: Analysis, node: str, port: str, column: str) -> Lineage:
    """Follow a column of an output port back to its sources and on to its targets."""
    start = (node, port, column)
    return Lineage(start, _all(analysis, start, origins), _all(analysis, start, uses))


def _all(analysis: Analysis, start: Spot, step: Callable[..., list[Spot]]) -> list[Spot]:
    """Every spot that steps lead to, one after the other."""
    found: dict[Spot, None] = {}
    waiting = [start]
    while waiting:
        for spot in step(analysis, *waiting.pop()):
            if spot not in found and spot != start:
                found[spot] = None
                waiting.append(spot)
    return list(found)


def origins(analysis: Analysis, node: str, port: str, column: str) -> list[Spot]:
    """The columns of a node's inputs that a column it gives is made of."""
    operator = analysis.bound.operators.get(node)
    if operator is None:
        return []
    made = _made_of(operator, column)
    found: list[Spot] = []
    for link in analysis.bound.incoming.get(node, ()):
        schema = analysis.schema(link.source, link.source_port) or {}
        lower = {name.lower(): name for name in schema}
        for name, qualifier in made if made is not None else _passed(operator, column):
            if name.lower() in lower and qualifier in (None, link.target_port):
                found.append((link.source, link.source_port, lower[name.lower()]))
    return list(dict.fromkeys(found))


def uses(analysis: Analysis, node: str, port: str, column: str) -> list[Spot]:
    """The columns of the nodes behind that a column is a part of."""
    found = []
    for link in analysis.bound.outgoing.get(node, ()):
        if link.source_port == port:
            for output in analysis.bound.operators[link.target].output_ports():
                for name in analysis.schema(link.target, output.name) or {}:
                    if (node, port, column) in origins(analysis, link.target, output.name, name):
                        found.append((link.target, output.name, name))
    return list(dict.fromkeys(found))


def _passed(operator: Operator, column: str) -> list[tuple[str, str | None]]:
    """The name under which a column that is not made here came in; a join's suffix is taken off."""
    suffix = getattr(operator, "right_suffix", None)
    names: list[tuple[str, str | None]] = [(column, None)]
    if isinstance(suffix, str) and suffix and column.endswith(suffix):
        names.append((column.removesuffix(suffix), "right"))
    return names


def _made_of(operator: Operator, column: str) -> list[tuple[str, str | None]] | None:
    """The columns in the settings that give a column its value; None where no setting makes it."""
    groups: dict[str, list[tuple[str, str, Meaning, str]]] = {}
    for place, text, means in operator.texts():
        group = place if "." in place and _is_mapping(operator, place) else place.rpartition(".")[0]
        groups.setdefault(group, []).append((place, text, means.meaning, means.port))
    for texts in groups.values():
        if any(meaning is Meaning.NEW_COLUMN and text.lower() == column.lower() for _, text, meaning, _ in texts):
            found: list[tuple[str, str | None]] = []
            for _, text, meaning, _port in texts:
                if meaning is Meaning.COLUMN:
                    found.append((text, None))
                elif meaning in _COMPUTED:
                    found += _read(text)
            return found
    return None


def _is_mapping(operator: Operator, place: str) -> bool:
    return isinstance(getattr(operator, place.split(".")[0].split("[")[0], None), dict)


def _read(text: str) -> list[tuple[str, str | None]]:
    """The columns an expression reads, with the port that stands before them."""
    try:
        found = columns(parse(text))
    except ExpressionError:
        return []
    return [(one.names[0], None) if len(one.names) == 1 else (one.names[1], one.names[0]) for one in found]


# ---------------------------------------------------------------- renaming


def rename_column(document: Document, analysis: Analysis, node: str, old: str, new: str) -> Edit:
    """Rename a column in the settings of every node that it reaches under its name. One step.

    `analysis` is of the workflow in which the column still has its old name. The node itself is left alone.
    """
    draft = Drafted(document.workflow)
    changed = 0
    for reader in readers(analysis, node, old):
        operator = analysis.bound.operators.get(reader)
        known = document.workflow.nodes.get(reader)
        if operator is None or known is None:
            continue
        settings = copy.deepcopy(known.settings)
        if _rename_in(settings, operator, old, new):
            draft.set(("nodes", reader), known.model_copy(update={"settings": settings}))
            changed += 1
    return draft.edit("Rename {0} to {1} in {2} nodes", old, new, str(changed))


def readers(analysis: Analysis, node: str, column: str) -> list[str]:
    """The nodes behind a node that its column reaches under its own name."""
    found: dict[str, None] = {}
    waiting = [node]
    while waiting:
        at = waiting.pop()
        for link in analysis.bound.outgoing.get(at, ()):
            schema = analysis.schema(at, link.source_port) or {}
            if link.target not in found and column.lower() in (name.lower() for name in schema):
                found[link.target] = None
                operator = analysis.bound.operators[link.target]
                if _made_of(operator, column) is None:  # from a node that makes it anew, it is another
                    waiting.append(link.target)
    return list(found)


def _rename_in(settings: dict[str, Any], operator: Operator, old: str, new: str) -> bool:
    changed = False
    for place, text, means in list(operator.texts()):
        if means.meaning is Meaning.COLUMN and text.lower() == old.lower():
            changed |= _replace(settings, place, text, new)
        elif means.meaning in _COMPUTED:
            renamed = rename_in_expression(text, old, new)
            if renamed != text:
                changed |= _replace(settings, place, text, renamed)
    return changed


def _replace(settings: dict[str, Any], place: str, text: str, new: str) -> bool:
    """Put another text at a place; in a mapping, where the key is the text, under another key."""
    if get_at(settings, place) == text:
        set_at(settings, place, new)
        return True
    outer, _, key = place.partition(".")
    mapping = settings.get(outer)
    if isinstance(mapping, dict) and key == text:
        settings[outer] = {(new if name == key else name): value for name, value in mapping.items()}
        return True
    return False


def rename_in_expression(text: str, old: str, new: str) -> str:
    """An expression with a column renamed; its texts and functions stay as they are."""
    try:
        found = columns(parse(text))
    except ExpressionError:
        return text
    for column in sorted(found, key=lambda one: -one.position):
        for start, end, name in _parts(text, column):
            if name.lower() == old.lower():
                quoted = new if new.isidentifier() else "`" + new.replace("`", "``") + "`"
                text = text[:start] + quoted + text[end:]
                break
    return text


def _parts(text: str, column: Column) -> Iterator[tuple[int, int, str]]:
    """Where the names of `port.column` or `column` stand in the text."""
    at = column.position
    for name in column.names[:2]:
        written = text[at : column.end]
        quoted = written.startswith("`")
        length = len(name) + 2 + name.count("`") if quoted else len(name)
        yield at, at + length, name
        at += length
        rest = text[at : column.end]
        at += len(rest) - len(rest.lstrip(" .\n\t"))

"""What an edit is: the places of a workflow that it changes, each with its value before and behind.

An edit knows both sides, so that undoing it is applying its inverse, and whoever shows the workflow can tell from
the places alone what to draw anew. Values are never changed in place: a changed node is another `Node`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from engine.model.elastic import Elastic
from engine.model.workflow import Workflow

# ("nodes", id), ("edges",), ("parameters", name), ("roots", name), ("field", name), ("extra", name) of a field that
# this version does not know, ("layout", section, key), or ("layout", section) of one that is no mapping
Place = tuple[str, ...]


class _Absent:
    """Nothing stands at the place."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()


@dataclass(frozen=True, slots=True)
class Cell:
    """One place and its two values."""

    place: Place
    before: Any
    after: Any


@dataclass(frozen=True)
class Edit:
    """One step of the person: what it is called, and every place it changes.

    `label` may hold `{0}`, `{1}`…, which `words` fill, so that it can be translated. Edits with the same `merge`
    mark that follow one another are one step, as when a text is typed letter by letter.
    """

    label: str
    cells: tuple[Cell, ...]
    words: tuple[str, ...] = ()
    merge: str | None = None

    def __bool__(self) -> bool:
        return bool(self.cells)

    @property
    def text(self) -> str:
        """The label as it reads untranslated."""
        return self.label.format(*self.words)

    def inverse(self) -> Edit:
        """The edit that takes this one back."""
        cells = tuple(Cell(cell.place, cell.after, cell.before) for cell in reversed(self.cells))
        return Edit(self.label, cells, self.words, self.merge)

    def then(self, later: Edit) -> Edit:
        """Both edits as one step, called as this one is."""
        first = {cell.place: cell.before for cell in reversed(self.cells)}
        last = {cell.place: cell.after for cell in self.cells}
        for cell in later.cells:
            first.setdefault(cell.place, cell.before)
            last[cell.place] = cell.after
        cells = tuple(Cell(place, first[place], last[place]) for place in last if not same(first[place], last[place]))
        return Edit(self.label, cells, self.words, self.merge)

    def keys(self, *section: str) -> Iterator[str]:
        """The keys it touches in one section, as in `keys("layout", "nodes")`."""
        for cell in self.cells:
            if cell.place[:-1] == section:
                yield cell.place[-1]

    def touches_logic(self) -> bool:
        """Whether it changes what the workflow does, not only how it looks."""
        return any(cell.place[0] != "layout" for cell in self.cells)


def same(one: Any, other: Any) -> bool:
    """Equal as content; unlike for Python, `1`, `1.0` and `True` are three things."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, Elastic):  # a limit that is not set is none, also where another has the same value
        return same(one.model_dump(exclude_unset=True), other.model_dump(exclude_unset=True))
    if hasattr(one, "model_dump"):
        return same(one.model_dump(), other.model_dump())
    return bool(one == other)


class Drafted:
    """Collects the places of one edit; what was set twice counts once, what did not change does not count."""

    def __init__(self, workflow: Workflow) -> None:
        self.workflow = workflow
        self._after: dict[Place, Any] = {}

    def set(self, place: Place, value: Any) -> None:
        """Let `value` stand at a place; `ABSENT` removes what stands there."""
        self._after[place] = value

    def get(self, place: Place) -> Any:
        """What will stand at a place."""
        return self._after[place] if place in self._after else read(self.workflow, place)

    def edit(self, label: str, *words: str, merge: str | None = None) -> Edit:
        """The edit with what was collected."""
        cells = [Cell(place, read(self.workflow, place), after) for place, after in self._after.items()]
        return Edit(label, tuple(cell for cell in cells if not same(cell.before, cell.after)), words, merge)


def read(workflow: Workflow, place: Place) -> Any:
    """What stands at a place, `ABSENT` where nothing does."""
    match place:
        case ("nodes", id_):
            return workflow.nodes.get(id_, ABSENT)
        case ("edges",):
            return tuple(workflow.edges)
        case ("parameters", name):
            return workflow.parameters.get(name, ABSENT)
        case ("roots", name):
            return workflow.roots.get(name, ABSENT)
        case ("field", name):
            return getattr(workflow, name)
        case ("extra", name):
            return (workflow.model_extra or {}).get(name, ABSENT)
        case ("layout", section, key):
            return workflow.layout.get(section, {}).get(key, ABSENT)
        case ("layout", section):
            return workflow.layout.get(section, ABSENT)
    raise KeyError(place)


def apply(workflow: Workflow, cells: Iterable[Cell]) -> None:
    """Let each place have its value behind the edit."""
    for cell in cells:
        _write(workflow, cell.place, cell.after)


def _write(workflow: Workflow, place: Place, value: Any) -> None:
    match place:
        case ("nodes", id_):
            _put(workflow.nodes, id_, value)
        case ("edges",):
            workflow.edges = list(value)
        case ("parameters", name):
            _put(workflow.parameters, name, value)
        case ("roots", name):
            _put(workflow.roots, name, value)
        case ("field", name):
            setattr(workflow, name, value)
        case ("extra", name):
            assert workflow.model_extra is not None  # the model keeps what it does not know
            _put(workflow.model_extra, name, value)
        case ("layout", section):
            _put(workflow.layout, section, value)
        case ("layout", section, key):
            _put(workflow.layout.setdefault(section, {}), key, value)
            if not workflow.layout[section]:
                del workflow.layout[section]
        case _:
            raise KeyError(place)


def _put(mapping: dict[str, Any], key: str, value: Any) -> None:
    if value is ABSENT:
        mapping.pop(key, None)
    else:
        mapping[key] = value

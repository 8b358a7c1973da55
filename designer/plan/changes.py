"""Edits of what a person asks of plans, and of the views they let be answered from finer ones; each one step."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from designer.document.document import Document
from designer.document.edits import Drafted, Edit
from designer.document.planning import planning
from engine.model.workflow import Planning
from engine.plan.rows import Rows
from engine.plan.views import Rewrite, rewritten

PLAN = ("field", "plan")


def planning_of(document: Document) -> Planning:
    """What the workflow asks of plans; a copy, also where it asks for nothing."""
    asked = document.workflow.plan
    return asked.model_copy(deep=True) if asked is not None else Planning()


def _edit(document: Document, changed: dict[str, Any], label: str, *words: str) -> Edit:
    data = {**planning_of(document).model_dump(), **changed}
    draft = Drafted(document.workflow)
    draft.set(PLAN, planning(data))
    return draft.edit(label, *words)


def pin(document: Document, node: str, way: str) -> Edit:
    """A node must have an implementation; it is no longer forbidden there."""
    asked = planning_of(document)
    banned = {one: [name for name in names if (one, name) != (node, way)] for one, names in asked.forbid.items()}
    changed = {"pin": {**asked.pin, node: way}, "forbid": {one: names for one, names in banned.items() if names}}
    return _edit(document, changed, "Pin {0} to {1}", document.title_of(node), way)


def unpin(document: Document, node: str) -> Edit:
    """A node may have any implementation again."""
    pins = {one: way for one, way in planning_of(document).pin.items() if one != node}
    return _edit(document, {"pin": pins}, "Unpin {0}", title(document, node))


def forbid(document: Document, node: str, way: str) -> Edit:
    """A node must not have an implementation; it is no longer pinned to it."""
    asked = planning_of(document)
    names = sorted({*asked.forbid.get(node, ()), way})
    pins = {one: name for one, name in asked.pin.items() if (one, name) != (node, way)}
    changed = {"pin": pins, "forbid": {**asked.forbid, node: names}}
    return _edit(document, changed, "Forbid {1} for {0}", document.title_of(node), way)


def allow(document: Document, node: str, way: str) -> Edit:
    """A node may have an implementation again."""
    asked = planning_of(document)
    names = [name for name in asked.forbid.get(node, ()) if name != way]
    banned = {one: ways for one, ways in asked.forbid.items() if one != node} | ({node: names} if names else {})
    return _edit(document, {"forbid": banned}, "Allow {1} for {0}", title(document, node), way)


def set_memory(document: Document, rows: int | None) -> Edit:
    """How many rows an implementation may keep in memory."""
    return _edit(document, {"memory_rows": rows}, "Change the rows in memory")


def set_resumption(document: Document, cost: float | None) -> Edit:
    """What may have to be done again after a failure."""
    return _edit(document, {"resumption": cost}, "Change the cost of resumption")


def add_limit(document: Document, nodes: Iterable[str], cost: float) -> Edit:
    """What some nodes may cost together."""
    own = sorted(nodes)
    others = [one.model_dump() for one in planning_of(document).limits if sorted(one.nodes) != own]
    words = ", ".join(title(document, node) for node in own)
    return _edit(document, {"limits": [*others, {"nodes": own, "cost": cost}]}, "Limit the cost of {0}", words)


def remove_limit(document: Document, number: int) -> Edit:
    """A limit is lifted."""
    limits = [one.model_dump() for at, one in enumerate(planning_of(document).limits) if at != number]
    return _edit(document, {"limits": limits}, "Lift a limit")


def refuse_view(document: Document, node: str) -> Edit:
    """An aggregate stays as it is drawn; it is no longer offered to be answered from a finer one."""
    names = sorted({*planning_of(document).as_drawn, node})
    return _edit(document, {"as_drawn": names}, "Keep {0} as it is drawn", document.title_of(node))


def offer_view(document: Document, node: str) -> Edit:
    """What was refused is offered again."""
    names = [name for name in planning_of(document).as_drawn if name != node]
    return _edit(document, {"as_drawn": names}, "Offer {0} again", title(document, node))


def accept_view(document: Document, rewrite: Rewrite, rows: Rows | None) -> Edit:
    """An aggregate reads the finer one's rows from now on: its figures, its edge and its hints, in one step."""
    workflow = document.workflow
    after = rewritten(workflow, [rewrite], rows)
    draft = Drafted(workflow)
    draft.set(("nodes", rewrite.node), after.nodes[rewrite.node])
    moved = zip(workflow.edges, after.edges, strict=True)
    draft.set(("edges",), tuple(old if old.from_ == new.from_ else new for old, new in moved))
    return draft.edit("Answer {0} from {1}", document.title_of(rewrite.node), document.title_of(rewrite.source[0]))


def title(document: Document, node: str) -> str:
    """What a node is called; its id where it is gone by now."""
    return document.title_of(node) if node in document.workflow.nodes else node


def told_apart(document: Document, node: str) -> str:
    """What a node is called, with its id where another one is called the same."""
    own = title(document, node)
    others = (other for other in document.workflow.nodes if other != node)
    return f"{own} ({node})" if any(document.title_of(other) == own for other in others) else own


def in_titles(document: Document, text: str) -> str:
    """A message of the planner with nodes as the canvas calls them; it has their ids in backquotes."""

    def called(found: re.Match[str]) -> str:
        return told_apart(document, found[1]) if found[1] in document.workflow.nodes else found[1]

    return re.sub("`([^`]+)`", called, text)

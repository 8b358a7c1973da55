"""What changed between two versions of a workflow, in the words of a workflow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from engine.store.plain import Document, to_json


@dataclass(frozen=True)
class Change:
    """One difference: a node, an edge, a setting or another field that was added, removed or changed."""

    action: str  # added, removed, changed
    kind: str  # node, edge, setting, parameter, root, layout, field
    where: str
    before: Any = None
    after: Any = None


def diff_documents(before: Document, after: Document) -> list[Change]:
    """Every difference between two workflow documents; the order of keys and of edges is none."""
    changes: list[Change] = []
    for field in [*before, *(key for key in after if key not in before)]:
        old, new = before.get(field), after.get(field)
        if field == "nodes" and _mappings(old, new):
            changes += _nodes(old or {}, new or {})
        elif field == "edges" and _edges_listed(old) and _edges_listed(new):
            changes += _edges(old or [], new or [])
        elif field in ("parameters", "roots") and _mappings(old, new):
            changes += _entries(old or {}, new or {}, field.removesuffix("s"))
        elif field == "layout" and _mappings(old, new):
            changes += _fields(old or {}, new or {}, "layout")
        else:
            changes += _fields(_part(before, field), _part(after, field), "field")
    return changes


def _nodes(old: Document, new: Document) -> Iterator[Change]:
    for node, kind in _entries_only(old, new):
        if kind != "both":
            yield Change(kind, "node", node, old.get(node), new.get(node))
            continue
        was, is_ = old[node], new[node]
        if not _mappings(was, is_):
            yield from _entries(_part(old, node), _part(new, node), "node")
            continue
        rest_was, rest_is = dict(was or {}), dict(is_ or {})
        settings = rest_was.get("settings"), rest_is.get("settings")
        if _mappings(*settings):
            rest_was.pop("settings", None)
            rest_is.pop("settings", None)
            yield from _entries(settings[0] or {}, settings[1] or {}, "setting", f"{node}.")
        yield from _entries(rest_was, rest_is, "node", f"{node}.")


def _edges(old: list[Document], new: list[Document]) -> Iterator[Change]:
    """Edges have no identity but their two ends; the same edge twice is two edges."""
    counts = Counter(to_json(_sorted(edge)) for edge in new)
    counts.subtract(to_json(_sorted(edge)) for edge in old)
    for edges, action, sign in ((old, "removed", -1), (new, "added", 1)):
        for edge in edges:
            text = to_json(_sorted(edge))
            if counts[text] * sign > 0:
                counts[text] -= sign
                where = f"{edge.get('from')} → {edge.get('to')}"
                yield Change(action, "edge", where, *((edge, None) if action == "removed" else (None, edge)))


def _entries(old: Document, new: Document, kind: str, prefix: str = "") -> Iterator[Change]:
    for name, found in _entries_only(old, new):
        if found != "both":
            yield Change(found, kind, prefix + name, old.get(name), new.get(name))
        elif not _same(old[name], new[name]):
            yield Change("changed", kind, prefix + name, old[name], new[name])


def _fields(old: Document, new: Document, kind: str, prefix: str = "") -> Iterator[Change]:
    """Like `_entries`, but says where inside nested mappings the difference is."""
    work: list[tuple[Document, Document, str]] = [(old, new, prefix)]
    while work:
        was, is_, path = work.pop()
        for change in _entries(was, is_, kind, path):
            if isinstance(change.before, dict) and isinstance(change.after, dict):
                work.append((change.before, change.after, f"{change.where}."))
            else:
                yield change


def _entries_only(old: Document, new: Document) -> Iterator[tuple[str, str]]:
    for name in old:
        yield name, "both" if name in new else "removed"
    for name in new:
        if name not in old:
            yield name, "added"


def _part(document: Document, field: str) -> Document:
    return {field: document[field]} if field in document else {}


def _mappings(*values: Any) -> bool:
    return all(value is None or isinstance(value, dict) for value in values)


def _edges_listed(value: Any) -> bool:
    return value is None or (isinstance(value, list) and all(isinstance(edge, dict) for edge in value))


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def _same(one: Any, other: Any) -> bool:
    """Equal as content: unlike for Python, `1`, `1.0` and `true` are three things, and NaN is itself."""
    return to_json(_sorted(one)) == to_json(_sorted(other))

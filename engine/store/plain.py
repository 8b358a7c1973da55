"""Plain documents: what YAML, JSON and XML can all say, and the limits they are kept within."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any

from engine.errors import BadInput

Document = dict[str, Any]

MAX_DEPTH = 100
MAX_VALUES = 1_000_000  # a workflow of 10,000 nodes has some 150,000
MAX_INT_BITS = 14_000  # Python refuses to print or read a decimal number much longer than this

# What neither XML 1.0 nor every database can hold: control characters, surrogates, non-characters.
_UNHOLDABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]|\\\\(?=u\\{)")
_ESCAPED = re.compile(r"\\u\{([0-9A-F]{1,4})\}")


def check_plain(document: object, what: str) -> None:
    """Refuse a document that is not plain, is nested too deep or is larger than any person's workflow.

    Walks without recursion, and counts a shared part each time it is met, so that YAML aliases cannot
    make a small file into an endless document.
    """
    if type(document) is not dict:
        raise BadInput(f"{what}: expected a mapping, found {_kind(document)}.")
    count = 0
    trail: list[Any] = []
    stack: list[Iterator[tuple[Any, Any]]] = [iter([(None, document)])]
    while stack:
        step = next(stack[-1], None)
        if step is None:
            stack.pop()
            if trail:
                trail.pop()
            continue
        key, value = step
        count += 1
        if count > MAX_VALUES:
            raise BadInput(f"{what}: more than {MAX_VALUES:,} values.")
        kind: Any = type(value)
        if kind is dict or kind is list:
            if len(stack) > MAX_DEPTH:
                raise BadInput(f"{what}: nested more than {MAX_DEPTH} deep.")
            if kind is dict:
                for name in value:
                    if type(name) is not str:
                        place = _place([*trail, key])
                        raise BadInput(f"{what}: {place}the key {name!r} is {_kind(name)}, not text; quote it.")
                stack.append(iter(value.items()))
            else:
                stack.append(iter(enumerate(value)))
            trail.append(key)
        elif kind is int:
            if value.bit_length() > MAX_INT_BITS:
                raise BadInput(f"{what}: {_place([*trail, key])}a whole number of more than {MAX_INT_BITS:,} bits.")
        elif value is not None and kind is not str and kind is not bool and kind is not float:
            raise BadInput(f"{what}: {_place([*trail, key])}{_kind(value)} is not plain data; quote it.")


def to_json(value: object) -> str:
    """Compact JSON that keeps the order of keys and can be held by every database."""
    return json.dumps(value, separators=(",", ":"))


def content_hash(document: Document) -> str:
    """The identity of a document's content, whatever the order of its keys."""
    canonical = json.dumps(document, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def digest(*identity: Any) -> str:
    """What a record is known by, however long the texts are that tell it apart."""
    return hashlib.sha256(to_json(list(identity)).encode("ascii")).hexdigest()


def escape(text: str) -> str:
    r"""Write each character that XML or a database cannot hold as `\u{1F}`; all else stays as it is."""
    return _UNHOLDABLE.sub(lambda found: f"\\u{{{ord(found[0]):X}}}", text)


def unescape(text: str) -> str:
    """The text that `escape` was given."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)


def _kind(value: object) -> str:
    names = {
        dict: "a mapping",
        list: "a list",
        str: "text",
        int: "a number",
        float: "a number",
        bool: "true/false",
    }
    return "nothing" if value is None else names.get(type(value), f"a {type(value).__name__}")


def _place(trail: list[Any]) -> str:
    path = ".".join(str(part) for part in trail if part is not None)
    return f"{path}: " if path else ""

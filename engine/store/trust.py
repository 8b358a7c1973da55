"""Which files the person trusts to run their own code. Trust covers the code as it was read, not the file for ever."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from engine.errors import BadInput, EnvironmentProblem
from engine.model.binding import Bound
from engine.model.file import write_text
from engine.model.operator import Operator
from engine.store.home import papilio_home


def code_hash(bound: Bound) -> str | None:
    """A hash of every setting of every node that runs code; None where no node does."""
    code = {
        node: operator.model_dump(mode="json")
        for node, operator in sorted(bound.operators.items())
        if operator.needs_trust
    }
    if not code:
        return None
    return hashlib.sha256(json.dumps(code, sort_keys=True).encode()).hexdigest()


def is_trusted(bound: Bound) -> bool:
    """Whether the code in this workflow may run: there is none, or the person has read and trusted it."""
    wanted = code_hash(bound)
    return wanted is None or (bound.file is not None and _read().get(str(bound.file.resolve())) == wanted)


def untrusted(operator: Operator) -> str:
    """Why an operator that runs code may not run, and what to do about it."""
    return f"`{operator.name}` runs code of the file's own; read it, then `papilio trust` the file"


def refuse_untrusted(bound: Bound, trusted: bool = False) -> None:
    """Refuse a workflow with code of its own that nobody trusts. `trusted`: the person does, this time."""
    if trusted or is_trusted(bound):
        return
    file = bound.file or bound.name
    problems = [
        f"{file}: node `{node}`: {untrusted(operator)}"
        for node, operator in bound.operators.items()
        if operator.needs_trust
    ]
    raise BadInput("\n".join(problems))


def trust(bound: Bound, trusted: bool = True) -> None:
    """Remember that the person trusts the code in this file as it stands, or no longer does."""
    assert bound.file is not None
    known = _read()
    known.pop(str(bound.file.resolve()), None)
    mark = code_hash(bound)
    if trusted and mark is not None:
        known[str(bound.file.resolve())] = mark
    place = _place()
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EnvironmentProblem(f"{place.parent}: cannot be made: {error.strerror}") from None
    write_text(place, json.dumps(known, indent=1, sort_keys=True) + "\n")


def _place() -> Path:
    return papilio_home() / "trusted.json"


def _read() -> dict[str, str]:
    try:
        data = json.loads(_place().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(key): str(value) for key, value in data.items()} if isinstance(data, dict) else {}

"""What a workflow asks of its physical plans, when nodes get other ids or go."""

from __future__ import annotations

from collections.abc import Callable

from engine.model.workflow import Planning


def carried(asked: Planning | None, called: Callable[[str], str | None]) -> Planning | None:
    """The same wishes for nodes by the names they have now; None where a node is gone, and with it what was asked."""
    if asked is None:
        return None
    limits = [
        {"nodes": [name for node in one.nodes if (name := called(node)) is not None], "cost": one.cost}
        for one in asked.limits
    ]
    return planning(
        {
            "pin": {name: way for node, way in asked.pin.items() if (name := called(node)) is not None},
            "forbid": {name: ways for node, ways in asked.forbid.items() if (name := called(node)) is not None},
            "memory_rows": asked.memory_rows,
            "resumption": asked.resumption,
            "limits": [one for one in limits if one["nodes"]],
            "as_drawn": [name for node in asked.as_drawn if (name := called(node)) is not None],
        }
    )


def planning(data: dict[str, object]) -> Planning | None:
    """Wishes from plain data; None where there are none, so that the file has no section for them."""
    kept = {name: value for name, value in data.items() if value not in (None, {}, [])}
    return Planning.model_validate(kept) if kept else None

"""What the first event of every run tells of its workflow, scheduled or not."""

from __future__ import annotations

from typing import Any

from engine.model.binding import Bound


def node_facts(bound: Bound) -> dict[str, dict[str, Any]]:
    """The nodes of a workflow, as a run's first event has them."""
    return {
        id_: {
            "operator": operator.name,
            "title": bound.workflow.nodes[id_].title or id_,
            "role": operator.role.value,
            "category": operator.category.value,
        }
        for id_, operator in bound.operators.items()
    }


def edge_facts(bound: Bound) -> list[list[str]]:
    """The edges of a workflow, as a run's first event has them."""
    return [[link.source, link.source_port, link.target, link.target_port] for link in bound.links]

"""What a tool tip says about a port, a node, an edge or a badge."""

from __future__ import annotations

from html import escape

from designer.canvas.scene import Hit
from designer.document.analysis import Analysis
from designer.document.document import Document
from designer.text import tr
from engine.model.operator import Carries
from engine.model.types import Schema

SHOWN = 24  # columns


def text(hit: Hit, analysis: Analysis, document: Document) -> str:
    """The tip as rich text; nothing where there is nothing to say."""
    match hit.kind:
        case "port":
            return _port(hit, analysis)
        case "badge":
            problems = analysis.by_node.get(hit.item.id, ())
            return "<br>".join(f"• {escape(problem.message)}" for problem in problems)
        case "node":
            return _node(hit.item.id, analysis, document)
        case "edge":
            edge = hit.item.edge
            schema = analysis.schema(edge.source, hit.item.source_port)
            return f"<b>{escape(edge.from_)} → {escape(edge.to)}</b>{_columns(schema)}"
    return ""


def _port(hit: Hit, analysis: Analysis) -> str:
    ports = hit.item.ports.outputs if hit.output else hit.item.ports.inputs
    port = next((one for one in ports if one.name == hit.port), None)
    if port is None:
        return ""
    if port.carries is Carries.REFUSED:
        kind = tr("refused rows leave here")
    elif hit.output:
        kind = tr("output")
    else:
        kind = tr("input") if port.required else tr("input, may stay empty")
    schema = analysis.schema(hit.item.id, port.name) if hit.output else analysis.input_schema(hit.item.id, port.name)
    return f"<b>{escape(port.name)}</b> <i>{escape(kind)}</i>{_columns(schema)}"


def _node(id_: str, analysis: Analysis, document: Document) -> str:
    node = document.workflow.nodes[id_]
    kind = document.catalogue.get(node.operator)
    lines = [f"<b>{escape(document.title_of(id_))}</b> ({escape(id_)})"]
    if kind is None:
        lines.append(escape(tr("There is no operator `{0}`.", node.operator)))
    else:
        summary = (kind.__doc__ or "").strip().splitlines()
        lines.append(escape(f"{kind.title} · {kind.category.value}"))
        if summary:
            lines.append(f"<i>{escape(summary[0])}</i>")
    if node.note:
        lines.append(escape(node.note))
    lines += [f"• {escape(problem.message)}" for problem in analysis.by_node.get(id_, ())[:5]]
    return "<br>".join(lines)


def _columns(schema: Schema | None) -> str:
    if schema is None:
        return f"<br><i>{escape(tr('columns not known yet'))}</i>"
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td style='padding-left:14px'><i>{escape(kind)}</i></td></tr>"
        for name, kind in list(schema.items())[:SHOWN]
    )
    more = tr("and {0} more", len(schema) - SHOWN) if len(schema) > SHOWN else ""
    return f"<table>{rows}</table>{escape(more)}"

"""`papilio operators`: what the component manager has."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from engine.cli.store import json_option, print_json
from engine.errors import BadInput

if TYPE_CHECKING:
    from engine.model.operator import Operator


@click.command(name="operators")
@click.argument("name", required=False)
@click.option("--to", "target", type=click.Path(path_type=Path), help="Write all of it there as Markdown.")
@json_option
def command(name: str | None, target: Path | None, as_json: bool) -> None:
    """List the operators, or show one with its ports and settings."""
    from engine.model.file import write_text
    from engine.model.problems import did_you_mean
    from engine.operators import catalogue

    found = catalogue()
    if name is not None and name not in found:
        raise BadInput(f"there is no operator `{name}`{did_you_mean(name, found)}")
    if target is not None:
        write_text(target, help_page(dict(found)))
    elif as_json:
        chosen = [name] if name is not None else list(found)
        print_json({one: describe(found[one]) for one in chosen})
    elif name is not None:
        click.echo("\n".join(_lines(found[name])))
    else:
        for family, kinds in _families(dict(found)).items():
            click.secho(family, bold=True)
            for kind in kinds:
                click.echo(f"  {kind.name:<28}{_summary(kind)}")


def describe(kind: type[Operator]) -> dict[str, Any]:
    """An operator as plain data: what the metadata store keeps of it."""
    return {
        "title": kind.title,
        "family": kind.family,
        "category": kind.category.value,
        "role": kind.role.value,
        "summary": " ".join((kind.__doc__ or "").split()),
        "inputs": [port.name for port in kind.inputs],
        "outputs": [port.name for port in kind.outputs],
        "settings": kind.model_json_schema(),
    }


def help_page(found: dict[str, type[Operator]]) -> str:
    """The help page of all operators."""
    parts = [
        "# Operators\n\nEvery operator with its ports and settings, as `papilio operators NAME` shows it. "
        "This page is written by `papilio operators --to resources/help/operators.md`.\n"
    ]
    for family, kinds in _families(found).items():
        parts.append(f"\n## {family.capitalize()}\n")
        for kind in kinds:
            parts.append("\n" + "\n".join(_lines(kind, markdown=True)) + "\n")
    return "".join(parts)


def _families(found: dict[str, type[Operator]]) -> dict[str, list[type[Operator]]]:
    order = ["sources", "targets", "cleansing", "shaping", "combining", "warehouse", "streams", "flow", "code"]
    families: dict[str, list[type[Operator]]] = {}
    for kind in found.values():
        families.setdefault(kind.family, []).append(kind)
    return dict(sorted(families.items(), key=lambda item: (item[0] not in order, order.index(item[0])
                                                           if item[0] in order else 0, item[0])))  # fmt: skip


def _summary(kind: type[Operator]) -> str:
    return " ".join((kind.__doc__ or "").split()).partition(". ")[0].rstrip(".")


def _lines(kind: type[Operator], markdown: bool = False) -> list[str]:
    head = f"### `{kind.name}`" if markdown else f"{kind.name} ({kind.title})"
    inputs = ", ".join(port.name for port in kind.inputs) or "none"
    outputs = ", ".join(f"{port.name} ({port.carries.value})" if port.carries.value != "rows" else port.name
                        for port in kind.outputs)  # fmt: skip
    lines = [head, "", " ".join((kind.__doc__ or "").split()), ""]
    lines.append(f"{kind.category.value}; inputs: {inputs}; outputs: {outputs or 'as the settings say'}")
    if kind.model_fields:
        lines.append("")
    schema = kind.model_json_schema()
    for name, info in kind.model_fields.items():
        property_ = schema["properties"].get(name, {})
        needed = "required" if info.is_required() else f"default {property_.get('default', 'none')}"
        mark = f"- `{name}`" if markdown else f"  {name}"
        lines.append(f"{mark} ({_type(property_, schema)}; {needed}): {info.description}")
        lines += _inner(property_, schema, "    - " if markdown else "      ", markdown)
    return lines


def _type(schema: dict[str, Any], whole: dict[str, Any]) -> str:
    if "x-papilio" in schema:
        return str(schema["x-papilio"])
    if "$ref" in schema:
        inner = whole["$defs"][schema["$ref"].rpartition("/")[2]]
        return " | ".join(map(str, inner["enum"])) if "enum" in inner else "group of settings"
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    if "anyOf" in schema:
        return " or ".join(_type(item, whole) for item in schema["anyOf"] if item.get("type") != "null")
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}), whole)}"
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"mapping to {_type(schema['additionalProperties'], whole)}"
    return str(schema.get("type", "anything"))


def _inner(schema: dict[str, Any], whole: dict[str, Any], indent: str, markdown: bool) -> list[str]:
    """The settings inside a group of settings."""
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            return _inner(schema[key], whole, indent, markdown)
    for item in schema.get("anyOf", ()):
        found = _inner(item, whole, indent, markdown)
        if found:
            return found
    if "$ref" not in schema:
        return []
    group = whole["$defs"][schema["$ref"].rpartition("/")[2]]
    lines = []
    for name, property_ in group.get("properties", {}).items():
        needed = "required" if name in group.get("required", ()) else f"default {property_.get('default', 'none')}"
        shown = f"`{name}`" if markdown else name
        about = f": {property_['description']}" if "description" in property_ else ""
        lines.append(f"{indent}{shown} ({_type(property_, whole)}; {needed}){about}")
    return lines

"""The JSON Schema of `*.butterfly.yaml`, so that an editor completes and checks a file as it is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.model.operator import Operator
from engine.model.workflow import FORMAT_VERSION, Workflow

_REFERENCE = {"type": "string", "pattern": r"^\$\{[^{}]+\}$"}


def file_schema(catalogue: Mapping[str, type[Operator]]) -> dict[str, Any]:
    """The schema of a workflow file that may use the operators of a catalogue."""
    schema = Workflow.model_json_schema(by_alias=True)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "Papilio workflow"
    schema["required"] = ["papilio", "nodes"]
    schema["properties"]["papilio"] = {
        "const": FORMAT_VERSION,
        "description": "The version of this file format.",
    }
    definitions = schema["$defs"]
    parameters = schema["properties"]["parameters"]
    (names,) = parameters["patternProperties"]
    parameters["patternProperties"][names] = {
        "anyOf": [{"$ref": "#/$defs/Parameter"}, {"type": ["string", "number", "boolean", "null"]}]
    }
    node = definitions["Node"]
    node["properties"]["operator"] = {
        "description": "The operator's name.",
        "anyOf": [{"const": name, "description": (kind.__doc__ or "").strip()} for name, kind in catalogue.items()]
        + [{"type": "string", "description": "An operator of a plugin."}],
    }
    node["allOf"] = []
    for name, kind in catalogue.items():
        settings = kind.model_json_schema(by_alias=True)
        for inner, definition in settings.pop("$defs", {}).items():
            definitions[f"{name}.{inner}"] = _settings(definition, name)
        definitions[f"settings.{name}"] = _settings(settings, name)
        then: dict[str, Any] = {"properties": {"settings": {"$ref": f"#/$defs/settings.{name}"}}}
        if settings.get("required"):
            then["required"] = ["settings"]
        node["allOf"].append({"if": {"properties": {"operator": {"const": name}}}, "then": then})
    return schema


def _settings(schema: dict[str, Any], operator: str) -> dict[str, Any]:
    """An operator's settings: references to its own definitions renamed, numbers may be `${parameters}`."""
    result: dict[str, Any] = _renamed(schema, operator)
    for name, property_ in result.get("properties", {}).items():
        if not _takes_text(property_):
            kept = {key: property_.pop(key) for key in ("description", "title", "default") if key in property_}
            result["properties"][name] = {"anyOf": [property_, _REFERENCE], **kept}
    return result


def _takes_text(schema: dict[str, Any]) -> bool:
    return schema.get("type") == "string" and "enum" not in schema and "const" not in schema


def _renamed(value: Any, operator: str) -> Any:
    if isinstance(value, dict):
        return {
            key: item.replace("#/$defs/", f"#/$defs/{operator}.") if key == "$ref" else _renamed(item, operator)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_renamed(item, operator) for item in value]
    return value

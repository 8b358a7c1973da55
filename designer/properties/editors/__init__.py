"""Editors, one for each kind of setting."""

from __future__ import annotations

from designer.properties.context import Context
from designer.properties.editors.base import ValueEditor
from designer.properties.editors.expression import ExpressionEditor
from designer.properties.editors.many import ListEditor, MappingEditor
from designer.properties.editors.simple import (
    BooleanEditor,
    ChoiceEditor,
    CodeEditor,
    ColumnEditor,
    DateEditor,
    LineEditor,
    PathEditor,
    SecretEditor,
    TypeEditor,
)
from designer.properties.fields import Value

_KINDS: dict[str, type[ValueEditor]] = {
    "boolean": BooleanEditor,
    "choice": ChoiceEditor,
    "code": CodeEditor,
    "column": ColumnEditor,
    "date": DateEditor,
    "expression": ExpressionEditor,
    "list": ListEditor,
    "mapping": MappingEditor,
    "path": PathEditor,
    "secret": SecretEditor,
    "type": TypeEditor,
}


def editor_for(value: Value, context: Context, place: str, default: object = None) -> ValueEditor:
    """The editor that a value asks for."""
    if value.kind == "group":
        from designer.properties.editors.group import GroupEditor

        return GroupEditor(value, context, place, default)
    return _KINDS.get(value.kind, LineEditor)(value, context, place, default)

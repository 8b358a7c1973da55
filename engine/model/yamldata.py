"""YAML text to plain data and back, strictly: no tags, no aliases, no repeated keys, no deep nesting.

Reading builds the data straight from the parser's events: a 10,000-node file takes a quarter of the time
that the general loader needs, and each refusal knows its line.
"""

from __future__ import annotations

import contextlib
import gc
import re
from collections.abc import Iterator
from typing import Any

import yaml
from yaml import MappingEndEvent, MappingStartEvent, ScalarEvent, SequenceEndEvent, SequenceStartEvent

from engine.errors import BadInput

MAX_DEPTH = 60
MAX_BYTES = 64 * 1024 * 1024

_INT = re.compile(r"[-+]?(0|[1-9][0-9]*)\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_WORDS: dict[str, Any] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
    ".inf": float("inf"), "-.inf": float("-inf"), ".nan": float("nan"),
}  # fmt: skip

_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # only its events are used
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def parser_of(text: str) -> Any:
    """The parser of a text, for its events alone."""
    return _Parser(text)


@contextlib.contextmanager
def collector_paused() -> Iterator[None]:
    """Keep the garbage collector from walking again and again over objects that all stay: a third of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            # All that is there goes to the oldest generation as it is, without one more walk.
            gc.freeze()
            gc.unfreeze()
            gc.enable()


def scalar(text: str) -> Any:
    """A plain scalar by the core schema of YAML 1.2: `no` and `1:30` stay text."""
    if text[:1] in "+-.0123456789":
        if _INT.match(text):
            return int(text)
        if _FLOAT.match(text):
            return float(text)
    return _WORDS.get(text, text)


def read_yaml(text: str, file: str) -> tuple[Any, dict[tuple[str, ...], int]]:
    """The data in `text`, and the lines at which the keys of the two outer levels stand."""
    if len(text) > MAX_BYTES:
        raise BadInput(f"{file}: larger than {MAX_BYTES // 2**20} MiB; this is not a workflow file")
    lines: dict[tuple[str, ...], int] = {}
    try:
        with collector_paused():
            return _build(text, file, lines), lines
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        raise BadInput(f"{file}{place}: broken YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise BadInput(f"{file}: broken YAML: {error}") from None


def _build(text: str, file: str, lines: dict[tuple[str, ...], int]) -> Any:
    def refuse(event: Any, reason: str) -> BadInput:
        return BadInput(f"{file}:{event.start_mark.line + 1}: {reason}")

    result: Any = None
    documents = 0
    # Each frame is [container, the key that waits for its value, the container's own key].
    stack: list[list[Any]] = []
    pending = object()

    def key_of(event: Any, value: Any, frame: list[Any]) -> str:
        key: str = value if type(value) is str else event.value
        if key in frame[0]:
            raise refuse(event, f"the key `{key}` stands twice in one mapping")
        if len(stack) <= 2:
            lines[(*(outer[2] for outer in stack[1:]), key)] = event.start_mark.line + 1
        return key

    next_event = parser_of(text).get_event
    while (event := next_event()) is not None:
        kind = type(event)
        if kind is ScalarEvent:
            if event.anchor is not None:
                raise refuse(event, "anchors and aliases are not used in workflow files")
            if event.tag is not None and event.tag != "!":
                raise refuse(event, f"the tag `{event.tag}` is not used in workflow files")
            value: Any = scalar(event.value) if event.implicit[0] else event.value
        elif kind is MappingEndEvent or kind is SequenceEndEvent:
            stack.pop()
            continue
        elif kind is MappingStartEvent or kind is SequenceStartEvent:
            if event.anchor is not None:
                raise refuse(event, "anchors and aliases are not used in workflow files")
            if event.tag is not None:
                raise refuse(event, f"the tag `{event.tag}` is not used in workflow files")
            if len(stack) >= MAX_DEPTH:
                raise refuse(event, f"nested more than {MAX_DEPTH} levels deep")
            value = {} if kind is MappingStartEvent else []
        elif kind is yaml.AliasEvent:
            raise refuse(event, "anchors and aliases are not used in workflow files")
        else:
            if kind is yaml.DocumentStartEvent:
                documents += 1
                if documents > 1:
                    raise refuse(event, "a second YAML document; a workflow file holds one")
            continue

        name = None
        if not stack:
            result = value
        else:
            frame = stack[-1]
            container, name = frame[0], frame[1]
            if type(container) is list:
                container.append(value)
            elif name is not pending:
                container[name] = value
                frame[1] = pending
            elif kind is ScalarEvent:
                frame[1] = key_of(event, value, frame)
            else:
                raise refuse(event, "a key must be plain text, not a list or a mapping")
        if kind is not ScalarEvent:
            stack.append([value, pending, name])
    return result


class _Flow(dict):  # type: ignore[type-arg]
    """A mapping written on one line."""


class _FlowList(list):  # type: ignore[type-arg]
    """A list written on one line."""


class _WorkflowDumper(_Dumper):  # type: ignore[misc]
    """Writes text that the strict reader reads back as the same data."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: Any, value: str) -> Any:
    if "\n" in value and not re.search(r"[ \t]\n|[^\x20-\x7e\xa0-\ud7ff\n]|\A[ \n]", value):
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|")
    if scalar(value) is not value and not isinstance(scalar(value), str):
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="'")
    return dumper.represent_scalar("tag:yaml.org,2002:str", value)


def _float(dumper: Any, value: float) -> Any:
    if value != value:
        text = ".nan"
    elif value in (float("inf"), float("-inf")):
        text = ".inf" if value > 0 else "-.inf"
    else:
        text = repr(value)
        if "e" in text and "." not in text:
            text = text.replace("e", ".0e")  # YAML 1.1 knows a float by its point; without one it writes a tag
    return dumper.represent_scalar("tag:yaml.org,2002:float", text)


_WorkflowDumper.add_representer(str, _text)
_WorkflowDumper.add_representer(float, _float)
_WorkflowDumper.add_representer(
    _Flow,
    lambda dumper, value: dumper.represent_mapping("tag:yaml.org,2002:map", value.items(), flow_style=True),
)
_WorkflowDumper.add_representer(
    _FlowList,
    lambda dumper, value: dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=True),
)


def on_one_line(data: Any) -> Any:
    """Marks a mapping or a list to be written on one line."""
    return _Flow(data) if isinstance(data, dict) else _FlowList(data)


def write_yaml(data: Any) -> str:
    """`data` as YAML text, keys in the order they have."""
    text: str = yaml.dump(data, Dumper=_WorkflowDumper, sort_keys=False, allow_unicode=True, width=100)
    return text

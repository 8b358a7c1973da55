"""Writes down what `build` does, as the text of a PySpark script.

The operators' own `build` runs over stand-ins that remember every call as source text. So the script is what the
engine runs, and an operator needs no second description of itself. No Spark is needed for it.
"""

from __future__ import annotations

import io
import tokenize
from collections.abc import Mapping
from typing import Any

from engine.errors import BadInput
from engine.model.operator import BuildTools, Operator
from engine.model.types import Schema

LINE = 100


class Code:
    """A piece of Python source: a start and the calls made on it."""

    __slots__ = ("_known", "_links", "_start")

    def __init__(self, start: str, links: tuple[str, ...] = (), known: Schema | None = None) -> None:
        self._start = start
        self._links = links
        self._known = known  # a frame's columns, where it is an input

    def __getattr__(self, name: str) -> Code:
        if name.startswith("__"):
            raise AttributeError(name)
        return Code(self._start, (*self._links, f".{name}"))

    def __call__(self, *args: Any, **kwargs: Any) -> Code:
        texts = [source(arg) for arg in args] + [f"{key}={source(value)}" for key, value in kwargs.items()]
        call = _call_text(texts)
        if self._links and self._links[-1].startswith(".") and not self._links[-1].endswith(")"):
            return Code(self._start, (*self._links[:-1], self._links[-1] + call))
        return Code(self._start, (*self._links, call))

    def __getitem__(self, key: Any) -> Code:
        return Code(self._start, (*self._links, f"[{source(key)}]"))

    def __str__(self) -> str:
        return self._start + "".join(self._links)

    def __repr__(self) -> str:
        return str(self)

    def __iter__(self) -> Any:
        raise TypeError("a stand-in for Spark cannot be iterated; use tools.columns(frame)")

    def __bool__(self) -> bool:
        raise TypeError("a stand-in for Spark is neither true nor false")

    def __invert__(self) -> Code:
        return Code(f"~{self}")

    def __neg__(self) -> Code:
        return Code(f"-{self}")

    __hash__ = None  # type: ignore[assignment]


def _binary(sign: str, swapped: bool = False) -> Any:
    def method(self: Code, other: Any) -> Code:
        left, right = (source(other), str(self)) if swapped else (str(self), source(other))
        return Code(f"({left} {sign} {right})")

    return method


for _name, _sign in {
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "mod": "%", "and": "&", "or": "|", "xor": "^",
}.items():  # fmt: skip
    setattr(Code, f"__{_name}__", _binary(_sign))
    if _name not in ("eq", "ne", "lt", "le", "gt", "ge"):
        setattr(Code, f"__r{_name}__", _binary(_sign, swapped=True))


def source(value: Any) -> str:
    """A Python value as source text; texts in double quotes."""
    if isinstance(value, Code):
        return str(value)
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{source(key)}: {source(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(source(item) for item in value) + "]"
    if isinstance(value, tuple):
        return "(" + ", ".join(source(item) for item in value) + ("," if len(value) == 1 else "") + ")"
    if value is None or isinstance(value, (bool, int, float)):
        return repr(value)
    raise TypeError(f"`build` passes a {type(value).__name__} to Spark; only names, texts and numbers go into a script")


def _quoted(text: str) -> str:
    if "\n" in text.rstrip("\n"):  # one line of the text a line of the script, whatever the indentation
        return "(\n" + "\n".join(f"    {_quoted(line)}" for line in text.splitlines(keepends=True)) + "\n)"
    if '"' in text and "'" not in text:
        return repr(text)
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in escaped) + '"'


def _call_text(texts: list[str]) -> str:
    flat = f"({', '.join(texts)})"
    if len(flat) <= LINE - 20 or not texts:
        return flat
    inner = "".join(f"    {_indented(text)},\n" for text in texts)
    return f"(\n{inner})"


def _indented(text: str) -> str:
    return text.replace("\n", "\n    ")


def indented_code(code: str) -> str:
    """Python code one level deeper; the lines inside its texts stay as they are."""
    inside: set[int] = set()
    starts: list[int] = []
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        kind = tokenize.tok_name[token.type]
        if kind == "STRING":
            inside.update(range(token.start[0] + 1, token.end[0] + 1))
        elif kind == "FSTRING_START":
            starts.append(token.start[0])
        elif kind == "FSTRING_END":
            inside.update(range(starts.pop() + 1, token.end[0] + 1))
    lines = code.rstrip().split("\n")
    return "\n".join(line if at in inside or not line.strip() else f"    {line}" for at, line in enumerate(lines, 1))


def assignment(name: str, value: Code) -> str:
    """`name = …`, one call a line where it is long."""
    flat = f"{name} = {value}"
    if "\n" not in flat and len(flat) <= LINE and sum("(" in link for link in value._links) < 3:
        return flat
    lines = [f"{name} = ("]
    lines.append(f"    {_indented(value._start)}")
    held = ""
    for link in value._links:  # an attribute stays with the call behind it: `.write.mode("overwrite")`
        held += link
        if link.endswith((")", "]")):
            lines.append(f"    {_indented(held)}")
            held = ""
    if held:
        lines.append(f"    {held}")
    return "\n".join([*lines, ")"])


class ScriptTools(BuildTools):
    """Stand-ins for Spark, and a node's paths and secrets as the script writes them."""

    def __init__(
        self,
        node: str,
        operator: Operator,
        paths: Mapping[str, Code],
        name: str = "node",
        schema: Schema | None = None,
    ) -> None:
        self.spark = Code("spark")
        self.functions = Code("F")
        self.window = Code("Window")
        self._node = node
        self._name = name  # the node's variable in the script
        self._operator = operator
        self._paths = paths
        self._schema = schema  # of a source: its columns
        self.definitions: dict[str, str] = {}  # what the script defines before it uses the node

    def path(self, setting: str) -> Any:
        return self._paths[setting]

    def secret(self, setting: str) -> Any:
        name = getattr(self._operator, setting)[6:-1]
        return Code(f"os.environ[{_quoted(name)}]")

    def function(self, code: str, name: str) -> Any:
        variable = f"{name}_{self._name}"
        # A function around it keeps its imports and helpers from those of other nodes.
        lines = [f"def _{variable}():", indented_code(code), f"    return {name}"]
        self.definitions[variable] = "\n".join([*lines, "", "", f"{variable} = _{variable}()"])
        return Code(variable)

    def source_schema(self) -> Schema:
        if self._schema is None:
            raise BadInput(f"node `{self._node}`: its columns cannot be told from what is there; declare them")
        return self._schema

    def columns(self, frame: Code) -> list[str]:
        return list(self.schema(frame))

    def schema(self, frame: Code) -> dict[str, str]:
        if frame._known is None:
            raise BadInput(
                f"node `{self._node}`: its input's columns are not known without Spark; "
                "declare the columns of the sources to export a script"
            )
        return dict(frame._known)


def frame(name: str, schema: Schema | None) -> Code:
    """A variable of the script that holds a frame."""
    return Code(name, known=schema)

"""Plain documents as XML and back, without loss; workflows and the whole store are exported this way.

One rule serves every document. An element is a value:

- a mapping's first entries are attributes while they are short scalars, the rest are child elements, in
  order; an attribute that reads as a number, `true`, `false` or `null` is one, anything else is text;
- an entry's key is its element's tag, or the attribute `id` where the key makes no tag (and for nodes,
  columns and the like, whose keys are a person's own words); in a list the tag says nothing;
- `is` names the type where it cannot be seen: `map` and `list` when empty or unclear, `int`, `float`, `bool`,
  `null`; an element with neither attributes nor children is text;
- a character that XML cannot hold is written `\\u{1F}`.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO
from xml.sax import SAXException, SAXParseException
from xml.sax.handler import ContentHandler
from xml.sax.saxutils import escape as escape_markup

from defusedxml.common import DefusedXmlException, DTDForbidden
from defusedxml.expatreader import create_parser

from engine.errors import BadInput
from engine.store.plain import MAX_DEPTH, MAX_VALUES, Document, check_plain, escape, unescape
from engine.store.records import (
    KINDS,
    OperatorSpecification,
    PlanRecord,
    Record,
    RunRecord,
    SourceSchema,
    WorkflowVersion,
    record_from_plain,
    record_to_plain,
)

if TYPE_CHECKING:
    from engine.store.saving import Saver
    from engine.store.store import MetadataStore

MAX_BYTES = 64 * 2**20
_CHUNK_BYTES = 4 * 2**20
_ATTRIBUTE_CHARACTERS = 100  # a longer text is easier to read as an element

_HEADER = '<?xml version="1.0" encoding="UTF-8"?>\n'
_EXPORT_VERSION = 1
_EXPORT_DEPTH = 5  # how deep a record's document lies in the export of a store
_EXPORT_VALUE_BYTES = 16  # what a value takes in an export at the very least; some 27 are usual

# Collections whose keys are a person's own words: what one entry is called.
_ENTRIES = {
    "nodes": "node",
    "edges": "edge",
    "parameters": "parameter",
    "roots": "root",
    "columns": "column",
}
# The sections of a store's export: what each holds and what one entry is called.
_SECTIONS: dict[str, tuple[type[Record], str]] = {
    "schemas": (SourceSchema, "schema"),
    "operators": (OperatorSpecification, "operator"),
    "workflows": (WorkflowVersion, "workflow"),
    "plans": (PlanRecord, "plan"),
    "runs": (RunRecord, "run"),
}

_NAME = re.compile(r"(?![Xx][Mm][Ll])[A-Za-z_][A-Za-z0-9_.-]*")
_INT = re.compile(r"-?[0-9]+")
_FLOAT = re.compile(r"-?(?:[0-9]+\.[0-9]+(?:e[+-]?[0-9]+)?|[0-9]+e[+-]?[0-9]+|inf)|nan")
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
_SPACES = {"\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}


def workflow_to_xml(document: Document) -> str:
    """A workflow's document as XML."""
    from engine.model.secrets import refuse_secrets

    check_plain(document, "the workflow")
    refuse_secrets(document, "the workflow")
    return _HEADER + "".join(_element("workflow", None, document, 0))


def workflow_from_xml(text: str | bytes, *, name: str = "XML", max_bytes: int = MAX_BYTES) -> Document:
    """The document in a workflow's XML; `name` is the file to name in a complaint."""
    document = _parse([text], "workflow", name, max_bytes, MAX_DEPTH, MAX_VALUES)
    check_plain(document, name)
    return document


def store_to_xml(store: MetadataStore, out: TextIO) -> dict[type[Record], int]:
    """Write everything in the store as XML, as of one moment; gives how many of each kind."""
    counts = dict.fromkeys(KINDS, 0)
    sections = {kind: (section, entry) for section, (kind, entry) in _SECTIONS.items()}
    out.write(f'{_HEADER}<store version="{_EXPORT_VERSION}">\n')
    for kind, records in itertools.groupby(store.records(), type):
        section, entry = sections[kind]
        out.write(f'  <{section} is="list">\n')
        for record in records:
            out.writelines(_element(entry, None, record_to_plain(record), 2))
            counts[kind] += 1
        out.write(f"  </{section}>\n")
    out.write("</store>\n")
    return counts


def store_from_xml(
    source: str | Path | BinaryIO, store: MetadataStore | Saver, *, max_bytes: int = MAX_BYTES
) -> dict[type[Record], int]:
    """Take an export into the store, all of it or nothing; gives how many of each kind were news."""
    with _opened(source) as (file, name):
        chunks = iter(lambda: file.read(_CHUNK_BYTES), b"")
        limits = (max_bytes, MAX_DEPTH + _EXPORT_DEPTH, max_bytes // _EXPORT_VALUE_BYTES)
        document = _parse(chunks, "store", name, *limits)
    version = document.pop("version", None)
    if type(version) is not int or version < 1:
        raise BadInput(f"{name}: the export has no version.")
    if version > _EXPORT_VERSION:
        known = f"export version {version}, this one knows {_EXPORT_VERSION}"
        raise BadInput(f"{name}: exported by a newer Papilio ({known}).")
    records: list[Record] = []
    for section, items in document.items():
        if section not in _SECTIONS:
            raise BadInput(f"{name}: unknown section {section!r}.")
        if not isinstance(items, list):
            raise BadInput(f"{name}: {section}: expected a list.")
        kind, entry = _SECTIONS[section]
        for number, item in enumerate(items, 1):
            records.append(record_from_plain(kind, item, f"{name}: {entry} {number}"))
    try:
        return store.add(records)
    except BadInput as error:
        raise BadInput(f"{name}: nothing was imported. {error}") from error


# Writing


def _element(tag: str, key: str | None, value: Any, indent: int, entry: str | None = None) -> Iterator[str]:
    """The lines of one value; `entry` is what its own entries are called, where they have a name."""
    margin = "  " * indent
    start = f"{margin}<{tag}" if key is None else f"{margin}<{tag} id={_quoted(key)}"
    if isinstance(value, list):
        if not value:
            yield f'{start} is="list"/>\n'
            return
        yield f'{start} is="list">\n'
        for item in value:
            yield from _element(entry or "item", None, item, indent + 1)
        yield f"{margin}</{tag}>\n"
    elif isinstance(value, dict):
        attributes = {} if entry else _attributes(value)
        start += "".join(f" {name}={_quoted(_scalar(part))}" for name, part in attributes.items())
        rest = dict(itertools.islice(value.items(), len(attributes), None))
        if not rest:
            yield f"{start}/>\n" if attributes else f'{start} is="map"/>\n'
            return
        yield f"{start}>\n"
        for name, part in rest.items():
            tagged = entry is None and _NAME.fullmatch(name)
            yield from _element(
                name if tagged else entry or "entry",
                None if tagged else name,
                part,
                indent + 1,
                _ENTRIES.get(name) if entry is None else None,
            )
        yield f"{margin}</{tag}>\n"
    elif isinstance(value, str):
        yield f"{start}>{_text(value)}</{tag}>\n" if value else f"{start}/>\n"
    elif value is None:
        yield f'{start} is="null"/>\n'
    else:
        yield f'{start} is="{type(value).__name__}">{_scalar(value)}</{tag}>\n'


def _attributes(value: Document) -> Document:
    """The first entries of a mapping that read well as attributes."""
    chosen = {}
    for name, part in value.items():
        if isinstance(part, dict | list) or name in ("id", "is") or not _NAME.fullmatch(name):
            break
        text = _scalar(part)
        if len(text) > _ATTRIBUTE_CHARACTERS or text != text.strip() or not text.isprintable():
            break
        if isinstance(part, str) and _is_literal(text):
            break
        chosen[name] = part
    return chosen


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else repr(value)


def _quoted(text: str) -> str:
    return f'"{escape_markup(escape(text), {**_SPACES, chr(34): "&quot;"})}"'


def _text(text: str) -> str:
    return escape_markup(escape(text), {"\r": "&#13;"})


# Reading


def _is_literal(text: str) -> bool:
    return text in _WORDS or bool(_INT.fullmatch(text) or _FLOAT.fullmatch(text))


def _literal(text: str) -> Any:
    """What an attribute says."""
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else unescape(text)


class _Open:
    """An element whose end has not been met yet."""

    __slots__ = ("key", "kind", "text", "value")

    def __init__(self, key: str, kind: str | None, value: Any) -> None:
        self.key = key
        self.kind = kind
        self.value = value
        self.text: list[str] = []


class _Reader(ContentHandler):
    """Builds the document while the parser reads; keeps its own stack, so that depth costs no recursion."""

    def __init__(self, root: str, max_depth: int, max_values: int) -> None:
        super().__init__()
        self._root = root
        self._max_values = max_values
        self._max_depth = max_depth
        self._open: list[_Open] = []
        self._values = 0
        self.document: Any = None

    def startElement(self, name: str, attrs: Any) -> None:
        if not self._open and name != self._root:
            raise BadInput(f"expected <{self._root}>, found <{name}>")
        if len(self._open) > self._max_depth:
            raise BadInput(f"nested more than {self._max_depth} deep")
        self._values += 1 + len(attrs)
        if self._values > self._max_values:
            raise BadInput(f"more than {self._max_values:,} values")
        given = dict(attrs.items())
        key = given.pop("id", None)
        kind = given.pop("is", None)
        if kind not in _KINDS:
            raise BadInput(f'<{name} is="{kind}">: no such type')
        if given and kind not in (None, "map"):
            raise BadInput(f"<{name}>: a value of type {kind} has no attribute {next(iter(given))!r}")
        if self._open:
            self._open_parent(name)
        value: Any = [] if kind == "list" else None
        if kind == "map" or given:
            value = {part: _literal(text) for part, text in given.items()}
        self._open.append(_Open(name if key is None else unescape(key), kind, value))

    def _open_parent(self, name: str) -> None:
        """Make the innermost open element one that can hold others."""
        parent = self._open[-1]
        if parent.value is None:
            if parent.kind is not None:
                raise BadInput(f"<{name}> inside a value of type {parent.kind}")
            parent.value = {}
        self._blank(parent)

    def characters(self, content: str) -> None:
        self._open[-1].text.append(content)

    def endElement(self, name: str) -> None:
        closed = self._open.pop()
        if closed.value is None:
            value = _leaf(name, closed.kind, "".join(closed.text))
        else:
            self._blank(closed)
            value = closed.value
        if not self._open:
            self.document = value
            return
        parent = self._open[-1].value
        if isinstance(parent, list):
            parent.append(value)
        elif closed.key in parent:
            raise BadInput(f"{closed.key!r} is there twice")
        else:
            parent[closed.key] = value

    @staticmethod
    def _blank(holder: _Open) -> None:
        if "".join(holder.text).strip(" \t\r\n"):
            raise BadInput(f"text beside the parts of {holder.key!r}")
        holder.text.clear()


_KINDS = (None, "map", "list", "int", "float", "bool", "null")


def _leaf(name: str, kind: str | None, text: str) -> Any:
    if kind is None:
        return unescape(text)
    bare = text.strip(" \t\r\n")
    if kind == "int" and _INT.fullmatch(bare):
        return int(bare)
    if kind == "float" and (_FLOAT.fullmatch(bare) or _INT.fullmatch(bare)):
        return float(bare)
    if kind == "bool" and bare in ("true", "false"):
        return bare == "true"
    if kind == "null" and not bare:
        return None
    raise BadInput(f"<{name}>: {bare[:60]!r} is no {kind}")


def _parse(
    chunks: Iterable[str | bytes], root: str, name: str, max_bytes: int, max_depth: int, max_values: int
) -> Document:
    """Read XML piece by piece and stop at the first thing that is refused."""
    reader = _Reader(root, max_depth, max_values)
    parser = create_parser(forbid_dtd=True)
    parser.setContentHandler(reader)
    size = 0
    try:
        for chunk in chunks:
            size += len(chunk.encode("utf-8", "replace") if isinstance(chunk, str) else chunk)
            if size > max_bytes:
                raise BadInput(f"larger than {max_bytes / 2**20:g} MiB")
            parser.feed(chunk)
        parser.close()
    except BadInput as error:
        raise BadInput(f"{name}:{parser.getLineNumber()}: {error}.") from None
    except DTDForbidden:
        raise BadInput(f"{name}: a document type (DTD) is not accepted.") from None
    except DefusedXmlException as error:
        raise BadInput(f"{name}: entities are not accepted: {error}.") from None
    except SAXParseException as error:
        raise BadInput(f"{name}:{error.getLineNumber()}: broken XML: {error.getMessage()}.") from None
    except (SAXException, ValueError) as error:
        raise BadInput(f"{name}: broken XML: {error}.") from None
    if not isinstance(reader.document, dict):
        raise BadInput(f"{name}: <{root}> is empty.")
    return reader.document


@contextlib.contextmanager
def _opened(source: str | Path | BinaryIO) -> Iterator[tuple[BinaryIO, str]]:
    if not isinstance(source, str | Path):
        yield source, str(getattr(source, "name", "XML"))
        return
    try:
        with open(source, "rb") as file:
            yield file, str(source)
    except OSError as error:
        raise BadInput(f"{source}: cannot be read: {error.strerror}.") from error

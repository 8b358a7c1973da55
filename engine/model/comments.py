"""The comments that people write into a workflow file: found by what they stand at, and written back to it.

The file's text is made anew from the workflow at each save. A comment belongs to the key or the list item that begins
on its line, or on the next line that holds one; where that is still there, the comment is too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from engine.model.yamldata import parser_of, read_yaml

Path = tuple[str, ...]  # the keys that lead to a place; an item of a list by its content or by its number


@dataclass
class Comment:
    """The lines of comment above a place, empty ones among them, and the one behind it."""

    above: list[str] = field(default_factory=list)
    beside: str = ""


@dataclass
class Comments:
    """The comments of a file, by the place they stand at."""

    head: list[str] = field(default_factory=list)  # the lines that the file begins with
    by_content: dict[Path, Comment] = field(default_factory=dict)
    by_number: dict[Path, Comment] = field(default_factory=dict)
    places: set[Path] = field(default_factory=set)  # every place of the file, by content
    foot: list[str] = field(default_factory=list)  # below the last place

    def at(self, by_content: Path, by_number: Path) -> Comment | None:
        """The comment of a place; an item of a list whose content is new has that of the item it stands for."""
        found = self.by_content.get(by_content)
        if found is None and by_content not in self.places:
            found = self.by_number.get(by_number)
        return found


@dataclass
class _Line:
    """What begins on a line of YAML, from the outermost on, and where text of a value stands in it."""

    places: list[tuple[Path, Path]] = field(default_factory=list)  # by content, by number
    values: list[tuple[int, int]] = field(default_factory=list)  # columns from and to
    open_at_end: bool = False  # a value goes on in the next line


def comments_of(text: str) -> Comments:
    """Every comment of a file."""
    found = Comments()
    rows = text.splitlines()
    for raw in rows:
        if not raw.startswith("#"):
            break
        found.head.append(raw.rstrip())
    if not any("#" in raw for raw in rows[len(found.head) :]):
        return found  # as most files are, also the largest
    lines = _survey(text)
    above: list[str] = []
    for number, raw in enumerate(rows[len(found.head) :], start=len(found.head)):
        line = lines.get(number, _Line())
        start = _comment_starts(raw, line)
        shown = raw[start:].rstrip() if start is not None else ""
        if line.places:
            found.places.update(content for content, _ in line.places)
            if any(above) or shown:
                content, by_number = line.places[0]
                found.by_content[content] = found.by_number[by_number] = Comment(above, shown)
            above = []
        elif shown or (above and not raw.strip()):
            above.append(shown)
    found.foot = above if any(above) else []
    return found


def with_comments(text: str, comments: Comments) -> str:
    """A file's text, made anew, with the comments of the places that it still has."""
    if not comments.by_content and not comments.foot:
        return "\n".join([*comments.head, text])
    lines = _survey(text)
    out = list(comments.head)
    given: set[int] = set()
    for number, raw in enumerate(text.splitlines()):
        line = lines.get(number, _Line())
        indent = raw[: len(raw) - len(raw.lstrip())]
        for place in line.places:
            comment = comments.at(*place)
            if comment is None or id(comment) in given:
                continue
            given.add(id(comment))
            out.extend(indent + one if one else "" for one in comment.above)
            if comment.beside and (line.open_at_end or "  #" in raw):
                out.append(indent + comment.beside)
            elif comment.beside:
                raw = f"{raw}  {comment.beside}"
        out.append(raw)
    out.extend(comments.foot)
    made = "\n".join(out) + "\n"
    # A comment is worth less than the workflow: one that would change what is read stays out.
    return made if read_yaml(made, "")[0] == read_yaml(text, "")[0] else text


def _comment_starts(raw: str, line: _Line) -> int | None:
    """The column at which a line's comment begins."""
    for column, sign in enumerate(raw):
        if sign != "#" or (column and raw[column - 1] not in " \t"):
            continue
        if not any(start <= column < end for start, end in line.values):
            return column
    return None


def _survey(text: str) -> dict[int, _Line]:
    """What each line holds: the places that begin there, and the columns that values take."""
    lines: dict[int, _Line] = {}
    raw = text.splitlines()
    for place, event in _walk(text):
        start, end = event.start_mark, event.end_mark
        if place is not None:
            lines.setdefault(start.line, _Line()).places.append(place)
        if isinstance(event, yaml.ScalarEvent):
            block = event.style in ("|", ">")
            for number in range(start.line, min(end.line + 1, len(raw))):
                first = number == start.line
                last = number == end.line
                begin = start.column if first else 0
                stop = end.column if last else len(raw[number])
                line = lines.setdefault(number, _Line())
                if block and first:
                    continue  # its own line holds but the sign, and a comment may follow
                if begin < stop or not last:
                    line.values.append((begin, stop))
            if end.line > start.line and not block:
                lines[start.line].open_at_end = True
    return lines


def _walk(text: str) -> Iterator[tuple[tuple[Path, Path] | None, Any]]:
    """The events of a text; those that begin a key or an item come with their place, by content and by number."""
    events = []
    parser = parser_of(text)
    while (event := parser.get_event()) is not None:
        events.append(event)
    data = read_yaml(text, "")[0]
    # Each frame is [data, path by content, path by number, the key that waits for its value, the next item].
    stack: list[list[Any]] = []
    for event in events:
        if isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            stack.pop()
            continue
        if not isinstance(event, (yaml.ScalarEvent, yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            continue
        place: tuple[Path, Path] | None = None
        value: Any = data
        by_content: Path = ()
        by_number: Path = ()
        if stack:
            frame = stack[-1]
            container, content_path, number_path, key, item = frame
            if isinstance(container, list):
                value = container[item]
                by_content = (*content_path, "- " + json.dumps(value, sort_keys=True, default=str))
                by_number = (*number_path, f"- {item}")
                frame[4] += 1
                place = (by_content, by_number)
            elif key is None:
                frame[3] = key_text = str(getattr(event, "value", ""))
                place = ((*content_path, key_text), (*number_path, key_text))
                value = None
            else:
                value = container[key]
                by_content, by_number = (*content_path, key), (*number_path, key)
                frame[3] = None
        yield place, event
        if not isinstance(event, yaml.ScalarEvent):
            stack.append([value, by_content, by_number, None, 0])

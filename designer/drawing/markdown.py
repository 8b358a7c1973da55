"""The Markdown of a note as lines of letters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from markdown_it import MarkdownIt
from markdown_it.token import Token

from designer.document.layout import Point
from designer.drawing.remarks import NOTE_INSET
from designer.drawing.sheet import FONTS
from designer.drawing.svg import Letters, SvgSheet
from designer.drawing.widths import text_width

PIXELS = FONTS["small"][0]
PLAIN = Letters(PIXELS, "note_text")
HEADINGS = {"h1": 2.0, "h2": 1.5, "h3": 1.2}  # how much larger
INDENT = 40.0  # of a list and of a quotation
BULLET = 8.0  # from a list's mark to its text
MARGIN = 4.0  # around the text, beside its inset
RULE = 14.0  # how high a rule across stands with the room around it
ASCENT, LINE = 0.93, 1.18  # of the letters' size: from the top of a line to its letters' foot, and to the next line

_PIECES = re.compile(r"\s+|[^\s-]*-+|[^\s-]+")  # lines break at spaces and behind hyphens
_MARKDOWN = MarkdownIt("commonmark", {"html": False})  # a note can show text, never load anything


Run = tuple[str, Letters]


@dataclass
class Block:
    """A paragraph, a heading, a line of code, or a rule across: what begins on a line of its own."""

    runs: list[Run]
    depth: int = 0  # lists and quotations around it
    mark: str = ""  # of a list, before its first line
    code: bool = False  # not to be broken
    rule: bool = False


def blocks(text: str) -> Iterator[Block]:
    """The parts of a text, from top to bottom."""
    depth, mark, letters = 0, "", PLAIN
    numbers: list[int | None] = []  # of the lists around: the next item's number, where they are numbered
    for token in _MARKDOWN.parse(text):
        kind = token.type
        if kind in ("bullet_list_open", "ordered_list_open"):
            numbers.append(int(token.attrGet("start") or 1) if kind.startswith("ordered") else None)
        elif kind in ("bullet_list_close", "ordered_list_close"):
            numbers.pop()
        elif kind == "list_item_open":
            number = numbers[-1]
            mark = "•" if number is None else f"{number}."
            numbers[-1] = None if number is None else number + 1
        elif kind == "heading_open":
            letters = replace(PLAIN, pixels=PIXELS * HEADINGS.get(token.tag, 1.0), bold=True)
        elif kind == "heading_close":
            letters = PLAIN
        elif kind == "hr":
            yield Block([], depth, rule=True)
        elif kind in ("fence", "code_block"):
            for line in token.content.rstrip("\n").split("\n"):
                yield Block([(line, replace(PLAIN, mono=True))], depth, code=True)
        elif kind == "inline":
            for runs in _lines(token.children or [], letters):
                yield Block(runs, depth, mark)
                mark = ""
        depth += {"list_open": 1, "list_close": -1}.get(kind.partition("_")[2], 0)
        depth += {"blockquote_open": 1, "blockquote_close": -1}.get(kind, 0)


def _lines(tokens: Iterable[Token], letters: Letters) -> Iterator[list[Run]]:
    """The letters of a paragraph; it has more than one part where its writer broke a line."""
    runs: list[Run] = []
    heading = letters.bold
    for token in tokens:
        if token.type == "hardbreak":
            yield runs
            runs = []
        elif token.type == "softbreak":
            runs.append((" ", letters))
        elif token.type == "code_inline":
            runs.append((token.content, replace(letters, mono=True)))
        elif token.nesting:
            begins = token.nesting > 0
            if token.tag == "strong":
                letters = replace(letters, bold=begins or heading)
            elif token.tag == "em":
                letters = replace(letters, slanted=begins)
            else:
                letters = replace(letters, ink="accent" if begins else PLAIN.ink)
        else:  # of an image there is what its writer says of it
            runs.append((token.content, letters))
    yield runs


def wrapped(runs: Iterable[Run], width: float) -> list[list[Run]]:
    """Letters in lines no wider than `width`. What is too long for a line of its own is broken anywhere."""
    lines: list[list[Run]] = [[]]
    used = 0.0
    for text, letters in runs:
        for piece in _PIECES.findall(text):
            if lines[-1] and used + _width(piece.rstrip(), letters) > width and not piece.isspace():
                lines.append([])
                used = 0.0
            while _width(piece.rstrip(), letters) > width and len(piece) > 1:
                head = _cut(piece, letters, width)
                lines[-1].append((head, letters))
                lines.append([])
                piece = piece[len(head) :]
            if lines[-1] or not piece.isspace():
                lines[-1].append((piece, letters))
                used += _width(piece, letters)
    return [_joined(line) for line in lines if line]


def _joined(line: list[Run]) -> list[Run]:
    """Letters that look alike as one; none follow that are not seen."""
    runs = [("".join(text for text, _ in alike), letters) for letters, alike in groupby(line, key=lambda run: run[1])]
    return [*runs[:-1], (runs[-1][0].rstrip(), runs[-1][1])]


def _width(text: str, letters: Letters) -> float:
    return text_width(text, letters.pixels, letters.bold, letters.mono)


def _cut(text: str, letters: Letters, width: float) -> str:
    """As many letters as there is room for, and one at least."""
    used = 0.0
    for end, letter in enumerate(text):
        used += _width(letter, letters)
        if used > width:
            return text[: max(end, 1)]
    return text


def draw_text(sheet: SvgSheet, text: str, size: Point) -> None:
    """As much of a note's text as there is room for in its frame."""
    left, top = NOTE_INSET[0] + MARGIN, NOTE_INSET[1] + MARGIN
    right, bottom = size[0] - left, size[1] - MARGIN
    for block in blocks(text):
        x = left + INDENT * block.depth
        if block.rule:
            if top + RULE < bottom:
                sheet.stroke([(x, top + RULE / 2), (right, top + RULE / 2)], PLAIN.ink, 1)
            top += RULE
        for number, line in enumerate(_laid(block, max(right - x, PIXELS))):
            pixels = max(letters.pixels for _, letters in line)
            if top + pixels * LINE > bottom:
                return
            foot = top + pixels * ASCENT
            if block.mark and not number:
                sheet.words(x - BULLET, foot, block.mark, "small", PLAIN.ink, before=True)
            sheet.line(x, foot, line)
            top += pixels * LINE


def _laid(block: Block, width: float) -> list[list[Run]]:
    if block.code:
        return [[(_cut(text, letters, width), letters)] for text, letters in block.runs]
    return wrapped(block.runs, width)

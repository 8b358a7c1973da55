"""The words and signs of an expression's text, and what is refused already among them."""

from __future__ import annotations

import re
from typing import NamedTuple

MAX_LENGTH = 20_000


class ExpressionError(ValueError):
    """Why an expression is refused, and where in its text."""

    def __init__(self, reason: str, position: int = 0) -> None:
        super().__init__(reason)
        self.position = position


class Token(NamedTuple):
    """A word or a sign of a text, and its place."""

    kind: str  # word, quoted, number, string, sign, end
    text: str
    position: int

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.position + len(self.text)


_TOKEN = re.compile(
    r"""
    \s*(?:
    (?P<comment>--|/\*)
  | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?:BD|[LSYFD](?![A-Za-z0-9_]))?)
  | (?P<raw>[rR](?=['"]))
  | (?P<hex>[xX]'[0-9A-Fa-f]*')
  | (?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
  | (?P<quoted>`(?:[^`]|``)+`)
  | (?P<word>[^\W\d]\w*)
  | (?P<sign><=>|>>>|<>|!=|<=|>=|==|\|\||->|::|<<|>>|[-+*/%=<>!~&|^(),.\[\]])
  | (?P<end>\Z)
  | (?P<other>.)
    )""",
    re.VERBOSE | re.DOTALL,
)


def tokens(text: str, what: str = "expression") -> list[Token]:
    """The words and signs of a text, with three ends behind them; `what` names it in what is refused."""
    return [Token(*token) for token in scan(text, what)]


def scan(text: str, what: str) -> list[tuple[str, str, int]]:
    """The tokens as plain tuples, which are made three times as fast."""
    kinds = _TOKEN_KINDS
    found = [
        (kinds[group], match[group], match.start(group))
        for match in _TOKEN.finditer(text)
        if (group := match.lastindex) is not None
    ]
    if not _REFUSED.isdisjoint([kind for kind, _, _ in found]):
        raise _refused_token(*next(token for token in found if token[0] in _REFUSED), what)
    # Two more ends, so that the parser may look ahead without minding the end.
    return found + found[-1:] * 2


_TOKEN_KINDS = {index: kind for kind, index in _TOKEN.groupindex.items()}
_REFUSED = {"comment", "raw", "other"}


def _refused_token(kind: str, text: str, position: int, what: str) -> ExpressionError:
    if kind == "comment":
        reason = f"no comments inside the {what}; use the node's note"
    elif kind == "raw":
        reason = "no raw strings; double each backslash"
    elif text in "'\"`":
        reason = f"the {text} is never closed"
    elif text == ";":
        reason = f"one {what} only, no `;`"
    else:
        reason = f"`{text}` has no meaning here"
    return ExpressionError(reason, position)

"""Spark SQL expressions, read by a grammar that knows expressions only.

What the grammar does not know it refuses: no query, no `TRANSFORM … USING`, no comment, no second statement,
and no function outside `engine.model.functions`. So a box in a form can never become a program, and the text
that was checked is, to the letter, the text that Spark gets. The tree keeps the functions' own names and the
places of the columns, which is what type inference, completion and renaming need.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from engine.model import functions
from engine.model.expression_tree import (
    Call,
    Case,
    Cast,
    Column,
    Expr,
    Item,
    Lambda,
    Literal,
    Named,
    Operation,
    Star,
    Window,
)
from engine.model.expression_words import MAX_LENGTH, ExpressionError, Token, scan
from engine.model.problems import did_you_mean
from engine.model.types import BadType, normal_type

MAX_DEPTH = 100

_RESERVED = {
    "select", "from", "where", "group", "having", "order", "union", "insert", "create", "drop", "with", "values",
    "using", "table", "lateral", "join", "on", "and", "or", "not", "case", "when", "then", "else", "end", "is",
    "in", "between", "like", "rlike", "regexp", "ilike", "distinct", "as", "over", "div", "null", "true", "false",
    "cast", "try_cast", "escape",
}  # fmt: skip
_QUERY = {
    "select",
    "from",
    "with",
    "values",
    "table",
    "insert",
    "create",
    "drop",
    "lateral",
    "using",
    "union",
}
_UNITS = {
    "year", "years", "quarter", "quarters", "month", "months", "week", "weeks", "day", "days", "hour", "hours",
    "minute", "minutes", "second", "seconds", "millisecond", "milliseconds", "microsecond", "microseconds",
}  # fmt: skip
# Functions that take a unit of time before their arguments, and then are another function.
_BY_UNIT = {
    **dict.fromkeys(("timestampadd", "dateadd", "date_add"), "timestampadd"),
    **dict.fromkeys(("timestampdiff", "datediff", "date_diff"), "timestampdiff"),
}
_STEPS = {
    "year", "quarter", "month", "week", "day", "dayofyear", "hour", "minute", "second", "millisecond", "microsecond",
}  # fmt: skip
_EXTRACT = _UNITS | {"dayofweek", "dow", "doy", "yearofweek", "dayofweek_iso"}

_COMPARISONS = {"=", "==", "<=>", "<>", "!=", "<", "<=", ">", ">="}
# Binding strength of the operators between two operands, weakest first, as in Spark's grammar.
_BINDING = {
    "or": 1, "and": 2,
    **dict.fromkeys(_COMPARISONS, 4),
    "|": 5, "^": 6, "&": 7, "<<": 8, ">>": 8, ">>>": 8,
    "+": 9, "-": 9, "||": 9, "*": 10, "/": 10, "%": 10, "div": 10,
}  # fmt: skip
_NOT, _PREDICATE, _UNARY = 3, 4, 11
_PREDICATES = {"is", "in", "between", "like", "ilike", "rlike", "regexp", "not"}
_SUFFIXES = {"[", ".", "::"}
_PREFIXES = {"!": "not", "-": "-_", "+": "+_", "~": "~_"}
_NUMBER_ENDS = {"L": "bigint", "S": "smallint", "Y": "tinyint", "F": "float", "D": "double"}


class _Parser:
    """One pass over the tokens, operators by their binding strength."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_LENGTH:
            raise ExpressionError(f"longer than {MAX_LENGTH} characters")
        self.tokens = scan(text, "expression")
        self.at = 0
        self.depth = 0
        self.calls: list[Call] = []

    # -- small steps

    @property
    def token(self) -> Token:
        return Token(*self.tokens[self.at])

    def ahead(self, steps: int = 1) -> Token:
        return Token(*self.tokens[min(self.at + steps, len(self.tokens) - 1)])

    def word(self, ahead: int = 0) -> str:
        """The word that stands here in lower case, or nothing."""
        kind, text, _ = self.tokens[min(self.at + ahead, len(self.tokens) - 1)]
        return text.lower() if kind == "word" else ""

    def sign(self, text: str) -> bool:
        """Step over a sign if it stands here."""
        if self.tokens[self.at][1] == text:  # only a sign is written like one; names and strings have their quotes
            self.at += 1
            return True
        return False

    def keyword(self, *words: str) -> bool:
        """Step over words if they stand here one after the other."""
        for ahead, word in enumerate(words):
            if self.word(ahead) != word:
                return False
        self.at += len(words)
        return True

    def expect(self, sign: str) -> None:
        if not self.sign(sign):
            raise self.unexpected(f"`{sign}` expected")

    def unexpected(self, reason: str = "") -> ExpressionError:
        token = self.token
        if token.kind == "end":
            found = "the expression ends too early"
        elif token.kind == "word" and token.text.lower() in _QUERY:
            return ExpressionError(f"a query (`{token.text}`) has no place in an expression", token.position)
        else:
            found = f"`{token.text}` is not expected here"
        return ExpressionError(f"{found}{'; ' + reason if reason else ''}", token.position)

    # -- the grammar

    def whole(self) -> Expr:
        expression = self.expression()
        if self.token.kind != "end":
            if self.word() == "as":
                raise ExpressionError("no `AS` here; the name has a field of its own", self.token.position)
            raise self.unexpected()
        return expression

    def expression(self, strength: int = 0) -> Expr:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ExpressionError(f"nested more than {MAX_DEPTH} levels deep", self.token.position)
        left = self.prefix()
        while True:
            _, text, position = self.tokens[self.at]
            kind = text.lower()
            binding = _BINDING.get(kind)
            if binding is not None:
                if binding <= strength:
                    break
                self.at += 1
                left = Operation(position, kind, (left, self.expression(binding)))
            elif kind in _PREDICATES and strength < _PREDICATE:
                left = self.predicate(left)
            else:
                break
        self.depth -= 1
        return left

    def predicate(self, left: Expr) -> Expr:
        position = self.token.position
        if self.keyword("is"):
            self.keyword("not")
            if self.keyword("distinct"):
                if not self.keyword("from"):
                    raise self.unexpected("`FROM` expected")
                return Operation(position, "is", (left, self.expression(_PREDICATE)))
            if self.word() in ("null", "true", "false", "unknown"):
                self.at += 1
                return Operation(position, "is", (left,))
            raise self.unexpected("`NULL`, `TRUE`, `FALSE` or `DISTINCT FROM` expected")
        self.keyword("not")
        if self.keyword("in"):
            self.expect("(")
            return Operation(position, "in", (left, *self.list_until(")")))
        if self.keyword("between"):
            low = self.expression(_PREDICATE)
            if not self.keyword("and"):
                raise self.unexpected("`AND` expected")
            return Operation(position, "between", (left, low, self.expression(_PREDICATE)))
        kind = self.word()
        if kind in ("like", "ilike", "rlike", "regexp"):
            self.at += 1
            if self.word() in ("any", "all", "some") and self.ahead().text == "(":
                self.at += 2
                return Operation(position, "like", (left, *self.list_until(")")))
            pattern = self.expression(_PREDICATE)
            operands = [left, pattern]
            if self.keyword("escape"):
                operands.append(self.primary())
            return Operation(position, "like", tuple(operands))
        raise self.unexpected()

    def prefix(self) -> Expr:
        kind, text, position = self.tokens[self.at]
        if kind == "word" and text.lower() == "not":
            self.at += 1
            return Operation(position, "not", (self.expression(_NOT),))
        if text in _PREFIXES:
            self.at += 1
            return Operation(position, _PREFIXES[text], (self.expression(_UNARY),))
        operand = self.primary()
        return self.suffixes(operand) if self.tokens[self.at][1] in _SUFFIXES else operand

    def suffixes(self, operand: Expr) -> Expr:
        while self.tokens[self.at][1] in _SUFFIXES:
            position = self.token.position
            if self.sign("["):
                key = self.expression()
                self.expect("]")
                operand = Item(position, operand, key)
            elif not isinstance(operand, Column) and self.sign("."):
                operand = Item(position, operand, Literal(position, self.name(), "field"))
            elif self.sign("::"):
                operand = Cast(position, operand, self.type_name(), attempt=False)
            else:
                break
        return operand

    def primary(self) -> Expr:
        kind, text, position = self.tokens[self.at]
        if kind == "number":
            self.at += 1
            return _number(text, position)
        if kind == "word":
            return self.from_word()
        if kind in ("string", "hex"):
            self.at += 1
            while kind == "string" and self.token.kind == "string":  # 'a' 'b' and 'it''s'
                self.at += 1
            return Literal(position, text, "string" if kind == "string" else "binary")
        if kind == "quoted":
            return self.column()
        if self.sign("("):
            if self.token.kind == "word" and self.word() in _QUERY:
                raise self.unexpected()
            inner = self.expression()
            if self.sign(","):
                raise ExpressionError("a list of values has no place here", position)
            self.expect(")")
            return inner
        if self.sign("*"):
            return Star(position)
        raise self.unexpected()

    def from_word(self) -> Expr:
        _, text, position = self.tokens[self.at]
        word = text.lower()
        kind_behind, behind, position_behind = self.tokens[self.at + 1]
        if behind == "(":
            return self.call()
        if behind == "->":
            raise ExpressionError("`->` makes sense only inside a function's arguments", position_behind)
        if word in ("null", "true", "false"):
            self.at += 1
            return Literal(position, None if word == "null" else word == "true",
                           "void" if word == "null" else "boolean")  # fmt: skip
        if word == "case":
            return self.case()
        if word == "interval" and kind_behind in ("number", "string", "sign"):
            return self.interval()
        if word in ("date", "timestamp", "timestamp_ntz", "timestamp_ltz") and kind_behind == "string":
            self.at += 2
            return Literal(position, behind, normal_type(word))
        if word in _RESERVED:
            raise self.unexpected()
        if word in functions.BARE:
            self.at += 1
            return self.called(Call(position, word, ()))
        return self.column()

    def name(self) -> str:
        kind, text, _ = self.tokens[self.at]
        if kind not in ("word", "quoted"):
            raise self.unexpected("a name expected")
        self.at += 1
        return text if kind == "word" else text[1:-1].replace("``", "`")

    def column(self) -> Expr:
        position = self.tokens[self.at][2]
        names = [self.name()]
        while self.sign("."):
            if self.sign("*"):
                raise ExpressionError("`.*` has no place in an expression", position)
            names.append(self.name())
        if self.tokens[self.at][1] == "(":
            raise ExpressionError(
                f"`{'.'.join(names)}(…)`: only Spark's own functions by their plain names may be called",
                position,
            )
        _, last, start = self.tokens[self.at - 1]
        return Column(position, tuple(names), start + len(last))

    def list_until(self, end: str) -> list[Expr]:
        if self.sign(end):
            raise ExpressionError("an empty list", self.token.position)
        items = [self.argument()]
        while self.sign(","):
            items.append(self.argument())
        self.expect(end)
        return items

    def argument(self) -> Expr:
        """An argument of a function: an expression, a lambda, or `x AS name`."""
        token = self.token
        if token.kind == "word" and self.ahead().text == "->":
            self.at += 2
            return Lambda(token.position, (token.text,), self.expression())
        if token.text == "(" and self._lambda_ahead():
            self.at += 1
            names = [self.name()]
            while self.sign(","):
                names.append(self.name())
            self.expect(")")
            self.expect("->")
            return Lambda(token.position, tuple(names), self.expression())
        value = self.expression()
        if self.keyword("as"):
            return Named(token.position, value, self.name())
        return value

    def _lambda_ahead(self) -> bool:
        steps = 1
        while self.ahead(steps).kind in ("word", "quoted") and self.ahead(steps + 1).text == ",":
            steps += 2
        return self.ahead(steps + 1).text == ")" and self.ahead(steps + 2).text == "->"

    def call(self) -> Expr:
        token = self.token
        name = token.text.lower()
        self.at += 2
        if name in ("cast", "try_cast"):
            operand = self.expression()
            if not self.keyword("as"):
                raise self.unexpected("`AS` and a type expected")
            kind = self.type_name()
            self.expect(")")
            return Cast(token.position, operand, kind, attempt=name == "try_cast")
        if name == "extract":
            return self.extract(token)
        if name not in functions.ALL:
            if name in _RESERVED:
                self.at -= 2
                raise self.unexpected()
            raise ExpressionError(
                f"the function `{token.text}` is not allowed in expressions{did_you_mean(name, functions.ALL)}",
                token.position,
            )
        distinct = False
        arguments: list[Expr] = []
        if not self.sign(")"):
            distinct = self.keyword("distinct")
            if not distinct:
                self.keyword("all")
            if name == "trim" and self.word() in ("both", "leading", "trailing"):
                self.at += 1
            if name in _BY_UNIT and self.word() in _STEPS and self.ahead().text == ",":
                name = _BY_UNIT[name]
                arguments.append(Literal(self.token.position, self.word(), "unit"))
                self.at += 1
            elif name == "position":
                arguments.append(self.expression(_PREDICATE))
                if self.keyword("in"):
                    arguments.append(self.argument())
            else:
                arguments.append(self.argument())
            # substring(a FROM 1 FOR 2), trim(a FROM b), position(a IN b), overlay(a PLACING b FROM 1)
            while self.sign(",") or (
                name in ("substring", "substr", "trim", "overlay")
                and (self.keyword("from") or self.keyword("for") or self.keyword("placing"))
            ):
                arguments.append(self.argument())
            self.expect(")")
        if name == "transform" and self.word() == "using":
            raise ExpressionError("`TRANSFORM … USING` starts a program and is not allowed", token.position)
        return self.behind_call(token, name, tuple(arguments), distinct)

    def behind_call(self, token: Token, name: str, arguments: tuple[Expr, ...], distinct: bool) -> Expr:
        only = None
        window = None
        if self.keyword("within", "group"):
            self.expect("(")
            if not self.keyword("order", "by"):
                raise self.unexpected("`ORDER BY` expected")
            arguments = (*arguments, *self.ordering())
            self.expect(")")
        if self.word() in ("ignore", "respect") and self.word(1) == "nulls":
            self.at += 2
        if self.keyword("filter"):
            self.expect("(")
            if not self.keyword("where"):
                raise self.unexpected("`WHERE` expected")
            only = self.expression()
            self.expect(")")
        if self.word() in ("ignore", "respect") and self.word(1) == "nulls":
            self.at += 2
        if self.keyword("over"):
            window = self.window()
        if name in functions.WINDOW and window is None:
            raise ExpressionError(f"`{token.text}` needs an `OVER (…)`", token.position)
        return self.called(Call(token.position, name, arguments, distinct, only, window))

    def called(self, call: Call) -> Call:
        self.calls.append(call)
        return call

    def ordering(self) -> list[Expr]:
        order = []
        while True:
            order.append(self.expression())
            if self.word() in ("asc", "desc"):
                self.at += 1
            if self.keyword("nulls"):
                if self.word() not in ("first", "last"):
                    raise self.unexpected("`FIRST` or `LAST` expected")
                self.at += 1
            if not self.sign(","):
                return order

    def window(self) -> Window:
        position = self.token.position
        self.expect("(")
        partition: list[Expr] = []
        order: list[Expr] = []
        if self.keyword("partition", "by"):
            partition.append(self.expression())
            while self.sign(","):
                partition.append(self.expression())
        if self.keyword("order", "by"):
            order = self.ordering()
        if self.word() in ("rows", "range"):
            self.at += 1
            if self.keyword("between"):
                self.bound()
                if not self.keyword("and"):
                    raise self.unexpected("`AND` expected")
            self.bound()
        self.expect(")")
        return Window(position, tuple(partition), tuple(order))

    def bound(self) -> None:
        if self.keyword("current", "row"):
            return
        if not self.keyword("unbounded"):
            self.expression(_PREDICATE)
        if self.word() not in ("preceding", "following"):
            raise self.unexpected("`PRECEDING` or `FOLLOWING` expected")
        self.at += 1

    def extract(self, token: Token) -> Expr:
        unit = self.word()
        if unit not in _EXTRACT:
            raise self.unexpected(f"a part of a date expected{did_you_mean(unit, _EXTRACT)}")
        self.at += 1
        if not self.keyword("from"):
            raise self.unexpected("`FROM` expected")
        operand = self.expression()
        self.expect(")")
        return self.called(Call(token.position, "extract", (Literal(token.position, unit, "unit"), operand)))

    def case(self) -> Expr:
        position = self.token.position
        self.at += 1
        subject = None if self.word() == "when" else self.expression()
        conditions, results = [], []
        while self.keyword("when"):
            conditions.append(self.expression())
            if not self.keyword("then"):
                raise self.unexpected("`THEN` expected")
            results.append(self.expression())
        if not conditions:
            raise self.unexpected("`WHEN` expected")
        otherwise = self.expression() if self.keyword("else") else None
        if not self.keyword("end"):
            raise self.unexpected("`END` expected")
        return Case(position, subject, tuple(conditions), tuple(results), otherwise)

    def interval(self) -> Expr:
        token = self.token
        self.at += 1
        units = 0
        while self.token.kind in ("number", "string") or (
            self.token.text in ("+", "-") and self.ahead().kind in ("number", "string")
        ):
            self.at += 1 if self.token.kind in ("number", "string") else 2
            if self.word() not in _UNITS:
                break
            self.at += 1
            units += 1
            if self.keyword("to"):
                self.at += 1
        if not units and self.ahead(-1).kind != "string":
            raise self.unexpected("a unit of time expected")
        return Literal(token.position, "interval", "interval")

    def type_name(self) -> str:
        start = self.tokens[self.at][2]
        depth = 0
        pieces = []
        while True:
            kind, text, _ = self.tokens[self.at]
            if text in ("(", "<"):
                depth += 1
            elif text in (")", ">", ">>") and depth:
                depth -= len(text)
            elif kind not in ("word", "quoted", "number") and not (text == "," and depth):
                break
            pieces.append(text)
            self.at += 1
            if depth == 0 and self.tokens[self.at][1] not in ("(", "<"):
                break
        try:
            return normal_type("".join(pieces))
        except BadType as error:
            raise ExpressionError(str(error), start) from None


def _number(text: str, position: int) -> Literal:
    if text.endswith("BD"):
        return Literal(position, text, _decimal_type(text[:-2]))
    if text[-1] in _NUMBER_ENDS:
        return Literal(position, text, _NUMBER_ENDS[text[-1]])
    if "e" in text or "E" in text:
        return Literal(position, float(text), "double")
    if "." in text:
        return Literal(position, text, _decimal_type(text))
    value = int(text)
    return Literal(position, value, "int" if value < 2**31 else "bigint" if value < 2**63 else
                   _decimal_type(text))  # fmt: skip


def _decimal_type(text: str) -> str:
    whole, _, fraction = text.partition(".")
    whole = whole.lstrip("0")
    return f"decimal({max(len(whole) + len(fraction), 1)},{len(fraction)})"


class _Parsed(NamedTuple):
    tree: Expr
    calls: tuple[Call, ...]


@lru_cache(maxsize=50_000)
def _parsed(text: str) -> _Parsed | ExpressionError:
    try:
        parser = _Parser(text)
        tree = parser.whole()
    except ExpressionError as error:
        return error
    return _Parsed(tree, tuple(sorted(parser.calls, key=lambda call: call.position)))


def _read(text: str) -> _Parsed:
    result = _parsed(text)
    if isinstance(result, ExpressionError):
        raise result
    return result


def parse(text: str) -> Expr:
    """The tree of an expression, or an `ExpressionError` that says why it is refused."""
    return _read(text).tree


def calls(text: str) -> tuple[Call, ...]:
    """Every function that an expression which parses calls, as they stand in its text."""
    return _read(text).calls

"""Operators whose work a person writes out: a query over the inputs, or Python that the person trusts."""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, StringConstraints, model_validator

from engine.model import functions
from engine.model.expression_words import MAX_LENGTH, ExpressionError, tokens
from engine.model.meanings import Meaning, Means
from engine.model.operator import (
    BuildInputs,
    BuildTools,
    Built,
    Category,
    Finding,
    Inputs,
    Operator,
    Port,
    SqlType,
    column_type,
    has_column,
)
from engine.model.problems import Level, did_you_mean
from engine.model.types import UNKNOWN, BadType, Schema, ddl, normal_type
from engine.operators._sql import quoted

Tree = Any  # sqlglot's, which is imported only where a query is read
CodeText = Annotated[str, StringConstraints(min_length=1), Means(Meaning.CODE)]
InputName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]

# Words that name nothing in SQL, or that `spark.sql` takes for itself.
_NO_INPUT_NAMES = {
    "all", "and", "any", "args", "as", "case", "cross", "distinct", "else", "end", "except", "exists",
    "false", "from", "full", "group", "having", "in", "inner", "intersect", "is", "join", "lateral",
    "left", "limit", "minus", "natural", "not", "null", "on", "or", "order", "outer", "right", "select",
    "self", "semi", "some", "sqlquery", "table", "then", "true", "union", "using", "values", "when",
    "where", "window", "with",
}  # fmt: skip


def _declared(columns: Mapping[str, str]) -> dict[str, str] | None:
    """Declared columns with their types in Spark's own writing; None where there are none or one is wrong."""
    try:
        return {name: normal_type(kind) for name, kind in columns.items()} or None
    except BadType:
        return None  # told already


def _as_declared(frame: Any, columns: Mapping[str, str]) -> Any:
    """A frame with the declared columns in their order and of their types."""
    kinds = _declared(columns) or columns
    return frame.selectExpr(*(f"CAST({quoted(name)} AS {kind}) AS {quoted(name)}" for name, kind in kinds.items()))


class Coded(Operator):
    """An operator over inputs that its settings name."""

    family: ClassVar[str] = "code"
    category: ClassVar[Category] = Category.BLOCKING
    adds_rows: ClassVar[bool] = True

    tables: list[InputName] = Field(
        default_factory=lambda: ["input"], min_length=1, description="The names of the inputs."
    )

    @model_validator(mode="after")
    def _names_can_be_used(self) -> Self:
        seen: set[str] = set()
        for name in self.tables:
            if name.lower() in _NO_INPUT_NAMES or keyword.iskeyword(name):
                raise ValueError(f"an input cannot be called `{name}`, which means something else")
            if name.lower() in seen:
                raise ValueError(f"two inputs are called `{name}`")
            seen.add(name.lower())
        return self

    def input_ports(self) -> tuple[Port, ...]:
        return tuple(Port(name) for name in self.tables)


# ---------------------------------------------------------------- SQL


class Sql(Coded):
    """The rows of a query over the inputs, in Spark SQL. Every column needs a name."""

    name: ClassVar[str] = "sql"
    title: ClassVar[str] = "SQL"
    on_sail: ClassVar[bool] = True

    query: CodeText = Field(description="One `SELECT` over the inputs, which are its tables.")
    columns: dict[str, SqlType] = Field(
        default_factory=dict,
        description="The columns the query gives and their types, where they are to be known.",
    )

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        try:
            query = read_query(self.query, tuple(self.tables))
        except QueryError as error:
            yield Finding(str(error), setting="query")
            return
        for name in self.tables:
            if name.lower() not in query.reads:
                yield Finding(f"the query does not read `{name}`", name, "query", level=Level.WARNING)
        for number in query.unnamed:
            yield Finding(f"column {number} of the query has no name; give it one with `AS`", setting="query")
        given = query.schema({name: inputs.of(name) for name in self.tables})
        if given is None:
            return
        names = [name.lower() for name, _ in given]
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield Finding(f"the query gives two columns `{name}`", setting="query")
        for name in self.columns:
            if name.lower() not in names:
                near = did_you_mean(name, [known for known, _ in given])
                yield Finding(f"the query gives no column `{name}`{near}", setting=f"columns.{name}")

    def output_schemas(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        if self.columns:
            return {"out": _declared(self.columns)}
        try:
            query = read_query(self.query, tuple(self.tables))
        except QueryError:
            return {"out": None}
        given = query.schema({name: inputs.of(name) for name in self.tables})
        return {"out": None if given is None else dict(given)}

    def is_repeatable(self) -> bool:
        try:
            return read_query(self.query, tuple(self.tables)).repeatable
        except QueryError:
            return False

    def build(self, inputs: BuildInputs, tools: BuildTools) -> Built:
        query = read_query(self.query, tuple(self.tables))
        frames = {name: inputs.of(name) for name in self.tables if name.lower() in query.reads}
        result = tools.spark.sql(query.template, **frames)
        return _as_declared(result, self.columns) if self.columns else result


class QueryError(ValueError):
    """Why a query is refused."""


@dataclass(frozen=True)
class Query:
    """A query that may be run: as Spark gets it, with a `{name}` for each input, and what is known of it."""

    template: str
    reads: frozenset[str]
    repeatable: bool
    unnamed: tuple[int, ...]
    tree: Tree

    def schema(self, inputs: Mapping[str, Schema | None]) -> list[tuple[str, str]] | None:
        """The columns it gives over its inputs, None where that is not certain."""
        return _columns_of(self.tree, {name.lower(): _pairs(schema) for name, schema in inputs.items()})


# What may stand before a bracket without being a function.
_BEFORE_BRACKET = {
    "all", "and", "anti", "as", "between", "by", "case", "cross", "cube", "distinct", "div", "else",
    "except", "exists", "filter", "from", "full", "group", "having", "in", "inner", "intersect", "is",
    "join", "lateral", "left", "like", "limit", "minus", "not", "offset", "on", "or", "outer", "over",
    "pivot", "regexp", "right", "rlike", "rollup", "select", "semi", "sets", "then", "union", "unpivot",
    "using", "values", "when", "where", "with", "cast", "try_cast", "varchar", "for", "interval",
}  # fmt: skip
_GENERATORS = {
    "explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer", "stack",
    "json_tuple", "grouping", "grouping_id",
}  # fmt: skip
_INCOMPLETE = re.compile(r"Required keyword: .*", re.DOTALL)  # sqlglot speaks of its own classes here
_BARE_REFUSED = {"current_user", "session_user", "current_catalog", "current_database", "current_schema"}


@lru_cache(maxsize=2_000)
def _read(text: str, tables: tuple[str, ...]) -> Query | QueryError:
    try:
        names = _check_words(text)
        tree = _parse(text)
        return _checked(text, tables, tree, names)
    except QueryError as error:
        return error


def read_query(text: str, tables: tuple[str, ...]) -> Query:
    """A query that is one SELECT over its inputs with allowed functions; a `QueryError` says what is wrong.

    The words are read by our own strict reader and the structure by sqlglot: what either does not know is
    refused.
    """
    result = _read(text, tables)
    if isinstance(result, QueryError):
        raise result
    return result


def _check_words(text: str) -> set[str]:
    """The functions a query calls, all of them allowed."""
    if len(text) > MAX_LENGTH:
        raise QueryError(f"longer than {MAX_LENGTH} characters")
    if "${" in text:
        raise QueryError("`${…}` has no meaning inside a query once the parameters are filled in")
    try:
        words = tokens(text, "query")
    except ExpressionError as error:
        raise QueryError(str(error)) from None
    first = words[0].text.lower()
    if first not in ("select", "with", "("):
        raise QueryError(f"a query starts with `SELECT` or `WITH`, not with `{words[0].text}`")
    called: set[str] = set()
    for index, token in enumerate(words):
        before = words[index - 1] if index else words[-1]
        behind = words[min(index + 1, len(words) - 1)]
        word = token.text.lower()
        if token.text == "|" and behind.text == ">":
            raise QueryError("no pipes (`|>`); write one `SELECT`")
        if token.kind == "word" and word == "using" and behind.text != "(":
            raise QueryError("`USING` names columns in brackets; a program cannot be started")
        if token.kind == "word" and word in _BARE_REFUSED and before.text != ".":
            raise QueryError(f"`{token.text}` is not allowed in a query")
        if behind.text != "(" or token.kind not in ("word", "quoted") or before.text.lower() == "as":
            continue
        if token.kind == "quoted" or before.text == ".":
            raise QueryError(f"`{token.text}(…)`: only Spark's own functions by their plain names may be called")
        if word in functions.ALL or word in _GENERATORS:
            called.add(word)
            if word in functions.CLOCKS and words[min(index + 2, len(words) - 1)].text == ")":
                called.add(f"{word}()")
        elif word not in _BEFORE_BRACKET:
            near = did_you_mean(word, functions.ALL)
            raise QueryError(f"the function `{token.text}` is not allowed in a query{near}")
    called.update(token.text.lower() for token in words if token.kind == "word")
    return called


def _parse(text: str) -> Tree:
    import sqlglot
    from sqlglot import exp

    try:
        statements = sqlglot.parse(text, dialect="spark")
    except sqlglot.errors.ParseError as error:
        detail = error.errors[0] if error.errors else {}
        place = f"line {detail['line']}, column {detail['col']}: " if detail.get("line") else ""
        reason = detail.get("description") or "it is no query"
        raise QueryError(f"{place}{_INCOMPLETE.sub('something is missing', reason)}") from None
    except Exception as error:  # sqlglot stumbles over some texts that are no SQL
        raise QueryError(f"it cannot be read: {error}") from None
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        raise QueryError("it must be one `SELECT`")
    select = _outer_select(statements[0])
    if select is None or not select.expressions:
        raise QueryError("it selects no columns")
    return statements[0]


def _checked(text: str, tables: tuple[str, ...], tree: Tree, words: set[str]) -> Query:
    from sqlglot import exp

    refused = {
        exp.QueryTransform: "`TRANSFORM … USING` starts a program and is not allowed",
        exp.Command: "it must be one `SELECT`",
        exp.Into: "a query cannot write (`INTO`); that is for a target",
        exp.DML: "a query cannot write; that is for a target",
        exp.DDL: "a query cannot create anything; that is for a target",
        exp.Hint: "no hints; the operator `join` has them",
        exp.Parameter: "no variables; use the workflow's parameters",
        exp.Placeholder: "no variables; use the workflow's parameters",
        exp.Lock: "no locks",
        exp.Version: "an input has no versions",
        exp.TableSample: "no sampling here; use the operator `sample`",
    }
    inputs = {name.lower(): name for name in tables}
    named = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    if both := sorted(named & set(inputs)):
        raise QueryError(f"`{both[0]}` is an input; give the `WITH` another name")
    places: list[tuple[int, int, str]] = []
    reads: set[str] = set()
    for node in tree.walk():
        # A SELECT is a DDL to sqlglot, since it may stand in one.
        reason = next((why for kind, why in refused.items() if isinstance(node, kind)), None)
        if reason is not None and not isinstance(node, exp.Query):
            raise QueryError(reason)
        if not isinstance(node, exp.Table):
            continue
        if not isinstance(node.this, exp.Identifier):
            raise QueryError("a function cannot stand in `FROM`; use `LATERAL VIEW`")
        if node.args.get("db") or node.args.get("catalog"):
            shown = ".".join(part.name for part in node.parts)
            raise QueryError(f"`{shown}` is no input; a query reads nothing but its inputs")
        name = node.name.lower()
        if name in named:
            continue
        if name not in inputs:
            near = did_you_mean(name, [*inputs, *named])
            raise QueryError(f"`{node.name}` is no input{near or '; a query reads nothing but its inputs'}")
        reads.add(name)
        start, end = node.this.meta["start"], node.this.meta["end"] + 1
        alias = "" if node.alias else f" AS {text[start:end]}"
        places.append((start, end, f"{{{inputs[name]}}}{alias}"))
    if not reads:
        raise QueryError("it reads none of its inputs")
    return Query(
        _template(text, places),
        frozenset(reads),
        _is_repeatable(tree, words),
        _unnamed(tree),
        tree,
    )


def _is_repeatable(tree: Tree, called: set[str]) -> bool:
    from sqlglot import exp

    clocks = {f"{name}()" for name in functions.CLOCKS}
    texts = [node.this for node in tree.find_all(exp.Literal) if node.is_string]
    return not called & (functions.UNREPEATABLE | clocks) and not any(map(functions.is_moment, texts))


def _template(text: str, places: list[tuple[int, int, str]]) -> str:
    """The query with its inputs' names replaced; braces in its texts are doubled for `spark.sql`."""
    pieces, at = [], 0
    for start, end, new in sorted(places):
        pieces += [text[at:start].replace("{", "{{").replace("}", "}}"), new]
        at = end
    return "".join([*pieces, text[at:].replace("{", "{{").replace("}", "}}")])


# What a query gives. Only what is certain: columns that are passed on, casts and counts.

_Given = list[tuple[str, str]]


def _pairs(schema: Schema | None) -> _Given | None:
    return None if schema is None else list(schema.items())


def _outer_select(tree: Tree) -> Tree | None:
    from sqlglot import exp

    while not isinstance(tree, exp.Select):
        if not isinstance(tree, (exp.Subquery, exp.SetOperation)):
            return None
        tree = tree.this
    return tree


def _unnamed(tree: Tree) -> tuple[int, ...]:
    """The columns without a name of their own, counted from one."""
    from sqlglot import exp

    select = _outer_select(tree)
    named = (exp.Alias, exp.Aliases, exp.Column, exp.Star)
    found = enumerate(select.expressions if select else (), 1)
    return tuple(number for number, item in found if not isinstance(item, named))


def _columns_of(tree: Tree, known: Mapping[str, _Given | None]) -> _Given | None:
    from sqlglot import exp

    with_ = tree.args.get("with_")
    if with_ is not None:
        known = dict(known)
        for cte in with_.expressions:
            certain = not with_.args.get("recursive") and not cte.args["alias"].args.get("columns")
            known[cte.alias.lower()] = _columns_of(cte.this, known) if certain else None
    if isinstance(tree, exp.Subquery):
        return _columns_of(tree.this, known)
    if isinstance(tree, exp.SetOperation):
        left, right = _columns_of(tree.this, known), _columns_of(tree.expression, known)
        if left is None or right is None or len(left) != len(right) or tree.args.get("by_name"):
            return None
        return [
            (name, kind if kind == other else UNKNOWN) for (name, kind), (_, other) in zip(left, right, strict=True)
        ]
    if not isinstance(tree, exp.Select):
        return None
    return _columns_of_select(tree, known)


def _columns_of_select(tree: Tree, known: Mapping[str, _Given | None]) -> _Given | None:
    from sqlglot import exp

    sources = _sources(tree, known)
    merged = any(join.args.get("using") or join.args.get("method") for join in tree.args.get("joins") or ())
    result: _Given = []
    for item in tree.expressions:
        star = item if isinstance(item, exp.Star) else item.this if isinstance(item, exp.Column) else None
        if isinstance(star, exp.Star):
            wanted = [item.table.lower()] if isinstance(item, exp.Column) else list(sources)
            if any(star.args.values()) or (merged and len(wanted) > 1) or item.args.get("db"):
                return None
            for name in wanted:
                columns = sources.get(name)
                if columns is None:
                    return None
                result += columns
        elif isinstance(item, exp.Column):
            result.append((item.name, _kind(item, sources)))
        elif isinstance(item, exp.Alias):
            result.append((item.alias, _kind(item.this, sources)))
        else:
            return None
    return result


def _sources(tree: Tree, known: Mapping[str, _Given | None]) -> dict[str, _Given | None]:
    """What a SELECT reads, by the names it uses for it, in order."""
    from sqlglot import exp

    from_ = tree.args.get("from_")
    items = [from_.this] if from_ is not None else []
    items += [join.this for join in tree.args.get("joins") or ()]
    items += list(tree.args.get("laterals") or ())
    sources: dict[str, _Given | None] = {}
    for number, item in enumerate(items):
        columns = None
        certain = not item.args.get("pivots") and not (item.args.get("alias") and item.args["alias"].columns)
        if certain and isinstance(item, exp.Table):
            columns = known.get(item.name.lower())
        elif certain and isinstance(item, exp.Subquery):
            columns = _columns_of(item, known)
        # A semi or anti join gives the columns of its left side alone.
        if isinstance(item.parent, exp.Join) and item.parent.kind in ("SEMI", "ANTI"):
            continue
        sources[item.alias_or_name.lower() or f"#{number}"] = columns
    return sources


def _kind(item: Tree, sources: Mapping[str, _Given | None]) -> str:
    """The type of a part of a query, where it is certain."""
    from sqlglot import exp

    if isinstance(item, exp.Paren):
        return _kind(item.this, sources)
    if isinstance(item, exp.Count):
        return "bigint"
    if isinstance(item, exp.Cast):
        try:
            return normal_type(item.to.sql("spark"))
        except BadType:
            return UNKNOWN
    if not isinstance(item, exp.Column) or item.args.get("db"):
        return UNKNOWN
    if item.table:
        columns = sources.get(item.table.lower())
        return (column_type(dict(columns), item.name) if columns is not None else None) or UNKNOWN
    if None in sources.values():
        return UNKNOWN
    found = [dict(columns) for columns in sources.values() if columns and has_column(dict(columns), item.name)]
    return (column_type(found[0], item.name) if len(found) == 1 else None) or UNKNOWN


# ---------------------------------------------------------------- Python


class PythonStyle(StrEnum):
    """What the function of a Python operator gets."""

    FRAMES = "frames"
    BATCHES = "batches"


# What Spark calls with the batches of a partition, one after the other.
_BATCHES = '''

def transform_batches(batches):
    """`transform` over every batch of rows that Spark hands over."""
    for batch in batches:
        yield transform(batch)
'''


class Python(Coded):
    """Rows that a function `transform` makes, written in Python. It runs only in a file that you trust.

    With `frames` it gets a Spark DataFrame for each input and returns one; with `batches` it gets the rows of
    the one input as pandas DataFrames, some thousand rows at a time, and returns one for each.
    """

    name: ClassVar[str] = "python"
    title: ClassVar[str] = "Python"
    needs_trust: ClassVar[bool] = True
    on_sail: ClassVar[bool] = True

    style: PythonStyle = Field(PythonStyle.FRAMES, description="What `transform` gets.")
    code: CodeText = Field(description="Python that defines `transform`.")
    columns: dict[str, SqlType] = Field(min_length=1, description="The columns it gives and their types.")

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        if self.style is PythonStyle.BATCHES and len(self.tables) > 1:
            yield Finding("`batches` takes one input", setting="tables")
        wanted = len(self.tables) if self.style is PythonStyle.FRAMES else 1
        reason = _python_problem(self.code, wanted)
        if reason is not None:
            yield Finding(reason, setting="code")
        names = [name.lower() for name in self.columns]
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield Finding(f"two columns are called `{name}`", setting="columns")

    def output_schemas(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        return {"out": _declared(self.columns)}

    def is_repeatable(self) -> bool:
        return False  # nobody can tell what the code does

    def build(self, inputs: BuildInputs, tools: BuildTools) -> Built:
        frames = [inputs.of(name) for name in self.tables]
        if self.style is PythonStyle.BATCHES:
            transform = tools.function(self.code.rstrip() + _BATCHES, "transform_batches")
            return frames[0].mapInPandas(transform, ddl(_declared(self.columns) or self.columns))
        return _as_declared(tools.function(self.code, "transform")(*frames), self.columns)


def _python_problem(code: str, wanted: int) -> str | None:
    """Why a code cannot be used, found without running it."""
    try:
        tree = ast.parse(code)
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return f"it cannot be read: {error}"
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (
            node.module == "__future__" or any(alias.name == "*" for alias in node.names)
        ):
            return f"line {node.lineno}: an import from `__future__` or of `*` has no place here"
    functions_ = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "transform"]
    if not functions_:
        return "it defines no function `transform`"
    given = functions_[-1].args
    most = len(given.posonlyargs) + len(given.args)
    least = most - len(given.defaults)
    if not least <= wanted <= (wanted if given.vararg else most):
        return f"line {functions_[-1].lineno}: `transform` must take {wanted} argument{'s' * (wanted > 1)}"
    return None

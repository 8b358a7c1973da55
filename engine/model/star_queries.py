"""Queries on an elastic run's star that a person writes: one SELECT each, read as strictly as any query of a file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from engine.model.operator import Operator, Role
from engine.model.problems import did_you_mean

_QUERY = re.compile(r"\s*(select|with|\()", re.IGNORECASE)


def table_of(target: str, operator: Operator) -> str:
    """The table that a target is in the warehouse: its file's name without an ending."""
    return Path(str(getattr(operator, "path", target))).stem


def read_query(sql: str) -> frozenset[str]:
    """The tables that a query reads, in lower case; a ValueError says why it is refused."""
    from engine.operators import code

    return code.read_query(sql, _tables(sql) or ("facts",)).reads


def _tables(sql: str) -> tuple[str, ...]:
    """The names behind FROM and JOIN that the query does not define itself."""
    import sqlglot
    from sqlglot import exp

    if not _QUERY.match(sql):
        return ()
    try:
        tree = sqlglot.parse_one(sql, dialect="spark")
    except Exception:  # what is wrong with it is told by who reads it
        return ()
    defined = {one.alias.lower() for one in tree.find_all(exp.CTE)}
    names = {table.name.lower() for table in tree.find_all(exp.Table) if not table.args.get("db")}
    return tuple(sorted(names - defined))


def strange_tables(queries: dict[str, str], operators: Iterable[tuple[str, Operator]]) -> Iterator[tuple[str, str]]:
    """The queries that read what is no table of the star, each with the reason."""
    tables = sorted(table_of(node, operator) for node, operator in operators if operator.role is Role.TARGET)
    known = {table.lower() for table in tables}
    for name, sql in queries.items():
        for table in sorted(read_query(sql) - known):
            there = did_you_mean(table, tables) or f"; there are {', '.join(tables)}"
            yield name, f"`{table}` is no table of the star{there}"

"""A workflow of `papilio generate` said again in DuckDB's SQL, from its file alone: a view for each node.

It knows the operators that the generator uses, in the forms in which it uses them, and shares no code with the engine.
Where Spark and DuckDB mean different things by the same word, a macro says what Spark means.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import duckdb

MACROS = r"""
CREATE MACRO pmod(a, b) AS ((a % b) + b) % b;
CREATE MACRO days_between(until, since) AS CAST(until AS DATE) - CAST(since AS DATE);
CREATE MACRO tidy(t) AS trim(regexp_replace(t, '\s+', ' ', 'g'));
CREATE MACRO title_case(t) AS
    array_to_string([upper(word[1]) || lower(word[2:]) for word in string_split(t, ' ')], ' ');
"""
CASES = {"upper": "upper", "lower": "lower", "title": "title_case"}


def compute(workflow: Mapping[str, Any], data: Path, oracle: duckdb.DuckDBPyConnection) -> None:
    """Make a view for each node, called as the node is."""
    oracle.execute(MACROS)
    inputs: dict[str, dict[str, str]] = {node: {} for node in workflow["nodes"]}
    for edge in workflow["edges"]:
        target, port = edge["to"].split(".")
        inputs[target][port] = edge["from"].partition(".")[0]
    for node in TopologicalSorter({node: list(read.values()) for node, read in inputs.items()}).static_order():
        drawn = workflow["nodes"][node]
        say = getattr(_Node(drawn["settings"], inputs[node], data, oracle), drawn["operator"])
        oracle.execute(f"CREATE VIEW {node} AS {say()}")


def _sql(expression: str) -> str:
    """Spark counts the days back from the first date, and cuts off the decimals that DuckDB would round."""
    expression = re.sub(r"\bdate_diff\(", "days_between(", expression)
    return re.sub(r"CAST\((\w+) AS bigint\)", r"CAST(trunc(\1) AS bigint)", expression)


@dataclass
class _Node:
    """One node: its settings and the views it reads. The method of its operator's name gives its query."""

    settings: Mapping[str, Any]
    reads: Mapping[str, str]
    data: Path
    oracle: duckdb.DuckDBPyConnection

    def replacing(self, expressions: Mapping[str, str]) -> str:
        """The rows that come in, with these columns in the place of those of their name, or behind all others."""
        there = {row[0] for row in self.oracle.execute(f"DESCRIBE {self.reads['in']}").fetchall()}
        placed = ", ".join(f"{text} AS {name}" for name, text in expressions.items() if name in there)
        added = "".join(f", {text} AS {name}" for name, text in expressions.items() if name not in there)
        return f"SELECT *{f' REPLACE ({placed})' if placed else ''}{added} FROM {self.reads['in']}"

    def parquet_source(self) -> str:
        return f"SELECT * FROM '{self.settings['path'].replace('${data}', str(self.data))}'"

    def parquet_target(self) -> str:
        return f"SELECT * FROM {self.reads['in']}"

    def select(self) -> str:
        if "rename" in self.settings:
            renamed = ", ".join(f"{old} AS {new}" for old, new in self.settings["rename"].items())
            return f"SELECT * RENAME ({renamed}) FROM {self.reads['in']}"
        if "drop" in self.settings:
            return f"SELECT * EXCLUDE ({', '.join(self.settings['drop'])}) FROM {self.reads['in']}"
        taken = ", ".join(f"{one['column']} AS {one.get('name', one['column'])}" for one in self.settings["columns"])
        return f"SELECT {taken} FROM {self.reads['in']}"

    def derive(self) -> str:
        return self.replacing({column["name"]: _sql(column["expression"]) for column in self.settings["columns"]})

    def clean_text(self) -> str:
        case = CASES[self.settings["case"]]
        return self.replacing({column: f"{case}(tidy({column}))" for column in self.settings["columns"]})

    def regex(self) -> str:
        column, pattern, instead = (self.settings[key] for key in ("column", "pattern", "replacement"))
        return self.replacing({column: f"regexp_replace({column}, '{pattern}', '{instead}', 'g')"})

    def replace_null(self) -> str:
        return self.replacing(
            {column: f"coalesce({column}, {value})" for column, value in self.settings["values"].items()}
        )

    def filter(self) -> str:
        return f"SELECT * FROM {self.reads['in']} WHERE {_sql(self.settings['condition'])}"

    def not_null(self) -> str:
        known = " AND ".join(f"{column} IS NOT NULL" for column in self.settings["columns"])
        return f"SELECT * FROM {self.reads['in']} WHERE {known}"

    def validate(self) -> str:
        (rule,) = self.settings["rules"]
        return f"SELECT * FROM {self.reads['in']} WHERE {_sql(rule['condition'])}"

    def join(self) -> str:
        (key,) = self.settings["keys"]
        assert key["left"] == key["right"]
        return f"SELECT * FROM {self.reads['left']} JOIN {self.reads['right']} USING ({key['left']})"

    def lookup(self) -> str:
        (key,), (take,) = self.settings["keys"], self.settings["take"]
        brought = f"coalesce(reference.{take['column']}, '{take['default']}') AS {take['name']}"
        return (
            f"SELECT main.*, {brought} FROM {self.reads['main']} AS main"
            f" LEFT JOIN {self.reads['reference']} AS reference ON main.{key['main']} = reference.{key['reference']}"
        )

    def aggregate(self) -> str:
        sums = ", ".join(f"{_sql(one['expression'])} AS {one['name']}" for one in self.settings["aggregates"])
        group = ", ".join(self.settings["group"])
        return f"SELECT {group}, {sums} FROM {self.reads['in']} GROUP BY {group}"

    materialized_view = aggregate

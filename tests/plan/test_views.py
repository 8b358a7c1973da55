"""View hierarchies: a coarser aggregate that a finer one can answer is offered, and gives the same rows."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import BadInput
from engine.model.binding import Bound, bind
from engine.operators import catalogue
from engine.operators.warehouse import Aggregate
from engine.plan.rows import rows_of
from engine.plan.views import chosen, offers, recorded_after, rewritten
from tests.end_to_end.helpers import answer, papilio_here, write
from tests.plan.test_workflow import bound_of, node, source, target

COLUMNS = {"a": "int", "b": "int", "c": "int", "x": "int", "y": "decimal(10,2)", "z": "double"}


def measures(**expressions: str) -> list[dict[str, str]]:
    return [{"name": name, "expression": text} for name, text in expressions.items()]


def views(fine: dict[str, Any], coarse: dict[str, Any], *more: str, **nodes: Any) -> Bound:
    """A fine and a coarse aggregate over the same rows, each with its view."""
    return bound_of(
        {
            "s": source(1_000, **COLUMNS), "w": node("copy"), "t": node("staging"),
            "fine": node("aggregate", {"rows": 50}, **fine), "f": target("f"),
            "coarse": node("aggregate", {"rows": 5}, **coarse), "k": target("k"),
            **nodes,
        },
        "s -> w", "w -> t", "t -> fine", "fine -> f", "t -> coarse", "coarse -> k", *more,
    )  # fmt: skip


def test_a_coarser_aggregate_is_offered_the_recordset_of_the_finer_one():
    bound = views(
        {"group": ["A", "b"], "aggregates": measures(n="count(*)", s="sum( X )", low="min(x)", high="max(b + x)")},
        {"group": ["b"], "aggregates": measures(rows="count(*)", total="sum(x)", low="MIN(x)", high="max(B+x)")},
    )
    (offer,) = offers(bound, rows_of(bound))
    assert (offer.node, offer.finer, offer.source, offer.exact) == ("coarse", "fine", ("f", "out"), True)
    assert offer.expressions == {
        "rows": "sum(`n`)", "total": "sum(`s`)", "low": "min(`low`)", "high": "max(`high`)",
    }  # fmt: skip
    assert "`coarse` can be answered from `f`" in offer.text()
    assert "50 rows instead of 1,000" in offer.text()


def test_the_rewritten_workflow_reads_the_finer_view_and_keeps_schema_and_hints():
    bound = views(
        {"group": ["a", "b"], "aggregates": measures(n="count(*)", s="sum(y)")},
        {"group": ["b"], "aggregates": measures(n="count(*)", total="sum(y)"), "having": "n > 3"},
    )
    rows = rows_of(bound)
    found = offers(bound, rows)
    again = bind(rewritten(bound.workflow, found, rows), catalogue())
    assert again.errors == []
    assert again.producers("coarse") == [("f", "out")]
    assert again.schemas["coarse", "out"] == bound.schemas["coarse", "out"]
    coarse = again.operators["coarse"]
    assert isinstance(coarse, Aggregate)
    assert [measure.expression for measure in coarse.aggregates] == ["sum(`n`)", "cast(sum(`s`) as decimal(20,2))"]
    assert coarse.having == "n > 3"
    assert bound.producers("coarse") == [("t", "out")]  # the workflow that was asked about is as it was
    assert rows_of(again, recorded=recorded_after(rows, found)).out("coarse") == 5


@pytest.mark.parametrize(
    ("fine", "coarse"),
    [
        ({"group": ["a", "b"]}, {"group": ["c"]}),
        ({"group": ["a"]}, {"group": ["a", "b"]}),
        ({"aggregates": measures(n="sum(x)"), "group": ["a", "b"]}, {"aggregates": measures(n="sum(y)"), "group": ["a"]}),
        ({"aggregates": measures(n="count(x)"), "group": ["a", "b"]}, {"aggregates": measures(n="count(*)"), "group": ["a"]}),
        ({"aggregates": measures(n="count(DISTINCT x)"), "group": ["a", "b"]},
         {"aggregates": measures(n="count(DISTINCT x)"), "group": ["a"]}),
        ({"aggregates": measures(n="avg(x)"), "group": ["a", "b"]}, {"aggregates": measures(n="avg(x)"), "group": ["a"]}),
        ({"aggregates": measures(n="sum(x)"), "group": ["a", "b"]}, {"aggregates": measures(n="sum(x) + 1"), "group": ["a"]}),
        ({"group": ["a", "b"], "having": "a > 3"}, {"group": ["a"]}),
        ({"aggregates": measures(n="sum(x) FILTER (WHERE a > 1)"), "group": ["a", "b"]},
         {"aggregates": measures(n="sum(x)"), "group": ["a"]}),
    ],
    ids=["other group", "coarser", "other figure", "nulls count", "distinct", "average", "more than one call", "having", "filter"],
)  # fmt: skip
def test_what_the_finer_one_cannot_answer_is_not_offered(fine, coarse):
    bound = views(fine, coarse)
    assert [offer for offer in offers(bound, rows_of(bound)) if offer.node == "coarse"] == []


def test_aggregates_over_different_rows_have_nothing_to_do_with_each_other():
    bound = bound_of(
        {
            "s": source(100, **COLUMNS), "w": node("filter", condition="a < 3"),
            "fine": node("aggregate", group=["a", "b"]), "f": target("f"),
            "coarse": node("aggregate", group=["a"]), "k": target("k"),
        },
        "s -> w", "w.match -> fine", "fine -> f", "w.rest -> coarse", "coarse -> k",
    )  # fmt: skip
    assert offers(bound, rows_of(bound)) == []


def test_rows_are_read_where_they_stand_alone():
    def place(**settings: Any) -> tuple[str, str]:
        kind = settings.pop("operator", "parquet_target")
        bound = views({"group": ["a", "b"]}, {"group": ["a"]}, f=node(kind, path="f", **settings))
        return offers(bound, rows_of(bound))[0].source

    assert place() == ("f", "out")
    assert place(mode="append") == ("fine", "out")  # other rows stand among them
    assert place(operator="csv_target") == ("fine", "out")  # types are lost on the way


def test_sums_of_floating_point_numbers_are_offered_with_a_warning():
    bound = views(
        {"group": ["a", "b"], "aggregates": measures(s="sum(z)")}, {"group": ["a"], "aggregates": measures(s="sum(z)")}
    )
    (offer,) = offers(bound, rows_of(bound))
    assert not offer.exact
    assert "last digits" in offer.text()


def test_of_several_finer_ones_the_one_with_the_fewest_rows_answers():
    bound = views(
        {"group": ["a", "b", "c"]}, {"group": ["a"]}, "t -> mid", "mid -> m",
        mid=node("aggregate", {"rows": 20}, group=["a", "c"]), m=target("m"),
    )  # fmt: skip
    found = {offer.node: offer.finer for offer in offers(bound, rows_of(bound))}
    assert found == {"coarse": "mid", "mid": "fine"}
    again = bind(rewritten(bound.workflow, offers(bound, rows_of(bound))), catalogue())
    assert again.errors == []
    assert (again.producers("mid"), again.producers("coarse")) == ([("f", "out")], [("m", "out")])


def test_two_aggregates_of_the_same_groups_are_not_answered_from_each_other():
    bound = views({"group": ["a"]}, {"group": ["a"]})
    assert [(offer.node, offer.finer) for offer in offers(bound, rows_of(bound))] == [("coarse", "fine")]


def test_only_offers_can_be_taken():
    bound = views({"group": ["a", "b"]}, {"group": ["a"]})
    found = offers(bound, rows_of(bound))
    assert chosen(found, ["all"], bound.workflow) == found == chosen(found, ["coarse", "coarse"], bound.workflow)
    with pytest.raises(BadInput, match="no finer aggregate can answer `fine`; there are offers for coarse"):
        chosen(found, ["fine"], bound.workflow)


NUMBERS = st.none() | st.integers(-50, 50)
ROWS = st.lists(st.tuples(st.integers(0, 2) | st.none(), st.integers(0, 2), st.integers(0, 1), NUMBERS), max_size=30)
FIGURES = {
    "n": "count(*)", "k": "count(x)", "s": "sum(x)", "lo": "min(x)", "hi": "max(x)",
    "f": "sum(x) FILTER (WHERE x > 0)", "all_": "bool_and(x > 0)", "some_": "bool_or(x > 0)",
}  # fmt: skip


def query(operator: Aggregate, table: str) -> str:
    """An aggregate as SQL that DuckDB runs too."""
    figures = [f"{measure.expression} AS {measure.name}" for measure in operator.aggregates]
    text = f"SELECT {', '.join([*operator.group, *figures])} FROM {table}".replace("`", '"')
    return f"{text} GROUP BY {', '.join(operator.group)}" if operator.group else text


@given(ROWS, st.sampled_from([["a"], ["b"], ["a", "c"], []]), st.sets(st.sampled_from(sorted(FIGURES)), min_size=1))
def test_the_rewritten_aggregate_gives_the_same_rows(rows, group, names):
    wanted = {name: FIGURES[name] for name in sorted(names)}
    bound = views(
        {"group": ["a", "b", "c"], "aggregates": measures(**FIGURES)},
        {"group": group, "aggregates": measures(**wanted)},
    )
    (offer,) = offers(bound, rows_of(bound))
    again = bind(rewritten(bound.workflow, [offer]), catalogue())
    assert again.errors == []
    before, fine, after = bound.operators["coarse"], bound.operators["fine"], again.operators["coarse"]
    assert isinstance(before, Aggregate)
    assert isinstance(fine, Aggregate)
    assert isinstance(after, Aggregate)
    with duckdb.connect() as database:
        database.execute("CREATE TABLE rows (a INT, b INT, c INT, x INT)")
        if rows:
            database.executemany("INSERT INTO rows VALUES (?, ?, ?, ?)", rows)
        database.execute(f"CREATE TABLE finer AS {query(fine, 'rows')}")
        first = database.sql(query(before, "rows")).fetchall()
        second = database.sql(query(after, "finer")).fetchall()
    assert sorted(first, key=repr) == sorted(second, key=repr)


# ---------------------------------------------------------------- the command


def test_the_command_offers_a_rewrite_plans_with_it_and_saves_it(tmp_path):
    file = write(
        tmp_path,
        {
            "s": {"operator": "csv_source", "path": "s.csv", "columns": COLUMNS},
            "w": {"operator": "copy"},
            "t": {"operator": "parquet_target", "path": "t"},
            "fine": {"operator": "aggregate", "group": ["a", "b"], "aggregates": measures(n="count(*)")},
            "f": {"operator": "parquet_target", "path": "f"},
            "coarse": {"operator": "materialized_view", "group": ["a"], "aggregates": measures(n="count(*)")},
            "k": {"operator": "parquet_target", "path": "k"},
        },
        ["s -> w", "w -> t", "t -> fine", "fine -> f", "t -> coarse", "coarse -> k"],
    )
    found = answer(papilio_here("plan", file, "--json", home=tmp_path))
    (offer,) = found["rewrites"]
    assert (offer["node"], offer["reads"], offer["rows_now"], offer["rows_then"]) == (
        "coarse",
        "f.out",
        100_000,
        10_000,
    )
    assert offer["best_cost"] < found["top"][0]["cost"]
    assert "Offer: `coarse` can be answered from `f`" in papilio_here("plan", file, home=tmp_path).stderr
    out = tmp_path / "new.butterfly.yaml"
    taken = answer(papilio_here("plan", file, "--rewrite", "coarse", "--write", out, "--json", home=tmp_path))
    assert taken["rewrites"] == []
    assert taken["top"][0]["cost"] == offer["best_cost"]
    assert "f.(" not in taken["top"][0]["signature"]
    assert answer(papilio_here("plan", out, "--json", home=tmp_path))["rewrites"] == []
    assert papilio_here("check", out, home=tmp_path).stderr.count("coarse") == 0
    for options, message in (
        (["--rewrite", "fine"], "no finer aggregate can answer `fine`"),
        (["--write", out], "there is nothing to save without --rewrite"),
    ):
        done = papilio_here("plan", file, *options, home=tmp_path)
        assert done.returncode == 2
        assert message in done.stderr

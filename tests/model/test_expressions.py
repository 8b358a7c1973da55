"""Expressions: what is let through, what is refused, and what type they have."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.expression_tree import columns, is_repeatable
from engine.model.expression_words import ExpressionError
from engine.model.expressions import parse
from engine.model.inference import Scope, infer

SCOPE = Scope(
    {
        "a": "int", "big": "bigint", "b": "decimal(12,2)", "s": "string", "d": "date", "ts": "timestamp",
        "f": "double", "arr": "array<int>", "st": "struct<x:int,y:string>", "t": "boolean",
        "m": "map<string,int>", "My Col": "int",
    },
    {"left": {"k": "int"}, "right": None},
)  # fmt: skip

TYPES = {
    "a + 1": "int", "a + big": "bigint", "a * b": "decimal(23,2)", "b / a": "decimal(23,13)", "b * 2": "decimal(14,2)",
    "a / 2": "double", "a % 2": "int", "a div 2": "bigint", "-a": "int", "b + 1.5": "decimal(13,2)",
    "f * b": "double", "s || 'x'": "string", "sum(b)": "decimal(22,2)", "sum(a)": "bigint", "avg(a)": "double",
    "avg(b)": "decimal(16,6)", "count(distinct a, b)": "bigint", "count(*)": "bigint", "max(d)": "date",
    "cast(s as decimal(5,1))": "decimal(5,1)", "a::bigint": "bigint", "try_cast(s as date)": "date",
    "case when a > 1 then 'x' end": "string", "case a when 1 then 1 else 2.5 end": "decimal(11,1)",
    "if(t, 1, big)": "bigint", "coalesce(a, b, 0)": "decimal(12,2)", "nullif(a, 0)": "int",
    "a in (1, 2)": "boolean", "a not between 1 and 2 and t": "boolean", "s like 'x%' escape '!'": "boolean",
    "s is not null": "boolean", "s is not distinct from 'x'": "boolean", "not a > 1 or t": "boolean",
    "d + interval 1 day": "date", "d - 1": "date", "date '2020-01-01'": "date", "year(d)": "int",
    "extract(year from ts)": "int", "extract(second from ts)": "decimal(8,6)", "date_format(d, 'yyyy')": "string",
    "arr[0]": "int", "st.y": "string", "m['k']": "int", "element_at(arr, 1)": "int", "left.k": "int", "right.z": None,
    "exists(arr, x -> x > 1)": "boolean", "filter(arr, x -> x > a)": "array<int>", "array(1, 2)": "array<int>",
    "row_number() over (partition by a order by b desc nulls last)": "int",
    "sum(a) over (order by d rows between unbounded preceding and current row)": "bigint",
    "sum(a) filter (where t)": "bigint", "substring(s from 2 for 3)": "string", "trim(both 'x' from s)": "string",
    "position('a' in s)": "int", "round(b, 1)": "decimal(12,1)", "ceil(f)": "bigint", "current_date": "date",
    "'it''s'": "string", "1L": "bigint", "2.50": "decimal(3,2)", "1e3": "double", "x'1F'": "binary", "`My Col` + 1": "int",
    "upper(S)": "string", "null": "void", "concat(s, a)": "string", "length(s)": "int",
}  # fmt: skip

REFUSED = {
    "reflect('java.lang.System', 'exit', 1)": "the function `reflect` is not allowed",
    "java_method('a', 'b')": "the function `java_method` is not allowed",
    "`reflect`('a')": "only Spark's own functions by their plain names",
    "system.builtin.reflect('a')": "only Spark's own functions by their plain names",
    "a in (select 1)": "a query (`select`) has no place",
    "exists(select 1)": "a query (`select`) has no place",
    "(select max(x) from parquet.`/etc/passwd`)": "a query (`select`) has no place",
    "transform(a) using 'cat'": "`TRANSFORM … USING` starts a program",
    "a; drop table x": "one expression only",
    "a -- rest": "no comments",
    "a /* x */": "no comments",
    "r'abc'": "no raw strings",
    "input_file_name()": "the function `input_file_name` is not allowed",
    "lenght(s)": "did you mean `length`?",
    "a as x": "no `AS` here",
    "((a": "ends too early",
    "": "ends too early",
    "'abc": "never closed",
    "row_number()": "needs an `OVER",
    "a ? b": "has no meaning here",
    "cast(a as strng)": "is no Spark type",
}

WRONG = {
    "aa": "no column `aa`; did you mean `a`?",
    "left.kk": "no column `kk` on `left`; did you mean `k`?",
    "st.z": "no field `z`",
    "a and t": "`AND` needs true or false, not `int`",
    "s + d": "`+` between `string` and `date`",
    "b = d": "cannot compare",
    "case when t then d else 1 end": "have no common type",
    "a[0]": "`[…]` is asked of a `int`",
}


@pytest.mark.parametrize("text", TYPES)
def test_an_expression_has_the_type_that_spark_gives_it(text):
    assert infer(parse(text), SCOPE) == TYPES[text]


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_plain_expression_is_refused_with_its_reason(text):
    with pytest.raises(ExpressionError) as error:
        parse(text)
    assert REFUSED[text] in str(error.value)


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_column_or_type_is_named(text):
    with pytest.raises(ExpressionError) as error:
        infer(parse(text), SCOPE)
    assert WRONG[text] in str(error.value)


def test_an_unknown_schema_is_silence():
    assert infer(parse("whatever + 1"), Scope(None)) is None


def test_columns_are_found_where_they_stand_and_lambda_names_are_not_columns():
    text = "exists(arr, x -> x > a) and `My Col` = st.y"
    assert [(column.names, text[column.position : column.end]) for column in columns(parse(text))] == [
        (("arr",), "arr"),
        (("a",), "a"),
        (("My Col",), "`My Col`"),
        (("st", "y"), "st.y"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "a + rand()", "now()", "current_timestamp", "localtimestamp()", "uuid()", "monotonically_increasing_id()",
        "unix_timestamp()", "a - to_unix_timestamp()", "current_date", "current_date()", "curdate()",
        "year(current_date())", "DATE 'today'", "timestamp 'Now'", "cast('yesterday UTC' AS timestamp)",
        "to_date(' tomorrow ')", "d = 'today'",
    ],
)  # fmt: skip
def test_values_that_change_from_time_to_time_are_known(text):
    assert not is_repeatable(parse(text))


@pytest.mark.parametrize(
    "text",
    [
        "a + 1",
        "unix_timestamp(d)",
        "to_unix_timestamp(s, 'yyyy')",
        "current_date_of",
        "'nowhere'",
        "'todays news are old'",
    ],
)
def test_values_that_only_sound_like_it_stay_the_same(text):
    assert is_repeatable(parse(text))


def test_deep_nesting_is_refused_and_does_not_crash():
    with pytest.raises(ExpressionError, match="levels deep"):
        parse("(" * 5000 + "a" + ")" * 5000)


@given(st.text(max_size=60))
def test_any_text_is_parsed_or_refused_but_never_breaks_the_parser(text):
    try:
        parse(text)
    except ExpressionError as error:
        assert 0 <= error.position <= len(text)


_WORDS = st.sampled_from(
    ["a", "(", ")", ",", "+", "not", "case", "when", "then", "end", "'x'", "1", "in", "is", "null", "cast", "as", "int",
     "interval", "day", "between", "and", "sum", "over", "x", "->", ".", "[", "]", "select", "transform", "using"]
)  # fmt: skip


@given(st.lists(_WORDS, max_size=12).map(" ".join))
def test_any_row_of_words_is_parsed_or_refused(text):
    try:
        parse(text)
    except ExpressionError:
        return
    assert "select" not in text
    assert "using" not in text

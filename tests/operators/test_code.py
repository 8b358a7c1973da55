"""Operators whose work a person writes out, on real Spark."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import duckdb
import pytest
from pydantic import ValidationError

from engine.model.meanings import Meaning
from engine.model.operator import Inputs
from engine.operators.code import read_query
from engine.spark.script import ScriptTools, indented_code
from tests.operators.harness import by_key, findings, make, run

# ---------------------------------------------------------------- SQL

ORDERS = [(1, 10, 5.0, [1, 2]), (2, 10, None, []), (3, 20, 7.5, [3]), (4, None, 1.0, None)]
CUSTOMERS = [(10, "Ännä {x}"), (20, "o'Neil"), (30, None)]


def test_sql_gives_the_rows_of_its_query(spark):
    query = """
        WITH totals AS (
            SELECT cust, sum(amount) AS total, count(*) AS n FROM Orders GROUP BY cust
        )
        SELECT c.id, `customers`.`the name`, totals.total, n, CAST(n AS INT) AS `n n`,
               CASE WHEN c.`the name` LIKE '%{x}%' THEN '{braces} and \\'quotes\\' "both"' ELSE 'none' END AS note
        FROM customers LEFT JOIN totals ON totals.cust = customers.id JOIN customers c ON c.id = customers.id
        WHERE EXISTS (SELECT 1 FROM orders o WHERE o.cust = customers.id)
    """
    frames = {
        "orders": spark.createDataFrame(ORDERS, "id int, cust int, amount double, list array<int>"),
        "customers": spark.createDataFrame(CUSTOMERS, "id int, `the name` string"),
    }
    operator = make("sql", tables=["orders", "customers"], query=query)
    result = run(spark, operator, frames)
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE orders (id int, cust int, amount double, list int[])")
        connection.executemany("INSERT INTO orders VALUES (?, ?, ?, ?)", ORDERS)
        connection.execute('CREATE TABLE customers (id int, "the name" text)')
        connection.executemany("INSERT INTO customers VALUES (?, ?)", CUSTOMERS)
        plain = query.replace("`", '"').replace("\\'", "''")
        expected = connection.execute(plain).fetchall()
    assert by_key(result["out"]) == by_key(expected)
    schema = operator.output_schemas(Inputs({port: [dict(frame.dtypes)] for port, frame in frames.items()}))["out"]
    assert schema == {"id": "int", "the name": "string", "total": "?", "n": "bigint", "n n": "int", "note": "?"}


def test_sql_gives_the_columns_that_are_declared(spark):
    rows = spark.createDataFrame(ORDERS, "id int, cust int, amount double, list array<int>")
    operator = make(
        "sql",
        query="SELECT e AS item, id FROM input LATERAL VIEW explode(list) v AS e",
        columns={"ID": "bigint", "item": "STRING"},
    )
    assert by_key(run(spark, operator, {"input": rows})["out"]) == [(1, "1"), (1, "2"), (3, "3")]


def test_queries_that_run_at_the_same_time_do_not_mix_their_inputs(spark):
    from engine.spark.tools import build

    operator = make("sql", query="SELECT max(n) AS n FROM input")

    def one(number: int) -> int:
        frame = spark.createDataFrame([(number,)], "n int")
        return build(operator, {"input": [frame]}, spark, None).collect()[0][0]  # type: ignore[union-attr, arg-type]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(one, range(8))) == list(range(8))
    assert [table.name for table in spark.catalog.listTables()] == []


REFUSED = {
    "SELECT reflect('java.lang.System', 'exit', 0) AS x FROM input": "the function `reflect` is not allowed in a query",
    "SELECT java_method('a', 'b') AS x FROM input": "the function `java_method` is not allowed",
    "SELECT `reflect`('a') AS x FROM input": "only Spark's own functions by their plain names",
    "SELECT system.builtin.reflect('a') AS x FROM input": "only Spark's own functions by their plain names",
    "SELECT system . builtin . `reflect` ('a') AS x FROM input": "only Spark's own functions by their plain names",
    "SELECT try_reflect('a', 'b') AS x FROM input": "the function `try_reflect` is not allowed",
    "SELECT input_file_name() AS x FROM input": "the function `input_file_name` is not allowed",
    "SELECT * FROM input WHERE n IN (SELECT n FROM parquet.`/etc/passwd`)": "`parquet./etc/passwd` is no input",
    "SELECT * FROM csv.`/etc/passwd`": "`csv./etc/passwd` is no input",
    "SELECT * FROM other": "`other` is no input; a query reads nothing but its inputs",
    "SELECT * FROM inputs": "`inputs` is no input; did you mean `input`?",
    "SELECT * FROM input, range(10)": "the function `range` is not allowed",
    "SELECT * FROM explode(array(1))": "a function cannot stand in `FROM`",
    "SELECT * FROM IDENTIFIER('input')": "the function `IDENTIFIER` is not allowed",
    "SELECT * FROM read_files('/etc')": "the function `read_files` is not allowed",
    "SELECT TRANSFORM(n) USING 'cat' AS x FROM input": "a program cannot be started",
    "SELECT TRANSFORM(n) USING\n 'cat' FROM input": "a program cannot be started",
    "SELECT /*+ BROADCAST(input) */ n FROM input": "no comments inside the query",
    "SELECT n FROM input -- and so on": "no comments inside the query",
    "SELECT n FROM input; DROP TABLE x": "one query only",
    "INSERT INTO x SELECT * FROM input": "a query starts with `SELECT` or `WITH`",
    "WITH x AS (SELECT 1 AS a) INSERT INTO y SELECT * FROM x": "",
    "SELECT n INTO x FROM input": "a query cannot write",
    "SET spark.sql.ansi.enabled=false": "a query starts with `SELECT` or `WITH`",
    "CREATE TABLE x AS SELECT 1": "a query starts with `SELECT` or `WITH`",
    "EXECUTE IMMEDIATE 'SELECT 1'": "a query starts with `SELECT` or `WITH`",
    "SELECT :x AS y FROM input": "`:` has no meaning here",
    "SELECT ? AS y FROM input": "`?` has no meaning here",
    "SELECT '${env:HOME}' AS home FROM input": "`${…}` has no meaning inside a query",
    "SELECT {input} FROM input": "`{` has no meaning here",
    "SELECT current_user AS u FROM input": "`current_user` is not allowed",
    "SELECT * FROM input TABLESAMPLE (10 PERCENT)": "the function `TABLESAMPLE` is not allowed",
    "SELECT * FROM input VERSION AS OF 3": "an input has no versions",
    "SELECT * FROM input |> WHERE n > 1": "no pipes",
    "WITH input AS (SELECT 1 AS a) SELECT * FROM input": "`input` is an input; give the `WITH` another name",
    "SELECT 1 AS a": "it reads none of its inputs",
    "SELECT n FROM input WHERE": "line 1, column 25: something is missing",
    "SELECT": "it selects no columns",
    "SELECT sum(n) FROM input": "column 1 of the query has no name; give it one with `AS`",
    "SELECT n, n AS N FROM input": "the query gives two columns `n`",
}


@pytest.mark.parametrize("query", REFUSED)
def test_sql_refuses_whatever_is_not_one_select_over_its_inputs(query):
    messages = findings(make("sql", query=query), input={"n": "int"})
    assert len(messages) == 1, messages
    assert REFUSED[query] in messages[0]


def test_sql_knows_its_schema_where_that_is_certain():
    inputs = Inputs({"a": [{"id": "int", "d": "decimal(12,2)"}], "b": [{"id": "int", "s": "string"}]})

    def schema(query: str) -> object:
        return make("sql", tables=["a", "b"], query=query).output_schemas(inputs)["out"]

    assert schema("SELECT * FROM a JOIN b ON a.id = b.id") == {"id": "int", "d": "decimal(12,2)", "s": "string"}
    assert schema("SELECT a.*, s AS t FROM a JOIN b USING (id)") == {"id": "int", "d": "decimal(12,2)", "t": "string"}
    assert schema("SELECT * FROM a NATURAL JOIN b") is None
    assert schema("SELECT * FROM a LEFT SEMI JOIN b ON a.id = b.id") == {"id": "int", "d": "decimal(12,2)"}
    assert schema("SELECT x.k, id FROM (SELECT id AS k FROM a) x, b") == {"k": "int", "id": "int"}
    assert schema("SELECT id FROM a UNION SELECT d FROM a") == {"id": "?"}
    assert schema("SELECT * EXCEPT (d) FROM a") is None
    assert schema("SELECT d * 2 AS x FROM a") == {"x": "?"}
    assert schema("SELECT id FROM a, b") == {"id": "?"}
    assert schema("SELECT nonsense(") is None


def test_sql_knows_whether_it_gives_the_same_rows_again():
    assert make("sql", query="SELECT n FROM input").is_repeatable()
    assert make("sql", query="SELECT unix_timestamp(d) AS n FROM input").is_repeatable()
    for text in ("rand()", "unix_timestamp()", "current_date", "curdate()", "DATE 'today'", "cast('now' AS timestamp)"):
        assert not make("sql", query=f"SELECT {text} AS n FROM input").is_repeatable(), text
    assert not make("sql", query="SELECT current_timestamp AS n FROM input").is_repeatable()


def test_inputs_have_names_that_a_query_can_use():
    for names in (["in"], ["SELECT"], ["a", "A"], ["a b"], ["def"], ["args"], []):
        with pytest.raises(ValidationError):
            make("sql", tables=names, query="SELECT 1 AS a FROM a")
    operator = make("sql", tables=["a", "b"], query="SELECT x FROM a", columns={"x": "intt", "y": "int"})
    assert findings(operator, a={"x": "int"}, b={"x": "int"}) == [
        "`intt` is no Spark type",
        "the query does not read `b`",
        "the query gives no column `y`",
    ]


def test_the_template_replaces_inputs_and_nothing_else():
    query = read_query("SELECT input.input AS input, 'input {y}' AS t FROM Input WHERE input.x = 1", ("input",))
    assert query.template == "SELECT input.input AS input, 'input {{y}}' AS t FROM {input} AS Input WHERE input.x = 1"


def test_sqlglot_is_not_imported_before_a_query_is_read():
    code = "import sys; from engine.operators import catalogue; catalogue(); sys.exit('sqlglot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# ---------------------------------------------------------------- Python

FRAMES = '''
import re

PATTERN = re.compile("[aeiou]")
TEXT = """two
  lines"""


def transform(words, numbers):
    """Words with their numbers."""
    from pyspark.sql import functions as F
    joined = words.join(numbers, "id", "left")
    return joined.select("id", F.upper("word").alias("the word"), "n", F.lit(TEXT).alias("text"))
'''

BATCHES = """
import re

VOWELS = re.compile("[aeiou]")


def without_vowels(text):
    return None if text is None else VOWELS.sub("", text)


def transform(batch):
    batch["short"] = batch["word"].map(without_vowels)
    return batch[batch["id"] != 2][["short", "id"]]
"""
WORDS = [(1, "butterfly"), (2, "moth"), (3, None)]


def test_python_over_frames_gives_the_declared_columns(spark):
    frames = {
        "words": spark.createDataFrame(WORDS, "id int, word string"),
        "numbers": spark.createDataFrame([(1, 5), (3, 7)], "id int, n int"),
    }
    operator = make(
        "python",
        tables=["words", "numbers"],
        code=FRAMES,
        columns={"the word": "string", "n": "bigint", "text": "string"},
    )
    assert by_key(run(spark, operator, frames)["out"]) == by_key(
        [("BUTTERFLY", 5, "two\n  lines"), ("MOTH", None, "two\n  lines"), (None, 7, "two\n  lines")]
    )
    assert operator.needs_trust
    assert not operator.is_repeatable()


def test_python_over_batches_runs_on_the_workers(spark):
    words = spark.createDataFrame(WORDS, "id int, word string")
    operator = make("python", style="batches", code=BATCHES, columns={"short": "string", "id": "int"})
    assert by_key(run(spark, operator, {"input": words})["out"]) == by_key([("bttrfly", 1), (None, 3)])


def test_python_is_read_and_never_run_while_checking():
    def wrong(code: str, **settings: object) -> list[str]:
        return findings(make("python", code=code, columns={"a": "int"}, **settings))

    assert wrong("raise SystemExit\ndef transform(x):\n    return x") == []
    assert wrong("def transform(x:\n  return x") == ["line 1: '(' was never closed"]
    assert wrong("def transfrom(x): return x") == ["it defines no function `transform`"]
    assert wrong("def transform(): return 1") == ["line 1: `transform` must take 1 argument"]
    assert wrong("def transform(a): return a", tables=["x", "y"]) == ["line 1: `transform` must take 2 arguments"]
    assert wrong("def transform(a, b=1, *c): return a", tables=["x", "y", "z"]) == []
    assert wrong("def transform(a): return a", tables=["x", "y"], style="batches") == ["`batches` takes one input"]
    assert wrong("from os import *\ndef transform(a): return a") == [
        "line 1: an import from `__future__` or of `*` has no place here"
    ]
    assert wrong("x = '\0'")[0].startswith(("it cannot be read", "line"))
    operator = make("python", code="x", columns={"a": "int", "A": "decimal"})
    assert "two columns are called `a`" in findings(operator)
    assert operator.output_schemas(Inputs({}))["out"] == {"a": "int", "A": "decimal(10,0)"}
    assert [means.meaning for _, _, means in operator.texts()] == [Meaning.CODE, Meaning.TYPE, Meaning.TYPE]


def test_a_script_has_the_code_as_a_function_of_its_own():
    tools = ScriptTools("node", make("copy"), {}, "clean")
    assert str(tools.function("def transform(a):\n    return a\n", "transform")) == "transform_clean"
    assert tools.definitions == {
        "transform_clean": "def _transform_clean():\n    def transform(a):\n        return a\n    return transform\n\n\n"
        "transform_clean = _transform_clean()"
    }
    assert indented_code('x = """a\nb"""\ny = 1') == '    x = """a\nb"""\n    y = 1'

"""Sources and targets in PostgreSQL (a real server) and SQLite. Expected rows are asked of the databases' own clients."""

from __future__ import annotations

import json
import math
import os
import socket
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pydantic import ValidationError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSourceReader

from engine.model.operator import BuildInputs, Operator, Place
from engine.operators._database import DatabaseProblem, staging_name
from engine.operators._postgresql import Server, Session
from engine.spark.adbc import (
    FORMAT,
    OPEN,
    PostgresqlReader,
    Range,
    SqliteReader,
    StagingWriter,
    databases,
    ranges,
    reason,
    register,
)
from engine.spark.database_delivery import DatabaseDelivery
from engine.spark.database_targets import deliver, delivery, from_record
from engine.spark.script import Code, ScriptTools, frame
from engine.spark.tools import build
from tests.fixtures_postgres import PostgresqlDatabase
from tests.operators.harness import by_key, findings, make, rows, run

PASSWORD = "PAPILIO_TEST_PASSWORD"
INJECTION = 'o"; DROP TABLE precious; --'
ODD_NAMES = ["Upper Case", 'quo"te', "back`tick", "do.t", "naïve ✓", "sel'ect", INJECTION]


class Postgresql:
    """A fresh database, asked through psycopg."""

    def __init__(self, database: PostgresqlDatabase) -> None:
        import psycopg

        self.at = database
        self.connection = psycopg.connect(database.dsn, autocommit=True)
        self.connection.execute("SET TimeZone = 'UTC'")

    def __call__(self, sql: str) -> list[tuple[Any, ...]]:
        cursor = self.connection.execute(sql.encode())
        return cursor.fetchall() if cursor.description else []

    def settings(self, **more: Any) -> dict[str, Any]:
        at = self.at
        who = {"host": at.host, "port": at.port, "database": at.database, "user": at.user}
        return {**who, "password": f"${{env:{PASSWORD}}}", **more}

    def is_left_alone(self) -> bool:
        """Whether nobody of ours stays connected; the server notices a moment after a connection is closed."""
        ours = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'papilio%'"
        deadline = time.monotonic() + 10
        while self(ours) != [(0,)]:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True

    def tables(self) -> list[str]:
        return [
            row[0]
            for row in self(
                "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY 1"
            )
        ]


@pytest.fixture
def pg(postgresql: PostgresqlDatabase, monkeypatch: pytest.MonkeyPatch) -> Iterator[Postgresql]:
    monkeypatch.setenv(PASSWORD, postgresql.password)
    database = Postgresql(postgresql)
    yield database
    database.connection.close()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(lambda text: tmp_path / text, lambda text: os.environ[text[6:-1]])


def problem_of(action: Callable[[], object]) -> str:
    with pytest.raises(DatabaseProblem) as caught:
        action()
    return str(caught.value)


def refusal(action: Callable[[], object], without: str | None = None) -> str:
    """The words in which rows are refused, which Spark may have wrapped. They never hold the password."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the reader's own or Spark's
        action()
    assert without is None or without not in str(caught.value)
    said = reason(caught.value)
    assert said is not None, caught.value
    return said


def read_here(reader: DataSourceReader) -> list[Any]:
    """What Spark's workers do with a reader, in this process: a worker that fails takes a second to replace."""
    return [batch for partition in reader.partitions() for batch in reader.read(partition)]


def delivered(operator: Operator, data: DataFrame, place: Place, run_id: str = "run") -> DatabaseDelivery:
    made = delivery(operator, "node", place, run_id)
    made.write(data)
    return made


def load(operator: Operator, data: DataFrame, place: Place, run_id: str = "run") -> None:
    delivered(operator, data, place, run_id).commit()


# ---------------------------------------------------------------- PostgreSQL, reading


def test_every_type_of_a_postgresql_table_comes_in_exactly(spark: SparkSession, pg: Postgresql, place: Place) -> None:
    pg("CREATE TYPE mood AS ENUM ('glad', 'sad'); CREATE DOMAIN price AS numeric(8,2)")
    pg(
        "CREATE TABLE t (s smallint, i integer, b bigint, n numeric(38,18), p price, free numeric, f real, d double precision,"
        " flag boolean, t text, v varchar(9), c char(4), day date, ts timestamp, tz timestamptz, bin bytea, u uuid,"
        " j jsonb, m mood, ints int[], nums numeric(5,2)[], span interval)"
    )
    pg(
        "INSERT INTO t VALUES (-32768, 2147483647, -9223372036854775808, -99999999999999999999.999999999999999999, 1.50,"
        " 0.000000000000000001, 'NaN', '-Infinity', true, 'ä😀''', '', 'ab', '0001-01-01', '9999-12-31 23:59:59.999999',"
        " '2024-03-01 12:00+02', '\\x0001ff', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{\"a\": [1]}', 'sad', '{1,NULL}',"
        " '{1.25}', '1 day 02:00')"
    )
    pg("INSERT INTO t DEFAULT VALUES")
    source = make("postgresql_source", **pg.settings(table="t"))
    with databases(spark, [source], place):
        data = build(source, {}, spark, place)
        found = run(spark, source)["out"]
    assert dict(data.dtypes) == {
        "s": "smallint", "i": "int", "b": "bigint", "n": "decimal(38,18)", "p": "decimal(8,2)", "free": "decimal(38,18)",
        "f": "float", "d": "double", "flag": "boolean", "t": "string", "v": "string", "c": "string", "day": "date",
        "ts": "timestamp_ntz", "tz": "timestamp", "bin": "binary", "u": "string", "j": "string", "m": "string",
        "ints": "array<int>", "nums": "array<decimal(5,2)>", "span": "string",
    }  # fmt: skip
    full = next(row for row in found if row[0] is not None)
    assert math.isnan(full[6])
    assert [*full[:6], *full[7:14], *full[15:]] == [
        -32768, 2147483647, -9223372036854775808, Decimal("-99999999999999999999.999999999999999999"), Decimal("1.50"),
        Decimal("1E-18"), -math.inf, True, "ä😀'", "", "ab  ", date(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999),  # noqa: DTZ001
        bytearray(b"\0\x01\xff"), "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", '{"a": [1]}', "sad", [1, None],
        [Decimal("1.25")], "1 day 02:00:00",
    ]  # fmt: skip
    assert full[14].astimezone(UTC) == datetime(2024, 3, 1, 10, tzinfo=UTC)
    assert (None,) * 22 in found


def test_parallel_readers_see_each_row_once_and_all_the_same_moment(
    spark: SparkSession, pg: Postgresql, place: Place
) -> None:
    pg("CREATE TABLE t AS SELECT i AS id, DATE '2024-01-01' + i AS day FROM generate_series(-40, 59) AS i")
    pg("INSERT INTO t VALUES (NULL, NULL)")
    expected = by_key(pg("SELECT id FROM t"))
    sources = [
        make(
            "postgresql_source",
            **pg.settings(table="t", columns={"id": "bigint"}, partition_column=column, partitions=4),
        )
        for column in ("id", "DAY")
    ]
    with databases(spark, sources, place):
        pg("INSERT INTO t SELECT i FROM generate_series(1, 1000) AS i; DELETE FROM t WHERE id < 0")
        for source in sources:
            data = build(source, {}, spark, place)
            assert data.rdd.getNumPartitions() == 4
            assert by_key(rows(data)) == expected
            shown = data._jdf.queryExecution().toString()
            assert "papilio_adbc" in shown
            assert pg.at.password not in shown
    assert pg.is_left_alone()
    register(spark, [PASSWORD])  # no snapshot is held: one reader alone
    data = build(sources[0], {}, spark, place)
    assert data.rdd.getNumPartitions() == 1
    assert by_key(rows(data)) == by_key(pg("SELECT id FROM t"))


def test_ranges_leave_no_value_out() -> None:
    for low, high, count in [(0, 9, 3), (-5, -5, 4), (1, 3, 10), (date(2024, 2, 27), date(2024, 3, 2), 2)]:
        found = ranges("c", low, high, count)
        assert len(found) == min(count, (high - low).days + 1 if isinstance(low, date) else high - low + 1)
        assert [one.upper for one in found[:-1]] == [one.lower for one in found[1:]]
        assert found[0].lower is None
        assert found[-1].upper is None
    assert ranges("c", 0, 9, 2)[0].condition() == ' WHERE "c" < 5 OR "c" IS NULL'
    assert Range().condition() == ""


def test_what_cannot_be_read_exactly_is_refused_in_words(spark: SparkSession, pg: Postgresql, place: Place) -> None:
    pg("CREATE TABLE t (n numeric, ts timestamp, grid int[], w text)")
    pg("INSERT INTO t VALUES ('NaN', 'infinity', '{{1,2},{3,4}}', 'five')")
    source = make("postgresql_source", **pg.settings(table="t", columns={"n": "decimal(38,18)"}))
    with databases(spark, [source], place):
        assert "NaN" in refusal(build(source, {}, spark, place).collect, without=pg.at.password)
    for column, kind, words in [
        ("n", "decimal(38,18)", "NaN"),
        ("ts", "timestamp_ntz", "infinity"),
        ("grid", "array<int>", "array of arrays"),
        ("w", "int", "five"),
        ("grid", "int", "cannot be read as `int`"),
    ]:
        schema = spark.createDataFrame([], f"{column} {kind}").schema
        reader = PostgresqlReader(source.server(), pg.at.password, "public", "t", schema, None, 1, None)
        assert words in refusal(lambda reader=reader: read_here(reader), without=pg.at.password)


def test_a_source_that_cannot_be_reached_is_told_in_words_within_seconds(
    pg: Postgresql, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    pg("CREATE TABLE orders (id int, amount int)")

    def missing(**more: Any) -> str | None:
        return make("postgresql_source", **(pg.settings(table="orders") | more)).missing(place)

    assert missing() is None
    assert "there is no table `oders`; did you mean `orders`?" in missing(table="oders")
    assert "there is no schema `pubic`; did you mean `public`?" in missing(schema="pubic")
    assert "no column `amout`; did you mean `amount`?" in missing(columns={"amout": "int"})
    assert f"has no database `{pg.at.database}x`" in missing(database=f"{pg.at.database}x")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound, and nobody listens
        assert "does not answer: Connection refused" in missing(port=unused.getsockname()[1])
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        began = time.monotonic()
        assert "does not answer: timeout" in missing(port=silent.getsockname()[1])
        assert time.monotonic() - began < 15
    monkeypatch.setenv(PASSWORD, "wrong 'pass\\word")
    said = missing()
    assert said is not None
    assert f"refused the user `papilio`: the password in `{PASSWORD}` is wrong" in said
    assert "pass\\word" not in said


# ---------------------------------------------------------------- PostgreSQL, loading


def people(spark: SparkSession, *data: tuple[Any, ...]) -> DataFrame:
    return spark.createDataFrame(list(data), "id int, part string, qty decimal(12,2)")


@pytest.mark.slow
def test_every_type_goes_to_postgresql_and_comes_back(spark: SparkSession, pg: Postgresql, place: Place) -> None:
    schema = (
        "y tinyint, s smallint, i int, b bigint, f float, d double, n decimal(38,18), flag boolean, t string, bin binary,"
        " day date, ts timestamp_ntz, tz timestamp, ints array<int>, nums array<decimal(5,2)>, nothing void"
    )
    full = (
        -128, 1, 2, 2**63 - 1, 1.5, math.inf, Decimal("-12345678901234567890.123456789012345678"), False, "ä😀\\'\"",
        bytearray(b"\0"), date(9999, 12, 31), datetime(1, 1, 1, 0, 0, 0, 1), datetime(2024, 2, 29, 23, 59, 59, 999999),  # noqa: DTZ001
        [None, 3], [Decimal("0.01")], None,
    )  # fmt: skip
    data = spark.createDataFrame([full, (None,) * 16], schema)
    target = make("postgresql_target", **pg.settings(table="t"))
    made = delivered(target, data, place)
    assert made.rows() == 2
    assert by_key(rows(made.read(spark))) == by_key(rows(data))
    made.commit()
    types = dict(
        pg(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 0 AND NOT attisdropped"
        )
    )
    assert types["n"] == "numeric(38,18)"
    assert types["tz"] == "timestamp with time zone"
    assert types["nums"] == "numeric(5,2)[]"
    assert pg("SELECT n::text, ts::text, t FROM t WHERE i = 2") == [
        (str(full[6]), "0001-01-01 00:00:00.000001", full[8])
    ]
    columns = {name: kind for name, kind in data.dtypes if kind != "void"}
    source = make("postgresql_source", **pg.settings(table="t", columns=columns))
    with databases(spark, [source], place):
        assert by_key(run(spark, source)["out"]) == by_key(rows(data.drop("nothing")))


@pytest.mark.slow
def test_the_modes_on_a_new_table_and_on_one_that_keeps_its_definition(
    spark: SparkSession, pg: Postgresql, place: Place
) -> None:
    first = people(spark, (1, "a", Decimal(10)), (1, "b", Decimal(20)), (None, "c", Decimal(30)))
    second = people(spark, (1, "b", Decimal(99)), (None, "c", None), (2, "a", Decimal(5)))
    append = make("postgresql_target", **pg.settings(table="t", mode="append"))
    upsert = make("postgresql_target", **pg.settings(table="t", mode="upsert", key=["ID", "part"]))
    overwrite = make("postgresql_target", **pg.settings(table="t"))

    load(upsert, first, place)  # into a table that is not there yet
    assert pg.tables() == ["t"]
    pg("CREATE UNIQUE INDEX by_key ON t (id, part); ALTER TABLE t ADD COLUMN seen timestamptz DEFAULT now()")
    pg(
        "ALTER TABLE t ADD COLUMN twice numeric GENERATED ALWAYS AS (qty * 2) STORED, ADD COLUMN no int GENERATED ALWAYS AS IDENTITY"
    )
    made = delivered(upsert, second, place)
    assert pg("SELECT count(*) FROM t") == [(3,)]  # as it was
    after = [(1, "a", Decimal("10.00")), (1, "b", Decimal("99.00")), (2, "a", Decimal("5.00")), (None, "c", None)]
    assert by_key(rows(made.read(spark))) == by_key(after)
    made.check()
    made.commit()
    made.commit()
    assert by_key(pg("SELECT id, part, qty FROM t")) == by_key(after)
    assert pg("SELECT count(*) FROM t WHERE seen IS NULL OR no IS NULL") == [(0,)]

    extra = people(spark, (7, "z", Decimal("0.01")))
    made = delivered(append, extra, place)
    assert by_key(rows(made.read(spark))) == by_key([*after, (7, "z", Decimal("0.01"))])
    made.commit()
    assert pg("SELECT count(*), max(twice) FROM t") == [(5, Decimal("198.00"))]

    load(overwrite, people(spark), place)  # nothing is delivered, and nothing is left
    assert pg("SELECT count(*) FROM t") == [(0,)]
    assert pg("SELECT count(*) FROM pg_indexes WHERE indexname = 'by_key'") == [(1,)]
    assert pg.tables() == ["t"]


def test_rows_that_others_refer_to_survive_an_upsert_and_keep_an_overwrite_away(
    spark: SparkSession, pg: Postgresql, place: Place
) -> None:
    pg("CREATE TABLE part (id uuid PRIMARY KEY, name text NOT NULL)")
    pg("CREATE TABLE line (part uuid REFERENCES part ON DELETE CASCADE, no int)")
    one, two = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12"
    pg(f"INSERT INTO part VALUES ('{one}', 'old'); INSERT INTO line VALUES ('{one}', 1)")
    data = spark.createDataFrame([(one, "new"), (two, "two")], "id string, name string")
    load(make("postgresql_target", **pg.settings(table="part", mode="upsert", key=["id"])), data, place)
    assert pg("SELECT name FROM part ORDER BY name") == [("new",), ("two",)]
    assert pg("SELECT no FROM line") == [(1,)]
    pg("ALTER TABLE line DROP CONSTRAINT line_part_fkey, ADD FOREIGN KEY (part) REFERENCES part")
    made = delivered(make("postgresql_target", **pg.settings(table="part")), data.where("name = 'two'"), place)
    assert "foreign key" in problem_of(made.commit)
    assert pg("SELECT count(*) FROM part") == [(2,)]
    made.discard()
    assert pg.tables() == ["line", "part"]


def test_a_run_killed_between_staging_and_commit_is_finished_or_undone_by_another(
    spark: SparkSession, pg: Postgresql, place: Place
) -> None:
    pg("CREATE TABLE t (id int, part varchar(5), qty numeric); INSERT INTO t VALUES (1, 'old', 1)")
    data = people(spark, (2, "new", Decimal(2)))
    target = make("postgresql_target", **pg.settings(table="t", mode="append"))
    record = json.dumps(delivered(target, data, place).record())
    assert pg.at.password not in record
    again = from_record(json.loads(record), {PASSWORD: pg.at.password})
    assert again.rows() == 1
    again.commit()
    from_record(json.loads(record), {PASSWORD: pg.at.password}).commit()
    assert pg("SELECT id, part FROM t ORDER BY id") == [(1, "old"), (2, "new")]
    assert "is not set" in problem_of(lambda: from_record(json.loads(record), {}))

    made = delivery(target, "node", place, "killed")
    made._columns = dict(data.dtypes)
    made._prepare()  # killed while tasks wrote
    assert "not staged to the end" in problem_of(made.commit)
    made.discard()
    made.discard()
    assert pg.tables() == ["t"]
    assert pg("SELECT count(*) FROM t") == [(2,)]


def test_an_attempt_that_spark_does_not_count_leaves_no_rows(pg: Postgresql) -> None:
    pg('CREATE TABLE "_stage_open" (id bigint, _papilio_attempt bigint)')
    server = Server(pg.at.host, pg.at.port, pg.at.database, pg.at.user, PASSWORD)
    writer = StagingWriter(server, pg.at.password, "public", "_stage")
    batch = pa.RecordBatch.from_pydict({"id": pa.array([1, 2], pa.int64())})

    def failing() -> Iterator[Any]:
        yield batch
        raise RuntimeError("the task dies")

    writer.write(iter([batch]))  # committed, but its success was never told
    with pytest.raises(Exception, match="the task dies"):
        writer.write(failing())
    counted = [writer.write(iter([batch, batch])), writer.write(iter([]))]
    writer.commit(counted)
    assert pg("SELECT id FROM _stage ORDER BY id") == [(1,), (1,), (2,), (2,)]
    assert "does not exist" in problem_of(lambda: writer.write(iter([batch])))  # a straggler


def test_rows_that_do_not_fit_the_table_are_refused_before_anything_is_moved(
    spark: SparkSession, pg: Postgresql, place: Place
) -> None:
    pg("CREATE TABLE t (id int NOT NULL, part varchar(5), qty numeric(12,1)); CREATE VIEW seen AS SELECT * FROM t")

    def refused(data: DataFrame, **more: Any) -> str:
        operator = make("postgresql_target", **(pg.settings(table="t") | more))
        made = delivery(operator, "node", place, "run")

        def all_of_it() -> None:
            made.write(data)
            made.commit()

        said = problem_of(all_of_it)
        made.discard()
        assert pg.tables() == ["t"]
        assert pg.at.password not in said
        return said

    said = refused(spark.createDataFrame([], "id string, prt string, qty decimal(12,2)"))
    assert "its column `id` is `integer`, and `string` is delivered" in said
    assert "it has no column `prt`; did you mean `part`" in said
    assert "its column `part` is not delivered" in said
    assert "its column `qty` is `numeric(12,1)`, and `decimal(12,2)` is delivered" in said
    narrow = "id int, part string, qty decimal(12,1)"
    said = refused(spark.createDataFrame([(None, "a", None), (1, "b", None)], narrow))
    assert "`id` takes no NULL, and 1 of the rows" in said
    assert "too long" in refused(spark.createDataFrame([(1, "longer", None)], narrow))
    twice = spark.createDataFrame([(1, None, None), (1, None, Decimal(1)), (2, None, None)], narrow)
    said = refused(twice, mode="upsert", key=["id", "part"])
    assert "2 of the rows delivered have the key id = 1, part = None" in said
    assert "it is a view" in refused(twice, table="seen")
    said = refused(spark.createDataFrame([], "id struct<a:int>"), table="new")
    assert "`id` is a `struct<a:int>`, which a column cannot hold" in said
    assert "invalid byte sequence" in refused(spark.createDataFrame([(1, "\0", None)], narrow))
    pg("INSERT INTO t VALUES (1, 'x'), (1, 'x')")
    said = refused(spark.createDataFrame([(1, "x", None)], narrow), mode="upsert", key=["id"])
    assert "it has 2 rows with the key id = 1" in said


def test_names_are_names_and_never_sql(spark: SparkSession, pg: Postgresql, place: Place) -> None:
    pg(f'CREATE TABLE precious (a int); CREATE SCHEMA "{INJECTION.replace(chr(34), chr(34) * 2)}"')
    data = spark.createDataFrame(
        [tuple(range(len(ODD_NAMES)))], ", ".join(f"`{n.replace('`', '``')}` int" for n in ODD_NAMES)
    )
    for kind, settings in [
        ("postgresql", pg.settings(table=INJECTION, schema=INJECTION)),
        ("sqlite", {"path": "odd %?# name.db", "table": INJECTION}),
    ]:
        target = make(f"{kind}_target", **settings, mode="upsert", key=[INJECTION])
        load(target, data, place, "first")
        load(target, data, place, "second")
        more = {"partition_column": INJECTION, "partitions": 2} if kind == "postgresql" else {}
        source = make(f"{kind}_source", **settings, columns=dict.fromkeys(reversed(ODD_NAMES), "int"), **more)
        with databases(spark, [source], place):
            found = run(spark, source, folder=place.path("."))["out"]
        assert found == [tuple(reversed(range(len(ODD_NAMES))))]
    assert pg.tables() == ["precious"]


def test_a_password_with_every_awkward_character_works(pg: Postgresql) -> None:
    password = 'it\'s a \\ "word" =%&? ✓'
    pg('CREATE ROLE "odd role" LOGIN PASSWORD \'' + password.replace("'", "''") + "'")
    with Session(Server(pg.at.host, pg.at.port, pg.at.database, "odd role", "X"), password) as session:
        assert session.rows("SELECT current_user::text") == [("odd role",)]
        with pytest.raises(DatabaseProblem) as caught:
            session.run(f"SELECT '{password.replace(chr(39), chr(39) * 2)}'::int")
        assert password not in str(caught.value)


# ---------------------------------------------------------------- SQLite


def sqlite_rows(file: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(file)) as connection:
        found = connection.execute(sql).fetchall()
        connection.commit()
        return found


def test_a_sqlite_table_comes_in_by_its_declared_types(spark: SparkSession, tmp_path: Path, place: Place) -> None:
    with closing(sqlite3.connect(tmp_path / "s.db")) as connection:
        connection.execute(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, small SMALLINT, r REAL, n NUMERIC, price DECIMAL(10,2), t VARCHAR(10),"
            " flag BOOLEAN, day DATE, ts DATETIME, tz TIMESTAMPTZ, bin BLOB, loose, j JSON)"
        )
        connection.executemany("INSERT INTO t (t) VALUES (?)", [(None,)] * 3000)  # types show only far below
        connection.execute(
            "INSERT INTO t VALUES (9223372036854775807, -5, 3, 7, 0.1 + 0.2, 'ä😀', 1, '2024-02-29', '2024-01-01 10:00:00.5',"
            " '2024-01-01 10:00:00+02:00', x'00ff', 42, '{\"a\":1}')"
        )
        connection.execute("INSERT INTO t (id, r, price, loose) VALUES (-1, 1.5, '12345678.90', 'text')")
        connection.commit()
    source = make("sqlite_source", path="s.db", table="T")
    assert source.missing(place) is None
    found = run(spark, source, folder=tmp_path)["out"]
    assert len(found) == 3002
    *rest, tz, binary, loose, j = next(row for row in found if row[0] == 2**63 - 1)
    assert rest == [
        2**63 - 1, -5, 3.0, 7.0, Decimal("0.30"), "ä😀", True, date(2024, 2, 29), datetime(2024, 1, 1, 10, 0, 0, 500000),  # noqa: DTZ001
    ]  # fmt: skip
    assert (tz.astimezone(UTC), binary, loose, j) == (datetime(2024, 1, 1, 8, tzinfo=UTC), b"\0\xff", "42", '{"a":1}')
    assert next(row for row in found if row[0] == -1)[:5] == (-1, None, 1.5, None, Decimal("12345678.90"))


def test_a_value_that_does_not_fit_its_sqlite_column_is_refused_in_words(
    spark: SparkSession, tmp_path: Path, place: Place
) -> None:
    with closing(sqlite3.connect(tmp_path / "s.db")) as connection:
        connection.execute(
            "CREATE TABLE t (i INTEGER, early INTEGER, flag BOOLEAN, price DECIMAL(5,2), day DATE, n NUMERIC)"
        )
        connection.execute("INSERT INTO t VALUES (1, 'soon', 2, 1.239, '29.2.2024', 9007199254740993)")
        connection.executemany("INSERT INTO t (i) VALUES (?)", [(None,)] * 20000)
        connection.execute("INSERT INTO t (i) VALUES ('late')")
        connection.commit()
    register(spark)
    kinds = make("sqlite_source", path="s.db", table="t").discover(place)
    source = make("sqlite_source", path="s.db", table="t", columns={"i": kinds["i"]})
    assert "another kind (" in refusal(build(source, {}, spark, place).collect)
    for column, words in {
        "i": "another kind (", "early": "another kind (", "flag": "0 and 1", "price": "data loss", "day": "29.2.2024",
        "n": "another kind (",
    }.items():  # fmt: skip
        schema = spark.createDataFrame([], f"{column} {kinds[column]}").schema
        reader = SqliteReader(str(tmp_path / "s.db"), "t", schema)
        said = refusal(lambda reader=reader: read_here(reader))
        assert f"column `{column}`" in said
        assert words in said


def test_sqlite_sources_say_what_is_missing_and_when_they_changed(tmp_path: Path, place: Place) -> None:
    file = tmp_path / "s.db"
    sqlite_rows(file, "CREATE TABLE orders (id INTEGER, amount DECIMAL(9,2), note)")
    (tmp_path / "text.db").write_text("no database, but long enough to be looked at as one" * 20)

    def source(**settings: Any) -> Any:
        return make("sqlite_source", **({"path": "s.db", "table": "orders"} | settings))

    assert source().discover(place) == {"id": "bigint", "amount": "decimal(9,2)", "note": "string"}
    assert source(path="none.db").discover(place) is None
    assert "there is no such file" in source(path="none.db").missing(place)
    assert not (tmp_path / "none.db").exists()
    assert "it is no SQLite database" in source(path="text.db").missing(place)
    assert "no table `order`; did you mean `orders`?" in source(table="order").missing(place)
    assert "no column `amont`; did you mean `amount`?" in source(columns={"amont": "int"}).drift(place)
    assert source(columns={"AMOUNT": "double"}).drift(place) is None
    before = source().fingerprint(place)
    assert source().fingerprint(place) == before
    sqlite_rows(file, "INSERT INTO orders VALUES (1, 2, 3)")
    assert source().fingerprint(place) != before


def test_every_type_goes_to_sqlite_and_comes_back(spark: SparkSession, tmp_path: Path, place: Place) -> None:
    schema = (
        "y tinyint, s smallint, i int, b bigint, f float, d double, n decimal(38,18), m decimal(15,2), flag boolean, t string,"
        " bin binary, day date, ts timestamp_ntz, tz timestamp, nothing void"
    )
    full = (
        -128, 1, 2, -(2**63), 1.5, -math.inf, Decimal("-12345678901234567890.123456789012345678"), Decimal("1234567890123.45"),
        False, "ä😀'\0", bytearray(b"\0"), date(9999, 12, 31), datetime(1, 1, 1, 0, 0, 0, 1),  # noqa: DTZ001
        datetime(2024, 2, 29, 23, 59, 59, 999999), None,  # noqa: DTZ001
    )  # fmt: skip
    zeros = (
        0,
        0,
        0,
        0,
        0.0,
        -0.0,
        Decimal(0),
        Decimal("0.07"),
        True,
        "",
        bytearray(),
        date(1, 1, 1),
        full[12],
        full[13],
        None,
    )
    data = spark.createDataFrame([full, zeros, (None,) * 15], schema)
    target = make("sqlite_target", path="new/s.db", table="t")
    made = delivered(target, data, place)
    assert made.rows() == 3
    assert by_key(rows(made.read(spark))) == by_key(rows(data))
    made.commit()
    file = tmp_path / "new" / "s.db"
    assert [path.name for path in file.parent.iterdir()] == ["s.db"]
    assert sqlite_rows(file, "SELECT n, day, ts, tz FROM t WHERE i = 2") == [
        (str(full[6]), "9999-12-31", "0001-01-01 00:00:00.000001", "2024-02-29 23:59:59.999999Z")
    ]
    source = make("sqlite_source", path="new/s.db", table="t")
    register(spark)
    assert by_key(run(spark, source, folder=tmp_path)["out"]) == by_key(rows(data))
    nan = spark.createDataFrame([(math.nan,)], "x double")
    assert "`x` holds NaN" in problem_of(
        lambda: delivered(make("sqlite_target", path="new/s.db", table="x"), nan, place)
    )


def test_the_modes_on_a_sqlite_table_that_keeps_its_definition(
    spark: SparkSession, tmp_path: Path, place: Place
) -> None:
    file = tmp_path / "s.db"
    sqlite_rows(
        file, "CREATE TABLE t (no INTEGER PRIMARY KEY, ID INT, part TEXT, qty DECIMAL(12,2), twice AS (qty * 2))"
    )
    sqlite_rows(file, "INSERT INTO t (id, part, qty) VALUES (1, 'a', 10), (1, 'b', 20), (NULL, 'c', 30)")
    before = make("sqlite_source", path="s.db", table="t").fingerprint(place)
    data = people(spark, (1, "b", Decimal(99)), (None, "c", None), (2, "a", Decimal("0.05")))
    upsert = make("sqlite_target", path="s.db", table="t", mode="upsert", key=["id", "part"])
    made = delivered(upsert, data, place)
    after = [(1, "a", Decimal("10.00")), (1, "b", Decimal("99.00")), (2, "a", Decimal("0.05")), (None, "c", None)]
    assert by_key(rows(made.read(spark))) == by_key(after)
    assert make("sqlite_source", path="s.db", table="t").fingerprint(place) == before
    made.check()
    made.commit()
    assert sqlite_rows(file, "SELECT no, id, part, qty, twice FROM t ORDER BY no") == [
        (1, 1, "a", 10, 20), (2, 1, "b", 99, 198), (3, None, "c", None, None), (4, 2, "a", 0.05, 0.1),
    ]  # fmt: skip

    append = make("sqlite_target", path="s.db", table="t", mode="append", pass_on="delivered")
    made = delivered(append, data.limit(1), place)
    assert rows(made.read(spark)) == [(1, "b", Decimal("99.00"))]
    again = from_record(json.loads(json.dumps(made.record())))
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        again._move(connection)  # killed before what was staged is removed
    made.commit()
    again.commit()
    assert sqlite_rows(file, "SELECT count(*) FROM t") == [(5,)]
    twice = delivered(make("sqlite_target", path="s.db", table="t", mode="upsert", key=["id", "part"]), data, place)
    assert "it has 2 rows with the key ID = 1, part = b" in problem_of(twice.commit)
    twice.discard()

    overwrite = make("sqlite_target", path="s.db", table="t")
    load(overwrite, data.where("id = 2"), place)
    assert sqlite_rows(file, "SELECT id FROM t") == [(2,)]
    assert [row[0] for row in sqlite_rows(file, "SELECT name FROM sqlite_master")] == ["t"]
    assert [path.name for path in tmp_path.iterdir()] == ["s.db"]


def test_rows_that_do_not_fit_a_sqlite_table_are_refused(spark: SparkSession, tmp_path: Path, place: Place) -> None:
    file = tmp_path / "s.db"
    sqlite_rows(file, "CREATE TABLE t (id INTEGER NOT NULL UNIQUE, part TEXT, qty DECIMAL(12,2))")
    sqlite_rows(file, "INSERT INTO t VALUES (1, 'old', 1)")

    def refused(data: DataFrame, **more: Any) -> str:
        made = delivery(make("sqlite_target", path="s.db", table="t", **more), "node", place, "run")

        def all_of_it() -> None:
            made.write(data)
            made.commit()

        said = problem_of(all_of_it)
        made.discard()
        assert sqlite_rows(file, "SELECT * FROM t") == [(1, "old", 1)]
        assert [path.name for path in tmp_path.iterdir()] == ["s.db"]
        return said

    said = refused(spark.createDataFrame([], "id string, prt string, qty decimal(20,2)"))
    assert "its column `id` is `INTEGER`, and `string` is delivered" in said
    assert "it has no column `prt`; did you mean `part`" in said
    assert "`decimal(20,2)` is delivered" in said
    data = people(spark, (1, "a", None), (1, "a", None), (None, "b", None))
    assert "`id` takes no NULL" in refused(data)
    assert "2 of the rows delivered have the key id = 1" in refused(data.dropna(subset="id"), mode="upsert", key=["id"])
    assert "UNIQUE constraint failed" in refused(data.limit(1), mode="append")
    with closing(sqlite3.connect(file)) as other:
        other.execute("PRAGMA journal_mode")
    half = delivery(make("sqlite_target", path="s.db", table="t"), "node", place, "half")
    half.folder.mkdir()
    assert "not staged to the end" in problem_of(half.commit)


# ---------------------------------------------------------------- drawing, scripts, names


def test_settings_are_checked_while_drawing() -> None:
    where = {"database": "d", "user": "u", "table": "t"}
    assert findings(make("postgresql_source", **where, columns={"a": "int"})) == []
    assert findings(make("postgresql_source", **where, password="secret")) == [
        "a secret is never written into the file; name an environment variable, as in `${env:PASSWORD}`"
    ]
    assert findings(make("postgresql_source", **where, partitions=2)) == [
        "a table is read in parallel by the ranges of a column"
    ]
    assert findings(
        make("postgresql_source", **where, columns={"a": "string", "A": "txt"}, partition_column="a", partitions=2)
    ) == [
        "`txt` is no Spark type",
        "two columns are called `A`",
        "`a` is a `string`; ranges are of whole numbers or dates",
    ]
    target = make("postgresql_target", **where, mode="upsert", key=["idd"])
    assert findings(target, in_={"id": "int", "m": "map<int,int>"}) == [
        "no column `idd`; did you mean `id`?",
        "`m` is a `map<int,int>`, which a column of this database cannot hold; turn it into text (`to_json`), or take it apart",
    ]
    with pytest.raises(ValidationError, match="at most 63 bytes"):
        make("postgresql_target", **where | {"table": "ä" * 32})
    assert make("postgresql_source", **where).discover(None) is None
    assert len(staging_name("a long run" * 9, "node", "a long table" * 9) + OPEN) <= 63


def test_the_script_delivers_and_reads_as_the_engine_does(
    spark: SparkSession, pg: Postgresql, tmp_path: Path, place: Place
) -> None:
    data = people(spark, (1, "a", Decimal(1)), (2, "b", None))
    known = dict(data.dtypes)
    register(spark, [PASSWORD])
    for kind, settings in [("postgresql", pg.settings(table="t")), ("sqlite", {"path": "s.db", "table": "t"})]:
        target = make(f"{kind}_target", **settings, mode="upsert", key=["id"])
        tools = ScriptTools("node", target, {"path": Code(f'"{tmp_path}/s.db"')})
        lines = target.script_write(frame("data", known), tools)
        text = "\n".join(lines)
        assert 'deliver(\n    data,\n    kind="' in text
        assert pg.at.password not in text
        variables = {"data": data, "deliver": deliver, "spark": spark}
        exec(text, variables)
        exec(text, variables)
        found = eval(str(target.script_read(frame("data", known), tools)), variables)
        assert found.dtypes == data.dtypes
        assert by_key(rows(found)) == by_key(rows(data))
    assert FORMAT in str(make("sqlite_source", path="s.db", table="t").build(BuildInputs({}), tools))
    assert pg.tables() == ["t"]

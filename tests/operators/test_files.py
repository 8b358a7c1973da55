"""Files as sources, on real Spark. Expected rows are written by hand or read by DuckDB."""

from __future__ import annotations

import bz2
import csv
import gzip
import os
import random
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

from engine.errors import PapilioError
from engine.model.operator import Inputs, Place, port_frame
from engine.model.types import UNKNOWN
from engine.operators import _formats
from engine.operators.file_targets import CsvTarget
from engine.spark.tools import build, flat_parquet_columns
from tests.operators.harness import by_key, findings, make, run


def place_of(folder: Path) -> Place:
    return Place(lambda text: folder / text, lambda text: os.environ[text])


def drift_of(folder: Path, name: str, **settings):
    return make(name, **settings).drift(place_of(folder))


@pytest.fixture
def small_blocks(spark):
    """Spark cuts files into blocks of some bytes, as it would cut large ones."""
    keys = ["spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes"]
    before = [spark.conf.get(key) for key in keys]
    spark.conf.set(keys[0], "40b")
    spark.conf.set(keys[1], "1b")
    yield
    for key, value in zip(keys, before, strict=True):
        spark.conf.set(key, value)


# ---------------------------------------------------------------- CSV

BROKEN_CSV = """\
id,Unit Price,name
1,2.50,ok
2,3
3,4,x,y
4,abc,z

5,6,"open
6,"7,x
7,8,"a"b"
8,9,"a""b, c"
9,1,""\"q""\"
10,,
11,1,""
12,1,a"b
id,Unit Price,name
x,y,z
"""


def test_csv_rows_that_do_not_fit_leave_with_their_line_and_the_reason(spark, tmp_path, small_blocks):
    folder = tmp_path / "a b%20é+c"
    folder.mkdir()
    (folder / "one.csv").write_text(BROKEN_CSV)
    with gzip.open(folder / "two.csv.gz", "wt", encoding="utf-8") as file:
        file.write("\n\nid,Unit Price,name\n20,1.005,Ünïcödé\n\n21,1\n")
    (folder / "_SUCCESS").write_text("")
    source = make("csv_source", path=folder.name, columns={"id": "int", "Unit Price": "decimal(6,2)", "name": "string"})
    result = run(spark, source, folder=tmp_path)
    assert by_key(result["out"]) == by_key([
        (1, Decimal("2.50"), "ok"),
        (8, Decimal("9.00"), 'a"b, c'),
        (9, Decimal("1.00"), '"q"'),
        (10, None, None),
        (11, Decimal("1.00"), None),
        (12, Decimal("1.00"), 'a"b'),
        (20, Decimal("1.01"), "Ünïcödé"),
    ])  # fmt: skip
    one, two = str(folder / "one.csv"), str(folder / "two.csv.gz")
    quoted = "a quoted field does not end where it should"
    assert sorted(result["reject"], key=lambda row: (row[1], row[0])) == [
        (3, one, "2,3", "2 fields instead of 3"),
        (4, one, "3,4,x,y", "4 fields instead of 3"),
        (5, one, "4,abc,z", "column `Unit Price`: `abc` cannot be read as decimal(6,2)"),
        (7, one, '5,6,"open', quoted),
        (8, one, '6,"7,x', quoted),
        (9, one, '7,8,"a"b"', quoted),
        (15, one, "id,Unit Price,name", "column `id`: `id` cannot be read as int; column `Unit Price`: `Unit Price` cannot be read as decimal(6,2)"),
        (16, one, "x,y,z", "column `id`: `x` cannot be read as int; column `Unit Price`: `y` cannot be read as decimal(6,2)"),
        (6, two, "21,1", "2 fields instead of 3"),
    ]  # fmt: skip


def test_csv_refuses_the_same_rows_whichever_columns_are_used_later(spark, tmp_path):
    (tmp_path / "a.csv").write_text("id,qty,name\n1,2,x\n2,abc,y\n3\n4,5,z\n")
    source = make("csv_source", path="a.csv", columns={"id": "int", "qty": "int", "name": "string"})
    for lines in (source, source.model_copy(update={"multi_line": True})):
        split = build(lines, {}, spark, place_of(tmp_path))
        assert [row.id for row in port_frame(split, "out").select("id").collect()] == [1, 4]
        assert port_frame(split, "out").count() == 2
        assert split.frame.where(split.ways["reject"].condition).select("id").count() == 2


def test_csv_without_header_or_declared_columns_is_text(spark, tmp_path):
    (tmp_path / "a.csv").write_text("1;x\n\n2;\n3;y;z\n")
    result = run(spark, make("csv_source", path="a.csv", header=False, separator=";"), folder=tmp_path)
    assert by_key(result["out"]) == [("1", "x"), ("2", None)]
    assert result["reject"] == [(4, str(tmp_path / "a.csv"), "3;y;z", "3 fields instead of 2")]


def test_csv_options_for_how_values_are_written(spark, tmp_path):
    text = "when|day|Größe|note\n31.12.2024 23:59|01.02.2024|1|'it\\'s | ok'\nNA|NA|NA|NA\n2024-12-31|1.2.2024|x|y\n"
    (tmp_path / "a.csv").write_bytes(text.encode("latin-1"))
    source = make(
        "csv_source", path="a.csv", separator="|", quote="'", escape="\\", encoding="ISO-8859-1", null_text="NA",
        date_format="dd.MM.yyyy", timestamp_format="dd.MM.yyyy HH:mm",
        columns={"when": "timestamp_ntz", "day": "date", "Größe": "int", "note": "string"},
    )  # fmt: skip
    result = run(spark, source, folder=tmp_path)
    assert by_key(result["out"]) == by_key([
        (datetime(2024, 12, 31, 23, 59, tzinfo=UTC).replace(tzinfo=None), date(2024, 2, 1), 1, "it's | ok"),
        (None, None, None, None),
    ])  # fmt: skip
    ((line, _, record, reason),) = result["reject"]
    assert (line, record) == (4, "2024-12-31|1.2.2024|x|y")
    assert "column `when`: `2024-12-31` cannot be read as timestamp_ntz" in reason
    assert "column `Größe`: `x` cannot be read as int" in reason


def test_csv_fields_over_several_lines(spark, tmp_path):
    text = 'id,note\r\n1,"two\r\nlines"\r\n2,a,b\r\nx,"three\r\nmore\r\nlines"\r\n3,plain\r\n2,a,b\r\n'
    (tmp_path / "a.csv").write_bytes(text.encode())
    source = make("csv_source", path="a.csv", multi_line=True, columns={"id": "int", "note": "string"})
    result = run(spark, source, folder=tmp_path)
    assert [(row[0], row[1].replace("\r", "")) for row in by_key(result["out"])] == [(1, "two\nlines"), (3, "plain")]
    file = str(tmp_path / "a.csv")
    assert sorted(result["reject"]) == [
        (4, file, "2,a,b", "3 fields instead of 2"),
        (5, file, 'x,"three\nmore\nlines"', "column `id`: `x` cannot be read as int"),
        (9, file, "2,a,b", "3 fields instead of 2"),
    ]


def test_csv_reads_what_duckdb_reads(spark, tmp_path):
    chance = random.Random(7)
    pieces = ["a", '"', ",", " ", "ß", "\\", "'", "#", "|", "\t", "1"]
    rows = [[str(n), "".join(chance.choices(pieces, k=chance.randrange(1, 9)))] for n in range(300)]
    with (tmp_path / "a.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["n", "text"], *rows])
    expected = duckdb.sql(
        f"SELECT * FROM read_csv('{tmp_path}/a.csv', header=true, columns={{'n': 'INT', 'text': 'VARCHAR'}}, quote='\"', escape='\"')"
    ).fetchall()
    result = run(spark, make("csv_source", path="a.csv", columns={"n": "int", "text": "string"}), folder=tmp_path)
    assert result["reject"] == []
    assert by_key(result["out"]) == by_key(expected) == by_key([(int(n), text) for n, text in rows])


def test_a_drifted_header_is_told_before_anything_runs(tmp_path):
    columns = {"id": "int", "quantity": "int", "name": "string"}
    (tmp_path / "a.csv").write_text("\ufeffID,quantity,name\n")
    assert drift_of(tmp_path, "csv_source", path="a.csv", columns=columns) is None
    (tmp_path / "b.csv").write_text('"id","qty","name"\n')
    message = drift_of(tmp_path, "csv_source", path="b.csv", columns=columns)
    assert message == f"{tmp_path}/b.csv: header drifted: column 2 is `qty`, declared `quantity`"
    with gzip.open(tmp_path / "c.csv.gz", "wt") as file:
        file.write("id,quantity\n1,2\n")
    message = drift_of(tmp_path, "csv_source", path="c.csv.gz", columns=columns)
    assert message == f"{tmp_path}/c.csv.gz: header drifted: it has 2 columns, declared also `name`"
    with bz2.open(tmp_path / "d.csv.bz2", "wt") as file:
        file.write("id,quantity,name,more\n")
    message = drift_of(tmp_path, "csv_source", path="d.csv.bz2", columns=columns)
    assert message == f"{tmp_path}/d.csv.bz2: header drifted: column 4 is `more`, and declared are 3 columns"
    folder = tmp_path / "many"
    folder.mkdir()
    (folder / "1.csv").write_text("a,b\n1,2\n")
    (folder / "2.csv").write_text("a,c\n1,2\n")
    (folder / "3.csv").write_text("")
    message = drift_of(tmp_path, "csv_source", path="many")
    assert message == f"{folder}/2.csv: header drifted: column 2 is `c`, in 1.csv `b`"
    (tmp_path / "twice.csv").write_text("a,b,A\n")
    assert "names the column `A` twice" in drift_of(tmp_path, "csv_source", path="twice.csv")


def test_a_truncated_gzip_fails_the_run(spark, tmp_path):
    whole = gzip.compress(("id,n\n" + "".join(f"{n},{n * 7919 % 1000}\n" for n in range(20000))).encode())
    (tmp_path / "a.csv.gz").write_bytes(whole[: len(whole) // 2])
    source = make("csv_source", path="a.csv.gz", columns={"id": "int", "n": "int"})
    assert source.missing(place_of(tmp_path)) is None
    assert source.drift(place_of(tmp_path)) is None
    split = build(source, {}, spark, place_of(tmp_path))
    with pytest.raises(Exception, match=r"a\.csv\.gz"):
        port_frame(split, "out").count()


def test_refused_rows_stop_the_run_unless_a_port_or_a_limit_takes_them():
    source = make("csv_source", path="x", columns={"a": "int"})
    assert source.limit_broken(1, 10).startswith("1 of 10 rows were refused, and nothing reads the port")
    assert source.limit_broken(0, 10) is None
    assert source.limit_broken(1, 10, connected=True) is None
    raised = make("csv_source", path="x", columns={"a": "int"}, max_refused=2)
    assert raised.limit_broken(2, 10) is None
    assert raised.limit_broken(3, 10, connected=True) is not None
    share = make("csv_source", path="x", max_refused_percent=10)
    assert share.limit_broken(1, 10) is None
    assert share.limit_broken(2, 10, connected=True) == (
        "20.00 % of the rows (2 of 10) were refused, and 10 % are allowed"
    )
    assert share.limit_broken(2, 0) == "100.00 % of the rows (2 of 2) were refused, and 10 % are allowed", (
        "no rows are fewer than those refused"
    )
    assert share.limit_broken(0, 0) is None


def test_sources_check_their_settings():
    assert findings(make("csv_source", path="x", columns={"a": "integre"})) == ["`integre` is no Spark type"]
    assert findings(make("csv_source", path="x", columns={"a": "int", "A": "int"})) == ["two columns are called `A`"]
    assert findings(make("csv_source", path="x", separator='"')) == ["the separator and the quote are the same"]
    assert len(findings(make("csv_source", path="x", encoding="UTF-16"))) == 1
    with pytest.raises(ValueError, match="columns"):
        make("tbl_source", path="x")


# ---------------------------------------------------------------- .tbl


def test_tbl_lines_end_with_a_bar(spark, tmp_path, small_blocks):
    (tmp_path / "part.tbl").write_text(
        '1|"a|2.5|1996-03-13|\n2|b|1.0|\n3|c|1.5|1996-03-13|x\n4|d|1.5|1996-03-13|5|\n5| e |||\n6|f|zz|1996-13-01|\n7|g|1|1996-03-13\n'
    )
    columns = {"k": "bigint", "n": "string", "d": "decimal(15,2)", "day": "date"}
    result = run(spark, make("tbl_source", path="part.tbl", columns=columns), folder=tmp_path)
    assert by_key(result["out"]) == by_key([(1, '"a', Decimal("2.50"), date(1996, 3, 13)), (5, " e ", None, None)])
    assert [(row[0], row[3]) for row in sorted(result["reject"])] == [
        (2, "3 fields instead of 4"),
        (3, "the line does not end with `|`"),
        (4, "5 fields instead of 4"),
        (6, "column `d`: `zz` cannot be read as decimal(15,2); column `day`: `1996-13-01` cannot be read as date"),
        (7, "the line does not end with `|`"),
    ]


# ---------------------------------------------------------------- JSON

JSON = """\
{"a": 1, "b c": "x", "t": {"x": 1, "y": ["é"]}}

{"a": "zz", "b c": "y"}
{"b c": null, "a": 2.5}
{"a": 3
[{"a": 4}]
{"a": 5, "t": {"x": "q"}}
{"a": 6, "unknown": true}
42
"""


def test_json_lines_that_do_not_fit_leave_with_their_line_and_the_reason(spark, tmp_path, small_blocks):
    (tmp_path / "a.json").write_text(JSON)
    columns = {"a": "int", "b c": "string", "t": "struct<x:int,y:array<string>>"}
    result = run(spark, make("json_source", path="a.json", columns=columns), folder=tmp_path)
    assert [(row[0], row[1], row[2] and (row[2].x, row[2].y)) for row in by_key(result["out"])] == [
        (1, "x", (1, ["é"])),
        (6, None, None),
    ]
    assert [(row[0], row[3]) for row in sorted(result["reject"])] == [
        (3, "column `a`: `zz` cannot be read as int"),
        (4, "column `a`: `2.5` cannot be read as int"),
        (5, "no JSON object"),
        (6, "no JSON object"),
        (7, 'column `t`: `{"x":"q"}` cannot be read as struct<x:int,y:array<string>>'),
        (9, "no JSON object"),
    ]


def test_json_columns_are_told_from_the_first_lines(spark, tmp_path):
    text = '{"i": 1, "d": 1, "s": "x", "n": null, "l": [1, 2.5], "o": {"p": true}, "odd": {"a b": 1}, "big": 99999999999999999999}\n{"d": 0.5, "m": "late", "o": {"q": []}}\n'
    (tmp_path / "a.json").write_text(text)
    source = make("json_source", path="a.json")
    schema = source.discover(place_of(tmp_path))
    assert schema == {
        "i": "bigint", "d": "double", "s": "string", "n": "string", "l": "array<double>",
        "o": "struct<p:boolean,q:array<string>>", "odd": "string", "big": "decimal(38,0)", "m": "string",
    }  # fmt: skip
    result = run(spark, source, folder=tmp_path)
    assert result["reject"] == []
    assert sorted(row[1] for row in result["out"]) == [0.5, 1.0]
    (tmp_path / "b.json").write_text('{"a": 1, "A": 2}\n')
    assert "`A`" in make("json_source", path="b.json").drift(place_of(tmp_path))


# ---------------------------------------------------------------- Parquet and ORC


@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_columnar_footers_give_spark_its_types(spark, tmp_path, kind):
    frame = spark.sql("""
        SELECT tinyint(1) a, smallint(1) b, 1 c, 1L d, float(1) e, 1D f, true g, 'x' `h i`, binary('x') j,
               date'2024-01-02' k, timestamp'2024-01-02 03:04:05' l, timestamp_ntz'2024-01-02 03:04:05' m,
               cast(1 as decimal(15,2)) n, array(1) o, map('a', 1D) p, named_struct('X', 1, 'y', array('z')) q""")
    getattr(frame.write, kind)(str(tmp_path / "t"))
    source = make(f"{kind}_source", path="t")
    assert source.discover(place_of(tmp_path)) == dict(frame.dtypes)
    ((*values,),) = run(spark, source, folder=tmp_path)["out"]
    assert values[7] == "x"
    chosen = make(f"{kind}_source", path="t", columns={"h i": "string", "C": "int"})
    assert run(spark, chosen, folder=tmp_path)["out"] == [("x", 1)]
    wrong = make(f"{kind}_source", path="t", columns={"c": "bigint"})
    assert "the column `c` is of type `int`, declared `bigint`" in wrong.drift(place_of(tmp_path))
    lost = make(f"{kind}_source", path="t", columns={"h": "string", "cc": "int"})
    assert "there is no column `h`, declared a `string`" in lost.drift(place_of(tmp_path))


def test_parquet_of_other_programs_gives_spark_its_types(spark, tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    moment = datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)
    columns = {
        "u8": pa.array([1], pa.uint8()), "u32": pa.array([1], pa.uint32()), "u64": pa.array([1], pa.uint64()),
        "ls": pa.array(["x"], pa.large_string()), "sv": pa.array(["x"], pa.string_view()),
        "dict": pa.array(["x"]).dictionary_encode(), "d64": pa.array([date(2024, 1, 2)], pa.date64()),
        "tz": pa.array([moment], pa.timestamp("us", "UTC")), "ntz": pa.array([moment.replace(tzinfo=None)], pa.timestamp("ms")),
        "dec": pa.array([Decimal("1.50")], pa.decimal128(15, 2)), "fsb": pa.array([b"ab"], pa.binary(2)),
        "ll": pa.array([[1]], pa.large_list(pa.int16())), "m": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int8())),
        "s": pa.array([{"X": 1.0}], pa.struct([("X", pa.float32())])),
    }  # fmt: skip
    folder = tmp_path / "t"
    folder.mkdir()
    parquet.write_table(pa.table(columns), folder / "a.parquet")
    old = pa.table({"at": pa.array([moment.replace(tzinfo=None)], pa.timestamp("ns"))})
    parquet.write_table(old, tmp_path / "int96.parquet", use_deprecated_int96_timestamps=True)
    run(spark, make("parquet_source", path="t"), folder=tmp_path)  # the harness compares the types with Spark's
    run(spark, make("parquet_source", path="int96.parquet"), folder=tmp_path)
    flat = {name: values for name, values in columns.items() if name not in ("ll", "m", "s")}
    parquet.write_table(pa.table(flat), tmp_path / "flat.parquet")
    assert flat_parquet_columns(tmp_path / "flat.parquet") is not None
    run(spark, make("parquet_source", path="flat.parquet"), folder=tmp_path)  # the script lets Spark find the types
    parquet.write_table(pa.table({"u8": pa.array(["x"])}), folder / "b.parquet")
    assert make("parquet_source", path="t").drift(place_of(tmp_path)) == (
        f"{folder}/b.parquet: the column `u8` is of type `string`, in a.parquet `smallint`"
    )


def test_spark_starts_no_job_to_find_the_columns_of_parquet_files(spark, tmp_path):
    spark.range(10).selectExpr("id", "id AS `a.b c`").write.parquet(str(tmp_path / "t"))
    context = spark.sparkContext
    context.setJobGroup("finding-columns", "none is expected")
    try:
        built = build(make("parquet_source", path="t"), {}, spark, place_of(tmp_path))
        assert port_frame(built, "out").columns == ["id", "a.b c"]
        assert list(context.statusTracker().getJobIdsForGroup("finding-columns")) == []
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
    assert flat_parquet_columns(tmp_path / "t") == {"id": "bigint", "a.b c": "bigint"}
    assert flat_parquet_columns(tmp_path / "nowhere") is None
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and then nothing")
    assert flat_parquet_columns(tmp_path / "broken.parquet") is None, "Spark says what is wrong with it"
    spark.sql("SELECT 1 a, array(1) b").write.parquet(str(tmp_path / "nested"))
    assert flat_parquet_columns(tmp_path / "nested") is None
    spark.sql("SELECT 1 a, 2024 year").write.partitionBy("year").parquet(str(tmp_path / "folders"))
    assert flat_parquet_columns(tmp_path / "folders") is None


def test_folders_that_name_a_value_add_a_column_of_unknown_type(spark, tmp_path):
    frame = spark.sql("SELECT 1 a, 2024 year UNION ALL SELECT 2, 2025")
    frame.write.partitionBy("year").parquet(str(tmp_path / "t"))
    source = make("parquet_source", path="t")
    assert source.discover(place_of(tmp_path)) == {"a": "int", "year": UNKNOWN}
    assert source.missing(place_of(tmp_path)) is None
    assert by_key(run(spark, source, folder=tmp_path)["out"]) == [(1, 2024), (2, 2025)]


def test_a_truncated_parquet_file_is_told_by_the_run(spark, tmp_path):
    spark.range(1000).coalesce(1).write.parquet(str(tmp_path / "t"))
    (file,) = (tmp_path / "t").glob("*.parquet")
    file.write_bytes(file.read_bytes()[:-100])
    for crc in (tmp_path / "t").glob(".*.crc"):
        crc.unlink()
    source = make("parquet_source", path="t", columns={"id": "bigint"})
    assert source.drift(place_of(tmp_path)) is None
    with pytest.raises(Exception, match="parquet"):
        port_frame(build(source, {}, spark, place_of(tmp_path)), "out").count()


# ---------------------------------------------------------------- what is there


def test_a_source_that_cannot_be_read_says_why(tmp_path):
    def missing(path: str, kind: str = "csv_source") -> str | None:
        return make(kind, path=path).missing(place_of(tmp_path))

    assert missing("no.csv") == f"`{tmp_path}/no.csv` does not exist"
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "_SUCCESS").write_text("")
    assert missing("empty") == f"the folder `{tmp_path}/empty` has no data files"
    (tmp_path / "_a.csv").write_text("a\n")
    assert "begin with `_`" in missing("_a.csv")
    (tmp_path / "x[1]").mkdir()
    assert "wildcard" in missing("x[1]")
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "a.csv").write_text("a\n")
    assert missing("deep") is None
    assert "would not be read" in missing("deep", "parquet_source")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "a.csv").symlink_to(tmp_path / "_a.csv")
    assert "is a link" in missing("links")


def test_a_fingerprint_changes_with_every_file(tmp_path):
    folder = tmp_path / "t"
    (folder / "sub").mkdir(parents=True)
    for name in ("a.csv", "sub/b.csv"):
        (folder / name).write_text("a\n1\n")
    source, place = make("csv_source", path="t"), place_of(tmp_path)
    marks = [source.fingerprint(place), source.fingerprint(place)]
    (folder / "sub" / "b.csv").write_text("a\n2\n")
    marks.append(source.fingerprint(place))
    (folder / "c.csv").write_text("a\n")
    marks.append(source.fingerprint(place))
    (folder / "a.csv").rename(folder / "d.csv")
    marks.append(source.fingerprint(place))
    (folder / "_SUCCESS").write_text("")
    assert marks[0] == marks[1]
    assert len(set(marks)) == 4
    assert source.fingerprint(place) == marks[-1]
    assert source.identity(place) == str(folder)


def test_records_of_a_csv_file_are_counted_outside_of_quotes(tmp_path, monkeypatch):
    chance = random.Random(3)
    rows = [["".join(chance.choices('ab"\n,', k=chance.randrange(6))) or "x", "y"] for _ in range(500)]
    with (tmp_path / "a.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    assert _formats.count_csv_records(tmp_path / "a.csv", '"', '"') == 500
    with (tmp_path / "b.csv").open("w", newline="") as file:
        csv.writer(file, doublequote=False, escapechar="\\", lineterminator="\n").writerows(rows)
    monkeypatch.setattr(_formats, "_chunks", lambda raw: iter(lambda: raw.read(7), b""))
    assert _formats.count_csv_records(tmp_path / "b.csv", '"', "\\") == 500
    assert _formats.count_csv_records(tmp_path / "a.csv", '"', '"') == 500


# ---------------------------------------------------------------- staging and targets, as drawn


def test_staging_and_targets_keep_the_schema():
    schema = {"a": "int"}
    for operator in (make("staging"), make("parquet_target", path="x"), make("csv_target", path="x")):
        assert operator.output_schemas(Inputs({"in": [schema]})) == {"out": schema}
        assert operator.keeps_rows


def test_targets_refuse_what_their_format_cannot_hold():
    assert findings(make("csv_target", path="x"), in_={"a": "array<int>"}) == [
        "the column `a` is a `array<int>`, which CSV cannot hold"
    ]
    assert findings(make("json_target", path="x"), in_={"a": "array<int>"}) == []
    assert len(findings(make("orc_target", path="x"), in_={"a": "void"})) == 1
    assert findings(make("orc_target", path="x"), in_={"a`b": "int"}) == [
        "the column `a`b` has a backquote in its name, which ORC would lose; rename it"
    ]
    assert findings(make("parquet_target", path="x", mode="upsert"), in_={"a": "int"}) == [
        "an upsert needs the columns of its key"
    ]
    assert findings(make("csv_target", path="x.csv", single_file=True, compression="gzip"), in_={"a": "int"}) == [
        "a file compressed by gzip is only read again if its name ends with `.gz`"
    ]


def test_a_source_without_columns_to_find_asks_for_them(spark, tmp_path):
    (tmp_path / "a.json").write_text("\n")
    with pytest.raises(PapilioError, match="declare them"):
        build(make("json_source", path="a.json"), {}, spark, place_of(tmp_path))


def test_a_csv_header_of_odd_names_is_quoted():
    assert CsvTarget(path="x", single_file=True).header_line(["a", "b,c", 'd"e']) == b'a,"b,c","d""e"\n'

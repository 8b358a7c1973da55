"""Bad input: one clear message that names file, node and reason, the right exit code, and no target touched.

What is refused before Spark starts is refused by the command line in this process; two of them by the real program.
"""

from __future__ import annotations

import gzip

import pytest

from tests.end_to_end.helpers import papilio, papilio_here, snapshot, write


@pytest.fixture
def place(tmp_path):
    """A folder with a source and a target that was loaded before."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "rows.csv").write_text("id,amount\n1,10\n2,20\n")
    (tmp_path / "out" / "loaded").mkdir(parents=True)
    (tmp_path / "out" / "loaded" / "part-0.parquet").write_bytes(b"as it was")
    return tmp_path


SOURCE = {"operator": "csv_source", "path": "in/rows.csv", "columns": {"id": "int", "amount": "int"}}
TARGET = {"operator": "parquet_target", "path": "out/loaded"}
EDGES = ["source -> step.in", "step -> target.in"]


def line(step, source=SOURCE, target=TARGET):
    return {"source": source, "step": step, "target": target}


def run_and_compare(file, place, command="run", program=papilio_here, **options):
    before = snapshot(place / "out")
    done = program(command, file, home=place / "home", **options)
    assert snapshot(place / "out") == before, "a target was touched"
    assert "Traceback" not in done.stderr
    return done


def refused(file, place, *parts, program=papilio_here):
    """Both `check` and `run` refuse the file with exit 2, naming file and reason."""
    for command in ("check", "run"):
        done = run_and_compare(file, place, command, program)
        assert done.returncode == 2, done.stderr
        for part in (file.name, *parts):
            assert part in done.stderr, done.stderr
    return done


def test_broken_yaml(place):
    file = place / "broken.butterfly.yaml"
    file.write_text("papilio: 1\nnodes: {a: [}\n")
    refused(file, place, "broken.butterfly.yaml:2:", "broken YAML", program=papilio)


def test_wrong_types(place):
    file = place / "types.butterfly.yaml"
    file.write_text("papilio: 1\nnodes:\n  a: {operator: filter, settings: [1, 2]}\n")
    refused(file, place, ":3: node `a`, field `settings`: Input should be a valid dictionary")


def test_a_shipped_workflow_without_its_data_says_how_they_are_made(place, monkeypatch):
    for name, kind in (("fig1", "tpch"), ("ssb_q11", "ssb")):
        file, nowhere = f"workflows/{name}.butterfly.yaml", place / "nowhere"
        for command in ("check", "run"):
            done = papilio_here(command, file, "--param", f"data_folder={nowhere}", home=place / "home")
            assert done.returncode == 2, done.stderr
            assert f"`papilio data {kind} --scale 0.01 --to {nowhere}` makes it" in done.stderr
    (place / "nowhere").mkdir()
    done = papilio_here("check", "workflows/fig1.butterfly.yaml", "--param", f"data_folder={nowhere}", home=place)
    assert "papilio data" not in done.stderr, "the folder is there; it is a table that is missing"


def test_a_setting_of_the_wrong_type(place):
    file = write(place, line({"operator": "limit", "rows": "many"}), EDGES)
    refused(file, place, "node `step`", "setting `rows`", "'many'")


def test_an_unknown_operator_with_the_near_match(place):
    file = write(place, line({"operator": "fliter", "condition": "id > 1"}), EDGES)
    refused(file, place, "node `step`", "no operator `fliter`; did you mean `filter`?")


def test_an_unknown_setting_with_the_near_match(place):
    file = write(place, line({"operator": "filter", "condtion": "id > 1"}), EDGES)
    refused(file, place, "node `step`", "no setting `condtion`; did you mean `condition`?")


def test_a_cycle(place):
    nodes = {**line({"operator": "union"}), "back": {"operator": "copy"}}
    file = write(place, nodes, [*EDGES, "step -> back.in", "back -> step.in"])
    refused(file, place, "the flow goes in a circle: step → back → step")


def test_a_missing_edge(place):
    file = write(place, line({"operator": "filter", "condition": "id > 1"}), EDGES[1:])
    refused(
        file, place, "node `step`, port `in`: nothing feeds the port `in`", "node `source`, port `out`: nothing reads"
    )


def test_an_edge_to_a_port_that_does_not_exist(place):
    file = write(place, line({"operator": "filter", "condition": "id > 1"}), [EDGES[0], "step.mach -> target.in"])
    done = refused(file, place, "has no output port `mach`; did you mean `match`?")
    assert "nothing feeds" not in done.stderr, "that follows from it, and is not told again"


def test_a_recordset_that_feeds_a_recordset(place):
    file = write(place, {"source": SOURCE, "target": TARGET}, ["source -> target.in"])
    refused(file, place, "the recordset `source` feeds the recordset `target`")


def test_a_missing_source_file(place):
    file = write(place, line({"operator": "copy"}, {**SOURCE, "path": "in/row.csv"}), EDGES)
    refused(file, place, "node `source`", "row.csv", "does not exist")


def test_a_column_that_does_not_exist(place):
    file = write(place, line({"operator": "filter", "condition": "amonut > 1"}), EDGES)
    refused(file, place, "node `step`", "no column `amonut`; did you mean `amount`?", program=papilio)


def test_keys_of_types_that_cannot_be_compared(place):
    (place / "in" / "dates.csv").write_text("day\n2024-01-01\n")
    nodes = {
        **line({"operator": "join", "keys": [{"left": "id", "right": "day"}]}),
        "dates": {"operator": "csv_source", "path": "in/dates.csv", "columns": {"day": "date"}},
    }
    file = write(place, nodes, ["source -> step.left", "dates -> step.right", "step -> target.in"])
    refused(file, place, "node `step`", "`id`", "`day`", "date")


def test_a_csv_whose_header_drifted(place):
    (place / "in" / "rows.csv").write_text("id,quantity\n1,10\n")
    file = write(place, line({"operator": "copy"}), EDGES)
    refused(file, place, "node `source`", "`quantity`", "`amount`")


@pytest.mark.parametrize("path", ["../elsewhere/rows.csv", "file:///etc/passwd", "/etc/passwd", "in/link/rows.csv"])
def test_a_path_outside_the_declared_roots(path, place):
    (place / "in" / "link").symlink_to("/etc")
    file = write(place, line({"operator": "copy"}, {**SOURCE, "path": path}), EDGES, roots={"a": "in", "b": "out"})
    refused(file, place, "node `source`, setting `path`", path)


def test_a_target_outside_the_declared_roots(place):
    file = write(
        place, line({"operator": "copy"}, target={**TARGET, "path": "../stolen"}), EDGES, roots={"a": "in", "b": "out"}
    )
    refused(file, place, "node `target`, setting `path`", "outside the declared roots")


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("reflect('java.lang.System', 'exit', 1)", "the function `reflect` is not allowed"),
        ("java_method('java.lang.Runtime', 'getRuntime')", "the function `java_method` is not allowed"),
        ("(SELECT max(value) FROM text.`/etc/passwd`)", "a query (`SELECT`) has no place"),
        ("id IN (SELECT 1)", "a query (`SELECT`) has no place"),
        ("TRANSFORM(id) USING 'cat'", "`TRANSFORM … USING` starts a program"),
    ],
)
def test_an_expression_that_is_a_program(expression, reason, place):
    file = write(place, line({"operator": "derive", "columns": [{"name": "x", "expression": expression}]}), EDGES)
    refused(file, place, "node `step`", reason)


@pytest.mark.parametrize("password", ["hunter2", 12345])
def test_a_secret_in_the_file(password, place):
    source = {
        "operator": "postgresql_source",
        "host": "127.0.0.1",
        "database": "d",
        "user": "u",
        "password": password,
        "table": "t",
    }
    file = write(place, line({"operator": "copy"}, source), EDGES)
    refused(file, place, "node `source`, setting `password`", "a secret is never written into the file")


def test_a_secret_whose_variable_is_not_set(place):
    source = {
        "operator": "postgresql_source",
        "host": "127.0.0.1",
        "database": "d",
        "user": "u",
        "password": "${env:NOT_SET}",
        "table": "t",
    }
    file = write(place, line({"operator": "copy"}, source), EDGES)
    done = run_and_compare(file, place)
    assert done.returncode == 2
    assert "node `source`: the environment variable `NOT_SET` is not set" in done.stderr


def test_python_code_of_a_file_that_is_not_trusted(place):
    step = {"operator": "python", "code": "def transform(input):\n    return input\n", "columns": {"id": "int"}}
    file = write(place, line(step), ["source -> step", "step -> target.in"])
    done = run_and_compare(file, place)
    assert done.returncode == 2, done.stderr
    assert "node `step`" in done.stderr
    assert "papilio trust" in done.stderr


def test_a_newer_file_format(place):
    file = place / "newer.butterfly.yaml"
    file.write_text("papilio: 99\nnodes: {}\n")
    refused(file, place, "written in file format 99")


def test_a_parameter_the_workflow_does_not_have(place):
    file = write(place, line({"operator": "copy"}), EDGES, parameters={"scale": 1})
    done = papilio_here("run", file, "--param", "scael=2", home=place / "home")
    assert done.returncode == 2
    assert "did you mean `scale`?" in done.stderr


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("null", "the root `data` is `${folder}`, which has no value"),
        ("x" * 300, "longer than a path can be"),
        ("http://host/rows", "a folder, not an address, is needed"),
    ],
)
def test_a_root_that_is_none_is_told_once_and_not_for_every_node(value, reason, place):
    source = {**SOURCE, "path": "${data}/rows.csv"}
    nodes = line({"operator": "copy"}, source)
    file = write(place, nodes, EDGES, parameters={"folder": "in"}, roots={"data": "${folder}", "out": "out"})
    done = papilio_here("run", file, "--param", f"folder={value}", home=place / "home")
    assert done.returncode == 2
    assert reason in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr


def test_a_list_where_a_parameter_takes_one_value(place):
    file = write(place, line({"operator": "copy"}), EDGES, parameters={"scale": 1})
    done = papilio_here("check", file, "--param", "scale=[1, 2]", home=place / "home")
    assert done.returncode == 2
    assert "the parameter `scale` takes one value, not [1, 2]" in done.stderr


def test_a_truncated_gzip_fails_the_run(place, spark):
    whole = gzip.compress(b"id,amount\n" + b"".join(b"%d,%d\n" % (i, i * 37 % 1001) for i in range(20_000)))
    (place / "in" / "rows.csv.gz").write_bytes(whole[: len(whole) // 2])
    file = write(place, line({"operator": "copy"}, {**SOURCE, "path": "in/rows.csv.gz"}), EDGES)
    done = run_and_compare(file, place, spark=spark)
    assert done.returncode == 1, done.stderr
    assert file.name in done.stderr
    assert "node `source`" in done.stderr


def test_a_truncated_parquet_fails_the_run(place, tpch, spark):
    whole = (tpch / "partsupp.parquet").read_bytes()
    (place / "in" / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    file = write(place, line({"operator": "copy"}, {"operator": "parquet_source", "path": "in/cut.parquet"}), EDGES)
    done = run_and_compare(file, place, spark=spark)
    assert done.returncode == 1, done.stderr
    assert file.name in done.stderr
    assert "node `source`" in done.stderr
    assert "cut.parquet" in done.stderr

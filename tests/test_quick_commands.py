"""Commands that need no Spark load little: what loads slowly stays out of their way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import workflows
from engine.store import MetadataStore

FIG1 = Path(workflows.__file__).parent / "fig1.butterfly.yaml"

SLOW_TO_LOAD = {
    "PySide6", "adbc_driver_manager", "duckdb", "networkx", "numpy", "pandas", "polars", "psycopg", "py4j", "pyarrow",
    "pyspark", "rich", "sqlalchemy", "sqlglot",
}  # fmt: skip
LOADED = """
import json, sys
from engine.cli import main
try:
    main()
except SystemExit as end:
    code = end.code or 0
else:
    code = 0
print(json.dumps({"code": code, "loaded": sorted({name.partition(".")[0] for name in sys.modules})}), file=sys.stderr)
"""
DRAW = "raise SystemExit(main(sys.argv[1:]))"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--help"], 0),
        (["run", "--help"], 0),
        (["check", FIG1, "--param", "data_folder={data}"], 0),
        (["check", FIG1, "--param", "data_folder=/nowhere"], 2),
        (["partition", FIG1, "--param", "data_folder={data}"], 0),
        (["plan", FIG1, "--param", "data_folder={data}"], 0),
        (["run", FIG1, "--backend", "simulated", "--param", "data_folder={data}"], 0),
        (["history", "--json"], 0),
        (["operators"], 0),
        (["schema"], 0),
        (["store", "put", FIG1], 0),
        (["store", "import", "{store}"], 0),
        (["bench"], 0),
        (["experiment"], 0),
    ],
    ids=lambda value: value if isinstance(value, int) else " ".join(Path(text).name for text in value[:3]),
)
def test_a_command_without_spark_loads_nothing_slow(arguments, code, tpch, tmp_path):
    store = tmp_path / "store.xml"
    store.write_text("<store version='1'><schemas is='list'/></store>")
    program = [sys.executable, "-c", LOADED, *(str(text).format(data=tpch, store=store) for text in arguments)]
    slow = SLOW_TO_LOAD | {"pydantic", "yaml"} if "--help" in arguments else SLOW_TO_LOAD
    assert slow.isdisjoint(loaded_by(program, code, tmp_path))


def loaded_by(program, code, home):
    """The packages that a program loaded, beside a store that is there already."""
    MetadataStore(str(home / "store.db")).close()
    environment = {**os.environ, "PAPILIO_HOME": str(home), "PAPILIO_STORE": ""}
    done = subprocess.run(program, capture_output=True, text=True, env=environment, check=True)
    answer = json.loads(done.stderr.splitlines()[-1])
    assert answer["code"] == code, done.stderr
    return answer["loaded"]


def test_a_picture_is_left_to_the_designer_which_also_says_what_is_wrong_with_the_file(tmp_path):
    picture, broken = tmp_path / "fig1.svg", tmp_path / "broken.butterfly.yaml"
    program = [sys.executable, "-c", LOADED, "export", FIG1, "--to", "svg", "--output", picture]
    assert (SLOW_TO_LOAD | {"pydantic", "yaml"}).isdisjoint(loaded_by(program, 0, tmp_path))
    assert "<svg" in picture.read_text()
    broken.write_text("papilio: 1\nnodes: {a b: {operator: filter}}\nedges: [{from: a, to: 1}]\n")
    said = []
    for command in (
        ["check"],
        *(["export", "--to", form, "-o", tmp_path / f"broken.{form}"] for form in ("svg", "png")),
    ):
        words = [sys.executable, "-m", "engine", command[0], broken, *command[1:]]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        said.append((done.returncode, done.stderr))
    assert said[0] == said[1] == said[2]
    assert said[1][0] == 2
    assert "`a b` cannot be a node's id" in said[1][1]
    assert not [*tmp_path.glob("broken.svg"), *tmp_path.glob("broken.png")]


@pytest.mark.parametrize("form", ["svg", "png"])
def test_the_designer_draws_a_picture_without_qt(tmp_path, form):
    picture = tmp_path / f"fig1.{form}"
    program = [sys.executable, "-c", LOADED.replace("engine.cli", "designer.export").replace("main()", DRAW)]
    loaded = loaded_by([*program, FIG1, picture], 0, tmp_path)
    assert (SLOW_TO_LOAD | {"shiboken6", "click", "markdown_it"}).isdisjoint(loaded)
    assert (b"Join table" if form == "svg" else b"PNG") in picture.read_bytes()


def test_the_schema_that_is_printed_is_the_one_that_is_written(tmp_path):
    def schema(*words):
        return subprocess.run(
            [sys.executable, "-m", "engine", "schema", *words], capture_output=True, check=True
        ).stdout

    assert schema("--to", tmp_path / "made.json") == b""
    assert schema() == (tmp_path / "made.json").read_bytes()


def test_a_python_that_spark_starts_to_read_a_table_loads_no_operators():
    code = "import engine.spark.adbc, sys, json; print(json.dumps([name.partition('.')[0] for name in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"pydantic", "yaml", "pandas"}.isdisjoint(json.loads(done.stdout))

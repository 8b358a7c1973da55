"""Commands that need no Spark load little: what loads slowly stays out of their way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import workflows

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


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--help"], 0),
        (["run", "--help"], 0),
        (["check", FIG1, "--param", "data_folder={data}"], 0),
        (["check", FIG1, "--param", "data_folder=/nowhere"], 2),
        (["partition", FIG1, "--param", "data_folder={data}"], 0),
        (["plan", FIG1, "--param", "data_folder={data}"], 0),
        (["operators"], 0),
        (["bench"], 0),
        (["experiment"], 0),
    ],
    ids=lambda value: value if isinstance(value, int) else " ".join(Path(text).name for text in value[:3]),
)
def test_a_command_without_spark_loads_nothing_slow(arguments, code, tpch, tmp_path):
    program = [sys.executable, "-c", LOADED, *(str(text).format(data=tpch) for text in arguments)]
    environment = {**os.environ, "PAPILIO_HOME": str(tmp_path), "PAPILIO_STORE": ""}
    done = subprocess.run(program, capture_output=True, text=True, env=environment, check=True)
    answer = json.loads(done.stderr.splitlines()[-1])
    assert answer["code"] == code, done.stderr
    assert SLOW_TO_LOAD.isdisjoint(answer["loaded"])
    if "--help" in arguments:
        assert {"pydantic", "yaml"}.isdisjoint(answer["loaded"])


def test_a_python_that_spark_starts_to_read_a_table_loads_no_operators():
    code = "import engine.spark.adbc, sys, json; print(json.dumps([name.partition('.')[0] for name in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"pydantic", "yaml", "pandas"}.isdisjoint(json.loads(done.stdout))

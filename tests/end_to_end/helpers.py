"""Running the real program, and DuckDB beside it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
import unittest.mock
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
from pyspark.sql import SparkSession

from engine.cli import main
from engine.spark.session import lent

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = ROOT / "workflows"


def papilio(
    *arguments: object, home: Path, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess:
    """Run `papilio` to its end in a process of its own, with a home of its own."""
    return subprocess.run(
        [sys.executable, "-m", "engine", *map(str, arguments)],
        cwd=ROOT,
        check=False,
        env=environment_for(home, environment),
        capture_output=True,
        text=True,
        timeout=300,
    )


def papilio_here(
    *arguments: object,
    home: Path,
    spark: SparkSession | None = None,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess:
    """The same command line in this process, where the start of a process is not what is tested.

    A `run` takes `spark`, the session that the tests share.
    """
    words = [str(argument) for argument in arguments]
    output, errors = io.StringIO(), io.StringIO()
    code = 0
    with contextlib.ExitStack() as here:
        here.enter_context(unittest.mock.patch.dict(os.environ, environment_for(home, environment)))
        here.enter_context(contextlib.redirect_stdout(output))
        here.enter_context(contextlib.redirect_stderr(errors))
        if spark is not None:
            here.enter_context(lent(spark))
            words += ["--master", spark.sparkContext.master]
        try:
            main(words)
        except SystemExit as end:
            code = int(end.code or 0)
    return subprocess.CompletedProcess(words, code, output.getvalue(), errors.getvalue())


def environment_for(home: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    # On a handful of rows Java's quick compiler alone is done sooner.
    quick = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"}
    return {**os.environ, **quick, "PAPILIO_HOME": str(home), "PAPILIO_STORE": "", **(extra or {})}


def answer(done: subprocess.CompletedProcess) -> Any:
    """The JSON a command printed."""
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def write(folder: Path, nodes: Mapping[str, Any], edges: list[str], **more: Any) -> Path:
    """A workflow file from its nodes (`operator` and settings) and edges (`a -> b.in`)."""
    import yaml

    document = {
        "papilio": 1,
        "name": more.pop("name", "test"),
        **more,
        "nodes": {
            id_: {"operator": settings["operator"],
                  "settings": {key: value for key, value in settings.items() if key != "operator"}}
            for id_, settings in nodes.items()
        },
        "edges": [dict(zip(("from", "to"), edge.split(" -> "), strict=True)) for edge in edges],
    }  # fmt: skip
    file = folder / "test.butterfly.yaml"
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    return file


def parquet_rows(folder: Path) -> list[tuple]:
    """A target's rows as DuckDB reads them, in an order of their own."""
    with duckdb.connect() as connection:
        return sorted(connection.sql(f"SELECT * FROM read_parquet('{folder}/*.parquet')").fetchall(), key=repr)


def snapshot(folder: Path) -> dict[str, bytes]:
    """Every file below a folder with its content, to see that nothing was touched."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }

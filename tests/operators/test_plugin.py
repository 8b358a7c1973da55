"""The sample plugin: really installed, found by its entry point, and run on Spark."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest

from tests.operators.harness import by_key, findings, run

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "packaging" / "plugin-example"


def mask_text(**settings: Any) -> Any:
    """The sample's operator, without taking it into the catalogue that other tests share."""
    spec = importlib.util.spec_from_file_location("papilio_mask_example", EXAMPLE / "papilio_mask.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module.MaskText(**settings)


def can_build() -> bool:
    """Whether a package can be built without the net: setuptools makes wheels on its own from 70.1."""
    try:
        return tuple(int(part) for part in version("setuptools").split(".")[:2]) >= (70, 1)
    except PackageNotFoundError:
        return False


@pytest.mark.skipif(not can_build(), reason="setuptools 70.1 or newer is needed to build the sample plugin")
def test_the_sample_plugin_is_found_once_it_is_installed(tmp_path):
    shutil.copytree(EXAMPLE, tmp_path / "source")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    install += ["--disable-pip-version-check", "--target", str(tmp_path / "site"), str(tmp_path / "source")]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr

    code = """
import json
from engine.model.binding import bind
from engine.model.workflow import Workflow
from engine.operators import catalogue

workflow = Workflow.model_validate({
    "papilio": 1,
    "nodes": {
        "days": {"operator": "date_dimension", "settings": {"first_day": "2026-01-01", "last_day": "2026-01-02"}},
        "mask": {"operator": "mask_text", "settings": {"columns": ["day_nam"]}},
    },
    "edges": [{"from": "days", "to": "mask"}],
})
found = catalogue()
bound = bind(workflow, found)
print(json.dumps({"module": found["mask_text"].__module__, "problems": [problem.text() for problem in bound.problems],
                  "schema": bound.schemas["mask", "out"]}))
"""
    paths = [str(tmp_path / "site"), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert answer.returncode == 0, answer.stderr
    told = json.loads(answer.stdout)
    assert told["module"] == "papilio_mask"
    assert any("no column `day_nam`; did you mean `day_name`?" in problem for problem in told["problems"])
    assert told["schema"]["day_name"] == "string"


def test_the_sample_plugin_masks_text(spark):
    rows = spark.createDataFrame([("1234567890", "ab"), ("ab", None), ("", "äöü€ß")], "`card.No` string, b string")
    result = run(spark, mask_text(columns=["card.No", "b"], sign="#"), {"in": rows})
    assert by_key(result["out"]) == by_key([("######7890", "ab"), ("ab", None), ("", "#öü€ß")])


def test_the_sample_plugin_masks_only_text():
    assert findings(mask_text(columns=["n"]), in_={"n": "int"}) == ["`n` is a `int`, and only text can be masked"]

"""The component manager: nothing is left out of the tests or of the help."""

from __future__ import annotations

import subprocess
import sys

import pytest

from engine.cli.operators import help_page
from engine.operators import catalogue
from tests.end_to_end.helpers import ROOT

TESTS = "\n".join(
    file.read_text() for room in ("operators", "spark") for file in (ROOT / "tests" / room).glob("test_*.py")
)


@pytest.mark.parametrize("name", list(catalogue()))
def test_every_operator_has_a_test_on_spark(name):
    if name == "staging":
        pytest.skip("the runner keeps it; tests/end_to_end runs it")
    # Files of several formats are tested by one test: `f"{kind}_source"` over "parquet" and "orc".
    kind, _, role = name.rpartition("_")
    assert f'"{name}"' in TESTS or (f'"{kind}"' in TESTS and f"}}_{role}" in TESTS)


def test_a_module_is_loaded_when_one_of_its_operators_is_asked_for_and_none_is_missed():
    code = (
        "import sys; from engine.operators import catalogue, names_in; found = catalogue();"
        "found['filter']; loaded = {name for name in sys.modules if name.startswith('engine.operators.')};"
        "assert 'engine.operators.rows' in loaded and 'engine.operators.databases' not in loaded, loaded;"
        "known = len(found); assert sorted(found) == list(found) and known == len(list(found)) > 50;"
        "homes = {found[name].__module__ for name in found};"
        "assert all(sorted(names_in(home)) == sorted(n for n in found if found[n].__module__ == home) for home in homes)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_help_page_is_the_one_the_operators_make():
    page = (ROOT / "resources" / "help" / "operators.md").read_text()
    assert page == help_page(dict(catalogue())), "run: papilio operators --to resources/help/operators.md"

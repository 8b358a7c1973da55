"""Paths stay inside their roots, whatever they are written like."""

from __future__ import annotations

import pytest

from engine.model.binding import bind
from engine.model.paths import OutsideRoots, resolve_path, resolve_roots
from engine.model.workflow import Workflow
from engine.operators import catalogue


@pytest.fixture
def base(tmp_path):
    (tmp_path / "flow" / "data").mkdir(parents=True)
    (tmp_path / "secret").mkdir()
    (tmp_path / "flow" / "data" / "leak").symlink_to(tmp_path / "secret")
    (tmp_path / "flow" / "data" / "round").symlink_to(tmp_path / "flow" / "data" / "round")
    return tmp_path / "flow"


@pytest.mark.parametrize(
    "text",
    ["../secret/x", "data/../../secret", "data/leak/x", "/etc/passwd", "file:///etc/passwd", "FILE:/etc/passwd",
     "hdfs://host/x", "s3a://bucket/x", "data/*.csv", "data/{a,b}", "x\0y", "data/" + "x" * 256, "data/" + "x/" * 3000, "data/round/x", "flow2/x/../../../.."],
)  # fmt: skip
def test_a_path_that_leads_out_is_refused(text, base):
    with pytest.raises(OutsideRoots):
        resolve_path(text, resolve_roots({"data": "data"}, base), base)


def test_a_path_inside_a_root_is_resolved(base):
    roots = resolve_roots({"data": "data"}, base)
    assert resolve_path("data/a/./b.csv", roots, base) == base / "data" / "a" / "b.csv"
    assert resolve_path("data", roots, base) == base / "data"


def test_a_sibling_whose_name_begins_like_the_root_is_outside(base):
    with pytest.raises(OutsideRoots):
        resolve_path("database/x", resolve_roots({"data": "data"}, base), base)


def test_without_roots_the_file_s_own_folder_is_the_root(base):
    assert resolve_path("anything/x", resolve_roots({}, base), base) == base / "anything" / "x"
    with pytest.raises(OutsideRoots):
        resolve_path("../x", resolve_roots({}, base), base)


def test_a_root_that_is_an_address_is_refused(base):
    with pytest.raises(OutsideRoots, match="a folder, not an address"):
        resolve_roots({"data": "file:///tmp"}, base)


def test_a_problem_of_a_root_or_a_parameter_says_which_and_reads_as_before():
    workflow = Workflow.model_validate(
        {"parameters": {"day": 1}, "roots": {"day": "in", "data": "${nobody}"}, "nodes": {"a": {"operator": "copy"}}}
    )
    found = {problem.setting: problem for problem in bind(workflow, catalogue()).problems if problem.node is None}
    assert set(found) == {"parameters.day", "roots.data"}
    assert all(problem.text() == problem.message for problem in found.values())

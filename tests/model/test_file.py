"""Workflow files: strict reading, lossless and stable writing."""

from __future__ import annotations

import os
import stat

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.errors import BadInput
from engine.model.file import load, save, to_yaml, workflow_from
from engine.model.yamldata import read_yaml, write_yaml

SMALL = """\
papilio: 1
name: small
roots: {data: data}
parameters: {limit: 3}
nodes:
  b: {operator: filter, settings: {condition: "a > ${limit}"}, colour: red}
  a: {operator: parquet_source, title: Source, settings: {path: data/x.parquet}}
edges:
- {from: a, to: b.in, weight: 7}
layout: {nodes: {a: [0, 0], b: [100, 20]}}
future: {kept: [1, 2]}
"""


def reload(text, tmp_path):
    file = tmp_path / "w.butterfly.yaml"
    file.write_text(text)
    return load(file)


def test_a_file_is_written_sorted_and_unknown_fields_survive(tmp_path):
    text = to_yaml(reload(SMALL, tmp_path).workflow)
    assert text == (
        "papilio: 1\nname: small\n"
        "parameters:\n  limit:\n    default: 3\n"
        "roots:\n  data: data\n"
        "nodes:\n"
        "  a:\n    operator: parquet_source\n    title: Source\n    settings:\n      path: data/x.parquet\n"
        "  b:\n    operator: filter\n    settings:\n      condition: a > ${limit}\n    colour: red\n"
        "edges:\n- {from: a, to: b.in, weight: 7}\n"
        "future:\n  kept:\n  - 1\n  - 2\n"
        "layout:\n  nodes:\n    a: [0, 0]\n    b: [100, 20]\n"
    )
    assert to_yaml(reload(text, tmp_path).workflow) == text


def test_moving_a_node_changes_the_layout_section_only(tmp_path):
    workflow = reload(SMALL, tmp_path).workflow
    before = to_yaml(workflow)
    content = workflow.content_hash()
    workflow.layout["nodes"]["a"] = [55, 66]
    changed = [line for line in to_yaml(workflow).splitlines() if line not in before.splitlines()]
    assert changed == ["    a: [55, 66]"]
    assert workflow.content_hash() == content


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("papilio: 1\nnodes: [", "w.butterfly.yaml:3:1: broken YAML"),
        ("papilio: 1\n\tnodes: {}", "w.butterfly.yaml:2:1: broken YAML"),
        ("- a\n- b", "must hold a mapping"),
        ("", "must hold a mapping"),
        ("nodes: {}", "no `papilio: 1` line"),
        ("papilio: 2\nnodes: {}", "file format 2, and this Papilio knows formats up to 1"),
        ("papilio: new\nnodes: {}", "must be the number of the file format"),
        ("papilio: 1\nnodes: [a, b]", "`nodes`: Input should be a valid dictionary"),
        ("papilio: 1\nnodes:\n  a: {operator: 3}", ":3: node `a`, field `operator`: Input should be a valid string (it is 3)"),
        ("papilio: 1\nnodes:\n  a b: {operator: x}", "`a b` cannot be a node's id"),
        ("papilio: 1\nnodes:\n  a: {}", ":3: node `a`, field `operator`: Field required"),
        ("papilio: 1\nnodes: {}\nedges: [{from: a}]", "Field required"),
        ("papilio: 1\nnodes:\n  a: {operator: x}\n  a: {operator: y}", ":4: the key `a` stands twice"),
        ("papilio: 1\nnodes: &x {}\nlayout: *x", "anchors and aliases are not used"),
        ("papilio: 1\nname: !!python/object/apply:os.system [ls]", "the tag"),
        ("papilio: 1\n---\npapilio: 1", "a second YAML document"),
        ("papilio: 1\nlayout: " + "[" * 500 + "]" * 500, "levels deep"),
    ],
)  # fmt: skip
def test_a_file_of_wrong_form_is_refused_with_its_place_and_reason(text, message, tmp_path):
    with pytest.raises(BadInput) as error:
        reload(text, tmp_path)
    assert message in str(error.value)


def test_a_missing_file_names_the_near_one(tmp_path):
    (tmp_path / "sales.butterfly.yaml").write_text("papilio: 1")
    with pytest.raises(BadInput, match=r"no such file; did you mean `sales\.butterfly\.yaml`"):
        load(tmp_path / "sale.butterfly.yaml")


def test_a_file_that_is_no_text_is_refused(tmp_path):
    (tmp_path / "x.butterfly.yaml").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(BadInput, match="not UTF-8"):
        load(tmp_path / "x.butterfly.yaml")


def test_saving_replaces_in_one_step_and_keeps_permissions_and_links(tmp_path):
    real, link = tmp_path / "real.yaml", tmp_path / "link.yaml"
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(real)
    save(workflow_from({"papilio": 1, "name": "x"}, "x"), link)
    assert link.is_symlink()
    assert real.read_text() == "papilio: 1\nname: x\n"
    assert stat.S_IMODE(os.stat(real).st_mode) == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.yaml", "real.yaml"]


_SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.sampled_from(["no", "yes", "null", "~", "1", "1.5", ".inf", "true", "- a", "a: b", "# x", "", " x", "x\n", "on", "1:30", "0x1F", "=", "<<"]),
)  # fmt: skip
_KEYS = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
_DATA = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=12,
)


@given(_DATA)
@example({"large": 1e16, "small": 5e-324, "minus": -1e300})
def test_any_plain_data_comes_back_from_its_yaml(data):
    assert read_yaml(write_yaml(data), "x")[0] == data


def test_hints_of_a_node_survive_and_wrong_ones_are_named(tmp_path):
    text = "papilio: 1\nnodes:\n  a: {operator: copy, hints: {selectivity: 0.8, cost_us: 1.5, rows: 100000}}\n"
    workflow = reload(text, tmp_path).workflow
    hints = workflow.nodes["a"].hints
    assert hints is not None
    assert (hints.selectivity, hints.cost_us, hints.rows) == (0.8, 1.5, 100_000)
    assert reload(to_yaml(workflow), tmp_path).workflow == workflow
    assert "hints" not in to_yaml(reload("papilio: 1\nnodes:\n  a: {operator: copy}\n", tmp_path).workflow)
    for wrong in ("selectivity: -1", "rows: many", "cost_us: .inf"):
        with pytest.raises(BadInput, match=wrong.split(":")[0]):
            reload(f"papilio: 1\nnodes:\n  a: {{operator: copy, hints: {{{wrong}}}}}\n", tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nodes:\n  a: {operator: copy}\n  ä b: {operator: copy}\n", ":4: `nodes`: `ä b` cannot be a node's id"),
        (
            "edges:\n- {from: a.out.x, to: b}\n",
            ":2: `edges.0.from`: `a.out.x` is no end of an edge; write `node` or `node.port`",
        ),
    ],
)
def test_what_has_not_the_form_is_told_with_its_line_and_how_to_write_it(tmp_path, text, said):
    file = tmp_path / "odd.butterfly.yaml"
    file.write_text("papilio: 1\n" + text)
    with pytest.raises(BadInput) as refused:
        load(file)
    assert f"{file}{said}" in str(refused.value)


def test_the_columns_of_a_source_keep_their_order_and_another_order_is_another_workflow(tmp_path):
    text = "papilio: 1\nnodes:\n  a: {{operator: tbl_source, settings: {{path: x.tbl, columns: {{{columns}}}}}}}\n"
    first = reload(text.format(columns="z: int, b: string"), tmp_path).workflow
    again = reload(to_yaml(first), tmp_path).workflow
    assert list(again.nodes["a"].settings) == ["columns", "path"]
    assert list(again.nodes["a"].settings["columns"]) == ["z", "b"]
    other = reload(text.format(columns="b: string, z: int"), tmp_path).workflow
    assert first.content_hash() == again.content_hash() != other.content_hash()

"""The shipped JSON Schema: an editor accepts what the program accepts and shows what it refuses."""

from __future__ import annotations

import json

import jsonschema
import pytest
import yaml

from engine.model.jsonschema import file_schema
from engine.operators import catalogue
from tests.end_to_end.helpers import ROOT, WORKFLOWS

SHIPPED = ROOT / "resources" / "schema" / "butterfly.schema.json"


@pytest.fixture(scope="module")
def validator():
    return jsonschema.Draft202012Validator(json.loads(SHIPPED.read_text()))


def test_the_shipped_schema_is_the_one_the_operators_make():
    text = json.dumps(file_schema(catalogue()), indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    assert SHIPPED.read_text() == text, "run: papilio schema --to resources/schema/butterfly.schema.json"


@pytest.mark.parametrize("file", sorted(WORKFLOWS.rglob("*.butterfly.yaml")), ids=lambda file: file.name)
def test_shipped_workflows_are_valid(file, validator):
    assert not list(validator.iter_errors(yaml.safe_load(file.read_text())))


@pytest.mark.parametrize(
    "node",
    [
        {"operator": "filter", "settings": {"condtion": "a"}},
        {"operator": "filter", "settings": {}},
        {"operator": "limit", "settings": {"rows": "many"}},
        {"settings": {}},
    ],
)
def test_what_the_program_refuses_is_marked_in_the_editor(node, validator):
    assert list(validator.iter_errors({"papilio": 1, "nodes": {"n": node}}))


def test_a_number_may_be_a_parameter_and_a_plugin_s_operator_is_fine(validator):
    nodes = {
        "a": {"operator": "limit", "settings": {"rows": "${n}"}},
        "b": {"operator": "my_plugin", "settings": {"x": 1}},
    }
    assert not list(validator.iter_errors({"papilio": 1, "parameters": {"n": 5}, "nodes": nodes}))


def test_every_operator_and_every_setting_says_what_it_is_for():
    for name, operator in catalogue().items():
        assert operator.__doc__, name
        assert operator.family, name
        for setting, info in operator.model_fields.items():
            assert info.description, f"{name}.{setting} has no description"

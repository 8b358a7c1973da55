"""`papilio generate`: workflows of asked size and shape, valid, and the same for the same seed."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import BadInput
from engine.experiments.data import generate_tpch
from engine.experiments.generate import Shape, experiment_workflows, generate
from engine.model.binding import Bound, bind
from engine.model.file import load, to_yaml
from engine.model.operator import Category, Role
from engine.model.shape import shape
from engine.model.workflow import Workflow
from engine.operators import catalogue
from engine.partition.flow import flow_of
from engine.partition.subflows import break_into_subflows, with_readers_and_writers
from engine.store.sources import SourceSchemas
from tests.end_to_end.helpers import papilio_here

ARCHETYPES = {
    Shape.LINE: "line",
    Shape.WISHBONE: "wishbone",
    Shape.PRIMARY: "primary flow",
    Shape.TREE: "tree",
    Shape.FORK: "fork",
    Shape.BUTTERFLY: "balanced butterfly",
    Shape.RIGHT_DEEP: "right-deep hierarchy",
}


@pytest.fixture(scope="module")
def tpch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "tpch"
    generate_tpch(folder, 0.001)
    return folder


def bound(workflow: Workflow, data: Path) -> Bound:
    parameters = {"data_folder": str(data), "warehouse_folder": str(data / "out")}
    return bind(workflow, catalogue(), parameters=parameters, discover=SourceSchemas().discover)


@settings(max_examples=60)
@given(nodes=st.integers(12, 90), kind=st.sampled_from(Shape), seed=st.integers(0, 1000))
def test_it_has_the_size_and_the_shape_asked_for_and_no_problems(tpch, nodes, kind, seed):
    made = bound(generate(nodes, kind, seed), tpch)
    assert [str(problem) for problem in made.problems] == []
    assert [port for port, schema in made.schemas.items() if schema is None] == []
    assert len(made.order) == nodes
    assert shape(made).archetype.value == ARCHETYPES[kind]


def test_the_same_seed_makes_the_same_file_and_another_seed_another():
    one, again, other = (to_yaml(generate(40, Shape.BUTTERFLY, seed)) for seed in (7, 7, 8))
    assert one == again
    assert one != other


@pytest.mark.parametrize("kind", Shape)
def test_every_shape_has_a_least_size_and_says_it(kind):
    with pytest.raises(BadInput, match=f"--nodes 2: a {kind.value} takes at least") as error:
        generate(2, kind)
    least = int(str(error.value).split()[-1])
    assert len(generate(least, kind).nodes) == least


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Shape.BUTTERFLY, Shape.PRIMARY])
def test_ten_thousand_nodes_are_valid_and_partition(kind, tpch):
    made = bound(generate(10_000, kind), tpch)
    assert made.problems == []
    subflows = break_into_subflows(with_readers_and_writers(flow_of(made)))
    assert {node for subflow in subflows.subflows for node in subflow.nodes} >= set(made.order)
    assert len(subflows.strata) >= 3
    with pytest.raises(BadInput, match="10,000 are the most"):
        generate(10_001, kind)


def test_the_experiment_has_twenty_workflows_of_20_to_45_nodes_with_memory_intensive_cores(tpch):
    workflows = experiment_workflows()
    assert len(workflows) == len({workflow.name for workflow in workflows}) == 20
    sizes = [len(workflow.nodes) for workflow in workflows]
    assert min(sizes) >= 20
    assert max(sizes) <= 45
    for workflow in workflows:
        made = bound(workflow, tpch)
        assert made.problems == []
        heavy = [node for node in made.order if made.operators[node].category is not Category.ROW_SYNCHRONIZED]
        lookups = [node for node in made.order if made.operators[node].name == "lookup"]
        assert len(heavy) + len(lookups) >= 3
        assert any(made.role(node) is Role.TARGET for node in made.order)


def test_the_command_writes_a_file_that_opens_and_never_over_another(tmp_path):
    file = tmp_path / "made.butterfly.yaml"
    done = papilio_here("generate", "--nodes", 25, "--shape", "tree", "--seed", 4, "--to", file, home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "25 nodes" in done.stdout
    assert load(file).workflow.content_hash() == generate(25, Shape.TREE, 4).content_hash()
    again = papilio_here("generate", "--nodes", 30, "--to", file, home=tmp_path)
    assert again.returncode == 2
    assert "is there already" in again.stderr
    assert len(load(file).workflow.nodes) == 25
    wrong = papilio_here("generate", "--nodes", 30, "--to", tmp_path / "made.yaml", home=tmp_path)
    assert wrong.returncode == 2
    assert ".butterfly.yaml" in wrong.stderr

"""Every shipped workflow: whole, well laid out, cut as its paper says, and right by DuckDB's answer.

`answers/NAME.sql` says in SQL what the workflow NAME loads: a view for each target, called as the target's folder is
(with `_` before it where a source has that name already).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from engine.experiments.data import TPCH_TABLES
from engine.experiments.ssb import SSB_TABLES, generate_ssb
from engine.model.binding import Bound, bind
from engine.model.file import load
from engine.model.operator import Role, Target
from engine.operators import catalogue
from engine.partition.flow import flow_of
from engine.partition.trees import execution_trees
from engine.store.sources import SourceSchemas
from tests.end_to_end.helpers import WORKFLOWS, papilio_here

ANSWERS = Path(__file__).parent / "answers"
SHIPPED = sorted(path.name.removesuffix(".butterfly.yaml") for path in WORKFLOWS.glob("*.butterfly.yaml"))
ON_SSB = [name for name in SHIPPED if name.startswith("ssb_")]

#: Room a node takes on the canvas, and the air it needs.
WIDTH, HEIGHT = 200, 100


@pytest.fixture(scope="session")
def ssb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SSB at the smallest scale at which every query has an answer."""
    folder = tmp_path_factory.mktemp("ssb") / "data"
    generate_ssb(folder, 0.1)
    return folder


@pytest.fixture
def data_of(tpch: Path, ssb: Path):  # type: ignore[no-untyped-def]
    return lambda name: ssb if name in ON_SSB else tpch


def bound_as(name: str, data: Path) -> Bound:
    file = load(WORKFLOWS / f"{name}.butterfly.yaml")
    return bind(file, catalogue(), parameters={"data_folder": str(data)}, discover=SourceSchemas().discover)


# ---------------------------------------------------------------- whole and well laid out


@pytest.mark.parametrize("name", SHIPPED)
def test_it_has_no_problems_and_every_schema_is_known(name, data_of):
    bound = bound_as(name, data_of(name))
    assert [str(problem) for problem in bound.problems] == []
    assert [port for port, schema in bound.schemas.items() if schema is None] == []


@pytest.mark.parametrize("name", SHIPPED)
def test_it_says_what_it_is(name):
    workflow = load(WORKFLOWS / f"{name}.butterfly.yaml").workflow
    assert workflow.name == name
    assert len(workflow.description or "") > 60
    assert [id_ for id_, node in workflow.nodes.items() if not node.title] == []
    undocumented = [key for key, parameter in workflow.parameters.items() if not parameter.description]
    assert undocumented == []


@pytest.mark.parametrize("name", SHIPPED)
def test_its_layout_flows_from_left_to_right_without_overlaps(name):
    workflow = load(WORKFLOWS / f"{name}.butterfly.yaml").workflow
    places = {id_: tuple(place) for id_, place in workflow.layout["nodes"].items()}
    assert places.keys() == workflow.nodes.keys()
    for edge in workflow.edges:
        assert places[edge.source][0] + WIDTH <= places[edge.target][0], f"{edge.source} stands left of {edge.target}"
    for id_, (x, y) in places.items():
        near = [
            other
            for other, (right, below) in places.items()
            if other != id_ and abs(x - right) < WIDTH and abs(y - below) < HEIGHT
        ]
        assert near == [], f"{id_} overlaps"


# ---------------------------------------------------------------- cut as the papers say


def trees_of(name: str, data: Path) -> list[int]:
    return [len(tree.nodes) for tree in execution_trees(flow_of(bound_as(name, data))).trees]


def test_q4_1_has_the_three_execution_trees_of_the_paper(ssb):
    bound = bound_as("ssb_q41", ssb)
    trees = execution_trees(flow_of(bound))
    assert [tree.nodes for tree in trees.trees] == [
        ("lineorder", "customer", "supplier", "part", "date", "found", "needed", "value"),
        ("by",),
        ("sorted", "answer"),
    ]
    assert set(trees.edges) == {("T1", "T2"), ("T2", "T3")}


@pytest.mark.parametrize("name", ON_SSB)
def test_every_query_is_one_tree_of_lookups_before_its_sum(name, ssb):
    bound = bound_as(name, ssb)
    lookups = [node for node in bound.order if bound.operators[node].name == "parquet_lookup"]
    sizes = trees_of(name, ssb)
    assert sizes[0] == len(lookups) + 4
    assert sizes[1:] in ([2], [1, 2])


# ---------------------------------------------------------------- right


@pytest.fixture(scope="module")
def one_session(spark) -> Iterator[None]:
    """Runs of this module share the tests' Spark session instead of starting one each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("engine.spark.runner.open_session", lambda settings: spark)
        patch.setattr("engine.spark.runner.close_session", lambda session: None)
        yield


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.usefixtures("one_session")
def test_its_targets_hold_what_duckdb_computes(name, data_of, tmp_path):
    data, out = data_of(name), tmp_path / "out"
    done = papilio_here(
        "run", WORKFLOWS / f"{name}.butterfly.yaml", "--json", "--param", f"data_folder={data}",
        "--param", f"warehouse_folder={out}", "--run-dir", tmp_path / "run", home=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    targets = json.loads(done.stdout)["targets"]
    bound = bound_as(name, data)
    assert sorted(targets) == sorted(node for node in bound.order if bound.role(node) is Role.TARGET)
    with duckdb.connect() as oracle:
        for table in SSB_TABLES if name in ON_SSB else TPCH_TABLES:
            oracle.execute(f"CREATE VIEW {table} AS SELECT * FROM '{data}/{table}.parquet'")
        sources = views_in(oracle)
        oracle.execute((ANSWERS / f"{name}.sql").read_text())
        for node, told in targets.items():
            operator = bound.operators[node]
            assert isinstance(operator, Target)
            wanted = Path(told["path"]).name.partition(".")[0]
            wanted = f"_{wanted}" if wanted in sources else wanted
            kind = operator.name.removesuffix("_target")
            read = f"read_{kind}('{told['path']}{'/*.parquet' if kind == 'parquet' else ''}')"
            assert_same(oracle, node, read, wanted)
            rows = oracle.execute(f"FROM {wanted}").fetchall()
            assert told["rows"] == len(rows) > 0
            if kind == "csv":  # a report: its lines stand in their order
                assert oracle.execute(f"FROM {read}").fetchall() == rows


def views_in(oracle: duckdb.DuckDBPyConnection) -> set[str]:
    return {row[0] for row in oracle.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()}


def assert_same(oracle: duckdb.DuckDBPyConnection, node: str, found: str, wanted: str) -> None:
    """The same columns in the same order, and the same rows as often."""
    columns = [[row[0] for row in oracle.execute(f"DESCRIBE FROM {of}").fetchall()] for of in (found, wanted)]
    assert columns[0] == columns[1], node
    for one, other in ((found, wanted), (wanted, found)):
        rows = oracle.execute(f"FROM {one} EXCEPT ALL FROM {other}").fetchall()
        assert rows == [], f"{node}: {len(rows)} rows of {one} are not in {other}"


def test_answers_that_nobody_asks_for_are_not_kept():
    assert {path.stem for path in ANSWERS.glob("*.sql")} == set(SHIPPED)

"""A workflow's operators as the elastic transformation: batches are divided, references are made once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from engine.cli._workflow import Given
from engine.elastic.replay import Replay
from engine.spark.packs import PackStore
from engine.spark.star_flow import StarFlow
from tests.end_to_end.helpers import WORKFLOWS, write

PACKS, PACK_ROWS = 13, 100


@pytest.fixture
def shipped() -> str:
    """How a line was shipped, as an expression."""
    return "l_shipmode"


@pytest.fixture
def flow(spark, tpch, tmp_path, shipped) -> Iterator[StarFlow]:
    document = yaml.safe_load((WORKFLOWS / "elastic_tpch_to_ssb.butterfly.yaml").read_text())
    document["parameters"]["data_folder"]["default"] = str(tpch)
    document["parameters"]["warehouse_folder"]["default"] = str(tmp_path / "warehouse")
    document["nodes"]["measures"]["settings"]["columns"][-1] = {"name": "lo_shipmode", "expression": shipped}
    file = tmp_path / "live.butterfly.yaml"
    file.write_text(yaml.safe_dump(document))
    bound = Given(file).open()
    bound.raise_errors()
    made = StarFlow(bound, spark, "lineitem", "ssb_lineorder")
    yield made
    made.close()


@pytest.fixture
def packs(tpch, tmp_path) -> list[Path]:
    store = PackStore("test", tmp_path / "packs", budget_bytes=0)
    taken = Replay(tpch / "lineitem.parquet", store, PACK_ROWS).take(PACKS * PACK_ROWS)
    return [store.path(pack) for pack, _ in taken]


@pytest.mark.parametrize(
    ("number", "shares"), [(2, [1, 1]), (3, [1, 2]), (4, [2, 2]), (8, [2, 2, 2, 2]), (13, [2] * 5 + [3])]
)
def test_a_batch_is_divided_alike_over_the_cores_also_where_it_is_smaller_than_its_references(
    number, shares, flow, spark, packs, tpch, tmp_path
):
    assert spark.sparkContext.defaultParallelism == 2
    assert packs[0].stat().st_size * number < (tpch / "orders.parquet").stat().st_size
    batch = flow.batches(tmp_path / "batch")(packs[:number]).rdd
    found = batch.mapPartitions(lambda rows: [sum(1 for _ in rows)]).collect()
    assert sorted(found) == [share * PACK_ROWS for share in shares]


def test_what_batches_are_joined_with_is_made_once_and_let_go_of(flow, packs):
    whole = {(row.lo_orderkey, row.lo_linenumber): row for row in flow.transform(*packs).collect()}
    parts = [row for pack in packs for row in flow.transform(pack).collect()]
    assert len(parts) == len(whole) == PACKS * PACK_ROWS
    assert all(whole[row.lo_orderkey, row.lo_linenumber] == row for row in parts)
    # The cheapest offer of each part and supplier is found by sorting them all: not again for each batch.
    _, _, kept = flow.transform(*packs)._jdf.queryExecution().executedPlan().toString().rpartition("BroadcastExchange")
    assert 0 < kept.index("InMemoryRelation") < kept.index("Sort")
    flow.close()
    assert "InMemoryRelation" not in flow.transform(*packs)._jdf.queryExecution().executedPlan().toString()


def test_batches_that_pass_one_plan_are_those_that_were_given(flow, packs, tmp_path):
    batch = flow.batches(tmp_path / "batch")
    for given in (packs[:1], packs[1:4], packs[:1]):
        assert sorted(batch(given).collect()) == sorted(flow.transform(*given).collect())


@pytest.mark.parametrize("shipped", ["uuid()"])
def test_chance_falls_anew_for_each_batch(flow, packs, tmp_path):
    batch = flow.batches(tmp_path / "batch")
    drawn = [row.lo_shipmode for _ in range(2) for row in batch(packs[:1]).collect()]
    assert len(set(drawn)) == len(drawn) == 2 * PACK_ROWS


def test_a_reference_that_comes_of_the_batch_itself_is_made_for_each(spark, packs, tpch, tmp_path):
    nodes = {
        "lines": {"operator": "parquet_source", "path": str(tpch / "lineitem.parquet")},
        "firsts": {"operator": "filter", "condition": "l_linenumber = 1"},
        "first": {
            "operator": "lookup",
            "keys": [{"main": "l_orderkey", "reference": "l_orderkey"}],
            "take": [{"column": "l_partkey", "name": "first_partkey"}],
        },
        "facts": {"operator": "parquet_target", "path": "out/facts"},
    }
    edges = ["lines -> firsts.in", "lines -> first.main", "firsts.match -> first.reference", "first -> facts.in"]
    bound = Given(write(tmp_path, nodes, edges, roots={"here": ".", "data": str(tpch)})).open()
    bound.raise_errors()
    batch = StarFlow(bound, spark, "lines", "facts").batches(tmp_path / "batch")
    for given in (packs[:1], packs[1:2]):
        rows = batch(given).collect()
        firsts = {row.l_orderkey: row.l_partkey for row in rows if row.l_linenumber == 1}
        assert len(rows) == PACK_ROWS
        assert len(firsts) > 1
        assert [row.first_partkey for row in rows] == [firsts.get(row.l_orderkey) for row in rows]

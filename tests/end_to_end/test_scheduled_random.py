"""Workflows made by chance, run in packs by chance: the same targets as the fused run, and no row lost on the way."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from engine.experiments.generate import Shape, generate
from engine.model.binding import bind
from engine.model.file import load, save
from engine.operators import catalogue
from tests.end_to_end.helpers import answer, papilio_here, parquet_rows


def chances(
    nodes: st.SearchStrategy[int], pack_rows: list[int], shapes: Iterable[Shape] = Shape
) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "shape": st.sampled_from(list(shapes)),
            "nodes": nodes,
            "seed": st.integers(1, 10_000),
            "granularity": st.sampled_from(["operator", "subflow", "tree"]),
            "policy": st.sampled_from(["rr", "mc", "mm", "mixed"]),
            "queue_packs": st.sampled_from([1, 2, 5]),
            "pack_rows": st.sampled_from(pack_rows),
            "degree": st.sampled_from([1, 3]),
        }
    )


cases = chances(st.integers(11, 16), [3_000, 20_000])  # a tree takes eleven
few_nodes = chances(st.just(7), [30_000], [Shape.LINE, Shape.WISHBONE, Shape.PRIMARY, Shape.FORK])


def check(case, spark, tpch):
    folder = Path(tempfile.mkdtemp(prefix="papilio-random-"))
    try:
        file = folder / "random.butterfly.yaml"
        save(generate(case["nodes"], case["shape"], case["seed"]), file)
        fused = run(file, folder / "fused", spark, tpch)
        options = [
            f"--{name.replace('_', '-')}={case[name]}"
            for name in ("granularity", "policy", "queue_packs", "pack_rows", "degree")
        ]
        packs = run(file, folder / "packs", spark, tpch, *options, "--slot-ms=100")
        assert packs["targets"].keys() == fused["targets"].keys()
        for node, target in packs["targets"].items():
            assert parquet_rows(Path(target["path"])) == parquet_rows(Path(fused["targets"][node]["path"])), node
        conserved(file, packs, case["granularity"])
    finally:
        shutil.rmtree(folder)


def run(file, out, spark, tpch, *options):
    done = papilio_here(
        "run", file, "--json", "--param", f"data_folder={tpch}", "--param", f"warehouse_folder={out}", *options,
        home=out / "home", spark=spark,
    )  # fmt: skip
    return answer(done)


def conserved(file, summary, granularity):
    """Each node gives what it takes, less what it refused or filtered; each edge carries what its ends say."""
    bound = bind(load(file), catalogue())
    nodes = summary["nodes"]
    one_way = {node for node, links in bound.outgoing.items() if len({link.source_port for link in links}) == 1}
    for node, target in summary["targets"].items():
        assert target["rows"] == nodes[node]["rows_in"] == len(parquet_rows(Path(target["path"]))), node
    for node, rows in nodes.items():
        producers = [producer for producer, _ in bound.producers(node)]
        if producers and one_way.issuperset(producers) and all(nodes[one]["count"] == "exact" for one in producers):
            assert rows["rows_in"] == sum(nodes[one]["rows_out"] for one in producers), node
        if granularity == "operator":
            assert rows["count"] == "exact"
        operator = bound.operators[node]
        if rows["count"] == "exact" and bound.incoming.get(node):
            refused = sum(rows.get("refused", {}).values())
            assert rows["rows_in"] >= rows["rows_out"] + refused, node
            if operator.keeps_rows:
                assert rows["rows_in"] == rows["rows_out"], node
            if refused:
                assert rows["rows_in"] == rows["rows_out"] + refused, node


@pytest.mark.slow
@settings(
    max_examples=1, deadline=None, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck)
)
@given(case=few_nodes)
def test_a_small_random_workflow_in_packs_gives_the_same_targets(case, spark, tpch):
    check(case, spark, tpch)


@pytest.mark.slow
@settings(
    max_examples=30, deadline=None, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck)
)
@given(case=cases)
def test_random_workflows_in_packs_give_the_same_targets(case, spark, tpch):
    check(case, spark, tpch)

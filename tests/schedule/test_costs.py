"""From a workflow to a simulated run of it: costs from hints, runs and defaults, and the run's summary."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.cli._display import _queue_text
from engine.errors import BadInput
from engine.model.operator import Role
from engine.partition.granularity import Granularity
from engine.plan.rows import Recorded, rows_of
from engine.schedule.build import pack_units
from engine.schedule.costs import (
    COST_US,
    READ_US,
    WRITE_US,
    Listeners,
    SimulationSettings,
    cost_us,
    simulate,
    unit_costs,
)
from tests.end_to_end.helpers import ROOT, papilio_here
from tests.partition.workflows import AGGREGATE, COPY, FILTER, LOOKUP, PARQUET, SORT, bound_of, bound_workflows, target

PACKED = (Granularity.OPERATOR, Granularity.SUBFLOW, Granularity.TREE)


def hinted(node, **hints):
    return {**node, "hints": hints}


def line(**hints):
    nodes = {"s": hinted(PARQUET, rows=1000), "f": hinted(FILTER, **hints), "o": SORT, "c": COPY, "t": target("t")}
    return bound_of(nodes, "s>f", "f>o", "o>c", "c>t")


def costs_of(bound, granularity, recorded=None):
    made = pack_units(bound, granularity, 100)
    return unit_costs(bound, made, rows_of(bound, {}, recorded or {})).costs


def test_a_hint_goes_before_a_recorded_run_and_that_before_the_default():
    recorded = {"f": Recorded(1000, 300, cost_us=7.0), "c": Recorded(300, 300, cost_us=0.5)}
    rows = rows_of(line(cost_us=2.0), {}, recorded)
    assert cost_us(line(cost_us=2.0), "f", rows) == 2.0
    assert cost_us(line(), "f", rows) == 7.0
    assert cost_us(line(), "c", rows) == 0.5
    assert [cost_us(line(), node, rows_of(line())) for node in "sfot"] == [
        READ_US, COST_US["row-synchronized"], COST_US["blocking"], WRITE_US,
    ]  # fmt: skip


def test_a_recorded_run_tells_how_many_rows_pass():
    found = costs_of(line(), Granularity.OPERATOR, {"f": Recorded(500, 100)})
    assert found["f"].shares == {"f.match > o.in": 0.2}
    assert costs_of(line(selectivity=0.7), Granularity.OPERATOR)["f"].shares == {"f.match > o.in": 0.7}


def test_a_unit_of_several_nodes_costs_what_they_cost_together():
    found = costs_of(line(selectivity=0.5, cost_us=4.0), Granularity.TREE)
    assert set(found) == {"s", "o", "t"}
    assert found["s"].rows == 1000
    assert found["s"].cost_us == pytest.approx(READ_US + 4.0)
    assert found["s"].shares == {"f.match > o.in": 0.5}
    # Sorting half while it takes rows, the other half with the copy behind it when all are there.
    assert found["o"].cost_us == pytest.approx(COST_US["blocking"] / 2)
    assert found["o"].whole_us == pytest.approx(COST_US["blocking"] / 2 + COST_US["row-synchronized"])


def test_total_cost_does_not_depend_on_the_granularity():
    total = {}
    for granularity in PACKED:
        summary = simulate(line(selectivity=0.5), SimulationSettings(granularity, "mc", stall_ms=0.0))
        total[granularity] = summary["seconds"]
    assert len({round(seconds, 5) for seconds in total.values()}) == 1


def test_the_summary_has_the_shape_of_a_run():
    summary = simulate(line(selectivity=0.5), SimulationSettings(policy="rr"))
    assert summary["status"] == "done"
    assert summary["backend"] == "simulated"
    assert (summary["policy"], summary["granularity"]) == ("rr", "operator")
    assert summary["nodes"]["f"] == {"rows_in": 1000, "rows_out": 500, "count": "simulated"}
    assert summary["nodes"]["s"]["rows_out"] == 1000
    assert summary["targets"] == {"t": {"rows": 500, "path": None}}
    assert set(summary["queue"]) == {"avg_bytes", "max_bytes", "avg_packs", "max_packs", "avg_rows", "max_rows"}
    assert summary["activations"] > 0
    assert summary["spills"] == 0
    assert summary["assumed"] == []
    assert simulate(line(), SimulationSettings())["assumed"] == ["f"], "nobody said how many rows pass"
    json.dumps(summary)


def test_a_lookup_s_reference_is_taken_first_and_is_no_row_of_its_own():
    nodes = {
        "r": hinted(PARQUET, rows=50),
        "s": hinted(PARQUET, rows=1000),
        "l": hinted(LOOKUP, selectivity=1000 / 1050),
        "t": target("t"),
    }
    bound = bound_of(nodes, "s>l.main", "r>l.reference", "l>t")
    for granularity in PACKED:
        for policy in ("rr", "mc", "mm", "mixed"):
            summary = simulate(bound, SimulationSettings(granularity, policy, pack_rows=10, queue_packs=2))
            assert summary["targets"]["t"]["rows"] == 1000
            assert summary["nodes"]["l"]["rows_in"] == 1050


def test_what_is_needed_whole_is_read_before_the_rows_that_wait_for_it():
    nodes = {"a": hinted(PARQUET, rows=80_000), "z": hinted(PARQUET, rows=10), "l": LOOKUP, "t": target("t")}
    bound = bound_of(nodes, "a>l.main", "z>l.reference", "l>t")
    made = pack_units(bound, Granularity.OPERATOR, 100)
    assert [unit.id for unit in made.units] == ["z", "a", "l", "t"]
    decided = []
    listeners = Listeners(on_decision=lambda entry: decided.append(entry.activation.unit.id))
    simulate(bound, SimulationSettings(policy="mm"), listeners=listeners)
    assert decided[:3] == ["z", "l", "a"]


def test_fused_has_no_packs_to_simulate():
    with pytest.raises(BadInput, match="fused units pass none"):
        simulate(line(), SimulationSettings(Granularity.FUSED))


def test_an_empty_source_is_simulated_too():
    nodes = {"s": hinted(PARQUET, rows=0), "g": AGGREGATE, "t": target("t")}
    summary = simulate(bound_of(nodes, "s>g", "g>t"), SimulationSettings())
    assert summary["targets"]["t"]["rows"] == 0


@settings(max_examples=60)
@given(bound_workflows(), st.integers(0, 300), st.sampled_from((1, 2, 100)), st.integers(1, 60))
def test_every_policy_and_granularity_brings_the_same_rows_to_the_targets(bound, source_rows, capacity, pack_rows):
    rows = rows_of(bound, {node: source_rows for node in bound.order if bound.role(node) is Role.SOURCE})
    answers = []
    for granularity in PACKED:
        for policy in ("rr", "mc", "mm", "mixed"):
            summary = simulate(
                bound, SimulationSettings(granularity, policy, pack_rows=pack_rows, queue_packs=capacity), rows
            )
            answers.append({node: found["rows"] for node, found in summary["targets"].items()})
            for node, rows_to in answers[-1].items():
                assert rows_to == summary["nodes"][node]["rows_in"]
    assert all(answer == answers[0] for answer in answers)
    expected = {node: sum(rows.of_port(*producer) for producer in bound.producers(node)) for node in answers[0]}
    assert answers[0] == expected


def test_a_person_is_told_the_turns_and_what_waited_in_the_queues(tmp_path):
    fig1 = Path(shutil.copy(ROOT / "workflows" / "fig1.butterfly.yaml", tmp_path))
    simulated = ("run", fig1, "--backend", "simulated", "--policy", "rr")
    summary = json.loads(papilio_here(*simulated, "--json", home=tmp_path).stdout)
    told = papilio_here(*simulated, home=tmp_path).stderr
    queue = summary["queue"]
    assert f"{summary['activations']:,} turns" in told
    assert f"({queue['avg_packs']:,.1f} and {queue['max_packs']:,} packs" in told
    assert f"{queue['avg_rows']:,.0f} and {queue['max_rows']:,} rows)" in told
    assert _queue_text({**summary, "queue": {**queue, "max_packs": 0}}).endswith("turns  no rows waited in queues")

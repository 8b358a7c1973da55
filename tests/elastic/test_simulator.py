"""The simulated system: rows are neither lost nor made, limits are kept, and what cannot be kept is told."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.elastic.decision import Stage
from engine.elastic.rates import data_rate
from engine.elastic.simulated_stages import Dealer, _levelled, without
from engine.elastic.simulator import Full, Simulation, simulate
from engine.elastic.stages import buffer
from engine.errors import RunCancelled
from engine.events import LimitsSet, LogReader, Remark, RunFinished, ScalingDecided, StagesSampled
from engine.experiments.ascale import SCENARIO, run, scaled, stairs
from engine.experiments.bench_elastic import day
from engine.model.binding import bind
from engine.model.elastic import Buffer, Elastic, Sources
from engine.model.file import load
from engine.operators import catalogue
from engine.request import RunRequest
from tests.end_to_end.helpers import WORKFLOWS, answer, papilio_here

FLAT = {"kind": "ramp", "from_rows_s": 100_000, "to_rows_s": 100_000, "seconds": 60}


def simulation(**more) -> Simulation:
    limits = Elastic.model_validate(SCENARIO | more)
    return Simulation(limits, data_rate(limits.rate, Path()))


@settings(max_examples=25)
@given(
    rates=st.lists(st.integers(0, 900_000), min_size=1, max_size=8),
    policies=st.lists(st.sampled_from(["round_robin", "on_demand", "hash", "range"]), min_size=3, max_size=3),
    pool=st.integers(5, 14),
    buffers=st.booleans(),
)
def test_whatever_happens_every_row_is_somewhere(rates, policies, pool, buffers):
    made = simulation(
        pool=pool,
        rate=stairs(rates, 15),
        hold_s=6,
        settle_s=2,
        extraction=SCENARIO["extraction"] | {"distribution": policies[0]},
        transformation={"queue_mb": 100, "distribution": policies[1]},
        buffer={"memory_mb": 40, "disk_mb": 500, "scale_in": buffers, "distribution": policies[2]},
        capacity={"keep_s": 30, "start_s": 1, "rebalance_mb_s": 1e4},
    )
    for tick in range(round(made.rate.seconds / made.tick_s)):
        now = tick * made.tick_s
        made.step(now)
        assert made.rows() == pytest.approx(made.result.generated_rows, rel=1e-9, abs=1e-3)
        assert made._buffers.memory.max() <= 40 + 1e-6
        assert made._buffers.disk.max() <= 500 + 1e-6
        if tick % 8 == 0:
            made.sample(now)
            made.scaler.check()


def test_a_steady_rate_within_the_limits_changes_nothing():
    _, result = run(rate=FLAT)
    assert result.changes == []
    assert result.points[-1].nodes == dict.fromkeys(
        ["extraction", "transformation", "buffer", "switch", "warehouse"], 1
    )
    assert result.points[-1].etl_s < 3


def test_a_steady_rate_that_comes_once_a_minute_comes_to_rest():
    steady = {"kind": "ramp", "from_rows_s": 10_000, "to_rows_s": 10_000, "seconds": 3600}
    _, result = run(rate=steady, hold_s=20, extraction={"every_s": 60}, warehouse={"every_s": 2, "load_limit_s": 1})
    assert {change.kind for change in result.changes} == {"scale out"}
    assert {Stage.TRANSFORMATION, Stage.WAREHOUSE} <= {change.stage for change in result.changes}
    assert max(change.at_s for change in result.changes) < 600
    assert max(result.points[-30].queues_mb) <= 50


def test_when_the_rows_stop_the_nodes_go_and_the_last_load_is_no_reason_for_more():
    _, result = run(rate=stairs([400_000, 0], 200))
    later = [change for change in scaled(result, "scale out") if change.at_s > 210]
    assert later == []
    assert {Stage.WAREHOUSE, Stage.SWITCH} <= {change.stage for change in scaled(result, "scale in")}
    assert (result.points[-1].load_s, result.points[-1].switch_rows_s, result.points[-1].etl_s) == (0, 0, 0)
    assert result.points[-1].nodes["warehouse"] < max(point.nodes["warehouse"] for point in result.points)


def test_a_rate_that_is_over_before_the_first_look_is_simulated_too(tmp_path):
    rate = {"kind": "steps", "steps": [{"at_s": 0, "rows_s": 1000}], "seconds": 0.01}
    summary = answer(papilio_here("scale", "simulate", written(tmp_path, rate=rate), "--json", home=tmp_path))
    assert summary["nodes"]["warehouse"]["last"] == 1


def test_the_disk_of_a_buffer_ends_and_rows_wait_before_it():
    """Nothing is loaded; what comes fills memory and disk, and then the queues."""
    told: list[Full] = []
    limits = Elastic.model_validate(
        SCENARIO
        | {
            "pool": 5,
            "rate": FLAT,
            "buffer": {"memory_mb": 100, "disk_mb": 200},
            "warehouse": {"every_s": 1000},
        }
    )
    made = Simulation(
        limits, data_rate(limits.rate, Path()), lambda found: told.append(found) if isinstance(found, Full) else None
    )
    made._star._next = 1000.0
    result = made.run()
    last = result.points[-1]
    assert (last.memory_mb, last.disk_mb) == (pytest.approx((100,)), pytest.approx((200,)))
    assert last.queue_mb > 50
    assert made.rows() == pytest.approx(result.generated_rows)
    assert len(told) == 1
    assert "200 MB of disk each: rows wait in the queues of the transformation" in told[0].told(limits.buffer)
    assert result.full_s == pytest.approx(60 - told[0].at_s, abs=0.5)
    (buffers,) = scaled(result, "unreachable", Stage.BUFFER)
    assert "a buffer's" in buffers.reason


def test_full_buffers_are_told_to_a_person_and_in_the_log(tmp_path):
    more = {"buffer": {"memory_mb": 30, "disk_mb": 1, "nodes": {"max": 1}}, "rate": stairs([400_000], 60)}
    file = written(tmp_path, **more)
    done = papilio_here("scale", "simulate", file, "--run-dir", tmp_path / "run", home=tmp_path)
    assert "! the buffers were full for" in done.stdout
    told = [event.message for event in LogReader(tmp_path / "run" / "events.jsonl") if isinstance(event, Remark)]
    assert any("the buffers are full, 1 with 30 MB of memory and 1 MB of disk each" in text for text in told)
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["buffer"]["full_s"] > 1
    assert summary["buffer"]["disk_max_mb"] <= 1


def test_rows_are_loaded_some_seconds_after_they_came():
    _, result = run(rate=FLAT)
    assert result.generated_rows == 6_000_000
    assert 0 < result.waiting_rows < 6 * 100_000
    assert result.loaded_rows + result.waiting_rows == pytest.approx(result.generated_rows)


def test_an_empty_pool_is_told_and_the_system_goes_on():
    _, result = run(pool=5, rate=stairs([50_000, 400_000, 50_000], 100))
    told = {change.stage for change in scaled(result, "unreachable")}
    assert {Stage.EXTRACTION, Stage.TRANSFORMATION, Stage.WAREHOUSE} <= told
    assert all("no node is ready: all 5 of the pool are at work" in change.reason for change in result.changes)
    assert result.points[-1].at_s > 290
    assert result.points[-1].etl_s < 3  # and is well again when the rate is


def test_a_node_counts_from_the_moment_it_is_taken_from_the_pool():
    limits, result = run(rate=FLAT)
    assert result.node_seconds == 5 * 60
    assert limits.capacity.node_hour_cost == 1


def test_rebalancing_moves_the_facts_of_the_new_node_and_copies_the_dimensions():
    made = simulation(rate=FLAT, capacity={"warehouse_mb": 1000, "dimensions_mb": 50, "rebalance_mb_s": 10})
    moved, seconds = made._star.rebalancing(2)
    assert moved == pytest.approx(500 + 50)
    assert seconds == pytest.approx((50 + 500) / 10)
    made._star.resize(4)
    moved, seconds = made._star.rebalancing(3)  # scale-in: no dimensions, a quarter of the facts
    assert moved == pytest.approx(250)
    assert seconds == pytest.approx(250 / 10)


@given(st.lists(st.floats(0, 1000), min_size=1, max_size=20), st.floats(0, 5000))
def test_on_demand_fills_the_shortest_queues_first(queues, amount):
    given = _levelled(amount, np.array(queues))
    assert given.sum() == pytest.approx(amount, abs=1e-6)
    assert (given >= 0).all()
    filled = np.array(queues) + given
    reached = filled[given > 1e-9]
    if len(reached):
        assert reached.max() - reached.min() < 1e-6
        assert (filled >= reached.max() - 1e-6).all()


def test_unequal_sources_are_cut_so_that_every_node_gets_its_share():
    dealt = Dealer("round_robin", Sources(number=10, skew=2)).deal(1000.0, np.zeros(40))
    assert dealt.sum() == pytest.approx(1000)
    assert dealt.max() < 1.3 * 25
    assert Dealer("copy", Sources()).deal(7.0, np.zeros(3)) == pytest.approx([7, 7, 7])


def test_what_a_leaving_node_had_is_its_heir_s():
    assert without(np.array([1.0, 2.0, 3.0]), (0,), (2,)).tolist() == [2, 4]


@given(st.lists(st.tuples(st.floats(0, 100), st.booleans()), min_size=1, max_size=10))
def test_the_simulated_buffers_swap_as_the_stage_says(states):
    made = simulation(rate=FLAT, buffer={"memory_mb": 100}, capacity={"swap_mb_s": 1})
    buffers = made._buffers
    buffers.memory = np.array([memory for memory, _ in states])
    buffers.disk, buffers.peaks = np.zeros(len(states)), np.zeros(len(states))
    buffers.swapping = np.array([swapping for _, swapping in states])
    buffers.step(0.0, 0.0)
    assert buffers.swapping.tolist() == [buffer.swaps(memory, was, Buffer(memory_mb=100)) for memory, was in states]


def written(tmp_path, **more):
    file = tmp_path / "w.butterfly.yaml"
    file.write_text(yaml.safe_dump({"papilio": 1, "name": "w", "nodes": {}, "elastic": SCENARIO | more}))
    return file


@pytest.mark.parametrize(
    ("rate", "rows"),
    [
        ({"kind": "steps", "steps": [{"at_s": 0, "rows_s": 1000}, {"at_s": 20, "rows_s": 4000}], "seconds": 40}, 100_000),
        ({"kind": "ramp", "from_rows_s": 1000, "to_rows_s": 3000, "seconds": 40}, 80_000),
        ({"kind": "ramp", "from_rows_s": 1000, "to_rows_s": 3000, "stairs": 2, "seconds": 40}, 80_000),
        ({"kind": "recorded", "path": "rate.csv"}, 70_000),
        ({"kind": "diurnal", "low_rows_s": 1000, "high_rows_s": 3000, "peak_hour": 0, "seconds": 40}, 120_000),
        ({"kind": "bursts", "base_rows_s": 1000, "burst_rows_s": 5000, "every_s": 10, "burst_s": 4, "seconds": 40}, None),
    ],
)  # fmt: skip
def test_every_kind_of_rate_brings_the_rows_that_it_says(rate, rows, tmp_path):
    (tmp_path / "rate.csv").write_text("seconds,rows_s\n0,1000\n10,3000\n30,0\n")
    summary = answer(papilio_here("scale", "simulate", written(tmp_path, rate=rate), "--json", home=tmp_path))
    came = summary["rows"]
    assert came["generated"] == came["loaded"] + came["waiting"]
    if rows is None:
        assert 40 * 1000 < came["generated"] < 40 * 5000
    else:
        assert came["generated"] == pytest.approx(rows, rel=0.03)


def test_what_is_no_limit_is_told_and_not_heeded(tmp_path):
    file = written(tmp_path, rate=stairs([1000], 10), transformation={"queu_mb": 1}, sources={"skewed": 2})
    told = ["`elastic.sources.skewed` is no limit, so it is not heeded; did you mean `skew`?",
            "`elastic.transformation.queu_mb` is no limit, so it is not heeded; did you mean `queue_mb`?"]  # fmt: skip
    run = tmp_path / "run"
    summary = answer(papilio_here("scale", "simulate", file, "--json", "--run-dir", run, home=tmp_path))
    assert summary["warnings"] == told
    remarks = [event.message for event in LogReader(run / "events.jsonl") if isinstance(event, Remark)]
    assert remarks == [f"{file}: {text}" for text in told]
    shown = papilio_here("scale", "simulate", file, home=tmp_path).stdout
    checked = json.loads(papilio_here("check", file, "--json", home=tmp_path).stdout)["problems"]
    assert all(text in shown for text in told)
    assert [one["message"] for one in checked if one["level"] == "warning"] == told


def test_a_plot_is_drawn_as_its_name_says_or_refused_before_anything_is_reckoned(tmp_path):
    file = written(tmp_path, rate=stairs([100_000], 40))
    plot = tmp_path / "p.png"
    answer(papilio_here("scale", "simulate", file, "--json", "--plot", plot, home=tmp_path))
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".papilio")] == []
    for name, reason in (("p.pdf", "ends in .svg or .png"), ("none/p.svg", "there is no folder")):
        done = papilio_here(
            "scale", "simulate", file, "--plot", tmp_path / name, "--run-dir", tmp_path / "run", home=tmp_path
        )
        assert done.returncode == 2
        assert reason in done.stderr
        assert not (tmp_path / "run").exists()


def test_the_command_tells_draws_and_logs_what_happened(tmp_path):
    file = written(tmp_path, rate=stairs([100_000, 300_000, 50_000], 80))
    summary = answer(
        papilio_here(
            "scale",
            "simulate",
            file,
            "--json",
            "--plot",
            tmp_path / "p.svg",
            "--run-dir",
            tmp_path / "run",
            home=tmp_path,
        )
    )
    assert summary["rows"]["generated"] == summary["rows"]["loaded"] + summary["rows"]["waiting"] == 36_000_000
    kinds = {(one["stage"], one["kind"]) for one in summary["decisions"]}
    assert {("warehouse", "scale out"), ("transformation", "scale in")} <= kinds
    assert all(one["reason"] for one in summary["decisions"])
    assert len(summary["rebalancings"]) == sum(
        one["stage"] == "warehouse" and one["kind"] != "unreachable" for one in summary["decisions"]
    )
    text = (tmp_path / "p.svg").read_text()
    assert ElementTree.fromstring(text).tag.endswith("svg")
    assert "Nodes of each stage" in text
    assert "warehouse +1" in text
    assert "Facts moved by rebalancing" in text
    first = summary["rebalancings"][0]
    assert f"1→2: {first['moved_mb']:,.0f} MB in {first['seconds']:,.0f} s" in text
    events = list(LogReader(tmp_path / "run" / "events.jsonl"))
    (limits,) = [event for event in events if isinstance(event, LimitsSet)]
    assert limits.stages["transformation"] == {"measure": "queue", "unit": "MB", "limit": 50.0, "min": 1, "max": None}
    decided = [event for event in events if isinstance(event, ScalingDecided)]
    assert [event.reason for event in decided] == [one["reason"] for one in summary["decisions"]]
    sampled = [event for event in events if isinstance(event, StagesSampled)]
    assert sampled[-1].time - sampled[0].time == pytest.approx(238, abs=3)
    assert isinstance(events[-1], RunFinished)
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["status"] == "simulated"
    listed = answer(papilio_here("history", "--json", home=tmp_path))
    assert [(run["workflow"], run["policy"], run["status"]) for run in listed] == [("w", "elastic", "simulated")]


def test_the_command_for_a_person_names_decisions_and_what_is_out_of_reach(tmp_path):
    file = written(tmp_path, pool=5, rate=stairs([50_000, 400_000], 60))
    done = papilio_here("scale", "simulate", file, home=tmp_path)
    assert done.returncode == 0
    assert "transformation unreachable" in done.stdout
    assert "! the limit of the extraction could not be kept with the nodes there are" in done.stdout


def test_a_file_without_limits_is_bad_input(tmp_path):
    file = tmp_path / "w.butterfly.yaml"
    file.write_text("papilio: 1\nnodes: {}\n")
    done = papilio_here("scale", "simulate", file, home=tmp_path)
    assert done.returncode == 2
    assert "no `elastic` section" in done.stderr


def test_ten_thousand_nodes_follow_an_hour_of_the_day():
    limits = day(
        rate={"kind": "steps", "steps": [{"at_s": 0, "rows_s": 120e6}, {"at_s": 900, "rows_s": 180e6}], "seconds": 3600}
    )
    result = simulate(limits, data_rate(limits.rate, Path()))
    assert result.most_nodes > 2500
    assert {change.stage for change in scaled(result, "scale out")} >= {
        Stage.EXTRACTION,
        Stage.TRANSFORMATION,
        Stage.WAREHOUSE,
    }
    assert result.loaded_rows + result.waiting_rows == pytest.approx(result.generated_rows)


def test_the_shipped_bursts_are_followed_out_and_in(tmp_path):
    summary = answer(
        papilio_here("scale", "simulate", WORKFLOWS / "elastic_bursts.butterfly.yaml", "--json", home=tmp_path)
    )
    rows = summary["rows"]
    assert rows["generated"] == rows["loaded"] + rows["waiting"] > 120_000 * 3600
    kinds = [one["kind"] for one in summary["decisions"]]
    assert kinds.count("scale out") > 1
    assert "scale in" in kinds


def test_the_shipped_day_is_followed_by_thousands_of_nodes(tmp_path):
    document = yaml.safe_load((WORKFLOWS / "elastic_day.butterfly.yaml").read_text())
    document["elastic"]["rate"] |= {"seconds": 2 * 3600, "peak_hour": 2}  # of the whole day the two steepest hours
    file = tmp_path / "day.butterfly.yaml"
    file.write_text(yaml.safe_dump(document))
    summary = answer(papilio_here("scale", "simulate", file, "--json", home=tmp_path))
    rows = summary["rows"]
    assert rows["generated"] == pytest.approx(rows["loaded"] + rows["waiting"])
    assert {"extraction", "transformation", "warehouse"} <= {
        one["stage"] for one in summary["decisions"] if one["kind"] == "scale out"
    }
    assert sum(nodes["most"] for nodes in summary["nodes"].values()) > 2_000


def test_elasticity_is_asked_for_like_any_policy_and_can_be_cancelled(tmp_path, monkeypatch):
    monkeypatch.setenv("PAPILIO_HOME", str(tmp_path))
    request = RunRequest(policy="elastic", backend="simulated")
    request.check()
    bound = bind(load(written(tmp_path, rate=FLAT)), catalogue())
    begun = []
    summary = request.start(bound, folder=tmp_path / "one", begun=lambda run, folder: begun.append(folder))
    assert (summary["status"], summary["seconds"]) == ("simulated", 60)
    assert begun == [tmp_path / "one"]
    control = request.control()
    control.send("cancel")
    with pytest.raises(RunCancelled):
        request.start(bound, folder=tmp_path / "two", control=control)
    (*_, last) = LogReader(tmp_path / "two" / "events.jsonl")
    assert isinstance(last, RunFinished)
    assert last.status == "cancelled"
    assert papilio_here("run", written(tmp_path, rate=FLAT), "--policy", "elastic", home=tmp_path).returncode == 2

"""Mixed policy: subflows side by side, each under the policy that fits it (section 5.3)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from engine.errors import BadInput
from engine.events import LogReader, UnitDecided
from engine.schedule.graph import ScheduleGraph
from engine.schedule.mixed import mixed_policies, scheduled
from engine.schedule.monitor import Monitor
from engine.schedule.simulated import Simulation, UnitCost
from engine.schedule.turn import Decided
from tests.end_to_end.helpers import ROOT, papilio_here
from tests.schedule.graphs import queues, simulate, units

# Two lines, a core of two blocking activities, and two writers behind it.
NAMES = "s1 s2 f1 f2 b1 b2 w1 w2"
GROUPS = {"s1": "one", "f1": "one", "s2": "two", "f2": "two", "b1": "core", "b2": "core", "w1": "left", "w2": "right"}
EDGES = "s1>f1 s2>f2 f1>b1 f2>b1 b1>b2 b1>w1 b2>w2"
COSTS = {name: UnitCost(10, 4000 if name[0] == "s" else 0) for name in NAMES.split()}


def named(theta: int, thetas: dict[str, int] | None = None) -> dict[str, str]:
    graph, policies = scheduled(units(NAMES, GROUPS), queues(EDGES), "mixed", theta, thetas)
    assert set(policies) == set(graph.groups())
    return {group: policy.name for group, policy in policies.items()}


def test_more_than_theta_memory_intensive_activities_make_a_subflow_run_under_minimum_memory():
    assert named(theta=1)["core"] == "mm"
    assert named(theta=2)["core"] == "mc", "as many as theta are not more than theta"
    assert named(theta=0)["one"] == "mc", "a line has none"


def test_a_subflow_may_have_a_theta_of_its_own():
    assert named(theta=5, thetas={"core": 1})["core"] == "mm"
    assert named(theta=0, thetas={"core": 2})["core"] == "mc"


def test_a_theta_for_a_subflow_that_is_not_there_is_told_with_those_that_are():
    with pytest.raises(BadInput, match=r"no subflow `cor`.*one, two, core, left, right"):
        named(theta=1, thetas={"cor": 2})


def test_what_passes_between_subflows_is_staged_and_what_stays_inside_is_bounded():
    graph, _ = scheduled(units(NAMES, GROUPS), queues(EDGES), "mixed")
    assert {queue.id for queue in graph.queues if queue.capacity_packs is None} == {"f1>b1", "f2>b1", "b1>w1", "b2>w2"}
    graph, _ = scheduled(units(NAMES, GROUPS), queues(EDGES), "rr")
    assert all(queue.capacity_packs == 100 for queue in graph.queues)


def test_a_single_policy_has_one_group():
    graph, policies = scheduled(units(NAMES, GROUPS), queues(EDGES), "mm")
    assert list(graph.groups()) == list(policies) == [""]


def test_providers_are_the_subflows_that_one_reads_from():
    graph = ScheduleGraph(units(NAMES, GROUPS), queues(EDGES))
    assert graph.providers() == {
        "one": set(), "two": set(), "core": {"one", "two"}, "left": {"core"}, "right": {"core"},
    }  # fmt: skip
    assert set(mixed_policies(graph)) == set(graph.groups())


class Observed(Simulation):
    """Notes which groups have ended when one begins, and how many turns go on at a time."""

    def __init__(self, cores: int) -> None:
        self.most = 0
        self.begun: dict[str, set[str]] = {}
        graph, policies = scheduled(units(NAMES, GROUPS), queues(EDGES, 10), "mixed", 1)
        super().__init__(graph, policies, COSTS, cores=cores, on_decision=self.decided)

    def decided(self, decided: Decided) -> None:
        monitor: Monitor = self.monitor
        ended = {name for name, group in monitor.groups.items() if group.left == 0}
        self.begun.setdefault(decided.group, ended)
        self.most = max(self.most, monitor.running + 1)


@pytest.mark.parametrize("cores", [1, 2, 4])
def test_a_subflow_begins_when_its_providers_have_ended_and_no_more_turns_go_on_than_cores(cores):
    observed = Observed(cores)
    observed.run()
    assert observed.begun["core"] >= {"one", "two"}
    assert observed.begun["left"] >= {"one", "two", "core"}
    assert observed.most == min(cores, 2)


def test_subflows_that_do_not_wait_for_each_other_run_side_by_side():
    options = {"cores": 2, "stall_ms": 0.0}
    mixed = simulate(units(NAMES, GROUPS), queues(EDGES), COSTS, "mixed", **options)
    single = simulate(units(NAMES, GROUPS), queues(EDGES), COSTS, "mc", **options)
    alone = simulate(units(NAMES, GROUPS), queues(EDGES), COSTS, "mixed", cores=1, stall_ms=0.0)
    assert alone.busy_seconds == pytest.approx(single.busy_seconds, rel=0.02)
    # Two like lines in the time of one: each reads and passes on 4,000 rows of 10 µs, twice.
    assert single.seconds - mixed.seconds >= 0.08
    assert mixed.delivered == single.delivered


def test_more_cores_than_subflows_change_nothing():
    two = simulate(units(NAMES, GROUPS), queues(EDGES), COSTS, "mixed", cores=2)
    many = simulate(units(NAMES, GROUPS), queues(EDGES), COSTS, "mixed", cores=16)
    assert two.seconds == many.seconds


def test_a_single_policy_uses_one_core_however_many_there_are():
    one = simulate(units(NAMES, GROUPS), queues(EDGES), COSTS, "mc", cores=1)
    assert one == simulate(units(NAMES, GROUPS), queues(EDGES), COSTS, "mc", cores=8)
    assert one.busy_seconds == pytest.approx(one.seconds)


def test_more_subflows_than_cores_share_these_fairly():
    names = "s1 w1 s2 w2 s3 w3"
    groups = {name: name[1] for name in names.split()}
    lines = units(names, groups), queues("s1>w1 s2>w2 s3>w3", 10)
    costs = {name: UnitCost(10, 40_000 if name[0] == "s" else 0) for name in names.split()}
    order: list[str] = []
    graph, policies = scheduled(*lines, "mixed")
    alike = Simulation(graph, policies, costs, cores=2, on_decision=lambda decided: order.append(decided.group)).run()
    assert all(set(order[place : place + 3]) == {"1", "2", "3"} for place in range(0, 30, 3))
    # Three like lines on two cores end together: half as long again as one, not twice as long.
    one = simulate(units("s1 w1", groups), queues("s1>w1", 10), costs, "mixed", cores=2)
    assert alike.seconds == pytest.approx(1.5 * one.seconds, rel=0.05)


def on_fig1(tmp_path: Path, *options: str) -> dict[str, str]:
    """The policy that each subflow of Fig. 1 runs under when the command line asks for `mixed`."""
    fig1 = Path(shutil.copy(ROOT / "workflows" / "fig1.butterfly.yaml", tmp_path))  # a copy has no data beside it
    asked = ("--backend", "simulated", "--granularity", "operator", "--policy", "mixed", "--run-dir", tmp_path / "run")
    done = papilio_here("run", fig1, *asked, *options, home=tmp_path)
    if done.returncode:
        raise BadInput(f"{done.returncode}: {done.stderr}")
    events = list(LogReader(tmp_path / "run" / "events.jsonl"))
    shutil.rmtree(tmp_path / "run")
    pairs = {(event.group, event.policy) for event in events if isinstance(event, UnitDecided)}
    assert len(pairs) == len({group for group, _ in pairs}), "one policy for each"
    return dict(pairs)


def test_the_command_line_sets_theta_for_all_subflows_or_for_one(tmp_path):
    blocking = {"join", "view_1_by", "view_2_by", "view_3_by", "view_4_by"}
    found = on_fig1(tmp_path, "--theta", "0")
    assert {group for group, policy in found.items() if policy == "mm"} == blocking
    assert {policy for group, policy in found.items() if group not in blocking} == {"mc"}
    assert set(on_fig1(tmp_path, "--theta", "1").values()) == {"mc"}
    one = on_fig1(tmp_path, "--theta", "1", "--theta", "join=0")
    assert {group for group, policy in one.items() if policy == "mm"} == {"join"}


@pytest.mark.parametrize(
    ("theta", "message"),
    [("many", "2: .*write it as a number"), ("nowhere=1", "2: .*there is no subflow `nowhere`; there are partsupp")],
)
def test_a_theta_that_cannot_be_is_bad_input(theta, message, tmp_path):
    with pytest.raises(BadInput, match=f"(?s){message}"):
        on_fig1(tmp_path, "--theta", theta)

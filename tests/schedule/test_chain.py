"""The sample policy plugin, chain scheduling: found as a file and as a package, and right about memory."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import pytest

from engine.operators import load_plugin_file
from engine.schedule.graph import ScheduleGraph
from engine.schedule.mixed import scheduled
from engine.schedule.policy import Policy, policy_named
from engine.schedule.simulated import Simulation, UnitCost
from engine.schedule.turn import Decided
from tests.end_to_end.helpers import papilio_here
from tests.operators.test_plugin import EXAMPLE, ROOT, can_build
from tests.schedule.graphs import queues, simulate, units
from tests.schedule.test_policies import Waiting


@pytest.fixture(scope="module")
def chain():
    """The plugin's module, loaded as `--plugin FILE` loads it."""
    return load_plugin_file(EXAMPLE / "papilio_chain.py")


def test_a_plugin_file_brings_its_policy(chain):
    assert policy_named("chain") is chain.Chain
    assert policy_named("chain").timed


@pytest.mark.skipif(not can_build(), reason="setuptools 70.1 or newer is needed to build the sample plugin")
def test_an_installed_plugin_s_policy_is_found_by_its_entry_point(tmp_path):
    shutil.copytree(EXAMPLE, tmp_path / "source")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    install += ["--disable-pip-version-check", "--target", str(tmp_path / "site"), str(tmp_path / "source")]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    code = """
import json
from engine.schedule.policy import policies, policy_named
print(json.dumps({"names": list(policies()), "module": policy_named("chain").__module__}))
"""
    paths = [str(tmp_path / "site"), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout) == {"names": ["chain", "mc", "mm", "rr"], "module": "papilio_chain"}


def test_the_lower_envelope_joins_steps_into_chains(chain):
    # One second that drops nothing, one that drops nine tenths, two that drop the rest: the first two are one chain.
    slopes = chain.lower_envelope([(0.0, 1.0), (1.0, 1.0), (2.0, 0.1), (4.0, 0.0)])
    assert slopes == pytest.approx([0.45, 0.45, 0.05])
    # Where the first step is the steepest, it is a chain of its own.
    assert chain.lower_envelope([(0.0, 1.0), (1.0, 0.2), (2.0, 0.0)]) == pytest.approx([0.8, 0.2])
    assert chain.lower_envelope([(0.0, 1.0)]) == []


def policy_over(chain, names: str, edges: str):
    policy = chain.Chain()
    policy.begin(ScheduleGraph(units(names), queues(edges)))
    return policy


def test_a_unit_that_drops_nothing_goes_on_where_the_one_behind_it_drops_much(chain):
    # Line 1: u drops nothing and f behind it nine tenths. Line 2: g drops a third, as quickly as u.
    policy = policy_over(chain, "s u f w1 t g w2", "s>u u>f f>w1 t>g g>w2")
    u = Waiting(1, 100, rows_in=1000, rows_out=1000, seconds=1.0, name="u")
    f = Waiting(2, 0, rows_in=1000, rows_out=100, seconds=1.0, name="f")
    g = Waiting(5, 500, rows_in=1000, rows_out=666, seconds=1.0, name="g")
    assert policy.pick([u, f, g], -1) is u
    assert policy.score(u, -1) == pytest.approx(450)  # nine tenths of a row in two thousandths of a second
    assert policy.score(g, -1) == pytest.approx(334)
    assert policy_named("mm")().pick([u, f, g], -1) is g, "minimum memory sees one unit at a time"


def test_on_one_chain_the_rows_that_have_come_farthest_go_first(chain):
    policy = policy_over(chain, "s u f w1", "s>u u>f f>w1")
    u = Waiting(1, 900, rows_in=1000, rows_out=1000, seconds=1.0, name="u")
    f = Waiting(2, 1, rows_in=1000, rows_out=100, seconds=1.0, name="f")
    assert policy.pick([u, f], -1) is f


def test_a_writer_ends_its_line_and_what_is_read_comes_last(chain):
    policy = policy_over(chain, "s w", "s>w")
    assert policy._lines == {"w": ["w"]}
    reader, writer = Waiting(0), Waiting(1, 5)
    assert policy.pick([reader, writer], -1) is writer


def test_lines_end_where_rows_fork_meet_or_are_put_aside(chain):
    policy = policy_over(chain, "s a b1 c d w e v", "s>a a>b1 b1>c c>d c>e d>w e>v")
    assert policy._lines["b1"] == ["a", "b1"], "b1 takes them out of memory"
    assert policy._lines["c"] == ["c"], "two read what c gives"
    assert policy._lines["d"] == ["d", "w"]
    assert policy._lines["e"] == ["e", "v"]


LINE = units("s u f w"), queues("s>u u>f f>w")
COSTS = {
    "s": UnitCost(10, 200_000),
    "u": UnitCost(5, selectivity=1.0),
    "f": UnitCost(5, selectivity=0.05),
    "w": UnitCost(10),
}


def test_chain_needs_less_memory_than_minimum_cost_behind_an_unselective_operator(chain):
    by_chain, by_cost = (simulate(*LINE, COSTS, policy) for policy in ("chain", "mc"))
    assert by_chain.delivered == by_cost.delivered
    assert by_chain.queue["avg_rows"] < by_cost.queue["avg_rows"] / 2


def test_chain_needs_no_more_memory_than_minimum_memory_on_two_such_lines(chain):
    two = units("s1 s2 u f w1 g w2"), queues("s1>u u>f f>w1 s2>g g>w2")
    costs = {
        "s1": UnitCost(1, 200_000), "s2": UnitCost(1, 200_000), "u": UnitCost(5), "f": UnitCost(5, selectivity=0.05),
        "g": UnitCost(20, selectivity=0.7), "w1": UnitCost(10), "w2": UnitCost(10),
    }  # fmt: skip
    by_chain, by_memory = (simulate(*two, costs, policy) for policy in ("chain", "mm"))
    assert by_chain.delivered == by_memory.delivered
    assert by_chain.queue["avg_rows"] <= by_memory.queue["avg_rows"]


def test_the_decision_log_shows_the_slopes(chain):
    decided: list[Decided] = []
    graph, policies = scheduled(*LINE, "chain")
    Simulation(graph, policies, COSTS, on_decision=decided.append).run()
    for entry in decided:
        scores = dict(entry.scores)
        assert scores[entry.activation.unit.id] == max(scores.values())
    assert any(0 < max(dict(entry.scores).values()) < chain.UNMEASURED for entry in decided)


def test_the_command_line_runs_a_plugin_s_policy(tmp_path):
    # A copy has no data beside it, whatever was generated here: its sources are reckoned at their default size.
    fig1 = Path(shutil.copy(ROOT / "workflows" / "fig1.butterfly.yaml", tmp_path))
    options = ("--backend", "simulated", "--policy", "chain", "--plugin", EXAMPLE / "papilio_chain.py", "--json")
    done = papilio_here("run", fig1, *options, home=tmp_path)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["policy"], summary["status"]) == ("chain", "done")
    by_cost = json.loads(
        papilio_here("run", fig1, "--backend", "simulated", "--policy", "mc", "--json", home=tmp_path).stdout
    )
    assert summary["targets"] == by_cost["targets"]
    assert summary["queue"]["avg_packs"] < by_cost["queue"]["avg_packs"] / 2


def test_the_policy_in_the_help_is_complete_and_runs():
    text = (ROOT / "resources" / "help" / "plugins.md").read_text()
    code = text.split("class ShortestQueue")[1].split("```")[0]
    names: dict[str, object] = {"Policy": Policy, "ClassVar": ClassVar}
    exec(f"class ShortestQueue{code}", names)  # our own page
    kind = names.pop("ShortestQueue")
    graph, _ = scheduled(*LINE, "mc")
    result = Simulation(graph, {"": kind()}, COSTS).run()
    assert result.delivered == simulate(*LINE, COSTS, "mc").delivered

"""`papilio stream simulate`: a described warehouse on a virtual clock."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner

from engine.cli import papilio
from engine.errors import BadInput
from engine.events import LogReader, RunFinished, RunStarted, TableStaleness, UpdateFinished, UpdateStarted
from engine.refresh import simulation
from engine.refresh.model import TableSpec, Warehouse
from engine.refresh.partition import tracks_named
from engine.refresh.scheduler import Settings
from engine.refresh.simulator import Arrived, Cost, Observer, Stream, World, simulate, without_contention
from engine.store import MetadataStore
from workflows import __file__ as shipped

SMALL = """
papilio: 1
name: small
nodes:
  fast: {operator: generator_stream, settings: {period_s: 10, jitter_s: 1}}
  slow: {operator: generator_stream, settings: {period_s: 60}}
  load_fast: {operator: copy}
  load_slow: {operator: copy}
  visits:
    operator: stream_table
    settings: {path: visits, time_column: ts, staleness_bound_s: 40}
    hints: {alpha_s: 1, beta: 0.1}
  orders: {operator: stream_table, settings: {path: orders, time_column: ts}, hints: {alpha_s: 2, beta: 0.1}}
  pass: {operator: copy}
  recent:
    operator: stream_table
    settings: {path: recent, time_column: ts, priority: 10, staleness_bound_s: 5}
    hints: {alpha_s: 1, beta: 0.05}
edges:
- {from: fast, to: load_fast}
- {from: load_fast, to: visits}
- {from: slow, to: load_slow}
- {from: load_slow, to: orders}
- {from: visits, to: pass}
- {from: pass, to: recent}
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PAPILIO_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("PAPILIO_STORE", raising=False)
    path = tmp_path / "small.butterfly.yaml"
    path.write_text(SMALL, encoding="utf-8")
    return path


def simulated(file: Path, *options: str) -> dict[str, Any]:
    done = CliRunner().invoke(papilio, ["stream", "simulate", str(file), "--json", *options], catch_exceptions=False)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_the_answer_has_what_programs_rely_on(file: Path) -> None:
    answer = simulated(file, "--count", "3000", "--tracks", "1")
    assert answer["events"] == 3000
    assert answer["relative_lateness"] >= 1
    assert answer["weighted_staleness"] == pytest.approx(
        sum(table["priority"] * table["staleness_avg_s"] for table in answer["tables"].values()), rel=1e-3
    )
    assert set(answer["tables"]) == {"visits", "orders", "recent"}
    assert answer["bounds"] == {"kept": ["visits"], "broken": ["recent"]}  # no table is 5 s fresh every 10 s
    assert answer["assumed"] == []


def test_the_same_seed_gives_the_same_answer_and_another_another(file: Path) -> None:
    first, again, other = (
        simulated(file, "--count", "1000", "--seed", seed)["weighted_staleness"] for seed in ("1", "1", "2")
    )
    assert first == again != other


def test_the_seed_is_the_beginning_of_the_random_policy_as_well(file: Path, monkeypatch) -> None:
    given = []
    whole = simulation.simulate
    monkeypatch.setattr(
        simulation,
        "simulate",
        lambda world, settings, **other: given.append(settings) or whole(world, settings, **other),
    )
    simulated(file, "--count", "100", "--seed", "7", "--policy", "random")
    assert given[0].seed == 7


def test_without_contention_each_job_is_for_its_table_alone() -> None:
    """Views that scan the same and wait together would else be one job: then the ideal has a job of its own."""
    specs = [TableSpec("a", period_s=10.0, alpha_s=1.0, beta=0.0)]
    specs += [TableSpec(f"v{n}", ("a",), alpha_s=4.0, beta=0.0, scan_share=0.9) for n in range(3)]
    costs = {"a": Cost(1.0, 0.0)} | {f"v{n}": Cost(4.0, 0.0) for n in range(3)}
    world = World(Warehouse(specs), {"a": Stream(10.0, 0.0)}, costs)
    tables: list[int] = []
    observer = Observer(started=lambda now, job: tables.append(len(job.tables)))
    simulate(world, without_contention(world), events=100, observer=observer)
    assert set(tables) == {1}


def test_the_log_tells_the_very_staleness_of_the_answer(file: Path, tmp_path: Path) -> None:
    answer = simulated(file, "--count", "2000", "--tracks", "1", "--run-dir", str(tmp_path / "run"))
    events = list(LogReader(tmp_path / "run" / "events.jsonl"))
    assert isinstance(events[0], RunStarted)
    assert isinstance(events[-1], RunFinished)
    zero, end = events[0].time, events[-1].time
    told: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for event in events:
        if isinstance(event, TableStaleness):
            told[event.table].append((event.time, event.staleness))
    for name, table in answer["tables"].items():
        teeth = told[name]
        area = 0.0
        for (at, stale), (until, _) in zip(teeth, [*teeth[1:], (end, 0.0)], strict=True):
            area += (until - at) * (2 * stale + until - at) / 2
        assert area / (end - zero) == pytest.approx(table["staleness_avg_s"], rel=1e-3)
    assert len([event for event in events if isinstance(event, UpdateStarted)]) == answer["jobs"]
    done = [event for event in events if isinstance(event, UpdateFinished)]
    assert len(done) == sum(table["updates"] for table in answer["tables"].values())
    with MetadataStore() as store:
        (record,) = store.list_runs(workflow="small")
    assert (record.run, record.master, record.status) == (answer["run"], "simulated", "done")


def test_slow_periods_make_tables_staler(file: Path) -> None:
    plain = simulated(file, "--count", "3000", "--tracks", "1")
    slowed = simulated(
        file, "--count", "3000", "--tracks", "1", "--slowdown", "4", "--normal-s", "300", "--slow-s", "300"
    )
    assert slowed["weighted_staleness"] > 1.5 * plain["weighted_staleness"]


def test_a_stream_of_unknown_period_is_told_with_file_and_table(file: Path) -> None:
    text = SMALL.replace(
        "{operator: generator_stream, settings: {period_s: 60}}",
        "{operator: folder_stream, settings: {path: ., columns: {ts: timestamp}}}",
    )
    file.write_text(text, encoding="utf-8")
    with pytest.raises(BadInput) as caught:
        simulated(file)
    assert f"{file}: table `orders`: nobody knows how often data arrive" in str(caught.value)


def test_what_is_not_known_of_a_tables_cost_is_assumed_and_said(file: Path) -> None:
    file.write_text(SMALL.replace(", hints: {alpha_s: 2, beta: 0.1}", ""), encoding="utf-8")
    assert simulated(file, "--count", "500")["assumed"] == ["orders"]


def test_on_the_papers_heterogeneous_jobs_the_defaults_beat_one_queue(file: Path) -> None:
    scenario = Path(shipped).parent / "stream_heterogeneous.butterfly.yaml"
    slow = ("--tracks", "4", "--count", "60000", "--slowdown", "3", "--normal-s", "6500", "--slow-s", "6500")
    default, one = (simulated(scenario, *slow, "--sharing", sharing) for sharing in ("proportional", "one"))
    assert len(default["tables"]) == 30
    assert default["relative_lateness"] < one["relative_lateness"]


def scenario(name: str) -> Path:
    return Path(shipped).parent / f"{name}.butterfly.yaml"


def test_on_the_papers_chains_inheriting_the_largest_priority_beats_none(file: Path) -> None:
    slow = ("--tracks", "4", "--count", "6000", "--slowdown", "3", "--normal-s", "6500", "--slow-s", "6500")
    largest, none = (
        simulated(scenario("stream_chains"), *slow, "--inheritance", inheritance) for inheritance in ("max", "none")
    )
    assert len(largest["tables"]) == 27
    assert min(table["updates"] for table in largest["tables"].values()) > 0
    assert largest["assumed"] == []
    assert largest["weighted_staleness"] < 0.8 * none["weighted_staleness"]


def test_the_shipped_network_is_kept_fresh_in_a_simulation(file: Path) -> None:
    told = simulated(scenario("stream_network"), "--for", "600", "--tracks", "2")
    assert len(told["tables"]) == 11
    assert min(table["updates"] for table in told["tables"].values()) > 5
    assert told["relative_lateness"] >= 1


def test_files_that_are_dropped_into_a_folder_cannot_be_simulated_and_that_is_said(file: Path) -> None:
    with pytest.raises(BadInput, match=r"table `sale`: nobody knows how often data arrive"):
        simulated(scenario("stream_folder"))


PLUGIN = """
from typing import ClassVar

from engine.refresh.local import LocalAlgorithm


class LongestFirst(LocalAlgorithm):
    \"\"\"The longest job first, as an example of a bad idea.\"\"\"

    name: ClassVar[str] = "longest-first"
    title: ClassVar[str] = "Longest first"

    def key(self, table):
        return -table.seconds
"""


def test_a_plugin_brings_a_local_algorithm(file: Path, tmp_path: Path) -> None:
    plugin = tmp_path / "papilio_longest.py"
    plugin.write_text(PLUGIN, encoding="utf-8")
    answer = simulated(
        file, "--plugin", str(plugin), "--policy", "longest-first", "--tracks", "1", "--count", "3000",
        "--slowdown", "3", "--normal-s", "100", "--slow-s", "100",
    )  # fmt: skip
    assert answer["policy"] == "longest-first"
    assert answer["tables"]["orders"]["updates"] > 0


TRACKS_PLUGIN = """
from typing import ClassVar

from engine.refresh.partition import Group, Partition, Tracks


class LastTrackOnly(Tracks):
    \"\"\"All jobs on the last track, the others idle, as an example of a bad idea.\"\"\"

    name: ClassVar[str] = "last-only"
    title: ClassVar[str] = "The last track only"

    def partition(self, tables, tracks):
        return Partition([Group((tracks - 1,), tables=list(tables))])
"""


def test_a_plugin_brings_a_way_to_share_tracks(file: Path, tmp_path: Path) -> None:
    plugin = tmp_path / "papilio_last.py"
    plugin.write_text(TRACKS_PLUGIN, encoding="utf-8")
    options = ("--tracks", "3", "--count", "2000", "--run-dir", str(tmp_path / "run"))
    answer = simulated(file, "--plugin", str(plugin), "--sharing", "last-only", *options)
    assert answer["tables"]["orders"]["updates"] > 0
    started = [event for event in LogReader(tmp_path / "run" / "events.jsonl") if isinstance(event, UpdateStarted)]
    assert {event.track for event in started} == {2}
    with pytest.raises(BadInput, match="did you mean `last-only`"):
        simulated(file, "--sharing", "lastonly")


def test_a_package_announces_a_way_to_share_tracks_by_its_entry_point(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "papilio_announced.py").write_text(TRACKS_PLUGIN.replace("last-only", "announced"), encoding="utf-8")
    info = tmp_path / "papilio_announced-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: papilio-announced\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[papilio.tracks]\nannounced = papilio_announced:LastTrackOnly\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert tracks_named("announced").title == "The last track only"


# ---------------------------------------------------------------- what arrives


def arrivals(world: World, until_s: float) -> list[tuple[float, str, float]]:
    found: list[tuple[float, str, float]] = []
    observer = Observer(arrived=lambda now, table, upto: found.append((now, table, upto)))
    simulate(world, Settings(tracks=2), events=10**9, until_s=until_s, observer=observer)
    return found


def test_batches_come_in_the_order_of_their_times_however_many_streams_there_are() -> None:
    chance = Random(3)
    streams = {
        f"t{number}": Stream(chance.choice((1.0, 2.5, 10.0)), chance.choice((0.0, 1.0, 7.25, chance.uniform(0, 30))))
        for number in range(60)
    }
    specs = [TableSpec(name, (), 1.0, stream.period_s) for name, stream in streams.items()]
    world = World(Warehouse(specs), streams, dict.fromkeys(streams, Cost(0.001, 0.0)))
    expected = [
        (stream.first_s + batch * stream.period_s, name)
        for name, stream in streams.items()
        for batch in range(round(40 / stream.period_s) + 1)
        if stream.first_s + batch * stream.period_s <= 40
    ]
    found = arrivals(world, 40.0)
    assert sorted((round(now, 6), table) for now, table, _ in found) == sorted(
        (round(at, 6), name) for at, name in expected
    )
    assert [now for now, _, _ in found] == sorted(now for now, _, _ in found)
    assert all(upto == now for now, _, upto in found)


def test_batches_that_really_came_come_again_when_they_did_beside_those_of_streams() -> None:
    specs = [TableSpec("one", (), 1.0, 1.0), TableSpec("two", (), 1.0, 5.0)]
    came = (Arrived(4.5, "two", 4.0), Arrived(0.25, "two", 0.2))
    costs = {"one": Cost(0.01, 0.0), "two": Cost(0.01, 0.0)}
    world = World(Warehouse(specs), {"one": Stream(2.0, 1.0)}, costs, arrived=came)
    assert arrivals(world, 6.0) == [
        (0.25, "two", 0.2), (1.0, "one", 1.0), (3.0, "one", 3.0), (4.5, "two", 4.0), (5.0, "one", 5.0)
    ]  # fmt: skip
    alone = World(Warehouse(specs), {}, costs, arrived=came)
    assert simulate(alone, Settings(tracks=1), events=10**9).events == 4, "and it ends when nothing is left"

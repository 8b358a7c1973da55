"""Replaying rows at a rate, and who carries orders out; without Spark."""

from __future__ import annotations

from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.elastic.actuators import OwnWorkers, Resized
from engine.elastic.distribution import Parcel, distribution
from engine.elastic.live import LiveRun, live_limits, not_live
from engine.elastic.replay import Replay
from engine.elastic.total import TotalTime
from engine.errors import BadInput, EnvironmentProblem, RunFailed
from engine.model.elastic import Elastic
from engine.spark.cluster import NoSuchWorker
from engine.spark.packs import PackStore

RATE = {"kind": "ramp", "from_rows_s": 1, "to_rows_s": 1, "seconds": 1}


@pytest.fixture
def store(tmp_path):
    made = PackStore("elastic-test", tmp_path / "packs", budget_bytes=0)
    yield made
    made.close()


def test_rows_come_in_packs_in_their_order_and_the_file_begins_anew(store, tmp_path):
    table = pa.table({"n": list(range(10)), "text": pa.array([str(n) for n in range(10)], pa.string_view())})
    pq.write_table(table, tmp_path / "rows.parquet")
    replay = Replay(tmp_path / "rows.parquet", store, pack_rows=4)
    taken = [*replay.take(3), *replay.take(0), *replay.take(12)]
    assert [place for _, place in taken] == [0, 3, 7, 0, 3]
    packs = [pack for pack, _ in taken]
    assert [pack.rows for pack in packs] == [3, 4, 3, 3, 2]
    read = [pq.read_table(store.path(pack)) for pack in packs]
    assert [n for piece in read for n in piece["n"].to_pylist()] == [*range(10), *range(5)]
    assert read[0].schema.field("text").type == pa.string()
    assert (replay.generated, replay.rounds) == (15, 1)
    store.release(packs)
    assert list(store.disk.iterdir()) == []


@pytest.mark.parametrize(
    ("rows", "nodes", "sizes"),
    [
        (9, 1, [3, 3, 3]),
        (9, 2, [3, 2, 2, 2]),
        (13, 3, [3, 2, 2, 2, 2, 2]),
        (3, 2, [2, 1]),
        (1, 3, [1]),
        (9, 0, [3, 3, 3]),
    ],
)
def test_packs_of_one_extraction_are_alike_and_as_many_for_each_node(rows, nodes, sizes, store, tmp_path):
    pq.write_table(pa.table({"n": list(range(100))}), tmp_path / "rows.parquet")
    replay = Replay(tmp_path / "rows.parquet", store, pack_rows=4)
    assert [pack.rows for pack, _ in replay.take(rows, nodes)] == sizes


@pytest.mark.parametrize("name", ["hash", "range"])
def test_the_same_rows_go_to_the_same_node_and_every_node_gets_some(name, store, tmp_path):
    pq.write_table(pa.table({"n": list(range(100))}), tmp_path / "rows.parquet")
    replay = Replay(tmp_path / "rows.parquet", store, pack_rows=10)
    replay.take(100)  # once through: from now on the range of places is known
    policy = distribution(name)
    rounds = [[policy.choose(Parcel(1, place), [0, 0])[0] for _, place in replay.take(100)] for _ in range(3)]
    assert rounds[1] == rounds[2]
    assert set(rounds[1]) == {0, 1}
    if name == "range":
        assert rounds[1] == sorted(rounds[1])


def test_a_file_without_rows_is_refused(store, tmp_path):
    pq.write_table(pa.table({"n": pa.array([], pa.int64())}), tmp_path / "none.parquet")
    with pytest.raises(BadInput, match="has no rows to replay"):
        Replay(tmp_path / "none.parquet", store, 4)


class Cluster:
    """Names of workers instead of workers."""

    def __init__(self) -> None:
        self.ids = ["worker-1"]
        self.dead: list[str] = []
        self.gone: set[str] = set()
        self.fails = 0  # the worker that does not start

    def workers(self):
        return [type("Worker", (), {"id": id_}) for id_ in self.ids]

    def add_worker(self):
        if len(self.ids) + 1 == self.fails:
            raise EnvironmentProblem(f"worker-{self.fails} did not start")
        self.ids.append(f"worker-{len(self.ids) + 1}")
        return type("Worker", (), {"id": self.ids[-1]})

    def stop_worker(self, id_):
        if id_ in self.gone:
            raise NoSuchWorker(id_)
        self.ids.remove(id_)

    def forget_dead(self):
        dead, self.dead = self.dead, []
        return dead


def test_workers_are_started_and_the_youngest_stopped_first():
    cluster = Cluster()
    actuator = OwnWorkers(cluster)  # type: ignore[arg-type]
    assert actuator.resize(3) == Resized(("worker-2", "worker-3"), (), 3)
    assert actuator.resize(3) == Resized((), (), 3)
    assert actuator.resize(1) == Resized((), ("worker-2", "worker-3"), 1)
    cluster.dead = ["worker-1"]
    assert (actuator.lost(), actuator.lost()) == (["worker-1"], [])


def test_workers_that_came_before_one_that_does_not_start_stay_and_are_counted():
    cluster = Cluster()
    cluster.fails = 3
    assert OwnWorkers(cluster).resize(4) == Resized(("worker-2",), (), 2, "worker-3 did not start")  # type: ignore[arg-type]


def test_a_worker_that_dies_before_it_can_be_stopped_is_gone_all_the_same():
    cluster = Cluster()
    actuator = OwnWorkers(cluster)  # type: ignore[arg-type]
    actuator.resize(3)
    cluster.gone = {"worker-2"}
    assert actuator.resize(1) == Resized((), ("worker-2", "worker-3"), 1)


def test_live_the_stages_of_the_driver_have_one_node_each():
    limits = Elastic.model_validate(
        {"rate": RATE, "extraction": {"nodes": {"max": 4}}, "warehouse": {"nodes": {"max": 3}}}
    )
    live = live_limits(limits)
    assert [live.extraction.nodes.max, live.buffer.nodes.max, live.switch.nodes.max] == [1, 1, 1]
    assert (live.warehouse.nodes.max, live.transformation.nodes.max) == (3, None)
    assert limits.extraction.nodes.max == 4
    assert not_live(limits) == [
        "`elastic.extraction.nodes` is not heeded live: the driver is the one node of the extraction"
    ]
    assert not_live(live) == []


def test_what_was_given_is_told_as_first_rows_of_the_file(store, tmp_path):
    pq.write_table(pa.table({"n": list(range(10))}), tmp_path / "rows.parquet")
    replay = Replay(tmp_path / "rows.parquet", store, pack_rows=4)
    assert replay.given() == {}
    for rows, given in ((3, {3: 1}), (7, {10: 1}), (14, {10: 2, 4: 1})):
        store.release([pack for pack, _ in replay.take(rows)])
        assert replay.given() == given
    assert sum(rows * times for rows, times in replay.given().items()) == replay.generated
    replay.write_first(4, tmp_path / "first.parquet")
    assert pq.read_table(tmp_path / "first.parquet")["n"].to_pylist() == [0, 1, 2, 3]


class Counted:
    """A frame that knows its rows only, and the star and the flow that give it."""

    def __init__(self, rows):
        self.rows, self.current = rows, SimpleNamespace(nodes=1, version=1, bytes=1)
        self.folder = "warehouse"

    def frame(self, current):
        return self

    def transform(self, frame):
        return self

    def count(self):
        return self.rows


@pytest.mark.parametrize(
    ("taken", "transformed", "loaded", "made", "reason"),
    [
        (10, 10, 10, None, None),
        (10, 7, 7, 7, None),  # the workflow filters three of them out
        (8, 8, 8, None, "of 10 generated rows 8 were transformed"),
        (10, 7, 6, None, "the warehouse has 6 facts where 7 were transformed"),
        (10, 7, 7, 9, "of 10 generated rows the workflow makes 9 facts, and 7 were loaded"),
    ],
)
def test_a_run_that_lost_rows_fails_and_one_that_filtered_them_does_not(
    store, tmp_path, taken, transformed, loaded, made, reason
):
    pq.write_table(pa.table({"n": list(range(10))}), tmp_path / "rows.parquet")
    run = LiveRun.__new__(LiveRun)
    run.raw, run.star, run.flow = store, Counted(loaded), Counted(made)
    run.spark = SimpleNamespace(read=SimpleNamespace(schema=lambda schema: SimpleNamespace(parquet=lambda file: file)))
    run._schema, run.scaler, run.most_workers = None, SimpleNamespace(nodes=dict), 1
    run.taken_rows, run.transformed_rows = taken, transformed
    run._rebalanced, run._unreachable = [], set()
    run.total, run._query_max_s = TotalTime(3), None
    replay = Replay(tmp_path / "rows.parquet", store, pack_rows=4)
    store.release([pack for pack, _ in replay.take(10)])
    if reason is None:
        assert run._told(replay)["rows"]["refused"] == 10 - transformed
    else:
        with pytest.raises(RunFailed, match=reason):
            run._told(replay)

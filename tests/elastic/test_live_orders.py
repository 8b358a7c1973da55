"""A live run's orders, measures and end, without Spark: who dies, waits or is late loses no rows and ends no run."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.elastic import live as live_module
from engine.elastic.actuators import Actuator, NotOurs, OwnWorkers, Resized
from engine.elastic.decision import Stage
from engine.elastic.live import LiveRun, pack_budgets
from engine.elastic.rates import DataRate
from engine.elastic.replay import Replay
from engine.elastic.scaler import Start, Stop
from engine.errors import BadInput, RunFailed
from engine.events import Event, NodeChanged, QueryAnswered, Rebalanced, Remark, ScalingDecided, StagesSampled
from engine.model.elastic import Elastic
from engine.schedule.queues import Pack
from engine.spark import cluster as cluster_module
from engine.spark import packs as packs_module
from engine.spark.cluster import StandaloneCluster
from engine.spark.packs import PackStore
from engine.spark.star import Moved

RATE = {"kind": "ramp", "from_rows_s": 1, "to_rows_s": 1, "seconds": 1}
T, W = Stage.TRANSFORMATION, Stage.WAREHOUSE


class Workers(Actuator):
    """Names of Workers; those that are asked for come at once."""

    def __init__(self, number: int) -> None:
        self.names = [f"worker-{n + 1}" for n in range(number)]
        self.came = number
        self.dead: list[str] = []
        self.fails = False

    def resize(self, nodes: int) -> Resized:
        started = []
        while len(self.names) < nodes and not self.fails:
            self.came += 1
            started.append(f"worker-{self.came}")
            self.names.append(started[-1])
        stopped, self.names = self.names[nodes:], self.names[:nodes]
        problem = "it did not start" if len(self.names) < nodes else None
        return Resized(tuple(started), tuple(stopped), len(self.names), problem)

    def lost(self) -> list[str]:
        dead, self.dead = self.dead, []
        return dead

    def kill(self, name: str) -> None:
        self.names.remove(name)
        self.dead.append(name)


class Facts:
    """A warehouse that counts its nodes; a rebalancing lasts until it may go on."""

    def __init__(self, nodes: int) -> None:
        self.current = SimpleNamespace(nodes=nodes, rows=0)
        self.may = threading.Event()
        self.may.set()
        self.begun = threading.Event()
        self.load: Callable[..., Any] = lambda packs, rows: SimpleNamespace(version=1, rows=rows)

    def rebalance(self, nodes: int) -> Moved:
        assert nodes >= 1
        self.begun.set()
        assert self.may.wait(10)
        before, self.current.nodes = self.current.nodes, nodes
        return Moved(before, nodes, 0, 0, 0.0, 1)


class Log:
    """Keeps the events."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def add(self, event: Event) -> None:
        self.events.append(event)

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


class Buffered:
    """A pack store that counts."""

    memory_bytes = disk_bytes = 0

    def path(self, pack: Pack) -> str:
        return pack.name

    def release(self, packs: list[Pack]) -> None:
        pass


def made(actuator: Actuator | None = None, **limits: Any) -> LiveRun:
    given: dict[str, Any] = {
        "rate": RATE,
        "settle_s": 0,
        "hold_s": 1,
        "sample_s": 0.05,
        "extraction": {"every_s": 0.05},
    }
    elastic = Elastic.model_validate(given | {"warehouse": {"every_s": 0.05}} | limits)
    control = SimpleNamespace(cancelled=threading.Event())
    record: Any = SimpleNamespace(limits=elastic, log=Log(), control=control, run="r", master=None)
    told: list[str] = []
    context = SimpleNamespace(
        told=told,
        setJobGroup=lambda *given: None,
        cancelAllJobs=lambda: told.append("all"),
        cancelJobGroup=lambda group: told.append("queries"),
    )
    spark: Any = SimpleNamespace(sparkContext=context)
    workers = actuator or Workers(max(elastic.transformation.nodes.min, elastic.warehouse.nodes.min))
    run = LiveRun(record, DataRate(lambda now: 0.0, 1.0), spark, None, workers)  # type: ignore[arg-type]
    run._begun = time.monotonic()
    run.star = Facts(elastic.warehouse.nodes.min)  # type: ignore[assignment]
    run.buffer = Buffered()  # type: ignore[assignment]
    return run


def carried_out(run: LiveRun) -> None:
    """All orders, one after the other."""
    for orders in (run._replacements, run._orders):
        orders.put(None)
        run._carry_out(orders)


def at(run: LiveRun, stage: Stage, nodes: int) -> None:
    """A stage has so many nodes, and Workers for them."""
    run.scaler.stages[stage].nodes = nodes
    run.actuator.resize(run._wanted())
    if stage is W:
        run.star.current.nodes = nodes  # type: ignore[misc]
    run._changed(stage)


def stop_asked(run: LiveRun, stage: Stage) -> None:
    """The scaler has asked for a node to leave."""
    run.scaler.stages[stage].stopping = 1
    run._order(Stop(stage, 1, "low"))


def waiting(run: LiveRun) -> int:
    return sum(len(queue) for queue in run._waiting)


def queue_rows(run: LiveRun, packs: int) -> None:
    for number in range(packs):
        run._waiting[number % len(run._waiting)].append((Pack(1, 1_000_000, str(number)), time.monotonic()))


@pytest.mark.parametrize("stage", [T, W])
def test_a_worker_that_dies_while_a_node_is_to_leave_costs_no_rows_and_is_not_replaced(stage):
    run = made()
    at(run, stage, 2)
    queue_rows(run, 6)
    stop_asked(run, stage)
    run.actuator.kill("worker-2")  # type: ignore[attr-defined]
    run._sample()
    carried_out(run)
    assert run.scaler.nodes()[stage.value] == 1
    assert waiting(run) == 6
    assert run.star.current.nodes == 1
    assert run.actuator.names == ["worker-1"]  # type: ignore[attr-defined]
    run._sample()  # looks at the queues that there are
    changes = [(event.change, event.node) for event in run.record.log.of(NodeChanged)]  # type: ignore[attr-defined]
    assert changes == [("lost", "worker-2")]


def test_both_workers_that_die_while_one_is_to_leave_leave_one_that_is_replaced():
    run = made()
    at(run, T, 2)
    queue_rows(run, 6)
    stop_asked(run, T)
    for name in ("worker-1", "worker-2"):
        run.actuator.kill(name)  # type: ignore[attr-defined]
    run._sample()
    carried_out(run)
    assert (run.scaler.nodes()["transformation"], waiting(run), len(run._waiting)) == (1, 6, 1)
    assert run.actuator.names == ["worker-3"]  # type: ignore[attr-defined]


def test_workers_that_die_in_a_rebalancing_are_replaced_before_it_ends():
    run = made()
    at(run, W, 2)
    run.star.may.clear()  # type: ignore[attr-defined]
    run.scaler.stages[W].starting = 1
    run._order(Start(W, 1, "busy"))
    orders = threading.Thread(target=run._carry_out, args=(run._orders,), daemon=True)
    replacements = threading.Thread(target=run._carry_out, args=(run._replacements,), daemon=True)
    orders.start()
    replacements.start()
    try:
        assert run.star.begun.wait(5)  # type: ignore[attr-defined]
        for name in list(run.actuator.names):  # type: ignore[attr-defined]
            run.actuator.kill(name)  # type: ignore[attr-defined]
        run._sample()
        deadline = time.monotonic() + 5
        while len(run.actuator.names) < 3 and time.monotonic() < deadline:  # type: ignore[attr-defined]
            time.sleep(0.01)
        assert len(run.actuator.names) == 3  # type: ignore[attr-defined]
        assert not run.record.log.of(Rebalanced)  # type: ignore[attr-defined]
    finally:
        run.star.may.set()  # type: ignore[attr-defined]
        run._orders.put(None)
        run._replacements.put(None)
        orders.join()
        replacements.join()
    assert run.star.current.nodes == run.scaler.nodes()["warehouse"] == 3
    run.scaler.check()


def test_nodes_that_came_count_and_those_that_did_not_are_ready_again():
    class Half(Workers):
        def resize(self, nodes: int) -> Resized:
            done = super().resize(min(nodes, 2))
            return Resized(done.started, (), 2, "worker-3 did not start")

    run = made(Half(1), step_share=1.0)
    run.scaler.stages[T].starting = 2
    run._order(Start(T, 2, "busy"))
    carried_out(run)
    assert run.scaler.nodes()["transformation"] == len(run._waiting) == 2
    assert run.scaler.stages[T].starting == 0
    changes = [event.change for event in run.record.log.of(NodeChanged)]  # type: ignore[attr-defined]
    assert changes == ["failed", "started"]


def test_a_replacement_that_does_not_start_is_tried_again():
    run = made()
    at(run, T, 2)
    run.actuator.kill("worker-2")  # type: ignore[attr-defined]
    run.actuator.fails = True  # type: ignore[attr-defined]
    run._sample()
    carried_out(run)
    assert run.scaler.nodes()["transformation"] == 1
    run.actuator.fails = False  # type: ignore[attr-defined]
    run._sample()
    carried_out(run)
    assert run.scaler.nodes()["transformation"] == 2
    decided = run.record.log.of(ScalingDecided)  # type: ignore[attr-defined]
    assert [event.reason for event in decided] == [
        "worker-2 died: it is replaced", "1 of its nodes died and could not be replaced: another try",
    ]  # fmt: skip


def test_on_local_spark_no_node_is_told_that_did_not_come():
    run = made(NotOurs(), transformation={"queue_mb": 1})
    run._peaks = [9.0]
    run._sample()
    carried_out(run)
    assert run.record.log.of(NodeChanged) == []  # type: ignore[attr-defined]
    (told,) = run.record.log.of(ScalingDecided)  # type: ignore[attr-defined]
    assert (told.action, told.nodes) == ("unreachable", 1)
    assert told.reason.endswith("local Spark has no Workers that could be added")
    assert (run._unreachable, run.most_workers) == ({"transformation"}, 0)


# ---------------------------------------------------------------- measures


def loaded(run: LiveRun, load: Callable[..., Any], seconds: float = 0.15) -> None:
    """The load goes on for a while, with such a load."""
    run.star.load = load  # type: ignore[method-assign]
    thread = threading.Thread(target=run._load, daemon=True)
    thread.start()
    time.sleep(seconds)
    run._stop.set()
    thread.join()


def test_a_load_that_began_before_the_nodes_changed_is_no_measure_of_these():
    run = made()
    run._buffered = [Pack(5, 10, "a")]

    def load(packs: list[str], rows: int) -> Any:
        run._changed(W)
        run._stop.set()
        return SimpleNamespace(version=1, rows=rows)

    loaded(run, load)
    assert run._measured.load_s is None
    assert run._measured.loaded_s > 0


def test_a_query_that_began_before_the_nodes_changed_is_no_measure_of_these():
    run = made(warehouse={"sessions": 1, "query_limit_s": 9})
    run.star.current.rows = 1  # type: ignore[misc]
    asked: list[str] = []

    def query(sql: str) -> tuple[list[Any], int]:
        asked.append(sql)
        if len(asked) == 1:
            run._changed(W)
        else:
            run._stop.set()
        return [], 1

    run.star.query = query  # type: ignore[method-assign]
    run._ask()
    assert len(run._measured.queries) == 1


def test_sessions_ask_the_queries_that_a_person_wrote():
    own = {"lines": "SELECT count(*) AS n FROM lineorder", "days": "SELECT d_year AS year FROM lineorder"}
    run = made(warehouse={"sessions": 1, "queries": own})
    run.star.current.rows = 1  # type: ignore[misc]
    given: set[str] = set()

    def query(sql: str) -> tuple[list[Any], int]:
        given.add(sql)
        if len(given) == 2:
            run._stop.set()
        return [], 1

    run.star.query = query  # type: ignore[method-assign]
    run._ask()
    assert given == set(own.values())
    assert {event.query for event in run.record.log.of(QueryAnswered)} == set(own)  # type: ignore[attr-defined]


def test_a_query_that_spark_refuses_ends_the_run_before_rows_come_and_is_named():
    run = made(warehouse={"sessions": 1, "queries": {"lost": "SELECT no AS n FROM lineorder"}})
    run.record.file = SimpleNamespace(path="w.butterfly.yaml")  # type: ignore[assignment]

    def check(sql: str) -> None:
        raise ValueError("there is no column `no`")

    run.star.check = check  # type: ignore[method-assign]
    with pytest.raises(
        BadInput, match=r"w.butterfly.yaml: `elastic.warehouse.queries`: query `lost`: there is no column"
    ):
        run._check_queries()
    run.limits.warehouse.sessions = 0  # nobody asks
    run._check_queries()


def test_rows_that_wait_longer_than_the_transformation_may_take_ask_for_a_worker():
    run = made(transformation={"limit_s": 5, "queue_mb": 1000})
    run._waiting[0].append((Pack(1, 10, "a"), time.monotonic() - 4))
    run._sample()
    assert run.record.log.of(ScalingDecided) == []  # type: ignore[attr-defined]
    run._waiting[0].append((Pack(1, 10, "b"), time.monotonic() - 6))
    run._sample()
    carried_out(run)
    (told,) = run.record.log.of(ScalingDecided)  # type: ignore[attr-defined]
    assert (told.stage, told.action) == ("transformation", "scale out")
    assert "s to be transformed, more than their limit of 5 s" in told.reason
    assert run.actuator.names == ["worker-1", "worker-2"]  # type: ignore[attr-defined]
    # What came before the Worker says nothing of the two.
    assert run._waited_s() is None
    run._waiting[1].append((Pack(1, 10, "c"), time.monotonic()))
    assert (run._waited_s() or 9) < 1


def test_what_is_transformed_is_measured_from_when_it_came_and_by_the_nodes_that_it_came_to():
    run = made()
    seen: list[float | None] = []

    def transformed(packs: list[Pack]) -> list[Pack]:
        seen.append(run._waited_s())
        if packs[0].name == "b":
            run._changed(T)
        return []

    run._transformed = transformed  # type: ignore[method-assign]
    run.raw = Buffered()  # type: ignore[assignment]
    thread = threading.Thread(target=run._transform, daemon=True)
    thread.start()
    for name, wanted in (("a", True), ("b", False)):
        with run._lock:
            run._waiting[0].append((Pack(1, 10, name), time.monotonic() - 3))
            run._dealt_at = 0.0
        while len(seen) < (1 if name == "a" else 2) or run._busy:
            time.sleep(0.01)
        assert run._measured.transformation_s >= 3
        assert ((run._measured.waited_s or 0) >= 3) is wanted
    run._stop.set()
    thread.join()
    assert min(seconds or 0 for seconds in seen) >= 3  # also while it was being worked on


def test_when_no_rows_come_any_more_a_load_takes_no_time():
    run = made()
    run._measured.load_s, run._measured.loaded_s, run._measured.switch_rows_s = 3.0, 3.0, 1000.0
    loaded(run, lambda packs, rows: pytest.fail("there is nothing to load"), seconds=0.3)
    assert (run._measured.load_s, run._measured.loaded_s, run._measured.switch_rows_s) == (0.0, 0.0, 0.0)


def test_when_all_three_take_too_long_together_it_is_told_once_and_which_takes_longest():
    run = made(limit_s=3)
    measured = run._measured
    for seconds in (1.0, 4.0, 5.0, 1.0):
        measured.extraction_s, measured.transformation_s, measured.loaded_s = [0.5], seconds, 0.5
        run._sample()
    remarks = [event.message for event in run.record.log.of(Remark)]  # type: ignore[attr-defined]
    assert remarks == [
        "extraction, transformation and load took 5.000 s in all, more than their limit of 3 s (limit_s); "
        "the transformation took longest, 4.000 s"
    ]
    times = run.total.summary()
    assert (times["etl_max_s"], times["late_share"], times["slowest"]) == (6.0, 0.5, "transformation")
    assert run.record.log.of(StagesSampled)  # type: ignore[attr-defined]


def test_packs_lie_in_memory_only_where_every_executor_can_read_them():
    for master in (None, "local[2]", "spark://127.0.0.1:7077"):
        assert pack_budgets(master, 5) == (None, 5_000_000)
    for master in ("spark://host:7077", "k8s://https://host:6443", "yarn"):
        assert pack_budgets(master, 5) == (0, 0)


class Written:
    """Facts of so many bytes a file, as Spark would write them."""

    def __init__(self, sizes: list[int], seen: Callable[[Path], None]) -> None:
        self.sizes, self.seen = sizes, seen
        self.write = self

    def option(self, *given: Any) -> Written:
        return self

    def parquet(self, folder: str) -> None:
        Path(folder).mkdir(parents=True)
        for number, size in enumerate(self.sizes):
            noise = pa.array([os.urandom(size)], pa.binary())
            plain: dict[str, Any] = {"use_dictionary": False, "write_statistics": False, "store_schema": False}
            pq.write_table(pa.table({"a": noise}), f"{folder}/{number}.parquet", **plain)
        self.seen(Path(folder))


@pytest.fixture
def buffered(tmp_path, monkeypatch):
    """A run whose buffer has so many bytes of memory, and the bytes that were in memory at most."""
    memory = tmp_path / "memory"
    memory.mkdir()
    monkeypatch.setattr(packs_module, "MEMORY_FOLDER", memory)
    most = [0]

    def seen(_: Path) -> None:
        most[0] = max(most[0], sum(file.stat().st_size for file in memory.rglob("*.parquet")))

    def start(budget: int) -> LiveRun:
        run = made()
        run.raw = Buffered()  # type: ignore[assignment]
        run.buffer = PackStore("b", tmp_path / "disk", budget)
        return run

    return SimpleNamespace(start=start, seen=seen, most=most, memory=memory)


def test_the_buffer_takes_no_more_memory_than_was_asked_for_also_while_facts_are_written(buffered):
    """Facts that are three times as large as the rows that they are made of; nobody could know."""
    run = buffered.start(20_000)
    run._facts = lambda files: Written([1500, 1500], buffered.seen)  # type: ignore[assignment, return-value]
    held: list[Pack] = []
    for number in range(20):
        held += run._transformed([Pack(1, 1000, "r")])
        assert run.buffer.used_bytes == run.buffer.memory_bytes <= 20_000, "nothing is kept that is not taken"
        buffered.seen(buffered.memory)
        if number == 12:
            run.buffer.release(held)
            held = []
            assert run.buffer.memory_bytes == 0
    assert 10_000 < buffered.most[0] <= 20_000
    # Above half of it to disk, until it is empty; then into memory again.
    assert run.buffer.max_memory_bytes > 10_000
    assert run.buffer.max_disk_bytes > 20_000
    assert run.buffer.memory_bytes > 10_000


def test_facts_for_which_the_machine_has_no_memory_are_written_to_disk(buffered):
    run = buffered.start(100_000)
    run._growth = 1.0

    def full(folder: Path) -> None:
        if run.buffer.is_in_memory(folder):
            raise OSError(errno.ENOSPC, "No space left on device")

    run._facts = lambda files: Written([500], full)  # type: ignore[assignment, return-value]
    (pack,) = run._transformed([Pack(1, 1000, "r")])
    assert run.buffer.path(pack).is_relative_to(run.buffer.disk)
    assert run.buffer.used_bytes == 0
    assert list(buffered.memory.rglob("*.parquet")) == []


def test_rows_that_are_replayed_keep_no_more_memory_than_they_take(buffered, tmp_path):
    store = PackStore("raw", tmp_path / "raw", 1_000_000)
    pq.write_table(pa.table({"a": list(range(1000)), "b": ["text"] * 1000}), tmp_path / "lines.parquet")
    replay = Replay(tmp_path / "lines.parquet", store, 100)
    packs = [pack for pack, _ in replay.take(1000)]
    assert store.used_bytes == store.memory_bytes == sum(pack.bytes for pack in packs)


# ---------------------------------------------------------------- the end


def test_a_run_whose_rows_go_on_is_not_given_up(monkeypatch):
    monkeypatch.setattr(live_module, "_STILL_S", 0.3)
    run = made()
    run._busy = 1

    def move() -> None:
        for _ in range(8):
            time.sleep(0.1)
            run._moved_at = time.monotonic()
        run._busy = 0

    thread = threading.Thread(target=move)
    thread.start()
    run._drain()  # 0.8 s
    thread.join()
    assert run._busy == 0


def test_a_run_whose_rows_stand_still_is_given_up(monkeypatch):
    monkeypatch.setattr(live_module, "_STILL_S", 0.2)
    run = made()
    run._busy = 1
    with pytest.raises(RunFailed, match="nothing has moved"):
        run._drain()


def test_rows_that_wait_for_the_next_load_do_not_stand_still(monkeypatch):
    monkeypatch.setattr(live_module, "_STILL_S", 0.2)
    run = made(warehouse={"every_s": 0.7})
    thread = threading.Thread(target=run._load, daemon=True)
    thread.start()
    time.sleep(0.1)  # the first instant is over
    run._buffered = [Pack(5, 10, "a")]
    run._drain()
    run._stop.set()
    thread.join()
    assert run._buffered == []


def test_at_the_end_a_rebalancing_is_finished_and_told_and_nodes_that_die_in_it_are_replaced():
    run = made()
    run.star.may.clear()  # type: ignore[attr-defined]
    run.scaler.stages[W].starting = 1
    run._order(Start(W, 1, "busy"))
    threads = [
        threading.Thread(target=run._carry_out, args=(orders,), daemon=True)
        for orders in (run._orders, run._replacements)
    ]
    for thread in threads:
        thread.start()
    assert run.star.begun.wait(5)  # type: ignore[attr-defined]
    run.actuator.kill("worker-1")  # type: ignore[attr-defined]

    def go_on() -> None:
        deadline = time.monotonic() + 5
        while len(run.actuator.names) < 2 and time.monotonic() < deadline:  # type: ignore[attr-defined]
            time.sleep(0.01)
        run.star.may.set()  # type: ignore[attr-defined]

    threading.Thread(target=go_on).start()
    run._drain()
    run._end(threads, loaded=True)
    assert run.spark.sparkContext.told == ["queries"]  # nothing else is dropped
    assert run.star.current.nodes == run.scaler.nodes()["warehouse"] == 2
    assert len(run.actuator.names) == 2  # type: ignore[attr-defined]
    assert [event.message for event in run.record.log.of(Remark)] == [  # type: ignore[attr-defined]
        "all rows are loaded; the rebalancing under way is finished first"
    ]


def test_a_run_that_fails_drops_what_is_under_way():
    run = made()
    run._end([], loaded=False)
    assert run.spark.sparkContext.told == ["all"]


@pytest.mark.parametrize("launched", [True, False], ids=["the Worker", "what knows its command"])
def test_a_worker_for_which_there_is_no_process_is_told_and_the_run_goes_on(launched, tmp_path, monkeypatch):
    cluster = StandaloneCluster(0)
    cluster._folder, cluster._properties = tmp_path, tmp_path / "daemon.properties"
    cluster._environment = {"JAVA_HOME": str(tmp_path)}
    cluster._guard = SimpleNamespace(pid=1)  # type: ignore[assignment]
    if launched:
        monkeypatch.setattr(cluster_module, "spark_command", lambda *words: ["java", "-cp", "classes", *words[1:]])
    monkeypatch.setattr(cluster, "workers", lambda: [SimpleNamespace(id="worker-0")])
    asked: list[str] = []

    def no_process(*given: Any, **more: Any) -> Any:
        asked.append("process")
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(cluster_module.subprocess, "Popen", no_process)
    run = made(OwnWorkers(cluster), transformation={"queue_mb": 1}, settle_s=0.01)
    monkeypatch.setattr(cluster, "forget_dead", list)
    run._peaks = [9.0]
    run._sample()
    carried_out(run)
    (failed,) = run.record.log.of(NodeChanged)  # type: ignore[attr-defined]
    assert (failed.change, failed.nodes) == ("failed", 1)
    assert failed.reason == "Spark's worker-1 could not be started: Resource temporarily unavailable"
    assert cluster._daemons == {}
    time.sleep(0.02)
    run._peaks = [9.0]
    run._sample()  # another try
    carried_out(run)
    assert asked == ["process", "process"]
    run.scaler.check()


def test_a_worker_that_ends_as_soon_as_it_is_registered_is_a_worker_that_does_not_start(tmp_path, monkeypatch):
    (tmp_path / "worker-1.log").write_text("it was killed\n")
    daemon = SimpleNamespace(name="worker-1", said=lambda: "it was killed")
    cluster = StandaloneCluster(0)
    ended: list[str] = []
    monkeypatch.setattr(cluster, "_start_worker", lambda: daemon)
    monkeypatch.setattr(cluster, "_await_registered", lambda daemon: None)
    monkeypatch.setattr(cluster, "workers", list)
    monkeypatch.setattr(cluster, "_end", lambda daemon: ended.append(daemon.name))
    with pytest.raises(live_module.EnvironmentProblem, match="worker-1 ended as soon as it was registered"):
        cluster.add_worker()
    assert ended == ["worker-1"]

"""The same workflow at every granularity and under every policy: other turns, the same targets."""

from __future__ import annotations

import contextlib
import gzip
import sqlite3
import threading
from collections import defaultdict
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from pyarrow import parquet

from engine.events import (
    DegreeMeasured,
    LogReader,
    QueueSnapshot,
    QueueSpilled,
    Remark,
    SparkJob,
    UnitActivated,
    UnitDecided,
    UnitFinished,
    UnitStarted,
)
from engine.spark import pack_frames
from engine.spark.packs import PackStore, memory_folder
from tests.end_to_end.helpers import answer, papilio_here, parquet_rows, write
from tests.operators.test_plugin import EXAMPLE

# A split and a rejoin around an input that is needed whole, several ports, a sort, a staging area, a target that is
# added to and read on, refused rows with and without a port: what a scheduler can get wrong.
NODES = {
    "partsupp": {"operator": "parquet_source", "path": "${data}/partsupp"},
    "nation": {"operator": "csv_source", "path": "${data}/nation.csv", "columns": {"n": "bigint", "name": "string"}},
    "not_null": {"operator": "not_null", "columns": ["ps_availqty"]},
    "quarantine": {"operator": "parquet_target", "path": "${out}/quarantine"},
    "value": {"operator": "derive", "columns": [{"name": "value", "expression": "ps_availqty * ps_supplycost"},
                                                {"name": "n", "expression": "ps_suppkey % 27"}]},
    "sizes": {"operator": "router", "routes": [{"port": "large", "condition": "ps_availqty > 6000"},
                                               {"port": "small", "condition": "ps_availqty < 2000"}]},
    "average": {"operator": "aggregate", "group": ["ps_suppkey"],
                "aggregates": [{"name": "usual", "expression": "avg(ps_availqty)"}]},
    "usual": {"operator": "lookup", "keys": [{"main": "ps_suppkey", "reference": "ps_suppkey"}],
              "take": [{"column": "usual"}]},
    "named": {"operator": "lookup", "keys": [{"main": "n", "reference": "n"}], "take": [{"column": "name"}],
              "on_miss": "miss"},
    "unknown": {"operator": "parquet_target", "path": "${out}/unknown"},
    "sorted": {"operator": "sort", "by": [{"column": "value"}, {"column": "ps_partkey"}, {"column": "ps_suppkey"}]},
    "short": {"operator": "select", "columns": [{"column": "ps_partkey"}, {"column": "value"}]},
    "large": {"operator": "csv_target", "path": "${out}/large.csv", "single_file": True},
    "both": {"operator": "union"},
    "once": {"operator": "deduplicate", "keys": ["ps_partkey"], "order": [{"column": "ps_suppkey"}]},
    "kept": {"operator": "staging"},
    "same": {"operator": "copy"},
    "parts": {"operator": "parquet_target", "path": "${out}/parts", "mode": "append"},
    "summed": {"operator": "aggregate", "group": ["n"],
               "aggregates": [{"name": "value", "expression": "sum(value)"}, {"name": "parts", "expression": "count(*)"}]},
    "sums": {"operator": "parquet_target", "path": "${out}/sums"},
}  # fmt: skip
EDGES = [
    "partsupp -> not_null.in", "not_null.quarantine -> quarantine.in", "not_null -> value.in", "value -> sizes.in",
    "value -> average.in", "value -> usual.main", "average -> usual.reference", "usual -> named.main",
    "nation -> named.reference", "named.miss -> unknown.in", "named -> sorted.in", "sorted -> short.in",
    "short -> large.in", "sizes.large -> both.in", "sizes.small -> both.in", "both -> once.in",
    "once.unique -> kept.in", "kept -> same.in", "same -> parts.in", "parts -> summed.in", "summed -> sums.in",
]  # fmt: skip
PARQUET = ("quarantine", "unknown", "parts", "sums")


@pytest.fixture(scope="module")
def data(tpch, tmp_path_factory):
    """PartSupp in two files of several row groups, and nations as CSV with two lines that cannot be read."""
    folder = tmp_path_factory.mktemp("scheduled")
    (folder / "partsupp").mkdir()
    with duckdb.connect() as connection:
        rows = f"""SELECT ps_partkey, ps_suppkey, ps_supplycost,
            CASE WHEN ps_partkey % 89 = 0 THEN NULL ELSE ps_availqty END AS ps_availqty FROM '{tpch}/partsupp.parquet'"""
        for half in (0, 1):
            connection.execute(
                f"COPY (SELECT * FROM ({rows}) WHERE ps_partkey % 2 = {half}) "
                f"TO '{folder}/partsupp/part-{half}.parquet' (ROW_GROUP_SIZE 2048)"
            )
        connection.execute(
            f"COPY (SELECT n_nationkey AS n, n_name AS name FROM '{tpch}/nation.parquet') TO '{folder}/nation.csv' (HEADER)"
        )
    with (folder / "nation.csv").open("a") as nations:
        nations.write("twenty-five,ATLANTIS\nx,LEMURIA\n")
    return folder


def prepared(data, folder):
    """The workflow's file, and a table from before that it adds to."""
    (folder / "out").mkdir(parents=True)
    with duckdb.connect() as connection:  # a row from before, that the append keeps
        (folder / "out" / "parts").mkdir()
        connection.execute(
            f"""COPY (SELECT 0::BIGINT AS ps_partkey, 0::BIGINT AS ps_suppkey, 1::DECIMAL(15,2) AS ps_supplycost,
            1 AS ps_availqty, 1::DECIMAL(26,2) AS value, 26::BIGINT AS n) TO '{folder}/out/parts/part-0.parquet'"""
        )
    roots = {"data": str(data), "out": str(folder / "out")}
    nodes = {**NODES, "nation": {**NODES["nation"], "max_refused": 2}}
    return write(folder, nodes, EDGES, roots=roots)


def run(spark, data, folder, *options):
    file = prepared(data, folder)
    done = papilio_here("run", file, "--json", "--run-dir", folder / "run", *options, home=folder / "home", spark=spark)
    return answer(done)


def targets(folder):
    found = {name: parquet_rows(folder / "out" / name) for name in PARQUET}
    return {**found, "large": (folder / "out" / "large.csv").read_text()}


@pytest.fixture(scope="module")
def fused(spark, data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fused")
    summary = run(spark, data, folder)
    return targets(folder), summary


def test_the_fused_answer_is_duckdbs_and_its_log_tells_every_decision(fused, data):
    found, summary = fused
    check_log(Path(summary["folder"]) / "events.jsonl", summary, None)
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW ps AS SELECT * FROM '{data}/partsupp/*.parquet' WHERE ps_availqty IS NOT NULL")
        sums = connection.sql(
            """WITH once AS (SELECT *, row_number() OVER (PARTITION BY ps_partkey ORDER BY ps_suppkey) AS place
                 FROM ps WHERE ps_availqty > 6000 OR ps_availqty < 2000)
               SELECT n, sum(value)::DECIMAL(36,2), count(*) FROM (
                 SELECT ps_suppkey % 27 AS n, ps_availqty * ps_supplycost AS value FROM once WHERE place = 1
                 UNION ALL SELECT 26, 1) GROUP BY n"""
        ).fetchall()
        large = connection.sql(
            """SELECT ps_partkey || ',' || (ps_availqty * ps_supplycost)::DECIMAL(26,2) FROM ps WHERE ps_suppkey % 27 < 25
               ORDER BY ps_availqty * ps_supplycost, ps_partkey, ps_suppkey"""
        ).fetchall()
    assert found["sums"] == sorted(sums, key=repr)
    assert found["large"].splitlines()[1:] == [line for (line,) in large]


@pytest.mark.parametrize(
    ("granularity", "policy", "queue_packs"),
    [
        ("operator", "rr", 100), ("subflow", "mixed", 3), ("fused", "mm", 1),
        pytest.param("operator", "mm", 1, marks=pytest.mark.slow),
        pytest.param("operator", "mixed", 1, marks=pytest.mark.slow),
        pytest.param("tree", "rr", 1, marks=pytest.mark.slow),
        pytest.param("operator", "mc", 2, marks=pytest.mark.slow),
        pytest.param("subflow", "mm", 100, marks=pytest.mark.slow),
        pytest.param("tree", "mixed", 100, marks=pytest.mark.slow),
        pytest.param("fused", "rr", 1, marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_every_granularity_and_policy_gives_the_same_targets(
    spark, data, fused, tmp_path, granularity, policy, queue_packs
):
    summary = run(
        spark, data, tmp_path, "--granularity", granularity, "--policy", policy, "--queue-packs", queue_packs,
        "--pack-rows", 1000, "--slot-ms", 200,
    )  # fmt: skip
    expected, fused_summary = fused
    found = targets(tmp_path)
    for name, rows in expected.items():
        assert found[name] == rows, f"{name} differs"
    assert (summary["granularity"], summary["policy"]) == (granularity, policy)
    for node, rows in summary["nodes"].items():
        known = fused_summary["nodes"][node]
        for side in ("rows_in", "rows_out"):
            assert None in (rows[side], known[side]) or rows[side] == known[side], f"{node}: {side}"
        assert rows.get("refused") == known.get("refused")
    if granularity == "operator":
        assert all(node["count"] == "exact" for node in summary["nodes"].values())
    check_log(tmp_path / "run" / "events.jsonl", summary, queue_packs)
    if granularity == "operator":
        events = list(LogReader(tmp_path / "run" / "events.jsonl"))
        turns = [event for event in events if isinstance(event, UnitActivated)]
        routed = [event for event in turns if (event.unit, event.step) == ("sizes", "process")]
        jobs = {e.job for e in events if isinstance(e, SparkJob) and e.unit == "sizes"}  # Spark itself forgets old ones
        assert len(jobs) == len(routed) > 0, "all ports of a router are written in one job"
        read = [event.rows_in for event in turns if (event.unit, event.step) == ("partsupp", "read")]
        assert sum(read) == summary["nodes"]["partsupp"]["rows_out"] == 8000, "nothing is read twice"
        if queue_packs < 100 and policy != "mixed":  # under mixed, what this reader gives is staged
            assert len(read) > 1, "the reader stopped at a full queue and went on"
    assert not (tmp_path / "run" / "packs").exists()
    assert not memory_folder(summary["run"]).exists()


def check_log(log, summary, capacity):
    """What the log says of queues and turns adds up."""
    events = list(LogReader(log))
    started = events[0]
    if summary["granularity"] == "fused":
        check_fused(events, summary)
        return
    allowed = defaultdict(lambda: capacity)
    for event in events:
        if isinstance(event, QueueSpilled):
            allowed[event.queue] = event.packs
        elif isinstance(event, QueueSnapshot):
            for queue, (packs, rows, size) in event.queues.items():
                bounded = started.queues[queue]["capacity_packs"] is not None
                assert not bounded or packs <= allowed[queue], f"{queue} is over its capacity"
                assert rows <= packs * 1000
                assert size > 0
    decided = [event for event in events if isinstance(event, UnitDecided)]
    turns = [event for event in events if isinstance(event, UnitActivated)]
    assert len(decided) == len(turns) == summary["activations"]
    for event in decided:
        assert event.unit in [unit for unit, _ in event.candidates]
        if event.policy == "mc":
            scores = dict(map(tuple, event.candidates))
            assert scores[event.unit] == max(scores.values()), "the policy's choice has the highest score"
    if summary["policy"] == "mixed":
        check_subflows(events, started, decided)
    last = [event for event in events if isinstance(event, QueueSnapshot)][-1]
    assert (last.memory_bytes, last.disk_bytes) == (0, 0), "packs that were consumed are gone"
    bounded = [queue for queue, facts in started.queues.items() if facts["capacity_packs"] is not None]
    assert summary["queue"]["max_packs"] >= summary["queue"]["avg_packs"]
    assert (summary["queue"]["avg_packs"] > 0) == bool(bounded)
    assert (summary["staged_bytes"] > 0) or bounded, "what is not in a queue is staged"


def check_fused(events, summary):
    """Every unit was decided on once, when it stood first among those that were ready."""
    decided = [event for event in events if isinstance(event, UnitDecided)]
    assert [event.activation for event in decided] == list(range(1, summary["activations"] + 1))
    assert sorted(event.unit for event in decided) == sorted(summary["units"])
    for event in decided:
        scores = dict(map(tuple, event.candidates))
        assert scores[event.unit] == max(scores.values())
    if summary["policy"] == "mixed":
        assert at_once(events, UnitStarted, UnitFinished) > 1, "units that do not read each other run side by side"


def at_once(events, begins, ends):
    """How many were under way at the same time."""
    now = most = 0
    for event in events:
        now += isinstance(event, begins) - isinstance(event, ends)
        most = max(most, now)
    return most


def check_subflows(events, started, decided):
    """Each subflow has one policy of its own, and begins when those it reads from have ended."""
    group = {event.unit: event.group for event in decided}
    pairs = {(event.group, event.policy) for event in decided}
    assert len(pairs) == len(set(group.values())) > 1
    assert {policy for _, policy in pairs} <= {"mc", "mm"}
    begun = {event.group: place for place, event in reversed(list(enumerate(events))) if isinstance(event, UnitDecided)}
    ended = {group[event.unit]: place for place, event in enumerate(events) if isinstance(event, UnitActivated)}
    assert at_once(events, UnitDecided, UnitActivated) > 1, "subflows that do not read each other run side by side"
    between = {(group[facts["producer"]], group[facts["consumer"]]) for facts in started.queues.values()}
    for producer, consumer in between:
        assert producer == consumer or ended[producer] < begun[consumer], f"{consumer} did not wait for {producer}"


def test_a_plugin_s_policy_picks_fused_units_as_well(spark, data, fused, tmp_path):
    summary = run(spark, data, tmp_path, "--policy", "chain", "--plugin", EXAMPLE / "papilio_chain.py")
    assert (summary["policy"], targets(tmp_path)) == ("chain", fused[0])
    check_log(tmp_path / "run" / "events.jsonl", summary, None)


@pytest.mark.parametrize("compressed", [False, True])
def test_what_is_read_in_one_go_takes_no_memory_that_nobody_reckoned_with(
    spark, data, tmp_path, monkeypatch, compressed
):
    text = (data / "nation.csv").read_bytes()
    name = "nation.csv.gz" if compressed else "nation.csv"
    (tmp_path / name).write_bytes(gzip.compress(text) if compressed else text)
    asked = []

    def new_folder(self, expected_bytes=0, on_disk=False):
        asked.append((expected_bytes, on_disk))
        return real(self, expected_bytes, on_disk)

    real = PackStore.new_folder
    monkeypatch.setattr(PackStore, "new_folder", new_folder)
    nodes = {"nation": {**NODES["nation"], "path": f"${{data}}/{name}", "max_refused": 2}, "same": {"operator": "copy"},
             "out": {"operator": "parquet_target", "path": "${out}/out"}}  # fmt: skip
    file = write(tmp_path, nodes, ["nation -> same.in", "same -> out.in"],
                 roots={"data": str(tmp_path), "out": str(tmp_path / "out")})  # fmt: skip
    options = ("--granularity", "operator", "--policy", "rr", "--json")
    assert answer(papilio_here("run", file, *options, home=tmp_path / "home", spark=spark))["status"] == "done"
    # A line of digits may be shorter than its numbers are as packs, and a compressed one is, so it goes to disk.
    assert asked[0] == (0, True)


def run_texts(spark, folder, granularity, percent, edges=()):
    """Ten lines of which four cannot be read; `percent` of them may be."""
    (folder / "rows.csv").write_text("n\n" + "".join(f"{line}\n" for line in [1, 2, "x", 3, "y", 4, "z", 5, 6, "w"]))
    nodes = {
        "rows": {"operator": "csv_source", "path": "${data}/rows.csv", "columns": {"n": "int"},
                 "max_refused_percent": percent},
        "next": {"operator": "derive", "columns": [{"name": "next", "expression": "n + 1"}]},
        "few": {"operator": "filter", "condition": "n > 2"},
        "out": {"operator": "parquet_target", "path": "${out}/out"},
        "said": {"operator": "copy"},
        "bad": {"operator": "parquet_target", "path": "${out}/bad"},
    }  # fmt: skip
    if not edges:
        del nodes["said"], nodes["bad"]
    roots = {"data": str(folder), "out": str(folder / "out")}
    file = write(folder, nodes, ["rows.out -> next.in", "next -> few.in", "few.match -> out.in", *edges], roots=roots)
    options = ("--granularity", granularity, "--policy", "rr", "--json")
    return papilio_here("run", file, *options, home=folder / "home", spark=spark)


READ = ("rows.reject -> said.in", "said -> bad.in")


@pytest.mark.parametrize(
    ("granularity", "edges"),
    [
        ("tree", ()), ("subflow", READ), ("fused", READ),
        pytest.param("tree", READ, marks=pytest.mark.slow), pytest.param("subflow", (), marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_the_share_of_refused_lines_is_that_of_all_lines_also_where_the_source_is_melted_with_others(
    spark, tmp_path, granularity, edges
):
    done = run_texts(spark, tmp_path, granularity, 39.9, edges)
    assert done.returncode == 1
    assert "40.00 % of the rows (4 of 10) were refused, and 39.9 % are allowed" in done.stderr
    assert not (tmp_path / "out").exists() or not any((tmp_path / "out").iterdir())
    summary = answer(run_texts(spark, tmp_path, granularity, 40, edges))
    assert summary["targets"]["out"]["rows"] == 4
    if granularity != "fused":
        assert (summary["nodes"]["rows"]["rows_out"], summary["nodes"]["next"]["rows_in"]) == (10 if edges else 6, 6)


def test_rows_of_a_source_that_nobody_counted_are_not_told_as_none(spark, tmp_path):
    (tmp_path / "divided").mkdir()
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT range AS n, range % 3 AS p FROM range(90)) TO '{tmp_path}/divided' (FORMAT parquet, PARTITION_BY p)"
        )
    with contextlib.closing(sqlite3.connect(tmp_path / "rows.db")) as database:
        database.execute("CREATE TABLE r (n INTEGER)")
        database.executemany("INSERT INTO r VALUES (?)", [(number,) for number in range(50)])
        database.commit()
    sources = {
        "parts": ({"operator": "parquet_source", "path": str(tmp_path / "divided")}, 90),
        "table": ({"operator": "sqlite_source", "path": str(tmp_path / "rows.db"), "table": "r"}, None),
    }
    for name, (source, rows) in sources.items():
        nodes = {name: source, "few": {"operator": "filter", "condition": "n >= 40"},
                 "out": {"operator": "parquet_target", "path": str(tmp_path / name / "out")}}  # fmt: skip
        (tmp_path / name).mkdir(exist_ok=True)
        file = write(
            tmp_path / name, nodes, [f"{name} -> few.in", "few.match -> out.in"], roots={"here": str(tmp_path)}
        )
        options = ("--granularity", "tree", "--policy", "rr", "--json")
        told = answer(papilio_here("run", file, *options, home=tmp_path / "home", spark=spark))["nodes"][name]
        assert (told["rows_out"], told["count"]) == (rows, "exact" if rows else "fused")


@pytest.mark.parametrize("granularity", ["tree", "subflow"])
def test_a_source_without_rows_is_read_by_several_threads_as_well(spark, tmp_path, granularity):
    parquet.ParquetWriter(tmp_path / "rows.parquet", pa.schema([("n", pa.int64())])).close()
    nodes = {"rows": {"operator": "parquet_source", "path": "${data}/rows.parquet"},
             "few": {"operator": "filter", "condition": "n > 2"},
             "out": {"operator": "parquet_target", "path": "${out}/out"}}  # fmt: skip
    roots = {"data": str(tmp_path), "out": str(tmp_path / "out")}
    file = write(tmp_path, nodes, ["rows -> few.in", "few.match -> out.in"], roots=roots)
    file.write_text(file.read_text().replace("  few:\n", "  few:\n    threads: 2\n"))
    options = ("--granularity", granularity, "--policy", "rr", "--json")
    summary = answer(papilio_here("run", file, *options, home=tmp_path / "home", spark=spark))
    assert (summary["nodes"]["rows"]["rows_out"], summary["targets"]["out"]["rows"]) == (0, 0)


@pytest.mark.parametrize(
    ("granularity", "policy"), [pytest.param("operator", "mm", marks=pytest.mark.slow), ("tree", "rr")]
)
def test_packs_and_what_is_being_written_never_take_more_memory_than_the_budget(
    spark, data, fused, tmp_path, monkeypatch, granularity, policy
):
    budget, seen = 60_000, []

    class Small(PackStore):
        def __init__(self, name, disk, asked):
            super().__init__(name, disk, budget)

        def new_folder(self, expected_bytes=0, on_disk=False):
            folder = super().new_folder(expected_bytes, on_disk)
            seen.append(folder.is_relative_to(self.memory))
            return folder

    monkeypatch.setattr("engine.spark.pack_run.PackStore", Small)
    options = ("--granularity", granularity, "--policy", policy, "--pack-rows", 500, "--queue-packs", 16)
    summary = run(spark, data, tmp_path, *options)
    assert targets(tmp_path) == fused[0]
    events = LogReader(Path(summary["folder"]) / "events.jsonl")
    used = [event.memory_bytes for event in events if isinstance(event, QueueSnapshot)]
    assert 0 < max(used) <= budget
    assert set(seen) == {True, False}, "some of it in memory, the rest on disk"


def test_what_may_be_many_times_its_input_is_written_to_disk_until_its_growth_is_known(spark, tmp_path, monkeypatch):
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT range AS n FROM range(4000)) TO '{tmp_path}/rows.parquet' (ROW_GROUP_SIZE 2048)"
        )
    asked = []

    def new_folder(self, expected_bytes=0, on_disk=False):
        asked.append((expected_bytes, on_disk))
        return real(self, expected_bytes, on_disk)

    real = PackStore.new_folder
    monkeypatch.setattr(PackStore, "new_folder", new_folder)
    nodes = {
        "rows": {"operator": "parquet_source", "path": "${data}/rows.parquet"},
        "list": {"operator": "derive", "columns": [{"name": "all", "expression": "sequence(1, 10)"}]},
        "each": {"operator": "explode", "column": "all", "into": "one"},
        "out": {"operator": "parquet_target", "path": "${out}/out"},
    }
    roots = {"data": str(tmp_path), "out": str(tmp_path / "out")}
    file = write(tmp_path, nodes, ["rows -> list.in", "list -> each.in", "each -> out.in"], roots=roots)
    options = ("--granularity", "tree", "--policy", "rr", "--pack-rows", 500, "--queue-packs", 4, "--json")
    assert (
        answer(papilio_here("run", file, *options, home=tmp_path / "home", spark=spark))["targets"]["out"]["rows"]
        == 40_000
    )
    written = asked[1::2]  # each turn has the slices it reads first
    assert written[0] == (0, True)
    assert not written[1][1]
    assert written[1][0] > 5 * asked[2][0], "ten rows for each of the first turn"


@pytest.mark.parametrize("derived", ["repeat('x', 400)", "n + 1.0D"])
def test_packs_that_turn_out_much_larger_than_their_input_never_take_more_memory_than_the_budget(
    spark, tmp_path, monkeypatch, derived
):
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT range AS n FROM range(20000)) TO '{tmp_path}/rows.parquet' (ROW_GROUP_SIZE 2048)"
        )
    budget, most, stores = 400_000, [0], []

    class Small(PackStore):
        def __init__(self, name, disk, asked):
            super().__init__(name, disk, budget)
            stores.append(self)

    def watch():  # what really lies there, whatever the books say
        while not over.wait(0.002):
            for store in stores:
                with contextlib.suppress(OSError):  # it was taken away meanwhile
                    most[0] = max(most[0], sum(file.stat().st_size for file in store.memory.rglob("*.parquet")))

    monkeypatch.setattr("engine.spark.pack_run.PackStore", Small)
    nodes = {
        "rows": {"operator": "parquet_source", "path": "${data}/rows.parquet"},
        "wide": {"operator": "derive", "columns": [{"name": "wide", "expression": derived}]},
        "out": {"operator": "parquet_target", "path": "${out}/out"},
    }
    roots = {"data": str(tmp_path), "out": str(tmp_path / "out")}
    file = write(tmp_path, nodes, ["rows -> wide.in", "wide -> out.in"], roots=roots)
    options = ("--granularity", "operator", "--policy", "rr", "--pack-rows", 1000, "--json")
    over = threading.Event()
    thread = threading.Thread(target=watch)
    thread.start()
    try:
        done = answer(papilio_here("run", file, *options, home=tmp_path / "home", spark=spark))
    finally:
        over.set()
        thread.join()
    assert done["targets"]["out"]["rows"] == 20_000
    assert 0 < most[0] <= budget


def test_subflows_that_read_the_same_packs_at_the_same_time_find_them(spark, tmp_path, monkeypatch):
    """A router's packs go on inside its subflow, and to two others, which begin together when it has ended."""
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT range AS n FROM range(8000)) TO '{tmp_path}/rows.parquet' (ROW_GROUP_SIZE 2048)"
        )
    moved = []
    to_disk = PackStore.to_disk

    def noted(self, packs):
        packs = list(packs)
        shared = [pack.name for pack in packs if self._packs[pack.name].holders > 1]
        moved.extend(name for name in shared if self._packs[name].in_memory)
        to_disk(self, packs)

    monkeypatch.setattr(PackStore, "to_disk", noted)
    nodes = {
        "rows": {"operator": "parquet_source", "path": "${data}/rows.parquet"},
        "more": {"operator": "derive", "columns": [{"name": "m", "expression": "n % 7"}]},
        "few": {"operator": "filter", "condition": "n < 4000"},
        "kept": {"operator": "parquet_target", "path": "${out}/kept"},
        "sum": {"operator": "aggregate", "group": ["m"], "aggregates": [{"name": "n", "expression": "sum(n)"}]},
        "sums": {"operator": "parquet_target", "path": "${out}/sums"},
        "order": {"operator": "sort", "by": [{"column": "n", "descending": True}]},
        "ordered": {"operator": "parquet_target", "path": "${out}/ordered"},
    }
    edges = ["rows -> more.in", "more -> few.in", "few.match -> kept.in", "more -> sum.in", "sum -> sums.in",
             "more -> order.in", "order -> ordered.in"]  # fmt: skip
    roots = {"data": str(tmp_path), "out": str(tmp_path / "out")}
    file = write(tmp_path, nodes, edges, roots=roots)
    options = ("--granularity", "operator", "--policy", "mixed", "--pack-rows", 500, "--json")
    done = answer(papilio_here("run", file, *options, home=tmp_path / "home", spark=spark))
    assert {name: target["rows"] for name, target in done["targets"].items()} == {
        "kept": 4000, "sums": 7, "ordered": 8000
    }  # fmt: skip
    assert not moved, "nobody moves what somebody else reads"


def test_packs_stand_in_the_order_in_which_a_task_wrote_them(tmp_path):
    with duckdb.connect() as connection:
        for number in (0, 101, 999, 1000, 1001):
            name = f"part-00000-5c1f0a1e-c0de-4c1c-8f00-000000000000-c{number:03d}.parquet"
            connection.execute(f"COPY (SELECT {number} AS n) TO '{tmp_path}/{name}'")
        connection.execute(f"COPY (SELECT 7 AS n) TO '{tmp_path}/part-00001-5c1f0a1e.c000.parquet'")
    files = [file for file, rows in pack_frames._files(tmp_path) if rows]
    assert [duckdb.sql(f"SELECT n FROM '{file}'").fetchall()[0][0] for file in files] == [0, 101, 999, 1000, 1001, 7]


LINE = {
    "partsupp": {"operator": "parquet_source", "path": "${data}/partsupp"},
    "value": {"operator": "derive", "columns": [{"name": "value", "expression": "ps_availqty * ps_supplycost"}]},
    "dear": {"operator": "filter", "condition": "value > 100000"},
    "rows": {"operator": "parquet_target", "path": "${out}/rows"},
    "by_supplier": {"operator": "aggregate", "group": ["ps_suppkey"], "aggregates": [
        {"name": "value", "expression": "sum(value)"}, {"name": "least", "expression": "min(ps_availqty)"},
        {"name": "rows", "expression": "count(*)"}, {"name": "known", "expression": "count(ps_availqty)"}]},
    "sums": {"operator": "parquet_target", "path": "${out}/sums"},
}  # fmt: skip
LINE_EDGES = [
    "partsupp -> value.in", "value -> dear.in", "dear.match -> rows.in", "dear.match -> by_supplier.in",
    "by_supplier -> sums.in",
]  # fmt: skip


def run_line(spark, data, folder, *options, threads=None):
    folder.mkdir(exist_ok=True)
    file = write(folder, LINE, LINE_EDGES, roots={"data": str(data), "out": str(folder / "out")})
    if threads:
        file.write_text(file.read_text().replace("  dear:\n", f"  dear:\n    threads: {threads}\n"))
    done = papilio_here("run", file, "--json", "--pack-rows", 500, *options, home=folder / "home", spark=spark)
    return answer(done)


def test_a_fused_run_says_that_it_does_not_heed_threads(spark, data, tmp_path):
    summary = run_line(spark, data, tmp_path, threads=3)
    said = [event for event in LogReader(Path(summary["folder"]) / "events.jsonl") if isinstance(event, Remark)]
    assert [(event.node, "packs" in event.message) for event in said] == [("dear", True)]


def in_order(folder):
    """A target's rows in the order of its files."""
    with duckdb.connect() as connection:
        return connection.sql(f"SELECT * FROM read_parquet('{folder}/*.parquet')").fetchall()


def most_jobs_a_turn(summary, unit):
    """The most of Spark's jobs that one turn of a unit took, by the times at which they began."""
    events = list(LogReader(Path(summary["folder"]) / "events.jsonl"))
    begun = {event.job: event.started for event in events if isinstance(event, SparkJob) and event.unit == unit}
    turns = [event for event in events if isinstance(event, UnitActivated) and event.unit == unit]
    return max(sum(turn.time - turn.seconds - 0.01 <= at <= turn.time for at in begun.values()) for turn in turns)


@pytest.fixture(scope="module")
def line(spark, data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("line")
    run_line(spark, data, folder)
    return {name: parquet_rows(folder / "out" / name) for name in ("rows", "sums")}


def test_an_aggregate_sums_up_what_it_puts_aside(spark, data, line, tmp_path):
    options = ("--granularity", "operator", "--policy", "mc", "--queue-packs", 8)
    summary = run_line(spark, data, tmp_path, *options)
    assert parquet_rows(tmp_path / "out" / "sums") == line["sums"]
    events = list(LogReader(Path(summary["folder"]) / "events.jsonl"))
    turns = [event for event in events if isinstance(event, UnitActivated)]
    absorbed = [event for event in turns if (event.unit, event.step) == ("by_supplier", "absorb")]
    assert absorbed[0].packs_in >= 4
    last = max(turns.index(event) for event in turns if event.unit == "dear")
    assert turns.index(absorbed[0]) < last, "it absorbed before its producers ended"
    (whole,) = (event for event in turns if (event.unit, event.step) == ("by_supplier", "whole"))
    jobs = [event for event in events if isinstance(event, SparkJob) and event.unit == "by_supplier"]
    assert events.index(jobs[0]) < events.index(turns[last]) < events.index(whole), "and summed up what it absorbed"


@pytest.mark.slow
def test_pipelines_side_by_side_give_the_same_rows_and_their_degree_is_kept_for_the_next_run(
    spark, data, line, tmp_path
):
    summary = run_line(spark, data, tmp_path, "--granularity", "tree", "--policy", "rr", "--degree", 3)
    assert parquet_rows(tmp_path / "out" / "rows") == line["rows"]
    assert "measures" not in summary
    assert most_jobs_a_turn(summary, "partsupp") == 3, "three pipelines"
    first = run_line(spark, data, tmp_path, "--granularity", "tree", "--policy", "rr", "--degree", "auto")
    assert parquet_rows(tmp_path / "out" / "sums") == line["sums"]
    measures = first["measures"]["partsupp"]
    assert measures["activities"] == 3
    assert measures["staggering"] in ("", "partsupp", "value", "dear")
    again = run_line(spark, data, tmp_path, "--granularity", "tree", "--policy", "rr", "--degree", "auto")
    told = [list(LogReader(Path(run["folder"]) / "events.jsonl")) for run in (first, again)]
    assert [sum(isinstance(event, DegreeMeasured) for event in events) for events in told] == [1, 0], "measured once"
    assert again["measures"]["partsupp"]["net_seconds"] != measures["net_seconds"], "and corrected by what turns took"


@pytest.mark.slow
def test_a_node_with_several_threads_keeps_the_order_of_its_rows(spark, data, line, tmp_path):
    side_by_side = run_line(spark, data, tmp_path, "--granularity", "operator", "--policy", "rr", threads=3)
    expected = run_line(spark, data, tmp_path / "alone", "--granularity", "operator", "--policy", "rr", threads=1)
    assert expected["status"] == "done"
    assert most_jobs_a_turn(side_by_side, "dear") == 3, "three threads"
    assert most_jobs_a_turn(expected, "dear") == 1
    found = in_order(tmp_path / "out" / "rows")
    assert sorted(found, key=repr) == line["rows"]
    assert found == in_order(tmp_path / "alone" / "out" / "rows")
    with duckdb.connect() as connection:
        keys = connection.sql(
            f"""SELECT ps_partkey, ps_suppkey FROM read_parquet('{data}/partsupp/*.parquet')
                WHERE ps_availqty * ps_supplycost > 100000"""
        ).fetchall()
    assert [row[:2] for row in found] == keys, "the order of the source's files and rows"

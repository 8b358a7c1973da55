"""What arrives: each file once, broken ones put aside, generated records by number, PostgreSQL by transactions."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from engine.model.operator import Place
from engine.spark.stream_feeds import PostgresqlFeed, feed_of
from engine.spark.stream_store import TableStore
from engine.spark.stream_versions import Change
from tests.operators.harness import make

NOW = time.time()
SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("n", pa.int64())])
COLUMNS = {"ts": "timestamp", "n": "bigint"}


class Folder:
    """A watched folder, its table, and what the feed said."""

    def __init__(self, tmp_path: Path, **settings) -> None:
        self.path = tmp_path / "in"
        self.path.mkdir(exist_ok=True)
        self.store = TableStore(tmp_path / "t", "ts", 60_000_000)
        self.said: list[str] = []
        stream = make("folder_stream", path="in", columns=COLUMNS, check_s=0.01, **{"settle_s": 0, **settings})
        self.feed = feed_of(
            stream, Place(lambda text: tmp_path / text, str), self.store, SCHEMA, "ts", NOW, self.said.append
        )
        self.now = NOW

    def put(self, name: str, text: str, age_s: float = 10) -> None:
        file = self.path / name
        file.write_text(text)
        os.utime(file, (time.time() - age_s, time.time() - age_s))

    def poll(self) -> list:
        self.now += 1
        return self.feed.poll(self.now)

    def publish(self, arrivals: list) -> None:
        self.store.publish(Change(1, 1, batches={arrival.id: arrival.facts for arrival in arrivals}))


@pytest.fixture
def folder(tmp_path):
    made = Folder(tmp_path)
    yield made
    made.store.close()


def test_files_arrive_in_the_order_they_were_written(folder):
    folder.put("b.csv", "ts,n\n2026-01-01T00:00:02Z,2\n", age_s=30)
    folder.put("a.csv", "ts,n\n2026-01-01T00:00:03Z,3\n2026-01-01T00:00:01Z,1\n", age_s=20)
    folder.put("c.csv.part", "ts,n\n")
    folder.put(".hidden.csv", "ts,n\n")
    arrivals = folder.poll()
    assert [(arrival.facts[0], arrival.rows) for arrival in arrivals] == [("b.csv", 1), ("a.csv", 2)]
    assert [arrival.upto_us for arrival in arrivals] == [1767225602_000000, 1767225603_000000]
    assert folder.feed.read(arrivals)["n"].to_pylist() == [2, 3, 1]
    assert folder.poll() == []


def test_a_time_without_a_zone_is_utc(folder):
    folder.put("a.csv", "ts,n\n2026-01-01 00:00:02,2\n")
    assert folder.poll()[0].upto_us == 1767225602_000000


def test_a_batch_that_is_delivered_twice_arrives_once(folder):
    folder.put("a.csv", "ts,n\n2026-01-01T00:00:02Z,2\n")
    first = folder.poll()
    folder.publish(first)
    folder.put("again.csv", "ts,n\n2026-01-01T00:00:02Z,2\n")
    assert folder.poll() == []
    assert folder.said == ["again.csv was delivered before; it has no effect"]


def test_a_restart_takes_up_what_is_new(folder, tmp_path):
    folder.put("a.csv", "ts,n\n2026-01-01T00:00:02Z,2\n")
    folder.publish(folder.poll())
    folder.put("b.csv", "ts,n\n2026-01-01T00:00:03Z,3\n")
    folder.poll()  # it arrived, and a kill came before it was loaded
    folder.store.close()
    again = Folder(tmp_path)
    assert [arrival.facts[0] for arrival in again.poll()] == ["b.csv"]
    again.store.close()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ts,n\n2026-01-01T00:00:02Z,two\n", "invalid value 'two'"),
        ("ts,m\n2026-01-01T00:00:02Z,2\n", "it has no column `n`"),
        ("ts,n\n2026-01-01T00:00:02Z,2,3\n", "Expected 2 columns, got 3"),
        ("\x00\x01PAR1", ""),
    ],
)
def test_a_corrupt_file_is_put_aside_and_the_others_go_on(folder, text, reason):
    folder.put("bad.csv", text, age_s=30)
    folder.put("good.csv", "ts,n\n2026-01-01T00:00:02Z,2\n")
    assert [arrival.facts[0] for arrival in folder.poll()] == ["good.csv"]
    (aside,) = folder.store.quarantined()
    assert aside.name.endswith("bad.csv")
    assert reason in aside.with_name(aside.name + ".reason").read_text()
    assert "bad.csv cannot be read and was put aside" in folder.said[0]
    assert not (folder.path / "bad.csv").exists()


def test_a_file_that_is_still_being_written_is_not_put_aside(folder):
    folder.put("half.csv", "ts,n\n2026-01-01T00:", age_s=0)
    assert folder.poll() == []
    assert folder.store.quarantined() == []
    folder.put("half.csv", "ts,n\n2026-01-01T00:00:02Z,2\n", age_s=0)
    assert len(folder.poll()) == 1


def test_a_file_that_changes_after_it_was_taken_is_put_aside(folder):
    folder.put("a.csv", "ts,n\n2026-01-01T00:00:02Z,2\n")
    folder.publish(folder.poll())
    folder.put("a.csv", "ts,n\n2026-01-01T00:00:02Z,2\n2026-01-01T00:00:03Z,3\n", age_s=5)
    assert folder.poll() == [], "its first record would be loaded twice"
    assert "it changed after it was taken; a stream only adds files" in folder.said[0]
    assert len(folder.store.quarantined()) == 1


def test_a_file_is_taken_once_it_has_settled(tmp_path):
    made = Folder(tmp_path, settle_s=60)
    made.put("a.csv", "ts,n\n2026-01-01T00:00:02Z,2\n", age_s=5)
    assert made.poll() == []
    made.put("a.csv", "ts,n\n2026-01-01T00:00:02Z,2\n", age_s=90)
    assert len(made.poll()) == 1
    made.store.close()


def test_a_record_from_the_future_does_not_move_the_edge(folder):
    folder.put("a.csv", "ts,n\n2026-01-01T00:00:02Z,2\n2199-01-01T00:00:00Z,3\n")
    assert folder.poll()[0].upto_us == 1767225602_000000


def test_a_punctuation_says_what_is_safe(folder):
    folder.put("p.punctuation", "2026-01-01T00:00:05Z\n")
    (arrival,) = folder.poll()
    assert (arrival.rows, arrival.safe_us) == (0, 1767225605_000000)


def test_a_punctuation_from_the_future_is_put_aside(folder):
    folder.put("p.punctuation", "2199-01-01T00:00:05Z\n")
    assert folder.poll() == []
    assert "every record to come would be late" in folder.said[0]


def test_a_corrupt_file_that_may_not_be_removed_is_put_aside_once(folder, monkeypatch):
    def refused(*given):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("engine.spark.stream_store.os.replace", refused)
    monkeypatch.setattr(Path, "unlink", refused)
    folder.put("bad.csv", "ts,n\n2026-01-01T00:00:02Z,2,3\n", age_s=30)
    folder.put("good.csv", "ts,n\n2026-01-01T00:00:02Z,2\n")
    assert len(folder.poll()) == 1
    assert folder.poll() == []
    assert len(folder.store.quarantined()) == 1
    folder.put("bad.csv", "ts,n\n2026-01-01T00:00:03Z,3\n", age_s=20)
    assert len(folder.poll()) == 1, "mended under the same name, it is taken"


def test_json_lines_and_parquet_arrive_as_well(tmp_path):
    made = Folder(tmp_path, format="json")
    made.put("a.json", '{"ts": "2026-01-01T00:00:02Z", "n": 2, "more": 1}\n')
    assert made.feed.read(made.poll())["n"].to_pylist() == [2]
    made.store.close()
    made = Folder(tmp_path, format="parquet")
    (made.path / "a.json").unlink()
    parquet.write_table(
        pa.table({"n": pa.array([7], pa.int32()), "ts": pa.array([5]).cast(pa.timestamp("us", "UTC"))}),
        made.path / "a.parquet",
    )
    assert made.feed.read(made.poll())["n"].to_pylist() == [7]
    made.store.close()


def test_a_folder_that_went_away_is_told_once_and_looked_at_again(folder):
    folder.path.rmdir()
    assert (folder.poll(), folder.poll()) == ([], [])
    assert len(folder.said) == 1
    folder.path.mkdir()
    folder.put("a.csv", "ts,n\n2026-01-01T00:00:02Z,2\n")
    assert len(folder.poll()) == 1


# ---------------------------------------------------------------- generator


def generator(store: TableStore, now: float, **settings):
    stream = make("generator_stream", period_s=2, rows_per_s=5, seed=3, **settings)
    return feed_of(stream, Place(Path, str), store, SCHEMA, "ts", now, print)


def test_generated_batches_come_by_period_and_never_again(tmp_path):
    store = TableStore(tmp_path, "ts", 60_000_000)
    feed = generator(store, 1000.0)
    assert feed.poll(1001.9) == []
    first, second = feed.poll(1004.0)
    rows = feed.read([first, second])
    assert rows["id"].to_pylist() == list(range(20))
    times = rows["ts"].cast(pa.int64()).to_pylist()
    assert times == sorted(set(times))
    assert times[9] == first.upto_us == 1002_000000
    store.publish(Change(first.upto_us, first.upto_us, position=first.position))
    again = generator(store, 5000.0)  # a kill came before the second was loaded
    (next_,) = again.poll(5002.0)
    assert again.read([next_])["id"].to_pylist() == list(range(10, 20))
    store.close()


def test_a_clock_that_was_put_back_makes_no_record_late(tmp_path):
    store = TableStore(tmp_path, "ts", 60_000_000)
    store.publish(Change(9000_000000, 9000_000000, position=[4, 8998_000000, 9000_000000]))
    feed = generator(store, 1000.0)
    (arrival,) = feed.poll(1002.0)
    assert min(feed.read([arrival])["ts"].cast(pa.int64()).to_pylist()) > 9000_000000
    store.close()


def test_jitter_and_disorder_are_within_their_limits(tmp_path):
    store = TableStore(tmp_path, "ts", 60_000_000)
    feed = generator(store, 0.0, jitter_s=0.5, disorder_s=3)
    arrivals = feed.poll(200.5)
    assert len(arrivals) == 100
    times = feed.read(arrivals)["ts"].cast(pa.int64()).to_pylist()
    place = [(row + 1) * 200_000 for row in range(1000)]
    back = [due - at for due, at in zip(place, times, strict=True)]
    assert min(back) >= 0
    assert 2_500_000 < max(back) <= 3_000_001
    store.close()


# ---------------------------------------------------------------- PostgreSQL


def test_rows_of_a_transaction_that_ends_late_are_not_passed_over(postgresql, tmp_path, monkeypatch):
    import psycopg

    monkeypatch.setenv("PAPILIO_TEST_PASSWORD", postgresql.password)
    stream = make(
        "postgresql_stream", host=postgresql.host, port=postgresql.port, database=postgresql.database, user=postgresql.user,
        password="${env:PAPILIO_TEST_PASSWORD}", table="events", columns=COLUMNS, check_s=0.001,
    )  # fmt: skip
    place = Place(Path, lambda text: os.environ[text[6:-1]])
    store = TableStore(tmp_path, "ts", 60_000_000)
    insert = "INSERT INTO events VALUES (%s, %s)"
    with psycopg.connect(postgresql.dsn, autocommit=True) as one, psycopg.connect(postgresql.dsn) as slow:
        one.execute("CREATE TABLE events (ts timestamptz, n bigint)")
        assert stream.missing(place) is None
        feed = feed_of(stream, place, store, SCHEMA, "ts", NOW, print)
        assert isinstance(feed, PostgresqlFeed)
        one.execute(insert, ("2026-01-01T00:00:01Z", 1))
        (first,) = feed.poll(NOW + 1)
        assert (first.rows, first.upto_us) == (1, 1767225601_000000)
        slow.execute(insert, ("2026-01-01T00:00:02Z", 2))
        one.execute(insert, ("2026-01-01T00:00:03Z", 3))
        assert feed.poll(NOW + 2) == [], "the third row waits for the transaction that began before its own"
        slow.commit()
        (second,) = feed.poll(NOW + 3)
        assert feed.read([first])["n"].to_pylist() == [1]
        assert sorted(feed.read([second])["n"].to_pylist()) == [2, 3]
        assert sorted(feed.read([first, second])["n"].to_pylist()) == [1, 2, 3]
        store.publish(Change(first.upto_us, first.upto_us, position=first.position))
        feed.close()
        again = feed_of(stream, place, store, SCHEMA, "ts", NOW, print)
        assert sorted(again.read(again.poll(NOW + 9))["n"].to_pylist()) == [2, 3], "what was not loaded comes again"
        again.close()
    store.close()

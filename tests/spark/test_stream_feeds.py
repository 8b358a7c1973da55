"""What arrives: each file once, broken ones put aside, generated records by number, PostgreSQL by transactions."""

from __future__ import annotations

import os
import time
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from engine.model.operator import Place
from engine.operators._database import DatabaseProblem
from engine.spark import stream_feeds
from engine.spark.stream_feeds import WHOLE_S, PostgresqlFeed, feed_of
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
        self.feed.steady = lambda: self.now

    def put(self, name: str, text: str, age_s: float = 10) -> None:
        file = self.path / name
        file.write_text(text)
        os.utime(file, (time.time() - age_s, time.time() - age_s))

    def poll(self, later_s: float = 1) -> list:
        self.now += later_s
        return self.feed.poll(self.now)

    def wait(self) -> list:
        """Look twice, so much later that what was not read the first time is not being written any more."""
        return self.poll() + self.poll(WHOLE_S)

    def publish(self, arrivals: list) -> None:
        self.store.publish(Change(1, 1, batches={arrival.id: arrival.facts for arrival in arrivals}))


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """A look of a busy machine takes in as much as one of an idle one."""
    monkeypatch.setattr(stream_feeds, "LOOK_S", 60.0)


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
        ("ts,n,n\n2026-01-01T00:00:02Z,2,3\n", "it has 2 columns `n`"),
        ("\x00\x01PAR1", ""),
    ],
)
def test_a_corrupt_file_is_put_aside_and_the_others_go_on(folder, text, reason):
    folder.put("bad.csv", text, age_s=30)
    folder.put("good.csv", "ts,n\n2026-01-01T00:00:02Z,2\n")
    assert [arrival.facts[0] for arrival in folder.wait()] == ["good.csv"]
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
    assert folder.wait() == [], "its first record would be loaded twice"
    assert "it changed after it was taken; a stream only adds files" in folder.said[0]
    assert len(folder.store.quarantined()) == 1


def test_a_file_is_taken_once_it_has_settled(tmp_path):
    made = Folder(tmp_path, settle_s=60)
    made.put("a.csv", "ts,n\n2026-01-01T00:00:02Z,2\n", age_s=5)
    assert (made.poll(), made.poll(59)) == ([], [])
    made.put("a.csv", "ts,n\n2026-01-01T00:00:02Z,2\n2026-01-01T00:00:03Z,3\n", age_s=4)
    assert (made.poll(1), made.poll(59)) == ([], []), "it changed meanwhile"
    (arrival,) = made.poll(1)
    assert arrival.rows == 2
    made.store.close()


@pytest.mark.parametrize("age_s", [-86_400, 86_400])
def test_a_file_settles_whatever_its_time_says_of_it(tmp_path, age_s):
    made = Folder(tmp_path, settle_s=5)
    made.put("a.csv", "ts,n\n2026-01-01T00:00:02Z,2\n", age_s=age_s)
    assert made.poll() == [], "nobody knows since when it has been like that"
    assert len(made.poll(5)) == 1
    made.store.close()


def test_a_clock_that_is_put_forward_settles_no_file(tmp_path):
    made = Folder(tmp_path, settle_s=5)
    made.feed.steady = lambda: 0.0
    made.put("a.csv", "ts,n\n2026-01-01T00:00:02Z,2\n")
    assert (made.poll(), made.poll(3600)) == ([], [])
    made.feed.steady = lambda: 5.0
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
    assert folder.wait() == []
    assert "every record to come would be late" in folder.said[0]


def test_a_corrupt_file_that_may_not_be_removed_is_put_aside_once(folder, monkeypatch):
    def refused(*given):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("engine.spark.stream_store.os.replace", refused)
    monkeypatch.setattr(Path, "unlink", refused)
    folder.put("bad.csv", "ts,n\n2026-01-01T00:00:02Z,2,3\n", age_s=30)
    folder.put("good.csv", "ts,n\n2026-01-01T00:00:02Z,2\n")
    assert len(folder.wait()) == 1
    assert folder.poll() == []
    assert len(folder.store.quarantined()) == 1
    folder.put("bad.csv", "ts,n\n2026-01-01T00:00:03Z,3\n", age_s=20)
    assert len(folder.poll()) == 1, "mended under the same name, it is taken"


def test_whatever_reading_a_file_raises_it_is_put_aside(folder, monkeypatch):
    def burst(*given):
        raise KeyError("nobody thought of this")

    folder.put("odd.csv", "ts,n\n2026-01-01T00:00:02Z,2\n")
    with monkeypatch.context() as patch:
        patch.setattr(stream_feeds.FolderFeed, "_parse", burst)
        assert folder.wait() == []
    assert "odd.csv cannot be read and was put aside" in folder.said[0]
    folder.put("good.csv", "ts,n\n2026-01-01T00:00:03Z,2\n")
    assert len(folder.poll()) == 1


def test_a_corrupt_file_with_a_name_as_long_as_can_be_is_put_aside(folder):
    folder.put("b" * 251 + ".csv", "ts,n\nno time,1\n")
    assert folder.wait() == []
    assert len(folder.store.quarantined()) == 1


def test_a_corrupt_file_that_cannot_be_put_aside_is_told_once_and_the_others_go_on(folder, monkeypatch):
    def full(*given):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folder.store, "quarantine", full)
    folder.put("bad.csv", "ts,n\nno time,1\n", age_s=30)
    folder.put("good.csv", "ts,n\n2026-01-01T00:00:02Z,2\n")
    assert len(folder.wait()) == 1
    assert folder.wait() == []
    assert len(folder.said) == 1
    assert "nor can it be put aside: No space left on device" in folder.said[0]


def test_a_file_that_may_not_be_read_is_told_once_and_taken_once_it_may(folder, monkeypatch):
    whole = Path.open

    def refused(path, *given, **more):
        if path.name == "secret.csv":
            raise PermissionError(13, "Permission denied")
        return whole(path, *given, **more)

    folder.put("secret.csv", "ts,n\n2026-01-01T00:00:02Z,2\n", age_s=30)
    folder.put("good.csv", "ts,n\n2026-01-01T00:00:03Z,2\n")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", refused)
        assert len(folder.wait() + folder.wait()) == 1
    assert len(folder.said) == 1
    assert "secret.csv cannot be read: Permission denied" in folder.said[0]
    assert [arrival.facts[0] for arrival in folder.poll()] == ["secret.csv"]


def test_many_files_are_taken_a_few_at_a_look_and_no_more_of_them_are_kept_than_there_is_room_for(folder, monkeypatch):
    monkeypatch.setattr(stream_feeds, "LOOK_FILES", 3)
    monkeypatch.setattr(stream_feeds, "ALL_KEPT_BYTES", 64)
    for number in range(8):
        folder.put(f"{number}.csv", f"ts,n\n2026-01-01T00:00:0{number}Z,{number}\n", age_s=30 - number)
    looks = [folder.poll(0.001) for _ in range(4)]
    assert [len(look) for look in looks] == [3, 3, 2, 0]
    arrivals = [arrival for look in looks for arrival in look]
    assert [arrival.facts[0] for arrival in arrivals] == [f"{number}.csv" for number in range(8)]
    kept = [arrival.kept.nbytes for arrival in arrivals if arrival.kept is not None]
    assert 0 < sum(kept) <= 64
    assert len(kept) < 8
    assert folder.feed.read(arrivals)["n"].to_pylist() == list(range(8))
    folder.put("9.csv", "ts,n\n2026-01-01T00:00:09Z,9\n")
    assert folder.poll()[0].kept is not None, "there is room again"


def test_what_was_taken_long_ago_does_not_make_a_look_longer(folder, monkeypatch):
    monkeypatch.setattr(stream_feeds, "AGAIN_FILES", 2)
    for number in range(20):
        folder.put(f"{number:02}.csv", f"ts,n\n2026-01-01T00:00:{number:02}Z,1\n")
    assert len(folder.poll()) == 20
    looks = []
    whole = Path.stat
    monkeypatch.setattr(Path, "stat", lambda path, **more: looks.append(path.name) or whole(path, **more))
    for _ in range(10):
        looks.clear()
        folder.poll()
        assert len(looks) == 2
    folder.put("03.csv", "ts,n\n2026-01-01T00:00:03Z,1\n2026-01-01T00:00:03Z,2\n", age_s=1)
    for _ in range(14):
        folder.poll()
    assert "03.csv cannot be read and was put aside" in folder.said[0]


@pytest.mark.parametrize("away", [True, False], ids=["removed", "changed"])
def test_a_file_that_is_gone_before_it_is_loaded_does_not_stop_its_table(folder, monkeypatch, away):
    monkeypatch.setattr(stream_feeds, "KEPT_BYTES", 0)
    folder.put("a.csv", "ts,n\n2026-01-01T00:00:02Z,2\n", age_s=30)
    folder.put("b.csv", "ts,n\n2026-01-01T00:00:03Z,3\n")
    first, second = folder.poll()
    if away:
        (folder.path / "a.csv").unlink()
    else:
        folder.put("a.csv", "ts,n\n2026-01-01T00:00:02Z,7\n")
    assert folder.feed.read([first, second])["n"].to_pylist() == [3]
    assert (first.gone, second.gone) == (True, False)
    assert "a.csv was removed before" in folder.said[0] if away else "a.csv changed before" in folder.said[0]
    assert len(folder.said) == 1
    if away:  # and if it comes after all, it is taken
        folder.put("a.csv", "ts,n\n2026-01-01T00:00:02Z,2\n")
        assert len(folder.poll()) == 1


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
    assert folder.said[1:] == [f"{folder.path} can be looked at again"]


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


def test_a_database_that_is_away_is_told_once_asked_less_and_less_often_and_told_when_it_answers(tmp_path, monkeypatch):
    stream = make("postgresql_stream", host="h", database="d", user="u", table="events", columns=COLUMNS, check_s=0.5)
    store, said, asked = TableStore(tmp_path, "ts", 60_000_000), [], []
    feed = feed_of(stream, Place(Path, str), store, SCHEMA, "ts", NOW, said.append)

    class Answering:
        def rows(self, sql: str) -> list[tuple]:
            return [("7",)] if "xmin(pg" in sql else [(0, None)]

        def close(self) -> None:
            return

    def connect(*given):
        asked.append(now)
        if len(asked) < 8:
            raise DatabaseProblem("no connection to h")
        return Answering()

    monkeypatch.setattr(type(stream), "session", connect)
    now = NOW
    while now < NOW + 200:
        assert feed.poll(now) == []
        now += 0.5
    assert [after - before for before, after in pairwise(asked)] == [2, 4, 8, 16, 30, 30, 30]
    assert said == ["no connection to h; it is tried again until it works", "the database answers again"]
    feed.close()
    store.close()


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
        for row in (("infinity", 4), ("-infinity", 5), ("2026-01-01T00:00:04Z", 6)):
            one.execute(insert, row)
        (third,) = again.poll(NOW + 11)
        assert (third.rows, third.upto_us) == (3, 1767225604_000000), "no moment is before infinity"
        rows = again.read([third])
        assert dict(zip(rows["n"].to_pylist(), rows["ts"].is_valid().to_pylist(), strict=True)) == {
            4: False, 5: False, 6: True,
        }  # fmt: skip
        one.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'papilio'")
        with pytest.raises(DatabaseProblem):
            again.read([third])
        assert again.read([third]).num_rows == 3, "the next try has a new connection"
        again.close()
    store.close()

"""A table's journal: whole versions or none, one effect for one batch, nothing lost and nothing left behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from engine.errors import EnvironmentProblem
from engine.spark import stream_store
from engine.spark.stream_store import TableStore
from engine.spark.stream_versions import JOURNAL, Change, published, published_files

HERE = Path(__file__).parent
SECOND = 1_000_000


def table(*seconds: float) -> pa.Table:
    micros = [round(second * SECOND) for second in seconds]
    return pa.table({"ts": pa.array(micros).cast(pa.timestamp("us", "UTC")), "n": list(range(len(micros)))})


@pytest.fixture
def store(tmp_path):
    opened = TableStore(tmp_path / "t", "ts", 10 * SECOND)
    yield opened
    opened.close()


def times(rows: pa.Table | None) -> list[float]:
    return sorted(value.timestamp() for value in rows["ts"].to_pylist()) if rows is not None else []


def publish(store: TableStore, *seconds: float, drop=(), batches=()) -> None:
    edge = round(max(seconds) * SECOND)
    store.publish(Change(edge, edge, store.stage(table(*seconds)), drop, batches=dict.fromkeys(batches)))


def test_rows_lie_in_the_partitions_of_their_times(store):
    publish(store, 1, 9.999999, 10, 25)
    assert sorted((file.partition, file.rows) for file in store.version.files.values()) == [(0, 2), (1, 1), (2, 1)]
    assert times(store.read(round(9.999999 * SECOND), 10 * SECOND)) == [9.999999, 10]
    assert times(store.read(None, 9 * SECOND)) == [1]


def test_one_record_from_1970_does_not_hold_up_the_others(store, monkeypatch):
    looks = []
    whole = stream_store.times_us
    monkeypatch.setattr(stream_store, "times_us", lambda *given: looks.append(1) or whole(*given))
    publish(store, 0, 1_800_000_003, 1_800_000_021, 1_800_000_004)
    assert sorted((file.partition, file.rows) for file in store.version.files.values()) == [
        (0, 1), (180_000_000, 2), (180_000_002, 1),
    ]  # fmt: skip
    assert len(looks) < 10, "only the partitions that occur are looked at"
    assert store.read(None, None).sort_by("n")["n"].to_pylist() == [0, 1, 2, 3]


def test_records_before_1970_lie_in_partitions_of_their_own(store):
    publish(store, -1, 1, -11)
    assert sorted((file.partition, file.rows) for file in store.version.files.values()) == [(-2, 1), (-1, 1), (0, 1)]


def test_rows_before_a_time_are_kept_where_a_file_lies_astride_it(store):
    publish(store, 1, 12, 19, 25)
    names, before = store.cut_from(15 * SECOND, store.version)
    assert times(before) == [12]
    store.publish(Change(30 * SECOND, 30 * SECOND, store.stage(pa.concat_tables([before, table(16, 30)])), names))
    assert times(store.read(None, None)) == [1, 12, 16, 30]
    assert store.cut_from(None, store.version) == (list(store.version.files), None)


def test_what_a_table_is_made_of_lasts_over_checkpoints_and_making_it_anew_takes_its_rows(store, monkeypatch):
    monkeypatch.setattr(stream_store, "CHECKPOINT_LINES", 2)
    store.describe({"id": "a"})
    for second in (1, 2, 3):
        publish(store, second)
    assert (published(store.folder).made, times(store.read(None, None))) == ({"id": "a"}, [1, 2, 3])
    store.describe({"id": "b"}, anew=True)
    again = published(store.folder)
    assert (again.made, again.rows, again.fresh_us, again.safe_us) == ({"id": "b"}, 0, None, None)


def test_nobody_sees_rows_before_they_are_published(store):
    files = store.stage(table(1, 2))
    assert published(store.folder).rows == 0
    store.publish(Change(2 * SECOND, 2 * SECOND, files))
    assert published(store.folder).rows == 2
    assert [Path(file).name for file in published_files(store.folder)] == list(store.version.files)


def test_a_reader_that_holds_a_version_reads_that_version(store):
    publish(store, 1, 2)
    held = store.version
    publish(store, 3, drop=list(held.files))
    assert times(store.read(None, None, held)) == [1, 2]
    assert times(store.read(None, None)) == [3]


def test_a_line_that_was_cut_off_was_never_published(store):
    publish(store, 1)
    publish(store, 2)
    store.close()
    journal = store.folder / JOURNAL
    journal.write_bytes(journal.read_bytes()[:-20])
    again = TableStore(store.folder, "ts", 10 * SECOND)
    assert times(again.read(None, None)) == [1]
    publish(again, 5)
    assert times(again.read(None, None)) == [1, 5]
    again.close()


def test_a_damaged_line_in_the_middle_takes_nothing_of_what_stands_behind_it(store):
    for second in (1, 2, 3):
        publish(store, second)
    store.close()
    journal, data = store.folder / JOURNAL, sorted((store.folder / "data").iterdir())
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(lines[0] + lines[1].replace(b"fresh", b"fr\xffsh") + lines[2])
    before = journal.read_bytes()
    with pytest.raises(EnvironmentProblem, match="line 2 is damaged"):
        TableStore(store.folder, "ts", 10 * SECOND)
    assert journal.read_bytes() == before
    assert sorted((store.folder / "data").iterdir()) == data


def test_a_line_that_does_not_fit_onto_the_disk_is_taken_back_and_may_be_tried_again(store, monkeypatch):
    publish(store, 1)

    def full(handle):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(stream_store.os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            store.publish(Change(2 * SECOND, 2 * SECOND))
    assert published(store.folder).number == store.version.number == 1
    publish(store, 3)
    store.close()
    again = TableStore(store.folder, "ts", 10 * SECOND)
    assert times(again.read(None, None)) == [1, 3]
    again.close()


def test_upkeep_that_fails_does_not_undo_what_is_published(store, monkeypatch):
    monkeypatch.setattr(stream_store, "CHECKPOINT_LINES", 2)

    def full(*given):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(stream_store.os, "replace", full)
        for second in (1, 2, 3):
            publish(store, second)
    publish(store, 4)
    assert (store.folder / JOURNAL).stat().st_size == 0, "the checkpoint was made later"
    assert times(store.read(None, None, published(store.folder))) == [1, 2, 3, 4]


def test_a_checkpoint_tells_the_same_as_the_journal_before_it(store, monkeypatch):
    monkeypatch.setattr(stream_store, "CHECKPOINT_LINES", 4)
    for second in range(11):
        publish(store, second, batches=[f"b{second}"])
    assert len((store.folder / JOURNAL).read_bytes().splitlines()) == 3
    assert published(store.folder) == store.version
    assert len(store.version.batches) == 11


def test_a_reader_between_a_checkpoint_and_the_journal_that_begins_anew_sees_no_version_with_holes(store, monkeypatch):
    monkeypatch.setattr(stream_store, "CHECKPOINT_LINES", 4)
    for second in (1, 2):
        publish(store, second)
    whole, reads = Path.read_bytes, []

    def meanwhile(path: Path) -> bytes:
        """The writer makes a checkpoint and goes on, once the reader has read the one before it."""
        read = whole(path)
        if not reads:
            reads.append(path)
            for second in (7, 8, 9, 10):
                publish(store, second)
        return read

    for second in (3, 4, 5):
        publish(store, second)  # the fourth line made a checkpoint
    monkeypatch.setattr(Path, "read_bytes", meanwhile)
    assert published(store.folder) == store.version
    assert len(reads) == 1
    assert times(store.read(None, None, published(store.folder))) == [1, 2, 3, 4, 5, 7, 8, 9, 10]


def test_a_journal_whose_checkpoint_is_gone_is_not_taken_for_the_whole(store, monkeypatch):
    monkeypatch.setattr(stream_store, "CHECKPOINT_LINES", 2)
    for second in (1, 2, 3):
        publish(store, second)
    store.close()
    (store.folder / "state.json").unlink()
    with pytest.raises(EnvironmentProblem, match="version 3 stands behind version 0"):
        TableStore(store.folder, "ts", 10 * SECOND)


def test_a_name_that_is_too_long_for_the_reason_beside_it_is_cut_and_stays_one_of_its_own(store, tmp_path):
    places = set()
    for number in range(2):
        file = tmp_path / ("ä" * 120 + f"{number}.csv")
        file.write_text("no")
        places.add(store.quarantine(file, "no record"))
        assert not file.exists()
    assert sorted(places) == store.quarantined()
    assert len(places) == 2
    assert all(place.with_name(place.name + ".reason").read_text() == "no record\n" for place in places)


def test_many_small_files_of_a_partition_become_one(store, monkeypatch):
    monkeypatch.setattr(stream_store, "MOST_FILES", 3)
    for second in range(4):
        add, drop = store.compacted(store.stage(table(second)))
        store.publish(Change(second * SECOND, second * SECOND, add, drop))
    assert len(store.version.files) == 1
    assert times(store.read(None, None)) == [0, 1, 2, 3]


def test_two_processes_do_not_keep_one_table(store):
    with pytest.raises(EnvironmentProblem, match="another process keeps this table"):
        TableStore(store.folder, "ts", 10 * SECOND)


def killed(folder: Path, every: int) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, str(HERE / "killed_table.py"), str(folder), str(every)],
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_kill_leaves_whole_batches_and_a_restart_goes_on(tmp_path):
    found = killed(tmp_path, 29)
    assert (found.returncode, found.stdout) == (0, ""), found.stderr


@pytest.mark.slow
def test_a_kill_at_any_line_leaves_whole_batches_and_a_restart_goes_on(tmp_path):
    found = killed(tmp_path, 1)
    assert (found.returncode, found.stdout) == (0, ""), found.stderr


def test_files_that_were_replaced_stay_for_an_update_that_began_before(store, monkeypatch):
    monkeypatch.setattr(stream_store, "KEEP_S", 0.0)
    publish(store, 1)
    with store.reading():
        before = store.version
        with store.reading():
            publish(store, 2, drop=list(before.files))
        publish(store, 3)
        store.recent = stream_store.RecentRows()
        assert times(store.read(None, None, before)) == [1]
        assert len(list((store.folder / "data").iterdir())) == 3
    with store.reading():  # began after they were dropped
        publish(store, 4)
        assert len(list((store.folder / "data").iterdir())) == 3

"""The store of row packs: two tiers, a budget, holders. No Spark is needed for it."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import EnvironmentProblem
from engine.schedule.queues import Pack
from engine.spark import packs as module
from engine.spark.packs import PackStore


@pytest.fixture
def tiers(tmp_path, monkeypatch):
    """A folder in place of the memory-backed one, and one for the disk."""
    (tmp_path / "memory").mkdir()
    monkeypatch.setattr(module, "MEMORY_FOLDER", tmp_path / "memory")
    return tmp_path


def write(store, size, holders=1, expected=None, **where):
    """A pack of so many bytes, as a Spark job would have written it."""
    folder = store.new_folder(size if expected is None else expected, **where)
    folder.mkdir(parents=True)
    file = folder / "part-0.parquet"
    file.write_bytes(b"x" * size)
    pack = store.adopt(file, 10, holders)
    store.remove_folder(folder)
    return pack


def files(folder):
    return sorted(path.name for path in folder.rglob("*.parquet"))


def test_a_pack_is_gone_when_the_last_holder_lets_go(tiers):
    store = PackStore("run", tiers / "disk", 1000)
    pack = write(store, 100, holders=2)
    assert store.path(pack).read_bytes() == b"x" * 100
    store.release([pack])
    assert store.path(pack).exists()
    store.release([pack])
    assert files(tiers) == []
    assert store.memory_bytes == store.disk_bytes == 0


def test_above_half_of_the_budget_packs_go_to_disk_until_the_memory_is_empty(tiers):
    store = PackStore("run", tiers / "disk", 1000)
    in_memory = [write(store, 200) for _ in range(3)]
    assert store.memory_bytes == 600
    on_disk = [write(store, 200)]
    assert (store.memory_bytes, store.disk_bytes) == (600, 200)
    store.release(in_memory[:2])
    on_disk.append(write(store, 200))
    assert (store.memory_bytes, store.disk_bytes) == (200, 400), "there is room again, but it is not empty"
    store.release(in_memory[2:])
    write(store, 200)
    assert store.memory_bytes == 200
    assert store.max_memory_bytes == 600


def test_another_share_of_the_budget_may_be_given(tiers):
    store = PackStore("run", tiers / "disk", 1000, full_share=0.3)
    write(store, 300)
    write(store, 100)
    assert (store.memory_bytes, store.disk_bytes) == (400, 0), "a share that is just reached is not exceeded"
    write(store, 100)
    assert (store.memory_bytes, store.disk_bytes) == (400, 100)


def test_what_would_not_fit_into_the_budget_is_written_to_disk_from_the_start(tiers):
    store = PackStore("run", tiers / "disk", 1000)
    write(store, 1500)
    assert (store.memory_bytes, store.disk_bytes) == (0, 1500)


def test_a_pack_that_came_out_larger_than_expected_is_moved_to_disk(tiers):
    store = PackStore("run", tiers / "disk", 1000)
    folder = store.new_folder(10)
    folder.mkdir(parents=True)
    (folder / "part-0.parquet").write_bytes(b"x" * 1200)
    store.adopt(folder / "part-0.parquet", 10, 1)
    assert (store.memory_bytes, store.disk_bytes) == (0, 1200)


def in_memory(tiers, path):
    return path.is_relative_to(tiers / "memory")


def test_room_is_kept_for_what_is_being_written(tiers):
    store = PackStore("run", tiers / "disk", 1000)
    first, second = store.new_folder(900), store.new_folder(900)
    assert (in_memory(tiers, first), in_memory(tiers, second)) == (True, False), (
        "together they are more than the budget"
    )
    assert (store.used_bytes, store.memory_bytes) == (900, 0)
    first.mkdir(parents=True)
    (first / "part-0.parquet").write_bytes(b"x" * 300)
    store.adopt(first / "part-0.parquet", 10, 1)
    assert (store.used_bytes, store.memory_bytes) == (900, 300), "a pack takes its part of what was kept"
    store.remove_folder(first)
    assert store.used_bytes == store.memory_bytes == 300, "what was not needed is free again"
    assert in_memory(tiers, store.new_folder(700))


def test_files_that_are_no_packs_count_and_go_to_disk_where_they_are_larger_than_expected(tiers):
    store = PackStore("run", tiers / "disk", 1000)
    folder = store.new_folder(400)
    folder.mkdir(parents=True)
    found = []
    for number in range(4):
        (folder / f"part-{number}.parquet").write_bytes(b"x" * 300)
        found.append(store.wrote(folder / f"part-{number}.parquet"))
    assert [in_memory(tiers, path) for path in found] == [True, True, True, False]
    assert [path.stat().st_size for path in found] == [300] * 4
    assert (store.used_bytes, store.memory_bytes) == (900, 0)
    store.remove_folder(folder)
    assert files(tiers) == []
    assert store.used_bytes == 0


def test_several_who_write_at_a_time_do_not_exceed_the_budget_together(tiers):
    store = PackStore("run", tiers / "disk", 10_000)
    most, failed = [], []
    start = threading.Barrier(8)

    def work(number):
        try:
            start.wait()
            for turn in range(40):
                size = 400 + 37 * ((number + turn) % 50)
                pack = write(store, size, expected=size if turn % 3 else size // 2)
                most.append((store.used_bytes, store.memory_bytes))
                store.release([pack])
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert max(used for used, _ in most) <= 10_000
    assert max(held for _, held in most) > 0
    assert (store.used_bytes, store.memory_bytes, store.disk_bytes, files(tiers)) == (0, 0, 0, [])


def test_without_a_memory_tier_everything_is_on_disk(tiers):
    store = PackStore("run", tiers / "disk", 0)
    write(store, 100)
    assert (store.memory_bytes, store.disk_bytes) == (0, 100)
    assert files(tiers / "memory") == []


def test_a_killed_runs_packs_are_known_again_and_the_rest_is_removed(tiers):
    store = PackStore("run", tiers / "disk", 1000)
    kept, spilled, orphan = write(store, 100), write(store, 100), write(store, 100)
    store.to_disk([spilled])
    store.new_folder(10).mkdir(parents=True)  # what a job was writing
    again = PackStore("run", tiers / "disk", 1000)
    again.restore([(Pack(kept.rows, kept.bytes, kept.name), 2), (Pack(spilled.rows, spilled.bytes, spilled.name), 1)])
    assert files(tiers) == sorted([kept.name, spilled.name])
    assert orphan.name not in files(tiers)
    assert (again.memory_bytes, again.disk_bytes) == (100, 100)
    assert write(again, 100).name not in (kept.name, spilled.name, orphan.name)


def test_a_pack_that_is_gone_is_told(tiers):
    store = PackStore("run", tiers / "disk", 1000)
    with pytest.raises(EnvironmentProblem, match="cannot be resumed"):
        store.restore([(Pack(1, 1, "p00000001.parquet"), 1)])


def test_closing_leaves_nothing(tiers):
    store = PackStore("run", tiers / "disk", 1000)
    write(store, 100)
    store.to_disk([write(store, 100)])
    store.close()
    assert files(tiers) == []


@settings(max_examples=50)
@given(st.lists(st.tuples(st.sampled_from(["write", "release", "spill"]), st.integers(1, 700)), max_size=40))
def test_memory_never_exceeds_the_budget_and_what_is_held_is_there(tmp_path_factory, steps):
    base = tmp_path_factory.mktemp("tiers")
    with pytest.MonkeyPatch.context() as patch:
        (base / "memory").mkdir()
        patch.setattr(module, "MEMORY_FOLDER", base / "memory")
        store = PackStore("run", base / "disk", 1000)
        held = []
        for step, size in steps:
            if step == "write":
                held.append(write(store, size))
            elif held and step == "release":
                store.release([held.pop(size % len(held))])
            elif held:
                store.to_disk([held[size % len(held)]])
            assert store.memory_bytes <= 1000
            assert store.memory_bytes == sum(path.stat().st_size for path in (base / "memory").rglob("p*.parquet"))
            assert store.disk_bytes == sum(path.stat().st_size for path in (base / "disk").rglob("p*.parquet"))
            assert all(store.path(pack).exists() for pack in held)
        store.close()

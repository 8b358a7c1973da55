"""The store of row packs: two tiers, a budget, holders. No Spark is needed for it."""

from __future__ import annotations

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


def write(store, size, holders=1, **where):
    """A pack of so many bytes, as a Spark job would have written it."""
    folder = store.new_folder(size, **where)
    folder.mkdir(parents=True)
    file = folder / "part-0.parquet"
    file.write_bytes(b"x" * size)
    return store.adopt(file, 10, holders)


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

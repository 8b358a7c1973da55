"""What a run that was killed leaves behind is removed by the next one; what a living one has is not touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.control import RunControl, driven, is_alive
from engine.spark import cluster as cluster_module
from engine.spark import packs as packs_module
from engine.spark.packs import PackStore, remove_ownerless, tell_owner


@pytest.fixture
def memory(tmp_path, monkeypatch) -> Path:
    folder = tmp_path / "shm"
    folder.mkdir()
    monkeypatch.setattr(packs_module, "MEMORY_FOLDER", folder)
    return folder


def test_packs_of_killed_runs_leave_memory_and_those_of_others_stay(memory, tmp_path):
    runs = {name: tmp_path / name for name in ("dead", "alive")}
    for name, run in runs.items():
        run.mkdir()
        store = PackStore(f"{name}-raw", run / "raw", 1000)
        tell_owner(store, run)
        (memory / f"papilio-{name}-raw" / "p1.parquet").write_bytes(b"rows")
    PackStore("resumed", tmp_path / "resumed", 1000)  # of a run that can be resumed: it names no owner
    with driven(runs["alive"], RunControl()):
        remove_ownerless(is_alive)
    assert sorted(path.name for path in memory.iterdir()) == ["papilio-alive-raw", "papilio-resumed"]
    remove_ownerless(is_alive)
    assert [path.name for path in memory.iterdir()] == ["papilio-resumed"]


def test_a_store_without_memory_tells_no_owner(memory, tmp_path):
    tell_owner(PackStore("far", tmp_path / "far", 0), tmp_path)
    assert list(memory.iterdir()) == []


def test_folders_of_killed_clusters_go_and_those_of_living_ones_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster_module.tempfile, "gettempdir", lambda: str(tmp_path))
    folders = [tmp_path / f"papilio-cluster-{name}" for name in ("alive", "begins", "dead")]
    for folder in folders:
        (folder / "local").mkdir(parents=True)
    held = cluster_module._hold(folders[0])
    cluster_module._hold(folders[2]).close()  # as its process does that ends in whatever way
    cluster_module._remove_dead()
    assert [folder.exists() for folder in folders] == [True, True, False]
    held.close()
    cluster_module._remove_dead()
    assert [folder.exists() for folder in folders] == [False, True, False]

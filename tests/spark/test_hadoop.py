"""Hadoop made lighter: the same files and permissions as its own, without processes that set them, and less to copy."""

from __future__ import annotations

import stat

import pytest

from engine.spark import hadoop
from engine.spark.hadoop import CHECKED_FILES, FILES, SERVERS, SETTINGS, compiled

MODES = {"644": 0o644, "600": 0o600, "750": 0o750, "1777": 0o1777, "000": 0o000}


def file_system(spark):
    jvm = spark._jvm
    return jvm.org.apache.hadoop.fs.FileSystem.getLocal(spark._jsc.hadoopConfiguration())


def test_whoever_asks_for_local_files_is_given_ours_with_checksums_as_before(spark, tmp_path):
    assert file_system(spark).getRaw().getClass().getName() == FILES
    spark.range(3).coalesce(1).write.parquet(str(tmp_path / "rows"))
    written = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "rows").iterdir()}
    assert sorted(name.rpartition(".")[2] for name in written) == ["crc", "parquet"]
    assert set(written.values()) == {0o644}, "Hadoop's own umask is 022"
    assert stat.S_IMODE((tmp_path / "rows").stat().st_mode) == 0o755
    assert spark.read.parquet(str(tmp_path / "rows")).count() == 3


@pytest.mark.parametrize("asked", MODES)
def test_permissions_are_those_that_were_asked_for(spark, tmp_path, asked):
    file = tmp_path / "file"
    file.touch()
    hadoop = spark._jvm.org.apache.hadoop.fs
    file_system(spark).getRaw().setPermission(hadoop.Path(str(file)), hadoop.permission.FsPermission(asked))
    assert stat.S_IMODE(file.stat().st_mode) == MODES[asked]


def test_a_write_starts_no_process(spark, tmp_path):
    jvm = spark._jvm
    if not jvm.java.lang.ModuleLayer.boot().findModule("jdk.jfr").isPresent():
        pytest.skip("this Java cannot record what it does (no module jdk.jfr)")
    recording = jvm.jdk.jfr.Recording()
    recording.enable("jdk.ProcessStart")
    recording.start()
    spark.range(3).write.parquet(str(tmp_path / "rows"))
    (tmp_path / "file").touch()
    hadoop = jvm.org.apache.hadoop.fs
    sticky = hadoop.permission.FsPermission("1777")
    file_system(spark).getRaw().setPermission(hadoop.Path(str(tmp_path / "file")), sticky)  # as a process, to see one
    recording.stop()
    log = tmp_path / "recording.jfr"
    recording.dump(jvm.java.nio.file.Path.of(jvm.java.net.URI(log.as_uri())))
    recording.close()
    events = jvm.jdk.jfr.consumer.RecordingFile.readAllEvents(jvm.java.nio.file.Path.of(jvm.java.net.URI(log.as_uri())))
    assert [event.getString("command") for event in events] == [f"chmod 1777 {tmp_path / 'file'}"]


def test_settings_of_servers_that_are_not_here_are_left_out_and_all_others_are_there(spark):
    given = spark._jsc.hadoopConfiguration()
    whole = spark._jvm.org.apache.hadoop.conf.Configuration()
    entries, names = whole.iterator(), set()
    while entries.hasNext():
        names.add(entries.next().getKey())
    left_out = {name for name in names if name.startswith(SERVERS)}
    assert len(left_out) > len(names) / 2
    assert [name for name in left_out if given.get(name) is not None] == []
    assert [name for name in names - left_out if given.get(name) is None and whole.get(name) is not None] == []


def test_it_is_compiled_once_and_again_where_it_was_lost(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(hadoop, "cache_folder", lambda: tmp_path)
    folder = compiled(spark._jvm)
    made = folder / f"{FILES}.class"
    first = made.stat().st_mtime_ns
    assert compiled(spark._jvm) == folder
    assert made.stat().st_mtime_ns == first
    made.unlink()
    compiled(spark._jvm)
    assert {path.stem for path in folder.iterdir()} == {FILES, CHECKED_FILES, SETTINGS}, (
        "and nothing else is left behind"
    )

"""Events come back as they were written, and a damaged log up to its damage."""

from __future__ import annotations

import dataclasses
import json

import pytest

from engine.events import (
    EventLog,
    LogReader,
    NodeCounted,
    QueueSnapshot,
    Remark,
    RunFinished,
    RunResumed,
    RunStepped,
    UnitFinished,
    event_from,
)


def test_a_line_of_the_log_is_the_event_as_plain_data():
    snapshot = QueueSnapshot(
        time=1.5, queues={"a ü > b": [1, 2, 3]}, held=[1, 2, 3], memory_bytes=9, disk_bytes=0, running=["a"]
    )
    plain = json.dumps(snapshot.as_dict(), ensure_ascii=False, separators=(",", ":"))
    assert snapshot.line() == plain
    assert plain.startswith('{"event":"queue-snapshot","time":1.5,"queues":{"a ü > b":[1,2,3]}')


def test_events_come_back_from_the_log_as_they_were(tmp_path):
    written = [
        UnitFinished(unit="a", seconds=1.5, rows=3, bytes=None, time=1.0),
        NodeCounted(node="b ü", rows_in=None, rows_out=2, count="fused", time=2.0),
        RunFinished(status="done", seconds=2.0, time=3.0),
    ]
    heard = []
    log = EventLog(tmp_path / "events.jsonl", heard.append)
    for event in written:
        log.add(event)
    log.close()
    assert list(LogReader(tmp_path / "events.jsonl")) == written == heard


def test_events_are_the_same_by_kind_and_values_and_never_change():
    one = UnitFinished(unit="a", seconds=1.5, rows=3, time=1.0)
    same, other = (
        UnitFinished(unit="a", seconds=1.5, rows=3, time=1.0),
        UnitFinished(unit="a", seconds=1.5, rows=4, time=1.0),
    )
    assert one == same
    assert len({one, same, other}) == 2
    assert RunResumed(time=1.0) != RunStepped(time=1.0)
    assert repr(Remark(time=1.0, message="m")) == "Remark(time=1.0, message='m', node=None)"
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.rows = 4


def test_unknown_events_are_skipped_and_counted(tmp_path):
    file = tmp_path / "events.jsonl"
    file.write_text(
        '{"event":"from-the-future","time":1}\n{"event":"run-finished","time":1,"status":"done","seconds":1,"new":0}\n'
    )
    reader = LogReader(file)
    assert [event.kind() for event in reader] == ["run-finished"]
    assert reader.skipped == {"from-the-future": 1}


def test_a_log_that_was_cut_off_is_read_up_to_the_damage(tmp_path):
    file = tmp_path / "events.jsonl"
    good = '{"event":"run-finished","time":1,"status":"done","seconds":1}\n'
    file.write_text(good + good[:20])
    reader = LogReader(file)
    assert len(list(reader)) == 1
    assert "line 2 is damaged" in (reader.damage or "")


def test_an_event_that_lacks_what_it_needs_is_skipped():
    assert event_from({"event": "unit-finished", "time": 1.0}) is None

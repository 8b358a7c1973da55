"""The live warehouse with its loop, streams, tables and journals, and with Arrow in the place of Spark's plans."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from engine.events import EventLog, LogReader, Remark
from engine.model.binding import bind
from engine.model.file import load
from engine.operators import catalogue
from engine.refresh.live import warehouse as live
from engine.refresh.live.warehouse import LiveSettings, LiveWarehouse
from engine.refresh.scheduler import Settings
from engine.spark.stream_update import Updater, _Described
from engine.spark.stream_versions import Version, published

SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("n", pa.int64())])
BAD = 13  # no plan takes a record with this number

# Two base tables, a view of one and a view of both.
TWO = """
papilio: 1
name: two
nodes:
  left_files: {operator: folder_stream, settings: {path: left, columns: {ts: timestamp, n: bigint}, check_s: 0.02, settle_s: 0}}
  right_files: {operator: folder_stream, settings: {path: right, columns: {ts: timestamp, n: bigint}, check_s: 0.02, settle_s: 0}}
  left_copy: {operator: copy}
  right_copy: {operator: copy}
  left: {operator: stream_table, settings: {path: out/left, time_column: ts, partition_s: 60, period_s: 60}}
  right: {operator: stream_table, settings: {path: out/right, time_column: ts, partition_s: 60, period_s: 60}}
  alone_copy: {operator: copy}
  alone: {operator: stream_table, settings: {path: out/alone, time_column: ts, partition_s: 60}}
  union: {operator: union}
  both: {operator: stream_table, settings: {path: out/both, time_column: ts, partition_s: 60}}
edges:
- {from: left_files, to: left_copy}
- {from: left_copy, to: left}
- {from: right_files, to: right_copy}
- {from: right_copy, to: right}
- {from: left, to: alone_copy}
- {from: alone_copy, to: alone}
- {from: left, to: union}
- {from: right, to: union}
- {from: union, to: both}
"""


class ArrowUpdater(Updater):
    """Every plan is the union of its inputs, and fails by a bad record as Spark does."""

    refuses: tuple[str, ...] = ()  # tables whose plans fail by bad records

    def __init__(self, bound: Any, plans: Any, stores: Any, spark: Any, place: Any) -> None:
        self.stores, self._chosen, self._first = stores, threading.local(), plans
        self.plans, self.schemas, self.arrow, self._described, self._came = {}, {}, {}, {}, 0
        self._workflow(bound, place)

    def _workflow(self, bound: Any, place: Any) -> None:
        self._bound = bound

    def _enter(self, plan: Any) -> None:
        self._came += 1
        self._described[plan.name] = _Described(self._bound, [], self._came, {})
        self.arrow[plan.stream or plan.name] = self.arrow[plan.name] = SCHEMA
        self.plans[plan.name] = plan

    def _collect(self, key: Any, inputs: Any, make: Any) -> tuple[pa.Table, list[Any]]:
        rows = pa.concat_tables([one.cast(SCHEMA) for one in inputs.values()])
        if key[0] in self.refuses and BAD in rows["n"].to_pylist():
            raise ArithmeticError("[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012")
        return rows, []


def on_a_thread(spark: Any, name: str, work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    return thread


def without_spark(monkeypatch: pytest.MonkeyPatch, refuses: tuple[str, ...] = ()) -> None:
    """From now on, a warehouse needs no Spark; the plans of these tables fail by bad records."""
    monkeypatch.setattr(live, "Updater", type("Refusing", (ArrowUpdater,), {"refuses": refuses}))
    monkeypatch.setattr(live, "start_track", on_a_thread)


@contextlib.contextmanager
def running(
    folder: Path, monkeypatch: pytest.MonkeyPatch, text: str = TWO, refuses: tuple[str, ...] = ()
) -> Iterator[LiveWarehouse]:
    """A warehouse that runs in a thread; stopped at the end, and its failure is the test's."""
    without_spark(monkeypatch, refuses)
    file = folder / "two.butterfly.yaml"
    file.write_text(text)
    for name in ("left", "right"):
        (folder / name).mkdir(exist_ok=True)
    log = EventLog(folder / "events.jsonl")
    made = LiveWarehouse(
        bind(load(file), catalogue()), LiveSettings(Settings(tracks=2, together=False)), None, log
    )  # fmt: skip
    failed: list[BaseException] = []

    def work() -> None:
        try:
            made.run()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield made
    finally:
        made.stop()
        thread.join(60)
        log.close()
    if failed:
        raise failed[0]


def put(folder: Path, name: str, *records: tuple[str, int]) -> None:
    """A file arrives as a whole."""
    hidden = (folder / name).with_name("." + Path(name).name)
    hidden.parent.mkdir(exist_ok=True)
    hidden.write_text("\n".join(["ts,n", *(f"{time_},{n}" for time_, n in records)]) + "\n")
    os.rename(hidden, folder / name)


def promise(folder: Path, name: str, moment: str) -> None:
    """A punctuation arrives."""
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / f"{name}.punctuation").write_text(moment)


def held(folder: Path, table: str) -> Version:
    """What a table holds as published now."""
    place = folder / "out" / table
    return published(place) if place.exists() else Version()


def until(true: Callable[[], object], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.02)


def remarks(folder: Path) -> str:
    return "\n".join(event.message for event in LogReader(folder / "events.jsonl") if isinstance(event, Remark))

"""What is asked of a store without opening it is what the opened store says."""

from __future__ import annotations

import dataclasses
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from engine.errors import BadInput
from engine.store import MetadataStore, SourceSchema
from engine.store.peek import CannotPeek, last_schema, last_summary, list_runs, put_run
from engine.store.runs import keep_run, kept_runs
from tests.store.examples import NOON, a_run

STRANGE = "tab\t nul\x00 half\ud800 \\u{41} ü 蝶"


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "a store?.db")


def test_the_last_schema_of_a_source(place: str) -> None:
    with MetadataStore(place) as store:
        for age, source, kind in ((2, STRANGE, "int"), (1, STRANGE, "string"), (0, "other", "date")):
            seen = NOON - timedelta(days=age)
            store.add([SourceSchema(source=source, fingerprint=f"v{age}", seen=seen, columns={"b": kind, "a": "int"})])
        assert last_schema(place, STRANGE) == {"b": "string", "a": "int"}  # also while another has it open
    assert list(last_schema(place, STRANGE) or ()) == ["b", "a"]
    assert last_schema(place, "never seen") is None


def test_the_last_run_of_a_workflow_that_was_done(place: str) -> None:
    with MetadataStore(place) as store:
        for number, status in enumerate(["done", "done", "failed"]):
            run = a_run(number)
            started = NOON + timedelta(hours=number)
            store.put_run(dataclasses.replace(run, status=status, started=started, summary={"number": number}))
        name = a_run().workflow
        newest = store.list_runs(workflow=name, status="done", limit=1)[0].summary
    assert last_summary(place, name) == newest == {"number": 1}
    assert last_summary(place, "another") is None


def test_runs_are_listed_as_the_opened_store_lists_them(place: str) -> None:
    with MetadataStore(place) as store:
        store.put_run(a_run(1, status="failed"))
        store.put_run(a_run(2, workflow=STRANGE, finished=None))
        store.put_run(a_run(3, summary={"b": 1, "a": [float("inf"), None, STRANGE]}))
        store.put_run(a_run(4, started=a_run(3).started))
        for asked in ({}, {"workflow": STRANGE}, {"status": "failed"}, {"workflow": "orders", "limit": 2}):
            assert list_runs(place, **asked) == store.list_runs(**asked) != []


def test_a_run_is_kept_as_the_opened_store_keeps_it(place: str, tmp_path: Path) -> None:
    other = str(tmp_path / "other.db")
    runs = [a_run(1, file=STRANGE), a_run(2, status="running", finished=None), a_run(2, summary={"z": 1, "a": 2.5})]
    with MetadataStore(place), MetadataStore(other) as store:
        for run in runs:
            put_run(place, run)
            store.put_run(run)

    def rows(file: str) -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(file)) as connection:
            return connection.execute("SELECT * FROM papilio_runs ORDER BY key").fetchall()

    assert rows(place) == rows(other)
    assert len(rows(place)) == 2


def test_a_run_that_could_not_be_given_back_is_refused(place: str) -> None:
    MetadataStore(place).close()
    with pytest.raises(BadInput, match="run 'run-0001': summary"):
        put_run(place, a_run(1, summary={"a": {1, 2}}))
    assert list_runs(place) == []


def test_the_first_run_makes_the_store_and_a_store_that_is_no_store_stops_nothing(place: str, tmp_path: Path) -> None:
    keep_run(a_run(1), place)
    assert kept_runs(place) == [a_run(1)]
    keep_run(a_run(2), f"sqlite:///{tmp_path / 'by_url.db'}")
    assert kept_runs(f"sqlite:///{tmp_path / 'by_url.db'}") == [a_run(2)]
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"no database " * 100)
    keep_run(a_run(1), str(broken))
    with pytest.raises(BadInput, match="not a Papilio store"):
        kept_runs(str(broken))


def test_a_store_of_a_newer_papilio_must_be_opened_to_say_so(place: str) -> None:
    MetadataStore(place).close()
    with closing(sqlite3.connect(place)) as connection, connection:
        connection.execute("UPDATE papilio_store SET version = 99")
    with pytest.raises(CannotPeek):
        put_run(place, a_run())
    with pytest.raises(BadInput, match="newer Papilio"):
        kept_runs(place)


def test_where_there_is_no_store_nothing_is_known_and_none_is_made(place: str) -> None:
    assert last_schema(place, "a") is None
    assert not Path(place).exists()


def test_the_store_of_the_person_is_the_one_that_is_asked(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    with MetadataStore() as store:
        store.put_schema("a", "1", {"c": "int"})
    assert last_schema(None, "a") == {"c": "int"}
    monkeypatch.setenv("PAPILIO_STORE", place)
    assert last_schema(None, "a") is None


def test_a_store_of_another_kind_must_be_opened(place: str) -> None:
    with pytest.raises(CannotPeek):
        last_schema("postgresql://somewhere/store", "a")
    Path(place).write_bytes(b"no database " * 100)
    with pytest.raises(CannotPeek):
        last_schema(place, "a")
    Path(place).unlink()
    sqlite3.connect(place).close()
    Path(place).touch()
    with pytest.raises(CannotPeek):
        last_schema(place, "a")

"""What is asked of a store without opening it is what the opened store says."""

from __future__ import annotations

import dataclasses
import sqlite3
from datetime import timedelta
from pathlib import Path

import pytest

from engine.store import MetadataStore, SourceSchema
from engine.store.peek import CannotPeek, last_schema, last_summary
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

"""What is saved without opening the store is what the opened store would have saved."""

from __future__ import annotations

import dataclasses
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from engine.errors import BadInput
from engine.store import MetadataStore, SourceSchema
from engine.store import store as opened
from engine.store.saving import Saver
from tests.store.examples import NOON, WORKFLOW, a_plan, a_run, an_operator

STRANGE = "tab\t nul\x00 half\ud800 \\u{41} ü 蝶"
TABLES = ("papilio_schemas", "papilio_operators", "papilio_workflows", "papilio_plans", "papilio_runs")


@pytest.fixture
def place(tmp_path: Path) -> str:
    """A store that is there already."""
    file = str(tmp_path / "a store?.db")
    MetadataStore(file).close()
    return file


def rows(file: str) -> dict[str, list[tuple[object, ...]]]:
    with closing(sqlite3.connect(file)) as connection:
        return {table: connection.execute(f"SELECT * FROM {table} ORDER BY key").fetchall() for table in TABLES}


@pytest.fixture
def never_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the store was opened")

    monkeypatch.setattr(opened, "MetadataStore", refuse)


@pytest.mark.usefixtures("never_opened")
def test_a_workflow_is_saved_and_a_change_becomes_its_next_version(place: str) -> None:
    saver = Saver(place)
    first, new = saver.put_workflow(STRANGE, {"a": 1}, STRANGE, author=STRANGE, comment=STRANGE)
    assert (first.version, new) == (1, True)
    assert saver.put_workflow(STRANGE, {"a": 1}, STRANGE, comment="nothing new") == (first, False)
    second, new = saver.put_workflow(STRANGE, {"a": 1.0}, STRANGE)
    assert (second.version, new) == (2, True)
    with MetadataStore(place) as store:
        assert store.get_workflow(STRANGE, 1) == first
        assert store.get_workflow(STRANGE) == second


def test_every_kind_of_record_is_written_as_the_opened_store_writes_it(place: str, tmp_path: Path) -> None:
    other = str(tmp_path / "other.db")
    with MetadataStore(other) as store:
        saved, _ = store.put_workflow(STRANGE, {**WORKFLOW, STRANGE: [1.5, None, True]}, STRANGE, comment=STRANGE)
        records = [
            SourceSchema(source=STRANGE, fingerprint="f", seen=NOON, columns={"b": "int", "a": "string"}),
            an_operator(),
            saved,
            a_plan(cost=float("inf")),
            a_run(finished=None),
        ]
        counts = store.add(records)
        store.add([a_run()])
    counts[type(saved)] += 1
    saver = Saver(place)
    assert saver.add(records) == counts
    assert not any(saver.add(records).values())
    assert sum(saver.add([a_run()]).values()) == 1
    assert rows(place) == rows(other)


@pytest.mark.usefixtures("never_opened")
def test_an_import_is_taken_whole_or_not_at_all(place: str) -> None:
    saver = Saver(place)
    saved, _ = saver.put_workflow("w", {"a": 1}, "mine")
    before = rows(place)
    with pytest.raises(BadInput, match=r"a store\?\.db: workflow 'w' version 1 is here already, with other content"):
        saver.add([a_run(), dataclasses.replace(saved, text="theirs")])
    assert rows(place) == before


@pytest.mark.parametrize(
    ("name", "document", "reason"),
    [
        (" ", {}, "needs a name"),
        ("w", {"nodes": {"a": {1: 2}}}, "the key 1 is a number"),
        (
            "w",
            {"nodes": {"a": {"operator": "postgresql_source", "settings": {"password": "hunter2"}}}},
            "a secret is never written",
        ),
    ],
)
@pytest.mark.usefixtures("never_opened")
def test_what_the_opened_store_refuses_is_refused(place: str, name: str, document: Any, reason: str) -> None:
    before = rows(place)
    with pytest.raises(BadInput, match=reason):
        Saver(place).put_workflow(name, document, "")
    assert rows(place) == before


def test_a_store_that_is_not_there_yet_is_made(tmp_path: Path) -> None:
    for place in (str(tmp_path / "new.db"), f"sqlite:///{tmp_path / 'by_url.db'}", None):
        version, new = Saver(place).put_workflow("w", {"a": 1}, "text")
        assert new
        assert sum(Saver(place).add([a_run()]).values()) == 1
        with MetadataStore(place) as store:
            assert list(store.records()) == [version, a_run()]


def test_a_store_that_cannot_be_written_says_why(place: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="does not exist"):
        Saver(str(tmp_path / "nowhere" / "store.db")).put_workflow("w", {}, "")
    with closing(sqlite3.connect(place)) as connection, connection:
        connection.execute("UPDATE papilio_store SET version = 99")
    with pytest.raises(BadInput, match="newer Papilio"):
        Saver(place).put_workflow("w", {}, "")
    Path(place).write_bytes(b"no database " * 100)
    with pytest.raises(BadInput, match="not a Papilio store"):
        Saver(place).add([a_run()])

"""What the store keeps it gives back, on every database."""

from __future__ import annotations

import dataclasses
import math
import os
import sqlite3
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from engine.errors import BadInput, EnvironmentProblem
from engine.store import MetadataStore, SourceSchema
from tests.store.examples import NOON, WORKFLOW, a_plan, a_run, an_operator

STRANGE = "tab\t line\n return\r nul\x00 bell\x07 half\ud800 quote'\" \\u{41} ü 蝶 🦋  "


def test_a_schema_comes_back_with_its_columns_in_order(store: MetadataStore) -> None:
    columns = {"z": "bigint", "a": "decimal(12,2)", "strange \x00": "array<struct<x:int>>"}
    store.put_schema("file:orders.tbl", "v1", columns)
    found = store.get_schema("file:orders.tbl", "v1")
    assert found is not None
    assert list(found.columns.items()) == list(columns.items())
    assert store.get_schema("file:orders.tbl", "v2") is None
    assert store.get_schema("file:other.tbl", "v1") is None


def test_a_source_keeps_a_schema_for_each_fingerprint_until_it_is_deleted(store: MetadataStore) -> None:
    for source, fingerprint in (("a", "2"), ("a", "1"), ("b", "1")):
        store.put_schema(source, fingerprint, {"c": "int"})
    store.put_schema("a", "1", {"c": "string"})
    assert [(one.source, one.fingerprint) for one in store.list_schemas()] == [
        ("a", "1"),
        ("a", "2"),
        ("b", "1"),
    ]
    assert [one.columns for one in store.list_schemas("a")] == [{"c": "string"}, {"c": "int"}]
    assert store.delete_schemas("a") == 2
    assert [one.source for one in store.list_schemas()] == ["b"]


def test_a_source_may_have_a_very_long_name(store: MetadataStore) -> None:
    source = "s3://" + os.urandom(20_000).hex()
    store.put_schema(source, "f", {"c": "int"})
    assert store.get_schema(source, "f") is not None


def test_an_operator_keeps_its_versions_apart(store: MetadataStore) -> None:
    one, two = an_operator(), an_operator(version="2", category="blocking")
    store.put_operator(one)
    store.put_operator(two)
    store.put_operator(dataclasses.replace(two, ports={}))
    assert store.get_operator("filter", "1") == one
    assert store.get_operator("filter", "2") == dataclasses.replace(two, ports={})
    assert [found.version for found in store.list_operators("filter")] == ["1", "2"]
    assert store.delete_operator("filter", "1") is True
    assert store.delete_operator("filter", "1") is False
    assert [found.version for found in store.list_operators()] == ["2"]


def test_a_workflow_comes_back_exactly(store: MetadataStore) -> None:
    saved, new = store.put_workflow("orders", WORKFLOW, "a: 1\r\n# ü\n", author="ada", comment="first")
    assert new
    assert store.get_workflow("orders") == saved
    assert store.get_workflow("orders", 1) == saved
    assert (saved.version, saved.text, saved.author, saved.comment) == (1, "a: 1\r\n# ü\n", "ada", "first")
    assert list(saved.document) == list(WORKFLOW)


@pytest.mark.parametrize("value", [math.nan, math.inf, -0.0, 1e300, 2**200, True, None, STRANGE, [], {}])
def test_any_plain_value_survives(store: MetadataStore, value: Any) -> None:
    store.put_workflow(STRANGE, {STRANGE: value}, STRANGE, author=STRANGE, comment=STRANGE)
    found = store.get_workflow(STRANGE)
    assert repr(found.document) == repr({STRANGE: value})
    assert (found.name, found.text, found.author, found.comment) == (STRANGE,) * 4


def test_saving_the_same_content_again_makes_no_version(store: MetadataStore) -> None:
    store.put_workflow("w", {"a": 1, "b": 2}, "text")
    again, new = store.put_workflow("w", {"b": 2, "a": 1}, "text", comment="nothing new")
    assert (again.version, again.comment, new) == (1, "", False)
    assert len(store.list_versions("w")) == 1


def test_a_change_of_document_or_text_makes_a_version(store: MetadataStore) -> None:
    contents: list[tuple[dict[str, Any], str]] = [
        ({"a": 1}, "x"),
        ({"a": 1.0}, "x"),
        ({"a": True}, "x"),
        ({"a": True}, "y"),
        ({"a": 1}, "x"),
    ]
    for number, (document, written) in enumerate(contents, 1):
        saved, new = store.put_workflow("w", document, written)
        assert (saved.version, new) == (number, True)
    hashes = [info.content_hash for info in store.list_versions("w")]
    assert len(set(hashes)) == 3
    assert hashes[0] == hashes[4]
    assert hashes[2] == hashes[3]


def test_workflows_are_listed_by_name_with_their_latest_version(store: MetadataStore) -> None:
    for name in ("b", "Z", "a", "é", "_"):
        store.put_workflow(name, {}, "1")
    store.put_workflow("b", {}, "2")
    assert [(info.name, info.version) for info in store.list_workflows()] == [
        ("Z", 1),
        ("_", 1),
        ("a", 1),
        ("b", 2),
        ("é", 1),
    ]
    assert store.delete_workflow("b") == 2
    assert "b" not in [info.name for info in store.list_workflows()]


def test_a_missing_workflow_is_told_with_the_near_name(store: MetadataStore) -> None:
    store.put_workflow("orders", {}, "")
    with pytest.raises(BadInput, match=r"no workflow 'order'.*Did you mean 'orders'"):
        store.get_workflow("order")
    with pytest.raises(BadInput, match="no version 3; its latest is 1"):
        store.get_workflow("orders", 3)


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ([], "expected a mapping, found a list"),
        ({"nodes": {"a": {1: 2}}}, "nodes.a: the key 1 is a number"),
        (
            {"nodes": {"a": {"day": datetime(2026, 1, 1, tzinfo=UTC).date()}}},
            "nodes.a.day: a date is not plain",
        ),
        ({"a": [1, {2}]}, "a.1: a set is not plain"),
        ({"a": 10**5000}, "a: a whole number of more than 14,000 bits"),
    ],
)
def test_a_document_that_is_not_plain_is_refused(store: MetadataStore, document: Any, reason: str) -> None:
    with pytest.raises(BadInput, match=reason):
        store.put_workflow("w", document, "")
    assert store.list_workflows() == []


def test_a_document_nested_too_deep_or_in_itself_is_refused(store: MetadataStore) -> None:
    deep: Any = 1
    for _ in range(200_000):
        deep = [deep]
    endless: dict[str, Any] = {}
    endless["again"] = endless
    for document in ({"deep": deep}, endless):
        with pytest.raises(BadInput, match="nested more than 100 deep"):
            store.put_workflow("w", document, "")
    while isinstance(deep, list):  # freeing it in one go would recurse
        deep = deep.pop()


def test_a_document_made_huge_by_aliases_is_refused() -> None:
    bomb: Any = ["lol"]
    for _ in range(12):
        bomb = [bomb] * 10
    with MetadataStore("sqlite://") as store, pytest.raises(BadInput, match="more than 1,000,000 values"):
        store.put_workflow("w", {"bomb": bomb}, "")


def test_plans_are_listed_cheapest_first(store: MetadataStore) -> None:
    dear, cheap, other = (
        a_plan(),
        a_plan(signature="x" * 10_000, cost=1.0),
        a_plan(content_hash="f00d", cost=math.inf),
    )
    for plan in (dear, cheap, other):
        store.put_plan(plan)
    assert store.list_plans() == [cheap, dear, other]
    assert store.list_plans("orders", "c0ffee") == [cheap, dear]
    assert store.get_plan("orders", "c0ffee", "x" * 10_000) == cheap
    assert store.get_plan("orders", "c0ffee", "unknown") is None
    assert store.put_plan(a_plan(cost=0.5)) == store.list_plans()[0]
    assert store.delete_plans("orders", "c0ffee") == 2
    assert store.delete_plans("orders") == 1


def test_a_plan_whose_cost_is_no_number_is_refused(store: MetadataStore) -> None:
    with pytest.raises(BadInput, match="cost"):
        store.put_plan(a_plan(cost=math.nan))


def test_a_run_is_updated_while_it_goes_on(store: MetadataStore) -> None:
    store.put_run(a_run(status="running", finished=None, summary={}))
    under_way = store.get_run("run-0001")
    assert under_way is not None
    assert (under_way.status, under_way.finished, under_way.seconds) == ("running", None, None)
    store.put_run(a_run())
    over = store.get_run("run-0001")
    assert over == a_run()
    assert over is not None
    assert over.seconds == 2.5
    assert store.get_run("run-0002") is None


def test_runs_are_listed_newest_first(store: MetadataStore) -> None:
    for number in (2, 3, 1):
        store.put_run(
            a_run(number, workflow="w" if number == 2 else "orders", status="failed" if number == 1 else "done")
        )
    assert [run.run for run in store.list_runs()] == ["run-0003", "run-0002", "run-0001"]
    assert [run.run for run in store.list_runs(limit=1)] == ["run-0003"]
    assert [run.run for run in store.list_runs(workflow="orders")] == ["run-0003", "run-0001"]
    assert [run.run for run in store.list_runs(status="failed")] == ["run-0001"]
    assert store.delete_run("run-0001") is True
    assert store.delete_run("run-0001") is False


def test_times_are_kept_to_the_microsecond_and_need_a_zone(store: MetadataStore) -> None:
    abroad = NOON.astimezone(timezone(timedelta(hours=5, minutes=30)))
    store.put_run(a_run(started=abroad, finished=None))
    found = store.get_run("run-0001")
    assert found is not None
    assert found.started == NOON
    with pytest.raises(BadInput, match="no time zone"):
        store.put_run(a_run(started=NOON.replace(tzinfo=None)))


def test_threads_share_a_store(store: MetadataStore) -> None:
    def work(part: int) -> None:
        for number in range(10):
            store.put_workflow("w", {"part": part, "number": number}, "")

    threads = [threading.Thread(target=work, args=(part,)) for part in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [info.version for info in store.list_versions("w")] == list(range(1, 41))


def test_a_second_opening_finds_what_the_first_one_kept(url: str) -> None:
    with MetadataStore(url) as first:
        first.put_run(a_run())
    with MetadataStore(url) as second:
        assert second.list_runs() == [a_run()]


def test_sources_get_new_schemas_in_place_of_all_they_had(store: MetadataStore) -> None:
    for source, fingerprint in (("a", "1"), ("a", "2"), ("b", "1")):
        store.put_schema(source, fingerprint, {"c": "int"})
    store.replace_schemas([("a", "3", {"c": "string"}), ("c", "1", {})])
    found = [(one.source, one.fingerprint, one.columns) for one in store.list_schemas()]
    assert found == [("a", "3", {"c": "string"}), ("b", "1", {"c": "int"}), ("c", "1", {})]


def test_closing_one_store_leaves_another_of_the_same_file_open(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    with MetadataStore(str(file)) as first:
        with MetadataStore(str(file)) as second:
            second.put_schema("a", "1", {"c": "int"})
        second.close()  # again
        assert first.get_schema("a", "1") is not None
        assert (tmp_path / "store.db-wal").exists(), "SQLite's log is written back when the last one closes"
    assert not (tmp_path / "store.db-wal").exists()


def test_a_file_that_is_removed_and_made_again_is_another_store(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    with MetadataStore(str(file)) as store:
        store.put_schema("a", "1", {"c": "int"})
    file.unlink()
    with MetadataStore(str(file)) as store:
        assert store.list_schemas() == []


def test_a_newer_store_is_refused(url: str) -> None:
    MetadataStore(url).close()
    engine = create_engine(url if "://" in url else f"sqlite:///{url}")
    with engine.begin() as connection:
        connection.execute(text("UPDATE papilio_store SET version = 7"))
    engine.dispose()
    with pytest.raises(BadInput, match=r"newer Papilio .store version 7, this one knows 1"):
        MetadataStore(url)


def test_the_password_is_not_shown(postgresql: Any) -> None:
    wrong = postgresql.url.replace(postgresql.password, "hunter2")
    with pytest.raises(EnvironmentProblem, match="does not answer") as caught:
        MetadataStore(wrong)
    assert "hunter2" not in str(caught.value)


def test_a_server_that_is_not_there_is_an_environment_problem() -> None:
    with pytest.raises(EnvironmentProblem, match="does not answer"):
        MetadataStore("postgresql://nobody@127.0.0.1:1/none")


def test_the_default_place_is_in_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with MetadataStore() as store:
        store.put_run(a_run())
    assert (tmp_path / "home" / "store.db").exists()
    monkeypatch.delenv("PAPILIO_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    MetadataStore().close()
    assert (tmp_path / "data" / "papilio" / "store.db").exists()
    monkeypatch.setenv("PAPILIO_STORE", f"sqlite:///{tmp_path}/named.db")
    MetadataStore().close()
    assert (tmp_path / "named.db").exists()


def test_a_file_that_is_no_database_is_refused_and_kept(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("these are my notes, " * 100)
    with pytest.raises(BadInput, match=r"notes.txt: not a Papilio store"):
        MetadataStore(str(file))
    assert file.read_text() == "these are my notes, " * 100


def test_a_broken_database_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    with MetadataStore(str(file)) as store:
        for number in range(50):
            store.put_run(a_run(number))
    content = bytearray(file.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    file.write_bytes(content)
    with pytest.raises(BadInput, match="not a Papilio store"), MetadataStore(str(file)) as store:
        store.list_runs()


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("nowhere/at/all/store.db", "does not exist"),
        (".", "a folder, not a store"),
        ("nosuchdatabase://x/y", "no such kind of store"),
        ("://", "not a store's URL"),
    ],
)
def test_a_place_that_cannot_be_is_bad_input(
    place: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match=reason):
        MetadataStore(place)


def test_a_home_that_cannot_be_made_is_an_environment_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PAPILIO_HOME", str(tmp_path / "file" / "home"))
    with pytest.raises(EnvironmentProblem, match="cannot be made"):
        MetadataStore()


def test_a_store_that_may_not_be_written_can_still_be_read(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    with MetadataStore(str(file)) as store:
        store.put_run(a_run())
    with MetadataStore(f"sqlite:///file:{file}?mode=ro&uri=true") as store:
        assert store.list_runs() == [a_run()]
        with pytest.raises(EnvironmentProblem, match="may not be written"):
            store.put_run(a_run(2))


def test_a_locked_store_says_so_and_can_still_be_read(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    with MetadataStore(str(file), busy_timeout_s=0.2) as store:
        store.put_run(a_run())
        other = sqlite3.connect(file, isolation_level=None)
        try:
            other.execute("BEGIN IMMEDIATE")
            assert store.list_runs() == [a_run()]
            with pytest.raises(EnvironmentProblem, match=r"locked; another program held it for more than 0.2 s"):
                store.put_run(a_run(2))
        finally:
            other.close()
        store.put_run(a_run(2))
        assert len(store.list_runs()) == 2


def test_importing_the_store_does_not_load_sqlalchemy() -> None:
    program = "import engine.store, engine.cli.store, engine.cli.history, sys; print('sqlalchemy' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "False"


def test_adding_takes_all_or_nothing(store: MetadataStore) -> None:
    saved, _ = store.put_workflow("w", {"a": 1}, "mine")
    schema = SourceSchema(source="s", fingerprint="f", seen=NOON, columns={"c": "int"})
    clash = dataclasses.replace(saved, text="theirs")
    with pytest.raises(BadInput, match="workflow 'w' version 1 is here already, with other content"):
        store.add([schema, a_run(), clash])
    assert list(store.records()) == [saved]
    assert sum(store.add([schema, a_run(), saved]).values()) == 2
    assert list(store.records()) == [schema, saved, a_run()]

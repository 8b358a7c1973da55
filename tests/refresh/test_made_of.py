"""What a table is made of: what its rows depend on, and nothing else. No Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import BadInput
from engine.partition.tables import tables_of
from engine.refresh.live.launch import _check
from engine.refresh.live.made_of import ID, made_of
from engine.refresh.live.warehouse import LiveSettings
from engine.spark.stream_store import TableStore
from engine.spark.stream_versions import Change
from tests.operators.harness import make
from tests.spark.streaming import FILE, bound_in


def all_made(folder: Path, text: str = FILE) -> dict[str, dict]:
    """What every table is made of, with its own description for an id, so that a change goes on to its views."""
    folder.mkdir(exist_ok=True)
    bound = bound_in(folder, text)
    found: dict[str, dict] = {}
    for plan in tables_of(bound):
        made = made_of(
            bound, plan, bound.place(), {"ts": "timestamp"}, {source: found[source] for source in plan.sources}
        )
        found[plan.name] = {**made, ID: repr(made)}
    return found


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("condition: cost > 3", "condition: cost > 2", {"dear_click"}),
        ("sum(amount)", "max(amount)", {"sale_second", "joined"}),
        ("path: out/sale_second, time_column: bucket, partition_s: 6", "path: out/sale_second, time_column: bucket, partition_s: 2", {"sale_second", "joined"}),
        ("last_day: 2026-01-07", "last_day: 2026-01-08", {"dear_click"}),
        ("kind: left", "kind: inner", {"joined"}),
        ("rows_per_s: 40", "rows_per_s: 41", {"click", "dear_click", "click_second", "joined", "pair"}),
        ("priority: 3", "priority: 4", set()),
        ("      refresh: incremental\n", "", set()),
        ("path: out/click, time_column: ts, partition_s: 4", "path: out/click, time_column: ts, partition_s: 2", set()),
        ("lateness_bound_s: 2", "lateness_bound_s: 3", set()),
    ],
)  # fmt: skip
def test_a_table_is_another_one_where_its_rows_would_be_others(tmp_path, old, new, changed):
    assert old in FILE
    before, after = all_made(tmp_path / "a"), all_made(tmp_path / "b", FILE.replace(old, new))
    assert {name for name in before if before[name] != after[name]} == changed


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("rows_per_s: 40", "rows_per_s: 20", "records in a batch: 40 → 20"),
        ("seed: 7", "seed: 8", "seed: 7 → 8"),
    ],
)
def test_a_table_whose_stream_is_another_one_is_refused_before_spark_is_started(tmp_path, old, new, told):
    made = all_made(tmp_path)
    for name in ("click", "sale"):
        store = TableStore(tmp_path / "out" / name, "ts", 4_000_000)
        store.describe(made[name])
        store.publish(Change(5, 5, position=[3, 0, 5]))
        store.close()
    bound = bound_in(tmp_path)
    _check(bound, tables_of(bound), LiveSettings())
    bound = bound_in(tmp_path, FILE.replace(old, new))
    with pytest.raises(BadInput) as caught:
        _check(bound, tables_of(bound), LiveSettings())
    said = str(caught.value)
    assert told in said
    assert "its rows came from another stream" in said
    assert "name another folder for the table, or delete" in said
    assert said.startswith(f"{tmp_path / 'small.butterfly.yaml'}: node `{'click' if '40' in told else 'sale'}`: ")


def test_a_folder_and_its_table_may_be_moved_together_and_another_folder_is_another_stream(tmp_path):
    def made(folder: Path, incoming: str) -> dict:
        folder.mkdir()
        settings = f"path: {incoming}, columns: {{ts: timestamp, page: bigint, cost: bigint}}"
        text = FILE.replace(
            "generator_stream, settings: {period_s: 1, rows_per_s: 40, columns: {page: id % 5, cost: id % 7}}",
            f"folder_stream, settings: {{{settings}}}",
        )
        bound = bound_in(folder, text)
        (plan,) = [plan for plan in tables_of(bound) if plan.name == "click"]
        return made_of(bound, plan, bound.place(), {}, {})

    here = made(tmp_path / "a", "in")
    assert here["stream"] == {"operator": "folder_stream", "folder": "../../in"}
    assert made(tmp_path / "b", "in") == made(tmp_path / "c", str(tmp_path / "c" / "in")) == here
    assert made(tmp_path / "d", "other") != here


@pytest.mark.parametrize(
    ("setting", "value", "told"),
    [
        ("table", "other", {"table": "public.other"}),
        ("schema", "past", {"table": "past.events"}),
        ("host", "there", {"server": "there:5432/d"}),
        ("user", "somebody", {}),
        ("check_s", 9.0, {}),
    ],
)
def test_another_table_of_a_database_is_another_stream_and_another_user_is_not(setting, value, told):
    given = {
        "host": "here",
        "port": 5432,
        "database": "d",
        "user": "u",
        "table": "events",
        "columns": {"ts": "timestamp"},
    }
    before = make("postgresql_stream", **given).itself()
    assert make("postgresql_stream", **{**given, setting: value}).itself() == {**before, **told}

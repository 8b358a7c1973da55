"""The plan a run is carried out by, and its place in the store."""

from __future__ import annotations

import json

import pytest

from engine.errors import BadInput
from engine.model.binding import bind
from engine.model.file import load
from engine.model.physical import Step
from engine.model.workflow import Hints, Planning
from engine.operators import catalogue
from engine.plan.apply import Applied
from engine.plan.costs import ROW_BYTES, WIDER_BYTE
from engine.store import MetadataStore
from engine.store.plans import plan_for_run, remember_plan
from engine.store.prices import keep_prices
from tests.end_to_end.helpers import WORKFLOWS
from tests.plan.test_apply import fork
from tests.plan.test_workflow import bound_of, node, source, target


def two_sources(held: int | None, **hints):
    return bound_of(
        {
            "l": source(held), "f": node("filter", hints or None, condition="a < 5"), "r": source(50),
            "j": node("join", keys=[{"left": "a"}], right_suffix="_2"), "t": target("t"),
        },
        "l -> f", "f -> j.left", "r -> j.right", "j -> t",
    )  # fmt: skip


def test_the_best_plan_asks_for_what_known_rows_can_vouch_for(tmp_path):
    store = str(tmp_path / "store.db")
    known = plan_for_run(two_sources(1_000_000, selectivity=0.5), url=store)
    assert known is not None
    assert known.applied.settings == {("j", "form"): "broadcast"}
    assert known.signature == "((l.f)//(r)).j@BJ.t"
    for bound in (
        two_sources(None, selectivity=0.5),
        two_sources(1_000),
    ):  # the source's rows or the filter's are assumed
        guessed = plan_for_run(bound, url=store)
        assert guessed is not None
        assert guessed.applied.settings == {}
    counted = plan_for_run(two_sources(None, rows=500), url=store)
    assert counted is not None
    assert counted.applied.settings != {}


def test_nested_loops_are_never_asked_for_unless_the_person_pins_them(tmp_path):
    store = str(tmp_path / "store.db")
    bound = two_sources(3, rows=2)
    free = plan_for_run(bound, url=store)
    assert free is not None
    assert free.applied.settings not in ({}, {("j", "form"): "nested_loops"})
    bound.workflow.plan = Planning(pin={"j": "NL"})
    pinned = plan_for_run(bound, url=store)
    assert pinned is not None
    assert pinned.applied.settings == {("j", "form"): "nested_loops"}


def test_no_plan_and_a_given_one_are_taken_at_their_word(tmp_path):
    store = str(tmp_path / "store.db")
    bound = two_sources(1_000)
    assert plan_for_run(bound, "none", store) is None
    given = plan_for_run(bound, "((l.f)//(r)).j@SMJ.t", store)
    assert given is not None
    assert given.applied.settings == {("j", "form"): "merge"}
    with pytest.raises(BadInput, match="node `j` has no implementation `XX`"):
        plan_for_run(bound, "((l.f)//(r)).j@XX.t", store)


def test_a_plan_is_kept_with_its_workflow(tmp_path):
    store = str(tmp_path / "store.db")
    bound = bind(load(WORKFLOWS / "plan_balanced.butterfly.yaml"), catalogue())
    text = "((R.1.1_3(A))//(S.2@SO.P)).3@MJ.V.((4@SO.Z)//(5@SO.W))"
    plan = plan_for_run(bound, text, store)
    assert plan is not None
    remember_plan(bound, plan, store)
    with MetadataStore(store) as kept:
        (record,) = kept.list_plans("plan_balanced", bound.workflow.content_hash())
    assert record.signature == text
    assert record.document["model"] == "measured"
    assert record.cost > 0
    assert sum(line["cost"] for line in record.document["lines"]) == pytest.approx(record.cost)


def test_sorters_are_taken_where_fine_views_read_one_body_and_not_where_their_rows_are_assumed(tmp_path):
    store = str(tmp_path / "store.db")
    chosen = plan_for_run(fork(), url=store)
    assert chosen is not None
    assert list(chosen.applied.staged) == ["v"]
    assert "v!(a," in chosen.signature
    assert [sorter["position"] for sorter in chosen.told()["sorters"]] == ["v!"]
    in_packs = plan_for_run(fork(), url=store, sorters=False)
    assert in_packs is not None
    assert not in_packs.applied.has_sorters
    assumed = fork()
    assumed.workflow.nodes["f"].hints = None
    guessed = plan_for_run(assumed, url=store)
    assert guessed is not None
    assert not guessed.applied.has_sorters
    assert guessed.left == ("x", "y", "z")


def test_a_sorter_whose_rows_would_go_to_few_parts_is_not_taken(tmp_path):
    bound = fork()
    bound.workflow.nodes["x"].hints = Hints(rows=3)  # three values of a: at most three tasks would have work
    chosen = plan_for_run(bound, url=str(tmp_path / "store.db"))
    assert chosen is not None
    assert chosen.applied.staged == {}


@pytest.fixture
def prices(tmp_path, monkeypatch):
    """Prices of this machine, all of them, so that choices do not depend on those that are shipped."""
    monkeypatch.setenv("PAPILIO_HOME", str(tmp_path / "home"))
    given = {
        "scan": 0.2, "sort": 0.03, "group": 0.4, "form": 0.5, "gather": 1.2, "close": 0.5, "hash": 0.7,
        "reorder": 0.005, "merge": 0.3, "emit": 0.25, "give": 0.25, "pair": 0.003, "store": 0.6,
        "row_bytes": 32, "wider_byte": 0.008,
    }  # fmt: skip
    assert set(given) == {*map(str, Step), ROW_BYTES, WIDER_BYTE}
    keep_prices(given)


@pytest.mark.parametrize("shipped", [False, True], ids=["prices of this machine", "those that are shipped"])
def test_a_view_is_not_sorted_for_its_own_sake_however_fine_it_is(shipped, request, monkeypatch, tmp_path):
    if shipped:
        monkeypatch.setenv("PAPILIO_HOME", str(tmp_path / "nothing kept"))
    else:
        request.getfixturevalue("prices")
    bound = bound_of(
        {
            "s": source(100_000),
            "g": node("aggregate", {"rows": 95_000}, group=["a"], aggregates=[{"name": "n", "expression": "count(*)"}]),
            "t": target("t"),
        },
        "s -> g", "g -> t",
    )  # fmt: skip
    chosen = plan_for_run(bound, url=str(tmp_path / "store.db"))
    assert chosen is not None
    assert chosen.signature == "s.g@HB.t"
    assert chosen.applied.passed == {}


def test_a_small_side_is_broadcast_unless_something_else_promises_much(prices, tmp_path):
    def join(rows: int, small: int, out: int) -> str:
        bound = bound_of(
            {
                "l": source(rows), "r": source(small, a="int"),
                "j": node("join", {"rows": out}, keys=[{"left": "a"}], right_suffix="_2"), "t": target("t"),
            },
            "l -> j.left", "r -> j.right", "j -> t",
        )  # fmt: skip
        chosen = plan_for_run(bound, url=str(tmp_path / "store.db"))
        assert chosen is not None
        return str(chosen.applied.settings["j", "form"])

    assert join(10_000, 40_000, 30_000) == "broadcast"  # a little dearer than sorting both, as the prices have it
    assert join(1_000_000, 40_000, 1_000_000) == "broadcast"
    assert join(1_000_000, 600_000, 1_000_000) != "broadcast"  # too large to be copied to every task


def test_a_fine_view_is_divided_as_a_coarser_one_behind_it_groups(tmp_path):
    def divided(fine: int | None, coarse: int | None, by: str = "b", **more: object) -> dict[object, object]:
        count = [{"name": "n", "expression": "count(*)"}]
        bound = bound_of(
            {
                "s": node("parquet_source", {"rows": 1_000_000}, path="s.parquet", columns={"a": "int", "b": "int"}),
                "fine": node("aggregate", hint(fine), group=["a", "b"], aggregates=count), "v": target("v", **more),
                "coarse": node("aggregate", hint(coarse), group=[by], aggregates=count), "w": target("w"),
            },
            "s -> fine", "fine -> v", "v -> coarse", "coarse -> w",
        )  # fmt: skip
        chosen = plan_for_run(bound, url=str(tmp_path / "store.db"))
        assert chosen is not None
        assert bool(chosen.applied.divided) == any("coarser view" in remark for remark in chosen.remarks)
        assert Applied.from_data(json.loads(json.dumps(chosen.applied.as_data()))) == chosen.applied
        in_packs = plan_for_run(bound, url=str(tmp_path / "store.db"), sorters=False)
        assert in_packs is not None
        assert in_packs.applied.divided == {}
        return dict(chosen.applied.divided)

    def hint(rows: int | None) -> dict[str, object] | None:
        return None if rows is None else {"rows": rows}

    by_b, by_a = {("s", "fine", 0): ("b",)}, {("s", "fine", 0): ("a",)}
    assert divided(900_000, 200_000) == by_b
    assert divided(900_000, 200_000, by="a") == by_a
    assert divided(300_000, 100_000) == {}, "grouped before they are divided, far fewer rows travel"
    assert divided(900_000, 25) == {}, "25 values are no work for many tasks"
    assert divided(900_000, 800_000) == {}, "the coarser view hardly groups"
    assert divided(None, 200_000) == {}, "how many groups there are is assumed"
    assert divided(900_000, None) == {}, "and so behind it"

"""`papilio plan`: the published tables from the shipped workflows, and what it says about bad input."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from engine.model.binding import bind
from engine.model.file import load
from engine.operators import catalogue
from engine.store import MetadataStore
from engine.store.plans import plan_for_run
from engine.store.prices import keep_prices, kept_prices
from tests.end_to_end.helpers import WORKFLOWS, answer, environment_for, papilio_here, write
from tests.plan.published import FIG_6, FIG_6_SIGNATURES, FIG_9, FIG_9_SIGNATURES
from tests.store.examples import a_run

BALANCED = WORKFLOWS / "plan_balanced.butterfly.yaml"
RIGHT_DEEP = WORKFLOWS / "plan_right_deep.butterfly.yaml"


@pytest.mark.parametrize("search", ["fast", "exhaustive"])
@pytest.mark.parametrize(
    ("file", "published", "signatures"),
    [(BALANCED, FIG_6, FIG_6_SIGNATURES), (RIGHT_DEEP, FIG_9, FIG_9_SIGNATURES)],
    ids=["fig6", "fig9"],
)
def test_the_shipped_scenarios_give_the_published_tables(file, published, signatures, search, tmp_path):
    found = answer(papilio_here("plan", file, "--search", search, "--json", home=tmp_path))
    assert found["signatures"] == signatures
    assert found["seconds"] > 0
    assert [(row["signature"], row["cost"], row["sorters"], row["sorter_cost"]) for row in found["top"]] == published


def test_the_table_is_printed_for_a_person_with_every_cost_line_explained(tmp_path):
    done = papilio_here("plan", BALANCED, "--top", 3, "--explain", home=tmp_path)
    assert done.returncode == 0
    assert "1 2,560,021        2   1,803,841  70 %  ((R.1.1_3(A))//(S.S!(A).2@SO.P)).3@MJ.V" in done.stdout
    assert "sort 10,000 rows (n·log₂ n) = 132,877 + look at 10,000 rows = 10,000" in done.stdout
    assert "181 signatures, fast search" in done.stderr


def test_one_signature_can_be_looked_at_alone(tmp_path):
    text = FIG_9[6][0]
    found = answer(papilio_here("plan", RIGHT_DEEP, "--signature", text, "--explain", "--json", home=tmp_path))
    (row,) = found["top"]
    assert (row["signature"], row["cost"]) == (text, FIG_9[6][1])
    assert round(sum(line["cost"] for line in row["lines"])) == FIG_9[6][1]


def test_pins_and_bans_on_the_command_line_hold(tmp_path):
    found = answer(papilio_here("plan", BALANCED, "--pin", "3=NL", "--json", home=tmp_path))
    assert {row["implementations"]["3"] for row in found["top"]} == {"NL"}
    found = answer(papilio_here("plan", BALANCED, "--forbid", "3=MJ", "--forbid", "3=HJ", "--json", home=tmp_path))
    assert found["top"][0]["cost"] == 2_996_202


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--pin", "3=SO"], "node `3` has no implementation `SO`; it has MJ, HJ, SMJ, NL"),
        (["--pin", "3"], "--pin 3: write it as node=implementation"),
        (["--pin", "3=MJ", "--forbid", "3=MJ"], "`3` is pinned to `MJ`, which is forbidden"),
        (["--pin", "3=MJ", "--pin", "3=NL"], "pinned to `MJ` and to `NL`"),
        (["--pin", "2=HB"], "`2` is pinned to `HB`, which is forbidden"),  # the file forbids it
        (["--pin", "nine=MJ"], "there is no node `nine`"),
        (["--limit", "3=1"], "the limit 3=1 asks for 1 at most, and the cheapest way costs 50,000"),
        (["--limit", "3"], "--limit 3: write it as node,node=cost"),
        (["--memory-rows", "5", "--pin", "3=HJ"], "`3` pinned to `HJ`; at most 5 rows in memory"),
        (["--signature", "R.1"], "the signature leaves out"),
        (["--signature", FIG_6[1][0].replace("MJ", "XX")], "node `3` has no implementation `XX`"),
        (
            ["--signature", FIG_6[7][0].replace("HJ", "MJ")],
            "`3@MJ` does not fit: a merge join needs rows in order of A",
        ),
        (["--cost", "guess"], "Invalid value for '--cost'"),
    ],
)
def test_what_cannot_be_planned_is_bad_input_and_the_conflict_is_named(options, message, tmp_path):
    done = papilio_here("plan", BALANCED, *options, home=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stdout == ""


def test_a_workflow_with_problems_is_not_planned(tmp_path):
    file = write(tmp_path, {"s": {"operator": "csv_source", "path": "x.csv"}}, [])
    done = papilio_here("plan", file, home=tmp_path)
    assert done.returncode == 2
    assert "nothing reads what this node gives" in done.stderr


def small(folder: Path) -> Path:
    table = pyarrow.table({"a": pyarrow.array(range(1_234), pyarrow.int32())})
    pyarrow.parquet.write_table(table, folder / "s.parquet")
    return write(
        folder,
        {
            "s": {"operator": "parquet_source", "path": "s.parquet"},
            "f": {"operator": "filter", "condition": "a < 10"},
            "t": {"operator": "parquet_target", "path": "t"},
        },
        ["s -> f", "f -> t"],
    )


def test_rows_come_from_footers_and_from_the_last_run_and_what_is_assumed_is_said(tmp_path):
    file = small(tmp_path)
    done = papilio_here("plan", file, home=tmp_path)
    assert done.returncode == 0
    assert "Assumed, for nothing is known of their rows: f (617)" in done.stderr
    assert answer(papilio_here("plan", file, "--json", home=tmp_path))["rows"]["s"] == {"rows": 1_234, "from": "source"}
    counted = {"nodes": {"s": {"rows_in": 0, "rows_out": 1_000}, "f": {"rows_in": 1_000, "rows_out": 10}}}
    with MetadataStore(str(tmp_path / "store.db")) as store:
        store.put_run(a_run(1, workflow="test", status="done", summary=counted))
    found = answer(papilio_here("plan", file, "--json", home=tmp_path))
    assert found["rows"]["f"] == {"rows": 10, "from": "run"}
    assert found["rows"]["s"] == {"rows": 1_000, "from": "run"}


def test_a_black_box_costs_for_each_row_what_the_last_run_took_for_it(tmp_path):
    file = write(
        tmp_path,
        {
            "s": {"operator": "csv_source", "path": "s.csv", "columns": {"a": "int"}},
            "box": {"operator": "derive", "columns": [{"name": "b", "expression": "sha2(cast(a as string), 256)"}]},
            "t": {"operator": "parquet_target", "path": "t"},
        },
        ["s -> box", "box -> t"],
    )

    def cost() -> float:
        found = answer(papilio_here("plan", file, "--cost", "measured", "--json", home=tmp_path))
        return float(found["top"][0]["exact_cost"])

    def ran(number: int, rows: int, seconds: float) -> None:
        counted = {
            "nodes": {"s": {"rows_in": 0, "rows_out": rows}, "box": {"rows_in": rows, "rows_out": rows}},
            "units": {"t": {"nodes": ["s", "box", "t"], "rows": rows, "seconds": seconds}},
        }
        with MetadataStore(str(tmp_path / "store.db")) as store:
            store.put_run(a_run(number, workflow="test", status="done", summary=counted))

    looked_at = cost() / 100_000  # as much as a look at a row, for the 100,000 that are assumed
    ran(1, 1_000, 9.0)
    assert cost() == pytest.approx(1_000 * looked_at)  # so few rows say nothing of what one costs
    ran(2, 50_000, 9.3)
    assert cost() == 9_000_000  # µs: all that the unit took but for starting and ending it


def test_prices_of_this_machine_go_over_the_built_in_ones(tmp_path):
    file = small(tmp_path)
    prices = tmp_path / "prices.json"
    prices.write_text('{"scan": 3.5}')
    measured = ["--cost", "measured"]
    found = answer(
        papilio_here("plan", file, "--forbid", "f=SF", *measured, "--prices", prices, "--json", home=tmp_path)
    )
    assert found["top"][0]["cost"] == round(1_234 * 3.5)
    assert found["unit"] == "µs"
    for text, options, message in (
        ('{"scann": 1}', measured, "there is no step `scann`; did you mean `scan`?"),
        ('{"scan": -1}', measured, "the price of `scan` is -1"),
        ("[1]", measured, "steps with their prices are expected"),
        ("{", measured, "prices.json"),
        ("{}", [], "prices are for --cost measured"),
    ):
        prices.write_text(text)
        done = papilio_here("plan", file, *options, "--prices", prices, home=tmp_path)
        assert done.returncode == 2
        assert message in done.stderr


# ---------------------------------------------------------------- the plan of a run


@pytest.mark.parametrize(
    ("plan", "asked", "message"),
    [
        ("((R.1)//(S.2@SO.P)).3@XJ.V.((4@SO.Z)//(5@SO.W))", None, "node `3` has no implementation `XJ`; it has MJ, HJ"),
        (
            "((R.1)//(S.2@SO.P)).3@MJ.V.((4@SO.Z)//(5@SO.W))",
            None,
            "`3@MJ` does not fit: a merge join needs rows in order",
        ),
        ("((R.1)//(S.2@SO.P)).3@HJ.V", None, "the signature leaves out `4`, `5`, `Z`, `W`"),
        ("R..1", None, "the signature cannot be read at position 3"),
        ("best", "pin: {'3': XX}", "node `3` has no implementation `XX`"),
        ("best", "pin: {'3': HJ}\n  forbid: {'3': [HJ]}", "node `3` is pinned to `HJ`, which is forbidden for it"),
        ("best", "pin: {V: HJ}", "`V` is a recordset, for which nothing is chosen"),
        ("best", "pin: {'9': HJ}", "there is no node `9`"),
        ("best", "limits: [{nodes: ['3'], cost: 1}]", "the limit 3=1 asks for 1 at most, and the cheapest way costs"),
        (
            "best",
            "pin: {'3': HJ}\n  memory_rows: 5",
            "these cannot be had together: `3` pinned to `HJ`; at most 5 rows",
        ),
    ],
)
def test_a_run_that_cannot_have_its_plan_ends_with_2_before_anything_starts(plan, asked, message, tmp_path):
    text = BALANCED.read_text(encoding="utf-8")
    if asked is not None:
        text = text.replace("plan:\n  forbid:\n    '2': [HB]\n    '4': [HB]\n    '5': [HB]", f"plan:\n  {asked}")
    file = tmp_path / "flow.butterfly.yaml"
    file.write_text(text, encoding="utf-8")
    done = papilio_here("run", file, "--plan", plan, "--run-dir", tmp_path / "run", home=tmp_path)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert "flow.butterfly.yaml" in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_simulated_run_has_no_physical_plan(tmp_path):
    done = papilio_here("run", BALANCED, "--backend", "simulated", "--plan", "R.1", home=tmp_path)
    assert done.returncode == 2
    assert "it has no physical plan" in done.stderr


def test_a_workflow_too_large_to_look_at_every_state_says_how_many_there_are(tmp_path):
    file = tmp_path / "large.butterfly.yaml"
    assert papilio_here("generate", "--nodes", 60, "--to", file, home=tmp_path).returncode == 0
    found = answer(papilio_here("plan", file, "--search", "exhaustive", "--json", home=tmp_path))
    assert found["search"] == "fast"
    (remark,) = (text for text in found["remarks"] if "states" in text)
    states = int(remark.split("would look at ")[1].split(" states")[0].replace(",", ""))
    assert states > 200_000


def test_what_measured_costs_say_a_run_takes_is_told_and_kept_prices_count(tmp_path, monkeypatch):
    found = answer(papilio_here("plan", BALANCED, "--cost", "measured", "--json", home=tmp_path))
    assert found["run"] == "((R.1)//(S.2@SO.P)).3@BJ.V.((4@SO.Z)//(5@SO.W))"
    home = tmp_path / "home"
    monkeypatch.setenv("PAPILIO_HOME", str(home))
    file = keep_prices({"scan": 1000.0, "hash": 0.25})
    assert file.parent == home
    assert kept_prices() == {"scan": 1000.0, "hash": 0.25}
    dearer = plan_for_run(bind(load(BALANCED), catalogue()))
    assert dearer is not None
    assert dearer.cost > 100 * found["top"][0]["exact_cost"]


def test_a_view_that_the_file_keeps_as_drawn_is_not_offered(tmp_path):
    file = WORKFLOWS / "order_fork.butterfly.yaml"
    assert "Offer: `by_order`" in papilio_here("plan", file, home=tmp_path).stderr
    kept = tmp_path / "kept.butterfly.yaml"
    kept.write_text(file.read_text(encoding="utf-8") + "plan: {as_drawn: [by_order]}\n", encoding="utf-8")
    assert "Offer" not in papilio_here("plan", kept, home=tmp_path).stderr


LISTS_PLANS = """
import sys
from engine.model.binding import bind
from engine.model.file import load
from engine.operators import catalogue
from engine.plan.constraints import Constraints, Limit
from engine.plan.costs import MeasuredCosts, PaperCosts
from engine.plan.graph import graph_of
from engine.plan.planner import Search, rank
from engine.plan.rows import rows_of

for file in sys.argv[1:]:
    bound = bind(load(file), catalogue())
    for model, spark in ((PaperCosts(), False), (MeasuredCosts(), True)):
        graph = graph_of(bound, rows_of(bound), on_spark=spark)
        dearest = max(rank(graph, model, top=25).plans, key=lambda plan: plan.cost)
        for limits in ((), (Limit(frozenset(graph.nodes), dearest.cost / 1e6, "all"),)):
            for search in Search:
                ranking = rank(graph, model, Constraints(limits=limits), 25, search)
                for plan in ranking.plans:
                    print(ranking.signature(plan), plan.number, [line.cost for line in plan.lines])
"""


def test_plans_do_not_depend_on_how_python_hashes(tmp_path):
    said = []
    for seed in ("1", "20260"):
        done = subprocess.run(
            [sys.executable, "-c", LISTS_PLANS, str(BALANCED)], check=False, capture_output=True,
            text=True, timeout=60, env={**environment_for(tmp_path), "PYTHONHASHSEED": seed},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    assert said[0].count("\n") >= 150
    assert said[0] == said[1]

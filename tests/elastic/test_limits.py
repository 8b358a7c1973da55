"""The `elastic` section of a workflow file: it round-trips, and limits that contradict each other are refused."""

from __future__ import annotations

import pytest
import yaml

from engine.cli._workflow import Given
from engine.elastic import launch
from engine.elastic.queries import SQL, asked
from engine.errors import BadInput
from engine.events import LogReader, Remark
from engine.model.elastic import Elastic, unheeded
from engine.model.file import load, to_yaml, workflow_from
from engine.request import RunRequest
from tests.end_to_end.helpers import WORKFLOWS, answer, papilio_here

RATE = {"kind": "steps", "steps": [{"at_s": 0, "rows_s": 10}, {"at_s": 5, "rows_s": 20}], "seconds": 9}


def written(tmp_path, elastic):
    file = tmp_path / "w.butterfly.yaml"
    nodes = {"s": {"operator": "parquet_source", "settings": {"path": "x.parquet"}}}
    file.write_text(
        yaml.safe_dump({"papilio": 1, "nodes": nodes, "elastic": {"rate": RATE} | elastic}, sort_keys=False)
    )
    return file


def test_the_section_round_trips_with_what_this_version_does_not_know(tmp_path):
    given = {"extraction": {"limit_s": 1.0, "every_s": 2.0, "colour": "red"}, "later": {"b": 1, "a": [2]}, "pool": 9}
    workflow = load(written(tmp_path, given)).workflow
    text = to_yaml(workflow)
    again = workflow_from(yaml.safe_load(text), "again")
    assert again.elastic == workflow.elastic
    assert to_yaml(again) == text
    kept = yaml.safe_load(text)["elastic"]
    assert kept == {"rate": RATE} | given  # and nothing that the person did not write
    assert list(kept) == sorted(kept)


def test_a_section_made_by_a_program_is_whole_in_the_file():
    made = Elastic.model_validate({"rate": RATE})
    assert Elastic.model_validate(made.model_dump()) == made


def test_limits_are_part_of_what_a_workflow_does(tmp_path):
    first = load(written(tmp_path, {"pool": 9})).workflow
    assert first.content_hash() != load(written(tmp_path, {"pool": 10})).workflow.content_hash()


@pytest.mark.parametrize(
    ("elastic", "place", "reason"),
    [
        ({"extraction": {"every_s": 2, "limit_s": 3}}, "elastic.extraction", "may take 3 s (limit_s) but the next begins after 2 s"),
        ({"extraction": {"every_s": 2, "limit_s": 1, "margin_s": 0.5}}, "elastic.extraction", "could never be removed"),
        ({"extraction": {"nodes": {"min": 4, "max": 3}}}, "elastic.extraction.nodes", "at least 4 nodes and at most 3"),
        ({"switch": {"limit_rows_s": 100, "margin_rows_s": 100}}, "elastic.switch", "switches could never be removed"),
        ({"warehouse": {"every_s": 2, "load_limit_s": 60}}, "elastic.warehouse", "may take 60 s (load_limit_s)"),
        ({"warehouse": {"query_limit_s": 60, "margin_s": 30}}, "elastic.warehouse", "half of 60 s (query_limit_s)"),
        ({"warehouse": {"queries": ["Q9.9"]}}, "elastic.warehouse", "not Q9.9"),
        ({"warehouse": {"queries": {"broken": "SELECT sum(x FROM lineorder"}}}, "elastic.warehouse.queries", "query `broken`: line 1, column 17"),
        ({"warehouse": {"queries": {"writes": "DROP TABLE lineorder"}}}, "elastic.warehouse.queries", "query `writes`: a query starts with `SELECT`"),
        ({"warehouse": {"queries": {"calls": "SELECT reflect('a', 'b') AS x FROM lineorder"}}}, "elastic.warehouse.queries", "query `calls`: the function `reflect` is not allowed"),
        ({"warehouse": {"queries": {"file": "SELECT * FROM csv.`/etc/passwd`"}}}, "elastic.warehouse.queries", "query `file`: `csv./etc/passwd` is no input"),
        ({"warehouse": {"queries": {"none": None}}}, "elastic.warehouse.queries", "query `none`"),
        ({"warehouse": {"queries": {}}}, "elastic.warehouse.queries", "`name: SELECT …` for each of your own"),
        ({"pool": 4}, "elastic", "the stages need 5 nodes at least (the sum of their nodes.min), and the pool has 4"),
        ({"hold_s": 5, "settle_s": 6}, "elastic", "would come before a change has settled"),
        ({"limit_s": 2, "extraction": {"limit_s": 1.5}, "warehouse": {"load_limit_s": 1}}, "elastic", "2.5 s together"),
        ({"limit_s": 2, "transformation": {"limit_s": 3}}, "elastic", "may take 3 s together by their own limits"),
        ({"limit_s": 3, "extraction": {"margin_s": 0.5}}, "elastic", "of 3 s for all stages (limit_s) the extraction has 1 s"),
        ({"transformation": {"distribution": "copy"}}, "elastic.transformation.distribution", "each row as often"),
        ({"extraction": {"distribution": "copy"}}, "elastic.extraction.distribution", "it is dimensions that are copied"),
        ({"buffer": {"distribution": "copy"}}, "elastic.buffer.distribution", "it is dimensions that are copied"),
        ({"rate": {"kind": "diurnal", "low_rows_s": 9, "high_rows_s": 5}}, "elastic.rate", "above the highest"),
        ({"rate": RATE | {"seconds": 5}}, "elastic.rate", "a step begins at 5 s, but all lasts 5 s"),
        ({"rate": {"kind": "tides"}}, "elastic.rate", "'steps', 'ramp', 'recorded', 'diurnal', 'bursts'"),
        ({"pool": -1}, "elastic.pool", "greater than or equal to 1"),
    ],
)  # fmt: skip
def test_contradictory_limits_end_with_2_and_name_file_place_and_reason(tmp_path, elastic, place, reason):
    file = written(tmp_path, elastic)
    done = papilio_here("check", file, home=tmp_path)
    assert done.returncode == 2
    assert f"{file}:" in done.stderr
    assert f"`{place}" in done.stderr
    assert reason in done.stderr


def test_a_contradiction_knows_its_line(tmp_path):
    file = written(tmp_path, {"pool": 12, "switch": {"limit_rows_s": 1, "margin_rows_s": 2}})
    line = next(n for n, text in enumerate(file.read_text().splitlines(), 1) if "switch:" in text)
    with pytest.raises(BadInput, match=f"{file.name}:{line}: `elastic.switch`"):
        load(file)


OWN = {"by year": "SELECT d_year, sum(lo_revenue) AS revenue FROM Facts JOIN `date` ON lo_orderdate = d_datekey GROUP BY d_year"}  # fmt: skip


def star(tmp_path, queries, facts="facts"):
    """A workflow whose star has the tables `facts` and `date`."""
    source = {"operator": "csv_source", "settings": {"path": "x.csv", "columns": {"a": "int"}}}
    nodes = {
        "lines": source,
        "days": source,
        "one": {"operator": "copy"},
        "other": {"operator": "copy"},
        "facts": {"operator": "parquet_target", "settings": {"path": "out/facts.parquet"}},
        "calendar": {"operator": "parquet_target", "settings": {"path": "out/date"}},
    }
    edges = [("lines", "one"), ("one", "facts"), ("days", "other"), ("other", "calendar")]
    elastic = {
        "rate": RATE,
        "warehouse": {"queries": queries, "sessions": 1},
        "live": {"source": "lines", "facts": facts},
    }
    (tmp_path / "x.csv").write_text("a\n1\n")
    file = tmp_path / "star.butterfly.yaml"
    nodes = {name: yaml.safe_load(yaml.safe_dump(node)) for name, node in nodes.items()}
    file.write_text(
        yaml.safe_dump(
            {"papilio": 1, "nodes": nodes, "edges": [{"from": a, "to": b} for a, b in edges], "elastic": elastic}
        )
    )
    return file


def test_queries_of_one_s_own_are_kept_and_asked_in_the_place_of_ssb_s(tmp_path):
    file = star(tmp_path, OWN)
    workflow = load(file).workflow
    assert workflow.elastic is not None
    assert asked(workflow.elastic.warehouse) == OWN
    assert workflow_from(yaml.safe_load(to_yaml(workflow)), "again").elastic == workflow.elastic
    assert asked(Elastic.model_validate({"rate": RATE}).warehouse) == SQL
    assert papilio_here("check", file, home=tmp_path).returncode == 0
    assert answer(papilio_here("scale", "simulate", file, "--json", home=tmp_path))["status"] == "simulated"


def test_a_query_that_reads_what_is_no_table_of_the_star_is_refused_with_file_name_and_reason(tmp_path):
    file = star(tmp_path, {"lost": "SELECT count(*) AS n FROM fact JOIN orders ON true"})
    done = papilio_here("check", file, home=tmp_path)
    assert done.returncode == 2
    assert (
        f"{file}: `elastic.warehouse.queries`: query `lost`: `fact` is no table of the star"
        in done.stderr + done.stdout
    )
    assert "did you mean `facts`?" in done.stderr + done.stdout
    assert "`orders` is no table of the star; there are date, facts" in done.stderr + done.stdout
    assert papilio_here("scale", "run", file, "--master", "local[2]", home=tmp_path).returncode == 2


def limits(**more) -> Elastic:
    return Elastic.model_validate({"rate": RATE} | more)


def test_whoever_has_no_time_limit_shares_what_the_others_leave_of_that_of_all():
    made = limits(limit_s=3).completed()
    assert (made.extraction.limit_s, made.warehouse.load_limit_s) == (1, 1)  # as in the paper's scenario
    made = limits(limit_s=3, warehouse={"every_s": 2, "load_limit_s": 2}).completed()
    assert (made.extraction.limit_s, made.warehouse.load_limit_s) == (0.5, 2)
    made = limits(limit_s=60).completed()
    assert (made.extraction.limit_s, made.warehouse.load_limit_s) == (2, 2)  # no longer than until the next begins
    assert limits(limit_s=3).completed().transformation.limit_s == 1
    assert limits(limit_s=6, transformation={"limit_s": 4}).completed().extraction.limit_s == 1
    assert limits(transformation={"limit_s": 4}).completed().extraction.limit_s is None
    stated = limits(limit_s=4, extraction={"limit_s": 1}, transformation={"limit_s": 1}, warehouse={"load_limit_s": 1})
    assert stated.completed() == stated
    assert limits().completed() == limits()
    assert limits(limit_s=2, extraction={"limit_s": 2}).completed().warehouse.load_limit_s is None  # nothing is left


def test_a_file_with_a_limit_for_all_stages_alone_is_scaled_by_it(tmp_path):
    file = written(
        tmp_path, {"limit_s": 3, "rate": {"kind": "ramp", "from_rows_s": 400_000, "to_rows_s": 400_000, "seconds": 60}}
    )
    summary = answer(papilio_here("scale", "simulate", file, "--json", home=tmp_path))
    assert {"extraction", "warehouse"} <= {one["stage"] for one in summary["decisions"] if one["kind"] == "scale out"}
    assert "limit_s: 1" not in file.read_text()  # what follows is not written


def test_a_total_that_is_broken_is_told_with_the_stage_that_took_longest(tmp_path):
    rate = {"kind": "ramp", "from_rows_s": 400_000, "to_rows_s": 400_000, "seconds": 60}
    file = written(tmp_path, {"limit_s": 2, "rate": rate, "warehouse": {"nodes": {"max": 1}}})
    done = papilio_here("scale", "simulate", file, "--run-dir", tmp_path / "run", home=tmp_path)
    assert "! all three took more than 2 s in" in done.stdout
    assert "the warehouse took longest" in done.stdout
    (told, *_) = [event.message for event in LogReader(tmp_path / "run" / "events.jsonl") if isinstance(event, Remark)]
    assert "more than their limit of 2 s (limit_s)" in told


def test_a_limit_for_queries_that_nobody_asks_is_told(tmp_path):
    told = "`elastic.warehouse.query_limit_s` is not heeded: nobody asks queries (`sessions` is 0)"
    file = written(tmp_path, {"warehouse": {"query_limit_s": 9}})
    assert told in papilio_here("scale", "simulate", file, home=tmp_path).stdout
    assert unheeded(limits(warehouse={"query_limit_s": 9, "sessions": 1})) == []
    assert unheeded(limits(switch={"distribution": "hash"})) == [
        "`elastic.switch.distribution` is no limit, so it is not heeded"
    ]


def test_from_the_run_bar_rows_that_are_not_there_are_made_before_they_are_replayed(tmp_path, monkeypatch):
    monkeypatch.setenv("PAPILIO_HOME", str(tmp_path))
    document = yaml.safe_load((WORKFLOWS / "elastic_tpch_to_ssb.butterfly.yaml").read_text())
    document["elastic"]["live"]["scale"] = 0.001
    document["parameters"]["data_folder"]["default"] = str(tmp_path / "data")
    file = tmp_path / "w.butterfly.yaml"
    file.write_text(yaml.safe_dump(document))
    told: list[str] = []
    monkeypatch.setattr(launch, "launch_live", lambda bound, record, prepare, **more: prepare(told.append))
    RunRequest(policy="elastic").start(Given(file).open())
    assert (tmp_path / "data" / "lineitem.parquet").exists()
    assert told == [f"generating TPC-H at scale 0.001 in {tmp_path / 'data'}"]
    RunRequest(policy="elastic").start(Given(file).open())
    assert len(told) == 1

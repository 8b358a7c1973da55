"""The side-by-side benchmarks, at a scale so small that only their shape and their answers count."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import click
import pytest

from engine.cli import papilio
from engine.errors import EnvironmentProblem
from engine.experiments import bench_commands, bench_overhead
from engine.experiments.apart import Apart
from engine.experiments.bench import Contender, Options, Report, find, names
from engine.experiments.contest import Contest, Entry, digests
from engine.experiments.measure import watched
from engine.spark.jobs import JobsTold
from engine.spark.pack_run import PackRun
from tests.end_to_end.helpers import papilio_here

SMALL = 0.01


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("bench")


def report_of(name, folder, spark, **more) -> Report:
    return find(name)(Options(rounds=1, scale=SMALL, folder=folder, spark=spark, **more))


def check_shape(report: Report) -> dict:
    """What design.md promises of every benchmark's JSON answer."""
    data = json.loads(json.dumps(report.as_dict()))
    assert {"contenders", "ratios", "identical", "claims", "evidence"} <= data.keys()
    for name, figures in data["contenders"].items():
        assert "failed" not in figures, f"{name}: {figures['failed']}"
        assert figures["seconds"]
        assert figures["median"] > 0
        assert figures["peak_mb"] > 0
        assert 0 <= figures["utilisation"] < 1.5
    assert data["identical"] is True, data["facts"].get("differences")
    assert data["claims"].keys() == data["evidence"].keys()
    assert all(isinstance(holds, bool) for holds in data["claims"].values())
    return data


def test_the_command_lists_every_benchmark():
    assert {"butterfly", "trees", "policies", "mixed", "overhead", "spill"} <= set(names())
    assert all(find(name).__doc__ for name in names())


@pytest.mark.parametrize(
    ("holds", "identical", "code"), [(True, True, 0), (True, None, 0), (False, True, 1), (True, False, 1)]
)
def test_strict_ends_with_1_where_a_claim_does_not_hold_or_targets_differ(
    holds, identical, code, tmp_path, monkeypatch
):
    from engine.experiments import bench

    report = Report({"a": Contender([1.0])}, identical=identical)
    report.claim("it is quick", holds, "1.0 s")
    monkeypatch.setattr(bench, "find", lambda name: lambda options: report)
    monkeypatch.setattr(bench, "usual_rounds", lambda name: 1)
    assert papilio_here("bench", "made-up", "--strict", home=tmp_path).returncode == code
    done = papilio_here("bench", "made-up", home=tmp_path)
    assert done.returncode == 0
    assert ("DOES NOT HOLD" in done.stdout) is not holds


# ---------------------------------------------------------------- contests


def entry(name, write, answer="", once=False):
    def run(out: Path):
        write(out)
        return {"packs": 2.0}

    return Entry(name, run, answer, once)


def rows(*values):
    def write(out: Path) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        (out / "target").mkdir()
        parquet.write_table(pa.table({"a": list(values)}), out / "target" / "part.parquet")

    return write


def test_a_contender_that_fails_is_said_and_the_rest_goes_on(folder, spark):
    def fail(out):
        raise OSError("no room left on the disk")

    contest = Contest(Options(rounds=2, folder=folder, spark=spark), spark)
    contest.hold([entry("good", rows(1, 2)), entry("bad", fail), entry("also good", rows(2, 1))])
    found = contest.report.contenders
    assert found["bad"].failed == "OSError: no room left on the disk"
    assert found["bad"].seconds == []
    assert [len(found[name].seconds) for name in ("good", "also good")] == [2, 2], "the warm-up does not count"
    assert contest.report.identical is True, "the order of rows does not matter"
    assert contest.compare("bad", "good") is None
    contest.at_least("bad is slower", "bad", "good", 1.0)
    assert contest.report.claims == {"bad is slower": False}
    assert contest.report.evidence == {"bad is slower": "not measured"}


def test_rounds_that_only_warm_java_up_do_not_count(folder, spark):
    ran = []
    contest = Contest(Options(rounds=2, folder=folder, spark=spark), spark)
    contest.hold([entry(name, lambda out, name=name: ran.append(name)) for name in "ab"], warm_rounds=3)
    assert ran == ["a", "b"] * 3 + ["b", "a"] + ["a", "b"]
    assert [len(contest.report.contenders[name].seconds) for name in "ab"] == [2, 2]


def test_one_that_takes_long_runs_in_the_last_round_alone_and_its_targets_are_compared(folder, spark):
    contest = Contest(Options(rounds=3, folder=folder, spark=spark), spark)
    contest.hold([entry("often", rows(1, 2)), entry("slow", rows(1, 3), once=True)])
    assert [len(contest.report.contenders[name].seconds) for name in ("often", "slow")] == [3, 1]
    assert contest.report.facts["differences"] == ["slow and often differ in target"]


def test_contenders_with_other_rows_are_named(folder, spark):
    contest = Contest(Options(rounds=1, folder=folder, spark=spark), spark)
    contest.hold([entry("one", rows(1, 2)), entry("other", rows(1, 3)), entry("apart", rows(5), answer="other")])
    assert contest.report.identical is False
    assert contest.report.facts["differences"] == ["other and one differ in target"]


def test_the_digest_tells_a_doubled_row_from_a_lost_one(tmp_path, spark):
    found = []
    for number, values in enumerate([(1, 2, 3), (3, 2, 1), (1, 2, 2), (1, 2), (1, 2, None)]):
        out = tmp_path / str(number)
        out.mkdir()
        rows(*values)(out)
        found.append(digests(out, spark)["target"])
    assert found[0] == found[1]
    assert len(set(found)) == 4


def test_without_duckdb_spark_computes_the_digests(tmp_path, spark, monkeypatch):
    from engine.experiments import contest

    monkeypatch.setattr(contest, "importable", lambda *modules: "skipped: no module")
    found = []
    for number, values in enumerate([(1, 2, 3), (3, 2, 1), (1, 2, 2)]):
        out = tmp_path / str(number)
        out.mkdir()
        rows(*values)(out)
        found.append(digests(out, spark)["target"])
    assert found[0] == found[1] != found[2]
    assert found[0][0] == 3


def test_the_spread_and_the_other_figures_stand_beside_the_median():
    contender = Contender(seconds=[1.0, 2.0, 4.0], figures={"packs": [1.0, 3.0, 2.0]})
    assert contender.as_dict() == {"seconds": [1.0, 2.0, 4.0], "median": 2.0, "spread": 1.5, "packs": 2.0}


def test_processor_time_and_memory_of_child_processes_count():
    burn = "import time; kept = bytearray(200 << 20); begun = time.process_time()\nwhile time.process_time() < begun + 0.5: pass"
    with watched() as alone:
        time.sleep(0.2)
    with watched() as watch:
        subprocess.run([sys.executable, "-c", burn], check=True)
    assert 0.2 < watch.processor_seconds < 5
    assert watch.mb - alone.mb > 150


# ---------------------------------------------------------------- the benchmarks


@pytest.mark.slow
def test_butterfly_has_all_contenders_and_equal_targets(folder, spark):
    data = check_shape(report_of("butterfly", folder, spark))
    scripts = {f"{name}, {where}" for name in ("straight PySpark", "hand-tuned PySpark")
               for where in ("in its own session", "in Papilio's session")}  # fmt: skip
    assert {*scripts, "papilio fused mixed", "papilio on Sail", "DuckDB"} <= data["contenders"].keys()
    assert len(data["claims"]) == 6
    assert "straight PySpark, in its own session / papilio fused mixed" in data["ratios"]


@pytest.mark.slow
def test_ssb_compares_dataflows_with_sql(folder, spark, monkeypatch):
    from engine.experiments import bench_ssb

    monkeypatch.setattr(bench_ssb, "QUERIES", {"q11": bench_ssb.QUERIES["q11"]})
    monkeypatch.setattr(bench_ssb, "OTHER_WARM_ROUNDS", 1)
    data = check_shape(report_of("ssb", folder, spark))
    assert data["contenders"].keys() == {
        "Q1.1 at 0.01 papilio",
        "Q1.1 at 0.01 Spark SQL",
        "Q1.1 at 0.01 Spark SQL, tables known",
        "Q1.1 at 0.01 DuckDB",
    }
    assert len(data["claims"]) == 1
    assert "Q1.1 at 0.01 papilio / Q1.1 at 0.01 Spark SQL" in data["ratios"]
    assert isinstance(data["facts"]["Q1.1 at 0.01: seconds beyond Spark SQL"], float)


@pytest.mark.slow
def test_ssb_answers_all_four_queries_alike(folder, spark):
    data = check_shape(report_of("ssb", folder, spark))
    assert len(data["contenders"]) == 16
    assert len(data["claims"]) == 4


@pytest.mark.slow
def test_etl_loads_the_same_star_by_hand_and_says_who_cannot_take_part(folder, spark, monkeypatch):
    from engine.experiments import bench_etl
    from engine.experiments.environments import NotThere

    def nowhere(folder, package, more, say):
        raise NotThere(f"{package} cannot be installed: no network")

    monkeypatch.setattr(bench_etl, "environment", nowhere)
    data = check_shape(report_of("etl", folder, spark))
    assert data["contenders"].keys() == {"papilio", "hand-written PySpark", "papilio, scale 0.001"}
    assert data["facts"]["Flowfile"] == "skipped: flowfile cannot be installed: no network"
    assert data["facts"]["petl, scale 0.001"] == "skipped: petl cannot be installed: no network"
    assert "papilio / hand-written PySpark" in data["ratios"]


@pytest.mark.slow
def test_growth_reports_powers_and_the_cost_of_a_node(folder, spark, monkeypatch):
    from engine.experiments import bench_growth

    monkeypatch.setattr(bench_growth, "NODES", (10, 20, 30))
    monkeypatch.setattr(bench_growth, "WORKFLOWS", {"fig1": ("partsupp", "supplier")})
    report = report_of("growth", folder, spark)
    assert report.identical is True
    assert not [one.failed for one in report.contenders.values() if one.failed]
    assert len(report.claims) == 4
    assert "power" in report.evidence[next(text for text in report.claims if text.startswith("fig1"))]
    peaks = [report.contenders[f"fig1, scale {scale:g}"].peak_mb for scale in report.facts["scales"]]
    assert all(len(some) == 1 and some[0] > 200 for some in peaks)


@pytest.mark.parametrize("power", [0.5, 1.0, 1.3])
def test_the_power_of_growth_is_found_in_its_figures(power):
    from engine.experiments.bench_growth import exponent

    sizes = [0.1, 0.3, 1.0, 3.0]
    assert exponent(sizes, [5 * size**power for size in sizes]) == pytest.approx(power)


def test_a_contender_in_another_process_tells_its_own_seconds(folder, spark):
    contest = Contest(Options(rounds=1, folder=folder, spark=spark), spark)
    contest.hold([Entry("elsewhere", lambda out: {"seconds": 0.25, "peak_mb": 12.0})])
    found = contest.report.contenders["elsewhere"]
    assert (found.seconds, found.peak_mb) == ([0.25], [12.0])
    contest.skip("Bonobo", "it cannot be imported")
    assert contest.report.facts["Bonobo"] == "skipped: it cannot be imported"
    contest.at_most("quick enough", "elsewhere", "elsewhere", 1.0)
    assert contest.report.claims == {"quick enough": True}


ANSWERS = """
import os, sys
from engine.experiments.apart import answer
def run(asked):
    print("a stray word")
    if asked["do"] == "end":
        sys.stderr.write("no more")
        sys.stderr.flush()
        os._exit(3)
    return {"seconds": asked["seconds"], "process": os.getpid()} if asked["do"] == "well" else {}[asked["do"]]
answer(run, settle=lambda: print("another"))
"""


def test_a_process_apart_stays_between_rounds_and_tells_what_failed(tmp_path, monkeypatch):
    (tmp_path / "answers.py").write_text(ANSWERS)
    monkeypatch.syspath_prepend(tmp_path)
    apart = Apart("answers", [], tmp_path / "log")
    try:
        first, second = (apart.ask(do="well", seconds=number) for number in (1.5, 2.5))
        assert (first["seconds"], second["seconds"]) == (1.5, 2.5)
        assert first["process"] == second["process"] != os.getpid()
        assert first["peak_mb"] > 1
        with pytest.raises(EnvironmentProblem, match="KeyError: 'badly'"):
            apart.ask(do="badly")
        assert apart.ask(do="well", seconds=3)["process"] == first["process"], "it goes on"
        with pytest.raises(EnvironmentProblem, match=r"ended with 3: .*no more"):
            apart.ask(do="end")
    finally:
        apart.close()


@pytest.mark.slow
def test_trees_compares_granularities_with_sql(folder, spark):
    data = check_shape(report_of("trees", folder, spark))
    assert {"operator rr", "subflow rr", "tree rr", "tree rr, degree auto", "fused rr", "Spark SQL"} <= (
        data["contenders"].keys()
    )
    assert "operator rr / tree rr" in data["ratios"]


@pytest.mark.slow
def test_policies_reports_queue_memory_for_each_workflow(folder, spark):
    data = check_shape(report_of("policies", folder, spark))
    assert len(data["contenders"]) == 9
    assert all("queue_avg_mb" in figures and "activations" in figures for figures in data["contenders"].values())
    assert "queue memory fig1 mm / fig1 rr" in data["ratios"]
    assert len(data["claims"]) == 7


@pytest.mark.slow
def test_mixed_reports_the_gain_and_the_cores(folder, spark):
    partitions = spark.conf.get("spark.sql.shuffle.partitions")
    data = check_shape(report_of("mixed", folder, spark))
    assert len(data["contenders"]) == 12 + 9
    assert sum(name.endswith("one task a job") for name in data["contenders"]) == 9
    assert all("cores busy" in text for text in data["evidence"].values())
    assert spark.conf.get("spark.sql.shuffle.partitions") == partitions


@pytest.mark.slow
def test_overhead_reports_units_activations_and_telemetry(folder, spark):
    data = check_shape(report_of("overhead", folder, spark))
    assert data["contenders"]["telemetry on"]["activations"] > 50
    assert data["facts"]["milliseconds per activation"] > 0
    assert "milliseconds per node, operator" in data["facts"]


# ---------------------------------------------------------------- commands


def test_what_telemetry_takes_is_weighed_call_by_call():
    class Log:
        def add(self, event):
            until = time.thread_time() + 0.02
            while time.thread_time() < until:
                pass

    class Watched:
        def poll(self):
            time.sleep(0.03)
            return []

    def told():
        PackRun._tell_queues(SimpleNamespace(log=Log(), _snapshot=lambda: None))
        JobsTold._look(SimpleNamespace(_watch=Watched(), _tell=lambda event: None))

    with bench_overhead.weighing() as weight:
        told()
    assert weight.seconds >= 0.05, "the processor's time of the one, the clock's of the other"
    before = weight.seconds
    told()
    assert weight.seconds == before, "only while it is weighed"


def test_commands_has_every_command_that_answers_without_spark(tmp_path):
    asked = [" ".join(words) for words in bench_commands.commands(bench_commands.Places(tmp_path, SMALL)).values()]
    context = click.Context(papilio)
    there = []
    for name in papilio.list_commands(context):
        command = papilio.get_command(context, name)
        parts = command.list_commands(context) if isinstance(command, click.Group) else [""]
        there += [f"{name} {part}".strip() for part in parts]
    missing = [name for name in there if not any(f"{words} ".startswith(f"{name} ") for words in asked)]
    assert sorted(missing) == sorted(bench_commands.LEFT_OUT)


@pytest.mark.slow
def test_commands_answers_for_each_command_beside_python_itself(folder):
    report = find("commands")(Options(rounds=1, scale=SMALL, folder=folder))
    data = json.loads(json.dumps(report.as_dict()))
    assert {"python -c pass", *bench_commands.commands(bench_commands.Places(folder, SMALL))} == set(data["contenders"])
    assert all(value > 1 for value in data["ratios"].values())
    assert len(data["claims"]) == len(data["contenders"]) - 1

"""The side-by-side benchmarks, at a scale so small that only their shape and their answers count."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import click
import psutil
import pytest

from engine.cli import papilio
from engine.errors import EnvironmentProblem
from engine.experiments import bench_commands, bench_mixed, bench_overhead, bench_policies, bench_sail, bench_spill
from engine.experiments.apart import Apart
from engine.experiments.bench import Contender, Options, Report, find, names
from engine.experiments.contest import Contest, Entry, digests, missing_data
from engine.experiments.data import TPCH_UNIQUE_SCALE, generate_tpch
from engine.experiments.environments import NotThere
from engine.experiments.measure import GROWTH_MB, Watch
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


def test_no_benchmark_states_a_claim_without_its_figures():
    for name in names():
        source = Path(sys.modules[find(name).__module__].__file__).read_text()
        assert not re.search(r"\.claims(\[[^\]]*\])? = ", source), f"bench {name}: `report.claim` takes the figures too"
    report = find("planner")(Options(rounds=1))
    assert report.claims.keys() == report.evidence.keys()
    assert all(re.search(r"\d", text) for text in report.evidence.values())


@pytest.mark.parametrize(
    ("holds", "identical", "failed", "code"),
    [
        (True, True, None, 0),
        (True, None, None, 0),
        (False, True, None, 1),
        (True, False, None, 1),
        (True, True, "x", 1),
    ],
)
def test_strict_ends_with_1_where_a_claim_does_not_hold_targets_differ_or_a_contender_fails(
    holds, identical, failed, code, tmp_path, monkeypatch
):
    from engine.experiments import bench

    report = Report({"a": Contender([1.0]), "b": Contender(failed=failed)}, identical=identical)
    report.claim("it is quick", holds, "1.0 s")
    report.facts["Bonobo"] = "skipped: it cannot be imported"
    monkeypatch.setattr(bench, "find", lambda name: lambda options: report)
    monkeypatch.setattr(bench, "usual_rounds", lambda name: 1)
    monkeypatch.chdir(tmp_path)
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
    return columns(a=list(values))


def columns(**values):
    def write(out: Path) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        (out / "target").mkdir()
        parquet.write_table(pa.table(values), out / "target" / "part.parquet")

    return write


class Stub:
    """As much of Spark as a contest itself uses, and that can die."""

    def __init__(self):
        self.dead = False
        gone = SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=self.answer))
        self.sparkContext = SimpleNamespace(master="local[1]", _jsc=gone)
        self.catalog = SimpleNamespace(clearCache=self.answer)
        self._jvm = SimpleNamespace(java=SimpleNamespace(lang=SimpleNamespace(System=SimpleNamespace(gc=self.answer))))

    def answer(self):
        if self.dead:
            raise ConnectionRefusedError("nobody listens")
        return False


def contest_of(folder, rounds=1) -> Contest:
    spark = Stub()
    return Contest(Options(rounds=rounds, folder=folder, spark=spark), spark)


def test_a_contender_that_fails_is_said_and_the_rest_goes_on(tmp_path):
    def fail(out):
        raise OSError("no room left on the disk")

    contest = contest_of(tmp_path, rounds=2)
    contest.hold([entry("good", rows(1, 2)), entry("bad", fail), entry("also good", rows(2, 1))])
    found = contest.report.contenders
    assert found["bad"].failed == "OSError: no room left on the disk"
    assert found["bad"].seconds == []
    assert [len(found[name].seconds) for name in ("good", "also good")] == [2, 2], "the warm-up does not count"
    assert contest.report.identical is True, "the order of rows does not matter"
    assert contest.report.facts["not compared"] == ["bad, which failed"]
    assert contest.compare("bad", "good") is None
    contest.at_least("bad is slower", "bad", "good", 1.0)
    assert contest.report.claims == {"bad is slower": False}
    assert contest.report.evidence == {"bad is slower": "not measured"}


def test_rounds_that_only_warm_java_up_do_not_count(tmp_path):
    ran = []
    contest = contest_of(tmp_path, rounds=2)
    contest.hold([entry(name, lambda out, name=name: ran.append(name)) for name in "ab"], warm_rounds=3)
    assert ran == ["a", "b"] * 3 + ["b", "a"] + ["a", "b"]
    assert [len(contest.report.contenders[name].seconds) for name in "ab"] == [2, 2]


def test_one_that_takes_long_runs_in_the_last_round_alone_and_its_targets_are_compared(tmp_path):
    contest = contest_of(tmp_path, rounds=3)
    contest.hold([entry("often", rows(1, 2)), entry("slow", rows(1, 3), once=True)])
    assert [len(contest.report.contenders[name].seconds) for name in ("often", "slow")] == [3, 1]
    assert contest.report.facts["differences"] == ["slow and often differ in target"]


def test_contenders_with_other_rows_are_named(tmp_path):
    contest = contest_of(tmp_path, rounds=1)
    contest.hold([entry("one", rows(1, 2)), entry("other", rows(1, 3)), entry("apart", rows(5), answer="other")])
    assert contest.report.identical is False
    assert contest.report.facts["differences"] == ["other and one differ in target"]


def test_one_that_fails_in_the_last_round_is_named_as_not_compared(tmp_path):
    again = []

    def fails_at_last(out):
        again.append(out)
        if len(again) == 3:
            raise OSError("no room left on the disk")
        rows(7)(out)

    contest = contest_of(tmp_path, rounds=2)
    contest.hold([entry("one", rows(1)), entry("late", fails_at_last), entry("other", rows(1))])
    assert contest.report.contenders["late"].seconds
    assert contest.report.identical is True
    assert contest.report.facts["not compared"] == ["late, which failed"]


def test_one_answer_alone_is_no_sameness(tmp_path):
    contest = contest_of(tmp_path)
    contest.hold([entry("one", rows(1), answer="1"), entry("two", rows(2), answer="2")])
    assert contest.report.identical is None
    assert contest.report.facts["not compared"] == ["all others: no two wrote the same targets"]
    contest.hold([entry("also one", rows(1), answer="1")])
    assert contest.report.identical is True
    assert contest.report.facts["not compared"] == ["two, whose targets nobody else wrote"]


def test_contenders_of_two_turns_are_compared_with_each_other(tmp_path):
    contest = contest_of(tmp_path)
    contest.hold([entry("one", rows(1, 2)), entry("same", rows(2, 1))])
    assert contest.report.identical is True
    contest.hold([entry("later", rows(1, 3)), entry("last", rows(1, 3))])
    assert contest.report.identical is False
    assert contest.report.facts["differences"] == [
        "later and one differ in target", "last and one differ in target",
    ]  # fmt: skip


def test_one_that_writes_nothing_differs_and_where_nobody_does_nothing_is_the_same(tmp_path):
    contest = contest_of(tmp_path)
    contest.hold([entry(name, lambda out: None, answer="none") for name in ("idle", "also idle")])
    assert contest.report.identical is None
    contest.hold([entry("writes", rows(1)), entry("forgets", lambda out: None)])
    assert contest.report.facts["differences"] == ["forgets and writes differ in target"]


def test_names_of_columns_count_and_their_order_does_not(tmp_path):
    contest = contest_of(tmp_path)
    contest.hold([entry("one", columns(a=[1], b=[2])), entry("turned", columns(b=[2], a=[1]))])
    assert contest.report.identical is True
    contest.hold([entry("renamed", columns(a=[1], c=[2])), entry("swapped", columns(a=[2], b=[1]))])
    assert contest.report.facts["differences"] == [
        "renamed and one differ in the columns of target", "swapped and one differ in target",
    ]  # fmt: skip


def test_where_spark_dies_those_go_on_that_do_without(tmp_path):
    contest = contest_of(tmp_path, rounds=2)

    def kills(out):
        contest.spark.dead = True
        raise ConnectionError("the answer is empty")

    file = tmp_path / "any.butterfly.yaml"
    needs = Entry("papilio", contest.workflow(file, {}))
    contest.hold([entry("killer", kills), needs, entry("script", lambda out: contest.spark.catalog.clearCache()),
                  entry("DuckDB", rows(1)), entry("Polars", rows(1))])  # fmt: skip
    failed = {name: one.failed for name, one in contest.report.contenders.items()}
    assert failed == {
        "killer": "Spark died in it: ConnectionError: the answer is empty",
        "papilio": "Spark died in killer: EnvironmentProblem: a run by Papilio needs it",
        "script": "Spark died in killer: ConnectionRefusedError: nobody listens",
        "DuckDB": None, "Polars": None,
    }  # fmt: skip
    assert len(contest.report.contenders["DuckDB"].seconds) == 2
    assert contest.report.identical is True


def test_one_that_leaves_spark_dead_without_a_word_is_named_by_those_who_miss_it(tmp_path):
    contest = contest_of(tmp_path)

    def quiet_killer(out):
        contest.spark.dead = True
        rows(1)(out)

    contest.hold([entry("killer", quiet_killer), entry("script", lambda out: contest.spark.catalog.clearCache()),
                  entry("DuckDB", rows(1))])  # fmt: skip
    found = contest.report.contenders
    assert found["script"].failed == "Spark died in killer: ConnectionRefusedError: nobody listens"
    assert found["DuckDB"].seconds
    assert contest.report.facts["Spark died in"] == "killer"


KILLS_SPARK = """
import json, os, signal, sys
from pathlib import Path
from engine.experiments.bench import Options
from engine.experiments.contest import Entry, contest
from engine.experiments.data import generate_tpch

folder = Path(sys.argv[1])
generate_tpch(folder / "tpch", 0.001, tables=("partsupp", "supplier"))
def kill(out):
    os.kill(here.spark._jvm.java.lang.ProcessHandle.current().pid(), signal.SIGKILL)
    here.spark.range(3).count()
def write(out):
    (out / "target.csv").write_text("a\\n1\\n")
with contest(Options(1, folder=folder)) as here:
    papilio = here.papilio("fig1", folder / "tpch")
    two, killer, one = Entry("two", write), Entry("killer", kill), Entry("one", write)
    here.hold([two, killer, Entry("papilio", papilio), one], warm_rounds=0)  # the second begins
print(json.dumps(here.report.as_dict()))
"""


@pytest.mark.slow
def test_a_killed_jvm_ends_neither_the_contest_nor_its_report(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", KILLS_SPARK, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["contenders"]["killer"]["failed"].startswith("Spark died in it: ")
    assert report["contenders"]["papilio"]["failed"].startswith("Spark died in killer: ")
    assert report["contenders"]["one"]["seconds"]
    assert report["identical"] is True


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
    assert found[0].rows == 3


def test_the_spread_and_the_other_figures_stand_beside_the_median():
    contender = Contender(seconds=[1.0, 2.0, 4.0], figures={"packs": [1.0, 3.0, 2.0]})
    assert contender.as_dict() == {"seconds": [1.0, 2.0, 4.0], "median": 2.0, "spread": 1.5, "packs": 2.0}


def test_processor_time_and_memory_of_child_processes_count():
    burn = "import time; kept = bytearray(200 << 20); begun = time.process_time()\nwhile time.process_time() < begun + 0.5: pass"
    parent = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]], check=True)"
    with subprocess.Popen([sys.executable, "-c", parent, burn]) as process:
        watch = Watch(process.pid)
        watch.start()
        assert process.wait() == 0
        watch.stop()
    assert 0.2 < watch.processor_seconds < 5
    assert 200 - GROWTH_MB < watch.mb < 400, "what comes after the last count is less than that"


# ---------------------------------------------------------------- what cannot be made or run


def test_of_several_sets_of_data_one_that_cannot_be_made_is_told_and_without_any_nothing_begins(tmp_path):
    said: list[str] = []
    options = Options(folder=tmp_path, say=said.append)

    def full():
        raise OSError(errno.ENOSPC, "No space left on device")

    reason = f"{tmp_path}: No space left on device"
    assert missing_data(options, {"small": lambda: None, "large": full}) == {"large": reason}
    assert said == ["small", "large", f"not there: large: {reason}"]
    with pytest.raises(EnvironmentProblem, match="No space left on device"):
        missing_data(options, {"small": full, "large": full})


@pytest.fixture
def full_machine(tmp_path, monkeypatch):
    """A benchmark on a machine that has no room for its large data; Spark is not started, all who may run do well."""

    def report_of_bench(name: str, generator: str, scale: float | None = 0.2, **patched) -> Report:
        module = sys.modules[find(name).__module__]

        def generate(folder, scale, **more):
            if scale >= 0.1:
                raise OSError(errno.ENOSPC, "No space left on device")

        @contextlib.contextmanager
        def contest(options):
            here = contest_of(tmp_path)
            here.own_session = lambda *of: None

            def hold(entries, rounds=None, warm_rounds=1):
                for entry in entries:
                    found = here.report.contenders.setdefault(entry.name, Contender())
                    if not found.failed:
                        found.seconds.append(1.0)
                        found.add(utilisation=0.5)

            here.hold = hold
            yield here

        for attribute, value in {generator: generate, "contest": contest, **patched}.items():
            monkeypatch.setattr(module, attribute, value)
        return find(name)(Options(1, scale, tmp_path))

    return report_of_bench


def left_out(report: Report) -> set[str]:
    return {name for name, one in report.contenders.items() if "No space left on device" in (one.failed or "")}


def test_growth_goes_on_without_the_scale_that_there_is_no_room_for(full_machine):
    def measure(command, environment):
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    report = full_machine("growth", "generate_tpch", measure=measure)
    assert left_out(report) == {"fig1, scale 0.2", "fork, scale 0.2"}
    assert report.contenders["fig1, scale 0.02"].seconds
    assert report.contenders["bind 30 nodes"].seconds
    told = report.evidence[next(text for text in report.claims if text.startswith("fork: time grows"))]
    assert "from scale 0.02 to 0.067" in told
    assert "Cannot allocate memory" in report.facts["memory of run 10 nodes"]
    assert "memory of fork, scale 0.2" not in report.facts, "it was not run"


def test_etl_goes_on_with_those_that_work_row_by_row(full_machine):
    def nowhere(folder, package, more, say):
        raise NotThere("no network")

    report = full_machine("etl", "generate_tpch", environment=nowhere)
    assert left_out(report) == {"papilio", "hand-written PySpark"}
    assert report.contenders["papilio, scale 0.004"].seconds
    assert set(report.evidence.values()) == {"not measured"}


def test_ssb_goes_on_at_the_scales_that_there_is_room_for(full_machine):
    report = full_machine("ssb", "generate_ssb", None, WARM_ROUNDS={0.05: 1, 4.0: 1})
    assert all(" at 4 " in name for name in left_out(report))
    assert len(left_out(report)) == 4 * 5
    told = [report.evidence[text] for text in report.claims if " at 4: " in text]
    assert told == ["not measured"] * 4 * 2
    assert report.contenders["Q1.1 at 0.05 papilio"].seconds


def test_mixed_goes_on_with_one_task_a_job(full_machine):
    report = full_machine("mixed", "generate_tpch")
    assert left_out(report) == {
        f"{flow} {policy}" for flow in bench_mixed.WORKFLOWS for policy in ("rr", "mc", "mm", "mixed")
    }
    assert all(report.contenders[f"{flow} mixed, one task a job"].seconds for flow in bench_mixed.WORKFLOWS)
    told = [text for text in report.evidence.values() if text == "not measured"]
    assert len(told) == len(bench_mixed.WORKFLOWS)


def test_policies_that_failed_leave_no_claim_out(tmp_path):
    here = contest_of(tmp_path)
    bench_policies._conclude(here)
    assert len(here.report.claims) == 7
    assert set(here.report.evidence.values()) == {"not measured"}


def test_sail_is_measured_where_spark_fails(tmp_path, monkeypatch):
    def run(folder, data, master, contender):
        if master != "sail":
            raise EnvironmentProblem("it ended with 4: no Java")
        contender.seconds.append(1.0)
        return {}

    monkeypatch.setattr(bench_sail, "_run", run)
    monkeypatch.setattr(bench_sail, "importable", lambda *names: None)
    monkeypatch.setattr(bench_sail, "generate_tpch", lambda *of, **more: None)
    report = find("sail")(Options(2, SMALL, tmp_path))
    assert report.contenders["Spark, scale 0.01"].failed == "EnvironmentProblem: it ended with 4: no Java"
    assert report.contenders["Sail, scale 0.01"].seconds == [1.0, 1.0]
    assert report.identical is None


def test_a_heap_whose_run_finds_no_room_is_told_and_the_other_goes_on(tmp_path, monkeypatch):
    def save(workflow, file):
        if "512" in file.name:
            raise OSError(errno.ENOSPC, "No space left on device")

    measured = SimpleNamespace(code=0, seconds=2.0, peak_mb=300.0)
    monkeypatch.setattr(bench_spill, "save", save)
    monkeypatch.setattr(bench_spill, "measure", lambda *of, **more: measured)
    monkeypatch.setattr(bench_spill, "generate_tpch", lambda *of, **more: None)
    for answered in ("_sums", "_digest"):
        monkeypatch.setattr(bench_spill, answered, lambda *of: {"rows": 1, "ordered": True})
    report = find("spill")(Options(1, SMALL, tmp_path))
    assert report.contenders["heap 512 MB"].failed == "OSError: [Errno 28] No space left on device"
    assert report.contenders["heap 6144 MB"].seconds == [2.0]
    assert not report.claims["it finishes with a heap of a third of the data"]


def test_a_command_that_fails_leaves_the_others_their_figures(tmp_path, monkeypatch):
    def timed(program, home, ends=0):
        if "check" in program:
            raise EnvironmentProblem("`check` failed: no room")
        return 0.1, 0.1

    monkeypatch.setattr(bench_commands, "_timed", timed)
    monkeypatch.setattr(bench_commands, "_prepare", lambda at: None)
    monkeypatch.setattr(bench_commands, "_paused", lambda at: contextlib.nullcontext())
    report = find("commands")(Options(1, SMALL, tmp_path))
    failed = [name for name, one in report.contenders.items() if one.failed]
    assert failed
    assert all(report.evidence[f"{name} answers in under 0.7 s"] == "not measured" for name in failed)
    assert len(report.claims) == len(report.contenders) - 1


# ---------------------------------------------------------------- the benchmarks


@pytest.mark.slow
def test_butterfly_has_all_contenders_and_equal_targets(folder, spark):
    data = check_shape(report_of("butterfly", folder, spark))
    scripts = {f"{name}, {where}" for name in ("straight PySpark", "hand-tuned PySpark")
               for where in ("in its own session", "in Papilio's session")}  # fmt: skip
    scripts.add("hand-tuned PySpark, in its own session, sort-merge join")
    assert {*scripts, "papilio fused mixed", "papilio on Sail", "DuckDB", "Polars"} <= data["contenders"].keys()
    assert all(data["contenders"][name]["peak_mb"] < 500 for name in ("DuckDB", "Polars")), "Spark's heap is not theirs"
    assert len(data["claims"]) == 7
    assert "straight PySpark, in its own session / papilio fused mixed" in data["ratios"]


@pytest.mark.parametrize(("merged", "best"), [(3.0, "sort-merge join"), (4.5, "in its own session")])
def test_fused_is_judged_by_the_best_hand_tuned_script_and_says_how_far_ahead_duckdb_is(merged, best, tmp_path):
    from engine.experiments import bench_butterfly as fig1

    contest = contest_of(tmp_path)
    seconds = {fig1.TUNED: 4.0, fig1.TUNED_MERGE: merged, fig1.MIXED: 4.1, fig1.DUCKDB: 1.0}
    contest.report.contenders |= {name: Contender([value]) for name, value in seconds.items()}
    fig1._conclude(contest)
    (text,) = (text for text in contest.report.claims if text.startswith("fused is within 5 % of the best"))
    assert contest.report.claims[text] is (merged > 4.0)
    assert f"{best} / papilio fused mixed = {min(merged, 4.0) / 4.1:.2f}" in contest.report.evidence[text]
    assert "DuckDB is 4.10 times as fast" in contest.report.evidence[text]
    contest.report.contenders[fig1.TUNED_MERGE].failed = "OSError: no room"
    fig1._conclude(contest)
    assert contest.report.evidence[text] == "not measured", "the best of one is no best"


def test_a_session_apart_runs_a_query_several_times_in_its_first_round_alone(tmp_path):
    from engine.experiments.contest import in_own_session

    asked = []
    run = in_own_session(SimpleNamespace(ask=lambda **question: asked.append(question)), tmp_path, 5, query="q11")
    for _ in range(3):
        run(tmp_path / "out")
    assert [question["runs"] for question in asked] == [5, 1, 1]
    assert {question["query"] for question in asked} == {"q11"}


@pytest.mark.slow
def test_spark_sql_answers_alike_in_its_own_session_and_in_papilios(spark, tmp_path):
    from engine.experiments.ssb import generate_ssb
    from engine.experiments.ssb_queries import in_spark_sql

    generate_ssb(tmp_path / "ssb", SMALL)
    contest = Contest(Options(folder=tmp_path / "contest", spark=spark), spark)
    process = contest.own_session("ssb_apart", "shipped")
    try:
        process.ask(query="q11", data=str(tmp_path / "ssb"), out=str(tmp_path / "own"), runs=2)
        assert process.pid != os.getpid()
    finally:
        contest.close()
    in_spark_sql(spark, "q11", tmp_path / "ssb", tmp_path / "ours")
    assert digests(tmp_path / "own") == digests(tmp_path / "ours")


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_an_engine_without_spark_answers_from_a_process_of_its_own(engine, tpch, tmp_path):
    from engine.experiments.bench_butterfly import in_duckdb

    contest, expected, found = contest_of(tmp_path / "contest"), tmp_path / "expected", tmp_path / "found"
    for out in (expected, found):
        out.mkdir()
    in_duckdb(tpch, expected)
    process = contest.apart("butterfly_apart", engine)
    try:
        figures = process.ask(data=str(tpch), out=str(found))
        assert process.pid != os.getpid()
    finally:
        contest.close()
    assert figures["seconds"] > 0
    assert figures["peak_mb"] > 10
    assert digests(found) == digests(expected)


def test_polars_loads_what_duckdb_loads(tpch, tmp_path):
    from engine.experiments.bench_butterfly import in_duckdb, in_polars

    found = []
    for run in (in_duckdb, in_polars):
        out = tmp_path / run.__name__
        out.mkdir()
        run(tpch, out)
        found.append(digests(out))
    assert len(found[0]) == 7
    assert all(target.rows > 0 for target in found[0].values())
    assert found[1] == found[0]


@pytest.mark.slow
def test_ssb_compares_dataflows_with_sql(folder, spark, monkeypatch):
    from engine.experiments import bench_ssb

    monkeypatch.setattr(bench_ssb, "QUERIES", {"q11": bench_ssb.QUERIES["q11"]})
    monkeypatch.setattr(bench_ssb, "OTHER_WARM_ROUNDS", 1)
    data = check_shape(report_of("ssb", folder, spark))
    assert data["contenders"].keys() == {
        "Q1.1 at 0.01 papilio",
        "Q1.1 at 0.01 Spark SQL, in its own session",
        "Q1.1 at 0.01 Spark SQL, in Papilio's session",
        "Q1.1 at 0.01 Spark SQL, tables known, in Papilio's session",
        "Q1.1 at 0.01 DuckDB",
    }
    for where in ("in its own session", "in Papilio's session"):
        text = f"Q1.1 at 0.01: the dataflow takes at most 1.1 times as long as Spark SQL {where}"
        assert f"Q1.1 at 0.01 papilio / Q1.1 at 0.01 Spark SQL, {where} = " in data["evidence"][text]
        assert isinstance(data["facts"][f"Q1.1 at 0.01: seconds beyond Spark SQL {where}"], float)
    assert len(data["claims"]) == 2


@pytest.mark.slow
def test_ssb_answers_all_four_queries_alike(folder, spark):
    data = check_shape(report_of("ssb", folder, spark))
    assert len(data["contenders"]) == 20
    assert len(data["claims"]) == 8


@pytest.mark.slow
def test_etl_loads_the_same_star_by_hand_and_says_who_cannot_take_part(folder, spark, monkeypatch):
    from engine.experiments import bench_etl

    def nowhere(folder, package, more, say):
        raise NotThere(f"{package} cannot be installed: no network")

    monkeypatch.setattr(bench_etl, "environment", nowhere)
    data = check_shape(report_of("etl", folder, spark))
    assert data["contenders"].keys() == {"papilio", "hand-written PySpark", "papilio, scale 0.001"}
    assert data["facts"]["Flowfile"] == "skipped: flowfile cannot be installed: no network"
    assert data["facts"]["petl, scale 0.001"] == "skipped: petl cannot be installed: no network"
    assert "papilio / hand-written PySpark" in data["ratios"]


def test_only_where_offers_repeat_the_job_by_hand_groups_them(spark, tpch):
    from engine.experiments import bench_etl

    def shuffles(repeated: bool) -> int:
        def read(table):
            return spark.read.schema(bench_etl.COLUMNS[table]).parquet(f"{tpch}/{table}.parquet")

        plan = bench_etl._lineorder(read, 2000, repeated)._jdf.queryExecution().optimizedPlan().toString()
        return plan.count("Aggregate")

    assert (shuffles(False), shuffles(True)) == (0, 1)


@pytest.mark.parametrize(("scale", "repeats"), [(0.001, True), (0.009, True), (0.01, False), (0.02, False)])
def test_an_offer_of_tpch_stands_twice_on_the_smallest_scales_only(scale, repeats, tmp_path):
    import duckdb

    generate_tpch(tmp_path / "tpch", scale, tables=("partsupp",))
    twice = f"SELECT 1 FROM '{tmp_path}/tpch/partsupp.parquet' GROUP BY ps_partkey, ps_suppkey HAVING count(*) > 1"
    with duckdb.connect() as connection:
        assert bool(connection.execute(twice).fetchall()) is repeats
    assert (scale < TPCH_UNIQUE_SCALE) is repeats


@pytest.mark.slow
def test_growth_reports_powers_and_the_cost_of_a_node(folder, spark, monkeypatch):
    from engine.experiments import bench_growth

    monkeypatch.setattr(bench_growth, "NODES", (10, 20, 30))
    monkeypatch.setattr(bench_growth, "WORKFLOWS", {"fig1": ("partsupp", "supplier")})
    report = report_of("growth", folder, spark)
    assert report.identical is None, "nobody loads the same"
    assert not [one.failed for one in report.contenders.values() if one.failed]
    assert len(report.claims) == 4
    assert "power" in report.evidence[next(text for text in report.claims if text.startswith("fig1"))]
    peaks = [report.contenders[f"fig1, scale {scale:g}"].peak_mb for scale in report.facts["scales"]]
    assert all(len(some) == 1 and some[0] > 200 for some in peaks)
    assert report.facts["peak MB of all processes"].keys() == {"10 nodes", "20 nodes", "30 nodes"}
    assert min(report.facts["peak MB of all processes"].values()) > 200


@pytest.mark.parametrize(
    ("cost", "flat"),
    [
        (lambda nodes: 2.0 + 0.01 * nodes, True),
        (lambda nodes: 20.0 + 0.01 * nodes + 0.0001 * nodes**2, False),  # which the 20 s hide in a node's share
        (lambda nodes: 3.0 - 0.001 * nodes, False),
    ],
)
def test_a_nodes_cost_is_what_each_further_one_adds_whatever_a_run_takes_once(cost, flat):
    from engine.experiments import bench_growth

    report = Report({f"run {count} nodes": Contender([cost(count)]) for count in bench_growth.NODES})
    bench_growth._judge_nodes(report, "run")
    ((text, holds),) = report.claims.items()
    assert holds is flat
    assert "from 100 to 300" in text
    assert "300 nodes: " in report.evidence[text]
    assert report.facts["run: ms for a further node"].keys() == {
        "10 to 30 nodes", "30 to 100 nodes", "100 to 300 nodes",
    }  # fmt: skip
    del report.contenders["run 300 nodes"]
    bench_growth._judge_nodes(report, "run")
    assert report.evidence[text] == "not measured"


@pytest.mark.parametrize("power", [0.5, 1.0, 1.3])
def test_the_power_of_growth_is_found_in_its_figures(power):
    from engine.experiments.bench_growth import exponent

    sizes = [0.1, 0.3, 1.0, 3.0]
    assert exponent(sizes, [5 * size**power for size in sizes]) == pytest.approx(power)


def test_a_contender_in_another_process_tells_its_own_seconds(tmp_path):
    contest = contest_of(tmp_path)
    contest.hold([Entry("elsewhere", lambda out: {"seconds": 0.25, "peak_mb": 12.0})])
    found = contest.report.contenders["elsewhere"]
    assert (found.seconds, found.peak_mb) == ([0.25], [12.0])
    contest.skip("Bonobo", "it cannot be imported")
    assert contest.report.facts["Bonobo"] == "skipped: it cannot be imported"
    contest.at_most("quick enough", "elsewhere", "elsewhere", 1.0)
    assert contest.report.claims == {"quick enough": True}


ANSWERS = """
import os, subprocess, sys, time
from engine.experiments.apart import answer
held, broken = [], []
def settle():
    print("another")
    assert not broken
def run(asked):
    print("a stray word")
    if asked["do"] == "hold":
        held.append(bytearray(b"1" * (200 << 20)))
        held.append(subprocess.Popen([sys.executable, "-c", "held = b'1' * (100 << 20); input()"], stdin=-1))
        time.sleep(0.5)
        return {}
    if asked["do"] == "break":
        broken.append(1)
        raise MemoryError("no heap left")
    if asked["do"] == "sleep":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        open(asked["note"], "w").write(str(child.pid))
        time.sleep(60)
    if asked["do"] == "end":
        sys.stderr.write("no more")
        sys.stderr.flush()
        os._exit(3)
    return {"seconds": asked["seconds"], "process": os.getpid()} if asked["do"] == "well" else {}[asked["do"]]
answer(run, settle)
for process in held[1:]:
    process.communicate()
"""


@pytest.fixture
def answers(tmp_path, monkeypatch):
    (tmp_path / "answers.py").write_text(ANSWERS)
    monkeypatch.syspath_prepend(tmp_path)


def test_a_process_apart_stays_between_rounds_and_tells_what_failed(tmp_path, answers):
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


def test_a_process_apart_that_died_starts_anew_and_says_so(tmp_path, answers):
    said: list[str] = []
    apart = Apart("answers", [], tmp_path / "log", anew=said.append)
    try:
        first = apart.ask(do="well", seconds=1)["process"]
        os.kill(first, signal.SIGKILL)
        time.sleep(0.2)
        second = apart.ask(do="well", seconds=1)["process"]
        assert second != first
        assert len(said) == 1
        assert "ended with -9" in said[0]
        with pytest.raises(EnvironmentProblem, match="ended with 3"):
            apart.ask(do="end")
        assert apart.ask(do="well", seconds=1)["process"] != second
        with pytest.raises(EnvironmentProblem, match="MemoryError: no heap left"):
            apart.ask(do="break")  # what the next would need is broken, and not the next is to blame
        assert apart.ask(do="well", seconds=1)["seconds"] == 1
        assert len(said) == 3
        assert "no more" in (tmp_path / "log").read_text(), "what the dead ones said is not lost"
    finally:
        apart.close()


def test_a_process_apart_that_does_not_answer_is_ended_with_its_children_and_the_rest_goes_on(tmp_path, answers):
    contest = contest_of(tmp_path)
    apart = Apart("answers", [], tmp_path / "log", limit_s=3.0)
    contest._apart.append(apart)
    note = tmp_path / "note"
    try:
        contest.hold([Entry("slow", lambda out: apart.ask(do="sleep", note=str(note))), entry("other", rows(1))])
        assert contest.report.contenders["slow"].failed == (
            "EnvironmentProblem: -m answers did not answer within 3 s and was ended"
        )
        assert contest.report.contenders["other"].seconds
        assert not psutil.pid_exists(int(note.read_text())) or (
            psutil.Process(int(note.read_text())).status() == psutil.STATUS_ZOMBIE
        )
        assert apart.ask(do="well", seconds=1)["seconds"] == 1, "the next contender of this process starts it anew"
    finally:
        contest.close()


def test_a_report_says_of_which_versions_its_contenders_are(tmp_path):
    contest = contest_of(tmp_path)
    contest.versions("duckdb", "no-such-package")
    found = contest.report.facts["versions"]
    assert found.keys() == {"pyspark", "duckdb"}
    assert all(re.match(r"\d+\.\d+", version) for version in found.values())


def test_what_a_process_apart_holds_is_nobody_elses_memory(tmp_path, answers, monkeypatch):
    contest = contest_of(tmp_path)
    apart = Apart("answers", [], tmp_path / "log")
    contest._apart.append(apart)

    def burn(out):
        begun = time.process_time()
        while time.process_time() < begun + 0.3:
            pass

    try:
        contest.hold([Entry("before", burn), Entry("holds", lambda out: apart.ask(do="hold")), Entry("after", burn)],
                     warm_rounds=0)  # fmt: skip
    finally:
        contest.close()
    found = contest.report.contenders
    assert not [one.failed for one in found.values() if one.failed]
    assert found["holds"].peak_mb[0] > 280, "it holds 200 MB and its child 100"
    assert abs(found["after"].peak_mb[0] - found["before"].peak_mb[0]) < 50
    assert found["after"].figure("processor_s") > 0.2


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
    assert "milliseconds for one more activation" in data["facts"]
    assert "milliseconds for one more node, operator" in data["facts"]


def test_an_activation_costs_what_more_of_them_take_longer(tmp_path):
    report = Report({"few": Contender([5.3, 5.4, 5.5]), "many": Contender([8.3, 8.3, 8.7])})
    for name, activations in (("few", 30), ("many", 120)):
        for _ in range(3):
            report.contenders[name].add(activations=activations)
    bench_overhead._judge_activations(report, "few", "many")
    assert report.facts["milliseconds for one more activation"] == 33.3, "not the 69 of a run divided by all of them"
    assert "30 activations in 5.40 s and 120 in 8.30 s; by round 32.2 to 35.6 ms" in report.facts["found between"]
    same = Report({"few": report.contenders["few"], "many": report.contenders["few"]})
    bench_overhead._judge_activations(same, "few", "many")
    assert not same.facts


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
        JobsTold._look(SimpleNamespace(_tell=lambda event: None), Watched())

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

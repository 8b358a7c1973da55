"""The shared-caching paper's figures 12 to 17 on Spark, at a scale at which only their shape and their answers count."""

from __future__ import annotations

import contextlib
import errno
import importlib
import json
from types import SimpleNamespace

import pytest

from engine.experiments import bench, caching
from engine.experiments.experiment import Options, Verdict, find, names

FIGURES = [f"caching-fig{number}" for number in range(12, 18)]
TINY = 0.002


def test_every_figure_is_there_with_its_title():
    assert set(FIGURES) <= set(names())
    assert all(find(name).__doc__ for name in FIGURES)


@pytest.mark.slow
def test_the_ordinary_tool_copies_rows_and_the_framework_does_not(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(caching, "FIRST_QUERIES", ("q11",))
    report = find("caching-fig16")(Options(quick=True, scale=TINY, folder=tmp_path, spark=spark))
    assert [row[0] for row in report.tables[0].rows] == ["Q1.1"]
    assert all(value > 0 for value in report.tables[0].rows[0][1:])
    verdicts = [claim.verdict for claim in report.claims]
    assert verdicts[0] in (Verdict.REPRODUCED, Verdict.NOT_REPRODUCED)
    assert verdicts[1:] == [Verdict.NOT_REPRODUCIBLE], "Kettle is not here, and all answers were the same"


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_made_and_every_claim_judged(name, spark, tmp_path):
    report = find(name)(Options(quick=True, scale=TINY * 2, folder=tmp_path, spark=spark))
    assert json.loads(json.dumps(report.as_dict()))["claims"]
    assert not [claim for claim in report.claims if claim.text == "every way of running it gives the same answer"]
    assert {file.suffix for file in report.write(tmp_path / "out")} == {".csv", ".svg", ".png", ".json"}


def test_what_went_wrong_is_a_claim_that_does_not_hold(spark, tmp_path):
    with caching.runs(Options(quick=True, folder=tmp_path, spark=spark)) as here:
        here.here.report.facts["differences"] = ["a and b differ in answer"]
        (claim,) = here.problems()
    assert claim.verdict is Verdict.NOT_REPRODUCED
    assert claim.figures == "a and b differ in answer"


def test_a_full_disk_leaves_out_what_it_has_no_data_for_and_the_figure_goes_on(tmp_path, monkeypatch):
    said: list[str] = []

    def generate(folder, scale):
        if scale > 0.1:
            raise OSError(errno.ENOSPC, "No space left on device")

    class Here:
        def __init__(self):
            self.folder, self.report = tmp_path, bench.Report(facts={"cores": 2})
            self.options = bench.Options(say=said.append)

        def workflow(self, file, parameters, **way):
            return parameters["data_folder"]

        def hold(self, entries, rounds):
            for entry in entries:
                self.report.contenders[entry.name] = bench.Contender([1.0], figures={"utilisation": [0.5]})

    monkeypatch.setattr(caching, "generate_ssb", generate)
    here = caching.Runs(Here(), 1)
    small, large = (caching.Case("q41", scale, caching.SHARED) for scale in (0.1, 0.2))
    assert list(here.measure([small, large])) == [small]
    (problem,) = here.problems()
    assert problem.figures == f"{large.name}: {tmp_path}/ssb-0.2: No space left on device"
    assert f"no data at SSB scale 0.2: {tmp_path}/ssb-0.2: No space left on device" in said


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_of_which_every_case_failed_says_that_nothing_was_measured(name, tmp_path, monkeypatch):
    @contextlib.contextmanager
    def runs(options):
        here = SimpleNamespace(report=bench.Report({"a": bench.Contender(failed="OSError: no room")}))
        yield SimpleNamespace(measure=lambda cases: {}, cores=2, problems=lambda: caching.Runs.problems(
            SimpleNamespace(here=here)))  # fmt: skip

    monkeypatch.setattr(caching, "runs", runs)
    monkeypatch.setattr(importlib.import_module(find(name).__module__), "runs", runs, raising=False)
    report = find(name)(Options(quick=True, folder=tmp_path))
    judged = [claim for claim in report.claims if claim.verdict is Verdict.NOT_REPRODUCED]
    assert {claim.figures for claim in judged} == {"not measured", "a: OSError: no room"}
    report.write(tmp_path / "out")
    text = (tmp_path / "out" / "report.json").read_text()
    json.loads(text, parse_constant=pytest.fail)
    assert "nan" not in text


@pytest.mark.parametrize(
    ("rounds", "expected"), [([1.0, 1.0, 1.0], 0.05), ([1.0, 1.1, 2.0], 2 * 0.1 / 1.1), ([1.0], 0.05)]
)
def test_one_slow_round_is_no_noise_and_rounds_that_differ_are(rounds, expected):
    found = caching.Found(1.0, 0.5, caching._beside(rounds))
    assert caching.noise([found, caching.Found(1.0, 0.5)]) == pytest.approx(expected)


def figure(name, seconds, monkeypatch, cores=2, beside=0.0, quick=False):
    """A figure as it comes out where a case takes the seconds that a function says."""

    @contextlib.contextmanager
    def runs(options):
        def measure(cases):
            return {case: caching.Found(seconds(case), 0.8 / seconds(case), beside) for case in cases}

        yield SimpleNamespace(measure=measure, cores=cores, problems=list)

    monkeypatch.setattr(caching, "runs", runs)
    monkeypatch.setattr(importlib.import_module(find(name).__module__), "runs", runs, raising=False)
    report = find(name)(Options(quick=quick))
    assert all(claim.verdict in ("reproduced", "not reproduced", "not reproducible on this machine")
               for claim in report.claims)  # fmt: skip
    return [claim.verdict for claim in report.claims]


YES, NO, CANNOT = Verdict.REPRODUCED, Verdict.NOT_REPRODUCED, Verdict.NOT_REPRODUCIBLE


@pytest.mark.parametrize(
    ("gain", "beside", "cores", "expected"),
    [
        ({2: 0.8, 16: 0.96}, 0.0, 2, [YES, YES, NO, CANNOT]),
        ({2: 0.97, 16: 0.99}, 0.0, 2, [NO, NO, NO, CANNOT]),
        ({2: 0.8, 16: 0.96}, 0.2, 2, [NO, NO, NO, CANNOT]),
        ({8: 0.25, 16: 0.5}, 0.0, 8, [YES, YES, NO, YES]),
        ({4: 0.25, 16: 0.5}, 0.0, 8, [YES, YES, NO, NO]),
    ],
)
def test_pipelines_are_judged_by_more_than_the_noise(gain, beside, cores, expected, monkeypatch):
    assert figure(
        "caching-fig12", lambda case: gain.get(case.way["degree"], 1.0), monkeypatch, cores, beside
    ) == expected  # fmt: skip


@pytest.mark.parametrize(
    ("second", "last", "expected"), [(0.8, 1.0, [YES, YES]), (1.0, 0.8, [NO, NO]), (0.96, 1.0, [NO, NO])]
)
def test_a_speed_up_grows_at_the_beginning_or_not_at_all(second, last, expected, monkeypatch):
    taken = {2: second, 16: last}
    found = figure("caching-fig14", lambda case: taken.get(case.threads["supplier"], 1.0), monkeypatch)
    assert found[:2] == expected
    assert found[2:] == [CANNOT, CANNOT]


@pytest.mark.parametrize(
    ("separate", "shared", "piped", "cores", "expected"),
    [
        (1.11, 1.0, 0.9, 2, [YES, YES, CANNOT, CANNOT]),
        (1.03, 1.0, 0.9, 8, [NO, NO, NO, NO]),
        (6.0, 1.0, 0.9, 2, [YES, NO, YES, CANNOT]),
        (1.12, 1.0, 0.2, 8, [YES, YES, YES, YES]),
    ],
)
def test_what_needs_eight_cores_is_not_told_by_fewer(separate, shared, piped, cores, expected, monkeypatch):
    def seconds(case):
        return separate if case.way["granularity"] == "operator" else piped if "degree" in case.way else shared

    assert figure("caching-fig15", seconds, monkeypatch, cores) == expected


@pytest.mark.parametrize(("slower", "expected"), [(1.2, YES), (1.04, NO)])
@pytest.mark.parametrize("name", ["caching-fig16", "caching-fig17"])
def test_the_framework_is_faster_by_more_than_the_noise_for_every_query(name, slower, expected, monkeypatch):
    def seconds(case):
        return (slower if case.query == "q21" else 2.0) if case.way["granularity"] == "operator" else 1.0

    assert figure(name, seconds, monkeypatch) == [expected, CANNOT]


def test_usage_has_to_grow_by_more_than_the_noise_and_the_small_form_says_what_it_leaves_out(monkeypatch):
    one_slow = figure("caching-fig13", lambda case: 1.0 if case.way["degree"] == 1 else 0.9, monkeypatch)
    assert one_slow == [YES, CANNOT]
    assert figure("caching-fig13", lambda case: 1.0, monkeypatch) == [NO, CANNOT]
    small = figure("caching-fig12", lambda case: 1.0, monkeypatch, cores=8, quick=True)
    assert small == [NO, CANNOT, NO, CANNOT]


def test_three_sizes_double_each_time():
    assert caching.scales(Options()) == [0.1, 0.2, 0.4]
    assert caching.scales(Options(scale=1.0)) == [0.25, 0.5, 1.0]

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


def test_three_sizes_double_each_time():
    assert caching.scales(Options()) == [0.1, 0.2, 0.4]
    assert caching.scales(Options(scale=1.0)) == [0.25, 0.5, 1.0]

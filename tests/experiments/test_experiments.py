"""`papilio experiment`: found by name, printed, written, and honest about each claim."""

from __future__ import annotations

import csv
import errno
import json
import math
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from PySide6.QtGui import QImage

from engine.drawing import check_picture
from engine.errors import BadInput, EnvironmentProblem, check_folder, reaching
from engine.experiments.experiment import Claim, Options, Report, Table, Verdict, find, judged, names
from engine.experiments.kept import Kept, keep, kept_in
from engine.experiments.svg import Chart, draw
from tests.end_to_end.helpers import papilio_here
from tests.plan.published import FIG_6, FIG_9

PLANNING = ["plan-fig10", "plan-fig6", "plan-fig7", "plan-fig9"]


def test_experiments_are_found_by_their_files_and_a_wrong_name_gets_the_near_one(tmp_path):
    assert set(PLANNING) <= set(names())
    listed = papilio_here("experiment", home=tmp_path).stdout
    assert all(name in listed for name in names())
    assert papilio_here("experiment", "list", home=tmp_path).stdout == listed
    with pytest.raises(BadInput, match="no experiment `plan-fig66`; did you mean `plan-fig6`"):
        find("plan-fig66")


@pytest.mark.parametrize("name", PLANNING)
def test_a_planning_experiment_writes_its_tables_charts_and_claims(name, tmp_path):
    done = papilio_here("experiment", name, "--quick", "--to", tmp_path / "out", home=tmp_path)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["claims"]
    for claim in report["claims"]:
        assert claim["verdict"] in [verdict.value for verdict in Verdict]
        assert claim["claim"] in done.stdout
        assert claim["figures"] in done.stdout
    for table, rows in report["tables"].items():
        with (tmp_path / "out" / f"{table}.csv").open() as file:
            assert len(list(csv.reader(file))) == len(rows) + 1
    pictures = list((tmp_path / "out").glob("*.svg"))
    assert pictures
    for picture in pictures:
        assert ElementTree.parse(picture).getroot().tag.endswith("svg")


def test_without_a_folder_what_is_found_is_written_beside_the_data_and_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = papilio_here("experiment", "plan-fig9", "--quick", home=tmp_path)
    assert done.returncode == 0
    made = tmp_path / "build" / "experiments" / "plan-fig9"
    kinds = {file.suffix for file in made.iterdir()}
    assert {".csv", ".svg", ".json"} <= kinds
    for file in made.iterdir():
        assert f"written: {file.relative_to(tmp_path)}" in done.stderr


def test_strict_ends_with_1_where_a_claim_is_not_reproduced(tmp_path, monkeypatch):
    import engine.experiments.experiment as module

    verdicts = [Verdict.REPRODUCED, Verdict.NOT_REPRODUCIBLE]
    monkeypatch.setattr(
        module, "find", lambda name: lambda options: Report("t", claims=[Claim("c", one, "f") for one in verdicts])
    )
    command = ("experiment", "made-up", "--to", tmp_path / "out")
    assert papilio_here(*command, "--strict", home=tmp_path).returncode == 0, "what cannot be found out is no failure"
    verdicts.append(Verdict.NOT_REPRODUCED)
    assert papilio_here(*command, home=tmp_path).returncode == 0
    assert papilio_here(*command, "--strict", "--json", home=tmp_path).returncode == 1


LINES = Chart("lines", "Lines & more", "rows/s", "s", {"time": [1.0, 3.0, 2.0]}, [0, 1, 2], levels={"limit": 2.5})


def test_a_chart_is_written_as_svg_and_beside_it_as_png_of_twice_its_size(tmp_path):
    written = Report("charts", charts=[LINES]).write(tmp_path)
    assert [file.name for file in written] == ["lines.svg", "lines.png", "report.json"]
    image = QImage(str(tmp_path / "lines.png"))
    assert (image.width(), image.height()) == (1440, 840)
    seen = {image.pixelColor(x, y).name() for x in range(0, 1440, 2) for y in range(0, 840, 2)}
    assert {"#ffffff", "#2b6cb0", "#c53030"} <= seen  # the ground, the line, its limit


def test_without_the_designer_there_is_the_svg_alone_and_it_is_said(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "resvg", None)
    done = papilio_here("experiment", "plan-fig6", "--quick", "--to", tmp_path / "out", home=tmp_path)
    assert done.returncode == 0
    assert "no PNG beside the SVG: resvg, which paints it, is not installed" in done.stderr
    assert {file.suffix for file in (tmp_path / "out").iterdir()} == {".csv", ".svg", ".json"}
    with pytest.raises(EnvironmentProblem, match="is not installed"):
        check_picture("--plot", tmp_path / "p.png")


def test_a_limit_is_never_the_upper_edge_and_a_right_axis_skips_what_is_not_known():
    top = draw(replace(LINES, levels={"limit": 4.0}))
    assert ">5<" in top
    rebalanced = draw(replace(LINES, xs=["a", "b", "c"], bars=True, right={"moved": [40.0, math.nan, 20.0]}))
    assert rebalanced.count("<circle") == 2
    assert "nan" not in rebalanced


@pytest.mark.parametrize(
    "words",
    [
        ("experiment", "plan-fig9", "--quick", "--to", "{blocked}"),
        ("experiment", "plan-fig9", "--quick", "--to", "{blocked}/below"),
        ("experiment", "plan-fig9", "--quick", "--folder", "{blocked}/below"),
        ("experiment", "plan-fig9", "--quick", "--keep", "{blocked}/below"),
        ("bench", "planner", "--keep", "{blocked}/below"),
        ("bench", "large-file", "--folder", "{blocked}/below"),
        ("results", "--to", "{blocked}/results.md"),
    ],
)
def test_a_folder_that_cannot_be_written_to_is_said_before_anything_runs(words, tmp_path, monkeypatch):
    def run(name):
        raise AssertionError("it ran")

    monkeypatch.setattr("engine.experiments.experiment.find", run)
    monkeypatch.setattr("engine.experiments.bench.find", run)
    monkeypatch.setattr("engine.experiments.bench.usual_rounds", lambda name: 1)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "blocked").write_text("")
    done = papilio_here(*(word.format(blocked=tmp_path / "blocked") for word in words), home=tmp_path)
    assert done.returncode == 4, done.stderr
    assert f"{tmp_path}/blocked" in done.stderr
    assert "a file is where a folder should be" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_the_system_says_of_a_place_is_told_with_the_place(tmp_path):
    done = papilio_here("experiment", "plan-fig9", "--quick", "--to", "/dev/null/x", home=tmp_path)
    assert (done.returncode, "/dev/null" in done.stderr) == (4, True)
    check_folder(tmp_path / "a" / "b")
    assert list(tmp_path.iterdir()) == [], "asking leaves nothing behind"
    with pytest.raises(ConnectionRefusedError), reaching(tmp_path):
        raise ConnectionRefusedError("of another process, and not of this folder")
    (tmp_path / "here").mkdir()
    check_folder(tmp_path / "here")
    assert list((tmp_path / "here").iterdir()) == []


def full(*words, **named):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_disk_that_is_full_at_the_end_is_said_and_the_last_result_stays(tmp_path, monkeypatch):
    keep(Kept("bench", "planner", {"facts": {"of": "before"}}), tmp_path / "kept")
    monkeypatch.setattr(Path, "write_text", full)
    words = ("experiment", "plan-fig9", "--quick", "--folder", tmp_path / "data", "--to", tmp_path / "out")
    done = papilio_here(*words, home=tmp_path)
    assert done.returncode == 4
    assert done.stderr.splitlines()[-1] == f"{tmp_path}/out: No space left on device"
    with pytest.raises(EnvironmentProblem, match=r"kept/bench-planner.json: No space left on device"):
        keep(Kept("bench", "planner", {}), tmp_path / "kept")
    monkeypatch.undo()
    assert kept_in(tmp_path / "kept")["bench", "planner"].report == {"facts": {"of": "before"}}


def test_an_error_of_the_system_in_any_command_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr("engine.experiments.data.generate_tpch", full)
    done = papilio_here("data", "tpch", "--scale", "0.001", "--to", tmp_path / "data", home=tmp_path)
    assert (done.returncode, done.stderr) == (4, "No space left on device\n")


def test_what_was_not_measured_is_no_number_in_any_file(tmp_path):
    nothing = math.nan
    report = Report("t", [Table("a", ("x", "y"), [(1, nothing), (2, math.inf)])],
                    claims=[judged("it is faster", False, f"{nothing:.2f} times", [1.0, nothing])])  # fmt: skip
    report.write(tmp_path)
    assert report.claims[0].figures == "not measured"
    for text in (tmp_path / "report.json").read_text(), (tmp_path / "a.csv").read_text():
        assert "nan" not in text.lower()
        assert "inf" not in text.lower()
    found = json.loads((tmp_path / "report.json").read_text(), parse_constant=pytest.fail)
    assert found["tables"]["a"] == [{"x": 1, "y": None}, {"x": 2, "y": None}]
    keep(Kept("bench", "a", {"facts": {"x": [nothing]}}), tmp_path)
    assert kept_in(tmp_path)["bench", "a"].report == {"facts": {"x": [None]}}


@pytest.mark.parametrize("word", ["list", "LIST"])
def test_list_is_no_experiment(word, tmp_path):
    done = papilio_here("experiment", word, home=tmp_path)
    assert done.returncode == 0
    assert done.stdout == papilio_here("experiment", home=tmp_path).stdout


def test_a_scale_is_for_experiments_that_have_one(tmp_path):
    done = papilio_here("experiment", "plan-fig6", "--scale", "2", home=tmp_path)
    assert done.returncode == 2
    assert "`plan-fig6` has no scale" in done.stderr
    smaller = find("schedule-fig8")(Options(quick=True, scale=0.1)).tables[0].rows
    assert sorted({row[1] for row in smaller}) == pytest.approx([0.025, 0.05, 0.1])


@pytest.mark.parametrize(("name", "published"), [("plan-fig6", FIG_6), ("plan-fig9", FIG_9)])
def test_the_published_tables_are_reproduced(name, published):
    report = find(name)(Options(quick=True))
    rows = [(row[8], row[0], row[2], row[4]) for row in report.tables[0].rows]
    assert rows == published
    first = {claim.text: claim.verdict for claim in report.claims}
    assert first["the ten cheapest plans with their costs, in this order"] is Verdict.REPRODUCED


def test_the_wings_of_figure_10_have_the_printed_shapes_and_both_searches_agree():
    table = find("plan-fig10")(Options(quick=True)).tables[0]
    shapes = [tuple(row[1:5]) for row in table.rows]
    assert [(nodes, depth, places) for nodes, depth, _, places in shapes] == [
        (8, 4, 2),
        (10, 6, 3),
        (14, 4, 3),
        (15, 6, 6),
    ]
    assert [row[9] for row in table.rows] == ["yes"] * 4


def test_a_claim_that_does_not_hold_is_not_called_reproduced():
    assert judged("x", False, "1 of 2").verdict is Verdict.NOT_REPRODUCED
    assert judged("x", True, "2 of 2").verdict is Verdict.REPRODUCED


def test_a_report_as_json_has_rows_by_their_headings(tmp_path):
    report = Report("t", [Table("a", ("x", "y"), [(1, "<&>"), (2, None)])])
    assert report.as_dict()["tables"] == {"a": [{"x": 1, "y": "<&>"}, {"x": 2, "y": None}]}
    assert [file.name for file in report.write(tmp_path)] == ["a.csv", "report.json"]


@pytest.mark.parametrize("bars", [False, True])
@pytest.mark.parametrize("log_y", [False, True])
def test_a_chart_draws_every_point_inside_its_frame(bars, log_y):
    chart = Chart(
        "c", "a < b", "x", "y", {"one": [1, 10, 100], "two & more": [3, float("nan"), 0.5]}, [1, 2, 5], bars, log_y
    )
    root = ElementTree.fromstring(draw(chart))
    space = "{http://www.w3.org/2000/svg}"
    circles = list(root.iter(f"{space}circle"))
    assert len(circles) == (0 if bars else 5)
    for circle in circles:
        assert 0 <= float(circle.get("cx", "-1")) <= 720
        assert 0 <= float(circle.get("cy", "-1")) <= 420
    for rect in root.iter(f"{space}rect"):
        assert float(rect.get("height", "-1")) >= 0


def test_a_chart_of_nothing_is_still_a_picture():
    assert ElementTree.fromstring(draw(Chart("c", "t", "x", "y", {})))
    ElementTree.fromstring(draw(Chart("c", "t", "x", "y", {"zero": [0.0]}, ["a"], bars=True)))

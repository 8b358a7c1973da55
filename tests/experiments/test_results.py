"""`papilio results`: results are kept, run one after the other whatever becomes of each, and shown on one page."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from engine.cli.bench import command as bench_command
from engine.errors import BadInput
from engine.experiments import results
from engine.experiments.bench import Contender, Report
from engine.experiments.kept import KEPT, Kept, clock, code, keep, kept_in, revision
from engine.experiments.svg import Measured, draw_measured
from tests.end_to_end.helpers import papilio_here

ROOT = Path(results.__file__).resolve().parents[2]


def bench_result(name="ssb", load=0.1) -> Kept:
    report = Report({"papilio": Contender([1.0, 1.2, 1.1], [900.0]), "a | b": Contender(failed="OSError: no room")})
    report.claim("papilio is quick", False, "papilio / Spark SQL = 1.30")
    report.facts["cores"] = 2
    report.identical = True
    kept = Kept("bench", name, report.as_dict(), options={"rounds": 3, "scale": None})
    with clock(kept):
        pass
    kept.machine["load_before"] = load
    return kept


def experiment_result() -> Kept:
    claims = [
        {"claim": "it is linear", "verdict": "reproduced", "figures": "1.02"},
        {
            "claim": "eight are best",
            "verdict": "not reproducible on this machine",
            "figures": "this machine has 2 cores",
        },
    ]
    report = {"title": "Figure 12", "tables": {"t": [{"x": 1, "y": 2.5}, {"x": 2, "y": None}]}, "claims": claims}
    picture = draw_measured("t", "s", [Measured("a", 1, 1, 1)])
    return Kept("experiment", "caching-fig12", report, charts=[picture, picture])


def test_a_result_is_read_back_as_it_was_kept_and_the_next_one_takes_its_place(tmp_path):
    first, second = bench_result(load=0.1), bench_result(load=0.2)
    keep(first, tmp_path)
    keep(second, tmp_path)
    keep(experiment_result(), tmp_path)
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "other.json").write_text('{"a": 1}')
    found = kept_in(tmp_path)
    assert list(found) == [("bench", "ssb"), ("experiment", "caching-fig12")]
    assert found["bench", "ssb"] == second
    assert found["bench", "ssb"].machine["cores"] >= 1
    assert kept_in(tmp_path / "nowhere") == {}


def test_the_page_shows_every_verdict_with_its_figures_and_says_on_what_machine(tmp_path):
    for kept in (bench_result("ssb", load=0.1), bench_result("etl", load=7.5), experiment_result()):
        keep(kept, tmp_path / "results")
    page = tmp_path / "help" / "results.md"
    page.parent.mkdir()
    written = results.write_page(tmp_path / "results", page, page.parent / "pictures")
    text = page.read_text()
    assert "| bench ssb | **does not hold** | papilio is quick | papilio / Spark SQL = 1.30 |" in text
    assert (
        "| experiment caching-fig12 | not reproducible on this machine | eight are best | this machine has 2 cores |"
        in text
    )
    assert "| papilio | 1.1 | 18 % | - | 900 |  |" in text
    assert "| a \\| b | - | - | - | - | OSError: no room |" in text, "a failed contender has its reason"
    assert "Not quiet" in text
    assert "busy for a minute: etl." in text, "only what ran on a busy machine"
    assert "load 7.5 before" in text
    pictures = [file for file in written if file.suffix == ".svg"]
    assert len(pictures) == 4
    for picture in pictures:
        assert f"(pictures/{picture.name})" in text
        assert ElementTree.parse(picture).getroot().tag.endswith("svg")
    stale = page.parent / "pictures" / "stale.svg"
    stale.write_text("<svg/>")
    results.write_page(tmp_path / "results", page, page.parent / "pictures")
    assert not stale.exists()


def test_a_result_says_of_which_revision_it_is_and_whether_files_had_been_changed(tmp_path, monkeypatch):
    def git(*words: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        done = subprocess.run(["git", "-C", tmp_path, *who, *words], check=True, capture_output=True, text=True)
        return done.stdout.strip()

    module = tmp_path / "kept.py"
    monkeypatch.setattr("engine.experiments.kept.__file__", str(module))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert revision() == "", "an installed package is no checkout"
    module.write_text("first")
    git("init", "--quiet")
    git("add", "kept.py")
    git("commit", "--quiet", "--message", "first")
    commit = git("rev-parse", "--short=10", "HEAD")
    assert revision() == commit
    module.write_text("second")
    assert revision() == f"{commit}+"
    (tmp_path / "results").mkdir()
    kept = bench_result()
    keep(kept, tmp_path / "results")
    results.write_page(tmp_path / "results", tmp_path / "results.md", tmp_path / "pictures")
    assert f", revision {commit}+, " in (tmp_path / "results.md").read_text()


def test_results_and_pages_that_are_written_change_no_code(tmp_path, monkeypatch):
    def git(*words: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", "-C", tmp_path, *who, *words], check=True, capture_output=True)

    def commit(name: str, text: str) -> None:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        git("add", name)
        git("commit", "--quiet", "--message", name)

    monkeypatch.setattr("engine.experiments.kept.__file__", str(tmp_path / "engine/experiments/kept.py"))
    git("init", "--quiet")
    for name in ("engine/experiments/kept.py", "workflows/fig1.yaml", "resources/results/a.json", "tests/test_a.py"):
        commit(name, "first")
    first, before = code(), revision()
    (tmp_path / "resources/results/a.json").write_text("the next result")
    assert revision() == before, "the results before it do not make the next one's code a changed one"
    commit("resources/results/a.json", "second")
    commit("tests/test_a.py", "second")
    assert code() == first != ""
    assert revision() != before
    (tmp_path / "engine/experiments/kept.py").write_text("second")
    assert code() == f"{first}+"
    commit("workflows/fig1.yaml", "second")
    assert code().rstrip("+") != first


def test_what_was_measured_on_older_code_is_marked_and_what_tells_no_code_is_not(tmp_path):
    kept = {name: bench_result(name) for name in ("ssb", "etl", "growth", "trees", "plan")}
    for number, (name, revision_of, code_of) in enumerate(
        [("plan", "", ""), ("ssb", "aaa", ""), ("etl", "bbb+", ""), ("growth", "ccc", "1-2"), ("trees", "bbb", "3-4")],
        1,
    ):
        one = kept[name]
        one.at, one.revision, one.code = f"2026-01-0{number}T00:00:00+00:00", revision_of, code_of
        keep(one, tmp_path / "results")
    results.write_page(tmp_path / "results", tmp_path / "results.md", tmp_path / "pictures")
    text = (tmp_path / "results.md").read_text()
    assert "that of bench trees: revision bbb, 2026-01-05." in text
    assert "may have changed since: growth, ssb.\n" in text
    assert "| bench ssb (older code) | **does not hold** |" in text
    assert "| bench etl | **does not hold** |" in text, "bbb with changes that nobody kept"
    assert "revision ccc (older code), " in text
    assert "2026-01-01T00:00:00+00:00, of a revision that was not kept, " in text
    listed = {task.name: task for task in results.tasks(tmp_path / "results", ["ssb", "plan", "commands"])}
    assert {name: (task.revision, task.older) for name, task in listed.items()} == {
        "ssb": ("aaa", revision() != ""), "plan": ("", False), "commands": ("", False),
    }  # fmt: skip


def test_the_page_names_what_was_never_run_here(tmp_path):
    keep(bench_result(), tmp_path / "results")
    results.write_page(tmp_path / "results", tmp_path / "results.md", tmp_path / "pictures")
    lines = (tmp_path / "results.md").read_text().splitlines()
    benches, experiments = (line for line in lines if line.startswith("Never run here: "))
    assert benches.startswith("Never run here: bench butterfly, ")
    assert " growth, " in benches
    assert " ssb" not in benches
    assert "caching-fig12, " in experiments


def test_facts_with_parts_are_tables_that_a_person_can_read(tmp_path):
    kept = bench_result()
    policies = {policy: {"seconds": 1.5, "packs": 2} for policy in ("rr", "mc")}
    kept.report["facts"] = {
        "scales": [0.1, 1.0], "empty": [], "archetypes": {"line": policies, "fork": policies},
        "a second": {"rr": 127498, "mc": 3.25}, "bounds": {"FIFO": {"hold": 12, "broken": []}, "EDF": {"hold": 3}},
        "not compared": ["bad, which failed"],
    }  # fmt: skip
    keep(kept, tmp_path / "results")
    results.write_page(tmp_path / "results", tmp_path / "results.md", tmp_path / "pictures")
    text = (tmp_path / "results.md").read_text()
    for line in (
        "| scales | 0.1, 1 |", "| empty | none |", "| targets that were compared are the same | yes |",
        "| not compared | bad, which failed |",
        "Archetypes:", "| of |  | seconds | packs |", "| line | mc | 1.5 | 2 |", "| fork | rr | 1.5 | 2 |",
        "| rr | 127,498 |", "| mc | 3.25 |", "| of | hold | broken |", "| FIFO | 12 | none |", "| EDF | 3 |  |",
    ):  # fmt: skip
        assert line in text.splitlines(), f"{line}\n{text}"
    assert "{" not in text


def test_whoever_keeps_a_result_has_to_run_papilio_results(tmp_path):
    """The committed page and its pictures are what `papilio results` writes of the committed results now."""
    page, pictures = ROOT / "resources/help/results.md", ROOT / "resources/help/pictures"
    results.write_page(ROOT / KEPT, tmp_path / "results.md", tmp_path / "pictures")
    written = (tmp_path / "results.md").read_text()
    assert page.read_text() == written, "run `papilio results`, which writes resources/help/results.md, and commit it"
    made = {file.name: file.read_text() for file in (tmp_path / "pictures").iterdir()}
    assert {file.name: file.read_text() for file in pictures.glob("*.svg")} == made, "run `papilio results`"


def test_a_page_of_nothing_is_refused(tmp_path):
    with pytest.raises(BadInput, match="no results are kept in"):
        results.write_page(tmp_path, tmp_path / "results.md", tmp_path)


def test_one_that_fails_or_takes_too_long_does_not_stop_the_rest(tmp_path):
    codes = {
        "good": "pass",
        "full": "import sys; sys.exit('no room left on the disk')",
        "slow": "import time; time.sleep(30)",
        "last": "pass",
    }
    said: list[str] = []
    todo = [results.Task("bench", name, 3.0 if name == "good" else None) for name in codes]
    ran = list(results.run_all(todo, lambda task: [sys.executable, "-c", codes[task.name]], said.append, 3.0))
    assert [one.task.name for one in ran] == list(codes)
    assert [one.failed for one in ran] == [
        None, "it ended with 1: no room left on the disk", "it was not done after 3 s", None,
    ]  # fmt: skip
    assert said[0] == "bench good: about 3 s"
    assert said[2] == "bench full: how long is not known yet"
    (missing,) = results.run_all([results.Task("bench", "x")], lambda task: ["/nowhere/python"], said.append)
    assert "nowhere" in (missing.failed or "")


def test_names_choose_what_runs_and_a_wrong_one_gets_the_near_one(tmp_path):
    keep(bench_result(), tmp_path)
    assert [(task.title, task.last_seconds is None) for task in results.tasks(tmp_path, ["ssb", "bench ssb"])] == [
        ("bench ssb", False)
    ]
    every = results.tasks(tmp_path)
    assert {"bench growth", "bench etl", "experiment caching-fig17"} <= {task.title for task in every}
    assert results.tasks(tmp_path, ["experiment"]) == [task for task in every if task.kind == "experiment"]
    with pytest.raises(BadInput, match="no benchmark and no experiment `growht`; did you mean `growth`"):
        results.tasks(tmp_path, ["growht"])


def test_results_are_taken_at_the_sizes_that_claims_are_made_for(tmp_path):
    def options(name, quick=False, kind="bench"):
        command = results.command_for(results.Task(kind, name), tmp_path, quick)
        return command[command.index(str(tmp_path)) + 1 :]

    assert options("plan") == ["--scale", "1"]
    assert options("stream") == ["--seconds", "300"]
    assert options("butterfly") == ["--full"]
    assert options("ssb") == []
    assert options("plan", quick=True) == ["--rounds", "1"], "a quick look stays quick"
    assert options("plan-fig9", kind="experiment") == []
    accepted = {option for parameter in bench_command.params for option in parameter.opts}
    assert {"--scale", "--seconds", "--full"} <= accepted


def test_the_command_runs_keeps_lists_and_writes_the_page(tmp_path):
    at = ("--folder", tmp_path / "results")
    page = tmp_path / "help" / "results.md"
    into = ("--folder", tmp_path / "made")
    done = papilio_here("experiment", "plan-fig9", "--quick", *into, "--keep", tmp_path / "results", home=tmp_path)
    assert done.returncode == 0, done.stderr
    listed = json.loads(papilio_here("results", "--list", "--json", *at, home=tmp_path).stdout)
    assert [one["name"] for one in listed if one["last_seconds"] is not None] == ["plan-fig9"]
    answer = json.loads(papilio_here("results", "--json", "--to", page, *at, home=tmp_path).stdout)
    assert answer["failed"] == {}
    assert answer["pictures"] >= 1
    assert "### plan-fig9" in page.read_text()
    wrong = papilio_here("results", "plan-fig99", *at, home=tmp_path)
    assert wrong.returncode == 2


def test_bars_are_as_long_as_their_values_and_stay_in_the_picture():
    values = [
        Measured("short", 1.0, 0.5, 2.0),
        Measured("a name that is much longer than there is room for it here" * 2, 4.0, 4.0, 4.0),
    ]
    root = ElementTree.fromstring(draw_measured("a < b", "s", values))
    space = "{http://www.w3.org/2000/svg}"
    bars = [float(rect.get("width", "0")) for rect in root.iter(f"{space}rect")][1:]
    assert bars[1] == pytest.approx(4 * bars[0], rel=0.01)
    assert all(float(line.get("x2", "999")) <= 720 for line in root.iter(f"{space}line"))
    ElementTree.fromstring(draw_measured("nothing", "s", []))


def test_the_command_ends_with_1_where_one_failed_and_still_writes_the_page(tmp_path, monkeypatch):
    keep(bench_result(), tmp_path / "results")
    monkeypatch.setattr(results, "command_for", lambda *_: [sys.executable, "-c", "raise SystemExit('no room')"])
    page = tmp_path / "help" / "results.md"
    done = papilio_here("results", "--run", "ssb", "--folder", tmp_path / "results", "--to", page, home=tmp_path)
    assert done.returncode == 1
    assert "failed: bench ssb: it ended with 1: no room" in done.stdout
    assert page.exists()


@pytest.mark.parametrize("words", [("bench", "simulated"), ("experiment", "plan-fig9")])
def test_a_file_is_no_folder_to_keep_results_in_and_this_is_told_before_anything_runs(tmp_path, words):
    file = tmp_path / "bench-simulated.json"
    file.write_text("{}")
    done = papilio_here(*words, "--keep", file, home=tmp_path)
    assert done.returncode == 2
    assert "is a file" in done.stderr
    assert done.stdout == ""
    assert file.read_text() == "{}"

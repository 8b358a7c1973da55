"""`papilio store` and `papilio history`, through the real program's entry."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from engine.cli import main
from engine.store import MetadataStore
from engine.store.plain import content_hash
from tests.store.examples import WORKFLOW, a_run

Papilio = Callable[..., tuple[int, str, str]]


@pytest.fixture
def papilio(capfd: pytest.CaptureFixture[str]) -> Papilio:
    """Run a command line; gives the exit code, what it said and what it complained about."""

    def run(*arguments: object) -> tuple[int, str, str]:
        capfd.readouterr()
        try:
            main([str(argument) for argument in arguments])
            code = 0
        except SystemExit as ended:
            code = int(ended.code or 0)
        said = capfd.readouterr()
        return code, said.out, said.err

    return run


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A workflow file with a comment and Windows line ends, which must both survive."""
    path = tmp_path / "orders.butterfly.yaml"
    path.write_bytes(b"# by hand\r\n" + yaml.safe_dump(WORKFLOW, sort_keys=False).encode())
    return path


def test_put_then_get_gives_the_exact_file(papilio: Papilio, file: Path, tmp_path: Path) -> None:
    assert papilio("store", "put", file, "--comment", "first") == (0, "orders: saved as version 1.\n", "")
    assert papilio("store", "put", file) == (0, "orders: unchanged since version 1.\n", "")
    assert papilio("store", "get", "orders", "--to", tmp_path / "copy.yaml")[0] == 0
    assert (tmp_path / "copy.yaml").read_bytes() == file.read_bytes()
    assert papilio("store", "get", "orders") == (0, file.read_bytes().decode(), "")
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_put_takes_the_name_given_or_that_of_the_file(papilio: Papilio, tmp_path: Path) -> None:
    path = tmp_path / "q1.butterfly.yaml"
    path.write_text("papilio: 1\n")
    assert "q1: saved" in papilio("store", "put", path)[1]
    code, answer, _ = papilio("store", "put", path, "--name", "mine", "--json")
    saved = json.loads(answer)
    assert (code, saved["name"], saved["version"], saved["new"]) == (0, "mine", 1, True)
    assert [one["name"] for one in json.loads(papilio("store", "list", "--json")[1])] == ["mine", "q1"]


def test_versions_and_diff_tell_what_changed(papilio: Papilio, file: Path) -> None:
    papilio("store", "put", file, "--comment", "first")
    file.write_text(file.read_text().replace("rows: 1000", "rows: 50").replace("recent.match", "recent.rest"))
    papilio("store", "put", file, "--comment", "second")
    found = json.loads(papilio("store", "versions", "orders", "--json")[1])
    assert [(one["version"], one["comment"]) for one in found] == [(1, "first"), (2, "second")]
    code, said, _ = papilio("store", "diff", "orders", 1, 2)
    assert code == 0
    assert said.splitlines() == [
        "~ setting out.rows: 1000 → 50",
        "- edge recent.match → out.in",
        "+ edge recent.rest → out.in",
    ]
    changes = json.loads(papilio("store", "diff", "orders", 1, 2, "--json")[1])["changes"]
    assert changes[0] == {
        "action": "changed",
        "kind": "setting",
        "where": "out.rows",
        "before": 1000,
        "after": 50,
    }
    assert papilio("store", "diff", "orders", 1, 1)[1] == "Nothing changed.\n"


def test_lists_are_readable(papilio: Papilio, file: Path) -> None:
    assert "papilio store put" in papilio("store", "list")[1]
    papilio("store", "put", file, "--comment", "[bold]not markup[/bold]")
    assert "[bold]not markup" in papilio("store", "list")[1]
    assert "not markup" in papilio("store", "versions", "orders")[1]


def test_export_and_import_move_a_store(papilio: Papilio, file: Path, tmp_path: Path, url: str) -> None:
    papilio("store", "put", file)
    out = tmp_path / "export.xml"
    code, said, _ = papilio("store", "export", out)
    assert (code, "1 workflow version," in said) == (0, True)
    code, said, _ = papilio("store", "import", out, "--store", url)
    assert (code, said) == (
        0,
        "Imported 0 source schemas, 0 operators, 1 workflow version, 0 plans, 0 runs.\n",
    )
    assert papilio("store", "import", out, "--store", url)[1] == "Everything was here already.\n"
    assert papilio("store", "export", "--store", url) == (0, out.read_text(encoding="utf-8"), "")


def test_the_environment_names_the_store(
    papilio: Papilio, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAPILIO_STORE", str(tmp_path / "named.db"))
    papilio("store", "put", file)
    monkeypatch.delenv("PAPILIO_STORE")
    assert json.loads(papilio("store", "list", "--json")[1]) == []
    assert len(json.loads(papilio("store", "list", "--json", "--store", tmp_path / "named.db")[1])) == 1


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "no such file"),
        (b"a: [1", "broken YAML"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"- a\n", "must hold a mapping"),
        (b"", "must hold a mapping"),
        (b"day: 2026-01-31\n", "no `papilio: 1` line"),
        (b"a: &a [*a]\n", "anchors and aliases are not used"),
        (b"a: " + b"[" * 200_000, "levels deep"),
    ],
)
def test_a_bad_file_ends_with_2_and_one_message(
    papilio: Papilio, tmp_path: Path, content: bytes | None, reason: str
) -> None:
    path = tmp_path / "bad.butterfly.yaml"
    if content is not None:
        path.write_bytes(content)
    code, said, complaint = papilio("store", "put", path)
    assert (code, said) == (2, "")
    assert str(path) in complaint
    assert reason in complaint
    assert json.loads(papilio("store", "list", "--json")[1]) == []


@pytest.mark.parametrize(
    "content",
    [
        '<!DOCTYPE x [<!ENTITY a "lol"><!ENTITY b "&a;&a;">]><store version="1">&b;</store>',
        '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><store version="1">&a;</store>',
        '<store version="1">' + "<a>" * 200_000 + "</a>" * 200_000 + "</store>",
        '<store version="1">' + " " * 2**20 + "</store>",
        '<store version="1">',
        "not XML",
    ],
    ids=["entity bomb", "external entity", "200,000 deep", "oversize", "cut off", "not XML"],
)
def test_a_bad_import_ends_with_2_and_changes_nothing(
    papilio: Papilio, file: Path, tmp_path: Path, content: str
) -> None:
    papilio("store", "put", file)
    before = papilio("store", "export")
    bad = tmp_path / "bad.xml"
    bad.write_text(content)
    code, said, complaint = papilio("store", "import", bad, "--max-mib", 1)
    assert (code, said) == (2, "")
    assert complaint.startswith(str(bad))
    assert len(complaint.splitlines()) == 1
    assert papilio("store", "export") == before


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["get", "none"], 2),
        (["versions", "none"], 2),
        (["diff", "none", "1", "2"], 2),
        (["get", "none", "--version", "0"], 2),
        (["import", "missing.xml"], 2),
        (["list", "--store", "no/such/folder/store.db"], 2),
        (["list", "--store", "postgresql://127.0.0.1:1/none"], 4),
        (["export", "no/such/folder/out.xml"], 2),
    ],
)
def test_what_cannot_be_done_has_its_exit_code(papilio: Papilio, arguments: list[str], code: int) -> None:
    ended, said, complaint = papilio("store", *arguments)
    assert (ended, said) == (code, "")
    assert "Traceback" not in complaint


def test_history_lists_runs_newest_first(papilio: Papilio) -> None:
    assert papilio("history")[1] == "No workflow has been run yet.\n"
    with MetadataStore() as store:
        store.put_run(a_run(1, status="failed"))
        store.put_run(a_run(2, workflow="other"))
        store.put_run(a_run(3, status="running", finished=None))
    found: list[dict[str, Any]] = json.loads(papilio("history", "--json")[1])
    assert [(run["run"], run["seconds"]) for run in found] == [
        ("run-0003", None),
        ("run-0002", 2.5),
        ("run-0001", 2.5),
    ]
    assert [run["run"] for run in json.loads(papilio("history", "--workflow", "other", "--json")[1])] == ["run-0002"]
    assert [run["run"] for run in json.loads(papilio("history", "--status", "failed", "--json")[1])] == ["run-0001"]
    assert [run["run"] for run in json.loads(papilio("history", "--limit", "1", "--json")[1])] == ["run-0003"]
    assert [run["status"] for run in found] == ["interrupted", "done", "failed"], "nobody holds its folder any more"
    assert json.loads(papilio("history", "--status", "running", "--json")[1]) == []
    assert papilio("history", "--workflow", "none")[1] == "No such run.\n"
    table = papilio("history")[1]
    assert table.index("run-0003") < table.index("run-0001")
    for cell in ("failed", "mm / fused", "2.5", "orders"):
        assert cell in table


def test_a_narrow_terminal_shows_whole_ids_of_runs(papilio: Papilio, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    run = replace(a_run(1, status="simulated"), run="20261118-001328-84e1ff", policy="mm", granularity="operator")
    with MetadataStore() as store:
        store.put_run(run)
    table = papilio("history")[1]
    for cell in (run.run, run.status, f"{run.started.astimezone():%Y-%m-%d}"):
        assert cell in table
    assert max(map(len, table.splitlines())) <= 80


def test_the_program_itself_ends_with_the_code(tmp_path: Path) -> None:
    program = [sys.executable, "-c", "from engine.cli import main; main()", "store", "import"]
    ended = subprocess.run([*program, str(tmp_path / "none.xml")], capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr.strip() == f"{tmp_path}/none.xml: cannot be read: No such file or directory."


@pytest.mark.parametrize("password", ["hunter2", 12345])
def test_a_secret_written_out_gets_neither_into_the_store_nor_into_xml(
    papilio: Papilio, tmp_path: Path, password: object
) -> None:
    source = {"operator": "postgresql_source", "settings": {"host": "h", "password": password}}
    document = {"papilio": 1, "name": "db", "nodes": {"rows": source}}
    file = tmp_path / "db.butterfly.yaml"
    file.write_text(yaml.safe_dump(document))
    for command in (("store", "put", file), ("export", file, "--to", "xml")):
        code, said, complaint = papilio(*command)
        assert (code, said) == (2, "")
        assert "node `rows`, setting `password`: a secret is never written into the file" in complaint
        assert str(password) not in complaint
    source["settings"]["password"] = "${env:PASSWORD}"  # type: ignore[index]
    file.write_text(yaml.safe_dump(document))
    assert papilio("store", "put", file)[0] == 0


def test_an_import_with_a_secret_written_out_takes_nothing(papilio: Papilio, tmp_path: Path) -> None:
    source = {"operator": "postgresql_source", "settings": {"password": "${env:PASSWORD}"}}
    file = tmp_path / "db.butterfly.yaml"
    file.write_text(yaml.safe_dump({"papilio": 1, "name": "db", "nodes": {"rows": source}}))
    assert papilio("store", "put", file, "--store", tmp_path / "theirs.db")[0] == 0
    xml = tmp_path / "theirs.xml"
    assert papilio("store", "export", xml, "--store", tmp_path / "theirs.db")[0] == 0
    text = xml.read_text()
    written = {"papilio": 1, "name": "db", "nodes": {"rows": {**source, "settings": {"password": "hunter2"}}}}
    hashes = [content_hash(yaml.safe_load(file.read_text())), content_hash(written)]
    xml.write_text(text.replace("${env:PASSWORD}", "hunter2").replace(*hashes))
    code, _, complaint = papilio("store", "import", xml, "--store", tmp_path / "mine.db")
    assert code == 2
    assert "nothing was imported. workflow 'db' version 1: node `rows`, setting `password`: a secret" in complaint
    assert json.loads(papilio("store", "list", "--json", "--store", tmp_path / "mine.db")[1]) == []

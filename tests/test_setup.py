"""The set-up: what `make demo` and `make test` do on a machine that lacks something."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import stat
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TOOLS = [
    "bash",
    "cat",
    "cut",
    "dirname",
    "env",
    "grep",
    "head",
    "id",
    "mkdir",
    "sed",
    "sleep",
    "tail",
    "touch",
]


class Machine:
    """A copy of the set-up in a folder of its own, with a PATH that holds only the programs it is given."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "papilio"
        self.programs = folder / "bin"
        self.programs.mkdir()
        (self.root / "packaging").mkdir(parents=True)
        shutil.copy(ROOT / "pyproject.toml", self.root)
        for name in ("setup.sh", "system-packages.txt"):
            shutil.copy(ROOT / "packaging" / name, self.root / "packaging")
        for tool in TOOLS:
            found = shutil.which(tool)
            assert found, tool
            (self.programs / tool).symlink_to(found)

    def add(self, name: str, script: str) -> Path:
        """Add a program that is a shell script."""
        path = self.programs / name
        path.unlink(missing_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def set_up(self, what: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.programs / "bash", self.root / "packaging" / "setup.sh", what],
            env={"PATH": str(self.programs), "HOME": str(self.root), **environment},
            cwd=self.root.parent,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def python_that_says(version: str, old: bool) -> str:
    """A Python of another version, as far as the set-up looks at it."""
    return f'case "$1" in --version) echo "Python {version}";; *) exit {int(old)};; esac'


def packages(group: str) -> list[list[str]]:
    """The packages of a group in the list, each with its alternatives."""
    lines = (ROOT / "packaging" / "system-packages.txt").read_text(encoding="utf-8").splitlines()
    current, found = None, []
    for line in lines:
        line = line.partition("#")[0].strip()
        if match := re.fullmatch(r"\[([a-z]+)\]", line):
            current = match[1]
        elif line and current == group:
            found.append([name.strip() for name in line.split("|")])
    return found


@pytest.mark.parametrize(
    ("group", "needed"),
    [
        ("qt", {"libegl1", "libxcb-cursor0", "libxkbcommon-x11-0"}),
        ("test", {"xvfb", "xdotool", "postgresql"}),
    ],
)
def test_the_list_of_system_packages_holds_debian_names_once_each(group: str, needed: set[str]) -> None:
    names = [name for alternatives in packages(group) for name in alternatives]
    assert needed <= set(names)
    assert [name for name in names if not re.fullmatch(r"[a-z0-9][a-z0-9.+-]+", name)] == []
    assert len(names) == len(set(names))


@pytest.mark.parametrize("script", ["packaging/setup.sh", ".ci/run"])
def test_scripts_are_executable_and_parse(script: str) -> None:
    assert os.access(ROOT / script, os.X_OK)
    subprocess.run(["bash", "-n", ROOT / script], check=True)


def test_without_apt_get_it_names_the_packages_and_goes_on(machine: Machine) -> None:
    done = machine.set_up("system")
    assert done.returncode == 0, done.stderr
    assert "no apt-get" in done.stdout
    for alternatives in packages("qt") + packages("test"):
        assert alternatives[-1] in done.stdout.split()


def test_without_root_it_prints_the_command_and_goes_on(machine: Machine) -> None:
    machine.add("apt-get", "exit 1")
    machine.add("sudo", "exit 1")  # would ask for a password
    machine.add("id", "echo 1000")
    machine.add("dpkg-query", 'case "$*" in *xdotool) exit 1;; *) printf installed;; esac')
    done = machine.set_up("system")
    assert done.returncode == 0, done.stderr
    assert "sudo apt-get install xdotool\n" in done.stdout


def test_with_root_it_installs_what_is_missing_and_nothing_else(machine: Machine) -> None:
    machine.add("apt-get", 'echo "$@" >> "$HOME/apt.log"')
    machine.add("id", "echo 0")
    machine.add("apt-cache", 'test "$2" = libglib2.0-0t64')
    machine.add("dpkg-query", 'case "$*" in *libglib*|*xvfb) exit 1;; *) printf installed;; esac')
    done = machine.set_up("system")
    assert done.returncode == 0, done.stderr
    calls = (machine.root / "apt.log").read_text().splitlines()
    assert len(calls) == 1
    assert calls[0].endswith("install --no-install-recommends libglib2.0-0t64 xvfb")


def test_package_lists_are_fetched_when_the_first_try_fails(machine: Machine) -> None:
    machine.add(
        "apt-get",
        'echo "$@" >> "$HOME/apt.log"\ncase "$*" in *update) touch "$HOME/updated";; *) test -e "$HOME/updated";; esac',
    )
    machine.add("id", "echo 0")
    machine.add("dpkg-query", 'case "$*" in *xdotool) exit 1;; *) printf installed;; esac')
    done = machine.set_up("system")
    assert done.returncode == 0, done.stderr
    calls = [call.split()[-1] for call in (machine.root / "apt.log").read_text().splitlines()]
    assert calls == ["xdotool", "update", "xdotool"]
    assert "could not" not in done.stdout


def test_an_apt_get_that_fails_does_not_stop_the_set_up_but_is_said(machine: Machine) -> None:
    machine.add("apt-get", "exit 100")
    machine.add("id", "echo 0")
    machine.add("dpkg-query", 'case "$*" in *xdotool) exit 1;; *) printf installed;; esac')
    done = machine.set_up("system")
    assert done.returncode == 0, done.stderr
    assert "could not install" in done.stdout
    assert "apt-get install xdotool" in done.stdout


@pytest.mark.parametrize("what", ["demo", "test"])
def test_an_old_python_is_refused_with_its_version(machine: Machine, what: str) -> None:
    machine.add("python3", python_that_says("3.10.13", old=True))
    done = machine.set_up(what)
    assert done.returncode == 1
    assert "needs Python 3.11 or newer; here is Python 3.10.13" in done.stderr
    assert not (machine.root / ".venv").exists()


def test_an_old_python_that_was_asked_for_is_refused_although_there_is_a_newer_one(machine: Machine) -> None:
    machine.add("python3", python_that_says("3.12.1", old=False))
    old = machine.add("old-python", python_that_says("3.10.13", old=True))
    done = machine.set_up("demo", PYTHON=str(old))
    assert done.returncode == 1
    assert f"{old} is Python 3.10.13" in done.stderr


def test_a_newer_python_is_found_behind_an_old_python3(machine: Machine) -> None:
    machine.add("python3", python_that_says("3.10.13", old=True))
    machine.add("python3.12", python_that_says("3.12.1", old=False))
    done = machine.set_up("demo")
    assert "with Python 3.12.1" in done.stdout


def fake_environment(machine: Machine) -> None:
    """A .venv whose pip and compiler only write down what they were asked for; all else is the real Python."""
    venv = machine.root / ".venv" / "bin"
    venv.mkdir(parents=True)
    machine.add("dpkg-query", "printf installed")
    python = venv / "python"
    python.write_text(
        f"""#!/bin/sh
case "$*" in
    "-m pip --version") ;;
    "-m pip "*)
        echo "$*" >> "$HOME/pip.log"
        if [ -n "$PIP_FAILS" ]; then echo no route to the packages; exit 1; fi ;;
    "-m compileall "*) echo "$*" >> "$HOME/compiled.log"; exit "${{COMPILING_FAILS:-0}}" ;;
    *) exec "{sys.executable}" "$@" ;;
esac
"""
    )
    python.chmod(0o755)


@pytest.mark.parametrize(
    ("java", "extras"),
    [
        (None, ".[designer,java]"),
        ('openjdk version "11.0.2" 2019-01-15', ".[designer,java]"),
        ('java version "1.8.0_402"', ".[designer,java]"),
        ('openjdk version "17.0.15" 2025-04-15', ".[designer]"),
        ('openjdk version "25" 2025-09-16', ".[designer]"),
    ],
)
def test_the_demo_brings_a_java_only_where_there_is_none(machine: Machine, java: str | None, extras: str) -> None:
    fake_environment(machine)
    if java:
        machine.add("java", f"echo '{java}' >&2")
    done = machine.set_up("demo")
    assert done.returncode == 0, done.stderr
    assert (machine.root / "pip.log").read_text().splitlines()[-1].endswith(f"--editable {extras}")


def test_the_tests_get_everything_and_spark_is_fetched_once(machine: Machine) -> None:
    fake_environment(machine)
    done = machine.set_up("test")
    assert done.returncode == 0, done.stderr
    assert (machine.root / "pip.log").read_text().endswith("--editable .[designer,java,postgresql,sail,dev]\n")
    constraints = (machine.root / ".venv" / "constraints.txt").read_text().splitlines()
    assert [line for line in constraints if line.startswith("pyspark")] == ["pyspark>=4.2,<4.3"]
    assert [line for line in constraints if "[" in line] == []


@pytest.mark.parametrize("what", ["demo", "test"])
def test_modules_are_compiled_ahead_for_a_python_that_may_not_keep_them(machine: Machine, what: str) -> None:
    fake_environment(machine)
    assert machine.set_up(what).returncode == 0
    (compiled,) = (machine.root / "compiled.log").read_text().splitlines()
    assert compiled.endswith(f"{sysconfig.get_path('purelib')} engine designer resources workflows")


def test_what_cannot_be_compiled_is_said_and_the_set_up_goes_on(machine: Machine) -> None:
    fake_environment(machine)
    done = machine.set_up("demo", COMPILING_FAILS="1")
    assert done.returncode == 0
    assert "not all of them" in done.stdout


def test_a_failing_pip_stops_the_set_up_with_its_last_words(machine: Machine) -> None:
    fake_environment(machine)
    done = machine.set_up("demo", PIP_FAILS="1")
    assert done.returncode == 1
    assert "no route to the packages" in done.stderr
    assert "build/setup.log" in done.stderr


def test_make_lists_its_targets() -> None:
    listed = subprocess.run(["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    targets = re.findall(r"^  make ([a-z-]+)", listed, flags=re.MULTILINE)
    assert {"setup", "demo", "test", "test-slow", "lint", "clean", "help"} <= set(targets)


def test_the_set_up_runs_again_only_when_its_inputs_change(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "packaging").mkdir()
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "packaging" / "system-packages.txt").touch()
    script = tmp_path / "packaging" / "setup.sh"
    script.write_text('#!/bin/sh\nmkdir -p .venv\necho "$1" >> ran\n')
    script.chmod(0o755)

    def make(target: str) -> list[str]:
        subprocess.run(["make", "-s", target], cwd=tmp_path, check=True, capture_output=True)
        return (tmp_path / "ran").read_text().split()

    def change(name: str) -> None:
        later = (tmp_path / ".venv" / ".test-ready").stat().st_mtime + 5
        os.utime(tmp_path / name, (later, later))

    assert make("setup") == ["test"]
    assert make("setup") == ["test"]
    assert make(".venv/.demo-ready") == ["test"]  # the tests' set-up stands for the demo's
    change("packaging/system-packages.txt")
    assert make(".venv/.demo-ready") == ["test", "demo"]


def test_the_desktop_entry_opens_the_designer() -> None:
    entry = configparser.ConfigParser(interpolation=None)
    entry.read(ROOT / "packaging" / "papilio.desktop", encoding="utf-8")
    assert entry["Desktop Entry"]["Exec"] == "papilio design %f"
    assert entry["Desktop Entry"]["Type"] == "Application"

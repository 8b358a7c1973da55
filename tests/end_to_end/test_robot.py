"""The robot draws the Fig. 1 butterfly from an empty canvas, and what it saved runs headless with the right answer."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.model.file import load
from tests.end_to_end.helpers import answer, papilio, parquet_rows
from tests.end_to_end.robot import Robot
from tests.end_to_end.test_fig1 import TARGETS, expected

LEFT, STEP = 380, 260  # where the first column of nodes stands on the screen, and how far it is to the next
UPPER, LOWER = 340, 640
HALF = 88  # from a node's middle to its ports


@pytest.fixture
def robot(tmp_path: Path, dirty_tpch: Path) -> Iterator[Robot]:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "data").mkdir()
    for name in ("partsupp", "supplier"):
        shutil.copy(dirty_tpch / f"{name}.parquet", folder / "data")
    made = Robot(folder, {**os.environ, "PAPILIO_HOME": str(tmp_path / "home")})
    yield made
    made.close()


def column(number: int) -> int:
    return LEFT + number * STEP


def add(robot: Robot, words: str) -> None:
    """Quick-add behind the selected node, and go into its settings."""
    robot.keys("Tab")
    robot.type(words)
    robot.keys("Return", "alt+Return")


def settings_done(robot: Robot) -> None:
    robot.keys("F6")


def one_line(robot: Robot, text: str) -> None:
    robot.type(text)
    settings_done(robot)


def columns(robot: Robot, names: list[str]) -> None:
    """A list of columns: the first by the button, each other by Enter."""
    robot.keys("space")
    for number, name in enumerate(names):
        robot.type(name)
        robot.keys("Escape")
        if number + 1 < len(names):
            robot.keys("Return")


def derived(robot: Robot, rows: list[tuple[str, str]]) -> None:
    """A list of names with their expressions."""
    robot.keys("space")
    for number, (name, expression) in enumerate(rows):
        robot.type(name)
        robot.keys("Tab")
        robot.type(expression)
        robot.keys("Escape")
        if number + 1 < len(rows):
            robot.keys("ctrl+Return")


def source_line(robot: Robot, y: int, table: str, needed: list[str], name: str, expression: str) -> None:
    """A source, cleansed, with one column computed, and loaded."""
    robot.double_click(column(0), y)
    robot.type("parquet source")
    robot.keys("Return", "alt+Return")
    one_line(robot, f"data/{table}.parquet")
    add(robot, "not null")
    columns(robot, needed)
    settings_done(robot)
    add(robot, "derive")
    derived(robot, [(name, expression)])
    settings_done(robot)
    add(robot, "parquet target")
    one_line(robot, f"out/{table}")


def view(robot: Robot, group: list[str], measures: list[tuple[str, str]], target: str) -> None:
    """A view behind the selected table."""
    columns(robot, group)
    robot.keys("Tab", "Tab", "Tab")
    derived(robot, measures)
    settings_done(robot)
    add(robot, "parquet target")
    one_line(robot, f"out/{target}")


def draw(robot: Robot) -> None:
    robot.keys("ctrl+n")
    source_line(
        robot, UPPER, "partsupp", ["ps_partkey", "ps_suppkey", "ps_availqty", "ps_supplycost"],
        "ps_totalcost", "ps_availqty * ps_supplycost",
    )  # fmt: skip
    source_line(
        robot, LOWER, "supplier", ["s_suppkey", "s_nationkey", "s_phone"],
        "s_phone", "concat('+', replace(s_phone, '-', ' '))",
    )  # fmt: skip
    robot.click(column(3), UPPER)  # the loaded PartSupp
    add(robot, "join")
    robot.keys("Tab", "space")
    robot.type("ps_suppkey")
    robot.keys("Escape", "Tab")
    robot.type("s_suppkey")
    robot.keys("Escape", "Tab", "Tab", "Tab", "Tab", "Tab")
    robot.type("m")  # the form: sort-merge
    settings_done(robot)
    robot.drag((column(3) + HALF, LOWER), (column(4) - HALF, UPPER + 16))
    robot.click(column(4), UPPER)
    add(robot, "parquet target")
    one_line(robot, "out/joined")
    add(robot, "materialized view")
    view(
        robot, ["s_nationkey", "ps_partkey"],
        [("total_cost", "sum(ps_totalcost)"), ("quantity", "sum(ps_availqty)"), ("suppliers", "count(*)")], "view_1",
    )  # fmt: skip
    add(robot, "materialized view")
    view(
        robot, ["ps_partkey"],
        [("total_cost", "sum(total_cost)"), ("quantity", "sum(quantity)"), ("suppliers", "sum(suppliers)")], "view_2",
    )  # fmt: skip
    robot.drag((column(5) + HALF, UPPER), (column(6), LOWER))  # the join table's port, into the open
    robot.type("materialized view")
    robot.keys("Return", "alt+Return")
    view(robot, ["s_nationkey", "s_suppkey"], [("total_cost", "sum(ps_totalcost)"), ("parts", "count(*)")], "view_3")
    add(robot, "materialized view")
    view(robot, ["s_suppkey"], [("total_cost", "sum(total_cost)"), ("parts", "sum(parts)")], "view_4")


def save(robot: Robot, path: Path) -> None:
    robot.keys("ctrl+s")
    dialog = robot.find("Save the workflow")
    robot.do("windowfocus", dialog)
    robot.settle()
    robot.keys("ctrl+a")
    robot.type(str(path))
    robot.keys("Return")
    robot.do("windowfocus", robot.window)
    robot.settle()


@pytest.mark.slow
def test_the_robot_draws_fig_1_and_the_saved_file_runs_with_the_right_answer(robot: Robot, tmp_path: Path) -> None:
    draw(robot)
    path = robot.folder / "fig1.butterfly.yaml"
    save(robot, path)
    robot.keys("ctrl+q")
    assert robot.program.wait(20) == 0
    assert (robot.folder / "designer.log").read_text() == ""
    workflow = load(path).workflow
    assert len(workflow.nodes) == 18
    assert len(workflow.edges) == 17
    home = tmp_path / "home"
    found = answer(papilio("check", path, "--json", home=home))
    assert found["problems"] == []
    shape = answer(papilio("partition", path, "--json", home=home))
    assert shape["archetype"] == "balanced butterfly"
    answer(papilio("run", path, "--json", "--run-dir", tmp_path / "run", home=home))
    wanted = expected(robot.folder / "data")
    for name in TARGETS:
        assert parquet_rows(robot.folder / "out" / name) == wanted[name], f"{name} differs"

"""The rules of the house that hold at module level only, which import-linter cannot check."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def module_level_imports(source: str, module: str, is_package: bool = False) -> set[str]:
    """The modules that importing `module` imports: not those inside functions or for type checkers only."""
    found: set[str] = set()
    package = module if is_package else module.rpartition(".")[0]
    for node in _statements_run_at_import(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".")
                base = ".".join([*parts[: len(parts) - node.level + 1], *([base] if base else [])])
            found.add(base)
            found.update(f"{base}.{alias.name}" for alias in node.names)
    return found


def _statements_run_at_import(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for statement in child.orelse:
                yield statement
                yield from _statements_run_at_import(statement)
            continue
        yield child
        yield from _statements_run_at_import(child)


def read_house(root: Path) -> dict[str, set[str]]:
    """Every module of the engine and the designer, with what it imports at module level."""
    house: dict[str, set[str]] = {}
    for path in sorted([*root.glob("engine/**/*.py"), *root.glob("designer/**/*.py")]):
        parts = path.relative_to(root).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        module = ".".join(parts[:-1] if is_package else parts)
        house[module] = module_level_imports(path.read_text(encoding="utf-8"), module, is_package)
    return house


def is_in(module: str, room: str) -> bool:
    return module == room or module.startswith(f"{room}.")


def chain_to(house: dict[str, set[str]], start: str, library: str) -> list[str] | None:
    """How importing `start` comes to import `library`, module by module; None if it does not."""
    came_from: dict[str, str | None] = {start: None}
    waiting = [start]
    while waiting:
        module = waiting.pop()
        for name in house[module]:
            if is_in(name, library):
                chain = [name, module]
                while (before := came_from[chain[-1]]) is not None:
                    chain.append(before)
                return chain[::-1]
            # Importing a.b.c runs a and a.b as well.
            parts = name.split(".")
            for end in range(1, len(parts) + 1):
                inner = ".".join(parts[:end])
                if inner in house and inner not in came_from:
                    came_from[inner] = module
                    waiting.append(inner)
    return None


@pytest.fixture(scope="module")
def house() -> dict[str, set[str]]:
    return read_house(ROOT)


def test_only_the_spark_room_imports_pyspark_at_module_level(house: dict[str, set[str]]) -> None:
    others = {
        module: sorted(name for name in imports if is_in(name, "pyspark") or is_in(name, "py4j"))
        for module, imports in house.items()
        if not is_in(module, "engine.spark")
    }
    assert {module: names for module, names in others.items() if names} == {}


@pytest.mark.parametrize("library", ["pyspark", "py4j", "pandas", "PySide6"])
def test_starting_the_command_line_imports_nothing_slow(house: dict[str, set[str]], library: str) -> None:
    commands = [module for module in house if is_in(module, "engine.cli")]
    assert "engine.cli.data" in commands
    assert [chain for module in commands if (chain := chain_to(house, module, library))] == []


def test_starting_the_designer_imports_no_spark(house: dict[str, set[str]]) -> None:
    modules = [module for module in house if is_in(module, "designer")]
    assert [chain for module in modules if (chain := chain_to(house, module, "pyspark"))] == []


@pytest.mark.parametrize(
    ("room", "above"), [("engine.model", "engine.operators"), ("engine.operators", "engine.spark")]
)
def test_a_room_reaches_up_only_inside_functions(house: dict[str, set[str]], room: str, above: str) -> None:
    reaching = {
        module: sorted(name for name in imports if is_in(name, above))
        for module, imports in house.items()
        if is_in(module, room)
    }
    assert {module: names for module, names in reaching.items() if names} == {}


def test_imports_in_functions_and_for_type_checkers_do_not_count() -> None:
    source = """
import os
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import pyspark
else:
    import json
try:
    from . import neighbour
except ImportError:
    from ..room import thing
class Operator:
    import csv
    def build(self):
        import pyspark.sql
"""
    found = module_level_imports(source, "engine.operators.joins")
    assert {"os", "json", "csv", "engine.operators.neighbour", "engine.room.thing"} <= found
    assert not any(is_in(name, "pyspark") for name in found)


def test_a_chain_of_imports_is_found_through_packages(tmp_path: Path) -> None:
    for path, source in {
        "designer/__init__.py": "",
        "designer/canvas.py": "from engine.operators import joins",
        "engine/__init__.py": "",
        "engine/operators/__init__.py": "from engine import tools",
        "engine/operators/joins.py": "",
        "engine/tools.py": "import pyspark.sql",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(source)
    chain = chain_to(read_house(tmp_path), "designer.canvas", "pyspark")
    assert chain == ["designer.canvas", "engine.operators", "engine.tools", "pyspark.sql"]

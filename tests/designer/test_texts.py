"""Every text a person reads goes through `tr`, so that it can be translated."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import designer

FILES = sorted(Path(designer.__file__).parent.rglob("*.py"))
SHOWN = {
    "setText", "setWindowTitle", "setToolTip", "setPlaceholderText", "setStatusTip", "showMessage", "say", "complain",
    "addAction", "addMenu", "addWidget", "QPushButton", "QLabel", "QCheckBox", "QAction", "label", "setAccessibleName",
    "setHeaderLabels", "setHorizontalHeaderLabels", "getOpenFileName", "getSaveFileName", "getText", "question", "tell",
    "setEmptyLabel", "QDockWidget", "QToolBar", "QLineEdit",
}  # fmt: skip
NAMES = {"Papilio", "heading", "muted", "wrong", "good"}


def untranslated(source: str) -> list[tuple[int, str]]:
    """Literal texts that are handed to something that shows them."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in SHOWN:
                values = [*node.args, *(word.value for word in node.keywords)]
                values += [item for value in values if isinstance(value, ast.List) for item in value.elts]
                for value in values:
                    text = value.value if isinstance(value, ast.Constant) else None
                    if isinstance(text, str) and any(map(str.isalpha, text)) and text not in NAMES:
                        found.append((value.lineno, text))
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(FILES[0].parent)))
def test_no_text_is_shown_untranslated(path: Path) -> None:
    assert untranslated(path.read_text(encoding="utf-8")) == []


def test_the_check_finds_what_it_looks_for() -> None:
    assert untranslated('button.setText("Save")\nbutton.setText(tr("Save"))') == [(1, "Save")]

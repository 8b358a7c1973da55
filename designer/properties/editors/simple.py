"""Editors of single values: texts, numbers, secrets, days, choices, columns, types, paths, code."""

from __future__ import annotations

import datetime
import os
import re
from pathlib import Path
from typing import Any

from PySide6.QtCore import QDate, QPoint, QSignalBlocker, Qt
from PySide6.QtGui import QFontDatabase
from PySide6.QtWidgets import (
    QCalendarWidget,
    QCheckBox,
    QComboBox,
    QCompleter,
    QFileDialog,
    QHBoxLayout,
    QLineEdit,
    QPlainTextEdit,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
)

from designer.document.edits import ABSENT
from designer.properties.context import Context
from designer.properties.editors.base import ValueEditor, mark_wrong
from designer.properties.fields import Value
from designer.text import tr
from designer.theme.icons import give_icon
from engine.model.operator import is_secret_reference
from engine.model.yamldata import scalar

_BEGUN = "${env:"  # how the one text begins that may stand for a secret
_NAMED = re.compile(r"\$\{env:\w*\}?")  # that text, also while it is typed

TYPES = ["string", "int", "bigint", "double", "decimal(12,2)", "date", "timestamp", "boolean", "smallint", "float",
         "binary", "array<string>", "map<string,string>", "struct<name:string>"]  # fmt: skip


def _plain(layout: Any) -> Any:
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(4)
    return layout


def _narrow(box: QComboBox) -> QComboBox:
    """A box as wide as there is room, not as its longest entry."""
    box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
    box.setMinimumContentsLength(6)
    box.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
    return box


def _beside(editor: ValueEditor, line: QLineEdit, button: QToolButton) -> None:
    """A button behind an editor's line."""
    layout = editor.layout()
    assert isinstance(layout, QVBoxLayout)
    layout.removeWidget(line)
    row = QHBoxLayout()
    row.setSpacing(4)
    row.addWidget(line, 1)
    row.addWidget(button)
    layout.addLayout(row)


def _day(text: str) -> datetime.date | None:
    """The day that a text names; None where it names none."""
    try:
        return datetime.date.fromisoformat(text) if len(text) == len("2000-01-01") else None
    except ValueError:
        return None


def written(value: Any) -> str:
    """A value as a person would type it."""
    if value is ABSENT or value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


class LineEditor(ValueEditor):
    """A text, a number or a scalar in one line. Anywhere `${name}` may stand for it."""

    def __init__(self, value: Value, context: Context, place: str, default: Any = None) -> None:
        super().__init__(value, context, place, default)
        self.line = QLineEdit()
        self.line.setPlaceholderText(self._hint())
        self.line.setAccessibleName(place)
        _plain(QVBoxLayout(self)).addWidget(self.line)
        self.setFocusProxy(self.line)
        self.line.textEdited.connect(self._edited)
        self.line.returnPressed.connect(self.entered)

    def _hint(self) -> str:
        if self.spec.kind == "secret":
            return f"{_BEGUN}PASSWORD}}"
        if self.spec.kind == "date":
            return tr("year-month-day")
        return written(self.default) if self.default not in (ABSENT, None, "") else ""

    def _edited(self) -> None:
        mark_wrong(self.line, not self._holds())
        self.changed.emit()

    def _holds(self) -> bool:
        text = self.line.text()
        if not text or "${" in text:
            return True
        if self.spec.kind == "integer":
            return isinstance(scalar(text), int)
        if self.spec.kind == "number":
            return isinstance(scalar(text), (int, float))
        if self.spec.kind == "date":
            return _day(text) is not None
        return True

    def value(self) -> Any:
        text = self.line.text()
        if text == "":
            return ABSENT
        if self.spec.kind in ("integer", "number", "scalar"):
            return scalar(text)
        return text

    def show_value(self, value: Any) -> None:
        text = written(value)
        if self.line.text() != text:
            self.line.setText(text)
        mark_wrong(self.line, not self._holds())


class SecretEditor(LineEditor):
    """A password or the like. The file takes only `${env:NAME}`, which is no secret; anything else is not shown."""

    def __init__(self, value: Value, context: Context, place: str, default: Any = None) -> None:
        super().__init__(value, context, place, default)
        self.line.textChanged.connect(self._mask)

    def _mask(self, text: str) -> None:
        named = _BEGUN.startswith(text) or _NAMED.fullmatch(text)
        self.line.setEchoMode(QLineEdit.EchoMode.Normal if named else QLineEdit.EchoMode.Password)

    def _holds(self) -> bool:
        return not self.line.text() or is_secret_reference(self.line.text())


class DateEditor(LineEditor):
    """A day, typed or taken from a calendar."""

    def __init__(self, value: Value, context: Context, place: str, default: Any = None) -> None:
        super().__init__(value, context, place, default)
        self.button = QToolButton()
        give_icon(self.button, "calendar")
        self.button.setToolTip(tr("Choose a day"))
        self.button.setAccessibleName(tr("Choose a day"))
        _beside(self, self.line, self.button)
        self.button.clicked.connect(self.open_calendar)

    def open_calendar(self) -> QCalendarWidget:
        """A calendar below the button, at the day that is written."""
        calendar = QCalendarWidget(self)
        calendar.setWindowFlags(Qt.WindowType.Popup)
        calendar.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        day = _day(self.line.text())
        if day is not None:
            calendar.setSelectedDate(QDate(day.year, day.month, day.day))

        def choose(chosen: QDate) -> None:
            calendar.close()
            self.line.setText(chosen.toString(Qt.DateFormat.ISODate))
            self._edited()

        calendar.activated.connect(choose)
        calendar.clicked.connect(choose)
        corner = QPoint(self.button.width() - calendar.sizeHint().width(), self.button.height())
        calendar.move(self.button.mapToGlobal(corner))
        calendar.show()
        calendar.setFocus()
        return calendar


class BooleanEditor(ValueEditor):
    """Yes or no. What the operator assumes anyway is not written into the file."""

    def __init__(self, value: Value, context: Context, place: str, default: Any = None) -> None:
        super().__init__(value, context, place, default)
        self.box = QCheckBox(tr("Yes"))
        self.box.setAccessibleName(place)
        _plain(QVBoxLayout(self)).addWidget(self.box)
        self.setFocusProxy(self.box)
        self.box.clicked.connect(self.changed)

    def value(self) -> Any:
        return ABSENT if self.box.isChecked() == self.default else self.box.isChecked()

    def show_value(self, value: Any) -> None:
        self.box.setChecked(bool(self.default) if value is ABSENT else value is True)


class ChoiceEditor(ValueEditor):
    """One of a few words."""

    def __init__(self, value: Value, context: Context, place: str, default: Any = None) -> None:
        super().__init__(value, context, place, default)
        self.box = _narrow(QComboBox())
        self.box.setAccessibleName(place)
        self.box.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        if default in (ABSENT, None):
            self.box.addItem("", ABSENT)
        for choice in value.choices:
            self.box.addItem(str(choice), choice)
        _plain(QVBoxLayout(self)).addWidget(self.box)
        self.setFocusProxy(self.box)
        self.box.activated.connect(lambda _: self.changed.emit())
        self.box.wheelEvent = lambda event: event.ignore()  # type: ignore[method-assign]

    def value(self) -> Any:
        value = self.box.currentData()
        return ABSENT if value == self.default else value

    def show_value(self, value: Any) -> None:
        value = self.default if value is ABSENT else value
        at = next((index for index in range(self.box.count()) if self.box.itemData(index) == value), -1)
        if at < 0 and value not in (ABSENT, None):  # a word the operator does not know, or `${name}`
            self.box.addItem(str(value), value)
            at = self.box.count() - 1
        self.box.setCurrentIndex(max(at, 0))


class _ComboEditor(ValueEditor):
    """A text with suggestions."""

    def __init__(self, value: Value, context: Context, place: str, default: Any = None) -> None:
        super().__init__(value, context, place, default)
        self.box = _narrow(QComboBox())
        self.line = QLineEdit()
        self.box.setEditable(True)
        self.box.setLineEdit(self.line)
        self.box.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.box.setAccessibleName(place)
        completer = self.box.completer() or QCompleter(self)
        completer.setCompletionMode(QCompleter.CompletionMode.PopupCompletion)
        completer.setFilterMode(Qt.MatchFlag.MatchContains)
        self.box.wheelEvent = lambda event: event.ignore()  # type: ignore[method-assign]
        _plain(QVBoxLayout(self)).addWidget(self.box)
        self.setFocusProxy(self.box)
        if isinstance(default, str) and default:
            self.line.setPlaceholderText(default)
        self.refresh()
        self.line.textEdited.connect(self._edited)
        self.line.returnPressed.connect(self.entered)
        self.box.activated.connect(self._picked)

    def suggestions(self) -> list[tuple[str, str]]:
        """What may be picked: the text and what is said about it."""
        return []

    def wrong(self, text: str) -> bool:
        """Whether a text cannot hold."""
        return False

    def refresh(self) -> None:
        text = self.box.currentText()
        with QSignalBlocker(self.box):
            self.box.clear()
            for name, about in self.suggestions():
                self.box.addItem(f"{name}   {about}" if about else name, name)
            self.box.setCurrentIndex(-1)
            self.box.setEditText(text)
        mark_wrong(self.box, self.wrong(text))

    def _picked(self, index: int) -> None:
        self.box.setEditText(self.box.itemData(index) or self.box.itemText(index))
        self._edited()

    def _edited(self) -> None:
        mark_wrong(self.box, self.wrong(self.box.currentText()))
        self.changed.emit()

    def value(self) -> Any:
        return self.box.currentText() or ABSENT

    def show_value(self, value: Any) -> None:
        text = written(value)
        if self.box.currentText() != text:
            with QSignalBlocker(self.box):
                self.box.setEditText(text)
        mark_wrong(self.box, self.wrong(text))


class ColumnEditor(_ComboEditor):
    """A column of an input, picked from those that are there."""

    def suggestions(self) -> list[tuple[str, str]]:
        schema = self.context.columns(self.spec.port)
        return list(schema.items()) if schema else []

    def wrong(self, text: str) -> bool:
        schema = self.context.columns(self.spec.port)
        if not text or not schema or "${" in text:
            return False
        return text.lower() not in (name.lower() for name in schema)


class TypeEditor(_ComboEditor):
    """A Spark type."""

    def suggestions(self) -> list[tuple[str, str]]:
        return [(name, "") for name in TYPES]

    def wrong(self, text: str) -> bool:
        from engine.model.types import BadType, normal_type

        if not text or "${" in text:
            return False
        try:
            normal_type(text)
        except BadType:
            return True
        return False


class PathEditor(LineEditor):
    """A path, typed or chosen."""

    def __init__(self, value: Value, context: Context, place: str, default: Any = None) -> None:
        super().__init__(value, context, place, default)
        button = QToolButton()
        give_icon(button, "folder")
        button.setToolTip(tr("Choose a file"))
        _beside(self, self.line, button)
        button.clicked.connect(self._choose)

    def _choose(self) -> None:
        folder = self.context.folder()
        chosen, _ = QFileDialog.getOpenFileName(self, tr("Choose a file"), str(folder))
        if chosen:
            relative = os.path.relpath(chosen, folder)
            self.line.setText(relative if not relative.startswith("../../..") else str(Path(chosen)))
            self._edited()


class CodeEditor(ValueEditor):
    """Several lines of code or SQL."""

    def __init__(self, value: Value, context: Context, place: str, default: Any = None) -> None:
        super().__init__(value, context, place, default)
        self.text = QPlainTextEdit()
        self.text.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.text.setTabStopDistance(4 * self.text.fontMetrics().horizontalAdvance(" "))
        self.text.setMinimumHeight(180)
        self.text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.text.setAccessibleName(place)
        _plain(QVBoxLayout(self)).addWidget(self.text)
        self.setFocusProxy(self.text)
        self.text.textChanged.connect(self.changed)

    def value(self) -> Any:
        return self.text.toPlainText() or ABSENT

    def show_value(self, value: Any) -> None:
        text = written(value)
        if self.text.toPlainText() != text:
            with QSignalBlocker(self.text):
                self.text.setPlainText(text)

"""The expression editor: highlighting, completion of columns and functions, and the type or the error as one types."""

from __future__ import annotations

import re
from typing import Any

from PySide6.QtCore import QSignalBlocker, QStringListModel, Qt
from PySide6.QtGui import (
    QFontDatabase,
    QKeyEvent,
    QSyntaxHighlighter,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
)
from PySide6.QtWidgets import QCompleter, QListView, QPlainTextEdit, QVBoxLayout

from designer.document.edits import ABSENT
from designer.properties.context import Context
from designer.properties.editors.base import ValueEditor, mark_wrong
from designer.properties.fields import Value
from designer.text import tr
from designer.theme.theme import theme, themes
from designer.widgets import label, take_role
from engine.model import functions
from engine.model.expression_words import ExpressionError
from engine.model.expressions import parse
from engine.model.inference import infer
from engine.model.meanings import Meaning

_TOKENS = re.compile(
    r"(?P<string>'(?:[^'\\]|\\.)*'?|\"(?:[^\"\\]|\\.)*\"?)|(?P<quoted>`[^`]*`?)|(?P<number>\b\d+(?:\.\d+)?\b)"
    r"|(?P<reference>\$\{[^}]*\}?)|(?P<word>[^\W\d]\w*)"
)
_KEYWORDS = {
    "and", "or", "not", "case", "when", "then", "else", "end", "is", "in", "between", "like", "rlike", "ilike",
    "regexp", "null", "true", "false", "cast", "try_cast", "as", "distinct", "over", "partition", "by", "order",
    "asc", "desc", "interval", "div", "from", "escape",
}  # fmt: skip
_WORD = re.compile(r"[\w.]+$")


class Highlighter(QSyntaxHighlighter):
    """Colours keywords, functions, columns, texts and numbers."""

    def __init__(self, document: QTextDocument) -> None:
        super().__init__(document)
        self.columns: set[str] = set()

    def highlightBlock(self, text: str) -> None:
        colors = theme()
        for match in _TOKENS.finditer(text):
            kind, word = match.lastgroup, match.group().lower()
            form = QTextCharFormat()
            if kind == "string":
                form.setForeground(colors.string)
            elif kind == "number":
                form.setForeground(colors.number)
            elif kind == "reference":
                form.setForeground(colors.warning)
            elif word in _KEYWORDS:
                form.setForeground(colors.keyword)
            elif word in functions.ALL and text[match.end() :].lstrip().startswith("("):
                form.setForeground(colors.function)
            elif word.strip("`") in self.columns:
                form.setForeground(colors.text)
                form.setFontWeight(600)
            else:
                continue
            self.setFormat(match.start(), match.end() - match.start(), form)


class _Box(QPlainTextEdit):
    """The text itself: grows with its lines, offers completions."""

    def __init__(self, owner: ExpressionEditor) -> None:
        super().__init__()
        self.owner = owner
        self.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.setTabChangesFocus(True)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self.completer = QCompleter(self)
        self.completer.setWidget(self)
        self.popup = QListView()
        self.completer.setPopup(self.popup)
        self.completer.setCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        self.completer.setFilterMode(Qt.MatchFlag.MatchStartsWith)
        self.completer.activated.connect(self._complete)
        self.textChanged.connect(self.grow)
        self.grow()

    def grow(self) -> None:
        """As high as the text, within reason."""
        lines = min(max(int(self.document().size().height()), 1), 8)
        self.setVerticalScrollBarPolicy(
            Qt.ScrollBarPolicy.ScrollBarAsNeeded if lines == 8 else Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        )
        self.setFixedHeight(lines * self.fontMetrics().lineSpacing() + 20)

    def resizeEvent(self, event: Any) -> None:
        super().resizeEvent(event)
        self.grow()

    def word(self) -> str:
        """What stands before the cursor and may be completed."""
        cursor = self.textCursor()
        before = cursor.block().text()[: cursor.positionInBlock()]
        found = _WORD.search(before)
        return found.group() if found else ""

    def keyPressEvent(self, event: QKeyEvent) -> None:
        popup = self.popup
        done = event.modifiers() & Qt.KeyboardModifier.ControlModifier
        if done and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.owner.entered.emit()
            return
        if popup.isVisible() and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Tab):
            index = popup.currentIndex()
            if not index.isValid():
                index = self.completer.completionModel().index(0, 0)
            self._complete(str(index.data()))
            popup.hide()
            return
        asked = event.key() == Qt.Key.Key_Space and event.modifiers() & Qt.KeyboardModifier.ControlModifier
        if not asked:
            super().keyPressEvent(event)
        if asked or (event.text() and (event.text().isalnum() or event.text() in "_.")):
            self.offer(bool(asked))
        elif popup.isVisible() and not event.text().isalnum():
            popup.hide()

    def offer(self, asked: bool = False) -> None:
        """Show what the word could become."""
        word = self.word()
        if not asked and len(word) < 2:
            self.popup.hide()
            return
        self.completer.setModel(QStringListModel(self.owner.completions(), self.completer))
        self.completer.setCompletionPrefix(word)
        if self.completer.completionCount() == 0 or self.completer.currentCompletion().lower() == word.lower():
            self.popup.hide()
            return
        self.popup.setCurrentIndex(self.completer.completionModel().index(0, 0))
        rect = self.cursorRect()
        rect.setWidth(280)
        self.completer.complete(rect)

    def _complete(self, text: str) -> None:
        cursor = self.textCursor()
        for _ in self.word():
            cursor.movePosition(QTextCursor.MoveOperation.Left, QTextCursor.MoveMode.KeepAnchor)
        is_function = text in functions.ALL and text.lower() not in self.owner.highlighter.columns
        cursor.insertText(f"{text}()" if is_function else text)
        if is_function:
            cursor.movePosition(QTextCursor.MoveOperation.Left)
        self.setTextCursor(cursor)


class ExpressionEditor(ValueEditor):
    """An expression, a condition, an aggregate or a window function."""

    def __init__(self, value: Value, context: Context, place: str, default: Any = None) -> None:
        super().__init__(value, context, place, default)
        self.text = _Box(self)
        self.text.setAccessibleName(place)
        self.highlighter = Highlighter(self.text.document())
        self.verdict = label("", "muted")
        self.verdict.setWordWrap(True)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2)
        layout.addWidget(self.text)
        layout.addWidget(self.verdict)
        self.setFocusProxy(self.text)
        self.text.textChanged.connect(self._edited)
        themes().changed.connect(self.highlighter.rehighlight)
        self.refresh()

    def completions(self) -> list[str]:
        """Columns first, then `port.column`, then functions."""
        scope = self.context.scope(self.place, self.spec.port)
        own = list(scope.schema or {})
        qualified = [f"{port}.{name}" for port, schema in scope.qualified.items() for name in schema or {}]
        aggregate = self.spec.means is not None and self.spec.means.meaning is Meaning.AGGREGATE
        known = functions.ALL if aggregate else {**functions.SCALAR, **functions.WINDOW}
        if self.spec.means is not None and self.spec.means.meaning is Meaning.WINDOW:
            known = functions.ALL
        return own + qualified + sorted(known) + self.context.names()

    def value(self) -> Any:
        return self.text.toPlainText() or ABSENT

    def show_value(self, value: Any) -> None:
        text = "" if value in (ABSENT, None) else str(value)
        if self.text.toPlainText() != text:
            with QSignalBlocker(self.text):
                self.text.setPlainText(text)
            self.text.grow()
        self.judge()

    def refresh(self) -> None:
        scope = self.context.scope(self.place, self.spec.port)
        columns = {name.lower() for name in scope.schema or {}}
        columns |= {name.lower() for schema in scope.qualified.values() for name in schema or {}}
        if columns != self.highlighter.columns:
            self.highlighter.columns = columns
            with QSignalBlocker(self.text):
                self.highlighter.rehighlight()
        self.judge()

    def _edited(self) -> None:
        self.judge()
        self.changed.emit()

    def judge(self) -> None:
        """Say what the expression gives, or why it cannot hold."""
        text = self.text.toPlainText()
        good, message = self.verdict_on(text)
        mark_wrong(self.text, not good)
        take_role(self.verdict, "muted" if good else "wrong")
        self.verdict.setText(message)
        self.verdict.setVisible(bool(message))

    def verdict_on(self, text: str) -> tuple[bool, str]:
        """Whether a text holds, and its type or the reason."""
        if not text.strip():
            return True, ""
        if "${" in text:
            return True, tr("depends on a parameter")
        meaning = self.spec.means.meaning if self.spec.means else Meaning.EXPRESSION
        whole = f"{text} OVER ()" if meaning is Meaning.WINDOW else text
        try:
            kind = infer(parse(whole), self.context.scope(self.place, self.spec.port))
        except ExpressionError as error:
            return False, tr("{0} (at {1})", str(error), error.position + 1)
        if meaning is Meaning.CONDITION and kind not in (None, "boolean", "void"):
            return False, tr("gives {0}, not true or false", kind)
        return True, tr("gives {0}", kind) if kind else tr("type not known yet")

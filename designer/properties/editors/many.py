"""Lists and mappings: a row for each entry, with buttons to add, move and remove."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QMenu, QPushButton, QToolButton, QVBoxLayout, QWidget

from designer.document.edits import ABSENT, same
from designer.properties.context import Context
from designer.properties.editors.base import ValueEditor
from designer.properties.fields import Value
from designer.text import tr
from designer.theme.icons import give_icon


def _button(icon: str, tip: str) -> QToolButton:
    button = QToolButton()
    give_icon(button, icon)
    button.setToolTip(tip)
    button.setIconSize(QSize(14, 14))
    button.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # Tab goes from value to value; the keys are below
    return button


class _Rows(ValueEditor):
    """What lists and mappings share."""

    def __init__(self, value: Value, context: Context, place: str, default: Any = None) -> None:
        super().__init__(value, context, place, default)
        self.rows: list[QWidget] = []
        self._box = QVBoxLayout()
        self._box.setSpacing(6)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(6)
        layout.addLayout(self._box)
        below = QHBoxLayout()
        self.add = QPushButton(tr("Add"))
        give_icon(self.add, "add")
        self.add.clicked.connect(self._added)
        below.addWidget(self.add)
        if self._column_value() is not None:
            self.pick = QPushButton(tr("Columns…"))
            self.pick.clicked.connect(self._choose_columns)
            below.addWidget(self.pick)
        below.addStretch(1)
        layout.addLayout(below)

    def _column_value(self) -> Value | None:
        """The part of an entry that is a column, where entries can be made from columns alone."""
        return None

    def _frame(self, inner: list[QWidget], card: bool) -> QWidget:
        frame = QFrame()
        frame.setObjectName("card" if card else "")
        row = QHBoxLayout(frame)
        row.setContentsMargins(*((8, 6, 4, 6) if card else (0, 0, 0, 0)))
        row.setSpacing(4)
        for widget in inner:
            row.addWidget(widget, 1)
        buttons = QVBoxLayout() if card else QHBoxLayout()
        buttons.setSpacing(0)
        up, remove = _button("up", tr("Move up (Alt+Up)")), _button("remove", tr("Remove (Alt+Del)"))
        up.clicked.connect(lambda: self._up(frame))
        remove.clicked.connect(lambda: self._remove(frame))
        buttons.addWidget(up)
        buttons.addWidget(remove)
        if card:
            buttons.addStretch(1)
        row.addLayout(buttons)
        self._box.addWidget(frame)
        self.rows.append(frame)
        frame.show()
        return frame

    def keyPressEvent(self, event: QKeyEvent) -> None:
        row = next((row for row in self.rows if row.isAncestorOf(self.focusWidget() or self)), None)
        if row is not None and event.modifiers() == Qt.KeyboardModifier.AltModifier:
            if event.key() == Qt.Key.Key_Up:
                self._up(row)
                return
            if event.key() == Qt.Key.Key_Delete:
                self._remove(row)
                return
        super().keyPressEvent(event)

    def _drop(self, frame: QWidget) -> None:
        self.rows.remove(frame)
        self._box.removeWidget(frame)
        frame.hide()
        frame.deleteLater()

    def _up(self, frame: QWidget) -> None:
        at = self.rows.index(frame)
        if at > 0:
            self.rows[at - 1 : at + 1] = [frame, self.rows[at - 1]]
            self._box.removeWidget(frame)
            self._box.insertWidget(at - 1, frame)
            self.changed.emit()

    def _remove(self, frame: QWidget) -> None:
        self._drop(frame)
        self.changed.emit()

    def _added(self) -> None:
        raise NotImplementedError

    def columns_in_use(self) -> list[str]:
        """The columns that entries name already."""
        return []

    def _choose_columns(self) -> None:
        menu = self.columns_menu()
        menu.exec(self.pick.mapToGlobal(self.pick.rect().bottomLeft()))

    def columns_menu(self) -> QMenu:
        """All columns of the input; those in use are checked."""
        menu = QMenu(self)
        value = self._column_value()
        schema = self.context.columns(value.port) if value else None
        used = {name.lower() for name in self.columns_in_use()}
        if not schema:
            menu.addAction(tr("The columns are not known yet")).setEnabled(False)
            return menu
        every = menu.addAction(tr("All of them"))
        every.triggered.connect(lambda: self.take_columns(list(schema)))
        menu.addSeparator()
        for name, kind in schema.items():
            action = menu.addAction(f"{name}    {kind}")
            action.setCheckable(True)
            action.setChecked(name.lower() in used)
            action.toggled.connect(lambda on, name=name: self.toggle_column(name, on))
        return menu

    def take_columns(self, names: list[str]) -> None:
        """Make an entry of each column."""
        for name in names:
            self.toggle_column(name, True)

    def toggle_column(self, name: str, wanted: bool) -> None:
        """Make an entry of a column, or remove it."""


class ListEditor(_Rows):
    """A list; its entries keep their order."""

    def __init__(self, value: Value, context: Context, place: str, default: Any = None) -> None:
        assert value.item is not None
        self.item = value.item
        self.editors: dict[QWidget, ValueEditor] = {}
        super().__init__(value, context, place, default)

    def _column_value(self) -> Value | None:
        if self.item.kind == "column":
            return self.item
        if self.item.kind == "group" and self.item.fields and self.item.fields[0].value.kind == "column":
            others = self.item.fields[1:]
            return self.item.fields[0].value if not any(spec.required for spec in others) else None
        return None

    def _row(self, value: Any) -> None:
        from designer.properties.editors import editor_for

        editor = editor_for(self.item, self.context, f"{self.place}[{len(self.rows)}]")
        editor.show_value(value)
        editor.changed.connect(self.changed)
        editor.entered.connect(lambda: self._next(editor))
        self.editors[self._frame([editor], self.item.kind == "group")] = editor

    def _next(self, editor: ValueEditor) -> None:
        """Enter in a row: on to the next one, which is made where there is none."""
        at = next((index for index, row in enumerate(self.rows) if self.editors[row] is editor), -1)
        if at + 1 < len(self.rows):
            self.editors[self.rows[at + 1]].focus_on([])
        else:
            self._added()

    def _added(self) -> None:
        self._row(ABSENT)
        self.changed.emit()
        self.editors[self.rows[-1]].focus_on([])

    def value(self) -> Any:
        found = [self.editors[row].value() for row in self.rows]
        empty: Any = {} if self.item.kind == "group" else ""
        return [empty if value is ABSENT else value for value in found] or ABSENT

    def show_value(self, value: Any) -> None:
        if same(self.value(), value):
            return
        wanted = value if isinstance(value, list) else [] if value in (ABSENT, None) else [value]
        while len(self.rows) > len(wanted):
            self._drop(self.rows[-1])
        for index, item in enumerate(wanted):
            if index < len(self.rows):
                self.editors[self.rows[index]].show_value(item)
            else:
                self._row(item)

    def columns_in_use(self) -> list[str]:
        found = self.value()
        names = [] if found is ABSENT else found
        first = self.item.fields[0].name if self.item.kind == "group" else ""
        return [str(name.get(first, "")) if isinstance(name, dict) else str(name) for name in names]

    def toggle_column(self, name: str, wanted: bool) -> None:
        used = [one.lower() for one in self.columns_in_use()]
        if wanted and name.lower() not in used:
            self._row({self.item.fields[0].name: name} if self.item.kind == "group" else name)
            self.changed.emit()
        elif not wanted and name.lower() in used:
            self._remove(self.rows[used.index(name.lower())])

    def refresh(self) -> None:
        for editor in self.editors.values():
            if editor.parent() is not None:
                editor.refresh()

    def _drop(self, frame: QWidget) -> None:
        super()._drop(frame)
        self.editors.pop(frame, None)

    def focus_on(self, steps: list[str | int]) -> None:
        if steps and isinstance(steps[0], int) and steps[0] < len(self.rows):
            self.editors[self.rows[steps[0]]].focus_on(steps[1:])
        elif self.rows:
            self.editors[self.rows[0]].focus_on([])
        else:
            self.add.setFocus()


class MappingEditor(_Rows):
    """Names with what stands for them."""

    def __init__(self, value: Value, context: Context, place: str, default: Any = None) -> None:
        assert value.item is not None
        assert value.key is not None
        self.item, self.key = value.item, value.key
        self.editors: dict[QWidget, tuple[ValueEditor, ValueEditor]] = {}
        super().__init__(value, context, place, default)

    def _column_value(self) -> Value | None:
        return self.key if self.key.kind == "column" else None

    def _row(self, name: Any, value: Any) -> None:
        from designer.properties.editors import editor_for

        key = editor_for(self.key, self.context, f"{self.place}.key")
        item = editor_for(self.item, self.context, f"{self.place}.{name if name is not ABSENT else ''}")
        key.show_value(name)
        item.show_value(value)
        for editor in (key, item):
            editor.changed.connect(self.changed)
        if self.item.kind in ("group", "expression"):
            both = QWidget()
            column = QVBoxLayout(both)
            column.setContentsMargins(0, 0, 0, 0)
            column.setSpacing(4)
            column.addWidget(key)
            column.addWidget(item)
            frame = self._frame([both], True)
        else:
            frame = self._frame([key, item], False)
        self.editors[frame] = (key, item)

    def _added(self) -> None:
        self._row(ABSENT, ABSENT)
        self.editors[self.rows[-1]][0].focus_on([])

    def value(self) -> Any:
        result: dict[str, Any] = {}
        for row in self.rows:
            key, item = self.editors[row]
            name, value = key.value(), item.value()
            if name is not ABSENT and str(name) not in result:
                result[str(name)] = ({} if self.item.kind == "group" else "") if value is ABSENT else value
        return result or ABSENT

    def show_value(self, value: Any) -> None:
        if same(self.value(), value):
            return
        while self.rows:
            self._drop(self.rows[-1])
        for name, item in value.items() if isinstance(value, dict) else ():
            self._row(name, item)

    def columns_in_use(self) -> list[str]:
        found = self.value()
        return [] if found is ABSENT else list(found)

    def toggle_column(self, name: str, wanted: bool) -> None:
        used = [one.lower() for one in self.columns_in_use()]
        if wanted and name.lower() not in used:
            self._row(name, ABSENT)
            self.changed.emit()
        elif not wanted and name.lower() in used:
            self._remove(self.rows[used.index(name.lower())])

    def refresh(self) -> None:
        for key, item in self.editors.values():
            key.refresh()
            item.refresh()

    def _drop(self, frame: QWidget) -> None:
        super()._drop(frame)
        self.editors.pop(frame, None)

    def focus_on(self, steps: list[str | int]) -> None:
        for row in self.rows:
            key, item = self.editors[row]
            if steps and str(key.value()) == str(steps[0]):
                item.focus_on(steps[1:])
                return
        if self.rows:
            self.editors[self.rows[0]][0].focus_on([])
        else:
            self.add.setFocus()

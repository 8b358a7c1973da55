"""The form of one node: its title and id, and a field for each setting of its operator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QPlainTextEdit, QVBoxLayout, QWidget

from designer.document import changes
from designer.document.edits import ABSENT, Edit
from designer.document.places import steps
from designer.editor import Editor
from designer.properties.columns import ColumnsTable
from designer.properties.context import Context
from designer.properties.editors import editor_for
from designer.properties.editors.base import ValueEditor
from designer.properties.fields import FieldSpec, fields_of, top_setting
from designer.properties.renaming import RenameWatch
from designer.text import tr
from designer.theme.icons import operator_pixmap
from designer.theme.theme import theme
from designer.widgets import label
from engine.model.inference import Scope
from engine.model.problems import Level
from engine.model.types import Schema


class NodeForm(QWidget):
    """Edits one node. Every change is a step of the undo stack at once."""

    asked_lineage = Signal(str, str, str)  # node, port, column
    renamed = Signal(object)  # a source's column has another name: `Renamed`, or None where it has not

    def __init__(self, editor: Editor, id_: str) -> None:
        super().__init__()
        self.editor = editor
        self.id = id_
        document = editor.document
        node = document.workflow.nodes[id_]
        self.kind = document.catalogue.get(node.operator)
        self.operator = node.operator
        self.editors: dict[str, ValueEditor] = {}
        self.wrong: dict[str, QLabel] = {}
        self._own = False  # the change under way comes from here
        self.watch = RenameWatch(editor, id_)
        self.context = Context(self._columns, self._scope, self._folder, self._names)
        self.layout_ = QVBoxLayout(self)
        self.layout_.setContentsMargins(14, 12, 14, 16)
        self.layout_.setSpacing(4)
        self._build_head()
        self.general = label("", "wrong", wrap=True)
        self.layout_.addWidget(self.general)
        if self.kind is not None:
            for spec in fields_of(self.kind):
                self._build_field(spec)
        self._build_foot()
        self.layout_.addStretch(1)
        self.take_over()
        self.refresh()

    # -- building

    def _build_head(self) -> None:
        head = QHBoxLayout()
        picture = QLabel()
        family = self.kind.family if self.kind else ""
        picture.setPixmap(operator_pixmap(self.operator, family, theme().accent, 56).scaled(28, 28))
        head.addWidget(picture)
        words = QVBoxLayout()
        words.setSpacing(0)
        words.addWidget(label(self.kind.title if self.kind else self.operator, "heading"))
        about = self.kind.category.value if self.kind else tr("There is no operator of this name.")
        words.addWidget(label(about, "muted"))
        head.addLayout(words, 1)
        self.layout_.addLayout(head)
        if self.kind is not None:
            summary = " ".join((self.kind.__doc__ or "").split())
            self.layout_.addWidget(label(summary, "muted", wrap=True))
        self.title = QLineEdit()
        self.title.setAccessibleName(tr("Title"))
        self.title.textEdited.connect(
            lambda text: self._push(self._merged(changes.set_title(self.editor.document, self.id, text), "title"))
        )
        self.ident = QLineEdit()
        self.ident.setAccessibleName(tr("Id"))
        self.ident.editingFinished.connect(self._change_id)
        for text, widget in ((tr("Title"), self.title), (tr("Id"), self.ident)):
            row = QHBoxLayout()
            caption = label(text, "muted")
            caption.setFixedWidth(46)
            row.addWidget(caption)
            row.addWidget(widget, 1)
            self.layout_.addLayout(row)
        self.layout_.addSpacing(6)

    def _build_field(self, spec: FieldSpec) -> None:
        caption = label(f"{spec.label} *" if spec.required else spec.label, "heading")
        self.layout_.addSpacing(8)
        self.layout_.addWidget(caption)
        if spec.description:
            self.layout_.addWidget(label(spec.description, "muted", wrap=True))
        editor = editor_for(spec.value, self.context, spec.name, spec.default)
        editor.changed.connect(lambda name=spec.name: self._changed(name))
        caption.setBuddy(editor)
        self.layout_.addWidget(editor)
        wrong = label("", "wrong", wrap=True)
        wrong.hide()
        self.layout_.addWidget(wrong)
        self.editors[spec.name], self.wrong[spec.name] = editor, wrong

    def _build_foot(self) -> None:
        self.layout_.addSpacing(14)
        self.layout_.addWidget(label(tr("Remark"), "heading"))
        self.remark = QPlainTextEdit()
        self.remark.setAccessibleName(tr("Remark"))
        self.remark.setFixedHeight(56)
        self.remark.setTabChangesFocus(True)
        self.remark.textChanged.connect(self._remarked)
        self.layout_.addWidget(self.remark)
        self.columns = ColumnsTable()
        self.columns.asked.connect(lambda port, column: self.asked_lineage.emit(self.id, port, column))
        self.layout_.addWidget(self.columns)

    # -- from the document

    def take_over(self) -> None:
        """Show the node as it is now."""
        node = self.editor.document.workflow.nodes.get(self.id)
        if node is None:
            return
        if self.title.text() != (node.title or ""):
            self.title.setText(node.title or "")
        self.title.setPlaceholderText(self.id)
        if not self.ident.hasFocus():
            self.ident.setText(self.id)
        self._own = True
        try:
            if self.remark.toPlainText() != (node.note or ""):
                self.remark.setPlainText(node.note or "")
            for name, editor in self.editors.items():
                editor.show_value(node.settings.get(name, ABSENT))
        finally:
            self._own = False

    def on_edit(self, edit: Edit) -> bool:
        """Follow an edit of the document; False where this form no longer fits its node."""
        node = self.editor.document.workflow.nodes.get(self.id)
        if node is None or node.operator != self.operator:
            return False
        if not self._own and self.id in edit.keys("nodes"):
            self.take_over()
        return True

    def refresh(self) -> None:
        """Take over what the latest analysis says: columns, types, problems."""
        for editor in self.editors.values():
            editor.refresh()
        by_field: dict[str, list[str]] = {}
        rest: list[str] = []
        analysis = self.editor.analysis
        for problem in analysis.by_node.get(self.id, ()):
            name = top_setting(problem.setting)
            text = problem.message if problem.level is Level.ERROR else tr("Warning: {0}", problem.message)
            if name in self.wrong:
                by_field.setdefault(str(name), []).append(text)
            else:
                rest.append(text)
        for name, wrong in self.wrong.items():
            wrong.setText("\n".join(by_field.get(name, ())))
            wrong.setVisible(name in by_field)
        self.general.setText("\n".join(rest))
        self.general.setVisible(bool(rest))
        ports = self.editor.document.ports.of(self.id)
        self.columns.show_columns(
            [(port.name, analysis.schema(self.id, port.name)) for port in ports.outputs] if ports.outputs else []
        )

    def go_to(self, place: str) -> None:
        """Put the cursor into the field that a problem names."""
        where = list(steps(place))
        editor = self.editors.get(str(where[0])) if where else None
        if editor is not None:
            editor.focus_on(where[1:])

    # -- to the document

    def _push(self, edit: Edit) -> None:
        self._own = True
        try:
            self.editor.push(edit)
        finally:
            self._own = False

    def _merged(self, edit: Edit, what: str) -> Edit:
        return Edit(edit.label, edit.cells, edit.words, f"{what} {self.id}")

    def _changed(self, name: str) -> None:
        if not self._own:
            value: Any = self.editors[name].value()
            self._push(changes.set_setting(self.editor.document, self.id, name, value))
            if name == "columns":
                self.renamed.emit(self.watch.found())

    def _remarked(self) -> None:
        if not self._own:
            self._push(changes.set_remark(self.editor.document, self.id, self.remark.toPlainText()))

    def _change_id(self) -> None:
        wanted = self.ident.text().strip()
        nodes = self.editor.document.workflow.nodes
        if wanted == self.id or self.id not in nodes:
            return
        new = changes.free_id(wanted, set(nodes) - {self.id}) if wanted else self.id
        if new != self.id and new not in nodes:
            old, self.id = self.id, new  # before the edit, so that the form stays with its node
            QTimer.singleShot(0, self.take_over)
            self.editor.push(changes.change_id(self.editor.document, old, new))
        else:
            self.ident.setText(self.id)

    # -- what editors ask

    def _columns(self, port: str) -> Schema | None:
        inputs = self.editor.analysis.inputs(self.id)
        return inputs.of(port) if inputs.connected(port) else inputs.first()

    def _scope(self, place: str, port: str) -> Scope:
        return self.editor.analysis.scope(self.id, place, port, self.kind)

    def _folder(self) -> Path:
        path = self.editor.document.path
        return path.parent if path else Path.cwd()

    def _names(self) -> list[str]:
        workflow = self.editor.document.workflow
        return [f"${{{name}}}" for name in (*workflow.parameters, *workflow.roots)]

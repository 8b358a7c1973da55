"""The run settings that one seldom changes, and the workflow's parameters: a small window below the run bar."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QDoubleValidator, QIntValidator
from PySide6.QtWidgets import QFormLayout, QFrame, QHBoxLayout, QLabel, QLineEdit, QPushButton, QVBoxLayout, QWidget

from designer.text import tr
from designer.widgets import label
from engine.errors import PapilioError
from engine.model.workflow import Workflow
from engine.model.yamldata import read_yaml
from engine.schedule.settings import ScheduleSettings

# Name → what it is called, its unit, whether it is a whole number, and the backends that know it.
FIELDS = {
    "pack_rows": ("Rows in a pack", "rows", True, ("spark", "simulated")),
    "queue_packs": ("Queue capacity", "packs", True, ("spark", "simulated")),
    "slot_ms": ("Time slot of mm", "ms", False, ("spark", "simulated")),
    "theta": ("Theta of mixed", "activities", True, ("spark", "simulated")),
    "queue_memory_mb": ("Memory of all packs", "MB", True, ("spark",)),
    "degree": ("Pipelines in a tree", "or auto", True, ("spark",)),
    "master": ("Spark master", "", False, ("spark",)),
    "lasts_seconds": ("Takes about", "s to watch", False, ("simulated",)),
}
TEXTS = ("degree", "master")


class MoreSettings(QFrame):
    """Pack rows, queue capacity, slot, theta, master and the like. An empty field is the backend's default."""

    changed = Signal()
    save_asked = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self.setObjectName("popup")
        self.setMinimumWidth(380)
        self.fields: dict[str, QLineEdit] = {}
        self.parameters: dict[str, QLineEdit] = {}
        self._rows: dict[str, tuple[QWidget, QWidget]] = {}
        layout = QVBoxLayout(self)
        layout.setContentsMargins(16, 14, 16, 14)
        layout.setSpacing(8)
        layout.addWidget(label(tr("Run settings"), "heading"))
        self._form = QFormLayout()
        self._form.setLabelAlignment(Qt.AlignmentFlag.AlignLeft)
        for name, (title, unit, whole, _) in FIELDS.items():
            self.fields[name] = field = QLineEdit()
            field.setAccessibleName(tr(title))
            if name not in TEXTS:
                field.setValidator(QIntValidator(0, 2**31 - 1, field) if whole else QDoubleValidator(field))
            field.editingFinished.connect(self.changed)
            self._add_row(name, tr(title), field, tr(unit) if unit else "")
        layout.addLayout(self._form)
        self._heading = label(tr("Parameters of the workflow"), "heading")
        layout.addSpacing(6)
        layout.addWidget(self._heading)
        self._parameter_form = QFormLayout()
        layout.addLayout(self._parameter_form)
        save = QPushButton(tr("Save as a preset…"))
        save.clicked.connect(self.save_asked)
        row = QHBoxLayout()
        row.addStretch(1)
        row.addWidget(save)
        layout.addSpacing(4)
        layout.addLayout(row)

    def _add_row(self, name: str, title: str, field: QLineEdit, unit: str) -> None:
        holder = QWidget()
        inner = QHBoxLayout(holder)
        inner.setContentsMargins(0, 0, 0, 0)
        inner.addWidget(field, 1)
        said = label(unit, "muted")
        said.setFixedWidth(74)
        inner.addWidget(said)
        heading = QLabel(title)
        self._form.addRow(heading, holder)
        self._rows[name] = (heading, holder)

    # -- settings

    def show_backend(self, backend: str) -> None:
        """Offer what a backend knows, with its defaults."""
        defaults: Any = ScheduleSettings()
        if backend == "simulated":
            from engine.schedule.costs import SimulationSettings  # the simulator, which the first window can do without

            defaults = SimulationSettings()
        for name, (_, _, _, backends) in FIELDS.items():
            for widget in self._rows[name]:
                widget.setVisible(backend in backends)
            known = {"master": "local[*]", "queue_memory_mb": tr("a quarter of what is free"),
                     "lasts_seconds": tr("as the slider says")}.get(name)  # fmt: skip
            default = known if known is not None else getattr(defaults, name, "")
            self.fields[name].setPlaceholderText(
                f"{default:,}"
                if isinstance(default, int)
                else f"{default:g}"
                if isinstance(default, float)
                else default
            )
        self.adjustSize()

    def settings(self, backend: str) -> dict[str, Any]:
        """What is filled in and the backend knows."""
        found: dict[str, Any] = {}
        for name, (_, _, whole, backends) in FIELDS.items():
            text = self.fields[name].text().strip()
            if not text or backend not in backends:
                continue
            if name == "master" or (name == "degree" and not text.isdecimal()):
                found[name] = text
            else:
                found[name] = int(text) if whole else float(text)
        return found

    def show_settings(self, settings: dict[str, Any]) -> None:
        """Fill the fields in; those that are not named are empty."""
        for name, field in self.fields.items():
            value = settings.get(name)
            field.setText("" if value is None else f"{value:g}" if isinstance(value, float) else str(value))

    # -- parameters

    def show_parameters(self, workflow: Workflow | None) -> None:
        """Offer the parameters of a workflow; what was typed for one of the same name stays."""
        typed = {name: field.text() for name, field in self.parameters.items()}
        while self._parameter_form.rowCount():
            self._parameter_form.removeRow(0)
        self.parameters = {}
        for name, parameter in (workflow.parameters if workflow else {}).items():
            self.parameters[name] = field = QLineEdit(typed.get(name, ""))
            default = getattr(parameter, "default", parameter)
            field.setPlaceholderText("" if default is None else str(default))
            field.setAccessibleName(name)
            self._parameter_form.addRow(name, field)
        self._heading.setVisible(bool(self.parameters))
        self.adjustSize()

    def values(self) -> dict[str, Any]:
        """The parameters that were given a value, read as the command line reads `--param`."""
        found = {}
        for name, field in self.parameters.items():
            text = field.text().strip()
            if text:
                try:
                    found[name] = read_yaml(text, name)[0]
                except PapilioError:
                    found[name] = text  # no YAML: then it is meant as it stands
        return found

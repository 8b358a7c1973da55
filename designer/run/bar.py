"""The run bar: how to run, the buttons that drive a run, and how it stands."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import QPoint, QSize, Qt, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QComboBox, QLabel, QSizePolicy, QSlider, QToolBar, QToolButton, QWidget

from designer.run.more import MoreSettings
from designer.run.presets import Presets
from designer.text import tr
from designer.theme.icons import give_icon
from designer.theme.theme import theme, themes
from designer.widgets import enter, label
from engine.model.workflow import Workflow
from engine.schedule.policy import ELASTIC, MIXED, policies

SLOWEST, FASTEST = 0.01, 1000.0  # simulated seconds in one of ours; the slider's last step is as fast as it goes
STEPS = 100
WORDS = {
    "idle": "Nothing runs", "starting": "Starting", "running": "Running", "paused": "Paused", "done": "Done",
    "failed": "Failed", "cancelled": "Cancelled", "interrupted": "Interrupted", "replay": "Replay",
}  # fmt: skip
COLORS = {
    "starting": "accent", "running": "accent", "paused": "warning", "done": "ok", "failed": "error",
    "cancelled": "muted", "interrupted": "error", "replay": "accent",
}  # fmt: skip
BUTTONS = ("run.run", "run.pause", "run.step", "run.resume", "run.cancel")


class RunBar(QToolBar):
    """Presets, policy, granularity and backend; Run, Pause, Step, Resume, Cancel; speed; state."""

    changed = Signal()  # the settings
    speed_changed = Signal(object)  # simulated seconds in one of ours, None is as fast as it goes

    def __init__(self, presets: Presets, actions: Mapping[str, QAction], parent: QWidget) -> None:
        super().__init__(tr("Run"), parent)
        self.setObjectName("run")
        self.setMovable(False)
        self.setIconSize(QSize(18, 18))
        self.presets = presets
        self._showing = False
        self.preset = self._choice(tr("Preset"), [], 150)
        self.policy = self._choice(tr("Policy: who is next"), [*sorted(policies()), MIXED, ELASTIC], 84)
        self.granularity = self._choice(
            tr("Granularity: what is scheduled as one"), ["fused", "tree", "subflow", "operator"], 100
        )
        self.backend = self._choice(tr("Backend: run it, or simulate it"), ["spark", "simulated"], 104)
        self.more = MoreSettings(self)
        self.more.changed.connect(self._edited)
        self.more_button = QToolButton()
        give_icon(self.more_button, "run_settings")
        self.more_button.setToolTip(tr("Pack rows, queue capacity, slot, theta, master, parameters"))
        self.more_button.setAccessibleName(tr("More run settings"))
        self.more_button.clicked.connect(self.show_more)
        for widget in (self.preset, None, self.policy, self.granularity, self.backend, self.more_button, None):
            if widget is None:
                self.addSeparator()
            else:
                self.addWidget(widget)
        for id_ in BUTTONS:
            self.addAction(actions[id_])
            button = self.widgetForAction(actions[id_])
            if isinstance(button, QToolButton) and id_ == "run.run":
                button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setRange(0, STEPS)
        self.slider.setFixedWidth(110)
        self.slider.setAccessibleName(tr("Speed of a simulated run"))
        self.slider.setToolTip(tr("Speed: simulated seconds in one of ours"))
        self.slider.valueChanged.connect(self._slid)
        self.speed_label = QLabel()
        self.speed_label.setFixedWidth(58)
        self._speed_parts = [self.addSeparator(), self.addWidget(self.slider), self.addWidget(self.speed_label)]
        space = QWidget()
        space.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self.addWidget(space)
        self.dot = QLabel("●")
        self.state = label("", "muted")
        self.state.setContentsMargins(4, 0, 8, 0)
        self.addWidget(self.dot)
        self.addWidget(self.state)
        self.preset.activated.connect(lambda _: self.choose(self.preset.currentText()))
        for box in (self.policy, self.granularity, self.backend):
            box.currentTextChanged.connect(self._edited)
        themes().changed.connect(self._restyle)
        self.fill_presets()
        self.choose("Fast")
        self.show_state("idle")

    def _choice(self, tip: str, items: list[str], width: int) -> QComboBox:
        box = QComboBox()
        box.addItems(items)
        box.setToolTip(tip)
        box.setAccessibleName(tip)
        box.setMinimumWidth(width)
        return box

    # -- settings

    def fill_presets(self) -> None:
        """Offer all presets there are."""
        current = self.preset.currentText()
        self.preset.clear()
        for one in self.presets.all.values():
            self.preset.addItem(one.name)
            self.preset.setItemData(self.preset.count() - 1, one.about, Qt.ItemDataRole.ToolTipRole)
        self.preset.setCurrentIndex(self.preset.findText(current))
        self.preset.setPlaceholderText(tr("Own settings"))

    def choose(self, name: str) -> None:
        """Take a preset's settings."""
        self.show_settings(self.presets.all[name].settings)

    def settings(self) -> dict[str, Any]:
        """How to run, as the engine takes it."""
        backend = self.backend.currentText()
        found = {
            "backend": backend,
            "granularity": self.granularity.currentText(),
            "policy": self.policy.currentText(),
            **self.more.settings(backend),
        }
        if backend == "simulated" and "lasts_seconds" not in found and self.speed is not None:
            found["speed"] = self.speed
        return found

    def show_settings(self, settings: Mapping[str, Any]) -> None:
        """Show settings, of a preset or of a run."""
        self._showing = True
        self.backend.setCurrentText(str(settings.get("backend", "spark")))
        self.granularity.setCurrentText(str(settings.get("granularity", "fused")))
        self.policy.setCurrentText(str(settings.get("policy", MIXED)))
        self.more.show_settings(dict(settings))
        self.show_speed(settings.get("speed"))
        self._showing = False
        self._edited()

    def _edited(self) -> None:
        if self._showing:
            return
        backend = self.backend.currentText()
        if backend == "simulated" and self.granularity.currentText() == "fused":
            self.granularity.setCurrentText("operator")  # fused units pass no packs; nothing would be simulated
        self.more.show_backend(backend)
        for part in self._speed_parts:
            part.setVisible(backend == "simulated")
        self.preset.setCurrentIndex(self.preset.findText(self.presets.matching(self.settings()) or ""))
        self.changed.emit()

    def show_more(self) -> None:
        """The other settings, below their button."""
        self.more.adjustSize()
        below = self.more_button.mapToGlobal(QPoint(0, self.more_button.height() + 6))
        self.more.move(below)
        self.more.show()
        enter(self.more)

    def enter(self) -> None:
        """Put the keyboard into the first box; Tab goes on to the next."""
        self.show()
        self.preset.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def show_workflow(self, workflow: Workflow | None) -> None:
        """Offer the parameters of the workflow in front."""
        self.more.show_parameters(workflow)

    # -- speed

    @property
    def speed(self) -> float | None:
        """Simulated seconds in one of ours; None is as fast as it goes."""
        value = self.slider.value()
        if value >= STEPS:
            return None
        return float(f"{SLOWEST * (FASTEST / SLOWEST) ** (value / (STEPS - 1)):.2g}")

    def show_speed(self, speed: float | None) -> None:
        """Set the slider without telling anyone."""
        self.slider.blockSignals(True)
        if speed is None:
            self.slider.setValue(STEPS)
        else:
            share = math.log(min(max(speed, SLOWEST), FASTEST) / SLOWEST) / math.log(FASTEST / SLOWEST)
            self.slider.setValue(round(share * (STEPS - 1)))
        self.slider.blockSignals(False)
        self._show_speed(speed)

    def _show_speed(self, speed: float | None) -> None:
        self.speed_label.setText(tr("max") if speed is None else f"{speed:,.3g} ×")

    def _slid(self) -> None:
        self._show_speed(self.speed)
        self.more.fields["lasts_seconds"].clear()  # the slider was moved: now it says
        self.speed_changed.emit(self.speed)
        self._edited()

    # -- state

    def show_state(self, state: str, note: str = "") -> None:
        """How the run stands."""
        self._state = state
        text = tr(WORDS[state])
        self.state.setText(f"{text}  {note}" if note else text)
        self._restyle()

    def _restyle(self) -> None:
        colors = theme()
        name = COLORS.get(self._state, "faint")
        self.dot.setStyleSheet(f"color: {getattr(colors, name).name()}; font-size: 15px;")
        self.slider.setStyleSheet(
            f"QSlider::groove:horizontal {{ height: 4px; border-radius: 2px; background: {colors.border.name()}; }}"
            f"QSlider::sub-page:horizontal {{ border-radius: 2px; background: {colors.accent.name()}; }}"
            f"QSlider::handle:horizontal {{ width: 14px; margin: -5px 0; border-radius: 7px; "
            f"background: {colors.accent.name()}; }}"
        )

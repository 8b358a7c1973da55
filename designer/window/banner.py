"""A line above the canvas that tells something and offers what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton

Choices = Sequence[tuple[str, Callable[[], None]]]


class Banner(QFrame):
    """Shown until one of its buttons is pressed. It never blocks the window.

    Several offers wait for each other, the latest in front; none ends another.
    """

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("card")
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(14, 8, 14, 8)
        self.text = QLabel()
        self.text.setWordWrap(True)
        self._row.addWidget(self.text, 1)
        self.buttons: list[QPushButton] = []
        self._offers: dict[str, tuple[str, Choices]] = {}  # by what each is about
        self.hide()

    def offer(self, about: str, text: str, choices: Choices) -> None:
        """Show a text with buttons, instead of what was offered about the same."""
        self._offers.pop(about, None)
        self._offers[about] = (text, choices)
        self._show()

    def take_back(self, about: str) -> None:
        """The offer no longer holds."""
        if self._offers.pop(about, None) is not None:
            self._show()

    def _show(self) -> None:
        for button in self.buttons:
            self._row.removeWidget(button)
            button.deleteLater()
        self.buttons = []
        if not self._offers:
            self.hide()
            return
        about, (text, choices) = next(reversed(self._offers.items()))
        self.text.setText(text)
        for number, (label, act) in enumerate(choices):
            button = QPushButton(label)
            button.setDefault(number == 0)
            button.clicked.connect(lambda _=False, act=act: self._done(about, act))
            self._row.addWidget(button)
            self.buttons.append(button)
        self.show()

    def _done(self, about: str, act: Callable[[], None]) -> None:
        self.take_back(about)
        act()

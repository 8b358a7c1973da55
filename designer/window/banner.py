"""A line above the canvas that tells something and offers what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton


class Banner(QFrame):
    """Shown until one of its buttons is pressed. It never blocks the window."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("card")
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(14, 8, 14, 8)
        self.text = QLabel()
        self.text.setWordWrap(True)
        self._row.addWidget(self.text, 1)
        self.buttons: list[QPushButton] = []
        self.hide()

    def tell(self, text: str, choices: Sequence[tuple[str, Callable[[], None]]]) -> None:
        """Show a text with buttons."""
        for button in self.buttons:
            self._row.removeWidget(button)
            button.deleteLater()
        self.buttons = []
        self.text.setText(text)
        for number, (label, act) in enumerate(choices):
            button = QPushButton(label)
            button.setDefault(number == 0)
            button.clicked.connect(lambda _=False, act=act: self._done(act))
            self._row.addWidget(button)
            self.buttons.append(button)
        self.show()

    def _done(self, act: Callable[[], None]) -> None:
        self.hide()
        act()

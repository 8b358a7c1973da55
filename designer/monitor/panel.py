"""What all panels share: a place in the window, a headline, fonts for the back row, and being drawn when seen."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from functools import cache
from html import escape
from typing import ClassVar

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from designer.monitor.colours import Colours
from designer.monitor.player import Player
from designer.text import tr
from designer.theme.theme import theme, themes
from designer.widgets import take_no_room
from engine.recording import RunRecording

NORMAL, PROJECTOR = 1.0, 1.6  # how large everything is
BOLD = QFont.Weight.DemiBold


class Headline(QWidget):
    """Large numbers with what they are, painted by hand: they change with every step of the timeline."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: tuple[tuple[str, str], ...] = ()
        self._fonts = QFont(), QFont()
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)  # never makes its window wider

    def show_parts(self, parts: Sequence[tuple[str, str]], large: QFont, small: QFont) -> None:
        """As many of them as there is room for; the tooltip has them all."""
        if (large, small) != self._fonts:
            self._fonts = large, small
            self.updateGeometry()
        self.parts = tuple(parts)
        self.setAccessibleName(self.text())
        self.setToolTip("\n".join(f"{value} {what}" for value, what in parts))
        self.update()

    def text(self) -> str:
        """All that it tells."""
        return ", ".join(f"{value} {what}" for value, what in self.parts)

    def sizeHint(self) -> QSize:
        return QSize(0, QFontMetrics(self._fonts[0]).height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, colors = QPainter(self), theme()
        large, small = (QFontMetrics(font) for font in self._fonts)
        x, y = 0, (self.height() + large.ascent() - large.descent()) // 2
        for value, what in self.parts:
            number, words = large.horizontalAdvance(value), small.horizontalAdvance(f" {what}   ")
            if x and x + number + words > self.width():
                break
            painter.setFont(self._fonts[0])
            painter.setPen(colors.text)
            painter.drawText(x, y, value)
            painter.setFont(self._fonts[1])
            painter.setPen(colors.muted)
            painter.drawText(x + number, y, f" {what}")
            x += number + words


class Panel(QWidget):
    """One panel. It reads the player's recording and draws itself; it decides nothing."""

    name: ClassVar[str]
    title: ClassVar[str]
    order: ClassVar[int] = 50  # of docks, from the left
    what: ClassVar[str] = ""  # it shows, in a tooltip

    def __init__(self, player: Player) -> None:
        super().__init__()
        self.player = player
        self.scale = NORMAL
        self.colours = Colours({}, {})
        self._coloured: tuple[object, ...] = ()  # what the colours are of
        self._headed: tuple[object, ...] = ()  # what the headline tells, and how
        self.headline = Headline()
        self.tools = QHBoxLayout()
        self.tools.setSpacing(6)
        head = QHBoxLayout()
        head.setContentsMargins(14, 8, 10, 2)
        head.addWidget(self.headline, 1)
        head.addLayout(self.tools)
        self.body = QVBoxLayout(self)
        self.body.setContentsMargins(0, 0, 0, 0)
        self.body.setSpacing(0)
        self.body.addLayout(head)
        self.key = QLabel()  # what the colours stand for
        self.key.setTextFormat(Qt.TextFormat.RichText)
        self.key.setWordWrap(True)
        take_no_room(self.key)
        self.key.setContentsMargins(14, 0, 14, 4)
        self.key.hide()
        self.body.addWidget(self.key)
        self.setToolTip(self.what)
        self._stale = True
        self.headline_of()
        player.opened.connect(self._begin)
        player.ticked.connect(self._ask)
        themes().changed.connect(self._restyle)

    @property
    def recording(self) -> RunRecording | None:
        """The run that is shown, once it says what it is."""
        recording = self.player.recording
        return recording if recording is not None and recording.started is not None else None

    def headline_of(self, *parts: tuple[str, str]) -> None:
        """Large numbers with what they are."""
        headed = (parts, self.scale, theme().name)
        if headed != self._headed:
            self._headed = headed
            self.headline.show_parts(parts, self.font_of(15, BOLD), self.font_of(12))

    def key_of(self, *entries: tuple[QColor, str]) -> None:
        """What the colours stand for, in words."""
        self.key.setVisible(bool(entries))
        self.key.setText(key_text(entries, self.scale))

    def set_scale(self, scale: float) -> None:
        """Fonts and lines for a desk, or for the back row."""
        self.scale = scale
        self.restyle()
        self.draw_again()

    def font_of(self, pixels: int, weight: QFont.Weight = QFont.Weight.Normal) -> QFont:
        """The program's font at a size that grows with the panel's scale."""
        font = QFont(self.font())
        font.setPixelSize(round(pixels * self.scale))
        font.setWeight(weight)
        return font

    # -- for the panels themselves

    def begin(self) -> None:
        """Another run is shown."""

    def draw(self, recording: RunRecording) -> None:
        """Draw the recording at the player's moment."""
        raise NotImplementedError

    def restyle(self) -> None:
        """Take the colours and sizes in use."""

    # -- when to draw

    def _begin(self) -> None:
        self.colours, self._coloured = Colours({}, {}), ()
        self.headline_of()
        self.key.hide()
        self.begin()
        self.draw_again()

    def _restyle(self) -> None:
        self.restyle()
        self.draw_again()

    def draw_again(self) -> None:
        """Draw once more, now if it is seen."""
        self._stale = True
        if self.isVisible():
            self._draw_if_seen()

    def _ask(self) -> None:
        if self.isVisible():
            self.player.ask(self._draw_if_seen)
        else:
            self._stale = True

    def _draw_if_seen(self) -> None:
        if not self.isVisible():
            self._stale = True
            return
        recording = self.recording
        if recording is None:
            self.headline_of(("", tr("No run is shown: F9 runs the workflow, Ctrl+H lists past runs")))
        else:
            self._stale = False
            started = recording.started
            assert started is not None
            coloured = (started, len(recording.units), len(recording.tables))
            if coloured != self._coloured:
                self._coloured = coloured
                producers = {queue: facts.get("producer", "") for queue, facts in started.queues.items()}
                self.colours = Colours(recording.places(), producers)
            self.draw(recording)

    def showEvent(self, event: object) -> None:
        if self.scale != NORMAL:
            self.restyle()  # in a window of its own the style sheet forgets the fonts
        if self._stale:
            self._draw_if_seen()

    def label_of(self, unit: str) -> str:
        """A unit as a person knows it."""
        return self.recording.title_of(unit) if self.recording is not None else unit


def key_text(entries: Sequence[tuple[QColor, str]], scale: float) -> str:
    """Colours with their words, as rich text."""
    size, text = round(12 * scale), theme().text.name()
    return " &nbsp; ".join(
        f'<span style="white-space:nowrap;font-size:{size}px;color:{text}">'
        f'<span style="color:{color.name()}">■</span>&nbsp;{escape(words).replace(" ", "&nbsp;")}</span>'
        for color, words in entries
    )


@cache
def panel_kinds() -> list[type[Panel]]:
    """Every panel there is, in the order of the docks."""
    import designer.monitor.panels as folder

    names = [info.name for info in pkgutil.iter_modules(folder.__path__)]
    modules = [importlib.import_module(f"{folder.__name__}.{name}") for name in names]
    kinds: list[type[Panel]] = [module.PANEL for module in modules if hasattr(module, "PANEL")]
    return sorted(kinds, key=lambda kind: kind.order)

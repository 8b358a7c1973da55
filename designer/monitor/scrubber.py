"""The timeline: play, pause, speed, and a strip of the whole run to scrub along."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QFont,
    QKeyEvent,
    QMouseEvent,
    QPaintEngine,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QPolygonF,
)
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLabel, QSizePolicy, QToolButton, QWidget

from designer.monitor.colours import clear
from designer.monitor.player import SPEEDS, Player
from designer.monitor.units import seconds_text
from designer.text import tr
from designer.theme.icons import action_icon
from designer.theme.theme import theme, themes
from engine.recording import RunRecording
from engine.recording.series import peaks


def speed_text(speed: float) -> str:
    """2.5 ×."""
    return f"{speed:g} ×"


def speed_of(text: str) -> float | None:
    """The speed that a person means; None where it is none."""
    try:
        speed = float(text.strip().rstrip("×x").strip().replace(",", "."))
    except ValueError:
        return None
    return speed if 0 < speed < float("inf") else None


class Strip(QWidget):
    """The run from end to end: its queue memory as a silhouette, its spills, and the moment that is shown."""

    def __init__(self, player: Player) -> None:
        super().__init__()
        self.player = player
        self._shape = QPolygonF()  # the run's memory, as long as nothing is added to it
        self._pictures: list[QPixmap] = []
        self._key: tuple[object, ...] = ()
        self.setMinimumHeight(40)
        self.setMinimumWidth(160)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setAccessibleName(tr("Timeline"))
        player.ticked.connect(self._ask)

    def _ask(self) -> None:
        self.player.ask(self.update)

    def sizeHint(self) -> QSize:
        return QSize(600, 40)

    def _frame(self) -> QRectF:
        return QRectF(self.rect()).adjusted(8, 5, -8, -5)

    def time_at(self, x: float) -> float:
        """The moment below a point."""
        frame = self._frame()
        return (x - frame.left()) / max(frame.width(), 1.0) * self.player.end

    def place_of(self, at: float) -> float:
        """Where a moment stands."""
        frame = self._frame()
        return frame.left() + frame.width() * (at / self.player.end if self.player.end else 0.0)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        colors = theme()
        frame = self._frame()
        painter.setPen(QPen(colors.border, 1))
        painter.setBrush(colors.base)
        painter.drawRoundedRect(frame, 5, 5)
        recording = self.player.recording
        if not self.player.end:
            return
        here = self.place_of(self.player.at)
        played = QRectF(frame)
        played.setRight(here)
        painter.setClipRect(frame.adjusted(1, 1, -1, -1))
        painter.fillRect(played, clear(colors.accent, 34))
        if recording is not None:
            self._paint_silhouette(painter, recording, frame, played)
            painter.setPen(QPen(colors.error, 1.4))
            for spill in recording.spills[:2000]:
                x = self.place_of(spill.time)
                painter.drawLine(QPointF(x, frame.bottom() - 6), QPointF(x, frame.bottom()))
        painter.setClipping(False)
        if recording is not None and recording.flaw is not None:
            painter.setPen(QPen(colors.error, 3))
            painter.drawLine(frame.topRight(), frame.bottomRight())
        painter.setPen(QPen(colors.accent, 2))
        painter.drawLine(QPointF(here, frame.top() - 2), QPointF(here, frame.bottom() + 2))
        painter.setPen(QPen(colors.base, 2))
        painter.setBrush(colors.accent)
        painter.drawEllipse(QPointF(here, frame.center().y()), 7, 7)
        if self.hasFocus():
            painter.setPen(QPen(colors.accent, 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(frame, 5, 5)

    def _paint_silhouette(self, painter: QPainter, recording: RunRecording, frame: QRectF, played: QRectF) -> None:
        key = (id(recording), recording.count, self.player.end, frame, theme().name, self.devicePixelRatioF())
        if key != self._key:
            self._key, self._shape = key, self._silhouette(recording, frame)
            self._pictures = [self._picture(color) for color in self._inks()]
        drawing = painter.paintEngine().type() != QPaintEngine.Type.Raster
        for part, picture, color in zip((frame, played), self._pictures, self._inks(), strict=True):
            painter.save()
            painter.setClipRect(part, Qt.ClipOperation.IntersectClip)
            if drawing:  # a file that is to have lines
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(color)
                painter.drawPolygon(self._shape)
            else:
                painter.drawPixmap(0, 0, picture)
            painter.restore()

    def _inks(self) -> tuple[QColor, QColor]:
        """Of the silhouette, and of as much of it as has been played."""
        return clear(theme().muted, 70), clear(theme().accent, 150)

    def _silhouette(self, recording: RunRecording, frame: QRectF) -> QPolygonF:
        """The memory of the queues over the whole run."""
        times = recording.snapshots["time"]
        values = recording.snapshots["bytes"][: len(times)]
        kept = peaks(values, 240)
        top = float(values.max()) if len(values) else 0.0
        if top <= 0:
            return QPolygonF()
        xs = frame.left() + frame.width() * times[kept] / self.player.end
        ys = frame.bottom() - (frame.height() - 4) * values[kept] / top
        points = [QPointF(x, y) for x, y in zip(xs.tolist(), ys.tolist(), strict=True)]
        return QPolygonF([QPointF(points[0].x(), frame.bottom()), *points, QPointF(points[-1].x(), frame.bottom())])

    def _picture(self, color: QColor) -> QPixmap:
        ratio = self.devicePixelRatioF()
        picture = QPixmap(self.size() * ratio)
        picture.setDevicePixelRatio(ratio)
        picture.fill(Qt.GlobalColor.transparent)
        painter = QPainter(picture)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(color)
        painter.drawPolygon(self._shape)
        painter.end()
        return picture

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.player.pause()
        self.player.seek(self.time_at(event.position().x()))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if event.buttons() & Qt.MouseButton.LeftButton:
            self.player.seek(self.time_at(event.position().x()))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = self.player.end / 100
        match event.key():
            case Qt.Key.Key_Left:
                self.player.seek(self.player.at - step)
            case Qt.Key.Key_Right:
                self.player.seek(self.player.at + step)
            case Qt.Key.Key_Home:
                self.player.seek(0.0)
            case Qt.Key.Key_End:
                self.player.follow()
            case Qt.Key.Key_Space:
                if self.player.playing:
                    self.player.pause()
                else:
                    self.player.play()
            case _:
                super().keyPressEvent(event)


class Scrubber(QWidget):
    """The bar below the canvas that moves through a run."""

    def __init__(self, player: Player) -> None:
        super().__init__()
        self.player = player
        self.setObjectName("scrubber")
        layout = QHBoxLayout(self)
        layout.setContentsMargins(10, 4, 10, 4)
        layout.setSpacing(4)
        self.back = self._button("step_back", tr("The decision before"), lambda: player.to_decision(-1))
        self.backwards = self._button("play_back", tr("Play backwards"), lambda: self._play(-1))
        self.play = self._button("play", tr("Play"), lambda: self._play(1))
        self.on = self._button("step_on", tr("The next decision"), lambda: player.to_decision(1))
        self.speed = QComboBox()
        self.speed.setToolTip(tr("Seconds of the run in one second of ours"))
        self.speed.setAccessibleName(tr("Speed of the replay"))
        self.speed.setEditable(True)
        self.speed.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.speed.addItems([speed_text(speed) for speed in SPEEDS])
        self.speed.activated.connect(lambda _: self._set_speed())
        typed = self.speed.lineEdit()
        assert typed is not None
        typed.editingFinished.connect(self._set_speed)
        self.strip = Strip(player)
        self.clock = QLabel()
        self.clock.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.live = self._button("live", tr("Follow the end of the run"), player.follow)
        self.live.setCheckable(True)
        for widget in (self.back, self.backwards, self.play, self.on, self.speed):
            layout.addWidget(widget)
        layout.addWidget(self.strip, 1)
        layout.addWidget(self.clock)
        layout.addWidget(self.live)
        player.ticked.connect(self._tell)
        player.changed.connect(self._tell)
        themes().changed.connect(self._restyle)
        self.scale = 1.0
        self._restyle()

    def set_scale(self, scale: float) -> None:
        """The clock for a desk, or for the back row."""
        self.scale = scale
        font = QFont(self.font())
        font.setPixelSize(round(13 * scale))
        self.clock.setFont(font)
        self.clock.setMinimumWidth(round(136 * scale))

    def _button(self, icon: str, tip: str, act: object) -> QToolButton:
        button = QToolButton()
        button.setProperty("icon_name", icon)
        button.setIconSize(QSize(18, 18))
        button.setToolTip(tip)
        button.setAccessibleName(tip)
        button.clicked.connect(act)
        return button

    def _play(self, direction: int) -> None:
        if self.player.playing == direction:
            self.player.pause()
        else:
            self.player.play(direction)

    def _set_speed(self) -> None:
        """Take the speed that was chosen or typed; what is none leaves it as it was."""
        speed = speed_of(self.speed.currentText())
        if speed is not None and speed != self.player.speed:
            self.player.set_speed(speed)
        self.speed.setEditText(speed_text(self.player.speed))

    def _restyle(self) -> None:
        for button in (self.back, self.backwards, self.play, self.on, self.live):
            button.setIcon(action_icon(button.property("icon_name")))
        self.set_scale(self.scale)  # another style sheet forgets the fonts
        self._tell()

    def _tell(self) -> None:
        player = self.player
        for button, icon, direction in ((self.play, "play", 1), (self.backwards, "play_back", -1)):
            name = "pause" if player.playing == direction else icon
            if button.property("icon_name") != name:
                button.setProperty("icon_name", name)
                button.setIcon(action_icon(name))
        self.live.setChecked(player.following)
        typed = self.speed.lineEdit()
        if typed is not None and not typed.hasFocus() and self.speed.currentText() != speed_text(player.speed):
            self.speed.setEditText(speed_text(player.speed))
        self.clock.setText(f"{seconds_text(player.at)} / {seconds_text(player.end)}")

"""Icons: drawings in one colour from `resources/icons`, painted in the colour that is asked for."""

from __future__ import annotations

from functools import cache, lru_cache
from importlib import resources

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QAbstractButton, QWidget

from designer.theme.files import drawing
from designer.theme.theme import theme


@lru_cache(maxsize=1024)
def pixmap(folder: str, name: str, color: str, size: int, family: str = "") -> QPixmap:
    """A drawing as a picture of `size` pixels in a colour."""
    picture = QPixmap(size, size)
    picture.fill(Qt.GlobalColor.transparent)
    text = drawing(folder, name, family).replace("currentColor", color)
    if text:
        painter = QPainter(picture)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        QSvgRenderer(QByteArray(text.encode())).render(painter, QRectF(0, 0, size, size))
        painter.end()
    return picture


def operator_pixmap(name: str, family: str, color: QColor, size: int) -> QPixmap:
    """An operator's icon, or its family's."""
    return pixmap("operators", name, color.name(), size, family)


def operator_icon(name: str, family: str) -> QIcon:
    """An operator's icon for lists."""
    icon = QIcon(operator_pixmap(name, family, theme().text, 64))
    icon.addPixmap(operator_pixmap(name, family, theme().accent_text, 64), QIcon.Mode.Selected)
    return icon


def action_icon(name: str, color: QColor | None = None) -> QIcon:
    """An action's icon in the theme's text colour."""
    icon = QIcon(pixmap("actions", name, (color or theme().text).name(), 64))
    icon.addPixmap(pixmap("actions", name, theme().faint.name(), 64), QIcon.Mode.Disabled)
    icon.addPixmap(pixmap("actions", name, theme().accent.name(), 64), QIcon.Mode.Normal, QIcon.State.On)
    return icon


def give_icon(button: QAbstractButton, name: str, role: str = "text") -> None:
    """An icon for a button, in the colour of a role; the window paints it anew when the theme changes."""
    button.setProperty("icon_name", name)
    button.setProperty("icon_role", role)
    button.setIcon(action_icon(name, getattr(theme(), role)))


def repaint_icons(window: QWidget) -> None:
    """All buttons of a window that were given an icon, in the colours of the theme in use."""
    for button in window.findChildren(QAbstractButton):
        name = button.property("icon_name")
        if name:
            give_icon(button, name, button.property("icon_role") or "text")


@cache
def program_icon() -> QIcon:
    """Papilio's own."""
    data = (resources.files("resources") / "icons" / "papilio.svg").read_bytes()
    picture = QPixmap(256, 256)
    picture.fill(Qt.GlobalColor.transparent)
    painter = QPainter(picture)
    QSvgRenderer(QByteArray(data)).render(painter)
    painter.end()
    return QIcon(picture)

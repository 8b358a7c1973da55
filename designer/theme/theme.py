"""The two themes: named colours from `resources/themes`, as a Qt palette and a style sheet."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QColor, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication

from designer.theme.files import read_theme

CHOICES = ("system", "light", "dark")


class Theme:
    """The colours of one theme by what they are for: `theme.node`, `theme.left`."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.name: str = data["name"]
        self.regions = [QColor(text) for text in data["regions"]]
        self._colors = {key: QColor(text) for key, text in data.items() if isinstance(text, str)}

    def __getattr__(self, name: str) -> QColor:
        try:
            return self.__dict__["_colors"][name]
        except KeyError:
            raise AttributeError(name) from None

    def wing(self, wing: str | None) -> QColor:
        """The colour of a part of the butterfly; grey where a node has none."""
        return self._colors[wing] if wing in ("left", "body", "right") else self._colors["faint"]

    def region(self, number: int) -> QColor:
        """The colour of a region of an overlay."""
        return self.regions[number % len(self.regions)]

    @property
    def is_dark(self) -> bool:
        """Whether light text stands on a dark ground."""
        return self.name == "dark"


@cache
def load_theme(name: str) -> Theme:
    """A theme by its name."""
    return Theme(read_theme(name))


class Themes(QObject):
    """The theme in use. Follows the desktop unless the person chose one."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.choice = "system"
        self.current = load_theme("light")
        self._used = False

    def start(self, choice: str) -> None:
        """Use a choice from now on, and follow the desktop where it says so."""
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._refresh)
        self.choose(choice)

    def choose(self, choice: str) -> None:
        """`system`, `light` or `dark`."""
        self.choice = choice if choice in CHOICES else "system"
        self._refresh()

    def _refresh(self) -> None:
        name = self.choice
        if name == "system":
            scheme = QGuiApplication.styleHints().colorScheme()
            name = "dark" if scheme == Qt.ColorScheme.Dark else "light"
        if self.current.name == name and self._used:
            return
        self._used = True
        self.current = load_theme(name)
        application = QApplication.instance()
        if isinstance(application, QApplication):
            application.setPalette(palette(self.current))
            application.setStyleSheet(style_sheet(self.current))
        self.changed.emit()


@cache
def themes() -> Themes:
    """The one place that knows the theme in use."""
    return Themes()


def theme() -> Theme:
    """The theme in use."""
    return themes().current


def palette(theme: Theme) -> QPalette:
    """The theme for Qt's own widgets."""
    result = QPalette()
    role = QPalette.ColorRole
    for which, color in (
        (role.Window, theme.window), (role.WindowText, theme.text), (role.Base, theme.base),
        (role.AlternateBase, theme.window), (role.Text, theme.text), (role.Button, theme.raised),
        (role.ButtonText, theme.text), (role.BrightText, theme.error), (role.Highlight, theme.accent),
        (role.HighlightedText, theme.accent_text), (role.ToolTipBase, theme.raised), (role.ToolTipText, theme.text),
        (role.Link, theme.accent), (role.PlaceholderText, theme.faint), (role.Mid, theme.border),
        (role.Dark, theme.border), (role.Light, theme.raised), (role.Midlight, theme.border),
    ):  # fmt: skip
        result.setColor(which, color)
    for which in (role.Text, role.WindowText, role.ButtonText):
        result.setColor(QPalette.ColorGroup.Disabled, which, theme.faint)
    return result


def style_sheet(theme: Theme) -> str:
    """What the palette cannot say: quiet borders, roomy rows, flat docks."""
    color = {key: value.name() for key, value in theme._colors.items()}
    controls = resources.files("resources") / "icons" / "controls"
    arrows = {key: str(controls / f"{key}-{theme.name}.svg") for key in ("down", "right")}
    return _SHEET.format_map({**color, **arrows})


_SHEET = """
QMainWindow::separator {{ background: {border}; width: 1px; height: 1px; }}
QToolBar {{ background: {window}; border: 0; border-bottom: 1px solid {border}; spacing: 2px; padding: 4px 8px; }}
QToolBar::separator {{ background: {border}; width: 1px; margin: 4px 6px; }}
QToolButton {{ border: 1px solid transparent; border-radius: 6px; padding: 4px 6px; color: {text}; }}
QToolButton:hover {{ background: {raised}; border-color: {border}; }}
QToolButton:checked {{ background: {raised}; border-color: {accent}; color: {accent}; }}
QToolButton:pressed {{ background: {border}; }}
QMenuBar {{ background: {window}; border-bottom: 1px solid {border}; }}
QMenuBar::item {{ padding: 5px 10px; border-radius: 5px; }}
QMenuBar::item:selected {{ background: {raised}; }}
QMenu {{ background: {raised}; border: 1px solid {border}; padding: 5px; }}
QMenu::item {{ padding: 5px 26px 5px 26px; border-radius: 5px; }}
QMenu::item:selected {{ background: {accent}; color: {accent_text}; }}
QMenu::item:disabled {{ color: {faint}; }}
QMenu::separator {{ height: 1px; background: {border}; margin: 5px 8px; }}
QDockWidget {{ font-weight: 600; color: {muted}; }}
QDockWidget::title {{ background: {window}; padding: 8px 12px; border-bottom: 1px solid {border}; text-align: left; }}
QTabWidget::pane {{ border: 0; }}
QTabBar {{ background: {window}; }}
QTabBar::tab {{
  background: {window}; color: {muted}; padding: 7px 14px; border: 0; border-bottom: 2px solid transparent;
}}
QMainWindow > QTabBar::tab {{ padding: 7px 9px; }}
QTabBar::tab:selected {{ color: {text}; border-bottom: 2px solid {accent}; }}
QTabBar::tab:hover {{ color: {text}; }}
QStatusBar {{ background: {window}; border-top: 1px solid {border}; color: {muted}; }}
QStatusBar::item {{ border: 0; }}
QLineEdit, QPlainTextEdit, QTextEdit, QSpinBox, QDoubleSpinBox, QComboBox, QDateEdit {{
  background: {base}; color: {text}; border: 1px solid {border}; border-radius: 6px; padding: 4px 8px;
  selection-background-color: {accent}; selection-color: {accent_text};
}}
QLineEdit:focus, QPlainTextEdit:focus, QTextEdit:focus, QSpinBox:focus, QDoubleSpinBox:focus, QComboBox:focus {{
  border: 1px solid {accent};
}}
QLineEdit[wrong="true"], QPlainTextEdit[wrong="true"], QComboBox[wrong="true"] {{ border: 1px solid {error}; }}
QComboBox QLineEdit {{ border: 0; padding: 0; background: transparent; }}
QComboBox QLineEdit:focus {{ border: 0; }}
QComboBox::drop-down {{ border: 0; width: 24px; }}
QComboBox::down-arrow {{ image: url("{down}"); width: 14px; height: 14px; }}
QTreeView::branch:has-children:closed {{ image: url("{right}"); }}
QTreeView::branch:has-children:open {{ image: url("{down}"); }}
QComboBox QAbstractItemView {{ background: {raised}; border: 1px solid {border}; padding: 4px; outline: 0; }}
QPushButton {{
  background: {raised}; border: 1px solid {border}; border-radius: 6px; padding: 5px 14px; color: {text};
}}
QDialogButtonBox {{ dialogbuttonbox-buttons-have-icons: 0; }}
QPushButton:hover {{ border-color: {accent}; }}
QPushButton:default {{ background: {accent}; color: {accent_text}; border-color: {accent}; }}
QPushButton:disabled {{ background: {window}; color: {faint}; border-color: {border}; }}
QTreeView, QListView, QTableView {{
  background: {base}; border: 0; outline: 0; alternate-background-color: {window}; color: {text};
}}
QTreeView::item, QListView::item {{ padding: 4px 4px; }}
QListView::item {{ border-radius: 5px; }}
QTreeView::item:hover, QListView::item:hover {{ background: {window}; }}
QTreeView::item:selected, QListView::item:selected, QTableView::item:selected {{
  background: {accent}; color: {accent_text};
}}
QHeaderView::section {{
  background: {window}; color: {muted}; border: 0; border-bottom: 1px solid {border}; padding: 6px 8px;
}}
QScrollArea {{ border: 0; background: {base}; }}
QScrollBar:vertical {{ background: transparent; width: 11px; margin: 0; }}
QScrollBar:horizontal {{ background: transparent; height: 11px; margin: 0; }}
QScrollBar::handle {{ background: {border}; border-radius: 4px; margin: 2px; min-height: 28px; min-width: 28px; }}
QScrollBar::handle:hover {{ background: {faint}; }}
QScrollBar::add-line, QScrollBar::sub-line {{ width: 0; height: 0; }}
QScrollBar::add-page, QScrollBar::sub-page {{ background: transparent; }}
QToolTip {{ background: {raised}; color: {text}; border: 1px solid {border}; padding: 6px; }}
QLabel#heading {{ font-weight: 600; color: {text}; }}
QLabel#muted {{ color: {muted}; }}
QLabel#wrong {{ color: {error}; }}
QLabel#good {{ color: {ok}; }}
QFrame#card {{ background: {raised}; border: 1px solid {border}; border-radius: 8px; }}
QFrame#popup {{ background: {raised}; border: 1px solid {border}; border-radius: 10px; }}
"""

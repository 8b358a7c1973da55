"""Small widgets that several panels use."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QFont, QFontMetrics, QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHeaderView,
    QLabel,
    QScrollArea,
    QSizePolicy,
    QTableView,
    QTreeView,
    QVBoxLayout,
    QWidget,
)

HEAD_MARGIN = 26  # pixels beside the words of a column's head: the style sheet's, and a little air


def label(text: str, role: str, *, wrap: bool = False) -> QLabel:
    """A label that the style sheet knows by its role: `heading`, `muted`, `wrong` or `good`."""
    made = QLabel(text)
    made.setObjectName(role)
    made.setWordWrap(wrap)
    return made


def take_role(widget: QWidget, role: str) -> None:
    """Let a widget look like another role from now on."""
    if widget.objectName() != role:
        widget.setObjectName(role)
        widget.style().unpolish(widget)
        widget.style().polish(widget)


def take_no_room(words: QLabel) -> None:
    """Words that change, such as numbers or an error, never make their window wider."""
    policy = QSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
    policy.setHeightForWidth(words.hasHeightForWidth())
    words.setSizePolicy(policy)


class Hint(QLabel):
    """Words in the middle of a list that has nothing to show: why, and what would fill it."""

    def __init__(self, view: QAbstractItemView, text: str = "") -> None:
        super().__init__(text, view.viewport())
        self.setObjectName("muted")
        self.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.setWordWrap(True)
        self.setMargin(12)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._view = view
        view.viewport().installEventFilter(self)
        model = view.model()
        for signal in (model.rowsInserted, model.rowsRemoved, model.modelReset):
            signal.connect(self.refresh)
        self.refresh()

    def tell(self, text: str) -> None:
        """Other words."""
        self.setText(text)
        self.refresh()

    def refresh(self) -> None:
        """Be seen while there is nothing else."""
        self.setGeometry(self._view.viewport().rect())
        self.setVisible(bool(self.text()) and not self._view.model().rowCount())

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.Resize, QEvent.Type.Show):
            self.refresh()
        return False


class FittedColumns(QObject):
    """No column of a table is narrower than it needs to be, and one takes the room that is left over.

    Where there is too little, the spare columns go, and then the table scrolls.
    """

    def __init__(
        self, view: QTableView | QTreeView, needs: Callable[[], Sequence[int]], wide: int, spare: Sequence[int]
    ) -> None:
        super().__init__(view)
        self._view = view
        self._header = view.header() if isinstance(view, QTreeView) else view.horizontalHeader()
        self._needs = needs  # pixels of each column
        self._wide = wide
        self._spare = spare  # the first one goes first
        self._fitting = False
        self._header.setStretchLastSection(False)
        self._header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        view.viewport().installEventFilter(self)

    def fit(self) -> None:
        """Share the room that there is now."""
        if self._fitting:  # a scroll bar came or went meanwhile
            return
        self._fitting = True
        room = -1
        for _ in range(2):
            if room != self._view.viewport().width():
                room = self._view.viewport().width()
                self._share(room)
        self._fitting = False

    def _share(self, room: int) -> None:
        needs = list(self._needs())
        shown = set(range(len(needs)))
        for column in self._spare:
            if sum(needs[one] for one in shown) > room:
                shown.discard(column)
        needs[self._wide] += max(0, room - sum(needs[one] for one in shown))
        for column, width in enumerate(needs):
            self._header.setSectionHidden(column, column not in shown)
            if column in shown:
                self._header.resizeSection(column, width)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize:
            self.fit()
        return False


def head_width(header: QHeaderView, text: str) -> int:
    """How many pixels a column needs for its head."""
    font = QFont(header.font())
    font.setBold(True)  # as it is above a selected cell
    return QFontMetrics(font).horizontalAdvance(text) + HEAD_MARGIN


def set_head_font(header: QHeaderView, font: QFont) -> None:
    """Heads of this size. The program's style sheet paints them, and it does not look at the widget's own font."""
    header.setFont(font)  # by which they are measured
    header.setStyleSheet(f"QHeaderView::section {{ font-size: {font.pixelSize()}px; }}")


def framed(widget: QWidget) -> QWidget:
    """A widget within another that keeps its room while the widget is hidden."""
    frame = QWidget()
    layout = QVBoxLayout(frame)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.addWidget(widget)
    return frame


def enter(widget: QWidget) -> None:
    """Put the keyboard into a widget, or into the first of its fields that takes it."""
    inside = [widget, *widget.findChildren(QWidget)]
    fields = [one for one in inside if one.focusPolicy() & Qt.FocusPolicy.TabFocus and one.isEnabled()]
    shown = [one for one in fields if one.isVisibleTo(widget) and not isinstance(one, QScrollArea)]
    for field in shown[:1] or fields[:1]:
        field.setFocus(Qt.FocusReason.ShortcutFocusReason)


class Later(QScrollArea):
    """Room for a widget that is made when it is first shown; it scrolls where it has less room than it needs."""

    def __init__(self, make: Callable[[], object]) -> None:
        super().__init__()
        self._make = make  # and puts it in here; also called by whoever needs it sooner
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)

    @property
    def is_made(self) -> bool:
        """Whether the widget is there."""
        return self.widget() is not None

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not self.is_made:
            self._make()

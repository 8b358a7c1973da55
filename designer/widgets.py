"""Small widgets that several panels use."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QAbstractItemView, QFrame, QLabel, QScrollArea, QSizePolicy, QVBoxLayout, QWidget


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


def scrolled(widget: QWidget) -> QScrollArea:
    """A widget that scrolls where it has less room than it needs, instead of taking it from its neighbours."""
    area = QScrollArea()
    area.setWidgetResizable(True)
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setWidget(widget)
    return area

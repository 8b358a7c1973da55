"""A window with panels around it, which can be moved, closed and put behind each other."""

from __future__ import annotations

from PySide6.QtCore import QChildEvent, QEvent, Qt, QTimer
from PySide6.QtWidgets import QDockWidget, QMainWindow, QTabBar, QWidget

from designer.widgets import enter, framed

ROOM = {"preview": 260, "plan": 300, "packs": 260, "runs": 260}  # pixels that a panel needs to be of use


class DockedWindow(QMainWindow):
    """Panels by their names: which are there, which are seen, and where the keyboard is."""

    def __init__(self) -> None:
        super().__init__()
        self.setDockNestingEnabled(True)
        self.docks: dict[str, QDockWidget] = {}
        self.remembered: set[str] = set()  # panels that were put where they stood last time
        self._contents: dict[str, QWidget] = {}
        self._docks_timer = QTimer(self)
        self._docks_timer.setSingleShot(True)
        self._docks_timer.setInterval(0)
        self._docks_timer.timeout.connect(self._show_contents)

    def add_panel(self, name: str, title: str, widget: QWidget, where: Qt.DockWidgetArea) -> QDockWidget:
        """A panel that can be moved, closed and is remembered; also for those who bring their own."""
        dock = QDockWidget(title, self)
        dock.setObjectName(name)
        dock.setWidget(framed(widget))
        widget.hide()
        self._contents[name] = widget
        dock.visibilityChanged.connect(self._docks_timer.start)
        if self.restoreDockWidget(dock):  # one made later than the window goes to where it was last time
            self.remembered.add(name)
        else:
            self.addDockWidget(where, dock)
        self.docks[name] = dock
        return dock

    def show_dock(self, name: str) -> None:
        """Bring a panel to the front."""
        dock = self.docks[name]
        dock.show()
        dock.raise_()
        self._contents[name].show()
        wanted = min(ROOM.get(name, 0), self.height() * 2 // 5)
        if dock.height() < wanted and not dock.isFloating():
            self.resizeDocks([dock], [wanted], Qt.Orientation.Vertical)

    def in_front(self, name: str) -> bool:
        """Whether a panel is seen, not only behind another one's tab."""
        dock = self.docks[name]
        return dock.isVisible() and not dock.visibleRegion().isEmpty()

    def _show_contents(self) -> None:
        """Hide what stands behind another panel's tab: to Qt it is visible, and it would work for nobody."""
        for name, content in self._contents.items():
            content.setVisible(self.in_front(name))
        # Qt leaves tab bars that it no longer uses below the docks, where their edges show.
        shown = [dock for name, dock in self.docks.items() if self.in_front(name) and not dock.isFloating()]
        for bar in self.findChildren(QTabBar, options=Qt.FindChildOption.FindDirectChildrenOnly):
            if any(dock.geometry().intersects(bar.geometry()) for dock in shown):
                bar.hide()

    def toggle_dock(self, name: str) -> None:
        """Bring a panel to the front, or put away one that is there."""
        if self.in_front(name):
            self.docks[name].hide()
            self.enter_center()
        else:
            self.enter_dock(name)

    def enter_dock(self, name: str) -> None:
        """Bring a panel to the front, with the keyboard in it."""
        self.show_dock(name)
        self.enter_content(self._contents[name])

    def next_panel(self) -> None:
        """Let the keyboard go from the canvas through the panels that are seen, and back."""
        seen = [name for name in self.docks if self.in_front(name)]
        focused = self.focusWidget()
        inside = [name for name in seen if focused is not None and self._contents[name].isAncestorOf(focused)]
        inside += [name for name in seen if self._contents[name] is focused]
        rest = seen[seen.index(inside[0]) + 1 :] if inside else seen
        if rest:
            self.enter_dock(rest[0])
        else:
            self.enter_center()

    def enter_center(self) -> None:
        """Let the keyboard go back to what the panels stand around."""
        raise NotImplementedError

    def enter_content(self, content: QWidget) -> None:
        """Put the keyboard into a panel."""
        enter(content)

    def childEvent(self, event: QChildEvent) -> None:
        """The tabs of panels that stand behind each other keep their names; too many can be scrolled."""
        super().childEvent(event)
        if event.type() != QEvent.Type.ChildPolished:
            return
        tabs = event.child()
        if isinstance(tabs, QTabBar):
            tabs.setElideMode(Qt.TextElideMode.ElideNone)
            tabs.setUsesScrollButtons(True)

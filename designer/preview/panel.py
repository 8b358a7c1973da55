"""The preview panel: rows with their types, the share without a value, and small histograms."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import (
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QPushButton,
    QStackedWidget,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from designer.canvas.view import CanvasView
from designer.document.edits import Edit
from designer.link.client import EngineClient
from designer.text import tr
from designer.theme.icons import give_icon
from designer.theme.theme import theme
from designer.widgets import label, take_no_room, take_role

Index = QModelIndex | QPersistentModelIndex


class RowsModel(QAbstractTableModel):
    """Sample rows as the engine sent them."""

    def __init__(self) -> None:
        super().__init__()
        self.columns: list[dict[str, Any]] = []
        self.rows: list[list[str | None]] = []

    def show(self, columns: list[dict[str, Any]], rows: list[list[str | None]]) -> None:
        self.beginResetModel()
        self.columns, self.rows = columns, rows
        self.endResetModel()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own signature
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.columns)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        value = self.rows[index.row()][index.column()]
        if role == Qt.ItemDataRole.DisplayRole:
            return "null" if value is None else value
        if role == Qt.ItemDataRole.ForegroundRole and value is None:
            return theme().faint
        if role == Qt.ItemDataRole.ToolTipRole:
            return value
        return None

    def headerData(self, section: int, way: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if way == Qt.Orientation.Horizontal and section < len(self.columns):
            column = self.columns[section]
            if role == Qt.ItemDataRole.DisplayRole:
                return column["name"]
            if role == Qt.ItemDataRole.UserRole:
                return column
            if role == Qt.ItemDataRole.ToolTipRole:
                return self._about(column)
        if way == Qt.Orientation.Vertical and role == Qt.ItemDataRole.DisplayRole:
            return section + 1
        return None

    def _about(self, column: dict[str, Any]) -> str:
        lines = [f"{column['name']}  {column['type']}"]
        share = round(100 * column["nulls"], 1)
        lines.append(tr("{0} % without a value, {1} different ones", share, column["distinct"]))
        return "\n".join(lines + [str(text) for text in column["labels"][:12]])


class RowsHeader(QHeaderView):
    """Name, type, share without a value, and the bars of a column."""

    def __init__(self) -> None:
        super().__init__(Qt.Orientation.Horizontal)
        self.setSectionsClickable(True)
        self.setDefaultSectionSize(150)
        self.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)

    def sizeHint(self) -> QSize:
        return QSize(super().sizeHint().width(), 84)

    def paintSection(self, painter: QPainter, rect: QRect, section: int) -> None:
        model = self.model()
        column = model.headerData(section, Qt.Orientation.Horizontal, Qt.ItemDataRole.UserRole) if model else None
        colors = theme()
        painter.save()
        painter.fillRect(rect, colors.window)
        painter.setPen(colors.border)
        painter.drawLine(rect.bottomLeft(), rect.bottomRight())
        painter.drawLine(rect.topRight(), rect.bottomRight())
        if isinstance(column, dict):
            inner = QRectF(rect).adjusted(8, 5, -8, -6)
            font = painter.font()
            font.setBold(True)
            painter.setFont(font)
            painter.setPen(colors.text)
            name = painter.fontMetrics().elidedText(column["name"], Qt.TextElideMode.ElideRight, int(inner.width()))
            painter.drawText(inner, Qt.AlignmentFlag.AlignTop, name)
            font.setBold(False)
            font.setPointSizeF(font.pointSizeF() * 0.85)
            painter.setFont(font)
            painter.setPen(colors.muted)
            nulls = f"  ∅ {round(100 * column['nulls'])} %" if column["nulls"] else ""
            second = inner.adjusted(0, 18, 0, 0)
            painter.drawText(second, Qt.AlignmentFlag.AlignTop, f"{column['type']}{nulls}")
            self._bars(painter, inner.adjusted(0, 38, 0, 0), column)
        painter.restore()

    def _bars(self, painter: QPainter, frame: QRectF, column: dict[str, Any]) -> None:
        colors = theme()
        if column["nulls"]:  # the share without a value, as a line below
            width = frame.width() * column["nulls"]
            painter.fillRect(QRectF(frame.left(), frame.bottom() - 2, width, 2), colors.warning)
        bars = column["bars"]
        if not bars:
            return
        step = frame.width() / max(len(bars), 6)
        fill = QColor(colors.accent)
        fill.setAlpha(170)
        for number, bar in enumerate(bars):
            height = max((frame.height() - 5) * bar, 1.0)
            box = QRectF(frame.left() + number * step, frame.bottom() - 4 - height, max(step - 2, 1), height)
            painter.fillRect(box, fill)


class RowsTable(QTableView):
    """Sample rows with a header that shows each column's figures."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.rows = RowsModel()
        self.setAccessibleName(name)
        self.setHorizontalHeader(RowsHeader())
        self.setModel(self.rows)
        self.setShowGrid(False)
        self.setAlternatingRowColors(True)
        self.verticalHeader().setDefaultSectionSize(24)

    def show_rows(self, columns: list[dict[str, Any]], rows: list[list[str | None]]) -> None:
        """Show other rows."""
        self.rows.show(columns, rows)


def lay_out(panel: QWidget, heads: list[QWidget], told: QLabel, table: QWidget) -> QStackedWidget:
    """A line of heads with what is told behind them, and a page below: empty first, then the table."""
    row = QHBoxLayout()
    row.setContentsMargins(10, 6, 10, 2)
    for widget in heads:
        row.addWidget(widget)
    told.setWordWrap(True)
    take_no_room(told)
    row.addWidget(told, 1)
    pages = QStackedWidget()
    pages.addWidget(QWidget())
    pages.addWidget(table)
    layout = QVBoxLayout(panel)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.addLayout(row)
    layout.addWidget(pages)
    return pages


class PreviewPanel(QWidget):
    """Looks at the port of the selected node or edge when asked; greyed when the workflow changed since."""

    def __init__(self, engine: EngineClient) -> None:
        super().__init__()
        self.engine = engine
        self.view: CanvasView | None = None
        self._running: int | None = None
        self._asked = ""  # what is computed, as its title will say
        self._edited_since = False  # the workflow changed since that was asked
        self._stale = False  # the rows that are shown are of an earlier workflow
        self.look = QPushButton(tr("Look"))
        give_icon(self.look, "preview")
        self.look.setToolTip(tr("Sample rows of what is selected (F5)"))
        self.stop = QPushButton(tr("Cancel"))
        self.title = label("", "heading")
        self.told = label("", "muted")
        self.table = RowsTable(tr("Sample rows"))
        self.model = self.table.rows
        self.pages = lay_out(self, [self.look, self.stop, self.title], self.told, self.table)
        self.look.clicked.connect(self.ask)
        self.stop.clicked.connect(self.cancel)
        self.stop.setEnabled(False)
        engine.told.connect(self._answered)
        engine.state_changed.connect(self._state)
        self.follow(None)

    def follow(self, view: CanvasView | None) -> None:
        """Look at another canvas from now on."""
        self.cancel()
        if self.view is not None:
            self.view.editor.edited.disconnect(self._edited)
        self.view = view
        self._stale = False
        self.model.show([], [])
        self.pages.setCurrentIndex(0)
        self.title.clear()
        self._tell(tr("Select a node or an edge and press F5."), "muted")
        if view is not None:
            view.editor.edited.connect(self._edited)

    def spot(self) -> tuple[str, str] | None:
        """The node and port that the selection means."""
        if self.view is None:
            return None
        edges, nodes = self.view.canvas.selected_edges(), self.view.canvas.selected_nodes()
        document = self.view.editor.document
        if len(nodes) == 1:
            ports = document.ports.of(nodes[0]).outputs
            return (nodes[0], ports[0].name) if ports else None
        if len(edges) == 1:
            return document.ports.ends(edges[0])[:2]
        return None

    def ask(self) -> None:
        """Let the engine compute what is selected."""
        spot = self.spot()
        if spot is None or self.view is None:
            self._tell(tr("Select one node or one edge."), "muted")
            return
        self.cancel()
        document = self.view.editor.document
        path = str(document.path.resolve()) if document.path else None
        self._running = self.engine.send("preview", text=document.text(), path=path, node=spot[0], port=spot[1])
        self._asked = f"{document.title_of(spot[0])} · {spot[1]}"
        self._edited_since = False
        self.stop.setEnabled(True)
        self.table.setEnabled(False)  # until the answer comes these are the rows of before, under their own title
        starting = self.engine.state in ("off", "starting", "idle", "lost")
        self._tell(tr("{0}: Spark is starting…", self._asked) if starting else self._computing(), "muted")

    def cancel(self) -> None:
        """Stop what the engine computes for this panel."""
        if self._running is not None:
            self.engine.cancel(self._running)
            self._done(tr("Cancelled."), "muted")

    def _computing(self) -> str:
        return tr("{0}: computing…", self._asked)

    def _tell(self, text: str, role: str) -> None:
        take_role(self.told, role)
        self.told.setText(text)

    def _done(self, text: str, role: str) -> None:
        self._running = None
        self.stop.setEnabled(False)
        self.table.setEnabled(not self._stale)
        self._tell(text, role)

    def _answered(self, event: dict[str, Any]) -> None:
        if self._running is None or event.get("id") != self._running:
            return
        match event.get("event"):
            case "previewed":
                self.model.show(event["columns"], event["rows"])
                self.pages.setCurrentIndex(1)
                self.title.setText(self._asked)
                self._stale = self._edited_since
                counts = event["sampled_rows"], event["source_rows"]
                fresh = tr("{0} sample rows, from the first {1} of each source", *counts)
                self._done(self._old() if self._stale else fresh, "muted")
            case "failed":
                self._done(f"{event.get('node') or self._asked}: {event.get('message')}", "wrong")
            case "cancelled":
                self._done(tr("Cancelled."), "muted")

    def _state(self, state: str) -> None:
        if self._running is None:
            return
        if state == "busy":
            self._tell(self._computing(), "muted")
        elif state == "lost":
            self._done(tr("The engine was lost and is started again; look once more."), "wrong")

    def _old(self) -> str:
        return tr("The workflow changed since; press F5 to look again.")

    def _edited(self, edit: Edit) -> None:
        if not edit.touches_logic():
            return
        self._edited_since = True
        if self.model.columns:
            self._stale = True
            self.table.setEnabled(False)
            if self._running is None:
                self._tell(self._old(), "muted")

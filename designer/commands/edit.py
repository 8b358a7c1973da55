"""Edit: undo, the clipboard, deleting, renaming, finding."""

from __future__ import annotations

from PySide6.QtWidgets import QApplication

from designer.commands.registry import command, has_editor, has_nodes, has_selection
from designer.document import arranging, changes
from designer.document.clipboard import copied, pasted
from designer.text import tr
from designer.window.window import MainWindow
from engine.errors import BadInput


@command("edit.undo", "Undo", "Edit", shortcut="Ctrl+Z", icon="undo", tool=True,
         enabled=lambda w: bool(w.editor and w.editor.stack.canUndo()))  # fmt: skip
def undo(window: MainWindow) -> None:
    if window.editor:
        window.editor.stack.undo()


@command("edit.redo", "Redo", "Edit", shortcut="Ctrl+Shift+Z", icon="redo", tool=True,
         enabled=lambda w: bool(w.editor and w.editor.stack.canRedo()))  # fmt: skip
def redo(window: MainWindow) -> None:
    if window.editor:
        window.editor.stack.redo()


def _copy(window: MainWindow) -> bool:
    if window.view is None or window.editor is None:
        return False
    canvas = window.view.canvas
    nodes, notes = canvas.selected_nodes(), canvas.selected_notes()
    if not nodes and not notes:
        return False
    QApplication.clipboard().setText(copied(window.editor.document, nodes, notes))
    return True


@command("edit.cut", "Cut", "Edit", shortcut="Ctrl+X", icon="cut", section=1, enabled=has_selection)
def cut(window: MainWindow) -> None:
    if _copy(window):
        delete(window)


@command("edit.copy", "Copy", "Edit", shortcut="Ctrl+C", icon="copy", section=1, enabled=has_selection)
def copy(window: MainWindow) -> None:
    _copy(window)


@command("edit.paste", "Paste", "Edit", shortcut="Ctrl+V", icon="paste", section=1, enabled=has_editor)
def paste(window: MainWindow) -> None:
    if window.view is None or window.editor is None:
        return
    _paste(window, QApplication.clipboard().text(), window.view.cursor_point())


@command("edit.duplicate", "Duplicate", "Edit", shortcut="Ctrl+D", section=1, enabled=has_selection)
def duplicate(window: MainWindow) -> None:
    if window.view is None or window.editor is None:
        return
    canvas = window.view.canvas
    _paste(window, copied(window.editor.document, canvas.selected_nodes(), canvas.selected_notes()), None)


def _paste(window: MainWindow, text: str, at: tuple[float, float] | None) -> None:
    assert window.view is not None
    assert window.editor is not None
    try:
        edit, ids = pasted(window.editor.document, text, at)
    except BadInput as error:
        window.say(tr("Nothing to paste: {0}", str(error)))
        return
    window.editor.push(edit)
    window.view.canvas.select(ids)


@command("edit.delete", "Delete", "Edit", shortcut="Del", icon="delete", section=1, enabled=has_selection)
def delete(window: MainWindow) -> None:
    if window.view is None or window.editor is None:
        return
    canvas = window.view.canvas
    nodes, edges, notes = canvas.selected_nodes(), canvas.selected_edges(), canvas.selected_notes()
    frames = canvas.selected_groups()
    if nodes or edges or notes:
        window.editor.push(changes.remove(window.editor.document, nodes, edges, notes, frames))
    elif frames:
        window.editor.push(arranging.ungroup(window.editor.document, frames))


@command("edit.rename", "Rename", "Edit", shortcut="F2", icon="rename", section=2, enabled=has_selection)
def rename(window: MainWindow) -> None:
    if window.view is not None:
        window.view.setFocus()
        window.view.rename_selected()


@command("edit.properties", "Edit its settings", "Edit", shortcut="Alt+Return", section=2, enabled=has_editor)
def properties(window: MainWindow) -> None:
    window.show_dock("properties")
    window.properties.enter()


@command("edit.select_all", "Select all", "Edit", shortcut="Ctrl+A", section=2, enabled=has_editor)
def select_all(window: MainWindow) -> None:
    if window.view is not None:
        canvas = window.view.canvas
        canvas.select(canvas.nodes, [item.edge for item in canvas.edges.values()])


@command("edit.upstream", "Select all it comes from", "Edit", shortcut="Ctrl+Shift+Left", section=2, enabled=has_nodes)
def upstream(window: MainWindow) -> None:
    _select_reached(window, backwards=True)


@command("edit.downstream", "Select all it goes to", "Edit", shortcut="Ctrl+Shift+Right", section=2, enabled=has_nodes)
def downstream(window: MainWindow) -> None:
    _select_reached(window, backwards=False)


def _select_reached(window: MainWindow, backwards: bool) -> None:
    assert window.view is not None
    assert window.editor is not None
    reached = set(window.view.canvas.selected_nodes())
    waiting = list(reached)
    following: dict[str, list[str]] = {}
    for edge in window.editor.document.workflow.edges:
        ends = (edge.target, edge.source) if backwards else (edge.source, edge.target)
        following.setdefault(ends[0], []).append(ends[1])
    while waiting:
        for other in following.get(waiting.pop(), ()):
            if other not in reached:
                reached.add(other)
                waiting.append(other)
    window.view.canvas.select(reached)


def _declare_next(kind: str, key: str) -> None:
    @command(f"edit.next_{kind}", f"Select the next {kind}", "Edit", shortcut=f"Alt+{key}", section=2,
             enabled=has_editor)  # fmt: skip
    def forwards(window: MainWindow) -> None:
        _select_next(window, kind, backwards=False)

    @command(f"edit.previous_{kind}", f"Select the previous {kind}", "Edit", shortcut=f"Alt+Shift+{key}", section=2,
             enabled=has_editor)  # fmt: skip
    def back(window: MainWindow) -> None:
        _select_next(window, kind, backwards=True)


def _select_next(window: MainWindow, kind: str, backwards: bool) -> None:
    if window.view is not None:
        window.view.setFocus()
        window.view.select_next(kind, backwards)


for _kind, _key in (("edge", "E"), ("note", "N"), ("group", "G")):
    _declare_next(_kind, _key)


@command("edit.find", "Find a node", "Edit", shortcut="Ctrl+F", icon="search", section=3, enabled=has_editor)
def find(window: MainWindow) -> None:
    window.show_dock("outline")
    window.outline.search.setFocus()
    window.outline.search.selectAll()


@command("edit.palette", "Search the operators", "Edit", shortcut="Ctrl+P", section=3)
def operators(window: MainWindow) -> None:
    window.show_dock("palette")
    window.palette_panel.search.setFocus()
    window.palette_panel.search.selectAll()

"""Insert and arrange: notes, groups, auto-layout, aligning."""

from __future__ import annotations

from typing import Literal

from designer.canvas import adding
from designer.commands.registry import command, has_editor, has_nodes, has_several
from designer.document import arranging
from designer.document.layout import groups
from designer.text import tr
from designer.window.window import MainWindow


@command("insert.operator", "Operator…", "Insert", shortcut="Insert", icon="add", enabled=has_editor)
def operator(window: MainWindow) -> None:
    if window.view is not None:
        adding.quick_add_here(window.view)


@command("insert.connect", "Connect the two selected nodes", "Insert", shortcut="Ctrl+K", enabled=has_several)
def connect(window: MainWindow) -> None:
    if window.view is not None:
        adding.connect_selected(window.view)


@command("insert.note", "Note", "Insert", shortcut="Ctrl+Shift+T", icon="note", enabled=has_editor)
def note(window: MainWindow) -> None:
    if window.view is None or window.editor is None:
        return
    edit, id_ = arranging.add_note(window.editor.document, window.view.cursor_point(), tr("**Note**"))
    window.editor.push(edit)
    window.view.canvas.select_item(window.view.canvas.notes[id_], False)
    window.view.setFocus()
    window.view.rename_selected()


@command("insert.group", "Group", "Insert", shortcut="Ctrl+G", icon="group", enabled=has_nodes)
def group(window: MainWindow) -> None:
    if window.view is None or window.editor is None:
        return
    edit, id_ = arranging.group(window.editor.document, window.view.canvas.selected_nodes(), tr("Group"))
    window.editor.push(edit)
    window.view.canvas.select_item(window.view.canvas.groups[id_], False)
    window.view.setFocus()
    window.view.rename_selected()


@command("insert.ungroup", "Ungroup", "Insert", shortcut="Ctrl+Shift+G", enabled=has_editor)
def ungroup(window: MainWindow) -> None:
    if window.view is None or window.editor is None:
        return
    chosen = set(window.view.canvas.selected_groups())
    nodes = set(window.view.canvas.selected_nodes())
    known = groups(window.editor.document.workflow)
    chosen |= {id_ for id_, group in known.items() if nodes & set(group.nodes)}
    window.editor.push(arranging.ungroup(window.editor.document, chosen))


@command("insert.collapse", "Collapse or expand the groups", "Insert", shortcut="Ctrl+E", enabled=has_editor)
def collapse(window: MainWindow) -> None:
    if window.view is None or window.editor is None:
        return
    known = groups(window.editor.document.workflow)
    chosen = window.view.canvas.selected_groups() or list(known)
    wanted = not any(known[id_].collapsed for id_ in chosen)
    window.editor.stack.beginMacro(tr("Collapse") if wanted else tr("Expand"))
    for id_ in chosen:
        window.editor.push(arranging.collapse(window.editor.document, id_, wanted))
    window.editor.stack.endMacro()


@command("arrange.auto", "Arrange the butterfly", "Arrange", shortcut="Ctrl+L", icon="arrange", tool=True,
         enabled=has_editor)  # fmt: skip
def auto(window: MainWindow) -> None:
    if window.view is None or window.editor is None:
        return
    from designer.canvas.arrange import arrange

    found = arrange(window.editor.document, window.editor.analysis.wings)
    window.editor.push(arranging.arrange(window.editor.document, found.places, found.bends))
    window.view.fit()


def _declare_align(side: arranging.Alignment, text: str) -> None:
    @command(f"arrange.{side}", text, "Arrange", section=1, enabled=has_several)
    def align(window: MainWindow) -> None:
        if window.view is not None and window.editor is not None:
            chosen = window.view.canvas.selected_nodes()
            window.editor.push(arranging.align(window.editor.document, chosen, side))


def _declare_distribute(direction: Literal["across", "down"], text: str) -> None:
    @command(f"arrange.{direction}", text, "Arrange", section=2, enabled=has_several)
    def distribute(window: MainWindow) -> None:
        if window.view is not None and window.editor is not None:
            chosen = window.view.canvas.selected_nodes()
            window.editor.push(arranging.distribute(window.editor.document, chosen, direction))


_declare_align("left", "Align left")
_declare_align("center", "Align centres")
_declare_align("right", "Align right")
_declare_align("top", "Align tops")
_declare_align("middle", "Align middles")
_declare_align("bottom", "Align bottoms")
_declare_distribute("across", "Distribute across")
_declare_distribute("down", "Distribute down")

"""File: new, open, save, the store, export."""

from __future__ import annotations

from designer.commands.registry import command, has_editor
from designer.window.window import MainWindow


@command("file.new", "New", "File", shortcut="Ctrl+N", icon="new", tool=True)
def new(window: MainWindow) -> None:
    window.files.new()


@command("file.template", "New from a template…", "File", shortcut="Ctrl+Shift+N", icon="template")
def template(window: MainWindow) -> None:
    from designer.session.templates import TemplatesDialog

    TemplatesDialog(window).open()


@command("file.open", "Open…", "File", shortcut="Ctrl+O", icon="open", tool=True)
def open_(window: MainWindow) -> None:
    window.files.ask_open()


@command("file.save", "Save", "File", shortcut="Ctrl+S", icon="save", section=1, tool=True, enabled=has_editor)
def save(window: MainWindow) -> None:
    window.files.save()


@command("file.save_as", "Save as…", "File", shortcut="Ctrl+Shift+S", section=1, enabled=has_editor)
def save_as(window: MainWindow) -> None:
    window.files.save_as()


@command("file.reload", "Read again from disk", "File", section=1, enabled=lambda w: bool(w.editor and w.editor.path))
def reload(window: MainWindow) -> None:
    window.files.reload()


@command("file.store", "Metadata store…", "File", shortcut="Ctrl+Shift+M", icon="store", section=2)
def store(window: MainWindow) -> None:
    from designer.session.store import StoreDialog

    StoreDialog(window).open()


@command("file.compare", "Compare with the saved file", "File", icon="compare", section=2,
         enabled=lambda w: bool(w.editor and w.editor.path))  # fmt: skip
def compare(window: MainWindow) -> None:
    from designer.session.compare import compare_with_disk

    compare_with_disk(window)


@command("file.import_xml", "Import XML…", "File", section=3)
def import_xml(window: MainWindow) -> None:
    window.files.import_xml()


@command("file.export_xml", "Export as XML…", "File", icon="export", section=3, enabled=has_editor)
def export_xml(window: MainWindow) -> None:
    window.exports.xml()


@command("file.export_svg", "Export the picture as SVG…", "File", icon="export", section=3, enabled=has_editor)
def export_svg(window: MainWindow) -> None:
    window.exports.picture("svg")


@command("file.export_png", "Export the picture as PNG…", "File", icon="export", section=3, enabled=has_editor)
def export_png(window: MainWindow) -> None:
    window.exports.picture("png")


@command("file.export_pyspark", "Export as a PySpark script…", "File", icon="export", section=3, enabled=has_editor)
def export_pyspark(window: MainWindow) -> None:
    window.exports.pyspark()


@command("file.close", "Close", "File", shortcut="Ctrl+W", section=4, enabled=has_editor)
def close(window: MainWindow) -> None:
    window.close_tab(window.tabs.currentIndex())


@command("file.quit", "Quit", "File", shortcut="Ctrl+Q", section=4)
def quit_(window: MainWindow) -> None:
    window.close()

"""Files, recovery, templates, the store, exports, commands, themes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QColor, QDragEnterEvent, QDropEvent, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QGraphicsItem, QMenu, QMessageBox, QPushButton

from designer.canvas.picture import save_picture
from designer.commands.registry import commands
from designer.document import arranging, changes
from designer.properties.form import NodeForm
from designer.properties.renaming import Renamed
from designer.session.archetypes import archetype, archetypes
from designer.session.compare import CompareDialog
from designer.session.settings import Settings
from designer.session.store import StoreDialog
from designer.session.templates import TemplatesDialog
from designer.theme.theme import load_theme, theme, themes
from designer.window.window import MainWindow
from engine.errors import BadInput
from engine.model.file import load, save
from engine.model.operator import Role
from engine.model.shape import shape
from engine.operators import catalogue
from tests.designer.conftest import opened
from tests.designer.examples import FIG1, empty, fig1, small

# ---------------------------------------------------------------- files


def message(window: MainWindow) -> str:
    boxes = [box for box in window.findChildren(QMessageBox) if box.isVisible()]
    text = "\n".join(box.text() for box in boxes)
    for box in boxes:
        box.close()
    return text


def test_open_edit_save_and_open_again(window: MainWindow, tmp_path: Path) -> None:
    path = tmp_path / "one.butterfly.yaml"
    save(small().workflow, path)
    view = window.files.open(path)
    assert view is not None
    assert window.tabs.tabText(0) == "one"
    view.editor.push(changes.set_title(view.editor.document, "some", "Few"))
    assert window.tabs.tabText(0) == "● one"
    assert window.isWindowModified()
    assert window.files.save()
    assert window.tabs.tabText(0) == "one"
    assert load(path).workflow.nodes["some"].title == "Few"
    assert window.settings.recent() == [path]
    assert window.files.open(path) is view  # not twice
    view.editor.stack.undo()
    assert window.tabs.tabText(0) == "● one"


def test_saving_keeps_the_files_own_comment_and_changes_nothing_else(window: MainWindow, tmp_path: Path) -> None:
    path = tmp_path / "fig1.butterfly.yaml"
    path.write_text(FIG1.read_text(encoding="utf-8"), encoding="utf-8")
    view = window.files.open(path)
    assert view is not None
    there = view.canvas.nodes["join"].pos()
    view.editor.push(arranging.move(view.editor.document, {"join": (there.x() + 10, there.y())}))
    window.files.save()
    before, after = FIG1.read_text().splitlines(), path.read_text().splitlines()
    assert after[0] == before[0]
    assert load(path).workflow.content_hash() == load(FIG1).workflow.content_hash()


def test_a_file_dropped_on_the_window_is_opened(window: MainWindow, tmp_path: Path) -> None:
    path = tmp_path / "one.butterfly.yaml"
    save(small().workflow, path)
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    at, action = QPoint(5, 5), Qt.DropAction.CopyAction
    buttons, keys = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    QApplication.sendEvent(window, QDragEnterEvent(at, action, data, buttons, keys))
    QApplication.sendEvent(window, QDropEvent(QPointF(at), action, data, buttons, keys))
    assert window.editor is not None
    assert window.editor.path == path


def test_everything_stays_in_view_when_the_window_grows_until_one_looks_elsewhere(window: MainWindow) -> None:
    view = window.open_document(fig1())
    before = view.zoom
    window.resize(1900, 1000)
    QApplication.processEvents()
    assert view.zoom > before
    view.zoom_to(0.5)
    window.resize(1400, 900)
    QApplication.processEvents()
    assert view.zoom == pytest.approx(0.5)


BAD = {
    "broken": ("papilio: 1\nnodes: [", "broken YAML"),
    "newer": ("papilio: 99\nnodes: {}\n", "file format 99"),
    "no workflow": ("- 1\n- 2\n", "not a workflow"),
    "tags": ("papilio: 1\nname: !!python/object/apply:os.system ['true']\n", "tag"),
    "deep": ("papilio: 1\nx: " + "[" * 5000 + "]" * 5000, "nested"),
    "bombs": ("a: &a [x]\nb: *a\npapilio: 1\n", "anchors"),
    "odd layout": ("papilio: 1\nnodes: {}\nlayout: {nodes: 3}\n", "layout.nodes"),
    "binary": ("\x00\x01\x02", ""),
    "huge": (
        "papilio: 1\nnodes:\n" + "  n: {operator: filter}\n" * 60_000,
        "60,000 nodes; the canvas shows up to 50,000",
    ),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_file_is_a_message_and_the_file_is_not_touched(window: MainWindow, tmp_path: Path, kind: str) -> None:
    text, reason = BAD[kind]
    path = tmp_path / "bad.butterfly.yaml"
    path.write_text(text, encoding="utf-8")
    before = path.read_bytes()
    assert window.files.open(path) is None
    assert window.tabs.count() == 0
    told = message(window)
    assert reason in told
    assert "bad.butterfly.yaml" in told
    assert path.read_bytes() == before


OPENS = """
import sys
from PySide6.QtWidgets import QApplication, QMessageBox
from designer.app import main
from designer.window.window import MainWindow
def look(window):
    print(window.isVisible(), window.tabs.count(), *(box.text() for box in window.findChildren(QMessageBox)))
    QApplication.exit(0)
MainWindow.offer_recovery = look  # the first thing after the files are open
sys.exit(main(sys.argv[1:]))
"""


def test_the_program_opens_with_a_message_when_it_is_given_a_bad_file(tmp_path: Path) -> None:
    bad, good = tmp_path / "bad.yaml", tmp_path / "good.butterfly.yaml"
    bad.write_text("papilio: 1\nnodes: [", encoding="utf-8")
    save(small().workflow, good)
    before = bad.read_bytes()
    done = subprocess.run(
        [sys.executable, "-c", OPENS, str(bad), str(good)],
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout.startswith("True 1 ")
    assert "bad.yaml" in done.stdout
    assert "broken YAML" in done.stdout
    assert bad.read_bytes() == before


def test_a_missing_file_and_a_folder_are_messages(window: MainWindow, tmp_path: Path) -> None:
    assert window.files.open(tmp_path / "none.butterfly.yaml") is None
    assert "no such file" in message(window)
    assert window.files.open(tmp_path) is None
    assert "folder" in message(window)


def test_hostile_positions_and_notes_do_no_harm(window: MainWindow, tmp_path: Path) -> None:
    path = tmp_path / "odd.butterfly.yaml"
    path.write_text(
        "papilio: 1\nnodes:\n  a: {operator: copy}\n  b: {operator: nobody}\nedges:\n- {from: a.x, to: b.y}\n"
        "- {from: ghost, to: a}\n- {from: a, to: a}\nlayout:\n  nodes: {a: [.nan, 1e300], b: [1, 2, 3]}\n"
        "  notes: {n: {text: '<img src=file:///etc/passwd>', at: [1, x], size: [-5, 0]}, m: 4}\n"
        "  groups: {g: {nodes: [a, ghost, 7], collapsed: yes}, h: [1]}\n  bends: {x: [1], y: no}\n"
    )
    view = window.files.open(path)
    assert view is not None
    assert set(view.canvas.nodes) == {"a", "b"}
    assert len(view.editor.analysis.problems) > 1
    view.grab()


def test_secrets_are_not_saved(window: MainWindow, tmp_path: Path) -> None:
    hand = opened(window, small())
    document = hand.view.editor.document
    hand.view.editor.push(changes.change_operator(document, "rows", "postgresql_source"))
    hand.view.editor.push(changes.set_setting(document, "rows", "password", "hunter2"))
    path = tmp_path / "secret.butterfly.yaml"
    assert not window.files.write(hand.view, path)
    assert "node `rows`, setting `password`: a secret is never written" in message(window)
    assert not path.exists()
    with pytest.raises(BadInput, match="a secret is never written"):
        document.save(path)
    dialog = StoreDialog(window)
    dialog.put("flow", "with a secret")
    assert "a secret is never written" in message(window)
    assert dialog.tree.topLevelItemCount() == 0
    dialog.close()


def test_recovery_keeps_the_work_but_no_secret(window: MainWindow) -> None:
    hand = opened(window, small())
    editor = hand.view.editor
    editor.push(changes.change_operator(editor.document, "rows", "postgresql_source"))
    editor.push(changes.set_setting(editor.document, "rows", "password", "hunter2"))
    editor.push(changes.set_setting(editor.document, "rows", "host", "db.example.org"))
    window.recovery._kept[editor].write()
    (file,) = window.recovery.folder.glob("*.yaml")
    text = file.read_text(encoding="utf-8")
    assert "hunter2" not in text
    assert "db.example.org" in text
    assert editor.document.workflow.nodes["rows"].settings["password"] == "hunter2", "what is open is as it was"


def test_a_file_changed_by_another_program_is_not_overwritten_unasked(
    window: MainWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "one.butterfly.yaml"
    save(small().workflow, path)
    view = window.files.open(path)
    assert view is not None
    other = small().workflow
    other.name = "theirs"
    save(other, path)
    view.editor.push(changes.set_title(view.editor.document, "some", "Few"))
    asked = []
    monkeypatch.setattr(QMessageBox, "question", lambda *args: asked.append(args) or QMessageBox.StandardButton.No)
    assert not window.files.save()
    assert len(asked) == 1
    assert load(path).workflow.name == "theirs"


def test_reading_again_from_disk_is_a_step_that_can_be_undone(window: MainWindow, tmp_path: Path) -> None:
    path = tmp_path / "one.butterfly.yaml"
    save(small().workflow, path)
    view = window.files.open(path)
    assert view is not None
    other = small().workflow
    del other.nodes["table"]
    other.edges = [edge for edge in other.edges if edge.target != "table"]
    save(other, path)
    before = view.editor.document.workflow.document()
    window.files.reload()
    assert set(view.canvas.nodes) == {"rows", "some", "more"}
    view.editor.stack.undo()
    assert view.editor.document.workflow.document() == before


def test_what_was_read_again_is_the_file_also_for_the_next_save(window: MainWindow, tmp_path: Path) -> None:
    path = tmp_path / "one.butterfly.yaml"
    save(small().workflow, path)
    view = window.files.open(path)
    assert view is not None
    text = path.read_text(encoding="utf-8") + "# theirs\nplan:\n  memory_rows: 7\n"
    path.write_text(text, encoding="utf-8")
    window.files.reload()
    assert not view.editor.modified
    assert view.editor.document.workflow.plan is not None
    view.editor.push(changes.set_title(view.editor.document, "some", "Few"))
    assert window.files.save()  # nobody is asked
    assert load(path).workflow.plan == view.editor.document.workflow.plan
    assert "# theirs" in path.read_text(encoding="utf-8")
    view.editor.stack.setIndex(0)
    assert view.editor.document.workflow.plan is None
    assert "# theirs" not in view.editor.document.text()
    window.files.reload()
    window.files.reload()
    assert view.editor.document.title_of("some") == "Few"
    QTest.qWait(300)
    assert list(window.recovery.folder.glob("*.yaml")) == [], "nothing is unsaved"


def test_nodes_that_another_program_added_without_a_place_get_one(window: MainWindow, tmp_path: Path) -> None:
    path = tmp_path / "one.butterfly.yaml"
    save(small().workflow, path)
    view = window.files.open(path)
    assert view is not None
    other = small().workflow
    other.nodes["late"] = other.nodes["some"].model_copy()
    save(other, path)
    window.files.reload()
    frames = [item.frame() for item in view.canvas.nodes.values()]
    late = view.canvas.nodes["late"].frame()
    assert [frame for frame in frames if frame.intersects(late)] == [late]


@pytest.mark.parametrize("answer", ["Discard", "Cancel"])
def test_closing_with_unsaved_changes_asks(window: MainWindow, monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    hand = opened(window, small())
    hand.view.editor.push(changes.set_title(hand.view.editor.document, "some", "Few"))
    reply = getattr(QMessageBox.StandardButton, answer)
    monkeypatch.setattr(QMessageBox, "question", lambda *args: reply)
    assert window.close_tab(0) is (answer == "Discard")
    assert window.tabs.count() == (0 if answer == "Discard" else 1)


# ---------------------------------------------------------------- recovery

CRASHES = """
import sys
from pathlib import Path
from designer.app import make_application
application = make_application(["papilio"])
from designer.document import changes
from designer.session.settings import Settings
from designer.window.window import MainWindow
from PySide6.QtCore import QTimer
window = MainWindow(Settings())
window.show()
view = window.files.open(Path(sys.argv[1]))
view.editor.push(changes.set_title(view.editor.document, "join", "Nearly lost"))
recovery = window.recovery.folder
def look():
    if list(recovery.glob("*.yaml")):
        print("kept", flush=True)
timer = QTimer()
timer.timeout.connect(look)
timer.start(50)
application.exec()
"""


def test_work_survives_kill_9_and_is_offered_and_the_file_on_disk_is_as_it_was(
    window: MainWindow, tmp_path: Path
) -> None:
    path = tmp_path / "fig1.butterfly.yaml"
    path.write_text("# mine\n" + FIG1.read_text(encoding="utf-8"), encoding="utf-8")
    before = path.read_bytes()
    process = subprocess.Popen(
        [sys.executable, "-c", CRASHES, str(path)],
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "kept\n"
        assert window.recovery.lost() == []  # its program still runs
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    assert path.read_bytes() == before
    assert [one.name for one in window.recovery.lost()] == ["fig1.butterfly.yaml"]
    window.offer_recovery()
    assert window.banner.isVisible()
    assert "fig1.butterfly.yaml" in window.banner.text.text()
    window.banner.buttons[0].click()
    assert window.editor is not None
    assert window.editor.document.title_of("join") == "Nearly lost"
    assert window.editor.modified
    assert window.editor.path == path
    assert window.recovery.lost() == []
    assert window.files.save()
    assert load(path).workflow.nodes["join"].title == "Nearly lost"
    assert path.read_text(encoding="utf-8").startswith("# mine\n"), "the file's own comment is still there"
    assert list(window.recovery.folder.glob("*.yaml")) == []


def test_work_is_kept_aside_also_while_somebody_types_without_a_pause(window: MainWindow) -> None:
    hand = opened(window, small())
    for number in range(6):
        hand.view.editor.push(changes.set_title(hand.view.editor.document, "some", f"Few {number}"))
        QTest.qWait(80)
    (file,) = window.recovery.folder.glob("*.yaml")
    assert "Few " in file.read_text(encoding="utf-8")


def test_an_offer_to_rename_neither_ends_nor_forgets_an_offer_to_recover(window: MainWindow) -> None:
    folder = window.recovery.folder
    folder.mkdir(parents=True)
    (folder / "dead.yaml").write_text('# papilio recovery {"pid": 999999, "started": 1.0, "path": null}\npapilio: 1\n')
    hand = opened(window, small())
    window.offer_recovery()
    hand.view.canvas.select(["rows"])
    window.properties.show_selection()
    form = window.properties.form
    assert isinstance(form, NodeForm)
    form.renamed.emit(None)
    assert "can be recovered" in window.banner.text.text()
    assert window.banner.isVisible()
    form.renamed.emit(Renamed("rows", "a", "amount", ("some",), hand.view.editor.analysis))
    assert "amount" in window.banner.text.text()
    window.banner.buttons[1].click()
    assert window.banner.isVisible()
    assert "can be recovered" in window.banner.text.text()
    window.banner.buttons[1].click()
    assert not window.banner.isVisible()
    assert window.recovery.lost() == []


def test_what_is_discarded_is_not_offered_again_and_rubbish_is_passed_over(window: MainWindow) -> None:
    folder = window.recovery.folder
    folder.mkdir(parents=True)
    (folder / "rubbish.yaml").write_text("hello")
    (folder / "dead.yaml").write_text('# papilio recovery {"pid": 999999, "started": 1.0, "path": null}\npapilio: 1\n')
    lost = window.recovery.lost()
    assert [one.name for one in lost] == ["Untitled"]
    window.recovery.discard(lost)
    assert window.recovery.lost() == []


# ---------------------------------------------------------------- templates, store, compare, exports


@pytest.mark.parametrize("id_", [id_ for id_, *_ in archetypes()])
def test_every_archetype_is_a_template_of_its_own_shape(qapp: QApplication, id_: str) -> None:
    from designer.document.analysis import analyse
    from designer.document.document import Document

    found = analyse(Document(archetype(id_), catalogue()))
    assert [problem.message for problem in found.problems if " needs " not in problem.message] == []
    assert found.shape.archetype.value == id_  # seen before any setting is there
    from engine.model.binding import bind

    whole = archetype(id_)
    for node in whole.nodes.values():
        node.settings.update(SETTINGS.get(node.operator, {}))
    assert shape(bind(whole, catalogue())).archetype.value == id_


SETTINGS: dict[str, dict[str, Any]] = {
    "parquet_source": {"path": "in", "columns": {"a": "int"}},
    "parquet_target": {"path": "out"},
    "not_null": {"columns": ["a"]},
    "derive": {"columns": [{"name": "a", "expression": "a"}]},
    "join": {"keys": [{"left": "a"}]},
    "lookup": {"keys": [{"main": "a"}], "take": [{"column": "a", "name": "b"}]},
    "aggregate": {"group": ["a"]},
    "materialized_view": {"group": ["a"]},
    "filter": {"condition": "a > 1"},
}


def test_a_template_opens_as_a_new_unsaved_workflow(window: MainWindow) -> None:
    dialog = TemplatesDialog(window)
    names = [dialog.list.item(row).text() for row in range(dialog.list.count())]
    assert "fig1" in names
    assert all(not dialog.list.item(row).icon().isNull() for row in range(dialog.list.count()))
    dialog.list.setCurrentRow(names.index("fig1"))
    dialog.accept()
    assert window.editor is not None
    assert len(window.editor.document.workflow.nodes) == 18
    assert window.editor.path is None
    assert window.editor.modified


def test_versions_in_the_store_are_saved_opened_and_compared_on_the_canvas(window: MainWindow) -> None:
    hand = opened(window, small())
    dialog = StoreDialog(window)
    dialog.put("flow", "first")
    hand.view.editor.push(changes.remove(hand.view.editor.document, ["more"]))
    hand.view.editor.push(changes.set_setting(hand.view.editor.document, "some", "condition", "a > 2"))
    edit, _ = changes.add_node(hand.view.editor.document, "sort", (440, 100), behind=("some", "rest"))
    hand.view.editor.push(edit)
    dialog.put("flow", "second")
    top = dialog.tree.topLevelItem(0)
    assert top.childCount() == 2
    top.child(0).setSelected(True)
    top.child(1).setSelected(True)
    dialog.compare()
    compared = next(box for box in window.findChildren(CompareDialog))
    marks = {id_: item.mark for id_, item in compared.view.canvas.nodes.items()}
    assert marks == {"rows": None, "some": "changed", "more": "removed", "table": None, "sort": "added"}
    edges = {item.edge.from_: item.mark for item in compared.view.canvas.edges.values()}
    assert edges["some.rest"] == "added"
    assert edges["more.out"] == "removed"
    compared.close()
    dialog.tree.clearSelection()
    top.child(1).setSelected(True)
    dialog.open_version()
    assert window.editor is not None
    assert set(window.editor.document.workflow.nodes) == {"rows", "some", "more", "table"}


@pytest.mark.parametrize("form", ["svg", "png"])
def test_the_canvas_is_saved_as_a_picture(window: MainWindow, tmp_path: Path, form: str) -> None:
    hand = opened(window, fig1())
    path = tmp_path / f"picture.{form}"
    save_picture(hand.view.canvas, path)
    data = path.read_bytes()
    if form == "svg":
        assert b"Join table" in data
    else:
        image = QImage(str(path))
        frame = hand.view.canvas.content()
        assert abs(image.width() / image.height() - (frame.width() + 140) / (frame.height() + 140)) < 0.05
        colors = {
            image.pixelColor(x, y).name() for x in range(0, image.width(), 9) for y in range(0, image.height(), 9)
        }
        assert {theme().left.name(), theme().body.name(), theme().right.name()} <= colors


@pytest.mark.parametrize("form", ["svg", "png"])
def test_the_command_line_draws_the_picture_without_a_window(tmp_path: Path, form: str) -> None:
    file, picture = tmp_path / "small.butterfly.yaml", tmp_path / f"small.{form}"
    small().save(file)
    alone = {key: value for key, value in os.environ.items() if key not in ("DISPLAY", "WAYLAND_DISPLAY")}

    def export(*more: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "engine", "export", str(file), "--to", form, *more]
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=alone)
        return done.returncode, done.stderr

    assert export("--output", str(picture)) == (0, "")
    if form == "svg":
        texts = " ".join(ElementTree.parse(picture).getroot().itertext())
        assert all(title in texts for title in ("rows", "some", "more", "table"))
    else:
        assert QImage(str(picture)).width() > 800
    nowhere = tmp_path / "no" / f"a.{form}"
    code, said = export("--output", str(nowhere))
    assert code != 0
    assert said.strip() == f"{nowhere}: cannot be written"
    code, said = export()
    assert code != 0
    assert f"--output NAME.{form}" in said


def test_the_script_is_written_by_the_engine_in_its_own_process(window: MainWindow, tmp_path: Path) -> None:
    path = tmp_path / "small.butterfly.yaml"
    (tmp_path / "in.csv").write_text("a,b\n1,x\n")
    save(small().workflow, path)
    window.files.open(path)
    window.exports.write_script(tmp_path / "small.py")
    deadline = time.monotonic() + 60
    while window.exports.process is not None and time.monotonic() < deadline:
        QTest.qWait(50)
    assert "SparkSession" in (tmp_path / "small.py").read_text()


# ---------------------------------------------------------------- commands, themes, memory


def test_no_two_commands_share_a_shortcut() -> None:
    keys = [one.shortcut for one in commands().values() if one.shortcut]
    assert sorted(keys) == sorted(set(keys))


def test_every_command_runs_on_an_open_workflow_without_harm(window: MainWindow, monkeypatch: Any) -> None:
    from PySide6.QtWidgets import QFileDialog, QInputDialog

    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *a, **k: ("", ""))
    monkeypatch.setattr(QFileDialog, "getOpenFileNames", lambda *a, **k: ([], ""))
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *a, **k: ("", ""))
    monkeypatch.setattr(QInputDialog, "getText", lambda *a, **k: ("", False))
    monkeypatch.setattr(QMessageBox, "question", lambda *a, **k: QMessageBox.StandardButton.Cancel)
    hand = opened(window, fig1())
    before = hand.view.editor.document.workflow.document()
    for id_ in commands():
        if id_ not in ("file.quit", "file.close", "view.look", "view.restart_engine"):  # the last two start the engine
            window.tabs.setCurrentWidget(hand.view)
            hand.view.canvas.select(["join", "joined", "view_1"])
            window.run(id_)
            QApplication.processEvents()
    for widget in QApplication.topLevelWidgets():
        if widget is not window:
            widget.close()
    hand.view.editor.stack.setIndex(0)
    assert hand.view.editor.document.workflow.document() == before
    themes().choose("light")


def test_the_command_palette_finds_and_runs_a_command(window: MainWindow) -> None:
    hand = opened(window, fig1())
    hand.key(Qt.Key.Key_P, Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier)
    assert window.command_palette.isVisible()
    hand.type("select all")
    hand.key(Qt.Key.Key_Return)
    assert len(hand.view.canvas.selected_nodes()) == 18


def test_the_theme_is_switched_and_remembered(window: MainWindow) -> None:
    hand = opened(window, fig1())
    item = next(item for item in hand.view.canvas.nodes.values() if item.kind and item.kind.role is Role.ACTIVITY)
    face = hand.at(item.frame().right() - 24, item.frame().top() + 12)  # where a node has neither word nor sign

    def seen() -> tuple[QColor, QColor]:
        image = hand.view.viewport().grab().toImage()
        return image.pixelColor(5, 5), image.pixelColor(face)

    light = seen()
    assert item.cacheMode() == QGraphicsItem.CacheMode.DeviceCoordinateCache
    window.run("view.theme_dark")
    dark = seen()
    assert min(color.lightness() for color in light) > 200
    assert dark[0].lightness() < 60
    assert dark[1].lightness() < 90, "the picture that is kept of a node is painted again, too"
    assert Settings(window.settings.folder).theme == "dark"
    window.run("view.theme_light")


def _luminance(color: QColor) -> float:
    parts = [one / 12.92 if one <= 0.03928 else ((one + 0.055) / 1.055) ** 2.4 for one in color.getRgbF()[:3]]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


@pytest.mark.parametrize("name", ["light", "dark"])
def test_words_stand_out_from_what_they_stand_on(name: str) -> None:
    """The contrast that WCAG 2 asks of texts; of what is disabled or only a hint, that of large ones."""
    shown = load_theme(name)
    for least, roles in ((4.5, ("text", "muted", "error", "ok")), (3.0, ("faint", "warning", "accent"))):
        for role in roles:
            for ground in ("window", "base", "raised", "canvas"):
                light, dark = sorted((_luminance(getattr(shown, one)) for one in (role, ground)), reverse=True)
                assert (light + 0.05) / (dark + 0.05) >= least, f"{role} on {ground}"


def test_icons_take_the_colours_of_the_theme_in_use(window: MainWindow) -> None:
    opened(window, fig1())

    def darkest() -> int:
        buttons = [one for one in window.properties.findChildren(QPushButton) if one.text() == "Add"]
        assert buttons
        picture = buttons[0].icon().pixmap(16, 16).toImage()
        spots = [picture.pixelColor(x, y) for x in range(16) for y in range(16)]
        return min(spot.lightness() for spot in spots if spot.alpha() > 200)

    assert darkest() < 60
    window.run("view.theme_dark")
    assert darkest() > 150
    window.run("view.theme_light")


def test_a_panel_behind_another_comes_to_the_front_and_works_only_there(window: MainWindow) -> None:
    opened(window, fig1())
    QApplication.processEvents()
    assert window.in_front("problems")
    assert window.docks["outline"].isVisible(), "to Qt"
    assert not window.outline.isVisible()
    assert window.outline.list.count() == 0, "nobody looks at it"
    window.run("view.dock_outline")
    QApplication.processEvents()
    assert window.in_front("outline")
    assert window.outline.list.count() == 18
    window.run("view.dock_outline")
    assert not window.docks["outline"].isVisible()


def test_an_empty_list_says_what_would_fill_it(window: MainWindow) -> None:
    opened(window, empty())
    assert "Drag an operator" in window.problems.hint.text()
    hand = opened(window, fig1())
    assert window.problems.hint.isVisible()
    assert "can run" in window.problems.hint.text()
    hand.view.editor.push(changes.set_settings(hand.view.editor.document, "join", {}))
    hand.view.editor.check()
    assert window.problems.topLevelItemCount() > 0
    assert not window.problems.hint.isVisible()


def test_hidden_panels_stay_hidden_next_time(window: MainWindow) -> None:
    window.docks["outline"].hide()
    window.settings.keep(window)
    again = MainWindow(Settings(window.settings.folder))
    again.show()
    assert not again.docks["outline"].isVisible()
    assert again.docks["properties"].isVisible()
    again.close()
    again.deleteLater()


def test_the_palette_has_operators_by_family_and_finds_them_by_typing(window: MainWindow) -> None:
    hand = opened(window, empty())
    model = window.palette_panel.model
    families = {
        model.item(row).text(): {model.item(row).child(at).text() for at in range(model.item(row).rowCount())}
        for row in range(model.rowCount())
    }
    assert list(families)[:2] == ["Sources", "Cleansing"]
    assert "Filter" in families["Flow"] | families["Cleansing"] | families["Shaping"]
    assert sum(map(len, families.values())) == len(catalogue())
    window.run("edit.palette")
    hand.type("dedup")
    assert model.item(0).text().startswith(catalogue()["deduplicate"].title)
    assert model.rowCount() < 5
    hand.key(Qt.Key.Key_Return)
    assert [node.operator for node in hand.view.editor.document.workflow.nodes.values()] == ["deduplicate"]
    assert hand.view.editor.stack.count() == 1
    window.palette_panel.search.clear()
    assert model.rowCount() == len(families)


def test_an_operator_of_the_palette_is_painted_with_its_icon_in_the_color_of_its_row(window: MainWindow) -> None:
    tree, model = window.palette_panel.tree, window.palette_panel.model
    index = model.index(0, 0, model.index(0, 0))
    row = tree.visualRect(index)
    at = row.adjusted(0, 0, 24 - row.width(), 0)

    def colors() -> set[str]:
        picture = tree.viewport().grab(at).toImage()
        places = [(x, y) for x in range(picture.width()) for y in range(picture.height())]
        return {picture.pixelColor(x, y).name() for x, y in places}

    assert theme().text.name() in colors()
    tree.setCurrentIndex(index)
    assert theme().text.name() not in colors()
    assert theme().accent_text.name() in colors()


def test_menus_have_their_icons_when_they_open(window: MainWindow) -> None:
    opened(window, small())
    menus = [action.menu() for action in window.menuBar().actions()]
    for menu in [*menus, window.context_menu()]:
        assert isinstance(menu, QMenu)
        menu.aboutToShow.emit()
        named = [action for action in menu.actions() if action.property("icon_name")]
        assert all(not action.icon().isNull() for action in named)
    shown = [*window.toolbar.actions(), *window.driver.bar.actions()]
    assert all(not action.icon().isNull() for action in shown if action.property("icon_name"))


def test_the_outline_finds_a_node_and_centres_it(window: MainWindow) -> None:
    hand = opened(window, fig1())
    hand.view.zoom_to(1.5)
    window.run("edit.find")
    hand.type("by supplier")
    hand.key(Qt.Key.Key_Return)
    assert hand.view.canvas.selected_nodes() == ["view_4_by"]
    assert hand.view.visible_frame().contains(hand.view.canvas.nodes["view_4_by"].frame())


def test_checking_starts_neither_spark_nor_a_process(window: MainWindow) -> None:
    import psutil

    children = len(psutil.Process().children())
    hand = opened(window, fig1())
    hand.view.editor.push(changes.remove(hand.view.editor.document, ["join"]))
    hand.view.editor.analyse_now()
    assert hand.view.editor.analysis.problems
    assert len(psutil.Process().children()) == children

"""Pictures of workflows: what is written without Qt is what the canvas shows."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QByteArray, QRectF
from PySide6.QtGui import QColor, QFont, QFontDatabase, QFontMetricsF, QImage, QPainter
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QApplication

from designer.canvas.picture import picture_frame, render_image
from designer.canvas.scene import CanvasScene
from designer.canvas.sheet import use_font
from designer.document.analysis import analyse
from designer.document.document import Document
from designer.document.layout import edge_key, groups
from designer.drawing.markdown import Block, blocks, draw_text, wrapped
from designer.drawing.node import WORDS_WIDTH, elided, fitted
from designer.drawing.sheet import FONTS
from designer.drawing.svg import FAMILY, SvgSheet
from designer.drawing.widths import font_width, text_width
from designer.drawing.workflow import draw_workflow
from designer.export import main as export
from designer.png import write_png
from engine.errors import EnvironmentProblem
from engine.model.workflow import Workflow
from engine.operators import catalogue
from engine.raster import rasterise, with_fonts
from tests.designer.examples import edits, empty, fig1, small

SVG = "{http://www.w3.org/2000/svg}"


def everything() -> Document:
    """All that a canvas can have: groups, a note, an unknown operator, problems, bends, refused rows, a way back."""
    document = fig1()
    data = document.workflow.document()
    data["nodes"]["supplier"]["operator"] = "no_such_operator"
    data["nodes"]["partsupp"]["title"] = "A title that is far too long for one line, and for two"
    data["edges"].append({"from": "not_null_partsupp.quarantine", "to": "no_such_target.in"})
    data["nodes"]["no_such_target"] = {"operator": "parquet_target"}
    layout = data["layout"]
    layout["nodes"]["no_such_target"] = [460, 120]
    layout["nodes"]["view_2"] = [1540, 110]  # back from where its rows come
    layout["bends"] = {edge_key(document.workflow.edges[0]): [856, 110, 866, 110]}
    layout["notes"] = {"note": {"text": "", "at": [0, 400], "size": [200, 90]}}
    layout["groups"] = {
        "open": {"title": "Suppliers", "nodes": ["supplier", "not_null_supplier"]},
        "shut": {"title": "Views, all of which are shut away", "nodes": ["view_3", "view_3_by"], "collapsed": True},
    }
    return Document(Workflow.model_validate(data), catalogue())


@pytest.fixture
def _fonts_of_a_picture(qapp: QApplication) -> Iterator[None]:
    use_font(QFont(FAMILY))
    yield
    use_font(qapp.font())


def pixels(image: QImage) -> np.ndarray:
    image = image.convertToFormat(QImage.Format.Format_RGB888)
    lines = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.bytesPerLine())
    return lines[:, : 3 * image.width()].reshape(image.height(), image.width(), 3).astype(int)


def painted_by_qt(svg: str) -> np.ndarray:
    renderer = QSvgRenderer(QByteArray(svg.encode()))
    image = QImage(renderer.defaultSize() * 2, QImage.Format.Format_RGB32)
    painter = QPainter(image)
    painter.setRenderHints(QPainter.RenderHint.Antialiasing | QPainter.RenderHint.TextAntialiasing)
    renderer.render(painter)
    painter.end()
    return pixels(image)


@pytest.mark.usefixtures("_fonts_of_a_picture")
@pytest.mark.parametrize("make", [fig1, small, everything, empty])
def test_a_picture_shows_what_the_canvas_shows(make) -> None:
    document = make()
    analysis = analyse(document)
    scene = CanvasScene(document)
    scene.show_analysis(analysis)
    frame = picture_frame(scene)
    canvas = pixels(render_image(scene, frame))
    scene.close()
    drawn = painted_by_qt(draw_workflow(document, analysis))
    assert drawn.shape == canvas.shape
    for note in scene.notes.values():  # by its corner it is dragged: nobody drags a picture
        corner = note.frame().bottomRight() - frame.topLeft()
        x, y = round(2 * corner.x()), round(2 * corner.y())
        drawn[y - 28 : y - 2, x - 28 : x - 2] = canvas[y - 28 : y - 2, x - 28 : x - 2]
    strong = (abs(drawn - canvas).max(axis=2) > 60).sum()
    assert strong <= 20, "the edge of a shape may fall on another side of a pixel, nothing more"


def test_the_dots_of_the_grid_are_where_the_canvas_has_them() -> None:
    document = empty()
    scene = CanvasScene(document)
    canvas = pixels(render_image(scene, picture_frame(scene)))
    scene.close()
    svg = draw_workflow(document, analyse(document))
    ground = canvas[0, 0]
    for drawn in (painted_by_qt(svg), pixels(QImage.fromData(rasterise(svg)))):
        dots = (drawn != ground).any(axis=2)
        assert dots.sum() == 13 * 8 * 16, "as many as there is room for, of 4 by 4 pixels"
        assert (canvas[dots] != ground).any(axis=1).all()


def test_what_is_compared_would_show_the_smallest_thing_that_is_missing() -> None:
    document = fig1()
    analysis = analyse(document)
    whole = draw_workflow(document, analysis)
    missing = whole.replace('<circle cx="176" cy="32" r="5.5"', '<circle cx="176" cy="32" r="0"', 1)
    assert missing != whole
    one, other = map(painted_by_qt, (whole, missing))
    assert (abs(one - other).max(axis=2) > 60).sum() > 100


def seen(image: np.ndarray) -> np.ndarray:
    """An image as it is seen from so far that the edges of letters cannot be told: the means of 8 by 8 pixels."""
    height, width = image.shape[0] // 8, image.shape[1] // 8
    return image[: 8 * height, : 8 * width].reshape(height, 8, width, 8, 3).mean(axis=(1, 3))


@pytest.mark.parametrize("make", [fig1, small, everything, empty])
def test_a_png_shows_what_qt_would_paint_by_the_same_drawing(make) -> None:
    document = make()
    svg = draw_workflow(document, analyse(document))
    one, other = pixels(QImage.fromData(rasterise(svg))), painted_by_qt(svg)
    assert one.shape == other.shape
    assert abs(seen(one) - seen(other)).max() < 16, "the smallest port that is missing makes a difference of 100"


def test_a_png_asks_for_fonts_that_are_there_and_says_so_where_there_are_none() -> None:
    svg = '<svg font-family="system-ui, sans-serif"><text font-family="monospace">a</text><text>b</text></svg>'
    for installed, sans, mono in (
        (["Noto Sans", "DejaVu Serif", "DejaVu Sans", "Liberation Mono"], "DejaVu Sans", "Liberation Mono"),
        (["Zapf", "Noto Sans"], "Noto Sans", "Noto Sans"),
        (["Zapf", "Some Sans"], "Some Sans", "Some Sans"),
        (["Zapf"], "Zapf", "Zapf"),
    ):
        families = [each.get("font-family") for each in ElementTree.fromstring(with_fonts(svg, installed)).iter()]
        assert families == [sans, mono, None]
    with pytest.raises(EnvironmentProblem, match=r"no font is installed.*fonts-dejavu-core"):
        with_fonts(svg, [])


def test_a_png_is_no_larger_than_programs_can_show() -> None:
    svg = '<svg xmlns="http://www.w3.org/2000/svg" width="20000" height="100"><rect width="100" height="100"/></svg>'
    image = QImage.fromData(rasterise(svg))
    assert (image.width(), image.height()) == (16_000, 80)
    assert [image.pixelColor(x, 40).name() for x in (40, 120)] == ["#000000", "#ffffff"]


def titles(svg: str) -> list[str | None]:
    return [title.text for title in ElementTree.fromstring(svg).iterfind(f"{SVG}g/{SVG}title")]


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_whatever_a_person_draws_has_a_picture(data: st.DataObject) -> None:
    document = small()
    for _ in range(data.draw(st.integers(0, 6))):
        document.apply(data.draw(edits(document)))
    svg = draw_workflow(document, analyse(document))
    shut = {id_: group for id_, group in groups(document.workflow).items() if group.collapsed}
    hidden = {id_ for group in shut.values() for id_ in group.nodes}
    found = titles(svg)
    for id_ in document.workflow.nodes.keys() - hidden:
        assert document.title_of(id_) in found


def test_texts_that_xml_cannot_hold_or_that_look_like_it_are_written_as_they_are_seen() -> None:
    data = small().workflow.document()
    data["nodes"]["rows"]["title"] = "a < b & c\x07"
    data["nodes"]["some"]["title"] = "wide  gap"
    document = Document(Workflow.model_validate(data), catalogue())
    svg = draw_workflow(document, analyse(document))
    assert {"a < b & c", "wide  gap"} <= set(titles(svg))
    texts = ["".join(text.itertext()) for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]
    assert "a < b & c" in texts
    assert "wide  gap" in texts


# ---------------------------------------------------------------- words


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=60))
def test_a_title_fits_its_node(title: str) -> None:
    def advance(text: str) -> float:
        return font_width(text, "title")

    lines = fitted(title, WORDS_WIDTH, advance)
    assert 1 <= len(lines) <= 2
    assert all(advance(line) <= WORDS_WIDTH for line in lines)
    shown = "".join("".join(lines).split())
    whole = "".join(title.split())
    assert shown == whole or (shown.endswith("…") and whole.startswith(shown[:-1]))


def test_as_much_of_a_text_is_shown_as_there_is_room_for() -> None:
    assert elided("abcdef", 6, len) == "abcdef"
    assert elided("abcdefg", 6, len) == "abcde…"
    assert elided("abcdefg", 1, len) == "…"


@pytest.mark.parametrize("font", FONTS)
def test_widths_are_those_of_the_font_they_were_taken_from(qapp: QApplication, font: str) -> None:
    if "DejaVu Sans" not in QFontDatabase.families():
        pytest.skip("DejaVu Sans is not installed")
    measured = QFont("DejaVu Sans")
    measured.setPixelSize(1000)  # no hinting to whole pixels
    measured.setKerning(False)
    measured.setWeight(QFont.Weight(FONTS[font][1]))
    metrics = QFontMetricsF(measured)
    for text in ("By nation, part", "not_null_partsupp", "Größe (MB) = 100 %", "WMiIl@#{}"):
        assert font_width(text, font) == pytest.approx(
            metrics.horizontalAdvance(text) * FONTS[font][0] / 1000, rel=0.01
        )
    assert text_width("漢字", 10) == pytest.approx(20)


# ---------------------------------------------------------------- notes


def plain(text: str) -> list[tuple[int, str, str]]:
    return [(block.depth, block.mark, "".join(words for words, _ in block.runs)) for block in blocks(text)]


def test_a_note_has_headings_lists_and_code() -> None:
    text = "# Top\nfirst\nsecond\n\n- one\n- two\n\n  3. deep\n  4. deeper\n\n> said\n\n```\n  a = 1\n```\n"
    assert plain(text) == [
        (0, "", "Top"),
        (0, "", "first second"),
        (1, "•", "one"),
        (1, "•", "two"),
        (2, "3.", "deep"),
        (2, "4.", "deeper"),
        (1, "", "said"),
        (0, "", "  a = 1"),
    ]
    top, first, *_, code = blocks(text)
    assert top.runs[0][1].pixels > first.runs[0][1].pixels
    assert top.runs[0][1].bold
    assert code.code
    assert code.runs[0][1].mono


def test_a_note_has_bold_slanted_and_linked_words_and_never_html() -> None:
    (block,) = blocks("a **b *c*** `d` [e](https://example.org) <b>f</b>")
    assert [(words, look.bold, look.slanted, look.mono, look.ink) for words, look in block.runs if words.strip()] == [
        ("a ", False, False, False, "note_text"),
        ("b ", True, False, False, "note_text"),
        ("c", True, True, False, "note_text"),
        ("d", False, False, True, "note_text"),
        ("e", False, False, False, "accent"),
        (" <b>f</b>", False, False, False, "note_text"),
    ]


@given(st.text(max_size=200), st.floats(40, 300))
def test_the_lines_of_a_note_are_no_wider_than_it(text: str, width: float) -> None:
    def wide(line: list) -> float:
        return sum(text_width(words, look.pixels, look.bold, look.mono) for words, look in line)

    for block in blocks(text):
        if not block.code:
            for line in wrapped(block.runs, width):
                assert wide(line) <= width or len("".join(words for words, _ in line).strip()) <= 1
            whole = "".join("".join(words for words, _ in block.runs).split())
            lines = wrapped(block.runs, width)
            assert "".join("".join(words for line in lines for words, _ in line).split()) == whole


def test_what_a_note_has_no_room_for_is_not_drawn() -> None:
    def drawn(height: float) -> list[str]:
        sheet = SvgSheet((0, 0, 300, 300), "")
        draw_text(sheet, "first\n\nsecond\n\nthird\n\n" + "`" + "x" * 500 + "`", (200, height))
        return ["".join(text.itertext()) for text in ElementTree.fromstring(sheet.text()).iter(f"{SVG}text")]

    assert drawn(40) == ["first", "second"]
    assert drawn(20) == []
    assert len(drawn(400)) > 6


def test_nothing_is_drawn_of_a_block_without_words() -> None:
    assert wrapped(Block([]).runs, 100) == []


# ---------------------------------------------------------------- files


@pytest.mark.parametrize("size", [(101, 7), (4, 1), (640, 480)])
def test_an_image_is_the_same_when_it_is_read_again(tmp_path: Path, size: tuple[int, int]) -> None:
    image = QImage(*size, QImage.Format.Format_RGB32)
    image.fill(QColor("#2a78b5"))
    painter = QPainter(image)
    for step in range(0, size[0], 3):
        painter.fillRect(QRectF(step, 0, 2, size[1] / 2), QColor(step % 256, 100, 7))
    painter.end()
    write_png(image, tmp_path / "a.png")
    assert QImage(str(tmp_path / "a.png")).convertToFormat(QImage.Format.Format_RGB32) == image


def test_an_image_that_cannot_be_written_is_told_by_its_name(tmp_path: Path) -> None:
    image = QImage(2, 2, QImage.Format.Format_RGB32)
    with pytest.raises(OSError, match=r"no.a\.png: cannot be written$"):
        write_png(image, tmp_path / "no" / "a.png")


def test_without_the_layout_library_a_file_that_needs_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    placed, lost = tmp_path / "placed.butterfly.yaml", tmp_path / "lost.butterfly.yaml"
    document = small()
    document.save(placed)
    document.workflow.layout.clear()
    document.save(lost)
    monkeypatch.setitem(sys.modules, "fast_sugiyama", None)
    assert export([str(placed), str(tmp_path / "placed.svg")]) == 0
    assert export([str(lost), str(tmp_path / "lost.svg")]) == 4
    assert "pip install 'papilio[designer]'" in capsys.readouterr().err
    assert not (tmp_path / "lost.svg").exists()


def test_a_file_without_places_is_arranged_before_it_is_drawn(tmp_path: Path) -> None:
    document = small()
    document.workflow.layout.clear()
    document.save(tmp_path / "lost.butterfly.yaml")
    assert export([str(tmp_path / "lost.butterfly.yaml"), str(tmp_path / "lost.svg")]) == 0
    nodes = ElementTree.parse(tmp_path / "lost.svg").getroot().findall(f"{SVG}g")
    assert len({node.get("transform") for node in nodes}) == 4

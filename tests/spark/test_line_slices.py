"""Reading lines piece by piece: the pieces are all lines of all files, each once, with their own numbers."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.model.operator import Place
from engine.operators.line_sources import CsvSource, TblSource
from engine.spark import line_slices as lines
from engine.spark.line_slices import LineCopies, line_slices

HERE = Place(Path, str)


def source(path, **settings):
    return CsvSource(path=str(path), columns={"n": "bigint"}, **settings)


def lines_of(text, header):
    """The lines of a text with their numbers as Spark counts them, those that are no record left out."""
    found, first = [], header
    for number, line in enumerate(text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"), 1):
        if not line.strip():
            continue
        if first:
            first = False
        else:
            found.append((number, line))
    return found


def read_back(read, header):
    """What a job finds: each line with the file and the number that are told of it."""
    found = []
    for file in read.files:
        origin, before = read.origins.get(file, (file, 0))
        found += [(origin, number + before, line) for number, line in lines_of(Path(file).read_bytes(), header)]
    return found


@given(
    texts=st.lists(
        st.lists(
            st.tuples(st.integers(0, 10**6).map(str) | st.just(""), st.sampled_from(["\n", "\r\n", "\n", "\r"])),
            max_size=40,
        ),
        min_size=1, max_size=4,
    ),
    header=st.booleans(), parts=st.integers(1, 3), least=st.integers(1, 60), turns=st.lists(st.integers(1, 5), min_size=1), cold=st.booleans(),
)  # fmt: skip
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_the_pieces_are_all_lines_with_their_numbers(tmp_path_factory, texts, header, parts, least, turns, cold):
    folder = tmp_path_factory.mktemp("lines")
    (folder / "in").mkdir()
    expected = []
    for at, text in enumerate(texts):
        file = folder / "in" / f"{at}.csv"
        file.write_bytes("".join(line + end for line, end in [("head", "\n")] * header + text).encode())
        expected += [(str(file), *line) for line in lines_of(file.read_bytes(), header)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "LEAST_BYTES", least)
        patch.setattr(lines, "RUN_PACKS", 0)
        csv = source(folder / "in", header=header)
        slices = line_slices(csv, HERE, 1)
    if slices is None:
        return
    copies, found, at = LineCopies(csv), [], 0
    for turn in turns + [1] * len(slices):
        if cold:
            copies = LineCopies(csv)  # as after a restart
        found += read_back(copies.copied(slices[at : at + turn], folder / f"turn{at}", parts), header)
        at = min(at + turn, len(slices))
    assert found == expected


def test_a_small_file_is_read_in_one_go(tmp_path):
    (tmp_path / "rows.csv").write_text("n\n1\n")
    assert line_slices(source(tmp_path / "rows.csv"), HERE, 50_000) is None


@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_files_are_read_one_by_one_as_they_are(tmp_path, ending):
    import gzip

    for at in range(3):
        text = "n\n" + "12345\n" * 2000
        (tmp_path / f"{at}.{ending}").write_bytes(gzip.compress(text.encode()) if "gz" in ending else text.encode())
    csv = source(tmp_path)
    slices = line_slices(csv, HERE, 50_000)
    assert len(slices) == 3
    assert all(slice_.rows > 0 for slice_ in slices)
    read = LineCopies(csv).copied(slices[1:], tmp_path / "copies")
    assert read.files == [str(tmp_path / f"{at}.{ending}") for at in (1, 2)]
    assert not read.origins


def test_records_over_several_lines_are_not_torn(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "LEAST_BYTES", 4)
    monkeypatch.setattr(lines, "RUN_PACKS", 0)
    (tmp_path / "rows.csv").write_text('n\n"1\n2"\n3\n')
    assert line_slices(source(tmp_path, multi_line=True), HERE, 1) is None
    (tmp_path / "rows.tbl").write_text("1|\n2|\n3|\n")
    assert len(line_slices(TblSource(path=str(tmp_path / "rows.tbl"), columns={"n": "int"}), HERE, 1)) == 2


def test_a_file_whose_name_spark_would_take_for_a_pattern_is_read_with_the_others(tmp_path):
    for name in ("a.csv", "b[1].csv"):
        (tmp_path / name).write_text("n\n1\n")
    assert line_slices(source(tmp_path), HERE, 50_000) is None

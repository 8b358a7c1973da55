"""Comments of a workflow file survive a save, at what they stand at."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from engine.model.comments import comments_of, with_comments
from engine.model.file import to_yaml, workflow_from
from engine.model.yamldata import read_yaml

WRITTEN = """\
# yaml-language-server: $schema=../resources/schema/butterfly.schema.json
# Made by Ada.

# What it is called.
name: small
papilio: 1  # the format
# All that moves.
nodes:
  # Rows come from here.
  #
  # Two # signs.
  lines: {operator: parquet_source, settings: {path: "a#b.parquet"}}  # the "source"
  few:
    operator: filter
    note: |
      # not a comment
      but text
    # Returned only.
    settings:
      condition: flag = 'R'  # R: returned
  sums:
    operator: aggregate
    settings:
      group: [mode]
      aggregates:
      - {name: value, expression: sum(price)}  # in euro
      # How many.
      - {name: lines, expression: count(*)}
  out: {operator: parquet_target, settings: {path: out}}
edges:
- {from: lines, to: few}   # all of them
# The good ones.
- {from: few.match, to: sums}
- {from: sums, to: out}
# That is all.
"""


def saved(text: str, change=lambda workflow: None) -> str:
    workflow = workflow_from(read_yaml(text, "file")[0], "file")
    change(workflow)
    return with_comments(to_yaml(workflow), comments_of(text))


def line_above(text: str, start: str) -> str:
    lines = text.splitlines()
    return lines[next(number for number, line in enumerate(lines) if line.strip().startswith(start)) - 1].strip()


def test_every_comment_is_written_back_to_what_it_stood_at():
    text = saved(WRITTEN)
    assert text.startswith(
        "# yaml-language-server: $schema=../resources/schema/butterfly.schema.json\n# Made by Ada.\n"
    )
    assert line_above(text, "name: small") == "# What it is called."
    assert "papilio: 1  # the format\n" in text
    assert line_above(text, "nodes:") == "# All that moves."
    assert '  # Rows come from here.\n  #\n  # Two # signs.\n  lines:  # the "source"\n' in text
    assert line_above(text, "condition") == "settings:"
    assert "condition: flag = 'R'  # R: returned\n" in text
    assert "# in euro" in text
    assert "# How many.\n      - " in text
    assert "- {from: lines, to: few}  # all of them\n" in text
    assert line_above(text, "- {from: few.match, to: sums}") == "# The good ones."
    assert text.endswith("# That is all.\n")


def test_saving_again_changes_nothing():
    once = saved(WRITTEN)
    assert saved(once) == once


def test_a_comment_goes_with_what_it_stands_at_and_with_nothing_else():
    def remove_first_edge(workflow):
        del workflow.edges[0]

    text = saved(WRITTEN, remove_first_edge)
    assert "all of them" not in text
    assert line_above(text, "- {from: few.match, to: sums}") == "# The good ones."


def test_an_item_of_a_list_keeps_its_comment_when_it_is_edited():
    def edit(workflow):
        workflow.nodes["sums"].settings["aggregates"][0]["expression"] = "sum(price * 2)"

    assert "# in euro" in saved(WRITTEN, edit)


def test_the_sign_inside_a_value_is_no_comment():
    assert "not a comment" not in str(comments_of(WRITTEN).by_content)
    assert comments_of("papilio: 1\nname: a#b\ndescription: 'c # d'\n").by_content == {}


def test_a_comment_behind_a_value_that_is_broken_over_lines_goes_above_it():
    long = " + ".join(["some_long_column_name"] * 12)
    text = f"papilio: 1\nnodes:\n  few:\n    operator: filter\n    settings:\n      condition: {long}  # why\n"
    assert line_above(saved(text), "condition:") == "# why"


words = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=20)


@given(notes=st.lists(words, min_size=3, max_size=3), signs=st.lists(words, min_size=2, max_size=2))
@example(notes=["# ", ": x", "- {a"], signs=["#", " # "])
def test_whatever_a_comment_says_the_workflow_stays_the_same(notes, signs):
    values = {
        "papilio": 1,
        "name": signs[0],
        "description": signs[1],
        "nodes": {"a": {"operator": "copy", "note": signs[0]}},
    }
    plain = to_yaml(workflow_from(values, "file"))
    lines = plain.splitlines()
    written = "\n".join([f"# {notes[0]}", f"{lines[0]}  # {notes[1]}", f"# {notes[2]}", *lines[1:]]) + "\n"
    assert read_yaml(written, "file")[0] == read_yaml(plain, "file")[0]
    text = with_comments(plain, comments_of(written))
    assert read_yaml(text, "file")[0] == read_yaml(plain, "file")[0]
    for note in notes:
        assert f"# {note}".rstrip() in text

"""XML holds every plain document and the whole store without loss, and refuses what could do harm."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import BadInput
from engine.store import MetadataStore, PlanRecord, RunRecord, SourceSchema, WorkflowVersion
from engine.store.plain import escape, unescape
from engine.store.xml import store_from_xml, store_to_xml, workflow_from_xml, workflow_to_xml
from tests.store.examples import NOON, WORKFLOW, WORKFLOW_XML, a_plan, a_run, an_operator

# Every character there is, with those that make trouble more often.
texts = st.text(
    st.one_of(st.characters(exclude_categories=()), st.sampled_from("\x00\r\n\t \\u{}<>&\"'5C\ufffe\ud800"))
)
texts = st.one_of(texts, st.sampled_from(["id", "is", "nodes", "1", "-0", "true", "null", "nan", "1e5", "xml", "a.b"]))
scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.integers(-(2**300), 2**300), st.floats(), texts)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)),
    max_leaves=25,
)
documents = st.dictionaries(texts, values, max_size=6)


def bombs() -> dict[str, str]:
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    return {
        "billion laughs": f'<!DOCTYPE x [<!ENTITY l0 "lol">{laughs}]><workflow a="&l9;"/>',
        "quadratic blowup": f'<!DOCTYPE x [<!ENTITY a "{"a" * 9_000}">]><workflow>{"&a;" * 9_000}</workflow>',
        "external entity": '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><workflow>&e;</workflow>',
        "parameter entity": '<!DOCTYPE x [<!ENTITY % p SYSTEM "http://127.0.0.1:1/x.dtd"> %p;]><workflow/>',
        "external DTD": '<!DOCTYPE workflow SYSTEM "http://127.0.0.1:1/x.dtd"><workflow/>',
        "plain DTD": "<!DOCTYPE workflow><workflow/>",
    }


def test_a_workflow_reads_well_as_xml() -> None:
    assert workflow_to_xml(WORKFLOW) == WORKFLOW_XML


def test_the_readable_workflow_comes_back() -> None:
    assert same(workflow_from_xml(WORKFLOW_XML), WORKFLOW)


@given(documents)
@settings(max_examples=400, deadline=None)
def test_any_document_comes_back_with_its_order(document: dict[str, Any]) -> None:
    written = workflow_to_xml(document)
    assert same(workflow_from_xml(written), document)
    assert same(workflow_from_xml(written.encode()), document)
    assert workflow_to_xml(workflow_from_xml(written)) == written


@given(texts)
def test_escaped_text_is_holdable_and_comes_back(text: str) -> None:
    assert unescape(escape(text)) == text
    escape(text).encode("utf-8")
    assert "\x00" not in escape(text)


def test_text_without_trouble_is_not_touched() -> None:
    for text in (r"C:\users\u1", r"regex \d+\{2}", "line\nline\ttab", "蝶 🦋"):
        assert escape(text) == text


def test_a_deep_document_comes_back_and_a_deeper_one_is_refused() -> None:
    document: dict[str, Any] = {}
    for _ in range(99):
        document = {"in": document}
    assert same(workflow_from_xml(workflow_to_xml(document)), document)
    with pytest.raises(BadInput, match="nested more than 100 deep"):
        workflow_to_xml({"in": document})


def test_space_and_comments_between_elements_mean_nothing() -> None:
    text = "<workflow>\n\t<!-- mine --><a is='int'> 1 </a>\r\n<?mark?>  <b> two </b></workflow>"
    assert workflow_from_xml(text) == {"a": 1, "b": " two "}


def test_other_encodings_are_read() -> None:
    text = '<?xml version="1.0" encoding="{}"?><workflow name="blå"/>'
    for encoding in ("utf-8", "utf-16", "iso-8859-1"):
        assert workflow_from_xml(text.format(encoding).encode(encoding)) == {"name": "blå"}
    assert workflow_from_xml(text.format("iso-8859-1")) == {"name": "blå"}


@pytest.mark.parametrize("bomb", bombs())
def test_document_types_and_entities_are_refused(bomb: str) -> None:
    with pytest.raises(BadInput, match=r"^w\.xml: a document type \(DTD\) is not accepted"):
        workflow_from_xml(bombs()[bomb], name="w.xml")


def test_200_000_deep_nesting_is_refused_at_once() -> None:
    depth = 200_000
    for text in ("<workflow>" + "<a>" * depth, "<workflow>" + "<a>" * depth + "</a>" * depth + "</workflow>"):
        with pytest.raises(BadInput, match=r"^w\.xml:1: nested more than 100 deep"):
            workflow_from_xml(text, name="w.xml")


def test_an_oversize_document_is_refused() -> None:
    with pytest.raises(BadInput, match=r"w\.xml:1: larger than 0\.5 MiB"):
        workflow_from_xml(f"<workflow a='{'ü' * 2**18}'/>", name="w.xml", max_bytes=2**19)


def test_a_document_of_too_many_values_is_refused() -> None:
    with pytest.raises(BadInput, match=r"w\.xml:1: more than 1,000,000 values"):
        workflow_from_xml(f"<workflow><a is='list'>{'<b/>' * 1_000_000}</a></workflow>", name="w.xml")


def test_an_oversize_file_is_refused_before_it_is_read_whole() -> None:
    class Endless(io.BytesIO):
        name = "big.xml"

        def read(self, size: int | None = -1, /) -> bytes:
            return super().read(size) or b" " * (size or 0)

    with (
        MetadataStore("sqlite://") as store,
        pytest.raises(BadInput, match=r"big\.xml:\d+: larger than 64 MiB"),
    ):
        store_from_xml(Endless(b"<store version='1'>"), store)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no element found"),
        ("nonsense", "broken XML"),
        ("<workflow>", "broken XML"),
        ("<workflow/>", "is empty"),
        ("<workflow>&unknown;</workflow>", "broken XML"),
        ("<other a='1'/>", "expected <workflow>, found <other>"),
        ("<workflow><a>1</a><a>2</a></workflow>", "'a' is there twice"),
        ("<workflow a='1'><a>2</a></workflow>", "'a' is there twice"),
        ("<workflow>text<a/></workflow>", "text beside the parts of 'workflow'"),
        ("<workflow><a is='list'><b/>text</a></workflow>", "text beside the parts of 'a'"),
        ("<workflow><a is='int'>one</a></workflow>", "'one' is no int"),
        ("<workflow><a is='bool'>True</a></workflow>", "'True' is no bool"),
        ("<workflow><a is='null'>x</a></workflow>", "'x' is no null"),
        ("<workflow><a is='date'>x</a></workflow>", "no such type"),
        ("<workflow><a is='int'><b/></a></workflow>", "inside a value of type int"),
        ("<workflow><a is='list' b='1'/></workflow>", "has no attribute 'b'"),
        ("<workflow is='list'><a/></workflow>", "is empty"),
        (f"<workflow a='{'9' * 5000}'/>", "broken XML"),
        ("<workflow a='\ud800'/>", "broken XML"),
    ],
)
def test_wrong_xml_is_told_with_its_file(text: str, reason: str) -> None:
    with pytest.raises(BadInput, match=rf"^w\.xml(:\d+)?: .*{reason}"):
        workflow_from_xml(text, name="w.xml")


names = st.text(st.characters(exclude_categories=()), min_size=1, max_size=8).filter(str.strip)
small = st.dictionaries(texts, scalars, max_size=3)
actions = st.lists(
    st.one_of(
        st.builds(lambda *args: ("workflow", args), names, documents, texts, texts),
        st.builds(lambda *args: ("schema", args), texts, texts, st.dictionaries(texts, texts, max_size=4)),
        st.builds(lambda *args: ("operator", args), texts, texts, texts, small),
        st.builds(lambda *args: ("plan", args), texts, texts, st.floats(allow_nan=False), documents),
        st.builds(lambda *args: ("run", args), texts, texts, st.datetimes(), small),
    ),
    max_size=8,
)


@given(actions)
@settings(max_examples=60, deadline=None)
def test_export_then_import_then_export_gives_the_same_bytes(steps: list[tuple[str, Any]]) -> None:
    with MetadataStore("sqlite://") as one, MetadataStore("sqlite://") as two:
        for kind, args in steps:
            perform(one, kind, args)
        first = export(one)
        counts = store_from_xml(io.BytesIO(first), two)
        assert export(two) == first
        assert sum(counts.values()) == len(list(one.records()))
        assert not any(store_from_xml(io.BytesIO(first), two).values())


def test_a_store_goes_from_sqlite_to_postgresql_and_back(postgresql: Any) -> None:
    with (
        MetadataStore("sqlite://") as one,
        MetadataStore(postgresql.url) as two,
        MetadataStore("sqlite://") as three,
    ):
        fill(one)
        store_from_xml(io.BytesIO(export(one)), two)
        store_from_xml(io.BytesIO(export(two)), three)
        assert export(three) == export(two) == export(one)


def test_an_export_is_readable() -> None:
    with MetadataStore("sqlite://") as store:
        fill(store)
        text = export(store).decode()
    assert '<schema source="orders.tbl" fingerprint="f1" seen="' in text
    assert '<column id="o_orderkey">bigint</column>' in text
    assert '<node id="recent" operator="filter">' in text
    assert '<run run="run-0001" workflow="orders"' in text


def test_an_import_that_fails_changes_nothing(store: MetadataStore, tmp_path: Path) -> None:
    with MetadataStore("sqlite://") as other:
        fill(other)
        whole = export(other).decode()
    store.put_run(a_run(7))
    before = export(store)
    hashed = next(part for part in whole.split('"') if len(part) == 64)
    broken = {
        "cut off": (whole[:-20], "broken XML"),
        "no version": (whole.replace('<store version="1">', "<store>"), "no version"),
        "newer": (whole.replace('<store version="1">', '<store version="9">'), "newer Papilio"),
        "unknown section": (whole.replace("plans", "plots"), "unknown section 'plots'"),
        "unknown field": (whole.replace("policy=", "politics="), "run 1: unknown field 'politics'"),
        "missing field": (whole.replace('policy="mm"', ""), "run 1: the field 'policy' is missing"),
        "wrong type": (whole.replace('policy="mm"', 'policy="5"'), "run 1: policy: expected str"),
        "wrong time": (whole.replace("2026-01-31T", "2026-13-31T"), "is not a time"),
        "changed by hand": (whole.replace("tbl_source", "csv_source"), "changed by hand"),
        "wrong hash": (whole.replace(hashed, "f" * 64), "changed by hand"),
        "version 0": (whole.replace('name="orders" version="1"', 'name="orders" version="0"'), "start at 1"),
    }
    for what, (text, reason) in broken.items():
        file = tmp_path / f"{what}.xml"
        file.write_text(text, encoding="utf-8")
        with pytest.raises(BadInput, match=f"{what}.xml.*{reason}"):
            store_from_xml(file, store)
        assert export(store) == before, what


def test_a_workflow_version_with_other_content_stops_the_import(store: MetadataStore) -> None:
    with MetadataStore("sqlite://") as other:
        fill(other)
        theirs = export(other)
    store.put_workflow("orders", {"mine": True}, "mine")
    with pytest.raises(BadInput, match=r"nothing was imported.*'orders' version 1 is here already"):
        store_from_xml(io.BytesIO(theirs), store)
    assert [type(record) for record in store.records()] == [WorkflowVersion]


def test_an_import_counts_what_was_new(store: MetadataStore) -> None:
    with MetadataStore("sqlite://") as other:
        fill(other)
        theirs = export(other)
    store.put_run(a_run())
    counts = store_from_xml(io.BytesIO(theirs), store)
    assert (counts[SourceSchema], counts[WorkflowVersion], counts[PlanRecord], counts[RunRecord]) == (
        1,
        2,
        1,
        0,
    )


def fill(store: MetadataStore) -> None:
    store.put_schema("orders.tbl", "f1", {"o_orderkey": "bigint", "o_comment": "string"})
    store.put_operator(an_operator())
    store.put_workflow("orders", WORKFLOW, "papilio: 1\nname: orders\n", author="ada", comment="first")
    store.put_workflow("orders", {"a": math.nan}, "\x00\ud800", comment="two\nlines")
    store.put_plan(a_plan())
    store.put_run(a_run())


def perform(store: MetadataStore, kind: str, args: tuple[Any, ...]) -> None:
    if kind == "workflow":
        store.put_workflow(args[0], args[1], args[2], comment=args[3])
    elif kind == "schema":
        store.put_schema(*args)
    elif kind == "operator":
        store.put_operator(an_operator(name=args[0], version=args[1], category=args[2], settings=args[3]))
    elif kind == "plan":
        store.put_plan(a_plan(workflow=args[0], signature=args[1], cost=args[2], document=args[3]))
    else:
        started = args[2].replace(tzinfo=NOON.tzinfo)
        store.put_run(a_run(run=args[0], status=args[1], started=started, finished=None, summary=args[3]))


def export(store: MetadataStore) -> bytes:
    out = io.StringIO()
    store_to_xml(store, out)
    return out.getvalue().encode("utf-8")


def same(one: Any, other: Any) -> bool:
    """Equal in value, type and order; `repr` tells 1 from 1.0 and from True, and NaN equals itself."""
    return repr(one) == repr(other)

"""Records and documents the store's tests share."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from engine.store import OperatorSpecification, PlanRecord, RunRecord

WORKFLOW: dict[str, Any] = {
    "papilio": 1,
    "name": "orders",
    "description": "Orders by day",
    "parameters": {"day": {"type": "date", "default": "1998-09-02"}},
    "roots": {"data": "data/tpch"},
    "nodes": {
        "orders": {"operator": "tbl_source", "settings": {"path": "${data}/orders.tbl", "header": False}},
        "recent": {
            "operator": "filter",
            "settings": {"condition": "o_orderdate > '${day}'"},
            "title": "Recent",
        },
        "out": {"operator": "parquet_target", "settings": {"path": "out", "rows": 1000, "ratio": 0.5}},
    },
    "edges": [{"from": "orders.out", "to": "recent.in"}, {"from": "recent.match", "to": "out.in"}],
    "layout": {"nodes": {"orders": [0, 0], "recent": [160.5, 0], "out": [320, 0]}},
    "x-team": {"owner": None, "labels": ["a", "b"]},
}

WORKFLOW_XML = """\
<?xml version="1.0" encoding="UTF-8"?>
<workflow papilio="1" name="orders" description="Orders by day">
  <parameters>
    <parameter id="day" type="date" default="1998-09-02"/>
  </parameters>
  <roots>
    <root id="data">data/tpch</root>
  </roots>
  <nodes>
    <node id="orders" operator="tbl_source">
      <settings path="${data}/orders.tbl" header="false"/>
    </node>
    <node id="recent" operator="filter">
      <settings condition="o_orderdate &gt; '${day}'"/>
      <title>Recent</title>
    </node>
    <node id="out" operator="parquet_target">
      <settings path="out" rows="1000" ratio="0.5"/>
    </node>
  </nodes>
  <edges is="list">
    <edge from="orders.out" to="recent.in"/>
    <edge from="recent.match" to="out.in"/>
  </edges>
  <layout>
    <nodes>
      <node id="orders" is="list">
        <item is="int">0</item>
        <item is="int">0</item>
      </node>
      <node id="recent" is="list">
        <item is="float">160.5</item>
        <item is="int">0</item>
      </node>
      <node id="out" is="list">
        <item is="int">320</item>
        <item is="int">0</item>
      </node>
    </nodes>
  </layout>
  <x-team owner="null">
    <labels is="list">
      <item>a</item>
      <item>b</item>
    </labels>
  </x-team>
</workflow>
"""

NOON = datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC)


def an_operator(**changes: Any) -> OperatorSpecification:
    values: dict[str, Any] = {
        "name": "filter",
        "version": "1",
        "category": "row-synchronized",
        "ports": {"inputs": ["in"], "outputs": ["match", "rest"]},
        "settings": {"type": "object", "properties": {"condition": {"type": "string"}}},
    }
    return OperatorSpecification(**values | changes)


def a_plan(**changes: Any) -> PlanRecord:
    values: dict[str, Any] = {
        "workflow": "orders",
        "content_hash": "c0ffee",
        "signature": "((1.2)//(3)).4",
        "cost": 12.5,
        "made": NOON,
        "document": {"sorters": ["o_orderdate"]},
    }
    return PlanRecord(**values | changes)


def a_run(number: int = 1, **changes: Any) -> RunRecord:
    values: dict[str, Any] = {
        "run": f"run-{number:04}",
        "workflow": "orders",
        "file": "workflows/orders.butterfly.yaml",
        "content_hash": "c0ffee",
        "status": "done",
        "started": NOON + timedelta(minutes=number),
        "finished": NOON + timedelta(minutes=number, seconds=2.5),
        "policy": "mm",
        "granularity": "fused",
        "master": "local[2]",
        "folder": f"runs/run-{number:04}",
        "summary": {"activations": number, "targets": {"out": {"rows": 3}}},
    }
    return RunRecord(**values | changes)

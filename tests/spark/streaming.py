"""A small streaming warehouse for tests: two streams, their tables, and views of every kind that can be kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engine.model.binding import Bound, bind
from engine.model.file import load
from engine.operators import catalogue

FILE = """
papilio: 1
name: small
nodes:
  clicks: {operator: generator_stream, settings: {period_s: 1, rows_per_s: 40, columns: {page: id % 5, cost: id % 7}}}
  sales:
    operator: generator_stream
    settings: {period_s: 1, rows_per_s: 20, disorder_s: 3, seed: 7, columns: {page: id % 5, amount: CAST(id % 11 AS BIGINT)}}
  clean: {operator: filter, settings: {condition: page < 4}}
  pass: {operator: copy}
  click: {operator: stream_table, settings: {path: out/click, time_column: ts, partition_s: 4}}
  sale: {operator: stream_table, settings: {path: out/sale, time_column: ts, partition_s: 4, lateness_bound_s: 2}}
  dear: {operator: filter, settings: {condition: cost > 3}}
  days: {operator: date_dimension, settings: {first_day: 2026-01-01, last_day: 2026-01-07}}
  named: {operator: lookup, settings: {keys: [{main: cost, reference: day_of_month}], take: [{column: day_name}]}}
  dear_click: {operator: stream_table, settings: {path: out/dear, time_column: ts, partition_s: 2}}
  second: {operator: time_bucket, settings: {column: ts, every_s: 1}}
  per_second:
    operator: materialized_view
    settings:
      group: [bucket, page]
      refresh: incremental
      priority: 3
      aggregates: [{name: clicks, expression: count(*)}, {name: cost, expression: sum(cost)}, {name: top, expression: max(cost)}]
  click_second: {operator: stream_table, settings: {path: out/click_second, time_column: bucket, partition_s: 4}}
  sale_bucket: {operator: derive, settings: {columns: [{name: bucket, expression: "date_trunc('second', ts)"}]}}
  per_sale: {operator: materialized_view, settings: {group: [bucket, page], aggregates: [{name: amount, expression: sum(amount)}]}}
  sale_second: {operator: stream_table, settings: {path: out/sale_second, time_column: bucket, partition_s: 6}}
  both: {operator: join, settings: {keys: [{left: bucket}, {left: page}], kind: left}}
  joined: {operator: stream_table, settings: {path: out/joined, time_column: bucket, partition_s: 4}}
  two: {operator: time_bucket, settings: {column: bucket, every_s: 2, into: pair}}
  per_pair: {operator: materialized_view, settings: {group: [pair], aggregates: [{name: clicks, expression: sum(clicks)}]}}
  pair: {operator: stream_table, settings: {path: out/pair, time_column: pair, partition_s: 4}}
edges:
- {from: clicks, to: clean}
- {from: clean.match, to: click}
- {from: sales, to: pass}
- {from: pass, to: sale}
- {from: click, to: dear}
- {from: dear.match, to: named.main}
- {from: days, to: named.reference}
- {from: named, to: dear_click}
- {from: click, to: second}
- {from: second, to: per_second}
- {from: per_second, to: click_second}
- {from: sale, to: sale_bucket}
- {from: sale_bucket, to: per_sale}
- {from: per_sale, to: sale_second}
- {from: click_second, to: both.left}
- {from: sale_second, to: both.right}
- {from: both, to: joined}
- {from: click_second, to: two}
- {from: two, to: per_pair}
- {from: per_pair, to: pair}
"""

# The views over `click` by one job where they can be: each says that most of its update is the scan.
TOGETHER = (
    FILE.replace("  dear_click: {", "  dear_click: {hints: {scan_share: 0.9}, ")
    .replace("  click_second: {", "  click_second: {hints: {scan_share: 0.9}, ")
    .replace(
        "  sale_bucket:",
        "  again:\n"
        "    operator: materialized_view\n"
        "    settings: {group: [bucket, page], aggregates: [{name: clicks, expression: count(*)}]}\n"
        "  click_again:\n"
        "    operator: stream_table\n"
        "    hints: {scan_share: 0.9}\n"
        "    settings: {path: out/click_again, time_column: bucket, partition_s: 6}\n"
        "  large: {operator: filter, settings: {condition: cost > 5}}\n"
        "  large_click:\n"
        "    operator: stream_table\n"
        "    hints: {scan_share: 0.9}\n"
        "    settings: {path: out/large_click, time_column: ts, partition_s: 2}\n"
        "  sale_bucket:",
    )
    .replace(
        "- {from: sale, to:",
        "- {from: second, to: again}\n- {from: again, to: click_again}\n"
        "- {from: click, to: large}\n- {from: large.match, to: large_click}\n- {from: sale, to:",
    )
)

# Each view from scratch, over `click` and `sale` as of an edge. DuckDB, so another engine than the one under test.
_SECOND = "SELECT date_trunc('second', ts) AS bucket, page, count(*) AS clicks, sum(cost) AS cost, max(cost) AS top FROM click GROUP BY ALL"
_SALE = "SELECT date_trunc('second', ts) AS bucket, page, sum(amount) AS amount FROM sale GROUP BY ALL"
SCRATCH = {
    "dear_click": "SELECT *, CASE cost WHEN 4 THEN 'Sunday' WHEN 5 THEN 'Monday' ELSE 'Tuesday' END FROM click WHERE cost > 3",
    "click_second": _SECOND,
    "sale_second": _SALE,
    "joined": f"SELECT c.*, s.amount FROM ({_SECOND}) c LEFT JOIN ({_SALE}) s USING (bucket, page)",
    "pair": f"SELECT to_timestamp(epoch_us(bucket) // 2000000 * 2) AS pair, sum(clicks) AS clicks FROM ({_SECOND}) GROUP BY ALL",
}


TOGETHER_SCRATCH = {
    **SCRATCH,
    "click_again": "SELECT date_trunc('second', ts) AS bucket, page, count(*) AS clicks FROM click GROUP BY ALL",
    "large_click": "SELECT * FROM click WHERE cost > 5",
}


def bound_in(folder: Path, text: str = FILE) -> Bound:
    """A warehouse written down in a folder, and bound."""
    file = folder / "small.butterfly.yaml"
    file.write_text(text)
    bound = bind(load(file), catalogue())
    bound.raise_errors()
    return bound


def sorted_rows(rows: Any) -> list[tuple[Any, ...]]:
    """Rows that can be compared, whatever engine they come from."""
    return sorted(tuple(str(value) for value in row) for row in rows)

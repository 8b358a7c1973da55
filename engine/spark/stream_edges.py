"""Up to when a base table is fresh, and up to when it is safe (streaming warehouse, section 2.2). No Spark.

In the journal both are the last microsecond that counts: no record of the safe time or an earlier one is taken in any
more, and a view that goes up to an edge has the rows of that microsecond. The scheduler's safe edge is the paper's,
before which no record comes any more: the next microsecond, and so are the edges of its views. A stream's newest
record may have equals that have yet to come. So what is newer than the bound allows is taken, also by not a moment;
and a view ends just before.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from engine.operators.streams import MICROS
from engine.spark.stream_feeds import FUTURE_S, Arrival
from engine.spark.stream_versions import Version


def edges_with(version: Version, arrivals: Iterable[Arrival], lateness_bound_s: float) -> tuple[int | None, int | None]:
    """Up to when a base table is fresh, and safe, once it has these arrivals as well."""
    loaded = [arrival for arrival in arrivals if not arrival.gone]
    times = [arrival.upto_us for arrival in loaded if arrival.rows and arrival.upto_us is not None]
    fresh = max([*times, *_known(version.fresh_us)], default=None)
    promised = [arrival.safe_us for arrival in loaded if arrival.safe_us is not None]
    behind = [] if fresh is None else [fresh - round(lateness_bound_s * MICROS) - 1]
    return fresh, max([*_known(version.safe_us), *behind, *promised], default=None)


def in_time(micros: pa.ChunkedArray, safe_us: int | None, now: float) -> pa.ChunkedArray:
    """Which records a base table takes in: those with a time that can be, and that its views have not passed."""
    good = pc.less_equal(micros, pa.scalar(round((now + FUTURE_S) * MICROS)))
    if safe_us is not None:
        good = pc.and_(good, pc.greater(micros, pa.scalar(safe_us)))
    return pc.fill_null(good, False)


def before_s(last_us: int) -> float:
    """The scheduler's edge behind a last microsecond: what lies before it counts."""
    return (last_us + 1) / MICROS


def last_us(before: float) -> int:
    """The last microsecond before an edge of the scheduler."""
    return round(before * MICROS) - 1


def _known(edge: int | None) -> list[int]:
    return [] if edge is None else [edge]

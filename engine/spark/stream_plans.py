"""Small updates whose plan is made once: from one update to the next, only the rows that it reads are other ones.

An update of few rows is mostly planning: making its operators' plans through the gateway costs more than running them.
So the plan is kept, over inputs that are files of one record each. An update writes its rows into these files and lets
Spark run the plan again. The rows are in the form in which PySpark hands over lists of rows.
"""

from __future__ import annotations

import pickle
import re
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from engine.spark.compile import CountedRows

RECORD_BYTES = 2**18  # of an input; what is larger is handed to Spark anew
MOST_ROWS = 5_000  # of an input: handed over row by row, more of them would cost more than the plan
MOST_PLANS = 512

# What is settled when a plan is optimised, the time, and what a physical plan does once and then remembers. A plan that
# is too long to be told in full may have either.
_TIMED = re.compile(r"current_|localtime|\bnow\b|more fields|more nodes", re.IGNORECASE)
_REMEMBERED = re.compile(r"exchange|subquery|inmemory|more fields|more nodes", re.IGNORECASE)

# Makes a plan over its inputs; what it counts in passing goes into the list.
Make = Callable[[Mapping[str, DataFrame], list[CountedRows]], DataFrame]


@dataclass(frozen=True)
class _Kept:
    """A plan that is there, its inputs' files, and what their rows look like."""

    frame: DataFrame | None  # None: it has to be made anew each time
    settled: bool  # whether it can be run again as it was planned; else it is optimised and planned anew
    schema: pa.Schema  # of its result
    given: Mapping[str, pa.Schema]
    files: Mapping[str, Path]


class KeptPlans:
    """The plans of one session, by a key that stands for what they compute."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self.made = 0  # how often a plan was made
        self._context: Any = session.sparkContext
        master = str(session.sparkContext.master)
        # Executors read the inputs' files, so they have to be on this machine.
        self._possible = master.startswith("local") and not master.startswith("local-cluster")
        self._folder = Path(tempfile.mkdtemp(prefix="inputs-", dir=self._context._temp_dir))
        self._plans: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._files = 0
        self._lock = Lock()

    def collect(self, key: Hashable, inputs: Mapping[str, pa.Table], make: Make) -> tuple[pa.Table, list[CountedRows]]:
        """The rows of `make` over these inputs, and what was counted. No two threads ask for one key at once."""
        kept = self._kept(key, inputs, make) if self._possible else None
        if kept is None or kept.frame is None or not _write(kept, inputs):
            self.made += 1
            return collect_anew(self.session, inputs, make)
        again: Any = kept.frame if kept.settled else DataFrame(kept.frame._jdf.alias("again"), self.session)
        batches = again._collect_as_arrow()
        return (pa.Table.from_batches(batches).cast(kept.schema) if batches else kept.schema.empty_table()), []

    def _kept(self, key: Hashable, inputs: Mapping[str, pa.Table], make: Make) -> _Kept | None:
        with self._lock:
            kept = self._plans.get(key)
            if kept is not None:
                self._plans.move_to_end(key)
        if kept is not None and all(rows.schema.equals(kept.given[name]) for name, rows in inputs.items()):
            return kept
        if not all(_is_plain(rows) for rows in inputs.values()):
            return None
        kept = self._make(inputs, make)
        with self._lock:
            self._plans[key] = kept
            if len(self._plans) > MOST_PLANS:
                _, gone = self._plans.popitem(last=False)
                for file in gone.files.values():
                    file.unlink(missing_ok=True)
        return kept

    def _make(self, inputs: Mapping[str, pa.Table], make: Make) -> _Kept:
        self.made += 1
        files, frames = {}, {}
        for name, rows in inputs.items():
            with self._lock:
                self._files += 1
                files[name] = self._folder / str(self._files)
            files[name].touch()
            frames[name] = self._frame(files[name], rows.schema).coalesce(1)
        counted: list[CountedRows] = []
        frame = make(frames, counted)
        # What a function like uuid() gives is settled when a plan is analysed, and an observation is good for one run.
        execution = frame._jdf.queryExecution()
        steady = not counted and execution.analyzed().deterministic()
        settled = (
            steady
            and not _TIMED.search(execution.analyzed().toString())
            and not _REMEMBERED.search(execution.executedPlan().toString())
        )
        schema = to_arrow_schema(frame.schema, timezone="UTC")
        given = {name: rows.schema for name, rows in inputs.items()}
        return _Kept(frame if steady else None, settled, schema, given, files)

    def _frame(self, file: Path, schema: pa.Schema) -> DataFrame:
        """The rows that a file holds whenever it is read."""
        kinds = from_arrow_schema(schema, prefer_timestamp_ntz=False)
        records = self._context._jsc.binaryRecords(file.as_uri(), RECORD_BYTES)
        serde = self._context._jvm.SerDeUtil
        rows = serde.toJavaArray(serde.pythonToJava(records, True)).rdd()
        return DataFrame(self.session._jsparkSession.applySchemaToPythonRDD(rows, kinds.json()), self.session)


def collect_anew(
    session: SparkSession, inputs: Mapping[str, pa.Table], make: Make, others: Mapping[str, DataFrame] | None = None
) -> tuple[pa.Table, list[CountedRows]]:
    """The rows of a plan that is made for this once; `others` are inputs that Spark reads by itself."""
    counted: list[CountedRows] = []
    frames = {name: session.createDataFrame(rows).coalesce(1) for name, rows in inputs.items()}
    return make({**frames, **(others or {})}, counted).toArrow(), counted


_PLAIN = (
    pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_string, pa.types.is_binary,
    pa.types.is_date32, pa.types.is_decimal,
)  # fmt: skip


def _is_plain(rows: pa.Table) -> bool:
    """Whether its values can be handed over row by row and stay what they are."""
    kinds = rows.schema.types
    return all(
        any(is_kind(kind) for is_kind in _PLAIN) or (pa.types.is_timestamp(kind) and kind.tz is not None)
        for kind in kinds
    )


def _write(kept: _Kept, inputs: Mapping[str, pa.Table]) -> bool:
    """Each input as a file of one record, and whatever is behind it. Not if one is too large."""
    records = {}
    for name, rows in inputs.items():
        if rows.num_rows > MOST_ROWS:
            return False
        records[name] = pickle.dumps(list(zip(*map(_values, rows.columns), strict=True)), pickle.HIGHEST_PROTOCOL)
        if len(records[name]) > RECORD_BYTES:
            return False
    for name, record in records.items():
        with kept.files[name].open("r+b") as file:
            file.write(record)
            file.truncate(RECORD_BYTES)
    return True


def _values(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column as Spark has them inside: times and days are numbers."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
    elif pa.types.is_date32(kind):
        column = column.cast(pa.int32())
    values: list[Any] = column.to_pylist()
    return values

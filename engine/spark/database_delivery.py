"""What deliveries to tables of any database have in common: rows are staged, then moved in one transaction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from engine.model.operator import Mode, PassOn
from engine.operators._database import DatabaseProblem, match_column
from engine.operators._sql import quoted
from engine.spark.adbc import reason


class DatabaseDelivery(ABC):
    """A run's rows on their way into one table."""

    def __init__(self, node: str, table: str, staging: str, mode: Mode, key: Sequence[str], pass_on: PassOn) -> None:
        self.node = node
        self.table = table
        self.staging = staging  # the name of what is staged
        self.mode = mode
        self.key = list(key)
        self.pass_on = pass_on
        self._columns: dict[str, str] = {}  # as delivered, with their Spark types
        self._rows: int | None = None

    # -- what the runner calls

    def write(self, frame: DataFrame) -> None:
        """Stage the rows, and find out all that would keep them from being loaded."""
        self._columns = {item.name: item.dataType.simpleString() for item in frame.schema.fields}
        self.key = [match_column(name, self._columns) or name for name in self.key]
        self._prepare()
        empty = [name for name, kind in self._columns.items() if kind == "void"]
        if empty:
            frame = frame.withColumns({name: F.col(quoted(name)).cast("string") for name in empty})
        try:
            self._stage(frame)
        except Exception as error:
            words = reason(error)
            if words is None:
                raise
            raise DatabaseProblem(words) from None
        self._check_staged()

    def read(self, spark: SparkSession) -> DataFrame:
        """What those behind the target read before the commit: the rows delivered, or the table as it will be."""
        staged = self._staged(spark)
        if self.pass_on is PassOn.DELIVERED or self.mode is Mode.OVERWRITE:
            return staged
        before = self._before(spark)
        if before is None:
            return staged
        if self.mode is Mode.UPSERT:
            keys = staged.select(*(F.col(quoted(name)).alias(f"_papilio_{name}") for name in self.key))
            same = [F.col(quoted(name)).eqNullSafe(F.col(quoted(f"_papilio_{name}"))) for name in self.key]
            before = before.join(keys, same, "left_anti")
        return before.unionByName(staged)

    def rows(self) -> int:
        """The exact number of rows delivered."""
        if self._rows is None:
            self._rows = self._count()
        return self._rows

    @abstractmethod
    def check(self) -> None:
        """Refuse where the table is no longer one that the staged rows can go into."""

    @abstractmethod
    def commit(self) -> None:
        """Show the rows. Done again, it does nothing."""

    @abstractmethod
    def discard(self) -> None:
        """Remove what is staged. Done again, it does nothing."""

    @abstractmethod
    def record(self) -> dict[str, Any]:
        """The delivery as plain data, from which `from_record` makes it again. It names the password's variable."""

    def state(self) -> dict[str, Any]:
        """Plain data by which a resumed run knows what was staged."""
        return {"rows": self.rows(), "columns": self._columns}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on with what a killed run had staged."""
        self._rows, self._columns = state["rows"], dict(state["columns"])

    # -- what a database does in its own way

    @abstractmethod
    def _prepare(self) -> None:
        """Raise where the rows cannot go into the table; make room for them."""

    @abstractmethod
    def _stage(self, frame: DataFrame) -> None: ...

    @abstractmethod
    def _check_staged(self) -> None: ...

    @abstractmethod
    def _staged(self, spark: SparkSession) -> DataFrame: ...

    @abstractmethod
    def _before(self, spark: SparkSession) -> DataFrame | None: ...

    @abstractmethod
    def _count(self) -> int: ...

    # -- what they share

    def _common_record(self, kind: str) -> dict[str, Any]:
        return {
            "kind": kind,
            "node": self.node,
            "table": self.table,
            "staging": self.staging,
            "mode": self.mode.value,
            "key": list(self.key),
            "pass_on": self.pass_on.value,
        }

    def _types(self, where: str, column_type: Callable[[str], str | None]) -> dict[str, str]:
        """The database's types of the delivered columns."""
        types = {name: column_type(kind) for name, kind in self._columns.items()}
        for name, kind in types.items():
            if kind is None:
                raise DatabaseProblem(
                    f"{where}: `{name}` is a `{self._columns[name]}`, which a column cannot hold; "
                    "turn it into text (`to_json`), or take it apart"
                )
        lost = [name for name in self.key if name not in types]
        if lost:
            raise DatabaseProblem(f"{where}: the key's column `{lost[0]}` is not delivered")
        return {name: kind for name, kind in types.items() if kind is not None}

    def _refuse_duplicates(self, where: str, rows: Sequence[tuple[Any, ...]]) -> None:
        if rows:
            *values, count = rows[0]
            example = ", ".join(f"{name} = {value}" for name, value in zip(self.key, values, strict=True))
            raise DatabaseProblem(
                f"{where}: {count} of the rows delivered have the key {example}; "
                "an upsert needs one row for each key (deduplicate them before)"
            )

    def _refuse_nulls(self, where: str, nulls: Mapping[str, int]) -> None:
        for name, count in nulls.items():
            if count:
                raise DatabaseProblem(
                    f"{where}: its column `{name}` takes no NULL, and {count} of the rows delivered have no value there"
                )

    def _not_staged(self, where: str) -> DatabaseProblem:
        return DatabaseProblem(f"{where}: the rows were not staged to the end; discard them and run again")

    def _readable_columns(self) -> str:
        """The columns for a reader of Spark's, to whom `void` means nothing."""
        kinds = {name: "string" if kind == "void" else kind for name, kind in self._columns.items()}
        return ", ".join(f"{quoted(name)} {kind}" for name, kind in kinds.items())

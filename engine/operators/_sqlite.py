"""SQLite: what a file's tables hold, and types both ways. No Spark; the file is only looked at.

SQLite keeps any value in any column: a declared type is no more than an inclination (its affinity). So a column's
Spark type is told by what is declared, and a value that does not fit it is refused in words, not bent.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from engine.model.problems import did_you_mean
from engine.model.types import decimal_of, is_integral
from engine.operators._database import DatabaseProblem, TableColumn, identifier, no_table

LOCK_SECONDS = 30
EXACT_DIGITS = 15  # of a decimal, as SQLite keeps numbers; longer ones are kept as text

_TO_SPARK = {
    "BOOLEAN": "boolean", "BOOL": "boolean", "DATE": "date",
    "DATETIME": "timestamp_ntz", "TIMESTAMP": "timestamp_ntz", "TIMESTAMP WITHOUT TIME ZONE": "timestamp_ntz",
    "TIMESTAMPTZ": "timestamp", "TIMESTAMP WITH TIME ZONE": "timestamp",
    "TINYINT": "tinyint", "SMALLINT": "smallint", "INT2": "smallint", "INT4": "int", "FLOAT4": "float",
    "JSON": "string", "UUID": "string", "ANY": "string", "": "string",
    "BYTEA": "binary", "BINARY": "binary", "VARBINARY": "binary",
}  # fmt: skip
_BY_AFFINITY = {"INTEGER": "bigint", "TEXT": "string", "BLOB": "binary", "REAL": "double", "NUMERIC": "double"}
_FROM_SPARK = {
    "tinyint": "TINYINT", "smallint": "SMALLINT", "int": "INT4", "bigint": "BIGINT",
    "float": "FLOAT4", "double": "DOUBLE", "boolean": "BOOLEAN", "string": "TEXT", "binary": "BLOB",
    "date": "DATE", "timestamp_ntz": "TIMESTAMP", "timestamp": "TIMESTAMPTZ", "void": "TEXT",
}  # fmt: skip


def uri(file: str | Path, read_only: bool = True) -> str:
    """A file's name as SQLite's address of it, whatever characters it has."""
    return f"file:{quote(str(file))}" + ("?mode=ro" if read_only else "")


@contextmanager
def look(file: Path) -> Iterator[sqlite3.Connection]:
    """A connection that can change nothing."""
    if not file.is_file():
        raise DatabaseProblem(f"{file}: there is no such file")
    connection = sqlite3.connect(uri(file), uri=True, timeout=LOCK_SECONDS)
    try:
        yield connection
    except sqlite3.Error as error:
        raise DatabaseProblem(words(file, error)) from None
    finally:
        connection.close()


def words(file: str | Path, error: Exception) -> str:
    """What SQLite said, in words."""
    said = str(error)
    if "not a database" in said:
        said = "it is no SQLite database"
    elif "locked" in said:
        said = f"another program held it locked for more than {LOCK_SECONDS} s"
    elif "unable to open" in said:
        said = "it cannot be opened"
    return f"{file}: {said}"


def table_columns(connection: sqlite3.Connection, name: str) -> list[TableColumn] | None:
    """The columns of a table or a view; None where there is none."""
    found = connection.execute(
        "SELECT type FROM main.sqlite_master WHERE name = ? COLLATE NOCASE AND type IN ('table', 'view')", (name,)
    ).fetchone()
    if found is None:
        return None
    rows = connection.execute(
        'SELECT name, type, "notnull", dflt_value, pk, hidden FROM pragma_table_xinfo(?) WHERE hidden <> 1', (name,)
    ).fetchall()
    single_key = sum(row[4] > 0 for row in rows) == 1
    return [
        TableColumn(
            column,
            declared,
            affinity(declared),
            spark_type(declared),
            not_null=bool(not_null),
            filled=default is not None or bool(key and single_key and declared.upper() == "INTEGER"),
            computed=hidden in (2, 3),
        )
        for column, declared, not_null, default, key, hidden in rows
    ]


def existing_columns(file: Path, table: str) -> list[TableColumn]:
    """The columns of a table that has to be there."""
    with look(file) as connection:
        columns = table_columns(connection, table)
        if columns is None:
            names = [row[0] for row in connection.execute("SELECT name FROM main.sqlite_master")]
            raise DatabaseProblem(no_table(str(file), table, names))
        return columns


# ---------------------------------------------------------------- types


def affinity(declared: str) -> str:
    """What SQLite makes of a declared type (its section 3.1, "determination of column affinity")."""
    upper = declared.upper()
    if "INT" in upper:
        return "INTEGER"
    if any(part in upper for part in ("CHAR", "CLOB", "TEXT")):
        return "TEXT"
    if "BLOB" in upper or not upper:
        return "BLOB"
    return "REAL" if any(part in upper for part in ("REAL", "FLOA", "DOUB")) else "NUMERIC"


def spark_type(declared: str) -> str:
    """The Spark type for a declared type."""
    upper = " ".join(declared.upper().split())
    if match := re.fullmatch(r"(?:DECIMAL|NUMERIC|DEC|DECIMAL_TEXT) ?\( ?(\d+) ?(?:, ?(\d+) ?)?\)", upper):
        precision, scale = int(match.group(1)), int(match.group(2) or 0)
        if 1 <= precision <= 38 and scale <= precision:
            return f"decimal({precision},{scale})"
        return "string"
    base = upper.partition("(")[0].strip()
    return _TO_SPARK.get(base) or _BY_AFFINITY[affinity(upper)]


def selected(column: TableColumn, wanted: str) -> tuple[str, str]:
    """A column as a query asks for it, and a value of the storage class it must come in."""
    name = identifier(column.name)
    if is_integral(wanted) or wanted == "boolean":
        return name, "0"
    if wanted in ("float", "double"):
        if column.kind == "REAL":
            return name, "0.0"
        # A whole number is a double where no digit is lost; left as text it is refused.
        whole = f"CASE WHEN {name} BETWEEN -9007199254740992 AND 9007199254740992 "
        whole += f"THEN CAST({name} AS REAL) ELSE CAST({name} AS TEXT) END"
        return f"CASE typeof({name}) WHEN 'integer' THEN {whole} ELSE {name} END", "0.0"
    if wanted == "binary":
        return name, "x''"
    if decimal := wanted.startswith("decimal(") and decimal_of(wanted):
        fixed = f"printf('%.{decimal[1]}f', {name})"
        same = f"printf('%.15g', {name}) = printf('%.15g', CAST({fixed} AS REAL))"
        real = f"CASE WHEN {same} THEN {fixed} ELSE printf('%!.17g', {name}) END"
        return (
            f"CASE typeof({name}) WHEN 'integer' THEN CAST({name} AS TEXT) WHEN 'real' THEN {real} ELSE {name} END",
            "''",
        )
    if wanted == "string" and column.kind != "TEXT":
        return f"CASE WHEN typeof({name}) IN ('integer', 'real') THEN CAST({name} AS TEXT) ELSE {name} END", "''"
    if wanted in ("string", "date", "timestamp", "timestamp_ntz"):
        return name, "''"
    raise DatabaseProblem(f"column `{column.name}` cannot be read as `{wanted}`")


def column_type(kind: str) -> str | None:
    """The declared type that holds a Spark type and leads back to it; None where there is none."""
    if decimal := kind.startswith("decimal(") and decimal_of(kind):
        name = "DECIMAL" if decimal[0] <= EXACT_DIGITS else "DECIMAL_TEXT"
        return f"{name}({decimal[0]},{decimal[1]})"
    return _FROM_SPARK.get(kind)


def misfit(kind: str, column: TableColumn) -> str | None:
    """Why rows with a Spark type cannot go into a column without loss; None where they can."""
    if kind == "void" or _fits(kind, column):
        return None
    return f"`{kind}` is delivered; convert it before"


def _fits(kind: str, column: TableColumn) -> bool:
    held = column.spark
    if column.written == "" or kind == held:
        return True
    if is_integral(kind):
        return is_integral(held) or held == "double" or held.startswith("decimal(")
    if decimal := kind.startswith("decimal(") and decimal_of(kind):
        if held == "string":
            return column.kind == "TEXT"
        if is_integral(held):
            return decimal[1] == 0 and decimal[0] <= 18
        to = decimal_of(held) if held.startswith("decimal(") else None
        exact = decimal[0] <= EXACT_DIGITS or column.kind == "TEXT"
        return exact and (held == "double" or (to is not None and to[1] >= decimal[1]))
    if kind == "boolean":
        return is_integral(held)
    if kind in ("date", "timestamp", "timestamp_ntz"):
        return held == "string" and column.kind == "TEXT"
    return kind == "float" and held == "double"


def no_column(table: str, name: str, columns: list[TableColumn]) -> str:
    """That a table has no such column, with the one that may have been meant."""
    return f"the table `{table}` has no column `{name}`{did_you_mean(name, [column.name for column in columns])}"

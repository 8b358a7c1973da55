"""Loading tables of databases, all rows or none: rows are staged beside the table, and moved in one transaction.

A delivery can be committed or discarded by another process, from its record: what is staged is in the database (or
beside the file), and a commit that was done before is found to be done.
"""

from __future__ import annotations

import os
import secrets as chance
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from engine.model.operator import Mode, Operator, PassOn, Place
from engine.operators._database import staging_name
from engine.operators._postgresql import Server
from engine.operators.databases import PostgresqlTarget, SqliteTarget
from engine.spark.database_delivery import DatabaseDelivery
from engine.spark.postgresql_delivery import PostgresqlDelivery
from engine.spark.sqlite_delivery import SqliteDelivery


def delivery(operator: Operator, node: str, place: Place, run_id: str) -> DatabaseDelivery:
    """A run's delivery to a node's table."""
    assert isinstance(operator, (PostgresqlTarget, SqliteTarget))
    common = {
        "node": node,
        "table": operator.table,
        "staging": staging_name(run_id, node, operator.table),
        "mode": operator.mode,
        "key": operator.key,
        "pass_on": operator.pass_on,
    }
    if isinstance(operator, SqliteTarget):
        return SqliteDelivery(place.path(operator.path), **common)
    password = place.secret(operator.password) if operator.password else None
    return PostgresqlDelivery(operator.server(), password, operator.db_schema, **common)


def from_record(record: Mapping[str, Any], secrets: Mapping[str, str] = os.environ) -> DatabaseDelivery:
    """A delivery of another process, to be committed or discarded here."""
    common = {name: record[name] for name in ("node", "table", "staging", "key")}
    common |= {"mode": Mode(record["mode"]), "pass_on": PassOn(record["pass_on"])}
    if record["kind"] == "sqlite":
        return SqliteDelivery(Path(record["file"]), **common)
    server = Server.of(record)
    return PostgresqlDelivery(server, server.password(secrets), record["schema"], **common)


def deliver(frame: DataFrame, *, table: str, mode: str = "overwrite", key: Sequence[str] = (), **where: str) -> None:
    """Load a frame into a table, all rows or none: what an exported script does at a target.

    `where` are the options that also name a table to be read: `kind`, and `file` or `host`, `port` and so on.
    """
    node = staging_name(chance.token_hex(4), table, table)
    record = {"node": table, "table": table, "staging": node, "mode": mode, "key": key, "pass_on": "table", **where}
    made = from_record(record)
    try:
        made.write(frame)
        made.commit()
    except BaseException:
        made.discard()
        raise

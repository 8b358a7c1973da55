"""The metadata store on SQLite, or on any database SQLAlchemy speaks to."""

from __future__ import annotations

import dataclasses
import difflib
import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import (
    URL,
    ColumnElement,
    Connection,
    Engine,
    Table,
    create_engine,
    delete,
    event,
    func,
    insert,
    inspect,
    make_url,
    select,
    text,
    update,
)
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, NoSuchModuleError

from engine.errors import BadInput, EnvironmentProblem
from engine.store import tables
from engine.store.home import default_store
from engine.store.home import papilio_home as papilio_home
from engine.store.plain import Document, digest
from engine.store.records import (
    HOMES,
    KINDS,
    STORE_VERSION,
    OperatorSpecification,
    PlanRecord,
    Record,
    RunRecord,
    SourceSchema,
    WorkflowInfo,
    WorkflowVersion,
    check_record,
    name_of,
    now,
    row_of,
)
from engine.store.saving import checked, draft, save_version, take_in

_T = TypeVar("_T")
_R = TypeVar("_R", bound=Record)

_WRITE = "papilio_write"  # the execution option that marks a writing transaction
_ATTEMPTS = 100  # of one write that meets another writer's row; each round lets at least one writer through
_OPENING_LOCK = 0x70617069  # PostgreSQL's advisory lock while the tables are made


class MetadataStore:
    """Keeps what Papilio knows between runs; safe to use from several threads and processes at once.

    The place is a SQLAlchemy URL or the path of a SQLite file; without one `$PAPILIO_STORE`, else a file
    in `papilio_home()`.
    """

    def __init__(self, url: str | None = None, *, busy_timeout_s: float = 30) -> None:
        place = _place(url)
        self.place = place.render_as_string(hide_password=True)
        if place.get_backend_name() == "sqlite" and place.database and "uri" not in place.query:
            self.place = place.database
        self._busy_timeout_s = busy_timeout_s
        self._closed = False
        try:
            self._engine = _engine(place, busy_timeout_s)
        except (ArgumentError, NoSuchModuleError) as error:
            raise BadInput(f"{self.place}: no such kind of store: {error}") from error
        except ModuleNotFoundError as error:
            extra = "; install papilio[postgresql]" if error.name == "psycopg" else ""
            raise EnvironmentProblem(f"{self.place}: the Python package {error.name} is missing{extra}.") from error
        self._writer = self._engine.execution_options(**{_WRITE: True})
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> MetadataStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the database. Doing it again does nothing."""
        if not self._closed:
            self._closed = True
            _let_go(self._engine)

    # Source schemas

    def put_schema(self, source: str, fingerprint: str, columns: Mapping[str, str]) -> SourceSchema:
        """Keep the schema a source has while it has this fingerprint."""
        record = SourceSchema(source=source, fingerprint=fingerprint, seen=now(), columns=dict(columns))
        return self._put(record)

    def replace_schemas(self, schemas: Iterable[tuple[str, str, Mapping[str, str]]]) -> None:
        """Keep the schemas of sources (each with its fingerprint) in place of those they had, in one step."""
        moment = now()
        records = [
            SourceSchema(source=source, fingerprint=fingerprint, seen=moment, columns=dict(columns))
            for source, fingerprint, columns in schemas
        ]
        for record in records:
            check_record(record, name_of(record))

        def write(connection: Connection) -> None:
            for record in records:
                connection.execute(delete(tables.schemas).where(*_only(tables.schemas, source=record.source)))
                _Rows(connection).upsert(record)

        if records:
            self._write(write)

    def get_schema(self, source: str, fingerprint: str) -> SourceSchema | None:
        """The schema of a source with this fingerprint, if it was seen before."""
        return self._get(SourceSchema, source, fingerprint)

    def list_schemas(self, source: str | None = None) -> list[SourceSchema]:
        """Every known schema, or those of one source."""
        return self._list(SourceSchema, *_only(tables.schemas, source=source))

    def delete_schemas(self, source: str) -> int:
        """Forget a source; gives how many schemas it had."""
        return self._delete(SourceSchema, *_only(tables.schemas, source=source))

    # Operator specifications

    def put_operator(self, specification: OperatorSpecification) -> OperatorSpecification:
        """Keep one version of an operator's specification."""
        return self._put(specification)

    def get_operator(self, name: str, version: str) -> OperatorSpecification | None:
        """One version of an operator's specification, if it is known."""
        return self._get(OperatorSpecification, name, version)

    def list_operators(self, name: str | None = None) -> list[OperatorSpecification]:
        """Every known specification, or those of one operator."""
        return self._list(OperatorSpecification, *_only(tables.operators, name=name))

    def delete_operator(self, name: str, version: str) -> bool:
        """Forget one version of an operator; false where it was not known."""
        return self._delete(OperatorSpecification, *_only(tables.operators, name=name, version=version)) > 0

    # Workflows

    def put_workflow(
        self, name: str, document: Document, text: str, *, author: str = "", comment: str = ""
    ) -> tuple[WorkflowVersion, bool]:
        """Save a workflow; gives the version that holds it and whether that is a new one.

        The same document and text as in the latest version make no new version. A secret written out is refused.
        """
        made = draft(name, document, text, author, comment)
        return self._write(lambda connection: save_version(_Rows(connection), made))

    def get_workflow(self, name: str, version: int | None = None) -> WorkflowVersion:
        """One version of a workflow, or its latest."""
        with self._reading() as connection:
            found = _Rows(connection).version(name, version)
        if found:
            return found
        if version is not None and (versions := self.list_versions(name)):
            latest = versions[-1].version
            raise BadInput(f"{self.place}: workflow {name!r} has no version {version}; its latest is {latest}.")
        raise BadInput(f"{self.place}: there is no workflow {name!r}.{self._near(name)}")

    def list_workflows(self) -> list[WorkflowInfo]:
        """The latest version of every workflow, by name."""
        table = tables.workflows
        newest = func.max(table.c.version).label("version")
        latest = select(table.c.name_key, newest).group_by(table.c.name_key).subquery()
        here = (latest.c.name_key == table.c.name_key) & (latest.c.version == table.c.version)
        query = _info_query().join(latest, here).order_by(table.c.name)
        with self._reading() as connection:
            return [WorkflowInfo(**row) for row in connection.execute(query).mappings()]

    def list_versions(self, name: str) -> list[WorkflowInfo]:
        """Every version of a workflow, oldest first; empty where there is none."""
        table = tables.workflows
        query = _info_query().where(table.c.name_key == digest(name)).order_by(table.c.version)
        with self._reading() as connection:
            return [WorkflowInfo(**row) for row in connection.execute(query).mappings()]

    def delete_workflow(self, name: str) -> int:
        """Forget a workflow; gives how many versions it had."""
        return self._delete(WorkflowVersion, tables.workflows.c.name_key == digest(name))

    # Plans

    def put_plan(self, plan: PlanRecord) -> PlanRecord:
        """Keep a plan, known by the workflow, its content and the plan's signature."""
        return self._put(plan)

    def get_plan(self, workflow: str, content_hash: str, signature: str) -> PlanRecord | None:
        """The plan with this signature, if it was found before."""
        return self._get(PlanRecord, workflow, content_hash, signature)

    def list_plans(self, workflow: str | None = None, content_hash: str | None = None) -> list[PlanRecord]:
        """Plans, cheapest first."""
        conditions = _only(tables.plans, workflow=workflow, content_hash=content_hash)
        return sorted(self._list(PlanRecord, *conditions), key=lambda plan: plan.cost)

    def delete_plans(self, workflow: str, content_hash: str | None = None) -> int:
        """Forget a workflow's plans; gives how many there were."""
        return self._delete(PlanRecord, *_only(tables.plans, workflow=workflow, content_hash=content_hash))

    # Runs

    def put_run(self, run: RunRecord) -> RunRecord:
        """Keep a run; the same run id again replaces what was kept of it."""
        return self._put(run)

    def get_run(self, run: str) -> RunRecord | None:
        """One run, if it is known."""
        return self._get(RunRecord, run)

    def list_runs(
        self, workflow: str | None = None, status: str | None = None, limit: int | None = None
    ) -> list[RunRecord]:
        """Runs, newest first."""
        table = tables.runs
        query = select(*_columns(RunRecord)).where(*_only(table, workflow=workflow, status=status))
        query = query.order_by(table.c.started.desc(), table.c.run.desc()).limit(limit)
        with self._reading() as connection:
            return [RunRecord(**row) for row in connection.execute(query).mappings()]

    def delete_run(self, run: str) -> bool:
        """Forget a run; false where it was not known."""
        return self._delete(RunRecord, tables.runs.c.key == digest(run)) > 0

    # Everything at once, for export and import

    def records(self) -> Iterator[Record]:
        """Every record as of one moment: kind by kind, each in the order of what identifies it."""
        with self._reading(snapshot=True) as connection:
            for kind in KINDS:
                query = select(*_columns(kind)).order_by(*_identity(kind))
                result = connection.execution_options(yield_per=100).execute(query)
                for row in result.mappings():
                    yield kind(**row)

    def add(self, records: Iterable[Record]) -> dict[type[Record], int]:
        """Take all of these records, or none on any problem; gives how many of each kind were news.

        A version of a workflow that is here already with other content is a problem; any other record
        takes the place of the one it shares its identity with.
        """
        given = checked(records)
        return self._write(lambda connection: take_in(_Rows(connection), given, self.place))

    # How it is done

    def _open(self) -> None:
        """See that this is a store this Papilio understands; make the tables in an empty database."""
        with self._reading() as connection:
            if inspect(connection).has_table(tables.store.name):
                versions = connection.scalars(select(tables.store.c.version)).all()
                self._check_version(versions)
                return

        def make(connection: Connection) -> None:
            if connection.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _OPENING_LOCK})
            tables.metadata.create_all(connection)
            versions = connection.scalars(select(tables.store.c.version)).all()
            if versions:  # another process was first
                self._check_version(versions)
            else:
                connection.execute(insert(tables.store), {"version": STORE_VERSION})

        self._write(make)

    def _check_version(self, versions: Iterable[int]) -> None:
        newest = max(versions, default=0)
        if newest < STORE_VERSION:
            raise BadInput(f"{self.place}: not a Papilio store: its version is missing.")
        if newest > STORE_VERSION:
            raise BadInput(
                f"{self.place}: this store was made by a newer Papilio (store version {newest}, "
                f"this one knows {STORE_VERSION}). Update Papilio, or name another store."
            )

    @contextmanager
    def _reading(self, snapshot: bool = False) -> Iterator[Connection]:
        with self._clear_errors():
            connection = self._engine.connect()
            with connection:
                if snapshot and connection.dialect.name != "sqlite":  # there every reader sees one moment
                    connection = connection.execution_options(isolation_level="REPEATABLE READ")
                yield connection

    def _write(self, write: Callable[[Connection], _T]) -> _T:
        """Run one writing transaction, again where another writer made the same row first."""
        with self._clear_errors():
            for _ in range(_ATTEMPTS - 1):
                try:
                    with self._writer.begin() as connection:
                        return write(connection)
                except IntegrityError:
                    time.sleep(random.uniform(0, 0.05))
            with self._writer.begin() as connection:
                return write(connection)

    def _put(self, record: _R) -> _R:
        check_record(record, name_of(record))
        self._write(lambda connection: _Rows(connection).upsert(record))
        return record

    def _get(self, kind: type[_R], *identity: Any) -> _R | None:
        with self._reading() as connection:
            return _Rows(connection).find(kind, digest(*identity))

    def _list(self, kind: type[_R], *conditions: ColumnElement[bool]) -> list[_R]:
        query = select(*_columns(kind)).where(*conditions).order_by(*_identity(kind))
        with self._reading() as connection:
            return [kind(**row) for row in connection.execute(query).mappings()]

    def _delete(self, kind: type[Record], *conditions: ColumnElement[bool]) -> int:
        gone = delete(tables.TABLES[kind]).where(*conditions)
        return self._write(lambda connection: connection.execute(gone).rowcount)

    def _near(self, name: str) -> str:
        near = difflib.get_close_matches(name, [info.name for info in self.list_workflows()], n=1)
        return f" Did you mean {near[0]!r}?" if near else ""

    @contextmanager
    def _clear_errors(self) -> Iterator[None]:
        """Say what is wrong with the database in words a person can act on."""
        try:
            yield
        except DBAPIError as error:
            reason = " ".join(str(error.orig).split())
            code = getattr(error.orig, "sqlite_errorcode", None)
            if code is None:
                raise EnvironmentProblem(f"{self.place}: the store does not answer: {reason}") from error
            primary = code & 0xFF
            if primary in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
                raise BadInput(f"{self.place}: not a Papilio store: {reason}.") from error
            if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                waited = f"{self._busy_timeout_s:g} s"
                raise EnvironmentProblem(
                    f"{self.place}: the store is locked; another program held it for more than {waited}."
                ) from error
            if primary in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
                raise EnvironmentProblem(f"{self.place}: the store may not be written: {reason}.") from error
            raise EnvironmentProblem(f"{self.place}: the store cannot be used: {reason}.") from error


class _Rows:
    """What the store holds, within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def find(self, kind: type[_R], key: str) -> _R | None:
        """The record of a kind with this key."""
        query = select(*_columns(kind)).where(tables.TABLES[kind].c.key == key)
        row = self._connection.execute(query).mappings().first()
        return kind(**row) if row else None

    def latest(self, name: str) -> WorkflowVersion | None:
        """The latest version of a workflow."""
        return self.version(name, None)

    def version(self, name: str, version: int | None) -> WorkflowVersion | None:
        """One version of a workflow, or its latest."""
        table = tables.workflows
        query = select(*_columns(WorkflowVersion)).where(table.c.name_key == digest(name))
        if version is not None:
            query = query.where(table.c.version == version)
        row = self._connection.execute(query.order_by(table.c.version.desc()).limit(1)).mappings().first()
        return WorkflowVersion(**row) if row else None

    def insert(self, record: Record) -> None:
        """Take in a record that must be new."""
        self._connection.execute(insert(tables.TABLES[type(record)]), row_of(record))

    def upsert(self, record: Record) -> None:
        """Take in a record in place of the one it shares its identity with."""
        table, row = tables.TABLES[type(record)], row_of(record)
        if not self._connection.execute(update(table).where(table.c.key == row["key"]).values(row)).rowcount:
            self.insert(record)


def _place(url: str | None) -> URL:
    """Where the store is, as a URL; makes the folder of the default place."""
    named = url or os.environ.get("PAPILIO_STORE")
    if not named:
        named = str(default_store())
        home = default_store().parent
        try:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise EnvironmentProblem(f"{home}: the store's folder cannot be made: {error.strerror}.") from error
    if "://" not in named:
        folder = Path(named).absolute().parent
        if not folder.is_dir():
            raise BadInput(f"{named}: the folder {folder} does not exist.")
        if Path(named).is_dir():
            raise BadInput(f"{named}: a folder, not a store.")
        return URL.create("sqlite", database=named)
    try:
        place = make_url(named)
    except ArgumentError as error:
        raise BadInput(f"{named.split('://')[0]}://...: not a store's URL.") from error
    if place.drivername in ("postgresql", "postgres"):
        place = place.set(drivername="postgresql+psycopg")
    return place


@dataclasses.dataclass
class _File:
    """A store in a file, as this process has it open."""

    engine: Engine
    users: int = 0


_FILES: dict[tuple[str, float], _File] = {}
_FILES_LOCK = threading.Lock()
_KEPT_FILES = 4  # that nobody has open


def _engine(place: URL, busy_timeout_s: float) -> Engine:
    """SQLAlchemy's engine for a place. That of a file is kept: it remembers how each query is written in SQL.

    A run opens the store half a dozen times, and writing a query out takes longer than answering it.
    """
    if place.get_backend_name() != "sqlite":
        return create_engine(place, **_engine_options(place))
    if place.database in (None, "", ":memory:") or place.query:
        return _sqlite_engine(place, busy_timeout_s)
    with _FILES_LOCK:
        key = (str(Path(place.database).absolute()), busy_timeout_s)
        file = _FILES.get(key)
        if file is None:
            file = _FILES[key] = _File(_sqlite_engine(place, busy_timeout_s))
            idle = [one for one in _FILES if not _FILES[one].users and one != key]
            for one in idle[:-_KEPT_FILES]:
                del _FILES[one]
        file.users += 1
    return file.engine


def _let_go(engine: Engine) -> None:
    """Close a store's connections, unless others in this process have the same file open.

    The last to close a file has SQLite write its log back, which waits for the disk.
    """
    with _FILES_LOCK:
        file = next((file for file in _FILES.values() if file.engine is engine), None)
        if file is not None:
            file.users -= 1
        if file is None or file.users == 0:
            engine.dispose()


def _sqlite_engine(place: URL, busy_timeout_s: float) -> Engine:
    engine = create_engine(place, connect_args={"timeout": busy_timeout_s})
    _prepare_sqlite(engine, busy_timeout_s)
    return engine


def _engine_options(place: URL) -> dict[str, Any]:
    if place.get_backend_name() == "postgresql":
        return {"pool_pre_ping": True, "connect_args": {"connect_timeout": 10}}
    return {"pool_pre_ping": True}


def _prepare_sqlite(engine: Any, busy_timeout_s: float) -> None:
    """Begin transactions ourselves: a writer takes its lock at once and waits for it, readers never wait.

    A transaction that begins as a reader and then wants to write fails at once when another one wrote
    in between; SQLite does not wait then, whatever the timeout.
    """

    @event.listens_for(engine, "connect")
    def connected(connection: Any, _: object) -> None:
        connection.isolation_level = None  # the driver begins nothing by itself
        cursor = connection.cursor()
        deadline = time.monotonic() + busy_timeout_s
        while True:
            try:
                if cursor.execute("PRAGMA journal_mode").fetchone()[0] not in ("wal", "memory"):
                    cursor.execute("PRAGMA journal_mode = WAL")
                break
            except sqlite3.OperationalError as error:  # changing the mode does not wait either
                if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_READONLY:
                    break  # it can still be read
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(random.uniform(0.005, 0.02))
        cursor.execute("PRAGMA synchronous = NORMAL")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begun(connection: Connection) -> None:
        writing = connection.get_execution_options().get(_WRITE)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


def _columns(kind: type) -> list[ColumnElement[Any]]:
    table = tables.TABLES[kind]
    return [table.c[field.name] for field in dataclasses.fields(kind)]


def _identity(kind: type) -> list[ColumnElement[Any]]:
    _, identity = HOMES[kind]
    return [tables.TABLES[kind].c[field] for field in identity]


def _info_query() -> Any:
    return select(*(tables.workflows.c[field.name] for field in dataclasses.fields(WorkflowInfo)))


def _only(table: Table, **values: str | None) -> list[ColumnElement[bool]]:
    return [table.c[name] == value for name, value in values.items() if value is not None]

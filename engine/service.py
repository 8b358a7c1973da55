"""The engine process: commands in, events out.

`python -m engine serve` reads JSON lines from stdin and writes JSON lines to stdout; logs go to stderr. The first event
is `hello` with the protocol's version. It ends when stdin ends. A broken command is answered, never fatal.

Commands: `hello`, `warm` (start Spark), `preview` (id, text, path, node, port), `cancel` (id), `shutdown`.
Events: `hello`, `state` (starting, ready, busy, lost), `previewed`, `failed`, `cancelled`.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from engine import __version__
from engine.errors import BadInput, PapilioError

PROTOCOL = 1
MAX_LINE = 64 * 1024 * 1024


def private_stdout() -> TextIO:
    """A stream to the real stdout; from now on whatever prints, in Python or in the JVM, prints to stderr."""
    sys.stdout.flush()
    own = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return own


class Service:
    """Answers commands. Those that take long wait for each other in one thread; `cancel` overtakes them."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._writing = threading.Lock()
        self._queue: queue.Queue[Mapping[str, Any] | None] = queue.Queue()
        self._spark: Any = None
        self._current: Any = None
        self._cancelled: set[Any] = set()
        self._lock = threading.Lock()
        self._worker = threading.Thread(target=self._work, name="engine", daemon=True)

    # -- the protocol

    def serve(self, lines: TextIO) -> None:
        """Read commands until stdin ends or one says so."""
        self.tell("hello", protocol=PROTOCOL, version=__version__, pid=os.getpid())
        self.tell("state", state="idle")
        self._worker.start()
        for line in lines:
            try:
                command = json.loads(line) if len(line) <= MAX_LINE else None
            except (ValueError, RecursionError):
                command = None
            if not isinstance(command, dict):
                self.tell("failed", id=None, message="a command is one line of JSON, a mapping with `command`")
                continue
            if command.get("command") == "shutdown":
                break
            self.take(command)
        self.stop()

    def tell(self, event: str, **fields: Any) -> None:
        """Write an event."""
        with self._writing:
            try:
                self._out.write(json.dumps({"event": event, **fields}, default=str) + "\n")
                self._out.flush()
            except (BrokenPipeError, ValueError):
                pass  # whoever listened is gone; stdin ends next

    def take(self, command: Mapping[str, Any]) -> None:
        """Answer a command, or let it wait for its turn."""
        match command.get("command"):
            case "hello":
                self.tell("hello", protocol=PROTOCOL, version=__version__, pid=os.getpid())
            case "cancel":
                self.cancel(command.get("id"))
            case "preview" | "warm":
                self._queue.put(command)
            case other:
                self.tell("failed", id=command.get("id"), message=f"there is no command `{other}`")

    def cancel(self, id_: Any) -> None:
        """Stop a command that runs, or drop one that waits."""
        with self._lock:
            self._cancelled.add(id_)
            if self._current == id_ and self._spark is not None:
                self._spark.sparkContext.cancelJobGroup(f"papilio-preview-{id_}")

    def stop(self) -> None:
        """End what runs, and Spark."""
        self._queue.put(None)
        with self._lock:
            current = self._current
        if current is not None:
            self.cancel(current)
        self._worker.join(timeout=20)
        if self._spark is not None:
            from engine.spark.session import close_session

            close_session(self._spark)

    # -- the work

    def _work(self) -> None:
        while True:
            command = self._queue.get()
            if command is None:
                return
            id_ = command.get("id")
            with self._lock:
                if id_ is not None and id_ in self._cancelled:
                    self.tell("cancelled", id=id_)
                    continue
                self._current = id_
            try:
                self._do(command)
            except PapilioError as error:
                self.tell("failed", id=id_, message=str(error))
            except Exception as error:
                self._explain(id_, error)
            finally:
                with self._lock:
                    self._current = None
                self._tell_state()

    def _tell_state(self) -> None:
        if self._spark is None:
            self.tell("state", state="idle")
            return
        try:
            self._spark.sparkContext.applicationId  # noqa: B018 - asks the JVM, which may be gone
            self._spark._jsc.sc().isStopped()
        except Exception:
            # A process whose JVM is gone cannot get Spark back; whoever started this one starts another.
            self.tell("state", state="lost")
            os._exit(1)
        self.tell("state", state="ready")

    def _explain(self, id_: Any, error: Exception) -> None:
        from engine.spark.failures import NodeFailed, reason_of, was_cancelled

        cause = error.__cause__ or error
        if id_ in self._cancelled or was_cancelled(cause):
            self.tell("cancelled", id=id_)
        elif isinstance(error, NodeFailed):
            self.tell("failed", id=id_, node=error.node, message=error.reason)
        else:
            self.tell("failed", id=id_, message=reason_of(error))

    def _do(self, command: Mapping[str, Any]) -> None:
        if command["command"] == "warm":
            self._session()
            return
        bound, node, port = self._bound(command)
        from engine.spark.preview import needed, preview

        needed(bound, node)  # what cannot be computed is told before Spark is started for it
        spark = self._session()
        self.tell("state", state="busy")
        spark.sparkContext.setJobGroup(f"papilio-preview-{command.get('id')}", f"preview of {node}", True)
        found = preview(bound, node, port, spark)
        if command.get("id") in self._cancelled:
            self.tell("cancelled", id=command.get("id"))
        else:
            self.tell("previewed", id=command.get("id"), node=node, port=port, **found)

    def _bound(self, command: Mapping[str, Any]) -> tuple[Any, str, str]:
        """The workflow that a command carries, bound; the node and port it asks for."""
        from engine.model.binding import bind
        from engine.model.file import WorkflowFile, workflow_from
        from engine.model.yamldata import read_yaml
        from engine.operators import catalogue
        from engine.store.sources import SourceSchemas
        from engine.store.trust import is_trusted

        text, node, port = (command.get(key) for key in ("text", "node", "port"))
        if not (isinstance(text, str) and isinstance(node, str) and isinstance(port, str)):
            raise BadInput("a preview needs the workflow's `text`, a `node` and a `port`")
        path = command.get("path")
        place = Path(path) if isinstance(path, str) and path else Path.cwd() / "untitled.butterfly.yaml"
        data, lines = read_yaml(text, place.name)
        workflow = workflow_from(data, place.name, lines)
        bound = bind(WorkflowFile(workflow, place, text, lines), catalogue(), discover=SourceSchemas().discover)
        if node not in workflow.nodes:
            raise BadInput(f"there is no node `{node}`")
        behind = _upstream(bound, node)
        runs_code = any(operator.needs_trust for id_, operator in bound.operators.items() if id_ in behind)
        if runs_code and not is_trusted(bound):
            raise BadInput(f"{place.name}: its Python code is not trusted; read it and run `papilio trust`")
        return bound, node, port

    def _session(self) -> Any:
        """The Spark session, started on first use."""
        if self._spark is None:
            self.tell("state", state="starting")
            from engine.spark.session import SparkSettings, activate, open_session

            quick = {"spark.sql.shuffle.partitions": "4"}
            self._spark = open_session(SparkSettings(extra=quick))
            activate(self._spark)
        return self._spark


def _upstream(bound: Any, node: str) -> set[str]:
    found, waiting = {node}, [node]
    while waiting:
        for source, _ in bound.producers(waiting.pop()):
            if source not in found:
                found.add(source)
                waiting.append(source)
    return found


def main() -> None:
    """Serve on this process's own stdin and stdout."""
    out = private_stdout()
    Service(out).serve(sys.stdin)

"""The engine process: commands in, events out.

`python -m engine serve` reads JSON lines from stdin and writes JSON lines to stdout; logs go to stderr. The first event
is `hello` with the protocol's version. It ends when stdin ends. A broken command is answered, never fatal.

Commands: `hello`, `warm` (start Spark), `preview` (id, text, path, node, port), `cancel` (id), `shutdown`;
`run` (id, text, path, settings, parameters), `resume` (id, run) of a killed run, `control` (folder, action, value) of a
run here or in another process, `peek` (id, folder, queue) into the packs of a paused run.
Events: `hello`, `state` (starting, ready, busy, lost), `previewed`, `failed`, `cancelled`; `run-started` (id, run,
log), `run-ended` (id, run, status, message), `peeked`. What happens in a run is in its log.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from engine import __version__
from engine.control import RunControl
from engine.errors import BadInput, PapilioError, RunCancelled

if TYPE_CHECKING:
    from engine.model.binding import Bound

PROTOCOL = 1
MAX_LINE = 64 * 1024 * 1024
QUICK_PARTITIONS = "4"  # of a preview's shuffles


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
        self._driven: tuple[Path, RunControl] | None = None  # the folder of the run under way, and what drives it
        self._asked: tuple[str, int | None, tuple[tuple[str, str], ...]] = ("local[*]", None, ())  # of the session
        self._partitions = ""  # that Spark shuffles into where nobody is in a hurry
        self._cancelled: set[Any] = set()
        self._lock = threading.Lock()
        self._worker = threading.Thread(target=self._work, name="engine", daemon=True)

    # -- the protocol

    def serve(self, lines: TextIO) -> None:
        """Read commands until stdin ends or one says so."""
        self.tell("hello", protocol=PROTOCOL, version=__version__, pid=os.getpid())
        self.tell("state", state="idle")
        self._worker.start()
        try:
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
        finally:
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
            case "preview" | "warm" | "run" | "resume":
                self._queue.put(command)
            case "control":
                self._at_once(command, self._control)
            case "peek":
                self._at_once(command, self._peek)
            case other:
                self.tell("failed", id=command.get("id"), message=f"there is no command `{other}`")

    def _at_once(self, command: Mapping[str, Any], do: Callable[[Mapping[str, Any]], None]) -> None:
        """Do what overtakes the work: it is quick, and about what runs."""
        try:
            do(command)
        except PapilioError as error:
            self.tell("failed", id=command.get("id"), message=str(error))
        except Exception as error:
            self.tell("failed", id=command.get("id"), message=f"{type(error).__name__}: {error}")

    def cancel(self, id_: Any) -> None:
        """Stop a command that runs, or drop one that waits."""
        with self._lock:
            self._cancelled.add(id_)
            if self._current == id_ and self._driven is not None:
                self._driven[1].send("cancel")
            elif self._current == id_ and self._spark is not None:
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
        match command["command"]:
            case "warm":
                self._session()
            case "run" | "resume":
                self._run(command)
            case _:
                self._preview(command)

    def _preview(self, command: Mapping[str, Any]) -> None:
        bound, node, port = self._bound_port(command)
        from engine.spark.preview import needed, preview

        needed(bound, node)  # what cannot be computed is told before Spark is started for it
        spark = self._session()
        spark.conf.set("spark.sql.shuffle.partitions", QUICK_PARTITIONS)
        self.tell("state", state="busy")
        spark.sparkContext.setJobGroup(f"papilio-preview-{command.get('id')}", f"preview of {node}", True)
        found = preview(bound, node, port, spark)
        if command.get("id") in self._cancelled:
            self.tell("cancelled", id=command.get("id"))
        else:
            self.tell("previewed", id=command.get("id"), node=node, port=port, **found)

    # -- runs

    def _run(self, command: Mapping[str, Any]) -> None:
        """Run a workflow to its end, or finish a killed run."""
        from engine.request import RunRequest

        id_ = command.get("id")
        if command["command"] == "resume":
            command = {**command, **_killed(str(command.get("run")))}
        request = RunRequest.from_plain(command.get("settings") or {})
        request.check()
        bound = self._bound(command.get("text"), command.get("path"), command.get("parameters"))
        bound.raise_errors()
        control = request.control()
        names: dict[str, str] = {}

        def begun(run: str, folder: Path) -> None:
            with self._lock:
                self._driven = (folder, control)
                cancelled = id_ in self._cancelled
            names["run"] = run
            self.tell("run-started", id=id_, run=run, log=str(folder / "events.jsonl"), folder=str(folder))
            if cancelled:
                control.send("cancel")

        status, message = "done", None
        try:
            with self._lent(request):
                self.tell("state", state="busy")
                summary = request.start(bound, control=control, begun=begun)
            if not names:  # it had been killed while its targets changed, and only they had to be brought forward
                begun(summary["run"], Path(summary["folder"]))
        except RunCancelled as error:
            status, message = "cancelled", str(error)
        except PapilioError as error:
            status, message = "failed", str(error)
        finally:
            with self._lock:
                self._driven = None
        if names:
            self.tell("run-ended", id=id_, run=names["run"], status=status, message=message)
        else:
            self.tell("cancelled" if status == "cancelled" else "failed", id=id_, message=message)

    @contextlib.contextmanager
    def _lent(self, request: Any) -> Iterator[None]:
        """The warm session for a run that can use it; another master gets a session of its own, which stays."""
        from engine.schedule.policy import ELASTIC

        if request.backend == "simulated":
            yield
            return
        from engine.spark.session import close_session, lent

        if request.policy == ELASTIC:  # it has a cluster and a session of its own
            if self._spark is not None:
                close_session(self._spark)
                self._spark = None
            yield
            return

        wanted = (request.master, request.driver_memory_mb, tuple(sorted(request.confs.items())))
        if self._spark is not None and wanted != self._asked:
            close_session(self._spark)
            self._spark = None
        self._asked = wanted
        spark = self._session()
        spark.conf.set("spark.sql.shuffle.partitions", self._partitions)
        with lent(spark):
            yield

    def _control(self, command: Mapping[str, Any]) -> None:
        """Drive a run: one of ours, or one of another process through its folder."""
        from engine.control import send_to

        action, value = command.get("action"), command.get("value")
        folder = Path(str(command.get("folder")))
        with self._lock:
            here = self._driven
        if here is not None and here[0] == folder.resolve():
            here[1].send(str(action), value)
        else:
            send_to(folder, str(action), value)

    def _peek(self, command: Mapping[str, Any]) -> None:
        from engine.spark.peek import peek

        found = peek(Path(str(command.get("folder"))), str(command.get("queue")))
        self.tell("peeked", id=command.get("id"), **found)

    # -- workflows

    def _bound(self, text: Any, path: Any, parameters: Mapping[str, Any] | None = None) -> Bound:
        """The workflow of a text, bound as if it stood in the file at `path`."""
        from engine.model.binding import bind
        from engine.model.file import WorkflowFile, workflow_from
        from engine.model.yamldata import read_yaml
        from engine.operators import catalogue
        from engine.store.sources import SourceSchemas

        if not isinstance(text, str):
            raise BadInput("a command about a workflow needs its `text`")
        place = Path(path) if isinstance(path, str) and path else Path.cwd() / "untitled.butterfly.yaml"
        data, lines = read_yaml(text, place.name)
        workflow = workflow_from(data, place.name, lines)
        file = WorkflowFile(workflow, place, text, lines)
        return bind(file, catalogue(), parameters=dict(parameters or {}), discover=SourceSchemas().discover)

    def _bound_port(self, command: Mapping[str, Any]) -> tuple[Bound, str, str]:
        """The workflow that a command carries, bound; the node and port it asks for."""
        from engine.store.trust import is_trusted

        text, node, port = (command.get(key) for key in ("text", "node", "port"))
        if not (isinstance(text, str) and isinstance(node, str) and isinstance(port, str)):
            raise BadInput("a preview needs the workflow's `text`, a `node` and a `port`")
        bound = self._bound(text, command.get("path"))
        if node not in bound.workflow.nodes:
            raise BadInput(f"there is no node `{node}`")
        behind = _upstream(bound, node)
        runs_code = any(operator.needs_trust for id_, operator in bound.operators.items() if id_ in behind)
        if runs_code and not is_trusted(bound):
            name = bound.file.name if bound.file else bound.name
            raise BadInput(f"{name}: its Python code is not trusted; read it and run `papilio trust`")
        return bound, node, port

    def _session(self) -> Any:
        """The Spark session, started on first use."""
        if self._spark is None:
            self.tell("state", state="starting")
            from engine.spark.session import SparkSettings, activate, open_session

            master, memory, confs = self._asked
            self._spark = open_session(SparkSettings(master=master, driver_memory_mb=memory, extra=dict(confs)))
            self._partitions = self._spark.conf.get("spark.sql.shuffle.partitions")
            activate(self._spark)
        return self._spark


def _killed(run: str) -> dict[str, Any]:
    """What the command said that started a killed run: its workflow as it was, its parameters, on what it ran."""
    from engine.model.file import load
    from engine.spark.progress import FILE, read_steps
    from engine.store import MetadataStore

    with MetadataStore() as store:
        record = store.get_run(run)
    if record is None:
        raise BadInput(f"{run}: there is no such run")
    folder = Path(record.folder)
    first = next(read_steps(folder / FILE), None)
    if first is None:
        raise BadInput(f"{run}: it was killed before its first step; run it anew")
    file = load(folder / "workflow.butterfly.yaml")
    return {
        "text": file.text,
        "path": record.file or None,
        # What it was begun with holds the roots too, which follow from the parameters.
        "parameters": {name: value for name, value in first["values"].items() if name in file.workflow.parameters},
        "settings": {"master": record.master, "resume": run},
    }


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

"""What Spark says when it fails, in one line a person can act on."""

from __future__ import annotations

import errno
import re
from typing import Any

from py4j.protocol import Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException

from engine.spark.adbc import reason as database_reason

_NOISE = re.compile(r"\s*(SQLSTATE: \w+|If necessary set .*?(?=\.|$))\.?")
_DATA_EXCEPTION = "SQLSTATE: 22"  # the class of what is wrong with a value
_WRAPPERS = (
    "Job aborted",
    "Task failed while writing",
    "Writing job aborted",
    "TASK_WRITE_FAILED",
    "Exception thrown in",
)


class NodeFailed(Exception):
    """A node's plan could not be built or run."""

    def __init__(self, node: str | None, reason: str) -> None:
        super().__init__(reason)
        self.node = node
        self.reason = reason


def reason_of(error: BaseException) -> str:
    """The root of a failure in one line: Spark's wrappers and stack traces left out."""
    if isinstance(error, NodeFailed):
        return error.reason
    if isinstance(error, (Py4JNetworkError, ConnectionError, EOFError)):
        return "Spark's Java process has died; its last words are in spark.log in the run's folder"
    if said := database_reason(error):
        return said
    messages = [message for message in _messages(error) if message]
    for message in reversed(messages):
        text = _first_sentence(message)
        if text and not text.startswith(_WRAPPERS):
            return text
    return _first_sentence(messages[-1]) if messages else type(error).__name__


def _messages(error: BaseException) -> list[str]:
    """The messages from the outermost error to its root cause."""
    java: Any = None
    messages: list[str] = []
    if isinstance(error, Py4JJavaError):
        java = error.java_exception
    elif isinstance(error, PySparkException):
        messages.append(_plain_message(error))
        java = getattr(error, "_origin", None)
    else:
        messages.append(str(error))
    for _ in range(20):
        if java is None:
            break
        try:
            message = java.getMessage()
            name = java.getClass().getSimpleName()
            java = java.getCause()
        except Exception:
            break
        if message:
            messages.append(_with_name(name, message))
    return messages


def _with_name(name: str, message: str) -> str:
    """Java's terse messages need their class's name to be understood."""
    short = len(message) < 60 and " " not in message.strip()
    return f"{name}: {message}" if short or name in ("EOFException", "UnknownHostException") else message


def _plain_message(error: PySparkException) -> str:
    try:
        return error.getMessage() or str(error)
    except Exception:
        return str(error)


def _first_sentence(message: str) -> str:
    # A Python worker's traceback ends with what it wanted to say.
    if "Traceback (most recent call last)" in message:
        lines = [line for line in message.splitlines() if line and not line.startswith((" ", "\t"))]
        return lines[-1] if lines else message
    text = message.split("\n\tat ")[0].split("JVM stacktrace:")[0]
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("== SQL")]
    joined = " ".join(lines[:2]) if lines and lines[0].endswith(":") else (lines[0] if lines else "")
    return _NOISE.sub("", joined).strip()


def java_died(error: BaseException) -> bool:
    """Whether Spark itself is gone, so that nothing can be run any more."""
    if isinstance(error, (Py4JNetworkError, ConnectionError, EOFError)):
        return True
    return "stopped SparkContext" in str(error) or "SparkContext was shut down" in str(error)


def by_a_record(error: BaseException) -> bool:
    """Whether a plan failed by a record that it was run over, and not by itself: SQL's data exceptions."""
    return any(_DATA_EXCEPTION in message for message in (str(error), *_messages(error)))


def fragments(error: BaseException) -> list[str]:
    """The pieces of the user's own expressions that Spark says the failure is in."""
    try:
        contexts = error.getQueryContext() if isinstance(error, PySparkException) else []
        return [fragment for context in contexts if (fragment := context.fragment())]
    except Exception:
        return []


def was_cancelled(error: BaseException) -> bool:
    """Whether a job failed only because we cancelled it."""
    text = str(error)
    return (
        "SPARK_JOB_CANCELLED" in text
        or "cancelled part of cancelled job group" in text
        or ("Job" in text and "cancelled" in text)
    )


def is_full(error: BaseException) -> bool:
    """Whether something failed because there is no room left where it writes."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    text = f"{error} {reason_of(error)}"
    return "No space left on device" in text or "Disk quota exceeded" in text

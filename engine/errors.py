"""Errors a person can act on. Each carries the exit code the command line ends with."""

from __future__ import annotations


class PapilioError(Exception):
    """Something a person should read: one message, no stack trace."""

    exit_code = 1


class RunFailed(PapilioError):
    """A run started and could not finish."""

    exit_code = 1


class BadInput(PapilioError):
    """A file, a node or a setting is wrong; nothing was started."""

    exit_code = 2


class RunCancelled(PapilioError):
    """The person stopped the run."""

    exit_code = 3


class EnvironmentProblem(PapilioError):
    """The machine lacks something: Java, a package, room on the disk."""

    exit_code = 4

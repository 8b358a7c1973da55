"""The `papilio` command. One file per command in this folder; adding a file adds a command."""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import importlib.util
import pkgutil
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from types import FrameType

import click

from engine import __version__
from engine.errors import PapilioError, out_of_reach

COLLECT_AFTER = 20_000  # new objects: while modules load they are many, and hardly one of them goes


class _CommandFolder(click.Group):
    """A group whose commands are the modules beside this one, each with a `command`.

    The modules import what they need inside their functions, so that listing them stays quick.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        modules = (module.name for module in pkgutil.iter_modules(__path__))
        return sorted(name.rstrip("_") for name in modules if not name.startswith("_"))

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.list_commands(ctx):
            return None
        for module in (name, f"{name}_"):  # `import_.py` and the like
            if importlib.util.find_spec(f"{__name__}.{module}"):
                found: click.Command = importlib.import_module(f"{__name__}.{module}").command
                return found
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            import difflib

            near = difflib.get_close_matches(args[0], self.list_commands(ctx), n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise click.UsageError(error.message + hint, ctx) from None


@click.group(cls=_CommandFolder, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="papilio")
def papilio() -> None:
    """Design butterfly ETL workflows and run them on Spark.

    Exit codes: 0 done, 1 the run failed, 2 bad input, 3 cancelled, 4 environment.
    """


def _leave() -> None:
    """End a process of our own at once: what is left goes with it, without being looked through once more."""
    if "duckdb" not in sys.modules:  # whose binding lists every object that is left at the end
        gc.freeze()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and turn every error into one message and its exit code."""
    gc.set_threshold(COLLECT_AFTER)
    if arguments is None:
        atexit.register(_leave)
    try:
        with _ended_like_cancelled():
            code = papilio(args=arguments, standalone_mode=False)
    except (PapilioError, OSError) as error:
        told = out_of_reach(error) if isinstance(error, OSError) else error
        click.secho(str(told), fg="red", err=True)
        sys.exit(told.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        click.secho("Cancelled.", fg="yellow", err=True)
        sys.exit(3)
    if isinstance(code, int) and code:  # a command was done, and says by its code what came of it
        sys.exit(code)


@contextlib.contextmanager
def _ended_like_cancelled() -> Iterator[None]:
    """A termination, or a terminal that closes, cleans up as Ctrl-C does; what is repeated does not cut it short."""
    asked: list[signal.Signals] = []
    if threading.current_thread() is threading.main_thread():
        there = [signal.Signals[name] for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
        asked = [number for number in there if signal.getsignal(number) is signal.SIG_DFL]

    def heard(_: int, __: FrameType | None) -> None:
        for number in asked:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    for number in asked:
        signal.signal(number, heard)
    try:
        yield
    finally:
        for number in asked:
            signal.signal(number, signal.SIG_DFL)

"""`papilio serve`: the engine process that the designer talks to."""

from __future__ import annotations

import click


@click.command(name="serve", hidden=True)
def command() -> None:
    """Read commands from stdin and write events to stdout, one JSON object a line."""
    from engine.service import main

    main()

"""`papilio schema`: the JSON Schema of workflow files."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(name="schema")
@click.option("--to", "target", type=click.Path(path_type=Path), help="Write it there instead of printing it.")
def command(target: Path | None) -> None:
    """Print the JSON Schema of workflow files, with the operators installed here."""
    from engine.operators import ENTRY_POINTS
    from engine.plugins import announced

    if target is None and not announced(ENTRY_POINTS):
        # What is shipped is the schema of our own operators. Making it anew loads them all, to the last setting.
        from importlib import resources

        shipped = resources.files("resources") / "schema" / "butterfly.schema.json"
        click.echo(shipped.read_text(encoding="utf-8"), nl=False)
        return
    import json

    from engine.model.file import write_text
    from engine.model.jsonschema import file_schema
    from engine.operators import catalogue

    text = json.dumps(file_schema(catalogue()), indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    if target is None:
        click.echo(text, nl=False)
    else:
        write_text(target, text)

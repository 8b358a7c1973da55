"""Reading and writing `*.butterfly.yaml`: text to plain data to a workflow, and back."""

from __future__ import annotations

import contextlib
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from engine.errors import BadInput
from engine.model.problems import did_you_mean
from engine.model.workflow import FORMAT_VERSION, Workflow
from engine.model.yamldata import on_one_line, read_yaml, write_yaml

SCHEMA_COMMENT = "# yaml-language-server: $schema={schema}\n"


@dataclass(frozen=True)
class WorkflowFile:
    """A workflow with the file it came from: its text and the lines its parts stand at."""

    workflow: Workflow
    path: Path
    text: str = ""
    lines: dict[tuple[str, ...], int] = field(default_factory=dict)

    def line_of(self, node: str | None) -> int | None:
        """The line of the file where a node begins."""
        return self.lines.get(("nodes", node)) if node is not None else None


def load(path: Path | str) -> WorkflowFile:
    """Read a workflow file. Anything wrong with its form is a `BadInput` that says where."""
    path = Path(path)
    text = read_text(path)
    data, lines = read_yaml(text, str(path))
    return WorkflowFile(workflow_from(data, str(path), lines), path, text, lines)


def read_text(path: Path) -> str:
    """The text of a file that a person named, or a message that says why there is none."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        raise BadInput(f"{path}: no such file{did_you_mean(path.name, siblings)}") from None
    except IsADirectoryError:
        raise BadInput(f"{path}: is a folder, not a workflow file") from None
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None


def workflow_from(data: Any, file: str, lines: dict[tuple[str, ...], int] | None = None) -> Workflow:
    """A workflow from plain data, checked for form."""
    if not isinstance(data, dict):
        raise BadInput(f"{file}: not a workflow: the file must hold a mapping with `nodes` and `edges`")
    version = data.get("papilio")
    if version is None:
        raise BadInput(f"{file}: no `papilio: {FORMAT_VERSION}` line; is this a workflow file?")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise BadInput(f"{file}: `papilio:` must be the number of the file format, like {FORMAT_VERSION}")
    if version > FORMAT_VERSION:
        raise BadInput(
            f"{file}: written in file format {version}, and this Papilio knows formats up to "
            f"{FORMAT_VERSION}; a newer Papilio can open it"
        )
    try:
        return Workflow.model_validate(data)
    except ValidationError as error:
        raise BadInput("\n".join(_form_errors(error, file, lines or {}))) from None


def _form_errors(error: ValidationError, file: str, lines: dict[tuple[str, ...], int]) -> list[str]:
    """Pydantic's findings in the words of the file."""
    messages = []
    for item in error.errors(include_url=False)[:10]:
        steps = [str(step) for step in item["loc"]]
        line = lines.get(tuple(steps[:2])) or lines.get(tuple(steps[:1]))
        if steps and steps[0] == "nodes" and "[key]" in steps:
            reason = f"`{steps.pop(1)}` cannot be a node's id: letters, digits, `_` and `-` only"
            steps.remove("[key]")
        elif steps and steps[0] == "edges" and item["type"] == "string_pattern_mismatch":
            reason = f"`{item['input']}` is no end of an edge; write `node` or `node.port`"
        else:
            reason = item["msg"].removeprefix("Value error, ")
            if item["type"] != "missing" and not isinstance(item.get("input"), (dict, list)):
                reason += f" (it is {item.get('input')!r})"
        place = f"{file}:{line}" if line else file
        if len(steps) > 1 and steps[0] == "nodes":
            where = f"node `{steps[1]}`" + (f", field `{'.'.join(steps[2:])}`" if len(steps) > 2 else "")
        else:
            where = f"`{'.'.join(steps)}`"
        messages.append(f"{place}: {where}: {reason}")
    return messages


def to_yaml(workflow: Workflow) -> str:
    """The file's text: sorted, one line per edge and per position, the same for the same workflow."""
    document = workflow.document()
    if "edges" in document:
        document["edges"] = [on_one_line(edge) for edge in document["edges"]]
    if "layout" in document:
        document["layout"] = _short_lists(document["layout"])
    return write_yaml(document)


def _short_lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _short_lists(item) for key, item in value.items()}
    if isinstance(value, list) and all(isinstance(item, (int, float, str)) for item in value):
        return on_one_line(value)
    return value


def save(workflow: Workflow, path: Path | str, *, comment: str = "") -> None:
    """Write a workflow file in one step: a reader sees the old text or the new, never a part."""
    from engine.model.secrets import refuse_secrets

    refuse_secrets(workflow, str(path))
    write_text(Path(path), comment + to_yaml(workflow))


def write_text(path: Path, text: str) -> None:
    """Replace a file's text atomically, keeping its permissions."""
    path = path.resolve()  # a link stays a link
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise BadInput(f"{path}: cannot be written: {error.strerror}") from None
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        mode = path.stat().st_mode & 0o7777 if path.exists() else 0o666 & ~_umask()
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise BadInput(f"{path}: cannot be written: {error.strerror}") from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask

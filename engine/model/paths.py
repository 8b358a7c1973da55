"""Paths inside declared roots. Nothing outside them is read or written."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

MAX_PATH_BYTES = 4096  # Linux's own bounds
MAX_NAME_BYTES = 255

_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:")


class OutsideRoots(ValueError):
    """A path that leads out of the workflow's roots."""


def resolve_roots(roots: Mapping[str, str], base: Path) -> dict[str, Path]:
    """The roots as absolute folders; without any, the workflow file's own folder is the root."""
    if not roots:
        return {"": base.resolve()}
    resolved = {}
    for name, text in roots.items():
        if _SCHEME.match(text):
            raise OutsideRoots(f"the root `{name}` is `{text}`: a folder, not an address, is needed")
        resolved[name] = _absolute(text, base / Path(text).expanduser())
    return resolved


def resolve_path(text: str, roots: Mapping[str, Path], base: Path) -> Path:
    """A path of a setting as an absolute one. Links are followed before it is compared with the roots."""
    if _SCHEME.match(text):
        raise OutsideRoots(f"`{text}`: paths are plain paths, without `{_SCHEME.match(text).group()}`")  # type: ignore[union-attr]
    if "\0" in text:
        raise OutsideRoots("a path with a zero byte")
    if any(character in text for character in "*?[]{}"):
        raise OutsideRoots(f"`{text}`: no wildcards; name a file or a folder")
    path = _absolute(text, base / text)
    if not any(path.is_relative_to(root) for root in roots.values()):
        allowed = ", ".join(f"`{root}`" for root in roots.values())
        raise OutsideRoots(f"`{text}` leads to `{path}`, outside the declared roots ({allowed})")
    return path


def _absolute(text: str, path: Path) -> Path:
    """The path with its links followed."""
    if len(os.fsencode(path)) >= MAX_PATH_BYTES or any(len(os.fsencode(part)) > MAX_NAME_BYTES for part in path.parts):
        raise OutsideRoots(f"`{text[:40]}…`: longer than a path can be")
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        raise OutsideRoots(f"`{text}`: its links lead in a circle") from None

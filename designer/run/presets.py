"""Presets of the run bar: shipped ones from `resources/presets`, a person's own from their Papilio folder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from engine.errors import PapilioError
from engine.model.file import write_text
from engine.model.yamldata import read_yaml

FILE = "run-presets.json"


@dataclass(frozen=True)
class Preset:
    """Run settings under a name."""

    name: str
    settings: dict[str, Any]
    about: str = ""
    own: bool = False


class Presets:
    """All presets, the shipped ones first. A file that cannot be read only costs the person's own."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE
        text = (resources.files("resources") / "presets" / "run.yaml").read_text(encoding="utf-8")
        shipped = [Preset(one["name"], one["settings"], one["about"]) for one in read_yaml(text, "run.yaml")[0]]
        self.all = {one.name: one for one in [*shipped, *self._read()]}

    def _read(self) -> list[Preset]:
        try:
            data = json.loads(self._file.read_text(encoding="utf-8"))
            from engine.request import RunRequest  # not needed by those who have none of their own

            made = [Preset(str(name), dict(settings), own=True) for name, settings in data.items()]
            for one in made:
                RunRequest.from_plain(one.settings)
        except (OSError, ValueError, AttributeError, TypeError, PapilioError):
            return []
        return made

    def keep(self, name: str, settings: dict[str, Any]) -> None:
        """Save settings under a name of the person's own; a shipped preset is not replaced."""
        known = self.all.get(name)
        if known is not None and not known.own:
            raise ValueError(name)
        self.all[name] = Preset(name, dict(settings), own=True)
        self._write()

    def forget(self, name: str) -> None:
        """Remove one of the person's own."""
        if name in self.all and self.all[name].own:
            del self.all[name]
            self._write()

    def _write(self) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        own = {one.name: one.settings for one in self.all.values() if one.own}
        write_text(self._file, json.dumps(own, indent=1, sort_keys=True) + "\n")

    def matching(self, settings: dict[str, Any]) -> str | None:
        """The preset that says exactly this."""
        return next((one.name for one in self.all.values() if one.settings == settings), None)

"""A shipped workflow run by Papilio on Sail, in a process of its own: PySpark speaks to one kind of Spark a process."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from engine.errors import RunFailed
from engine.events import Event, SparkReady
from engine.experiments.apart import answer
from engine.experiments.contest import ENDING, SHIPPED
from engine.experiments.measure import watched


def main(folder: Path) -> None:
    """Answer; the start of Sail, which every run has, is taken off its seconds as nobody else's start counts."""
    from engine.model.binding import bind
    from engine.model.file import load
    from engine.operators import catalogue
    from engine.spark.launch import launch
    from engine.spark.runner import RunSettings
    from engine.spark.session import SparkSettings
    from engine.store.sources import SourceSchemas

    store = str(folder / "store-sail.sqlite")

    def run(asked: dict[str, Any]) -> dict[str, float]:
        started: list[float] = []

        def heard(event: Event) -> None:
            if isinstance(event, SparkReady):
                started.append(event.seconds)

        begun = time.monotonic()
        bound = bind(
            load(SHIPPED / f"{asked['workflow']}{ENDING}"),
            catalogue(),
            parameters={"data_folder": asked["data"], "warehouse_folder": asked["out"]},
            settings={(node, key): value for node, key, value in asked["settings"]},
            discover=SourceSchemas(store).discover,
        )
        with tempfile.TemporaryDirectory(dir=folder) as own, watched() as watch:
            settings = RunSettings(SparkSettings("sail"), folder=Path(own))
            summary = launch(bound, settings, store=store, listener=heard)
        if summary["status"] != "done":
            raise RunFailed(summary["reason"])
        return {"seconds": time.monotonic() - begun - sum(started), "peak_mb": watch.mb, "start_s": sum(started)}

    answer(run, settle=lambda: None)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

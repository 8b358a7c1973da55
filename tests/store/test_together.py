"""Several processes writing to one store at once lose nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from engine.store import MetadataStore

PROCESSES = 4
EACH = 40
HOUSE = Path(__file__).parents[2]


def test_four_processes_writing_at_once_lose_nothing(url: str) -> None:
    # The store does not exist yet: they race to make it too.
    program = [sys.executable, "-W", "error", "-m", "tests.store.writer", url]
    writers = [
        subprocess.Popen([*program, str(part), str(EACH)], cwd=HOUSE, stderr=subprocess.PIPE, text=True)
        for part in range(PROCESSES)
    ]
    complaints = [writer.communicate(timeout=120)[1] for writer in writers]
    assert complaints == [""] * PROCESSES
    assert [writer.returncode for writer in writers] == [0] * PROCESSES

    with MetadataStore(url) as store:
        versions = store.list_versions("shared")
        assert [info.version for info in versions] == list(range(1, PROCESSES * EACH + 1))
        written = [store.get_workflow("shared", info.version).text for info in versions]
        for part in range(PROCESSES):
            own = [text for text in written if text.startswith(f"{part}/")]
            assert own == [f"{part}/{number}" for number in range(EACH)]
            assert len(store.list_versions(f"own-{part}")) == EACH
        assert len(store.list_runs()) == PROCESSES * EACH
        assert len(store.list_schemas("source")) == PROCESSES * EACH
        assert [plan.cost for plan in store.list_plans()] == [EACH - 1.0]

"""A store on each database the store is tested on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.store import MetadataStore


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test touches the store of the person who runs it."""
    monkeypatch.setenv("PAPILIO_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("PAPILIO_STORE", raising=False)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an empty store can be made, on SQLite and on PostgreSQL."""
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgresql").url)
    return str(tmp_path / "store.db")


@pytest.fixture
def store(url: str) -> Iterator[MetadataStore]:
    """An empty store."""
    with MetadataStore(url) as found:
        yield found

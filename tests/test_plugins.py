"""Plugins are found by what installed packages announce, and nobody is read who announces nothing."""

from __future__ import annotations

import importlib.metadata
import sys
import zipfile

import pytest

from engine.plugins import announced


def package(folder, name, text):
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(text)


@pytest.fixture
def read(monkeypatch):
    """How often the metadata of all packages were read."""
    calls = []
    real = importlib.metadata.entry_points
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **asked: calls.append(asked) or real(**asked))
    return calls


def test_what_a_package_announces_is_found_and_others_are_not_read(tmp_path, monkeypatch, read):
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "nowhere")])
    package(tmp_path, "other", "[console_scripts]\npapilio.things = other:main\n")
    assert list(announced("papilio.things")) == []
    assert read == []
    package(tmp_path, "mine", "[papilio.things]\none = mine:One\n")
    assert [(entry.name, entry.value) for entry in announced("papilio.things")] == [("one", "mine:One")]
    assert list(announced("papilio.others")) == []
    assert len(read) == 1


def test_a_package_in_an_archive_is_found_too(tmp_path, monkeypatch, read):
    archive = tmp_path / "mine-1.0.egg"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("EGG-INFO/PKG-INFO", "Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
        packed.writestr("EGG-INFO/entry_points.txt", "[papilio.things]\none = mine:One\n")
    monkeypatch.setattr(sys, "path", [str(archive)])
    assert [entry.name for entry in announced("papilio.things")] == ["one"]

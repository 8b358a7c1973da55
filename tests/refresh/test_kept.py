"""What runs of a warehouse leave behind for the next."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from engine.model.binding import bind
from engine.model.file import load
from engine.operators import catalogue
from engine.refresh.estimates import Learnt
from engine.refresh.kept import keep, learnt_of, record_of
from tests.spark.streaming import FILE


def test_of_each_table_the_newest_run_that_updated_it_counts(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PAPILIO_HOME", str(tmp_path))
    monkeypatch.delenv("PAPILIO_STORE", raising=False)
    file = tmp_path / "small.butterfly.yaml"
    file.write_text(FILE)
    bound = bind(load(file), catalogue())
    runs = [
        {"click": Learnt(1.0, 0.1, 1.0, 40), "pair": Learnt(2.0, 0.2, 4.0, 7)},
        {"click": Learnt(3.0, 0.3, 1.0, 9), "sale": Learnt(4.0, 0.4, 1.0, 2)},
        {"click": Learnt(1.0, 0.0, 5.0, 0)},  # it began, and had not updated anything
        {},
    ]
    began = datetime(2026, 1, 1, tzinfo=UTC)
    for number, learnt in enumerate(runs):
        record = record_of(bound, f"run{number}", "fifo", began + timedelta(hours=number), None, tmp_path)
        record.summary.update({"learnt": {name: vars(one) for name, one in learnt.items()}})
        keep(record, None)
    assert learnt_of("small", None) == {"click": runs[1]["click"], "sale": runs[1]["sale"], "pair": runs[0]["pair"]}


def test_many_simulated_runs_do_not_hide_what_a_live_one_learnt(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PAPILIO_HOME", str(tmp_path))
    monkeypatch.delenv("PAPILIO_STORE", raising=False)
    file = tmp_path / "small.butterfly.yaml"
    file.write_text(FILE)
    bound = bind(load(file), catalogue())
    began = datetime(2026, 1, 1, tzinfo=UTC)
    for number in range(30):
        record = record_of(bound, f"run{number}", "fifo", began + timedelta(hours=number), None, tmp_path)
        record.summary.update({"learnt": {"click": vars(Learnt(3.0, 0.3, 1.0, 9))}} if number == 2 else {"jobs": 1})
        keep(record, None)
    assert learnt_of("small", None) == {"click": Learnt(3.0, 0.3, 1.0, 9)}

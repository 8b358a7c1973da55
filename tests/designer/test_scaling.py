"""The panels of an elastic run: nodes and shares of the limits as the log has them, decisions as markers."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from PySide6.QtCore import Qt

from designer.document.document import Document
from designer.monitor.panels.limits import LimitsPanel
from designer.monitor.panels.scaling import ScalingPanel
from designer.monitor.player import Player
from engine.elastic.record import ElasticRecord
from engine.elastic.simulation import launch_simulation
from engine.events import LogReader, ScalingDecided
from engine.experiments.ascale import SCENARIO, stairs
from engine.model.elastic import Elastic
from engine.model.file import WorkflowFile, load
from engine.model.workflow import Workflow
from tests.designer.conftest import opened
from tests.designer.examples import FIG1
from tests.designer.test_preview import until

STAGES = ["extraction", "transformation", "buffer", "switch", "warehouse"]


@pytest.fixture
def asked():
    """Other limits."""
    return {}


@pytest.fixture
def elastic_run(asked, tmp_path, monkeypatch):
    """The log of a simulated run that grows and shrinks, and what it came to."""
    monkeypatch.setenv("PAPILIO_HOME", str(tmp_path / "home"))
    rate = {"rate": stairs([100_000, 300_000, 50_000], 80)}
    workflow = Workflow.model_validate({"name": "w", "elastic": SCENARIO | rate | asked})
    file = WorkflowFile(workflow, tmp_path / "w.butterfly.yaml")
    return launch_simulation(ElasticRecord(file, backend="simulated", folder=tmp_path / "run"))


@contextlib.contextmanager
def shown(kind, log, qtbot):
    """A panel over the log of a run, with its player."""
    player = Player()
    panel = kind(player)
    qtbot.addWidget(panel)
    panel.resize(900, 400)
    panel.show()
    player.open(log)
    try:
        player.wait_until_loaded()
        player.tick()
        yield panel, player
    finally:
        player.close()


@pytest.mark.parametrize("kind", [ScalingPanel, LimitsPanel])
def test_a_panel_shows_every_stage_and_every_decision(kind, elastic_run, qtbot):
    summary, result = elastic_run
    with shown(kind, result_log(summary), qtbot) as (panel, player):
        more = ["transformation time", "buffer disk"] if kind is LimitsPanel else []
        assert list(panel.curves) == STAGES + more
        assert len(panel.series.times) == len(result.points)
        assert panel.series.nodes["warehouse"] == [point.nodes["warehouse"] for point in result.points]
        assert panel.series.shares["transformation"] == pytest.approx(
            [point.queue_mb / 50 for point in result.points], abs=1e-3
        )
        assert len(panel.marks.points()) == len(summary["decisions"]) > 3
        decided = {point.data().reason for point in panel.marks.points()}
        assert decided == {one["reason"] for one in summary["decisions"]}
        assert "nodes at work" in panel.headline.text() or "of its limit" in panel.headline.text()
        player.seek(90.0)  # in the burst
        player.tick()
        place = panel.series.place(90.0)
        assert panel.series.times[place] <= 90 < panel.series.times[place + 1]


@pytest.mark.parametrize(
    "asked",
    [{"limit_s": 6, "warehouse": {"every_s": 2, "load_limit_s": 2, "query_limit_s": 20, "sessions": 3},
      "transformation": {"queue_mb": 80, "limit_s": 2}, "capacity": {"warehouse_mb": 2000}}],
)  # fmt: skip
def test_every_measure_of_a_stage_is_drawn_against_its_own_limit(elastic_run, qtbot):
    summary, result = elastic_run
    with shown(LimitsPanel, result_log(summary), qtbot) as (panel, _):
        points = result.points
        expected = {
            "extraction": [point.extraction_s / 1 for point in points],
            "transformation": [point.queue_mb / 40 for point in points],
            "transformation time": [point.transformation_s / 2 for point in points],
            "warehouse": [point.load_s / 2 for point in points],
            "query time": [(point.query_s or 0) / 20 for point in points],
        }
        for name, shares in expected.items():
            drawn = panel.curves[name].getData()[1]
            assert drawn == pytest.approx(shares, abs=2e-3), name
        assert panel.limit.value() == 1.0
        dashed = {name for name, curve in panel.curves.items() if curve.opts["pen"].style() is Qt.PenStyle.DashLine}
        assert dashed == {"transformation time", "buffer disk", "query time"}
        assert panel._words("warehouse") == "warehouse: load time 2 s, query time 20 s"
        assert panel._words("transformation") == "transformation: queue 40 MB, time 2 s"
        # A query took too long: the decision is marked where the query's line crosses its limit, not the load's.
        (mark,) = [one for one in panel.marks.points() if "queries took" in one.data().reason][:1]
        place = panel.series.place(mark.pos().x())
        assert mark.pos().y() == panel.series.shares["query time"][place] > 1


@pytest.mark.parametrize("kind", [ScalingPanel, LimitsPanel])
def test_a_run_that_does_not_scale_says_so_and_has_no_limit(tmp_path, qtbot, kind):
    (tmp_path / "events.jsonl").write_text(
        '{"event":"run-started","time":1.0,"run":"r","workflow":"w","file":null,"content_hash":"","policy":"rr","granularity":"fused","backend":"spark","master":null,"nodes":{},"edges":[],"units":{}}\n'
    )
    with shown(kind, tmp_path / "events.jsonl", qtbot) as (panel, _):
        assert "does not scale" in panel.empty.toPlainText()
        assert kind is ScalingPanel or not panel.limit.isVisible()


def result_log(summary):
    return Path(summary["folder"]) / "events.jsonl"


@pytest.mark.slow  # an engine process of its own
def test_elasticity_is_a_policy_of_the_run_bar(window, tmp_path):
    workflow = load(FIG1).workflow
    workflow.elastic = Elastic.model_validate(SCENARIO | {"rate": stairs([100_000, 300_000], 60)})
    opened(window, Document(workflow, window.catalogue))
    bar = window.driver.bar
    bar.backend.setCurrentText("simulated")
    bar.policy.setCurrentText("elastic")
    window.actions_["run.run"].trigger()
    until(lambda: window.runs.state == "done", 60)
    assert window.runs.log_path is not None
    events = list(LogReader(Path(window.runs.log_path)))
    assert any(isinstance(event, ScalingDecided) and event.action == "scale out" for event in events)

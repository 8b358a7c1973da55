"""On a cluster that is not ours Spark is the one controller of executors: what it is told, and who is refused.

Kubernetes and YARN are not run here. That every setting is one that this Spark knows, with a value that it can read, is
asked of Spark itself.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest

from engine.control import RunControl, driven
from engine.elastic.actuators import Given, NotOurs, Resized, allocation_settings, check_master
from engine.elastic.decision import Stage
from engine.elastic.scaler import Sample, Scaler, Start, Unreachable
from engine.errors import BadInput
from engine.model.elastic import Elastic
from engine.spark.cluster import executor_ids
from engine.spark.session import SparkSettings, spark_properties
from tests.end_to_end.helpers import WORKFLOWS, papilio_here

RATE = {"kind": "steps", "steps": [{"at_s": 0, "rows_s": 10}], "seconds": 10}
IMAGE = {"spark.kubernetes.container.image": "registry/spark"}
HADOOP = {"HADOOP_CONF_DIR": "/etc/hadoop"}


def limits(**more: Any) -> Elastic:
    return Elastic.model_validate({"rate": RATE} | more)


def asked(**more: Any) -> dict[str, str]:
    """Settings without the family's name."""
    settings = allocation_settings(limits(**more))
    return {key.removeprefix("spark.dynamicAllocation."): value for key, value in settings.items()}


def test_executors_come_and_go_between_the_nodes_that_the_limits_allow():
    stages: dict[str, Any] = {"transformation": {"nodes": {"min": 2, "max": 5}}, "warehouse": {"nodes": {"max": 3}}}
    settings = asked(pool=12, **stages)
    assert settings["enabled"] == "true"
    assert (settings["minExecutors"], settings["initialExecutors"], settings["maxExecutors"]) == ("2", "2", "5")
    assert asked(pool=12)["maxExecutors"] == "9"  # a stage without a maximum: what the pool has beside the other three
    assert asked(pool=6, **stages)["maxExecutors"] == "3"


def test_they_come_after_a_look_and_leave_when_idle_for_as_long_as_the_limits_say_with_cached_rows_or_without():
    settings = asked(sample_s=2.5, settle_s=6, hold_s=20)
    assert settings["schedulerBacklogTimeout"] == "3s"
    assert settings["sustainedSchedulerBacklogTimeout"] == "6s"
    names = ("executorIdleTimeout", "cachedExecutorIdleTimeout", "shuffleTracking.timeout")
    assert [settings[name] for name in names] == ["20s"] * 3


def test_between_two_extractions_or_loads_no_executor_leaves():
    assert asked(hold_s=20, extraction={"every_s": 60})["executorIdleTimeout"] == "60s"
    assert asked(hold_s=20, warehouse={"every_s": 90})["cachedExecutorIdleTimeout"] == "90s"


def test_executors_that_nobody_allocates_are_followed_and_that_they_are_too_few_is_told():
    nobody = Given.fixed
    stage = Stage.TRANSFORMATION
    scaler = Scaler(limits(), frozenset({stage}), {stage: nobody})
    scaler.follow(stage, 2)
    (told,) = scaler.sample(0, Sample(queues_mb=[1000.0] * 2))
    assert isinstance(told, Unreachable)
    assert told.reason.endswith("nobody adds executors: spark.dynamicAllocation.enabled is not true")
    assert scaler.sample(2, Sample(queues_mb=[0.0] * 2)) == scaler.sample(90, Sample(queues_mb=[0.0] * 2)) == []


def test_who_leaves_hands_shuffles_and_cached_rows_on():
    settings = asked()
    assert settings["shuffleTracking.enabled"] == "true"
    names = ("spark.decommission.enabled", "spark.storage.decommission.enabled",
             "spark.storage.decommission.shuffleBlocks.enabled", "spark.storage.decommission.rddBlocks.enabled")  # fmt: skip
    assert [settings[name] for name in names] == ["true"] * 4


def test_an_executor_is_as_large_as_a_worker_would_be():
    settings = asked(live={"worker_cores": 2, "worker_mb": 1536})
    assert (settings["spark.executor.cores"], settings["spark.executor.memory"]) == ("2", "1536m")


def test_every_setting_is_one_that_spark_knows_and_its_value_one_that_spark_can_read(spark):
    config = spark._jvm.org.apache.spark.internal.config
    for key, value in allocation_settings(limits()).items():
        entry = config.ConfigEntry.findEntry(key)
        assert entry is not None, key
        entry.valueConverter().apply(value)
    assert config.ConfigEntry.findEntry("spark.dynamicAllocation.shuffleTracking.enable") is None  # so it can tell
    kubernetes = spark._jvm.org.apache.spark.deploy.k8s.Config
    assert kubernetes.CONTAINER_IMAGE().key() in IMAGE


@pytest.mark.parametrize("master", ["spark://host:7077", "k8s://https://host:6443", "yarn"])
def test_the_settings_reach_spark_for_every_kind_of_cluster_and_a_persons_own_win(master, tmp_path):
    extra = allocation_settings(limits()) | {"spark.executor.memory": "2g"}
    properties = spark_properties(SparkSettings(master, extra=extra), tmp_path)
    assert properties["spark.master"] == master
    assert extra.items() <= properties.items()
    assert properties["spark.executor.memory"] == "2g"


@pytest.mark.parametrize(
    ("master", "confs", "environment", "reason"),
    [
        (None, {}, {}, None),
        (None, {"spark.dynamicAllocation.enabled": "true"}, {}, "one controller at a time"),
        ("spark://host:7077", {}, {}, None),
        ("local[2]", {}, {}, None),
        ("sail", {}, {}, "an elastic run is on"),
        ("sc://host", {}, {}, "an elastic run is on"),
        ("k8s://https://host:6443", {}, {}, "name the image that executors run"),
        ("k8s://https://host:6443", IMAGE, {}, None),
        ("yarn", {}, {}, "set HADOOP_CONF_DIR or YARN_CONF_DIR"),
        ("yarn", {}, HADOOP, None),
    ],
)
def test_what_cannot_be_or_would_be_two_controllers_is_refused(master, confs, environment, reason):
    with pytest.raises(BadInput, match=reason) if reason else contextlib.nullcontext():
        check_master(Path("w.yaml"), master, confs, environment)


def test_local_spark_has_no_executors_that_come_and_go(spark):
    assert executor_ids(spark) == []
    assert (NotOurs().resize(5), NotOurs().there()) == (Resized(), None)


def test_the_scaler_follows_a_stage_that_somebody_else_scales_and_decides_the_others():
    scaler = Scaler(limits(pool=6, warehouse={"every_s": 60, "load_limit_s": 1}), frozenset({Stage.TRANSFORMATION}))
    scaler.follow(Stage.TRANSFORMATION, 7)
    assert scaler.nodes()["transformation"] == 7
    assert scaler.ready == 2  # the executors are not of this pool
    orders = scaler.sample(0, Sample(queues_mb=[1000.0] * 7, load_s=2.0))
    assert [(type(order), order.stage) for order in orders] == [(Start, Stage.WAREHOUSE)]
    scaler.follow(Stage.TRANSFORMATION, 1)
    assert scaler.nodes()["transformation"] == 1


def test_a_second_run_on_the_warehouse_of_a_first_is_refused(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    file = WORKFLOWS / "elastic_tpch_to_ssb.butterfly.yaml"
    with driven(run, RunControl()):  # as a run holds its folder
        done = papilio_here("scale", "simulate", file, "--run-dir", run, home=tmp_path)
    assert done.returncode == 2
    assert f"{run}: a run is under way there, and a warehouse has one controller at a time" in done.stderr

"""Who carries the scaler's orders out: Workers of our own, or the dynamic allocation of an existing cluster."""

from __future__ import annotations

import contextlib
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import BadInput, EnvironmentProblem
from engine.model.elastic import Elastic
from engine.spark.cluster import NoSuchWorker, StandaloneCluster, executor_ids

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Resized:
    """Which nodes were started and stopped, how many there are now, and why it is not as many as were asked for."""

    started: tuple[str, ...] = ()
    stopped: tuple[str, ...] = ()
    there: int | None = None  # none where they are not counted here
    problem: str | None = None


class Actuator(ABC):
    """Makes so many nodes be there."""

    fixed: str | None = None  # why nobody adds or removes nodes, where nobody does

    @abstractmethod
    def resize(self, nodes: int) -> Resized:
        """So many nodes from now on. One that does not start is told; those that came before it stay."""

    @abstractmethod
    def lost(self) -> list[str]:
        """Nodes that died since the last look."""

    def there(self) -> list[str] | None:
        """The nodes that somebody else adds and removes; none where the scaler's orders are what counts."""
        return None


class OwnWorkers(Actuator):
    """Ready nodes are Workers of a cluster of ours: one node of every stage shares a Worker."""

    def __init__(self, cluster: StandaloneCluster) -> None:
        self._cluster = cluster

    def resize(self, nodes: int) -> Resized:
        started: list[str] = []
        stopped: list[str] = []
        there = [worker.id for worker in self._cluster.workers()]
        problem = None
        while len(there) + len(started) < nodes and problem is None:
            try:
                started.append(self._cluster.add_worker().id)
            except EnvironmentProblem as error:
                problem = str(error)
        for id_ in there[nodes:]:  # the youngest leave first
            with contextlib.suppress(NoSuchWorker):  # it died since: `lost` tells of it
                self._cluster.stop_worker(id_)
            stopped.append(id_)
        return Resized(tuple(started), tuple(stopped), len(there) + len(started) - len(stopped), problem)

    def lost(self) -> list[str]:
        return self._cluster.forget_dead()


class NotOurs(Actuator):
    """Nodes that nobody adds or removes: those of local Spark."""

    fixed: str | None = "local Spark has no Workers that could be added"

    def resize(self, nodes: int) -> Resized:
        return Resized()

    def lost(self) -> list[str]:
        return []


class Allocated(NotOurs):
    """Executors that Spark's dynamic allocation adds and removes on an existing cluster.

    One controller at a time: nothing is started or stopped here, those that are there are only looked at.
    """

    fixed: str | None = None

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def there(self) -> list[str]:
        return [f"executor-{number}" for number in executor_ids(self._spark)]


class Given(Allocated):
    """The executors of an existing cluster where dynamic allocation was switched off."""

    fixed: str | None = "nobody adds executors: spark.dynamicAllocation.enabled is not true"


# ---------------------------------------------------------------- settings for an existing cluster

ENABLED = "spark.dynamicAllocation.enabled"
_MASTERS = re.compile(r"local|spark://|k8s://|yarn$")
_K8S_IMAGES = ("spark.kubernetes.executor.container.image", "spark.kubernetes.container.image")


def allocation_settings(limits: Elastic) -> dict[str, str]:
    """What an application asks of a cluster that is not ours.

    Executors come and go as its tasks need them, as many as the limits allow and as long as they say; one that leaves
    hands its shuffles and cached rows on, so it need not be kept for them.
    """
    # Between two extractions or loads all of them are idle.
    idle = f"{max(1, math.ceil(max(limits.hold_s, limits.extraction.every_s, limits.warehouse.every_s)))}s"
    least = least_workers(limits)
    return {
        ENABLED: "true",
        "spark.dynamicAllocation.minExecutors": str(least),
        "spark.dynamicAllocation.initialExecutors": str(least),
        "spark.dynamicAllocation.maxExecutors": str(_most_executors(limits, least)),
        # Tasks that wait for as long as the scaler takes between two looks ask for an executor, and for more of them
        # when those that came have settled.
        "spark.dynamicAllocation.schedulerBacklogTimeout": f"{max(1, math.ceil(limits.sample_s))}s",
        "spark.dynamicAllocation.sustainedSchedulerBacklogTimeout": (
            f"{max(1, math.ceil(limits.sample_s), math.ceil(limits.settle_s))}s"
        ),
        # Without these two an executor that holds cached rows or shuffles would stay for ever.
        "spark.dynamicAllocation.executorIdleTimeout": idle,
        "spark.dynamicAllocation.cachedExecutorIdleTimeout": idle,
        # No service outside of the executors keeps shuffles; Kubernetes has none.
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.timeout": idle,
        "spark.decommission.enabled": "true",
        "spark.storage.decommission.enabled": "true",
        "spark.storage.decommission.shuffleBlocks.enabled": "true",
        "spark.storage.decommission.rddBlocks.enabled": "true",
        "spark.executor.cores": str(limits.live.worker_cores),
        "spark.executor.memory": f"{limits.live.worker_mb}m",
    }


def least_workers(limits: Elastic) -> int:
    """The Workers or executors to begin with: stages share them."""
    return max(limits.transformation.nodes.min, limits.warehouse.nodes.min)


def _most_executors(limits: Elastic, least: int) -> int:
    """What the pool has beside one node each of extraction, buffer and switch, and the two stages may have."""
    pool = limits.pool - 3
    stages = [stage.nodes.max or pool for stage in (limits.transformation, limits.warehouse)]
    return max(least, min(pool, max(stages)))


def check_master(file: object, master: str | None, confs: Mapping[str, str], environment: Mapping[str, str]) -> None:
    """Refuse a master that cannot scale, what a cluster cannot start without, and two controllers of its nodes."""
    if master is None and confs.get(ENABLED, "").lower() == "true":
        raise BadInput(
            f"{file}: --spark-conf {ENABLED}=true: without --master the scaler starts and stops Workers itself, and "
            "there is one controller at a time"
        )
    if master is not None and not _MASTERS.match(master):
        raise BadInput(f"{file}: --master {master}: an elastic run is on spark://…, k8s://…, yarn or local Spark")
    if master is not None and master.startswith("k8s://") and not any(confs.get(name) for name in _K8S_IMAGES):
        raise BadInput(f"{file}: --master {master}: name the image that executors run, --spark-conf {_K8S_IMAGES[1]}=…")
    if master == "yarn" and not any(environment.get(name) for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR")):
        raise BadInput(f"{file}: --master yarn: set HADOOP_CONF_DIR or YARN_CONF_DIR to the folder that describes it")

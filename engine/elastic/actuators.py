"""Who carries the scaler's orders out: Workers of our own, or the dynamic allocation of an existing cluster."""

from __future__ import annotations

from abc import ABC, abstractmethod

from engine.spark.cluster import StandaloneCluster

# What an application asks of a cluster that is not ours: executors come and go as its tasks need them, and a node
# that leaves hands its shuffles and cached rows on.
DYNAMIC_ALLOCATION = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.executorIdleTimeout": "30s",
    "spark.decommission.enabled": "true",
    "spark.storage.decommission.enabled": "true",
    "spark.storage.decommission.shuffleBlocks.enabled": "true",
    "spark.storage.decommission.rddBlocks.enabled": "true",
}


class Actuator(ABC):
    """Makes so many nodes be there."""

    @abstractmethod
    def resize(self, nodes: int) -> tuple[list[str], list[str]]:
        """So many nodes from now on; the names of those that were started and stopped.

        A node that does not start raises `EnvironmentProblem` with what it said.
        """

    @abstractmethod
    def lost(self) -> list[str]:
        """Nodes that died since the last look."""


class OwnWorkers(Actuator):
    """Ready nodes are Workers of a cluster of ours: one node of every stage shares a Worker."""

    def __init__(self, cluster: StandaloneCluster) -> None:
        self._cluster = cluster

    def resize(self, nodes: int) -> tuple[list[str], list[str]]:
        started: list[str] = []
        stopped: list[str] = []
        there = [worker.id for worker in self._cluster.workers()]
        while len(there) + len(started) < nodes:
            started.append(self._cluster.add_worker().id)
        for id_ in there[nodes:]:  # the youngest leave first
            self._cluster.stop_worker(id_)
            stopped.append(id_)
        return started, stopped

    def lost(self) -> list[str]:
        return self._cluster.forget_dead()


class NotOurs(Actuator):
    """Nodes that somebody else controls: Spark's dynamic allocation on an existing cluster, nobody on local Spark.

    One controller at a time, so nothing is started or stopped here.
    """

    def resize(self, nodes: int) -> tuple[list[str], list[str]]:
        return [], []

    def lost(self) -> list[str]:
        return []


def allocation_settings(least: int, most: int) -> dict[str, str]:
    """Spark's settings for an existing cluster, between so many executors."""
    return DYNAMIC_ALLOCATION | {
        "spark.dynamicAllocation.minExecutors": str(least),
        "spark.dynamicAllocation.initialExecutors": str(least),
        "spark.dynamicAllocation.maxExecutors": str(most),
    }

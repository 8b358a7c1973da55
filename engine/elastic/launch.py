"""From a bound workflow with limits to a finished live run: the cluster, the session, the record."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from typing import Any

from engine.elastic.actuators import Actuator, NotOurs, OwnWorkers, allocation_settings
from engine.elastic.live import LiveRun, live_limits
from engine.elastic.rates import data_rate
from engine.elastic.record import ElasticRecord
from engine.events import Remark, SparkReady
from engine.model.binding import Bound
from engine.model.elastic import Elastic
from engine.spark.cluster import StandaloneCluster
from engine.spark.session import SparkSettings, close_session, open_session
from engine.spark.star_flow import StarFlow

_SHUFFLE_PARTITIONS = "4"  # batches are small; each task costs more than its rows


def launch_live(
    bound: Bound,
    record: ElasticRecord,
    *,
    driver_memory_mb: int | None = 1024,
    confs: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Run a workflow's limits live. Without a master a cluster of its own is started, Workers and all."""
    master = record.master
    rate = data_rate(record.limits.rate, record.file.path.parent)
    limits = live_limits(record.limits)
    with record, contextlib.ExitStack() as cleanup:
        started = time.monotonic()
        actuator: Actuator
        if master is None:
            live = limits.live
            cluster = cleanup.enter_context(StandaloneCluster(_least(limits), live.worker_cores, live.worker_mb))
            actuator = OwnWorkers(cluster)
            settings = cluster.settings(driver_memory_mb)
            own = {"spark.sql.shuffle.partitions": _SHUFFLE_PARTITIONS}
            settings = SparkSettings(
                settings.master, driver_memory_mb, extra={**settings.extra, **own, **(confs or {})}
            )
        else:
            actuator = NotOurs()
            extra = dict(confs or {})
            if not master.startswith("local"):
                extra = allocation_settings(_least(limits), max(_least(limits), limits.pool - 3)) | extra
                record.log.add(Remark(message="Spark's dynamic allocation adds and removes executors on this cluster"))
            settings = SparkSettings(master, driver_memory_mb if extra else None, extra=extra)
        spark = open_session(settings)
        cleanup.callback(close_session, spark)
        record.log.add(
            SparkReady(version=spark.version, master=settings.master, seconds=round(time.monotonic() - started, 3))
        )
        flow = StarFlow(bound, spark, limits.live.source, limits.live.facts)
        run = LiveRun(record, rate, spark, flow, actuator)
        record.summary |= run.run()
    return record.summary


def _least(limits: Elastic) -> int:
    """The Workers to begin with: stages share them."""
    return max(limits.transformation.nodes.min, limits.warehouse.nodes.min)

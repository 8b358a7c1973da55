"""From a bound workflow with limits to a finished live run: the cluster, the session, the record."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from engine.elastic.actuators import (
    ENABLED,
    Actuator,
    Allocated,
    Given,
    NotOurs,
    OwnWorkers,
    allocation_settings,
    check_master,
    least_workers,
)
from engine.elastic.live import LiveRun, live_limits, not_live
from engine.elastic.rates import data_rate
from engine.elastic.record import ElasticRecord
from engine.events import Remark, SparkReady
from engine.model.binding import Bound
from engine.partition.batches import refuse_blocking
from engine.spark.cluster import StandaloneCluster
from engine.spark.session import SparkSettings, close_session, open_session
from engine.spark.star_flow import StarFlow
from engine.store.trust import refuse_untrusted

_SMALL_BATCHES = {"spark.sql.shuffle.partitions": "4"}  # each task costs more than its rows


def launch_live(
    bound: Bound,
    record: ElasticRecord,
    *,
    driver_memory_mb: int | None = 1024,
    confs: Mapping[str, str] | None = None,
    prepare: Callable[[Callable[[str], None]], None] | None = None,
    trusted: bool = False,
) -> dict[str, Any]:
    """Run a workflow's limits live. Without a master a cluster of its own is started, Workers and all.

    `prepare` makes the rows that are replayed, where they are not there, and tells what it does. `trusted`: the file's
    own code may run.
    """
    refuse_untrusted(bound, trusted)
    refuse_blocking(bound, record.limits.live)
    master, given = record.master, dict(confs or {})
    check_master(record.file.path, master, given, os.environ)
    rate = data_rate(record.limits.rate, record.file.path.parent)
    limits = live_limits(record.limits)
    with record, contextlib.ExitStack() as cleanup:
        for warning in not_live(record.limits):
            record.warn(warning)
        if prepare is not None:
            prepare(lambda text: record.log.add(Remark(message=text)))
        started = time.monotonic()
        actuator: Actuator = NotOurs()
        if master is None:
            live = limits.live
            cluster = cleanup.enter_context(StandaloneCluster(least_workers(limits), live.worker_cores, live.worker_mb))
            actuator = OwnWorkers(cluster)
            extra = {**cluster.settings(driver_memory_mb).extra, **_SMALL_BATCHES, **given}
            settings = SparkSettings(cluster.url, driver_memory_mb, extra=extra)
        elif master.startswith("local"):
            settings = SparkSettings(master, driver_memory_mb if given else None, extra=given)
        else:
            extra = allocation_settings(limits) | _SMALL_BATCHES | given
            settings = SparkSettings(master, driver_memory_mb, extra=extra)
        spark = open_session(replace(settings, log=record.folder / "spark.log"))  # Workers that leave are no news
        cleanup.callback(close_session, spark)
        record.log.add(
            SparkReady(version=spark.version, master=settings.master, seconds=round(time.monotonic() - started, 3))
        )
        if master is not None and not master.startswith("local"):
            actuator = Given(spark)
        if settings.extra.get(ENABLED, "").lower() == "true":
            actuator = Allocated(spark)
            record.log.add(Remark(message="Spark's dynamic allocation adds and removes executors on this cluster"))
        flow = StarFlow(bound, spark, limits.live.source, limits.live.facts)
        cleanup.callback(flow.close)
        run = LiveRun(record, rate, spark, flow, actuator)
        record.summary |= run.run()
    return record.summary

"""Elasticity at internet scale: 10,000 nodes and a thousand sources through a day, and what a tighter limit costs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from engine.elastic.rates import data_rate
from engine.elastic.simulator import Simulated, simulate
from engine.experiments.bench import Contender, Options, Report
from engine.model.elastic import Elastic

ROUNDS = 1
POOL = 10_000
SOURCES = 1_000
LIMIT_S = 60.0  # for a simulated day
LOAD_LIMITS_S = (58.0, 50.0, 40.0, 30.0)  # of the cost curve
HIGH_ROWS_S = 540e6


def day(load_limit_s: float = 50.0, extraction_limit_s: float = 30.0, **more: Any) -> Elastic:
    """A day of diurnal load on nodes with a network of 10 Gbit/s; each stage begins with what the night needs."""
    least = HIGH_ROWS_S / 5 * 60
    needed = {
        "extraction": least / 520_000 / extraction_limit_s,
        "transformation": least * 131e-6 / 1500,
        "buffer": 100.0,
        "switch": least / 60 / 500_000,
        "warehouse": least / 360_000 / load_limit_s,
    }
    nodes = {stage: {"min": round(number * 1.3)} for stage, number in needed.items()}
    return Elastic.model_validate(
        {
            "pool": POOL,
            "limit_s": 120,
            "sample_s": 60,
            "settle_s": 60,
            "hold_s": 600,
            "step_share": 0.1,
            "sources": {"number": SOURCES, "skew": 0.5},
            "rate": {"kind": "diurnal", "low_rows_s": HIGH_ROWS_S / 5, "high_rows_s": HIGH_ROWS_S},
            "extraction": {
                "every_s": 60, "limit_s": extraction_limit_s, "margin_s": 1, "nodes": nodes["extraction"]
            },
            "transformation": {"queue_mb": 3000, "nodes": nodes["transformation"]},
            "buffer": {"memory_mb": 64_000, "disk_mb": 1_000_000, "nodes": nodes["buffer"]},
            "switch": {"limit_rows_s": 500_000, "margin_rows_s": 20_000, "nodes": nodes["switch"]},
            "warehouse": {
                "every_s": 60, "load_limit_s": load_limit_s, "batch_mb": 1000, "margin_s": 1,
                "nodes": nodes["warehouse"],
            },
            "capacity": {"keep_s": 3600, "rebalance_mb_s": 1000},
        }
        | more
    )  # fmt: skip


def benchmark(options: Options) -> Report:
    """A day of diurnal load on 10,000 nodes and 1,000 sources in under a minute, and the cost of tighter limits."""
    report = Report()
    curve: dict[str, Any] = {}
    for limit in LOAD_LIMITS_S:
        name = f"a day, loads within {limit:g} s"
        options.say(name)
        limits = day(limit)
        for _ in range(options.rounds):
            begun = time.perf_counter()
            result = simulate(limits, data_rate(limits.rate, Path()))
            report.contenders.setdefault(name, Contender()).seconds.append(time.perf_counter() - begun)
        curve[f"{limit:g} s"] = cost(limits, result, limit)
    report.facts["cost curve: the limit of a load, and a day's node hours"] = curve
    hours = [found["node hours"] for found in curve.values()]
    slowest = max(max(contender.seconds) for contender in report.contenders.values())
    usual = curve["50 s"]
    report.claim(
        f"a day on {POOL:,} nodes and {SOURCES:,} sources is simulated in under {LIMIT_S:g} s",
        slowest < LIMIT_S, f"{slowest:.1f} s at most, {usual['most nodes']:,} nodes at the peak",
    )  # fmt: skip
    report.claim(
        "a tighter limit costs more",
        hours == sorted(hours),
        ", ".join(f"{hour:,.0f}" for hour in hours) + " node hours",
    )
    report.claim(
        "fewer node hours than with the peak's nodes all day",
        usual["share of the peak"] < 1, f"{usual['share of the peak']:.0%} of them",
    )  # fmt: skip
    report.claim(
        "no row is lost: what was generated is loaded or on its way",
        usual["rows adrift"] < 1e-6, f"{usual['rows adrift']:.1e} of all rows unaccounted for",
    )  # fmt: skip
    return report


def cost(limits: Elastic, result: Simulated, limit_s: float) -> dict[str, Any]:
    """What a day cost, and how well the limit was kept."""
    hours = result.node_seconds / 3600
    late = sum(point.load_s > limit_s for point in result.points) / len(result.points)
    adrift = abs(result.generated_rows - result.loaded_rows - result.waiting_rows) / result.generated_rows
    return {
        "node hours": round(hours),
        "cost": round(hours * limits.capacity.node_hour_cost),
        "share of the peak": round(hours / (result.most_nodes * result.seconds / 3600), 3),
        "most nodes": result.most_nodes,
        "loads over the limit": f"{late:.1%}",
        "decisions": len(result.changes),
        "unreachable": sorted({change.stage.value for change in result.changes if change.kind == "unreachable"}),
        "rows adrift": adrift,
    }

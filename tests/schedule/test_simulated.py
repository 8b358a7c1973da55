"""The simulated backend: what its virtual clock shows, in cases that can be reckoned by hand."""

from __future__ import annotations

import pytest

from engine.schedule.mixed import scheduled
from engine.schedule.simulated import CORES, PACK_ROWS, QUEUE_PACKS, SLOT_MS, STALL_MS, Simulation, UnitCost
from tests.schedule.graphs import queues, simulate, units

LINE = units("s f w"), queues("s>f f>w")


def costs(rows: int, **more: UnitCost) -> dict[str, UnitCost]:
    return {"s": UnitCost(10, rows), "f": UnitCost(5, selectivity=0.5), "w": UnitCost(20, selectivity=0), **more}


def test_the_defaults_are_the_values_that_the_paper_tuned():
    assert (PACK_ROWS, QUEUE_PACKS, SLOT_MS, STALL_MS, CORES) == (400, 100, 70, 4, 2)


def test_a_line_takes_the_sum_of_its_rows_costs_and_of_its_wake_ups():
    result = simulate(*LINE, costs(40_000), "mc")
    # Read 40,000 rows of 10 µs, pass on 40,000 of 5 µs, write 20,000 of 20 µs; four turns, each 2 ms to wake up.
    assert result.activations == 4
    assert result.seconds == pytest.approx(0.4 + 0.2 + 0.4 + 4 * 0.002)
    assert result.rows_in == {"s": 0, "f": 40_000, "w": 20_000}
    assert result.delivered == {"s>f": 40_000, "f>w": 20_000}


def test_the_average_memory_of_a_line_by_hand():
    result = simulate(*LINE, costs(40_000), "mc")
    # 100 packs while they are passed on, then 50 while they are written.
    assert result.queue["avg_packs"] == pytest.approx((100 * 0.202 + 50 * 0.402) / result.seconds, abs=1e-3)
    assert result.queue["max_packs"] == 100


def test_round_robin_pays_for_the_threads_it_wakes_in_vain():
    line = units("s b f w"), queues("s>b b>f f>w")
    result = simulate(*line, costs(80_000, b=UnitCost(5, selectivity=0.1)), "rr")
    cheap = simulate(*line, costs(80_000, b=UnitCost(5, selectivity=0.1)), "mc")
    # f and w are called before b has anything for them: once while s and b have their second turns, once before b works.
    assert (result.idle_calls, cheap.idle_calls) == (4, 0)
    assert result.seconds == pytest.approx(cheap.seconds + 4 * 0.002)


def test_round_robin_passes_over_those_that_are_finished():
    line = units("s t w"), queues("s>w t>w")
    few = simulate(*line, {"s": UnitCost(1, 10), "t": UnitCost(1, 100_000), "w": UnitCost(1)}, "rr")
    # Turns s t w, then t w until t ends: s has finished, and nobody calls it; the writer is called in vain never.
    assert few.idle_calls == 0


def test_a_blocking_unit_works_once_all_is_there():
    line = units("s b w"), queues("s>b b>w")
    result = simulate(*line, {"s": UnitCost(10, 4000), "b": UnitCost(5, whole_us=15), "w": UnitCost(0)}, "mc")
    assert result.seconds == pytest.approx(0.04 + 4000 * 20e-6 + 5 * 0.002)


def test_fractions_of_rows_are_carried_on_from_turn_to_turn():
    for pack_rows in (1, 3, 400):
        result = simulate(*LINE, costs(999, f=UnitCost(1, selectivity=1 / 3)), "mm", pack_rows=pack_rows)
        assert result.delivered["f>w"] == 333


def test_ways_of_a_router_have_their_own_packs_and_shares():
    graph, policies = scheduled(units("s f w v"), queues("s>f f>w f>v"), "rr")
    routed = UnitCost(1, shares={"f>w": 0.25, "f>v": 0.5})
    made = {"s": UnitCost(1, 4000), "f": routed, "w": UnitCost(1), "v": UnitCost(1)}
    result = Simulation(graph, policies, made, ports={"f": [["f>w"], ["f>v"]]}).run()
    assert result.delivered == {"s>f": 4000, "f>w": 1000, "f>v": 2000}


def test_snapshots_come_at_even_times_of_the_virtual_clock():
    seen = []
    simulate(
        *LINE,
        costs(40_000),
        "mc",
        on_snapshot=lambda now, monitor: seen.append((round(now, 3), monitor.statistics.packs)),
    )
    assert [now for now, _ in seen] == [round(0.1 * number, 3) for number in range(11)]
    assert max(packs for _, packs in seen) == 100


def test_time_is_linear_in_the_data():
    for policy in ("rr", "mc", "mm"):
        one, ten = (simulate(*LINE, costs(rows), policy).seconds for rows in (100_000, 1_000_000))
        assert ten == pytest.approx(10 * one, rel=0.02)

"""The time of a live warehouse never goes backwards."""

from __future__ import annotations

from engine.refresh.live.clock import Clock


def test_a_clock_that_is_put_back_is_passed_over_and_told():
    wall, steady = [1000.0], [5.0]
    clock = Clock(lambda: wall[0], lambda: steady[0])
    assert clock() == 1000.0
    steady[0], wall[0] = 6.0, 1001.0
    assert clock() == 1001.0
    steady[0], wall[0] = 7.0, 400.0  # put back by ten minutes
    assert clock() == 1002.0
    assert clock.backwards_s == 602.0
    steady[0], wall[0] = 8.0, 401.0
    assert clock() == 1003.0
    steady[0], wall[0] = 9.0, 2000.0  # and forward again
    assert clock() == 2000.0

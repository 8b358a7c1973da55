"""Distribution policies between stages: every parcel arrives, where its policy says."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.elastic.distribution import Parcel, distribution, names
from engine.elastic.distribution.hash import hashed

AMOUNTS = st.lists(st.tuples(st.integers(1, 1000), st.integers(0, 10_000)), max_size=60)


def parcels(drawn):
    return [Parcel(amount, key) for amount, key in drawn]


def test_the_policies_are_found_by_their_files():
    assert names() == ["copy", "hash", "on_demand", "range", "round_robin"]


@pytest.mark.parametrize("name", names())
@settings(max_examples=30)
@given(drawn=AMOUNTS, nodes=st.integers(1, 9))
def test_nothing_is_lost_and_only_copies_are_more(name, drawn, nodes):
    dealt = distribution(name).deal(parcels(drawn), [0.0] * nodes)
    total = sum(amount for amount, _ in drawn)
    assert sum(dealt) == total * (nodes if name == "copy" else 1)
    if name == "copy":
        assert dealt == [total] * nodes


@pytest.mark.parametrize("name", ["on_demand", "hash"])
@settings(max_examples=30)
@given(drawn=AMOUNTS, queues=st.lists(st.integers(0, 500), min_size=1, max_size=9))
def test_a_deal_is_one_choice_after_the_other(name, drawn, queues):
    policy = distribution(name)
    waiting = list(queues)
    for parcel in parcels(drawn):
        (node,) = policy.choose(parcel, waiting)
        waiting[node] += parcel.amount
    assert [q + g for q, g in zip(queues, distribution(name).deal(parcels(drawn), queues), strict=True)] == waiting


def test_round_robin_goes_round_and_on_demand_takes_the_shortest_queue():
    turns = distribution("round_robin")
    assert [turns.choose(Parcel(1), [9, 0, 0])[0] for _ in range(5)] == [0, 1, 2, 0, 1]
    assert distribution("on_demand").choose(Parcel(1), [9, 4, 5]) == (1,)


def test_round_robin_goes_on_when_a_node_has_left():
    turns = distribution("round_robin")
    assert [turns.choose(Parcel(1), [0] * n)[0] for n in (3, 3, 3, 2, 2)] == [0, 1, 2, 1, 0]


@given(st.integers(0, 1 << 62), st.integers(1, 50))
def test_a_key_has_one_node(key, nodes):
    policy = distribution("hash")
    assert policy.choose(Parcel(1, key), [0] * nodes) == policy.choose(Parcel(7, key), [5] * nodes)
    assert 0 <= hashed(key) < 1 << 64


def test_hash_is_even_over_keys_that_follow_each_other():
    dealt = distribution("hash").deal([Parcel(1, key) for key in range(10_000)], [0] * 8)
    assert min(dealt) > 0.9 * 1250
    assert max(dealt) < 1.1 * 1250


def test_range_keeps_neighbours_together():
    policy = distribution("range")
    assert policy.deal([Parcel(1, key) for key in range(12)], [0] * 3) == [4, 4, 4]
    assert [policy.choose(Parcel(1, key), [0] * 3)[0] for key in (0, 3, 4, 8, 11)] == [0, 0, 1, 2, 2]

"""The policies as the scheduling paper lists them (section 4), in small worked cases."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import BadInput
from engine.schedule.policies.mc import MinimumCost
from engine.schedule.policies.mm import MinimumMemory
from engine.schedule.policies.rr import RoundRobin
from engine.schedule.policy import Policy, policies, policy_named


@dataclass
class Waiting:
    """A candidate as a policy sees it."""

    number: int
    queue_rows: int = 0
    rows_in: int = 0
    rows_out: int = 0
    seconds: float = 0.0
    name: str = ""

    @property
    def id(self) -> str:
        return self.name or f"u{self.number}"


def picked(policy: Policy, *candidates: Waiting, last: int = -1) -> int:
    return policy.pick(candidates, last).number


def test_round_robin_goes_by_operator_id_and_begins_again_behind_the_last():
    three = [Waiting(0), Waiting(2), Waiting(5)]
    turns, last = [], -1
    for _ in range(7):
        last = picked(RoundRobin(), *three, last=last)
        turns.append(last)
    assert turns == [0, 2, 5, 0, 2, 5, 0]


def test_round_robin_does_not_look_at_the_queues():
    assert picked(RoundRobin(), Waiting(0, 1), Waiting(1, 1_000_000), last=1) == 0


def test_round_robin_calls_the_next_one_although_the_last_one_is_no_candidate_any_more():
    assert picked(RoundRobin(), Waiting(1), Waiting(4), last=3) == 4


def test_minimum_cost_picks_the_largest_input_queue():
    assert picked(MinimumCost(), Waiting(0, 10), Waiting(1, 30), Waiting(2, 20)) == 1


def test_minimum_cost_gives_a_tie_to_the_first_for_the_listing_asks_for_more_not_for_as_much():
    assert picked(MinimumCost(), Waiting(3, 30), Waiting(4, 30)) == 3


def test_minimum_cost_reads_a_source_when_no_queue_holds_anything():
    assert picked(MinimumCost(), Waiting(0), Waiting(1)) == 0
    assert picked(MinimumCost(), Waiting(0), Waiting(1, 1)) == 1


def test_minimum_memory_picks_the_largest_memory_benefit():
    # MemB = (In - Out) / ExecTime * Queue: 90 / 9 * 20 = 200, and 50 / 10 * 50 = 250.
    selective = Waiting(0, queue_rows=20, rows_in=100, rows_out=10, seconds=9)
    crowded = Waiting(1, queue_rows=50, rows_in=100, rows_out=50, seconds=10)
    assert MinimumMemory().score(selective, -1) == 200
    assert MinimumMemory().score(crowded, -1) == 250
    assert picked(MinimumMemory(), selective, crowded) == 1


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.integers(0, 3)), min_size=1))
def test_the_highest_score_is_picked_and_the_log_has_the_score_of_each(given):
    waiting = [Waiting(number, *figures) for number, figures in enumerate(given)]
    for policy in (RoundRobin(), MinimumCost(), MinimumMemory()):
        scores = policy.scores(waiting, 3)
        own = [policy.score(one, 3) for one in waiting]
        falls_back = isinstance(policy, MinimumMemory) and max(own) <= 0
        assert scores == ([one.queue_rows for one in waiting] if falls_back else own)
        assert scores[policy.pick(waiting, 3).number] == max(scores)


def test_a_policy_made_from_another_with_a_score_of_its_own_has_it_in_the_log():
    class Reversed(MinimumMemory):
        def score(self, candidate, last):
            return -super().score(candidate, last)

    one = Waiting(0, queue_rows=20, rows_in=100, rows_out=10, seconds=9)
    assert Reversed().scores([one], -1) == [-200.0]


def test_minimum_memory_prefers_a_quick_writer_to_a_slow_one():
    slow = Waiting(0, queue_rows=100, rows_in=100, rows_out=0, seconds=10)
    quick = Waiting(1, queue_rows=100, rows_in=100, rows_out=0, seconds=5)
    assert picked(MinimumMemory(), slow, quick) == 1


def test_minimum_memory_gives_a_tie_to_the_first():
    alike = {"queue_rows": 10, "rows_in": 10, "rows_out": 5, "seconds": 1.0}
    assert picked(MinimumMemory(), Waiting(7, **alike), Waiting(8, **alike)) == 7


def test_minimum_memory_falls_back_to_minimum_cost_before_anything_was_measured():
    assert picked(MinimumMemory(), Waiting(0), Waiting(1, 5), Waiting(2, 9)) == 2


def test_minimum_memory_falls_back_to_minimum_cost_where_no_one_frees_memory():
    keeps = Waiting(0, queue_rows=10, rows_in=50, rows_out=50, seconds=1)
    makes_more = Waiting(1, queue_rows=30, rows_in=50, rows_out=150, seconds=1)
    assert picked(MinimumMemory(), keeps, makes_more) == 1, "MMem is not above 0, so the largest queue it is"


def test_minimum_memory_takes_the_least_benefit_above_nothing():
    frees_little = Waiting(0, queue_rows=1, rows_in=10, rows_out=9, seconds=100)
    crowded = Waiting(1, queue_rows=1000, rows_in=10, rows_out=10, seconds=1)
    assert picked(MinimumMemory(), crowded, frees_little) == 0


def test_only_minimum_memory_has_time_slots():
    assert {name for name in ("rr", "mc", "mm") if policy_named(name).timed} == {"mm"}


CANDIDATES = st.lists(
    st.builds(
        Waiting,
        number=st.integers(0, 50),
        queue_rows=st.integers(0, 500),
        rows_in=st.integers(0, 1000),
        rows_out=st.integers(0, 1000),
        seconds=st.sampled_from((0.0, 0.5, 1.0, 3.0)),
    ),
    min_size=1,
    max_size=8,
    unique_by=lambda candidate: candidate.number,
).map(lambda found: sorted(found, key=lambda candidate: candidate.number))


@given(CANDIDATES, st.integers(-1, 50))
def test_the_decision_log_scores_the_picked_one_highest(candidates, last):
    for policy in (RoundRobin(), MinimumCost()):
        scores = [policy.score(candidate, last) for candidate in candidates]
        assert policy.score(policy.pick(candidates, last), last) == max(scores)
    policy = MinimumMemory()
    best = max(policy.score(candidate, last) for candidate in candidates)
    if best > 0:
        assert policy.score(policy.pick(candidates, last), last) == best
    else:
        assert policy.pick(candidates, last) is MinimumCost().pick(candidates, last)


def test_the_three_policies_of_the_paper_are_found_by_their_names():
    assert {"rr", "mc", "mm"} <= set(policies())
    assert policy_named("mc") is MinimumCost


def test_an_unknown_policy_is_told_with_its_near_match():
    with pytest.raises(BadInput, match=r"no such policy.*did you mean `mixed`"):
        policy_named("mixd")


def test_a_plugin_cannot_take_the_name_of_another_policy(monkeypatch):
    class Impostor(MinimumCost):
        name = "rr"

    try:
        with pytest.raises(BadInput, match="the policy `rr` is already defined"):
            policies()
    finally:
        del Impostor
        import gc

        gc.collect()
    assert policy_named("rr") is RoundRobin

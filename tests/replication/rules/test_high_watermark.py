"""How far a log is committed."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.ids import BrokerEpoch, BrokerId, Offset
from replication.rules.high_watermark import follower_high_watermark, leader_high_watermark
from replication.rules.isr import maximal_isr, propose_expand, propose_shrink
from replication.rules.min_isr import effective_min_isr, is_under_min_isr
from replication.rules.partition import LeaderState
from replication.rules.switches import CURRENT, rules_of
from replication.rules.truncation import truncated
from tests.replication.builders import LAG_MS_MAX, NOW, follower, ids, leader, log, moment, settings

BROKER_EPOCH = BrokerEpoch(0)


def committed(state: LeaderState, end: int = 9, at: int = 0, min_isr: int = 1) -> int:
    return leader_high_watermark(state, log(end, committed=at), moment(), settings(min_isr=min_isr))


def test_the_slowest_member_decides() -> None:
    assert committed(leader(follower(2, 7), follower(3, 8))) == 7


def test_a_leader_alone_commits_what_it_has() -> None:
    assert committed(leader(follower(2, 7), follower(3, 8), isr=(1,))) == 9


def test_it_never_falls() -> None:
    assert committed(leader(follower(2, 3), follower(3, 4)), at=5) == 5


def test_a_member_that_has_not_fetched_yet_holds_it() -> None:
    assert committed(leader(follower(2, -1, epoch=-1), follower(3, 9)), at=2) == 2


@pytest.mark.parametrize(("caught_up_at", "expected"), [(NOW - LAG_MS_MAX, 6), (NOW - LAG_MS_MAX - 1, 9)])
def test_who_is_about_to_join_is_waited_for(caught_up_at: int, expected: int) -> None:
    state = leader(follower(2, 9), follower(3, 6, caught_up_at=caught_up_at), isr=(1, 2))
    assert committed(state) == expected


def test_who_is_being_added_counts_already() -> None:
    state = leader(follower(2, 9), follower(3, 6), isr=(1, 2))
    assert committed(propose_expand(state, BrokerId(3), BROKER_EPOCH)) == 6


def test_who_is_being_removed_counts_still() -> None:
    state = leader(follower(2, 9), follower(3, 6))
    assert committed(propose_shrink(state, ids(3), BROKER_EPOCH)) == 6


def test_before_2_7_the_leader_went_by_its_own_wish() -> None:
    rules = rules_of("2.6")
    state = leader(follower(2, 9), follower(3, 6))
    assert maximal_isr(propose_shrink(state, ids(3), BROKER_EPOCH), rules) == (1, 2)
    small = attrs.evolve(state, isr=ids(1, 2))
    assert maximal_isr(propose_expand(small, BrokerId(3), BROKER_EPOCH), rules) == (1, 2)


def test_under_min_isr_it_stands_still() -> None:
    state = leader(follower(2, 9), follower(3, 9), isr=(1,))
    assert committed(state, at=4, min_isr=2) == 4
    assert leader_high_watermark(state, log(9, committed=4), moment(), settings(rules_of("3.6"), min_isr=2)) == 9


@pytest.mark.parametrize(("min_isr", "replicas", "needed"), [(1, 3, 1), (2, 3, 2), (3, 2, 2), (3, 3, 3)])
def test_how_many_are_needed(min_isr: int, replicas: int, needed: int) -> None:
    assert effective_min_isr(min_isr, replicas, CURRENT) == needed
    assert effective_min_isr(min_isr, replicas, rules_of("3.6")) == min_isr


def test_under_min_isr_counts_what_is_confirmed() -> None:
    state = leader(isr=(1,))
    assert is_under_min_isr(propose_expand(state, BrokerId(2), BROKER_EPOCH), settings(min_isr=2))


@pytest.mark.parametrize(("said", "expected"), [(0, 2), (3, 3), (5, 5), (9, 5)])
def test_a_followers_lies_within_its_log(said: int, expected: int) -> None:
    assert follower_high_watermark(log(5, start=2, committed=4), Offset(said)) == expected


def test_a_cut_takes_it_along() -> None:
    assert truncated(log(6, committed=5), Offset(3), CURRENT) == log(3, committed=3)
    assert truncated(log(6, committed=2), Offset(3), CURRENT) == log(3, committed=2)


@given(st.lists(st.integers(0, 9), min_size=2, max_size=2), st.sets(st.sampled_from([2, 3])), st.integers(0, 9))
def test_it_is_the_least_end_of_the_isr_or_what_it_was(ends: list[int], members: set[int], at: int) -> None:
    state = leader(follower(2, ends[0]), follower(3, ends[1]), isr=(1, *sorted(members)))
    least = min([9, *(ends[member - 2] for member in members)])
    # Outside the ISR only an end equal to the leader's counts as caught up here, and that holds nothing back.
    assert committed(state, at=at) == max(at, least)

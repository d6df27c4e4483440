"""Who is in sync."""

from __future__ import annotations

import attrs
import pytest

from broker.ids import BrokerEpoch, BrokerId, LeaderEpoch, Offset
from broker.units import TimeMs
from replication.rules.fetch import recorded
from replication.rules.isr import (
    is_caught_up,
    is_eligible,
    lagging,
    may_join,
    propose_expand,
    propose_shrink,
)
from replication.rules.partition import UNKNOWN_BROKER_EPOCH, BrokerStatus, Follower, IsrMember
from replication.rules.switches import CURRENT, Rules, rules_of
from tests.replication.builders import (
    LAG_MS_MAX,
    fetch,
    follower,
    ids,
    leader,
    log,
    moment,
    on,
    request,
    settings,
    statuses,
)

BROKER_EPOCH = BrokerEpoch(3)


def fetched(known: Follower, offset: int, leader_end: int, now: int) -> Follower:
    return recorded(known, fetch(2, offset, broker_epoch=3), LeaderEpoch(5), Offset(leader_end), TimeMs(now))


def test_who_asks_for_the_end_is_caught_up_now() -> None:
    assert fetched(follower(2), 9, 9, 500).caught_up_at_ms == 500


def test_who_asks_for_the_former_end_was_caught_up_then() -> None:
    before = follower(2, 4, caught_up_at=100, fetched_at=300, leader_end=6)
    assert fetched(before, 6, 9, 500).caught_up_at_ms == 300


def test_who_asks_for_less_is_not_caught_up_anew() -> None:
    before = follower(2, 4, caught_up_at=100, fetched_at=300, leader_end=6)
    assert fetched(before, 5, 9, 500).caught_up_at_ms == 100


def test_a_fetch_leaves_all_that_the_leader_knows() -> None:
    after = fetched(follower(2, broker_epoch=None, epoch=-1), 7, 9, 500)
    assert after == follower(2, 7, epoch=5, broker_epoch=3, fetched_at=500, caught_up_at=0, leader_end=9)


def test_a_follower_one_batch_behind_under_load_stays_in_the_isr() -> None:
    """Each fetch asks for what was the end at the fetch before, for an hour."""
    known, end = follower(2), 0
    for now in range(1_000, 3_600_000, 1_000):
        known = fetched(known, end, end + 10, now)
        end += 10
        assert is_caught_up(known, Offset(end), TimeMs(now), settings())


@pytest.mark.parametrize(
    ("end", "lag", "caught_up"), [(9, 10**9, True), (8, LAG_MS_MAX, True), (8, LAG_MS_MAX + 1, False)]
)
def test_caught_up_is_by_end_or_by_time(end: int, lag: int, caught_up: bool) -> None:
    known = follower(2, end, caught_up_at=500)
    assert is_caught_up(known, Offset(9), TimeMs(500 + lag), settings()) is caught_up


def test_before_2_1_an_idle_follower_was_dropped_for_its_silence() -> None:
    known = follower(2, 9, caught_up_at=0)
    assert not is_caught_up(known, Offset(9), TimeMs(LAG_MS_MAX + 1), settings(rules_of("2.0")))


@pytest.mark.parametrize(
    ("stored", "status", "eligible"),
    [
        (3, BrokerStatus(epoch=BROKER_EPOCH), True),
        (UNKNOWN_BROKER_EPOCH, BrokerStatus(epoch=BROKER_EPOCH), True),
        (2, BrokerStatus(epoch=BROKER_EPOCH), False),
        (4, BrokerStatus(epoch=BROKER_EPOCH), False),
        (None, BrokerStatus(epoch=BROKER_EPOCH), False),
        (3, None, False),
        (3, BrokerStatus(epoch=BROKER_EPOCH, fenced=True), False),
        (3, BrokerStatus(epoch=BROKER_EPOCH, shutting_down=True), False),
    ],
)
def test_who_may_be_in_the_isr(stored: int | None, status: BrokerStatus | None, eligible: bool) -> None:
    assert is_eligible(follower(2, broker_epoch=stored), status, CURRENT) is eligible


def test_before_3_3_everybody_might() -> None:
    assert is_eligible(follower(2, broker_epoch=None), None, rules_of("3.2"))


def test_laggards_leave_in_the_order_of_the_isr() -> None:
    state = leader(follower(2, 8), follower(3, 7), isr=(3, 1, 2))
    assert lagging(state, Offset(9), TimeMs(LAG_MS_MAX + 1), settings()) == (3, 2)
    assert lagging(state, Offset(9), TimeMs(LAG_MS_MAX), settings()) == ()
    assert lagging(state, Offset(8), TimeMs(LAG_MS_MAX + 1), settings()) == (3,)


def test_nobody_leaves_while_a_change_is_under_way() -> None:
    state = attrs.evolve(leader(follower(2, 8)), pending=request(1, 2))
    assert lagging(state, Offset(9), TimeMs(10**9), settings()) == ()


def test_a_member_that_is_no_replica_any_more_leaves() -> None:
    assert lagging(leader(follower(2, 9), isr=(1, 2, 4)), Offset(9), TimeMs(0), settings()) == (4,)


@pytest.mark.parametrize(
    ("end", "committed", "epoch_start", "joins"),
    [(6, 6, 4, True), (5, 6, 4, False), (6, 4, 6, True), (5, 4, 6, False)],
)
def test_joining_takes_the_high_watermark_and_the_start_of_the_epoch(
    end: int, committed: int, epoch_start: int, joins: bool
) -> None:
    state = leader(follower(2, end), isr=(1,), epoch_start=epoch_start)
    assert may_join(state, log(9, committed=committed), follower(2, end), moment(), settings()) is joins


def test_lag_does_not_keep_anybody_out() -> None:
    state = leader(isr=(1,))
    assert may_join(state, log(9, committed=4), follower(2, 4, caught_up_at=0), moment(now=10**9), settings())


def test_members_do_not_join_again_and_nobody_joins_during_a_change() -> None:
    assert not may_join(leader(), log(4), follower(2, 4), moment(), settings())
    busy = attrs.evolve(leader(isr=(1,)), pending=request(1, 3))
    assert not may_join(busy, log(4), follower(2, 4), moment(), settings())


def test_a_fenced_follower_does_not_join() -> None:
    assert not may_join(leader(isr=(1,)), log(4), follower(2, 4), moment(statuses(fenced=(2,))), settings())


def test_proposals_carry_the_epochs_that_the_leader_knows() -> None:
    state = leader(follower(2, 9, broker_epoch=4), follower(3, broker_epoch=None), isr=(1, 3))
    grown = propose_expand(state, BrokerId(2), BROKER_EPOCH).pending
    assert grown is not None
    assert grown.isr == (
        IsrMember(BrokerId(1), BROKER_EPOCH),
        IsrMember(BrokerId(3), UNKNOWN_BROKER_EPOCH),
        IsrMember(BrokerId(2), BrokerEpoch(4)),
    )
    assert (grown.leader, grown.leader_epoch, grown.partition_epoch) == (1, 5, 7)
    shrunk = propose_shrink(state, ids(3), BROKER_EPOCH).pending
    assert shrunk is not None
    assert shrunk.members == (1,)


@pytest.mark.parametrize("isr", [(1,), (1, 3)])
def test_only_under_min_isr_a_slow_follower_has_to_catch_up_before_it_joins(isr: tuple[int, ...]) -> None:
    rules = on(CURRENT, isr_join_caught_up_under_min_isr=True)
    joins = may_join(leader(isr=isr), log(9, committed=4), follower(2, 4), moment(), settings(rules, min_isr=2))
    assert joins == (len(isr) == 2)


@pytest.mark.parametrize("rules", [CURRENT, on(CURRENT, isr_join_eligibility=False)])
def test_who_is_not_registered_is_not_eligible_by_kip_903_alone_too(rules: Rules) -> None:
    """Its broker epoch could be compared with none."""
    assert not is_eligible(follower(2, broker_epoch=3), None, rules)

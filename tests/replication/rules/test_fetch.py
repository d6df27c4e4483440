"""A leader's answers to fetches, and what it learns from them."""

from __future__ import annotations

import attrs
import pytest

from broker.error_codes import ErrorCode
from broker.ids import BrokerId, LeaderEpoch, Offset
from broker.units import TimeMs
from replication.rules.fetch import (
    FetchAnswer,
    FetchRequest,
    FollowerFetchHandler,
    after_answer,
    answer_fetch,
    decide_fetch,
)
from replication.rules.leadership import unassigned
from replication.rules.partition import EpochEnd
from replication.rules.switches import CURRENT, rules_of
from tests.replication.builders import NOW, fetch, follower, leader, log, moment, on, request, settings, statuses

LOG = log(9, (3, 2), (5, 6), start=2, committed=4)


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (fetch(2, 9, epoch=4), ErrorCode.FENCED_LEADER_EPOCH),
        (fetch(2, 9, epoch=6), ErrorCode.UNKNOWN_LEADER_EPOCH),
        (fetch(4, 9), ErrorCode.UNKNOWN_LEADER_EPOCH),
        (fetch(4, 9, epoch=-1), ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (fetch(2, 9, last=6), ErrorCode.OFFSET_OUT_OF_RANGE),
        (fetch(2, 1, last=4), ErrorCode.OFFSET_OUT_OF_RANGE),
        (fetch(2, 1), ErrorCode.OFFSET_OUT_OF_RANGE),
        (fetch(2, 10), ErrorCode.OFFSET_OUT_OF_RANGE),
        (fetch(2, 9, last=5), ErrorCode.NONE),
        (fetch(2, 9, epoch=-1), ErrorCode.NONE),
    ],
)
def test_the_errors_of_a_fetch(asked: FetchRequest, error: ErrorCode) -> None:
    assert answer_fetch(leader(), LOG, asked, CURRENT).error is error


def test_before_2_1_a_fetch_of_who_is_no_replica_tells_nothing_of_its_epoch() -> None:
    """KIP-320: until then a fetch had no epoch by which the leader could be the one that is behind."""
    assert answer_fetch(leader(), LOG, fetch(4, 9), rules_of("2.0")).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert answer_fetch(leader(), LOG, fetch(4, 9), rules_of("2.1")).error is ErrorCode.UNKNOWN_LEADER_EPOCH


def test_the_epoch_is_looked_at_before_leadership() -> None:
    role = attrs.evolve(unassigned(BrokerId(1)), leader_epoch=LeaderEpoch(5))
    assert answer_fetch(role, LOG, fetch(2, 9, epoch=4), CURRENT).error is ErrorCode.FENCED_LEADER_EPOCH
    assert answer_fetch(role, LOG, fetch(2, 9), CURRENT).error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_logs_that_part_are_answered_without_records() -> None:
    answer = answer_fetch(leader(), LOG, fetch(2, 8, last=4), CURRENT)
    assert answer == FetchAnswer(
        diverging=EpochEnd(LeaderEpoch(3), Offset(6)),
        high_watermark=Offset(4),
        start_offset=Offset(2),
        end_offset=Offset(9),
    )


def test_the_same_epoch_that_ends_earlier_parts_too() -> None:
    assert answer_fetch(leader(), LOG, fetch(2, 7, last=3), CURRENT).diverging == EpochEnd(LeaderEpoch(3), Offset(6))


def test_before_truncation_on_fetch_the_last_epoch_is_not_looked_at() -> None:
    assert answer_fetch(leader(), LOG, fetch(2, 8, last=4), rules_of("2.7")).diverging is None


def test_a_refused_fetch_changes_nothing() -> None:
    served = FollowerFetchHandler(settings()).handle(leader(), LOG, fetch(2, 9, epoch=4), moment())
    assert (served.leader, served.high_watermark) == (leader(), 4)


def test_a_fetch_is_recorded_and_raises_the_high_watermark() -> None:
    state = leader(follower(2, 6), follower(3, 8))
    served = FollowerFetchHandler(settings()).handle(state, LOG, fetch(2, 7, last=5, broker_epoch=0), moment())
    assert served.leader.follower(BrokerId(2)) == follower(2, 7, fetched_at=NOW, leader_end=9)
    assert served.high_watermark == 7
    assert served.answer.high_watermark == 4


def test_a_fetch_at_the_same_place_leaves_the_high_watermark() -> None:
    state = leader(follower(2, 7), follower(3, 8))
    assert (
        FollowerFetchHandler(settings())
        .handle(state, LOG, fetch(2, 7, last=5, broker_epoch=0), moment())
        .high_watermark
        == 4
    )


def test_a_fetch_that_reaches_the_high_watermark_asks_for_the_isr() -> None:
    state = leader(isr=(1, 3))
    served = FollowerFetchHandler(settings()).handle(state, LOG, fetch(2, 7, last=5, broker_epoch=0), moment())
    pending = served.leader.pending
    assert pending is not None
    assert pending.members == (1, 3, 2)


def test_a_fetch_of_a_former_incarnation_is_refused() -> None:
    reborn = moment(statuses(broker_epochs={2: 4}))
    served = FollowerFetchHandler(settings()).handle(leader(), LOG, fetch(2, 7, last=5, broker_epoch=3), reborn)
    assert served.answer.error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert served.leader == leader()


def test_a_fetch_of_a_former_incarnation_is_served_while_the_new_one_is_fenced() -> None:
    reborn = moment(statuses(broker_epochs={2: 4}, fenced=(2,)))
    served = FollowerFetchHandler(settings()).handle(leader(), LOG, fetch(2, 7, last=5, broker_epoch=3), reborn)
    assert served.answer.error is ErrorCode.NONE


@pytest.mark.parametrize("broker_epoch", [4, 5, -1])
def test_a_fetch_of_this_incarnation_or_none_is_served(broker_epoch: int) -> None:
    reborn = moment(statuses(broker_epochs={2: 4}))
    served = FollowerFetchHandler(settings()).handle(
        leader(), LOG, fetch(2, 7, last=5, broker_epoch=broker_epoch), reborn
    )
    assert served.answer.error is ErrorCode.NONE


def test_before_2_8_a_diverging_end_was_never_seen_and_until_3_0_it_was_counted() -> None:
    served = FollowerFetchHandler(settings(rules_of("2.8"))).handle(
        leader(), LOG, fetch(2, 8, last=4, broker_epoch=0), moment()
    )
    known = served.leader.follower(BrokerId(2))
    assert known is not None
    assert known.end_offset == 8


def test_a_fetch_that_is_answered_with_a_diverging_end_says_nothing_of_the_follower() -> None:
    served = FollowerFetchHandler(settings()).handle(leader(), LOG, fetch(2, 8, last=4, broker_epoch=0), moment())
    assert served.answer.diverging is not None
    assert served.leader == leader()


def test_a_follower_takes_the_high_watermark_with_the_records() -> None:
    answer = FetchAnswer(high_watermark=Offset(7), start_offset=Offset(0), end_offset=Offset(9))
    assert after_answer(log(6, (5, 0), committed=3), answer, CURRENT).high_watermark == 6


def test_a_follower_takes_the_log_start_of_its_leader() -> None:
    answer = FetchAnswer(high_watermark=Offset(7), start_offset=Offset(5), end_offset=Offset(9))
    after = after_answer(log(6, (3, 0), (5, 4), committed=3), answer, CURRENT)
    assert after == log(6, (5, 5), start=5, committed=6)


def test_an_answer_that_says_nothing_new_leaves_the_log_the_same_value() -> None:
    own = log(6, (5, 0), committed=6)
    answer = FetchAnswer(high_watermark=Offset(6), start_offset=Offset(0), end_offset=Offset(6))
    assert after_answer(own, answer, CURRENT) is own


def test_a_follower_may_fall_back_after_an_election() -> None:
    answer = FetchAnswer(high_watermark=Offset(2), start_offset=Offset(0), end_offset=Offset(9))
    assert after_answer(log(6, (5, 0), committed=5), answer, CURRENT).high_watermark == 2


def test_until_3_5_uncommitted_records_were_shown_for_a_moment() -> None:
    """The ex-leader has an uncommitted record at 3; the new leader has committed 5 others."""
    diverging = EpochEnd(LeaderEpoch(1), Offset(3))
    answer = FetchAnswer(diverging=diverging, high_watermark=Offset(5), start_offset=Offset(0), end_offset=Offset(5))
    own = log(4, (1, 0), committed=2)
    assert after_answer(own, answer, CURRENT) == log(3, (1, 0), committed=2)
    assert after_answer(own, answer, on(CURRENT, truncate_before_high_watermark=False)).high_watermark == 3


def test_no_second_request_while_one_is_under_way() -> None:
    state = attrs.evolve(leader(isr=(1,)), pending=request(1, 3))
    served = FollowerFetchHandler(settings()).handle(state, LOG, fetch(2, 7, last=5, broker_epoch=0), moment())
    assert served.leader.pending == state.pending


def test_a_handler_with_cached_decisions_answers_as_a_new_one_does() -> None:
    state, asked, brokers = leader(follower(2, 7), follower(3, 8)), fetch(2, 7, last=5, broker_epoch=3), moment()
    handler = FollowerFetchHandler(settings())
    raised = attrs.evolve(LOG, high_watermark=Offset(7))
    later = attrs.evolve(brokers, brokers=statuses(broker_epochs={2: 4}))
    for how in (
        (state, LOG, asked, brokers),
        (state, raised, asked, brokers),
        (state, raised, asked, later),
        (state, raised, asked, brokers),
        (attrs.evolve(state, leader_epoch=LeaderEpoch(6)), raised, asked, brokers),
        (state, raised, asked, brokers),
        (state, raised, fetch(2, 12, last=5, broker_epoch=3), brokers),
        (leader(follower(3, 8)), raised, asked, brokers),
        (state, raised, asked, brokers),  # A reassignment has added the replica, in the same leader epoch (KIP-455).
        (state, LOG, asked, brokers),
    ):
        assert handler.handle(*how) == FollowerFetchHandler(settings()).handle(*how)


def test_the_fetch_of_an_idle_follower_is_decided_once() -> None:
    """The handler keeps the decision while request, log, leader epoch and brokers are the same values."""
    handler, state, asked, brokers = FollowerFetchHandler(settings()), leader(), fetch(2, 9, last=5), moment()
    first = handler.handle(state, LOG, asked, brokers)
    later = attrs.evolve(brokers, now_ms=TimeMs(NOW + 1))
    assert handler.handle(first.leader, LOG, asked, later).answer is first.answer
    assert handler.handle(first.leader, LOG, attrs.evolve(asked), later).answer is not first.answer


@pytest.mark.parametrize(("checks", "error"), [(True, ErrorCode.NOT_LEADER_OR_FOLLOWER), (False, ErrorCode.NONE)])
def test_since_kip_903_a_fetch_of_a_former_incarnation_is_not_recorded(checks: bool, error: ErrorCode) -> None:
    brokers = attrs.evolve(moment(), brokers=statuses(broker_epochs={2: 4}))
    rules = on(CURRENT, isr_join_broker_epoch=checks)
    decision = decide_fetch(leader(), LOG, fetch(2, 9, last=5, broker_epoch=3), brokers, rules)
    assert (decision.answer.error, decision.is_recorded) == (error, not checks)

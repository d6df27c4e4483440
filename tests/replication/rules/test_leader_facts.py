"""The answers of a leader against facts kept in lists: fetches, readers, ISR proposals, high watermark and writes.

Source: Kafka's Partition (isReplicaIsrEligible, maybeIncrementLeaderHW, getOutOfSyncReplicas), DelayedProduce,
Replica.updateFetchStateOrThrow and RackAwareReplicaSelector; KIP-207, 320, 392, 497, 841, 903, 966.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs
import pytest
from hypothesis import given

from broker.error_codes import ErrorCode
from broker.ids import BrokerEpoch, BrokerId, LeaderEpoch, Offset
from broker.units import TimeMs
from replication.rules.fetch import FetchRequest, check_leader_epoch, decide_fetch, is_sent_at_once, recorded
from replication.rules.follower_read import check_consumer_fetch, latest_offset, preferred_replica
from replication.rules.high_watermark import follower_high_watermark, leader_high_watermark
from replication.rules.isr import lagging, maximal_isr, may_join, propose_expand, propose_shrink
from replication.rules.out_of_sync import out_of_sync
from replication.rules.partition import (
    EpochEnd,
    EpochStart,
    Follower,
    FollowerState,
    PartitionEpoch,
)
from replication.rules.produce import (
    UP_TO_HIGH_WATERMARK,
    Fate,
    answer_waiting,
    check_append,
    fate,
    low_watermark,
    take_order,
)
from replication.rules.switches import CURRENT, Truncation
from tests.replication.rules.leader_cases import EPOCH, LAG_MS, NOW_MS, RACKS, Case, drawn_case
from tests.support.drawing import DRAWS, Draws


def fetches(draws: Draws, case: Case) -> Iterator[str]:
    """Yield a fetch that is answered otherwise than by its epochs and its offset."""
    leader, log = case.leader, attrs.evolve(case.log, epochs=(EpochStart(LeaderEpoch(3), case.log.start_offset),))
    believed = LeaderEpoch(draws.one((-1, 4, 5, 5, 5, 6)))
    replica = draws.one((*leader.followers, Follower(BrokerId(99)))).broker
    request = FetchRequest(
        replica=replica,
        offset=Offset(draws.number(0, log.end_offset + 1)),
        leader_epoch=believed,
        last_fetched_epoch=LeaderEpoch(draws.one((-1, 2, 3, 4))),
        start_offset=Offset(0),
        broker_epoch=BrokerEpoch(draws.one((-1, 7, 8))),
    )
    decision = decide_fetch(leader, log, request, case.moment, CURRENT)
    status, last, offset = case.status(replica), request.last_fetched_epoch, request.offset
    is_former = status is not None and not status.fenced and 0 <= request.broker_epoch < status.epoch
    is_within = log.start_offset <= offset <= log.end_offset
    parts = last == 2 and offset > log.start_offset  # Epoch 2 ends where epoch 3 begins.
    errors = {
        ErrorCode.FENCED_LEADER_EPOCH: 0 <= believed < EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH: believed > EPOCH or (replica == 99 and believed >= 0),
        ErrorCode.NOT_LEADER_OR_FOLLOWER: replica == 99,
        ErrorCode.OFFSET_OUT_OF_RANGE: last > 3 or offset < log.start_offset or not (is_within or parts or last == 3),
    }
    error = next((code for code, holds in errors.items() if holds), ErrorCode.NONE)
    parts = error is ErrorCode.NONE and (parts or (last == 3 and offset > log.end_offset))
    is_recorded = error is ErrorCode.NONE and not parts
    if is_recorded and is_former:
        error, is_recorded = ErrorCode.NOT_LEADER_OR_FOLLOWER, False
    answer = decision.answer
    if (answer.error, answer.diverging is not None, decision.is_recorded) != (error, parts, is_recorded):
        yield f"{request} is answered {decision}"
    if error is ErrorCode.NONE and (answer.high_watermark, answer.start_offset) != (
        log.high_watermark,
        log.start_offset,
    ):
        yield f"{request} is told {answer}"
    sent, waits, reads = Offset(draws.number(0, 9)), draws.is_one_in(2), draws.is_one_in(2)
    rules = attrs.evolve(CURRENT, follower_reads=reads, new_high_watermark_waits=waits)
    at_once = parts or (reads and not waits and answer.high_watermark > sent)
    if is_sent_at_once(answer, sent, rules) != at_once:
        yield f"{answer} after {sent} is sent at once: {not at_once}"
    follows = FollowerState(
        broker=BrokerId(0), leader=BrokerId(1), leader_epoch=EPOCH, partition_epoch=PartitionEpoch(0)
    )
    unchecked = attrs.evolve(CURRENT, fetch_epoch_check=False)
    for role, its_rules, refused in (
        (follows, CURRENT, {4: ErrorCode.FENCED_LEADER_EPOCH, 6: ErrorCode.UNKNOWN_LEADER_EPOCH}),
        (follows, unchecked, {}),
        (leader, unchecked, dict.fromkeys((-1, 4, 5, 6), ErrorCode.NONE)),
    ):
        if check_leader_epoch(role, believed, its_rules) is not refused.get(believed, ErrorCode.NOT_LEADER_OR_FOLLOWER):
            yield f"who believes in {believed} is answered {check_leader_epoch(role, believed, its_rules)}"
    if Truncation.ON_FETCH is CURRENT.truncation and parts and not isinstance(answer.diverging, EpochEnd):
        yield f"{answer} does not say where the logs part"


def caught_up(draws: Draws, case: Case) -> Iterator[str]:
    """Let a follower fetch some times, and yield where its leader does not know when it had everything."""
    follower, now_ms, end, at = Follower(BrokerId(1)), 1_000, 0, 0
    history: list[tuple[int, int, int]] = []
    for _ in range(draws.number(1, 6)):
        now_ms += draws.number(1, 300)
        end += draws.number(0, 3)
        at = draws.number(at, end)
        history.append((now_ms, end, at))
        epoch, believed = LeaderEpoch(draws.number(3, 4)), draws.one((-1, 3, 4))
        request = FetchRequest(
            replica=BrokerId(1),
            offset=Offset(at),
            leader_epoch=LeaderEpoch(believed),
            start_offset=Offset(draws.number(0, at)),
            broker_epoch=BrokerEpoch(draws.number(-1, 3)),
        )
        follower = recorded(follower, request, epoch, Offset(end), TimeMs(now_ms))
        seen = (follower.end_offset, follower.leader_end_offset, follower.fetched_at_ms)
        if seen != (at, end, now_ms) or follower.start_offset != request.start_offset:
            yield f"after {history} it is {follower}"
        if (follower.leader_epoch, follower.broker_epoch) != (
            believed if believed >= 0 else epoch,
            request.broker_epoch,
        ):
            yield f"after {request} it is {follower}"
        # It had everything of a moment at which it fetched if this fetch, or the next, was for what was the end then.
        reached = [
            (then_ms, then_end, [mark for _, _, mark in history[place : place + 2]])
            for place, (then_ms, then_end, _) in enumerate(history)
        ]
        had_all = [then_ms for then_ms, then_end, marks in reached if max(marks) >= then_end]
        if follower.caught_up_at_ms != max(had_all, default=0):
            yield f"after {history} it was caught up at {follower.caught_up_at_ms}"


def reads(draws: Draws, case: Case) -> Iterator[str]:
    """Yield where a consumer is sent to another replica, or shown another end, than its rack and the epoch ask for."""
    leader, log, rules = case.leader, case.log, case.settings.rules
    racks = {broker: status.rack for broker, status in case.moment.brokers.items()}
    rack, offset = draws.one(RACKS), Offset(draws.number(0, log.end_offset + 1))
    near = [
        (each.end_offset, each.caught_up_at_ms, -each.broker)
        for each in leader.followers
        if rules.follower_reads
        and rack
        and racks.get(each.broker) == rack != racks.get(leader.broker, "")
        and each.broker in leader.isr
        and each.start_offset <= offset <= each.end_offset
        and not (rules.fenced_never_preferred and case.moment.brokers[each.broker].fenced)
    ]
    wanted = -sorted(near)[-1][2] if near else None
    if preferred_replica(leader, offset, rack, case.moment, rules) != wanted:
        yield f"in {rack!r} one reads {offset} of {preferred_replica(leader, offset, rack, case.moment, rules)}"
    follows = FollowerState(
        broker=BrokerId(0), leader=BrokerId(1), leader_epoch=EPOCH, partition_epoch=PartitionEpoch(0)
    )
    is_within, is_hidden = log.start_offset <= offset <= log.end_offset, offset > log.high_watermark
    ranged = ErrorCode.NONE if is_within else ErrorCode.OFFSET_OUT_OF_RANGE
    for role, answer in (
        (leader, ranged),
        (follows, ErrorCode.OFFSET_NOT_AVAILABLE if is_within and is_hidden else ranged),
    ):
        refuses = role is follows and not rules.follower_reads
        told = check_consumer_fetch(role, log, offset, rules)
        if told is not (ErrorCode.NOT_LEADER_OR_FOLLOWER if refuses else answer):
            yield f"{type(role).__name__} answers {told} at {offset}"
    is_unsure = rules.offset_not_available and log.high_watermark < leader.epoch_start_offset
    latest = (ErrorCode.OFFSET_NOT_AVAILABLE, -1) if is_unsure else (ErrorCode.NONE, log.high_watermark)
    if latest_offset(leader, log, rules) != latest:
        yield f"the end is {latest_offset(leader, log, rules)}"


def deletions(draws: Draws, case: Case) -> Iterator[str]:
    """Yield a DeleteRecords that takes what is not committed, or is done before all who live have done it."""
    log, asked = case.log, Offset(draws.number(-2, case.log.end_offset + 1))
    offset = log.high_watermark if asked == UP_TO_HIGH_WATERMARK else asked
    allowed = (ErrorCode.NONE, offset) if 0 <= offset <= log.high_watermark else (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    for deletes, wanted in ((True, allowed), (False, (ErrorCode.POLICY_VIOLATION, -1))):
        told = take_order(log, asked, deletes=deletes)
        if (told.error, told.offset) != wanted:
            yield f"to delete up to {asked} is answered {told}"
    alive = {broker for broker, status in case.moment.brokers.items() if not status.fenced}
    starts = [each.start_offset for each in case.leader.followers if each.broker in alive]
    if low_watermark(case.leader, log, case.moment) != min([log.start_offset, *starts]):
        yield f"the low watermark is {low_watermark(case.leader, log, case.moment)}"


def in_sync(draws: Draws, case: Case) -> Iterator[str]:
    """Yield who leaves or joins the ISR without reason, or has the wrong reason to be outside."""
    leader, log, rules = case.leader, case.log, case.settings.rules
    late = [each.broker for each in leader.followers if not case.is_caught_up(each)]
    wanted = [] if leader.pending is not None else [broker for broker in leader.isr if broker in late]
    if list(lagging(leader, log.end_offset, NOW_MS, case.settings)) != wanted:
        yield f"{lagging(leader, log.end_offset, NOW_MS, case.settings)} lag"
    for each in leader.followers:
        doubts = {
            "a change is pending": leader.pending is not None,
            "it is in": each.broker in leader.isr,
            "it lacks what is committed": each.end_offset < log.high_watermark,
            "it lacks what the last leader had": rules.isr_join_epoch_start
            and each.end_offset < leader.epoch_start_offset,
            "it is of another epoch": rules.isr_join_epoch_check and each.leader_epoch != leader.leader_epoch,
            "its broker may not": not case.is_eligible(each),
            "it would be dropped in turn": rules.isr_join_caught_up_under_min_isr
            and len(leader.isr) < case.min_isr
            and not case.is_caught_up(each),
        }
        told = may_join(leader, log, each, case.moment, case.settings)
        if told == any(doubts.values()):
            yield f"{each.broker} may join: {told}, {[doubt for doubt, holds in doubts.items() if holds]}"
    if set(maximal_isr(leader, rules)) != case.counted():
        yield f"the maximal ISR is {maximal_isr(leader, rules)}"
    outside = [each for each in leader.followers if each.broker not in leader.isr]
    told_outside = out_of_sync(leader, log, case.moment, case.settings)
    facts = [(each.broker, *_why(case, each)) for each in outside]
    if [(each.broker, each.why.name, each.lag_records, each.lag_ms) for each in told_outside] != facts:
        yield f"outside are {told_outside}, by the facts {facts}"


def _why(case: Case, follower: Follower) -> tuple[str, int | None, int | None]:
    """Return why a follower is outside, and how far behind it is in records and ms."""
    status = case.status(follower.broker)
    has_fetched = follower.end_offset >= 0
    reasons = {
        "UNREGISTERED": status is None,
        "FENCED": status is not None and status.fenced,
        "STOPPING": status is not None and status.shutting_down,
        "NOT_FETCHED": not has_fetched,
        "RESTARTED": status is not None and follower.broker_epoch not in (-1, status.epoch),
        "JOINING": case.is_caught_up(follower),
        "STUCK": follower.fetched_at_ms + LAG_MS < NOW_MS,
        "SLOW": True,
    }
    why = next(name for name, holds in reasons.items() if holds)
    lag_ms = NOW_MS - follower.caught_up_at_ms if follower.caught_up_at_ms else None
    return why, case.log.end_offset - follower.end_offset if has_fetched else None, lag_ms


def proposals(draws: Draws, case: Case) -> Iterator[str]:
    """Yield what an AlterPartition request asks for other than one change of the ISR."""
    leader, own = attrs.evolve(case.leader, pending=None), BrokerEpoch(draws.number(7, 8))
    known = {each.broker: each.broker_epoch for each in leader.followers} | {leader.broker: own}
    outside = [each.broker for each in leader.followers if each.broker not in leader.isr]
    removed = draws.some(leader.isr[1:])
    asked = {tuple(broker for broker in leader.isr if broker not in removed): propose_shrink(leader, removed, own)}
    if outside:
        added = draws.one(outside)
        asked[(*leader.isr, added)] = propose_expand(leader, added, own)
    for isr, proposing in asked.items():
        request = proposing.pending
        assert request is not None
        members = [(broker, -1 if known[broker] is None else known[broker]) for broker in isr]
        if [(each.broker, each.epoch) for each in request.isr] != members or request.recovering:
            yield f"to come to {isr} it asks for {request}"
        from_where = (request.leader, request.leader_epoch, request.partition_epoch)
        if from_where != (leader.broker, leader.leader_epoch, leader.partition_epoch):
            yield f"it asks as {from_where}"
        if attrs.evolve(proposing, pending=None) != leader:
            yield f"to ask changes it to {proposing}"


def committed(draws: Draws, case: Case) -> Iterator[str]:
    """Yield a high watermark that not all who count have reached, or that stands lower than it may."""
    leader, log, rules = case.leader, case.log, case.settings.rules
    counted = case.counted()
    joins = [
        each
        for each in leader.followers
        if each.broker not in counted
        and case.is_caught_up(each)
        and (case.is_eligible(each) or not rules.high_watermark_ignores_ineligible)
    ]
    members = [each for each in leader.followers if each.broker in counted]
    reached = min([log.end_offset, *(each.end_offset for each in (*members, *joins))])
    is_frozen = rules.strict_min_isr and len(leader.isr) < case.min_isr
    if rules.high_watermark_epoch_check and any(each.leader_epoch != EPOCH for each in members):
        is_frozen = True
    wanted = log.high_watermark if is_frozen or reached < log.high_watermark else reached
    told = leader_high_watermark(leader, log, case.moment, case.settings)
    if told != wanted:
        yield f"up to {told} is committed, and {wanted} was reached"
    heard = Offset(draws.number(0, log.end_offset + 3))
    bounds = sorted((log.start_offset, heard, log.end_offset))
    if follower_high_watermark(log, heard) != bounds[1]:
        yield f"a follower that hears of {heard} is at {follower_high_watermark(log, heard)}"


def writes(draws: Draws, case: Case) -> Iterator[str]:
    """Yield a write that is taken, refused or answered otherwise than acks and min.insync.replicas say."""
    leader, log, acks = case.leader, case.log, draws.one((-2, -1, 0, 1, 2))
    follows = FollowerState(
        broker=BrokerId(0), leader=BrokerId(1), leader_epoch=EPOCH, partition_epoch=PartitionEpoch(0)
    )
    is_few = acks == -1 and len(leader.isr) < case.min_isr
    refused = ErrorCode.NOT_ENOUGH_REPLICAS if is_few else ErrorCode.NONE
    for role, wanted in ((leader, refused), (follows, ErrorCode.NOT_LEADER_OR_FOLLOWER)):
        told = check_append(role, acks, case.settings)
        if told is not (wanted if acks in (-1, 0, 1) else ErrorCode.INVALID_REQUIRED_ACKS):
            yield f"acks={acks} is answered {told}"
    end = Offset(draws.number(0, log.end_offset))
    answered = answer_waiting(leader, end, log.high_watermark, case.settings)
    few = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND if len(case.counted()) < case.min_isr else ErrorCode.NONE
    if answered is not (few if end <= log.high_watermark else None):
        yield f"a write up to {end} is answered {answered}"
    if answer_waiting(follows, end, log.high_watermark, case.settings) is not ErrorCode.NOT_LEADER_OR_FOLLOWER:
        yield "a follower answers a write that waits"
    code, appended = draws.one((None, *ErrorCode)), draws.is_one_in(2)
    definite = {ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.INVALID_REQUIRED_ACKS}
    appended = appended and code not in definite
    before = {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    known = Fate.FAILED if code in definite | (set() if appended else before) else Fate.UNKNOWN
    if fate(code, appended=appended) is not (Fate.ACKED if code is ErrorCode.NONE else known):
        yield f"{code}, appended {appended}, is {fate(code, appended=appended)}"


@pytest.mark.parametrize(
    "check",
    [in_sync, proposals, committed, writes, fetches, caught_up, reads, deletions],
    ids=lambda each: each.__name__,
)
@given(draws=DRAWS)
def test_a_leader_answers_by_the_facts(check: Callable[..., Iterator[str]], draws: Draws) -> None:
    assert [*check(draws, drawn_case(draws))] == []

"""Compare what a leader answers to fetches and to readers with what a plain list of facts says.

What it decides: for a drawn case the answer to a follower's fetch, since when it is caught up, which replica a consumer
is sent to, and what may be deleted.

Source: Kafka's Replica.updateFetchStateOrThrow and RackAwareReplicaSelector; KIP-320, 392.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from broker.error_codes import ErrorCode
from broker.ids import BrokerEpoch, BrokerId, LeaderEpoch, Offset
from broker.units import TimeMs
from replication.rules.deletion import UP_TO_HIGH_WATERMARK, low_watermark, take_order
from replication.rules.fetch import FetchRequest, check_leader_epoch, decide_fetch, is_sent_at_once, recorded
from replication.rules.follower_read import check_consumer_fetch, latest_offset, preferred_replica
from replication.rules.partition import (
    EpochEnd,
    EpochStart,
    Follower,
    FollowerState,
    PartitionEpoch,
)
from replication.rules.switches import CURRENT, Truncation
from tests.replication.mutants.drawing import Draws
from tests.replication.mutants.leader_cases import EPOCH, RACKS, Case


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

"""New leaders and followers, answers to AlterPartition, and remembered decisions of fetches, against tables of causes.

Source: Kafka's Partition (makeLeader, makeFollower, handleAlterPartitionUpdate) and FollowerFetch; KIP-497, 841.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import attrs
import pytest
from hypothesis import given

from broker.error_codes import ErrorCode
from broker.ids import NO_LEADER, BrokerEpoch, BrokerId, LeaderEpoch, Offset
from broker.units import DurationMs, TimeMs
from replication.rules.alter_partition import Altered, Reaction, react
from replication.rules.epochs import assigned
from replication.rules.fetch import FetchRequest, FollowerFetchHandler, decide_fetch, recorded
from replication.rules.high_watermark import leader_high_watermark
from replication.rules.isr import may_join
from replication.rules.leadership import become_follower, become_leader, unassigned
from replication.rules.partition import (
    AlterPartitionRequest,
    BrokerStatus,
    Follower,
    FollowerState,
    IsrMember,
    LeaderState,
    LogState,
    PartitionEpoch,
    PartitionState,
)
from replication.rules.settings import Moment, PartitionSettings
from replication.rules.switches import CURRENT
from tests.support.drawing import DRAWS, Draws

_DROPS: Final = {ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED}
_WAITS: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.INVALID_UPDATE_VERSION,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.NEW_LEADER_ELECTED,
}


def answered(draws: Draws) -> Iterator[str]:
    """Yield a leader that takes the answer to its AlterPartition for another than it is."""
    replicas = tuple(map(BrokerId, range(3)))
    asked = AlterPartitionRequest(
        leader=replicas[0],
        leader_epoch=LeaderEpoch(3),
        partition_epoch=PartitionEpoch(5),
        isr=tuple(IsrMember(each) for each in replicas),
    )
    other = attrs.evolve(asked, partition_epoch=PartitionEpoch(4))
    pending = draws.one((asked, asked, asked, other, None))
    followers = tuple(Follower(each) for each in replicas[1:])
    leader = LeaderState(replicas[0], LeaderEpoch(3), PartitionEpoch(5), Offset(0), replicas[:2], followers, pending)
    epochs = LeaderEpoch(draws.one((3, 3, 3, 4, 2))), PartitionEpoch(draws.number(4, 6))
    answer = PartitionState(
        replicas=replicas, isr=replicas, leader=replicas[0], leader_epoch=epochs[0], partition_epoch=epochs[1]
    )
    error = draws.one((*[ErrorCode.NONE] * 6, *sorted(_DROPS | _WAITS), ErrorCode.NOT_CONTROLLER))
    is_old = epochs[0] != 3 or epochs[1] < 5
    committed = attrs.evolve(leader, isr=replicas, partition_epoch=epochs[1], pending=None)
    causes = (
        (Reaction.IGNORED, leader, pending != asked),
        (Reaction.ROLLED_BACK, attrs.evolve(leader, pending=None), error in _DROPS),
        (Reaction.PENDING, leader, error in _WAITS),
        (Reaction.RETRY, leader, error is not ErrorCode.NONE),
        (Reaction.IGNORED, leader, is_old),
        (Reaction.COMMITTED, committed, True),
    )
    wanted = next((reaction, state) for reaction, state, holds in causes if holds)
    if react(leader, asked, Altered(error, answer)) != wanted:
        yield f"{leader} answered {error}, {answer}: {react(leader, asked, Altered(error, answer))}"


def led(draws: Draws) -> Iterator[str]:
    """Yield a new leader that knows more, or less, of its followers than it may."""
    replicas, rules, now_ms = tuple(map(BrokerId, range(3))), draws.rules(), TimeMs(draws.number(1, 99))
    log = LogState(Offset(0), Offset(draws.number(0, 9)), Offset(0))
    former = LeaderState(
        replicas[0],
        LeaderEpoch(3),
        PartitionEpoch(5),
        Offset(0),
        replicas,
        tuple(
            Follower(
                each,
                Offset(draws.number(-1, 4)),
                Offset(0),
                Offset(4),
                TimeMs(7),
                TimeMs(6),
                BrokerEpoch(2),
                LeaderEpoch(3),
            )
            for each in draws.some(replicas[1:])
        ),
        AlterPartitionRequest(
            leader=replicas[0], leader_epoch=LeaderEpoch(3), partition_epoch=PartitionEpoch(5), isr=()
        ),
    )
    known = draws.one((former, unassigned(replicas[0])))
    led = {each.broker: each for each in former.followers} if known is former else {}
    epoch = LeaderEpoch(draws.number(3, 4))
    state = PartitionState(
        replicas=replicas,
        isr=(replicas[0], *draws.some(replicas[1:])),
        leader=replicas[0],
        leader_epoch=epoch,
        partition_epoch=PartitionEpoch(draws.number(4, 6)),
    )
    told = become_leader(known, state, log, now_ms, rules)
    is_old = known is former and state.partition_epoch < 5
    if (told is None) != is_old:
        yield f"{known} applies {state}: {told}"
    if told is None:
        return
    is_new = epoch > known.leader_epoch
    wanted = []
    for broker in replicas[1:]:
        one, since = led.get(broker), TimeMs(now_ms if broker in state.isr else 0)
        if not is_new:
            wanted.append(one or Follower(broker))
        elif known is not former:
            wanted.append(Follower(broker, caught_up_at_ms=since))
        else:
            end = -1 if one is None else one.end_offset
            changed = attrs.evolve(
                one or Follower(broker), leader_end_offset=log.end_offset, fetched_at_ms=since, caught_up_at_ms=since
            )
            wanted.append(attrs.evolve(changed, leader_epoch=LeaderEpoch(-1 if end < 0 else epoch)))
    start = log.end_offset if is_new else former.epoch_start_offset
    epochs = assigned(log.epochs, epoch, start) if is_new and rules.epoch_cached_on_election else log.epochs
    found = told.state
    if (list(found.followers), found.epoch_start_offset, found.pending, found.isr) != (wanted, start, None, state.isr):
        yield f"{known} applies {state}: {found}"
    if (found.leader_epoch, found.partition_epoch, told.log.epochs) != (epoch, state.partition_epoch, epochs):
        yield f"{known} applies {state}: {told}"


def followed(draws: Draws) -> Iterator[str]:
    """Yield a follower that applies old news, or does not look for its place in a new epoch."""
    epoch, partition_epoch = draws.number(2, 4), draws.number(4, 6)
    known = FollowerState(
        broker=BrokerId(1), leader=BrokerId(0), leader_epoch=LeaderEpoch(3), partition_epoch=PartitionEpoch(5)
    )
    state = PartitionState(
        replicas=(BrokerId(0), BrokerId(1)),
        isr=(BrokerId(0),),
        leader=draws.one((BrokerId(0), NO_LEADER)),
        leader_epoch=LeaderEpoch(epoch),
        partition_epoch=PartitionEpoch(partition_epoch),
    )
    told = become_follower(known, state)
    if (told is None) != (partition_epoch < 5):
        yield f"{known} applies {state}: {told}"
    if told is not None:
        found = (told.restarts, told.state.leader, told.state.leader_epoch, told.state.partition_epoch)
        if found != (epoch > 3, state.leader, epoch, partition_epoch) or told.state.broker != 1:
            yield f"{known} applies {state}: {told}"
    nothing = unassigned(BrokerId(1))
    if (nothing.leader, nothing.leader_epoch, nothing.partition_epoch) != (NO_LEADER, -1, -1):
        yield f"who knows nothing knows {nothing}"


def fetched(draws: Draws) -> Iterator[str]:
    """Let followers fetch from one leader, which may remember its last decisions, and yield where that shows."""
    brokers = tuple(map(BrokerId, range(3)))
    settings = PartitionSettings(min_isr=draws.number(1, 2), lag_ms_max=DurationMs(100))
    handler, now_ms, end = FollowerFetchHandler(settings), 1_000, 3
    registered = brokers[draws.is_one_in(4) :]  # The leader may not have heard of its own registration yet.
    statuses = {each: BrokerStatus(epoch=BrokerEpoch(2), fenced=draws.is_one_in(6)) for each in registered}
    log = LogState(Offset(0), Offset(end), Offset(0))
    followers = tuple(Follower(each) for each in brokers[1:])
    leader = LeaderState(brokers[0], LeaderEpoch(3), PartitionEpoch(5), Offset(2), brokers[:1], followers)
    request = FetchRequest(replica=brokers[1], offset=Offset(0), leader_epoch=LeaderEpoch(3))
    for _ in range(8):
        now_ms += draws.number(0, 60)
        if draws.is_one_in(3):
            end += 1
            log = attrs.evolve(log, end_offset=Offset(end))
        if draws.is_one_in(6):
            statuses = {each: attrs.evolve(status, fenced=draws.is_one_in(6)) for each, status in statuses.items()}
        if draws.is_one_in(8):
            leader = attrs.evolve(leader, leader_epoch=LeaderEpoch(leader.leader_epoch + 1), pending=None)
        if not draws.is_one_in(3):
            request = FetchRequest(
                replica=BrokerId(draws.one((1, 1, 2, 2, 9))),
                offset=Offset(draws.number(0, end + 1)),
                leader_epoch=LeaderEpoch(draws.one((leader.leader_epoch, 3))),
                start_offset=Offset(0),
                broker_epoch=BrokerEpoch(draws.one((2, 2, 1, -1))),
            )
        moment = Moment(TimeMs(now_ms), statuses)
        was_held = draws.is_one_in(6)
        outcome = handler.handle(leader, log, request, moment, was_held=was_held)
        decision, before = decide_fetch(leader, log, request, moment, CURRENT), leader.follower(request.replica)
        if outcome.answer != decision.answer:
            yield f"{request} is answered {outcome.answer}, and {decision.answer} is due"
        after, high = leader, log.high_watermark
        if decision.is_recorded and before is not None and not was_held:
            seen = recorded(before, request, leader.leader_epoch, log.end_offset, moment.now_ms)
            after = attrs.evolve(
                leader, followers=tuple(seen if each.broker == seen.broker else each for each in leader.followers)
            )
            if may_join(after, log, seen, moment, settings):
                own = statuses[brokers[0]].epoch if brokers[0] in statuses else BrokerEpoch(-1)
                epochs = {each.broker: each.broker_epoch for each in after.followers} | {brokers[0]: own}
                members = tuple(
                    IsrMember(each, BrokerEpoch(-1) if (epoch := epochs[each]) is None else epoch)
                    for each in (*after.isr, seen.broker)
                )
                asks = AlterPartitionRequest(
                    leader=brokers[0],
                    leader_epoch=leader.leader_epoch,
                    partition_epoch=leader.partition_epoch,
                    isr=members,
                )
                after = attrs.evolve(after, pending=asks)
            if seen.end_offset != before.end_offset:
                high = leader_high_watermark(after, log, moment, settings)
        if (outcome.leader, outcome.high_watermark) != (after, high):
            yield f"{request} makes of {leader} {outcome}, and {after} at {high} is due"
        leader = outcome.leader
        if outcome.high_watermark != log.high_watermark:  # The same log is the same value, as decisions are kept for.
            log = attrs.evolve(log, high_watermark=outcome.high_watermark)
        if leader.pending is not None and draws.is_one_in(2):
            leader = attrs.evolve(leader, isr=leader.pending.members, pending=None)


CHECKS: Final = (answered, led, followed, fetched)


@pytest.mark.parametrize("check", CHECKS, ids=lambda each: each.__name__.strip("_"))
@given(draws=DRAWS)
def test_a_role_follows_from_the_facts(check: Callable[..., Iterator[str]], draws: Draws) -> None:
    assert [*check(draws)] == []

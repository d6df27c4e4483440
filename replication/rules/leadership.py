"""Becoming leader, becoming follower: what a broker does when metadata gives it a part in a partition.

It decides whether news of a partition is taken, what a new leader assumes about its followers, and whether a
follower starts fetching anew.

Goals, most important first
1. A leader counts only what followers tell it in its own epoch.
2. Old news never undoes new.
3. News that changes nothing interrupts nobody.

Constraints: news is old if its partition epoch is less than the one known; the same is taken, as the answer to
the leader's own request may have brought it first. The epoch's start is the log's end at the instant the leader
learns of the epoch, and is written into the epoch cache before any record.

How. A broker that did not lead before knows nothing of the followers' logs. One that led already keeps what it
knows, as the followers have not been cut by anybody else: this also counts as said in the new epoch. In
both cases members of the ISR count as caught up now, others as never. A change that was asked for and not
answered is forgotten: the ISR is the one in the news.

Worked example: leader in epoch 3 gets news of epoch 4 with itself as leader and its log at 17: epoch 4 starts at 17,
followers keep their ends.

Left out: creating the log, its directory, deleted topics.

Source: Kafka core Partition.makeLeader, makeFollower, updateAssignmentAndIsr and Replica.resetReplicaState,
commit 1eb7644 (2024-10); KAFKA-13790, KAFKA-7415, KAFKA-7164.
"""

from __future__ import annotations

import attrs

from broker.ids import NO_LEADER, BrokerId
from broker.units import TimeMs
from replication.rules.epochs import assigned
from replication.rules.partition import (
    UNKNOWN_EPOCH,
    UNKNOWN_OFFSET,
    Follower,
    FollowerState,
    LeaderState,
    LogState,
    PartitionEpoch,
    PartitionState,
)
from replication.rules.switches import Rules


@attrs.frozen
class Following:
    """A follower's state after news; `restarts` says that it must find its place in the leader's log anew."""

    state: FollowerState
    restarts: bool


@attrs.frozen
class Leading:
    """A leader's state after news, and its log with the epoch noted. Look at the high watermark next."""

    state: LeaderState
    log: LogState


def unassigned(broker: BrokerId) -> FollowerState:
    """Return what a broker knows of a partition before the first news."""
    return FollowerState(
        broker=broker, leader=NO_LEADER, leader_epoch=UNKNOWN_EPOCH, partition_epoch=PartitionEpoch(-1)
    )


def become_leader(
    known: LeaderState | FollowerState, new_state: PartitionState, log: LogState, now_ms: TimeMs, rules: Rules
) -> Leading | None:
    """Return the state of a broker that `news` names as leader; None if the news is old."""
    assert new_state.leader == known.broker, (new_state, known)
    if new_state.partition_epoch < known.partition_epoch:
        return None
    led = known if isinstance(known, LeaderState) else None
    is_new_epoch = new_state.leader_epoch > known.leader_epoch
    followers = []
    for broker in new_state.replicas:
        if broker != known.broker:
            follower = (led.follower(broker) if led else None) or Follower(broker)
            followers.append(
                _reset(follower, new_state, log, now_ms, keep=led is not None) if is_new_epoch else follower
            )
    if is_new_epoch:
        start_offset = log.end_offset
        if rules.epoch_cached_on_election:
            log = attrs.evolve(log, epochs=assigned(log.epochs, new_state.leader_epoch, start_offset))
    else:
        assert led is not None, (new_state, known)
        start_offset = led.epoch_start_offset
    state = LeaderState(
        broker=known.broker,
        leader_epoch=new_state.leader_epoch,
        partition_epoch=new_state.partition_epoch,
        epoch_start_offset=start_offset,
        isr=new_state.isr,
        followers=tuple(followers),
    )
    return Leading(state, log)


def become_follower(known: LeaderState | FollowerState, new_state: PartitionState) -> Following | None:
    """Return the state of a broker that `news` does not name as leader; None if the news is old."""
    assert new_state.leader != known.broker, (new_state, known)
    if new_state.partition_epoch < known.partition_epoch:
        return None
    state = FollowerState(
        broker=known.broker,
        leader=new_state.leader,
        leader_epoch=new_state.leader_epoch,
        partition_epoch=new_state.partition_epoch,
    )
    return Following(state, restarts=new_state.leader_epoch > known.leader_epoch)


def _reset(follower: Follower, new_state: PartitionState, log: LogState, now_ms: TimeMs, *, keep: bool) -> Follower:
    in_sync_at_ms = now_ms if follower.broker in new_state.isr else TimeMs(0)
    if not keep:
        return Follower(follower.broker, caught_up_at_ms=in_sync_at_ms)
    return Follower(
        broker=follower.broker,
        end_offset=follower.end_offset,
        start_offset=follower.start_offset,
        leader_end_offset=log.end_offset,
        fetched_at_ms=in_sync_at_ms,
        caught_up_at_ms=in_sync_at_ms,
        broker_epoch=follower.broker_epoch,
        leader_epoch=UNKNOWN_EPOCH if follower.end_offset == UNKNOWN_OFFSET else new_state.leader_epoch,
    )

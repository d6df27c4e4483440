"""Compute a broker's state when it becomes leader or follower of a partition (makeLeader, makeFollower).

What it decides: whether a new state of a partition is applied, what a new leader assumes about its followers, and
whether a follower has to find its place in the leader's log again.

Goals, most important first:
1. A leader counts only what followers tell it in its own epoch.
2. An older partition state never undoes a newer one.
3. A partition state that changes nothing interrupts no replica.

Constraints: a state is old if its partition epoch is below the known one; an equal one is applied, because the answer
to the leader's own AlterPartition request may have brought it first. The epoch's start is the log's end at the instant
when the leader learns its epoch, and is assigned in the epoch cache before any record is appended.

How: a broker that did not lead before knows nothing of the followers' logs. One that led already keeps their end
offsets, as no other leader has truncated them; they count as fetched in the new epoch. In both cases members of the ISR
count as caught up now, others as never. A pending AlterPartition request is dropped: the ISR is the new state's.

Example: the log ends at 17 when the broker learns that it leads epoch 4: epoch 4 starts at 17.

>>> from broker.ids import LeaderEpoch, Offset
>>> from replication.rules.switches import CURRENT
>>> one, two = BrokerId(1), BrokerId(2)
>>> state = PartitionState(replicas=(one, two), isr=(one, two), leader=one, leader_epoch=LeaderEpoch(4))
>>> log = LogState(Offset(0), Offset(17), Offset(12))
>>> leading = become_leader(unassigned(one), state, log, TimeMs(0), CURRENT)
>>> leading.state.epoch_start_offset, leading.log.epochs
(17, (EpochStart(epoch=4, start_offset=17),))
>>> become_follower(unassigned(two), state).restarts
True

Left out: creating the log and its directory; deleted topics.

Source: Kafka core Partition.makeLeader, makeFollower, updateAssignmentAndIsr and Replica.resetReplicaState, 4.3.1;
KAFKA-13790, KAFKA-7415, KAFKA-7164.
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
    """Hold a follower's state after new metadata; with `restarts` the follower looks for its fetch offset again."""

    state: FollowerState
    restarts: bool


@attrs.frozen
class Leading:
    """Hold a leader's state after metadata was applied, and its log with the epoch assigned."""

    state: LeaderState
    log: LogState


def unassigned(broker: BrokerId) -> FollowerState:
    """Return a broker's state of a partition before it has applied any metadata of it."""
    return FollowerState(
        broker=broker, leader=NO_LEADER, leader_epoch=UNKNOWN_EPOCH, partition_epoch=PartitionEpoch(-1)
    )


def become_leader(
    known: LeaderState | FollowerState, new_state: PartitionState, log: LogState, now_ms: TimeMs, rules: Rules
) -> Leading | None:
    """Return the state of a broker that `new_state` names as leader; None if that state is old."""
    assert new_state.leader == known.broker, (new_state, known)
    if new_state.partition_epoch < known.partition_epoch:
        return None
    led = known if isinstance(known, LeaderState) else None
    is_new_epoch = new_state.leader_epoch > known.leader_epoch
    if rules.known_state_keeps_request and led is not None and not is_new_epoch and _is_known(led, new_state):
        return None
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
    """Return the broker's state as a follower under `new_state`; None for a stale state."""
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


def _is_known(led: LeaderState, new_state: PartitionState) -> bool:
    """Return whether a leader knows the partition's new state from the answer to its own AlterPartition request."""
    replicas = {led.broker, *(follower.broker for follower in led.followers)}
    return (new_state.partition_epoch, new_state.isr) == (led.partition_epoch, led.isr) and replicas == {
        *new_state.replicas
    }


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

"""Decide ISR membership: followers to remove (maybeShrinkIsr) and followers to add (maybeExpandIsr).

What it decides: for a leader, which members lag by more than replica.lag.time.max.ms, whether a follower may be added,
and which set the high watermark respects while an AlterPartition request is pending (the maximal ISR).

Goals, most important first:
1. A replica in the ISR holds every committed record.
2. A dead or slow follower does not hold the partition up for ever.
3. A follower that lags no longer than allowed stays in the ISR.

Constraints: one change at a time is pending; the leader is always a member; nothing here trusts a follower's word about
anything but its own log.

How: a follower is caught up if its end equals the leader's, or if it had every record at some time in the last
`lag_ms_max`; that time is recorded with each fetch (`fetch.recorded`). Shrinking goes by time, joining by offsets: at
least the leader's high watermark, and at least the offset where the leader's epoch began, because a new leader does not
know how far its predecessor had committed.

Example: replica.lag.time.max.ms is 30000; a follower had every record at 1000 ms and is one record short since then.

>>> from broker.ids import LeaderEpoch
>>> from replication.rules.partition import PartitionEpoch
>>> one, two = BrokerId(1), BrokerId(2)
>>> follower = Follower(two, end_offset=Offset(9), caught_up_at_ms=TimeMs(1_000))
>>> leader = LeaderState(one, LeaderEpoch(0), PartitionEpoch(0), Offset(0), (one, two), (follower,))
>>> lagging(leader, Offset(10), TimeMs(31_000), PartitionSettings())
()
>>> lagging(leader, Offset(10), TimeMs(31_001), PartitionSettings())
(2,)

Left out: the timer that looks for lagging followers (every lag_ms_max / 2, so removal takes up to 1.5 times the lag).

Source: Kafka core Partition.maybeShrinkIsr, maybeExpandIsr, needsExpandIsr, isReplicaIsrEligible,
getOutOfSyncReplicas, prepareIsrExpand, prepareIsrShrink, ReplicaManager.maybeShrinkIsr and Replica.isCaughtUp, 4.3.1;
KAFKA-7128, KAFKA-7152, KIP-497, KIP-841, KIP-903.
"""

from __future__ import annotations

import attrs

from broker.ids import BrokerEpoch, BrokerId, Offset
from broker.units import TimeMs
from replication.rules.partition import (
    UNKNOWN_BROKER_EPOCH,
    AlterPartitionRequest,
    BrokerStatus,
    Follower,
    IsrMember,
    LeaderState,
    LogState,
)
from replication.rules.settings import Moment, PartitionSettings, is_under_min_isr
from replication.rules.switches import Rules


def is_caught_up(follower: Follower, leader_end_offset: Offset, now_ms: TimeMs, settings: PartitionSettings) -> bool:
    """Return whether a follower has every record, or had every record within the last `lag_ms_max`."""
    if settings.rules.caught_up_at_end_offset and follower.end_offset == leader_end_offset:
        return True
    return now_ms - follower.caught_up_at_ms <= settings.lag_ms_max


def is_eligible(follower: Follower, status: BrokerStatus | None, rules: Rules) -> bool:
    """Return whether a follower is eligible for the ISR: registered, active, and fetching in its current epoch."""
    if rules.isr_join_eligibility and (status is None or not status.is_active):
        return False
    if rules.isr_join_broker_epoch:
        if status is None or status.fenced or follower.broker_epoch is None:
            return False
        return follower.broker_epoch in (UNKNOWN_BROKER_EPOCH, status.epoch)
    return True


def lagging(
    leader: LeaderState, leader_end_offset: Offset, now_ms: TimeMs, settings: PartitionSettings
) -> tuple[BrokerId, ...]:
    """Return the members whose lag exceeds replica.lag.time.max.ms, in ISR order; none while a change is pending.

    Source: Partition.getOutOfSyncReplicas, 4.3.1.
    """
    if leader.pending is not None:
        return ()
    lagging = []
    for broker in leader.isr:
        if broker != leader.broker:
            follower = leader.follower(broker)
            if follower is None or not is_caught_up(follower, leader_end_offset, now_ms, settings):
                lagging.append(broker)
    return tuple(lagging)


def may_join(
    leader: LeaderState, log: LogState, follower: Follower, moment: Moment, settings: PartitionSettings
) -> bool:
    """Return whether a follower that has just fetched is to be added to the ISR."""
    if leader.pending is not None or follower.broker in leader.isr:
        return False
    rules = settings.rules
    if follower.end_offset < log.high_watermark:
        return False
    if rules.isr_join_epoch_start and follower.end_offset < leader.epoch_start_offset:
        return False
    if rules.isr_join_epoch_check and follower.leader_epoch != leader.leader_epoch:
        return False
    if not is_eligible(follower, moment.brokers.get(follower.broker), rules):
        return False
    if rules.isr_join_caught_up_under_min_isr and is_under_min_isr(leader, settings):
        return is_caught_up(follower, log.end_offset, moment.now_ms, settings)
    return True


def maximal_isr(leader: LeaderState, rules: Rules) -> tuple[BrokerId, ...]:
    """Return the set that the high watermark must respect: the ISR, and the follower being added to it.

    Without the rule `maximal_isr` the leader takes a shrink for granted and an addition for not yet made.
    """
    if leader.pending is None:
        return leader.isr
    proposed = leader.pending.members
    if len(proposed) > len(leader.isr) if rules.maximal_isr else len(proposed) < len(leader.isr):
        return proposed
    return leader.isr


def propose_shrink(leader: LeaderState, removed: tuple[BrokerId, ...], own_epoch: BrokerEpoch) -> LeaderState:
    """Return the leader's state with a pending request that removes members; `own_epoch` is its broker epoch."""
    assert leader.broker not in removed, (leader.broker, removed)
    return _proposing(leader, tuple(broker for broker in leader.isr if broker not in removed), own_epoch)


def propose_expand(leader: LeaderState, added: BrokerId, own_epoch: BrokerEpoch) -> LeaderState:
    """Return the leader's state with a pending request that adds one member."""
    assert added not in leader.isr, (added, leader.isr)
    return _proposing(leader, (*leader.isr, added), own_epoch)


def _proposing(leader: LeaderState, isr: tuple[BrokerId, ...], own_epoch: BrokerEpoch) -> LeaderState:
    assert leader.pending is None, leader.pending
    members = []
    for broker in isr:
        follower = leader.follower(broker)
        # A member that has not fetched yet has no epoch to show: should it have restarted, the controller has
        # removed it and raised the partition epoch, and refuses this request for that.
        known = own_epoch if follower is None else follower.broker_epoch
        members.append(IsrMember(broker, UNKNOWN_BROKER_EPOCH if known is None else known))
    request = AlterPartitionRequest(
        leader=leader.broker,
        leader_epoch=leader.leader_epoch,
        partition_epoch=leader.partition_epoch,
        isr=tuple(members),
    )
    return attrs.evolve(leader, pending=request)

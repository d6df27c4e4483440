"""Describe the replicas outside the ISR: how far behind each one is, and why it is outside.

A lag that the leader cannot know is None: the lag in records of a replica that has not fetched since this leader was
elected, and the lag in time of a replica that never had every record.

Example: the leader's log ends at 9, the follower's at 4, and the follower's last fetch is 40 s ago.

>>> from broker.ids import BrokerEpoch, LeaderEpoch, Offset
>>> from broker.units import TimeMs
>>> from replication.rules.partition import BrokerStatus, PartitionEpoch
>>> one, two = BrokerId(1), BrokerId(2)
>>> follower = Follower(two, end_offset=Offset(4), fetched_at_ms=TimeMs(20_000), broker_epoch=BrokerEpoch(0))
>>> leader = LeaderState(one, LeaderEpoch(0), PartitionEpoch(0), Offset(0), (one,), (follower,))
>>> log = LogState(Offset(0), Offset(9), Offset(9))
>>> now = Moment(TimeMs(60_000), {two: BrokerStatus(epoch=BrokerEpoch(0))})
>>> [(found.why.name, found.lag_records, found.lag_ms) for found in out_of_sync(leader, log, now, PartitionSettings())]
[('STUCK', 5, None)]

Source: the order is ours; the facts are those of Kafka core Partition.getOutOfSyncReplicas and isReplicaIsrEligible,
4.3.1, which knows stuck followers and slow ones.
"""

from __future__ import annotations

import enum

import attrs

from broker.ids import BrokerId
from broker.units import DurationMs
from replication.rules.isr import is_caught_up
from replication.rules.partition import START, UNKNOWN_BROKER_EPOCH, UNKNOWN_OFFSET, Follower, LeaderState, LogState
from replication.rules.settings import Moment, PartitionSettings


class Why(enum.Enum):
    """Name the reasons why a replica is not in the ISR; the first that applies is given."""

    UNREGISTERED = enum.auto()
    """The replica's broker is not registered."""

    FENCED = enum.auto()
    """The replica's broker is fenced: its session has ended, or it has not caught up with the metadata yet."""

    STOPPING = enum.auto()
    """The replica's broker is in controlled shutdown."""

    NOT_FETCHED = enum.auto()
    """The replica has not fetched since this leader was elected."""

    RESTARTED = enum.auto()
    """The replica's last fetch carried the broker epoch of an earlier incarnation."""

    STUCK = enum.auto()
    """The replica has not fetched for longer than replica.lag.time.max.ms."""

    SLOW = enum.auto()
    """The replica fetches, but has not reached the leader's log end for longer than replica.lag.time.max.ms."""

    JOINING = enum.auto()
    """The replica is caught up; the leader is about to add it, or waits for the answer to an AlterPartition."""


@attrs.frozen
class OutOfSync:
    """Describe one out-of-sync replica; `lag_ms` is the time since it had every record, None if unknown."""

    broker: BrokerId
    why: Why
    lag_records: int | None
    lag_ms: DurationMs | None


def out_of_sync(
    leader: LeaderState, log: LogState, moment: Moment, settings: PartitionSettings
) -> tuple[OutOfSync, ...]:
    """Return the out-of-sync replicas as their leader knows them, in assignment order. Cost: linear."""
    found = []
    for follower in leader.followers:
        if follower.broker not in leader.isr:
            known = follower.end_offset != UNKNOWN_OFFSET
            lag_ms = DurationMs(moment.now_ms - follower.caught_up_at_ms)
            found.append(
                OutOfSync(
                    follower.broker,
                    _why(follower, log, moment, settings),
                    lag_records=log.end_offset - follower.end_offset if known else None,
                    lag_ms=None if follower.caught_up_at_ms == START else lag_ms,
                )
            )
    return tuple(found)


def _why(follower: Follower, log: LogState, moment: Moment, settings: PartitionSettings) -> Why:
    status = moment.brokers.get(follower.broker)
    if status is None:
        return Why.UNREGISTERED
    if status.fenced:
        return Why.FENCED
    if status.shutting_down:
        return Why.STOPPING
    if follower.end_offset == UNKNOWN_OFFSET:
        return Why.NOT_FETCHED
    if follower.broker_epoch not in (UNKNOWN_BROKER_EPOCH, status.epoch):
        return Why.RESTARTED
    if is_caught_up(follower, log.end_offset, moment.now_ms, settings):
        return Why.JOINING
    return Why.STUCK if moment.now_ms - follower.fetched_at_ms > settings.lag_ms_max else Why.SLOW

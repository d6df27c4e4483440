"""Decide a consumer's read replica, its readable offsets, and the fetch position after a leader change.

Each replica shows what lies below its own high watermark, which lags behind the leader's; an offset between the two is
not an error but a reason to ask again. Only live members of the ISR are preferred. A position is an
offset and the leader epoch of the record before it; it is validated once for each leader epoch that the consumer
learns, before the next fetch.

Example: the consumer is in rack "a", the leader, 1, in "b", and follower 2, in "a", has the records up to 9.

>>> from broker.ids import BrokerEpoch, LeaderEpoch
>>> from broker.units import TimeMs
>>> from replication.rules.partition import BrokerStatus, PartitionEpoch
>>> from replication.rules.switches import CURRENT
>>> one, two = BrokerId(1), BrokerId(2)
>>> follower = Follower(two, end_offset=Offset(9), start_offset=Offset(0))
>>> leader = LeaderState(one, LeaderEpoch(0), PartitionEpoch(0), Offset(0), (one, two), (follower,))
>>> racks = {one: BrokerStatus(epoch=BrokerEpoch(0), rack="b"), two: BrokerStatus(epoch=BrokerEpoch(0), rack="a")}
>>> preferred_replica(leader, Offset(9), "a", Moment(TimeMs(0), racks), CURRENT)
2
>>> preferred_replica(leader, Offset(10), "a", Moment(TimeMs(0), racks), CURRENT) is None
True
>>> checked = check_position(Position(Offset(3), LeaderEpoch(1)), EpochEnd(LeaderEpoch(1), Offset(1)))
>>> checked.check.name, checked.position.offset
('CUT', 1)

Source: Kafka core ReplicaManager.findPreferredReadReplica, Partition.fetchOffsetForTimestamp, clients
RackAwareReplicaSelector, SubscriptionState.maybeCompleteValidation, 4.3.1; KIP-207, KIP-320, KIP-392, KAFKA-15390.
"""

from __future__ import annotations

import enum

import attrs

from broker.error_codes import ErrorCode
from broker.ids import BrokerId, LeaderEpoch, Offset
from replication.rules.partition import (
    UNKNOWN_EPOCH,
    UNKNOWN_OFFSET,
    EpochEnd,
    Follower,
    FollowerState,
    LeaderState,
    LogState,
)
from replication.rules.settings import Moment
from replication.rules.switches import Rules


def preferred_replica(
    leader: LeaderState, offset: Offset, client_rack: str, moment: Moment, rules: Rules
) -> BrokerId | None:
    """Return the follower that a consumer shall fetch `offset` from; None to fetch from the leader.

    `client_rack` is the consumer's client.rack, "" for none; the brokers' racks are those of their registrations.
    """
    if not rules.follower_reads or not client_rack or _rack_of(leader.broker, moment) == client_rack:
        return None
    near = [
        follower
        for follower in leader.followers
        if _rack_of(follower.broker, moment) == client_rack and _can_serve(leader, follower, offset, moment, rules)
    ]
    if not near:
        return None
    # Kafka compares the ends, then how recently the replicas were caught up, then the ids: the lower wins.
    return max(near, key=lambda follower: (follower.end_offset, follower.caught_up_at_ms, -follower.broker)).broker


def check_consumer_fetch(role: LeaderState | FollowerState, log: LogState, offset: Offset, rules: Rules) -> ErrorCode:
    """Return the error for a consumer's fetch at `offset`; NONE to send records up to the high watermark."""
    if isinstance(role, FollowerState) and not rules.follower_reads:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if not log.start_offset <= offset <= log.end_offset:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    if offset > log.high_watermark and isinstance(role, FollowerState):
        return ErrorCode.OFFSET_NOT_AVAILABLE
    return ErrorCode.NONE


def latest_offset(leader: LeaderState, log: LogState, rules: Rules) -> tuple[ErrorCode, Offset]:
    """Return the answer to a client's ListOffsets for LATEST: the high watermark, once it is of this leader epoch."""
    if rules.offset_not_available and leader.epoch_start_offset > log.high_watermark:
        return ErrorCode.OFFSET_NOT_AVAILABLE, Offset(-1)
    return ErrorCode.NONE, log.high_watermark


def _rack_of(broker: BrokerId, moment: Moment) -> str:
    status = moment.brokers.get(broker)
    return "" if status is None else status.rack


def _can_serve(leader: LeaderState, follower: Follower, offset: Offset, moment: Moment, rules: Rules) -> bool:
    if follower.broker not in leader.isr or not follower.start_offset <= offset <= follower.end_offset:
        return False
    if not rules.fenced_never_preferred:
        return True
    # It is registered: `preferred_replica` asks only about followers whose registration names the consumer's rack.
    return not moment.brokers[follower.broker].fenced


class PositionCheck(enum.Enum):
    """Name the results of validating a position."""

    STANDS = enum.auto()
    """Every record before the position is still in the log."""

    CUT = enum.auto()
    """The log was truncated below the position, at a known offset."""

    LOST = enum.auto()
    """The log was truncated below the position, at an unknown offset."""


@attrs.frozen
class Position:
    """Hold a consumer's next offset, and the leader epoch of the record before it, -1 if there is none."""

    offset: Offset
    epoch: LeaderEpoch = UNKNOWN_EPOCH


@attrs.frozen
class Checked:
    """Hold the result of validating a position, and the position to go on from."""

    check: PositionCheck
    position: Position


def check_position(position: Position, answer: EpochEnd) -> Checked:
    """Return the position to go on from when the leader says that `answer.epoch` ends at its offset."""
    if position.epoch == UNKNOWN_EPOCH:
        return Checked(PositionCheck.STANDS, position)
    if answer.end_offset == UNKNOWN_OFFSET or answer.epoch == UNKNOWN_EPOCH:
        return Checked(PositionCheck.LOST, Position(Offset(0)))
    if answer.end_offset < position.offset:
        return Checked(PositionCheck.CUT, Position(answer.end_offset, answer.epoch))
    return Checked(PositionCheck.STANDS, position)

"""Decide whether a consumer may go on from its position after a change of leader, or where its log was truncated.

A position is an offset and the leader epoch of the last record before it. It is validated once for each leader epoch
that the consumer learns, before the next fetch.

Example: a consumer has read up to offset 3, the last record in epoch 1; the new leader says that epoch 1 ends at 1.

>>> checked = check_position(Position(Offset(3), LeaderEpoch(1)), EpochEnd(LeaderEpoch(1), Offset(1)))
>>> checked.check.name, checked.position.offset
('CUT', 1)

Source: Kafka clients SubscriptionState.maybeCompleteValidation and OffsetsForLeaderEpochUtils, 4.0; KIP-320.
"""

from __future__ import annotations

import enum

import attrs

from broker.ids import LeaderEpoch, Offset
from replication.rules.partition import UNKNOWN_EPOCH, UNKNOWN_OFFSET, EpochEnd


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

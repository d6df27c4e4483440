"""Whether what a consumer has read is still what the log holds, after the leader has changed.

It decides, from the leader's answer to "where does this epoch end in your log?", whether a consumer may go on from its
position, and where else.

Goals, most important first
1. A consumer never goes on in another history without noticing.
2. What it has read and the log still holds is not read again.

Constraints: a position is an offset and the leader epoch of the last record before it. It is checked once for each
leader epoch that the consumer learns, before the next fetch.

How: the epoch ends at or past the position: go on. It ends before: the log was cut there. The leader cannot tell: the
log was cut at a place that nobody knows any more, and the consumer has to start by its policy.

Worked example: a consumer has read up to offset 3, the last record in epoch 1; the new leader says that epoch 1 ends at
1: go on at 1.

Left out: the policy of a consumer that has none, which is told instead (LogTruncationException).

Source: Kafka clients SubscriptionState.maybeCompleteValidation and OffsetsForLeaderEpochUtils, 4.0; KIP-320.
"""

from __future__ import annotations

import enum

import attrs

from broker.ids import LeaderEpoch, Offset
from replication.rules.partition import UNKNOWN_EPOCH, UNKNOWN_OFFSET, EpochEnd


class PositionCheck(enum.Enum):
    """What became of a position."""

    STANDS = enum.auto()
    """Everything before it is still there."""

    CUT = enum.auto()
    """The log was cut below it, and the place is known."""

    LOST = enum.auto()
    """The log was cut below it, and nobody knows where."""


@attrs.frozen
class Position:
    """Where a consumer goes on: the next offset, and the leader epoch of the record before it, -1 if there is none."""

    offset: Offset
    epoch: LeaderEpoch = UNKNOWN_EPOCH


@attrs.frozen
class Checked:
    """The outcome, and the position to go on from: the same, where the log was cut, or the log's start."""

    check: PositionCheck
    position: Position


def check_position(position: Position, answer: EpochEnd) -> Checked:
    """Return what becomes of `position` when the leader says that `answer.epoch` ends at its offset."""
    if position.epoch == UNKNOWN_EPOCH:
        return Checked(PositionCheck.STANDS, position)
    if answer.end_offset == UNKNOWN_OFFSET or answer.epoch == UNKNOWN_EPOCH:
        return Checked(PositionCheck.LOST, Position(Offset(0)))
    if answer.end_offset < position.offset:
        return Checked(PositionCheck.CUT, Position(answer.end_offset, answer.epoch))
    return Checked(PositionCheck.STANDS, position)

"""Decide how much of its log a follower truncates to make it a prefix of its leader's (KIP-101, KIP-279, KIP-320).

What it decides: a follower's first step in a new leader epoch, the offset to truncate to when the leader says where the
logs diverge, and what the follower does when the leader does not have the offset it asked for.

Goals, most important first:
1. After the truncation the follower's log is a prefix of the leader's.
2. No committed record is truncated: what an old high watermark does not cover may well be committed.
3. It ends: each round makes the log or its latest epoch smaller.

Constraints: a truncation never makes a log longer; the high watermark is never left above the end. Truncating below the
follower's own high watermark is allowed: after an unclean election it is right.

How: by `Rules.truncation`. Until 0.10.2 the follower truncated to its own high watermark. With KIP-101 it sends
OffsetsForLeaderEpoch for its latest epoch and truncates to the answer. With KIP-279 the leader also says which epoch it
answered for; if the follower does not have that epoch, it truncates to the end of its largest epoch below and asks
again. Since 2.8 there is no question: a fetch response carries the same pair when the logs diverge.

Example: the follower has epoch 1 from 0 and epoch 2 from 1 to 3; the leader has epoch 1 up to 2 and is in epoch 3. The
follower fetches at 3 with last fetched epoch 2; the leader answers that epoch 1 ends at 2; the follower's own epoch 1
ends at 1, so it truncates to 1 (case F).

>>> from replication.rules.partition import EpochStart
>>> from replication.rules.switches import CURRENT
>>> epochs = (EpochStart(LeaderEpoch(1), Offset(0)), EpochStart(LeaderEpoch(2), Offset(1)))
>>> log = LogState(Offset(0), Offset(3), Offset(1), epochs)
>>> cut = cut_for(log, EpochEnd(LeaderEpoch(1), Offset(2)), CURRENT)
>>> cut.end_offset, truncated(log, cut.end_offset, CURRENT).epochs
(1, (EpochStart(epoch=1, start_offset=0),))

Left out: the future replica of a move between directories (ReplicaAlterLogDirs), which truncates by the same rule.

Source: Kafka core AbstractFetcherThread.getOffsetTruncationState, fetchOffsetAndTruncate and onPartitionFenced,
ReplicaManager.lastOffsetForLeaderEpoch (the OffsetsForLeaderEpoch request), UnifiedLog.truncateTo,
truncateFullyAndStartAt and maybeIncrementLogStartOffset, 4.3.1, ReplicaFetcherThread.maybeTruncate in 0.11.0; KIP-101,
KIP-279, KIP-320, KAFKA-10554, KAFKA-10706.
"""

from __future__ import annotations

import enum

import attrs

from broker.error_codes import ErrorCode
from broker.ids import LeaderEpoch, Offset
from replication.rules.epochs import UNDEFINED_END, end_offset_for, trimmed_at_end, trimmed_at_start
from replication.rules.high_watermark import restarted_high_watermark
from replication.rules.partition import (
    UNKNOWN_EPOCH,
    UNKNOWN_OFFSET,
    EpochEnd,
    FollowerState,
    LeaderState,
    LogState,
)
from replication.rules.switches import Rules, Truncation


class FirstStep(enum.Enum):
    """Name a follower's first step in a new leader epoch."""

    CUT_TO_HIGH_WATERMARK = enum.auto()
    """Truncate to its own high watermark, then fetch."""

    ASK_EPOCH_END = enum.auto()
    """Send OffsetsForLeaderEpoch for its latest epoch, truncate, then fetch (or ask again)."""

    FETCH = enum.auto()
    """Fetch from the log's end."""


@attrs.frozen
class Cut:
    """Hold the offset to truncate a follower's log to; if not `complete`, the follower asks again afterwards."""

    end_offset: Offset
    complete: bool


@attrs.frozen
class OutOfRange:
    """Hold a follower's reaction to OFFSET_OUT_OF_RANGE: where it fetches next, and what it truncates before."""

    fetch_offset: Offset
    cut_to: Offset | None
    starts_anew: bool


class FencedReaction(enum.Enum):
    """Name a follower's reactions to FENCED_LEADER_EPOCH."""

    PARK = enum.auto()
    """The fenced epoch is still the follower's own: wait for new metadata."""

    RETRY = enum.auto()
    """The follower has learned a newer epoch since it sent the request: ask again."""


def first_step(log: LogState, rules: Rules) -> FirstStep:
    """Return a follower's first step after it learned a new leader epoch."""
    if rules.truncation is Truncation.ON_FETCH:
        return FirstStep.FETCH
    # A log that knows no epoch has nothing to ask about.
    if rules.truncation is Truncation.TO_HIGH_WATERMARK or not log.epochs:
        return FirstStep.CUT_TO_HIGH_WATERMARK
    return FirstStep.ASK_EPOCH_END


def answer_epoch_end(
    role: LeaderState | FollowerState, log: LogState, asked: LeaderEpoch, believed: LeaderEpoch, rules: Rules
) -> tuple[ErrorCode, EpochEnd]:
    """Return a leader's answer to OffsetsForLeaderEpoch for epoch `asked`; `believed` is the sender's own epoch."""
    if rules.truncation_epoch_check and believed != UNKNOWN_EPOCH and believed != role.leader_epoch:
        stale = believed < role.leader_epoch
        return (ErrorCode.FENCED_LEADER_EPOCH if stale else ErrorCode.UNKNOWN_LEADER_EPOCH), UNDEFINED_END
    if isinstance(role, FollowerState):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER, UNDEFINED_END
    found = end_offset_for(log.epochs, asked, log.end_offset, rules)
    if rules.truncation is Truncation.BY_LEADER_EPOCH:
        # The answer of KIP-101 had no field for the epoch.
        return ErrorCode.NONE, EpochEnd(UNKNOWN_EPOCH, found.end_offset)
    return ErrorCode.NONE, found


def cut_for(log: LogState, answer: EpochEnd, rules: Rules) -> Cut:
    """Return a follower's truncation offset for the leader's end offset of epoch `answer.epoch`."""
    if answer.end_offset == UNKNOWN_OFFSET:
        # The leader does not know the epoch: what lies below the high watermark is all that is known to be common.
        return Cut(log.high_watermark, complete=True)
    own = end_offset_for(log.epochs, answer.epoch, log.end_offset, rules)
    if own.end_offset == UNKNOWN_OFFSET:
        # Every epoch of this log is older than the leader's, so nothing above the leader's end can be common. Or the
        # answer is of KIP-101: it says where an epoch ends and not which, so there is nothing to compare.
        return Cut(min(answer.end_offset, log.end_offset), complete=True)
    if own.epoch != answer.epoch:
        # This log lacks the leader's epoch. Its own largest epoch below is the next candidate for the last common one:
        # truncate to its end and ask about it (KIP-279). Each such round drops an epoch, so the rounds end.
        return Cut(min(own.end_offset, log.end_offset), complete=False)
    # Both logs have the epoch: they are the same up to where it ends first.
    return Cut(min(own.end_offset, answer.end_offset, log.end_offset), complete=True)


def truncated(log: LogState, end_offset: Offset, rules: Rules) -> LogState:
    """Return the log truncated to `end_offset`; at or past its end only the epochs are trimmed (truncateTo)."""
    if end_offset >= log.end_offset:
        # The cache may hold an epoch at the log's end whose leader appended nothing: left there, the follower would ask
        # about it again and again (KAFKA-10706).
        if not rules.epoch_cache_always_trimmed:
            return log
        return attrs.evolve(log, epochs=trimmed_at_end(log.epochs, log.end_offset))
    return LogState(
        start_offset=min(log.start_offset, end_offset),
        end_offset=end_offset,
        high_watermark=min(log.high_watermark, end_offset),
        epochs=trimmed_at_end(log.epochs, end_offset),
    )


def started_anew(log: LogState, start_offset: Offset, rules: Rules) -> LogState:
    """Return the log after all of it was truncated and it starts again, empty, at `start_offset`."""
    high_watermark = restarted_high_watermark(log.high_watermark, start_offset, rules)
    return LogState(start_offset, start_offset, high_watermark)


def start_raised(log: LogState, start_offset: Offset) -> LogState:
    """Return the log after its start was raised to `start_offset`; the same value if it starts there or later."""
    if start_offset <= log.start_offset:
        return log
    assert start_offset <= log.high_watermark, (start_offset, log)
    epochs = trimmed_at_start(log.epochs, start_offset)
    return LogState(start_offset, log.end_offset, log.high_watermark, epochs)


def out_of_range(log: LogState, leader_start_offset: Offset, leader_end_offset: Offset) -> OutOfRange:
    """Return a follower's reaction when the leader's log does not have the fetched offset."""
    if leader_end_offset < log.end_offset:
        # The leader was elected uncleanly, or lost its log's end: the follower's longer log is not committed any more.
        return OutOfRange(leader_end_offset, cut_to=leader_end_offset, starts_anew=False)
    # The leader's log starts behind the follower's end: the records between are deleted, and a log has no gap.
    fetch_offset = max(leader_start_offset, log.end_offset)
    return OutOfRange(fetch_offset, cut_to=None, starts_anew=leader_start_offset > log.end_offset)


def on_fenced(requested: LeaderEpoch, current: LeaderEpoch) -> FencedReaction:
    """Return the reaction of a follower in epoch `current` whose request of epoch `requested` was fenced."""
    return FencedReaction.PARK if requested == current else FencedReaction.RETRY


def may_apply(sent_offset: Offset, fetch_offset: Offset, *, parked: bool) -> bool:
    """Return whether an answer still applies: the follower still wants the offset of the request."""
    return not parked and sent_offset == fetch_offset

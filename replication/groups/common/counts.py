"""Count the consumers' work: records handed out, commits, rebalances, applications that ended.

Constraints: a duplicate is a record that is handed to a group's application when it was handed to one before. A commit
is fenced when it was refused because its sender was no current member, and lost when its response never came.

Source: ours; latencies by the names of Java's consumer metrics.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.group.messages import OffsetCommitResponse
from broker.ids import Offset, TopicPartition
from broker.wording import counted
from replication.groups.client.messages import (
    Committed,
    Died,
    Disconnected,
    Note,
    PollExpired,
    Read,
    Rebalanced,
    RebalanceFailed,
    Response,
    TopicMetadataResponse,
)

FENCED: Final = frozenset(
    {
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
    }
)
"""Errors of a commit that say that its sender is no current member."""


@attrs.define
class GroupCounts:
    """Count the consumers' work in one or more groups."""

    read_count: int = 0
    duplicate_count: int = 0
    commits: Counter[ErrorCode] = attrs.field(factory=Counter)
    rebalance_count: int = 0
    rebalance_ms: int = 0
    rebalance_ms_max: int = 0
    failed_rebalance_count: int = 0
    poll_expired_count: int = 0
    death_count: int = 0
    load_count: int = 0
    """How often a coordinator read its partition."""
    lag_max: int = 0
    """The most records that all groups together had not yet been handed."""
    answers: Counter[tuple[str, str, ErrorCode]] = attrs.field(factory=Counter)
    """The responses that members received: by member, kind of response, and error."""
    highs: dict[tuple[str, TopicPartition], Offset] = attrs.field(factory=dict)
    """How far each group was handed each partition (exclusive)."""

    def note(self, group_id: str, note: Note) -> str:
        """Count one note of a consumer; return a sentence if the consumer skipped records (GS), else ""."""
        match note:
            case Read():
                return self._read(group_id, note)
            case Committed():
                self.commits[note.error] += 1
            case Rebalanced():
                self.rebalance_count += 1
                self.rebalance_ms += note.latency_ms
                self.rebalance_ms_max = max(self.rebalance_ms_max, note.latency_ms)
            case RebalanceFailed():
                self.failed_rebalance_count += 1
            case PollExpired():
                self.poll_expired_count += 1
            case Died():
                self.death_count += 1
        return ""

    def hear(self, member: str, response: Response) -> None:
        """Count a response that a member received; count a commit's response once per partition."""
        errors: tuple[ErrorCode, ...] = ()
        if isinstance(response, OffsetCommitResponse):
            errors = response.errors
        elif not isinstance(response, TopicMetadataResponse | Disconnected):
            errors = (response.error,)
        for error in errors:
            self.answers[member, type(response).__name__, error] += 1

    def lines(self) -> list[str]:
        """Return the counts as lines of text."""
        fenced = sum(count for error, count in self.commits.items() if error in FENCED)
        average_ms = self.rebalance_ms // max(self.rebalance_count, 1)
        return [
            f"groups were handed {counted(self.read_count, 'record')}, {self.duplicate_count:,} of them again; "
            f"lag at most {self.lag_max:,}",
            f"commits: {self.commits[ErrorCode.NONE]:,} accepted, {fenced:,} fenced, "
            f"{self.commits[ErrorCode.REQUEST_TIMED_OUT]:,} lost, "
            f"{self.commits.total() - self.commits[ErrorCode.NONE]:,} not accepted in all",
            f"rebalances: {self.rebalance_count:,}, latency {average_ms:,} ms on average, {self.rebalance_ms_max:,} ms "
            f"at most; {counted(self.failed_rebalance_count, 'attempt')} failed; "
            f"{counted(self.poll_expired_count, 'member')} polled too "
            f"late, {self.death_count:,} died; coordinators began {counted(self.load_count, 'time')}",
        ]

    def _read(self, group_id: str, read: Read) -> str:
        key = group_id, read.partition
        high = self.highs.get(key, Offset(0))
        self.read_count += read.end_offset - read.start_offset
        self.duplicate_count += max(0, min(high, read.end_offset) - read.start_offset)
        self.highs[key] = max(high, read.end_offset)
        if read.start_offset > high:
            return f"{read.partition} was read from {read.start_offset} on, of which {high} was the last handed out"
        return ""

"""Check that some order of the commits explains each committed offset that members were shown.

It reads requests and responses of clients only. A commit lasts from its sending to its response, without end if its
outcome is unknown. A fetch may return commit c if c began before the fetch ended, was not refused, and no acknowledged
commit lies wholly between c and the fetch; no offset only if no acknowledged commit ended before the fetch began. After
an unclean election of a `__consumer_offsets` partition, commits that began before the end of its `Loss` count as
unknown, as the leader before it may go on until it hears of it.

Example: 7 is acknowledged, then 9 is acknowledged; a fetch after that may not show 7.

Source: ours; registers of Jepsen's histories.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.group.messages import OffsetCommitResponse
from broker.ids import Offset, TopicPartition
from broker.units import TimeMs
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


REFUSED: Final = frozenset(
    {
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
"""Answers that say for certain that nothing was written."""
_NEVER: Final = TimeMs(1 << 62)


@attrs.define(eq=False)
class CommitMade:
    """Record one commit of one partition; `is_acked` and `is_refused` are set once its response is certain."""

    key: tuple[str, TopicPartition]
    offset: Offset
    member: str
    start_ms: TimeMs
    end_ms: TimeMs = _NEVER
    is_acked: bool = False
    is_refused: bool = False

    def answer(self, error: ErrorCode, now_ms: TimeMs) -> None:
        """Record the response of the commit."""
        if error is ErrorCode.NONE:
            self.is_acked, self.end_ms = True, now_ms
        elif error in REFUSED:
            self.is_refused, self.end_ms = True, now_ms


@attrs.frozen
class OffsetShown:
    """Record the committed offset that a member was shown; None if the group had committed nothing."""

    key: tuple[str, TopicPartition]
    offset: Offset | None
    member: str
    start_ms: TimeMs
    end_ms: TimeMs


@attrs.define
class Loss:
    """Record an unclean election at `start_ms` that may have lost a group's acknowledged commits until `end_ms`.

    It ends when no broker leads the partition any more by an epoch before the election's.
    """

    start_ms: TimeMs
    end_ms: TimeMs


@attrs.frozen
class Impossible:
    """Describe a shown offset that no order of the commits explains."""

    shown: OffsetShown
    why: str


class CommitHistory:
    """Record all commits and offset fetches of a run."""

    def __init__(self) -> None:
        self.commits: list[CommitMade] = []
        self.shown: list[OffsetShown] = []
        self.losses: dict[str, list[Loss]] = {}
        """When records of a group may have been lost, by unclean elections; by group, in order."""

    def impossible(self) -> Iterator[Impossible]:
        """Yield the offset fetches that no order of the commits explains."""
        by_key: dict[tuple[str, TopicPartition], list[CommitMade]] = {}
        for commit in self.commits:
            by_key.setdefault(commit.key, []).append(commit)
        for shown in self.shown:
            losses = [each for each in self.losses.get(shown.key[0], []) if each.start_ms <= shown.end_ms]
            lost_ms = max((each.end_ms for each in losses), default=TimeMs(-1))
            why = _why_impossible(shown, by_key.get(shown.key, []), lost_ms)
            if why:
                yield Impossible(shown, why)


def _why_impossible(shown: OffsetShown, commits: list[CommitMade], lost_ms: TimeMs) -> str:
    acked = [
        commit for commit in commits if commit.is_acked and lost_ms < commit.start_ms and commit.end_ms < shown.start_ms
    ]
    last_start_ms = max((commit.start_ms for commit in acked), default=TimeMs(-1))
    last = max(acked, key=lambda commit: commit.end_ms, default=None)
    if shown.offset is None:
        return "" if last is None else f"offset {last.offset} was acknowledged to {last.member} before"
    offered = [one for one in commits if one.offset == shown.offset and one.start_ms <= shown.end_ms]
    if not offered:
        return "nobody committed it"
    if all(one.is_refused for one in offered):
        return f"the commit of {offered[0].member} was refused"
    if all(one.is_refused or one.end_ms < last_start_ms for one in offered):
        assert last is not None
        return f"a later commit, of {last.offset} by {last.member}, was acknowledged before"
    return ""

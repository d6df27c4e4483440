"""Check that some order of the commits explains each committed offset that members were shown.

What it decides: which offset fetches no order of the commits explains.

Goals, most important first:
1. An acknowledged commit is never lost: a later fetch returns it, or a commit after it or concurrent with it.
2. A fetch never returns a commit that was certainly refused.

Constraints: reads requests and responses of clients only, neither coordinators nor logs; so it holds for any broker. A
commit without a certain response may have been accepted at any time after it was sent.
After an unclean election the leader before it may go on, until it hears of it: what it acknowledges is lost as well.

How: a commit lasts from its sending to its response, without end if its outcome is unknown. A fetch may return commit c
if c began before the fetch ended, was not refused, and no acknowledged commit lies wholly between c and the fetch. A
fetch may return no offset only if no acknowledged commit ended before the fetch began. After an unclean election of a
`__consumer_offsets` partition, commits that began before the end of its `Loss` count as unknown.

Example: 7 is acknowledged, then 9 is acknowledged; a fetch after that may not show 7.

Left out: commits that expire, which no run is long enough for.

Source: ours; registers of Jepsen's histories.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.ids import Offset, TopicPartition
from broker.units import TimeMs

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
    """Record an unclean election at `start_ms`, by which a group may have lost what was acknowledged until `end_ms`.

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

"""A broker's part in one partition, as a table.

Decides which answers a replica may use: a follower asks one question at a time, and the state says which.

Constraints: news of the partition is taken in every state. An answer to a question that the state does not ask is
late or doubled; it is dropped and changes nothing. A request to a broker without the part that it needs is answered
NOT_LEADER_OR_FOLLOWER, or with the epoch error where epochs differ, and changes nothing either.

How: current followers start FETCHING at once and cut where the leader says that the logs part. Those of releases
before 2.7 start TRUNCATING: they ask where their newest epoch ends in the leader's log, perhaps several times.

Worked example: FETCHING + OUT_OF_RANGE is PLACING; PLACING + BOUNDS_TOLD is FETCHING; FETCHING + FENCED is PARKED,
which only news ends.

Left out: directories that fail (Kafka's HostedPartition.Offline) and fetching from a remote tier.

Source: Kafka core ReplicaManager.HostedPartition, AbstractFetcherThread with server ReplicaState (Truncating,
Fetching), commit 1eb7644 (2024-10); KIP-101, KIP-279, KIP-320, KIP-595 for truncation on fetch.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final


class PartState(enum.Enum):
    """What a broker is to a partition."""

    NONE = enum.auto()
    """It has no replica, or does not know of it."""

    LEADING = enum.auto()
    """It leads."""

    LEADERLESS = enum.auto()
    """It follows, and there is nobody to fetch from."""

    TRUNCATING = enum.auto()
    """It asks the leader where an epoch ends before it fetches."""

    FETCHING = enum.auto()
    """It asks the leader for what comes after its own end."""

    PLACING = enum.auto()
    """Its end is outside of the leader's log: it asks where that starts and ends."""

    PARKED = enum.auto()
    """It was fenced in the newest epoch it knows, and waits for news."""


class PartInput(enum.Enum):
    """What can happen to it."""

    TOLD_TO_LEAD = enum.auto()
    """News names it as the leader."""

    TOLD_LEADERLESS = enum.auto()
    """News says that nobody leads."""

    TOLD_TO_TRUNCATE = enum.auto()
    """News names another leader in a new epoch, and the rules are those from before truncation on fetch."""

    TOLD_TO_FETCH = enum.auto()
    """News names another leader in a new epoch; what is to be cut is found out by fetching."""

    TOLD_TO_LEAVE = enum.auto()
    """News has it no longer among the replicas."""

    EPOCH_ENDS = enum.auto()
    """The leader said where the epoch ends, and the log is cut there."""

    EPOCH_UNKNOWN = enum.auto()
    """The leader named an earlier epoch: the log is cut, and the question is asked anew."""

    RECORDS = enum.auto()
    """The leader sent records, or none."""

    LOGS_PART = enum.auto()
    """The leader said where the logs part, and the log is cut there."""

    OUT_OF_RANGE = enum.auto()
    """The leader does not have the offset asked for."""

    BOUNDS_TOLD = enum.auto()
    """The leader said where its log starts and ends."""

    FENCED = enum.auto()
    """The leader knows a newer epoch than the newest known here."""

    TO_ASK_AGAIN = enum.auto()
    """No answer came in time, or one that says to ask again."""


_S, _I = PartState, PartInput

_NEWS: Final = {
    _I.TOLD_TO_LEAD: _S.LEADING,
    _I.TOLD_LEADERLESS: _S.LEADERLESS,
    _I.TOLD_TO_TRUNCATE: _S.TRUNCATING,
    _I.TOLD_TO_FETCH: _S.FETCHING,
    _I.TOLD_TO_LEAVE: _S.NONE,
}

PART_TRANSITIONS: Final[Mapping[tuple[PartState, PartInput], PartState]] = MappingProxyType(
    {
        **{(state, news): following for state in PartState for news, following in _NEWS.items()},
        (_S.TRUNCATING, _I.EPOCH_ENDS): _S.FETCHING,
        (_S.TRUNCATING, _I.EPOCH_UNKNOWN): _S.TRUNCATING,
        (_S.TRUNCATING, _I.FENCED): _S.PARKED,
        (_S.TRUNCATING, _I.TO_ASK_AGAIN): _S.TRUNCATING,
        (_S.FETCHING, _I.RECORDS): _S.FETCHING,
        (_S.FETCHING, _I.LOGS_PART): _S.FETCHING,
        (_S.FETCHING, _I.OUT_OF_RANGE): _S.PLACING,
        (_S.FETCHING, _I.FENCED): _S.PARKED,
        (_S.FETCHING, _I.TO_ASK_AGAIN): _S.FETCHING,
        (_S.PLACING, _I.BOUNDS_TOLD): _S.FETCHING,
        (_S.PLACING, _I.FENCED): _S.PARKED,
        # Asked again from the fetch: meanwhile the leader's log may have come to hold the offset.
        (_S.PLACING, _I.TO_ASK_AGAIN): _S.FETCHING,
    }
)
"""Every step of a replica; whatever is not here is refused and changes nothing."""

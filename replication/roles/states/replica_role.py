"""A broker's part in one partition, as a table.

What it decides: which answers a replica may use: a follower asks one question at a time, and the state says which.

Constraints: news of the partition is taken in every state. An answer to a question that the state does not ask is
late or doubled; it is dropped and changes nothing. A request to a broker without the part that it needs is answered
NOT_LEADER_OR_FOLLOWER, or with the epoch error where epochs differ, and changes nothing either.

How: current followers start FETCHING at once and cut where the leader says that the logs part. Those of releases
before 2.7 start TRUNCATING: they ask where their newest epoch ends in the leader's log, perhaps several times.

Example: FETCHING + OUT_OF_RANGE is PLACING; PLACING + OFFSETS_LISTED is FETCHING; FETCHING + FENCED is PARKED,
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


class ReplicaRole(enum.Enum):
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


class ReplicaRoleInput(enum.Enum):
    """What can happen to it."""

    MAKE_LEADER = enum.auto()
    """News names it as the leader."""

    LEADER_UNKNOWN = enum.auto()
    """News says that nobody leads."""

    MAKE_FOLLOWER_TRUNCATING = enum.auto()
    """News names another leader in a new epoch, and the rules are those from before truncation on fetch."""

    MAKE_FOLLOWER_FETCHING = enum.auto()
    """News names another leader in a new epoch; what is to be cut is found out by fetching."""

    STOP_REPLICA = enum.auto()
    """News has it no longer among the replicas."""

    EPOCH_END_FOUND = enum.auto()
    """The leader said where the epoch ends, and the log is cut there."""

    EPOCH_END_EARLIER = enum.auto()
    """The leader named an earlier epoch: the log is cut, and the question is asked anew."""

    RECORDS = enum.auto()
    """The leader sent records, or none."""

    DIVERGING = enum.auto()
    """The leader said where the logs part, and the log is cut there."""

    OUT_OF_RANGE = enum.auto()
    """The leader does not have the offset asked for."""

    OFFSETS_LISTED = enum.auto()
    """The leader said where its log starts and ends."""

    FENCED = enum.auto()
    """The leader knows a newer epoch than the newest known here."""

    RETRY = enum.auto()
    """No answer came in time, or one that says to ask again."""


_S, _I = ReplicaRole, ReplicaRoleInput

_NEWS: Final = {
    _I.MAKE_LEADER: _S.LEADING,
    _I.LEADER_UNKNOWN: _S.LEADERLESS,
    _I.MAKE_FOLLOWER_TRUNCATING: _S.TRUNCATING,
    _I.MAKE_FOLLOWER_FETCHING: _S.FETCHING,
    _I.STOP_REPLICA: _S.NONE,
}

REPLICA_ROLE_TRANSITIONS: Final[Mapping[tuple[ReplicaRole, ReplicaRoleInput], ReplicaRole]] = MappingProxyType(
    {
        **{(state, news): following for state in ReplicaRole for news, following in _NEWS.items()},
        (_S.TRUNCATING, _I.EPOCH_END_FOUND): _S.FETCHING,
        (_S.TRUNCATING, _I.EPOCH_END_EARLIER): _S.TRUNCATING,
        (_S.TRUNCATING, _I.FENCED): _S.PARKED,
        (_S.TRUNCATING, _I.RETRY): _S.TRUNCATING,
        (_S.FETCHING, _I.RECORDS): _S.FETCHING,
        (_S.FETCHING, _I.DIVERGING): _S.FETCHING,
        (_S.FETCHING, _I.OUT_OF_RANGE): _S.PLACING,
        (_S.FETCHING, _I.FENCED): _S.PARKED,
        (_S.FETCHING, _I.RETRY): _S.FETCHING,
        (_S.PLACING, _I.OFFSETS_LISTED): _S.FETCHING,
        (_S.PLACING, _I.FENCED): _S.PARKED,
        # Asked again from the fetch: meanwhile the leader's log may have come to hold the offset.
        (_S.PLACING, _I.RETRY): _S.FETCHING,
    }
)
"""Every step of a replica; whatever is not here is refused and changes nothing."""

"""Define the roles of a replica at its broker as a table: leading, fetching, truncating and so on.

A metadata change is applied in every state. A response to a request that is not pending is late or duplicate; it is
dropped and changes nothing. A request to a broker that does not lead the partition is answered NOT_LEADER_OR_FOLLOWER,
or with an epoch error if the leader epochs differ, and changes nothing.

Source: Kafka core ReplicaManager.HostedPartition, AbstractFetcherThread with server ReplicaState (Truncating,
Fetching), 4.3.1; KIP-101, KIP-279, KIP-320, KIP-595 for truncation on fetch.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final


class ReplicaRole(enum.Enum):
    """Name the roles of a broker's replica in one partition."""

    NONE = enum.auto()
    """The broker has no replica, or has not learned of it."""

    LEADING = enum.auto()
    """The replica leads."""

    LEADERLESS = enum.auto()
    """The replica follows, and the partition has no leader to fetch from."""

    TRUNCATING = enum.auto()
    """The follower sends OffsetsForLeaderEpoch before it fetches."""

    FETCHING = enum.auto()
    """The follower fetches from its log's end."""

    PLACING = enum.auto()
    """The follower's end is outside the leader's log: it sends ListOffsets."""

    PARKED = enum.auto()
    """The follower was fenced in the newest leader epoch that it knows, and waits for metadata."""


class ReplicaRoleInput(enum.Enum):
    """Name the events that change the role of a replica."""

    MAKE_LEADER = enum.auto()
    """Metadata names this broker as the leader."""

    LEADER_UNKNOWN = enum.auto()
    """Metadata says that the partition has no leader."""

    MAKE_FOLLOWER_TRUNCATING = enum.auto()
    """Metadata names another leader in a new epoch; before 2.8 the follower truncates first."""

    MAKE_FOLLOWER_FETCHING = enum.auto()
    """Metadata names another leader in a new epoch; fetch responses say what to truncate."""

    STOP_REPLICA = enum.auto()
    """Metadata no longer lists this broker among the replicas."""

    EPOCH_END_FOUND = enum.auto()
    """The leader said where the epoch ends, and the log is truncated there."""

    EPOCH_END_EARLIER = enum.auto()
    """The leader named an earlier epoch: the log is truncated, and the follower asks again."""

    RECORDS = enum.auto()
    """The leader sent records, or an empty response."""

    DIVERGING = enum.auto()
    """The leader said where the logs diverge, and the log is truncated there."""

    OUT_OF_RANGE = enum.auto()
    """The leader's log does not have the requested offset."""

    OFFSETS_LISTED = enum.auto()
    """The leader said where its log starts and ends."""

    FENCED = enum.auto()
    """The leader is in a newer epoch than the newest known here."""

    RETRY = enum.auto()
    """No response came in time, or a response with a retriable error."""


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
"""Every step of a replica; any other pair is refused and changes nothing."""

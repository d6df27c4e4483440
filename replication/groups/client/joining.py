"""Write the states of a classic member as a table: outside a group, joining, syncing, stable.

Example:

    >>> JOIN_TRANSITIONS[JoinState.STABLE, JoinInput.JOIN_SENT].name
    'PREPARING_REBALANCE'
    >>> (JoinState.UNJOINED, JoinInput.SYNCED) in JOIN_TRANSITIONS
    False

Source: AbstractCoordinator.MemberState, 4.3.1.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import attrs

from broker.group.members import UNKNOWN_MEMBER, MemberId


class JoinState(enum.Enum):
    """Name the states of a classic member, as Kafka's AbstractCoordinator.MemberState does."""

    UNJOINED = enum.auto()
    """The member is in no generation."""

    PREPARING_REBALANCE = enum.auto()
    """The member has sent JoinGroup and waits for the response; it sends no heartbeats."""

    COMPLETING_REBALANCE = enum.auto()
    """The member is in a generation and waits for its assignment."""

    STABLE = enum.auto()
    """The member has its assignment."""


class JoinInput(enum.Enum):
    """Name the events that change the state of a classic member."""

    JOIN_SENT = enum.auto()
    """The member sends JoinGroup."""

    JOINED = enum.auto()
    """The JoinGroup response carries the generation."""

    SYNCED = enum.auto()
    """The SyncGroup response carries the member's assignment."""

    RESET = enum.auto()
    """The coordinator refused the member for its id or generation, or the member left."""


JOIN_TRANSITIONS: Final[Mapping[tuple[JoinState, JoinInput], JoinState]] = MappingProxyType(
    {
        **{(state, JoinInput.JOIN_SENT): JoinState.PREPARING_REBALANCE for state in JoinState},
        (JoinState.PREPARING_REBALANCE, JoinInput.JOINED): JoinState.COMPLETING_REBALANCE,
        (JoinState.COMPLETING_REBALANCE, JoinInput.SYNCED): JoinState.STABLE,
        **{(state, JoinInput.RESET): JoinState.UNJOINED for state in JoinState},
    }
)
"""Every step that a classic member can take; a join may be sent again after one that failed."""


@attrs.frozen
class Membership:
    """Hold generation and member id in a member's own view; a member id without a generation is used to join."""

    generation: int = -1
    member_id: MemberId = UNKNOWN_MEMBER
    protocol_name: str | None = None


NO_MEMBERSHIP: Final = Membership()

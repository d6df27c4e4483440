"""The life of a classic consumer, as a table.

Decides what a member may be told to do next. From where it is joined it is STABLE until a rebalance; what fails
throws it back to UNJOINED.

Example: STABLE + JOIN_SENT is PREPARING_REBALANCE; UNJOINED + SYNCED is refused.

Source: AbstractCoordinator.MemberState, trunk 1eb7644 (2024-10).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import attrs

from broker.group.members import UNKNOWN_MEMBER, MemberId


class JoinState(enum.Enum):
    """Where a classic member is; names as Kafka's."""

    UNJOINED = enum.auto()
    """It is in no generation."""

    PREPARING_REBALANCE = enum.auto()
    """It has asked to join and waits for the others; it sends no heartbeats."""

    COMPLETING_REBALANCE = enum.auto()
    """It is in a generation and waits for its assignment."""

    STABLE = enum.auto()
    """It has its assignment."""


class JoinInput(enum.Enum):
    """What moves a classic member."""

    JOIN_SENT = enum.auto()
    """It asks to join."""

    JOINED = enum.auto()
    """It was told its generation."""

    SYNCED = enum.auto()
    """It was told its assignment."""

    RESET = enum.auto()
    """It was told that it is no member of its generation, or left."""


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
    """The generation that a member believes itself in; a name without a generation is one still to be joined with."""

    generation: int = -1
    member_id: MemberId = UNKNOWN_MEMBER
    protocol_name: str | None = None


NO_MEMBERSHIP: Final = Membership()

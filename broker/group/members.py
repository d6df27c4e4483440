"""Describe the members of a group, and a classic group as its record stores it.

Source: GroupMetadataValue, group-coordinator, 4.0.1.
"""

from __future__ import annotations

import enum
from itertools import pairwise
from typing import Final, NewType

import attrs

from broker.entropy import RandomSource
from broker.units import DurationMs

MemberId = NewType("MemberId", str)
InstanceId = NewType("InstanceId", str)

UNKNOWN_MEMBER: Final = MemberId("")
"""What a member calls itself before the coordinator has named it."""


class Departure(enum.Enum):
    """List the reasons why a coordinator removes a member from its group; the values are printed."""

    LEFT = "left"
    """It sent a LeaveGroup, or a heartbeat with a leaving epoch."""

    REPLACED = "replaced"
    """Another process has its group.instance.id now."""

    SESSION = "session timeout"
    """It was silent for its session."""

    JOIN = "join timeout"
    """It did not join within the rebalance timeout."""

    SYNC = "sync timeout"
    """It joined, and did not ask for its assignment."""

    REVOKE = "revocation timeout"
    """It did not give back in time what it was asked for."""


@attrs.frozen(kw_only=True)
class StoredMember:
    """Describe a member as the group's record in `__consumer_offsets` stores it."""

    member_id: MemberId
    instance_id: InstanceId | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: DurationMs
    session_timeout_ms: DurationMs
    subscription: bytes
    assignment: bytes


@attrs.frozen(kw_only=True)
class GroupRecord:
    """Hold a classic group's record in `__consumer_offsets`, from which another coordinator restores the group."""

    group_id: str
    protocol_type: str
    generation: int
    protocol_name: str | None
    leader_id: MemberId | None
    state_time_ms: int
    members: tuple[StoredMember, ...]


_CUTS: Final = (0, 8, 12, 16, 20, 32)


def random_uuid(entropy: RandomSource) -> str:
    """Return 32 random hexadecimal digits, grouped as in a UUID."""
    digits = "".join(f"{entropy.next_int() & 0xFFFFFFFF:08x}" for _ in range(4))
    return "-".join(digits[start:end] for start, end in pairwise(_CUTS))

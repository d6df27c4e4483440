"""Define the states of a classic group and the transitions between them, as a table.

Example: STABLE + REBALANCE is PREPARING_REBALANCE; STABLE + JOINED is refused.

Source: org.apache.kafka.coordinator.group.classic.ClassicGroupState, 4.0.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final


class GroupState(enum.Enum):
    """List the states of a classic group; names are Kafka's."""

    EMPTY = enum.auto()
    """It has no members; its offsets are kept until they expire."""

    PREPARING_REBALANCE = enum.auto()
    """Its members are asked to join, and those who do wait for the others."""

    COMPLETING_REBALANCE = enum.auto()
    """All have joined; they wait for the assignment that the leader computes."""

    STABLE = enum.auto()
    """Every member has its assignment, or can have it."""

    DEAD = enum.auto()
    """It is no longer here: deleted, or its coordinator has moved."""


class GroupInput(enum.Enum):
    """List the events that change the state of a classic group."""

    REBALANCE = enum.auto()
    """A member came, went or changed; or a sync did not come in time."""

    JOINED = enum.auto()
    """The joining is over, and there are members."""

    NOBODY_JOINED = enum.auto()
    """The joining is over, and there is none."""

    ASSIGNED = enum.auto()
    """The leader's assignment is stored."""

    DELETED = enum.auto()
    """The group was deleted, or its partition moved to another broker."""


GROUP_TRANSITIONS: Final[Mapping[tuple[GroupState, GroupInput], GroupState]] = MappingProxyType(
    {
        (GroupState.EMPTY, GroupInput.REBALANCE): GroupState.PREPARING_REBALANCE,
        (GroupState.STABLE, GroupInput.REBALANCE): GroupState.PREPARING_REBALANCE,
        (GroupState.COMPLETING_REBALANCE, GroupInput.REBALANCE): GroupState.PREPARING_REBALANCE,
        (GroupState.PREPARING_REBALANCE, GroupInput.JOINED): GroupState.COMPLETING_REBALANCE,
        (GroupState.PREPARING_REBALANCE, GroupInput.NOBODY_JOINED): GroupState.EMPTY,
        (GroupState.COMPLETING_REBALANCE, GroupInput.ASSIGNED): GroupState.STABLE,
        **{(state, GroupInput.DELETED): GroupState.DEAD for state in GroupState},
    }
)
"""Every step that a classic group can take; whatever is not here is refused."""

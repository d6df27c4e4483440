"""Write the states of a consumer-protocol member as a table.

What it decides: which input a member may take in which state: join, reconcile, acknowledge, leave, be fenced.

Example:

    >>> EPOCH_TRANSITIONS[EpochState.RECONCILING, EpochInput.RECONCILED].name
    'ACKNOWLEDGING'

Source: org.apache.kafka.clients.consumer.internals.MemberState, trunk 1eb7644 (2024-10); KIP-848.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final


class EpochState(enum.Enum):
    """The state of a member of a consumer group in its own view; names as Kafka's MemberState."""

    UNSUBSCRIBED = enum.auto()
    """It is in no group, and wants to be in none."""

    JOINING = enum.auto()
    """It asks to be let in, with epoch 0."""

    RECONCILING = enum.auto()
    """It was given something else than it owns, and is on its way there."""

    ACKNOWLEDGING = enum.auto()
    """It owns what it was given, and is about to say so."""

    STABLE = enum.auto()
    """It owns what it was given, and has said so."""

    FENCED = enum.auto()
    """The coordinator fenced it, and it loses what it owns."""

    LEAVING = enum.auto()
    """It says that it leaves."""

    STALE = enum.auto()
    """It left because its application does not poll."""

    FATAL = enum.auto()
    """It cannot go on."""


class EpochInput(enum.Enum):
    """What changes the state of a member of a consumer group."""

    JOIN = enum.auto()
    """It wants in."""

    GIVEN = enum.auto()
    """A heartbeat response carries an assignment that it does not own."""

    UNCHANGED = enum.auto()
    """A heartbeat response carries the assignment that it owns, or it has reported that it owns it."""

    RECONCILED = enum.auto()
    """It owns its assignment."""

    FENCE = enum.auto()
    """The coordinator does not know it, or not in its epoch."""

    LEAVE = enum.auto()
    """It goes, or its application did not poll in time."""

    LEFT = enum.auto()
    """It has said so."""

    LEFT_STALE = enum.auto()
    """It has said so, and will be back when its application polls."""

    FAIL = enum.auto()
    """A heartbeat response carries an error that it cannot recover from."""


_IN_GROUP: Final = (EpochState.JOINING, EpochState.RECONCILING, EpochState.ACKNOWLEDGING, EpochState.STABLE)

EPOCH_TRANSITIONS: Final[Mapping[tuple[EpochState, EpochInput], EpochState]] = MappingProxyType(
    {
        (EpochState.UNSUBSCRIBED, EpochInput.JOIN): EpochState.JOINING,
        (EpochState.FENCED, EpochInput.JOIN): EpochState.JOINING,
        (EpochState.STALE, EpochInput.JOIN): EpochState.JOINING,
        **{(state, EpochInput.GIVEN): EpochState.RECONCILING for state in _IN_GROUP},
        (EpochState.JOINING, EpochInput.UNCHANGED): EpochState.STABLE,
        (EpochState.RECONCILING, EpochInput.UNCHANGED): EpochState.STABLE,
        (EpochState.ACKNOWLEDGING, EpochInput.UNCHANGED): EpochState.STABLE,
        (EpochState.RECONCILING, EpochInput.RECONCILED): EpochState.ACKNOWLEDGING,
        **{(state, EpochInput.FENCE): EpochState.FENCED for state in _IN_GROUP},
        **{(state, EpochInput.LEAVE): EpochState.LEAVING for state in _IN_GROUP},
        (EpochState.LEAVING, EpochInput.LEFT): EpochState.UNSUBSCRIBED,
        (EpochState.LEAVING, EpochInput.LEFT_STALE): EpochState.STALE,
        **{(state, EpochInput.FAIL): EpochState.FATAL for state in EpochState if state is not EpochState.FATAL},
    }
)
"""Every step that a member can take."""

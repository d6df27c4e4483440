"""Write the states of a consumer-protocol member as a table.

Example:

    >>> EPOCH_TRANSITIONS[EpochState.RECONCILING, EpochInput.RECONCILED].name
    'ACKNOWLEDGING'

Source: org.apache.kafka.clients.consumer.internals.MemberState, 4.3.1; KIP-848.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final


class EpochState(enum.Enum):
    """Name the states of a consumer group's member in its own view, as Kafka's MemberState does."""

    UNSUBSCRIBED = enum.auto()
    """The member is in no group and subscribes to no topic."""

    JOINING = enum.auto()
    """The member sends heartbeats with epoch 0 to join."""

    RECONCILING = enum.auto()
    """The member has a target assignment that differs from its owned partitions, and reconciles."""

    ACKNOWLEDGING = enum.auto()
    """The member owns its target assignment, and has not sent the acknowledging heartbeat yet."""

    STABLE = enum.auto()
    """The member owns its target assignment, and has acknowledged it in a heartbeat."""

    FENCED = enum.auto()
    """The coordinator has fenced the member, which loses its partitions."""

    LEAVING = enum.auto()
    """The member sends the heartbeat that leaves the group."""

    STALE = enum.auto()
    """The member has left the group, as its application does not poll."""

    FATAL = enum.auto()
    """The member has failed with an error that it cannot recover from."""


class EpochInput(enum.Enum):
    """Name the events that change the state of a consumer group's member."""

    JOIN = enum.auto()
    """The member begins to join."""

    GIVEN = enum.auto()
    """A heartbeat response carries an assignment that differs from the owned partitions."""

    UNCHANGED = enum.auto()
    """A heartbeat response carries the owned assignment, or the member has acknowledged it."""

    RECONCILED = enum.auto()
    """The member owns its target assignment."""

    FENCE = enum.auto()
    """The coordinator does not know the member, or fences its member epoch."""

    LEAVE = enum.auto()
    """The member closes, or its application did not poll in time."""

    LEFT = enum.auto()
    """The member has sent the heartbeat that leaves the group."""

    LEFT_STALE = enum.auto()
    """The member has sent that heartbeat, and joins again when its application polls."""

    FAIL = enum.auto()
    """A heartbeat response carries a fatal error."""


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

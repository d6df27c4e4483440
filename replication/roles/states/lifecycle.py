"""A broker's own life, as the broker sees it: a table.

What it decides: when a broker that was started counts itself as running, and how it ends. What the controller holds
it for is another machine (`broker.registration`); the two meet in heartbeats.

Constraints: only a running broker is stopped in an orderly way; asked to stop earlier it goes on starting, as Kafka's
skips the controlled shutdown then. Nothing brings a broker back from SHUTTING_DOWN but its operator, who exists only
in simulations.

Example: STARTING + CAUGHT_UP is RECOVERY; RECOVERY + HEARTBEAT_UNFENCED is RUNNING; RUNNING + STOP_WANTED is
PENDING_CONTROLLED_SHUTDOWN; that + HEARTBEAT_SHUT_DOWN is SHUTTING_DOWN.

Left out: a process that dies, which ends this machine with its memory from any state; log directories that fail.

Source: Kafka core BrokerLifecycleManager and metadata BrokerState, commit 1eb7644 (2024-10); KIP-631.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final


class LifecycleState(enum.Enum):
    """What a broker process is doing; names as Kafka's BrokerState has them."""

    NOT_RUNNING = enum.auto()
    """It has not been started."""

    STARTING = enum.auto()
    """It asks for an epoch, then reads metadata up to its own registration."""

    RECOVERY = enum.auto()
    """It has read its own registration, and is fenced."""

    RUNNING = enum.auto()
    """It has been unfenced in this life; a later fencing leaves it running."""

    PENDING_CONTROLLED_SHUTDOWN = enum.auto()
    """It asks the controller to let it go, and serves meanwhile."""

    SHUTTING_DOWN = enum.auto()
    """It may close its logs and end."""


class LifecycleInput(enum.Enum):
    """What can happen to a broker process."""

    START = enum.auto()
    """It is started."""

    CAUGHT_UP = enum.auto()
    """It has read the metadata that holds its own registration."""

    HEARTBEAT_FENCED = enum.auto()
    """The controller answers a heartbeat and holds it for fenced."""

    HEARTBEAT_UNFENCED = enum.auto()
    """The controller answers a heartbeat and holds it for alive, perhaps stopping."""

    HEARTBEAT_SHUT_DOWN = enum.auto()
    """The controller answers that it may stop now."""

    STOP_WANTED = enum.auto()
    """Its operator wants it to stop."""

    STOP_CALLED_OFF = enum.auto()
    """Its operator no longer wants that: a simulation ends its faults so; Kafka's broker never hears it."""


_S, _I = LifecycleState, LifecycleInput
_HEARTBEATS: Final = (_I.HEARTBEAT_FENCED, _I.HEARTBEAT_UNFENCED, _I.HEARTBEAT_SHUT_DOWN)

LIFECYCLE_TRANSITIONS: Final[Mapping[tuple[LifecycleState, LifecycleInput], LifecycleState]] = MappingProxyType(
    {
        (_S.NOT_RUNNING, _I.START): _S.STARTING,
        **{(_S.STARTING, beat): _S.STARTING for beat in _HEARTBEATS},
        (_S.STARTING, _I.CAUGHT_UP): _S.RECOVERY,
        (_S.RECOVERY, _I.HEARTBEAT_FENCED): _S.RECOVERY,
        (_S.RECOVERY, _I.HEARTBEAT_SHUT_DOWN): _S.RECOVERY,
        (_S.RECOVERY, _I.HEARTBEAT_UNFENCED): _S.RUNNING,
        **{(_S.RUNNING, beat): _S.RUNNING for beat in _HEARTBEATS},
        (_S.RUNNING, _I.STOP_WANTED): _S.PENDING_CONTROLLED_SHUTDOWN,
        (_S.PENDING_CONTROLLED_SHUTDOWN, _I.HEARTBEAT_FENCED): _S.PENDING_CONTROLLED_SHUTDOWN,
        (_S.PENDING_CONTROLLED_SHUTDOWN, _I.HEARTBEAT_UNFENCED): _S.PENDING_CONTROLLED_SHUTDOWN,
        (_S.PENDING_CONTROLLED_SHUTDOWN, _I.HEARTBEAT_SHUT_DOWN): _S.SHUTTING_DOWN,
        (_S.PENDING_CONTROLLED_SHUTDOWN, _I.STOP_CALLED_OFF): _S.RUNNING,
        **{(_S.SHUTTING_DOWN, beat): _S.SHUTTING_DOWN for beat in _HEARTBEATS},
        (_S.SHUTTING_DOWN, _I.STOP_CALLED_OFF): _S.RUNNING,
    }
)
"""Every step of a broker's life; whatever is not here is refused and changes nothing."""

"""Define the states of a broker process as a table (BrokerLifecycleManager).

Only a RUNNING broker begins a controlled shutdown; a STOP_WANTED before changes nothing, as Kafka skips the controlled
shutdown then. Nothing leads back from SHUTTING_DOWN.

Source: Kafka core BrokerLifecycleManager and metadata BrokerState, 4.3.1; KIP-631.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final


class LifecycleState(enum.Enum):
    """Name the states of a broker process, as Kafka's BrokerState does."""

    NOT_RUNNING = enum.auto()
    """The process has not been started."""

    STARTING = enum.auto()
    """The broker registers, then reads metadata up to its own registration."""

    RECOVERY = enum.auto()
    """The broker has read its own registration, and is fenced."""

    RUNNING = enum.auto()
    """The broker was unfenced in this incarnation; a later fencing leaves it RUNNING."""

    PENDING_CONTROLLED_SHUTDOWN = enum.auto()
    """The broker asks for a controlled shutdown, and serves meanwhile."""

    SHUTTING_DOWN = enum.auto()
    """The broker may close its logs and end."""


class LifecycleInput(enum.Enum):
    """Name the events that change the state of a broker process."""

    START = enum.auto()
    """The process is started."""

    CAUGHT_UP = enum.auto()
    """The broker has read the metadata that holds its own registration."""

    HEARTBEAT_FENCED = enum.auto()
    """A heartbeat's answer says that the broker is fenced."""

    HEARTBEAT_UNFENCED = enum.auto()
    """A heartbeat's answer says that the broker is unfenced, perhaps in controlled shutdown."""

    HEARTBEAT_SHUT_DOWN = enum.auto()
    """A heartbeat's answer says that the broker may stop now."""

    STOP_WANTED = enum.auto()
    """An operator asks the broker to stop."""


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
        **{(_S.SHUTTING_DOWN, beat): _S.SHUTTING_DOWN for beat in _HEARTBEATS},
    }
)
"""Every step of a broker process; any other pair is refused and changes nothing."""

"""List the kinds of events of a group, its members, its topics and its coordinator.

Constraints: an event has no expected result; clients and coordinator decide how they react.
"""

from __future__ import annotations

import enum
from typing import Final

import attrs

from broker.units import DurationMs, TimeMs


class EventKind(enum.Enum):
    """Name the kinds of events; the value is used in files."""

    START = "start"
    """A member's process starts, or starts again."""

    CLOSE = "close"
    """A member's process closes its consumer: it leaves its group, unless it is static."""

    CRASH = "crash"
    """A member's process dies without a word to the coordinator."""

    BOUNCE = "bounce"
    """A member's process closes its consumer, and starts again after `for_ms`."""

    STALL = "stall"
    """A member's application does not poll for `for_ms`; the consumer's own threads go on."""

    FREEZE = "freeze"
    """A member's whole process stands still for `for_ms`, as in a long garbage collection."""

    CRASH_LEADING = "crash-leading"
    """A member's process dies when its JoinGroup response says that it leads, before it assigns."""

    TWIN = "twin"
    """A second process starts with the member's group.instance.id."""

    HOLD_COMMITS = "hold-commits"
    """A member's commits of the next `for_ms` arrive only after that time."""

    LOSE_ANSWER = "lose-answer"
    """The response to a member's next heartbeat is lost; in a consumer group, to the next that reports what it owns."""

    ADD_PARTITIONS = "add-partitions"
    """A topic has `count` partitions from now on."""

    FAILOVER = "failover"
    """The coordinator's broker dies, and starts again after `for_ms`."""


CLUSTER_KINDS: Final = (EventKind.START, EventKind.CRASH, EventKind.CLOSE, EventKind.STALL, EventKind.FREEZE)
"""The kinds that are drawn for members in a cluster under faults."""


@attrs.frozen
class Event:
    """Describe one event; `target` names a member or a topic, and is empty if the event is listed with its member."""

    at_ms: TimeMs
    kind: EventKind
    for_ms: DurationMs = attrs.field(default=DurationMs(0))
    target: str = ""
    count: int = 0

    def __str__(self) -> str:
        lasting = f" for {self.for_ms:,} ms" if self.for_ms else ""
        count = f" to {self.count}" if self.count else ""
        return f"{self.kind.value} {self.target}{count}{lasting}".replace("  ", " ")

"""Hold what the clients of a run wrote and read, for the checkers.

Source: the histories of Jepsen's Kafka workload.
"""

from __future__ import annotations

import attrs

from broker.ids import Offset
from broker.units import TimeMs
from broker.values import value
from replication.rules.produce import Fate


@attrs.define
class Write:
    """Hold one value of a producer; `offset` is known if it was acknowledged with acks=1 or all."""

    value: int
    partition: int
    acks: int
    sent_ms: TimeMs
    fate: Fate | None = None
    answered_ms: TimeMs = attrs.field(default=TimeMs(0))
    offset: Offset = attrs.field(default=Offset(-1))


@value
class ConsumedRecord:
    """Hold one record that a consumer received; `is_reset` means that its offset was reset just before."""

    consumer: int
    partition: int
    offset: Offset
    value: int
    seen_ms: TimeMs
    is_reset: bool


class History:
    """Hold writes by value, and consumed records in the order in which they were received."""

    def __init__(self) -> None:
        self.writes: list[Write] = []
        self.consumed_records: list[ConsumedRecord] = []
        self.successors: dict[int, int] = {}
        """The partition that has the name of a deleted one since it was created."""

    def number_of(self, partition: int) -> int:
        """Return the partition that has the name now which `partition` was created with."""
        while partition in self.successors:
            partition = self.successors[partition]
        return partition

    def write(self, partition: int, acks: int, now_ms: TimeMs) -> Write:
        """Add a write of a new value; values count from 0."""
        made = Write(len(self.writes), partition, acks, now_ms)
        self.writes.append(made)
        return made

"""What the clients of a run did and saw.

It decides nothing; checkers read it. A write is one value, sent perhaps several times; its fate is what the
producer may believe when it has given up or been answered. A consumed_record is one record that a consumer was shown.

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
    """One value of a producer. `offset` is known if it was acknowledged with acks=1 or all."""

    value: int
    partition: int
    acks: int
    sent_ms: TimeMs
    fate: Fate | None = None
    answered_ms: TimeMs = attrs.field(default=TimeMs(0))
    offset: Offset = attrs.field(default=Offset(-1))


@value
class ConsumedRecord:
    """One record that consumer `consumer` was shown. `is_reset` says that it had to find a new place before it."""

    consumer: int
    partition: int
    offset: Offset
    value: int
    seen_ms: TimeMs
    is_reset: bool


class History:
    """Writes by value, and consumed_records in the order in which they were made."""

    def __init__(self) -> None:
        self.writes: list[Write] = []
        self.consumed_records: list[ConsumedRecord] = []

    def write(self, partition: int, acks: int, now_ms: TimeMs) -> Write:
        """Begin a write of a new value; values count from 0."""
        made = Write(len(self.writes), partition, acks, now_ms)
        self.writes.append(made)
        return made

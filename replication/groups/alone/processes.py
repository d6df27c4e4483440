"""Hold the processes of a group run, and the records that they read.

What it decides: how many records a partition has at a time.

Source: ours.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from broker.ids import Offset, TopicPartition
from broker.units import SECOND_MS, TimeMs
from replication.groups.client.client import Client


@attrs.define(eq=False)
class Process:
    """Hold one process and its consumer; a member's second process has a mark behind its name."""

    name: str
    client: Client
    is_alive: bool = True
    frozen_until_ms: int = 0
    commits_held_until_ms: int = 0
    loses_answer: bool = False
    dies_leading: bool = False
    wakes_ms: int | None = None
    inbox: list[Callable[[], None]] = attrs.field(factory=list)
    clear_ms: dict[bool, int] = attrs.field(factory=lambda: {True: 0, False: 0})
    """When the last message towards brokers (True) and from them (False) arrives: the next is not before it."""


class Records:
    """Hold the records of each partition, which arrive at a constant rate from the partition's creation."""

    def __init__(self, records_per_second: int) -> None:
        self._rate = records_per_second
        self.made_ms: dict[TopicPartition, int] = {}

    def end_offset(self, partition: TopicPartition, now_ms: TimeMs) -> Offset:
        """Return the number of records that have arrived by `now_ms`."""
        return Offset((now_ms - self.made_ms[partition]) * self._rate // SECOND_MS)

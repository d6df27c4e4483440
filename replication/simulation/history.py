"""Hold what happened in a run: a line per state change, a digest of everything, and what the clients wrote and read.

Only whole numbers and text are hashed, never Python's own hash; so the digest is the same in every process.

Source: the histories of Jepsen's Kafka workload.
"""

from __future__ import annotations

import hashlib
import struct
from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import count
from typing import Final

from broker.units import TimeMs
from replication.checkers.clients import ConsumedRecord, Write
from replication.roles.messages import node_name

_KIND_BITS: Final = 6
_KIND_MAX: Final = (1 << _KIND_BITS) - 1
_NODE_MAX: Final = (1 << 17) - 1
_FREQUENT_COUNT: Final = 3
_LAST_COUNT: Final = 1_000
LINES_MAX: Final = 100_000
"""The lines that are kept when there are twice as many: a server that runs for days is not to fill the memory."""

LineSink = Callable[[str], None]


def discard_line(line: str) -> None:
    """Discard a line."""


class Trace:
    """Collect the last lines, pass each to `on_line`, and hash everything into a digest.

    Where earlier lines were dropped, the first one says how many.
    """

    def __init__(self, on_line: LineSink = discard_line) -> None:
        self.lines: list[str] = []
        self._dropped_count = 0
        self._lines_hash = hashlib.blake2b(digest_size=16)
        self._on_line = on_line
        self._hash = hashlib.blake2b(digest_size=16)
        self.kinds: defaultdict[type, int] = defaultdict(count().__next__)
        """The numbers of the message types, in the order in which they first occur."""
        self.events: list[int] = []
        """Delivered messages that are not hashed yet: `at_ms << 23 ^ node << 6 ^ kind`."""
        self._last: list[int] = []
        """The last messages that were hashed."""
        self._folded_count = 0

    @property
    def line_count(self) -> int:
        """Return how many lines were added, those dropped included; the note of these is none of them."""
        return self._dropped_count + len(self.lines) - (self._dropped_count > 0)

    def line(self, at_ms: TimeMs, text: str) -> None:
        """Add a line for a state change."""
        line = f"{at_ms:>9} ms  {text}"
        self.lines.append(line)
        self._lines_hash.update(f"{line}\n".encode())
        if len(self.lines) > 2 * LINES_MAX:
            has_note = self._dropped_count > 0
            self._dropped_count += len(self.lines) - LINES_MAX - has_note
            self.lines[:-LINES_MAX] = [f"{self._dropped_count:,} earlier lines were dropped"]
        self._on_line(line)

    def most_frequent(self) -> list[str]:
        """Return the messages delivered most often of late, with their receivers and how often."""
        names = {number: kind.__name__ for kind, number in self.kinds.items()}
        counts = Counter((event & _KIND_MAX, event >> _KIND_BITS & _NODE_MAX) for event in self.events or self._last)
        frequent = counts.most_common(_FREQUENT_COUNT)
        return [f"{names[kind]} at {node_name(node)} ({count:,})" for (kind, node), count in frequent]

    def fold(self) -> None:
        """Hash the messages delivered since the last call; call it now and then, as they take memory."""
        if self.events:
            self._last = self.events[-_LAST_COUNT:]
            self._hash.update(_as_bytes(self.events))
            self._folded_count += len(self.events)
            self.events.clear()

    @property
    def event_count(self) -> int:
        """Return the number of messages delivered."""
        return self._folded_count + len(self.events)

    @property
    def digest(self) -> str:
        """Return the digest of the history, 32 hexadecimal digits."""
        whole = self._hash.copy()
        whole.update(_as_bytes(self.events))
        whole.update(self._lines_hash.digest())
        return whole.hexdigest()


def _as_bytes(numbers: list[int]) -> bytes:
    return struct.pack(f">{len(numbers)}q", *numbers)


class History:
    """Hold writes by value, and consumed records in the order in which they were received."""

    def __init__(self) -> None:
        self.writes: list[Write] = []
        self.consumed_records: list[ConsumedRecord] = []
        self.successors: dict[int, int] = {}
        """The partition that has the name of a deleted one since it was created."""

    def number_of(self, partition: int) -> int:
        """Return the partition that now has the name under which `partition` was created."""
        while partition in self.successors:
            partition = self.successors[partition]
        return partition

    def write(self, partition: int, acks: int, now_ms: TimeMs) -> Write:
        """Add a write of a new value; values count from 0."""
        made = Write(len(self.writes), partition, acks, now_ms)
        self.writes.append(made)
        return made

"""Order producers by id as a Java HashMap does, which is the order inside snapshots.

What it decides: nothing else: the order follows from the ids, from the order in which they came, and from how many
there ever were at once.

Constraints: a table has 16 bins at first. It doubles when more than three quarters as many producers are in it, and
when a ninth one comes to one bin of fewer than 64. It never shrinks. A producer goes to the bin that the low bits of
its scrambled id name, behind those that are there.

Example: of 16 bins, ids 17 and 1 share one.

    >>> table = ProducerTable()
    >>> for producer_id in (17, 2, 1):
    ...     table.put(ProducerEntry(ProducerId(producer_id)))
    >>> [entry.producer_id for entry in table.entries()]
    [17, 1, 2]

Left out: bins of more than eight producers in larger tables, which Java keeps as trees and may order otherwise inside.

Source: java.util.HashMap and java.lang.Long.hashCode, Java 17.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from broker.ids import ProducerId
from log.producers.entry import ProducerEntry

_BIN_COUNT_MIN: Final = 16
_BIN_SIZE_MAX: Final = 8  # HashMap.TREEIFY_THRESHOLD.
_TREE_TABLE_SIZE_MIN: Final = 64  # HashMap.MIN_TREEIFY_CAPACITY.


class ProducerTable:
    """Hold producers by id, in the iteration order of java.util.HashMap."""

    __slots__ = ("_bin_count", "_by_id")

    def __init__(self) -> None:
        self._by_id: dict[ProducerId, ProducerEntry] = {}
        self._bin_count = _BIN_COUNT_MIN

    def __len__(self) -> int:
        return len(self._by_id)

    def get(self, producer_id: ProducerId) -> ProducerEntry | None:
        """Return a producer's entry, None if it is unknown."""
        return self._by_id.get(producer_id)

    def put(self, entry: ProducerEntry) -> None:
        """Add an entry, or replace the producer's old one."""
        is_new = entry.producer_id not in self._by_id
        self._by_id[entry.producer_id] = entry
        if is_new and self._bin_count < _TREE_TABLE_SIZE_MIN and self._crowd(entry.producer_id) > _BIN_SIZE_MAX:
            self._bin_count *= 2
        if len(self._by_id) > self._bin_count // 4 * 3:
            self._bin_count *= 2

    def remove(self, producer_ids: Iterable[ProducerId]) -> None:
        """Remove some producers; the table keeps its number of bins, as in Java."""
        for producer_id in producer_ids:
            del self._by_id[producer_id]

    def clear(self) -> None:
        """Remove all producers; the table keeps its number of bins, as in Java."""
        self._by_id.clear()

    def entries(self) -> tuple[ProducerEntry, ...]:
        """Return the entries bin by bin, within a bin in insertion order."""
        return tuple(sorted(self._by_id.values(), key=lambda entry: self._bin(entry.producer_id)))

    def _bin(self, producer_id: ProducerId) -> int:
        return _java_hash(producer_id) & self._bin_count - 1

    def _crowd(self, producer_id: ProducerId) -> int:
        """Return how many producers are in the bin of one; few are looked at, as it is asked of small tables only."""
        return sum(self._bin(other) == self._bin(producer_id) for other in self._by_id)


def _java_hash(producer_id: int) -> int:
    """Return Java's scrambled hash of a long, of which the low bits are the bin."""
    unsigned = producer_id % 2**64
    folded = (unsigned ^ unsigned >> 32) % 2**32
    return folded ^ folded >> 16

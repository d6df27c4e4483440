"""Compute what fetching from the closest replica (KIP-392), or another assignor, saves; replicas stay where they are.

Readers int64[P, Z + 2] count the groups that read each partition from each zone, then from racks that no broker has,
then without a zone, so that the cost does not grow with the groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int64Array
from placement.traffic.consumers import NOW
from placement.traffic.crossing import Crossing, Float64Array, produce, replication
from placement.traffic.zones import NO_ZONE, ZonedPartitions

CLOSEST: Final = "closest replica"
LEAST: Final = "least"
JOINED: Final = " + "


@attrs.frozen(kw_only=True)
class Change:
    """Hold what crosses zones after a change."""

    name: str
    produce: Crossing
    replicate: Crossing
    consume: Crossing

    @property
    def total(self) -> Crossing:
        """Return the sum of the three flows."""
        return self.produce.plus(self.replicate).plus(self.consume)


def no_readers(partitions: ZonedPartitions) -> Int64Array:
    """Return int64[P, Z + 2] for no group."""
    return np.zeros((partitions.count, len(partitions.zones) + 2), np.int64)


def add_readers(readers: Int64Array, rows: Int64Array, zones: NDArray[np.int8], is_read: NDArray[np.bool_]) -> None:
    """Count one group's reads in `readers`: of these rows, from these zones, where `is_read`."""
    np.add.at(readers, (rows[is_read], zones[is_read].astype(np.int64)), 1)  # A zone of -1 is the last column.


def changes_of(
    partitions: ZonedPartitions, shares: Float64Array, readers: Mapping[str, Int64Array], *, least: Crossing
) -> Iterator[Change]:
    """Yield what crosses zones now, after each change, and at the least.

    `readers` are by assignor, `least` is that of consume. Where `now` is not among the readers it is not known: then
    it is not yielded, nor is a change of it alone.
    """
    sent, replicated = produce(partitions, shares), replication(partitions)
    for name in sorted(readers, key=lambda name: (name != NOW, name)):
        for closest in (False, True):
            named = name if not closest else CLOSEST if name == NOW else f"{name}{JOINED}{CLOSEST}"
            consumed = _consumed(partitions, readers[name], closest=closest)
            yield Change(name=named, produce=sent, replicate=replicated, consume=consumed)
    yield Change(name=LEAST, produce=sent, replicate=replicated, consume=least)


def _consumed(partitions: ZonedPartitions, readers: Int64Array, *, closest: bool) -> Crossing:
    """Return what all groups fetch, as `fetches_cross` counts each of them."""
    led, zones = partitions.leaders >= 0, partitions.leader_zones
    of_zones, all_reads = readers[:, :-1], np.where(led, readers.sum(axis=1), 0)
    known = led & (zones != NO_ZONE)
    if closest:
        inside = (partitions.readable[:, None] >> np.arange(of_zones.shape[1], dtype=np.int64)) & 1
    else:
        inside = zones[:, None] == np.arange(of_zones.shape[1])
    crosses = (of_zones * (1 - inside)).sum(axis=1)
    return Crossing.of(
        np.where(known, crosses, 0).astype(np.float64),
        np.where(known, readers[:, -1], all_reads).astype(np.float64),
        all_reads.astype(np.float64),
        partitions.sizes,
    )

"""Compute what fetching from the closest replica, another assignor or a leader move saves.

What it decides: for a cluster and all its groups, what each flow sends across zones now and after each change, and the
least that each flow could send. Leaders move to the in-sync replica from which produce, replication and consume
together cross zones least; a leader stays where no other is better. The least of produce and of replication is that of
the best leader for this flow alone, of consume the sum of the groups' bounds: no change reaches less, and one change
seldom reaches all three.

Constraints: replicas stay where they are. Leaders may become less even: `leader_count_max` says how far. Where it is
not known what groups read now, `now` and the changes of it are left out.

How: readers int64[P, Z + 2] count the groups that read each partition from each zone, then from racks that no broker
has, then without a zone. Any assignment of any number of groups is such a matrix, so that the cost does not grow with
the groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import PAD, Int32Array, Int64Array
from placement.traffic.consumers import NOW
from placement.traffic.crossing import Crossing, Float64Array, produce, replication
from placement.traffic.zones import NO_ZONE, ZonedPartitions

CLOSEST: Final = "closest replica"
LEADERS: Final = "leaders"
LEAST: Final = "least"
JOINED: Final = " + "


@attrs.frozen(kw_only=True)
class Change:
    """Hold what crosses zones after a change, and what it moves: leaders, and partitions between members."""

    name: str
    produce: Crossing
    replicate: Crossing
    consume: Crossing
    moved_leader_count: int = 0
    leader_count_max: int = 0

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
    state = _State(partitions, shares, partitions.leaders, partitions.leader_zones)
    now = readers.get(NOW)
    if now is not None:
        yield state.change(NOW, now, closest=False)
        yield state.change(CLOSEST, now, closest=True)
    for name in sorted(set(readers) - {NOW}):
        yield state.change(name, readers[name], closest=False)
        yield state.change(f"{name}{JOINED}{CLOSEST}", readers[name], closest=True)
    if now is not None:
        yield state.moved(now).change(LEADERS, now, closest=False)
        yield state.moved(None).change(f"{LEADERS}{JOINED}{CLOSEST}", now, closest=True)
    produced, replicated = state.moved(None, replicates=False), state.moved(None, produces=False)
    yield Change(
        name=LEAST,
        produce=produced.produce,
        replicate=replicated.replicate,
        consume=least,
    )


@attrs.frozen(eq=False)
class _State:
    """Hold who leads each partition, beside what does not change."""

    partitions: ZonedPartitions
    shares: Float64Array
    leaders: Int32Array
    leader_zones: NDArray[np.int8]

    @property
    def produce(self) -> Crossing:
        return produce(self.partitions, self.shares, self.leader_zones)

    @property
    def replicate(self) -> Crossing:
        return replication(self.partitions, self.leader_zones, self.leaders)

    def consume(self, readers: Int64Array, *, closest: bool) -> Crossing:
        """Return what all groups fetch, as `fetches_cross` counts each of them."""
        led = self.leaders >= 0
        of_zones, all_reads = readers[:, :-1], np.where(led, readers.sum(axis=1), 0)
        known = led & (self.leader_zones != NO_ZONE)
        if closest:
            zones = np.arange(of_zones.shape[1], dtype=np.int64)
            inside = (self.partitions.readable[:, None] >> zones) & 1
            crosses = (of_zones * (1 - inside)).sum(axis=1)
        else:
            crosses = of_zones.sum(axis=1) - _taken(of_zones, self.leader_zones)
        unknown = np.where(known, readers[:, -1], all_reads)
        return Crossing.of(
            np.where(known, crosses, 0).astype(np.float64),
            unknown.astype(np.float64),
            all_reads.astype(np.float64),
            self.partitions.sizes,
        )

    def change(self, name: str, readers: Int64Array, *, closest: bool) -> Change:
        counts = np.unique(self.leaders[self.leaders >= 0], return_counts=True)[1]
        return Change(
            name=name,
            produce=self.produce,
            replicate=self.replicate,
            consume=self.consume(readers, closest=closest),
            moved_leader_count=int((self.leaders != self.partitions.leaders).sum()),
            leader_count_max=int(counts.max(initial=0)),
        )

    def moved(self, readers: Int64Array | None, *, produces: bool = True, replicates: bool = True) -> _State:
        """Return the state with the leaders from which the flows together cross zones least.

        `readers` are those that fetch from leaders. A partition whose leader or a replica has no zone stays as it is.
        """
        of = self.partitions
        zones, zone_count = of.replica_zones, len(of.zones)
        if not zones.shape[1]:  # No partition has a replica.
            return self
        may_lead = of.in_sync & of.has_zones[:, None]
        costs = np.zeros(zones.shape, np.float64)
        if produces:
            costs += 1.0 - np.concatenate([self.shares, [0.0]])[zones]
        held = _counted(zones, of.replicas != PAD, zone_count)
        if replicates:
            costs += held.sum(axis=1)[:, None] - _by_zone(held, zones)
        if readers is not None:
            costs += readers[:, :-1].sum(axis=1)[:, None] - _by_zone(readers[:, :-1], zones)
        costs = np.where(may_lead, costs, np.inf)
        now = of.replicas == self.leaders[:, None]
        stays = np.where(now & may_lead, costs, np.inf).min(axis=1, initial=np.inf)
        best = costs.min(axis=1, initial=np.inf)
        place = costs.argmin(axis=1)
        # What is equal to a rounding of the shares does not move a leader.
        moves = of.has_zones & (best < stays - 1e-9) & np.isfinite(stays)
        at = np.arange(of.count), place
        leaders = np.where(moves, of.replicas[at], self.leaders).astype(np.int32)
        leader_zones = np.where(moves, zones[at], self.leader_zones).astype(np.int8)
        return attrs.evolve(self, leaders=leaders, leader_zones=leader_zones)


def _counted(zones: NDArray[np.int8], holds: NDArray[np.bool_], zone_count: int) -> Int64Array:
    """Return int64[P, Z]: how many replicas of each partition stand in each zone."""
    counts = np.zeros((len(zones), zone_count + 1), np.int64)
    rows, columns = np.nonzero(holds)
    np.add.at(counts, (rows, zones[rows, columns].astype(np.int64)), 1)
    return counts[:, :-1]


def _by_zone(counts: Int64Array, zones: NDArray[np.int8]) -> Int64Array:
    """Return int64[P, W]: of each partition, the count of each replica's zone; 0 without a zone."""
    found = np.take_along_axis(
        np.concatenate([counts, np.zeros((len(counts), 1), np.int64)], axis=1),
        np.where(zones == NO_ZONE, counts.shape[1], zones).astype(np.int64),
        axis=1,
    )
    return np.asarray(found, np.int64)


def _taken(counts: Int64Array, zones: NDArray[np.int8]) -> Int64Array:
    return _by_zone(counts, zones[:, None])[:, 0]

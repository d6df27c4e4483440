"""Look up racks as the sticky assignors do: whether a member may keep or get a partition, and the order of free ones.

Source: AbstractStickyAssignor.RackInfo, 4.3.1.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from broker.cluster import Int32Array, Int64Array
from placement.consumer.group import Group
from placement.consumer.racks import ReplicaRacks


@attrs.frozen(eq=False)
class StickyRacks:
    """Hold the racks in use; no member has one unless the assignment is rack-aware."""

    member_racks: tuple[str | None, ...]
    replica_racks: ReplicaRacks
    match_counts: Int64Array | None

    @classmethod
    def of(cls, group: Group, partitions: Int32Array) -> StickyRacks:
        """Return the racks of a group whose `partitions`, ids, are assigned."""
        racks = group.replica_racks
        any_rack = any(group.member_racks)
        aware = any_rack and racks.aware(group.member_racks, racks.codes[partitions])
        return cls(
            tuple(rack or None if aware else None for rack in group.member_racks),
            racks,
            racks.match_count(group.member_racks) if any_rack else None,
        )

    @property
    def looked_at(self) -> bool:
        """Return whether the assignment is rack-aware."""
        return any(self.member_racks)

    def mismatch(self, member: int, partition: int) -> bool:
        """Return whether the member has a rack and the partition, existing or not, has no replica there."""
        rack = self.member_racks[member]
        if rack is None:
            return False
        codes = self.replica_racks.codes
        return partition >= len(codes) or rack not in self.replica_racks.sets[codes[partition]]

    def match(self, member: int, partition: int) -> bool:
        """Return whether the member has a rack and the partition has a replica there."""
        return self.member_racks[member] is not None and not self.mismatch(member, partition)

    def in_order(self, partitions: Sequence[int]) -> list[int]:
        """Return the partitions in the order in which Kafka assigns them."""
        if self.match_counts is None:
            return list(partitions)
        counts = self.match_counts[self.replica_racks.codes].tolist()
        return sorted(partitions, key=counts.__getitem__)

    def next_match(self, partition: int, members: Sequence[int], first: int) -> int | None:
        """Return the index of the next matching member, from index `first` and around; None if there is none."""
        places = (*range(first, len(members)), *range(first))
        return next((place for place in places if self.match(members[place], partition)), None)


def assigned_partitions(group: Group, topics: Sequence[bool] | np.ndarray) -> Int32Array:
    """Return the ids of all partitions of these topics, bool[T], in order of id."""
    return np.flatnonzero(np.repeat(topics, np.maximum(group.partition_counts, 0))).astype(np.int32)

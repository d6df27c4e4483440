"""Look up the racks of each partition's replicas, and whether Kafka assigns rack-aware.

Source: Kafka's AbstractPartitionAssignor.useRackAwareAssignment, 4.3.1; KIP-881.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs
import numpy as np

from broker.cluster import Int32Array, Int64Array
from broker.errors import UsageError
from broker.wording import counted

RackSet = frozenset[str]


@attrs.frozen(eq=False)
class ReplicaRacks:
    """Hold the rack set number of each existing partition, by id: `codes` int32[P] indexes `sets`."""

    sets: tuple[RackSet, ...]
    codes: Int32Array

    @classmethod
    def unknown(cls, partition_count: int) -> ReplicaRacks:
        """Return racks that are all unknown."""
        return cls((frozenset(),), np.zeros(partition_count, np.int32))

    @classmethod
    def of(cls, topics: Iterable[Sequence[Sequence[str]] | None], counts: Iterable[int]) -> ReplicaRacks:
        """Return the racks of each topic's partitions; None stands for a topic with unknown racks.

        Raises UsageError when a topic has racks of more or fewer partitions than it has.
        """
        numbers: dict[RackSet, int] = {frozenset(): 0}
        codes: list[int] = []
        for place, (racks, count) in enumerate(zip(topics, counts, strict=True)):
            if racks is None:
                codes.extend([0] * max(0, count))
                continue
            if len(racks) != count:
                raise UsageError(
                    f"topic {place} has {counted(count, 'partition')} and the replicas' racks of {len(racks)}"
                )
            codes.extend(numbers.setdefault(frozenset(row), len(numbers)) for row in racks)
        return cls(tuple(numbers), np.array(codes, np.int32))

    def aware(self, member_racks: Iterable[str | None], codes: Int32Array) -> bool:
        """Return whether Kafka assigns rack-aware for partitions of these `codes`.

        It does when some member stands in a rack with a replica, and not every rack has replicas of all.
        """
        wanted = {rack for rack in member_racks if rack}
        if not wanted or len(self.sets) == 1:
            return False
        used = [self.sets[code] for code in np.unique(codes).tolist()]
        every = frozenset[str]().union(*used)
        return not wanted.isdisjoint(every) and any(one != every for one in used)

    def match_count(self, member_racks: Iterable[str | None]) -> Int64Array:
        """Return int64[sets]: the number of members in a rack of each set."""
        racks = [rack for rack in member_racks if rack]
        return np.array([sum(rack in one for rack in racks) for one in self.sets], np.int64)

"""Hold the zone of every replica and leader of a cluster, and the bytes that producers send to each partition.

A zone is a broker's rack (`broker.rack`); a broker without a rack has none, and what it sends and receives is counted
as unknown. The zones of a partition's replicas are the bits of one number, in order of name.

Source: KIP-36 for racks; KIP-392 for which replicas a consumer may fetch from: the leader and in-sync followers
(kafka.server.ReplicaManager.findPreferredReadReplica, 4.3.1).
"""

from __future__ import annotations

from functools import cached_property
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.broker_rows import broker_rows
from broker.cluster import PAD, ClusterView, Int32Array, Int64Array
from broker.errors import UsageError
from placement.balance.loads import leaders, replica_bytes

NO_ZONE: Final = -1
ZONE_COUNT_MAX: Final = 62
"""Bits of a Java long, without its sign."""

Int8Matrix = NDArray[np.int8]


@attrs.frozen(eq=False, kw_only=True)
class ZonedPartitions:
    """Hold the partitions of a cluster in order of topic and number.

    `replica_zones` int8[P, W] and `leader_zones` int8[P] index `zones`, NO_ZONE for none, for padding and for unknown;
    `bits` int64[P] are the zones of all replicas, `readable` those of the leader and the in-sync followers. `sizes`
    int64[P] are bytes, None where they are not known.
    """

    zones: tuple[str, ...]
    topics: tuple[str, ...]
    starts: Int64Array
    replicas: Int32Array
    leaders: Int32Array
    replica_zones: Int8Matrix
    leader_zones: NDArray[np.int8]
    in_sync: NDArray[np.bool_]
    sizes: Int64Array | None

    @classmethod
    def of(cls, view: ClusterView, sizes: Int64Array | None = None) -> ZonedPartitions:
        """Return the partitions of a cluster; `sizes` int64[P], in the order of the view, stand for produced bytes.

        Without them, bytes are those of the largest replica. Raises UsageError for partitions that are not all listed,
        unknown leaders, and too many racks.
        """
        table, zones = view.partitions, tuple(sorted({one.rack for one in view.brokers if one.rack}))
        if view.wholeness.refusal is not None:
            raise UsageError(f"cluster {view.name!r}: {view.wholeness.refusal}, so that traffic is not known")
        if len(zones) > ZONE_COUNT_MAX:
            raise UsageError(f"cluster {view.name!r} has {len(zones)} racks; traffic is known up to {ZONE_COUNT_MAX}")
        leader = leaders(table, assume_preferred=True)
        assert leader is not None
        number = {zone: place for place, zone in enumerate(zones)}
        of_broker = np.array([number.get(one.rack or "", NO_ZONE) for one in view.brokers] + [NO_ZONE], np.int8)
        order = np.lexsort((table.partition_ids, table.topic_index))
        topic_index = table.topic_index[order]
        starts = np.searchsorted(topic_index, np.arange(len(view.topics) + 1)).astype(np.int64)
        _refuse_gaps(view, table.partition_ids[order], topic_index, starts)
        replicas = table.replicas[order]
        # The last entry stands for -1: padding, and no leader.
        return cls(
            zones=zones,
            topics=tuple(topic.name for topic in view.topics),
            starts=starts,
            replicas=replicas,
            leaders=leader[order],
            replica_zones=of_broker[broker_rows(view.broker_ids, replicas)],
            leader_zones=of_broker[broker_rows(view.broker_ids, leader[order])],
            in_sync=_in_sync(replicas, None if table.isr is None else table.isr[order]),
            sizes=_sizes(view, sizes, order),
        )

    @property
    def count(self) -> int:
        """Return the number of partitions."""
        return len(self.leaders)

    @cached_property
    def bits(self) -> Int64Array:
        """Return int64[P]: the zones of all replicas of each partition."""
        return bits_of(self.replica_zones)

    @cached_property
    def readable(self) -> Int64Array:
        """Return int64[P]: the zones of the leader and the in-sync followers of each partition."""
        followers = bits_of(np.where(self.in_sync, self.replica_zones, np.int8(NO_ZONE)))
        found = np.where(self.leaders >= 0, followers | bits_of(self.leader_zones[:, None]), 0)
        return found.astype(np.int64)

    def rows_of(self, topic: str) -> range:
        """Return the rows of a topic's partitions; an empty range for a topic that is not there."""
        place = self._topic_places.get(topic)
        return range(0) if place is None else range(int(self.starts[place]), int(self.starts[place + 1]))

    @cached_property
    def _topic_places(self) -> dict[str, int]:
        return {topic: place for place, topic in enumerate(self.topics)}


def bits_of(zones: NDArray[np.int8]) -> Int64Array:
    """Return int64[P]: bit z set where a row of int8[P, W] names zone z."""
    named = np.where(zones >= 0, np.left_shift(np.int64(1), np.maximum(zones, 0).astype(np.int64)), 0)
    found: Int64Array = np.bitwise_or.reduce(named, axis=1) if zones.shape[1] else np.zeros(len(zones), np.int64)
    return found


def _in_sync(replicas: Int32Array, isr: Int32Array | None) -> NDArray[np.bool_]:
    """Return bool[P, W]: whether each replica is in the ISR; all are where the input does not say."""
    holds: NDArray[np.bool_] = replicas != PAD
    if isr is None:
        return holds
    found: NDArray[np.bool_] = np.zeros(replicas.shape, np.bool_)
    for column in range(isr.shape[1]):
        found |= replicas == isr[:, column : column + 1]
    found &= holds
    return found


def _sizes(view: ClusterView, given: Int64Array | None, order: NDArray[np.intp]) -> Int64Array | None:
    if given is not None:
        if len(given) != view.partitions.count or (len(given) and int(given.min()) < 0):
            raise UsageError(f"bytes of {len(given)} of {view.partitions.count} partitions; allowed are 0 or more each")
        return given[order]
    each = replica_bytes(view.partitions)
    if each is None:
        return None
    largest: Int64Array = np.where(view.partitions.replicas != PAD, each, 0).max(axis=1, initial=0).astype(np.int64)
    return largest[order]


def _refuse_gaps(view: ClusterView, numbers: Int32Array, topic_index: Int32Array, starts: Int64Array) -> None:
    wrong = np.flatnonzero(numbers != np.arange(len(numbers)) - starts[topic_index])
    if wrong.size:
        topic = view.topics[int(topic_index[wrong[0]])].name
        wanted = int(wrong[0] - starts[topic_index[wrong[0]]])
        raise UsageError(f"partition {wanted} of topic {topic!r} of cluster {view.name!r} is not listed")

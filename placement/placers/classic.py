"""Place replicas as Kafka did before KRaft: leaders round-robin, followers at a growing shift.

What it decides: which brokers hold each partition of a new topic, or of the partitions added to one.

Goals, most important first:
1. Leaders are spread evenly: consecutive partitions are led by consecutive brokers of a ring.
2. Followers of one leader are spread over all other brokers: after each full round of the
   ring the followers shift by one more place, so a lost broker's work falls on many.
3. With racks, the replicas of a partition stand in as many racks as there can be.

Constraints: a broker holds a partition once. Either every broker has a rack or racks are
ignored; some with and some without is refused. Fencing is not looked at.

How, without racks, N brokers in the order given
Partition p is led from place L = (p + start index) mod N. Follower j (from 0) stands at
L + 1 + (shift + j) mod (N-1), again mod N, so never on the leader. The shift grows by one
before each partition p > 0 that N divides. It starts from the given one in each call: a
topic grown from 5 to 10 partitions is not the topic created with 10.

How, with R racks
The ring takes one broker from each rack in turn, racks in Java's string order, brokers
ascending, exhausted racks passed over. Candidates k = 0, 1, … for the followers stand at
L + 1 + (shift·R + k) mod (N-1); k goes on over rejected ones. A candidate is rejected
while its rack holds a replica and some rack holds none, or if it holds one itself.

The start index and the first shift are either one given number, or two draws: start index
first. Sums wrap as Java's 32-bit numbers do, so a start index near 2^31 can point
before the ring: Java then throws, and so do we, with IndexOutOfBoundsError.

Example: six brokers, start index and shift 4; at partition 6 the shift has grown to 5:

    >>> from broker.cluster import BrokerView
    >>> from broker.entropy import JavaRandom
    >>> from broker.ids import BrokerId
    >>> brokers = [BrokerView(id=BrokerId(number)) for number in range(6)]
    >>> spec = PlacementSpec(start_partition=0, partition_count=7, replication_factor=3)
    >>> ClassicPlacer(fixed_start_index=4).place(spec, brokers, JavaRandom(42))
    array([[4, 3, 5],
           [5, 4, 0],
           [0, 5, 1],
           [1, 0, 2],
           [2, 1, 3],
           [3, 2, 4],
           [4, 5, 0]], dtype=int32)

Left out: balancing against the replicas that brokers hold already; Kafka never did.

Source: org.apache.kafka.admin.AdminUtils, 4.0, and kafka.zk.AdminZkClient (growth), 3.9.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

import attrs
import numpy as np

from broker.cluster import BrokerView, Int32Array
from broker.entropy import RandomSource
from broker.errors import (
    AdminOperationError,
    IndexOutOfBoundsError,
    InvalidPartitionsError,
    InvalidReplicationFactorError,
    UsageError,
)
from broker.ids import INT32_MAX, BrokerId
from placement.placers.broker_columns import NO_RACK, BrokerColumns, PlacementCalls
from placement.placers.classic_kernel import fill_classic
from placement.spec import PlacementSpec

COMPILED_STEP_COUNT_MIN: Final = 500
"""Fewer steps take plain Python less than a millisecond, and need no kernel to be loaded, which takes half a second."""


@attrs.frozen(kw_only=True)
class ClassicStart:
    """Hold the random start of a call: the leader's index in the ring for partition 0, and the followers' first shift.

    Both are 0..2147483647 and may be larger than the ring.
    """

    start_index: int
    shift: int

    def __attrs_post_init__(self) -> None:
        for name, value in (("start index", self.start_index), ("shift", self.shift)):
            if not 0 <= value <= INT32_MAX:
                raise UsageError(f"{name} is {value}; allowed are whole numbers from 0 to {INT32_MAX}")


@attrs.frozen(eq=False)
class Ring:
    """Hold the order of brokers in which leaders rotate, as built by `ring_of`.

    Shapes: `positions` int32[N] into the broker columns; `racks` int32[N] their rack codes, or None when racks are
    not looked at. `rack_count` is what the shift is multiplied by: 1 without racks.
    """

    positions: Int32Array
    racks: Int32Array | None
    rack_count: int

    @property
    def rack_codes(self) -> Int32Array:
        """Return the rack of each broker; one for all when racks are not looked at."""
        return np.zeros_like(self.positions) if self.racks is None else self.racks


@attrs.frozen
class ClassicPlacer:
    """Place as Kafka's `AdminUtils.assignReplicasToBrokers` does.

    `fixed_start_index` sets the start index and the first shift. None, or a negative number as in Kafka, has both
    drawn from the entropy for each call. Brokers are taken in the order given; Kafka's callers sorted them by id.
    """

    fixed_start_index: int | None = None

    def place(self, spec: PlacementSpec, brokers: Sequence[BrokerView], entropy: RandomSource) -> Int32Array:
        """Return int32[partition_count, replication_factor], the preferred leader of each row first.

        A negative `spec.start_partition` counts as 0. Raises InvalidPartitionsError, InvalidReplicationFactorError
        and AdminOperationError in Kafka's order and words; nothing is drawn then.
        """
        _check_request(spec, len(brokers))
        columns = BrokerColumns.of(brokers)
        ring = ring_of(columns)
        start = self._start(columns.count, entropy)
        return _rows(spec, ring, start, columns.ids)

    def _start(self, broker_count: int, entropy: RandomSource) -> ClassicStart:
        if self.fixed_start_index is not None and self.fixed_start_index >= 0:
            return ClassicStart(start_index=self.fixed_start_index, shift=self.fixed_start_index)
        return ClassicStart(
            start_index=entropy.next_int_bound(broker_count), shift=entropy.next_int_bound(broker_count)
        )


def ring_of(columns: BrokerColumns) -> Ring:
    """Return the ring of these brokers: alternating between racks if they have racks, else in the order given.

    Raises AdminOperationError when only some have a rack. Cost: B log B.
    """
    racked = columns.rack_codes != NO_RACK
    if not racked.any():
        return Ring(positions=np.arange(columns.count, dtype=np.int32), racks=None, rack_count=1)
    if not racked.all():
        raise AdminOperationError("Not all brokers have rack information for replica rack aware assignment.")
    by_rack = np.lexsort((columns.ids, columns.rack_codes))
    codes = columns.rack_codes[by_rack]
    # How many of its own rack stand before each broker: the round in which its rack gives it.
    rounds = np.arange(columns.count) - np.searchsorted(codes, codes)
    positions = by_rack[np.lexsort((codes, rounds))].astype(np.int32)
    return Ring(positions=positions, racks=columns.rack_codes[positions], rack_count=len(columns.rack_names))


def rack_alternated_brokers(brokers: Sequence[BrokerView]) -> tuple[BrokerId, ...]:
    """Return the ids alternating between racks, as AdminUtils.getRackAlternatedBrokerList.

    Without any racks this is the order given. Raises AdminOperationError when only some brokers have a rack.
    """
    columns = BrokerColumns.of(brokers)
    return tuple(BrokerId(value) for value in columns.ids[ring_of(columns).positions].tolist())


def grow_topic(topic: str, replicas: Int32Array, partition_count: int, brokers: Sequence[BrokerView]) -> Int32Array:
    """Return the rows that Kafka's ZooKeeper-era controller adds when `topic` grows to `partition_count` partitions.

    `replicas` int32[existing, W] are the topic's rows now, -1 pads. The start index is the place, by ascending id,
    of the first broker whose id is at least that of partition 0's first replica, or 0; the factor is partition 0's.
    Raises UsageError without a partition 0, InvalidPartitionsError unless the number grows, and what placing raises.
    """
    existing_count = len(replicas)
    if existing_count == 0:
        raise UsageError(f"topic {topic} has no partition 0 to take the replication factor from")
    if partition_count <= existing_count:
        raise InvalidPartitionsError(
            f"The number of partitions for a topic can only be increased. Topic {topic} currently has "
            f"{existing_count} partitions, {partition_count} would not be an increase."
        )
    spec = PlacementSpec(
        start_partition=existing_count,
        partition_count=partition_count - existing_count,
        replication_factor=int(np.count_nonzero(replicas[0] >= 0)),
    )
    _check_request(spec, len(brokers))
    columns = BrokerColumns.of(sorted(brokers, key=lambda broker: broker.id))
    place = int(np.searchsorted(columns.ids, replicas[0, 0]))
    start_index = place if place < columns.count else 0
    return _rows(spec, ring_of(columns), ClassicStart(start_index=start_index, shift=start_index), columns.ids)


def readable_rows(spec: PlacementSpec, ring: Ring, start: ClassicStart) -> Int32Array:
    """Return the rows as broker positions by the readable algorithm, which specifies the fast paths."""
    rows = [[int(ring.positions[place]) for place in row] for row in _places(spec, ring, start)]
    return np.array(rows, dtype=np.int32)


def compiled_rows(spec: PlacementSpec, ring: Ring, start: ClassicStart, ids: Int32Array) -> Int32Array:
    """Return the rows of `readable_rows` as ids of `ids` int32[N], compiled unless Java's int would overflow."""
    if _may_overflow(spec, ring, start):
        return ids[readable_rows(spec, ring, start)]
    calls = PlacementCalls.of(spec)
    rows = calls.empty_rows()
    numbers = np.column_stack(
        (
            calls.start_partitions,
            calls.partition_counts,
            calls.replication_factors,
            np.array([(start.start_index, start.shift)], dtype=np.int32),
        )
    )
    fill_classic(rows, numbers, ids[ring.positions], ring.rack_codes, ring.rack_count)
    return rows


def _places(spec: PlacementSpec, ring: Ring, start: ClassicStart) -> Iterator[list[int]]:
    size = len(ring.positions)
    shift = start.shift
    first = max(0, spec.start_partition)
    for partition in range(first, first + spec.partition_count):
        if partition > 0 and partition % size == 0:
            # Once round the ring, the shift grows: the brokers that share partitions with a leader change.
            shift = _java_int(shift + 1)
        leader = _java_place(_java_int(partition + start.start_index), size)
        row = [leader]
        candidate = rejected_count = 0
        while len(row) < spec.replication_factor:
            steps = _java_int(_java_int(shift * ring.rack_count) + candidate)
            place = _java_place(leader + 1 + _java_remainder(steps, size - 1), size)
            eligible = _is_eligible(place, row, ring)
            if eligible:
                row.append(place)
            rejected_count = 0 if eligible else rejected_count + 1
            # Below zero only some places are met, over and over: Kafka walks on for minutes; we go where it gets.
            candidate += -steps if steps < 0 and rejected_count >= size else 1
        yield row


def _is_eligible(place: int, row: list[int], ring: Ring) -> bool:
    if ring.racks is None:
        return True
    racks_used = {int(ring.racks[used]) for used in row}
    # A rack is used twice only when every rack has a replica.
    rack_is_free = int(ring.racks[place]) not in racks_used or len(racks_used) == ring.rack_count
    return rack_is_free and place not in row


def _rows(spec: PlacementSpec, ring: Ring, start: ClassicStart, ids: Int32Array) -> Int32Array:
    # Each candidate is compared with the replicas that its row has, and a small rack rejects many candidates.
    if spec.partition_count * spec.replication_factor**2 < COMPILED_STEP_COUNT_MIN:
        return ids[readable_rows(spec, ring, start)]
    return compiled_rows(spec, ring, start, ids)


def _may_overflow(spec: PlacementSpec, ring: Ring, start: ClassicStart) -> bool:
    broker_count = len(ring.positions)
    partition_end = max(0, spec.start_partition) + spec.partition_count
    shift_max = start.shift + spec.partition_count // broker_count + 1
    candidate_max = spec.replication_factor * broker_count
    return max(start.start_index + partition_end, shift_max * ring.rack_count + candidate_max) > INT32_MAX


def _check_request(spec: PlacementSpec, broker_count: int) -> None:
    if spec.partition_count <= 0:
        raise InvalidPartitionsError("Number of partitions must be larger than 0.")
    if spec.replication_factor <= 0:
        raise InvalidReplicationFactorError("Replication factor must be larger than 0.")
    if spec.replication_factor > broker_count:
        raise InvalidReplicationFactorError(
            f"Replication factor: {spec.replication_factor} larger than available brokers: {broker_count}."
        )
    spec.check_size()


def _java_int(value: int) -> int:
    return (value + INT32_MAX + 1) % (2 * (INT32_MAX + 1)) - INT32_MAX - 1


def _java_remainder(dividend: int, divisor: int) -> int:
    # Java's % takes the sign of the dividend; these numbers are exact as doubles.
    return int(math.fmod(dividend, divisor))


def _java_place(steps: int, size: int) -> int:
    place = _java_remainder(steps, size)
    if place < 0:
        raise IndexOutOfBoundsError(f"Index {place} out of bounds for length {size}")
    return place

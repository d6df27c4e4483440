"""Place replicas as KRaft does: stripe partitions over racks, and within each rack over its brokers.

What it decides: which brokers hold each new partition of a topic.

Goals, most important first:
1. Replicas of a partition stand in different racks, as far as racks go.
2. Leaders are spread evenly over racks, and over the brokers of each rack.
3. Followers do not always accompany the same leader: the order changes round by round.
4. Fenced brokers come last, and never lead.

Constraints: a broker holds a partition once; the leader is unfenced. The factor may use
fenced brokers up. A partition that is added later starts a fresh layout: `start_partition`
is ignored, and so is what brokers hold already.

How:
Brokers are grouped by rack, those without one being a group too. Each group has an unfenced
and a fenced list, sorted by id, each read from an offset that is drawn at first and wraps.
An *epoch* is a partition's number within a round of as many partitions as there are unfenced
brokers. A list that is first touched in an epoch moves its offset on by one (not in the
very first epoch), and yields each of its brokers once per epoch.

Racks stand in a ring, absent rack first, then in Java's string order; its offset is drawn, and
moves on by one each partition. The leader is the next unfenced broker of the first rack from
the offset that has one left. The followers' walk begins at the offset anew, passes over the
leader's rack the first time it comes by, and takes from each rack the next unfenced broker,
else the next fenced one, going round as long as it takes.

When a round is full (and there is more than one unfenced broker), the ring of racks and then
each group's fenced and unfenced list, groups in hash order, are shuffled and the epoch is 0 again.
A list not touched since epoch 0 of the last round then does not notice the new one, and gives only
what it had left: a quirk of Kafka's, kept.

The generator is drawn from in this order: for each group in hash order once for its fenced list and once
for its unfenced list, where not empty; once for the ring; then for the shuffles. The first draws are made
before any request is refused.

Example: two brokers in each of three racks: every partition has a replica in each rack:

    >>> from broker.cluster import BrokerView
    >>> from broker.entropy import JavaRandom
    >>> from broker.ids import BrokerId
    >>> brokers = [BrokerView(id=BrokerId(number), rack=rack) for number, rack in enumerate("aabbcc")]
    >>> spec = PlacementSpec(start_partition=0, partition_count=4, replication_factor=3)
    >>> StripedPlacer().place(spec, brokers, JavaRandom(42))
    array([[5, 1, 2],
           [0, 3, 4],
           [2, 5, 1],
           [4, 0, 3]], dtype=int32)

Left out: racks of unequal size are not corrected: a broker alone in its rack gets as much as a
full rack does. Kafka leaves that out too, and so do its log directories here.

Source: org.apache.kafka.metadata.placement.StripedReplicaPlacer, 3.9 to 4.4 (KIP-500).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs
import numpy as np

from broker.cluster import BrokerView, Int32Array
from broker.entropy import JavaRandom, RandomSource
from broker.errors import IllegalCapacityError, InvalidReplicationFactorError, RefusedError
from broker.releases import NEWEST, Release
from placement.placers.broker_columns import BrokerColumns, PlacementCalls
from placement.placers.striped_kernel import fill_striped
from placement.placers.usable import CORDONING_SINCE, usable_brokers
from placement.spec import PlacementSpec

COMPILED_REPLICA_COUNT_MIN: Final = 1_000
"""Fewer replicas take plain Python less than a millisecond, and need no kernel to be loaded, which takes half a second.
"""
NOTHING_LEFT: Final = -1


@attrs.define
class BrokerList:
    """Iterate the brokers of one rack in one state, fenced or not; each is returned once per epoch."""

    positions: list[int]
    offset: int = 0
    epoch: int = 0
    given_count: int = 0

    def next(self, epoch: int) -> int:
        """Return the next broker of this epoch, or NOTHING_LEFT."""
        if not self.positions:
            return NOTHING_LEFT
        if self.epoch != epoch:
            self.epoch = epoch
            self.given_count = 0
            self.offset = (self.offset + 1) % len(self.positions)
        if self.given_count == len(self.positions):
            return NOTHING_LEFT
        position = self.positions[(self.offset + self.given_count) % len(self.positions)]
        self.given_count += 1
        return position


@attrs.define
class RackGroup:
    """Hold the brokers of one rack, or those without a rack."""

    fenced: BrokerList
    unfenced: BrokerList


@attrs.define
class StripeLayout:
    """Hold the state of one call: `groups` in hash order, and `ring`, their indexes in stripe order."""

    groups: list[RackGroup]
    ring: list[int]
    ring_offset: int
    epoch: int = 0

    @property
    def unfenced_count(self) -> int:
        """Return the number of brokers that may lead, which is also the number of epochs per round."""
        return sum(len(group.unfenced.positions) for group in self.groups)

    @classmethod
    def drawn(cls, columns: BrokerColumns, entropy: RandomSource) -> StripeLayout:
        """Return the layout at the start of a call, its offsets drawn in Kafka's order."""
        groups = [_group(columns, code, entropy) for code in columns.rack_hash_order]
        ring = sorted(range(len(groups)), key=lambda index: columns.rack_hash_order[index])
        return cls(groups=groups, ring=ring, ring_offset=entropy.next_int_bound(len(ring)) if ring else 0)


@attrs.frozen
class StripedPlacer:
    """Place as Kafka's `StripedReplicaPlacer` does; with a JavaRandom the placement is Kafka's own.

    Several calls on one entropy give what several calls of one Kafka placer give. Only `usable_brokers` are placed on,
    as Kafka's controller names no others to its placer; releases differ in two messages besides.
    """

    release: Release = NEWEST

    def place(self, spec: PlacementSpec, brokers: Sequence[BrokerView], entropy: RandomSource) -> Int32Array:
        """Return int32[partition_count, replication_factor], the preferred leader of each row first.

        Raises InvalidReplicationFactorError and IllegalCapacityError (a negative partition count) in Kafka's order
        and words, after the first draws; a partition count of 0 gives no rows.
        """
        columns = BrokerColumns.of(usable_brokers(brokers, self.release))
        if spec.partition_count * spec.replication_factor < COMPILED_REPLICA_COUNT_MIN:
            return columns.ids[_readable_call(spec, columns, entropy, self.release)]
        return _fast_call(spec, columns, entropy, columns.ids, self.release)


@attrs.frozen(eq=False)
class Stripes:
    """Hold all racks' broker lists in the compiled loop's form; see `placement.placers.striped_kernel`.

    Shapes: `items` int32[R + B]: the ring, each group by the segment of its unfenced brokers, then what stands for
    each group's fenced and unfenced brokers, groups in hash order, brokers by ascending id; `segment_starts`
    int32[2R + 2] cuts them.
    """

    columns: BrokerColumns
    items: Int32Array
    segment_starts: Int32Array

    @classmethod
    def of(cls, columns: BrokerColumns, values: Int32Array) -> Stripes:
        """Return the lists of `values` int32[B], the brokers' ids or positions. Cost: R + B log B."""
        hash_order = np.array(columns.rack_hash_order, dtype=np.int32)
        group_of_code = np.argsort(hash_order)
        segments = 2 * group_of_code[np.searchsorted(hash_order, columns.rack_codes, sorter=group_of_code)]
        segments += ~columns.fenced
        positions = np.lexsort((columns.ids, segments)).astype(np.int32)
        lengths = np.bincount(segments, minlength=2 * len(hash_order))
        return cls(
            columns=columns,
            items=np.concatenate((2 + 2 * group_of_code, values[positions]), dtype=np.int32),
            segment_starts=np.cumsum([0, len(hash_order), *lengths], dtype=np.int32),
        )


def striped_positions(
    spec: PlacementSpec, columns: BrokerColumns, entropy: RandomSource, release: Release = NEWEST
) -> Int32Array:
    """Return one call's rows as broker positions, int32[partition_count, replication_factor], compiled.

    Draws and raises as `StripedPlacer.place` does; entropy other than a JavaRandom takes the readable path.
    """
    return _fast_call(spec, columns, entropy, np.arange(columns.count, dtype=np.int32), release)


def striped_topics(calls: PlacementCalls, stripes: Stripes, entropy: JavaRandom) -> Int32Array:
    """Return the rows of all `calls`, int32[sum of counts, largest factor], with -1 pads; compiled.

    For callers that place many topics on the same brokers: make the stripes once. It is one `StripedPlacer.place`
    after another on one generator, but a call that is refused raises before anything is drawn.
    """
    asked = zip(calls.partition_counts.tolist(), calls.replication_factors.tolist(), strict=True)
    for numbers in dict.fromkeys(asked):  # Topics are many, their counts and factors few.
        refusal = _refusal(PlacementSpec(0, *numbers), stripes.columns)
        if refusal is not None:
            raise refusal
    return _compiled_rows(calls, stripes, entropy)


def _fast_call(
    spec: PlacementSpec,
    columns: BrokerColumns,
    entropy: RandomSource,
    values: Int32Array,
    release: Release = NEWEST,
) -> Int32Array:
    if _refusal(spec, columns) is None and isinstance(entropy, JavaRandom):
        return _compiled_rows(PlacementCalls.of(spec), Stripes.of(columns, values), entropy)
    return values[_readable_call(spec, columns, entropy, release)]


def _readable_call(
    spec: PlacementSpec, columns: BrokerColumns, entropy: RandomSource, release: Release = NEWEST
) -> Int32Array:
    layout = StripeLayout.drawn(columns, entropy)
    refusal = _refusal(spec, columns, release)
    if refusal is not None:
        raise refusal
    return readable_rows(spec, layout, entropy)


def _compiled_rows(calls: PlacementCalls, stripes: Stripes, entropy: JavaRandom) -> Int32Array:
    rows = calls.empty_rows()
    entropy.state = fill_striped(
        rows,
        np.column_stack((calls.partition_counts, calls.replication_factors)),
        stripes.items,
        stripes.segment_starts,
        int(np.count_nonzero(~stripes.columns.fenced)),
        entropy.state,
    )
    return rows


def readable_rows(spec: PlacementSpec, layout: StripeLayout, entropy: RandomSource) -> Int32Array:
    """Return the rows as broker positions by the readable algorithm, which specifies the fast path."""
    rows = np.empty((spec.partition_count, spec.replication_factor), dtype=np.int32)
    unfenced_count = layout.unfenced_count
    for row in rows:
        # A round is over: every unfenced broker has led once. New orders keep the same brokers from always
        # following each other.
        if layout.epoch == unfenced_count > 1:
            _shuffle(layout, entropy)
        row[:] = _partition(layout, spec.replication_factor)
        layout.epoch += 1
        layout.ring_offset = (layout.ring_offset + 1) % len(layout.ring)
    return rows


def _partition(layout: StripeLayout, replication_factor: int) -> list[int]:
    ring_from_offset = layout.ring[layout.ring_offset :] + layout.ring[: layout.ring_offset]
    leader_rack, leader = _leader(layout, ring_from_offset)
    replicas = [leader]
    leader_rack_passed = False
    while True:
        for rack in ring_from_offset:
            if len(replicas) == replication_factor:
                return replicas
            # The leader's rack has its replica: it is passed over once, and may give another when the ring comes round.
            if rack == leader_rack and not leader_rack_passed:
                leader_rack_passed = True
                continue
            group = layout.groups[rack]
            position = group.unfenced.next(layout.epoch)
            # A fenced broker follows only where its rack has no unfenced one left in this epoch.
            if position == NOTHING_LEFT:
                position = group.fenced.next(layout.epoch)
            if position != NOTHING_LEFT:
                replicas.append(position)


def _leader(layout: StripeLayout, ring_from_offset: list[int]) -> tuple[int, int]:
    for rack in ring_from_offset:
        position = layout.groups[rack].unfenced.next(layout.epoch)
        if position != NOTHING_LEFT:
            return rack, position
    raise AssertionError("no unfenced broker is left, though the list that led last is always fresh")


def _shuffle(layout: StripeLayout, entropy: RandomSource) -> None:
    entropy.shuffle(layout.ring)
    for group in layout.groups:
        entropy.shuffle(group.fenced.positions)
        entropy.shuffle(group.unfenced.positions)
    layout.epoch = 0


def _group(columns: BrokerColumns, code: int, entropy: RandomSource) -> RackGroup:
    members = np.flatnonzero(columns.rack_codes == code)
    members = members[np.argsort(columns.ids[members])]
    lists = []
    for fenced in (True, False):
        positions = members[columns.fenced[members] == fenced].tolist()
        lists.append(BrokerList(positions, offset=entropy.next_int_bound(len(positions)) if positions else 0))
    return RackGroup(fenced=lists[0], unfenced=lists[1])


def _refusal(spec: PlacementSpec, columns: BrokerColumns, release: Release = NEWEST) -> RefusedError | None:
    """Return why these brokers cannot hold the request, or None; raise UsageError if the matrix is too large."""
    factor = spec.replication_factor
    if factor <= 0:
        return InvalidReplicationFactorError(
            f"Invalid replication factor {factor}: the replication factor must be positive."
        )
    cordoning = release >= CORDONING_SINCE
    if columns.fenced.all():
        ending = ", or have all their log directories cordoned" if cordoning else ""
        return InvalidReplicationFactorError(f"All brokers are currently fenced{ending}.")
    if factor > columns.count:
        ending = " or some brokers have all their log directories cordoned" if cordoning else ""
        return InvalidReplicationFactorError(
            f"The target replication factor of {factor} cannot be reached because only "
            f"{columns.count} broker(s) are registered{ending}."
        )
    if spec.partition_count < 0:
        return IllegalCapacityError(f"Illegal Capacity: {spec.partition_count}")
    spec.check_size()
    return None

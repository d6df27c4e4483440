"""List the partitions of a reassignment that copy bytes, as columns of brokers, and bound how fast they can go.

A new replica comes in at its broker and goes out at the leader's. Where a size is not known, every partition counts as
one byte, and `sizes_known` is False.
"""

from __future__ import annotations

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.broker_rows import broker_rows
from broker.cluster import PAD, SIZE_UNKNOWN, Int32Array, Int64Array
from broker.row_flags import count_in_row
from placement.balance.loads import summed_by
from placement.planning.reassignment import Reassignment

FloatArray = NDArray[np.float64]


@attrs.frozen(kw_only=True, eq=False)
class Moves:
    """Hold the M partitions that gain replicas; B brokers are those of the view, in its order.

    `places` int64[M] are their places in the reassignment, `source` int32[M] the broker copied from, `targets`
    int32[M, W] the brokers that gain a replica, -1 pads, and `sizes` int64[M] the bytes of one copy. `counts` int64[M]
    are the new replicas of each.
    """

    broker_count: int
    places: Int64Array
    source: Int32Array
    targets: Int32Array
    sizes: Int64Array
    counts: Int64Array
    sizes_known: bool

    @classmethod
    def of(cls, plan: Reassignment) -> Moves:
        """Return the moves of a reassignment, in its order."""
        counts = count_in_row(plan.added)
        places = np.flatnonzero(counts)
        ids = plan.view.broker_ids
        sizes = plan.copy_bytes[places]
        known = not (sizes == SIZE_UNKNOWN).any()
        return cls(
            broker_count=int(ids.size),
            places=places,
            source=broker_rows(ids, plan.source[places]).astype(np.int32),
            targets=broker_rows(ids, np.where(plan.added, plan.replicas, PAD)[places]).astype(np.int32),
            sizes=sizes if known else np.ones(places.size, dtype=np.int64),
            counts=counts[places],
            sizes_known=known,
        )

    @property
    def count(self) -> int:
        """Return the number of partitions that gain replicas."""
        return int(self.places.size)

    def bytes_in(self) -> Int64Array:
        """Return the bytes that come into each broker, int64[B]."""
        return self._at_targets(np.broadcast_to(self.sizes[:, None], self.targets.shape))

    def bytes_out(self) -> Int64Array:
        """Return the bytes read from each broker as the leader of copied partitions, int64[B]."""
        return summed_by(self.source, self.sizes * self.counts, self.broker_count)

    def replicas_in(self) -> Int64Array:
        """Return how many replicas each broker gains, int64[B]."""
        return self._at_targets(np.broadcast_to(np.int64(1), self.targets.shape))

    def links(self) -> Int32Array:
        """Return the links of each move, int32[M, W + 1]: in at each target, last the source's out, B rows further."""
        return np.column_stack([self.targets, self.source + self.broker_count]).astype(np.int32)

    def _at_targets(self, values: Int64Array) -> Int64Array:
        held = self.targets >= 0
        return summed_by(self.targets[held], values[held], self.broker_count)


@attrs.frozen(kw_only=True, eq=False)
class Rates:
    """Hold the bytes a second that may come into and leave each broker, float64[B]; infinite where nothing limits."""

    bytes_in: FloatArray
    bytes_out: FloatArray

    @classmethod
    def equal(cls, broker_count: int, rate: float = 1.0) -> Rates:
        """Return one rate for every broker and both directions; without a throttle, times are in bytes of one link."""
        return cls(bytes_in=np.full(broker_count, float(rate)), bytes_out=np.full(broker_count, float(rate)))


@attrs.frozen(kw_only=True)
class Bound:
    """Hold a lower bound of the duration in any order, with its broker and direction."""

    seconds: float
    broker_row: int
    direction: str


def lower_bound(moves: Moves, rates: Rates) -> Bound:
    """Return the time that the busiest link needs at least; 0 seconds for no moves."""
    inward, outward = quotient(moves.bytes_in(), rates.bytes_in), quotient(moves.bytes_out(), rates.bytes_out)
    if not inward.size:
        return Bound(seconds=0.0, broker_row=-1, direction="in")
    row_in, row_out = int(inward.argmax()), int(outward.argmax())
    if outward[row_out] > inward[row_in]:
        return Bound(seconds=float(outward[row_out]), broker_row=row_out, direction="out")
    return Bound(seconds=float(inward[row_in]), broker_row=row_in, direction="in")


def freed_bytes(plan: Reassignment) -> Int64Array:
    """Return the bytes of the replicas that each broker loses, int64[B]; unknown sizes count nothing."""
    view = plan.view
    rows = broker_rows(view.broker_ids, np.where(plan.removed, plan.current, PAD))
    table = view.partitions
    sizes = np.broadcast_to(plan.copy_bytes[:, None], rows.shape)
    if table.replica_size_bytes is not None:
        sizes = table.replica_size_bytes[plan.rows]
    known = (rows >= 0) & (sizes != SIZE_UNKNOWN)
    return summed_by(rows[known], sizes[known], view.broker_ids.size)


def quotient(load: Int64Array, rate: FloatArray) -> FloatArray:
    """Return load / rate, float64[B]: 0 for no load, infinite for a load at no rate."""
    busy = load > 0
    answer = np.zeros(load.shape, dtype=np.float64)
    with np.errstate(divide="ignore"):
        np.divide(load, rate, out=answer, where=busy)
    return answer

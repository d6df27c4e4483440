"""Hold brokers as positions, racks as codes and calls as rows, for the fast paths of placing.

A broker is its position in the list it came in, 0..B-1; a rack is the place of its name in Java's string order, 0..R-1,
with -1 for "no rack". The order in which a Java hash map yields the racks stands beside them.

    >>> from broker.ids import BrokerId
    >>> racks = {7: "b", 3: "a", 5: None}
    >>> columns = BrokerColumns.of([BrokerView(id=BrokerId(number), rack=rack) for number, rack in racks.items()])
    >>> columns.ids, columns.rack_codes
    (array([7, 3, 5], dtype=int32), array([ 1,  0, -1], dtype=int32))
    >>> columns.rack_names, columns.rack_hash_order
    (('a', 'b'), (-1, 0, 1))

Source: java.util.HashMap over `Optional<String>`, as in Kafka's metadata/placement/StripedReplicaPlacer, 4.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import attrs
import numpy as np

from broker.cluster import PAD, BoolArray, BrokerView, Int32Array
from broker.errors import UsageError
from broker.java.string_hash import java_map_order, java_string_key
from placement.spec import PARTITION_COUNT_MAX, REPLICA_COUNT_MAX, PlacementSpec

NO_RACK: Final = -1
"""The code of brokers that have no rack."""


@attrs.frozen(eq=False)
class BrokerColumns:
    """Hold brokers in the order given. Shapes: `ids`, `rack_codes` int32[B]; `fenced` bool[B].

    `rack_names[code]` is a rack's name; `rack_hash_order` holds each code that occurs once (-1
    included when some broker has no rack) in the order in which Java meets them.
    """

    ids: Int32Array
    rack_codes: Int32Array
    fenced: BoolArray
    rack_names: tuple[str, ...]
    rack_hash_order: tuple[int, ...]

    @classmethod
    def of(cls, brokers: Sequence[BrokerView]) -> BrokerColumns:
        """Return the columns of `brokers`; raise UsageError when an id occurs twice. Cost: B log B."""
        ids = np.array([broker.id for broker in brokers], dtype=np.int32)
        if len(np.unique(ids)) != len(ids):
            repeated = sorted(broker.id for broker in brokers)
            twice = next(first for first, second in pairwise(repeated) if first == second)
            raise UsageError(f"broker {twice} is listed more than once")
        racks = [broker.rack for broker in brokers]
        names = tuple(sorted({rack for rack in racks if rack is not None}, key=java_string_key))
        codes: dict[str | None, int] = {name: code for code, name in enumerate(names)}
        codes[None] = NO_RACK
        return cls(
            ids=ids,
            rack_codes=np.array([codes[rack] for rack in racks], dtype=np.int32),
            fenced=np.array([broker.fenced for broker in brokers], dtype=np.bool_),
            rack_names=names,
            rack_hash_order=tuple(codes[rack] for rack in java_map_order(racks)),
        )

    @property
    def count(self) -> int:
        """Return the number of brokers."""
        return len(self.ids)


def _column(value: Any) -> Int32Array:
    return np.ascontiguousarray(value, dtype=np.int32)


@attrs.frozen(eq=False, kw_only=True)
class PlacementCalls:
    """Hold calls of one placer, each for a new topic or for the partitions added to one; columns are int32[T].

    The answer to all of them is one matrix int32[sum of partition_counts, largest factor], the rows of each
    call after those of the call before, -1 pads.
    """

    start_partitions: Int32Array = attrs.field(converter=_column)
    partition_counts: Int32Array = attrs.field(converter=_column)
    replication_factors: Int32Array = attrs.field(converter=_column)

    @classmethod
    def of(cls, spec: PlacementSpec) -> PlacementCalls:
        """Return the one call that `spec` asks for."""
        return cls(
            start_partitions=[max(0, spec.start_partition)],
            partition_counts=[spec.partition_count],
            replication_factors=[spec.replication_factor],
        )

    def empty_rows(self) -> Int32Array:
        """Return a matrix of pads for the result; raise UsageError when it would exceed the largest size allowed."""
        shape = (int(self.partition_counts.sum(dtype=np.int64)), int(self.replication_factors.max(initial=0)))
        if shape[0] > PARTITION_COUNT_MAX or shape[0] * shape[1] > REPLICA_COUNT_MAX:
            raise UsageError(
                f"{shape[0]} partitions of factor {shape[1]} are asked for at once; allowed are "
                f"{PARTITION_COUNT_MAX} partitions and {REPLICA_COUNT_MAX} replicas"
            )
        is_ragged = len(np.unique(self.replication_factors)) > 1
        return np.full(shape, PAD, dtype=np.int32) if is_ragged else np.empty(shape, dtype=np.int32)

"""Define the values of placement: the request, the brokers, the assignment, and the placer.

A placer is asked for `PlacementSpec` on some brokers and answers with a matrix:
int32[partition_count, replication_factor], one row a partition, the preferred leader
first. An `Assignment` is such a matrix over many topics, with their names and the
partition ids beside it.

Source: Kafka 4.0 metadata/placement/{PlacementSpec, UsableBroker, ReplicaPlacer, TopicAssignment}.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

import attrs
import numpy as np

from broker.cluster import PAD, BrokerView, Int32Array
from broker.entropy import RandomSource
from broker.errors import UsageError
from broker.ids import INT32_MAX
from broker.partition_faults import PARTITION_ID_MAX

PARTITION_COUNT_MAX = PARTITION_ID_MAX
REPLICA_COUNT_MAX = 200_000_000  # 800 MB of int32: what one process can be asked to hold at once.


@attrs.frozen
class PlacementSpec:
    """Request partitions `start_partition`, `start_partition + 1`, … of one topic from a placer.

    The numbers are not checked here, as each placer refuses wrong ones in its own words and order.
    """

    start_partition: int
    partition_count: int
    replication_factor: int

    def check_size(self) -> None:
        """Raise UsageError when the matrix exceeds the largest size allowed, or partition ids exceed 2^31-1."""
        replica_count = self.partition_count * self.replication_factor
        for name, value, value_max in (
            ("partition count", self.partition_count, PARTITION_COUNT_MAX),
            ("number of replicas", replica_count, REPLICA_COUNT_MAX),
            ("last partition", max(0, self.start_partition) + self.partition_count - 1, INT32_MAX),
        ):
            if value > value_max:
                raise UsageError(f"{name} is {value}; the largest allowed is {value_max}")


@runtime_checkable
class ReplicaPlacer(Protocol):
    """Define a placement policy; implement `place`, and name the class under the entry point `brokerside.placers`."""

    def place(self, spec: PlacementSpec, brokers: Sequence[BrokerView], entropy: RandomSource) -> Int32Array:
        """Return int32[partition_count, replication_factor], the preferred leader of each row first.

        Raises RefusedError when these brokers cannot hold what is asked. All chance comes from `entropy`.
        """
        ...


def rows_placed(
    placer: ReplicaPlacer, spec: PlacementSpec, brokers: Sequence[BrokerView], entropy: RandomSource
) -> Int32Array:
    """Return what a placer answers, int32[partition_count, replication_factor].

    Raises what the placer raises, and UsageError if its answer is no array of whole numbers of this shape, names a
    broker that is not among `brokers`, or one twice in a row.
    """
    answer: object = placer.place(spec, brokers, entropy)
    found = type(answer).__name__
    if isinstance(answer, np.ndarray):
        found = f"an array of {answer.dtype} of shape {answer.shape}"
        if answer.dtype.kind == "i" and answer.shape == (spec.partition_count, spec.replication_factor):
            _check_rows(type(placer).__name__, answer, brokers)
            return _matrix(answer)
    shape = (spec.partition_count, spec.replication_factor)
    raise UsageError(f"placer {type(placer).__name__} answers {found}; needed is an array of int32 of shape {shape}")


def _check_rows(placer: str, answer: np.ndarray[Any, Any], brokers: Sequence[BrokerView]) -> None:
    strange = ~np.isin(answer, np.array([broker.id for broker in brokers], dtype=np.int64))
    if strange.any():
        row, column = np.argwhere(strange)[0].tolist()
        raise UsageError(
            f"placer {placer} puts partition {row} on broker {answer[row, column]}, which is not among the brokers"
        )
    ordered = np.sort(answer, axis=1)
    repeated = ordered[:, 1:] == ordered[:, :-1]
    if repeated.any():
        row, column = np.argwhere(repeated)[0].tolist()
        raise UsageError(f"placer {placer} puts partition {row} on broker {ordered[row, column]} twice")


def _matrix(value: Any) -> Int32Array:
    matrix = np.ascontiguousarray(value, dtype=np.int32)
    return matrix if matrix.ndim == 2 else matrix.reshape(len(matrix), -1)


def _column(value: Any) -> Int32Array:
    return np.ascontiguousarray(value, dtype=np.int32)


@attrs.frozen(eq=False)
class Assignment:
    """Hold an assignment of replicas: row i is partition `partition_ids[i]` of `topics[topic_index[i]]`.

    Shapes: `replicas` int32[P, W], -1 pads rows of a smaller factor; `topic_index`, `partition_ids` int32[P].
    """

    topics: tuple[str, ...]
    topic_index: Int32Array = attrs.field(converter=_column)
    partition_ids: Int32Array = attrs.field(converter=_column)
    replicas: Int32Array = attrs.field(converter=_matrix)

    def __attrs_post_init__(self) -> None:
        count = self.replicas.shape[0]
        if not self.topic_index.shape == self.partition_ids.shape == (count,):
            raise UsageError(
                f"{count} rows of replicas need as many topic indexes and partition ids; "
                f"there are {self.topic_index.shape[0]} and {self.partition_ids.shape[0]}"
            )

    @classmethod
    def of_topic(cls, topic: str, replicas: Any, *, start_partition: int = 0) -> Assignment:
        """Return one topic's assignment, its partitions numbered from `start_partition`."""
        matrix = _matrix(replicas)
        count = matrix.shape[0]
        return cls((topic,), np.zeros(count), np.arange(start_partition, start_partition + count), matrix)

    @property
    def partition_count(self) -> int:
        """Return the number of partitions."""
        return int(self.replicas.shape[0])


def concatenate(parts: Iterable[Assignment]) -> Assignment:
    """Return the assignments joined; topics of equal name become one. Cost: one copy."""
    given = list(parts)
    topics: dict[str, int] = {}
    indexes = []
    for part in given:
        places = np.array([topics.setdefault(name, len(topics)) for name in part.topics], dtype=np.int32)
        indexes.append(places[part.topic_index] if part.topics else part.topic_index)
    width = max((part.replicas.shape[1] for part in given), default=0)
    rows = [np.pad(part.replicas, ((0, 0), (0, width - part.replicas.shape[1])), constant_values=PAD) for part in given]
    return Assignment(
        topics=tuple(topics),
        topic_index=np.concatenate(indexes) if indexes else [],
        partition_ids=np.concatenate([part.partition_ids for part in given]) if given else [],
        replicas=np.concatenate(rows) if rows else np.empty((0, 0)),
    )

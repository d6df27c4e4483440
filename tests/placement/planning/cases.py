"""Small random views and reassignments of them, and the counts of a plan done again by hand."""

from __future__ import annotations

import random
from typing import Final

import numpy as np

from broker.cluster import BrokerView, ClusterView, PartitionTable, TopicView
from broker.ids import BrokerId
from broker.liveness import Liveness
from placement.planning.reassignment import Reassignment

RACKS: Final = ("a", "b", "c")
SOLVER: Final = {
    "batches_kernel",
    "byte_search",
    "bytes_kernel",
    "even_bytes",
    "exchange",
    "exchange_graph",
    "exchange_kernel",
    "plan",
    "problem",
    "rules",
    "schedule",
    "settle_kernel",
}
"""Modules of placement.planning that the check of a plan must not use."""


def padded(rows: list[list[int]]) -> list[list[int]]:
    """Return the rows with -1 at their ends, as wide as the widest."""
    width = max(map(len, rows), default=0)
    return [row + [-1] * (width - len(row)) for row in rows]


def plan_of(replicas: list[list[int]], targets: list[list[int]], sizes: list[int], brokers: int) -> Reassignment:
    """Return a plan of one topic on brokers 0 to `brokers` - 1 that changes every partition."""
    view = ClusterView.build(
        name="drawn",
        source="random",
        format="test",
        brokers=[BrokerView(id=BrokerId(number)) for number in range(brokers)],
        topics=(TopicView("t"),),
        partitions=PartitionTable(
            topic_index=[0] * len(replicas),
            partition_ids=range(len(replicas)),
            replicas=replicas,
            leader=[row[0] for row in replicas],
            size_bytes=sizes,
        ),
    )
    return Reassignment(view=view, rows=range(len(replicas)), replicas=targets)


def random_view(
    chance: random.Random, *, partition_count: int | None = None, sizes: bool = True, in_sync: float = 0.8
) -> ClusterView:
    """Return a view of two topics on 4 to 8 brokers with gaps in their ids; the leader is in sync."""
    broker_count = chance.randint(4, 8)
    ids = sorted(chance.sample(range(40), broker_count))
    count = chance.randint(1, 12) if partition_count is None else partition_count
    first = chance.randint(0, count)
    replicas = [chance.sample(ids, chance.randint(1, 4)) for _ in range(count)]
    isr = [[each for each in row if chance.random() < in_sync] or [row[-1]] for row in replicas]
    leader = [chance.choice(row) for row in isr]
    each = [[chance.randint(0, 1000) for _ in row] for row in replicas]
    return ClusterView.build(
        name="random",
        source="random",
        format="test",
        brokers=[BrokerView(id=BrokerId(each), rack=RACKS[each % 3], stated=Liveness.ALIVE) for each in ids],
        topics=(TopicView("a-topic", min_insync_replicas=2), TopicView("b", min_insync_replicas=1)),
        partitions=PartitionTable(
            topic_index=[0] * first + [1] * (count - first),
            partition_ids=[*range(first), *range(count - first)],
            replicas=np.array(padded(replicas)).reshape(count, -1),
            leader=leader,
            isr=np.array(padded(isr)).reshape(count, -1),
            size_bytes=[max(row) for row in each] if sizes else None,
            replica_size_bytes=np.array(padded(each)).reshape(count, -1) if sizes else None,
        ),
    )


def random_plan(chance: random.Random, view: ClusterView) -> Reassignment:
    """Return a reassignment of some partitions of a view to random brokers, factors changed now and then."""
    ids = view.broker_ids.tolist()
    rows = [row for row in range(view.partitions.count) if chance.random() < 0.8] or [0]
    chance.shuffle(rows)
    targets = []
    for row in rows:
        now = [each for each in view.partitions.replicas[row].tolist() if each >= 0]
        kept = [each for each in now if chance.random() < 0.6]
        free = [each for each in ids if each not in now]
        new = chance.sample(free, min(len(free), chance.choice((0, 0, 1, 1, 2))))
        target = kept + new or now
        chance.shuffle(target)
        targets.append(target)
    return Reassignment(view=view, rows=rows, replicas=np.array(padded(targets)).reshape(len(rows), -1))


def lists(matrix: np.ndarray) -> list[list[int]]:
    """Return the rows of a matrix without their padding."""
    return [[each for each in row if each >= 0] for row in matrix.tolist()]

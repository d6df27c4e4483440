"""Sum up what is known of one cluster, in the same words for every command: whole, alive, min.insync.replicas, sizes.

Example:

    >>> from broker.cluster import PartitionTable, TopicView
    >>> table = PartitionTable(topic_index=[0, 0], partition_ids=[0, 1], replicas=[[1, 2], [2, 1]], size_bytes=[9, -1])
    >>> view = ClusterView.build(name="n", source="s", format="f", partitions=table, topics=[TopicView("t", 3)])
    >>> known_of(view).partial
    't declares 3 partitions, 2 are listed'
    >>> known_of(view).sizes
    {'known_replica_count': 2, 'unknown_replica_count': 2}
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import attrs
import numpy as np

from broker.cluster import SIZE_UNKNOWN, ClusterView
from broker.wording import listed

_NAMED_MAX: Final = 10


@attrs.frozen(kw_only=True)
class Known:
    """Hold what is known of a cluster; `partial` is why it is not whole, `down` the brokers not alive, and why.

    `min_insync_replicas` counts topics by the source of their value; `sizes` counts replicas.
    """

    cluster: str
    partial: str | None
    down: tuple[tuple[int, str], ...]
    min_insync_replicas: dict[str, int]
    sizes: dict[str, int]

    def as_json(self) -> dict[str, Any]:
        """Return the values as JSON's."""
        found = attrs.asdict(self)
        return found | {"down": [{"broker_id": number, "why": why} for number, why in self.down]}

    def lines(self) -> tuple[str, ...]:
        """Return a line for each thing that limits an answer: a dump that is not whole, brokers that are not alive."""
        found = [] if self.partial is None else [f"not the whole cluster: {self.partial}"]
        if self.down:
            named = [f"{number} ({why})" for number, why in self.down[:_NAMED_MAX]]
            found.append(f"not alive: broker{'s' * (len(self.down) > 1)} {listed(named, len(self.down))}")
        return tuple(found)


def known_of(view: ClusterView) -> Known:
    """Return what is known of a cluster. Cost: O(replicas)."""
    table = view.partitions
    held = table.replicas >= 0
    sizes = table.replica_size_bytes
    if sizes is None and table.size_bytes is not None:
        sizes = np.broadcast_to(table.size_bytes[:, None], held.shape)
    known = 0 if sizes is None else int(np.count_nonzero(held & (sizes > SIZE_UNKNOWN)))
    return Known(
        cluster=view.name,
        partial=view.wholeness.sentence,
        down=tuple((int(number), how.value) for number, how in view.down.items()),
        min_insync_replicas=dict(sorted(Counter(topic.min_isr_source.value for topic in view.topics).items())),
        sizes={"known_replica_count": known, "unknown_replica_count": table.replica_count - known},
    )

"""Hold a batch of clusters as one view, with brokers, topics and racks numbered through, to count all of them at once.

What holds for a cluster is a sum over its places; what the view says as a whole is said of each cluster. One cluster is
a batch of one, whose view is its own, with its own ids and names.

    >>> from broker.cluster import PartitionTable, TopicView
    >>> table = PartitionTable(topic_index=[0], partition_ids=[0], replicas=[[7, 9]])
    >>> view = ClusterView.build(name="n", source="s", format="f", partitions=table, topics=[TopicView("t")])
    >>> one = Clusters.of_view(view)
    >>> one.count, one.ids.tolist(), one.of_partition.tolist()
    (1, [7, 9], [0])
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

import attrs
import numpy as np

from broker.cluster import MATRIX_COLUMNS, BrokerTotals, ClusterView, Int32Array, Int64Array

_LABEL_WIDTH: Final = 8  # Digits before the name of a rack: its cluster, so that racks stand in order of cluster.


@attrs.frozen(eq=False, kw_only=True)
class Clusters:
    """Hold K clusters as one view; `ids` int32[B] are the ids that its brokers have in their clusters.

    `of_broker` int64[B] and `of_topic` int64[T] are the clusters of brokers and topics, ascending.
    """

    view: ClusterView
    names: tuple[str, ...]
    ids: Int32Array
    of_broker: Int64Array
    of_topic: Int64Array

    @classmethod
    def of_view(cls, view: ClusterView) -> Clusters:
        """Return one cluster as a batch of one."""
        brokers, topics = np.zeros(len(view.brokers), np.int64), np.zeros(len(view.topics), np.int64)
        return cls(view=view, names=(view.name,), ids=view.broker_ids, of_broker=brokers, of_topic=topics)

    @property
    def count(self) -> int:
        """Return the number of clusters."""
        return len(self.names)

    @cached_property
    def of_partition(self) -> Int64Array:
        """Return the cluster of each partition, int64[P]."""
        return self.of_topic[self.view.partitions.topic_index]

    def counted(self, clusters: Int64Array) -> Int64Array:
        """Return how often each cluster is named, int64[K]."""
        return np.bincount(clusters, minlength=self.count).astype(np.int64)

    def own_ids(self, ids: Any) -> list[int]:
        """Return the ids of brokers of the view as their cluster has them."""
        found: list[int] = self.ids[np.searchsorted(self.view.broker_ids, ids)].tolist()
        return found

    def rack_name(self, label: str) -> str:
        """Return the name that a rack of the view has in its cluster."""
        return label if self.count == 1 else label[_LABEL_WIDTH:]

    def one(self, cluster: int) -> ClusterView:
        """Return the view of one cluster."""
        if self.count == 1:
            return self.view
        table = self.view.partitions
        brokers, topics, rows = self.brokers_of(cluster), _run(self.of_topic, cluster), self.rows_of(cluster)
        ids = np.concatenate((self.ids, np.array([-2, -1], np.int32)))  # The last entries answer -2 and -1.
        columns: dict[str, Any] = {
            field.name: None if (column := getattr(table, field.name)) is None else column[rows]
            for field in attrs.fields(type(table))
        }
        for name in ("leader", *MATRIX_COLUMNS):
            columns[name] = None if columns[name] is None else ids[columns[name]]
        columns["topic_index"] = columns["topic_index"] - topics.start
        totals = self.view.totals
        return attrs.evolve(
            self.view,
            name=self.names[cluster],
            source=self.names[cluster],
            brokers=tuple(
                attrs.evolve(one, id=number, rack=None if one.rack is None else self.rack_name(one.rack))
                for one, number in zip(self.view.brokers[brokers], self.ids[brokers].tolist(), strict=True)
            ),
            topics=self.view.topics[topics],
            partitions=type(table)(**columns),
            totals=None if totals is None else _taken(totals, brokers),
        )

    def brokers_of(self, cluster: int) -> slice:
        """Return the places of the brokers of one cluster."""
        return _run(self.of_broker, cluster)

    def rows_of(self, cluster: int) -> slice:
        """Return the rows of the partitions of one cluster."""
        return slice(None) if self.count == 1 else _run(self.of_partition, cluster)


def labelled(cluster: int, name: str) -> str:
    """Return the name of a rack that stands apart from racks of other clusters."""
    return f"{cluster:0{_LABEL_WIDTH}d}{name}"


def _taken(totals: BrokerTotals, brokers: slice) -> BrokerTotals:
    columns = attrs.asdict(totals).items()
    return BrokerTotals(**{name: None if column is None else column[brokers] for name, column in columns})


def _run(of: Int64Array, cluster: int) -> slice:
    start, end = np.searchsorted(of, (cluster, cluster + 1)).tolist()
    return slice(start, end)

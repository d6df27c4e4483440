"""Sum up what is known of one cluster, in the same words for every command: whole, alive, min.insync.replicas, sizes.

Example:

    >>> from broker.cluster import PartitionTable, TopicView
    >>> table = PartitionTable(topic_index=[0, 0], partition_ids=[0, 1], replicas=[[1, 2], [2, 1]], size_bytes=[9, -1])
    >>> view = ClusterView.build(name="n", source="s", format="f", partitions=table, topics=[TopicView("t", 3)])
    >>> known_of(view).partial
    't declares 3 partitions, 2 are listed'
    >>> known_of(view).sizes
    {'known_replica_count': 2, 'taken_replica_count': 0, 'unknown_replica_count': 2}
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, Final

import attrs
import numpy as np

from broker.cluster import SIZE_UNKNOWN, ClusterView
from broker.clusters import Clusters
from broker.liveness import Liveness
from broker.row_flags import count_in_row
from broker.wording import counted, listed

_NAMED_MAX: Final = 10


@attrs.frozen(kw_only=True)
class Known:
    """Hold what is known of a cluster; `partial` is why it is not whole, `down` the brokers not alive, and why.

    `min_insync_replicas` counts topics by the source of their value; `sizes` counts replicas whose size is measured,
    taken from another replica of the partition, or unknown. `dead_dirs` are offline log directories: broker, path, and
    the offline replicas of the broker, None where they are not listed. `unlisted_racks` are the brokers of the racks
    given that are not in the dump, of `racks_given_count`; `racks_missing` is why a file of racks gave none.
    """

    cluster: str
    partial: str | None
    down: tuple[tuple[int, str], ...]
    min_insync_replicas: dict[str, int]
    sizes: dict[str, int]
    dead_dirs: tuple[tuple[int, str, int | None], ...] = ()
    unlisted_racks: tuple[int, ...] = ()
    racks_given_count: int = 0
    racks_missing: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the values as JSON's."""
        found = attrs.asdict(self, recurse=False)
        found["down"] = [{"broker_id": number, "why": why} for number, why in self.down]
        names = ("broker_id", "log_dir", "offline_replica_count")
        found["dead_dirs"] = [dict(zip(names, each, strict=True)) for each in self.dead_dirs]
        return found

    def as_text(self) -> str:
        """Return the values as one line of JSON, which `of_text` reads."""
        return json.dumps(self.as_json(), separators=(",", ":"), ensure_ascii=True)

    @classmethod
    def of_text(cls, text: str) -> Known:
        """Return the values that `as_text` wrote."""
        found = json.loads(text)
        found |= {name: tuple(tuple(each.values()) for each in found[name]) for name in ("down", "dead_dirs")}
        found["unlisted_racks"] = tuple(found["unlisted_racks"])
        return cls(**found)

    def lines(self) -> tuple[str, ...]:
        """Return one line per limit of an answer: missing data, brokers down or offline, unknown sizes."""
        found = [] if self.partial is None else [f"not the whole cluster: {self.partial}"]
        if self.down:
            named = [f"{number} ({why})" for number, why in self.down[:_NAMED_MAX]]
            found.append(f"not alive: broker{'s' * (len(self.down) > 1)} {listed(named, len(self.down))}")
        for broker, path, count in self.dead_dirs[:_NAMED_MAX]:
            what = "" if count is None else f", and {counted(count, 'replica')} of the broker with it"
            found.append(f"broker {broker}: log directory {path} is offline{what}")
        found += self.racks_lines("; one counts where --add names it")
        taken, unknown = self.sizes["taken_replica_count"], self.sizes["unknown_replica_count"]
        measured = self.sizes["known_replica_count"] - taken
        if measured and (taken or unknown):
            found.append(
                f"sizes: {counted(measured, 'replica')} measured, of {taken:,} the largest other replica of the "
                f"partition is taken, {unknown:,} not known"
            )
        return tuple(found)

    def racks_lines(self, adding: str = "") -> list[str]:
        """Return what a file of racks lacks, and which of its brokers are not in the dump.

        `adding` says where such a broker counts, by a command that can add brokers.
        """
        found = [] if self.racks_missing is None else [f"racks: {self.racks_missing}"]
        if self.unlisted_racks:
            named = [str(number) for number in self.unlisted_racks[:_NAMED_MAX]]
            found.append(
                f"racks: {len(self.unlisted_racks)} of {counted(self.racks_given_count, 'broker')} of the file are "
                f"not in the dump ({listed(named, len(self.unlisted_racks))}){adding}"
            )
        return found


def known_of(view: ClusterView) -> Known:
    """Return what is known of a cluster. Cost: O(replicas)."""
    return known_of_each(Clusters.of_view(view))[0]


def known_of_each(clusters: Clusters) -> list[Known]:
    """Return what is known of each cluster. Cost: O(replicas)."""
    table, of = clusters.view.partitions, clusters.of_partition
    held = table.replicas >= 0
    sizes = table.replica_size_bytes
    if sizes is None and table.size_bytes is not None:
        sizes = np.broadcast_to(table.size_bytes[:, None], held.shape)
    replicas = clusters.counted(np.repeat(of, count_in_row(held)))
    known = np.zeros_like(replicas)
    if sizes is not None:
        known = clusters.counted(np.repeat(of, count_in_row(held & (sizes > SIZE_UNKNOWN))))
    down: list[list[tuple[int, str]]] = [[] for _ in clusters.names]
    for broker, how in enumerate(clusters.view.liveness):
        if how is not Liveness.ALIVE:
            down[clusters.of_broker[broker]].append((int(clusters.ids[broker]), how.value))
    sources: list[Counter[str]] = [Counter() for _ in clusters.names]
    for topic, cluster in zip(clusters.view.topics, clusters.of_topic.tolist(), strict=True):
        sources[cluster][topic.min_isr_source.value] += 1
    columns = zip(clusters.names, down, sources, replicas.tolist(), known.tolist(), strict=True)
    view = clusters.view
    of_view = Known(
        cluster=view.name,
        partial=view.wholeness.sentence,
        down=(),
        min_insync_replicas={},
        sizes={},
        dead_dirs=tuple((int(broker), path, _offline_on(view, broker)) for broker, path in view.dead_dirs),
        unlisted_racks=tuple(map(int, view.unlisted)),
        racks_given_count=len(view.racks_given),
        racks_missing=view.racks_missing,
    )
    taken = sum(count for _, count in view.sizes_taken)
    names = ("known_replica_count", "taken_replica_count", "unknown_replica_count")
    return [
        attrs.evolve(
            of_view,
            cluster=name,
            down=tuple(of_cluster),
            min_insync_replicas=dict(sorted(by_source.items())),
            sizes=dict(zip(names, (sized, taken, replica_count - sized), strict=True)),
        )
        for name, of_cluster, by_source, replica_count, sized in columns
    ]


def _offline_on(view: ClusterView, broker: int) -> int | None:
    """Return how many offline replicas a broker has; None where the dump does not list them."""
    offline = view.partitions.offline
    return None if offline is None else int(np.count_nonzero(offline == broker))

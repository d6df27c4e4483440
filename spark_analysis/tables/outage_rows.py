"""Count what losing each broker and each rack does, for all clusters of a batch at once.

Answers are those of placement/outages/look_ahead.py for each cluster, value by value: each count is a threshold on a
part of the order of succession, counted here for single brokers and racks alone, over the partitions of all clusters.
"""

from __future__ import annotations

from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa

from broker.cluster import PAD, Int64Array
from broker.clusters import Clusters
from broker.errors import UsageError
from broker.row_flags import first_in_row
from placement.balance.loads import summed_by
from placement.outages.succession import Successions, min_isr_notes, successions
from spark_analysis.tables.columns import IN_BATCH
from spark_analysis.tables.limits import OUTAGE_BROKERS_MAX, check_listed

_NOW: Final = ("leaderless_count", "under_min_isr_count", "no_replica_count", "at_risk_count")
_BYTES: Final = "at_risk_bytes"
_NEVER: Final = np.iinfo(np.int32).max
_CELLS_MAX: Final = 1 << 26  # Takeovers are counted for each two brokers of a cluster: 512 MB.


def check_outages(clusters: Clusters) -> None:
    """Raise UsageError for a cluster of too many brokers, or one whose partitions are not all listed."""
    counts = clusters.counted(clusters.of_broker)
    for place in np.flatnonzero(counts > OUTAGE_BROKERS_MAX).tolist():
        raise UsageError(
            f"cluster {clusters.names[place]!r} has {counts[place]:,} brokers; outages are looked for up to "
            f"{OUTAGE_BROKERS_MAX:,}"
        )
    check_listed(clusters.view, "outages are not known")


def outage_rows(clusters: Clusters) -> pa.Table:
    """Return the losses of every broker, then of every rack; raise UsageError as `check_outages` does."""
    check_outages(clusters)
    if clusters.count > 1 and clusters.ids.size * int(clusters.counted(clusters.of_broker).max()) > _CELLS_MAX:
        raise UsageError("these clusters are too large to be answered at once")  # Answered in halves, then.
    found = _Found.of(clusters)
    parts = [found.of_brokers(), found.of_racks()]
    return pa.concat_tables(parts, promote_options="default")


@attrs.frozen(eq=False, kw_only=True)
class _Found:
    """Hold the leader succession of all partitions, and the counts before any loss.

    `states` are, by count, the members of each partition of which so many must be lost, and this number; `sizes` weigh
    the count of bytes.
    """

    clusters: Clusters
    found: Successions
    states: dict[str, tuple[Int64Array, Int64Array]]
    now: dict[str, Int64Array]
    judged: Any
    notes: list[tuple[str, ...]]
    broker_counts: Int64Array
    live_counts: Int64Array
    partition_counts: Int64Array

    @classmethod
    def of(cls, clusters: Clusters) -> _Found:
        """Return the leader succession of these clusters, with the counts before any loss."""
        found, of = successions(clusters.view), clusters.of_partition
        least = found.min_isr.astype(np.int64)
        led, clean, in_sync, live = (
            count.astype(np.int64)
            for count in (found.led_count, found.clean_count, found.in_sync_count, found.live_count)
        )
        # The only member that a min.insync.replicas of 1 needs may be one that is elected from outside the ISR.
        members = np.where(least <= 1, led, in_sync)
        states = {
            "leaderless_count": (led, led),
            "under_min_isr_count": (members, np.where(least >= 0, members - np.maximum(least, 1) + 1, _NEVER)),
            "no_replica_count": (live, live),
            "at_risk_count": (clean, clean),
        }
        if found.size_bytes is not None:
            states[_BYTES] = (clean, clean)
        counts = clusters.counted(of)
        silent = [topic.min_insync_replicas is None for topic in clusters.view.topics]
        unknown = clusters.counted(clusters.of_topic[np.array(silent, np.bool_)]).tolist()
        topics = clusters.counted(clusters.of_topic).tolist()
        weights = {name: _weights(found, name) for name in states}
        return cls(
            clusters=clusters,
            found=found,
            states=states,
            now={
                name: summed_by(of[need <= 0], weights[name][need <= 0], clusters.count)
                for name, (_, need) in states.items()
            },
            judged=(clusters.counted(of[least >= 0]) > 0) | (counts == 0),
            notes=[found.isr_notes + min_isr_notes(some, all_of) for some, all_of in zip(unknown, topics, strict=True)],
            broker_counts=clusters.counted(clusters.of_broker),
            live_counts=clusters.counted(clusters.of_broker[found.live]),
            partition_counts=counts,
        )

    @property
    def _places(self) -> Any:
        return np.arange(self.found.order.shape[1])

    @property
    def _inside(self) -> Int64Array:
        """Return the place of each broker in its cluster."""
        firsts = np.cumsum(self.broker_counts) - self.broker_counts
        return np.asarray(np.arange(self.clusters.ids.size) - firsts[self.clusters.of_broker], np.int64)

    def _leaders(self) -> Int64Array:
        order = self.found.order
        first = order[self.found.led_count > 0, 0] if order.shape[1] else order.ravel()
        return _per(first, self.clusters.ids.size)

    def of_brokers(self) -> pa.Table:
        """Return the rows of the loss of each broker."""
        order, of_broker = self.found.order, self.clusters.of_broker
        count, inside = of_broker.size, self._inside
        swept = {}
        for name, (members, need) in self.states.items():
            falls = (self._places < members[:, None]) & (need == 1)[:, None]
            weight = np.broadcast_to(_weights(self.found, name)[:, None], order.shape)
            swept[name] = summed_by(order[falls], weight[falls], count)
        leaders = self._leaders()
        taken = np.zeros((count, int(inside.max(initial=0)) + 1), np.int64)
        if order.shape[1] > 1:
            follows = self.found.led_count > 1
            np.add.at(taken, (order[follows, 0], inside[order[follows, 1]]), 1)
        led_after = taken + self._led_by(leaders)[of_broker]
        led_after[np.arange(count), inside] = 0
        most = taken.max(axis=1, initial=0)
        taker = np.arange(count) - inside + taken.argmax(axis=1)
        taker_ids = self.clusters.ids[np.minimum(taker, max(count - 1, 0))]
        more = {"broker_id": self.clusters.ids, "failover_broker_id": pa.array(taker_ids, mask=most == 0)}
        piled = leaders, most, led_after.max(axis=1, initial=0)
        return self._rows("broker", of_broker, swept, piled, self.found.live.astype(np.int64), more)

    def of_racks(self) -> pa.Table:
        """Return the rows of the loss of each rack."""
        view, order, inside = self.clusters.view, self.found.order, self._inside
        labels, racks = view.racks, view.rack_places
        count, of_rack = len(labels), np.flatnonzero(racks >= 0)
        of_cluster = np.zeros(count, np.int64)
        of_cluster[racks[of_rack]] = self.clusters.of_broker[of_rack]
        held = np.append(racks, PAD)[order]
        swept = {name: self._swept(held, *state, name, count) for name, state in self.states.items()}
        leaders = self._leaders()
        taken = np.zeros((count, int(inside.max(initial=0)) + 1), np.int64)
        may = (self._places < self.found.led_count[:, None]) & (held != held[:, :1])
        rows = np.flatnonzero(may.any(axis=1) & (held[:, :1] >= 0).any(axis=1))
        if rows.size:
            np.add.at(taken, (held[rows, 0], inside[first_in_row(order[rows], may[rows])]), 1)
        led_after = taken + self._led_by(leaders)[of_cluster]
        led_after[racks[of_rack], inside[of_rack]] = 0
        led = summed_by(racks[of_rack], leaders[of_rack], count)
        lost = _per(racks[of_rack][self.found.live[of_rack]], count)
        piled = led, taken.max(axis=1, initial=0), led_after.max(axis=1, initial=0)
        names: Any = pa.array(list(map(self.clusters.rack_name, labels)), pa.string())
        return self._rows("rack", of_cluster, swept, piled, lost, {"rack": names})

    def _swept(self, racks: Any, members: Int64Array, need: Int64Array, name: str, count: int) -> Int64Array:
        """Count, for each rack, the partitions that enter a state when the rack is lost."""
        is_member, weights = self._places < members[:, None], _weights(self.found, name)
        total = np.zeros(count, np.int64)
        for place in range(racks.shape[1]):
            same = is_member & (racks == racks[:, place : place + 1])
            is_first = is_member[:, place] & (racks[:, place] >= 0) & ~same[:, :place].any(axis=1)
            falls = is_first & (need > 0) & (same.sum(axis=1) >= need)
            total += summed_by(racks[falls, place], weights[falls], count)
        return total

    def _led_by(self, leaders: Int64Array) -> Int64Array:
        """Return int64[K, brokers of the largest cluster], the partitions that each broker leads."""
        wide = np.zeros((self.clusters.count, int(self._inside.max(initial=0)) + 1), np.int64)
        wide[self.clusters.of_broker, self._inside] = leaders
        return wide

    def _rows(
        self,
        scope: str,
        cluster: Int64Array,
        swept: dict[str, Int64Array],
        piled: tuple[Int64Array, Int64Array, Int64Array],
        lost_brokers: Int64Array,
        more: dict[str, Any],
    ) -> pa.Table:
        unjudged = ~self.judged[cluster]
        after = {name: self.now[name][cluster] + values for name, values in swept.items()}
        led, taken, most = piled
        led_partitions = self.partition_counts[cluster] - after["leaderless_count"]
        live = self.live_counts[cluster] - lost_brokers
        over = np.divide(most * live, led_partitions, out=np.zeros(most.size), where=most > 0)
        share = np.divide(taken, led, out=np.zeros(most.size), where=taken > 0)
        under = np.where(unjudged, 0, after["under_min_isr_count"])
        size = after.get(_BYTES, np.zeros_like(taken))
        worst = (-taken, -size, -under, -after["leaderless_count"], -after["at_risk_count"], lost_brokers == 0, cluster)
        rank = np.empty(cluster.size, np.int64)
        order = np.lexsort((np.arange(cluster.size), *worst))
        firsts = np.searchsorted(cluster[order], cluster[order])
        rank[order] = np.arange(1, cluster.size + 1) - firsts
        columns: dict[str, Any] = {IN_BATCH: cluster, "scope": pa.array([scope] * cluster.size, pa.string())} | more
        for name in _NOW:
            mask = unjudged if name == "under_min_isr_count" else None
            columns[name] = pa.array(after[name], mask=mask)
            columns[f"{name}_now"] = pa.array(self.now[name][cluster], mask=mask)
        if _BYTES in after:
            columns[_BYTES] = size
        return pa.table(
            columns
            | {
                "lost_leader_count": led,
                "failover_count": taken,
                "failover_share": pa.array(share, mask=taken == 0),
                "leader_count_max": most,
                "leader_max_over_mean": pa.array(over, mask=most == 0),
                "notes": pa.array([self.notes[one] for one in cluster.tolist()], pa.list_(pa.string())),
                "severity_rank": rank,
            }
        )


def _per(places: Any, count: int) -> Int64Array:
    return np.bincount(places, minlength=count).astype(np.int64)


def _weights(found: Successions, name: str) -> Int64Array:
    """Return the weight of each partition in a count: 1, or its size in bytes."""
    sizes = found.size_bytes if name == _BYTES else None
    return np.ones(found.order.shape[0], np.int64) if sizes is None else sizes

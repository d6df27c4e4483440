"""Show what losing each broker and each rack does to all regular clusters of a chunk at once.

Answers are those of placement/outages/look_ahead.py for each cluster, value by value: each count is a threshold on a
part of the order of succession, counted here for single brokers and racks alone, over the partitions of all clusters.
Clusters that do not show their ISR, that have a broker that is down, or more than `BROKERS_MAX` brokers, are answered
one by one.
"""

from __future__ import annotations

from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa

from broker.cluster import PAD, BoolArray, Int32Array, Int64Array
from broker.min_isr import effective_by_row, shown_or_given
from broker.row_flags import first_in_row
from placement.balance.loads import LEADER_NOT_SAID
from placement.outages.succession import fill_successions, min_isr_notes
from spark_analysis.frames.chunks import Chunk
from spark_analysis.frames.many import IN_CHUNK, NO_ROWS, Answered, all_alive

BROKERS_MAX: Final = 64  # Takeovers are counted for each two brokers of a cluster: 27 MB for a chunk of 800.
_NOW: Final = ("leaderless_count", "under_min_isr_count", "no_replica_count", "at_risk_count")
_NEVER: Final = np.iinfo(np.int32).max


def outages_of(chunk: Chunk, min_insync_replicas: int | None) -> Answered:
    """Return the losses of every broker and rack of the regular clusters that show their ISR, all brokers alive."""
    answered = chunk.is_regular & chunk.knows_isr & all_alive(chunk) & (chunk.broker_counts <= BROKERS_MAX)
    kept = _kept(chunk, answered)
    if not kept.cluster.size:
        return np.zeros_like(answered), NO_ROWS
    found = _Found.of(kept, min_insync_replicas)
    parts = [found.of_brokers(), found.of_racks()]
    return answered, pa.concat_tables([part for part in parts if part.num_rows], promote_options="default")


def _kept(chunk: Chunk, answered: BoolArray) -> Chunk:
    """Return the chunk without the partitions of other clusters; brokers and topics keep their numbers."""
    if answered[chunk.cluster].all():
        return chunk
    rows = np.flatnonzero(answered[chunk.cluster])
    names = ("cluster", "topic", "partition", "replicas", "isr", "leader")
    return attrs.evolve(chunk, is_regular=answered, **{name: getattr(chunk, name)[rows] for name in names})


@attrs.frozen(eq=False, kw_only=True)
class _Found:
    """Hold the order of succession of all partitions, as `Successions` does, and what is so before any loss."""

    chunk: Chunk
    order: Int32Array
    led_count: Int32Array
    states: dict[str, tuple[Int64Array, Int64Array]]
    now: dict[str, Int64Array]
    judged: BoolArray
    notes: list[tuple[str, ...]]
    partition_count: Int64Array

    @classmethod
    def of(cls, chunk: Chunk, min_insync_replicas: int | None) -> _Found:
        """Return the order of succession, with `min_insync_replicas` for topics that do not show theirs."""
        order = np.full(chunk.replicas.shape, PAD, np.int32)
        counts = np.zeros((3, chunk.cluster.size), np.int32)
        nothing = np.empty((chunk.cluster.size, 0), np.int32)
        leader = np.where(chunk.leader >= 0, chunk.leader, LEADER_NOT_SAID).astype(np.int32)
        unclean = np.zeros(chunk.cluster.size, np.bool_)
        live = np.ones(chunk.broker_ids.size, np.bool_)
        replicas, lists = chunk.replicas, (chunk.isr, nothing, nothing)
        fill_successions(replicas, replicas, lists, (leader, unclean), live, order, counts)
        in_sync, clean, all_live = counts.astype(np.int64)
        shown = shown_or_given(chunk.min_isr, min_insync_replicas)
        least = effective_by_row(shown[chunk.topic], (replicas >= 0).sum(axis=1))
        members = np.where(least <= 1, clean, in_sync)
        states = {
            "leaderless_count": (clean, clean),
            "under_min_isr_count": (members, np.where(least >= 0, members - least + 1, _NEVER)),
            "no_replica_count": (all_live, all_live),
            "at_risk_count": (clean, clean),
        }
        unknown = np.bincount(chunk.topic_cluster[shown < 0], minlength=chunk.count).tolist()
        topics = np.bincount(chunk.topic_cluster, minlength=chunk.count).tolist()
        return cls(
            chunk=chunk,
            order=order,
            led_count=counts[1],
            states=states,
            now={name: _per(chunk.cluster[need <= 0], chunk.count) for name, (_, need) in states.items()},
            judged=_per(chunk.cluster[least >= 0], chunk.count) > 0,
            notes=[min_isr_notes(some, of) for some, of in zip(unknown, topics, strict=True)],
            partition_count=_per(chunk.cluster, chunk.count),
        )

    @property
    def _places(self) -> Any:
        return np.arange(self.order.shape[1])

    def of_brokers(self) -> pa.Table:
        """Return the rows of the loss of each broker."""
        chunk, count = self.chunk, self.chunk.broker_ids.size
        lost = np.flatnonzero(chunk.is_regular[chunk.broker_cluster])
        swept = {}
        for name, (members, need) in self.states.items():
            falls = (self._places < members[:, None]) & (need == 1)[:, None]
            swept[name] = _per(self.order[falls], count)[lost]
        leaders = _per(self.order[self.led_count > 0, 0], count)
        follows = self.led_count > 1
        inside = np.arange(count) - _firsts(chunk)[chunk.broker_cluster]
        taken = np.zeros((count, int(inside.max()) + 1), np.int64)
        if self.order.shape[1] > 1:
            np.add.at(taken, (self.order[follows, 0], inside[self.order[follows, 1]]), 1)
        led_after = taken + self._leaders(leaders, inside)[chunk.broker_cluster]
        led_after[np.arange(count), inside] = 0
        most = taken.max(axis=1)[lost]
        taker = (_firsts(chunk)[chunk.broker_cluster] + taken.argmax(axis=1))[lost]
        more = {
            "broker_id": chunk.broker_ids[lost],
            "failover_broker_id": pa.array(chunk.broker_ids[taker], mask=most == 0),
        }
        piled = leaders[lost], most, led_after.max(axis=1)[lost]
        return self._rows("broker", chunk.broker_cluster[lost], swept, piled, np.ones(lost.size, np.int64), more)

    def of_racks(self) -> pa.Table:
        """Return the rows of the loss of each rack."""
        chunk, count = self.chunk, len(self.chunk.rack_names)
        of_cluster = np.repeat(np.arange(chunk.count), chunk.rack_counts)
        lost = np.flatnonzero(chunk.is_regular[of_cluster])
        starts = np.cumsum(chunk.rack_counts) - chunk.rack_counts
        racks = np.where(chunk.rack >= 0, starts[chunk.broker_cluster] + chunk.rack, PAD)
        held = np.append(racks, PAD)[self.order]
        swept = {name: self._swept(held, *state, count)[lost] for name, state in self.states.items()}
        sizes = _per(racks[racks >= 0], count)
        leaders = _per(self.order[self.led_count > 0, 0], chunk.broker_ids.size)
        inside = np.arange(chunk.broker_ids.size) - _firsts(chunk)[chunk.broker_cluster]
        taken = np.zeros((count, int(inside.max()) + 1), np.int64)
        may = (self._places < self.led_count[:, None]) & (held != held[:, :1])
        rows = np.flatnonzero(may.any(axis=1) & (held[:, 0] >= 0))
        np.add.at(taken, (held[rows, 0], inside[first_in_row(self.order[rows], may[rows])]), 1)
        led_after = taken + self._leaders(leaders, inside)[of_cluster]
        of_rack = np.flatnonzero(racks >= 0)
        led_after[racks[of_rack], inside[of_rack]] = 0
        led = np.zeros(count, np.int64)
        np.add.at(led, racks[of_rack], leaders[of_rack])
        piled = led[lost], taken.max(axis=1)[lost], led_after.max(axis=1)[lost]
        names: Any = pa.array([chunk.rack_names[place] for place in lost.tolist()], pa.string())
        return self._rows("rack", of_cluster[lost], swept, piled, sizes[lost], {"rack": names})

    def _swept(self, racks: Any, members: Int64Array, need: Int64Array, count: int) -> Int64Array:
        """Return for each rack the partitions that come into a state when it is lost."""
        is_member = self._places < members[:, None]
        total = np.zeros(count, np.int64)
        for place in range(racks.shape[1]):
            same = is_member & (racks == racks[:, place : place + 1])
            is_first = is_member[:, place] & (racks[:, place] >= 0) & ~same[:, :place].any(axis=1)
            falls = is_first & (need > 0) & (same.sum(axis=1) >= need)
            total += _per(racks[falls, place], count)
        return total

    def _leaders(self, leaders: Int64Array, inside: Int64Array) -> Int64Array:
        """Return int64[K, brokers of the largest cluster]: what the brokers of each cluster lead."""
        wide = np.zeros((self.chunk.count, int(inside.max()) + 1), np.int64)
        wide[self.chunk.broker_cluster, inside] = leaders
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
        led_partitions = self.partition_count[cluster] - after["leaderless_count"]
        live = self.chunk.broker_counts[cluster] - lost_brokers
        over = np.divide(most * live, led_partitions, out=np.zeros(most.size), where=most > 0)
        share = np.divide(taken, led, out=np.zeros(most.size), where=taken > 0)
        under = np.where(unjudged, 0, after["under_min_isr_count"])
        worst = (-taken, -under, -after["leaderless_count"], -after["at_risk_count"], cluster)
        rank = np.empty(cluster.size, np.int64)
        order = np.lexsort((np.arange(cluster.size), *worst))
        firsts = np.searchsorted(cluster[order], cluster[order])
        rank[order] = np.arange(1, cluster.size + 1) - firsts
        columns: dict[str, Any] = {IN_CHUNK: cluster, "scope": pa.array([scope] * cluster.size)} | more
        for name in _NOW:
            mask = unjudged if name == "under_min_isr_count" else None
            columns[name] = pa.array(after[name], mask=mask)
            columns[f"{name}_now"] = pa.array(self.now[name][cluster], mask=mask)
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


def _firsts(chunk: Chunk) -> Int64Array:
    """Return the number of each cluster's first broker."""
    return np.asarray(np.cumsum(chunk.broker_counts) - chunk.broker_counts, np.int64)

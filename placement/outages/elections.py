"""Find the action that restores a partition's leader or its preferred leader: a broker's return or an election.

What it decides: of each partition without a leader, the replicas that lead without loss once their broker is back (one
is enough), and the replica that an unclean election would make the leader now.

How: the controller elects a live member of the ISR at once, then one of the ELR, then the last known leader; so where
there is no leader, none of them is live. An unclean election takes the first live replica in the order of the replicas.

Example: replicas 1, 2 and ISR 2, without a leader: broker 2 must return, or 1 leads without what only 2 has.

    >>> from broker.cluster import PartitionTable, TopicView
    >>> table = PartitionTable(topic_index=[0], partition_ids=[0], replicas=[[1, 2]], isr=[[2]], leader=[-1])
    >>> view = ClusterView.build(name="n", source="s", format="f", partitions=table, topics=[TopicView("t")])
    >>> found = leaderless(view)
    >>> found.returning(), found.elected.tolist()
    ((Returning(broker_ids=(2,), role=<Role.IN_SYNC: 'in-sync'>, rows=(0,)),), [1])

Source: Kafka metadata PartitionChangeBuilder.electLeader and electAnyLeader, 4.4.0; KIP-966.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

import attrs
import numpy as np

from broker.cluster import PAD, ClusterView, Int32Array, Int64Array
from broker.ids import NO_LEADER, BrokerId
from broker.row_flags import any_in_row, first_in_row, members
from placement.balance.out_of_sync import may_lead
from placement.outages.returning import ascending


class Role(Enum):
    """Why a replica may lead without loss, the first that some replica of the partition has."""

    IN_SYNC = "in-sync"
    ELIGIBLE = "eligible"
    LAST_KNOWN = "last known leader"
    UNKNOWN = "unknown"


_ROLES: Final = tuple(Role)


@attrs.frozen
class Returning:
    """Hold brokers of which one is enough for the partitions in `rows`; none is known for `Role.UNKNOWN`."""

    broker_ids: tuple[BrokerId, ...]
    role: Role
    rows: tuple[int, ...]


@attrs.frozen(kw_only=True, eq=False)
class Leaderless:
    """Hold the partitions without a leader, in columns: rows int64[N] of `view.partitions`, and who may lead them.

    `candidates` int32[N, W] are broker ids, ascending, -1 pads; `role` int8[N] places in `Role`; `elected` int32[N] the
    broker that an unclean election takes, -1 where no other replica is live.
    """

    rows: Int64Array
    candidates: Int32Array
    role: Int32Array
    elected: Int32Array

    def returning(self) -> tuple[Returning, ...]:
        """Return the sets of brokers, single ones first, then those of most partitions."""
        keys = np.column_stack([self.role, self.candidates])
        kinds, kind_of = np.unique(keys, axis=0, return_inverse=True)
        found = [
            Returning(
                broker_ids=tuple(BrokerId(each) for each in kind[1:].tolist() if each != PAD),
                role=_ROLES[kind[0]],
                rows=tuple(self.rows[kind_of == place].tolist()),
            )
            for place, kind in enumerate(kinds)
        ]
        return tuple(sorted(found, key=lambda each: (len(each.broker_ids), -len(each.rows), each.broker_ids)))


def leaderless(view: ClusterView) -> Leaderless:
    """Return the partitions that `view` shows to have no leader. Cost: O(replicas)."""
    table = view.partitions
    none = np.zeros(0, dtype=np.int64)
    rows = none if table.leader is None else np.flatnonzero(table.leader == NO_LEADER).astype(np.int64)
    replicas = table.replicas[rows]
    nothing = np.full((rows.size, 1), NO_LEADER - 1, dtype=np.int32)
    in_sync, eligible, last_known = (
        (replicas >= 0) & members(replicas, nothing if column is None else column[rows])
        for column in (table.isr, table.elr, table.last_known_elr)
    )
    leads = may_lead(table, rows)
    role = np.full(rows.size, _ROLES.index(Role.UNKNOWN), dtype=np.int32)
    for kind, flags in ((Role.LAST_KNOWN, last_known), (Role.ELIGIBLE, eligible), (Role.IN_SYNC, in_sync)):
        role[any_in_row(flags)] = _ROLES.index(kind)
    candidates = np.where(leads, replicas, PAD).astype(np.int32)
    offline = nothing if table.offline is None else table.offline[rows]
    live = (replicas >= 0) & ~leads & ~members(replicas, offline) & np.isin(replicas, view.broker_ids[view.alive])
    return Leaderless(
        rows=rows, candidates=ascending(candidates), role=role, elected=first_in_row(replicas, live).astype(np.int32)
    )


def preferred_rows(view: ClusterView) -> Int64Array:
    """Return the rows of the partitions that a preferred election gives their preferred leader, ascending.

    The preferred replica is alive, not listed as offline, and in the ISR where the view shows it; another one leads.
    """
    table = view.partitions
    if table.leader is None or not table.replicas.shape[1]:
        return np.zeros(0, dtype=np.int64)
    first = table.replicas[:, :1]
    alive = np.isin(first, view.broker_ids[view.alive])
    if table.isr is not None:
        alive &= members(first, table.isr)
    if table.offline is not None:
        alive &= ~members(first, table.offline)
    return np.flatnonzero(alive[:, 0] & (table.leader >= 0) & (table.leader != first[:, 0])).astype(np.int64)

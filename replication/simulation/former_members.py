"""Find leaders whose high watermark waits for a former member of the ISR, which L16 excuses.

What it decides: whether the high watermark of a leader stands still for a replica that has left the ISR, and had been
caught up within replica.lag.time.max.ms when the leader last looked.

Goals, most important first:
1. Nothing but that is excused.
2. A run with this watch has the same history as one without.

Constraints: the leader has looked for the last time when its log's end, its state of the partition or an end that it
knows of a follower last changed. That is known to a second, and the replica may have been caught up for that much less.

How: Kafka's leader looks at its high watermark after an append, after a follower's end has moved, after an answer to
AlterPartition and as it begins to lead, and not as time passes. A replica outside the ISR counts as long as it was
caught up within the limit and might join (shouldWaitForReplicaToJoinIsr). Since KAFKA-15021 one does not count that is
fenced or shuts down; one whose directory has failed does, as its broker lives. Once the limit has passed, the high
watermark could rise, but nobody looks until the next record. No ticket of Kafka's is known for that.

Example: replica.lag.time.max.ms is 2 s. Broker 0 has 48 records at 331.8 s and its directory fails; the leader appends
another at 332.293 s, hears at 332.306 s that 0 has left the ISR, and at 332.310 s that all members have 49. It waits
for 0 until the next record, which comes 20 s later.

Source: Kafka core Partition.updateFollowerFetchState, maybeIncrementLeaderHW, handleAlterPartitionUpdate, makeLeader
and appendRecordsToLeader, 4.3.1, which have the only calls; KAFKA-15021.
"""

from __future__ import annotations

import attrs

from broker.ids import BrokerId
from replication.checkers.view import leader_role
from replication.roles.leader import LeaderRole
from replication.roles.messages import Incarnation
from replication.rules.partition import BrokerStatus, Follower, PartitionState
from replication.simulation.cluster import Cluster
from replication.simulation.lag_watch import LOOK_MS


@attrs.frozen
class _Looked:
    """Hold when a leader last tried to raise its high watermark, and which brokers might join the ISR then.

    `since_ms` is its broker's clock at the last second in which it may not have looked yet; `last_ms` and `might_join`
    are of the last second seen.
    """

    at: tuple[object, ...]
    since_ms: int
    might_join_then: frozenset[BrokerId]
    last_ms: int
    might_join: frozenset[BrokerId]


class FormerMembers:
    """Note each second when every leader last tried to raise its high watermark."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._looked: dict[int, _Looked] = {}

    def look(self) -> None:
        """Note for each leader whether it has tried to raise its high watermark since the last call."""
        nodes = self._cluster.nodes
        for partition, state in self._cluster.controller.image.partitions.items():
            leader = leader_role(nodes[state.leader], partition) if state.has_leader else None
            if leader is not None:
                at = _looks_at(leader, nodes[state.leader].incarnation)
                self._looked[partition] = self._since(partition, leader, at, nodes[state.leader].now_ms)

    def _since(self, partition: int, leader: LeaderRole, at: tuple[object, ...], now_ms: int) -> _Looked:
        brokers = self._cluster.controller.image.brokers
        might_join = frozenset(
            each.broker for each in leader.state.followers if _might_join(each, brokers.get(each.broker))
        )
        known = self._looked.get(partition)
        if known is None:
            return _Looked(at, now_ms - LOOK_MS, might_join, now_ms, might_join)
        if known.at != at:
            return _Looked(at, known.last_ms, known.might_join | might_join, now_ms, might_join)
        return attrs.evolve(known, last_ms=now_ms, might_join=might_join)

    def are_waited_for(self, partition: int, known: PartitionState, leader: LeaderRole, end_offset: int) -> bool:
        """Return whether a leader waits for a former ISR member only, with `end_offset` in all logs of the ISR."""
        nodes, looked = self._cluster.nodes, self._looked.get(partition)
        logs = [nodes[broker].logs.get(partition) for broker in known.isr]
        if looked is None or any(each is None or each.log.log_end_offset < end_offset for each in logs):
            return False
        return any(
            follower.broker in looked.might_join_then - frozenset(known.isr)
            and follower.end_offset == leader.log.log.high_watermark
            and looked.since_ms - follower.caught_up_at_ms <= self._cluster.options.settings.lag_ms_max
            for follower in leader.state.followers
        )


def _looks_at(leader: LeaderRole, incarnation: Incarnation) -> tuple[object, ...]:
    """Return the state whose changes make a leader try to raise its high watermark."""
    state = leader.state
    views = state.broker, incarnation, state.leader_epoch, state.partition_epoch, state.pending
    return *views, leader.log.log.log_end_offset, tuple(follower.end_offset for follower in state.followers)


def _might_join(follower: Follower, status: BrokerStatus | None) -> bool:
    """Return whether a replica's broker is neither fenced nor shutting down, in the life in which it last fetched."""
    return status is not None and status.is_active and follower.broker_epoch == status.epoch

"""Watch that a follower that lags leaves the ISR in time, also while faults last (L15).

A member lags since the last second in which it did not yet lack anything that its leader had. The leader has 1.5 times
replica.lag.time.max.ms (it looks every half), and SLACK_MS for its request to the controller. The time starts again
whenever the partition, the leader's process or clock, or the member's process changes, while leader and controller do
not hear each other well, and while the leader has not read of the partition's present state.

Source: Kafka core ReplicaManager (isr-expiration every replica.lag.time.max.ms / 2), Partition.maybeShrinkIsr, 4.3.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from broker.ids import BrokerId
from replication.checkers import Finding
from replication.checkers.view import leader_role
from replication.roles.messages import CONTROLLER, NodeId
from replication.rules.partition import PartitionState
from replication.rules.settings import PartitionSettings
from replication.simulation.cluster import Cluster

LOOK_MS: Final = 1_000
SLACK_MS: Final = 10_000
"""How long in ms a request to the controller may take that is lost and sent again some times."""


def limit_ms(settings: PartitionSettings) -> int:
    """Return how long in ms a member of the ISR may lag before it must have left."""
    return settings.lag_ms_max * 3 // 2 + SLACK_MS


@attrs.frozen
class _Lag:
    """Hold what a member lacks: the leader's end offset at `since_ms`, and on what the measurement stands."""

    since_ms: int
    end_offset: int
    basis: tuple[object, ...]


class ClockSetbacks:
    """Note until when each broker's clock shows a time that it has shown before, as it was set back.

    By that clock a follower that is silent stays caught up: Kafka measures the lag by the time of day.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._ahead_ms: dict[BrokerId, int] = {}
        self._until_ms: dict[BrokerId, int] = {}

    def look(self) -> None:
        """Compare the clocks with those of the last look."""
        for broker, node in self._cluster.nodes.items():
            back_ms = self._ahead_ms.get(broker, 0) - node.clock_ahead_ms
            self._ahead_ms[broker] = node.clock_ahead_ms
            if back_ms > 0:
                self._until_ms[broker] = max(self._until_ms.get(broker, 0), self._cluster.now_ms) + back_ms

    def is_set_back(self, broker: BrokerId) -> bool:
        """Return whether a broker's clock shows a former time."""
        return self._cluster.now_ms < self._until_ms.get(broker, 0)


class LagWatch:
    """Look at every partition each second, and report members of the ISR that have lagged for too long."""

    def __init__(self, cluster: Cluster, find: Callable[[Finding], None]) -> None:
        self._cluster = cluster
        self._find = find
        self._lags: dict[tuple[int, BrokerId], _Lag] = {}
        self._limit_ms = limit_ms(cluster.options.settings)
        self._setbacks = ClockSetbacks(cluster)

    def begin(self) -> None:
        """Look for the first time, unless ZooKeeper keeps the ISR."""
        if not self._cluster.options.role_settings.has_zookeeper:
            self._look()

    def _look(self) -> None:
        cluster = self._cluster
        lags: dict[tuple[int, BrokerId], _Lag] = {}
        self._setbacks.look()
        if not cluster.is_without_controller and cluster.former is None:
            for partition, state in cluster.controller.image.partitions.items():
                self._look_at(partition, state, lags)
        self._lags = lags
        cluster.at(cluster.now_ms + LOOK_MS, self._look)

    def _look_at(self, partition: int, state: PartitionState, lags: dict[tuple[int, BrokerId], _Lag]) -> None:
        cluster, now_ms = self._cluster, self._cluster.now_ms
        if not state.has_leader or len(state.isr) == 1:
            return
        node = cluster.nodes[state.leader]
        role = leader_role(node, partition)
        if role is None or node.is_paused or role.state.partition_epoch != state.partition_epoch:
            return
        if not cluster.network.is_clear(NodeId(state.leader), CONTROLLER) or self._setbacks.is_set_back(state.leader):
            return
        end_offset = role.log.log.log_end_offset
        for broker in state.isr:
            if broker == state.leader:
                continue
            follower = cluster.nodes[broker]
            replica = follower.logs.get(partition)
            reached = -1 if replica is None else replica.log.log_end_offset
            basis = (state, node.incarnation, node.clock_ahead_ms, follower.incarnation, cluster.controller_address)
            lag = self._lags.get((partition, broker))
            if lag is None or lag.basis != basis or reached >= lag.end_offset:
                lag = _Lag(now_ms, end_offset, basis)
            elif now_ms - lag.since_ms > self._limit_ms:
                what = f"broker {broker} has {reached} of the {lag.end_offset} records that leader {state.leader} had"
                what = f"{what} at {lag.since_ms} ms, and is in ISR {state.isr}"
                self._find(Finding("L15", now_ms, partition, what))
                lag = _Lag(now_ms, end_offset, basis)
            lags[partition, broker] = lag

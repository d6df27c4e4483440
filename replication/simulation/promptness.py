"""Watch during faults that lagging followers leave the ISR in time (L15) and partitions commit writes (L16).

L15: a member lags since the last second in which it did not yet lack anything that its leader had. The leader has 1.5
times replica.lag.time.max.ms (it looks every half), and SLACK_MS for its request to the controller. The time starts
again whenever the partition, the leader's process or clock, or the member's process changes, while leader and
controller do not hear each other well, and while the leader has not read of the partition's present state.

L16: nothing stands in the way while there is one controller, the leader is alive, has read of the partition's present
state, and hears the controller and each member of the ISR and is heard; the members are alive, hear the controller and
are min.insync.replicas at least. The time starts again when leader, epoch, a process or a clock changes. The bound is
that of L15: a member that does not fetch has left the ISR by then. One that left before it lagged counts in Kafka until
the leader looks again, at the next record: it must have taken one since.

Source: Kafka core ReplicaManager (isr-expiration every replica.lag.time.max.ms / 2), Partition.maybeShrinkIsr and
maybeIncrementLeaderHW, 4.3.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.ids import BrokerId
from replication.checkers import Finding
from replication.checkers.view import leader_role
from replication.roles.leader import LeaderRole
from replication.roles.messages import CONTROLLER, NodeId, ProduceResponse
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
    """Hold what a member lacks: the leader's end offset at `since_ms`, and what the measurement depends on."""

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


class _Watch:
    """Look at every partition each second, and report what has lasted for too long."""

    def __init__(self, cluster: Cluster, find: Callable[[Finding], None]) -> None:
        self._cluster = cluster
        self._find = find
        self._limit_ms = limit_ms(cluster.options.settings)
        self._setbacks = ClockSetbacks(cluster)

    def begin(self) -> None:
        """Look for the first time, unless ZooKeeper keeps the ISR."""
        if not self._cluster.options.role_settings.has_zookeeper:
            self._look()

    def _look(self) -> None:
        cluster = self._cluster
        self._setbacks.look()
        is_led = not cluster.is_without_controller and cluster.former is None
        self._look_at_all(cluster.controller.image.partitions if is_led else {})
        cluster.at(cluster.now_ms + LOOK_MS, self._look)

    def _look_at_all(self, partitions: Mapping[int, PartitionState]) -> None:
        """Look at all partitions; none while it is not known which controller leads them."""
        raise NotImplementedError


class LagWatch(_Watch):
    """Look at every partition each second, and report members of the ISR that have lagged for too long."""

    def __init__(self, cluster: Cluster, find: Callable[[Finding], None]) -> None:
        super().__init__(cluster, find)
        self._lags: dict[tuple[int, BrokerId], _Lag] = {}

    def _look_at_all(self, partitions: Mapping[int, PartitionState]) -> None:
        lags: dict[tuple[int, BrokerId], _Lag] = {}
        for partition, state in partitions.items():
            self._look_at(partition, state, lags)
        self._lags = lags

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


REFUSALS: Final = frozenset(
    {
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
"""The answers by which a leader does not take a write, whoever sent it."""


@attrs.frozen
class _Unhindered:
    """Hold since when nothing has hindered a partition, what that depends on, and what is to be committed."""

    since_ms: int
    basis: tuple[object, ...]
    asked_ms: int
    end_offset: int
    log_end_offset: int
    appended_ms: int
    """When the log was last seen to have grown."""
    partition_epoch: int = attrs.field(kw_only=True)


class WriteWatch(_Watch):
    """Look at every partition each second, and report those that do not commit, or refuse writes, without a reason."""

    def __init__(self, cluster: Cluster, find: Callable[[Finding], None]) -> None:
        super().__init__(cluster, find)
        self._unhindered: dict[int, _Unhindered] = {}
        self._refused: dict[tuple[int, NodeId], str] = {}
        """The last refusal since the last look, by partition and broker, in words."""

    def note_refusal(self, node: NodeId, answer: ProduceResponse) -> None:
        """Note that a broker has answered a write with an error."""
        if answer.error in REFUSALS:
            self._refused[answer.partition, node] = (
                f"broker {node} answered {answer.error.name} at {self._cluster.now_ms} ms"
            )

    def _look_at_all(self, partitions: Mapping[int, PartitionState]) -> None:
        unhindered: dict[int, _Unhindered] = {}
        for partition, state in partitions.items():
            role = self._unhindered_leader(partition, state)
            if role is not None:
                unhindered[partition] = self._look_at(partition, state, role)
        self._unhindered = unhindered
        self._refused.clear()

    def _unhindered_leader(self, partition: int, state: PartitionState) -> LeaderRole | None:
        """Return the leader of a partition that nothing hinders, else None."""
        cluster = self._cluster
        if not state.has_leader or len(state.isr) < min(cluster.options.settings.min_isr, len(state.replicas)):
            return None
        leader, is_clear = NodeId(state.leader), cluster.network.is_clear
        role = leader_role(cluster.nodes[state.leader], partition)
        if role is None or role.state.partition_epoch != state.partition_epoch:
            return None
        if self._setbacks.is_set_back(state.leader):
            return None  # It waits for a dead follower outside the ISR as for one that is caught up.
        for broker in state.isr:
            node, machine = NodeId(broker), cluster.nodes[broker]
            if machine.role is None or machine.is_paused or not is_clear(node, CONTROLLER):
                return None
            if node != leader and not is_clear(leader, node):
                return None
        return role

    def _look_at(self, partition: int, state: PartitionState, role: LeaderRole) -> _Unhindered:
        cluster, now_ms, log = self._cluster, self._cluster.now_ms, role.log.log
        members = tuple(
            (broker, cluster.nodes[broker].incarnation, cluster.nodes[broker].clock_ahead_ms)
            for broker in sorted(state.isr)
        )
        basis = (state.leader, state.leader_epoch, members, cluster.controller_address)
        unhindered = self._unhindered.get(partition)
        if unhindered is None or unhindered.basis != basis:
            end = log.log_end_offset
            return _Unhindered(now_ms, basis, now_ms, end, end, now_ms, partition_epoch=state.partition_epoch)
        refused = self._refused.get((partition, NodeId(state.leader)))
        # Whoever refused under another ISR may have had too small a one in between.
        is_same = unhindered.partition_epoch == state.partition_epoch
        appended_ms = now_ms if log.log_end_offset > unhindered.log_end_offset else unhindered.appended_ms
        unhindered = attrs.evolve(
            unhindered,
            partition_epoch=state.partition_epoch,
            log_end_offset=log.log_end_offset,
            appended_ms=appended_ms,
        )
        if refused is not None and is_same and now_ms - unhindered.since_ms > self._limit_ms:
            what = f"nothing has stood in the way of leader {state.leader} since {unhindered.since_ms} ms"
            self._find(Finding("L16", now_ms, partition, f"{what}, and {refused}"))
        if log.high_watermark >= unhindered.end_offset:
            return attrs.evolve(unhindered, asked_ms=now_ms, end_offset=log.log_end_offset)
        if now_ms - unhindered.asked_ms > self._limit_ms:
            is_looked_at = unhindered.asked_ms + cluster.options.settings.lag_ms_max < appended_ms < now_ms
            if not is_looked_at:
                return unhindered
            what = f"{unhindered.end_offset} records at {unhindered.asked_ms} ms, hears ISR {state.isr}"
            what = f"leader {state.leader} had {what}, and has committed {log.high_watermark}"
            self._find(Finding("L16", now_ms, partition, what))
            return attrs.evolve(unhindered, asked_ms=now_ms, end_offset=log.log_end_offset)
        return unhindered

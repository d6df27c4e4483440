"""Watch that a partition takes and commits writes under faults that do not concern it (L16).

Nothing stands in the way while there is one controller, the leader is alive, has read of the partition's present state,
and hears the controller and each member of the ISR and is heard; the members are alive, hear the controller and are
min.insync.replicas at least. The time starts again when leader, epoch, a process or a clock changes. The bound is that
of L15, `limit_ms`: a member that does not fetch has left the ISR by then, and does not count. One that left before it
lagged counts in Kafka until the leader looks again, at the next record: it must have taken one since.

Source: ours; Kafka core Partition.maybeShrinkIsr and maybeIncrementLeaderHW, 4.3.1, for the bound.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from broker.error_codes import ErrorCode
from replication.checkers import Finding
from replication.checkers.view import leader_role
from replication.roles.leader import LeaderRole
from replication.roles.messages import CONTROLLER, NodeId, ProduceResponse
from replication.rules.partition import PartitionState
from replication.simulation.cluster import Cluster
from replication.simulation.lag_watch import LOOK_MS, ClockSetbacks, limit_ms

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
class _Clear:
    """Hold since when nothing stands in a partition's way, on what that stands, and what is to be committed."""

    since_ms: int
    basis: tuple[object, ...]
    asked_ms: int
    end_offset: int
    log_end_offset: int
    appended_ms: int
    """When the log was last seen to have grown."""
    partition_epoch: int = attrs.field(kw_only=True)


class WriteWatch:
    """Look at every partition each second, and report those that do not commit, or refuse writes, without a reason."""

    def __init__(self, cluster: Cluster, find: Callable[[Finding], None]) -> None:
        self._cluster = cluster
        self._find = find
        self._limit_ms = limit_ms(cluster.options.settings)
        self._setbacks = ClockSetbacks(cluster)
        self._clear: dict[int, _Clear] = {}
        self._refused: dict[tuple[int, NodeId], str] = {}
        """The last refusal since the last look, by partition and broker, in words."""

    def begin(self) -> None:
        """Look for the first time, unless ZooKeeper keeps the ISR."""
        if not self._cluster.options.role_settings.has_zookeeper:
            self._look()

    def note_refusal(self, node: NodeId, answer: ProduceResponse) -> None:
        """Note that a broker has answered a write with an error."""
        if answer.error in REFUSALS:
            self._refused[answer.partition, node] = (
                f"broker {node} answered {answer.error.name} at {self._cluster.now_ms} ms"
            )

    def _look(self) -> None:
        cluster = self._cluster
        clear: dict[int, _Clear] = {}
        self._setbacks.look()
        if not cluster.is_without_controller and cluster.former is None:
            for partition, state in cluster.controller.image.partitions.items():
                role = self._leader_in_the_clear(partition, state)
                if role is not None:
                    clear[partition] = self._look_at(partition, state, role)
        self._clear = clear
        self._refused.clear()
        cluster.at(cluster.now_ms + LOOK_MS, self._look)

    def _leader_in_the_clear(self, partition: int, state: PartitionState) -> LeaderRole | None:
        """Return the leader of a partition that nothing stands in the way of, else None."""
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

    def _look_at(self, partition: int, state: PartitionState, role: LeaderRole) -> _Clear:
        cluster, now_ms, log = self._cluster, self._cluster.now_ms, role.log.log
        members = tuple(
            (broker, cluster.nodes[broker].incarnation, cluster.nodes[broker].clock_ahead_ms)
            for broker in sorted(state.isr)
        )
        basis = (state.leader, state.leader_epoch, members, cluster.controller_address)
        clear = self._clear.get(partition)
        if clear is None or clear.basis != basis:
            end = log.log_end_offset
            return _Clear(now_ms, basis, now_ms, end, end, now_ms, partition_epoch=state.partition_epoch)
        refused = self._refused.get((partition, NodeId(state.leader)))
        # Whoever refused under another ISR may have had too small a one in between.
        is_same = clear.partition_epoch == state.partition_epoch
        appended_ms = now_ms if log.log_end_offset > clear.log_end_offset else clear.appended_ms
        clear = attrs.evolve(
            clear,
            partition_epoch=state.partition_epoch,
            log_end_offset=log.log_end_offset,
            appended_ms=appended_ms,
        )
        if refused is not None and is_same and now_ms - clear.since_ms > self._limit_ms:
            what = f"nothing has stood in the way of leader {state.leader} since {clear.since_ms} ms"
            self._find(Finding("L16", now_ms, partition, f"{what}, and {refused}"))
        if log.high_watermark >= clear.end_offset:
            return attrs.evolve(clear, asked_ms=now_ms, end_offset=log.log_end_offset)
        if now_ms - clear.asked_ms > self._limit_ms:
            is_looked_at = clear.asked_ms + cluster.options.settings.lag_ms_max < appended_ms < now_ms
            if not is_looked_at:
                return clear
            what = f"{clear.end_offset} records at {clear.asked_ms} ms, hears ISR {state.isr}"
            what = f"leader {state.leader} had {what}, and has committed {log.high_watermark}"
            self._find(Finding("L16", now_ms, partition, what))
            return attrs.evolve(clear, asked_ms=now_ms, end_offset=log.log_end_offset)
        return clear

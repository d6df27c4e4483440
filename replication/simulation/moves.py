"""Draw the reassignments of fault injection: what an operator orders, whatever the partition is doing.

The replication factor changes too; it never falls below min.insync.replicas, as a strict run may lose so many replicas
less one. A move under way may be replaced, unless the new one adds nobody or removes nobody: Kafka then keeps those of
the former one (`rules.reassign.started`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from broker.entropy import SplitMix64, derive
from broker.ids import BrokerId
from replication.roles.messages import CONTROLLER, AlterPartitionReassignments
from replication.rules.partition import PartitionState
from replication.simulation.cluster import Cluster

_STREAM: Final = 21
_TRIES: Final = 20


def order_move(cluster: Cluster, partition: int, number: int) -> None:
    """Let an operator order the move of a partition that `number` decides, where there is one."""
    state, options = cluster.controller.image.partitions.get(partition), cluster.options
    # The ZooKeeper-era controller of this model carries out one move after another.
    if state is None or (options.role_settings.has_zookeeper and state.is_reassigning):
        return
    target = drawn_target(state, sorted(cluster.nodes), options.settings.min_isr, number)
    if target is not None:
        cluster.trace.line(cluster.now_ms, f"partition {partition} is to move to {', '.join(map(str, target))}")
        cluster.deliver(CONTROLLER, AlterPartitionReassignments(partition, target))


def drawn_target(
    state: PartitionState, brokers: Sequence[BrokerId], min_isr: int, number: int
) -> tuple[BrokerId, ...] | None:
    """Return the replicas of the move that `number` decides; None if no other set of replicas was drawn."""
    entropy = SplitMix64(derive(abs(number), _STREAM))
    for _ in range(_TRIES):
        target: list[int] = [broker for broker in brokers if entropy.next_int_bound(2)]
        entropy.shuffle(target)
        if len(target) >= min_isr and _is_feasible(state, frozenset(map(BrokerId, target))):
            return tuple(map(BrokerId, target))
    return None


def _is_feasible(state: PartitionState, target: frozenset[BrokerId]) -> bool:
    added, removed = target.difference(state.replicas), frozenset(state.replicas) - target
    keeps_added = not added and not target.issuperset(state.adding)
    keeps_removed = not removed and not target.isdisjoint(state.removing)
    return bool(added or removed) and not keeps_added and not keeps_removed

"""Check the effect of operator requests (L14): preferred elections, reassignments and deletions.

The order is compared with the controller's image before and after it, without any rule. What Kafka promises at once is
checked at once: a preferred replica that is alive and in the ISR leads after PREFERRED ElectLeaders and after the task
of every five minutes, unless its partition is being reassigned. A reassignment has until the end of the run; one that
is refused, or that a later order replaces or cancels, binds nobody.

Source: Kafka metadata ReplicationControlManager.electLeader, maybeBalancePartitionLeaders, alterPartitionReassignment
and cancelPartitionReassignment, 4.3.1; KIP-455, KIP-460.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from broker.ids import BrokerId
from replication.checkers.view import CheckedCluster
from replication.roles.messages import (
    AlterPartitionReassignments,
    BalanceDue,
    DeleteTopic,
    ElectLeaders,
    Message,
)
from replication.rules.election import Election, elect
from replication.rules.partition import BrokerStatus, PartitionState

ORDERS: Final = frozenset({AlterPartitionReassignments, BalanceDue, DeleteTopic, ElectLeaders})
"""The messages that this checker looks at."""


class OrderChecker:
    """Keep the orders that bind the cluster, and compare it with them."""

    def __init__(self) -> None:
        self._targets: dict[int, frozenset[BrokerId]] = {}
        """The replicas that each partition was last told to have."""
        self._deleted: set[int] = set()

    def after(
        self, cluster: CheckedCluster, message: Message, before: PartitionState | None
    ) -> Iterator[tuple[int, str]]:
        """Yield each partition whose order the controller has not carried out; `before` is the ordered one before."""
        settings = cluster.controller.role_settings
        if settings.has_zookeeper:
            return
        image = cluster.controller.image
        if isinstance(message, AlterPartitionReassignments):
            after = image.partitions.get(message.partition)
            self._note_move(message, before, after, image.brokers)
            if not message.replicas and before is not None and after is before and _may_be_cancelled(before):
                yield message.partition, f"the move of replicas {before.replicas} was not cancelled"
        elif isinstance(message, DeleteTopic):
            self._deleted.add(message.partition)
        elif settings.policy is not elect:
            return
        elif isinstance(message, BalanceDue):
            yield from _not_preferred(image.partitions.items(), image.brokers)
        elif isinstance(message, ElectLeaders) and message.election is Election.PREFERRED:
            state = image.partitions.get(message.partition)
            if state is not None:
                yield from _not_preferred([(message.partition, state)], image.brokers)

    def missing(self, cluster: CheckedCluster) -> str | None:
        """Return in words the first order that has not taken effect; None if all have."""
        partitions = cluster.controller.image.partitions
        for partition in sorted(self._deleted):
            holders = [broker for broker, node in sorted(cluster.nodes.items()) if partition in node.logs]
            if partition in partitions or holders:
                return f"partition {partition} was deleted and has logs on {holders}"
        for partition, target in sorted(self._targets.items()):
            state = partitions.get(partition)
            if state is not None and set(state.replicas) != target:
                return f"partition {partition} was told to move to {sorted(target)} and has replicas {state.replicas}"
        return None

    def _note_move(
        self,
        order: AlterPartitionReassignments,
        before: PartitionState | None,
        after: PartitionState | None,
        brokers: Mapping[BrokerId, BrokerStatus],
    ) -> None:
        if before is None or after is None:
            return
        target = frozenset(order.replicas)
        if not target:
            if before.is_reassigning and not after.is_reassigning:
                self._targets[order.partition] = frozenset(before.replicas) - frozenset(before.adding)
            return
        is_valid = len(target) == len(order.replicas) and target <= brokers.keys()
        # With a former replica in the ELR Kafka may fail, and then nothing is ordered and nothing changes.
        if is_valid and (set(before.elr) <= set(before.replicas) or after is not before):
            self._targets[order.partition] = target


def _may_be_cancelled(state: PartitionState) -> bool:
    """Return whether a reassignment is in progress without which somebody is in sync, so that Kafka cancels it."""
    has_former_in_elr = not set(state.elr) <= set(state.replicas)
    return state.is_reassigning and not set(state.isr) <= set(state.adding) and not has_former_in_elr


def _not_preferred(
    partitions: Iterable[tuple[int, PartitionState]], brokers: Mapping[BrokerId, BrokerStatus]
) -> Iterator[tuple[int, str]]:
    """Yield each partition that its preferred replica does not lead, though it is alive and in the ISR."""
    for partition, state in partitions:
        preferred = state.replicas[0]
        status = brokers.get(preferred)
        is_able = status is not None and status.is_active and partition not in status.offline
        if is_able and preferred in state.isr and state.leader != preferred and not state.is_reassigning:
            yield partition, f"broker {preferred} is preferred, alive and in ISR {state.isr}, and {state.leader} leads"

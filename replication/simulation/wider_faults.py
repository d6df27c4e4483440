"""Apply the faults outside the brokers' processes: splits, controllers, late metadata, clocks.

The numbers of the fault alone decide the groups: bit b of `detail` says on which side broker b is; its target is always
on the first side, and another broker on the second.

Source: ours; KAFKA-14154 and KAFKA-15489 for former controllers, KIP-455 for cancelled moves.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final

from broker.ids import BrokerId
from broker.units import TimeMs
from replication.roles.controller import ControllerRole
from replication.roles.messages import CONTROLLER, AlterPartition, AlterPartitionReassignments, Message, NodeId
from replication.roles.outbox import Outbox
from replication.simulation.cluster import Action, Cluster
from replication.simulation.fault import Fault
from replication.simulation.former_controller import FormerController
from replication.simulation.moves import order_move
from replication.simulation.network import Hold
from replication.simulation.options import FaultKind

_CONTROLLER_SIDES: Final = 3
_DRIFT_STEP_MS: Final = 250
_DRIFT_MAX: Final = 50
"""The greatest drift of a clock in ms for each step of 250 ms."""
_SLOW_DISK_MS: Final = (500, 4_000)
_MANY: Final = 1_000_000


class WiderFaults:
    """Apply these faults to a cluster and undo them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._is_over = False
        self._away_until_ms = 0
        self._by_kind = {
            FaultKind.SPLIT: self._split,
            FaultKind.SPLIT_RACK: self._split_rack,
            FaultKind.CONTROLLER_AWAY: self._lose_controller,
            FaultKind.ZOMBIE_CONTROLLER: self._replace_controller,
            FaultKind.LATE_METADATA: self._delay_metadata,
            FaultKind.CLOCK_DRIFT: self._drift,
            FaultKind.SLOW_DISK: self._slow_disk,
            FaultKind.CANCEL_REASSIGNMENT: self._cancel,
        }
        self._cancelling: set[int] = set()
        """The partitions whose move is to be cancelled once an added replica is in sync."""
        self.former_count = 0
        """How many requests former controllers have answered."""

    def strike(self, fault: Fault) -> bool:
        """Apply a fault; return False for a kind that is not of these."""
        apply = self._by_kind.get(fault.kind)
        if apply is None:
            return False
        apply(fault)
        return True

    def heal(self) -> None:
        """End all of these faults; the network is healed by its own."""
        self._is_over = True
        self._cluster.former = None
        if self._cluster.is_without_controller:
            self._cluster.fail_over()

    def _split(self, fault: Fault) -> None:
        brokers = sorted(self._cluster.nodes)
        near = {broker for broker in brokers if broker == fault.target or abs(fault.choice) >> broker & 1}
        if len(near) == len(brokers):
            near -= {brokers[fault.target - 1]}
        self._part(fault, near, abs(fault.choice) // 2 ** len(brokers) % _CONTROLLER_SIDES)

    def _split_rack(self, fault: Fault) -> None:
        near = {broker for broker, node in self._cluster.nodes.items() if node.rack == fault.target}
        self._part(fault, near, abs(fault.choice) % 2)

    def _part(self, fault: Fault, near: set[BrokerId], side: int) -> None:
        """Split the brokers; the controller hears the far ones only, the near ones only, or both."""
        far = set(self._cluster.nodes) - near
        if not near or not far:
            return
        groups = [{NodeId(broker) for broker in near}, {NodeId(broker) for broker in far}]
        if side < len(groups):
            groups[1 - side].add(CONTROLLER)
        heard = ("the others", "them", "both")[side]
        self._trace_line(
            f"brokers {_listed(near)} and {_listed(far)} do not hear each other for {fault.duration_ms} ms; "
            f"the controller hears {heard}"
        )
        one, other = (sorted(group) for group in groups)
        ways = [way for here in one for there in other for way in ((here, there), (there, here))]
        for way in ways:
            self._cluster.network.cut(*way)
        self._later(fault.duration_ms, partial(self._join, ways))

    def _join(self, ways: list[tuple[NodeId, NodeId]]) -> None:
        self._trace_line("a split is over")
        for way in ways:
            self._cluster.network.heal(*way)

    def _lose_controller(self, fault: Fault) -> None:
        cluster = self._cluster
        self._trace_line(f"nobody is controller for {fault.duration_ms} ms")
        cluster.lose_controller()
        self._away_until_ms = max(self._away_until_ms, cluster.now_ms + fault.duration_ms)
        self._later(fault.duration_ms, self._find_controller)

    def _find_controller(self) -> None:
        cluster = self._cluster
        if cluster.is_without_controller and cluster.now_ms >= self._away_until_ms:
            self._trace_line("another controller takes over")
            cluster.fail_over()

    def _replace_controller(self, fault: Fault) -> None:
        cluster = self._cluster
        if cluster.is_without_controller or cluster.former is not None:
            return
        asking = [
            broker for broker in sorted(cluster.nodes) if broker == fault.target or abs(fault.choice) >> broker & 1
        ]
        # In ZooKeeper mode a former controller is a broker, which is told by the epochs of its requests.
        if type(cluster.controller) is ControllerRole:
            former = FormerController(cluster.controller, frozenset(NodeId(broker) for broker in asking))
            cluster.former = former
            self._later(fault.duration_ms, partial(self._depose, former))
        self._trace_line(
            f"another controller takes over; brokers {_listed(asking)} ask the former one for {fault.duration_ms} ms"
        )
        cluster.fail_over()

    def _depose(self, former: FormerController) -> None:
        self.former_count += former.answer_count
        if self._cluster.former is former:
            self._cluster.former = None

    def _delay_metadata(self, fault: Fault) -> None:
        self._trace_line(f"broker {fault.target} gets no metadata for {fault.duration_ms} ms")
        until_ms = TimeMs(self._cluster.now_ms + fault.duration_ms)
        hold = Hold("MetadataFetchResponse", until_ms, _MANY, receiver=NodeId(fault.target))
        self._cluster.network.hold(hold)

    def _drift(self, fault: Fault) -> None:
        by_ms = fault.choice % _DRIFT_MAX + 1
        by_ms = -by_ms if fault.choice < 0 else by_ms
        self._trace_line(
            f"the clock of broker {fault.target} gains {by_ms} ms in {_DRIFT_STEP_MS}, for {fault.duration_ms} ms"
        )
        self._drift_on(BrokerId(fault.target), by_ms, self._cluster.now_ms + fault.duration_ms)

    def _drift_on(self, broker: BrokerId, by_ms: int, until_ms: int) -> None:
        if self._cluster.now_ms < until_ms:
            self._cluster.nodes[broker].clock_ahead_ms += by_ms
            self._later(_DRIFT_STEP_MS, partial(self._drift_on, broker, by_ms, until_ms))

    def _slow_disk(self, fault: Fault) -> None:
        least, most = _SLOW_DISK_MS
        by_ms = least + abs(fault.choice) % (most - least)
        network, node = self._cluster.network, NodeId(fault.target)
        self._trace_line(f"the disk of broker {node} takes {by_ms} ms more for {fault.duration_ms} ms")
        network.slow_disk(node, by_ms)
        self._later(fault.duration_ms, partial(network.quicken_disk, node))

    def _cancel(self, fault: Fault) -> None:
        """Move a partition; cancel at the fault's end or, if the detail is odd, once an added replica is in sync."""
        order_move(self._cluster, fault.target, fault.choice)
        if fault.choice % 2:
            self._cancelling.add(fault.target)
            if self._cancel_in_sync not in self._cluster.controller_watches:
                self._cluster.controller_watches.append(self._cancel_in_sync)
        self.cancel_later(fault)

    def _cancel_in_sync(self, cluster: Cluster, _node: NodeId, message: Message, _out: Outbox) -> None:
        if type(message) is AlterPartition and message.partition in self._cancelling and not self._is_over:
            state = cluster.controller.image.partitions.get(message.partition)
            if state is not None and not set(state.adding).isdisjoint(state.isr):
                self._call_off(message.partition)

    def cancel_later(self, fault: Fault) -> None:
        """Cancel a partition's reassignment at the end of the fault, if one is under way."""
        self._later(fault.duration_ms, partial(self._call_off, fault.target))

    def _call_off(self, partition: int) -> None:
        self._cancelling.discard(partition)
        self._trace_line(f"the move of partition {partition} is to be cancelled")
        self._cluster.deliver(CONTROLLER, AlterPartitionReassignments(partition, ()))

    def _later(self, for_ms: int, action: Action) -> None:
        def due() -> None:
            if not self._is_over:
                action()

        self._cluster.at(self._cluster.now_ms + for_ms, due)

    def _trace_line(self, text: str) -> None:
        self._cluster.trace.line(self._cluster.now_ms, text)


def _listed(brokers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(brokers)))

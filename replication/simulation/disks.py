"""Let the disks of a machine fail: full, broken in one log directory, or without blocks that were never flushed.

A run whose plan has no such fault keeps its storage as it is, and its speed, unless `let_disks_fail` was called before
it began. A process ends when its last directory has failed, as Kafka's does.

Source: ours; KIP-112, KIP-858; Pillai et al. (OSDI 2014) for the blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from broker.entropy import RandomSource
from broker.ids import BrokerId
from log.storage import Storage
from log.storage.faults import Fault as LogFault
from log.storage.faults import FaultKind as LogFaultKind
from log.storage.faults import FaultyStorage
from replication.roles.messages import CONTROLLER, Message, NodeId
from replication.roles.outbox import Outbox
from replication.simulation.cluster import Cluster
from replication.simulation.fault import Fault
from replication.simulation.node import TORN_BYTES_MAX, Node
from replication.simulation.options import FaultKind

DISK_KINDS: Final = (FaultKind.FULL_DISK, FaultKind.FAILED_DIRECTORY)
_NOTHING: Final = LogFault("", LogFaultKind.NO_SPACE)
_HOW: Final = {FaultKind.FULL_DISK: LogFaultKind.NO_SPACE, FaultKind.FAILED_DIRECTORY: LogFaultKind.TORN_WRITE}
BLOCK_BYTES: Final = 512
"""The size of a block of a disk: small, as the logs of a simulation are."""
_LOST_ONE_IN: Final = 3
_LOOK_MS: Final = 500


class ArmedStorage(FaultyStorage):
    """Fail at the next operation that matches the fault of `arm`, and at all later ones if it `lasts`."""

    def __init__(self, storage: Storage) -> None:
        super().__init__(storage, _NOTHING)
        self.has_struck = True
        self._lasts = False

    def arm(self, fault: LogFault, *, lasts: bool = False) -> None:
        """Let `fault` strike from now on: once, or until `disarm`."""
        self._fault = fault
        self._waiting_count = fault.passed_count
        self._lasts = lasts
        self.has_struck = False

    def disarm(self) -> None:
        """Let nothing fail any more."""
        self.has_struck = True

    def spared(self, act: Callable[[], int]) -> int:
        """Run `act`, an operation outside the broker's control, without injected faults."""
        had_struck, self.has_struck = self.has_struck, True
        done = act()
        self.has_struck = had_struck
        return done

    def strikes(self, path: str, kinds: frozenset[LogFaultKind]) -> LogFaultKind | None:
        """Return the fault if it strikes at this operation on `path`."""
        struck = super().strikes(path, kinds)
        if struck is not None and self._lasts:
            self.has_struck = False
        return struck


def let_disks_fail(cluster: Cluster) -> None:
    """Prepare the disks of a cluster that has not begun for faults, at whatever time they are injected."""
    for node in cluster.nodes.values():
        if not isinstance(node.storage, ArmedStorage):
            node.around = ArmedStorage
            node.storage = ArmedStorage(node.storage)


class DiskFaults:
    """Apply the faults of disks to a cluster whose disks were prepared for them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._watches = False
        self.is_over = False

    def can_strike(self) -> bool:
        """Return whether the disks are prepared for faults."""
        return all(isinstance(node.storage, ArmedStorage) for node in self._cluster.nodes.values())

    def watch(self) -> None:
        """Look after each event whether a broker has lost its last log directory."""
        if not self._watches:
            self._watches = True
            self._cluster.watches.append(self._after_event)

    def strike(self, fault: Fault) -> None:
        """Let one log directory of a broker fail until the fault's time is over."""
        self.watch()
        cluster, broker = self._cluster, BrokerId(fault.target)
        node = cluster.nodes[broker]
        storage = node.storage
        if node.role is None or not isinstance(storage, ArmedStorage) or not storage.has_struck:
            return
        directory = f"disk-{abs(fault.choice) % cluster.options.role_settings.directory_count}"
        storage.arm(LogFault(f"{directory}/*.log", _HOW[fault.kind]), lasts=True)
        what = "is full" if fault.kind is FaultKind.FULL_DISK else "fails"
        self._trace_line(f"{directory} of broker {broker} {what} for {fault.duration_ms} ms")
        cluster.at(cluster.now_ms + fault.duration_ms, partial(self._repair_unless_over, broker))

    def heal(self) -> None:
        """Repair all disks, and restart brokers that have lost a directory."""
        self.is_over = True
        self.mend()

    def mend(self) -> None:
        """Repair all disks; brokers that have lost a directory are restarted, those that ended start soon."""
        for broker in sorted(self._cluster.nodes):
            self._repair(broker)

    def _repair_unless_over(self, broker: BrokerId) -> None:
        if not self.is_over:
            self._repair(broker)

    def _repair(self, broker: BrokerId) -> None:
        node = self._cluster.nodes[broker]
        if isinstance(node.storage, ArmedStorage):
            node.storage.disarm()
        if node.role is not None and node.has_lost_disk:
            self._trace_line(f"broker {broker} is restarted with its disks mended")
            node.kill()
            self._cluster.start_broker(broker)

    def _after_event(self, cluster: Cluster, node: NodeId, _message: Message, _out: Outbox) -> None:
        """End a process that has lost its last log directory; it starts again when the disk is repaired."""
        if node >= CONTROLLER:
            return
        machine = cluster.nodes[BrokerId(node)]
        if machine.role is not None and machine.has_no_disk:
            self._trace_line(f"broker {node} has lost its last log directory and ends")
            machine.kill()
            cluster.at(cluster.now_ms + _LOOK_MS, partial(self._start_repaired, machine, machine.incarnation))

    def _start_repaired(self, node: Node, incarnation: int) -> None:
        """Start a process that ended with its last directory as soon as the disk is repaired."""
        if self.is_over or node.role is not None or node.incarnation != incarnation:
            return
        if isinstance(node.storage, ArmedStorage) and not node.storage.has_struck:
            self._cluster.at(self._cluster.now_ms + _LOOK_MS, partial(self._start_repaired, node, incarnation))
            return
        self._trace_line(f"broker {node.broker} starts with its disk mended")
        self._cluster.start_broker(node.broker)

    def _trace_line(self, text: str) -> None:
        self._cluster.trace.line(self._cluster.now_ms, text)


def lose_blocks(node: Node, entropy: RandomSource) -> int:
    """Zero some blocks of what each log had not flushed; return the number of lost bytes."""
    assert node.role is None, node.broker
    if isinstance(node.storage, ArmedStorage):
        return node.storage.spared(lambda: _lose_blocks(node, entropy))
    return _lose_blocks(node, entropy)


def _lose_blocks(node: Node, entropy: RandomSource) -> int:
    lost = 0
    for partition, each in sorted(node.logs.items()):
        log = each.log
        path = f"{node.directory_of(partition)}/{log.active_segment.base_offset:020d}.log"
        size_bytes = node.storage.size_bytes(path)
        start = node.flushed_bytes(partition)
        file = node.storage.open(path)
        for position in range(max(start, size_bytes - TORN_BYTES_MAX), size_bytes, BLOCK_BYTES):
            if entropy.next_int_bound(_LOST_ONE_IN) == 0:
                length = min(BLOCK_BYTES, size_bytes - position)
                file.write_at(position, bytes(length))
                lost += length
    if lost:
        node.lossy_incarnation = node.incarnation
    return lost

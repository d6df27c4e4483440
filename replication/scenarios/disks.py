"""What a scenario does to disks: a directory that fails, a bit that turns over, a flush after every write.

It decides how a disk is made to fail: by the faults of `log.storage.faults`, armed when their time has come; whatever
follows is the broker's doing.

Constraints: a process whose last directory has failed ends, as Kafka's does.

Worked example: `DiskFault(5_000, 0, LogFault("disk-0/*.log", FaultKind.NO_SPACE), 20_000)`: broker 0's first disk is
full at its next write after 5 s; should the process end by it, it starts again at 20 s, and the disk has room.

Left out: disks that are slow.

Source: ours; KIP-112.
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.ids import BrokerId, Offset
from log.files.metadata_files import PARTITION_METADATA_FILE, PartitionMetadata, write_partition_metadata
from log.storage import Storage
from log.storage.faults import Fault as LogFault
from log.storage.faults import FaultKind as LogFaultKind
from log.storage.faults import FaultyStorage
from replication.roles.messages import Message, NodeId
from replication.roles.outbox import Outbox
from replication.scenarios.acts import Stage, start_broker
from replication.simulation.cluster import Cluster
from replication.simulation.node import topic_id_of

_NOTHING: Final = LogFault("", LogFaultKind.READ_ERROR)
_VALUE_END_DISTANCE: Final = 3
"""Of a batch with one record, this many bytes before its end lies a byte of the value."""


class ArmedStorage(FaultyStorage):
    """A storage that fails once it is armed, at the next operation that its fault fits."""

    def __init__(self, storage: Storage) -> None:
        super().__init__(storage, _NOTHING)

    def arm(self, fault: LogFault) -> None:
        """Let a fault strike from now on, once."""
        self._fault = fault
        self._waiting_count = fault.passed_count
        self.has_struck = False


@attrs.frozen
class DiskFault:
    """From `at_ms` on a fault waits for a broker's next operation that fits; a process that ends starts anew later."""

    at_ms: int
    broker: int
    fault: LogFault
    until_ms: int

    def join(self, cluster: Cluster) -> None:
        """Put the storage that will fail around the machine's."""
        node = cluster.nodes[BrokerId(self.broker)]
        node.storage = ArmedStorage(node.storage)

    def strike(self, stage: Stage) -> None:
        """Arm the fault."""
        cluster, broker = stage.cluster, BrokerId(self.broker)
        node = cluster.nodes[broker]
        assert isinstance(node.storage, ArmedStorage)
        node.storage.arm(self.fault)
        text = f"a disk of broker {broker} is about to fail: {self.fault.kind.value} at {self.fault.pattern}"
        cluster.trace.line(cluster.now_ms, text)

        def end_without_disk(world: Cluster, receiver: NodeId, _message: Message, _out: Outbox) -> None:
            if receiver == NodeId(broker) and node.role is not None and node.has_no_disk:
                node.kill()
                world.trace.line(world.now_ms, f"broker {broker} has lost its last disk and ends")
                world.at(self.until_ms, lambda: start_broker(world, broker))

        cluster.watches.append(end_without_disk)


@attrs.frozen
class BitFlip:
    """A bit of one record turns over on a broker's disk."""

    at_ms: int
    broker: int
    offset: int
    partition: int = 0

    def strike(self, stage: Stage) -> None:
        """Turn it over."""
        cluster, node = stage.cluster, stage.cluster.nodes[BrokerId(self.broker)]
        log = node.logs[self.partition].log
        end = log.read(Offset(self.offset), 1).start.position + len(log.read(Offset(self.offset), 1).records)
        file = node.storage.open(f"{node.directory_of(self.partition)}/{log.active_segment.base_offset:020d}.log")
        position = end - _VALUE_END_DISTANCE
        file.write_at(position, bytes([file.read_at(position, 1)[0] ^ 1]))
        text = f"a bit of offset {self.offset} turns over on the disk of broker {self.broker}"
        cluster.trace.line(cluster.now_ms, text)


@attrs.frozen
class WrongTopicId:
    """The file beside a log says that it belongs to another topic."""

    at_ms: int
    broker: int
    partition: int
    topic_id: int

    def strike(self, stage: Stage) -> None:
        """Overwrite the file."""
        node = stage.cluster.nodes[BrokerId(self.broker)]
        path = f"{node.directory_of(self.partition)}/{PARTITION_METADATA_FILE}"
        write_partition_metadata(node.storage, path, PartitionMetadata(topic_id_of(self.topic_id)))
        text = f"on broker {self.broker} the log of partition {self.partition} now says it is of topic {self.topic_id}"
        stage.cluster.trace.line(stage.cluster.now_ms, text)


@attrs.frozen
class FlushEachWrite:
    """Every broker flushes after each record (flush.messages=1)."""

    at_ms: int = 0

    def join(self, cluster: Cluster) -> None:
        """Configure the machines."""
        for node in cluster.nodes.values():
            node.config = attrs.evolve(node.config, flush_messages=1)

    def strike(self, stage: Stage) -> None:
        """Tell it."""
        stage.cluster.trace.line(stage.cluster.now_ms, "brokers flush after each record")


PREPARED: Final = (DiskFault, FlushEachWrite)
"""Acts that join before a cluster begins."""

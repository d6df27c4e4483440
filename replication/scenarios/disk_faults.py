"""Define the disk faults of a scenario: a directory that fails, a bit that flips, a flush after each write.

What it decides: how a disk is made to fail: by the faults of `log.storage.faults`, armed at the time of the operation.
Everything that follows is decided by the broker.

Constraints: a process ends when its last directory has failed, as Kafka's does.

Example: `DiskFault(5_000, 0, LogFault("disk-0/*.log", FaultKind.NO_SPACE), 20_000)` fills broker 0's first disk at its
next write after 5 s; if the process ends by it, it starts again at 20 s with free space.

Left out: slow disks.

Source: ours; KIP-112.
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.ids import BrokerId, Offset
from log.files.metadata_files import PARTITION_METADATA_FILE, PartitionMetadata, write_partition_metadata
from log.storage.faults import Fault as LogFault
from replication.roles.messages import Message, NodeId
from replication.roles.outbox import Outbox
from replication.scenarios.operations import ScenarioContext, start_broker
from replication.simulation.cluster import Cluster
from replication.simulation.disks import ArmedStorage
from replication.simulation.node import topic_id_of

_VALUE_END_DISTANCE: Final = 3
"""The distance in bytes from the end of a batch of one record to a byte of its value."""


@attrs.frozen
class DiskFault:
    """Fail a broker's next matching disk operation after `at_ms`; restart the process at `until_ms` if it ends."""

    at_ms: int
    broker: int
    fault: LogFault
    until_ms: int

    def join(self, cluster: Cluster) -> None:
        """Wrap the machine's storage in one that can fail."""
        node = cluster.nodes[BrokerId(self.broker)]
        node.storage = ArmedStorage(node.storage)

    def perform(self, context: ScenarioContext) -> None:
        """Arm the fault."""
        cluster, broker = context.cluster, BrokerId(self.broker)
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
    """Flip one bit of one record on a broker's disk."""

    at_ms: int
    broker: int
    offset: int
    partition: int = 0

    def perform(self, context: ScenarioContext) -> None:
        """Flip the bit."""
        cluster, node = context.cluster, context.cluster.nodes[BrokerId(self.broker)]
        log = node.logs[self.partition].log
        end = log.read(Offset(self.offset), 1).start.position + len(log.read(Offset(self.offset), 1).records)
        file = node.storage.open(f"{node.directory_of(self.partition)}/{log.active_segment.base_offset:020d}.log")
        position = end - _VALUE_END_DISTANCE
        file.write_at(position, bytes([file.read_at(position, 1)[0] ^ 1]))
        text = f"a bit of offset {self.offset} turns over on the disk of broker {self.broker}"
        cluster.trace.line(cluster.now_ms, text)


@attrs.frozen
class WrongTopicId:
    """Write the id of another topic into the partition.metadata file of a log."""

    at_ms: int
    broker: int
    partition: int
    topic_id: int

    def perform(self, context: ScenarioContext) -> None:
        """Overwrite the file."""
        node = context.cluster.nodes[BrokerId(self.broker)]
        path = f"{node.directory_of(self.partition)}/{PARTITION_METADATA_FILE}"
        write_partition_metadata(node.storage, path, PartitionMetadata(topic_id_of(self.topic_id)))
        text = f"on broker {self.broker} the log of partition {self.partition} now says it is of topic {self.topic_id}"
        context.cluster.trace.line(context.cluster.now_ms, text)


@attrs.frozen
class FlushEachWrite:
    """Flush after each record on every broker (flush.messages=1)."""

    at_ms: int = 0

    def join(self, cluster: Cluster) -> None:
        """Configure the machines."""
        for node in cluster.nodes.values():
            node.config = attrs.evolve(node.config, flush_messages=1)

    def perform(self, context: ScenarioContext) -> None:
        """Write one line to the trace."""
        context.cluster.trace.line(context.cluster.now_ms, "brokers flush after each record")


PREPARED: Final = (DiskFault, FlushEachWrite)
"""The operations that join the cluster before it begins."""

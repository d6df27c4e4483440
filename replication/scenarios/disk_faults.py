"""Operations on disks: a directory that fails, and a log with another topic's id.

A process ends when its last directory has failed, as Kafka's does (KIP-112).

Example: `DiskFault(5_000, 0, LogFault("disk-0/*.log", FaultKind.NO_SPACE), 20_000)` fills broker 0's first disk at its
next write after 5 s; if the process ends by it, it starts again at 20 s with free space.
"""

from __future__ import annotations

import attrs

from broker.ids import BrokerId
from log.storage.faults import Fault as LogFault
from log.storage.metadata_files import PARTITION_METADATA_FILE, PartitionMetadata, write_partition_metadata
from replication.roles.messages import Message, NodeId
from replication.roles.outbox import Outbox
from replication.scenarios.operations import ScenarioContext, start_broker
from replication.simulation.cluster import Cluster
from replication.simulation.disks import ArmedStorage
from replication.simulation.node import topic_id_of


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

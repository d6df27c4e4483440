"""Define the operations of a scenario: requests, held messages, crashes, disks, controllers.

Brokers are plain numbers here, as in a plan of faults. `LosePower` loses an exact number of records of each log, which
`Fault` draws at random; flushed records stay.
"""

from __future__ import annotations

from typing import Final, Protocol

import attrs

from broker.ids import BrokerId, Offset
from broker.units import MIB, TimeMs
from log.partition.partition_log import PartitionLog
from log.storage.faults import Fault as LogFault
from log.storage.metadata_files import PARTITION_METADATA_FILE, PartitionMetadata, write_partition_metadata
from replication.retention import DeleteRecords
from replication.roles.messages import CONTROLLER, Address, ConsumerFetch, Message, NodeId
from replication.roles.outbox import Outbox
from replication.rules.produce import ACKS_ALL
from replication.scenarios.clients import PositionConsumer, SendRequest, SendWrite
from replication.simulation.cluster import Cluster
from replication.simulation.disks import ArmedStorage
from replication.simulation.former_controller import FormerController
from replication.simulation.network import Hold
from replication.simulation.node import topic_id_of

_MANY: Final = 1_000_000
_READ_BYTES_MAX: Final = MIB


@attrs.frozen
class ScenarioContext:
    """Hold what operations act on: the cluster and the scenario's client."""

    cluster: Cluster
    client: NodeId

    def say(self, text: str) -> None:
        """Write one line to the trace."""
        self.cluster.trace.line(self.cluster.now_ms, text)

    def ask(self, receiver: NodeId, request: Message) -> None:
        """Let the client send a request."""
        self.cluster.deliver(self.client, SendRequest(Address(receiver), request))


class Operation(Protocol):
    """Define one operation of a scenario."""

    @property
    def at_ms(self) -> int:
        """Return the virtual time of the operation in ms."""
        ...

    def perform(self, context: ScenarioContext) -> None:
        """Perform the operation."""
        ...


@attrs.frozen
class SendRecord:
    """Send one record to a broker, without retries; values count from 0 in the order of the operations."""

    at_ms: int
    broker: int
    acks: int = ACKS_ALL
    partition: int = 0

    def perform(self, context: ScenarioContext) -> None:
        """Let the client send the record."""
        cluster = context.cluster
        acks = "all" if self.acks == ACKS_ALL else self.acks
        context.say(f"value {len(cluster.history.writes)} is sent to broker {self.broker}, acks={acks}")
        cluster.deliver(context.client, SendWrite(NodeId(self.broker), self.partition, self.acks))


@attrs.frozen
class FetchFrom:
    """Fetch the records from an offset on, as a consumer does."""

    at_ms: int
    broker: int
    offset: int
    partition: int = 0

    def perform(self, context: ScenarioContext) -> None:
        """Let the client send the fetch."""
        context.say(f"a consumer asks broker {self.broker} for what is at offset {self.offset}")
        context.ask(NodeId(self.broker), ConsumerFetch(self.partition, 0, Offset(self.offset)))


@attrs.frozen
class DeleteBelow:
    """Send DeleteRecords to a broker for the records below `offset`; -1 means the high watermark."""

    at_ms: int
    broker: int
    offset: int

    def perform(self, context: ScenarioContext) -> None:
        """Let the client send the request."""
        context.say(f"broker {self.broker} is asked to delete what lies below offset {self.offset}")
        context.ask(NodeId(self.broker), DeleteRecords(0, 0, Offset(self.offset)))


@attrs.frozen
class AskController:
    """Send an admin request to the controller."""

    at_ms: int
    message: Message

    def perform(self, context: ScenarioContext) -> None:
        """Let the client send the request."""
        context.say(f"the controller is asked: {self.message}")
        context.ask(CONTROLLER, self.message)


@attrs.frozen
class HoldMessages:
    """Hold messages of one type, sent from `at_ms` on, until `until_ms`.

    `kind` is the name of the message's class; None as sender or receiver matches any node.
    """

    at_ms: int
    until_ms: int
    kind: str
    sender: int | None = None
    receiver: int | None = None
    count_max: int = _MANY

    def perform(self, context: ScenarioContext) -> None:
        """Let the network hold the messages."""
        sender = None if self.sender is None else NodeId(self.sender)
        receiver = None if self.receiver is None else NodeId(self.receiver)
        context.cluster.network.hold(Hold(self.kind, TimeMs(self.until_ms), self.count_max, sender, receiver))
        who = "anybody" if sender is None else f"broker {sender}"
        whom = "anybody" if receiver is None else "the controller" if receiver == CONTROLLER else f"broker {receiver}"
        context.say(f"messages {self.kind} from {who} to {whom} are held back until {self.until_ms} ms")


@attrs.frozen
class LosePower:
    """Cut a machine's power: each log loses its last `record_count` records; the broker starts again at `until_ms`."""

    at_ms: int
    broker: int
    until_ms: int
    record_count: int = 0

    def perform(self, context: ScenarioContext) -> None:
        """Cut the power and schedule the restart."""
        cluster, broker = context.cluster, BrokerId(self.broker)
        node = cluster.nodes[broker]
        if node.role is not None:
            sizes = [_size_of_last(node.logs[partition].log, self.record_count) for partition in sorted(node.logs)]
            node.kill()
            lost = node.lose_tails(_Exactly(sizes))
            context.say(f"broker {broker} loses power and {lost} bytes, down until {self.until_ms} ms")
        cluster.at(self.until_ms, lambda: start_broker(cluster, broker))


@attrs.frozen
class Crash:
    """Kill a broker's process at `at_ms` and start it again at `until_ms`."""

    at_ms: int
    broker: int
    until_ms: int

    def perform(self, context: ScenarioContext) -> None:
        """Kill the process and schedule the restart."""
        cluster, broker = context.cluster, BrokerId(self.broker)
        if cluster.nodes[broker].role is not None:
            cluster.nodes[broker].kill()
            context.say(f"broker {broker} dies, down until {self.until_ms} ms")
        cluster.at(self.until_ms, lambda: start_broker(cluster, broker))


@attrs.frozen
class StartConsumer:
    """Start a consumer of partition 0 at the beginning of the run; `checks` turns KIP-320 validation on."""

    checks: bool
    at_ms: int = 0

    def join(self, cluster: Cluster) -> PositionConsumer:
        """Add the consumer to the cluster and return it."""
        consumer = PositionConsumer(cluster.options.brokers, checks=self.checks)
        cluster.join(lambda _: consumer)
        return consumer

    def perform(self, context: ScenarioContext) -> None:
        """Write one line to the trace."""
        checks = "checks" if self.checks else "does not check"
        context.say(f"a consumer reads, and {checks} its position at a new leader")


class _Exactly:
    """Return given numbers, each once, in place of random ones; `Node.lose_tails` asks for the bytes to lose."""

    def __init__(self, numbers: list[int]) -> None:
        self._numbers = numbers

    def next_int(self) -> int:
        """Return the next number."""
        return self._numbers.pop(0)

    def next_int_bound(self, bound: int) -> int:
        """Return the next number, which must be below `bound`."""
        number = self.next_int()
        assert number < bound, (number, bound)
        return number

    def shuffle(self, items: list[int]) -> None:
        """Keep the order."""


def _size_of_last(log: PartitionLog, record_count: int) -> int:
    """Return the size in bytes of a log's last `record_count` records; each batch holds one record."""
    start_offset = max(log.log_start_offset, log.log_end_offset - record_count)
    if not record_count or start_offset == log.log_end_offset:
        return 0
    return len(log.read(Offset(start_offset), _READ_BYTES_MAX).records)


def start_broker(cluster: Cluster, broker: BrokerId) -> None:
    """Start a broker unless it is running."""
    if cluster.nodes[broker].role is None:
        cluster.trace.line(cluster.now_ms, f"broker {broker} starts")
        cluster.start_broker(broker)


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
        context.say(f"a disk of broker {broker} is about to fail: {self.fault.kind.value} at {self.fault.pattern}")

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
        of = f"the log of partition {self.partition} now says it is of topic {self.topic_id}"
        context.say(f"on broker {self.broker} {of}")


@attrs.frozen
class ZombieController:
    """Let leaders send AlterPartition to the controller of `at_ms`, which has been replaced, until `until_ms`."""

    at_ms: int
    until_ms: int

    def perform(self, context: ScenarioContext) -> None:
        """Copy the controller, and let brokers ask the copy."""
        cluster = context.cluster
        cluster.former = FormerController(cluster.controller, frozenset(map(NodeId, cluster.nodes)), agrees=True)
        context.say(f"another controller takes over; leaders still ask the former one until {self.until_ms} ms")

        def forget() -> None:
            cluster.former = None

        cluster.at(self.until_ms, forget)

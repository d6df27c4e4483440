"""What a scenario does beside faults: single writes and reads, orders of an operator, messages that are held back.

It decides how each act reaches the cluster: always as a message to a process, or as a change of the network or of a
machine, never as a change of what a role knows.

Goals, most important first
1. An act is one sentence of a scenario, with its time.
2. Whatever follows from it follows by the roles and the rules.

Constraints: brokers are numbers here, as in a plan of faults. A `PowerCut` loses exactly so many records of each log,
which `Fault` leaves to chance; what was flushed stays.

How: an act has `at_ms` and `strike(stage)`; the stage is the cluster, and the client that writes.

Worked example: `Held(5_000, 7_000, "MetadataFetchResponse", receiver=1)` lets broker 1 learn late what the controller
decides from 5 s on, and `Written(5_100, broker=0)` sends broker 0 one record meanwhile.

Left out: batches of several records, transactions.

Source: ours.
"""

from __future__ import annotations

from typing import Final, Protocol

import attrs

from broker.ids import BrokerId, Offset
from broker.units import MIB, TimeMs
from log.partition.partition_log import PartitionLog
from replication.retention import DeleteRecords, RetentionDue
from replication.roles.messages import CONTROLLER, Address, ConsumerFetch, Message, NodeId
from replication.rules.produce import ACKS_ALL
from replication.scenarios.client import Ask, WriteOrder
from replication.simulation.cluster import Cluster
from replication.simulation.network import Hold

_MANY: Final = 1_000_000
_READ_BYTES_MAX: Final = MIB


@attrs.frozen
class Stage:
    """Where acts strike: a cluster, the client that does what a scenario says, and a former controller."""

    cluster: Cluster
    client: NodeId
    former: NodeId


class Act(Protocol):
    """One act of a scenario."""

    @property
    def at_ms(self) -> int:
        """When it happens."""
        ...

    def strike(self, stage: Stage) -> None:
        """Do it."""
        ...


@attrs.frozen
class Written:
    """The client sends one record to a broker, once; values count from 0 in the order of the acts."""

    at_ms: int
    broker: int
    acks: int = ACKS_ALL
    partition: int = 0
    key: bytes | None = None

    def strike(self, stage: Stage) -> None:
        """Let the client send."""
        cluster = stage.cluster
        acks = "all" if self.acks == ACKS_ALL else self.acks
        text = f"value {len(cluster.history.writes)} is sent to broker {self.broker}, acks={acks}"
        cluster.trace.line(cluster.now_ms, text)
        stage.cluster.tell(stage.client, WriteOrder(NodeId(self.broker), self.partition, self.acks, self.key))


@attrs.frozen
class ReadFrom:
    """The client asks a broker for the records from an offset on."""

    at_ms: int
    broker: int
    offset: int
    partition: int = 0

    def strike(self, stage: Stage) -> None:
        """Let the client ask."""
        text = f"a consumer asks broker {self.broker} for what is at offset {self.offset}"
        stage.cluster.trace.line(stage.cluster.now_ms, text)
        question = ConsumerFetch(self.partition, 0, Offset(self.offset))
        stage.cluster.tell(stage.client, Ask(Address(NodeId(self.broker)), question))


@attrs.frozen
class Deleted:
    """The client asks a broker to delete the records below an offset; -1 is all that is committed."""

    at_ms: int
    broker: int
    offset: int

    def strike(self, stage: Stage) -> None:
        """Let the client ask."""
        text = f"broker {self.broker} is asked to delete what lies below offset {self.offset}"
        stage.cluster.trace.line(stage.cluster.now_ms, text)
        question = DeleteRecords(0, 0, Offset(self.offset))
        stage.cluster.tell(stage.client, Ask(Address(NodeId(self.broker)), question))


@attrs.frozen
class LooksAfterLogs:
    """Retention and cleaner of some brokers run."""

    at_ms: int
    brokers: tuple[int, ...]

    def strike(self, stage: Stage) -> None:
        """Let them run."""
        for broker in self.brokers:
            stage.cluster.trace.line(stage.cluster.now_ms, f"broker {broker} looks after its logs")
            stage.cluster.tell(NodeId(broker), RetentionDue())


@attrs.frozen
class Ordered:
    """An operator asks the controller for something."""

    at_ms: int
    message: Message

    def strike(self, stage: Stage) -> None:
        """Let the client send the order on."""
        stage.cluster.trace.line(stage.cluster.now_ms, f"the controller is asked: {self.message}")
        stage.cluster.tell(stage.client, Ask(Address(CONTROLLER), self.message))


@attrs.frozen
class Held:
    """Messages of a kind, sent from `at_ms` on, arrive at `until_ms`; None for a node is any."""

    at_ms: int
    until_ms: int
    kind: str
    sender: int | None = None
    receiver: int | None = None
    count_max: int = _MANY

    def strike(self, stage: Stage) -> None:
        """Let the network hold them."""
        sender = None if self.sender is None else NodeId(self.sender)
        receiver = None if self.receiver is None else NodeId(self.receiver)
        hold = Hold(self.kind, TimeMs(self.until_ms), self.count_max, sender, receiver)
        stage.cluster.network.hold(hold)
        who = "anybody" if sender is None else f"broker {sender}"
        whom = "anybody" if receiver is None else "the controller" if receiver == CONTROLLER else f"broker {receiver}"
        text = f"messages {self.kind} from {who} to {whom} are held back until {self.until_ms} ms"
        stage.cluster.trace.line(stage.cluster.now_ms, text)


@attrs.frozen
class PowerCut:
    """A machine loses power, each of its logs its last `record_count` records; it starts again at `until_ms`."""

    at_ms: int
    broker: int
    until_ms: int
    record_count: int = 0

    def strike(self, stage: Stage) -> None:
        """Cut the power."""
        cluster, broker = stage.cluster, BrokerId(self.broker)
        node = cluster.nodes[broker]
        if node.role is not None:
            sizes = [_size_of_last(node.logs[partition].log, self.record_count) for partition in sorted(node.logs)]
            node.kill()
            lost = node.lose_tails(_Exactly(sizes))
            text = f"broker {broker} loses power and {lost} bytes, down until {self.until_ms} ms"
            cluster.trace.line(cluster.now_ms, text)
        cluster.at(self.until_ms, lambda: start_broker(cluster, broker))


@attrs.frozen
class Crashed:
    """A process dies, and starts again at `until_ms`."""

    at_ms: int
    broker: int
    until_ms: int

    def strike(self, stage: Stage) -> None:
        """Kill it."""
        cluster, broker = stage.cluster, BrokerId(self.broker)
        if cluster.nodes[broker].role is not None:
            cluster.nodes[broker].kill()
            cluster.trace.line(cluster.now_ms, f"broker {broker} dies, down until {self.until_ms} ms")
        cluster.at(self.until_ms, lambda: start_broker(cluster, broker))


class _Exactly:
    """A source that gives the numbers it was made with, each once, for a machine that asks how much it loses."""

    def __init__(self, numbers: list[int]) -> None:
        self._numbers = numbers

    def next_int(self) -> int:
        """Return the next number."""
        return self._numbers.pop(0)

    def next_int_bound(self, bound: int) -> int:
        """Return the next number, which is below the bound."""
        number = self.next_int()
        assert number < bound, (number, bound)
        return number

    def shuffle(self, items: list[int]) -> None:
        """Leave the order."""


def _size_of_last(log: PartitionLog, record_count: int) -> int:
    """Return the bytes that a log's last records take; every batch of a scenario holds one record."""
    start_offset = max(log.log_start_offset, log.log_end_offset - record_count)
    if not record_count or start_offset == log.log_end_offset:
        return 0
    return len(log.read(Offset(start_offset), _READ_BYTES_MAX).records)


def start_broker(cluster: Cluster, broker: BrokerId) -> None:
    """Start a broker, if it is down."""
    if cluster.nodes[broker].role is None:
        cluster.trace.line(cluster.now_ms, f"broker {broker} starts")
        cluster.start_broker(broker)

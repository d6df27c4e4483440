"""Read and write single partitions for the mirror's process, over one connection per cluster.

Constraints: leaders are found by Metadata requests. A response counts only if it answers the client's last request.
`ClusterConnection.reset` drops every client, as the death of the process does; requests in flight still arrive.

Source: Kafka connect runtime ConnectorUtils.producerProps (WorkerConfig) and clients KafkaConsumer, 4.3.1.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, Generic, TypeVar

import attrs

from broker.entropy import RandomSource
from broker.error_codes import ErrorCode
from broker.ids import NO_LEADER, BrokerId, Offset
from broker.units import DurationMs, TimeMs
from log.batches.in_buffer import batches_in
from log.record import Record
from replication.roles.messages import (
    Address,
    ClientDue,
    ConsumerFetch,
    ConsumerFetchResponse,
    HostedMessage,
    Message,
    MetadataRequest,
    MetadataResponse,
    NodeId,
    Produce,
    ProduceResponse,
)
from replication.roles.outbox import Outbox
from replication.rules.produce import ACKS_ALL
from replication.simulation.options import Options

RETRY_MS: Final = DurationMs(200)
POLL_MS: Final = DurationMs(500)

Token = TypeVar("Token")


@attrs.frozen
class WorkDue(HostedMessage):
    """Tell a connection, from within its own process, that idle clients may have work."""


class ClusterConnection:
    """Connect one process to one cluster and pass each response to the client that asked."""

    def __init__(self, node: NodeId, options: Options, entropy: RandomSource, wake_clients: Callable[[], None]) -> None:
        self.options = options
        self._node = node
        self._entropy = entropy
        self._wake_clients = wake_clients
        self._is_woken = False
        self._number = 0
        self._asking: dict[int, PartitionClient] = {}
        self._flows: list[PartitionClient] = []

    def begin(self, out: Outbox) -> None:
        """Do nothing until a client is added."""

    def add(self, flow: PartitionClient) -> None:
        """Add a client and let it start."""
        self._flows.append(flow)
        self.wake_clients()

    def reset(self) -> None:
        """Drop all clients."""
        self._asking.clear()
        self._flows.clear()

    def wake_clients(self) -> None:
        """Let idle clients look for work, as an event of their own."""
        if not self._is_woken:
            self._is_woken = True
            self._wake_clients()

    def handle(self, message: Message, now_ms: TimeMs, out: Outbox) -> None:
        """Take a response, a wake-up or WorkDue."""
        if isinstance(message, WorkDue):
            self._is_woken = False
            for flow in list(self._flows):
                flow.work(out)
        elif isinstance(message, ClientDue | MetadataResponse | ConsumerFetchResponse | ProduceResponse):
            asking = self._asking.pop(message.number, None)
            if asking is not None:
                asking.on_answer(message, now_ms, out)

    def question(self, flow: PartitionClient, patience_ms: int, out: Outbox) -> int:
        """Return the number of a client's new request; ClientDue arrives after `patience_ms` without a response."""
        self._number += 1
        self._asking[self._number] = flow
        out.wake(DurationMs(patience_ms), ClientDue(self._number))
        return self._number

    def some_broker(self) -> Address:
        """Return the address of a random broker."""
        return Address(NodeId(self._entropy.next_int_bound(self.options.brokers)))


class PartitionClient:
    """Keep one request in flight to the leader of one partition; find the leader first if it is unknown."""

    def __init__(self, side: ClusterConnection, partition: int) -> None:
        self.side = side
        self.partition = partition
        self._leader = NO_LEADER
        self._asked = NO_LEADER
        self._is_waiting = False

    def work(self, out: Outbox) -> None:
        """Send the next request if none is in flight and there is work."""
        if self._is_waiting or not self._has_work():
            return
        self._is_waiting = True
        answer_ms = self.side.options.role_settings.answer_ms_max
        if self._leader == NO_LEADER:
            number = self.side.question(self, answer_ms, out)
            out.send(self.side.some_broker(), MetadataRequest(self.partition, number))
            return
        # Without a response the leader is looked up again.
        self._asked, self._leader = self._leader, NO_LEADER
        self._ask(self._asked, answer_ms, out)

    def on_answer(self, message: Message, now_ms: TimeMs, out: Outbox) -> None:
        """Take the response to the request in flight, or its timeout."""
        self._is_waiting = False
        if isinstance(message, MetadataResponse):
            self._leader = message.leader
            if message.leader == NO_LEADER:
                self._wait(RETRY_MS, out)
                return
        elif isinstance(message, ConsumerFetchResponse | ProduceResponse) and not self._on_response(message):
            self._wait(RETRY_MS, out)
            return
        self.work(out)
        if not self._is_waiting:
            self._on_idle(out)

    def _wait(self, delay_ms: int, out: Outbox) -> None:
        self._is_waiting = True
        self.side.question(self, delay_ms, out)

    def _has_work(self) -> bool:
        raise NotImplementedError

    def _ask(self, leader: BrokerId, answer_ms: int, out: Outbox) -> None:
        raise NotImplementedError

    def _on_response(self, message: ConsumerFetchResponse | ProduceResponse) -> bool:
        """Take the leader's response; return whether it succeeded."""
        raise NotImplementedError

    def _on_idle(self, out: Outbox) -> None:
        """Do nothing while there is no work."""


class PartitionReader(PartitionClient):
    """Read a partition from a position on and pass on the records of one response at a time.

    `may_read` is called before each fetch; `end_offset` is the high watermark of the last response, -1 before the
    first.
    """

    def __init__(
        self,
        side: ClusterConnection,
        partition: int,
        position: Offset,
        on_records: Callable[[tuple[Record, ...]], None],
        may_read: Callable[[], bool] = lambda: True,
    ) -> None:
        super().__init__(side, partition)
        self.position = position
        self.end_offset = Offset(-1)
        self._on_records = on_records
        self._may_read = may_read
        self._is_at_end = False

    def _has_work(self) -> bool:
        return self._may_read() and not self._is_at_end

    def _ask(self, leader: BrokerId, answer_ms: int, out: Outbox) -> None:
        number = self.side.question(self, answer_ms, out)
        out.send(Address(NodeId(leader)), ConsumerFetch(self.partition, number, self.position))

    def _on_response(self, message: ConsumerFetchResponse | ProduceResponse) -> bool:
        assert isinstance(message, ConsumerFetchResponse), message
        if message.error is ErrorCode.OFFSET_OUT_OF_RANGE:
            # auto.offset.reset is earliest, and nobody's position is past the end but after a loss.
            self.position = message.start_offset
        if message.error is not ErrorCode.NONE:
            return False
        self._leader = self._asked
        self.end_offset = message.high_watermark
        records = tuple(
            record
            for batch in batches_in(message.records)
            if not batch.is_control
            for record in batch.records()
            if record.offset >= self.position
        )
        self._is_at_end = not records
        if records:
            self.position = Offset(records[-1].offset + 1)
            self._on_records(records)
        return True

    def _on_idle(self, out: Outbox) -> None:
        if self._is_at_end:
            self._is_at_end = False
            self._wait(POLL_MS, out)


class PartitionWriter(PartitionClient, Generic[Token]):
    """Write batches to a partition one after the other, each until it is acknowledged.

    `on_written` receives the token that came with a batch and the offset of its first record.
    """

    def __init__(self, side: ClusterConnection, partition: int, on_written: Callable[[Token, Offset], None]) -> None:
        super().__init__(side, partition)
        self._on_written = on_written
        self._queue: deque[tuple[bytes, Token]] = deque()

    @property
    def is_idle(self) -> bool:
        """Return whether every batch is acknowledged."""
        return not self._queue

    def write(self, batch: bytes, token: Token) -> None:
        """Append a batch to the queue."""
        self._queue.append((batch, token))
        self.side.wake_clients()

    def _has_work(self) -> bool:
        return bool(self._queue)

    def _ask(self, leader: BrokerId, answer_ms: int, out: Outbox) -> None:
        batch, _ = self._queue[0]
        number = self.side.question(self, self.side.options.role_settings.produce_ms_max + answer_ms, out)
        out.send(Address(NodeId(leader)), Produce(self.partition, number, ACKS_ALL, batch))

    def _on_response(self, message: ConsumerFetchResponse | ProduceResponse) -> bool:
        assert isinstance(message, ProduceResponse), message
        if message.error is not ErrorCode.NONE:
            return False
        self._leader = self._asked
        _, token = self._queue.popleft()
        self._on_written(token, message.offset)
        return True

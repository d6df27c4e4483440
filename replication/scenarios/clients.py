"""Scenario clients: a producer of single writes and requests on order, and a consumer that validates its position.

Each write is sent once, to the broker that the scenario names, leader or not; without a response its fate is unknown.
The consumer asks for Metadata; then, once per leader epoch and if it checks, OffsetsForLeaderEpoch to validate its
position (`replication.rules.follower_read`); then it fetches. One request is under way at a time.

Source: Kafka clients OffsetFetcher and SubscriptionState, 4.0; KIP-320.
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.ids import NO_LEADER, LeaderEpoch, Offset
from broker.units import DurationMs, TimeMs
from log.batches.build import BatchSpec, build_batch
from log.batches.in_buffer import batches_in
from log.record import Record
from replication.checkers.clients import Write
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
    OffsetsForLeaderEpoch,
    OffsetsForLeaderEpochResponse,
    Produce,
    ProduceResponse,
)
from replication.roles.outbox import Outbox
from replication.rules.follower_read import Position, check_position
from replication.rules.partition import UNKNOWN_EPOCH
from replication.rules.produce import Fate, fate
from replication.simulation.clients import VALUE_BYTES
from replication.simulation.history import History


@attrs.frozen
class SendWrite(HostedMessage):
    """Tell the client to send one record to `broker` now."""

    broker: NodeId
    partition: int
    acks: int


@attrs.frozen
class SendRequest(HostedMessage):
    """Tell the client to send a request to `receiver` now."""

    receiver: Address
    question: Message


class ScriptedClient:
    """Send what the scenario orders and note the responses to writes."""

    def __init__(self, history: History, wall_clock_ms: TimeMs) -> None:
        self._history = history
        self._wall_clock_ms = wall_clock_ms
        self._writes: dict[int, Write] = {}

    def begin(self, out: Outbox) -> None:
        """Wait for the first order."""

    def handle(self, message: Message, now_ms: TimeMs, out: Outbox) -> None:
        """Send what the scenario orders, or note the response to a write."""
        if isinstance(message, SendWrite):
            write = self._history.write(message.partition, message.acks, now_ms)
            write.fate = Fate.UNKNOWN
            self._writes[write.value] = write
            batch = _batch(write, TimeMs(self._wall_clock_ms + now_ms))
            out.send(Address(message.broker), Produce(message.partition, write.value, message.acks, batch))
        elif isinstance(message, SendRequest):
            out.send(message.receiver, message.question)
        elif isinstance(message, ProduceResponse):
            self._note(message, now_ms)

    def _note(self, response: ProduceResponse, now_ms: TimeMs) -> None:
        write = self._writes[response.number]
        write.fate = fate(response.error, appended=response.appended)
        write.answered_ms = now_ms
        if response.error is ErrorCode.NONE:
            write.offset = response.offset


def _batch(write: Write, timestamp_ms: TimeMs) -> bytes:
    value = write.value.to_bytes(VALUE_BYTES, "big")
    return build_batch(BatchSpec(), (Record(Offset(0), timestamp_ms, None, value),))


_POLL_MS: Final = DurationMs(500)


class PositionConsumer:
    """Consume partition 0; `read_values` are the values received, in order."""

    def __init__(self, brokers: int, *, checks: bool) -> None:
        self.read_values: list[int] = []
        self._brokers = brokers
        self._checks = checks
        self._number = 0
        self._position = Position(Offset(0))
        self._known = MetadataResponse(0, 0, NO_LEADER)
        self._checked: LeaderEpoch = UNKNOWN_EPOCH

    def begin(self, out: Outbox) -> None:
        """Start polling."""
        self._wait(out)

    def handle(self, message: Message, now_ms: TimeMs, out: Outbox) -> None:
        """Take a response, or ask for the leader."""
        if isinstance(message, ClientDue) and message.number == self._number:
            self._wait(out)
            out.send(Address(NodeId(self._number % self._brokers)), MetadataRequest(0, self._number))
        elif isinstance(message, MetadataResponse) and message.number == self._number and message.leader != NO_LEADER:
            self._go_on(message, out)
        elif (
            isinstance(message, OffsetsForLeaderEpochResponse)
            and message.number == self._number
            and message.error is ErrorCode.NONE
        ):
            self._position = check_position(self._position, message.end).position
            self._checked = self._known.leader_epoch
            self._consume(out)
        elif (
            isinstance(message, ConsumerFetchResponse)
            and message.number == self._number
            and message.error is ErrorCode.NONE
        ):
            self._read(message.records)

    def _go_on(self, response: MetadataResponse, out: Outbox) -> None:
        if response.leader_epoch < self._known.leader_epoch:
            return
        self._known = response
        if self._checks and self._checked != response.leader_epoch and self._position.epoch != UNKNOWN_EPOCH:
            ask = OffsetsForLeaderEpoch(0, self._number, self._position.epoch, response.leader_epoch)
            out.send(Address(NodeId(response.leader)), ask)
        else:
            self._consume(out)

    def _consume(self, out: Outbox) -> None:
        out.send(Address(NodeId(self._known.leader)), ConsumerFetch(0, self._number, self._position.offset))

    def _read(self, records: bytes) -> None:
        for batch in batches_in(records):
            for record in batch.records():
                if record.offset >= self._position.offset:
                    self.read_values.append(int.from_bytes(record.value or b"", "big"))
                    self._position = Position(Offset(record.offset + 1), batch.partition_leader_epoch)

    def _wait(self, out: Outbox) -> None:
        self._number += 1
        out.wake(_POLL_MS, ClientDue(self._number))

"""Consume a partition from its start; validate the position whenever the leader changes, if asked to.

What it decides: the order of requests: Metadata; then, once per leader epoch, OffsetsForLeaderEpoch to validate the
position (`replication.rules.position`); then Fetch.

Constraints: one request at a time; Metadata requests go to the brokers in turn.

Left out: groups; the records that the simulation's own consumers note for the checkers.

Source: Kafka clients OffsetFetcher and SubscriptionState, 4.0; KIP-320.
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.ids import NO_LEADER, LeaderEpoch, Offset
from broker.units import DurationMs, TimeMs
from log.batches.in_buffer import batches_in
from replication.roles.messages import (
    Address,
    ClientDue,
    ConsumerFetch,
    ConsumerFetchResponse,
    Message,
    MetadataRequest,
    MetadataResponse,
    NodeId,
    OffsetsForLeaderEpoch,
    OffsetsForLeaderEpochResponse,
)
from replication.roles.outbox import Outbox
from replication.rules.partition import UNKNOWN_EPOCH
from replication.rules.position import Position, check_position
from replication.scenarios.operations import ScenarioContext
from replication.simulation.cluster import Cluster

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
        text = f"a consumer reads, and {'checks' if self.checks else 'does not check'} its position at a new leader"
        context.cluster.trace.line(context.cluster.now_ms, text)

"""Send DeleteRecords to the leader of a partition, as Kafka's admin client does.

One order at a time; an order that arrives meanwhile is dropped.

Source: Kafka clients DeleteRecordsHandler, 4.0.
"""

from __future__ import annotations

from typing import Final

from broker.entropy import RandomSource
from broker.error_codes import ErrorCode
from broker.ids import NO_LEADER
from broker.units import SECOND_MS, DurationMs, TimeMs
from replication.retention.log_manager import DELETION_MS_MAX
from replication.retention.messages import DeleteRecords, DeleteRecordsOrder, DeleteRecordsResponse
from replication.roles.messages import Address, ClientDue, Message, MetadataRequest, MetadataResponse, NodeId
from replication.roles.outbox import Outbox

RETRY_MS: Final = DurationMs(500)
ORDER_MS_MAX: Final = 30 * SECOND_MS


class DeleteRecordsClient:
    """Carry out orders to delete records, one at a time."""

    def __init__(self, broker_count: int, entropy: RandomSource) -> None:
        self._broker_count = broker_count
        self._entropy = entropy
        self._number = 0
        self._order: DeleteRecordsOrder | None = None
        self._given_ms = TimeMs(0)

    def begin(self, out: Outbox) -> None:
        """Wait for an order."""

    def handle(self, message: Message, now_ms: TimeMs, out: Outbox) -> None:
        """Take an order, a response or a wake-up."""
        if isinstance(message, DeleteRecordsOrder):
            if self._order is None:
                self._order, self._given_ms = message, now_ms
                self._ask(message, out)
            return
        order = self._order
        if order is None or not isinstance(message, ClientDue | MetadataResponse | DeleteRecordsResponse):
            return
        if message.number != self._number:
            return
        if isinstance(message, ClientDue):
            self._ask_again(order, now_ms, out)
        elif isinstance(message, MetadataResponse):
            self._number += 1
            if message.leader == NO_LEADER:
                out.wake(RETRY_MS, ClientDue(self._number))
                return
            out.wake(DurationMs(DELETION_MS_MAX + RETRY_MS), ClientDue(self._number))
            question = DeleteRecords(order.partition, self._number, order.offset)
            out.send(Address(NodeId(message.leader)), question)
        elif message.error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            self._number += 1
            out.wake(RETRY_MS, ClientDue(self._number))
        else:
            self._order = None

    def _ask_again(self, order: DeleteRecordsOrder, now_ms: TimeMs, out: Outbox) -> None:
        if now_ms - self._given_ms > ORDER_MS_MAX:
            self._order = None
        else:
            self._ask(order, out)

    def _ask(self, order: DeleteRecordsOrder, out: Outbox) -> None:
        self._number += 1
        broker = NodeId(self._entropy.next_int_bound(self._broker_count))
        out.send(Address(broker), MetadataRequest(order.partition, self._number))
        out.wake(DurationMs(2 * SECOND_MS), ClientDue(self._number))

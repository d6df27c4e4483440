"""Send one write or one request at a time when the scenario says so.

What it decides: only what it notes: the value, the time and the response of each write, as every producer does.

Constraints: each write is sent once, to the broker that the scenario names, leader or not; without a response the fate
of a write is unknown. This client is separate from `Producer` so that a scenario fixes which record goes where and
when.

Left out: finding leaders and retries (`replication.simulation.clients`).

Source: ours.
"""

from __future__ import annotations

import attrs

from broker.error_codes import ErrorCode
from broker.ids import Offset
from broker.units import TimeMs
from log.batches.build import build_batch
from log.batches.build_spec import BatchSpec
from log.record import Record
from replication.roles.messages import Address, HostedMessage, Message, NodeId, Produce, ProduceResponse
from replication.roles.outbox import Outbox
from replication.rules.produce import Fate, fate
from replication.simulation.clients import VALUE_BYTES
from replication.simulation.history import History, Write
from replication.simulation.options import WALL_CLOCK_MS


@attrs.frozen
class SendWrite(HostedMessage):
    """Tell the client to send one record to `broker` now, with `key` if one is given."""

    broker: NodeId
    partition: int
    acks: int
    key: bytes | None = None


@attrs.frozen
class SendRequest(HostedMessage):
    """Tell the client to send a request to `receiver` now."""

    receiver: Address
    question: Message


class ScriptedClient:
    """Send what the scenario orders and note the responses to writes."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._writes: dict[int, Write] = {}

    def begin(self, out: Outbox) -> None:
        """Wait for the first order."""

    def handle(self, message: Message, now_ms: TimeMs, out: Outbox) -> None:
        """Send what the scenario orders, or note the response to a write."""
        if isinstance(message, SendWrite):
            write = self._history.write(message.partition, message.acks, now_ms)
            write.fate = Fate.UNKNOWN
            self._writes[write.value] = write
            batch = _batch(write, message.key, now_ms)
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


def _batch(write: Write, key: bytes | None, now_ms: TimeMs) -> bytes:
    value = write.value.to_bytes(VALUE_BYTES, "big")
    return build_batch(BatchSpec(), (Record(Offset(0), TimeMs(WALL_CLOCK_MS + now_ms), key, value),))

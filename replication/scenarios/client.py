"""The client of a scenario: it sends one write, one question or one order at a time, when the scenario says so.

It decides nothing but what it notes: the value, the time and the answer of each write, as every producer does.

Constraints: it sends each write once, to the broker that it is told, which may be the wrong one; without an answer the
fate of a write is unknown. It is its own client so that a scenario says exactly which record goes where and when.

Left out: finding leaders and sending again (`replication.simulation.clients`).

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
class WriteOrder(HostedMessage):
    """The scenario: send one record to `broker` now, under a key if one is given."""

    broker: NodeId
    partition: int
    acks: int
    key: bytes | None = None


@attrs.frozen
class Ask(HostedMessage):
    """The scenario: send this question or order now."""

    receiver: Address
    question: Message


class ScriptedClient:
    """Does what the scenario says."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._writes: dict[int, Write] = {}

    def begin(self, out: Outbox) -> None:
        """Wait for the scenario."""

    def handle(self, message: Message, now_ms: TimeMs, out: Outbox) -> None:
        """Do what the scenario says, and note the answers to writes."""
        if isinstance(message, WriteOrder):
            write = self._history.write(message.partition, message.acks, now_ms)
            write.fate = Fate.UNKNOWN
            self._writes[write.value] = write
            batch = _batch(write, message.key, now_ms)
            out.send(Address(message.broker), Produce(message.partition, write.value, message.acks, batch))
        elif isinstance(message, Ask):
            out.send(message.receiver, message.question)
        elif isinstance(message, ProduceResponse):
            self._note(message, now_ms)

    def _note(self, told: ProduceResponse, now_ms: TimeMs) -> None:
        write = self._writes[told.number]
        write.fate = fate(told.error, appended=told.appended)
        write.answered_ms = now_ms
        if told.error is ErrorCode.NONE:
            write.offset = told.offset


def _batch(write: Write, key: bytes | None, now_ms: TimeMs) -> bytes:
    value = write.value.to_bytes(VALUE_BYTES, "big")
    return build_batch(BatchSpec(), (Record(Offset(0), TimeMs(WALL_CLOCK_MS + now_ms), key, value),))

"""Run producers and consumers that find leaders, write, read, and note the responses.

Each value is written once; a batch holds one record, whose value is 8 bytes.

Source: Kafka clients KafkaProducer and Sender, 4.0: retries, delivery.timeout.ms, idempotence (KIP-98); Metadata:
metadata.max.age.ms.
"""

from __future__ import annotations

from typing import Final

from broker.entropy import RandomSource
from broker.error_codes import ErrorCode
from broker.ids import NO_LEADER, BrokerId, Offset, ProducerEpoch, ProducerId
from broker.units import DurationMs, TimeMs
from log.batches.build import BatchSpec, build_batch
from log.batches.in_buffer import batches_in
from log.record import Record
from replication.checkers.clients import ConsumedRecord, Write
from replication.retention.keyed import identity_of, keyed_record
from replication.retention.policy import AutoOffsetReset
from replication.roles.messages import (
    Address,
    ClientDue,
    ConsumerFetch,
    ConsumerFetchResponse,
    Message,
    MetadataRequest,
    MetadataResponse,
    NodeId,
    Produce,
    ProduceResponse,
)
from replication.roles.outbox import Outbox
from replication.rules.produce import ACKS_ALL, Fate, fate
from replication.simulation.history import History
from replication.simulation.options import Options

VALUE_BYTES: Final = 8
RETRY_MS: Final = DurationMs(200)
POLL_MS: Final = DurationMs(1_000)
_PLAIN: Final = BatchSpec()
"""The batch header of a producer without an id."""
DELIVERY_MS_MAX: Final = 60_000
METADATA_MS_MAX: Final = DurationMs(300_000)
"""The age at which a consumer looks its leader up again, error or not: Kafka's default of metadata.max.age.ms."""


class _Client:
    """Hold what producers and consumers share: the leader they know and the number of their last request."""

    def __init__(self, node: NodeId, options: Options, history: History, entropy: RandomSource) -> None:
        self.node = node
        self._options = options
        self._history = history
        self._entropy = entropy
        self._number = 0
        self._leader = NO_LEADER

    def _wait(self, delay_ms: int, out: Outbox) -> None:
        self._number += 1
        out.wake(DurationMs(delay_ms), ClientDue(self._number))

    def _ask_leader(self, partition: int, out: Outbox) -> None:
        broker = NodeId(self._entropy.next_int_bound(self._options.brokers))
        self._wait(self._options.role_settings.answer_ms_max, out)
        out.send(Address(broker), MetadataRequest(partition, self._number))

    def _on_metadata(self, response: MetadataResponse, out: Outbox) -> bool:
        """Take a Metadata response; return whether there is a leader."""
        self._leader = response.leader
        if response.leader == NO_LEADER:
            self._wait(RETRY_MS, out)
        return response.leader != NO_LEADER


class Producer(_Client):
    """Write values to partitions in turn."""

    def __init__(self, node: NodeId, options: Options, history: History, entropy: RandomSource) -> None:
        super().__init__(node, options, history, entropy)
        self.owed: tuple[int, ...] = ()
        """The partitions that a stopping producer has not written to yet since it was told to stop."""
        self._is_stopping = False
        self._stop_ms = TimeMs(0)
        self._write: Write | None = None
        self._batch = b""
        self._is_unsure = False
        self._was_unsure = False
        self._producer_id = int(node) * 1_000
        self._sequences: dict[int, int] = {}
        self._leaders: dict[int, BrokerId] = {}

    @property
    def is_busy(self) -> bool:
        """Return whether a write of before `stop` is in flight."""
        return self._write is not None and self._write.sent_ms < self._stop_ms

    def stop(self, now_ms: TimeMs, deleted: frozenset[int] = frozenset()) -> None:
        """Write once more to each partition but the deleted ones, with acks=all until that is acknowledged."""
        if not self._is_stopping:
            self._is_stopping, self._stop_ms = True, now_ms
            named = map(self._history.number_of, range(self._options.partitions))
            self.owed = tuple(each for each in named if each not in deleted)

    def begin(self, out: Outbox) -> None:
        """Start after a random delay."""
        self._wait(1 + self._entropy.next_int_bound(self._options.produce_ms), out)

    def handle(self, message: Message, now_ms: TimeMs, out: Outbox) -> None:
        """Take a response or a wake-up."""
        if isinstance(message, ClientDue):
            if message.number == self._number:
                self._go_on(now_ms, out)
        elif isinstance(message, MetadataResponse):
            if message.number == self._number and self._write is not None and self._on_metadata(message, out):
                self._leaders[self._write.partition] = message.leader
                self._send(self._write, message.leader, out)
        elif isinstance(message, ProduceResponse) and message.number == self._number and self._write is not None:
            self._on_answer(self._write, message, now_ms, out)

    def _go_on(self, now_ms: TimeMs, out: Outbox) -> None:
        write = self._write
        if write is None and self._is_stopping and not self.owed:
            return
        if write is None:
            write = self._next_write(now_ms)
            self._write, self._is_unsure = write, False
            self._batch = self._built(write, now_ms)
            leader = self._leaders.get(write.partition, NO_LEADER)
            if leader != NO_LEADER:
                self._send(write, leader, out)
                return
        elif self._gives_up(write, now_ms):
            self._finish(write, Fate.UNKNOWN if self._is_unsure else Fate.FAILED, now_ms, out)
            return
        self._ask_leader(write.partition, out)

    def _next_write(self, now_ms: TimeMs) -> Write:
        """Return a write of a new value: to any partition, or to the first that a stopping producer owes one."""
        options, count = self._options, len(self._history.writes)
        if self.owed:
            return self._history.write(self.owed[0], ACKS_ALL, now_ms)
        partition = self._history.number_of(self._entropy.next_int_bound(options.partitions))
        return self._history.write(partition, options.acks[count % len(options.acks)], now_ms)

    def _gives_up(self, write: Write, now_ms: TimeMs) -> bool:
        """Return whether the write is given up: its time or topic is over, or a retry might write it twice."""
        if write.partition in self._history.successors:
            return True
        return now_ms - write.sent_ms > DELIVERY_MS_MAX or (self._is_unsure and not self._options.is_idempotent)

    def _built(self, write: Write, now_ms: TimeMs) -> bytes:
        value = write.value.to_bytes(VALUE_BYTES, "big")
        spec = _PLAIN
        if self._options.is_idempotent:
            sequence = self._sequences.get(write.partition, 0)
            self._sequences[write.partition] = sequence + 1
            spec = BatchSpec(
                producer_id=ProducerId(self._producer_id), producer_epoch=ProducerEpoch(0), base_sequence=sequence
            )
        timestamp_ms, retention = TimeMs(self._options.wall_clock_ms + now_ms), self._options.retention
        if retention is not None and retention.compacts:
            return build_batch(
                spec, (keyed_record(value, retention.key_count, retention.tombstones_one_in, timestamp_ms),)
            )
        return build_batch(spec, (Record(Offset(0), timestamp_ms, None, value),))

    def _send(self, write: Write, leader: BrokerId, out: Outbox) -> None:
        self._wait(self._options.role_settings.produce_ms_max + self._options.role_settings.answer_ms_max, out)
        # From here on it may be in a log, until a certain answer says that it is not.
        self._was_unsure, self._is_unsure = self._is_unsure, True
        out.send(Address(NodeId(leader)), Produce(write.partition, self._number, write.acks, self._batch))
        if write.acks == 0:
            self._history.writes[write.value].fate = Fate.UNKNOWN
            self._write = None
            self._wait(self._options.produce_ms, out)

    def _on_answer(self, write: Write, response: ProduceResponse, now_ms: TimeMs, out: Outbox) -> None:
        believed = fate(response.error, appended=response.appended)
        if believed is Fate.ACKED:
            write.offset = response.offset
            self._finish(write, Fate.ACKED, now_ms, out)
            return
        if believed is Fate.FAILED:
            self._is_unsure = self._was_unsure
        if response.error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            self._finish(write, Fate.UNKNOWN, now_ms, out)
            return
        self._leaders.pop(write.partition, None)
        if self._is_unsure and not self._options.is_idempotent:
            self._finish(write, Fate.UNKNOWN, now_ms, out)
        else:
            self._wait(RETRY_MS, out)

    def _finish(self, write: Write, believed: Fate, now_ms: TimeMs, out: Outbox) -> None:
        write.fate = believed
        write.answered_ms = now_ms
        self._write = None
        if believed is Fate.ACKED and write.acks == ACKS_ALL and write.sent_ms >= self._stop_ms:
            self.owed = tuple(partition for partition in self.owed if partition != write.partition)
        if believed is not Fate.ACKED:
            self._leaders.pop(write.partition, None)
            # What comes next would be out of order: a new producer id begins a new order.
            self._producer_id += 1
            self._sequences.clear()
        delay_ms = RETRY_MS if self._is_stopping else 1 + self._entropy.next_int_bound(2 * self._options.produce_ms)
        self._wait(delay_ms, out)


class Consumer(_Client):
    """Read one partition from its first offset on."""

    def __init__(self, node: NodeId, partition: int, options: Options, history: History, entropy: RandomSource) -> None:
        super().__init__(node, options, history, entropy)
        self.partition = partition
        self.position = Offset(0)
        """The next offset to read."""
        self.has_given_up = False
        """Whether the consumer ended, as auto.offset.reset=none makes it."""
        self.reads_from = NO_LEADER
        """The broker that was asked last."""
        self.metadata_ms = TimeMs(0)
        """When a broker last named the leader."""
        self._is_reset = False

    def begin(self, out: Outbox) -> None:
        """Ask for the leader."""
        self._ask_leader(self.partition, out)

    def handle(self, message: Message, now_ms: TimeMs, out: Outbox) -> None:
        """Take a response or a wake-up."""
        if isinstance(message, ClientDue):
            if message.number == self._number:
                self._go_on(out)
        elif isinstance(message, MetadataResponse):
            if message.number == self._number and self._on_metadata(message, out):
                self.metadata_ms = now_ms
                self._read(out)
        elif isinstance(message, ConsumerFetchResponse) and message.number == self._number:
            self._on_answer(message, now_ms, out)

    def _go_on(self, out: Outbox) -> None:
        if self.partition in self._history.successors:
            self.partition = self._history.number_of(self.partition)
            self.position, self._leader = Offset(0), NO_LEADER
        if self._leader == NO_LEADER:
            self._ask_leader(self.partition, out)
        else:
            self._read(out)

    def _read(self, out: Outbox) -> None:
        leader = self._leader
        self._leader = NO_LEADER  # Without a response the leader is looked up again.
        self._wait(self._options.role_settings.answer_ms_max, out)
        out.send(Address(NodeId(leader)), ConsumerFetch(self.partition, self._number, self.position))
        self.reads_from = leader

    def _on_answer(self, response: ConsumerFetchResponse, now_ms: TimeMs, out: Outbox) -> None:
        if response.error is ErrorCode.NONE:
            if now_ms - self.metadata_ms < METADATA_MS_MAX:
                self._leader = self.reads_from
            self._note(response.records, now_ms)
        elif response.error is ErrorCode.OFFSET_OUT_OF_RANGE and not self._reset(response):
            return
        self._wait(POLL_MS, out)

    def _reset(self, response: ConsumerFetchResponse) -> bool:
        """Apply auto.offset.reset; return False if the consumer stops instead."""
        policy = AutoOffsetReset.LATEST if self._options.retention is None else self._options.retention.reset
        if policy is AutoOffsetReset.NONE:
            self.has_given_up = True
            return False
        self._is_reset = True
        self.position = response.start_offset
        if policy is AutoOffsetReset.LATEST:
            self.position = max(response.start_offset, response.high_watermark)
        return True

    def _note(self, records: bytes, now_ms: TimeMs) -> None:
        for batch in batches_in(records):
            for record in batch.records():
                if record.offset >= self.position:
                    value = identity_of(record)
                    self._history.consumed_records.append(
                        ConsumedRecord(self.node, self.partition, record.offset, value, now_ms, self._is_reset)
                    )
                    self.position = Offset(record.offset + 1)
                    self._is_reset = False
            # A batch that compaction has emptied still takes its room.
            self.position = max(self.position, batch.next_offset)

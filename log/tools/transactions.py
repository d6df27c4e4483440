"""Find a partition's transactions: open, hanging (KIP-664) and aborted, from its segments, indexes and snapshots.

A transaction is open from its first batch until its marker, and bounds the last stable offset: nothing at or above it
is compacted, and consumers with isolation.level=read_committed do not read on. An open one hangs if no coordinator will
end it: __transaction_state beside the partition says that the producer's last transaction is over or without this
partition, or says nothing of the producer, and it has been open for longer than transaction.max.timeout.ms lets it.

Left out: transactions whose producer ids only coordinators on other brokers know; they are judged by their age.

Source: KIP-664; org.apache.kafka.tools.TransactionsCommand (find-hanging), 4.4.0.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, Final

import attrs

from broker.ids import Offset, ProducerEpoch, ProducerId, TopicPartition
from broker.units import MINUTE_MS, DurationMs, TimeMs
from log.batches.allowance import DECODED_COST, ReadingAllowance
from log.batches.batch import RecordBatch
from log.batches.in_buffer import batch_at
from log.batches.record_columns import HeaderColumns
from log.batches.scan import header_chunks
from log.partition.producer_append import AppendOrigin, CompletedTransaction
from log.partition.producer_entry import parse_snapshot
from log.partition.producer_state import ProducerState
from log.record import TRANSACTIONAL_BIT
from log.segments.file_names import LOG, PRODUCER_SNAPSHOT, TXN_INDEX
from log.segments.txn_index import AbortedTransaction, aborted_transactions
from log.storage.directory_names import UnexpectedDirectoryError, parse_directory_name
from log.tools.dump_topics import decoded
from log.tools.sources import SourceFile, SourceFolder
from log.tools.timestamps import duration_text, time_text

STATE_TOPIC: Final = "__transaction_state"
TIMEOUT_MS_MAX: Final = DurationMs(15 * MINUTE_MS)
"""Kafka's default of transaction.max.timeout.ms."""
GRACE_MS: Final = DurationMs(5 * MINUTE_MS)
"""What kafka-transactions adds to it before it calls a transaction hanging."""
UNDECIDED: Final = ("Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence")


class TransactionState(Enum):
    """List the states in which transactions are listed, the most urgent first."""

    HANGING = "hanging"
    OPEN = "open"
    ABORTED = "aborted"


@attrs.frozen(kw_only=True)
class Transaction:
    """Describe one transaction of a partition; `last_offset` is the marker's, None while it is open."""

    state: TransactionState
    producer_id: ProducerId
    producer_epoch: ProducerEpoch | None
    """None for an aborted one of which only the index knows."""
    first_offset: Offset
    last_offset: Offset | None = None
    since_ms: TimeMs | None = None
    """The largest timestamp of its first batch; None if that batch was not read."""
    transactional_id: str | None = None
    coordinator_state: str | None = None

    def text(self, now_ms: TimeMs) -> str:
        """Return the transaction as text: state, producer, offsets, and for how long it has been open."""
        epoch = "" if self.producer_epoch is None else f", epoch {self.producer_epoch}"
        producer = f"producer {self.producer_id}{epoch}"
        if self.state is TransactionState.ABORTED:
            return f"{self.state.value}: {producer}, offsets {self.first_offset} to {self.last_offset}"
        since = ""
        if self.since_ms is not None:
            since = f", since {time_text(self.since_ms)} ({duration_text(DurationMs(now_ms - self.since_ms))})"
        known = "" if self.transactional_id is None else f", transactional id {self.transactional_id!r}"
        known += "" if self.coordinator_state is None else f", coordinator: {self.coordinator_state}"
        return f"{self.state.value}: {producer}, from offset {self.first_offset}{since}{known}"


@attrs.frozen
class LogTransactions:
    """Hold the open and the aborted transactions of a partition, in order of first offsets, and the log's end."""

    open: tuple[Transaction, ...]
    aborted: tuple[Transaction, ...]
    end_offset: Offset

    @property
    def last_stable_offset(self) -> Offset:
        """Return the first offset of the oldest open transaction, else the log's end."""
        return self.open[0].first_offset if self.open else self.end_offset


def read_transactions(folder: SourceFolder) -> LogTransactions:
    """Return the transactions of a partition; raise CorruptDataError for a marker that cannot be read."""
    replay = _Replay(folder)
    for file in folder.of_kind(LOG):
        replay.take(file)
    aborted = {(each.producer_id, each.first_offset, each.last_offset): each for each in replay.aborted}
    for file in folder.of_kind(TXN_INDEX):
        for entry in aborted_transactions(file.view(), source=file.shown):
            listed = _aborted(entry, None)
            aborted.setdefault((listed.producer_id, listed.first_offset, listed.last_offset), listed)
    in_order = sorted(aborted.values(), key=lambda each: each.first_offset)
    return LogTransactions(tuple(replay.open()), tuple(in_order), replay.end_offset)


class _Replay:
    """The producers of a partition while its batches are read; those that change no transaction are passed over."""

    def __init__(self, folder: SourceFolder) -> None:
        self.aborted: list[Transaction] = []
        self.end_offset = Offset(0)
        self._since: dict[Offset, TimeMs] = {}
        self._producers = ProducerState.open(folder.storage, folder.directory, name=folder.shown)
        segments = folder.of_kind(LOG)
        snapshot = segments[0].sibling(PRODUCER_SNAPSHOT) if segments else None
        if snapshot is not None and snapshot.exists():  # What began in segments that retention has deleted.
            for entry in parse_snapshot(snapshot.view(), source=snapshot.shown):
                self._producers.load(entry)

    def take(self, file: SourceFile) -> None:
        """Read the transactional batches of a segment."""
        self.end_offset = max(self.end_offset, Offset(file.base_offset))
        for headers in header_chunks(file.view()):
            is_transactional = (headers.magic >= 2) & (headers.attributes & TRANSACTIONAL_BIT != 0)
            for batch in _batches(file, headers, is_transactional):
                self._take_batch(batch)
            if len(headers):
                self.end_offset = Offset(int(headers.last_offset.max()) + 1)

    def _take_batch(self, batch: RecordBatch) -> None:
        entry = self._producers.last_entry(batch.producer_id)
        is_open = entry is not None and entry.current_txn_first_offset is not None
        if is_open and not batch.is_control:
            return
        analysis = self._producers.analyze((batch,), AppendOrigin.REPLICATION)
        for append in analysis.appends:
            self._producers.update(append)
            for started in append.started:
                self._since[started.first_offset] = batch.max_timestamp
        for completed in analysis.completed:
            self._producers.complete(completed)
            self._producers.on_high_watermark_updated(completed.last_offset + 1)
            if completed.is_aborted:
                self.aborted.append(_aborted(completed, batch.producer_epoch))

    def open(self) -> Iterator[Transaction]:
        """Yield the open transactions, in order of first offsets."""
        found = [entry for entry in self._producers.producers if entry.current_txn_first_offset is not None]
        for entry in sorted(found, key=lambda each: each.current_txn_first_offset or 0):
            first_offset = entry.current_txn_first_offset
            assert first_offset is not None, entry
            yield Transaction(
                state=TransactionState.OPEN,
                producer_id=entry.producer_id,
                producer_epoch=entry.producer_epoch,
                first_offset=first_offset,
                since_ms=self._since.get(first_offset),
            )


def _aborted(ended: CompletedTransaction | AbortedTransaction, epoch: ProducerEpoch | None) -> Transaction:
    return Transaction(
        state=TransactionState.ABORTED,
        producer_id=ProducerId(ended.producer_id),
        producer_epoch=epoch,
        first_offset=Offset(ended.first_offset),
        last_offset=Offset(ended.last_offset),
    )


def _batches(file: SourceFile, headers: HeaderColumns, wanted: Any = slice(None)) -> Iterator[RecordBatch]:
    """Yield the batches of a segment at these headers, those of the rows `wanted`."""
    data = file.view()
    for position in headers.position[wanted].tolist():
        batch = batch_at(data, position, source=file.shown)
        assert batch is not None, position
        yield batch


@attrs.frozen
class CoordinatorEntry:
    """Hold what __transaction_state says last of a transactional id: its state, and the partitions in it."""

    transactional_id: str
    state: str
    partitions: frozenset[TopicPartition]


def coordinator_entries(folders: Sequence[SourceFolder]) -> Mapping[ProducerId, CoordinatorEntry]:
    """Return what the partitions of __transaction_state among `folders` say of each producer id."""
    found: dict[ProducerId, CoordinatorEntry] = {}
    for folder in folders:
        held = partition_of(folder)
        if held is None or held.topic != STATE_TOPIC:
            continue
        for file in folder.of_kind(LOG):
            allowance = ReadingAllowance(file.size_bytes, DECODED_COST)
            for headers in header_chunks(file.view()):
                for batch in _batches(file, headers):
                    if not batch.is_control:
                        _take_coordinated(batch, allowance, found)
    return found


def _take_coordinated(
    batch: RecordBatch, allowance: ReadingAllowance, found: dict[ProducerId, CoordinatorEntry]
) -> None:
    for record in batch.each_record(allowance):
        key, payload = decoded(record, "transaction-log")
        if key is None or payload is None or not payload.startswith("{"):
            continue
        transactional_id = json.loads(key)["data"]["transactionalId"]
        fields: Mapping[str, Any] = json.loads(payload)["data"]
        partitions = frozenset(
            TopicPartition(topic["topic"], partition)
            for topic in fields.get("transactionPartitions") or ()
            for partition in topic["partitionIds"]
        )
        found[ProducerId(fields["producerId"])] = CoordinatorEntry(
            transactional_id, str(fields["transactionStatus"]), partitions
        )


def judged(
    transaction: Transaction,
    partition: TopicPartition | None,
    coordinators: Mapping[ProducerId, CoordinatorEntry],
    *,
    now_ms: TimeMs,
) -> Transaction:
    """Return an open transaction with what its coordinator says of it; as hanging if nobody will end it."""
    known = coordinators.get(transaction.producer_id)
    if known is not None:
        is_hanging = known.state not in UNDECIDED or partition not in known.partitions
        transaction = attrs.evolve(transaction, transactional_id=known.transactional_id, coordinator_state=known.state)
    else:
        since_ms = transaction.since_ms
        is_hanging = since_ms is not None and now_ms - since_ms > TIMEOUT_MS_MAX + GRACE_MS
    return attrs.evolve(transaction, state=TransactionState.HANGING) if is_hanging else transaction


def partition_of(folder: SourceFolder) -> TopicPartition | None:
    """Return the partition whose directory a folder is, None for any other."""
    try:
        return parse_directory_name(folder.name).partition
    except UnexpectedDirectoryError:
        return None

"""Decide whether a producer may append a batch to a log, and prepare its next state without changing the current one.

A client's epoch and sequence are checked; of a coordinator, which has no sequence numbers, the epoch; replicated
batches are not checked again. In order of a batch: an epoch below the last seen is refused. In the same epoch a batch
has to begin at the sequence after the last one's, 0 after 2147483647. A new epoch begins at 0. A producer of which
nothing is known, because it is new or its records are gone, may begin anywhere. A marker ends the transaction that is
open, if one is, and its coordinator's epoch must not be below the last seen. Within a transaction, every batch is
transactional.

A coordinator says since 4.2 with which version of transactions it writes a marker (KIP-890). From version 2 on it has
raised the producer's epoch before, so that a marker of the epoch last seen is late and refused; but where no
transaction is open it is a retry, and written again. Since 4.3 one of the epoch 32767, which nobody can raise, is
taken in any case. A marker without a version is refused, other than of a follower's fetch.

Example: producer at epoch 0, sequence 9. (epoch 0, from 10) goes on; (0, from 12) and (1, from 5) are out of order;
(1, from 0) begins anew; after that (0, from 10) has an invalid epoch.

Source: Kafka storage/org.apache.kafka.storage.internals.log.ProducerAppendInfo, 4.0.1 to 4.3.1 (KIP-98, KIP-360,
KIP-890, KAFKA-19999).
"""

from __future__ import annotations

from enum import Enum
from typing import Final

import attrs

from broker.ids import INT32_MAX, Offset, ProducerEpoch, ProducerId
from broker.releases import NEWEST, Release
from log.batches.batch import NO_PRODUCER_EPOCH, RecordBatch
from log.errors import (
    IllegalArgumentError,
    InvalidProducerEpochError,
    InvalidTxnStateError,
    OutOfOrderSequenceError,
    TransactionCoordinatorFencedError,
)
from log.partition.producer_entry import BatchMetadata, ProducerEntry
from log.record import NO_SEQUENCE, ControlType, Record, marker_of

ASKS_TRANSACTION_VERSION: Final = Release("4.2")
"""The first release whose log asks with which version of transactions a marker is written."""
TAKES_LAST_EPOCH: Final = Release("4.3")
"""The first release that takes a marker of the largest epoch though a transaction is open."""
_RAISES_EPOCH: Final = 2  # The first transaction version in which a marker has a new epoch.
_INT16_MAX: Final = 2**15 - 1
_INT32_RANGE: Final = 2**32


class AppendOrigin(Enum):
    """List the sources of an append, which decide how much is checked."""

    CLIENT = "CLIENT"  # A producer: everything.
    COORDINATOR = "COORDINATOR"  # A group or transaction coordinator: no sequence numbers.
    REPLICATION = "REPLICATION"  # A follower, or recovery: the leader has checked.
    RAFT_LEADER = "RAFT_LEADER"  # The leader of the metadata log: no sequence numbers.


# Named once, as in `log.batches.in_buffer`.
_CLIENT: Final = AppendOrigin.CLIENT
_REPLICATION: Final = AppendOrigin.REPLICATION


@attrs.frozen
class CompletedTransaction:
    """Describe a transaction ended by a marker; `last_offset` is the marker's."""

    producer_id: ProducerId
    first_offset: Offset
    last_offset: Offset
    is_aborted: bool


@attrs.frozen
class StartedTransaction:
    """Describe a transaction whose first batch is being appended."""

    producer_id: ProducerId
    first_offset: Offset


@attrs.frozen
class MarkerRule:
    """Hold what the check of a transaction marker depends on: transaction version (None if unknown) and release.

    A release before 4.2 does not ask for the version.
    """

    transaction_version: int | None = None
    release: Release = NEWEST

    @property
    def is_unknown(self) -> bool:
        """Return whether the version has to be known and is not."""
        return self.transaction_version is None and self.release >= ASKS_TRANSACTION_VERSION

    def refuses(self, marker_epoch: int, producer: ProducerEntry) -> bool:
        """Return whether a marker's epoch is too low for what was last seen of its producer."""
        last_epoch = producer.producer_epoch
        raises_epoch = self.release >= ASKS_TRANSACTION_VERSION and (self.transaction_version or 0) >= _RAISES_EPOCH
        if not raises_epoch or marker_epoch != last_epoch:
            return marker_epoch < last_epoch
        is_last = marker_epoch == _INT16_MAX and self.release >= TAKES_LAST_EPOCH
        return producer.current_txn_first_offset is not None and not is_last


REPLICATED_MARKER: Final = MarkerRule(0)
"""The rule for markers that a leader has checked."""


class ProducerAppend:
    """Check batches of one producer, and prepare the producer's state after them."""

    __slots__ = ("_current", "_markers", "_name", "_origin", "started", "updated")

    def __init__(self, current: ProducerEntry, origin: AppendOrigin, name: str, markers: MarkerRule) -> None:
        self._markers = markers
        self._current = current
        self._origin = origin
        self._name = name
        self.updated = current.without_batches()
        self.started: list[StartedTransaction] = []

    @property
    def producer_id(self) -> ProducerId:
        """Return the id of the producer."""
        return self.updated.producer_id

    def append(self, batch: RecordBatch) -> CompletedTransaction | None:
        """Check a batch and update the prepared state; return the transaction that the batch ends, if any.

        Raises InvalidProducerEpochError, OutOfOrderSequenceError, InvalidTxnStateError,
        TransactionCoordinatorFencedError, and what the records of a control batch raise.
        """
        if not batch.is_control:
            self._append_data(batch)
            return None
        record = batch.first_record()
        # An empty control batch is what the cleaner left of a transaction that is wholly gone.
        return None if record is None else self._append_marker(batch, record)

    def _append_data(self, batch: RecordBatch) -> None:
        first_offset, last_offset = batch.base_offset, batch.last_offset
        self._check_producer_epoch(batch.producer_epoch, first_offset)
        if self._origin is _CLIENT:
            self._check_sequence(batch.producer_epoch, batch.base_sequence, first_offset)
        metadata = BatchMetadata(
            batch.last_sequence, last_offset, _as_int32(last_offset - first_offset), batch.max_timestamp
        )
        self.updated.add_batch(batch.producer_epoch, metadata)
        is_in_transaction = self.updated.current_txn_first_offset is not None
        if is_in_transaction and not batch.is_transactional:
            raise InvalidTxnStateError(
                f"Expected transactional write from producer {self.producer_id} at offset {first_offset} "
                f"in partition {self._name}"
            )
        if batch.is_transactional and not is_in_transaction:
            self.updated.current_txn_first_offset = first_offset
            self.started.append(StartedTransaction(self.producer_id, first_offset))

    def _append_marker(self, batch: RecordBatch, record: Record) -> CompletedTransaction | None:
        marker = marker_of(record)
        if marker is None:
            raise IllegalArgumentError(
                f"control record at offset {record.offset} in partition {self._name} is not a transaction marker"
            )
        if self._origin is not _REPLICATION:
            self._check_marker(batch.producer_epoch, batch.base_offset)
        self._check_coordinator_epoch(marker.coordinator_epoch, batch.base_offset)
        first_offset = self.updated.current_txn_first_offset
        self.updated.end_transaction(batch.producer_epoch, marker.coordinator_epoch, record.timestamp)
        if first_offset is None:
            return None
        is_aborted = marker.control_type is ControlType.ABORT
        return CompletedTransaction(self.producer_id, first_offset, batch.base_offset, is_aborted)

    def _check_producer_epoch(self, producer_epoch: ProducerEpoch, offset: Offset) -> None:
        if producer_epoch < self.updated.producer_epoch and self._origin is not _REPLICATION:
            raise InvalidProducerEpochError(
                f"Epoch of producer {self.producer_id} at offset {offset} in {self._name} is {producer_epoch}, "
                f"which is smaller than the last seen epoch {self.updated.producer_epoch}"
            )

    def _check_marker(self, producer_epoch: ProducerEpoch, offset: Offset) -> None:
        if self._markers.is_unknown:
            raise IllegalArgumentError(
                f"the transaction version of the marker at offset {offset} in {self._name} is unknown; release"
                f" {self._markers.release} writes a marker with its version only"
            )
        if self._markers.refuses(producer_epoch, self.updated):
            relation = "not above" if producer_epoch == self.updated.producer_epoch else "smaller than"
            raise InvalidProducerEpochError(
                f"Epoch of producer {self.producer_id} at offset {offset} in {self._name} is {producer_epoch}, "
                f"which is {relation} the last seen epoch {self.updated.producer_epoch}"
            )

    def _check_sequence(self, producer_epoch: ProducerEpoch, first_sequence: int, offset: Offset) -> None:
        if producer_epoch != self.updated.producer_epoch:
            if first_sequence != 0 and self.updated.producer_epoch != NO_PRODUCER_EPOCH:
                raise OutOfOrderSequenceError(
                    f"Invalid sequence number for new epoch of producer {self.producer_id} at offset {offset} "
                    f"in partition {self._name}: {producer_epoch} (request epoch), {first_sequence} (seq. number), "
                    f"{self.updated.producer_epoch} (current producer epoch)"
                )
            return
        last_sequence = self._last_sequence(producer_epoch)
        is_known = self._current.producer_epoch != NO_PRODUCER_EPOCH
        if is_known and not _follows(last_sequence, first_sequence):
            raise OutOfOrderSequenceError(
                f"Out of order sequence number for producer {self.producer_id} at offset {offset} in partition "
                f"{self._name}: {first_sequence} (incoming seq. number), {last_sequence} (current end sequence number)"
            )

    def _last_sequence(self, producer_epoch: ProducerEpoch) -> int:
        """Return the sequence number that a batch of the producer's present epoch has to follow."""
        if self.updated.batches:
            return self.updated.last_sequence
        return self._current.last_sequence if producer_epoch == self._current.producer_epoch else NO_SEQUENCE

    def _check_coordinator_epoch(self, coordinator_epoch: int, offset: Offset) -> None:
        if self.updated.coordinator_epoch > coordinator_epoch and self._origin is not _REPLICATION:
            raise TransactionCoordinatorFencedError(
                f"Invalid coordinator epoch for producerId {self.producer_id} at offset {offset} in partition "
                f"{self._name}: {coordinator_epoch} (zombie), {self.updated.coordinator_epoch} (current)"
            )


def _follows(last_sequence: int, next_sequence: int) -> bool:
    return next_sequence == last_sequence + 1 or (next_sequence == 0 and last_sequence == INT32_MAX)


def _as_int32(number: int) -> int:
    """Return what is left of a number that Java squeezes into 32 bits."""
    return (number + INT32_MAX + 1) % _INT32_RANGE - INT32_MAX - 1

"""Decide for each batch whether a cleaning pass discards it, keeps it, or filters its records by key.

For each batch, in the order of the log, it decides
- whether its records are filtered by their keys, all stay (a marker that is still needed) or all go (of an aborted
  transaction, or a marker whose horizon is reached);
- whether an empty batch stays in its place when none of its records does: while it is the last batch known of an active
  producer (its last data, or without any the last marker of its epoch), since whoever reads the log anew could not
  distinguish a retry from a gap without it; and while it is the last batch of the pass, so that the log keeps its end;
- whether it is stamped with a delete horizon: a marker whose transaction is gone, which a later pass may drop.

A batch that goes whole is not read, so its records do not count as read. `Fates.of_headers` decides most batches at
once, without transaction and not the last of anything, and asks `fate_of` for the others.

Source: kafka.log.Cleaner.cleanInto (RecordFilter.checkBatchRetention) and buildOffsetMapForSegment, 4.3.1.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int32Array
from broker.units import TimeMs
from log.batches.batch import RecordBatch
from log.batches.record_columns import HeaderColumns
from log.compaction.key_kernels import BY_KEY, KEEP_ALL, SKIP
from log.compaction.source import SourceLog
from log.partition.producer_state import PRODUCER_ID_EXPIRATION_MS
from log.record import CONTROL_BIT, TRANSACTIONAL_BIT, ControlType, control_type
from log.segments.txn_index import AbortedTransaction


class CleanedTransactions:
    """Track the transactions open at the current batch of the walk; each decision updates them."""

    def __init__(self) -> None:
        # A heap by first offset; the count keeps equal offsets in the order in which they were added.
        self._waiting: list[tuple[int, int, AbortedTransaction]] = []
        self._added_count = 0
        self._aborted: dict[int, AbortedTransaction] = {}
        self._observed: set[int] = set()  # Producers of `_aborted` of whose transaction a batch was met.
        self._committed: set[int] = set()

    def add_aborted(self, transactions: Iterable[AbortedTransaction]) -> None:
        """Add the aborted transactions of the segments to come."""
        for transaction in transactions:
            self._added_count += 1
            heapq.heappush(self._waiting, (transaction.first_offset, self._added_count, transaction))

    def is_aborted(self, producer_id: int, last_offset: int) -> bool:
        """Return whether a transactional data batch that ends at `last_offset` belongs to an aborted transaction."""
        self._walk_to(last_offset)
        if producer_id in self._aborted:
            # Its abort marker must stay in this pass: a consumer that has read this batch still needs the marker.
            self._observed.add(producer_id)
            return True
        # No index entry says that it was aborted, so it is committed or still open: the cleaner stops before open ones.
        self._committed.add(producer_id)
        return False

    def end(
        self, producer_id: int, last_offset: int, kind: ControlType | None
    ) -> tuple[bool, AbortedTransaction | None]:
        """Process a control batch; `kind` is None for a batch that an earlier pass has emptied.

        Returns whether the batch may be discarded, and the aborted transaction that the new index still needs because
        its marker stays.
        """
        self._walk_to(last_offset)
        if kind is None:
            # An empty control batch only keeps its producer's epoch; `log.compaction.fates` decides on that.
            return True, None
        if kind is ControlType.COMMIT:
            # Nothing of the transaction was met before its marker: earlier passes have removed all of its data.
            may_go = producer_id not in self._committed
            self._committed.discard(producer_id)
            return may_go, None
        if kind is not ControlType.ABORT:
            return False, None  # Not a marker: such records are the quorum's, and stay.
        # The marker ends the transaction: later batches of the producer belong to its next one.
        transaction = self._aborted.pop(producer_id, None)
        was_observed = producer_id in self._observed
        self._observed.discard(producer_id)
        return not was_observed, transaction if was_observed else None

    def _walk_to(self, offset: int) -> None:
        """Move the waiting transactions that begin at or before `offset` to their producers."""
        while self._waiting and self._waiting[0][0] <= offset:
            transaction = heapq.heappop(self._waiting)[-1]
            # The first one stays: an entry that was added twice must not replace the transaction that is running.
            self._aborted.setdefault(transaction.producer_id, transaction)


@attrs.frozen
class LastOfProducer:
    """Hold the last data offset of an active producer, None if it has written no data, and its epoch."""

    data_offset: int | None
    producer_epoch: int


def last_of_producers_in(chunks: Iterable[HeaderColumns], now_ms: TimeMs) -> dict[int, LastOfProducer]:
    """Return the last data offset and epoch of each producer that is active at `now_ms`, from a log's batch headers.

    What a log opened at `now_ms` knows of its producers, for those with a batch in it.
    """
    found: dict[int, LastOfProducer] = {}
    seen_ms: dict[int, int] = {}
    for headers in chunks:
        is_control = headers.attributes & CONTROL_BIT != 0
        # A control batch that a pass has emptied tells nothing any more.
        is_known = (headers.magic >= 2) & (headers.producer_id >= 0) & ~(is_control & (headers.record_count == 0))
        rows: list[int] = []
        for kind in (is_control, ~is_control):  # The last row of each producer and kind decides.
            of_kind = np.flatnonzero(is_known & kind)[::-1]
            rows.extend(of_kind[np.unique(headers.producer_id[of_kind], return_index=True)[1]].tolist())
        for row in sorted(rows):
            producer_id, epoch = int(headers.producer_id[row]), int(headers.producer_epoch[row])
            data_offset: int | None = int(headers.last_offset[row])
            if is_control[row]:
                before = found.get(producer_id)
                data_offset = before.data_offset if before is not None and before.producer_epoch == epoch else None
            found[producer_id] = LastOfProducer(data_offset, epoch)
            seen_ms[producer_id] = int(headers.max_timestamp[row])
    return {each: last for each, last in found.items() if now_ms - seen_ms[each] < PRODUCER_ID_EXPIRATION_MS}


@attrs.frozen
class Fate:
    """Hold the decision on one batch; `records` is SKIP (discard all), BY_KEY or KEEP_ALL."""

    records: int = BY_KEY
    is_read: bool = True
    keeps_empty: bool = False
    is_stamped: bool = False


@attrs.frozen(eq=False)
class ManyFates:
    """Hold the decisions on several batches, one array element per batch: uint8 and three times bool."""

    records: NDArray[np.uint8]
    is_read: NDArray[np.bool_]
    keeps_empty: NDArray[np.bool_]
    is_stamped: NDArray[np.bool_]

    def rows(self, start: int, end: int) -> ManyFates:
        """Return views of the rows from `start` to before `end`."""
        return ManyFates(
            self.records[start:end], self.is_read[start:end], self.keeps_empty[start:end], self.is_stamped[start:end]
        )


class Fates:
    """Decide on the batches of one pass; the caller must pass them in the order of the log.

    A batch that ends right below `end_offset` stays though it is empty. `producers` are the active ones.
    """

    def __init__(self, end_offset: int, now_ms: TimeMs) -> None:
        self.transactions = CleanedTransactions()
        self.producers: Mapping[int, LastOfProducer] = {}
        self._retained: list[AbortedTransaction] = []
        self._end_offset = end_offset
        self._now_ms = now_ms

    def of_headers(self, headers: HeaderColumns, source: SourceLog) -> ManyFates:
        """Return the decisions on the next batches."""
        count = len(headers)
        fates = ManyFates(
            np.full(count, BY_KEY, np.uint8),
            np.ones(count, np.bool_),
            np.zeros(count, np.bool_),
            np.zeros(count, np.bool_),
        )
        for row in np.flatnonzero(self._is_special(headers)):
            fate = self.fate_of(source.batch_at(int(headers.position[row])))
            fates.records[row], fates.is_read[row] = fate.records, fate.is_read
            fates.keeps_empty[row], fates.is_stamped[row] = fate.keeps_empty, fate.is_stamped
        return fates

    def fate_of(self, batch: RecordBatch) -> Fate:
        """Return the decision on the next batch."""
        may_go, retained = discards(self.transactions, batch)
        if retained is not None:
            self._retained.append(retained)
        horizon_ms = batch.delete_horizon_ms
        goes = may_go
        if batch.is_control:
            # A marker goes in two passes: the first stamps it with a horizon, so that consumers that are in the middle
            # of the transaction have delete.retention.ms to see it; a pass after the horizon drops it (KIP-534).
            goes = may_go and horizon_ms is not None and horizon_ms <= self._now_ms
        # Without its last batch a producer's next one would look like a gap in its sequence; without the last batch
        # the log would seem to end sooner.
        keeps_empty = self._is_last_of_producer(batch) or batch.next_offset == self._end_offset
        return Fate(
            records=SKIP if goes else KEEP_ALL if batch.is_control else BY_KEY,
            is_read=keeps_empty or not goes,
            keeps_empty=keeps_empty,
            is_stamped=may_go and batch.is_control,
        )

    def take_retained(self) -> tuple[AbortedTransaction, ...]:
        """Return the aborted transactions whose markers were retained since the last call, for the new index."""
        retained = tuple(self._retained)
        self._retained.clear()
        return retained

    def _is_special(self, headers: HeaderColumns) -> NDArray[np.bool_]:
        """Return a mask of the batches that `fate_of` decides one by one; the others all have the same fate."""
        data_offsets = [last.data_offset for last in self.producers.values() if last.data_offset is not None]
        special = is_transactional_or_control(headers)
        special |= headers.last_offset == self._end_offset - 1
        if data_offsets:
            special |= np.isin(headers.last_offset, data_offsets)
        return special

    def _is_last_of_producer(self, batch: RecordBatch) -> bool:
        last = self.producers.get(batch.producer_id) if batch.has_producer_id else None
        if last is None:
            return False
        if last.data_offset is not None:
            return batch.last_offset == last.data_offset
        return batch.is_control and batch.producer_epoch == last.producer_epoch


def discards(transactions: CleanedTransactions, batch: RecordBatch) -> tuple[bool, AbortedTransaction | None]:
    """Return whether the next batch may be discarded for its transaction, and an aborted transaction to index."""
    if batch.is_control:
        return transactions.end(batch.producer_id, batch.last_offset, _control_type(batch))
    if batch.is_transactional:
        return transactions.is_aborted(batch.producer_id, batch.last_offset), None
    return False, None


def mapped_fates(
    headers: HeaderColumns, transactions: CleanedTransactions, source: SourceLog
) -> tuple[NDArray[np.uint8], Int32Array]:
    """Return, per batch, its treatment while the offset map is filled, and the records counted for it.

    Markers and the batches of aborted transactions have no keys to offer; a marker counts as one, even when emptied.
    """
    records = np.full(len(headers), BY_KEY, np.uint8)
    counts = headers.record_count.copy()
    for row in np.flatnonzero(is_transactional_or_control(headers)):
        batch = source.batch_at(int(headers.position[row]))
        if discards(transactions, batch)[0] or batch.is_control:
            records[row] = SKIP
        if batch.is_control:
            counts[row] = 1
    return records, counts


def is_transactional_or_control(headers: HeaderColumns) -> NDArray[np.bool_]:
    """Return a mask of transactional and control batches; magic 0 and 1 have none."""
    bits = headers.attributes & np.int16(TRANSACTIONAL_BIT | CONTROL_BIT)
    mask: NDArray[np.bool_] = np.logical_and(bits != 0, headers.magic >= 2)
    return mask


def _control_type(batch: RecordBatch) -> ControlType | None:
    """Return the type of a control batch's first record, None if it has no records."""
    record = batch.first_record()
    return None if record is None else control_type(record.key)

"""Track transactions while the cleaner walks through a log, and decide which batches they allow it to discard.

What it decides: for each batch, in the order of the log, whether the transactions allow that it is discarded.
- A data batch goes if it belongs to an aborted transaction, whatever its keys.
- A marker may go once no batch of its transaction, not even an empty one, was met before it. It is then stamped with
  a delete horizon, and dropped by a later pass.

Constraints: batches come in order of their offsets, each once. The aborted transactions that reach into the range
are known before its first batch; the same one may be added again with the next segment.

How: aborted transactions wait in a heap by first offset until the walk gets there, then belong to their producer
until its abort marker. What a transactional batch of any other producer belongs to is taken to be committed.

Example: an aborted transaction of producer 7 from offset 2: its batch at 2 may be discarded; its marker at 3 may not,
as the batch at 2 was met in this pass; in the next pass nothing is met before the marker, and it may be discarded.

Left out: what happens to a batch that may be discarded: see `log.compaction.fates`.

Source: kafka.log.CleanedTransactionMetadata, trunk 1eb7644 (2024-10).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from log.indexes.txn_index import AbortedTransaction
from log.record import ControlType


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

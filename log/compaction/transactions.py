"""What a cleaner has to remember of transactions while it walks through a log.

What it decides: of each batch, in the order of the log, whether the transactions allow that it goes.
- A data batch goes if it belongs to an aborted transaction, whatever its keys.
- A marker may go once no batch of its transaction, not even an empty one, was met before it. It is then stamped with
  a delete horizon, and dropped by a later pass.

Constraints: batches are told in order of their offsets, each once. The aborted transactions that reach into the range
are known before its first batch; the same one may be told again with the next segment.

How: aborted transactions wait in a heap by first offset until the walk gets there, then belong to their producer
until its abort marker. What a transactional batch of any other producer belongs to is taken to be committed.

Example: an aborted transaction of producer 7 from offset 2: its batch at 2 may be discarded; its marker at 3 may not,
as the batch at 2 was met in this pass; in the next pass nothing is met before the marker, and it may be discarded.

Left out: what becomes of a batch then: see `log.compaction.retention`.
Source: kafka.log.CleanedTransactionMetadata, trunk 1eb7644 (2024-10).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from log.indexes.txn_index import AbortedTransaction
from log.record import ControlType


class CleanedTransactions:
    """The transactions that are open at one place of the walk; the decisions change it."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, int, AbortedTransaction]] = []
        self._told_count = 0
        self._aborted: dict[int, AbortedTransaction] = {}
        self._observed: set[int] = set()  # Producers of `_aborted` of whose transaction a batch was met.
        self._committed: set[int] = set()

    def add_aborted(self, transactions: Iterable[AbortedTransaction]) -> None:
        """Take in aborted transactions of the segments to come."""
        for transaction in transactions:
            self._told_count += 1
            heapq.heappush(self._waiting, (transaction.first_offset, self._told_count, transaction))

    def is_aborted(self, producer_id: int, last_offset: int) -> bool:
        """Tell whether a transactional batch with data, which ends at `last_offset`, is of an aborted transaction."""
        self._walk_to(last_offset)
        if producer_id in self._aborted:
            self._observed.add(producer_id)
            return True
        self._committed.add(producer_id)
        return False

    def end(
        self, producer_id: int, last_offset: int, kind: ControlType | None
    ) -> tuple[bool, AbortedTransaction | None]:
        """Take a control batch; `kind` is None of one that was emptied by an earlier pass.

        Returns whether it may be discarded, and the aborted transaction that is still needed in the index because
        its marker has to stay.
        """
        self._walk_to(last_offset)
        if kind is None:
            return True, None
        if kind is ControlType.COMMIT:
            may_go = producer_id not in self._committed
            self._committed.discard(producer_id)
            return may_go, None
        if kind is not ControlType.ABORT:
            return False, None  # Not a marker: such records are the quorum's, and stay.
        transaction = self._aborted.pop(producer_id, None)
        was_observed = producer_id in self._observed
        self._observed.discard(producer_id)
        return not was_observed, transaction if was_observed else None

    def _walk_to(self, offset: int) -> None:
        """Give the waiting transactions that have begun by `offset` to their producers."""
        while self._waiting and self._waiting[0][0] <= offset:
            transaction = heapq.heappop(self._waiting)[-1]
            self._aborted.setdefault(transaction.producer_id, transaction)

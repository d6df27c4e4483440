"""What becomes of aborted records and of markers."""

from __future__ import annotations

from log.compaction.transactions import CleanedTransactions
from log.indexes.txn_index import AbortedTransaction
from log.record import ControlType

ABORTED = AbortedTransaction(7, 2, 5, 5)


def walk(*aborted: AbortedTransaction) -> CleanedTransactions:
    transactions = CleanedTransactions()
    transactions.add_aborted(aborted)
    return transactions


def test_batches_of_an_aborted_transaction_may_go_and_its_marker_stays_and_is_indexed() -> None:
    transactions = walk(ABORTED)
    assert transactions.is_aborted(7, 3)
    assert transactions.end(7, 5, ControlType.ABORT) == (False, ABORTED)


def test_an_abort_marker_may_go_when_no_batch_of_its_transaction_was_met() -> None:
    assert walk(ABORTED).end(7, 5, ControlType.ABORT) == (True, None)


def test_a_batch_before_the_aborted_transaction_is_of_another_one() -> None:
    transactions = walk(ABORTED)
    assert not transactions.is_aborted(7, 1)
    assert transactions.end(7, 1, ControlType.COMMIT) == (False, None)
    assert transactions.is_aborted(7, 2)


def test_a_commit_marker_may_go_only_without_batches_before_it() -> None:
    transactions = walk()
    assert not transactions.is_aborted(7, 0)
    assert transactions.end(7, 1, ControlType.COMMIT) == (False, None)
    assert transactions.end(7, 2, ControlType.COMMIT) == (True, None)


def test_the_transactions_of_two_producers_do_not_mix() -> None:
    transactions = walk(ABORTED)
    assert not transactions.is_aborted(8, 3)
    assert transactions.is_aborted(7, 4)
    assert transactions.end(8, 6, ControlType.COMMIT) == (False, None)


def test_a_transaction_told_twice_is_one() -> None:
    transactions = walk(ABORTED, ABORTED)
    assert transactions.is_aborted(7, 3)
    transactions.add_aborted([ABORTED])
    assert transactions.end(7, 5, ControlType.ABORT) == (False, ABORTED)
    assert not transactions.is_aborted(7, 6)


def test_an_emptied_control_batch_may_go_and_one_of_the_quorum_may_not() -> None:
    transactions = walk()
    assert transactions.end(7, 1, None) == (True, None)
    assert transactions.end(7, 2, ControlType.LEADER_CHANGE) == (False, None)

"""The transaction index: its bytes, and who is found aborted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.clock import ManualClock
from broker.ids import Offset, ProducerId
from log.errors import CorruptIndexError, CorruptTransactionIndexError, IllegalArgumentError
from log.segments.txn_index import AbortedTransaction, AbortedTransactions, TransactionIndex, encode_aborted
from tests.support.disk_image import DiskImage, storage_of

PATH = "t-0/00000000000000000010.txnindex"


def aborted(producer_id: int, first: int, last: int, stable: int) -> AbortedTransaction:
    return AbortedTransaction(ProducerId(producer_id), Offset(first), Offset(last), Offset(stable))


ONE, TWO, THREE = aborted(7, 10, 25, 26), aborted(8, 12, 40, 41), aborted(7, 50, 55, 45)


def opened(data: bytes | None = None) -> TransactionIndex:
    image = DiskImage({} if data is None else {PATH: data}, frozenset({"t-0"}))
    return TransactionIndex.open(storage_of(ManualClock(), image), PATH, 10)


def filled(*entries: AbortedTransaction) -> TransactionIndex:
    index = opened()
    for entry in entries:
        index.append(entry)
    return index


def test_the_file_is_made_at_the_first_entry() -> None:
    index = opened()
    index.flush()
    index.reset()
    index.truncate_to(0)
    assert (index.entries(), index.remove(), index._storage.list("t-0")) == ((), False, ())
    index.append(ONE)
    assert index._storage.read(PATH) == bytes.fromhex(
        "00000000000000000007000000000000000a0000000000000019000000000000001a"
    )


def test_entries_are_read_back_and_last_offsets_grow() -> None:
    index = filled(ONE, TWO)
    for entry in (TWO, ONE):
        with pytest.raises(IllegalArgumentError) as refusal:
            index.append(entry)
        assert str(refusal.value) == f"{PATH}: last offset {entry.last_offset} is not above the one before, 40"
    assert index.entries() == (ONE, TWO)
    index.close()
    assert TransactionIndex.open(index._storage, PATH, 10).entries() == (ONE, TWO)


def test_a_range_meets_the_transactions_that_overlap_it() -> None:
    index = filled(ONE, TWO, THREE)
    assert index.collect(30, 35) == AbortedTransactions((TWO,), is_complete=True)
    assert index.collect(0, 11) == AbortedTransactions((ONE,), is_complete=True)
    assert index.collect(25, 1000) == AbortedTransactions((ONE, TWO, THREE), is_complete=False)
    assert index.collect(56, 1000) == AbortedTransactions((), is_complete=False)


@given(
    lasts=st.lists(st.integers(10, 60), unique=True, max_size=8).map(sorted),
    firsts=st.lists(st.integers(0, 50), min_size=8, max_size=8),
    start=st.integers(0, 70),
    size=st.integers(0, 30),
)
def test_no_transaction_that_overlaps_is_missed_when_stable_offsets_are_true(
    lasts: list[int], firsts: list[int], start: int, size: int
) -> None:
    entries = [aborted(1, min(first, last), last, last + 1) for first, last in zip(firsts, lasts, strict=False)]
    found = filled(*entries).collect(start, start + size)
    overlapping = [entry for entry in entries if entry.last_offset >= start and entry.first_offset < start + size]
    assert set(found.transactions) <= set(overlapping)
    missed = set(overlapping) - set(found.transactions)
    assert all(entry.last_offset >= start + size for entry in missed)
    assert not missed or found.is_complete


def test_truncating_drops_from_the_first_marker_at_the_offset() -> None:
    for offset, kept in ((26, (ONE,)), (25, ()), (41, (ONE, TWO)), (40, (ONE,)), (100, (ONE, TWO, THREE))):
        index = filled(ONE, TWO, THREE)
        index.truncate_to(offset)
        assert index.entries() == kept
    index.truncate_to(0)
    index.append(ONE)
    assert index.entries() == (ONE,)


def test_bytes_behind_the_last_whole_entry_are_passed_over() -> None:
    assert opened(encode_aborted(ONE) + b"\0" * 33).entries() == (ONE,)


def test_a_version_is_told_by_its_upper_byte() -> None:
    assert opened(b"\0\x07" + encode_aborted(ONE)[2:]).entries() == (ONE,)
    assert opened(b"\xff\x07" + encode_aborted(ONE)[2:]).entries() == (ONE,)
    index = opened(encode_aborted(ONE) + b"\x01\0" + encode_aborted(TWO)[2:])
    with pytest.raises(CorruptTransactionIndexError) as damage:
        index.sanity_check()
    assert str(damage.value) == f"{PATH} at byte 34: aborted transaction of version 1; 0 is known"
    assert index.collect(0, 20) == AbortedTransactions((ONE,), is_complete=True)  # It does not come so far.


def test_an_entry_below_the_segment_is_reported() -> None:
    with pytest.raises(CorruptIndexError) as damage:
        opened(encode_aborted(ONE) + encode_aborted(aborted(7, 1, 9, 10))).sanity_check()
    assert str(damage.value) == f"{PATH}: has a transaction that ends at 9, below the start offset 10"
    filled(ONE, TWO).sanity_check()


def test_a_renamed_index_goes_on() -> None:
    index = filled(ONE)
    index.rename(PATH + ".swap")
    index.append(TWO)
    assert index._storage.list("t-0") == ("00000000000000000010.txnindex.swap",)
    assert index.entries() == (ONE, TWO)
    empty = opened()
    empty.rename(PATH + ".swap")
    assert empty.path == PATH + ".swap"
    assert filled(ONE).remove()

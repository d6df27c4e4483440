"""The three indexes of a segment against plain lists, and on damage against what Kafka's search does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.clock import ManualClock
from broker.ids import Offset, ProducerId
from log.errors import (
    CorruptIndexError,
    CorruptTransactionIndexError,
    IllegalArgumentError,
    IllegalStateError,
    IndexOffsetOverflowError,
    InvalidOffsetError,
)
from log.record import TimestampOffset
from log.segments.index_file import slot_at_most
from log.segments.offset_index import OffsetIndex, OffsetPosition, check_offset_index, offset_index_entries
from log.segments.time_index import TimeIndex, check_time_index, time_index_entries
from log.segments.txn_index import AbortedTransaction, AbortedTransactions, TransactionIndex, encode_aborted
from log.storage import MemoryStorage
from tests.support.disk_image import DiskImage, storage_of

BASE = 1000
PATH = "t-0/00000000000000001000.index"
Pairs = list[tuple[int, int]]


def stored(data: bytes | None) -> MemoryStorage:
    return storage_of(ManualClock(), DiskImage({} if data is None else {PATH: data}, frozenset({"t-0"})))


def by_offset(*entries: tuple[int, int], data: bytes | None = None, size_bytes_max: int = 8000) -> OffsetIndex:
    index = OffsetIndex.open(stored(data), PATH, BASE, size_bytes_max=size_bytes_max)
    for offset, position in entries:
        index.append(offset, position)
    return index


def by_time(*entries: tuple[int, int], data: bytes | None = None, size_bytes_max: int = 1200) -> TimeIndex:
    index = TimeIndex.open(stored(data), PATH, BASE, size_bytes_max=size_bytes_max)
    for timestamp, offset in entries:
        index.maybe_append(timestamp, offset)
    return index


def encoded(*entries: tuple[int, int], sizes: tuple[int, int] = (4, 4)) -> bytes:
    return b"".join(n.to_bytes(size, signed=True) for entry in entries for n, size in zip(entry, sizes, strict=True))


def pairs(index: OffsetIndex | TimeIndex) -> Pairs:
    found = index.entries()
    if isinstance(index, OffsetIndex):
        return list(zip(found.offsets.tolist(), found.positions.tolist(), strict=True))
    return list(zip(found.timestamps.tolist(), found.offsets.tolist(), strict=True))


def test_an_index_without_room_for_an_entry_is_refused_and_makes_no_file() -> None:
    storage = stored(None)
    with pytest.raises(IllegalArgumentError) as refusal:
        OffsetIndex.open(storage, PATH, BASE, size_bytes_max=7)
    assert (str(refusal.value), storage.exists(PATH)) == (f"{PATH}: 7 bytes have no room for an index entry", False)


def test_an_index_that_was_there_is_taken_to_be_full_to_its_end() -> None:
    index = by_offset(data=encoded((1, 0), (5, 40)) + bytes(3), size_bytes_max=87)
    assert (index.entry_count, index.entry_count_max, index.last_offset, index.is_full) == (2, 2, BASE + 5, True)
    index.resize(index.size_bytes_max)
    index.append(BASE + 6, 50)
    assert (index.entry_count_max, index.is_full, pairs(index)[-1]) == (10, False, (1006, 50))


def test_what_an_offset_index_cannot_hold_is_refused_and_changes_nothing() -> None:
    index = by_offset((1010, 5), size_bytes_max=16)
    for offset in (1010, 1009, 0):
        with pytest.raises(InvalidOffsetError) as refusal:
            index.append(offset, 6)
        assert str(refusal.value) == f"{PATH}: offset {offset} is not above the last one, 1010"
    with pytest.raises(IndexOffsetOverflowError, match="is not within 2147483647 above the base offset 1000"):
        index.append(BASE + 2**31, 6)
    index.append(BASE + 2**31 - 1, 6)
    with pytest.raises(IllegalArgumentError, match="is full: it has 2 entries"):
        index.append(BASE + 2**31, 6)
    assert pairs(index) == [(1010, 5), (BASE + 2**31 - 1, 6)]


def test_what_a_time_index_cannot_hold_is_refused_or_passed_over() -> None:
    index = by_time((-1, 1061), (10, 1055), (10, 1060), (11, 1055), size_bytes_max=36)
    with pytest.raises(InvalidOffsetError) as refusal:
        index.maybe_append(20, 1054, skip_full_check=True)
    assert str(refusal.value) == f"{PATH}: offset 1054 is below the last entry's, 1055"
    with pytest.raises(IllegalStateError) as state:
        index.maybe_append(9, 1060, skip_full_check=True)
    assert str(state.value) == f"{PATH}: timestamp 9 is below the last entry's, 11"
    with pytest.raises(IllegalArgumentError, match="is full: it has 2 entries"):  # The last place is kept for the roll.
        index.maybe_append(12, 1056)
    index.maybe_append(12, 1056, skip_full_check=True)
    assert pairs(index) == [(10, 1055), (11, 1055), (12, 1056)]


BY_OFFSET = st.lists(st.integers(1, 60), max_size=30).map(
    lambda gaps: [(BASE + sum(gaps[: place + 1]), 7 * place) for place in range(len(gaps))]
)
BY_TIME = st.lists(st.tuples(st.integers(1, 40), st.integers(0, 3)), max_size=25).map(
    lambda steps: [
        (100 + sum(step[0] for step in steps[: place + 1]), BASE + sum(step[1] for step in steps[: place + 1]))
        for place in range(len(steps))
    ]
)


@given(entries=BY_OFFSET, targets=st.lists(st.integers(900, 3000), max_size=20), is_loaded=st.booleans())
def test_a_look_up_finds_the_largest_offset_at_most_the_target(
    entries: Pairs, targets: list[int], is_loaded: bool
) -> None:
    data = encoded(*((offset - BASE, at) for offset, at in entries))
    index = by_offset(data=data) if is_loaded else by_offset(*entries)
    expected = [max([entry for entry in entries if entry[0] <= target], default=(BASE, 0)) for target in targets]
    assert [(index.lookup(target).offset, index.lookup(target).position) for target in targets] == expected


@given(entries=BY_TIME, targets=st.lists(st.integers(-5, 1200), max_size=20), is_loaded=st.booleans())
def test_a_look_up_finds_the_latest_time_at_most_the_target(
    entries: Pairs, targets: list[int], is_loaded: bool
) -> None:
    data = encoded(*((time, offset - BASE) for time, offset in entries), sizes=(8, 4))
    index = by_time(data=data) if is_loaded else by_time(*entries)
    expected = [max([entry for entry in entries if entry[0] <= target], default=(-1, BASE)) for target in targets]
    assert [(index.lookup(target).timestamp, index.lookup(target).offset) for target in targets] == expected


@given(entries=BY_OFFSET, offset=st.integers(900, 3000), more=st.integers(0, 50))
def test_truncating_drops_the_entries_of_the_offset_and_above(entries: Pairs, offset: int, more: int) -> None:
    index = by_offset(*entries)
    index.lookup(offset)
    index.truncate_to(offset)
    index.check_invariants()
    kept = [entry for entry in entries if entry[0] < offset]
    assert (pairs(index), index.last_offset) == (kept, kept[-1][0] if kept else BASE)
    index.append(index.last_offset + 1 + more, 5)
    assert index.lookup(10**9) == OffsetPosition((kept[-1][0] if kept else BASE) + 1 + more, 5)


@given(entries=BY_TIME, offset=st.integers(900, 1130))
def test_truncating_keeps_times_below_the_offset(entries: Pairs, offset: int) -> None:
    index = by_time(*entries)
    index.truncate_to(offset)
    index.check_invariants()
    kept = pairs(index)
    # Of several entries with one offset, Kafka's search may find any: what it finds goes, and what follows it.
    assert kept == entries[: len(kept)]
    assert all(entry[1] <= offset for entry in kept)
    if len({entry[1] for entry in entries}) == len(entries):
        assert kept == [entry for entry in entries if entry[1] < offset]
    assert index.last_entry == TimestampOffset(*(kept[-1] if kept else (-1, BASE)))


@given(entries=BY_OFFSET, start=st.integers(0, 200), size_bytes=st.integers(0, 300))
def test_the_upper_bound_is_the_first_entry_beyond_what_is_read(entries: Pairs, start: int, size_bytes: int) -> None:
    end = start + size_bytes
    beyond = [entry for place, entry in enumerate(entries) if entry[1] > end or (entry[1] == end and place > 0)]
    found = by_offset(*entries).upper_bound(OffsetPosition(0, start), size_bytes)
    assert found == (OffsetPosition(*beyond[0]) if beyond else None)


@given(keys=st.lists(st.integers(-5, 20), max_size=40), target=st.integers(-7, 22), warm=st.integers(0, 45))
def test_on_sorted_keys_kafkas_steps_find_what_bisection_finds(keys: list[int], target: int, warm: int) -> None:
    keys = sorted(set(keys))
    assert slot_at_most(keys, target, warm) == sum(key <= target for key in keys) - 1


def test_an_index_that_was_not_trimmed_is_searched_in_kafkas_steps() -> None:
    # Kafka's OffsetIndex gives these answers for this file: the reserved zeros at its end lie below most targets.
    index = by_offset(data=encoded((3, 30), (7, 70), (0, 0), (0, 0)))
    assert [index.lookup(BASE + target).position for target in (0, 2, 3, 7, 9)] == [0, 0, 30, 0, 0]
    assert index.last_offset == BASE


def test_resetting_makes_an_index_new_and_trimming_shortens_it() -> None:
    index = by_offset((1001, 1), (1002, 2), size_bytes_max=800)
    index.reset()
    assert (index.entry_count, index.entry_count_max, index.last_offset) == (0, 100, BASE)
    index.append(BASE + 1, 9)
    storage = index._storage
    index.rename(PATH + ".deleted")
    index.trim()
    index.close()
    assert storage.size_bytes(PATH + ".deleted") == 8
    again = OffsetIndex.open(storage, PATH + ".deleted", BASE, size_bytes_max=800)
    assert (again.remove(), again.remove(), storage.list("t-0")) == (True, False, ())


@pytest.mark.parametrize(
    ("data", "is_of_times", "message"),
    [
        (encoded((5, 1), (-1, 2)), False, "has entries, but the last offset 999 is below the base offset 1000"),
        (encoded((5, 1)) + b"\0", False, "has 9 bytes, which is no multiple of 8"),
        (
            encoded((9, 1), (8, 2), sizes=(8, 4)),
            True,
            "has entries, but the last timestamp 8 is below the first, 9",
        ),
        (
            encoded((9, -1), sizes=(8, 4)),
            True,
            "has entries, but the last offset 999 is below the base offset 1000",
        ),
        (encoded((9, 1), sizes=(8, 4)) + b"\0\0", True, "has 14 bytes, which is no multiple of 12"),
    ],
)
def test_what_cannot_be_right_at_first_sight_is_reported(data: bytes, is_of_times: bool, message: str) -> None:
    def check() -> None:
        if is_of_times:
            check_time_index(time_index_entries(data, BASE), BASE, len(data), source=PATH)
        else:
            check_offset_index(offset_index_entries(data, BASE), BASE, len(data), source=PATH)

    with pytest.raises(CorruptIndexError) as damage:
        check()
    assert str(damage.value) == f"{PATH}: {message}"


def aborted(producer_id: int, first: int, last: int, stable: int) -> AbortedTransaction:
    return AbortedTransaction(ProducerId(producer_id), Offset(first), Offset(last), Offset(stable))


ONE, TWO, THREE = aborted(7, 10, 25, 26), aborted(8, 12, 40, 41), aborted(7, 50, 55, 45)


def by_transaction(*entries: AbortedTransaction, data: bytes | None = None) -> TransactionIndex:
    index = TransactionIndex.open(stored(data), PATH, 10)
    for entry in entries:
        index.append(entry)
    return index


def test_a_transaction_index_has_no_file_before_its_first_entry() -> None:
    index = by_transaction()
    index.flush()
    index.reset()
    index.truncate_to(0)
    assert (index.entries(), index.remove(), index._storage.list("t-0")) == ((), False, ())
    index.rename(PATH + ".swap")
    index.append(ONE)
    assert index._storage.list("t-0") == ("00000000000000001000.index.swap",)
    assert (index.entries(), index.remove()) == ((ONE,), True)


def test_last_offsets_of_transactions_grow() -> None:
    index = by_transaction(ONE, TWO)
    for entry in (TWO, ONE):
        with pytest.raises(IllegalArgumentError) as refusal:
            index.append(entry)
        assert str(refusal.value) == f"{PATH}: last offset {entry.last_offset} is not above the one before, 40"
    assert index.entries() == (ONE, TWO)


def test_a_range_meets_the_transactions_that_overlap_it() -> None:
    index = by_transaction(ONE, TWO, THREE)
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
    found = by_transaction(*entries).collect(start, start + size)
    overlapping = [entry for entry in entries if entry.last_offset >= start and entry.first_offset < start + size]
    assert set(found.transactions) <= set(overlapping)
    missed = set(overlapping) - set(found.transactions)
    assert all(entry.last_offset >= start + size for entry in missed)
    assert not missed or found.is_complete


def test_truncating_drops_from_the_first_marker_at_the_offset() -> None:
    for offset, kept in ((26, (ONE,)), (25, ()), (41, (ONE, TWO)), (40, (ONE,)), (100, (ONE, TWO, THREE))):
        index = by_transaction(ONE, TWO, THREE)
        index.truncate_to(offset)
        assert index.entries() == kept


def test_a_version_above_0_is_refused_a_negative_one_read_and_half_an_entry_passed_over() -> None:
    assert by_transaction(data=b"\xff\x07" + encode_aborted(ONE)[2:] + b"\0" * 33).entries() == (ONE,)
    index = by_transaction(data=encode_aborted(ONE) + b"\0\x01" + encode_aborted(TWO)[2:])
    with pytest.raises(CorruptTransactionIndexError) as damage:
        index.sanity_check()
    assert str(damage.value) == f"{PATH} at byte 34: aborted transaction of version 1; 0 is known"
    assert index.collect(0, 20) == AbortedTransactions((ONE,), is_complete=True)  # It does not come so far.


def test_a_transaction_that_ends_below_the_segment_is_reported() -> None:
    with pytest.raises(CorruptIndexError) as damage:
        by_transaction(data=encode_aborted(ONE) + encode_aborted(aborted(7, 1, 9, 10))).sanity_check()
    assert str(damage.value) == f"{PATH}: has a transaction that ends at 9, below the start offset 10"
    by_transaction(ONE, TWO).sanity_check()

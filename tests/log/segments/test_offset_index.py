"""The offset index against a plain list, and on damage against what Kafka's search does."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.clock import ManualClock
from log.errors import CorruptIndexError, IllegalArgumentError, IndexOffsetOverflowError, InvalidOffsetError
from log.segments.index_file import slot_at_most
from log.segments.offset_index import OffsetIndex, OffsetPosition, check_offset_index, offset_index_entries
from log.storage import MemoryStorage
from tests.support.disk_image import DiskImage, image_of, storage_of

BASE = 1000
PATH = "t-0/00000000000000001000.index"


def storage_with(data: bytes | None = None) -> MemoryStorage:
    return storage_of(ManualClock(), DiskImage({} if data is None else {PATH: data}, frozenset({"t-0"})))


def opened(data: bytes | None = None, *, size_bytes_max: int = 10 * 8 + 7) -> OffsetIndex:
    return OffsetIndex.open(storage_with(data), PATH, BASE, size_bytes_max=size_bytes_max)


def filled(*entries: tuple[int, int], size_bytes_max: int = 8000) -> OffsetIndex:
    index = opened(size_bytes_max=size_bytes_max)
    for offset, position in entries:
        index.append(offset, position)
    return index


def encoded(*entries: tuple[int, int]) -> bytes:
    return b"".join(number.to_bytes(4, signed=True) for entry in entries for number in entry)


def pairs(index: OffsetIndex) -> list[tuple[int, int]]:
    entries = index.entries()
    return list(zip(entries.offsets.tolist(), entries.positions.tolist(), strict=True))


def test_a_new_index_is_reserved_in_whole_entries_and_empty() -> None:
    index = opened()
    assert (index.entry_count, index.entry_count_max, index.file_size_bytes, index.size_bytes) == (0, 10, 80, 0)
    assert (index.last_offset, index.is_full, pairs(index)) == (BASE, False, [])
    assert index.lookup(5000) == OffsetPosition(BASE, 0)


def test_an_index_without_room_for_an_entry_is_refused_and_makes_no_file() -> None:
    storage = storage_with()
    with pytest.raises(IllegalArgumentError) as refusal:
        OffsetIndex.open(storage, PATH, BASE, size_bytes_max=7)
    assert str(refusal.value) == f"{PATH}: 7 bytes have no room for an index entry"
    assert not storage.exists(PATH)


def test_entries_are_written_as_two_big_endian_numbers() -> None:
    index = filled((1001, 0), (1258, 65536), size_bytes_max=24)
    assert image_of(index._storage).files[PATH] == bytes.fromhex("00000001000000000000010200010000") + bytes(8)
    index.trim()
    assert image_of(index._storage).files[PATH] == bytes.fromhex("00000001000000000000010200010000")


def test_an_index_that_was_there_is_taken_to_be_full_to_its_end() -> None:
    index = opened(encoded((1, 0), (5, 40)) + bytes(3))
    assert (index.entry_count, index.entry_count_max, index.last_offset, index.is_full) == (2, 2, BASE + 5, True)
    index.resize(index.size_bytes_max)
    assert (index.entry_count, index.entry_count_max, index.is_full) == (2, 10, False)
    index.append(BASE + 6, 50)
    assert pairs(index) == [(1001, 0), (1005, 40), (1006, 50)]


def test_what_cannot_be_appended_is_refused_and_changes_nothing() -> None:
    index = filled((1010, 5), size_bytes_max=16)
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
    assert [index.can_append(offset) for offset in (999, 1000, BASE + 2**31 - 1, BASE + 2**31)] == [
        False,
        True,
        True,
        False,
    ]


ENTRIES = st.lists(st.integers(1, 60), max_size=30).map(
    lambda gaps: [(BASE + sum(gaps[: place + 1]), 7 * place) for place in range(len(gaps))]
)


@given(entries=ENTRIES, targets=st.lists(st.integers(900, 3000), max_size=20), is_loaded=st.booleans())
def test_a_look_up_finds_the_largest_entry_at_most_the_target(
    entries: list[tuple[int, int]], targets: list[int], is_loaded: bool
) -> None:
    index = opened(encoded(*((offset - BASE, at) for offset, at in entries))) if is_loaded else filled(*entries)
    expected = [max([entry for entry in entries if entry[0] <= target], default=(BASE, 0)) for target in targets]
    assert [(index.lookup(target).offset, index.lookup(target).position) for target in targets] == expected
    many = index.lookup_many(targets)
    assert many.offsets.dtype == many.positions.dtype == np.int64
    assert list(zip(many.offsets.tolist(), many.positions.tolist(), strict=True)) == expected


@given(entries=ENTRIES, offset=st.integers(900, 3000), more=st.integers(0, 50))
def test_truncating_drops_the_entries_of_the_offset_and_above(
    entries: list[tuple[int, int]], offset: int, more: int
) -> None:
    index = filled(*entries)
    index.lookup(offset)
    index.check_invariants()
    index.truncate_to(offset)
    index.check_invariants()
    kept = [entry for entry in entries if entry[0] < offset]
    assert pairs(index) == kept
    assert index.last_offset == (kept[-1][0] if kept else BASE)
    index.append(index.last_offset + 1 + more, 5)
    assert pairs(index)[-1] == (kept[-1][0] + 1 + more if kept else BASE + 1 + more, 5)
    assert index.lookup(10**9).position == 5


@given(entries=ENTRIES, start=st.integers(0, 200), size_bytes=st.integers(0, 300))
def test_the_upper_bound_is_the_first_entry_beyond_what_is_read(
    entries: list[tuple[int, int]], start: int, size_bytes: int
) -> None:
    index = filled(*entries)
    end = start + size_bytes
    beyond = [entry for place, entry in enumerate(entries) if entry[1] > end or (entry[1] == end and place > 0)]
    found = index.upper_bound(OffsetPosition(0, start), size_bytes)
    assert found == (OffsetPosition(*beyond[0]) if beyond else None)


@given(keys=st.lists(st.integers(-5, 20), max_size=40), target=st.integers(-7, 22), warm=st.integers(0, 45))
def test_on_sorted_keys_kafkas_steps_find_what_bisection_finds(keys: list[int], target: int, warm: int) -> None:
    keys = sorted(set(keys))
    assert slot_at_most(keys, target, warm) == sum(key <= target for key in keys) - 1


def test_an_index_that_was_not_trimmed_is_searched_in_kafkas_steps() -> None:
    # Kafka's OffsetIndex gives these answers for this file: the reserved zeros at its end lie below most targets.
    index = opened(encoded((3, 30), (7, 70), (0, 0), (0, 0)))
    assert [index.lookup(BASE + target).position for target in (0, 2, 3, 7, 9)] == [0, 0, 30, 0, 0]
    assert index.lookup_many([BASE + 9]).positions.tolist() == [0]
    assert index.last_offset == BASE


def test_resetting_makes_it_new() -> None:
    index = filled((1001, 1), (1002, 2), size_bytes_max=800)
    index.trim()
    index.reset()
    assert (index.entry_count, index.entry_count_max, index.last_offset) == (0, 100, BASE)
    index.append(BASE + 1, 9)
    assert pairs(index) == [(1001, 9)]
    index.trim()
    assert (index.file_size_bytes, index.is_full) == (8, True)


def test_closing_trims_and_removing_tells_whether_it_was_there() -> None:
    index = filled((1001, 1))
    storage = index._storage
    index.rename(PATH + ".deleted")
    index.close()
    assert storage.size_bytes(PATH + ".deleted") == 8
    again = OffsetIndex.open(storage, PATH + ".deleted", BASE, size_bytes_max=800)
    assert again.remove()
    assert storage.list("t-0") == ()
    assert not again.remove()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (encoded((5, 1), (-1, 2)), "has entries, but the last offset 999 is below the base offset 1000"),
        (encoded((5, 1)) + b"\0", "has 9 bytes, which is no multiple of 8"),
    ],
)
def test_what_cannot_be_right_at_first_sight_is_reported(data: bytes, message: str) -> None:
    with pytest.raises(CorruptIndexError) as damage:
        check_offset_index(offset_index_entries(data, BASE), BASE, len(data), source=PATH)
    assert str(damage.value) == f"{PATH}: {message}"
    for sound in (data[:8], b""):
        check_offset_index(offset_index_entries(sound, BASE), BASE, len(sound))


def test_the_bytes_of_a_file_are_decoded_without_opening_it() -> None:
    entries = offset_index_entries(encoded((1, 0), (5, 40)) + b"\0\0", BASE)
    assert (entries.offsets.tolist(), entries.positions.tolist()) == ([1001, 1005], [0, 40])


def test_a_large_index_is_searched_alike_one_by_one_and_all_at_once() -> None:
    offsets = np.cumsum(np.arange(20_000) % 97 + 1)
    index = opened(encoded(*zip(offsets.tolist(), range(0, 200_000, 10), strict=True)), size_bytes_max=8)
    targets = (BASE + np.arange(0, int(offsets[-1]) + 50, 331)).tolist()
    many = index.lookup_many(targets)
    assert [index.lookup(target).offset for target in targets] == many.offsets.tolist()
    assert all(first <= second for first, second in pairwise(many.positions.tolist()))

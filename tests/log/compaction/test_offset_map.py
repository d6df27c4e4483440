"""The map from keys to their latest offsets, in bounded memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import UsageError
from broker.ids import Offset
from log.compaction.key_kernels import BY_KEY, BatchColumns, KeyColumns
from log.compaction.offset_map import OffsetMap, hashed

START = Offset(0)


def columns(keys: list[bytes | None], first_offset: int = 0) -> KeyColumns:
    sizes = np.array([-1 if key is None else len(key) for key in keys], np.int32)
    starts = np.cumsum(np.maximum(sizes, 0), dtype=np.int64) - np.maximum(sizes, 0)
    data = np.frombuffer(b"".join(key or b"" for key in keys), np.uint8)
    return hashed(data, starts, sizes, np.arange(first_offset, first_offset + len(keys)))


def batches(sizes: list[int], fates: list[int] | None = None, first_offset: int = 0) -> BatchColumns:
    """Batches that follow one another, each ending with its last record."""
    first_record = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
    fate = np.array([BY_KEY] * len(sizes) if fates is None else fates, np.uint8)
    offsets = first_offset + first_record
    return BatchColumns(first_record, offsets[:-1], offsets[1:] - 1, np.array(sizes, np.int32), fate)


def kept(offset_map: OffsetMap, keys: list[bytes | None]) -> list[bool]:
    return list(offset_map.latest(columns(keys), batches([len(keys)])).kept)


@pytest.mark.parametrize(
    ("key", "digest"),
    [
        (b"", "00000000000000000000000000000000"),
        (b"hello", "cbd8a7b341bd9b025b1e906a48ae1d19"),
        (b"hello, world", "342fac623a5ebc8e4cdcbc079642414d"),
        (b"19 Jan 2038 at 3:14:07 AM", "b89e5988b737affc664fc2950231b2cb"),
        (b"The quick brown fox jumps over the lazy dog.", "cd99481f9ee902c9695da1a38987b6e7"),
    ],
)
def test_keys_are_hashed_as_murmur3_publishes(key: bytes, digest: str) -> None:
    # The vectors of Apache Commons Codec, Guava and the Go library spaolacci/murmur3, low half first.
    hashes = columns([key])
    assert f"{int(hashes.low[0]):016x}{int(hashes.high[0]):016x}" == digest


def test_records_before_the_start_are_counted_but_not_mapped() -> None:
    offset_map = OffsetMap(10)
    assert offset_map.put(columns([b"a", b"b", b"a"]), batches([2, 1]), Offset(2))
    assert (len(offset_map), offset_map.record_count) == (1, 3)


@pytest.mark.parametrize("slot_count", [16_383, 16_384, 16_385, 40_000])
def test_a_map_takes_exactly_its_part_of_the_slots_however_often_it_grew(slot_count: int) -> None:
    offset_map = OffsetMap(slot_count, 0.9)
    keys: list[bytes | None] = [b"key-%d" % number for number in range(slot_count)]
    assert not offset_map.put(columns(keys), batches([1_000] * (slot_count // 1_000) + [slot_count % 1_000]), START)
    assert len(offset_map) == offset_map.latest_offset + 1 == int(slot_count * 0.9)
    offset_map.check_invariants()


@given(st.lists(st.lists(st.none() | st.integers(0, 40), max_size=8), max_size=8), st.integers(2, 30))
def test_a_map_is_a_dict_that_is_filled_until_it_is_full(drawn: list[list[int | None]], slot_count: int) -> None:
    keys = [None if number is None else b"%d" % number for batch in drawn for number in batch]
    sizes = [len(batch) for batch in drawn]
    offset_map = OffsetMap(slot_count, 0.9)
    fits = offset_map.put(columns(keys), batches(sizes), START)
    known: dict[bytes, int] = {}
    latest_offset, offset, was_full = -1, 0, False
    for size in sizes:
        for key in keys[offset : offset + size]:
            was_full |= key is not None and len(known) == int(slot_count * 0.9)
            if not was_full and key is not None:
                known[key] = latest_offset = offset
            offset += 1
        if not was_full:
            latest_offset = offset - 1
    assert (fits, len(offset_map), offset_map.latest_offset) == (not was_full, len(known), latest_offset)
    expected = [o > latest_offset or (k is not None and o >= known.get(k, -1)) for o, k in enumerate(keys)]
    assert kept(offset_map, keys) == expected
    offset_map.check_invariants()


def superseded(offset_map: OffsetMap, asked: BatchColumns) -> list[bool]:
    return list(offset_map.superseded(asked.base_offset, asked.last_offset))


@pytest.mark.parametrize(
    ("keys", "offsets"),
    [
        ([b"a", None, b"a"], [0, 1, 2]),  # Without a key, which a cleaner counts one by one.
        ([b"a", b"a", b"a"], [0, 2, 1]),  # Not ascending.
        ([b"a", b"b", b"a"], [0, 5, 7]),  # Behind the end that the header says.
        ([b"a", b"a", b"a"], [-1, 1, 2]),  # Before its beginning.
    ],
)
def test_no_batch_is_superseded_where_records_are_not_as_headers_say(
    keys: list[bytes | None], offsets: list[int]
) -> None:
    offset_map = OffsetMap(100)
    assert offset_map.put(columns(keys)._replace(offset=np.array(offsets)), batches([3]), Offset(-1))
    offset_map.put(columns([b"a"], 8), batches([1], first_offset=8), START)
    assert superseded(offset_map, batches([3])) == [False]


@given(
    st.lists(st.lists(st.none() | st.integers(0, 6), min_size=1, max_size=4), min_size=1, max_size=8),
    st.integers(2, 12),
    st.integers(0, 9),
)
def test_a_batch_is_superseded_if_none_of_its_records_would_stay(
    drawn: list[list[int | None]], slot_count: int, start_offset: int
) -> None:
    keys = [None if number is None else b"%d" % number for batch in drawn for number in batch]
    asked = batches([len(batch) for batch in drawn])
    offset_map = OffsetMap(slot_count, 0.9)
    offset_map.put(columns(keys), asked, Offset(start_offset))
    is_superseded = np.array(superseded(offset_map, asked))
    none_stays = offset_map.latest(columns(keys), asked).kept_count == 0
    assert not (is_superseded & ~none_stays).any()
    if None not in keys and start_offset == 0:
        mapped = asked.last_offset <= offset_map.latest_offset
        assert (is_superseded == none_stays)[mapped].all()


def test_a_map_that_could_hold_no_more_than_one_key_is_refused() -> None:
    with pytest.raises(UsageError) as refusal:
        OffsetMap(1)
    assert str(refusal.value) == (
        "an offset map of 1 slots and load factor 0.9 cannot be; "
        "at most 89478485 slots, and more than one of them to be taken"
    )

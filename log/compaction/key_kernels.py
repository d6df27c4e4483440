"""Hash keys, store the latest offset of each, and mark the latest records, in compiled loops.

The map is open addressing with linear probing in one array uint64[3 · capacity]: the 128 bits of a key's hash and its
offset plus one, 0 where the place is free, side by side so that a look-up touches one line of cache. One place is
always free, so every search ends. The hashes of a chunk are computed first, so that the searches wait for memory
together. A record costs about 20 ns.

The hash is MurmurHash3 x64 128 with seed 0. Kafka takes MD5, which costs about ten times as much and has as many bits;
of n keys two collide with a chance of about n² / 2^129 with either. Neither is safe from chosen keys.

Source: org.apache.kafka.storage.internals.log.SkimpyOffsetMap and kafka.log.Cleaner, 4.3.1;
MurmurHash3 by Austin Appleby, public domain.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled_with
from log.batches.record_columns import ByteArray

HashTable: TypeAlias = NDArray[np.uint64]
PLACE_WIDTH: Final = 3

# What is done with the records of a batch: they are passed over, filtered by their keys, or all stay.
SKIP, BY_KEY, KEEP_ALL = range(3)

# Arguments and results of `map_keys`, by index.
START_OFFSET, ENTRY_COUNT, ENTRY_COUNT_MAX, ENTRY_COUNT_GROWTH, LATEST_OFFSET, RECORD_COUNT, ODD_COUNT = range(7)
MAP_STATE_WIDTH: Final = 7

# Why `map_keys` stopped.
DONE, FULL, GROW = range(3)


class KeyColumns(NamedTuple):
    """Hold the keys of records, one row per record: hash, key size (-1: no key, hash undefined), and offset."""

    low: NDArray[np.uint64]
    high: NDArray[np.uint64]
    size: Int32Array
    offset: Int64Array


class BatchColumns(NamedTuple):
    """Hold one row per batch: `first_record` int64[B + 1] delimits records, `fate` is SKIP, BY_KEY or KEEP_ALL.

    `record_count` is the count that a SKIP batch adds. Offsets are those in the headers.
    """

    first_record: Int64Array
    base_offset: Int64Array
    last_offset: Int64Array
    record_count: Int32Array
    fate: NDArray[np.uint8]


def little_endian(data: ByteArray, position: np.uint64, size: int) -> np.uint64:
    """Return up to eight bytes from `position` on as a little-endian number."""
    value = np.uint64(0)
    for index in range(size):
        value |= np.uint64(data[position + np.uint64(index)]) << np.uint64(8 * index)
    return value


def scrambled(value: np.uint64, first: np.uint64, turn: int, second: np.uint64) -> np.uint64:
    """Return `value` times `first`, rotated left by `turn` bits, times `second`."""
    value *= first
    return ((value << np.uint64(turn)) | (value >> np.uint64(64 - turn))) * second


def mixed(value: np.uint64, turn: int, addend: np.uint64, constant: np.uint64) -> np.uint64:
    """Return one half of the MurmurHash3 state after a block."""
    return (((value << np.uint64(turn)) | (value >> np.uint64(64 - turn))) + addend) * np.uint64(5) + constant


def finished(value: np.uint64) -> np.uint64:
    """Return `value` after MurmurHash3's final mixing (fmix64)."""
    value = (value ^ (value >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    value = (value ^ (value >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return value ^ (value >> np.uint64(33))


def hash_of(data: ByteArray, start: int, size: int) -> tuple[np.uint64, np.uint64]:
    """Return the 128 bits of MurmurHash3 x64 over `size` bytes from `start`, low half first."""
    c1, c2 = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)
    low = high = np.uint64(0)
    # Unsigned, as else every access would be asked whether it counts from the end.
    position = np.uint64(start)
    left = size
    while left >= 16:
        low ^= scrambled(little_endian(data, position, 8), c1, 31, c2)
        low = mixed(low, 27, high, np.uint64(0x52DCE729))
        high ^= scrambled(little_endian(data, position + np.uint64(8), 8), c2, 33, c1)
        high = mixed(high, 31, low, np.uint64(0x38495AB5))
        position += np.uint64(16)
        left -= 16
    if left > 8:
        high ^= scrambled(little_endian(data, position + np.uint64(8), left - 8), c2, 33, c1)
        low ^= scrambled(little_endian(data, position, 8), c1, 31, c2)
    elif left > 0:
        low ^= scrambled(little_endian(data, position, left), c1, 31, c2)
    low ^= np.uint64(size)
    high ^= np.uint64(size)
    low += high
    high += low
    low, high = finished(low), finished(high)
    low += high
    return low, high + low


@compiled_with(little_endian, scrambled, mixed, finished, hash_of, allocates=False)
def hash_keys(
    data: ByteArray, position: Int64Array, size: Int32Array, low: NDArray[np.uint64], high: NDArray[np.uint64]
) -> None:
    """Write the hash of each key to `low` and `high`; skip rows of size -1, which have no key."""
    for row in range(position.shape[0]):
        if size[row] >= 0:
            low[row], high[row] = hash_of(data, position[row], size[row])


def place_of(table: HashTable, low: np.uint64, high: np.uint64) -> np.uint64:
    """Return the slot of the hash in `table`, or the free slot in which to insert it."""
    width, end = np.uint64(PLACE_WIDTH), np.uint64(table.shape[0])
    # The upper half of the low word, scaled to the number of places: cheaper than a remainder.
    place = width * (((low >> np.uint64(32)) * (end // width)) >> np.uint64(32))
    while table[place + np.uint64(2)] != 0 and (table[place] != low or table[place + np.uint64(1)] != high):
        place += width
        if place == end:
            place = np.uint64(0)
    return place


def put_keys(keys: KeyColumns, start: int, end: int, table: HashTable, state: Int64Array) -> bool:
    """Put the keys of a range of records; return False before the first key for which the map is full."""
    start_offset, count_max = state[START_OFFSET], state[ENTRY_COUNT_MAX]
    count, latest_offset = state[ENTRY_COUNT], state[LATEST_OFFSET]
    odd_count = 0
    row = start
    while row < end:
        offset = keys.offset[row]
        if keys.size[row] >= 0 and offset >= start_offset:
            if count >= count_max:
                break
            place = place_of(table, keys.low[row], keys.high[row])
            if table[place + np.uint64(2)] == 0:
                table[place] = keys.low[row]
                table[place + np.uint64(1)] = keys.high[row]
                count += 1
            table[place + np.uint64(2)] = np.uint64(offset + 1)
            odd_count += offset <= latest_offset
            latest_offset = offset
        else:
            odd_count += offset >= start_offset
        row += 1
    state[ENTRY_COUNT], state[LATEST_OFFSET] = count, latest_offset
    state[RECORD_COUNT] += row - start
    state[ODD_COUNT] += odd_count
    return row == end


@compiled_with(place_of, put_keys, allocates=False)
def map_keys(
    keys: KeyColumns, batches: BatchColumns, first_batch: int, table: HashTable, state: Int64Array
) -> tuple[int, int]:
    """Put the keys of the batches from `first_batch` on; return the batch at which it stopped, and DONE, FULL or GROW.

    GROW: the caller must make `table` larger before the batch. The records of SKIP batches are only counted.
    ODD_COUNT counts records that no broker writes into a compacted log: without key, or with an offset that does not
    ascend or lies outside the range in the batch header.
    """
    for batch in range(first_batch, batches.last_offset.shape[0]):
        start, end = batches.first_record[batch], batches.first_record[batch + 1]
        if batches.fate[batch] == SKIP:
            state[RECORD_COUNT] += batches.record_count[batch]
        elif state[ENTRY_COUNT] + (end - start) > state[ENTRY_COUNT_GROWTH]:
            return batch, GROW
        else:
            if start < end:
                state[ODD_COUNT] += keys.offset[start] < batches.base_offset[batch]
            if not put_keys(keys, start, end, table, state):
                return batch, FULL
            state[ODD_COUNT] += state[LATEST_OFFSET] > batches.last_offset[batch]
        if batches.last_offset[batch] >= state[START_OFFSET]:
            state[LATEST_OFFSET] = batches.last_offset[batch]
    return batches.last_offset.shape[0], DONE


def mark_by_key(
    keys: KeyColumns, start: int, end: int, latest_offset: int, table: HashTable, kept: NDArray[np.bool_]
) -> tuple[int, int]:
    """Mark the latest records in a range; return the counts of retained records and of records without key."""
    kept_count = keyless_count = 0
    for row in range(start, end):
        stays = keys.offset[row] > latest_offset
        if not stays:
            if keys.size[row] < 0:
                keyless_count += 1
            else:
                latest = table[place_of(table, keys.low[row], keys.high[row]) + np.uint64(2)]
                stays = np.uint64(keys.offset[row] + 1) >= latest
        kept[row] = stays
        kept_count += stays
    return kept_count, keyless_count


@compiled_with(place_of, mark_by_key, allocates=False)
def mark_latest(
    keys: KeyColumns,
    batches: BatchColumns,
    latest_offset: int,
    table: HashTable,
    marks: tuple[NDArray[np.bool_], Int64Array],
) -> int:
    """Mark the records that have no later record of the same key in the map; return the count of those without key.

    Records without a key are dropped, except above `latest_offset`, up to which the map knows all keys. In batches that
    are not BY_KEY all records are marked (KEEP_ALL) or none (SKIP). `marks` receives a mask of the retained records and
    their count per batch.
    """
    kept, kept_count = marks
    keyless_count = 0
    for batch in range(batches.last_offset.shape[0]):
        start, end = batches.first_record[batch], batches.first_record[batch + 1]
        if batches.fate[batch] == BY_KEY:
            stay, keyless = mark_by_key(keys, start, end, latest_offset, table, kept)
            kept_count[batch] = stay
            keyless_count += keyless
        else:
            stays = batches.fate[batch] == KEEP_ALL
            kept_count[batch] = end - start if stays else 0
            for row in range(start, end):
                kept[row] = stays
    return keyless_count


@compiled_with(place_of, allocates=False)
def refill(old: HashTable, table: HashTable) -> None:
    """Copy all entries of `old` into `table`, which is empty and larger."""
    for place in range(0, old.shape[0], PLACE_WIDTH):
        if old[place + 2] != 0:
            new_place = place_of(table, old[place], old[place + 1])
            for column in range(PLACE_WIDTH):
                table[new_place + np.uint64(column)] = old[place + column]

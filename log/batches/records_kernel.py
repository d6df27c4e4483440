"""Read records of magic 2 into columns, in one compiled pass."""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled_with

ByteArray: TypeAlias = NDArray[np.uint8]

# Rows of the plan, one column a batch.
PAYLOAD_START: Final = 0
PAYLOAD_END: Final = 1
RECORD_COUNT: Final = 2
BASE_OFFSET: Final = 3
BASE_TIMESTAMP: Final = 4
IS_APPEND_TIME: Final = 5
APPEND_TIME: Final = 6
PLAN_ROW_COUNT: Final = 7

# What `state` holds.
BATCH: Final = 0
RECORDS_DONE: Final = 1
NEXT_POSITION: Final = 2
STATE_SIZE: Final = 3

# Rows of the wide (int64) and the narrow (int32) columns.
OFFSET: Final = 0
TIMESTAMP: Final = 1
KEY_POSITION: Final = 2
VALUE_POSITION: Final = 3
RECORD_POSITION: Final = 4
WIDE_COUNT: Final = 5
KEY_SIZE: Final = 0
VALUE_SIZE: Final = 1
HEADER_COUNT: Final = 2
RECORD_SIZE: Final = 3
BATCH_INDEX: Final = 4
NARROW_COUNT: Final = 5

BROKEN: Final = -1
INT32_BITS_MAX: Final = 28  # The shift of an int32's fifth byte.
INT64_BITS_MAX: Final = 63  # The shift of an int64's tenth byte.


def number(data: ByteArray, position: int, end: int, bits_max: int) -> tuple[np.int64, int]:
    """Return (the zig-zag encoded number at `position`, the position after it), or BROKEN as the position."""
    value = np.int64(0)
    shift = 0
    while position < end and shift <= bits_max:
        byte = np.int64(data[np.uint64(position)])
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    return value, BROKEN


def signed(data: ByteArray, position: int, end: int, bits_max: int) -> tuple[np.int64, int]:
    """Return (the int32 or int64 at `position`, the position after it), or BROKEN as the position."""
    if position + 1 < end:  # One byte or two, as nearly always.
        low = np.int64(data[np.uint64(position)])
        if low < 0x80:
            return (low >> 1) ^ -(low & 1), position + 1
        high = np.int64(data[np.uint64(position + 1)])
        if high < 0x80:
            return ((low & 0x7F | high << 7) >> 1) ^ -(low & 1), position + 2
    raw, position = number(data, position, end, bits_max)
    if bits_max == INT32_BITS_MAX:
        raw &= 0xFFFF_FFFF
    return np.int64(np.uint64(raw) >> np.uint64(1)) ^ -(raw & 1), position


def int32(data: ByteArray, position: int, end: int) -> tuple[np.int64, int]:
    """Return (the int32 at `position`, the position after it), or BROKEN as the position."""
    return signed(data, position, end, INT32_BITS_MAX)


def field(data: ByteArray, position: int, end: int) -> tuple[np.int64, int, int]:
    """Return (size, start, end) of the key, value or header at `position`: size -1 is null, end BROKEN is damage."""
    size, start = int32(data, position, end)
    if start == BROKEN or size > end - start:
        return size, start, BROKEN
    if size < 0:
        return np.int64(-1), start, start
    return size, start, start + int(size)


def headers_end(data: ByteArray, position: int, end: int, count: int) -> int:
    """Return the position after `count` record headers, or BROKEN."""
    for _ in range(count):  # Each reads at least two bytes.
        size, _start, position = field(data, position, end)
        if position == BROKEN or size < 0:
            return BROKEN
        size, _start, position = field(data, position, end)
        if position == BROKEN:
            return BROKEN
    return position


def fill_record(data: ByteArray, position: int, end: int, wide: Int64Array, narrow: Int32Array, row: np.uint64) -> int:
    """Write the record at `position` into column `row`; return the position after it, or BROKEN.

    Offset and timestamp are the record's deltas. No record reaches beyond `end`. Each number is written as soon as it
    is known, as registers are few; a record that is refused has written some.
    """
    size, at = int32(data, position, end)
    if at == BROKEN or size <= 0 or size > end - at:
        return BROKEN
    stop = at + int(size)
    wide[RECORD_POSITION, row], narrow[RECORD_SIZE, row] = position, stop - position
    timestamp_delta, at = signed(data, at + 1, end, INT64_BITS_MAX)
    if at == BROKEN:
        return BROKEN
    offset_delta, at = int32(data, at, end)
    if at == BROKEN:
        return BROKEN
    narrow[KEY_SIZE, row], wide[KEY_POSITION, row], at = field(data, at, end)
    if at == BROKEN:
        return BROKEN
    narrow[VALUE_SIZE, row], wide[VALUE_POSITION, row], at = field(data, at, end)
    if at == BROKEN:
        return BROKEN
    header_count, at = int32(data, at, end)
    if at == BROKEN or header_count < 0 or header_count > end - at:
        return BROKEN
    narrow[HEADER_COUNT, row] = header_count
    if header_count > 0:
        at = headers_end(data, at, end, int(header_count))
    if at != stop:
        return BROKEN
    wide[OFFSET, row], wide[TIMESTAMP, row] = offset_delta, timestamp_delta
    return stop


@compiled_with(number, signed, int32, field, headers_end, fill_record, allocates=False)
def fill_rows(data: ByteArray, plan: Int64Array, state: Int64Array, wide: Int64Array, narrow: Int32Array) -> int:
    """Fill columns with records, from `state` on; return the number of rows filled.

    `data` uint8[N], `plan` int64[PLAN_ROW_COUNT, B], `wide` int64[WIDE_COUNT, R], `narrow` int32[NARROW_COUNT, R].
    Afterwards `state[BATCH]` is B when all is done, else the batch to go on with, its `state[NEXT_POSITION]` being
    BROKEN if it does not add up; the rows then end with the batch before it.
    """
    row, row_count = np.uint64(0), np.uint64(wide.shape[1])  # Unsigned: no index counts from the end.
    batch, done, position = state[BATCH], state[RECORDS_DONE], state[NEXT_POSITION]
    while batch < plan.shape[1]:
        first_row, count, end = row, plan[RECORD_COUNT, batch], plan[PAYLOAD_END, batch]
        base_offset, base_timestamp = plan[BASE_OFFSET, batch], plan[BASE_TIMESTAMP, batch]
        if done == 0:
            position = plan[PAYLOAD_START, batch]
        while done < count and row < row_count:
            position = fill_record(data, position, end, wide, narrow, row)
            if position == BROKEN:
                break
            wide[OFFSET, row] += base_offset
            wide[TIMESTAMP, row] += base_timestamp
            narrow[BATCH_INDEX, row] = batch
            row += np.uint64(1)
            done += 1
        if plan[IS_APPEND_TIME, batch]:
            wide[TIMESTAMP, first_row:row] = plan[APPEND_TIME, batch]
        if position != BROKEN and done < count:
            break  # The columns are full.
        if done != count or (position != end and count != 0):
            state[BATCH], state[NEXT_POSITION] = batch, BROKEN
            return int(first_row)
        batch += 1
        done = 0
    state[BATCH], state[RECORDS_DONE], state[NEXT_POSITION] = batch, done, position
    return int(row)

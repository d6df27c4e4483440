"""Read messages of magic 0 and 1 into columns, in one compiled pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled_with
from log.batches import records_kernel as columns
from log.batches.header_table import ENTRY_BYTES, SIZE_MIN, signed32, signed64, unsigned16, unsigned32
from log.batches.record_columns import ByteArray
from log.errors import CorruptBatchError, InvalidRecordError

MAGIC: Final = 16
ATTRIBUTES: Final = 17
TIMESTAMP: Final = 18
FIELDS_V0: Final = 18
FIELDS_V1: Final = 26
"""Where the size of the key stands in a message of magic 0, and in one of magic 1."""
SIZE_BYTES: Final = 4
MESSAGE_BYTES_MIN: Final = ENTRY_BYTES + SIZE_MIN

# What `span` holds.
POSITION: Final = 0
END: Final = 1
DAMAGE: Final = 2

NONE: Final = 0
BAD_SIZE: Final = 1
FIELD_PAST_END: Final = 2
VALUE_PAST_END: Final = 3


def fill_message(data: ByteArray, position: int, end: int, wide: Int64Array, narrow: Int32Array, row: np.uint64) -> int:
    """Parse the message from `position` to `end` into row `row` of the columns; return NONE or its damage."""
    magic = data[np.uint64(position + MAGIC)]
    key_position = position + (FIELDS_V1 if magic else FIELDS_V0) + SIZE_BYTES
    if key_position > end:
        return FIELD_PAST_END
    key_size = int(signed32(data, key_position - SIZE_BYTES))
    value_position = key_position + max(key_size, 0) + SIZE_BYTES
    if value_position > end:
        return FIELD_PAST_END
    value_size = int(signed32(data, value_position - SIZE_BYTES))
    if value_position + max(value_size, 0) > end:
        return VALUE_PAST_END
    wide[columns.OFFSET, row] = signed64(data, position)
    wide[columns.TIMESTAMP, row] = signed64(data, position + TIMESTAMP) if magic else -1
    wide[columns.KEY_POSITION, row], narrow[columns.KEY_SIZE, row] = key_position, max(key_size, -1)
    wide[columns.VALUE_POSITION, row], narrow[columns.VALUE_SIZE, row] = value_position, max(value_size, -1)
    wide[columns.RECORD_POSITION, row], narrow[columns.RECORD_SIZE, row] = position, end - position
    narrow[columns.HEADER_COUNT, row] = narrow[columns.BATCH_INDEX, row] = 0
    return NONE


@compiled_with(unsigned16, unsigned32, signed32, signed64, fill_message, allocates=False)
def fill_messages(data: ByteArray, span: Int64Array, wide: Int64Array, narrow: Int32Array) -> int:
    """Parse the messages from `span[POSITION]` to `span[END]` into the columns; return the number of rows.

    Afterwards `span[POSITION]` is where the next message begins: at `span[END]` where none is left, or only half of
    one, and at the damaged one where `span[DAMAGE]` is not NONE.
    """
    row = np.uint64(0)
    while row < wide.shape[1] and span[POSITION] < span[END]:
        position, end = span[POSITION], span[END]
        if position + ENTRY_BYTES > end:
            span[POSITION] = end
            return int(row)
        size = signed32(data, position + 8)
        message_end = position + ENTRY_BYTES + size
        if size < SIZE_MIN:
            span[DAMAGE] = BAD_SIZE
        elif message_end > end:
            span[POSITION] = end
            return int(row)
        else:
            span[DAMAGE] = fill_message(data, position, message_end, wide, narrow, row)
        if span[DAMAGE] != NONE:
            return int(row)
        row += np.uint64(1)
        span[POSITION] = message_end
    return int(row)


def message_tables(
    array: ByteArray, rows_max: int, start: int = 0, end: int | None = None
) -> Iterator[tuple[Int64Array, Int32Array]]:
    """Yield columns of at most `rows_max` messages from `start` to `end`; raise a CorruptDataError at damage."""
    span = np.array((start, len(array) if end is None else end, NONE), np.int64)
    while span[POSITION] < span[END]:  # Each turn reads a message at least, or ends.
        row_count = max(1, min(rows_max, int(span[END] - span[POSITION]) // MESSAGE_BYTES_MIN))
        wide = np.empty((columns.WIDE_COUNT, row_count), np.int64)
        narrow = np.empty((columns.NARROW_COUNT, row_count), np.int32)
        count = fill_messages(array, span, wide, narrow)
        if count:
            yield wide[:, :count], narrow[:, :count]
        if span[DAMAGE] == BAD_SIZE:
            size = int(signed32(array, int(span[POSITION]) + 8))
            raise CorruptBatchError(f"Record size {size} is less than the minimum record overhead ({SIZE_MIN})")
        if span[DAMAGE] != NONE:
            what = "a field runs" if span[DAMAGE] == FIELD_PAST_END else "the value runs"
            raise InvalidRecordError(f"Found invalid record structure: {what} past the message")

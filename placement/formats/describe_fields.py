"""Fields and numbers of a block of `kafka-topics --describe` lines, found in numpy.

Goals: the speed of memory. How: Kafka separates fields by tabs, so all tabs and newlines of a
block are found in one pass; a carriage return before a newline belongs to neither. Numbers
are read eight bytes at a time with one cursor a row.

`with_tabs` turns a text whose tabs became spaces into Kafka's own form. It may spoil lines
that are no describe's: who reads such fields must check them all.

Example: b"Topic: a\\tPartition: 0\\n" is one line of two fields, bytes 0 to 8 and 9 to 21.

Left out: numbers of eight digits, for the careful path. Source: ours.
"""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import PAD, Int32Array, Int64Array
from placement.formats.describe_line import LIST_FIELDS

BoolArray = NDArray[np.bool_]
Columns = list[Int32Array]

_WIDTH_MAX: Final = 32  # Longer lists go the careful way: the loops over pairs of columns grow with the square.
_PADDING: Final = b" " * 264  # Eight-byte loads of the longest name stay inside the buffer.
_TOPIC_FIELDS: Final = ("TopicId", "PartitionCount", "ReplicationFactor", "Configs")
_ONE_WORD: Final = tuple(
    name.encode()
    for name in ("Topic", "Partition", "Leader", *_TOPIC_FIELDS, *(name for name, _ in LIST_FIELDS if " " not in name))
)
_ZEROS: Final = np.uint64(0x3030303030303030)
_ABOVE_NINE: Final = np.uint64(0x7676767676767676)
_TOP_BITS: Final = np.uint64(0x8080808080808080)
_PLACES: Final = np.uint64(sum(place << (61 - 8 * place) for place in range(8)))  # (1 << 8k) * _PLACES >> 61 == k
_LOW_OF_PAIRS: Final = np.uint64(0x000000FF000000FF)
_TIMES_LOW: Final = np.uint64(100 + (1_000_000 << 32))
_TIMES_HIGH: Final = np.uint64(1 + (10_000 << 32))
_MASKS: Final = np.array([(1 << 8 * count) - 1 for count in range(9)], dtype=np.uint64)


def with_tabs(data: bytes) -> bytes:
    """Return `data` with one tab before and one space after the name of each field, blanks between words made one.

    A name at the start of a line gets no tab.
    """
    data = data.replace(b"\r\n", b"\n").replace(b"\t", b" ")
    while b"  " in data:
        data = data.replace(b"  ", b" ")
    data = data.replace(b" \n", b"\n")
    for name in _ONE_WORD:
        data = data.replace(b" %b:" % name, b"\t%b:" % name)
    for prefix in (b"Adding", b"Removing"):
        data = data.replace(b" %b\tReplicas:" % prefix, b"\t%b Replicas:" % prefix)
    return data.replace(b":\t", b": \t").replace(b":\n", b": \n")


@attrs.frozen(eq=False)
class Fields:
    """Where fields and lines stand in a block. Field f is the bytes start[f] to end[f], half-open, of `data`.

    `eights[p]` is the eight bytes from position p on as a little-endian number: a view that overlaps
    itself. `text` is `data` as Latin-1, so that positions agree. Field `first[i]` is the first of line i,
    which has `count[i]` of them.
    """

    data: bytes
    text: str
    eights: NDArray[np.uint64]
    start: Int64Array
    end: Int64Array
    first: Int64Array
    count: Int64Array

    def load(self, position: Int64Array) -> NDArray[np.uint64]:
        """Return the eight bytes from each position on."""
        return self.eights[position]  # Not np.take, which would first copy the whole overlapping view.

    def masks(self, count: Int64Array) -> NDArray[np.uint64]:
        """Return masks that keep the first `count` bytes of a load: none below 0, all above 8."""
        return _MASKS[np.clip(count, 0, 8)]

    def begins(self, position: Int64Array, text: bytes) -> BoolArray:
        """Tell at which of these positions `text` stands."""
        same = np.ones(position.shape, dtype=np.bool_)
        for offset in range(0, len(text), 8):
            part = text[offset : offset + 8]
            same &= self.load(position + offset) & _MASKS[len(part)] == np.uint64(int.from_bytes(part, "little"))
        return same

    def line_bounds(self, line: Int64Array) -> list[tuple[int, int]]:
        """Return start and end, newline excluded, of each of these lines."""
        last = self.first[line] + self.count[line] - 1
        return list(zip(self.start[self.first[line]].tolist(), self.end[last].tolist(), strict=True))

    def is_blank(self) -> BoolArray:
        """Tell which lines hold nothing at all."""
        blank: BoolArray = (self.count == 1) & (self.start[self.first] == self.end[self.first])
        return blank


def find_fields(data: bytes) -> Fields:
    """Return the fields and lines of `data`, which ends in a newline."""
    padded = data + _PADDING
    buffer = np.frombuffer(padded, dtype=np.uint8)
    is_end = buffer - np.uint8(9)  # A tab or a newline ends a field: 0 or 1 here, all else is larger.
    end = np.flatnonzero(np.less(is_end, 2, out=is_end.view(np.bool_)))
    start = np.empty_like(end)
    start[0] = 0
    start[1:] = end[:-1] + 1
    last = np.flatnonzero(buffer[end] == 10)
    first = np.empty_like(last)
    first[0] = 0
    first[1:] = last[:-1] + 1
    end[last] -= buffer[end[last] - 1] == 13  # At position -1 stands padding.
    return Fields(
        data=padded,
        text=padded.decode("latin-1"),
        eights=np.ndarray(shape=(len(padded) - 7,), dtype="<u8", buffer=padded, strides=(1,)),
        start=start,
        end=end,
        first=first,
        count=last + 1 - first,
    )


def read_ids(fields: Fields, start: Int64Array, end: Int64Array, good: BoolArray) -> Columns:
    """Return the lists of ids between `start` and `end` as columns, at least one, -1 where a list is over.

    Clears `good` for rows that hold anything else.
    """
    cursor = start
    more = cursor < end
    if not more.any():
        return [np.full(start.shape, PAD, dtype=np.int32)]
    columns: Columns = []
    while len(columns) < _WIDTH_MAX and bool(more.any()):
        value, digits, follower = _number_at(fields, cursor)
        absent = digits == 0
        good &= ~(more & absent) & (follower - np.uint64(48) >= 10)
        columns.append(np.where(more, value, np.int32(PAD)))
        digits = np.where(more, digits, 0)
        more = more & (follower == 44)
        cursor = cursor + digits + more
    good &= (cursor == end) & ~more
    return columns


def _number_at(fields: Fields, position: Int64Array) -> tuple[Int32Array, Int64Array, NDArray[np.uint64]]:
    """Return the number at each position, its digits counted, and the byte that follows it.

    Eight bytes are read as one number, the first byte lowest. Seven digits at most are taken;
    of more, the byte that follows is a digit too, and the caller gives the row up.
    """
    eight = fields.load(position)
    digits = eight ^ _ZEROS
    # A byte above 9 raises its top bit; a carry can only disturb bytes after the first such one.
    others = ((digits + _ABOVE_NINE) | digits) & _TOP_BITS
    first_other = others & (~others + np.uint64(1))
    count = ((first_other >> np.uint64(7)) * _PLACES) >> np.uint64(61)
    # Digits to the top, zeros before them; then pairs, fours and eights are joined by multiplication.
    shift = count << np.uint64(3)
    digits = np.where(count > 0, digits << (np.uint64(64) - np.maximum(shift, np.uint64(8))), np.uint64(0))
    pairs = digits * np.uint64(10) + (digits >> np.uint64(8))
    low = (pairs & _LOW_OF_PAIRS) * _TIMES_LOW
    high = ((pairs >> np.uint64(16)) & _LOW_OF_PAIRS) * _TIMES_HIGH
    value = (low + high) >> np.uint64(32)
    follower = (eight >> shift) & np.uint64(0xFF)
    return value.astype(np.int32), count.astype(np.int64), np.where(others == 0, np.uint64(48), follower)


def is_single(columns: Columns) -> BoolArray | np.bool_:
    """Tell which rows have one id at most."""
    return np.bool_(True) if len(columns) == 1 else columns[1] < 0

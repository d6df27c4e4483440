"""A block of `kafka-topics --describe` lines at once, in numpy: the fast path.

Goals, most important first: take only lines that describe_line would take, with equal
values (a property test holds them to it); be near the speed of memory.

How: Kafka separates fields by tabs, so all tabs and newlines of a block are found in one
pass. The first partition line not yet read gives a *layout*, the order of the names of
its fields; all lines with those names at those places are read together, a column at
a time. Numbers are read eight bytes at a time with one cursor a row. Whatever surprises
(another layout, a number of eight digits, an illegal name, a leader that is no
replica) is left for describe_line, which knows the words for it.

`with_tabs` turns a text whose tabs became spaces into Kafka's own form.

Example: in a block of 5,000 lines of one Kafka version there are one or two layouts
(with Observers or without), and only the topics' own lines are left.

Left out: topic lines; their settings repeat, and describe remembers those.
Cost: about 200 numpy calls a layout and block. Source: ours; the fields are Kafka TopicCommand's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import PAD, Int32Array, Int64Array
from placement.formats.checks import PARTITION_ID_MAX
from placement.formats.describe_line import LIST_FIELDS
from placement.formats.rows import Chunk

BoolArray = NDArray[np.bool_]
Columns = list[Int32Array]

_LAYOUTS_MAX: Final = 8  # More different layouts in one block than this are rare; the rest goes the careful way.
_WIDTH_MAX: Final = 32  # Longer lists go the careful way: the column loops below grow with the square.
_NAME_BYTES_MAX: Final = 249
_PADDING: Final = b" " * 264  # Eight-byte loads of the longest name stay inside the buffer.
_LISTS: Final = {name.encode() + b": ": column for name, column in LIST_FIELDS}
_REQUIRED: Final = (b"Topic: ", b"Partition: ", b"Leader: ", b"Replicas: ", b"Isr: ")
_NAMES: Final = (b"Topic: ", b"Partition: ", b"Leader: ", *_LISTS)
_NAME: Final = re.compile(rb"(?:(?:Adding|Removing) )?[A-Z][A-Za-z]*: ")
_SPACED: Final = re.compile(
    rb"[ \t]*(?<![^ \t\n])((?:(?:Adding|Removing) )?Replicas|Topic|Partition|Leader|Isr|Elr|LastKnownElr|Offline"
    rb"|Observers|LiveObservers):[ \t]*"
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
    """Return `data`, line by line, with a tab before and a space after the name of each field of a partition line."""
    return _SPACED.sub(rb"\t\1: ", data)


@attrs.frozen(eq=False)
class Fields:
    """Where fields and lines stand in a block. Field f is the bytes start[f] to end[f], half-open, of `data`.

    `eights[p]` is the eight bytes from position p on as a little-endian number: a view that overlaps
    itself. Field `first[i]` is the first of line i, which has `count[i]` of them.
    """

    data: bytes
    eights: NDArray[np.uint64]
    start: Int64Array
    end: Int64Array
    first: Int64Array
    count: Int64Array

    def load(self, position: Int64Array) -> NDArray[np.uint64]:
        """Return the eight bytes from each position on."""
        return self.eights[position]  # Not np.take, which would first copy the whole overlapping view.

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
    return Fields(
        data=padded,
        eights=np.ndarray(shape=(len(padded) - 7,), dtype="<u8", buffer=padded, strides=(1,)),
        start=start,
        end=end,
        first=first,
        count=last + 1 - first,
    )


def read_block(
    fields: Fields, first_line: int, topic_index: Callable[[str], int | None]
) -> tuple[list[Chunk], BoolArray]:
    """Return the rows read, and which lines of the block they were.

    `topic_index` gives a topic's number, or None when the name is illegal.
    """
    chunks = []
    taken = np.zeros(fields.first.shape[0], dtype=np.bool_)
    pending = np.flatnonzero(fields.count >= len(_REQUIRED))
    # The name of a topic comes first, after a tab or at once; what follows it must be a partition.
    second = fields.first[pending] + 1
    pending = pending[
        fields.begins(fields.start[second], b"Partition: ") | fields.begins(fields.start[second + 1], b"Partition: ")
    ]
    for _ in range(_LAYOUTS_MAX):
        if not pending.size:
            break
        layout = _layout(fields, int(pending[0]))
        if layout is None:
            pending = pending[1:]
            continue
        alike = fields.count[pending] == fields.count[pending[0]]
        candidates = pending[alike]
        first = fields.first[candidates]
        is_named = np.ones(candidates.shape, dtype=np.bool_)
        for place, name in enumerate(layout):
            start = fields.start[first + place]
            is_named &= fields.begins(start, name) if name else start == fields.end[first + place]
        chunk = _read_lines(fields, candidates[is_named], layout, first_line, topic_index)
        taken[chunk.line - first_line] = True
        chunks.append(chunk)
        alike[alike] = is_named
        pending = pending[~alike]
    return chunks, taken


def _layout(fields: Fields, line: int) -> tuple[bytes, ...] | None:
    """Return the names of this line's fields with colon and space, b"" for an empty first one; None to give up."""
    first = int(fields.first[line])
    names: list[bytes] = []
    for field in range(first, first + min(int(fields.count[line]), len(_NAMES) + 2)):
        text = fields.data[fields.start[field] : fields.end[field]]
        name = _NAME.match(text)
        if name is not None and name[0] in _NAMES:
            names.append(name[0])
        elif text == b"" and not names:
            names.append(b"")
        else:
            return None
    columns = [_LISTS.get(name, name) for name in names]
    whole = len(names) == int(fields.count[line]) and len(set(columns)) == len(columns)
    return tuple(names) if whole and all(name in names for name in _REQUIRED) else None


def _read_lines(
    fields: Fields,
    lines: Int64Array,
    layout: tuple[bytes, ...],
    first_line: int,
    topic_index: Callable[[str], int | None],
) -> Chunk:
    first = fields.first[lines]

    def value_of(name: bytes) -> tuple[Int64Array, Int64Array]:
        field = first + layout.index(name)
        return fields.start[field] + len(name), fields.end[field]

    topics, good = _topics(fields, *value_of(b"Topic: "), topic_index)
    partition = _ids(fields, *value_of(b"Partition: "), good)
    good &= _is_single(partition) & (partition[0] >= 0)
    good &= partition[0] <= PARTITION_ID_MAX
    start, end = value_of(b"Leader: ")
    length = end - start
    nobody = (fields.begins(start, b"none") & (length == 4)) | (fields.begins(start, b"-1") & (length == 2))
    leader = _ids(fields, np.where(nobody, end, start), end, good)
    good &= _is_single(leader) & (nobody | (leader[0] >= 0))
    lists: dict[str, Columns] = {}
    for name in (name for name in layout if name in _LISTS):
        start, end = value_of(name)
        if name not in _REQUIRED:
            unsaid = end - start == 3
            if unsaid.any():
                unsaid &= fields.begins(start, b"N/A")
                if unsaid.all():
                    continue
                start = np.where(unsaid, end, start)
        columns = _ids(fields, start, end, good)
        good &= _is_distinct(columns)
        lists[_LISTS[name]] = columns
    good &= _is_possible(leader[0], lists["replicas"], lists["isr"])
    return Chunk(
        line=lines[good] + first_line,
        topic_index=topics[good],
        partition_ids=partition[0][good],
        leader=leader[0][good],
        matrices={name: _stacked(columns, good) for name, columns in lists.items()},
    )


def _stacked(columns: Columns, rows: BoolArray) -> Int32Array:
    if len(columns) == 1 and bool((columns[0][rows] < 0).all()):
        return np.empty((int(np.count_nonzero(rows)), 0), dtype=np.int32)
    return np.stack([column[rows] for column in columns], axis=1)


def _topics(
    fields: Fields, start: Int64Array, end: Int64Array, topic_index: Callable[[str], int | None]
) -> tuple[Int32Array, BoolArray]:
    """Return the number of each row's topic, and which names are legal. Each run of equal names is looked up once."""
    length = end - start
    changed = np.ones(start.shape, dtype=np.bool_)
    changed[1:] = length[1:] != length[:-1]
    shortest, longest = int(length.min()), min(int(length.max()), _NAME_BYTES_MAX)
    for offset in range(0, longest, 8):
        if offset + 8 <= shortest:
            part = fields.load(start + offset)
        else:
            part = fields.load(np.minimum(start + offset, end)) & _MASKS[np.clip(length - offset, 0, 8)]
        changed[1:] |= part[1:] != part[:-1]
    runs = np.flatnonzero(changed)
    numbers = []
    for name_start, name_end in zip(start[runs].tolist(), end[runs].tolist(), strict=True):
        name = fields.data[name_start : min(name_end, name_start + _NAME_BYTES_MAX + 1)]
        number = topic_index(name.decode("latin-1"))
        numbers.append(PAD if number is None else number)
    index = np.repeat(np.array(numbers, dtype=np.int32), np.diff(runs, append=start.shape[0]))
    return index, index >= 0


def _ids(fields: Fields, start: Int64Array, end: Int64Array, good: BoolArray) -> Columns:
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


def _is_single(columns: Columns) -> BoolArray | np.bool_:
    return np.bool_(True) if len(columns) == 1 else columns[1] < 0


def _is_distinct(columns: Columns) -> BoolArray:
    good = np.ones(columns[0].shape, dtype=np.bool_)
    for place, column in enumerate(columns):
        for other in columns[:place]:
            good &= (column != other) | (column < 0)
    return good


def _is_possible(leader: Int32Array, replicas: Columns, isr: Columns) -> BoolArray:
    """Tell which rows have a replica, and no leader or ISR member that is none."""
    good = replicas[0] >= 0
    for column in (leader, *isr):
        found = column < 0
        for replica in replicas:
            found |= column == replica
        good &= found
    return good

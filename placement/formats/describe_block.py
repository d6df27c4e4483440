"""The partition lines of a block of `kafka-topics --describe` at once, in numpy: the fast path.

Goals, most important first: take only lines that describe_line would take, with equal
values (a property test holds them to it); be near the speed of memory.

How: the first partition line not yet read gives a *layout*, the order of the names of
its fields; all lines with those names at those places are read together, a column at
a time. Whatever surprises (another layout, a number of eight digits, an illegal name, a
leader that is no replica) is left for describe_line, which knows the words for it.

Example: in a block of 5,000 lines of one Kafka version there are one or two layouts,
with Observers or without.

Left out: topic lines, which are describe_topics's.
Cost: about 200 numpy calls a layout and block. Source: ours; the fields are Kafka TopicCommand's.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from broker.cluster import Int32Array, Int64Array
from placement.formats.checks import PARTITION_ID_MAX
from placement.formats.describe_fields import BoolArray, Columns, Fields, is_single, read_ids
from placement.formats.describe_line import LIST_FIELDS
from placement.formats.describe_topics import NamedLines
from placement.formats.rows import Chunk

_LAYOUTS_MAX: Final = 8  # More different layouts in one block than this are rare; the rest goes the careful way.
_LISTS: Final = {name.encode() + b": ": column for name, column in LIST_FIELDS}
_REQUIRED: Final = (b"Topic: ", b"Partition: ", b"Leader: ", b"Replicas: ", b"Isr: ")
_NAMES: Final = (b"Topic: ", b"Partition: ", b"Leader: ", *_LISTS)
_NAME: Final = re.compile(rb"(?:(?:Adding|Removing) )?[A-Z][A-Za-z]*: ")


def read_partition_lines(fields: Fields, named: NamedLines, first_line: int) -> list[Chunk]:
    """Return the rows of the partition lines that could be read; the block begins with line `first_line`."""
    chunks = []
    pending = named.partition_lines[fields.count[named.partition_lines] >= len(_REQUIRED)]
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
        chunks.append(_read_alike(fields, named, candidates[is_named], layout, first_line))
        alike[alike] = is_named
        pending = pending[~alike]
    return chunks


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


def _read_alike(
    fields: Fields, named: NamedLines, lines: Int64Array, layout: tuple[bytes, ...], first_line: int
) -> Chunk:
    """Return the rows of those of `lines`, all of this layout, that hold nothing odd."""
    first = fields.first[lines]

    def value_of(name: bytes) -> tuple[Int64Array, Int64Array]:
        field = first + layout.index(name)
        return fields.start[field] + len(name), fields.end[field]

    topics = named.topic_index[lines]
    good = topics >= 0
    partition = read_ids(fields, *value_of(b"Partition: "), good)
    good &= is_single(partition) & (partition[0] >= 0)
    good &= partition[0] <= PARTITION_ID_MAX
    start, end = value_of(b"Leader: ")
    length = end - start
    nobody = (fields.begins(start, b"none") & (length == 4)) | (fields.begins(start, b"-1") & (length == 2))
    leader = read_ids(fields, np.where(nobody, end, start), end, good)
    good &= is_single(leader) & (nobody | (leader[0] >= 0))
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
        columns = read_ids(fields, start, end, good)
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

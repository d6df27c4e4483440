"""Read the common lines of a block of `kafka-topics --describe` into columns with compiled code.

Goals, most important first: the same rows as describe_line gives; cost less than splitting
the lines; make no Python object for a partition.

How: placement.formats.describe_kernel reads the bytes and says what it found in tables of numbers; here these
become columns. A topic's name is looked up once for each run of lines that begin with it, usually
its own line and its partitions, and each run of equal Configs once. Lines that the kernel leaves are
given back, to be read with care.

Example: of a block of 20,000 lines of one Kafka version, a few warnings are given back.

Left out: what comes twice, which shows when the text has ended.
Source: ours; the fields are Kafka TopicCommand's.
"""

from __future__ import annotations

import itertools
from typing import Final

import attrs
import numpy as np

from broker.cluster import Int32Array
from broker.ids import INT32_MAX, TOPIC_NAME_LENGTH_MAX
from placement.formats import describe_kernel as kernel
from placement.formats.checks import PARTITION_ID_MAX, REPLICATION_FACTOR_MAX, fault_of_topic_name
from placement.formats.describe_declared import TopicLines
from placement.formats.describe_line import LIST_FIELDS, TOPIC_ID_LENGTH_MAX, is_topic_id
from placement.formats.rows import Chunk, PartitionRows
from placement.spec import PARTITION_COUNT_MAX

_CONFIGS_BYTES_MAX: Final = 8192  # Longer ones go the careful way, so that what is remembered stays below 32 MiB.
_LISTS: Final = tuple(dict.fromkeys(column for _, column in LIST_FIELDS))
_SLOTS: Final = {
    "Topic": kernel.TOPIC,
    "Partition": kernel.PARTITION,
    "Leader": kernel.LEADER,
    **{name: kernel.REPLICAS + _LISTS.index(column) for name, column in LIST_FIELDS},
    "TopicId": kernel.TOPIC_ID,
    "PartitionCount": kernel.PARTITION_COUNT,
    "ReplicationFactor": kernel.REPLICATION_FACTOR,
    "Configs": kernel.CONFIGS,
}
_HIGHS: Final = {
    kernel.TOPIC: TOPIC_NAME_LENGTH_MAX,
    kernel.PARTITION: PARTITION_ID_MAX,
    kernel.TOPIC_ID: TOPIC_ID_LENGTH_MAX,
    kernel.PARTITION_COUNT: PARTITION_COUNT_MAX,
    kernel.REPLICATION_FACTOR: REPLICATION_FACTOR_MAX,
    kernel.CONFIGS: _CONFIGS_BYTES_MAX,
}
assert _LISTS[:2] == ("replicas", "isr")
assert len(_LISTS) == kernel.LIST_COUNT


def _grammar() -> kernel.Grammar:
    """Return the names of _SLOTS and the limits of describe_line and checks, in the kernel's form."""
    names = [name.encode() + b":" for name in _SLOTS]
    table = np.zeros((len(names), max(map(len, names))), dtype=np.uint8)
    for row, name in enumerate(names):
        table[row, : len(name)] = np.frombuffer(name, dtype=np.uint8)
    kinds = [(not fault_of_topic_name(f"a{chr(byte)}")) + 2 * is_topic_id(chr(byte)) for byte in range(128)]
    return kernel.Grammar(
        names=table,
        name_lengths=np.array([len(name) for name in names], dtype=np.int64),
        slots=np.array(list(_SLOTS.values()), dtype=np.int64),
        highs=np.array([_HIGHS.get(slot, INT32_MAX) for slot in range(kernel.SLOT_COUNT)], dtype=np.int64),
        word_kinds=np.array(kinds + [0] * 128, dtype=np.uint8),
    )


_GRAMMAR: Final = _grammar()


@attrs.frozen(eq=False)
class UnreadLines:
    """Hold the unread lines of a block: `left` int32[N, 3] has line number from 0, begin and end of each, ascending."""

    left: Int32Array
    blank_count: int
    taken_count: int


def read_block(data: bytes, first_line: int, rows: PartitionRows, declared: TopicLines) -> UnreadLines:
    """Append the common lines of `data` to `rows` and `declared`; return the lines left to `describe_line`.

    `data` is of whole lines, each ending in a newline, and begins with line `first_line`.
    """
    assert data.endswith(b"\n")
    found = _room(len(data))
    buffer = np.frombuffer(data, dtype=np.uint8)
    counts = kernel.scan_lines(buffer, _GRAMMAR, found)
    known = rows.topics
    names = _texts(buffer, found.topic_spans[: counts.topic_spans])
    numbers = np.array([known.setdefault(name, len(known)) for name in names], dtype=np.int32)
    partitions = found.partitions[: counts.partitions]
    if counts.partitions:
        rows.add_chunk(_chunk(partitions, found.values, numbers, first_line))
    topics = found.topics[: counts.topics]
    settings = declared.numbers_of_settings(_texts(buffer, found.configs_spans[: counts.configs_spans]))
    settings = settings[topics[:, kernel.CONFIGS_RUN]]
    is_told = settings >= 0
    left = np.concatenate((found.left[: counts.left], topics[~is_told, : kernel.END + 1]))
    topics = topics[is_told]
    declared.add_many(
        topics[:, kernel.LINE].astype(np.int64) + first_line,
        numbers[topics[:, kernel.TOPIC_RUN]],
        topics[:, kernel.COUNT],
        topics[:, kernel.FACTOR],
        settings[is_told],
        _texts(buffer, topics[:, kernel.ID_BEGIN : kernel.ID_END + 1]),
    )
    return UnreadLines(left[np.argsort(left[:, kernel.LINE])], counts.blank, counts.partitions + topics.shape[0])


def _room(byte_count: int) -> kernel.Found:
    """Return tables large enough for any block of this size; memory that is never written is never allocated."""
    row_count = byte_count // kernel.ROW_BYTES_MIN
    return kernel.Found(
        partitions=np.empty((row_count, kernel.PARTITION_COLUMN_COUNT), dtype=np.int32),
        topics=np.empty((row_count, kernel.TOPIC_COLUMN_COUNT), dtype=np.int32),
        left=np.empty((byte_count // 2, kernel.END + 1), dtype=np.int32),
        topic_spans=np.empty((row_count, 2), dtype=np.int32),
        configs_spans=np.empty((row_count, 2), dtype=np.int32),
        values=np.empty(byte_count // 2 + 1, dtype=np.int32),
        slots=np.empty((kernel.SLOT_COUNT, 2), dtype=np.int64),
    )


def _texts(buffer: kernel.ByteArray, spans: Int32Array) -> list[str]:
    """Return the bytes of each span as Latin-1 text."""
    joined = np.empty(int((spans[:, 1] - spans[:, 0]).sum()) + spans.shape[0], dtype=np.uint8)
    kernel.join_texts(buffer, np.ascontiguousarray(spans), joined)
    return joined.tobytes().decode("latin-1").split("\n")[:-1]


def _chunk(partitions: Int32Array, values: Int32Array, numbers: Int32Array, first_line: int) -> Chunk:
    """Return the partitions as columns; a list that no row has is absent."""
    row_count = partitions.shape[0]
    longest = partitions[:, kernel.LENGTHS :].max(axis=0)
    widths = np.maximum(longest, 0).astype(np.int64)
    cells = np.empty(row_count * int(widths.sum()), dtype=np.int32)
    kernel.fill_lists(partitions, values, widths, cells)
    bounds = itertools.pairwise([0, *(np.cumsum(widths) * row_count).tolist()])
    return Chunk(
        line=partitions[:, kernel.LINE].astype(np.int64) + first_line,
        topic_index=numbers[partitions[:, kernel.RUN]],
        partition_ids=partitions[:, kernel.PARTITION_ID].copy(),
        leader=partitions[:, kernel.LEADER_ID].copy(),
        matrices={
            name: cells[start:end].reshape(row_count, width)
            for name, (start, end), width, length in zip(_LISTS, bounds, widths.tolist(), longest.tolist(), strict=True)
            if length >= 0
        },
    )

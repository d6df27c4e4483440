"""The topic lines of a block of `kafka-topics --describe` at once, and the topics' names in all its lines.

Goals, most important first: take only lines that describe_line would take, with equal
values (a property test holds them to it); cost a cluster of many small topics little more
than one of few large ones.

How: a name is looked up once for each run of lines that begin with it, usually a topic's
line and its partitions. Lines with and without TopicId are read together, a column at a
time. Whatever surprises is left for describe_line.

Example: "Topic: a\\tPartitionCount: 1\\tReplicationFactor: 2\\tConfigs: " gives topic 0 one row: partition_count 1,
replication_factor 2, settings 0 (nothing said), no id. Kafka 2.4 and older print "Topic:a\\tPartitionCount:1…".

Left out: what comes twice; describe_declared tells when it closes.
Source: ours; the fields are Kafka TopicCommand's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import attrs
import numpy as np

from broker.cluster import PAD, Int32Array, Int64Array
from placement.formats.checks import REPLICATION_FACTOR_MAX
from placement.formats.describe_declared import TopicLines
from placement.formats.describe_fields import BoolArray, Fields, is_single, read_ids
from placement.spec import PARTITION_COUNT_MAX

_NAME_BYTES_MAX: Final = 249
_ID_BYTES_MAX: Final = 64
_IDS: Final = re.compile(r"(?:[A-Za-z0-9_-]*+\n)*+")
_CONFIGS_BYTES_MAX: Final = 8192  # Longer ones go the careful way, so that what is remembered stays below 32 MiB.

NumberTopics = Callable[[list[str]], list[int]]


@attrs.frozen(eq=False)
class NamedLines:
    """Lines that look like a partition's or a topic's, ascending; every line's `topic_index`, -1 for none."""

    partition_lines: Int64Array
    topic_lines: Int64Array
    topic_index: Int32Array


def find_names(fields: Fields, number_topics: NumberTopics) -> NamedLines:
    """Return which lines name a topic. `number_topics` gives the numbers of topics, -1 for illegal names."""
    lines = np.flatnonzero(fields.count >= 4)
    place = fields.first[lines]
    place = place + (fields.start[place] == fields.end[place])
    second = fields.start[place + 1]
    is_partition = fields.begins(second, b"Partition: ")
    rest = np.flatnonzero(~is_partition)
    is_topic = np.zeros_like(is_partition)
    is_topic[rest] = fields.begins(second[rest], b"PartitionCount:") | fields.begins(second[rest], b"TopicId:")
    start, end, good = _value(fields, place, b"Topic:")
    good &= is_partition | is_topic
    topic_index = np.full(fields.first.shape, PAD, dtype=np.int32)
    topic_index[lines[good]] = _numbers(fields, start[good], end[good], number_topics)
    return NamedLines(lines[good & is_partition], lines[good & is_topic], topic_index)


def _value(fields: Fields, place: Int64Array, name: bytes) -> tuple[Int64Array, Int64Array, BoolArray]:
    """Return where the values of these fields begin and end, and which fields have this name."""
    good = fields.begins(fields.start[place], name)
    start = fields.start[place] + len(name)
    return start + fields.begins(start, b" "), fields.end[place], good


def _numbers(fields: Fields, start: Int64Array, end: Int64Array, number_topics: NumberTopics) -> Int32Array:
    """Return the number of each line's topic. Each run of equal names is looked up once."""
    if not start.size:
        return np.empty(0, dtype=np.int32)
    length = end - start
    changed = np.ones(start.shape, dtype=np.bool_)
    changed[1:] = length[1:] != length[:-1]
    shortest, longest = int(length.min()), min(int(length.max()), _NAME_BYTES_MAX)
    for offset in range(0, longest, 8):
        if offset + 8 <= shortest:
            part = fields.load(start + offset)
        else:
            part = fields.load(np.minimum(start + offset, end)) & fields.masks(length - offset)
        changed[1:] |= part[1:] != part[:-1]
    runs = np.flatnonzero(changed)
    ends = np.minimum(end[runs], start[runs] + _NAME_BYTES_MAX + 1)  # One more than is legal stays illegal.
    numbers = number_topics(_texts(fields, start[runs], ends))
    return np.repeat(np.array(numbers, dtype=np.int32), np.diff(runs, append=start.shape[0]))


def _texts(fields: Fields, start: Int64Array, end: Int64Array) -> list[str]:
    return [fields.text[first:last] for first, last in zip(start.tolist(), end.tolist(), strict=True)]


def read_topic_lines(fields: Fields, named: NamedLines, first_line: int, declared: TopicLines) -> Int64Array:
    """Add those topic lines of a block that hold nothing odd to `declared`, and return which."""
    lines = named.topic_lines
    place = fields.first[lines]
    place = place + (fields.start[place] == fields.end[place])
    id_start, id_end, has_id = _value(fields, place + 1, b"TopicId:")
    good = fields.first[lines] + fields.count[lines] - place == 4 + has_id
    good &= named.topic_index[lines] >= 0
    lines, place, has_id = lines[good], place[good] + has_id[good], has_id[good]
    id_start, id_end = np.where(has_id, id_start[good], 0), np.where(has_id, id_end[good], 0)
    good = np.ones(lines.shape, dtype=np.bool_)
    count = _count(fields, place + 1, b"PartitionCount:", PARTITION_COUNT_MAX, good)
    factor = _count(fields, place + 2, b"ReplicationFactor:", REPLICATION_FACTOR_MAX, good)
    start, end, named_so = _value(fields, place + 3, b"Configs:")
    good &= named_so & (end - start <= _CONFIGS_BYTES_MAX) & (id_end - id_start <= _ID_BYTES_MAX)
    settings = np.full(lines.shape, PAD, dtype=np.int32)
    settings[good] = [declared.number_of_settings(text) for text in _texts(fields, start[good], end[good])]
    good &= settings >= 0
    ids = _texts(fields, id_start[good], id_end[good])
    if not _are_ids(ids):
        good[good] = [_are_ids([text]) for text in ids]
        ids = _texts(fields, id_start[good], id_end[good])
    declared.add_many(
        lines[good] + first_line, named.topic_index[lines[good]], count[good], factor[good], settings[good], ids
    )
    read: Int64Array = lines[good]
    return read


def _are_ids(texts: list[str]) -> bool:
    return _IDS.fullmatch("\n".join([*texts, ""])) is not None


def _count(fields: Fields, place: Int64Array, name: bytes, high: int, good: BoolArray) -> Int32Array:
    """Return the numbers of these fields; clears `good` where there is none up to `high` under this name."""
    start, end, named_so = _value(fields, place, name)
    columns = read_ids(fields, start, end, good)
    good &= named_so & is_single(columns) & (columns[0] >= 0) & (columns[0] <= high)
    return columns[0]

"""Order one member's partitions as the record of its target assignment lists them, key by key in Java's tables.

The coordinator puts topics and numbers of the last record into a HashMap of HashSets; the assignor copies it, takes out
what the member loses and puts in what it gains; a topic gained goes in by `computeIfAbsent`, in front of its bin.

Source: org.apache.kafka.coordinator.group.assignor.AssignorHelpers (deepCopyAssignment) and
UniformHomogeneousAssignmentBuilder, modern.Assignment.fromRecord, 4.3.1 and 4.4.0; java.util.HashMap, Java 17.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

import attrs

from broker.java.hash_table import TABLE_SIZE_MIN, HashTable
from broker.java.tree_bin import TreeKey

Row: TypeAlias = list[tuple[int, int]]
"""Topics and numbers of one member's partitions."""


@attrs.define
class _Target:
    """Hold one member's HashMap of HashSets; `keys` are those of all topics."""

    keys: Sequence[TreeKey]
    topics: HashTable
    numbers: dict[TreeKey, HashTable] = attrs.field(factory=dict)

    @classmethod
    def of_record(cls, record: Row, keys: Sequence[TreeKey], table_size: int = TABLE_SIZE_MIN) -> _Target:
        target = cls(keys, HashTable(table_size))
        for topic, numbers in _by_topic(record).items():
            target.topics.add(keys[topic])
            target.numbers[keys[topic]] = _number_set(numbers)
        return target

    def lose(self, topic: int, number: int) -> None:
        key = self.keys[topic]
        self.numbers[key].remove(_number_key(number))
        if not len(self.numbers[key]):
            del self.numbers[key]
            self.topics.remove(key)

    def gain(self, topic: int, number: int) -> None:
        key = self.keys[topic]
        if key not in self.numbers:
            self.topics.add_first(key)
            self.numbers[key] = HashTable()
        self.numbers[key].add(_number_key(number))

    def walked(self, topic_of: Mapping[TreeKey, int]) -> Row:
        return [(topic_of[key], number) for key in self.topics for number in _numbers(self.numbers[key])]


def next_record(listed: Row, gained: Row, lost: Iterable[tuple[int, int]], keys: Sequence[TreeKey]) -> Row:
    """Return a member's next record: its last record, `listed`, without the lost partitions, then the gained ones.

    `keys` are the topics' keys in Java's tables.
    """
    topics = {topic for topic, _ in (*listed, *gained)}
    topic_of = {keys[topic]: topic for topic in topics}
    before = walked(listed, keys)
    copied_size = max(1, len({topic for topic, _ in listed}))
    target = _Target.of_record(before, keys, 1 << (copied_size - 1).bit_length())
    for topic, number in lost:
        target.lose(topic, number)
    for topic, number in gained:
        target.gain(topic, number)
    return target.walked(topic_of)


def listed_record(held: Row, ranks: Sequence[int]) -> Row:
    """Return the record that partitions listed in no order stand for: topics by `ranks`, numbers ascending."""
    return sorted(held, key=lambda one: (ranks[one[0]], one[1]))


def walked(record: Row, keys: Sequence[TreeKey]) -> Row:
    """Return the partitions of a record in the order in which the assignor walks them."""
    topic_of = {keys[topic]: topic for topic, _ in record}
    return _Target.of_record(record, keys).walked(topic_of)


def walked_numbers(numbers: Collection[int]) -> list[int]:
    """Return distinct numbers in the order in which `new HashSet<>(numbers)` iterates them.

    >>> walked_numbers([0, 1, 16])
    [0, 16, 1]
    """
    return _numbers(_number_set(numbers))


def _number_set(numbers: Collection[int]) -> HashTable:
    asked = max(TABLE_SIZE_MIN, len(numbers) * 4 // 3 + 1)
    table = HashTable(1 << (asked - 1).bit_length())
    for number in numbers:
        table.add(_number_key(number))
    return table


def _number_key(number: int) -> TreeKey:
    return number ^ number >> 16, True, b""


def _numbers(table: HashTable) -> list[int]:
    # A number below 2^31 comes back from its spread hash as it came.
    return [spread ^ spread >> 16 for spread, _, _ in table]


def _by_topic(row: Row) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for topic, number in row:
        found.setdefault(topic, []).append(number)
    return found

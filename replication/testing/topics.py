"""Hold the topics of a served cluster: names, ids, and the numbers of their partitions in the model.

The model's controller knows each partition by a number and by the name of its log directory, `orders-0`; what makes
partitions a topic stands here. A topic is visible on a broker once that broker has read all of its partitions.

Source: Kafka metadata ReplicationControlManager.createTopic; clients Topic.validate; 4.4.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from uuid import UUID

import attrs

from broker.entropy import derive
from broker.group.routing import offsets_partition
from broker.partition_faults import fault_of_topic_name
from broker.units import DAY_MS, DurationMs
from replication.roles.metadata import MetadataImage

OFFSETS_TOPIC: Final = "__consumer_offsets"
PARTITION_COUNT_MAX: Final = 1_000
"""The most partitions of a served cluster; each is a log on every replica."""
DURATION_MS: Final = DurationMs(30 * DAY_MS)
"""How long a served cluster may run; what lasts until it is undone lasts as long."""
PORT_MAX: Final = 65_535
_FIRST_PRODUCER_ID: Final = 1_000


@attrs.frozen
class Topic:
    """Hold one topic: `numbers` are the numbers of its partitions, in order."""

    name: str
    topic_id: UUID
    numbers: tuple[int, ...]
    configs: tuple[tuple[str, str], ...] = ()

    @property
    def is_internal(self) -> bool:
        """Return whether the topic is one of Kafka's own."""
        return self.name == OFFSETS_TOPIC


def is_legal_name(name: str) -> bool:
    """Return whether Kafka takes a topic of this name."""
    return fault_of_topic_name(name) is None


class Topics:
    """Hold the topics by name; the next partition number and the next producer id.

    It is also the layout that the group coordinators ask: partitions of `__consumer_offsets` have the first numbers.
    """

    def __init__(self, seed: int, offsets_partition_count: int) -> None:
        self._seed = seed
        self._next_number = 0
        self._created = 0
        self._next_producer_id = _FIRST_PRODUCER_ID
        self._by_name: dict[str, Topic] = {}
        self._places: dict[int, tuple[str, int]] = {}
        self.counts: dict[str, int] = {}
        """The partition count of each topic, which group coordinators assign by."""
        self._offsets = self.add(OFFSETS_TOPIC, offsets_partition_count)

    def __iter__(self) -> Iterator[Topic]:
        """Iterate over the topics in the order of their names."""
        return iter(topic for _, topic in sorted(self._by_name.items()))

    @property
    def partition_count(self) -> int:
        """Return the number of partitions of all topics."""
        return len(self._places)

    def add(self, name: str, partition_count: int, configs: Mapping[str, str] | None = None) -> Topic:
        """Add a topic that has no partition in the model yet."""
        assert name not in self._by_name, name
        return self._keep(Topic(name, self.new_id(), (), tuple(sorted((configs or {}).items()))), partition_count)

    def new_id(self) -> UUID:
        """Return the next topic id; a topic that is only validated has one too."""
        self._created += 1
        high, low = derive(self._seed, self._created, 0), derive(self._seed, self._created, 1)
        return UUID(int=(high % (1 << 64) << 64) | low % (1 << 64), version=4)

    def configure(self, name: str, configs: Mapping[str, str]) -> Topic:
        """Replace a topic's settings."""
        topic = self._by_name[name] = attrs.evolve(self._by_name[name], configs=tuple(sorted(configs.items())))
        return topic

    def grow(self, name: str, partition_count: int) -> Topic:
        """Add partitions to a topic until it has `partition_count`."""
        topic = self._by_name[name]
        return self._keep(topic, partition_count - len(topic.numbers))

    def _keep(self, topic: Topic, more: int) -> Topic:
        first, index = self._next_number, len(topic.numbers)
        self._next_number += more
        added = range(first, first + more)
        self._places.update((number, (topic.name, index + place)) for place, number in enumerate(added))
        self.counts[topic.name] = index + more
        grown = self._by_name[topic.name] = attrs.evolve(topic, numbers=(*topic.numbers, *added))
        return grown

    def remove(self, name: str) -> Topic:
        """Remove a topic and return it; its numbers are never used again."""
        topic = self._by_name.pop(name)
        del self.counts[name]
        for number in topic.numbers:
            del self._places[number]
        return topic

    def get(self, name: str) -> Topic | None:
        """Return a topic by its name."""
        return self._by_name.get(name)

    def of_id(self, topic_id: UUID) -> Topic | None:
        """Return a topic by its id. Cost: linear in the number of topics."""
        return next((topic for topic in self._by_name.values() if topic.topic_id == topic_id), None)

    def number_of(self, name: str, partition: int) -> int | None:
        """Return the number of a topic's partition; None if there is no such partition."""
        topic = self._by_name.get(name)
        return topic.numbers[partition] if topic is not None and 0 <= partition < len(topic.numbers) else None

    def place_of(self, number: int) -> tuple[str, int]:
        """Return the topic and index of a partition by its number; the number alone for a deleted partition."""
        return self._places.get(number, (f"partition-{number}", 0))

    def next_producer_id(self) -> int:
        """Return a producer id that was never used."""
        self._next_producer_id += 1
        return self._next_producer_id - 1

    # The layout of groups.

    def is_internal(self, number: int) -> bool:
        """Return whether a partition is one of `__consumer_offsets`."""
        return number < len(self._offsets.numbers)

    def of_group(self, group_id: str) -> int:
        """Return the partition of `__consumer_offsets` that stores a group."""
        return offsets_partition(group_id, len(self._offsets.numbers))


def directory_name(topic: str, index: int) -> str:
    """Return the name of a partition's log directory, by which the model's controller knows it."""
    return f"{topic}-{index}"


def visible(topics: Iterable[Topic], image: MetadataImage) -> Iterator[Topic]:
    """Yield the topics of which a broker has read every partition."""
    return (topic for topic in topics if all(number in image.partitions for number in topic.numbers))

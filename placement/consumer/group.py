"""Hold a consumer group in columns, as the assignors read it: members, subscriptions, topics, owned partitions.

Topics are sorted as Java sorts strings; partitions are numbered through in order of (topic, partition). A member may
claim a partition that does not exist; those are numbered behind the real ones. Whoever claims a partition of a topic
without metadata claims nothing. Members stand in the order of the group's map.

Source: Kafka's ConsumerPartitionAssignor.Subscription and GroupSpec, 4.3.1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import Final

import attrs
import numpy as np

from broker.cluster import Int32Array, Int64Array
from broker.errors import UsageError
from broker.ids import PartitionId, TopicPartition
from broker.java.hash_order import string_places
from broker.java.string_hash import java_string_key
from placement.consumer.racks import ReplicaRacks
from placement.consumer.ragged import Ragged, inverse
from placement.spec import PARTITION_COUNT_MAX

NO_GENERATION: Final = -1
"""Kafka's `AbstractStickyAssignor.DEFAULT_GENERATION`: the member gives none."""

NO_METADATA: Final = -1
"""The number of partitions of a topic that somebody subscribes to or claims but that is not known."""


@attrs.frozen(kw_only=True)
class Topic:
    """Describe one topic; `id` is Kafka's Uuid as text, `replica_racks` the racks of each partition's replicas."""

    name: str
    partition_count: int
    id: str | None = None
    replica_racks: tuple[tuple[str, ...], ...] | None = None


class RecordedPartitions(tuple[TopicPartition, ...]):
    """Hold a member's partitions in the order in which the record of its target assignment lists them."""

    __slots__ = ()


@attrs.frozen(kw_only=True)
class Member:
    """Describe one member with its subscription.

    `owned` is what it held, as its assignor reads that: from the subscription (cooperative), from the assignor's user
    data (sticky) or from the target assignment (uniform), whose order counts only in RecordedPartitions. `generation`
    is the generation it held that in, and `subscription_generation` the one in the subscription itself where that
    differs, as the two are compared.
    """

    id: str
    topics: tuple[str, ...]
    instance_id: str | None = None
    rack: str | None = None
    owned: tuple[TopicPartition, ...] = ()
    generation: int = NO_GENERATION
    subscription_generation: int | None = None


@attrs.frozen(eq=False, kw_only=True)
class Group:
    """Hold a group's columns for M members and T topics; built by `of`, or directly from arrays.

    `topics` must be in Java's order and distinct; `partition_counts` int32[T] has NO_METADATA where there is none;
    `subscribed` has a row of topic indexes for each member, in the order it named them; `owned_topics` and
    `owned_numbers` say in rows of the same lengths which partitions each member claims.
    """

    members: tuple[str, ...]
    instance_ids: tuple[str | None, ...]
    member_racks: tuple[str | None, ...]
    topics: tuple[str, ...]
    topic_ids: tuple[str | None, ...]
    partition_counts: Int32Array
    subscribed: Ragged
    owned_topics: Ragged
    owned_numbers: Int32Array
    generations: Int32Array
    subscription_generations: Int32Array
    replica_racks: ReplicaRacks
    recorded: frozenset[int] = frozenset()
    """The members whose claims stand in the order of their record."""

    @classmethod
    def of(cls, members: Sequence[Member], topics: Sequence[Topic]) -> Group:
        """Return the columns of these members and topics.

        Raises UsageError for a member or topic given twice, a negative count, or more partitions than are handled.
        """
        known: dict[str, Topic] = {}
        for topic in topics:
            if topic.name in known:
                raise UsageError(f"topic {topic.name!r} is given twice")
            known[topic.name] = topic
        twice = [name for name, count in Counter(member.id for member in members).items() if count > 1]
        if twice:
            raise UsageError(f"member {twice[0]!r} is given twice")
        claimed = {one.topic for member in members for one in member.owned}
        named = {name for member in members for name in member.topics}
        names = tuple(sorted(known.keys() | named | claimed, key=java_string_key))
        index = {name: place for place, name in enumerate(names)}
        counts = [known[name].partition_count if name in known else NO_METADATA for name in names]
        _check_counts(topics)
        return cls(
            members=tuple(member.id for member in members),
            instance_ids=tuple(member.instance_id for member in members),
            member_racks=tuple(member.rack for member in members),
            topics=names,
            topic_ids=tuple(known[name].id if name in known else None for name in names),
            partition_counts=np.array(counts, np.int32),
            subscribed=Ragged.of([index[name] for name in member.topics] for member in members),
            owned_topics=Ragged.of([index[one.topic] for one in member.owned] for member in members),
            owned_numbers=np.array([one.partition for member in members for one in member.owned], np.int32),
            generations=np.array([member.generation for member in members], np.int32),
            subscription_generations=np.array([_subscribed_generation(member) for member in members], np.int32),
            replica_racks=ReplicaRacks.of(
                [known[name].replica_racks if name in known else None for name in names], counts
            ),
            recorded=frozenset(
                place for place, member in enumerate(members) if isinstance(member.owned, RecordedPartitions)
            ),
        )

    @cached_property
    def partition_starts(self) -> Int64Array:
        """Return int64[T + 1]: the id of each topic's first partition, then the number of partitions."""
        return np.concatenate([[0], np.maximum(self.partition_counts, 0).cumsum(dtype=np.int64)])

    @property
    def partition_count(self) -> int:
        """Return the number of existing partitions."""
        return int(self.partition_starts[-1])

    @cached_property
    def _nonexistent_codes(self) -> Int64Array:
        beyond = self._owned_counts >= 0
        beyond &= self.owned_numbers >= self._owned_counts
        return np.unique(_code(self.owned_topics.values[beyond], self.owned_numbers[beyond]))

    @cached_property
    def _owned_counts(self) -> Int32Array:
        return self.partition_counts[self.owned_topics.values]

    @property
    def nonexistent_count(self) -> int:
        """Return the number of claimed partitions that do not exist."""
        return len(self._nonexistent_codes)

    @cached_property
    def partition_topics(self) -> Int32Array:
        """Return the topic index of each partition, then of each claimed one that does not exist, int32."""
        real = np.repeat(np.arange(len(self.topics), dtype=np.int32), np.maximum(self.partition_counts, 0))
        return np.concatenate([real, (self._nonexistent_codes >> 32).astype(np.int32)])

    @cached_property
    def partition_numbers(self) -> Int32Array:
        """Return the number within its topic of each partition, then of each claimed one that does not exist, int32."""
        starts = self.partition_starts.astype(np.int32)
        real = np.arange(starts[-1], dtype=np.int32) - np.repeat(starts[:-1], np.diff(starts))
        return np.concatenate([real, (self._nonexistent_codes & 0xFFFF_FFFF).astype(np.int32)])

    @cached_property
    def owned(self) -> Ragged:
        """Return the ids of the partitions that each member claims, in the order given, topics with metadata only."""
        ids = self.ids_of(self.owned_topics.values, self.owned_numbers)
        return Ragged(self.owned_topics.starts, ids).where(self._owned_counts >= 0)

    def ids_of(self, topics: Int32Array, numbers: Int32Array) -> Int32Array:
        """Return the ids of claimed partitions; for topics without metadata they mean nothing."""
        ids = (self.partition_starts[topics] + numbers).astype(np.int32)
        counts = self.partition_counts[topics]
        beyond = (counts >= 0) & (numbers >= counts)
        if beyond.any():
            places = np.searchsorted(self._nonexistent_codes, _code(topics[beyond], numbers[beyond]))
            ids[beyond] = self.partition_count + places
        return ids

    @cached_property
    def same_lists(self) -> bool:
        """Return whether all members list the same topics in the same order; False for a group without members."""
        lengths = self.subscribed.lengths
        if not len(lengths) or (lengths != lengths[0]).any():
            return False
        table = self.subscribed.values.reshape(len(lengths), -1)
        return bool((table == table[0]).all())

    @cached_property
    def member_hash_order(self) -> Int64Array:
        """Return int64[M]: the members in the iteration order of Java's map of subscriptions."""
        return string_places(self.members)

    @cached_property
    def member_ranks(self) -> Int64Array:
        """Return int64[M]: the rank of each member id in Java's string order."""
        keys = [java_string_key(name) for name in self.members]
        return inverse(np.array(sorted(range(len(keys)), key=keys.__getitem__), np.int64))

    @cached_property
    def static_first(self) -> Int64Array:
        """Return int64[M]: the members in Kafka's `MemberInfo` order, static ones by instance id, then the others."""
        return np.array(sorted(self.member_hash_order.tolist(), key=self._static_key), np.int64)

    def _static_key(self, member: int) -> tuple[bool, bytes]:
        instance = self.instance_ids[member]
        return (instance is None, java_string_key(self.members[member] if instance is None else instance))

    def name_of(self, partition: int) -> TopicPartition:
        """Return the topic and partition number of one id."""
        topic = self.topics[int(self.partition_topics[partition])]
        return TopicPartition(topic, PartitionId(int(self.partition_numbers[partition])))


def _subscribed_generation(member: Member) -> int:
    return member.generation if member.subscription_generation is None else member.subscription_generation


def _check_counts(topics: Sequence[Topic]) -> None:
    wrong = next((topic for topic in topics if not 0 <= topic.partition_count <= PARTITION_COUNT_MAX), None)
    if wrong is not None:
        raise UsageError(
            f"topic {wrong.name!r} has {wrong.partition_count} partitions; allowed are 0 to {PARTITION_COUNT_MAX}"
        )
    total = sum(topic.partition_count for topic in topics)
    if total > PARTITION_COUNT_MAX:
        raise UsageError(f"the topics have {total} partitions together; at most {PARTITION_COUNT_MAX} are handled")


def _code(topics: Int32Array, numbers: Int32Array) -> Int64Array:
    return (topics.astype(np.int64) << 32) | numbers

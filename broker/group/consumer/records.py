"""Read and write consumer group records of `__consumer_offsets` in Kafka's binary form.

What it decides: how a coordinator stores a consumer group (KIP-848), and so how another coordinator restores it.

Goals, most important first:
1. Applying the records of all changes in order restores the group.
2. Keys and values are those that Kafka 4.0 writes, in the order in which Kafka writes them; what 4.3 adds stands in
   tagged fields, which older readers skip: when the target was computed, and since which epoch a partition is held.

Constraints: a change is written as a whole, in one batch. Records name topics by their ids; a reader leaves out an
unknown id, as its topic was deleted.

How: six kinds of keys, by version: 3 the group's epoch, 4 its topics and their partition counts, 5 a member and what it
subscribes to, 6 the target's epoch, 7 a member's target, 8 a member's current assignment. The newest value of a key is
valid; null removes the key. A member that leaves causes three tombstones: its assignment, its target, the member.

Example: the first member of a group makes records of versions 5, 4, 3, 7, 6 and 8.

Left out: classic members in a consumer group, subscriptions by regular expression, racks of partitions; since 4.1 the
hash of the topics in the group's epoch (KIP-1101), which took the place of the record of version 4.

Source: ConsumerGroupMetadata*, ConsumerGroupPartitionMetadata*, ConsumerGroupMemberMetadata*,
ConsumerGroupTargetAssignment*, ConsumerGroupCurrentMemberAssignment* (JSON definitions of group-coordinator),
GroupCoordinatorRecordHelpers and GroupMetadataManager.replay, 4.0.1 and 4.3.1; KIP-1251, KIP-1263.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from types import MappingProxyType
from typing import Final

import attrs

from broker.group.consumer.group import ConsumerGroup
from broker.group.consumer.member import NOTHING, ConsumerMember, MemberState, Partitions
from broker.group.members import InstanceId, MemberId
from broker.group.wire import ByteReader, ByteWriter
from broker.ids import PartitionId, TopicPartition
from broker.units import DurationMs, TimeMs

EPOCH: Final = 3
TOPICS: Final = 4
MEMBER: Final = 5
TARGET_EPOCH: Final = 6
TARGET: Final = 7
CURRENT: Final = 8
CONSUMER_KEY_VERSIONS: Final = (EPOCH, TOPICS, MEMBER, TARGET_EPOCH, TARGET, CURRENT)
_OF_MEMBERS: Final = (MEMBER, TARGET, CURRENT)
_VALUE_VERSION: Final = 0
_ID_BYTES: Final = 16
_CLIENT_HOST: Final = "/127.0.0.1"
_NO_EXPRESSION: Final = ""
_STATES: Final = (MemberState.STABLE, MemberState.UNREVOKED_PARTITIONS, MemberState.UNRELEASED_PARTITIONS)


@attrs.frozen
class ConsumerGroupKey:
    """Hold a record's key: group, kind of record (`version`), and member id if the record is about one member."""

    version: int
    group_id: str
    member_id: MemberId | None = None

    def to_bytes(self) -> bytes:
        """Return the key as Kafka writes it."""
        writer = ByteWriter().int16(self.version).string(self.group_id)
        return writer.done() if self.member_id is None else writer.string(self.member_id).done()


@attrs.frozen
class ConsumerGroupRecord:
    """Hold a record's key and value; a record without a value is a tombstone."""

    key: ConsumerGroupKey
    value: bytes | None


class TopicIds:
    """Map the names of a broker's topics to their ids of 16 bytes, and back."""

    def __init__(self, ids: Mapping[str, bytes]) -> None:
        assert all(len(each) == _ID_BYTES for each in ids.values())
        self._ids = dict(ids)
        self._names = {topic_id: name for name, topic_id in ids.items()}

    def id_of(self, topic: str) -> bytes:
        """Return the id of a topic."""
        return self._ids[topic]

    def name_of(self, topic_id: bytes) -> str | None:
        """Return the name of a topic; None when no topic has this id."""
        return self._names.get(topic_id)


def changes(before: ConsumerGroup, after: ConsumerGroup, ids: TopicIds) -> tuple[ConsumerGroupRecord, ...]:
    """Return the records that change the group `before` into `after`, in Kafka's order."""
    return tuple(_changes(before, after, ids))


def _changes(before: ConsumerGroup, after: ConsumerGroup, ids: TopicIds) -> Iterator[ConsumerGroupRecord]:
    group_id = after.group_id
    for name in sorted(before.members.keys() - after.members.keys()):
        for version in (CURRENT, TARGET, MEMBER):
            yield ConsumerGroupRecord(ConsumerGroupKey(version, group_id, name), None)
    members = sorted(after.members.items())
    for name, member in members:
        if name not in before.members or _subscription(member) != _subscription(before.members[name]):
            yield ConsumerGroupRecord(ConsumerGroupKey(MEMBER, group_id, name), _member_value(member))
    if after.topics != before.topics:
        yield ConsumerGroupRecord(ConsumerGroupKey(TOPICS, group_id), _topics_value(after.topics, ids))
    if after.epoch != before.epoch:
        value = ByteWriter().int16(_VALUE_VERSION).int32(after.epoch).done() + b"\0"
        yield ConsumerGroupRecord(ConsumerGroupKey(EPOCH, group_id), value)
    for name in sorted((before.target.keys() - after.target.keys()) & after.members.keys()):
        yield ConsumerGroupRecord(ConsumerGroupKey(TARGET, group_id, name), None)
    for name, share in sorted(after.target.items()):
        if before.target.get(name) != share:
            value = ByteWriter().int16(_VALUE_VERSION).done() + _partitions(share, ids) + b"\0"
            yield ConsumerGroupRecord(ConsumerGroupKey(TARGET, group_id, name), value)
    if (after.target_epoch, after.target_ms) != (before.target_epoch, before.target_ms):
        tags = b"\0" if after.target_ms is None else _tagged(ByteWriter().int64(after.target_ms).done())
        value = ByteWriter().int16(_VALUE_VERSION).int32(after.target_epoch).done() + tags
        yield ConsumerGroupRecord(ConsumerGroupKey(TARGET_EPOCH, group_id), value)
    for name, member in members:
        if name not in before.members or _held(member) != _held(before.members[name]):
            yield ConsumerGroupRecord(ConsumerGroupKey(CURRENT, group_id, name), _current_value(member, ids))


def read_consumer_key(data: bytes) -> ConsumerGroupKey | None:
    """Return the consumer group key in `data`, None for any other key; raise CorruptDataError if damaged."""
    reader = ByteReader(data, what="key of __consumer_offsets")
    version = reader.int16()
    if version not in CONSUMER_KEY_VERSIONS:
        return None
    group_id = reader.string()
    return ConsumerGroupKey(version, group_id, MemberId(reader.string()) if version in _OF_MEMBERS else None)


def applied(group: ConsumerGroup, record: ConsumerGroupRecord, ids: TopicIds) -> ConsumerGroup:
    """Return the group after applying one record; raise CorruptDataError when the value does not fit the key."""
    version, name, data = record.key.version, record.key.member_id, record.value
    if data is None:
        return _removed(group, version, name)
    reader = ByteReader(data, what="record of a consumer group", is_flexible=True)
    value_version = reader.int16()
    if value_version != _VALUE_VERSION:
        raise reader.corrupt(f"version is {value_version}; known is {_VALUE_VERSION}")
    if version == TARGET_EPOCH:
        return _read_target_epoch(group, reader)
    following = _read(group, version, name, reader, ids)
    reader.end_structure()
    return following


def _read(
    group: ConsumerGroup, version: int, name: MemberId | None, reader: ByteReader, ids: TopicIds
) -> ConsumerGroup:
    """Return the group after a record's value up to its tagged fields; TARGET_EPOCH is read by the caller."""
    if version == EPOCH:
        return attrs.evolve(group, epoch=reader.int32())
    if version == TOPICS:
        return attrs.evolve(group, topics=MappingProxyType(dict(_read_topics(reader))))
    assert name is not None, version
    if version == TARGET:
        return attrs.evolve(group, target={**group.target, name: _read_partitions(reader, ids)})
    known = group.members.get(name, ConsumerMember(member_id=name))
    member = _read_member(known, reader) if version == MEMBER else _read_current(known, reader, ids)
    return group.with_member(member)


def _read_target_epoch(group: ConsumerGroup, reader: ByteReader) -> ConsumerGroup:
    epoch, tags = reader.int32(), reader.tags()
    target_ms = TimeMs(ByteReader(tags[0], what="time of a target assignment").int64()) if 0 in tags else None
    return attrs.evolve(group, target_epoch=epoch, target_ms=target_ms or None)


def _removed(group: ConsumerGroup, version: int, name: MemberId | None) -> ConsumerGroup:
    if version == TARGET:
        return attrs.evolve(group, target={each: share for each, share in group.target.items() if each != name})
    if version == MEMBER:
        return attrs.evolve(group, members={each: one for each, one in group.members.items() if each != name})
    if version == CURRENT and name in group.members:
        assert name is not None
        return group.with_member(attrs.evolve(group.members[name], assigned=NOTHING, revoking=NOTHING))
    return group


# Values. Kafka writes these in flexible versions: lengths are unsigned varints of one more, structures end with a 0.


def _subscription(member: ConsumerMember) -> tuple[object, ...]:
    return (
        member.instance_id,
        member.rack,
        member.client_id,
        member.subscribed_topics,
        member.rebalance_timeout_ms,
        member.assignor,
    )


def _held(member: ConsumerMember) -> tuple[object, ...]:
    epochs = member.assignment_epochs
    return member.epoch, member.previous_epoch, member.state, member.assigned, member.revoking, epochs


def _member_value(member: ConsumerMember) -> bytes:
    topics = sorted(member.subscribed_topics)
    return b"".join(
        (
            ByteWriter().int16(_VALUE_VERSION).done(),
            _string(member.instance_id),
            _string(member.rack),
            _string(member.client_id),
            _string(_CLIENT_HOST),
            _length(len(topics)),
            *(_string(topic) for topic in topics),
            _string(_NO_EXPRESSION),
            ByteWriter().int32(member.rebalance_timeout_ms).done(),
            _string(member.assignor),
            b"\0",
        )
    )


def _read_member(member: ConsumerMember, reader: ByteReader) -> ConsumerMember:
    instance_id, rack, client_id = reader.nullable_string(), reader.nullable_string(), reader.string()
    reader.string()
    topics = frozenset(reader.string() for _ in range(reader.array_length(1)))
    reader.nullable_string()
    return attrs.evolve(
        member,
        instance_id=None if instance_id is None else InstanceId(instance_id),
        rack=rack,
        client_id=client_id,
        subscribed_topics=topics,
        rebalance_timeout_ms=DurationMs(reader.int32()),
        assignor=reader.nullable_string(),
    )


def _topics_value(topics: Mapping[str, int], ids: TopicIds) -> bytes:
    parts = [ByteWriter().int16(_VALUE_VERSION).done(), _length(len(topics))]
    for name, count in sorted(topics.items()):
        parts += [ids.id_of(name), _string(name), ByteWriter().int32(count).done(), _length(0), b"\0"]
    return b"".join((*parts, b"\0"))


def _read_topics(reader: ByteReader) -> Iterator[tuple[str, int]]:
    for _ in range(reader.array_length(_ID_BYTES)):
        reader.take(_ID_BYTES)
        yield reader.string(), reader.int32()
        for _ in range(reader.array_length(1)):
            reader.int32()
            for _ in range(reader.array_length(1)):
                reader.string()
            reader.end_structure()
        reader.end_structure()


def _current_value(member: ConsumerMember, ids: TopicIds) -> bytes:
    epochs = ByteWriter().int16(_VALUE_VERSION).int32(member.epoch).int32(member.previous_epoch).done()
    state = bytes((_STATES.index(member.state),))
    held = (_partitions(each, ids, member.assignment_epochs) for each in (member.assigned, member.revoking))
    return epochs + state + b"".join(held) + b"\0"


def _read_current(member: ConsumerMember, reader: ByteReader, ids: TopicIds) -> ConsumerMember:
    epoch, previous_epoch, state = reader.int32(), reader.int32(), reader.take(1)[0]
    if state >= len(_STATES):
        raise reader.corrupt(f"state of a member is {state}; known are 0 to {len(_STATES) - 1}")
    assigned, revoking = dict(_read_held(reader, ids)), dict(_read_held(reader, ids))
    since = {partition: at for partition, at in (assigned | revoking).items() if at is not None}
    return attrs.evolve(
        member,
        epoch=epoch,
        previous_epoch=previous_epoch,
        state=_STATES[state],
        assigned=frozenset(assigned),
        revoking=frozenset(revoking),
        assignment_epochs=since,
    )


def _partitions(
    partitions: Iterable[TopicPartition], ids: TopicIds, epochs: Mapping[TopicPartition, int] | None = None
) -> bytes:
    """Return partitions by topic, each topic with its partitions' assignment epochs if `epochs` has them."""
    topics = [(topic, list(each)) for topic, each in groupby(sorted(partitions), key=lambda one: one.topic)]
    parts = [_length(len(topics))]
    for topic, each in topics:
        numbers = ByteWriter()
        for one in each:
            numbers.int32(one.partition)
        parts += [ids.id_of(topic), _length(len(each)), numbers.done(), _epochs_tag(each, epochs or {})]
    return b"".join(parts)


def _epochs_tag(partitions: list[TopicPartition], epochs: Mapping[TopicPartition, int]) -> bytes:
    if not all(each in epochs for each in partitions):
        return b"\0"
    numbers = ByteWriter()
    for each in partitions:
        numbers.int32(epochs[each])
    return _tagged(_length(len(partitions)) + numbers.done())


def _read_partitions(reader: ByteReader, ids: TopicIds) -> Partitions:
    return frozenset(partition for partition, _ in _read_held(reader, ids))


def _read_held(reader: ByteReader, ids: TopicIds) -> Iterator[tuple[TopicPartition, int | None]]:
    """Yield the partitions of known topics, each with its assignment epoch, None if it is not stored."""
    for _ in range(reader.array_length(_ID_BYTES)):
        topic = ids.name_of(reader.take(_ID_BYTES))
        numbers = [PartitionId(reader.int32()) for _ in range(reader.array_length(4))]
        epochs: list[int | None] = [*_read_epochs(reader.tags())]
        if len(epochs) != len(numbers):
            epochs = [None] * len(numbers)
        if topic is not None:
            yield from zip((TopicPartition(topic, number) for number in numbers), epochs, strict=True)


def _read_epochs(tags: Mapping[int, bytes]) -> Iterator[int]:
    if 0 in tags:
        reader = ByteReader(tags[0], what="assignment epochs of a member", is_flexible=True)
        yield from (reader.int32() for _ in range(reader.array_length(4)))


def _tagged(data: bytes) -> bytes:
    """Return the encoded tagged fields of a record that has only tag 0."""
    return b"\x01\x00" + _varint(len(data)) + data


def _string(text: str | None) -> bytes:
    if text is None:
        return b"\0"
    encoded = text.encode("utf-8")
    return _length(len(encoded)) + encoded


def _length(count: int) -> bytes:
    """Return a length as flexible versions encode it: plus one, as an unsigned varint."""
    return _varint(count + 1)


def _varint(number: int) -> bytes:
    left, out = number, bytearray()
    while left >= 0x80:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    out.append(left)
    return bytes(out)

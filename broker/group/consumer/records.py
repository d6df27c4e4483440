"""Read and write consumer group records of `__consumer_offsets` in Kafka's binary form.

Example: the first member of a group makes records of versions 5, 4, 3, 7, 6 and 8.

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

from broker.group.assignors import ListedPartitions
from broker.group.consumer.group import ConsumerGroup
from broker.group.consumer.member import NOTHING, ConsumerMember, MemberState
from broker.group.members import InstanceId, MemberId
from broker.group.schemas import CONSUMER_GROUP_RECORDS
from broker.ids import PartitionId, TopicPartition
from broker.units import DurationMs
from broker.wire.fields import UUID_SIZE_BYTES, Fields, Kind, decode_uuid, encode_uuid
from broker.wire.reading import Reader, read_message
from broker.wire.writing import write_versioned

EPOCH: Final = 3
TOPICS: Final = 4
MEMBER: Final = 5
TARGET_EPOCH: Final = 6
TARGET: Final = 7
CURRENT: Final = 8
CONSUMER_KEY_VERSIONS: Final = (EPOCH, TOPICS, MEMBER, TARGET_EPOCH, TARGET, CURRENT)
_VALUE_VERSION: Final = 0
_CLIENT_HOST: Final = "/127.0.0.1"
_STATES: Final = (MemberState.STABLE, MemberState.UNREVOKED_PARTITIONS, MemberState.UNRELEASED_PARTITIONS)


@attrs.frozen
class ConsumerGroupKey:
    """Hold a record's key: group, kind of record (`version`), and member id if the record is about one member."""

    version: int
    group_id: str
    member_id: MemberId | None = None

    def to_bytes(self) -> bytes:
        """Return the key as Kafka writes it."""
        fields: dict[str, str] = {"groupId": self.group_id}
        if self.member_id is not None:
            fields["memberId"] = self.member_id
        schema = CONSUMER_GROUP_RECORDS[self.version].key
        return write_versioned(schema, fields, version=0, shown_version=self.version)


@attrs.frozen
class ConsumerGroupRecord:
    """Hold a record's key and value; a record without a value is a tombstone."""

    key: ConsumerGroupKey
    value: bytes | None


class TopicIds:
    """Map the names of a broker's topics to their ids of 16 bytes, and back."""

    def __init__(self, ids: Mapping[str, bytes]) -> None:
        assert all(len(each) == UUID_SIZE_BYTES for each in ids.values())
        self._ids = dict(ids)
        self._names = {topic_id: name for name, topic_id in ids.items()}

    def id_of(self, topic: str) -> str:
        """Return the id of a topic, as Kafka prints it."""
        return encode_uuid(self._ids[topic])

    def name_of(self, topic_id: str) -> str | None:
        """Return the name of a topic; None when no topic has this id."""
        found = decode_uuid(topic_id)
        assert found is not None, topic_id
        return self._names.get(found)


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
            yield ConsumerGroupRecord(ConsumerGroupKey(MEMBER, group_id, name), _value(MEMBER, _subscription(member)))
    if after.topics != before.topics:
        yield ConsumerGroupRecord(ConsumerGroupKey(TOPICS, group_id), _topics_value(after.topics, ids))
    if after.epoch != before.epoch:
        yield ConsumerGroupRecord(ConsumerGroupKey(EPOCH, group_id), _value(EPOCH, {"epoch": after.epoch}))
    for name in sorted((before.target.keys() - after.target.keys()) & after.members.keys()):
        yield ConsumerGroupRecord(ConsumerGroupKey(TARGET, group_id, name), None)
    for name, share in sorted(after.target.items()):
        if before.target.get(name) != share:
            listed = share.listed if isinstance(share, ListedPartitions) else sorted(share)
            value = _value(TARGET, {"topicPartitions": _by_topic(listed, ids)})
            yield ConsumerGroupRecord(ConsumerGroupKey(TARGET, group_id, name), value)
    if (after.target_epoch, after.target_ms) != (before.target_epoch, before.target_ms):
        fields = {"assignmentEpoch": after.target_epoch, "assignmentTimestamp": after.target_ms or 0}
        yield ConsumerGroupRecord(ConsumerGroupKey(TARGET_EPOCH, group_id), _value(TARGET_EPOCH, fields))
    for name, member in members:
        if name not in before.members or _assignment(member) != _assignment(before.members[name]):
            yield ConsumerGroupRecord(ConsumerGroupKey(CURRENT, group_id, name), _current_value(member, ids))


def group_keys(group_id: str) -> tuple[ConsumerGroupKey, ...]:
    """Return the keys of a group without members, whose tombstones delete it, in Kafka's order."""
    return tuple(ConsumerGroupKey(version, group_id) for version in (TARGET_EPOCH, TOPICS, EPOCH))


def read_consumer_key(data: bytes) -> ConsumerGroupKey | None:
    """Return the consumer group key in `data`, None for any other key; raise CorruptDataError if damaged."""
    reader = Reader(data, source="key of __consumer_offsets")
    version = reader.number(Kind.INT16)
    if version not in CONSUMER_KEY_VERSIONS:
        return None
    fields = read_message(CONSUMER_GROUP_RECORDS[version].key, reader, version=0)
    return ConsumerGroupKey(version, fields["groupId"], fields.get("memberId"))


def applied(group: ConsumerGroup, record: ConsumerGroupRecord, ids: TopicIds) -> ConsumerGroup:
    """Return the group after applying one record; raise CorruptDataError when the value does not fit the key."""
    version, name, data = record.key.version, record.key.member_id, record.value
    if data is None:
        return _removed(group, version, name)
    reader = Reader(data, source="record of a consumer group")
    value_version = reader.number(Kind.INT16)
    if value_version != _VALUE_VERSION:
        raise reader.corrupt(f"version is {value_version}; known is {_VALUE_VERSION}")
    fields = read_message(CONSUMER_GROUP_RECORDS[version].value, reader, version=_VALUE_VERSION)
    if version == EPOCH:
        return attrs.evolve(group, epoch=fields["epoch"])
    if version == TOPICS:
        topics = {each["topicName"]: each["numPartitions"] for each in fields["topics"]}
        return attrs.evolve(group, topics=MappingProxyType(topics))
    if version == TARGET_EPOCH:
        target_ms = fields["assignmentTimestamp"] or None
        return attrs.evolve(group, target_epoch=fields["assignmentEpoch"], target_ms=target_ms)
    assert name is not None, version
    if version == TARGET:
        share = ListedPartitions(_held(fields["topicPartitions"], ids))
        return attrs.evolve(group, target={**group.target, name: share})
    if version == CURRENT and not 0 <= fields["state"] < len(_STATES):
        raise reader.corrupt(f"state of a member is {fields['state']}; known are 0 to {len(_STATES) - 1}")
    known = group.members.get(name, ConsumerMember(member_id=name))
    return group.with_member(_subscribed(known, fields) if version == MEMBER else _assigned(known, fields, ids))


def _removed(group: ConsumerGroup, version: int, name: MemberId | None) -> ConsumerGroup:
    if version == EPOCH:
        return ConsumerGroup(group_id=group.group_id)
    if version == TARGET:
        return attrs.evolve(group, target={each: share for each, share in group.target.items() if each != name})
    if version == MEMBER:
        return attrs.evolve(group, members={each: one for each, one in group.members.items() if each != name})
    if version == CURRENT and name in group.members:
        assert name is not None
        return group.with_member(attrs.evolve(group.members[name], assigned=NOTHING, revoking=NOTHING))
    return group


def _subscription(member: ConsumerMember) -> Fields:
    return {
        "instanceId": member.instance_id,
        "rackId": member.rack,
        "clientId": member.client_id,
        "clientHost": _CLIENT_HOST,
        "subscribedTopicNames": sorted(member.subscribed_topics),
        "subscribedTopicRegex": "",
        "rebalanceTimeoutMs": member.rebalance_timeout_ms,
        "serverAssignor": member.assignor,
    }


def _assignment(member: ConsumerMember) -> tuple[object, ...]:
    epochs = member.assignment_epochs
    return member.epoch, member.previous_epoch, member.state, member.assigned, member.revoking, epochs


def _value(version: int, fields: Fields) -> bytes:
    return write_versioned(CONSUMER_GROUP_RECORDS[version].value, fields, version=_VALUE_VERSION)


def _subscribed(member: ConsumerMember, fields: Fields) -> ConsumerMember:
    return attrs.evolve(
        member,
        instance_id=None if fields["instanceId"] is None else InstanceId(fields["instanceId"]),
        rack=fields["rackId"],
        client_id=fields["clientId"],
        subscribed_topics=frozenset(fields["subscribedTopicNames"]),
        rebalance_timeout_ms=DurationMs(fields["rebalanceTimeoutMs"]),
        assignor=fields["serverAssignor"],
    )


def _topics_value(topics: Mapping[str, int], ids: TopicIds) -> bytes:
    listed = [
        {"topicId": ids.id_of(name), "topicName": name, "numPartitions": count}
        for name, count in sorted(topics.items())
    ]
    return _value(TOPICS, {"topics": listed})


def _current_value(member: ConsumerMember, ids: TopicIds) -> bytes:
    fields = {
        "memberEpoch": member.epoch,
        "previousMemberEpoch": member.previous_epoch,
        "state": _STATES.index(member.state),
        "assignedPartitions": _by_topic(sorted(member.assigned), ids, member.assignment_epochs),
        "partitionsPendingRevocation": _by_topic(sorted(member.revoking), ids, member.assignment_epochs),
    }
    return _value(CURRENT, fields)


def _assigned(member: ConsumerMember, fields: Fields, ids: TopicIds) -> ConsumerMember:
    assigned, revoking = (_held(fields[name], ids) for name in ("assignedPartitions", "partitionsPendingRevocation"))
    since = {partition: at for partition, at in (assigned | revoking).items() if at is not None}
    return attrs.evolve(
        member,
        epoch=fields["memberEpoch"],
        previous_epoch=fields["previousMemberEpoch"],
        state=_STATES[fields["state"]],
        assigned=frozenset(assigned),
        revoking=frozenset(revoking),
        assignment_epochs=since,
    )


def _by_topic(
    partitions: Iterable[TopicPartition], ids: TopicIds, epochs: Mapping[TopicPartition, int] | None = None
) -> list[Fields]:
    """Return partitions by topic in their order, with their assignment epochs where `epochs` has all of a topic's."""
    topics: list[Fields] = []
    for topic, each in groupby(partitions, key=lambda one: one.topic):
        held = list(each)
        fields: dict[str, object] = {"topicId": ids.id_of(topic), "partitions": [one.partition for one in held]}
        if epochs and all(one in epochs for one in held):
            fields["assignmentEpochs"] = tuple(epochs[one] for one in held)
        topics.append(fields)
    return topics


def _held(topics: Iterable[Fields], ids: TopicIds) -> dict[TopicPartition, int | None]:
    """Return the partitions of known topics, each with its assignment epoch, None if it is not stored."""
    held: dict[TopicPartition, int | None] = {}
    for fields in topics:
        topic, numbers = ids.name_of(fields["topicId"]), fields["partitions"]
        epochs = fields.get("assignmentEpochs") or ()
        stored = epochs if len(epochs) == len(numbers) else [None] * len(numbers)
        if topic is not None:
            held |= {TopicPartition(topic, PartitionId(n)): at for n, at in zip(numbers, stored, strict=True)}
    return held

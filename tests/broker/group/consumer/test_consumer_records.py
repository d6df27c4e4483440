"""A consumer group's records are Kafka's to the byte, and whoever applies them has the group again."""

from __future__ import annotations

import attrs
import pytest

from broker.errors import CorruptDataError
from broker.group.consumer import ConsumerGroup, ConsumerMember, MemberState
from broker.group.consumer.records import (
    CURRENT,
    EPOCH,
    MEMBER,
    TARGET,
    TARGET_EPOCH,
    TOPICS,
    ConsumerGroupKey,
    ConsumerGroupRecord,
    TopicIds,
    applied,
    changes,
    read_consumer_key,
)
from broker.group.members import InstanceId, MemberId
from broker.ids import TopicPartition, partition_id
from broker.units import DurationMs

T_ID = bytes(range(16))
IDS = TopicIds({"t": T_ID, "u": bytes(range(16, 32))})
NO_GROUP = ConsumerGroup(group_id="g")


def p(number: int, topic: str = "t") -> TopicPartition:
    return TopicPartition(topic, partition_id(number))


MEMBER_M = ConsumerMember(
    member_id=MemberId("m"),
    instance_id=InstanceId("i"),
    client_id="c",
    subscribed_topics=frozenset({"t", "u"}),
    assignor="uniform",
    rebalance_timeout_ms=DurationMs(300_000),
    state=MemberState.UNREVOKED_PARTITIONS,
    epoch=6,
    previous_epoch=5,
    assigned=frozenset({p(0)}),
    revoking=frozenset({p(2)}),
)
GROUP = ConsumerGroup(
    group_id="g",
    epoch=7,
    target_epoch=6,
    members={MEMBER_M.member_id: MEMBER_M},
    target={MEMBER_M.member_id: frozenset({p(0), p(2)})},
    topics={"t": 3},
)


def test_values_are_those_of_kafkas_own_classes() -> None:
    """Printed by MessageUtil.toVersionPrefixedBytes of kafka-group-coordinator 4.0.1."""
    values = {record.key.version: (record.value or b"").hex() for record in changes(NO_GROUP, GROUP, IDS)}
    assert values == {
        MEMBER: "000002690002630b2f3132372e302e302e31030274027501000493e008756e69666f726d00",
        TOPICS: "000002000102030405060708090a0b0c0d0e0f027400000003010000",
        EPOCH: "00000000000700",
        TARGET: "000002000102030405060708090a0b0c0d0e0f0300000000000000020000",
        TARGET_EPOCH: "00000000000600",
        CURRENT: "000000000006000000050102000102030405060708090a0b0c0d0e0f0200000000000200010203040506070809"
        "0a0b0c0d0e0f02000000020000",
    }


def test_a_key_of_another_kind_is_none() -> None:
    assert read_consumer_key(bytes.fromhex("0002000167")) is None


def test_records_of_a_change_come_in_kafkas_order() -> None:
    versions = [record.key.version for record in changes(NO_GROUP, GROUP, IDS)]
    assert versions == [MEMBER, TOPICS, EPOCH, TARGET, TARGET_EPOCH, CURRENT]


def test_a_member_that_goes_leaves_three_tombstones_and_a_new_epoch() -> None:
    records = changes(GROUP, GROUP.without_member(MEMBER_M.member_id), IDS)
    assert [(record.key.version, record.value is None) for record in records] == [
        (CURRENT, True),
        (TARGET, True),
        (MEMBER, True),
        (EPOCH, False),
    ]


def test_partitions_of_a_topic_that_is_gone_are_left_out() -> None:
    group = NO_GROUP
    for record in changes(NO_GROUP, GROUP, IDS):
        group = applied(group, record, TopicIds({}))
    assert group.members[MEMBER_M.member_id].assigned == frozenset()
    assert group.target[MEMBER_M.member_id] == frozenset()


@pytest.mark.parametrize("rack", ["", "r"])
def test_the_racks_of_partitions_are_read_over_however_many_and_short_they_are(rack: str) -> None:
    """PartitionMetadata.Racks, which Kafka before 4.1 may write: here one partition with nine racks."""
    racks = bytes([9 + 1]) + (bytes([len(rack) + 1]) + rack.encode()) * 9
    value = bytes.fromhex("000002") + T_ID + bytes.fromhex("02740000000302") + bytes(4) + racks + bytes(3)
    group = applied(NO_GROUP, ConsumerGroupRecord(ConsumerGroupKey(TOPICS, "g"), value), IDS)
    assert dict(group.topics) == {"t": 3}


def test_a_list_of_names_is_refused_only_if_its_bytes_cannot_hold_as_many() -> None:
    """Kafka's readers compare the claimed length with the bytes that are left; nine names may be of one byte each."""
    value = bytes.fromhex("00000000026302680a") + b"\x01" * 9 + bytes(7)
    record = ConsumerGroupRecord(ConsumerGroupKey(MEMBER, "g", MemberId("m")), value)
    assert applied(NO_GROUP, record, IDS).members[MemberId("m")].subscribed_topics == {""}
    with pytest.raises(CorruptDataError, match="a length of 17 does not fit into the 16 bytes"):
        applied(NO_GROUP, attrs.evolve(record, value=value[:8] + bytes([18]) + value[9:]), IDS)


@pytest.mark.parametrize("value", ["000100000007", "0000000000", "00", "000000000007", "00000000000701"])
def test_a_damaged_value_is_refused(value: str) -> None:
    with pytest.raises(CorruptDataError):
        applied(NO_GROUP, ConsumerGroupRecord(ConsumerGroupKey(EPOCH, "g"), bytes.fromhex(value)), IDS)


def test_an_unknown_state_of_a_member_is_refused_in_one_sentence() -> None:
    record = changes(NO_GROUP, GROUP, IDS)[-1]
    assert record.value is not None
    damaged = record.value[:10] + b"\x09" + record.value[11:]
    with pytest.raises(CorruptDataError, match="state of a member is 9; known are 0 to 2"):
        applied(NO_GROUP, attrs.evolve(record, value=damaged), IDS)

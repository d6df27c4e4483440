"""What a coordinator has stored, another one reads: through the bytes, and the newest of each key."""

from __future__ import annotations

import attrs

from broker.group.consumer import ConsumerGroup
from broker.group.consumer.member import ConsumerMember, MemberState
from broker.group.members import InstanceId, MemberId
from broker.group.service import GroupEntry
from broker.ids import TopicPartition, partition_id
from broker.units import DurationMs
from replication.groups.alone.stored_records import StoredRecords

A, B = MemberId("a"), MemberId("b")


def t(number: int, topic: str = "t") -> TopicPartition:
    return TopicPartition(topic, partition_id(number))


def member(name: MemberId, *held: TopicPartition, epoch: int = 1) -> ConsumerMember:
    return ConsumerMember(
        member_id=name,
        instance_id=InstanceId(f"i-{name}"),
        client_id="c",
        subscribed_topics=frozenset({"t", "u"}),
        assignor="uniform",
        rebalance_timeout_ms=DurationMs(300_000),
        state=MemberState.UNRELEASED_PARTITIONS,
        epoch=epoch,
        previous_epoch=epoch - 1,
        assigned=frozenset(held),
    )


def group(*members: ConsumerMember, epoch: int) -> ConsumerGroup:
    return ConsumerGroup(
        group_id="g",
        epoch=epoch,
        target_epoch=epoch,
        members={each.member_id: each for each in members},
        target={each.member_id: each.assigned for each in members},
        topics={"t": 3, "u": 1},
    )


def read(journal: StoredRecords) -> list[GroupEntry]:
    return list(journal.entries())


def test_a_consumer_group_is_read_back_as_it_was_written_last() -> None:
    journal = StoredRecords()
    states = (
        group(member(A, t(0), t(1), t(0, "u")), epoch=1),
        group(member(A, t(0)), member(B, t(1), epoch=2), epoch=2),
        group(member(B, t(0), t(1), t(2), epoch=3), epoch=3),
        attrs.evolve(group(epoch=4), target={}),
    )
    for state in states:
        journal.append((state,))
        assert read(journal) == [state]


def test_what_is_read_of_a_consumer_group_comes_from_the_bytes() -> None:
    journal = StoredRecords()
    journal.append((group(member(A, t(0)), epoch=1),))
    (key,) = [key for key in journal._values if key[:2] == b"\0\x08"]
    del journal._values[key]
    (found,) = read(journal)
    assert isinstance(found, ConsumerGroup)
    assert (found.members[A].assigned, found.target[A]) == (frozenset(), frozenset({t(0)}))


def test_a_topic_that_the_group_reads_no_more_is_still_known_where_a_member_holds_it() -> None:
    journal = StoredRecords()
    journal.append((group(member(A, t(0, "u")), epoch=1),))
    after = attrs.evolve(group(member(A, t(0, "u"), epoch=2), epoch=2), topics={"t": 3})
    journal.append((after,))
    assert read(journal) == [after]

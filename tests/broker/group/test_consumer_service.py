"""What a service stores, answers and forgets for the members of a consumer group."""

from __future__ import annotations

import pytest

from broker.error_codes import ErrorCode
from broker.group.consumer import ConsumerGroupHeartbeatResponse
from broker.group.members import MemberId
from broker.group.messages import OffsetCommitRequest, OffsetCommitResponse, OffsetFetchRequest, OffsetFetchResponse
from broker.group.offsets import Commit
from broker.group.service import EXPIRY_CHECK_MS
from broker.ids import Offset, PartitionId, TopicPartition
from tests.broker.group.test_service import P0, Driver, beat

A, B = MemberId("a"), MemberId("b")
OTHER = TopicPartition("u", PartitionId(0))
LONG = "x" * 4097
"""One character more than offset.metadata.max.bytes allows."""


def joined(driver: Driver, name: MemberId) -> int:
    """Bring a member in and return its epoch."""
    ticket = beat(driver, member_id=name)
    driver.store()
    answer = driver.replies[ticket]
    assert isinstance(answer, ConsumerGroupHeartbeatResponse)
    return answer.epoch


def commit(driver: Driver, name: MemberId, epoch: int, *commits: Commit) -> tuple[ErrorCode, ...]:
    ticket = driver.send(OffsetCommitRequest(commits=commits, member_id=name, generation=epoch))
    driver.store()
    answer = driver.replies[ticket]
    assert isinstance(answer, OffsetCommitResponse)
    return answer.errors


def test_a_heartbeat_that_changes_nothing_stores_nothing_and_is_answered_at_once() -> None:
    driver = Driver()
    epoch = joined(driver, A)
    again = beat(driver, member_id=A, epoch=epoch, owned=frozenset({P0}))
    assert driver.appends == []
    assert again in driver.replies


@pytest.mark.parametrize(
    ("commits", "errors"),
    [
        ((Commit(P0, Offset(1)),), (ErrorCode.NONE,)),
        ((Commit(OTHER, Offset(1)),), (ErrorCode.STALE_MEMBER_EPOCH,)),
        ((Commit(P0, Offset(1)), Commit(OTHER, Offset(1))), (ErrorCode.STALE_MEMBER_EPOCH,) * 2),
        (
            (Commit(P0, Offset(1)), Commit(OTHER, Offset(1), metadata=LONG)),
            (ErrorCode.NONE, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ),
        ((Commit(P0, Offset(1), metadata=LONG),), (ErrorCode.STALE_MEMBER_EPOCH,)),
    ],
)
def test_a_commit_of_a_former_epoch_is_judged_by_the_partitions_whose_notes_are_short_enough(
    commits: tuple[Commit, ...], errors: tuple[ErrorCode, ...]
) -> None:
    """KIP-1251: a holds P0 since its first epoch, and is in a later one since b came and a second went by."""
    driver = Driver()
    driver.at(1_000)
    first = joined(driver, A)
    driver.at(3_000)
    joined(driver, B)
    beat(driver, member_id=A, epoch=first, owned=frozenset({P0}))
    driver.store()
    assert driver.service.consumer.group.members[A].epoch > first
    assert commit(driver, A, first, *commits) == errors


def test_a_consumer_group_keeps_the_offsets_of_the_topics_that_it_reads_and_no_others() -> None:
    """KIP-211, ConsumerGroup.offsetExpirationCondition: others age from their commit, also while there are members."""
    driver = Driver()
    epoch = joined(driver, A)
    assert commit(driver, A, epoch, Commit(P0, Offset(7)), Commit(OTHER, Offset(8))) == (ErrorCode.NONE,) * 2
    while driver.now_ms < EXPIRY_CHECK_MS:
        driver.at(driver.now_ms + 30_000)
        beat(driver, member_id=A, epoch=epoch, owned=frozenset({P0}))
    driver.store()
    answer = driver.replies[driver.send(OffsetFetchRequest(partitions=(P0, OTHER)))]
    assert answer == OffsetFetchResponse((Offset(7), None))

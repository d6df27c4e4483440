"""What an application's polls do: read, fetch offsets, commit; and what waits for them."""

from __future__ import annotations

import pytest

from broker.error_codes import ErrorCode
from broker.group.consumer import ConsumerGroupHeartbeatRequest
from broker.group.messages import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from broker.ids import BrokerId, Offset, TopicPartition
from replication.groups.client.messages import Committed, Died, Disconnected, PartitionsRevoked, Read, Response, Why
from tests.replication.groups.client.script import (
    BOTH,
    P0,
    P1,
    Growing,
    accepted,
    classic,
    consumer,
    consumer_told_to_give_back,
    hear,
    joined,
    settled,
)

NONE = OffsetCommitResponse((ErrorCode.NONE,) * 2)


@pytest.mark.parametrize("at_work", [True, False])
def test_a_rebalance_waits_for_the_next_poll_of_an_application_that_is_at_work(at_work: bool) -> None:
    """An application at work is not in KafkaConsumer.poll, in which alone a classic member joins."""
    script = joined(classic(feed=Growing() if at_work else None))
    script.at(3_100)
    hear(script, ErrorCode.REBALANCE_IN_PROGRESS)
    assert script.has_asked(OffsetCommitRequest) == (not at_work)
    script.at(3_500)
    assert script.has_asked(OffsetCommitRequest)


def test_an_application_reads_nothing_while_it_runs_its_rebalance_listener() -> None:
    """The listener runs on the application's thread, within poll; 700 ms later the partition is given up."""
    script = consumer_told_to_give_back(feed=Growing(), revoke_ms=700)
    script.answer(OffsetCommitRequest, NONE)
    script.at(5_500)
    count = len(script.of(Read))
    script.at(6_199)
    assert (len(script.of(Read)), script.of(PartitionsRevoked)) == (count, [])
    script.at(6_700)
    assert script.of(PartitionsRevoked) == [PartitionsRevoked(frozenset({P1}), Why.REVOKED)]
    assert {read.partition for read in script.of(Read)[count:]} == {P0}


@pytest.mark.parametrize(
    ("first", "second", "third", "missing"),
    [
        ((P0, P1), (P0, P1), (P0,), P1),
        ((P0, P1), (P0,), (P0, P1), P1),
        ((P0,), (P0, P1), (P0,), None),
        ((), (P0, P1), (P0,), P1),
    ],
)
def test_an_application_that_remembers_its_first_partitions_fails_without_one_of_them(
    first: tuple[TopicPartition, ...],
    second: tuple[TopicPartition, ...],
    third: tuple[TopicPartition, ...],
    missing: TopicPartition | None,
) -> None:
    """SPARK-22968: KafkaConsumer.position throws for a partition that is not assigned."""
    script = consumer(remembers=1)
    for epoch, partitions in enumerate((first, second, third), start=1):
        script.answer(ConsumerGroupHeartbeatRequest, accepted(epoch, *partitions))
        script.at(script.now_ms + 1_000)
        while script.has_asked(OffsetCommitRequest):
            count = len(script.asked(OffsetCommitRequest).commits)
            script.answer(OffsetCommitRequest, OffsetCommitResponse((ErrorCode.NONE,) * count))
        script.at(script.now_ms + 1_000)
        while script.has_asked(OffsetFetchRequest):
            count = len(script.asked(OffsetFetchRequest).partitions)
            script.answer(OffsetFetchRequest, OffsetFetchResponse((None,) * count))
        if script.client.is_over:
            break
        script.at(script.now_ms + 6_000)
    script.at(script.now_ms + 1_000)
    died = [] if missing is None else [Died(f"IllegalStateException: No current assignment for partition {missing}")]
    assert script.of(Died) == died


def test_what_is_about_to_be_revoked_is_not_read_while_it_is_committed() -> None:
    """AbstractMembershipManager.maybeReconcile, 4.3.1, marks it as pending revocation before the commit."""
    script = consumer_told_to_give_back(feed=Growing())
    count = len(script.of(Read))
    script.at(9_000)
    assert {read.partition for read in script.of(Read)[count:]} == {P0}
    assert script.of(PartitionsRevoked) == []


@pytest.mark.parametrize(
    ("answer", "is_elsewhere"),
    [
        (OffsetFetchResponse(error=ErrorCode.NOT_COORDINATOR), True),
        (OffsetFetchResponse(error=ErrorCode.COORDINATOR_NOT_AVAILABLE), True),
        (Disconnected(), True),
        (OffsetFetchResponse(error=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), False),
    ],
)
def test_offsets_that_were_not_fetched_are_fetched_again_from_the_coordinator(
    answer: Response, is_elsewhere: bool
) -> None:
    """OffsetFetchResponseHandler: a coordinator that loads is asked again; one that is gone is looked for."""
    script = settled(consumer(), offsets=answer)
    script.at(1_000)
    assert script.has_asked(OffsetFetchRequest) == (not is_elsewhere)
    if is_elsewhere:
        script.at(5_000)
        script.answer(FindCoordinatorRequest, FindCoordinatorResponse(BrokerId(2)))
        script.at(5_500)
    assert [send.broker for send in script.open if isinstance(send.request, OffsetFetchRequest)] == [1 + is_elsewhere]
    script.answer(OffsetFetchRequest, OffsetFetchResponse((Offset(7), None)))
    script.at(6_500)
    assert script.of(Read) == [Read(P0, Offset(7), Offset(10)), Read(P1, Offset(0), Offset(10))]


def test_a_member_without_a_coordinator_looks_for_it_to_commit() -> None:
    """Its next heartbeat is far away: of a consumer group, the coordinator tells the interval."""
    script = settled(consumer(), interval_ms=60_000)
    script.at(5_500)
    script.answer(OffsetCommitRequest, OffsetCommitResponse((ErrorCode.NOT_COORDINATOR,) * 2))
    script.at(6_500)
    assert script.has_asked(FindCoordinatorRequest)


def test_a_commit_before_partitions_are_given_up_is_repeated_by_the_coordinator_that_is_found() -> None:
    """CommitRequestManager: the commit waits for a coordinator, and the partitions for the commit."""
    script = consumer_told_to_give_back()
    script.answer(OffsetCommitRequest, Disconnected())
    script.at(5_100)
    script.answer(FindCoordinatorRequest, FindCoordinatorResponse(BrokerId(2)))
    script.at(5_200)
    assert [send.broker for send in script.open if isinstance(send.request, OffsetCommitRequest)] == [2]
    assert script.of(PartitionsRevoked) == []
    script.answer(OffsetCommitRequest, NONE)
    assert script.of(PartitionsRevoked) == [PartitionsRevoked(frozenset({P1}), Why.REVOKED)]


def test_a_commit_without_an_answer_is_noted_as_timed_out_for_each_partition() -> None:
    script = joined(classic())
    script.at(5_500)
    script.answer(OffsetCommitRequest, Disconnected())
    late = ErrorCode.REQUEST_TIMED_OUT
    assert script.of(Committed) == [Committed(each, Offset(10), late) for each in sorted(BOTH)]

"""The client machines by themselves: tables, and what they say in front of scripted answers."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import TypeVar

import pytest

from broker.error_codes import ErrorCode
from broker.errors import UsageError
from broker.group.classic import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    MemberId,
    SyncGroupRequest,
    SyncGroupResponse,
)
from broker.group.consumer import ConsumerGroupHeartbeatRequest
from broker.group.messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from broker.group.protocol import read_subscription, write_assignment
from broker.ids import Offset
from broker.machines import step
from replication.groups.client.classic_client import JOIN_TRANSITIONS, JoinInput, JoinState
from replication.groups.client.consumer_client import EPOCH_TRANSITIONS, EpochInput, EpochState
from replication.groups.client.messages import (
    Committed,
    PartitionsRevoked,
    PollExpired,
    Read,
    TopicMetadataRequest,
    TopicMetadataResponse,
    Why,
)
from tests.replication.groups.client.script import (
    BOTH,
    P0,
    P1,
    accepted,
    classic,
    consumer,
    consumer_told_to_give_back,
    hear,
    in_generation,
    joined,
    joining_again,
    kept,
    leading,
    leaves,
)

State = TypeVar("State", bound=enum.Enum)
Input = TypeVar("Input", bound=enum.Enum)


def all_pairs(
    table: Mapping[tuple[State, Input], State], states: type[State], inputs: type[Input]
) -> tuple[set[tuple[State, Input]], set[tuple[State, Input]]]:
    """Return the pairs that are taken, and those that are refused."""
    taken, refused = set(), set()
    for state in states:
        for event in inputs:
            try:
                step(table, state, event, what="member")
                taken.add((state, event))
            except UsageError:
                refused.add((state, event))
    return taken, refused


def test_a_classic_member_is_synced_only_after_it_joined() -> None:
    taken, refused = all_pairs(JOIN_TRANSITIONS, JoinState, JoinInput)
    assert {state for state, event in taken if event is JoinInput.SYNCED} == {JoinState.COMPLETING_REBALANCE}
    assert {state for state, event in taken if event is JoinInput.JOINED} == {JoinState.PREPARING_REBALANCE}
    assert len(taken) + len(refused) == len(JoinState) * len(JoinInput)


def test_a_consumer_member_that_failed_takes_nothing_any_more() -> None:
    taken, refused = all_pairs(EPOCH_TRANSITIONS, EpochState, EpochInput)
    assert not {event for state, event in taken if state is EpochState.FATAL}
    assert {state for state, event in taken if event is EpochInput.RECONCILED} == {EpochState.RECONCILING}
    assert len(taken) + len(refused) == len(EpochState) * len(EpochInput)


def test_a_classic_member_reads_from_what_was_committed_and_commits_what_it_read_five_seconds_later() -> None:
    script = joined(classic())
    script.at(600)
    assert script.of(Read) == [Read(P0, Offset(4), Offset(10)), Read(P1, Offset(0), Offset(10))]
    script.at(5_600)
    request = script.asked(OffsetCommitRequest)
    assert ([commit.offset for commit in request.commits], request.generation) == ([10, 10], 1)


def test_an_eager_member_commits_and_gives_up_everything_before_it_joins_again() -> None:
    script = joined(classic())
    script.at(3_100)
    hear(script, ErrorCode.REBALANCE_IN_PROGRESS)
    script.at(3_600)
    assert not script.has_asked(JoinGroupRequest)
    script.answer(OffsetCommitRequest, OffsetCommitResponse((ErrorCode.NONE, ErrorCode.NONE)))
    assert script.of(PartitionsRevoked) == [PartitionsRevoked(BOTH, Why.REVOKED)]
    assert read_subscription(script.asked(JoinGroupRequest).protocols[0].metadata).owned == ()


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_a_member_repeats_its_commit_before_it_joins_until_max_poll_interval(assignor: str) -> None:
    """ConsumerCoordinator.onJoinPrepare: a commit that may succeed is sent again; at the end it joins without."""
    script = joined(classic(assignor, max_poll_interval_ms=2_000))
    script.at(3_100)
    hear(script, ErrorCode.REBALANCE_IN_PROGRESS)
    for now_ms in range(3_100, 5_100, 100):
        script.at(now_ms)
        assert not script.has_asked(JoinGroupRequest)
        loading = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,) * 2
        script.answer(OffsetCommitRequest, OffsetCommitResponse(loading))
    script.at(5_100)
    script.answer(OffsetCommitRequest, OffsetCommitResponse(loading))
    assert script.has_asked(JoinGroupRequest)
    gone = [PartitionsRevoked(BOTH, Why.REVOKED)] if assignor == "range" else []
    assert script.of(PartitionsRevoked) == gone


def test_a_cooperative_member_joins_again_with_all_it_has_and_gives_up_what_it_is_not_given() -> None:
    script, request = joining_again()
    subscription = read_subscription(request.protocols[0].metadata)
    assert (subscription.owned, subscription.generation, script.of(PartitionsRevoked)) == ((P0, P1), 1, [])
    script.answer(JoinGroupRequest, in_generation(2, request))
    script.answer(SyncGroupRequest, SyncGroupResponse(ticket=request.ticket, assignment=write_assignment({P0})))
    script.at(4_200)
    assert script.of(PartitionsRevoked) == [PartitionsRevoked(frozenset({P1}), Why.REVOKED)]
    script.answer(OffsetCommitRequest, OffsetCommitResponse((ErrorCode.NONE,)))
    assert read_subscription(script.asked(JoinGroupRequest).protocols[0].metadata).owned == (P0,)


def test_a_member_that_is_told_that_it_is_none_loses_everything_without_a_commit() -> None:
    script = joined(classic())
    script.at(3_100)
    hear(script, ErrorCode.UNKNOWN_MEMBER_ID)
    script.at(3_600)
    assert script.of(PartitionsRevoked) == [PartitionsRevoked(BOTH, Why.LOST)]
    assert not script.has_asked(OffsetCommitRequest)
    assert script.asked(JoinGroupRequest).member_id == ""


@pytest.mark.parametrize("instance_id", [None, "i"])
def test_a_dynamic_member_says_that_it_leaves_and_a_static_one_does_not(instance_id: str | None) -> None:
    script = joined(classic(instance_id=instance_id))
    script.at(600)
    script.close()
    assert not script.has_asked(LeaveGroupRequest)
    script.answer(OffsetCommitRequest, OffsetCommitResponse((ErrorCode.NONE, ErrorCode.NONE)))
    assert script.has_asked(LeaveGroupRequest) == (instance_id is None)
    assert script.client.is_over


def test_the_leader_assigns_by_the_partitions_that_it_asks_for() -> None:
    """Partition counts are metadata, which any broker has."""
    script = classic()
    leading(script)
    assert [send.broker for send in script.sent if isinstance(send.request, TopicMetadataRequest)] == [None]
    assert script.asked(SyncGroupRequest).assignments == ((MemberId("m"), write_assignment(BOTH)),)


def test_who_led_a_former_generation_no_longer_looks_at_the_topics() -> None:
    script = classic("cooperative-sticky")
    request = leading(script)
    script.answer(SyncGroupRequest, SyncGroupResponse(ticket=request.ticket, assignment=write_assignment(BOTH)))
    script.answer(OffsetFetchRequest, OffsetFetchResponse((Offset(4), None)))
    script.at(3_100)
    hear(script, ErrorCode.REBALANCE_IN_PROGRESS)
    script.at(3_600)
    script.answer(OffsetCommitRequest, OffsetCommitResponse((ErrorCode.NONE, ErrorCode.NONE)))
    again = script.asked(JoinGroupRequest)
    script.answer(JoinGroupRequest, in_generation(2, again))
    script.answer(SyncGroupRequest, SyncGroupResponse(ticket=again.ticket, assignment=write_assignment(BOTH)))
    for now_ms in range(6_600, 700_000, 3_000):
        script.at(now_ms)
        for kind in (HeartbeatRequest, OffsetCommitRequest):
            if script.has_asked(kind) and kind is HeartbeatRequest:
                hear(script)
            elif script.has_asked(kind):
                script.answer(OffsetCommitRequest, OffsetCommitResponse((ErrorCode.NONE, ErrorCode.NONE)))
    assert script.client.generation == 2
    assert not script.has_asked(TopicMetadataRequest)


def test_partition_counts_that_come_when_another_leads_change_nothing() -> None:
    script = classic("cooperative-sticky")
    request = leading(script)
    script.answer(SyncGroupRequest, SyncGroupResponse(ticket=request.ticket, assignment=write_assignment(BOTH)))
    script.answer(OffsetFetchRequest, OffsetFetchResponse((Offset(4), None)))
    while not script.has_asked(TopicMetadataRequest):
        script.at(script.now_ms + 3_000)
        hear(script)
        if script.has_asked(OffsetCommitRequest):
            script.answer(OffsetCommitRequest, OffsetCommitResponse((ErrorCode.NONE, ErrorCode.NONE)))
    script.at(script.now_ms + 3_000)
    hear(script, ErrorCode.REBALANCE_IN_PROGRESS)
    script.at(script.now_ms + 500)
    script.answer(OffsetCommitRequest, OffsetCommitResponse((ErrorCode.NONE, ErrorCode.NONE)))
    again = script.asked(JoinGroupRequest)
    script.answer(JoinGroupRequest, in_generation(2, again))
    script.answer(SyncGroupRequest, SyncGroupResponse(ticket=again.ticket, assignment=write_assignment(BOTH)))
    script.answer(TopicMetadataRequest, TopicMetadataResponse({"t": 3}))
    script.at(script.now_ms + 1_000)
    assert (script.client.generation, script.has_asked(JoinGroupRequest)) == (2, False)


def test_a_consumer_member_acknowledges_what_it_was_given_at_once() -> None:
    script = consumer()
    first = script.asked(ConsumerGroupHeartbeatRequest)
    assert (first.epoch, first.owned, first.subscribed_topics) == (0, frozenset(), frozenset({"t"}))
    script.answer(ConsumerGroupHeartbeatRequest, accepted(1, P0, P1))
    second = script.asked(ConsumerGroupHeartbeatRequest)
    assert (second.epoch, second.owned, second.subscribed_topics) == (1, BOTH, None)


def test_a_consumer_member_commits_before_it_gives_a_partition_back() -> None:
    script = consumer_told_to_give_back()
    assert script.of(PartitionsRevoked) == []
    script.answer(OffsetCommitRequest, OffsetCommitResponse((ErrorCode.NONE, ErrorCode.NONE)))
    assert script.of(PartitionsRevoked) == [PartitionsRevoked(frozenset({P1}), Why.REVOKED)]
    assert script.asked(ConsumerGroupHeartbeatRequest).owned == frozenset({P0})


def test_a_consumer_member_repeats_its_commit_before_it_gives_a_partition_back_until_max_poll_interval() -> None:
    """CommitRequestManager: a commit that may succeed is sent again before the deadline, and not as it passes."""
    script = consumer_told_to_give_back(max_poll_interval_ms=2_000)
    loading = OffsetCommitResponse((ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,) * 2)
    for now_ms in range(5_000, 7_100, 100):
        assert script.of(PartitionsRevoked) == []
        script.at(now_ms)
        while script.has_asked(OffsetCommitRequest):
            script.answer(OffsetCommitRequest, loading)
    assert script.of(PartitionsRevoked) == [PartitionsRevoked(frozenset({P1}), Why.REVOKED)]


def test_a_consumer_member_reconciles_one_target_at_a_time_and_acknowledges_the_last_one() -> None:
    """AbstractMembershipManager.maybeReconcile; the same partitions given again are another assignment, KIP-848."""
    script = consumer()
    script.answer(ConsumerGroupHeartbeatRequest, accepted(1, P0, P1))
    script.answer(OffsetFetchRequest, OffsetFetchResponse((None, None)))
    script.answer(ConsumerGroupHeartbeatRequest, kept(1))
    script.at(5_000)
    commits = OffsetCommitResponse((ErrorCode.NONE, ErrorCode.NONE))
    script.answer(OffsetCommitRequest, commits)
    for epoch, target, at_ms in ((2, (P0,), 10_000), (3, (P0, P1), 15_000), (4, (P0,), 15_000)):
        open_count = len(script.open)
        script.answer(ConsumerGroupHeartbeatRequest, accepted(epoch, *target))
        # Its last commit before it gives up P1 is under way from the first of these answers on.
        assert len(script.open) == open_count - 1 + (epoch == 2)
        script.at(at_ms)
    script.answer(OffsetCommitRequest, commits)
    acknowledged = []
    while script.has_asked(ConsumerGroupHeartbeatRequest):
        acknowledged.append(script.asked(ConsumerGroupHeartbeatRequest).owned)
        script.answer(ConsumerGroupHeartbeatRequest, kept(4))
    assert acknowledged == [frozenset({P0})] * 2
    assert script.of(PartitionsRevoked) == [PartitionsRevoked(frozenset({P1}), Why.REVOKED)]


def test_a_first_assignment_of_nothing_waits_for_the_rebalance_listener_too() -> None:
    """Kafka calls onPartitionsAssigned with no partitions, on the application's thread, before it acknowledges."""
    script = consumer(revoke_ms=100)
    script.stall(2_000)
    script.answer(ConsumerGroupHeartbeatRequest, accepted(1))
    script.at(1_900)
    assert not script.has_asked(ConsumerGroupHeartbeatRequest)
    script.at(2_000)
    assert script.asked(ConsumerGroupHeartbeatRequest).owned == frozenset()


def test_a_consumer_member_beats_in_the_interval_that_it_was_told_last() -> None:
    script = consumer()
    script.answer(ConsumerGroupHeartbeatRequest, accepted(1, P0))
    script.answer(ConsumerGroupHeartbeatRequest, kept(1, interval_ms=20_000))
    script.at(19_900)
    assert not script.has_asked(ConsumerGroupHeartbeatRequest)
    script.at(20_000)
    assert script.has_asked(ConsumerGroupHeartbeatRequest)


def test_a_fenced_consumer_member_loses_everything_and_joins_with_epoch_zero_under_its_name() -> None:
    script = consumer()
    script.answer(ConsumerGroupHeartbeatRequest, accepted(1, P0, P1))
    script.answer(ConsumerGroupHeartbeatRequest, accepted(1, error=ErrorCode.FENCED_MEMBER_EPOCH))
    assert script.of(PartitionsRevoked) == [PartitionsRevoked(BOTH, Why.LOST)]
    again = script.asked(ConsumerGroupHeartbeatRequest)
    assert (again.epoch, again.member_id) == (0, "m")


def test_a_refused_commit_is_noted_with_its_error() -> None:
    script = joined(classic())
    script.at(5_600)
    script.answer(
        OffsetCommitRequest, OffsetCommitResponse((ErrorCode.ILLEGAL_GENERATION, ErrorCode.ILLEGAL_GENERATION))
    )
    assert [note.error for note in script.of(Committed)] == [ErrorCode.ILLEGAL_GENERATION] * 2
    script.at(6_200)
    assert script.of(PartitionsRevoked) == [PartitionsRevoked(BOTH, Why.LOST)]
    assert script.asked(JoinGroupRequest).member_id == "m", "the name is still good"


@pytest.mark.parametrize("is_classic", [True, False])
def test_a_consumer_that_closes_too_long_after_its_last_poll_leaves_before_its_commit_is_answered(
    is_classic: bool,
) -> None:
    """Kafka's background thread watches max.poll.interval.ms until the commit of `close` is over."""
    script = joined(classic()) if is_classic else consumer()
    beaten = accepted(1, P0, P1)
    if not is_classic:
        script.answer(ConsumerGroupHeartbeatRequest, beaten)
        script.answer(OffsetFetchRequest, OffsetFetchResponse((None, None)))
    script.at(600)
    script.stall(400_000)
    for now_ms in range(3_100, 299_000, 3_000):
        script.at(now_ms)
        if is_classic:
            hear(script)
        elif script.has_asked(ConsumerGroupHeartbeatRequest):
            script.answer(ConsumerGroupHeartbeatRequest, beaten)
    script.close()
    assert (script.of(PollExpired), leaves(script)) == ([], 0)
    script.at(300_600)
    assert (script.of(PollExpired), leaves(script), script.client.is_over) == ([PollExpired()], 1, False)
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    script.answer(OffsetCommitRequest, OffsetCommitResponse((unknown, unknown)))
    assert (leaves(script), script.client.is_over) == (1, True)

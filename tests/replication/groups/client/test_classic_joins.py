"""When a classic member joins, as whom and with what, and which answers of a former generation it heeds."""

from __future__ import annotations

import attrs
import pytest

from broker.error_codes import ErrorCode
from broker.group.classic import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)
from broker.group.members import MemberId
from broker.group.messages import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
)
from broker.group.protocol import write_assignment
from broker.ids import BrokerId
from replication.groups.client.messages import (
    Disconnected,
    PartitionsRevoked,
    PollExpired,
    Read,
    RebalanceFailed,
    TopicMetadataRequest,
    TopicMetadataResponse,
    Why,
)
from tests.replication.groups.client.script import (
    BOTH,
    P0,
    Growing,
    Script,
    classic,
    hear,
    in_generation,
    joined,
)

NONE = OffsetCommitResponse((ErrorCode.NONE,) * 2)


def called(script: Script, now_ms: int = 3_100) -> Script:
    """Tell a member of a rebalance, by its heartbeat, and let its application poll."""
    script.at(now_ms)
    hear(script, ErrorCode.REBALANCE_IN_PROGRESS)
    script.at(now_ms + 500)
    return script


def joins(script: Script) -> JoinGroupRequest:
    """Answer the commit of a member that was called; return how it joins, at its next poll."""
    script.answer(OffsetCommitRequest, NONE)
    script.at(script.now_ms + 500)
    return script.asked(JoinGroupRequest)


def given(script: Script, request: JoinGroupRequest, *partitions: object) -> None:
    """Answer a member's SyncGroup."""
    script.answer(SyncGroupRequest, SyncGroupResponse(ticket=request.ticket, assignment=write_assignment(partitions)))


def test_an_eager_member_reads_nothing_while_it_commits_before_it_joins() -> None:
    """ConsumerCoordinator.maybeMarkPartitionsPendingRevocation: a position does not go ahead of the last commit."""
    script = called(joined(classic(feed=Growing())))
    count = len(script.of(Read))
    script.at(6_000)
    assert len(script.of(Read)) == count
    script.answer(OffsetCommitRequest, NONE)
    assert script.of(PartitionsRevoked) == [PartitionsRevoked(BOTH, Why.REVOKED)]


def test_a_cooperative_member_reads_on_while_it_joins() -> None:
    """KIP-429: who keeps its partitions goes on with them; it commits them again when it has joined."""
    script = called(joined(classic("cooperative-sticky", feed=Growing())))
    joins(script)
    count = len(script.of(Read))
    script.at(15_000)
    assert len(script.of(Read)) > count + 10
    assert not script.has_asked(OffsetCommitRequest)


def test_a_member_of_generation_zero_is_in_a_generation() -> None:
    """AbstractCoordinator: -1 alone stands for none. What it owns is asked back, not lost."""
    script = called(joined(classic(), generation=0))
    joins(script)
    assert script.of(PartitionsRevoked) == [PartitionsRevoked(BOTH, Why.REVOKED)]


@pytest.mark.parametrize("error", [ErrorCode.NOT_COORDINATOR, ErrorCode.NONE])
def test_the_answer_to_a_former_heartbeat_starts_none_while_the_member_joins(error: ErrorCode) -> None:
    """AbstractCoordinator disables heartbeats, and the watch over the session, until JoinGroup is answered."""
    script = joined(classic("cooperative-sticky"))
    script.at(5_600)
    hear(script)
    script.answer(OffsetCommitRequest, OffsetCommitResponse((ErrorCode.REBALANCE_IN_PROGRESS,) * 2))
    script.at(6_100)
    request = joins(script)
    hear(script, error)
    script.at(100_000)
    assert not script.has_asked(HeartbeatRequest)
    if error is ErrorCode.NONE:
        script.answer(JoinGroupRequest, in_generation(2, request))
        assert script.has_asked(SyncGroupRequest), "its coordinator is as it was"


def test_joining_counts_as_a_poll() -> None:
    """AbstractCoordinator.initiateJoinGroup: JoinGroup's answer begins max.poll.interval.ms anew, by resetTimeouts."""
    script = joined(classic(max_poll_interval_ms=60_000))
    script.at(3_100)
    hear(script, ErrorCode.REBALANCE_IN_PROGRESS)
    script.at(3_600)
    request = joins(script)
    script.stall(200_000)
    script.at(50_000)
    script.answer(JoinGroupRequest, in_generation(2, request))
    for now_ms in range(52_000, 110_000, 2_000):
        script.at(now_ms)
        if script.has_asked(HeartbeatRequest):
            hear(script)
    assert script.of(PollExpired) == []
    script.at(110_000)
    assert script.of(PollExpired) == [PollExpired()]


def test_a_member_that_waits_for_its_join_group_may_poll_late() -> None:
    """Kafka's heartbeat thread looks at max.poll.interval.ms only while it is enabled."""
    script = called(joined(classic(max_poll_interval_ms=60_000)))
    joins(script)
    script.stall(500_000)
    script.at(64_000)
    assert (script.of(PollExpired), script.has_asked(LeaveGroupRequest)) == ([], False)


@pytest.mark.parametrize("error", [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_COORDINATOR])
def test_after_a_commit_that_says_so_the_coordinator_is_looked_for_before_the_next_request(error: ErrorCode) -> None:
    """ConsumerCoordinator.OffsetCommitResponseHandler marks the coordinator unknown, of REQUEST_TIMED_OUT too."""
    script = joined(classic())
    script.at(5_600)
    hear(script)
    script.answer(OffsetCommitRequest, OffsetCommitResponse((ErrorCode.NONE, error)))
    script.at(8_000)
    assert script.has_asked(FindCoordinatorRequest)
    assert not script.has_asked(OffsetCommitRequest)


def test_an_assignment_of_a_generation_that_the_member_has_left_meanwhile_is_not_taken() -> None:
    """AbstractCoordinator.joinGroupIfNeeded: SyncGroup was answered, then a heartbeat says that the member is none."""
    script = called(joined(classic()))
    request = joins(script)
    script.answer(JoinGroupRequest, in_generation(2, request))
    script.at(7_200)
    script.stall(2_000)
    given(script, request, P0)
    hear(script, ErrorCode.UNKNOWN_MEMBER_ID)
    script.at(9_600)
    assert script.client.subscriptions.owned == frozenset()
    assert script.asked(JoinGroupRequest).member_id == ""


@pytest.mark.parametrize(
    ("error", "member_id"),
    [(ErrorCode.UNKNOWN_MEMBER_ID, ""), (ErrorCode.MEMBER_ID_REQUIRED, "n"), (ErrorCode.NOT_COORDINATOR, "m")],
)
def test_a_refused_join_group_is_sent_again_as_the_error_says(error: ErrorCode, member_id: str) -> None:
    """AbstractCoordinator.JoinGroupResponseHandler; each attempt counts as a failed rebalance."""
    script = called(joined(classic()))
    request = joins(script)
    refused = JoinGroupResponse(ticket=request.ticket, error=error, member_id=MemberId("n"))
    script.answer(JoinGroupRequest, refused)
    script.at(4_200)
    if error is ErrorCode.NOT_COORDINATOR:
        script.answer(FindCoordinatorRequest, FindCoordinatorResponse(BrokerId(1)))
    assert (script.asked(JoinGroupRequest).member_id, script.of(RebalanceFailed)) == (member_id, [RebalanceFailed()])


def test_a_join_group_may_take_as_long_as_the_rebalance_and_five_seconds_more() -> None:
    """AbstractCoordinator.sendJoinGroupRequest; request.timeout.ms where that is longer."""
    for interval_ms, timeout_ms in ((300_000, 305_000), (10_000, 30_000)):
        script = classic(max_poll_interval_ms=interval_ms)
        script.answer(FindCoordinatorRequest, FindCoordinatorResponse(BrokerId(1)))
        assert [send.timeout_ms for send in script.open] == [timeout_ms]


def test_a_leader_that_is_not_told_the_partitions_joins_again() -> None:
    """It can assign nothing; Kafka's consumer waits for its metadata before it goes on."""
    script = classic()
    script.answer(FindCoordinatorRequest, FindCoordinatorResponse(BrokerId(1)))
    answer = attrs.evolve(in_generation(1, script.asked(JoinGroupRequest)), leader_id=MemberId("m"))
    script.answer(JoinGroupRequest, answer)
    script.answer(TopicMetadataRequest, Disconnected())
    assert script.of(RebalanceFailed) == [RebalanceFailed()]
    assert script.has_asked(JoinGroupRequest)
    assert not script.has_asked(SyncGroupRequest)


def test_a_leader_that_need_not_assign_sends_no_assignment() -> None:
    """KIP-814: skip_assignment says that the stored assignments stay; the leader only watches the topics."""
    script = classic()
    script.answer(FindCoordinatorRequest, FindCoordinatorResponse(BrokerId(1)))
    answer = attrs.evolve(in_generation(1, script.asked(JoinGroupRequest)), leader_id=MemberId("m"))
    script.answer(JoinGroupRequest, attrs.evolve(answer, skip_assignment=True))
    script.answer(TopicMetadataRequest, TopicMetadataResponse({"t": 2}))
    assert script.asked(SyncGroupRequest).assignments == ()

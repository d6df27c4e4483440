"""When a classic member joins, as whom and with what, and which answers of a former generation it heeds."""

from __future__ import annotations

import attrs
import pytest

from broker.error_codes import ErrorCode
from broker.errors import RefusedError
from broker.group.classic import (
    HeartbeatRequest,
    JoinedMember,
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
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from broker.group.protocol import write_assignment
from broker.ids import BrokerId, Offset
from broker.units import DurationMs
from replication.groups.client.assigning import ClientAssignor
from replication.groups.client.messages import (
    Died,
    Disconnected,
    PartitionsRevoked,
    PollExpired,
    Read,
    Rebalanced,
    RebalanceFailed,
    Response,
    Send,
    TopicMetadataRequest,
    TopicMetadataResponse,
    Why,
)
from tests.replication.groups.client.script import (
    BOTH,
    P0,
    P1,
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


def beat_until(script: Script, end_ms: int) -> None:
    """Let time pass, with every heartbeat answered."""
    while script.now_ms < end_ms:
        script.at(script.now_ms + 3_000)
        if script.has_asked(HeartbeatRequest):
            hear(script)


def leads(script: Script, *, skip_assignment: bool = False) -> JoinGroupRequest:
    """Make a lone member the leader of generation 1, and do not tell it the partitions yet; return how it joined."""
    script.answer(FindCoordinatorRequest, FindCoordinatorResponse(BrokerId(1)))
    request = script.asked(JoinGroupRequest)
    answer = attrs.evolve(in_generation(1, request), leader_id=MemberId("m"), skip_assignment=skip_assignment)
    members = (JoinedMember(MemberId("m"), None, request.protocols[0].metadata),)
    script.answer(JoinGroupRequest, attrs.evolve(answer, members=members))
    return request


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


def test_a_former_heartbeat_that_tells_of_a_rebalance_does_not_shorten_the_backoff_of_who_joins() -> None:
    """AbstractCoordinator.HeartbeatResponseHandler heeds REBALANCE_IN_PROGRESS while the member is STABLE only."""
    script = joined(classic("cooperative-sticky"))
    script.at(5_600)
    hear(script)
    script.answer(OffsetCommitRequest, OffsetCommitResponse((ErrorCode.REBALANCE_IN_PROGRESS,) * 2))
    script.at(6_100)
    request = joins(script)
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    script.answer(JoinGroupRequest, JoinGroupResponse(ticket=request.ticket, error=loading))
    hear(script, ErrorCode.REBALANCE_IN_PROGRESS)
    assert not script.has_asked(JoinGroupRequest)
    script.at(script.now_ms + 100)
    assert script.has_asked(JoinGroupRequest)


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


@pytest.mark.parametrize("error", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION])
def test_an_assignment_of_a_generation_that_the_member_has_left_meanwhile_is_not_taken(error: ErrorCode) -> None:
    """AbstractCoordinator.joinGroupIfNeeded resets the member id, whatever a heartbeat said after SyncGroup."""
    script = called(joined(classic()))
    request = joins(script)
    script.answer(JoinGroupRequest, in_generation(2, request))
    script.at(7_200)
    script.stall(2_000)
    given(script, request, P0)
    hear(script, error)
    script.at(9_600)
    assert script.client.subscriptions.owned == frozenset()
    assert script.asked(JoinGroupRequest).member_id == ""


@pytest.mark.parametrize("error", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION])
def test_sync_group_is_not_heeded_once_a_heartbeat_has_ended_the_generation(error: ErrorCode) -> None:
    """AbstractCoordinator.SyncGroupResponseHandler compares the generation with the one that it was sent in."""
    script = called(joined(classic()))
    request = joins(script)
    script.answer(JoinGroupRequest, in_generation(2, request))
    script.at(7_200)
    hear(script, error)
    given(script, request, P0)
    assert script.client.subscriptions.owned == frozenset()
    assert script.asked(JoinGroupRequest).member_id == ("" if error is ErrorCode.UNKNOWN_MEMBER_ID else "m")


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
    leads(script)
    script.answer(TopicMetadataRequest, Disconnected())
    assert script.of(RebalanceFailed) == [RebalanceFailed()]
    assert script.has_asked(JoinGroupRequest)
    assert not script.has_asked(SyncGroupRequest)


def test_a_leader_that_need_not_assign_sends_no_assignment() -> None:
    """KIP-814: skip_assignment says that the stored assignments stay; the leader only watches the topics."""
    script = classic()
    leads(script, skip_assignment=True)
    script.answer(TopicMetadataRequest, TopicMetadataResponse({"t": 2}))
    assert script.asked(SyncGroupRequest).assignments == ()


@pytest.mark.parametrize("error", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION])
def test_a_leader_whose_generation_ends_while_it_waits_for_the_partitions_assigns_nothing(error: ErrorCode) -> None:
    script = classic()
    leads(script)
    script.at(3_100)
    hear(script, error)
    script.answer(TopicMetadataRequest, TopicMetadataResponse({"t": 2}))
    assert not script.has_asked(SyncGroupRequest)
    assert script.asked(JoinGroupRequest).member_id == ("" if error is ErrorCode.UNKNOWN_MEMBER_ID else "m")


def test_a_leader_whose_coordinator_is_lost_while_it_waits_for_the_partitions_looks_for_it_and_joins_again() -> None:
    script = classic()
    leads(script)
    script.at(3_100)
    hear(script, ErrorCode.NOT_COORDINATOR)
    script.answer(TopicMetadataRequest, TopicMetadataResponse({"t": 2}))
    assert script.of(RebalanceFailed) == [RebalanceFailed()]
    script.at(3_200)
    script.answer(FindCoordinatorRequest, FindCoordinatorResponse(BrokerId(2)))
    assert [send.broker for send in script.open if isinstance(send.request, JoinGroupRequest)] == [2]


def test_a_leader_whose_assignor_fails_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """AbstractCoordinator.onJoinLeader: what the assignor throws reaches the application from poll."""

    def refuse(*_: object) -> None:
        raise RefusedError("too few")

    monkeypatch.setattr(ClientAssignor, "assign", refuse)
    script = classic()
    leads(script)
    script.answer(TopicMetadataRequest, TopicMetadataResponse({"t": 2}))
    assert (script.of(Died), script.client.is_over) == ([Died("too few")], True)


def test_who_led_when_sync_group_failed_goes_on_to_watch_the_topics() -> None:
    """ConsumerCoordinator.onJoinPrepare clears isLeader, and is not called again for another attempt to join."""
    script = classic()
    request = leads(script)
    script.answer(TopicMetadataRequest, TopicMetadataResponse({"t": 2}))
    error = ErrorCode.REBALANCE_IN_PROGRESS
    script.answer(SyncGroupRequest, SyncGroupResponse(ticket=request.ticket, error=error))
    script.answer(JoinGroupRequest, in_generation(2, script.asked(JoinGroupRequest)))
    given(script, request)
    beat_until(script, 300_000)
    assert script.has_asked(TopicMetadataRequest)


@pytest.mark.parametrize("answer", [TopicMetadataResponse({"t": 2}), TopicMetadataResponse({"t": 3}), Disconnected()])
def test_a_leader_joins_again_at_once_when_the_partitions_have_changed(answer: Response) -> None:
    """ConsumerCoordinator.rejoinNeededOrPending compares metadata with what was assigned; without any it knows none."""
    script = classic()
    request = leads(script)
    script.answer(TopicMetadataRequest, TopicMetadataResponse({"t": 2}))
    given(script, request)
    beat_until(script, 300_000)
    script.answer(TopicMetadataRequest, answer)
    assert script.has_asked(JoinGroupRequest) == (answer == TopicMetadataResponse({"t": 3}))
    beat_until(script, 600_000)
    assert script.has_asked(TopicMetadataRequest)


def crossed(instance_id: str | None = None) -> tuple[Script, Send, JoinGroupRequest]:
    """Return a cooperative member that joins again, its commit of before that is not answered, and how it joins."""
    script = joined(classic("cooperative-sticky", instance_id=instance_id))
    script.at(5_600)
    (late,) = [send for send in script.open if isinstance(send.request, OffsetCommitRequest)]
    hear(script, ErrorCode.REBALANCE_IN_PROGRESS)
    script.answer_to(script.open[-1], NONE)
    return script, late, script.asked(JoinGroupRequest)


def refused(*errors: ErrorCode) -> OffsetCommitResponse:
    return OffsetCommitResponse(errors * 2)


def test_an_unknown_member_id_of_a_former_generation_leaves_the_member_its_id() -> None:
    """JoinGroupResponseHandler resets the member id only if the generation has not been changed since."""
    script, late, request = crossed()
    script.answer_to(late, refused(ErrorCode.ILLEGAL_GENERATION))
    error = ErrorCode.UNKNOWN_MEMBER_ID
    script.answer(JoinGroupRequest, JoinGroupResponse(ticket=request.ticket, error=error))
    assert script.asked(JoinGroupRequest).member_id == "m"


@pytest.mark.parametrize("error", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION])
@pytest.mark.parametrize("joins_a_third", [True, False])
def test_a_commit_of_a_former_generation_that_is_refused_ends_this_one_unless_another_is_joined(
    error: ErrorCode, joins_a_third: bool
) -> None:
    """ConsumerCoordinator.OffsetCommitResponseHandler, with a generation that has changed since it was sent."""
    script, late, request = crossed()
    script.answer(JoinGroupRequest, in_generation(2, request))
    given(script, request, P0, P1)
    if joins_a_third:
        script.at(9_000)
        hear(script, ErrorCode.REBALANCE_IN_PROGRESS)
        script.answer_to(script.open[-1], NONE)
        third = script.asked(JoinGroupRequest)
    script.answer_to(late, refused(error))
    if joins_a_third:
        script.answer(JoinGroupRequest, in_generation(3, third))
        assert script.asked(SyncGroupRequest).generation == 3
    else:
        script.at(9_500)
        assert script.client.generation == -1
        assert script.asked(JoinGroupRequest).member_id == ("" if error is ErrorCode.UNKNOWN_MEMBER_ID else "m")


def test_a_fenced_heartbeat_ends_a_static_member() -> None:
    """AbstractCoordinator.HeartbeatResponseHandler: FENCED_INSTANCE_ID is fatal, as another process has its place."""
    script = joined(classic(instance_id="i"))
    script.at(3_100)
    hear(script, ErrorCode.FENCED_INSTANCE_ID)
    assert script.of(Died) == [Died("FENCED_INSTANCE_ID")]
    assert script.of(PartitionsRevoked) == [PartitionsRevoked(BOTH, Why.LOST)]


@pytest.mark.parametrize("is_former", [True, False])
def test_a_fenced_commit_ends_a_static_member_in_its_own_generation_only(is_former: bool) -> None:
    script, late, request = crossed("i")
    if is_former:
        script.answer(JoinGroupRequest, in_generation(2, request))
        given(script, request, P0, P1)
    script.answer_to(late, refused(ErrorCode.FENCED_INSTANCE_ID))
    assert script.client.is_over == (not is_former)


def test_a_rebalance_is_noted_when_the_assignment_comes_with_the_time_that_it_took() -> None:
    """Java's rebalance-latency is from the JoinGroup to the answer of SyncGroup."""
    script, _, request = crossed()
    assert script.of(Rebalanced) == [Rebalanced(DurationMs(0))]
    script.at(7_000)
    script.answer(JoinGroupRequest, in_generation(2, request))
    script.at(7_600)
    given(script, request, P0, P1)
    assert script.of(Rebalanced) == [Rebalanced(DurationMs(0)), Rebalanced(DurationMs(2_000))]


def test_the_next_automatic_commit_comes_an_interval_after_the_member_has_joined() -> None:
    """ConsumerCoordinator.onJoinComplete resets nextAutoCommitTimer."""
    script = called(joined(classic()))
    request = joins(script)
    script.answer(JoinGroupRequest, in_generation(2, request))
    given(script, request, P0, P1)
    joined_ms = script.now_ms
    script.answer(OffsetFetchRequest, OffsetFetchResponse((Offset(4), None)))
    script.at(joined_ms + 4_900)
    assert not script.has_asked(OffsetCommitRequest)
    script.at(joined_ms + 5_500)
    assert script.has_asked(OffsetCommitRequest)


def test_a_listener_is_not_called_where_nothing_is_revoked() -> None:
    """A cooperative member that keeps all joins at once; its listener of 700 ms has nothing to do."""
    script = joined(classic("cooperative-sticky", revoke_ms=700))
    script.at(3_100)
    hear(script, ErrorCode.REBALANCE_IN_PROGRESS)
    script.answer(OffsetCommitRequest, NONE)
    assert script.has_asked(JoinGroupRequest)


def test_who_loses_its_coordinator_before_it_joins_looks_for_it_and_joins() -> None:
    """Its last commit is lost at the very end of max.poll.interval.ms, so that it is not sent again."""
    script = called(joined(classic(max_poll_interval_ms=2_000)))
    for now_ms in range(3_600, 5_100, 100):
        script.at(now_ms)
        script.answer(OffsetCommitRequest, refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
    script.at(5_100)
    script.answer(OffsetCommitRequest, Disconnected())
    assert not script.has_asked(JoinGroupRequest)
    script.at(6_000)
    script.answer(FindCoordinatorRequest, FindCoordinatorResponse(BrokerId(2)))
    assert [send.broker for send in script.open if isinstance(send.request, JoinGroupRequest)] == [2]


def test_a_heartbeat_of_a_coordinator_that_loads_is_sent_again_after_the_backoff() -> None:
    """AbstractCoordinator.HeartbeatResponseHandler: COORDINATOR_LOAD_IN_PROGRESS changes nothing of the member."""
    script = joined(classic())
    script.at(3_100)
    hear(script, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    script.at(3_200)
    assert (script.asked(HeartbeatRequest).generation, script.has_asked(FindCoordinatorRequest)) == (1, False)


def test_a_static_member_that_polled_too_late_finds_its_coordinator_where_it_was() -> None:
    """Without a generation there is no session to watch: Kafka disables its heartbeat thread."""
    script = joined(classic(instance_id="i", max_poll_interval_ms=60_000))
    script.stall(200_000)
    for now_ms in range(3_000, 60_000, 3_000):
        script.at(now_ms)
        hear(script)
    script.at(199_900)
    assert script.open == []
    script.at(200_000)
    assert script.asked(JoinGroupRequest).member_id == ""

"""What a client does as it ends, and what is due before it hears something."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from broker.error_codes import ErrorCode
from broker.group.classic import HeartbeatRequest, HeartbeatResponse, JoinGroupRequest, LeaveGroupRequest, Ticket
from broker.group.consumer import ConsumerGroupHeartbeatRequest
from broker.group.messages import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
)
from broker.ids import BrokerId
from broker.units import DurationMs, TimeMs
from replication.groups.client.client import Client
from replication.groups.client.messages import (
    Died,
    Disconnected,
    Output,
    PartitionsRevoked,
    PollExpired,
    Read,
    Response,
    Send,
    Why,
)
from tests.replication.groups.client.script import (
    BOTH,
    P0,
    P1,
    Growing,
    Script,
    accepted,
    classic,
    consumer,
    hear,
    joined,
    kept,
    leaves,
    settled,
)

NONE = OffsetCommitResponse((ErrorCode.NONE,) * 2)
FENCED = OffsetCommitResponse((ErrorCode.FENCED_INSTANCE_ID,) * 2)
LATE = HeartbeatResponse(ticket=Ticket(99))


def of_each_protocol() -> list[Script]:
    """Return a member of a classic group and one of a consumer group that own both partitions."""
    return [joined(classic()), settled(consumer())]


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.handle(Ticket(99), LATE, TimeMs(3_400)),
        lambda client: client.stall(DurationMs(1), TimeMs(3_400)),
        lambda client: client.close(TimeMs(3_400)),
    ],
    ids=["handle", "stall", "close"],
)
def test_what_is_due_before_a_call_comes_before_it(call: Callable[[Client], tuple[Output, ...]]) -> None:
    """A process that did not run for a while does first what its timers say, then what it hears."""
    script = joined(classic())
    script.at(2_900)
    sent = [each.request for each in call(script.client) if isinstance(each, Send)]
    assert isinstance(sent[0], HeartbeatRequest)


@pytest.mark.parametrize("place", range(2), ids=["classic", "consumer"])
def test_nothing_comes_of_a_client_that_is_over(place: int) -> None:
    """Its process stands still as it closes; the last commit times out before anything else that is due."""
    script = of_each_protocol()[place]
    script.at(600)
    script.close()
    outputs = script.client.advance(TimeMs(900_000))
    assert script.client.is_over
    assert [each for each in outputs if isinstance(each, PollExpired)] == []
    assert (script.client.close(TimeMs(900_000)), script.client.next_ms()) == ((), None)


def test_a_client_that_closes_reads_nothing_more_and_joins_no_group_again() -> None:
    """A rebalance that begins while the last commit is under way is left to the others."""
    script = joined(classic(feed=Growing()))
    script.at(3_100)
    before = len(script.of(Read))
    script.close()
    hear(script, ErrorCode.REBALANCE_IN_PROGRESS)
    script.at(9_000)
    assert len(script.of(Read)) == before
    assert not script.has_asked(JoinGroupRequest)
    script.answer(OffsetCommitRequest, NONE)
    assert script.has_asked(LeaveGroupRequest)


def test_a_client_without_a_coordinator_ends_without_a_word() -> None:
    """Kafka's consumers do not look for a coordinator only to leave, once close's commit has failed."""
    for script in of_each_protocol():
        script.at(600)
        script.close()
        script.answer(OffsetCommitRequest, Disconnected())
        assert script.of(PartitionsRevoked) == [PartitionsRevoked(BOTH, Why.CLOSED)]
        assert script.client.is_over
        kinds = {type(each.request) for each in script.open}
        assert not kinds & {LeaveGroupRequest, ConsumerGroupHeartbeatRequest, FindCoordinatorRequest}


@pytest.mark.parametrize(("error", "leave_count"), [(ErrorCode.ILLEGAL_GENERATION, 0), (ErrorCode.NONE, 1)])
def test_a_client_that_has_lost_its_generation_leaves_without_a_word(error: ErrorCode, leave_count: int) -> None:
    """AbstractCoordinator.shouldSendLeaveGroupRequest: an UNJOINED member has its id still, and nothing to leave."""
    script = joined(classic())
    script.at(5_600)
    script.answer(OffsetCommitRequest, OffsetCommitResponse((error,) * 2))
    script.close()
    if error is ErrorCode.NONE:
        script.answer(OffsetCommitRequest, NONE)
    assert script.client.is_over
    assert leaves(script) == leave_count


def test_a_client_that_has_no_member_id_yet_leaves_without_a_word() -> None:
    """Its first JoinGroup is not answered: the coordinator knows it by no name that it could tell."""
    script = classic()
    script.answer(FindCoordinatorRequest, FindCoordinatorResponse(BrokerId(1)))
    script.close()
    assert (script.client.is_over, leaves(script)) == (True, 0)


def expired(answer: Response) -> Script:
    """Return a member of a consumer group that polls too late, once its last heartbeat is answered."""
    script = settled(consumer(max_poll_interval_ms=8_000))
    script.stall(30_000)
    script.at(5_000)
    script.answer(ConsumerGroupHeartbeatRequest, kept(1))
    script.at(8_000)
    assert script.asked(ConsumerGroupHeartbeatRequest).epoch == -1
    script.answer(ConsumerGroupHeartbeatRequest, answer)
    return script


@pytest.mark.parametrize(
    "answer",
    [
        kept(-1),
        accepted(-1, P0, P1),
        accepted(-1, error=ErrorCode.UNKNOWN_MEMBER_ID),
        accepted(-1, error=ErrorCode.GROUP_MAX_SIZE_REACHED),
        accepted(-1, error=ErrorCode.NOT_COORDINATOR),
        Disconnected(),
    ],
    ids=["none", "partitions", "unknown", "fatal", "moved", "lost"],
)
def test_who_left_as_it_polls_too_late_asks_for_nothing_until_it_polls_whatever_the_answer(answer: Response) -> None:
    """AbstractMembershipManager: a STALE member ignores responses, and joins again with all that it has to say."""
    script = expired(answer)
    script.at(29_900)
    assert (script.open, script.of(Died)) == ([], [])
    assert script.of(PartitionsRevoked) == [PartitionsRevoked(BOTH, Why.LOST)]
    script.at(30_000)
    if script.has_asked(FindCoordinatorRequest):
        script.answer(FindCoordinatorRequest, FindCoordinatorResponse(BrokerId(1)))
    again = script.asked(ConsumerGroupHeartbeatRequest)
    assert (again.epoch, again.member_id, again.owned) == (0, "m", frozenset())
    assert (again.subscribed_topics, again.assignor, again.rebalance_timeout_ms) == ({"t"}, "uniform", 8_000)

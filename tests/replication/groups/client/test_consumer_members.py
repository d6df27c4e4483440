"""How a member of a consumer group reconciles, is fenced, leaves, and what it reports of that."""

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
from broker.ids import BrokerId
from broker.units import DurationMs
from replication.groups.client.consumer_client import ConsumerClient, EpochState
from replication.groups.client.messages import (
    Disconnected,
    PartitionsRevoked,
    PollExpired,
    Rebalanced,
    Why,
)
from tests.replication.groups.client.script import (
    BOTH,
    P0,
    P1,
    Script,
    accepted,
    consumer,
    consumer_told_to_give_back,
    kept,
    settled,
)

BEAT = ConsumerGroupHeartbeatRequest
NONE = OffsetCommitResponse((ErrorCode.NONE,) * 2)
FENCED = accepted(1, error=ErrorCode.FENCED_MEMBER_EPOCH)
FOUND = FindCoordinatorResponse(BrokerId(2))


def beats(script: Script) -> list[ConsumerGroupHeartbeatRequest]:
    """Return the heartbeats that have been sent, in order."""
    return [send.request for send in script.sent if isinstance(send.request, BEAT)]


def state_of(script: Script) -> EpochState:
    assert isinstance(script.client, ConsumerClient)
    return script.client.state


# Reconciling.


def committing() -> Script:
    """Return a member of the first partition that is given the second one, and whose commit before is under way."""
    script = consumer()
    script.answer(BEAT, accepted(1, P0))
    script.answer(OffsetFetchRequest, OffsetFetchResponse((None,)))
    script.answer(BEAT, kept(1))
    script.at(5_000)
    script.answer(OffsetCommitRequest, OffsetCommitResponse((ErrorCode.NONE,)))
    script.answer(BEAT, accepted(2, P0, P1))
    return script


def test_a_member_tells_what_it_is_about_to_own_until_it_owns_that() -> None:
    script = committing()
    assert (script.client.coming, script.client.subscriptions.owned) == ({P1}, {P0})
    script.answer(OffsetCommitRequest, OffsetCommitResponse((ErrorCode.NONE,)))
    assert (script.client.coming, script.client.subscriptions.owned) == (frozenset(), BOTH)


def test_what_a_member_was_to_own_when_it_was_fenced_does_not_come_any_more() -> None:
    """AbstractMembershipManager: rejoinedWhileReconciliationInProgress aborts it when its commit is answered."""
    script = committing()
    script.at(10_000)
    script.answer(BEAT, FENCED)
    assert (script.client.coming, script.client.subscriptions.owned) == (frozenset(), frozenset())
    script.answer(BEAT, accepted(3, P0))
    assert script.client.subscriptions.owned == frozenset()
    script.answer(OffsetCommitRequest, OffsetCommitResponse((ErrorCode.NONE,)))
    assert script.client.subscriptions.owned == {P0}
    assert beats(script)[-1].owned == {P0}


@pytest.mark.parametrize("error", [ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS])
def test_a_commit_that_may_succeed_later_is_sent_again_before_partitions_are_given_up(error: ErrorCode) -> None:
    """CommitRequestManager.autoCommitSyncBeforeRebalanceWithRetries: also STALE_MEMBER_EPOCH, by a newer epoch."""
    script = consumer_told_to_give_back()
    script.answer(OffsetCommitRequest, OffsetCommitResponse((ErrorCode.NONE, error)))
    assert script.of(PartitionsRevoked) == []
    script.at(5_100)
    script.answer(OffsetCommitRequest, NONE)
    assert script.of(PartitionsRevoked) == [PartitionsRevoked(frozenset({P1}), Why.REVOKED)]


def test_a_member_without_a_listener_goes_on_to_reconcile_while_its_application_is_at_work() -> None:
    script = consumer_told_to_give_back()
    script.stall(60_000)
    script.answer(OffsetCommitRequest, NONE)
    assert beats(script)[-1].owned == {P0}


def test_the_same_partitions_given_again_are_acknowledged_without_a_commit() -> None:
    """maybeReconcile: the local epoch alone has changed, so that there is nothing to revoke or to assign."""
    script = committing()
    script.at(10_000)
    script.answer(BEAT, accepted(3, P0))
    script.at(15_000)
    script.answer(BEAT, accepted(4, P0, P1))
    script.answer(OffsetCommitRequest, OffsetCommitResponse((ErrorCode.NONE,)))
    count = [type(send.request) for send in script.sent].count(OffsetCommitRequest)
    script.answer(BEAT, kept(4))
    script.answer(BEAT, kept(4))
    assert [type(send.request) for send in script.sent].count(OffsetCommitRequest) == count
    assert [beat.owned for beat in beats(script)][-2:] == [BOTH, BOTH]


def test_the_next_automatic_commit_comes_an_interval_after_the_partitions_are_owned() -> None:
    """ConsumerMembershipManager.signalReconciliationCompleting resets the timer."""
    script = committing()
    script.at(8_000)
    script.answer(OffsetCommitRequest, OffsetCommitResponse((ErrorCode.NONE,)))
    script.answer(OffsetFetchRequest, OffsetFetchResponse((None,)))
    script.at(12_900)
    assert not script.has_asked(OffsetCommitRequest)
    script.at(13_500)
    assert script.has_asked(OffsetCommitRequest)


# The time of a rebalance.


def test_a_rebalance_lasts_from_its_target_until_the_partitions_are_owned() -> None:
    """ConsumerRebalanceMetricsManager, with the transitions of AbstractMembershipManager: RECONCILING and out of it."""
    script = consumer_told_to_give_back()
    before = len(script.of(Rebalanced))
    script.at(6_200)
    script.answer(OffsetCommitRequest, NONE)
    assert script.of(Rebalanced)[before:] == [Rebalanced(DurationMs(1_200))]
    script.answer(BEAT, kept(1))
    script.at(30_000)
    assert len(script.of(Rebalanced)) == before + 1


def test_a_rebalance_of_two_targets_lasts_from_the_first_one() -> None:
    script = committing()
    before = len(script.of(Rebalanced))
    script.at(10_000)
    script.answer(BEAT, accepted(3, P0))
    script.at(11_000)
    script.answer(OffsetCommitRequest, OffsetCommitResponse((ErrorCode.NONE,)))
    assert script.of(Rebalanced)[before:][0] == Rebalanced(DurationMs(6_000))


def test_a_rebalance_that_is_aborted_is_none() -> None:
    script = committing()
    before = len(script.of(Rebalanced))
    script.at(10_000)
    script.answer(BEAT, FENCED)
    assert len(script.of(Rebalanced)) == before


# Being fenced.


def test_a_fenced_member_is_in_no_group_while_it_waits_for_its_listener() -> None:
    script = settled(consumer(revoke_ms=700))
    script.stall(20_000)
    script.at(5_000)
    script.answer(BEAT, FENCED)
    assert (script.client.generation, script.client.can_commit, state_of(script)) == (0, False, EpochState.FENCED)
    script.at(19_900)
    assert not script.has_asked(BEAT)
    script.at(20_000)
    assert (script.asked(BEAT).epoch, script.of(PartitionsRevoked)) == (0, [PartitionsRevoked(BOTH, Why.LOST)])


@pytest.mark.parametrize("listens", [True, False], ids=["its listener runs", "it waits for a poll"])
def test_a_member_that_is_fenced_before_it_gives_a_partition_up_loses_all(listens: bool) -> None:
    """maybeAbortReconciliation, before the listener is called and after."""
    script = consumer_told_to_give_back(revoke_ms=7_000)
    if not listens:
        script.stall(6_000)
    script.answer(OffsetCommitRequest, NONE)
    script.at(10_000)
    script.answer(BEAT, FENCED)
    assert script.of(PartitionsRevoked) == []
    script.at(12_000 if listens else 11_000)
    assert script.of(PartitionsRevoked) == [PartitionsRevoked(BOTH, Why.LOST)]


def test_a_fenced_member_that_closes_loses_its_partitions_and_says_nothing() -> None:
    """Kafka calls onPartitionsLost as a consumer without an epoch closes."""
    script = settled(consumer(revoke_ms=700))
    script.stall(20_000)
    script.at(5_000)
    script.answer(BEAT, FENCED)
    script.close()
    assert script.of(PartitionsRevoked) == [PartitionsRevoked(BOTH, Why.LOST)]
    assert (script.client.is_over, script.open) == (True, [])


# Heartbeats.


def test_a_target_that_is_told_again_is_not_acknowledged_again() -> None:
    """AbstractMembershipManager.processAssignmentReceived: an equal assignment has no new local epoch."""
    script = settled(consumer())
    script.at(5_000)
    script.answer(BEAT, accepted(1, P0, P1))
    assert not script.has_asked(BEAT)
    assert len(script.of(Rebalanced)) == 1


@pytest.mark.parametrize("answer", [Disconnected(), accepted(1, error=ErrorCode.NOT_COORDINATOR)])
def test_after_a_heartbeat_that_was_lost_the_next_one_says_everything_to_the_coordinator_that_is_found(
    answer: Disconnected,
) -> None:
    script = settled(consumer())
    script.at(5_000)
    script.answer(BEAT, answer)
    script.at(5_100)
    script.answer(FindCoordinatorRequest, FOUND)
    again = beats(script)[-1]
    assert (again.epoch, again.owned, again.subscribed_topics, again.assignor) == (1, BOTH, {"t"}, "uniform")


@pytest.mark.parametrize(("instance_id", "epoch"), [(None, -1), ("i", -2)])
def test_a_member_that_closes_commits_and_leaves_by_a_heartbeat(instance_id: str | None, epoch: int) -> None:
    """KIP-848: -1 leaves, -2 says that a static member is away for a while."""
    script = settled(consumer(instance_id))
    script.at(600)
    script.close()
    assert beats(script)[-1].epoch == 1
    script.answer(OffsetCommitRequest, NONE)
    last = beats(script)[-1]
    assert (last.epoch, last.member_id, last.instance_id, last.owned) == (epoch, "m", instance_id, None)
    assert (script.client.is_over, state_of(script)) == (True, EpochState.UNSUBSCRIBED)


def test_a_member_that_left_before_its_coordinator_was_found_does_not_beat_until_it_polls() -> None:
    script = settled(consumer(max_poll_interval_ms=8_000))
    script.stall(30_000)
    script.at(5_000)
    script.answer(BEAT, Disconnected())
    script.at(8_000)
    assert script.of(PollExpired) == [PollExpired()]
    script.answer(FindCoordinatorRequest, FOUND)
    script.at(29_900)
    assert not script.has_asked(BEAT)
    script.at(30_000)
    assert script.asked(BEAT).epoch == 0


def test_a_member_that_left_before_it_reconciled_says_that_it_owns_nothing_as_it_joins_again() -> None:
    script = consumer(revoke_ms=700, max_poll_interval_ms=8_000)
    script.stall(30_000)
    script.answer(BEAT, accepted(1, P0))
    script.at(5_000)
    script.answer(BEAT, kept(1))
    script.at(8_000)
    script.answer(BEAT, kept(-1))
    script.at(30_000)
    assert (script.asked(BEAT).epoch, script.asked(BEAT).owned) == (0, frozenset())


def test_the_answer_to_leaving_that_comes_as_a_member_joins_again_changes_nothing() -> None:
    """It set the member epoch to -2, so that the member left and joined for ever (swarm seed 7040, three groups)."""
    script = settled(consumer("i", max_poll_interval_ms=8_000))
    script.stall(30_000)
    script.at(5_000)
    script.answer(BEAT, kept(1))
    script.at(30_000)
    assert (script.asked(BEAT).epoch, state_of(script)) == (-2, EpochState.JOINING)
    script.answer(BEAT, kept(-2))
    assert script.asked(BEAT).epoch == 0


def test_a_member_that_left_as_its_application_hangs_owns_its_partitions_until_its_listener_may_run() -> None:
    """ConsumerMembershipManager.transitionToStale calls onPartitionsLost on the application's thread, then clears."""
    script = settled(consumer(revoke_ms=700, max_poll_interval_ms=8_000))
    script.stall(30_000)
    script.at(5_000)
    script.answer(BEAT, kept(1))
    script.at(8_000)
    script.answer(BEAT, kept(-1))
    script.at(29_900)
    assert (state_of(script), script.client.subscriptions.owned) == (EpochState.STALE, BOTH)
    script.at(30_000)
    assert script.of(PartitionsRevoked) == [PartitionsRevoked(BOTH, Why.LOST)]
    assert (script.asked(BEAT).epoch, script.asked(BEAT).owned) == (0, frozenset())


def test_a_member_whose_heartbeat_is_refused_for_good_ends() -> None:
    """HeartbeatRequestManager.handleFatalFailure."""
    script = settled(consumer())
    script.at(5_000)
    script.answer(BEAT, accepted(1, error=ErrorCode.GROUP_MAX_SIZE_REACHED))
    assert (script.client.is_over, state_of(script)) == (True, EpochState.FATAL)
    assert script.of(PartitionsRevoked) == [PartitionsRevoked(BOTH, Why.LOST)]

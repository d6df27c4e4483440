"""One controller: what a failover leaves of sessions and held requests, and whom it answers."""

from __future__ import annotations

import attrs
import pytest

from broker.error_codes import ErrorCode
from broker.errors import UsageError
from broker.ids import NO_LEADER, BrokerEpoch, BrokerId, LeaderEpoch
from broker.registration import NOTHING_READ, BrokerState, Heartbeat
from broker.units import DurationMs, TimeMs
from replication.roles.controller import ControllerRole
from replication.roles.messages import (
    Address,
    AlterPartition,
    AlterPartitionReassignments,
    AlterPartitionReassignmentsResponse,
    AlterPartitionResponse,
    BalanceDue,
    BrokerHeartbeat,
    BrokerHeartbeatResponse,
    BrokerRegistration,
    BrokerRegistrationResponse,
    CreateTopic,
    DeleteTopic,
    ElectLeaders,
    ElectLeadersResponse,
    FetchDue,
    Message,
    MetadataFetch,
    MetadataFetchResponse,
    NodeId,
    PartitionRemoved,
    SessionsDue,
)
from replication.roles.outbox import Outbox
from replication.roles.settings import RoleSettings
from replication.rules.election import Election
from replication.rules.fencing import StopProof
from replication.rules.partition import AlterPartitionRequest, IsrMember, PartitionEpoch
from replication.rules.switches import rules_of
from tests.replication.builders import ids

SETTINGS = RoleSettings()
FAILOVER_MS = 8_000
"""Before the sessions of brokers end that were last heard of at 0 ms."""


class Talk:
    """Brokers 1 and 2 have registered at 0 ms; neither has sent a heartbeat."""

    def __init__(self, role_settings: RoleSettings = SETTINGS) -> None:
        self.controller = ControllerRole(role_settings)
        self.controller.start(TimeMs(0), Outbox())
        self.epochs = {broker: self.register(broker, f"{broker}/1") for broker in ids(1, 2)}

    def say(self, message: Message, sender: int = 1, now_ms: int = 0) -> list[Message]:
        out = Outbox()
        self.controller.handle(message, Address(NodeId(sender)), TimeMs(now_ms), out)
        return [each for _, each in out.sent]

    def register(self, broker: BrokerId, incarnation: str, now_ms: int = 0) -> BrokerEpoch:
        """Return the epoch that a process gets; -1 if the id is another's."""
        (told,) = self.say(BrokerRegistration(broker, incarnation, StopProof()), broker, now_ms)
        assert isinstance(told, BrokerRegistrationResponse)
        return BrokerEpoch(-1) if told.epoch is None else told.epoch

    def beat(
        self, broker: int, now_ms: int = 0, *, stops: bool = False, offline: frozenset[int] = frozenset()
    ) -> BrokerState:
        """Let a broker that has read everything send a heartbeat, and return the state that it is told."""
        heartbeat = Heartbeat(metadata_offset=len(self.controller.log) - 1, want_shutdown=stops)
        beat = BrokerHeartbeat(BrokerId(broker), self.epochs[BrokerId(broker)], heartbeat, offline)
        answers = [each for each in self.say(beat, broker, now_ms) if isinstance(each, BrokerHeartbeatResponse)]
        assert [each.error for each in answers] == [ErrorCode.NONE]
        return answers[0].state

    def fail_over(self) -> Outbox:
        out = Outbox()
        self.controller.start(TimeMs(FAILOVER_MS), out)
        return out

    def fenced_at(self, now_ms: int) -> list[int]:
        """Return who is fenced after a look at the sessions."""
        self.say(SessionsDue(), now_ms=now_ms)
        return [broker for broker, status in self.controller.image.brokers.items() if status.fenced]


def test_a_controller_that_takes_over_gives_every_live_broker_a_whole_session() -> None:
    """BrokerHeartbeatManager of the new active controller has heard of unfenced brokers as it becomes active."""
    talk = Talk()
    assert talk.beat(1) is BrokerState.UNFENCED
    woken = talk.fail_over().woken
    assert woken == [(SETTINGS.session_check_ms, SessionsDue()), (SETTINGS.balance_ms, BalanceDue())]
    assert talk.fenced_at(FAILOVER_MS + SETTINGS.session_ms) == [2]
    assert talk.fenced_at(FAILOVER_MS + SETTINGS.session_ms + 1) == [1, 2]


def test_a_controller_that_takes_over_has_not_heard_of_a_fenced_broker() -> None:
    """A fenced broker has a session from its first heartbeat on: until then another process may take its id."""
    talk = Talk()
    talk.beat(1)
    talk.fail_over()
    assert talk.register(BrokerId(1), "1/2", FAILOVER_MS) == -1
    assert talk.register(BrokerId(2), "2/2", FAILOVER_MS) > talk.epochs[BrokerId(2)]


def test_a_controller_that_takes_over_does_not_know_how_far_a_shutdown_has_come() -> None:
    """BrokerHeartbeatManager keeps the offset of a controlled shutdown in memory only; the registration is a record."""
    talk = Talk()
    talk.beat(1)
    talk.beat(2)
    talk.say(CreateTopic(0, ids(1, 2)))
    assert talk.beat(1, stops=True) is BrokerState.CONTROLLED_SHUTDOWN
    talk.fail_over()
    assert talk.controller.registrations[BrokerId(1)].state is BrokerState.UNFENCED
    assert talk.controller.image.brokers[BrokerId(1)].shutting_down


def test_a_controller_that_takes_over_answers_nobody_who_waited_at_the_one_before() -> None:
    talk = Talk()
    talk.beat(1)
    assert talk.say(MetadataFetch(BrokerId(2), 7, len(talk.controller.log)), 2) == []
    talk.fail_over()
    assert talk.say(CreateTopic(0, ids(1))) == []


def test_news_answer_only_the_last_request_of_a_broker_that_waits() -> None:
    """A broker that has started again asks from the beginning; the process that waited is gone."""
    talk = Talk()
    talk.beat(1)
    log = talk.controller.log
    assert talk.say(MetadataFetch(BrokerId(2), 7, len(log)), 2) == []
    assert talk.say(MetadataFetch(BrokerId(2), 1, 0), 2) == [MetadataFetchResponse(1, 0, tuple(log))]
    assert talk.say(CreateTopic(0, ids(1))) == []
    end = len(log)
    assert talk.say(MetadataFetch(BrokerId(2), 2, end), 2) == talk.say(MetadataFetch(BrokerId(2), 3, end), 2) == []
    assert talk.say(CreateTopic(1, ids(1))) == [MetadataFetchResponse(3, end, tuple(log[end:]))]
    assert talk.say(CreateTopic(2, ids(1))) == []


@pytest.mark.parametrize(("release", "epoch"), [("3.9", 2), ("4.0", -1)])
def test_a_fenced_broker_that_sends_heartbeats_keeps_its_id_since_4_0(release: str, epoch: int) -> None:
    """KAFKA-17793: BrokerHeartbeatManager keeps the session of a fenced broker, too."""
    talk = Talk(attrs.evolve(SETTINGS, settings=attrs.evolve(SETTINGS.settings, rules=rules_of(release))))
    heartbeat = Heartbeat(metadata_offset=NOTHING_READ)
    talk.say(BrokerHeartbeat(BrokerId(2), talk.epochs[BrokerId(2)], heartbeat, frozenset()), 2)
    assert talk.controller.image.brokers[BrokerId(2)].fenced
    assert talk.register(BrokerId(2), "2/2") == epoch


@pytest.mark.parametrize(
    ("timer", "delay_ms"), [(SessionsDue(), SETTINGS.session_check_ms), (BalanceDue(), SETTINGS.balance_ms)]
)
def test_a_controllers_timers_are_set_anew_each_time(timer: Message, delay_ms: DurationMs) -> None:
    out = Outbox()
    Talk().controller.handle(timer, Address(NodeId(-1)), TimeMs(1), out)
    assert out.woken == [(delay_ms, timer)]


@pytest.mark.parametrize(("proof_epoch", "elr"), [(None, ()), (1, (2,))])
def test_a_broker_that_registers_anew_is_in_no_isr_and_keeps_its_place_in_the_elr_only_by_a_clean_stop(
    proof_epoch: int | None, elr: tuple[int, ...]
) -> None:
    """ReplicationControlManager: handleBrokerFenced after a clean shutdown, else handleUncleanBrokerShutdown too."""
    talk = Talk()
    talk.beat(1)
    talk.beat(2)
    talk.say(CreateTopic(0, ids(1, 2)))
    assert (talk.controller.image.partitions[0].isr, talk.epochs[BrokerId(2)]) == (ids(1, 2), 1)
    proof = StopProof(None if proof_epoch is None else BrokerEpoch(proof_epoch))
    # Its session is over, and nobody has looked at the sessions since.
    talk.say(BrokerRegistration(BrokerId(2), "2/2", proof), 2, SETTINGS.session_ms + 1)
    state = talk.controller.image.partitions[0]
    assert (state.isr, state.elr) == (ids(1), ids(*elr))


def test_a_broker_that_is_fenced_as_it_stops_may_lead_again_once_it_is_unfenced() -> None:
    """Fencing leaves the mark of a controlled shutdown in the registration; a simulation may call a stop off."""
    talk = Talk()
    talk.beat(1)
    talk.say(CreateTopic(0, ids(1)))
    talk.beat(1, stops=True)
    assert talk.fenced_at(SETTINGS.session_ms + 1) == [1, 2]
    assert talk.controller.image.brokers[BrokerId(1)].shutting_down
    talk.beat(1, SETTINGS.session_ms + 2)
    assert talk.controller.image.brokers[BrokerId(1)].is_active


def test_a_broker_that_is_silent_is_fenced_once() -> None:
    """To fence it anew would elect an unclean leader, which is looked for every five minutes only."""
    settings = attrs.evolve(SETTINGS.settings, rules=rules_of("4.0"), unclean_election=True)
    talk, later_ms = Talk(attrs.evolve(SETTINGS, settings=settings)), SETTINGS.session_ms + 1
    talk.beat(1)
    talk.say(CreateTopic(0, ids(1)))
    talk.beat(2, later_ms)
    assert talk.fenced_at(later_ms) == [1]
    told = talk.say(AlterPartitionReassignments(0, ids(2)))
    assert told == [AlterPartitionReassignmentsResponse(0, ErrorCode.NONE)]
    talk.say(SessionsDue(), now_ms=later_ms)
    assert talk.controller.image.partitions[0].leader == NO_LEADER
    talk.say(BalanceDue(), now_ms=later_ms)
    assert talk.controller.image.partitions[0].leader == BrokerId(2)


def test_a_broker_that_reports_a_failed_directory_leaves_the_isrs_of_its_partitions_once() -> None:
    """KIP-858: handleDirectoriesOffline fences the broker for the partitions of the directory only."""
    talk = Talk()
    talk.beat(1)
    talk.beat(2)
    for partition in (0, 1, 2):
        talk.say(CreateTopic(partition, ids(2, 1)))
    for offline, left in (({0}, ids(1)), ({0}, ids(1)), ({0, 1}, ids(1))):
        talk.beat(2, offline=frozenset(offline))
        states = talk.controller.image.partitions
        assert (states[0].isr, states[0].leader, states[2].isr) == (left, 1, ids(2, 1))
        assert states[1].isr == (ids(1) if 1 in offline else ids(2, 1))
    assert talk.controller.image.brokers[BrokerId(2)].offline == {0, 1}
    assert [state.partition_epoch for state in talk.controller.image.partitions.values()] == [1, 1, 0]


@pytest.mark.parametrize(
    ("partition", "behind", "error"),
    [
        (0, 0, ErrorCode.NONE),
        (0, 1, ErrorCode.STALE_BROKER_EPOCH),
        (9, 0, ErrorCode.UNKNOWN_TOPIC_ID),
        (9, 1, ErrorCode.STALE_BROKER_EPOCH),
    ],
)
def test_an_alter_partition_of_another_broker_epoch_or_an_unknown_topic_is_refused(
    partition: int, behind: int, error: ErrorCode
) -> None:
    """ReplicationControlManager.alterPartition checks the broker epoch before it looks for the topics."""
    talk, leader = Talk(), BrokerId(2)
    talk.beat(1)
    talk.beat(2)
    talk.say(CreateTopic(0, ids(2, 1)))
    request = AlterPartitionRequest(
        leader=leader, leader_epoch=LeaderEpoch(0), partition_epoch=PartitionEpoch(0), isr=(IsrMember(leader),)
    )
    ask = AlterPartition(partition, 1, request, BrokerEpoch(talk.epochs[leader] - behind))
    answers = [each for each in talk.say(ask, leader) if isinstance(each, AlterPartitionResponse)]
    assert [(each.partition, each.request, each.altered.error) for each in answers] == [(partition, request, error)]
    assert talk.controller.image.partitions[0].isr == (ids(2) if error is ErrorCode.NONE else ids(2, 1))


def test_a_replica_in_a_failed_directory_is_not_elected_until_its_broker_starts_again() -> None:
    talk = Talk()
    talk.beat(1)
    talk.beat(2)
    talk.say(CreateTopic(0, ids(2, 1)))
    talk.beat(2, offline=frozenset({0}))
    told = talk.say(ElectLeaders(0, Election.PREFERRED))
    assert told == [ElectLeadersResponse(0, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)]
    talk.beat(1, offline=frozenset({0}))
    assert not talk.controller.image.partitions[0].has_leader
    later_ms = SETTINGS.session_ms + 1
    assert talk.fenced_at(later_ms) == [1, 2]
    talk.beat(2, later_ms)  # A heartbeat tells what has failed since the one before.
    assert talk.controller.image.brokers[BrokerId(2)].offline == {0}
    assert not talk.controller.image.partitions[0].has_leader
    talk.register(BrokerId(2), "2/2", 2 * later_ms)
    assert talk.controller.image.brokers[BrokerId(2)].offline == frozenset()


def test_a_new_partition_has_the_replicas_that_run_in_sync_and_is_created_once() -> None:
    """ReplicationControlManager.createTopic refuses replicas none of which runs, and a topic that is there."""
    talk = Talk()
    talk.beat(1)
    for replicas in ((2,), (2, 7)):
        talk.say(CreateTopic(0, ids(*replicas)))
        assert talk.controller.image.partitions == {}
    for replicas in ((2, 1), (1,)):
        talk.say(CreateTopic(0, ids(*replicas)))
        state = talk.controller.image.partitions[0]
        assert (state.replicas, state.isr, state.leader) == (ids(2, 1), ids(1), 1)


@pytest.mark.parametrize(("read", "state"), [(0, BrokerState.FENCED), (1, BrokerState.UNFENCED)])
def test_a_broker_is_unfenced_once_it_has_read_its_registration(read: int, state: BrokerState) -> None:
    """BrokerHeartbeatManager.calculateNextBrokerState, 4.3.1: the last offset read is at least the registration's."""
    talk, second = Talk(), BrokerId(2)
    beat = BrokerHeartbeat(second, talk.epochs[second], Heartbeat(metadata_offset=read), frozenset())
    answers = [each.state for each in talk.say(beat, 2) if isinstance(each, BrokerHeartbeatResponse)]
    assert (answers, talk.epochs[second]) == ([state], 1)


def test_a_broker_that_was_just_unfenced_counts_as_having_read_nothing() -> None:
    """BrokerHeartbeatManager, 4.3.1: a stopping broker waits until all that are unfenced have read that it stops."""
    talk = Talk()
    talk.epochs[BrokerId(3)] = talk.register(BrokerId(3), "3/1")
    assert {talk.beat(broker) for broker in (1, 2, 1, 2)} == {BrokerState.UNFENCED}
    talk.say(CreateTopic(0, ids(1, 2)))
    assert talk.beat(3) is BrokerState.UNFENCED
    for _ in range(2):
        assert talk.beat(1, stops=True) is BrokerState.CONTROLLED_SHUTDOWN
    talk.beat(2)
    talk.beat(3)
    assert talk.beat(1, stops=True) is BrokerState.SHUTDOWN_NOW


def test_a_topic_is_deleted_once() -> None:
    talk = Talk()
    talk.beat(1)
    talk.say(CreateTopic(0, ids(1)))
    count = len(talk.controller.log)
    for partition in (9, 0, 0):
        talk.say(DeleteTopic(partition))
    assert talk.controller.log[count:] == [PartitionRemoved(0)]
    assert talk.controller.image.partitions == {}


def test_no_broker_is_assigned_twice() -> None:
    """ReplicationControlManager.validateManualPartitionAssignment refuses a list with a duplicate."""
    talk = Talk()
    talk.beat(1)
    talk.say(CreateTopic(0, ids(1)))
    told = talk.say(AlterPartitionReassignments(0, ids(2, 2)))
    assert told == [AlterPartitionReassignmentsResponse(0, ErrorCode.INVALID_REPLICA_ASSIGNMENT)]


def test_a_message_that_is_not_for_controllers_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^a controller takes no FetchDue$"):
        Talk().say(FetchDue(0, 1))


@pytest.mark.parametrize(("sender", "answer_count"), [(-1, 0), (0, 1), (1, 1)])
def test_an_operator_is_answered_unless_it_is_outside_the_network(sender: int, answer_count: int) -> None:
    told = Talk().say(ElectLeaders(9, Election.PREFERRED), sender)
    assert told == [ElectLeadersResponse(9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)] * answer_count

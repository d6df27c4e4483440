"""The tables that the roles step by: every pair, Kafka's rows, and roles that a refused input leaves as they were."""

from __future__ import annotations

import enum
import itertools

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.cli import run
from broker.clock import ManualClock
from broker.error_codes import ErrorCode
from broker.errors import UsageError
from broker.ids import NO_LEADER, BrokerEpoch, BrokerId, LeaderEpoch, Offset
from broker.machines import FORMS, drawn, step, word
from broker.registration import BrokerState
from broker.units import MINUTE_MS, DurationMs, TimeMs
from replication.cli.simulate import simulate
from replication.roles.broker_role import BrokerRole
from replication.roles.hosted import BrokerStart
from replication.roles.messages import (
    Address,
    BrokerHeartbeatResponse,
    BrokerRecord,
    BrokerRegistration,
    BrokerRegistrationResponse,
    ConsumerFetch,
    ConsumerFetchResponse,
    Fetch,
    FetchResponse,
    ListOffsets,
    Message,
    MetadataFetchDue,
    MetadataFetchResponse,
    NodeId,
    PartitionRecord,
)
from replication.roles.outbox import Outbox
from replication.roles.settings import RoleSettings
from replication.roles.states import MACHINES, Machine, find_machines
from replication.roles.states.lifecycle import LIFECYCLE_TRANSITIONS, LifecycleInput, LifecycleState
from replication.roles.states.partition_status import (
    PARTITION_STATUS_TRANSITIONS,
    PartitionStatusInput,
    check_change,
    partition_status_input,
    partition_status_of,
)
from replication.roles.states.replica_role import ReplicaRole
from replication.roles.states.write import WRITE_ANSWERS, WRITE_TRANSITIONS, WriteInput, WriteState
from replication.rules.fencing import StopProof
from replication.rules.fetch import FetchAnswer, FetchRequest
from replication.rules.partition import BrokerStatus, PartitionState
from replication.rules.produce import Fate, fate
from replication.simulation.node import Node
from replication.simulation.options import quiet
from replication.strategies import applied, events, partitions
from tests.replication.builders import ids, settings

EVERY_PAIR = [
    pytest.param(machine, state, event, id=f"{machine.name}: {state.name}, {event.name}")
    for machine in MACHINES
    for state, event in itertools.product(machine.states, machine.inputs)
]


@pytest.mark.parametrize(("machine", "state", "event"), EVERY_PAIR)
def test_every_pair_steps_as_listed_or_is_refused_by_name(machine: Machine, state: enum.Enum, event: enum.Enum) -> None:
    if (state, event) in machine.table:
        assert step(machine.table, state, event, what="thing") is machine.table[state, event]
        return
    with pytest.raises(UsageError, match=f"^the thing is {word(state)} and cannot take {word(event)}$"):
        step(machine.table, state, event, what="thing")


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_every_state_can_be_reached_from_the_first_and_every_input_is_taken_somewhere(machine: Machine) -> None:
    reached = {machine.states[0]}
    while new := {after for (before, _), after in machine.table.items() if before in reached} - reached:
        reached |= new
    assert reached == set(machine.states)
    assert {event for _, event in machine.table} == set(machine.inputs)


def test_only_the_end_of_a_write_or_of_a_process_is_never_left() -> None:
    stuck = {
        (machine.name, state)
        for machine in MACHINES
        for state in machine.states
        if not any(before is state and after is not state for (before, _), after in machine.table.items())
    }
    ends = (WriteState.ACKED, WriteState.FAILED, WriteState.UNSURE, WriteState.UNANSWERED)
    assert stuck == {("lifecycle", LifecycleState.SHUTTING_DOWN)} | {("write", end) for end in ends}


# Writes.


@pytest.mark.parametrize("event", WriteInput)
def test_what_a_producer_may_believe_is_how_its_write_ended(event: WriteInput) -> None:
    ends = {after for (_, taken), after in WRITE_TRANSITIONS.items() if taken is event}
    assert len(ends) == 1
    end = ends.pop()
    if event not in WRITE_ANSWERS:
        assert end in (WriteState.WAITING, WriteState.UNANSWERED)
        return
    expected = {WriteState.ACKED: Fate.ACKED, WriteState.FAILED: Fate.FAILED, WriteState.UNSURE: Fate.UNKNOWN}[end]
    if event in (WriteInput.REFUSED_SEQUENCE, WriteInput.REFUSED_OFFLINE):
        # The producer cannot know whether an earlier attempt, or this one before the disk failed, was appended.
        expected = Fate.UNKNOWN
    assert fate(WRITE_ANSWERS[event], appended=end is not WriteState.FAILED) is expected


# The partition in the controller's eyes.


@given(partitions(), st.data(), st.booleans())
def test_whatever_happens_to_brokers_the_partition_steps_by_the_tables(
    state: PartitionState, data: st.DataObject, unclean: bool
) -> None:
    sequence = data.draw(events(state.replicas))
    states = applied(state, sequence, attrs.evolve(settings(min_isr=2), unclean_election=unclean))
    for before, after in itertools.pairwise(states):
        # A broker that is back uncleanly and at once elected is two changes, of which only the last is seen here.
        if after.partition_epoch == before.partition_epoch + 1:
            check_change(before, after)


def evolved(**changes: object) -> PartitionState:
    values: dict[str, object] = {"replicas": ids(1, 2, 3), "isr": ids(1, 2), "leader": BrokerId(1)}
    return PartitionState(**{**values, **changes})  # type: ignore[arg-type] # fields by name, or of either kind of record.


@pytest.mark.parametrize(
    ("before", "after", "event"),
    [
        (None, evolved(), PartitionStatusInput.CREATED),
        (evolved(), evolved(isr=ids(2), leader=BrokerId(2)), PartitionStatusInput.ELECTED),
        (
            evolved(isr=ids(1)),
            evolved(isr=ids(3), leader=BrokerId(3), recovering=True),
            PartitionStatusInput.ELECTED_UNCLEANLY,
        ),
        (
            evolved(isr=ids(1), recovering=True),
            evolved(isr=ids(3), leader=BrokerId(3), recovering=True),
            PartitionStatusInput.ELECTED_UNCLEANLY,
        ),
        (
            evolved(isr=ids(1, 3), recovering=True),
            evolved(isr=ids(3), leader=BrokerId(3), recovering=True),
            PartitionStatusInput.ELECTED,
        ),
        # Until KAFKA-19522 a replica that was eligible could be elected as it lost its records: the mark tells of it.
        (
            evolved(isr=ids(1), elr=ids(3)),
            evolved(isr=ids(3), leader=BrokerId(3), recovering=True),
            PartitionStatusInput.ELECTED_UNCLEANLY,
        ),
        # Releases without the mark hold an unclean election like any other.
        (evolved(isr=ids(1)), evolved(isr=ids(3), leader=BrokerId(3)), PartitionStatusInput.ELECTED),
        (evolved(isr=ids(1)), evolved(isr=ids(1), leader=NO_LEADER), PartitionStatusInput.LEADER_LOST),
        (evolved(isr=ids(1), recovering=True), evolved(), PartitionStatusInput.RECOVERED),
        (evolved(), evolved(isr=ids(1)), PartitionStatusInput.CHANGED),
    ],
)
def test_a_change_is_read_as_what_it_means(
    before: PartitionState | None, after: PartitionState, event: PartitionStatusInput
) -> None:
    assert partition_status_input(before, after) is event
    assert PARTITION_STATUS_TRANSITIONS[partition_status_of(before), event] is partition_status_of(after)
    check_change(before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (evolved(), evolved(isr=ids(1), recovering=True)),
        (evolved(leader=NO_LEADER, recovering=True), evolved(leader=NO_LEADER)),
        (None, evolved(leader=NO_LEADER)),
    ],
)
def test_a_change_that_no_table_lists_is_a_bug(before: PartitionState | None, after: PartitionState) -> None:
    with pytest.raises((AssertionError, UsageError)):
        check_change(before, after)


# Roles: a broker brought into each state, then told everything that it cannot take there.

OWN, LEADER, EPOCH = BrokerId(1), BrokerId(2), LeaderEpoch(5)
PEER = Address(NodeId(2))
NOW = TimeMs(1_000)


class Stage:
    """A broker that has read metadata which give it a part in partition 0."""

    def __init__(self, replica_role: ReplicaRole) -> None:
        options = quiet(1, DurationMs(MINUTE_MS))
        node = Node(OWN, 0, options.role_settings, ManualClock(), options.wall_clock_ms)
        self.role = node.start()
        self.out = Outbox()
        self.role.begin(self.out)
        self.tell(BrokerRegistrationResponse(BrokerEpoch(1)))
        records = [BrokerRecord(OWN, BrokerStatus(epoch=BrokerEpoch(1), fenced=True))]
        leader = {ReplicaRole.LEADING: OWN, ReplicaRole.LEADERLESS: NO_LEADER}.get(replica_role, LEADER)
        state = PartitionState(replicas=ids(1, 2, 3), isr=ids(1, 2, 3), leader=leader, leader_epoch=EPOCH)
        if replica_role is not ReplicaRole.NONE:
            records.append(PartitionRecord(0, state))  # type: ignore[arg-type] # fields by name, or of either kind of record.
        self.tell(MetadataFetchResponse(1, 0, tuple(records)))
        error = {ReplicaRole.PARKED: ErrorCode.FENCED_LEADER_EPOCH, ReplicaRole.PLACING: ErrorCode.OFFSET_OUT_OF_RANGE}
        if replica_role in error:
            self.tell(FetchResponse(0, self.number, FetchAnswer(error=error[replica_role]), b""))
        assert self.replica_role is replica_role

    @property
    def replica_role(self) -> ReplicaRole:
        replica_role = self.role.roles.get(0)
        return ReplicaRole.NONE if replica_role is None else replica_role.replica_role

    @property
    def number(self) -> int:
        asked = [message for _, message in self.out.sent if isinstance(message, Fetch | ListOffsets)]
        return asked[-1].number if asked else 1

    def tell(self, message: Message) -> list[Message]:
        before = len(self.out.sent)
        self.role.handle(message, PEER, NOW, self.out)
        return [sent for _, sent in self.out.sent[before:]]

    def snapshot(self) -> object:
        replica_role = self.role.roles.get(0)
        return (
            self.role.lifecycle,
            self.role.image.offset,
            replica_role and (replica_role.replica_role, replica_role.state, replica_role.log.version),
        )


FOLLOWING = FetchRequest(replica=BrokerId(3), offset=Offset(0), leader_epoch=EPOCH)


def test_a_leader_sends_a_consumer_to_the_follower_in_its_rack() -> None:
    stage = Stage(ReplicaRole.LEADING)
    status = {broker: BrokerStatus(epoch=BrokerEpoch(1), rack=f"rack-{broker}") for broker in (OWN, LEADER)}
    records = tuple(BrokerRecord(broker, each) for broker, each in status.items())
    stage.tell(MetadataFetchResponse(2, stage.role.image.offset, records))
    stage.tell(Fetch(0, 1, attrs.evolve(FOLLOWING, replica=LEADER, broker_epoch=BrokerEpoch(1))))
    for rack, preferred in (("rack-2", LEADER), ("rack-1", NO_LEADER), ("", NO_LEADER)):
        (answer,) = stage.tell(ConsumerFetch(0, 2, Offset(0), rack))
        assert isinstance(answer, ConsumerFetchResponse)
        assert (answer.error, answer.preferred) == (ErrorCode.NONE, preferred)


@pytest.mark.parametrize("rack", ["", "rack-2"])
def test_a_follower_answers_a_consumer_of_any_rack_itself(rack: str) -> None:
    (answer,) = Stage(ReplicaRole.FETCHING).tell(ConsumerFetch(0, 2, Offset(0), rack))
    assert isinstance(answer, ConsumerFetchResponse)
    assert (answer.error, answer.preferred) == (ErrorCode.NONE, NO_LEADER)


def test_a_second_answer_to_a_registration_changes_nothing_and_begins_no_second_heartbeats() -> None:
    stage = Stage(ReplicaRole.LEADING)
    assert stage.role.epoch is not None
    before = stage.snapshot()
    assert stage.tell(BrokerRegistrationResponse(BrokerEpoch(stage.role.epoch + 1))) == []
    assert (stage.snapshot(), stage.role.epoch) == (before, BrokerEpoch(1))


def test_a_message_that_is_not_for_brokers_is_refused_and_changes_nothing() -> None:
    stage = Stage(ReplicaRole.FETCHING)
    before = stage.snapshot()
    with pytest.raises(UsageError, match=r"^a broker takes no BrokerRegistration$"):
        stage.tell(BrokerRegistration(OWN, "1/1", StopProof()))
    assert stage.snapshot() == before


# The life of a process.

HEARD = {
    LifecycleInput.HEARTBEAT_FENCED: BrokerState.FENCED,
    LifecycleInput.HEARTBEAT_UNFENCED: BrokerState.UNFENCED,
    LifecycleInput.HEARTBEAT_SHUT_DOWN: BrokerState.SHUTDOWN_NOW,
}
WAY = {
    LifecycleState.STARTING: (),
    LifecycleState.RECOVERY: (LifecycleInput.CAUGHT_UP,),
    LifecycleState.RUNNING: (LifecycleInput.CAUGHT_UP, LifecycleInput.HEARTBEAT_UNFENCED),
    LifecycleState.PENDING_CONTROLLED_SHUTDOWN: (
        LifecycleInput.CAUGHT_UP,
        LifecycleInput.HEARTBEAT_UNFENCED,
        LifecycleInput.STOP_WANTED,
    ),
    LifecycleState.SHUTTING_DOWN: (
        LifecycleInput.CAUGHT_UP,
        LifecycleInput.HEARTBEAT_UNFENCED,
        LifecycleInput.STOP_WANTED,
        LifecycleInput.HEARTBEAT_SHUT_DOWN,
    ),
}


def living() -> BrokerRole:
    start = BrokerStart(OWN, "1/1", StopProof(), lambda _: None, lambda _: None, lambda _: None)  # type: ignore[arg-type, return-value] # no partition, so none is called.
    role = BrokerRole(start, RoleSettings())
    role.begin(Outbox())
    role.handle(BrokerRegistrationResponse(BrokerEpoch(1)), PEER, NOW, Outbox())
    return role


def happen(role: BrokerRole, event: LifecycleInput) -> None:
    if event in HEARD:
        role.handle(BrokerHeartbeatResponse(ErrorCode.NONE, HEARD[event]), PEER, NOW, Outbox())
    elif event is LifecycleInput.CAUGHT_UP:
        record = BrokerRecord(OWN, BrokerStatus(epoch=BrokerEpoch(1), fenced=True))
        number = 1 + role.image.offset
        role.handle(MetadataFetchResponse(number, role.image.offset, (record,)), PEER, NOW, Outbox())
    elif event is LifecycleInput.STOP_WANTED:
        was = role.lifecycle
        assert role.ask_to_stop() is ((was, event) in LIFECYCLE_TRANSITIONS)


@pytest.mark.parametrize("state", WAY)
@pytest.mark.parametrize("event", [event for event in LifecycleInput if event is not LifecycleInput.START])
def test_a_process_lives_by_the_table_and_stays_as_it_is_otherwise(
    state: LifecycleState, event: LifecycleInput
) -> None:
    role = living()
    for before in WAY[state]:
        happen(role, before)
    assert role.lifecycle is state
    happen(role, event)
    assert role.lifecycle is LIFECYCLE_TRANSITIONS.get((state, event), state)
    assert role.may_stop is (role.lifecycle is LifecycleState.SHUTTING_DOWN)


def test_an_answer_to_a_heartbeat_of_another_epoch_says_nothing_of_this_life() -> None:
    role = living()
    happen(role, LifecycleInput.CAUGHT_UP)
    role.handle(BrokerHeartbeatResponse(ErrorCode.STALE_BROKER_EPOCH, BrokerState.UNFENCED), PEER, NOW, Outbox())
    assert role.lifecycle is LifecycleState.RECOVERY


def test_a_broker_has_not_caught_up_by_the_registration_of_its_former_life() -> None:
    """BrokerLifecycleManager leaves STARTING when the broker has read the record of its own registration."""
    role, starting = living(), LifecycleState.STARTING
    for broker, epoch, lifecycle in ((LEADER, 1, starting), (OWN, 0, starting), (OWN, 1, LifecycleState.RECOVERY)):
        record = BrokerRecord(broker, BrokerStatus(epoch=BrokerEpoch(epoch), fenced=True))
        role.handle(MetadataFetchResponse(1 + role.image.offset, role.image.offset, (record,)), PEER, NOW, Outbox())
        assert role.lifecycle is lifecycle


@pytest.mark.parametrize(("number", "offset"), [(1, 0), (2, 1)])
def test_an_answer_to_another_question_about_the_metadata_is_not_taken(number: int, offset: int) -> None:
    """The question may be a former one, or one of the broker's former life, which counted from 1 as well."""
    role = living()
    role.handle(MetadataFetchDue(1), PEER, NOW, Outbox())
    out = Outbox()
    record = BrokerRecord(OWN, BrokerStatus(epoch=BrokerEpoch(1), fenced=True))
    role.handle(MetadataFetchResponse(number, offset, (record,)), PEER, NOW, out)
    assert (role.image.offset, role.lifecycle, out.sent) == (0, LifecycleState.STARTING, [])
    role.handle(MetadataFetchResponse(2, 0, (record,)), PEER, NOW, out)
    assert role.image.offset == 1


# Drawings.


@pytest.mark.parametrize("form", FORMS)
def test_the_command_draws_one_machine(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    (machine,) = find_machines("lifecycle")
    assert run(simulate, "simulate", ["--diagram", "lifecycle", "--format", form]) == 0
    heading = "lifecycle: a broker process as it sees itself\n\n" if form == "text" else ""
    assert capsys.readouterr().out == heading + machine.text(form) + "\n"


def test_the_command_lists_all_machines_or_says_which_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(simulate, "simulate", ["--diagram"]) == 0
    out = capsys.readouterr().out
    assert [f"{machine.name}: {machine.title}" in out for machine in MACHINES] == [True] * len(MACHINES)
    assert run(simulate, "simulate", ["--diagram", "lamp\x1b"]) == 2
    assert capsys.readouterr().err.startswith(r"simulate: there is no state machine 'lamp\x1b'; there are registration")
    with pytest.raises(UsageError, match=r"^form 'png' is not known; allowed are text, mermaid, dot$"):
        drawn(LIFECYCLE_TRANSITIONS, "png")

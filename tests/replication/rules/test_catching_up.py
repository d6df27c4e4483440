"""A broker is unfenced once it has read its own registration, and no record earlier."""

from __future__ import annotations

import pytest

from broker.ids import BrokerEpoch, BrokerId
from broker.registration import BrokerState, Heartbeat
from broker.units import TimeMs
from replication.roles.broker_role import BrokerRole
from replication.roles.broker_start import BrokerStart
from replication.roles.controller import ControllerRole
from replication.roles.messages import (
    CONTROLLER,
    Address,
    BrokerHeartbeat,
    BrokerHeartbeatResponse,
    BrokerRecord,
    BrokerRegistration,
    BrokerRegistrationResponse,
    CreateTopic,
    Message,
    NodeId,
)
from replication.roles.outbox import Outbox
from replication.roles.settings import RoleSettings
from replication.rules.fencing import StopProof

FIRST, SECOND, THIRD = BrokerId(1), BrokerId(2), BrokerId(3)
NOW = TimeMs(0)


def answers(role: ControllerRole | BrokerRole, message: Message, sender: int) -> list[Message]:
    """Return what a role sends because of a message."""
    out = Outbox()
    role.handle(message, Address(NodeId(sender)), NOW, out)
    return [each for _, each in out.sent]


@pytest.mark.parametrize(
    ("beyond", "state"), [(-1, BrokerState.FENCED), (0, BrokerState.FENCED), (1, BrokerState.UNFENCED)]
)
def test_a_broker_is_unfenced_when_it_has_read_its_registration(beyond: int, state: BrokerState) -> None:
    """BrokerHeartbeatManager.calculateNextBrokerState, 4.3.1: the last offset read is at least the registration's."""
    controller = ControllerRole(RoleSettings())
    for broker in (FIRST, SECOND):
        (told,) = answers(controller, BrokerRegistration(broker, f"{broker}/1", StopProof()), broker)
    assert isinstance(told, BrokerRegistrationResponse)
    of_second = [isinstance(record, BrokerRecord) and record.broker == SECOND for record in controller.log]
    assert of_second.count(True) == 1
    registered = of_second.index(True)
    assert registered >= 1
    start = BrokerStart(SECOND, "2/1", StopProof(), lambda _: None, lambda _: None, lambda _: None)  # type: ignore[arg-type, return-value] # no partition, so none is called.
    role = BrokerRole(start, RoleSettings())
    role.begin(Outbox())
    role.image.apply(controller.log[: registered + beyond])
    (heartbeat,) = (each for each in answers(role, told, 0) if isinstance(each, BrokerHeartbeat))
    (answer,) = answers(controller, heartbeat, SECOND)
    assert isinstance(answer, BrokerHeartbeatResponse)
    assert answer.state is state


def test_a_broker_that_was_just_unfenced_counts_as_having_read_nothing() -> None:
    """BrokerHeartbeatManager, 4.3.1: a stopping broker waits until all that are unfenced have read that it stops."""
    controller = ControllerRole(RoleSettings())
    epochs: dict[BrokerId, BrokerEpoch] = {}

    def beat(broker: BrokerId, *, want_shutdown: bool = False, read: int = 100) -> BrokerState:
        heartbeat = Heartbeat(metadata_offset=read, want_shutdown=want_shutdown)
        (answer,) = answers(controller, BrokerHeartbeat(broker, epochs[broker], heartbeat, frozenset()), broker)
        assert isinstance(answer, BrokerHeartbeatResponse)
        return answer.state

    for broker in (FIRST, SECOND, THIRD):
        (told,) = answers(controller, BrokerRegistration(broker, f"{broker}/1", StopProof()), broker)
        assert isinstance(told, BrokerRegistrationResponse)
        assert told.epoch is not None
        epochs[broker] = told.epoch
    assert {beat(broker) for broker in (FIRST, SECOND, FIRST, SECOND)} == {BrokerState.UNFENCED}
    answers(controller, CreateTopic(0, (FIRST, SECOND)), CONTROLLER)
    assert controller.image.partitions[0].leader == FIRST
    assert beat(THIRD) is BrokerState.UNFENCED
    assert beat(FIRST, want_shutdown=True) is BrokerState.CONTROLLED_SHUTDOWN
    assert controller.image.partitions[0].leader == SECOND
    last = len(controller.log) - 1
    assert beat(FIRST, want_shutdown=True) is BrokerState.CONTROLLED_SHUTDOWN
    assert beat(THIRD, read=last - 1) is BrokerState.UNFENCED
    assert beat(FIRST, want_shutdown=True) is BrokerState.CONTROLLED_SHUTDOWN
    assert beat(THIRD, read=last) is BrokerState.UNFENCED
    assert beat(FIRST, want_shutdown=True) is BrokerState.SHUTDOWN_NOW

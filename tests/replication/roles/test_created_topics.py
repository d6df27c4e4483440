"""Which replicas a new partition has in sync, and which orders to create one change nothing.

Source: ReplicationControlManager.createTopic of Kafka 4.3.1.
"""

from __future__ import annotations

import pytest

from broker.ids import BrokerId
from broker.registration import Heartbeat
from broker.units import TimeMs
from replication.roles.controller import ControllerRole
from replication.roles.messages import (
    Address,
    BrokerHeartbeat,
    BrokerRegistration,
    BrokerRegistrationResponse,
    CreateTopic,
    Message,
    NodeId,
)
from replication.roles.outbox import Outbox
from replication.roles.settings import RoleSettings
from replication.rules.fencing import StopProof
from tests.replication.builders import ids

RUNS, FENCED = BrokerId(1), BrokerId(2)


def told(controller: ControllerRole, message: Message, broker: int) -> list[Message]:
    """Return what the controller sends because of a message."""
    out = Outbox()
    controller.handle(message, Address(NodeId(broker)), TimeMs(0), out)
    return [each for _, each in out.sent]


@pytest.fixture
def controller() -> ControllerRole:
    """Return the controller of broker 1, which runs, and of broker 2, which has only registered."""
    role = ControllerRole(RoleSettings())
    for broker in (RUNS, FENCED):
        (answer,) = told(role, BrokerRegistration(broker, f"{broker}/1", StopProof()), broker)
        assert isinstance(answer, BrokerRegistrationResponse)
        assert answer.epoch is not None
        if broker == RUNS:
            told(role, BrokerHeartbeat(broker, answer.epoch, Heartbeat(metadata_offset=0), frozenset()), broker)
    return role


def test_the_replicas_that_run_are_in_sync_and_the_first_of_them_leads(controller: ControllerRole) -> None:
    told(controller, CreateTopic(0, (FENCED, RUNS)), RUNS)
    state = controller.image.partitions[0]
    assert (state.replicas, state.isr, state.leader) == ((FENCED, RUNS), (RUNS,), RUNS)


@pytest.mark.parametrize("replicas", [(2,), (2, 7)])
def test_a_partition_of_which_no_replica_runs_is_not_created(
    controller: ControllerRole, replicas: tuple[int, ...]
) -> None:
    """Kafka refuses such replicas with INVALID_REPLICA_ASSIGNMENT."""
    count = len(controller.log)
    told(controller, CreateTopic(0, ids(*replicas)), RUNS)
    assert (len(controller.log), dict(controller.image.partitions)) == (count, {})


def test_a_partition_that_is_there_is_not_created_again(controller: ControllerRole) -> None:
    """Kafka answers TOPIC_ALREADY_EXISTS."""
    told(controller, CreateTopic(0, (FENCED, RUNS)), RUNS)
    count, before = len(controller.log), controller.image.partitions[0]
    told(controller, CreateTopic(0, (RUNS,)), RUNS)
    assert (len(controller.log), controller.image.partitions[0]) == (count, before)

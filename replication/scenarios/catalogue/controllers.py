"""Scenarios of controllers: with ZooKeeper (S11-zk, S15-zk, S20-zk-stop), and of a quorum, by search (S56)."""

from __future__ import annotations

from functools import partial
from typing import Final

import attrs

from broker.error_codes import ErrorCode
from replication.explore import Harm, QuorumModel, QuorumScope
from replication.explore.search import described, search
from replication.rules.switches import rules_of
from replication.scenarios.catalogue.common import fault, reassign_and_elect
from replication.scenarios.operations import Crash, HoldMessages, Operation, SendRecord
from replication.scenarios.result import ComponentScenario, Fact
from replication.scenarios.scenario import (
    DEFAULT_PARTITION_SETTINGS,
    DEFAULT_ROLE_SETTINGS,
    ExpectedResponses,
    ExpectedState,
    Scenario,
    no_response,
)
from replication.simulation import FaultKind
from replication.simulation.trace import LineSink

_OLDER: Final = attrs.evolve(DEFAULT_ROLE_SETTINGS, has_zookeeper=True)
_SETTINGS_2_8: Final = attrs.evolve(DEFAULT_PARTITION_SETTINGS, rules=rules_of("2.8"))

_CONTROLLED_BY_3: Final[tuple[Operation, ...]] = tuple(
    HoldMessages(0, 500, "RegisterController", sender=broker) for broker in range(3)
)
"""Broker 3, which holds no replica, creates the znode /controller first."""


_S11: Final = Scenario(
    name="S11-zk",
    title="LeaderAndIsr for a former broker epoch is refused, with ZooKeeper",
    how="Broker 1 is to lead, dies before the request arrives, and 0 leads in its place. Broker 1 starts again and the "
    "old request arrives: it carries a former broker epoch and is refused.",
    source="KIP-380, KAFKA-7235",
    role_settings=_OLDER,
    settings=attrs.evolve(DEFAULT_PARTITION_SETTINGS, rules=rules_of("2.2")),
    brokers=4,
    producers=0,
    consumers=0,
    operations=(
        *_CONTROLLED_BY_3,
        reassign_and_elect(4_500, 1, 0, 2)[0],
        HoldMessages(4_990, 30_000, "LeaderAndIsr", receiver=1, count_max=1),
        reassign_and_elect(5_000, 1, 0, 2)[1],
        HoldMessages(5_050, 40_000, "LeaderAndIsr", receiver=1),
        Crash(5_200, 1, 20_000),
        SendRecord(31_000, 1, acks=1),
    ),
    expected_states=(
        ExpectedState(5_100, leader=1, leader_epoch=2),
        ExpectedState(29_000, leader=0, leader_epoch=3),
        ExpectedState(32_000, leader=0, logs=((), (), (), ())),
        ExpectedState(59_000, leader=0),
    ),
    expected_responses=(
        ExpectedResponses("LeaderAndIsrResponse", ErrorCode.STALE_BROKER_EPOCH, 1),
        ExpectedResponses("ProduceResponse", ErrorCode.NOT_LEADER_OR_FOLLOWER, 1, 1),
    ),
    lost_values=(),
)


_ZOOKEEPER: Final = (
    Scenario(
        name="S20-zk-stop",
        title="Controlled shutdown of the leader, with ZooKeeper",
        how="Broker 0 leads and is stopped. It asks the controller, which makes 1 leader and takes 0 out of the ISR; "
        "only then does 0 end its session, and no client waits.",
        source="Kafka KafkaController.doControlledShutdown, KafkaServer.controlledShutdown, 2.8",
        role_settings=_OLDER,
        settings=_SETTINGS_2_8,
        brokers=4,
        plan=(fault(5_000, FaultKind.STOP, 0, 20_000),),
        operations=_CONTROLLED_BY_3,
        expected_states=(
            ExpectedState(5_000, leader=0, isr=(0, 1, 2)),
            ExpectedState(6_015, leader=1, isr=(1, 2)),
            ExpectedState(59_000, leader=1, isr=(1, 2, 0)),
        ),
    ),
    _S11,
    attrs.evolve(
        _S11,
        name="S11-zk-before",
        title="LeaderAndIsr for a former broker epoch makes a second leader, with ZooKeeper",
        how="As S11-zk under the rules of 2.1: broker 1 obeys and takes a write that no replica ever copies.",
        settings=attrs.evolve(_S11.settings, rules=rules_of("2.1")),
        expected_states=(
            *_S11.expected_states[:2],
            ExpectedState(32_000, leader=0, logs=((), (0,), (), ())),
            _S11.expected_states[3],
        ),
        expected_responses=(
            no_response("LeaderAndIsrResponse", ErrorCode.STALE_BROKER_EPOCH),
            ExpectedResponses("ProduceResponse", ErrorCode.NONE, 1, 1),
        ),
        lost_values=(0,),
    ),
    Scenario(
        name="S15-zk",
        title="Paused controller is replaced and its requests are refused, with ZooKeeper",
        how="The controller pauses for longer than its session, and another one is elected. It resumes and sends "
        "requests of its old controller epoch; brokers that know the later epoch refuse them.",
        source="Kafka ControllerEpoch in control requests, KAFKA-6082",
        role_settings=_OLDER,
        settings=_SETTINGS_2_8,
        brokers=4,
        plan=(fault(6_007, FaultKind.PAUSE, 3, 20_000), fault(8_000, FaultKind.KILL, 0, 30_000)),
        operations=_CONTROLLED_BY_3,
        expected_states=(
            ExpectedState(7_900, leader=0),
            ExpectedState(24_000, leader=1, isr=(1, 2)),
            ExpectedState(59_000, leader=1, isr=(1, 2, 0)),
        ),
        expected_responses=(ExpectedResponses("LeaderAndIsrResponse", ErrorCode.STALE_CONTROLLER_EPOCH),),
    ),
)


def _searched(on_line: LineSink, scope: QuorumScope) -> tuple[Fact, ...]:
    """Search every history within a scope, print the shortest harmful one, and return its length."""
    model = QuorumModel(scope)
    outcome = search(model)
    for line in described(model, outcome.history):
        on_line(line)
    if outcome.fault is not None:
        on_line(outcome.fault)
        on_line(model.state_text(outcome.history[-1]))
        return (Fact("steps to the fault:", outcome.depth),)
    return (Fact("no fault in any state; states searched:", outcome.state_count),)


_SOURCE: Final = "KAFKA-14077, KIP-853, KIP-856"

CONTROLLERS: Final = (
    *_ZOOKEEPER,
    ComponentScenario(
        name="S56",
        title="Controller voter comes back with an empty disk",
        how="A controller loses its disk, with its vote and a record that it had helped to commit, and comes back "
        "under the same id. With KIP-853 a voter is an id and a directory id: the empty disk belongs to no voter.",
        source=_SOURCE,
        script=partial(_searched, scope=QuorumScope(records=0)),
        expected=(Fact("no fault in any state; states searched:", 18_792),),
    ),
    ComponentScenario(
        name="S56-before",
        title="Controller voter comes back with an empty disk and a committed record is lost",
        how="A controller loses its disk, with its vote and a record that it had helped to commit, and comes back "
        "under the same id. It helps a candidate without the record to a majority.",
        source=_SOURCE,
        script=partial(_searched, scope=QuorumScope(directory_ids=False, harms=(Harm.LOSS,))),
        expected=(Fact("steps to the fault:", 8),),
    ),
    ComponentScenario(
        name="S56-votes",
        title="Controller voter comes back with an empty disk and two leaders share an epoch",
        how="The controller has lost the record of its vote and votes again in the same epoch.",
        source=_SOURCE,
        script=partial(_searched, scope=QuorumScope(directory_ids=False, harms=(Harm.TWO_LEADERS,))),
        expected=(Fact("steps to the fault:", 5),),
    ),
)

"""Describe scenarios under ZooKeeper and the rules of 2.8 or before: S04-zk, S11-zk, S15-zk, S20-zk and S42-zk.

Source: each scenario names its own.
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.ids import BrokerId
from broker.units import DurationMs
from replication.roles.messages import CreateTopic, DeleteTopic
from replication.rules.switches import rules_of
from replication.scenarios.catalogue.common import QUICK_LAG, fault, reassign_and_elect
from replication.scenarios.operations import AskController, Crash, HoldMessages, Operation, SendRecord
from replication.scenarios.scenario import (
    DEFAULT_PARTITION_SETTINGS,
    DEFAULT_ROLE_SETTINGS,
    ExpectedResponses,
    ExpectedState,
    Scenario,
    no_response,
)
from replication.simulation import FaultKind

_OLDER: Final = attrs.evolve(DEFAULT_ROLE_SETTINGS, has_zookeeper=True)
_SETTINGS_2_8: Final = attrs.evolve(DEFAULT_PARTITION_SETTINGS, rules=rules_of("2.8"))

_CONTROLLED_BY_3: Final[tuple[Operation, ...]] = tuple(
    HoldMessages(0, 500, "RegisterController", sender=broker) for broker in range(3)
)
"""Broker 3, which holds no replica, creates the znode /controller first."""

_S04: Final = Scenario(
    name="S04-zk",
    title="LeaderAndIsr of an old epoch arrives late, with ZooKeeper",
    how="As S04 with LeaderAndIsr requests: the request to follow 1 reaches 2 after 2 has committed m0 with 0 in a "
    "later epoch.",
    source="KIP-320",
    role_settings=attrs.evolve(_OLDER, answer_ms_max=DurationMs(30_000)),
    settings=attrs.evolve(_SETTINGS_2_8, lag_ms_max=QUICK_LAG),
    brokers=4,
    producers=0,
    consumers=0,
    operations=(
        *_CONTROLLED_BY_3,
        reassign_and_elect(4_500, 1, 0, 2)[0],
        HoldMessages(5_005, 7_300, "LeaderAndIsr", receiver=2, count_max=1),
        reassign_and_elect(5_000, 1, 0, 2)[1],
        HoldMessages(5_100, 25_000, "LeaderAndIsr", receiver=1),
        HoldMessages(5_100, 19_000, "LeaderAndIsr", receiver=2),
        reassign_and_elect(5_110, 0, 1, 2)[0],
        reassign_and_elect(5_150, 0, 1, 2)[1],
        SendRecord(5_300, 0),
        HoldMessages(6_060, 25_000, "FetchResponse", sender=0, receiver=2),
        Crash(7_600, 0, 30_000),
    ),
    expected_states=(ExpectedState(5_090, leader=1, leader_epoch=2), ExpectedState(5_290, leader=0, leader_epoch=4)),
    lost_values=(),
)

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

_S42: Final = Scenario(
    name="S42-zk",
    title="Topic is deleted while a broker is down, with ZooKeeper",
    how="Broker 2 is down while its topic, with m0, is deleted. Brokers 0 and 1 delete their logs; the topic stays "
    "until 2 is back and has deleted its own, and only then another one of the same name, with m1, can be "
    "created.",
    source="Kafka TopicDeletionManager, 2.8",
    role_settings=_OLDER,
    settings=_SETTINGS_2_8,
    producers=0,
    consumers=0,
    partitions=1,
    operations=(
        SendRecord(5_000, 0),
        Crash(6_000, 2, 30_000),
        AskController(20_000, DeleteTopic(0)),
        AskController(25_000, CreateTopic(1, tuple(BrokerId(broker) for broker in range(3)), "topic-0")),
        AskController(45_000, CreateTopic(1, tuple(BrokerId(broker) for broker in range(3)), "topic-0")),
        SendRecord(47_000, 0, partition=1),
    ),
    expected_states=(
        ExpectedState(29_000, leader=0, isr=(0, 1), logs=((), (), (0,))),
        ExpectedState(59_000, partition=1, leader=0, isr=(0, 1, 2), logs=((1,), (1,), (1,))),
    ),
    is_strict=False,
)

ZOOKEEPER: Final = (
    _S04,
    attrs.evolve(
        _S04,
        name="S04-zk-before",
        title="LeaderAndIsr of an old epoch arrives late and a committed record is truncated, with ZooKeeper",
        how="As S04-zk under the rules of 2.0: broker 2 follows 1 in the old epoch and truncates m0.",
        settings=attrs.evolve(_S04.settings, rules=rules_of("2.0")),
        expected_states=(
            ExpectedState(7_280, leader=0, logs=((0,), (), (0,), ())),
            ExpectedState(20_000, leader=2, logs=((0,), (), (), ())),
        ),
        breaks=frozenset({"I4", "I5", "I6", "I7", "I9", "I16"}),
        lost_values=(0,),
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
    Scenario(
        name="S20-zk",
        title="Clean crash of the leader, with ZooKeeper",
        how="Broker 0 leads and dies; its session expires, the controller is notified, reads the znodes, and makes 1 "
        "leader in a new epoch.",
        source="Kafka KafkaController, 2.8",
        role_settings=_OLDER,
        settings=_SETTINGS_2_8,
        plan=(fault(5_000, FaultKind.KILL, 0, 30_000),),
        expected_states=(
            ExpectedState(12_000, leader=0, isr=(0, 1, 2)),
            ExpectedState(20_000, leader=1, isr=(1, 2)),
            ExpectedState(59_000, leader=1, isr=(1, 2, 0)),
        ),
    ),
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
    _S42,
)
"""The scenarios whose names contain "-zk"."""

"""Scenarios of the ZooKeeper era, under the rules of 2.8 or before: S04, S11, S15, S20 and S42 as they go there.

It decides nothing; it is data.

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
from replication.scenarios.acts import Act, Crashed, Held, Ordered, Written
from replication.scenarios.catalogue.parts import QUICK_LAG, fault, moved_to
from replication.scenarios.scenario import DEFAULT_SETTINGS, DEFAULT_TERMS, Answers, Look, Scenario, never
from replication.simulation import FaultKind

_OLDER: Final = attrs.evolve(DEFAULT_SETTINGS, has_zookeeper=True)
_TERMS: Final = attrs.evolve(DEFAULT_TERMS, rules=rules_of("2.8"))

_CONTROLLED_BY_3: Final[tuple[Act, ...]] = tuple(Held(0, 500, "TakeControl", sender=broker) for broker in range(3))
"""Broker 3, which holds no replica, is the first to make the node /controller."""

_S04: Final = Scenario(
    name="S04-zk",
    title="orders that come too late, with ZooKeeper",
    how="As S04, where each replica is told by a request of its own: the order to follow 1 reaches 2 after it has "
    "committed m0 with 0 in a later epoch.",
    source="KIP-320",
    role_settings=attrs.evolve(_OLDER, answer_ms_max=DurationMs(30_000)),
    settings=attrs.evolve(_TERMS, lag_ms_max=QUICK_LAG),
    brokers=4,
    producers=0,
    consumers=0,
    acts=(
        *_CONTROLLED_BY_3,
        moved_to(4_500, 1, 0, 2)[0],
        Held(5_005, 7_300, "LeaderAndIsr", receiver=2, count_max=1),
        moved_to(5_000, 1, 0, 2)[1],
        Held(5_100, 25_000, "LeaderAndIsr", receiver=1),
        Held(5_100, 19_000, "LeaderAndIsr", receiver=2),
        moved_to(5_110, 0, 1, 2)[0],
        moved_to(5_150, 0, 1, 2)[1],
        Written(5_300, 0),
        Held(6_060, 25_000, "FetchResponse", sender=0, receiver=2),
        Crashed(7_600, 0, 30_000),
    ),
    looks=(Look(5_090, leader=1, leader_epoch=2), Look(5_290, leader=0, leader_epoch=4)),
    gone=(),
)

_S11: Final = Scenario(
    name="S11-zk",
    title="an order for a former life",
    how="1 is to lead, dies before it is told, and 0 leads in its place. 1 starts again and the old order arrives: "
    "obeyed, it makes 1 take writes that nobody will ever copy.",
    source="KIP-380, KAFKA-7235",
    role_settings=_OLDER,
    settings=attrs.evolve(DEFAULT_TERMS, rules=rules_of("2.2")),
    brokers=4,
    producers=0,
    consumers=0,
    acts=(
        *_CONTROLLED_BY_3,
        moved_to(4_500, 1, 0, 2)[0],
        Held(4_990, 30_000, "LeaderAndIsr", receiver=1, count_max=1),
        moved_to(5_000, 1, 0, 2)[1],
        Held(5_050, 40_000, "LeaderAndIsr", receiver=1),
        Crashed(5_200, 1, 20_000),
        Written(31_000, 1, acks=1),
    ),
    looks=(
        Look(5_100, leader=1, leader_epoch=2),
        Look(29_000, leader=0, leader_epoch=3),
        Look(32_000, leader=0, logs=((), (), (), ())),
        Look(59_000, leader=0),
    ),
    answers=(
        Answers("Obeyed", ErrorCode.STALE_BROKER_EPOCH, 1),
        Answers("ProduceResponse", ErrorCode.NOT_LEADER_OR_FOLLOWER, 1, 1),
    ),
    gone=(),
)

_S42: Final = Scenario(
    name="S42-zk",
    title="a topic deleted while a broker is down, with ZooKeeper",
    how="2 is down while its topic, with m0, is deleted. 0 and 1 delete their logs; the topic stays until 2 is back "
    "and has deleted its own, and only then another one of the same name, with m1, can be made.",
    source="Kafka TopicDeletionManager, 2.8",
    role_settings=_OLDER,
    settings=_TERMS,
    producers=0,
    consumers=0,
    partitions=1,
    acts=(
        Written(5_000, 0),
        Crashed(6_000, 2, 30_000),
        Ordered(20_000, DeleteTopic(0)),
        Ordered(25_000, CreateTopic(1, tuple(BrokerId(broker) for broker in range(3)), "topic-0")),
        Ordered(45_000, CreateTopic(1, tuple(BrokerId(broker) for broker in range(3)), "topic-0")),
        Written(47_000, 0, partition=1),
    ),
    looks=(
        Look(29_000, leader=0, isr=(0, 1), logs=((), (), (0,))),
        Look(59_000, partition=1, leader=0, isr=(0, 1, 2), logs=((1,), (1,), (1,))),
    ),
    is_strict=False,
)

OLDER_MODE: Final = (
    _S04,
    attrs.evolve(
        _S04,
        name="S04-zk-before",
        settings=attrs.evolve(_S04.settings, rules=rules_of("2.0")),
        looks=(Look(7_280, leader=0, logs=((0,), (), (0,), ())), Look(20_000, leader=2, logs=((0,), (), (), ()))),
        breaks=frozenset({"I4", "I5", "I6", "I7", "I9", "I16"}),
        gone=(0,),
    ),
    _S11,
    attrs.evolve(
        _S11,
        name="S11-zk-before",
        settings=attrs.evolve(_S11.settings, rules=rules_of("2.1")),
        looks=(*_S11.looks[:2], Look(32_000, leader=0, logs=((), (0,), (), ())), _S11.looks[3]),
        answers=(never("Obeyed", ErrorCode.STALE_BROKER_EPOCH), Answers("ProduceResponse", ErrorCode.NONE, 1, 1)),
        gone=(0,),
    ),
    Scenario(
        name="S15-zk",
        title="a controller that stood still",
        how="The controller stands still for longer than its session, and another one is elected. It goes on where "
        "it was, and orders about: brokers that have heard of the later epoch refuse.",
        source="Kafka ControllerEpoch in control requests, KAFKA-6082",
        role_settings=_OLDER,
        settings=_TERMS,
        brokers=4,
        plan=(fault(6_007, FaultKind.PAUSE, 3, 20_000), fault(8_000, FaultKind.KILL, 0, 30_000)),
        acts=_CONTROLLED_BY_3,
        looks=(Look(7_900, leader=0), Look(24_000, leader=1, isr=(1, 2)), Look(59_000, leader=1, isr=(1, 2, 0))),
        answers=(Answers("Obeyed", ErrorCode.STALE_CONTROLLER_EPOCH),),
    ),
    Scenario(
        name="S20-zk",
        title="clean crash of the leader, with ZooKeeper",
        how="Broker 0 leads and dies; its session ends, the controller is notified, reads, and has 1 lead in a new "
        "epoch.",
        source="Kafka KafkaController, 2.8",
        role_settings=_OLDER,
        settings=_TERMS,
        plan=(fault(5_000, FaultKind.KILL, 0, 30_000),),
        looks=(
            Look(12_000, leader=0, isr=(0, 1, 2)),
            Look(20_000, leader=1, isr=(1, 2)),
            Look(59_000, leader=1, isr=(1, 2, 0)),
        ),
    ),
    Scenario(
        name="S20-zk-stop",
        title="a leader that stops in good order, with ZooKeeper",
        how="Broker 0 leads and is told to stop. It asks the controller, which lets 1 lead and takes 0 out of the ISR; "
        "only then does 0 end its session, and nobody waits for anything.",
        source="Kafka KafkaController.doControlledShutdown, KafkaServer.controlledShutdown, 2.8",
        role_settings=_OLDER,
        settings=_TERMS,
        brokers=4,
        plan=(fault(5_000, FaultKind.STOP, 0, 20_000),),
        acts=_CONTROLLED_BY_3,
        looks=(
            Look(5_000, leader=0, isr=(0, 1, 2)),
            Look(6_015, leader=1, isr=(1, 2)),
            Look(59_000, leader=1, isr=(1, 2, 0)),
        ),
    ),
    _S42,
)
"""The scenarios whose names have "-zk" in them."""

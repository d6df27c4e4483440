"""Scenarios of leaders that fail, of cut connections, racks, unclean elections, and another controller.

It decides nothing; it is data. S20 to S23, S27, S30, S33, S34, S36 to S39, S41, S55.

Source: each scenario names its own.
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.units import DurationMs
from replication.rules.switches import CURRENT, without
from replication.scenarios.acts import Written
from replication.scenarios.catalogue.parts import MANY, NO_ELR, UNCLEAN, fault
from replication.scenarios.scenario import DEFAULT_TERMS, Answers, Look, Scenario, never
from replication.simulation import FaultKind

_ONLY_FIRST: Final = (
    fault(5_000, FaultKind.KILL, 1, 40_000),
    fault(5_000, FaultKind.KILL, 2, 40_000),
)
_LAST_STANDING: Final = (
    fault(5_000, FaultKind.ISOLATE, 0, 30_000),
    fault(5_000, FaultKind.ISOLATE, 1, 30_000),
    fault(20_000, FaultKind.POWER_LOSS, 2, 5_000),
)

FAILOVER: Final = (
    Scenario(
        name="S20",
        title="clean crash of the leader",
        how="Broker 0 leads and dies; after its session of 9 s the first in-sync replica leads, and nothing is lost.",
        source="Kafka BrokerHeartbeatManager, PartitionChangeBuilder",
        plan=(fault(5_000, FaultKind.KILL, 0, 30_000),),
        looks=(
            Look(12_000, leader=0, isr=(0, 1, 2)),
            Look(20_000, leader=1, isr=(1, 2), elr=(), leader_epoch=1),
            Look(59_000, leader=1, isr=(1, 2, 0)),
        ),
    ),
    Scenario(
        name="S21",
        title="acks=1 and a leader that crashes",
        how="The leader cannot reach its followers, acknowledges alone, loses its disk; what it alone had is gone.",
        source="KIP-966; allowed by acks=1",
        acks=(1,),
        plan=(fault(5_000, FaultKind.CUT_PEERS, 0, 20_000), fault(10_000, FaultKind.WIPE, 0, 20_000)),
        looks=(Look(25_000, leader=1, isr=(1, 2)),),
        lost_of_one_min=1,
    ),
    Scenario(
        name="S22",
        title="the last replica standing, with ELR",
        how="0 and 1 are cut off; 2, the last in sync, loses power and the end of its log. 1 leads, nothing is lost.",
        source="KIP-966",
        plan=_LAST_STANDING,
        looks=(Look(18_000, leader=2, isr=(2,), elr=(1,)), Look(59_000, leader=1)),
    ),
    Scenario(
        name="S22-before",
        title="the last replica standing, without ELR and with the high watermark of 3.6",
        how="As S22, but 2 commits alone, and is elected again without what it lost; the others follow it.",
        source="KIP-966, motivation; KAFKA-15583",
        settings=attrs.evolve(DEFAULT_TERMS, min_isr=1, rules=without(CURRENT, "elr", "strict_min_isr")),
        plan=(*_LAST_STANDING[:2], fault(20_000, FaultKind.WIPE, 2, 5_000)),
        looks=(Look(18_000, leader=2, isr=(2,), elr=()), Look(34_000, leader=2, isr=(2,))),
        breaks=frozenset({"I4", "I5", "I6", "I7", "I17", "I18", "I19", "I22"}),
        lost_max=MANY,
        is_strict=False,
    ),
    Scenario(
        name="S23",
        title="ELR without the frozen high watermark",
        how="The ISR shrinks to the leader, which commits alone; an eligible replica without the records is elected.",
        source="found by exhaustive search; the two came together in KIP-966",
        settings=attrs.evolve(DEFAULT_TERMS, rules=without(CURRENT, "strict_min_isr")),
        acks=(1,),
        plan=(
            fault(5_000, FaultKind.ISOLATE, 1, 30_000),
            fault(5_000, FaultKind.ISOLATE, 2, 30_000),
            fault(20_000, FaultKind.KILL, 0, 30_000),
        ),
        looks=(Look(18_000, leader=0, isr=(0,), elr=(2,)), Look(45_000, leader=2)),
        breaks=frozenset({"I6", "I7", "I17"}),
        lost_max=MANY,
        lost_of_one_min=1,
    ),
    Scenario(
        name="S27",
        title="under min ISR",
        how="Only broker 0 is in sync: acks=all is refused, and nothing is committed until another joins.",
        source="KIP-966, KAFKA-15583",
        plan=_ONLY_FIRST,
        looks=(Look(20_000, leader=0, isr=(0,), elr=(2,)), Look(59_000, isr=(0, 1, 2), elr=())),
        answers=(Answers("ProduceResponse", ErrorCode.NOT_ENOUGH_REPLICAS),),
    ),
    Scenario(
        name="S27-one",
        title="under min ISR, with acks=1",
        how="As S27: acks=1 is taken by broker 0 alone, but nobody is shown the record until another replica has "
        "joined.",
        source="KIP-966, KAFKA-15583",
        plan=_ONLY_FIRST,
        producers=0,
        consumers=0,
        acts=(Written(30_000, 0, acks=1), Written(31_000, 0)),
        looks=(
            Look(40_000, leader=0, isr=(0,), logs=((0,), (), ()), highs=(0, 0, 0)),
            Look(59_000, isr=(0, 2, 1), logs=((0,), (0,), (0,)), highs=(1, 1, 1)),
        ),
        answers=(
            Answers("ProduceResponse", ErrorCode.NONE, 1, 1),
            Answers("ProduceResponse", ErrorCode.NOT_ENOUGH_REPLICAS, 1, 1),
        ),
        gone=(),
    ),
    Scenario(
        name="S30",
        title="a follower that is stuck",
        how="Broker 2 hears nothing: after 30 to 45 s the leader takes it out of the ISR, and writes go on.",
        source="Kafka Partition.maybeShrinkIsr",
        plan=(fault(5_000, FaultKind.CUT_PEERS, 2, 65_000),),
        looks=(Look(34_000, isr=(0, 1, 2)), Look(52_000, leader=0, isr=(0, 1)), Look(89_000, isr=(0, 1, 2))),
        duration_ms=DurationMs(90_000),
    ),
    Scenario(
        name="S33",
        title="a leader cut off from the controller, not from its followers",
        how="It is fenced and deposed; acks=all cannot complete with it any more, and its tail is cut when it returns.",
        source="Jepsen on Kafka 0.8; KIP-497",
        plan=(fault(5_000, FaultKind.CUT_CONTROLLER, 0, 30_000),),
        looks=(Look(20_000, leader=1, isr=(1, 2)), Look(59_000, leader=1, isr=(1, 2, 0))),
    ),
    Scenario(
        name="S33-one",
        title="writes to a leader that was deposed",
        how="As S33: the deposed leader takes an acks=1 write and says yes, and an acks=all write that never "
        "completes. Both are cut off when it hears of its successor.",
        source="Jepsen on Kafka 0.8; KIP-497",
        plan=(fault(5_000, FaultKind.CUT_CONTROLLER, 0, 30_000),),
        producers=0,
        consumers=0,
        acts=(Written(20_000, 0, acks=1), Written(20_100, 0)),
        looks=(
            Look(30_000, leader=1, isr=(1, 2), logs=((0, 1), (), ())),
            Look(59_000, leader=1, isr=(1, 2, 0), logs=((), (), ())),
        ),
        answers=(
            Answers("ProduceResponse", ErrorCode.NONE, 1, 1),
            Answers("ProduceResponse", ErrorCode.REQUEST_TIMED_OUT, 1, 1),
        ),
        lost_of_one_min=1,
        gone=(0,),
    ),
    Scenario(
        name="S34",
        title="a leader cut off from its followers, not from the controller",
        how="The followers leave the ISR for their silence and stay eligible; writes are refused until they are back.",
        source="KIP-966",
        plan=(fault(5_000, FaultKind.CUT_PEERS, 0, 60_000),),
        looks=(Look(58_000, leader=0, isr=(0,), elr=(1, 2)), Look(89_000, leader=0, elr=())),
        answers=(Answers("ProduceResponse", ErrorCode.NOT_ENOUGH_REPLICAS),),
        duration_ms=DurationMs(90_000),
    ),
    Scenario(
        name="S36",
        title="a rack is lost",
        how="Replicas stand in three racks; one loses power: two stay in sync and writes go on.",
        source="KIP-966, motivation",
        plan=(fault(5_000, FaultKind.RACK_OUTAGE, 0, 25_000),),
        looks=(Look(20_000, leader=1, isr=(1, 2)),),
        answers=(never("ProduceResponse", ErrorCode.NOT_ENOUGH_REPLICAS),),
    ),
    Scenario(
        name="S36-two",
        title="two racks are lost",
        how="As S36, and then a second rack: one replica is left, writes are refused, and nothing is lost.",
        source="KIP-966, motivation",
        plan=(fault(5_000, FaultKind.RACK_OUTAGE, 0, 45_000), fault(16_000, FaultKind.RACK_OUTAGE, 1, 20_000)),
        looks=(Look(30_000, leader=2, isr=(2,), elr=(1,)), Look(59_000, leader=2, isr=(2, 1, 0), elr=())),
        answers=(Answers("ProduceResponse", ErrorCode.NOT_ENOUGH_REPLICAS),),
    ),
    Scenario(
        name="S37",
        title="unclean election",
        how="Only 2 is alive, long out of sync: it leads all the same, and what was acknowledged without it is lost.",
        source="KIP-106, KIP-704",
        settings=UNCLEAN,
        plan=(
            fault(5_000, FaultKind.KILL, 2, 25_000),
            fault(20_000, FaultKind.KILL, 0, 35_000),
            fault(20_000, FaultKind.KILL, 1, 35_000),
        ),
        looks=(
            Look(18_000, leader=0, isr=(0, 1)),
            Look(40_000, leader=2, isr=(2,), recovering=True),
            Look(59_000, recovering=False),
        ),
        lost_min=1,
        lost_max=MANY,
    ),
    Scenario(
        name="S38",
        title="the same without unclean election",
        how="As S37, but the partition stays without a leader until somebody in sync is back: nothing is lost.",
        source="KIP-106",
        settings=NO_ELR,
        plan=(
            fault(5_000, FaultKind.KILL, 2, 25_000),
            fault(20_000, FaultKind.KILL, 0, 35_000),
            fault(20_000, FaultKind.KILL, 1, 35_000),
        ),
        looks=(Look(18_000, leader=0, isr=(0, 1)), Look(40_000, leader=-1)),
    ),
    Scenario(
        name="S39",
        title="the preferred leader returns",
        how="Broker 0 comes back into the ISR; within 300 s leadership is given back to it.",
        source="Kafka auto.leader.rebalance.enable",
        plan=(fault(5_000, FaultKind.KILL, 0, 20_000),),
        looks=(Look(60_000, leader=1, isr=(1, 2, 0)), Look(305_000, leader=0)),
        producers=1,
        produce_ms=DurationMs(20_000),
        duration_ms=DurationMs(310_000),
    ),
    Scenario(
        name="S41",
        title="an empty disk",
        how="Broker 2 comes back with an empty disk: it copies everything before it is in sync again.",
        source="KIP-903",
        plan=(fault(5_000, FaultKind.WIPE, 2, 10_000),),
        looks=(Look(14_500, isr=(0, 1)), Look(40_000, isr=(0, 1, 2))),
    ),
    Scenario(
        name="S55",
        title="another controller takes over",
        how="The controller fails over just after broker 0 died: fencing comes up to 9 s later, and nothing is lost.",
        source="Kafka QuorumController.claim",
        plan=(fault(5_000, FaultKind.KILL, 0, 30_000), fault(12_000, FaultKind.CONTROLLER_FAILOVER)),
        looks=(Look(15_000, leader=0), Look(25_000, leader=1, isr=(1, 2))),
    ),
)

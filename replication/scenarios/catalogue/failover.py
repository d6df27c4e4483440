"""Scenarios of leader failures, network partitions, rack outages and unclean election: S20, S22, S27, S30 to S38."""

from __future__ import annotations

from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.units import DurationMs
from replication.rules.switches import CURRENT, SOUND, without
from replication.scenarios.catalogue.common import MANY, NO_ELR, UNCLEAN, fault
from replication.scenarios.scenario import (
    DEFAULT_PARTITION_SETTINGS,
    ExpectedResponses,
    ExpectedState,
    Scenario,
    no_response,
)
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
        title="Clean crash of the leader",
        how="Broker 0 leads and dies; when its session of 9 s has expired, the first in-sync replica leads, and "
        "nothing is lost.",
        source="Kafka BrokerHeartbeatManager, PartitionChangeBuilder",
        plan=(fault(5_000, FaultKind.KILL, 0, 30_000),),
        expected_states=(
            ExpectedState(12_000, leader=0, isr=(0, 1, 2)),
            ExpectedState(20_000, leader=1, isr=(1, 2), elr=(), leader_epoch=1),
            ExpectedState(59_000, leader=1, isr=(1, 2, 0)),
        ),
    ),
    Scenario(
        name="S22",
        title="Last replica in the ISR loses power, with ELR",
        how="Brokers 0 and 1 are cut off; 2, the last in sync, loses power and the end of its log. Broker 1 is "
        "eligible and leads; nothing is lost.",
        source="KIP-966",
        plan=_LAST_STANDING,
        expected_states=(ExpectedState(18_000, leader=2, isr=(2,), elr=(1,)), ExpectedState(59_000, leader=1)),
    ),
    Scenario(
        name="S22-before",
        title="Last replica in the ISR loses its disk, without ELR and with the high watermark of 3.6",
        how="As S22, but 2 commits alone, loses its disk, and is elected again without the records; the others "
        "truncate to its log. Kafka promised no more before ELR, and nothing is broken.",
        source="KIP-966, motivation; KAFKA-15583",
        settings=attrs.evolve(DEFAULT_PARTITION_SETTINGS, min_isr=1, rules=without(CURRENT, "elr", "strict_min_isr")),
        plan=(*_LAST_STANDING[:2], fault(20_000, FaultKind.WIPE, 2, 5_000)),
        expected_states=(ExpectedState(18_000, leader=2, isr=(2,), elr=()), ExpectedState(34_000, leader=2, isr=(2,))),
        lost_min=1,
        lost_max=MANY,
        is_strict=False,
    ),
    Scenario(
        name="S27",
        title="ISR below min.insync.replicas",
        how="Only broker 0 is in sync: acks=all is refused, and nothing is committed until another replica joins.",
        source="KIP-966, KAFKA-15583",
        settings=attrs.evolve(DEFAULT_PARTITION_SETTINGS, rules=SOUND),
        plan=_ONLY_FIRST,
        expected_states=(
            ExpectedState(20_000, leader=0, isr=(0,), elr=(2,)),
            ExpectedState(59_000, isr=(0, 1, 2), elr=()),
        ),
        expected_responses=(ExpectedResponses("ProduceResponse", ErrorCode.NOT_ENOUGH_REPLICAS),),
    ),
    Scenario(
        name="S30",
        title="Follower that does not fetch leaves the ISR",
        how="Broker 2 is cut off from its peers: after 30 to 45 s the leader removes it from the ISR, and writes go "
        "on.",
        source="Kafka Partition.maybeShrinkIsr",
        plan=(fault(5_000, FaultKind.CUT_PEERS, 2, 65_000),),
        expected_states=(
            ExpectedState(34_000, isr=(0, 1, 2)),
            ExpectedState(52_000, leader=0, isr=(0, 1)),
            ExpectedState(89_000, isr=(0, 1, 2)),
        ),
        duration_ms=DurationMs(90_000),
    ),
    Scenario(
        name="S33",
        title="Leader cut off from the controller, not from its followers",
        how="The leader is fenced and another is elected; acks=all cannot complete on the old one, and its "
        "uncommitted records are truncated when it returns.",
        source="Jepsen on Kafka 0.8; KIP-497",
        plan=(fault(5_000, FaultKind.CUT_CONTROLLER, 0, 30_000),),
        expected_states=(ExpectedState(20_000, leader=1, isr=(1, 2)), ExpectedState(59_000, leader=1, isr=(1, 2, 0))),
    ),
    Scenario(
        name="S36",
        title="Rack outage",
        how="Replicas stand in three racks; one loses power: two replicas stay in sync and writes go on.",
        source="KIP-966, motivation",
        plan=(fault(5_000, FaultKind.RACK_OUTAGE, 0, 25_000),),
        expected_states=(ExpectedState(20_000, leader=1, isr=(1, 2)),),
        expected_responses=(no_response("ProduceResponse", ErrorCode.NOT_ENOUGH_REPLICAS),),
    ),
    Scenario(
        name="S37",
        title="Unclean election",
        how="Only broker 2 is alive, long out of sync: it is elected, and the records that were acknowledged without "
        "it are lost.",
        source="KIP-106, KIP-704",
        settings=UNCLEAN,
        plan=(
            fault(5_000, FaultKind.KILL, 2, 25_000),
            fault(20_000, FaultKind.KILL, 0, 35_000),
            fault(20_000, FaultKind.KILL, 1, 35_000),
        ),
        expected_states=(
            ExpectedState(18_000, leader=0, isr=(0, 1)),
            ExpectedState(40_000, leader=2, isr=(2,), recovering=True),
            ExpectedState(59_000, recovering=False),
        ),
        lost_min=1,
        lost_max=MANY,
    ),
    Scenario(
        name="S38",
        title="Unclean election is off",
        how="As S37, but the partition has no leader until an in-sync replica is back: nothing is lost.",
        source="KIP-106",
        settings=NO_ELR,
        plan=(
            fault(5_000, FaultKind.KILL, 2, 25_000),
            fault(20_000, FaultKind.KILL, 0, 35_000),
            fault(20_000, FaultKind.KILL, 1, 35_000),
        ),
        expected_states=(ExpectedState(18_000, leader=0, isr=(0, 1)), ExpectedState(40_000, leader=-1)),
    ),
)

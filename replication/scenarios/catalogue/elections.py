"""Scenarios of elections and failover: crashes, fencing, controllers that disagree, unclean election."""

from __future__ import annotations

from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.units import DurationMs
from replication.rules.switches import CURRENT, without
from replication.scenarios.catalogue.common import (
    MANY,
    NO_ELR,
    QUICK_LAG,
    QUIET_TRIO,
    UNCLEAN,
    fault,
    reassign_and_elect,
    settings_without,
)
from replication.scenarios.operations import Crash, HoldMessages, LosePower, SendRecord, ZombieController
from replication.scenarios.result import ExpectedResponses
from replication.scenarios.scenario import (
    DEFAULT_PARTITION_SETTINGS,
    DEFAULT_ROLE_SETTINGS,
    ExpectedState,
    Scenario,
    no_response,
)
from replication.simulation import FaultKind

ELECTIONS: Final = (
    attrs.evolve(
        QUIET_TRIO,
        name="S15-before",
        title="Zombie controller agrees to a smaller ISR and committed records are lost",
        how="Leader 0 knows of a change that the former controller, which it still asks, does not know. Broker 2 does "
        "not fetch, and 0 asks to remove it. A controller with older metadata must refuse, but it agrees; 0 "
        "commits without 2, which the real controller then elects.",
        source="KAFKA-14154",
        role_settings=DEFAULT_ROLE_SETTINGS,
        settings=settings_without("isr_write_ahead_refused", lag_ms_max=QUICK_LAG),
        operations=(
            ZombieController(5_000, 12_000),
            *reassign_and_elect(5_100, 0, 2, 1),
            HoldMessages(5_500, 30_000, "Fetch", sender=2),
            SendRecord(5_600, 0),
            SendRecord(8_000, 0),
            Crash(9_000, 0, 40_000),
        ),
        expected_states=(
            ExpectedState(8_900, leader=0, isr=(0, 1, 2), logs=((0, 1), (0, 1), ()), high_watermarks=(2, 2, 0)),
            ExpectedState(25_000, leader=2),
        ),
        expected_responses=(
            no_response("AlterPartitionResponse", ErrorCode.NOT_CONTROLLER),
            ExpectedResponses("ProduceResponse", count_min=2),
        ),
        lost_values=(0, 1),
        breaks=frozenset({"I5", "I6", "I7", "I8", "I9", "I16"}),
    ),
    attrs.evolve(
        QUIET_TRIO,
        name="S16-before",
        title="Two sessions expire in the same second and one change undoes the other",
        how="Brokers 1 and 2 are isolated, and their sessions expire in the same second. Both changes start from the "
        "same state, and the second puts a fenced broker back into the ISR.",
        source="KAFKA-13173",
        plan=(fault(5_000, FaultKind.ISOLATE, 1, 30_000), fault(5_000, FaultKind.ISOLATE, 2, 30_000)),
        expected_states=(ExpectedState(20_000, leader=0, isr=(0, 1)),),
        settings=settings_without("fence_one_at_a_time"),
        breaks=frozenset({"I3"}),
    ),
    attrs.evolve(
        QUIET_TRIO,
        name="S17-before",
        title="Fenced last known leader is elected",
        how="No replica is in sync or eligible any more. Broker 2, which led last, has registered but is fenced; it "
        "is elected and fenced again, so that it counts as eligible though it may have lost records.",
        source="KAFKA-19522",
        role_settings=DEFAULT_ROLE_SETTINGS,
        operations=(
            SendRecord(5_000, 0),
            LosePower(6_000, 0, 35_000),
            LosePower(6_000, 1, 20_000),
            HoldMessages(19_900, 60_000, "BrokerHeartbeat", sender=1),
            LosePower(22_000, 2, 24_000),
            HoldMessages(23_900, 50_000, "BrokerHeartbeat", sender=2),
        ),
        expected_states=(
            ExpectedState(18_000, leader=2, isr=(2,), elr=(1,)),
            ExpectedState(40_000, leader=-1, isr=(), elr=(2,)),
            ExpectedState(55_000, leader=2, last_known=()),
        ),
        lost_values=(),
        duration_ms=DurationMs(70_000),
        is_strict=False,
        settings=settings_without("last_known_leader_alive"),
        breaks=frozenset({"I25"}),
    ),
    attrs.evolve(
        QUIET_TRIO,
        name="S24-before",
        title="Eligible replica with an unclean shutdown is elected and a committed record is lost",
        how="Broker 1 loses power, and m0 with it, while it is eligible. It comes back without a clean shutdown file, "
        "stays in the ELR and is elected without m0.",
        source="KIP-966",
        operations=(
            SendRecord(5_000, 0),
            Crash(6_000, 2, 55_000),
            LosePower(16_000, 1, 30_000, record_count=1),
            Crash(26_000, 0, 50_000),
        ),
        expected_states=(
            ExpectedState(25_900, leader=0, isr=(0,), elr=(1,)),
            ExpectedState(45_000, leader=1, isr=(1,)),
        ),
        lost_values=(0,),
        duration_ms=DurationMs(70_000),
        settings=settings_without("elr_excludes_unclean"),
        breaks=frozenset({"I6", "I7", "I9", "I16", "I25"}),
    ),
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

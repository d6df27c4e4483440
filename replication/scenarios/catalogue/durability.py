"""Scenarios of lagging followers and small ISRs: S28, S31, S32, S46, S47."""

from __future__ import annotations

from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.units import DurationMs, SizeBytes
from replication.rules.switches import CURRENT, without
from replication.scenarios.catalogue.common import PATIENT, UNCLEAN, fault
from replication.scenarios.operations import Crash, HoldMessages, SendRecord, StartConsumer
from replication.scenarios.scenario import (
    DEFAULT_PARTITION_SETTINGS,
    DEFAULT_ROLE_SETTINGS,
    ExpectedResponses,
    ExpectedState,
    Scenario,
)
from replication.simulation import FaultKind

_S28: Final = Scenario(
    name="S28",
    title="Follower dies during a write",
    how="Brokers 0 and 1 are in sync; 1 dies before it fetches the new record. The client gets REQUEST_TIMED_OUT, but "
    "the record is committed when 1 is back: consumers read a record whose write failed for the client.",
    source="KAFKA-15583; Vanlightly/kafka-tlaplus, section 2.7",
    producers=0,
    operations=(Crash(4_000, 2, 65_000), Crash(20_000, 1, 40_000), SendRecord(26_000, 0)),
    expected_states=(
        ExpectedState(25_900, leader=0, isr=(0, 1)),
        ExpectedState(39_000, leader=0, isr=(0,), elr=(1,), logs=((0,), (), ()), high_watermarks=(0, 0, 0)),
        ExpectedState(59_000, leader=0, isr=(0, 1), elr=(), logs=((0,), (0,), ()), high_watermarks=(1, 1, 0)),
    ),
    expected_responses=(ExpectedResponses("ProduceResponse", ErrorCode.REQUEST_TIMED_OUT, 1, 1),),
    lost_values=(),
)

_S31: Final = Scenario(
    name="S31",
    title="Idle partition keeps its ISR",
    how="Broker 2 does not fetch for a minute, but nothing is written: it has every record and stays.",
    source="KAFKA-7152",
    producers=0,
    consumers=0,
    plan=(fault(5_000, FaultKind.CUT_PEERS, 2, 60_000),),
    operations=(SendRecord(4_000, 0),),
    expected_states=(ExpectedState(64_000, leader=0, isr=(0, 1, 2)),),
    duration_ms=DurationMs(70_000),
    lost_values=(),
)

_S32: Final = Scenario(
    name="S32",
    title="Stopping follower does not hold the high watermark back",
    how="Broker 2 is stopping and has left the ISR with every record. The leader must not wait for it any more.",
    source="KAFKA-15021",
    role_settings=PATIENT,
    producers=0,
    consumers=0,
    plan=(fault(5_000, FaultKind.STOP, 2, 20_000),),
    operations=(
        HoldMessages(5_000, 20_000, "BrokerHeartbeatResponse", receiver=2),
        HoldMessages(7_500, 30_000, "FetchResponse", receiver=2),
        SendRecord(9_000, 0),
    ),
    expected_states=(
        ExpectedState(8_900, leader=0, isr=(0, 1)),
        ExpectedState(9_100, isr=(0, 1), high_watermarks=(1, 0, 0)),
    ),
    expected_responses=(ExpectedResponses("ProduceResponse", ErrorCode.NONE),),
    lost_values=(),
)

_S46: Final = Scenario(
    name="S46",
    title="Follower joins and leaves the ISR for ever",
    how="Alone in sync, 0 takes acks=1 writes, which are not committed. Follower 1 is slow but has every committed "
    "record: it joins, is removed for its lag, and joins again.",
    source="KAFKA-19996, open",
    settings=attrs.evolve(DEFAULT_PARTITION_SETTINGS, lag_ms_max=DurationMs(2_000)),
    role_settings=attrs.evolve(DEFAULT_ROLE_SETTINGS, fetch_bytes_max=SizeBytes(100)),
    plan=(
        fault(5_000, FaultKind.KILL, 2, 60_000),
        fault(5_000, FaultKind.KILL, 1, 20_000),
        fault(24_000, FaultKind.SLOW, 1, 40_000, 600),
    ),
    producers=2,
    consumers=0,
    acks=(1,),
    produce_ms=DurationMs(250),
    expected_responses=(ExpectedResponses("AlterPartitionResponse", count_min=12),),
    expected_states=(ExpectedState(24_000, leader=0, isr=(0,)),),
)

_S47: Final = Scenario(
    name="S47",
    title="Consumer validates its position after an unclean election",
    how="A consumer has read m0 m1 m2. Broker 1, which has only m0, is elected uncleanly and takes m3 m4 m5. The "
    "consumer asks where the epoch of m2 ends there, and goes back to that offset.",
    source="KIP-320",
    settings=attrs.evolve(UNCLEAN, min_isr=1),
    brokers=2,
    replication_factor=2,
    producers=0,
    consumers=0,
    operations=(
        StartConsumer(checks=True),
        SendRecord(5_000, 0),
        Crash(6_000, 1, 40_000),
        SendRecord(17_000, 0),
        SendRecord(17_100, 0),
        Crash(20_000, 0, 70_000),
        *(SendRecord(45_000 + 100 * number, 1) for number in range(3)),
    ),
    expected_states=(
        ExpectedState(19_000, leader=0, isr=(0,), logs=((0, 1, 2), (0,))),
        ExpectedState(50_000, leader=1, isr=(1,), logs=((0, 1, 2), (0, 3, 4, 5))),
    ),
    lost_values=(1, 2),
    read_values=((0, 1, 2, 3, 4, 5),),
)

DURABILITY: Final = (
    _S28,
    _S31,
    attrs.evolve(
        _S31,
        name="S31-before",
        title="Follower of an idle partition leaves the ISR",
        how="As S31, but the time of the last fetch decides: broker 2 leaves the ISR though it has every record.",
        settings=attrs.evolve(DEFAULT_PARTITION_SETTINGS, rules=without(CURRENT, "caught_up_at_end_offset")),
        expected_states=(ExpectedState(64_000, leader=0, isr=(0, 1)),),
    ),
    _S32,
    attrs.evolve(
        _S32,
        name="S32-before",
        title="Stopping follower holds the high watermark back",
        how="As S32, but the leader waits for broker 2: the write times out.",
        settings=attrs.evolve(DEFAULT_PARTITION_SETTINGS, rules=without(CURRENT, "high_watermark_ignores_ineligible")),
        expected_states=(
            ExpectedState(8_900, leader=0, isr=(0, 1)),
            ExpectedState(9_100, isr=(0, 1), high_watermarks=(0, 0, 0)),
        ),
        expected_responses=(ExpectedResponses("ProduceResponse", ErrorCode.REQUEST_TIMED_OUT),),
    ),
    _S47,
    attrs.evolve(
        _S47,
        name="S47-before",
        title="Consumer does not validate its position and misses records",
        how="As S47, but the consumer goes on at its offset in the other log: it never reads m3 and m4.",
        operations=(StartConsumer(checks=False), *_S47.operations[1:]),
        read_values=((0, 1, 2, 5),),
    ),
    _S46,
    attrs.evolve(
        _S46,
        name="S46-after",
        title="Follower joins and leaves the ISR, with the proposed fix",
        how="As S46, but below min.insync.replicas only a follower with every record joins.",
        settings=attrs.evolve(_S46.settings, rules=attrs.evolve(CURRENT, isr_join_caught_up_under_min_isr=True)),
        expected_responses=(ExpectedResponses("AlterPartitionResponse", count_max=6),),
    ),
)

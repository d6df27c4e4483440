"""Scenarios of lagging followers, small ISRs and deleted records that come back."""

from __future__ import annotations

from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.units import HOUR_MS, DurationMs, SizeBytes
from replication.retention import Retention
from replication.rules.switches import CURRENT, without
from replication.scenarios.catalogue.common import NO_ELR, PAIR, PATIENT, QUIET_TRIO, UNCLEAN, fault, reassign_and_elect
from replication.scenarios.operations import Crash, DeleteBelow, FetchFrom, HoldMessages, SendRecord, StartConsumer
from replication.scenarios.result import ExpectedResponses
from replication.scenarios.scenario import (
    DEFAULT_PARTITION_SETTINGS,
    DEFAULT_ROLE_SETTINGS,
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
    Scenario(
        name="S31-before",
        title="Follower of an idle partition leaves the ISR",
        how="Broker 2 does not fetch for a minute, and nothing is written. The time of the last fetch decides: broker "
        "2 leaves the ISR though it has every record.",
        source="KAFKA-7152",
        producers=0,
        consumers=0,
        plan=(fault(5_000, FaultKind.CUT_PEERS, 2, 60_000),),
        operations=(SendRecord(4_000, 0),),
        expected_states=(ExpectedState(64_000, leader=0, isr=(0, 1)),),
        duration_ms=DurationMs(70_000),
        lost_values=(),
        settings=attrs.evolve(DEFAULT_PARTITION_SETTINGS, rules=without(CURRENT, "caught_up_at_end_offset")),
    ),
    Scenario(
        name="S32-before",
        title="Stopping follower holds the high watermark back",
        how="Broker 2 is stopping and has left the ISR with every record. The leader still waits for it: the write "
        "times out.",
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
            ExpectedState(9_100, isr=(0, 1), high_watermarks=(0, 0, 0)),
        ),
        expected_responses=(ExpectedResponses("ProduceResponse", ErrorCode.REQUEST_TIMED_OUT),),
        lost_values=(),
        settings=attrs.evolve(DEFAULT_PARTITION_SETTINGS, rules=without(CURRENT, "high_watermark_ignores_ineligible")),
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
)


_BY_ORDER: Final = Retention(segment_bytes=SizeBytes(500), check_ms=DurationMs(HOUR_MS))
"""Segments of six records; retention and cleaner run when the scenario says so."""


def _send_records(at_ms: int, broker: int, count: int) -> tuple[SendRecord, ...]:
    """Return `count` writes, 100 ms apart."""
    return tuple(SendRecord(at_ms + 100 * place, broker) for place in range(count))


_S93: Final = attrs.evolve(
    QUIET_TRIO,
    name="S93",
    title="Deleted records are back after a clean election",
    how="Brokers 1 and 2 stop cleanly, 2 last: it may still be elected. m0 to m2 are deleted, which is answered at "
    "once: DeleteRecords waits only for live replicas. Then 0 dies, and 2 comes back and is elected with the "
    "deleted records; 0 has not written its log start offset to disk either.",
    source="Partition.lowWatermarkIfLeader; KIP-107, KIP-966",
    retention=_BY_ORDER,
    plan=(fault(6_000, FaultKind.STOP, 1, 60_000), fault(12_000, FaultKind.STOP, 2, 20_000)),
    operations=(*_send_records(5_000, 0, 4), DeleteBelow(20_000, 0, 3), Crash(30_000, 0, 50_000)),
    expected_states=(
        ExpectedState(19_900, leader=0, isr=(0,), elr=(2,), log_starts=(0, 0, 0)),
        ExpectedState(21_000, leader=0, log_starts=(3, 0, 0), logs=((3,), (0, 1, 2, 3), (0, 1, 2, 3))),
        ExpectedState(49_000, leader=2, isr=(2,), log_starts=(3, 0, 0)),
        ExpectedState(59_500, leader=2, log_starts=(0, 0, 0)),
    ),
    expected_responses=(ExpectedResponses("DeleteRecordsResponse", ErrorCode.NONE, 1, 1),),
    lost_values=(),
)


_S94: Final = attrs.evolve(
    QUIET_TRIO,
    name="S94",
    title="Deleted records are back after an unclean election",
    how="Broker 2 is out of the ISR and dead when m0 to m2 are deleted; m4 is written. Brokers 0 and 1 die, and 2 is "
    "elected uncleanly: m4 is lost, and consumers can read the deleted records again.",
    source="Partition.lowWatermarkIfLeader; KIP-106",
    settings=UNCLEAN,
    retention=_BY_ORDER,
    operations=(
        *_send_records(3_500, 0, 4),
        Crash(4_500, 2, 34_000),
        DeleteBelow(20_000, 0, 3),
        SendRecord(22_000, 0),
        Crash(24_000, 0, 70_000),
        Crash(24_000, 1, 70_000),
    ),
    expected_states=(
        ExpectedState(23_900, leader=0, isr=(0, 1), log_starts=(3, 3, 0), logs=((3, 4), (3, 4), (0, 1, 2, 3))),
        ExpectedState(59_000, leader=2, isr=(2,), log_starts=(3, 3, 0)),
    ),
    expected_responses=(ExpectedResponses("DeleteRecordsResponse", ErrorCode.NONE, 1, 1),),
    lost_values=(4,),
    lost_max=1,
    is_strict=False,
)


_S95: Final = attrs.evolve(
    PAIR,
    name="S95",
    title="Leader forgets its log start offset but not its deleted leader epochs",
    how="Broker 0 leads and has m1 at offset 1, which no follower copies; it dies, and 1 writes m2 there, m3 and m4. "
    "Records below offset 3 are deleted: 1 removes the earlier epochs, on disk too, and dies before it writes its "
    "log start offset, which is 0 again. Broker 0 comes back and learns that its epoch ended at 3: it keeps m1 "
    "and copies the records behind it. Both are in sync and differ at offset 1 for ever; when 0 leads, consumers "
    "read m1. UnifiedLog of 4.0.1 does so on such a directory: opened at 0, it knows one epoch, from 3 on, and "
    "answers that the epoch before ended at 3.",
    source="UnifiedLog.maybeIncrementLogStartOffset (epochs are written at once, in the background, the start each "
    "minute), LogSegment.recover, which adds no older epoch",
    settings=attrs.evolve(NO_ELR, min_isr=1),
    retention=_BY_ORDER,
    role_settings=DEFAULT_ROLE_SETTINGS,
    duration_ms=DurationMs(60_000),
    operations=(
        SendRecord(5_000, 0),
        HoldMessages(5_500, 9_000, "Fetch", sender=1),
        SendRecord(5_700, 0, acks=1),
        Crash(6_000, 0, 40_000),
        *_send_records(16_000, 1, 3),
        DeleteBelow(18_000, 1, 3),
        Crash(20_000, 1, 21_000),
        *reassign_and_elect(50_000, 0, 1),
        FetchFrom(55_000, 0, 0),
    ),
    expected_states=(
        ExpectedState(19_500, leader=1, isr=(1,), log_starts=(0, 3), logs=((0, 1), (4,))),
        ExpectedState(39_000, leader=1, isr=(1,), log_starts=(0, 0), logs=((0, 1), (0, 2, 3, 4))),
        ExpectedState(49_000, leader=1, isr=(1, 0), logs=((0, 1, 3, 4), (0, 2, 3, 4))),
        ExpectedState(55_000, leader=0, isr=(1, 0)),
    ),
    breaks=frozenset({"I17"}),
    lost_values=(2,),
    is_strict=False,
)


RETENTION: Final = (
    _S93,
    _S94,
    _S95,
)

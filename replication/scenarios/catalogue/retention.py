"""Scenarios of deleted records that come back: S93 to S95.

Retention and cleaner run only when a scenario says so.

Source: each scenario names its own; the code is Kafka's of 4.3.1.
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.units import HOUR_MS, DurationMs, SizeBytes
from replication.retention import Retention
from replication.scenarios.catalogue.common import NO_ELR, PAIR, QUIET_TRIO, UNCLEAN, fault, reassign_and_elect
from replication.scenarios.operations import Crash, DeleteBelow, FetchFrom, HoldMessages, SendRecord
from replication.scenarios.scenario import DEFAULT_ROLE_SETTINGS, ExpectedResponses, ExpectedState
from replication.simulation import FaultKind

_BY_ORDER: Final = Retention(segment_bytes=SizeBytes(500), check_ms=DurationMs(HOUR_MS))
"""Segments of six records; retention and cleaner run when the scenario says so."""


def _send_records(at_ms: int, broker: int, count: int, *keys: bytes) -> tuple[SendRecord, ...]:
    """Return `count` writes, 100 ms apart, with the keys in turn if there are any."""
    return tuple(
        SendRecord(at_ms + 100 * place, broker, key=keys[place % len(keys)] if keys else None) for place in range(count)
    )


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

__all__ = ("RETENTION",)

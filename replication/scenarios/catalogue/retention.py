"""Scenarios of logs that are cut at their start and compacted: what is deleted, what comes back, what consumers do.

It decides nothing; it is data. S92 to S98. Nothing is cut or compacted but when a scenario says so.

Source: each scenario names its own; the code is Kafka's of commit 1eb7644 (2024-10).
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.units import HOUR_MS, DurationMs, SizeBytes
from replication.retention import Reset, Retention
from replication.roles.messages import CLIENT_FIRST
from replication.scenarios.acts import Crashed, Deleted, Held, LooksAfterLogs, ReadFrom, Written
from replication.scenarios.catalogue.parts import NO_ELR, PAIR, QUIET_TRIO, UNCLEAN, fault, moved_to
from replication.scenarios.scenario import DEFAULT_SETTINGS, Answers, Look, never
from replication.simulation import FaultKind

_BY_ORDER: Final = Retention(segment_bytes=SizeBytes(500), check_ms=DurationMs(HOUR_MS))
"""A segment holds six records; brokers look after their logs when they are told."""
_SHORT: Final = attrs.evolve(_BY_ORDER, retention_ms=DurationMs(5_000))
_COMPACT: Final = attrs.evolve(_BY_ORDER, compacts=True, deletes=False)


def _written(at_ms: int, broker: int, count: int, *keys: bytes) -> tuple[Written, ...]:
    """Return so many writes, 100 ms apart, under keys in turn if there are any."""
    return tuple(
        Written(at_ms + 100 * place, broker, key=keys[place % len(keys)] if keys else None) for place in range(count)
    )


_S92: Final = attrs.evolve(
    QUIET_TRIO,
    name="S92",
    title="a follower that comes back behind retention",
    how="2 has m0 when it dies. m1 to m9 are written, retention deletes all of it on the others, and m10 is written. 2 "
    "asks for offset 1, which the leader's log no longer has: it drops what it has and begins at the leader's start.",
    source="AbstractFetcherThread.fetchOffsetAndTruncate",
    retention=_SHORT,
    acts=(
        Written(3_500, 0),
        Crashed(4_000, 2, 30_000),
        *_written(16_000, 0, 9),
        LooksAfterLogs(26_000, (0, 1)),
        Written(28_000, 0),
    ),
    looks=(
        Look(25_900, leader=0, isr=(0, 1), starts=(0, 0, 0)),
        Look(29_000, starts=(10, 10, 0), logs=((10,), (10,), (0,))),
        Look(59_000, isr=(0, 1, 2), starts=(10, 10, 10), logs=((10,), (10,), (10,))),
    ),
    answers=(
        Answers("FetchResponse", ErrorCode.OFFSET_OUT_OF_RANGE, 1, 1),
        Answers("ListOffsetsResponse", ErrorCode.NONE, 1, 1),
    ),
)

_S93: Final = attrs.evolve(
    QUIET_TRIO,
    name="S93",
    title="deleted, and back after a clean election",
    how="1 and 2 stop cleanly, 2 last: it may still be elected. m0 to m2 are deleted, which is answered at once: only "
    "replicas that are alive are waited for. Then 0 dies, 2 comes back and is elected, with all that was deleted; 0, "
    "when it is back, has not written down its start either.",
    source="Partition.lowWatermarkIfLeader; KIP-107, KIP-966",
    retention=_BY_ORDER,
    plan=(fault(6_000, FaultKind.STOP, 1, 60_000), fault(12_000, FaultKind.STOP, 2, 20_000)),
    acts=(*_written(5_000, 0, 4), Deleted(20_000, 0, 3), Crashed(30_000, 0, 50_000)),
    looks=(
        Look(19_900, leader=0, isr=(0,), elr=(2,), starts=(0, 0, 0)),
        Look(21_000, leader=0, starts=(3, 0, 0), logs=((3,), (0, 1, 2, 3), (0, 1, 2, 3))),
        Look(49_000, leader=2, isr=(2,), starts=(3, 0, 0)),
        Look(59_500, leader=2, starts=(0, 0, 0)),
    ),
    answers=(Answers("RecordsDeleted", ErrorCode.NONE, 1, 1),),
    gone=(),
)

_S94: Final = attrs.evolve(
    QUIET_TRIO,
    name="S94",
    title="deleted, and back after an unclean election",
    how="2 is out of the ISR and dead when m0 to m2 are deleted; m4 is written. 0 and 1 die, 2 is elected though it is "
    "not in sync: m4 is lost, and what was deleted can be read again.",
    source="Partition.lowWatermarkIfLeader; KIP-106",
    settings=UNCLEAN,
    retention=_BY_ORDER,
    acts=(
        *_written(3_500, 0, 4),
        Crashed(4_500, 2, 34_000),
        Deleted(20_000, 0, 3),
        Written(22_000, 0),
        Crashed(24_000, 0, 70_000),
        Crashed(24_000, 1, 70_000),
    ),
    looks=(
        Look(23_900, leader=0, isr=(0, 1), starts=(3, 3, 0), logs=((3, 4), (3, 4), (0, 1, 2, 3))),
        Look(59_000, leader=2, isr=(2,), starts=(3, 3, 0)),
    ),
    answers=(Answers("RecordsDeleted", ErrorCode.NONE, 1, 1),),
    gone=(4,),
    lost_max=1,
    is_strict=False,
)

_S95: Final = attrs.evolve(
    PAIR,
    name="S95",
    title="a log start that was forgotten, and leader epochs that were not",
    how="0 leads and has m1 at offset 1, which nobody copies; it dies, and 1 writes m2 there, m3 and m4. What lies "
    "below offset 3 is deleted: 1 forgets the epochs before, on disk too, and dies before it writes down its start, "
    "which is 0 again. 0 comes back and is told that its epoch ended at 3: it keeps m1 and copies what comes behind. "
    "Both are in sync, and differ at offset 1 for ever; when 0 leads, consumers are shown m1. UnifiedLog of 4.0.1 does "
    "so on such a directory: opened at 0, it knows one epoch, from 3 on, and tells that the epoch before ended at 3.",
    source="UnifiedLog.maybeIncrementLogStartOffset (epochs are written at once, in the background, the start each "
    "minute), LogSegment.recover, which adds no older epoch",
    settings=attrs.evolve(NO_ELR, min_isr=1),
    retention=_BY_ORDER,
    role_settings=DEFAULT_SETTINGS,
    duration_ms=DurationMs(60_000),
    acts=(
        Written(5_000, 0),
        Held(5_500, 9_000, "Fetch", sender=1),
        Written(5_700, 0, acks=1),
        Crashed(6_000, 0, 40_000),
        *_written(16_000, 1, 3),
        Deleted(18_000, 1, 3),
        Crashed(20_000, 1, 21_000),
        *moved_to(50_000, 0, 1),
        ReadFrom(55_000, 0, 0),
    ),
    looks=(
        Look(19_500, leader=1, isr=(1,), starts=(0, 3), logs=((0, 1), (4,))),
        Look(39_000, leader=1, isr=(1,), starts=(0, 0), logs=((0, 1), (0, 2, 3, 4))),
        Look(49_000, leader=1, isr=(1, 0), logs=((0, 1, 3, 4), (0, 2, 3, 4))),
        Look(55_000, leader=0, isr=(1, 0)),
    ),
    breaks=frozenset({"I17"}),
    gone=(2,),
    is_strict=False,
)

_S96: Final = attrs.evolve(
    QUIET_TRIO,
    name="S96",
    title="a compacted log and a follower that lags",
    how="2 has m0 to m2 when it dies. The keys a and b are written on, the others compact what they have: of each "
    "key the last record is left. 2 comes back and copies what is left. The logs hold different records and say the "
    "same.",
    source="LogCleaner; KIP-58",
    retention=_COMPACT,
    acts=(
        *_written(3_500, 0, 3, b"a", b"b", b"a"),
        Crashed(4_500, 2, 30_000),
        *_written(16_000, 0, 11, b"b", b"a"),
        LooksAfterLogs(26_000, (0, 1)),
        Written(28_000, 0, key=b"a"),
    ),
    looks=(
        Look(25_900, leader=0, isr=(0, 1), logs=(tuple(range(14)), tuple(range(14)), (0, 1, 2))),
        Look(29_000, logs=((10, 11, 12, 13, 14), (10, 11, 12, 13, 14), (0, 1, 2))),
        Look(59_000, isr=(0, 1, 2), logs=((10, 11, 12, 13, 14), (10, 11, 12, 13, 14), (0, 1, 2, 10, 11, 12, 13, 14))),
    ),
    answers=(never("FetchResponse", ErrorCode.OFFSET_OUT_OF_RANGE),),
)

_S97: Final = attrs.evolve(
    QUIET_TRIO,
    name="S97-latest",
    title="a consumer that comes too late, and auto.offset.reset",
    how="Of m0 to m5, m0 to m3 are deleted before a consumer comes to read them. With latest it goes on at the high "
    "watermark and is shown m6, which is written then, and neither m4 nor m5.",
    source="clients FetchCollector.handleOffsetOutOfRange, 4.0",
    retention=_BY_ORDER,
    consumers=1,
    acts=(
        Held(3_000, 20_000, "ConsumerFetch", sender=CLIENT_FIRST),
        *_written(5_000, 0, 6),
        Deleted(10_000, 0, 4),
        Written(30_000, 0),
    ),
    looks=(Look(19_000, starts=(4, 4, 4), logs=((4, 5),) * 3),),
    answers=(Answers("ConsumerFetchResponse", ErrorCode.OFFSET_OUT_OF_RANGE),),
    shown=(6,),
)

_S98: Final = attrs.evolve(
    QUIET_TRIO,
    name="S98",
    title="orders to delete that are refused",
    how="Above the high watermark nothing is deleted, and by brokers that do not lead neither. Up to -1, the high "
    "watermark, everything is.",
    source="Partition.deleteRecordsOnLeader",
    retention=_BY_ORDER,
    acts=(*_written(5_000, 0, 3), Deleted(6_000, 0, 4), Deleted(7_000, 1, 2), Deleted(8_000, 0, -1)),
    looks=(Look(7_900, starts=(0, 0, 0)), Look(20_000, starts=(3, 3, 3), highs=(3, 3, 3))),
    answers=(
        Answers("RecordsDeleted", ErrorCode.OFFSET_OUT_OF_RANGE, 1, 1),
        Answers("RecordsDeleted", ErrorCode.NOT_LEADER_OR_FOLLOWER, 1, 1),
        Answers("RecordsDeleted", ErrorCode.NONE, 1, 1),
    ),
)

RETENTION: Final = (
    _S92,
    _S93,
    _S94,
    _S95,
    _S96,
    _S97,
    attrs.evolve(
        _S97,
        name="S97-earliest",
        how="As S97-latest, with earliest: it goes on at the start of the log, and misses what was deleted.",
        retention=attrs.evolve(_BY_ORDER, reset=Reset.EARLIEST),
        shown=(4, 5, 6),
    ),
    attrs.evolve(
        _S97,
        name="S97-none",
        how="As S97-latest, with none: its application is told, and it reads no more.",
        retention=attrs.evolve(_BY_ORDER, reset=Reset.NONE),
        shown=(),
    ),
    _S98,
    attrs.evolve(
        _S98,
        name="S98-compact",
        how="From a log that is only compacted nothing is deleted by order.",
        retention=_COMPACT,
        acts=(*_written(5_000, 0, 3, b"a"), Deleted(6_000, 0, 2)),
        looks=(Look(20_000, starts=(0, 0, 0)),),
        answers=(Answers("RecordsDeleted", ErrorCode.POLICY_VIOLATION, 1, 1),),
    ),
)
"""S92 to S98."""

__all__ = ("RETENTION",)

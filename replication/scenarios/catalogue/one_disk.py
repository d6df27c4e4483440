"""Scenarios of one machine's disk, told with a real log: S18, S44 and S85.

It decides nothing but the steps.

Source: each scenario names its own.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from broker.clock import ManualClock
from broker.ids import BrokerEpoch, LeaderEpoch, Offset
from broker.units import DAY_MS, HOUR_MS, MIB, DurationMs, SizeBytes, TimeMs
from log.batches.build import build_batch
from log.batches.build_spec import BatchSpec
from log.batches.in_buffer import batches_in
from log.log_config import LogConfig
from log.partition.partition_log import PartitionLog
from log.partition.recovery import LastShutdown
from log.record import Record
from log.storage import MemoryStorage
from replication.rules.fencing import StopProof, proof_at_stop, proof_while_loading
from replication.rules.switches import CURRENT, Rules, without
from replication.scenarios.part_scenario import Fact, PartScenario
from replication.simulation.trace import Tell

_NOW: Final = TimeMs(1)
_DIRECTORY: Final = "topic-0"
_TORN_BYTES: Final = 10


def _batch(value: int, stamp_ms: int = _NOW) -> bytes:
    return build_batch(BatchSpec(), (Record(Offset(0), TimeMs(stamp_ms), None, bytes([value])),))


def _stopped_while_recovering(tell: Tell, rules: Rules) -> tuple[Fact, ...]:
    """Tear a log's end off, stop the broker while it recovers, start it again and go on writing."""
    storage = MemoryStorage(ManualClock())
    log = PartitionLog.open(storage, _DIRECTORY, LogConfig(), LastShutdown(), now_ms=_NOW)
    for value in range(3):
        log.append_as_leader(_batch(value), leader_epoch=LeaderEpoch(0), now_ms=_NOW)
    path = f"{_DIRECTORY}/{0:020d}.log"
    storage.open(path).truncate(storage.size_bytes(path) - _TORN_BYTES)
    tell("records 0, 1 and 2 are written; power fails, and the end of the third is torn off")
    found = proof_while_loading(StopProof(), rules)
    found = proof_at_stop(BrokerEpoch(7), logs_recovered=False, rules=rules)
    is_clean = found.epoch is not None
    tell(f"the broker starts, and is told to stop before its logs are recovered; clean stop noted: {is_clean}")
    log = PartitionLog.open(storage, _DIRECTORY, LogConfig(), LastShutdown(clean=is_clean), now_ms=_NOW)
    tell(f"it starts again; the log ends at {log.log_end_offset}, its file at {storage.size_bytes(path)}")
    written = log.append_as_leader(_batch(9), leader_epoch=LeaderEpoch(1), now_ms=_NOW)
    tell(f"another record is written at offset {written.first_offset}")
    return (
        Fact("clean stop noted:", str(is_clean)),
        Fact("the record is written at", written.first_offset),
        Fact("bytes that readers are sent and that belong to no whole batch:", _torn_size(log)),
    )


def _torn_size(log: PartitionLog) -> int:
    """Return how many bytes readers are sent from the log's start that belong to no whole batch."""
    records = log.read(log.log_start_offset, MIB).records
    return len(records) - sum(batch.size_bytes for batch in batches_in(records))


def _kept_by_a_clock(tell: Tell, ahead_ms: int) -> tuple[Fact, ...]:
    """Keep two records for a day by a clock that is right, and by one that is not; a third comes from the future."""
    config = LogConfig(retention_ms=DurationMs(DAY_MS), segment_size_bytes=SizeBytes(100))
    kept = []
    for ahead in (0, ahead_ms):
        log = PartitionLog.open(MemoryStorage(ManualClock()), _DIRECTORY, config, LastShutdown(), now_ms=_NOW)
        for stamp_ms in (0, 2 * HOUR_MS, 3 * DAY_MS, 4 * HOUR_MS):
            log.append_as_leader(_batch(0, stamp_ms), leader_epoch=LeaderEpoch(0), now_ms=TimeMs(stamp_ms))
        log.update_high_watermark(log.log_end_offset)
        now_ms = TimeMs(DAY_MS + HOUR_MS + HOUR_MS // 2 + ahead)
        log.delete_old_segments(now_ms=now_ms)
        tell(f"a clock {ahead // HOUR_MS} h ahead: the log begins at {log.log_start_offset}")
        kept.append(log.log_start_offset)
        log.delete_old_segments(now_ms=TimeMs(3 * DAY_MS))
        tell(f"on the third day it begins at {log.log_start_offset}: a stamp from the future keeps what is behind it")
        kept.append(log.log_start_offset)
    return (
        Fact("by a clock that is right the log begins at", kept[0]),
        Fact("by the other one it begins at", kept[2]),
        Fact("the record from the future is still there on the third day at", kept[1]),
    )


def _recovered_beyond_its_end(tell: Tell) -> tuple[Fact, ...]:
    """Lose records below the recovery point, and start."""
    storage = MemoryStorage(ManualClock())
    log = PartitionLog.open(storage, _DIRECTORY, LogConfig(), LastShutdown(), now_ms=_NOW)
    for value in range(3):
        log.append_as_leader(_batch(value), leader_epoch=LeaderEpoch(0), now_ms=_NOW)
    path = f"{_DIRECTORY}/{0:020d}.log"
    storage.open(path).truncate(storage.size_bytes(path) - _TORN_BYTES)
    tell("three records are written, the recovery point says that all are on disk, and the last one is torn")
    last = LastShutdown(clean=False, recovery_point=Offset(3))
    log = PartitionLog.open(storage, _DIRECTORY, LogConfig(), last, now_ms=_NOW)
    tell(f"the log ends at {log.log_end_offset}, the recovery point is {log.recovery_point}")
    log.append_as_leader(_batch(9), leader_epoch=LeaderEpoch(1), now_ms=_NOW)
    return (Fact("the recovery point is", log.recovery_point), Fact("and the log ends at", log.log_end_offset))


_OLD: Final = without(CURRENT, "clean_marker_removed_first")
_S18: Final = PartScenario(
    name="S18",
    title="a clean stop that was none",
    how="A broker loses power, starts, and is told to stop before its logs are recovered. If that passes for a "
    "clean stop, the next start skips recovery: the torn end stays in the log, and readers are sent it.",
    source="KAFKA-10471, KAFKA-15375",
    script=partial(_stopped_while_recovering, rules=CURRENT),
    expected=(
        Fact("clean stop noted:", "False"),
        Fact("the record is written at", 2),
        Fact("bytes that readers are sent and that belong to no whole batch:", 0),
    ),
)

ONE_DISK: Final = (
    _S18,
    PartScenario(
        name="S18-before",
        title=_S18.title,
        how=_S18.how,
        source=_S18.source,
        script=partial(_stopped_while_recovering, rules=_OLD),
        expected=(
            Fact("clean stop noted:", "True"),
            Fact("the record is written at", 2),
            Fact("bytes that readers are sent and that belong to no whole batch:", 59),
        ),
    ),
    PartScenario(
        name="S44-kept",
        title="what a clock that is an hour ahead deletes",
        how="A log is kept for a day by the stamps of its records. A broker whose clock is ahead deletes early; a "
        "record with a stamp from the future stays, and with it all that was written later.",
        source="Kafka UnifiedLog.deleteRetentionMsBreachedSegments",
        script=partial(_kept_by_a_clock, ahead_ms=HOUR_MS),
        expected=(
            Fact("by a clock that is right the log begins at", 1),
            Fact("by the other one it begins at", 2),
            Fact("the record from the future is still there on the third day at", 2),
        ),
    ),
    PartScenario(
        name="S85",
        title="a recovery point beyond the log's end",
        how="The checkpoint says that three records are on disk, and one is torn. Recovery cuts the log, brings the "
        "recovery point down to its end, and does not raise it again for what is written later.",
        source="KAFKA-10101",
        script=_recovered_beyond_its_end,
        expected=(Fact("the recovery point is", 2), Fact("and the log ends at", 3)),
    ),
)
"""S18, S44 and S85."""

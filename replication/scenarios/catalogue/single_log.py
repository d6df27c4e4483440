"""Describe scenarios of one log on one disk, without a cluster: S18, S44-kept and S85.

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
from replication.scenarios.component_scenario import ComponentScenario, Fact
from replication.simulation.trace import LineSink

_NOW: Final = TimeMs(1)
_DIRECTORY: Final = "topic-0"
_TORN_BYTES: Final = 10


def _batch(value: int, stamp_ms: int = _NOW) -> bytes:
    return build_batch(BatchSpec(), (Record(Offset(0), TimeMs(stamp_ms), None, bytes([value])),))


def _stopped_while_recovering(on_line: LineSink, rules: Rules) -> tuple[Fact, ...]:
    """Tear a log's end off, stop the broker during recovery, restart it and append."""
    storage = MemoryStorage(ManualClock())
    log = PartitionLog.open(storage, _DIRECTORY, LogConfig(), LastShutdown(), now_ms=_NOW)
    for value in range(3):
        log.append_as_leader(_batch(value), leader_epoch=LeaderEpoch(0), now_ms=_NOW)
    path = f"{_DIRECTORY}/{0:020d}.log"
    storage.open(path).truncate(storage.size_bytes(path) - _TORN_BYTES)
    on_line("records 0, 1 and 2 are written; power fails and tears the end of the third off")
    found = proof_while_loading(StopProof(), rules)
    found = proof_at_stop(BrokerEpoch(7), logs_recovered=False, rules=rules)
    is_clean = found.epoch is not None
    on_line(f"the broker starts and is stopped before its logs are recovered; clean shutdown file written: {is_clean}")
    log = PartitionLog.open(storage, _DIRECTORY, LogConfig(), LastShutdown(clean=is_clean), now_ms=_NOW)
    on_line(f"it starts again; the log ends at {log.log_end_offset}, its file at {storage.size_bytes(path)}")
    written = log.append_as_leader(_batch(9), leader_epoch=LeaderEpoch(1), now_ms=_NOW)
    on_line(f"another record is written at offset {written.first_offset}")
    return (
        Fact("clean shutdown file written:", str(is_clean)),
        Fact("the record is written at", written.first_offset),
        Fact("bytes sent to readers that belong to no whole batch:", _torn_size(log)),
    )


def _torn_size(log: PartitionLog) -> int:
    """Return how many bytes readers receive from the log's start that belong to no whole batch."""
    records = log.read(log.log_start_offset, MIB).records
    return len(records) - sum(batch.size_bytes for batch in batches_in(records))


def _kept_by_a_clock(on_line: LineSink, ahead_ms: int) -> tuple[Fact, ...]:
    """Apply retention.ms of a day by a correct clock and by one that is ahead; one record has a future timestamp."""
    config = LogConfig(retention_ms=DurationMs(DAY_MS), segment_size_bytes=SizeBytes(100))
    kept = []
    for ahead in (0, ahead_ms):
        log = PartitionLog.open(MemoryStorage(ManualClock()), _DIRECTORY, config, LastShutdown(), now_ms=_NOW)
        for stamp_ms in (0, 2 * HOUR_MS, 3 * DAY_MS, 4 * HOUR_MS):
            log.append_as_leader(_batch(0, stamp_ms), leader_epoch=LeaderEpoch(0), now_ms=TimeMs(stamp_ms))
        log.update_high_watermark(log.log_end_offset)
        now_ms = TimeMs(DAY_MS + HOUR_MS + HOUR_MS // 2 + ahead)
        log.delete_old_segments(now_ms=now_ms)
        on_line(f"a clock {ahead // HOUR_MS} h ahead: the log starts at {log.log_start_offset}")
        kept.append(log.log_start_offset)
        log.delete_old_segments(now_ms=TimeMs(3 * DAY_MS))
        on_line(f"on the third day it starts at {log.log_start_offset}: a future timestamp keeps every later record")
        kept.append(log.log_start_offset)
    return (
        Fact("with a correct clock the log starts at", kept[0]),
        Fact("with the other clock it starts at", kept[2]),
        Fact("on the third day the record with the future timestamp is still at", kept[1]),
    )


def _recovered_beyond_its_end(on_line: LineSink) -> tuple[Fact, ...]:
    """Lose records below the recovery point, and start."""
    storage = MemoryStorage(ManualClock())
    log = PartitionLog.open(storage, _DIRECTORY, LogConfig(), LastShutdown(), now_ms=_NOW)
    for value in range(3):
        log.append_as_leader(_batch(value), leader_epoch=LeaderEpoch(0), now_ms=_NOW)
    path = f"{_DIRECTORY}/{0:020d}.log"
    storage.open(path).truncate(storage.size_bytes(path) - _TORN_BYTES)
    on_line("three records are written, the recovery point says that all are on disk, and the last one is torn")
    last = LastShutdown(clean=False, recovery_point=Offset(3))
    log = PartitionLog.open(storage, _DIRECTORY, LogConfig(), last, now_ms=_NOW)
    on_line(f"the log ends at {log.log_end_offset}, the recovery point is {log.recovery_point}")
    log.append_as_leader(_batch(9), leader_epoch=LeaderEpoch(1), now_ms=_NOW)
    return (Fact("the recovery point is", log.recovery_point), Fact("and the log ends at", log.log_end_offset))


_OLD: Final = without(CURRENT, "clean_marker_removed_first")
_S18: Final = ComponentScenario(
    name="S18",
    title="Stop during log recovery leaves no clean shutdown file",
    how="A broker loses power, starts, and is stopped before its logs are recovered. No clean shutdown file is "
    "written, and the next start recovers the log.",
    source="KAFKA-10471, KAFKA-15375",
    script=partial(_stopped_while_recovering, rules=CURRENT),
    expected=(
        Fact("clean shutdown file written:", "False"),
        Fact("the record is written at", 2),
        Fact("bytes sent to readers that belong to no whole batch:", 0),
    ),
)

SINGLE_LOG: Final = (
    _S18,
    ComponentScenario(
        name="S18-before",
        title="Stop during log recovery leaves a clean shutdown file",
        how="As S18, but the stop counts as clean and the next start skips recovery: the torn end stays in the log, "
        "and readers receive it.",
        source=_S18.source,
        script=partial(_stopped_while_recovering, rules=_OLD),
        expected=(
            Fact("clean shutdown file written:", "True"),
            Fact("the record is written at", 2),
            Fact("bytes sent to readers that belong to no whole batch:", 59),
        ),
    ),
    ComponentScenario(
        name="S44-kept",
        title="Clock that is an hour ahead deletes records early",
        how="A log is kept for a day by the timestamps of its records. A broker whose clock is ahead deletes early; a "
        "record with a future timestamp stays, and every record written after it.",
        source="Kafka UnifiedLog.deleteRetentionMsBreachedSegments",
        script=partial(_kept_by_a_clock, ahead_ms=HOUR_MS),
        expected=(
            Fact("with a correct clock the log starts at", 1),
            Fact("with the other clock it starts at", 2),
            Fact("on the third day the record with the future timestamp is still at", 2),
        ),
    ),
    ComponentScenario(
        name="S85",
        title="Recovery point is beyond the log's end",
        how="The checkpoint says that three records are on disk, and one is torn. Recovery truncates the log, lowers "
        "the recovery point to its end, and does not raise it again for later records.",
        source="KAFKA-10101",
        script=_recovered_beyond_its_end,
        expected=(Fact("the recovery point is", 2), Fact("and the log ends at", 3)),
    ),
)
"""S18, S44-kept and S85."""

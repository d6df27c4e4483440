"""The operation `clean` of a golden program: one pass of the cleaner, if it finds the log due.

`clean` gives the `result` that the case is compared with; it moves the clock past the delay of deletions, as the
program that printed the cases did.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Final

from broker.clock import ManualClock
from broker.ids import PartitionId, TopicPartition
from broker.units import DurationMs
from log.compaction import CleanedLog, CleanerManager, CleanerOptions, LogToClean
from log.partition.partition_log import PartitionLog
from log.storage.checkpoints import CLEANER_FILE
from tests.golden.log.cases import Json

PARTITION: Final = TopicPartition("topic", PartitionId(0))


def clean(log: PartitionLog, clock: ManualClock, operation: Mapping[str, Json]) -> Json:
    """Return the result of the operation on `log`, the only one of its directory."""
    options = CleanerOptions(
        map_slot_count=operation["offsetMapSlots"], map_load_factor=operation["dupBufferLoadFactor"]
    )
    now_ms = clock.now_ms()
    manager = CleanerManager(log.storage, {PARTITION: log}, options)
    checkpoint = manager.checkpoints().get(PARTITION)
    target = manager.candidates(now_ms=now_ms)[PARTITION]
    found = {"currentTimeMs": now_ms, "checkpointBefore": checkpoint, **_target_facts(target)}
    done = manager.clean_filthiest(now_ms=now_ms)
    if done is None:
        return {**found, "selected": False}
    log.run_scheduled(now_ms)  # What is deleted without delay is gone by the end of the operation.
    right_after = _files(log)
    clock.advance(DurationMs(log.config.file_delete_delay_ms + 1))
    log.run_scheduled(clock.now_ms())
    return {
        **found,
        "selected": True,
        **_pass_facts(done),
        "filesRightAfter": right_after,
        "filesAfterDeleteDelay": _files(log),
        "cleanerOffsetCheckpoint": log.storage.read(CLEANER_FILE).decode(),
        "survivors": list(_survivors(log)),
    }


def _target_facts(target: LogToClean) -> dict[str, Json]:
    return {
        "firstDirtyOffset": target.first_dirty_offset,
        "firstUncleanableOffset": target.first_uncleanable_offset,
        "cleanableRatio": target.cleanable_ratio,
        "cleanBytes": target.clean_bytes,
        "cleanableBytes": target.cleanable_bytes,
    }


def _pass_facts(done: CleanedLog) -> dict[str, Json]:
    stats = done.cleaned.stats
    return {
        "needCompactionNow": done.target.is_overdue,
        "endOffset": done.cleaned.end_offset,
        "messagesRead": stats.records_read,
        "messagesWritten": stats.records_written,
        "bytesRead": stats.bytes_read,
        "bytesWritten": stats.bytes_written,
        "mapMessagesRead": done.cleaned.records_mapped,
        "invalidMessagesRead": stats.keyless_count,
    }


def _files(log: PartitionLog) -> list[str]:
    return list(log.storage.list(log.directory))


def _survivors(log: PartitionLog) -> Iterator[Json]:
    for segment in log.segments:
        for batch in segment.batches():
            for record in batch.records():
                texts = [
                    None if data is None else base64.b64encode(data).decode() for data in (record.key, record.value)
                ]
                yield [segment.base_offset, record.offset, record.timestamp, *texts, batch.is_control]

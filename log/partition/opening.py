"""Open a log: segments, producers, leader epochs and topic id; recover after an unclean shutdown.

Constraints: a directory that is missing is made, and its name is made durable, before anything is written into it.

How: `log.partition.recovery` loads the segments; this module opens what stands beside them, and starts the regular
check for producers that have expired.

Example: after open_log(local, CLEAN_SHUTDOWN, now_ms=0) on an empty directory the log has one segment, 0, and all its
offsets are 0.

Left out: remote storage.

Source: kafka.log.UnifiedLog.apply, trunk 1eb7644 (2024-10).
"""

from __future__ import annotations

from functools import partial
from typing import Final

from broker.units import MINUTE_MS, TimeMs
from log.errors import InconsistentTopicIdError
from log.files.checkpoints import LEADER_EPOCH_FILE
from log.files.metadata_files import (
    PARTITION_METADATA_FILE,
    PartitionMetadata,
    read_partition_metadata,
    write_partition_metadata,
)
from log.log_config import LogConfig
from log.partition.epoch_cache import LeaderEpochCache
from log.partition.local_log import LocalLog
from log.partition.log_offsets import LogOffsets
from log.partition.recovery import LastShutdown, load_log
from log.producers.state import ProducerState
from log.storage.protocol import Storage, parent_of

CLEAN_SHUTDOWN: Final = LastShutdown()
PRODUCER_CHECK_INTERVAL_MS: Final = 10 * MINUTE_MS
"""How often expired producers are removed: producer.id.expiration.check.interval.ms."""


def open_log(local: LocalLog, last_shutdown: LastShutdown, *, now_ms: TimeMs, topic_id: str | None) -> LogOffsets:
    """Load the segments of `local` and return the log's offsets, producers and leader epochs.

    Raises CorruptDataError for what even recovery cannot read, InconsistentTopicIdError, StorageError.
    """
    storage, directory = local.storage, local.directory
    if not storage.exists(directory):
        storage.make_directory(directory)
        # Kafka leaves this to the file system: what is flushed into a directory without a name would be lost.
        storage.sync_directory(parent_of(directory))
    producers = ProducerState.open(storage, directory, name=directory)
    log = LogOffsets(local, producers, open_epochs(storage, directory, local.config))
    loaded = load_log(local, producers, log.epochs, last_shutdown, now_ms=now_ms)
    local.end_offset = loaded.end_offset
    local.recovery_point = max(loaded.recovery_point, loaded.log_start_offset)
    log.log_start_offset = log.high_watermark = loaded.log_start_offset
    log.update_first_unstable_offset()
    log.topic_id = _kept_topic_id(storage, directory, topic_id)
    local.schedule.add(TimeMs(now_ms + PRODUCER_CHECK_INTERVAL_MS), partial(_remove_expired_producers, log))
    return log


def open_epochs(storage: Storage, directory: str, config: LogConfig) -> LeaderEpochCache | None:
    """Return the leader epochs of a log; for magic 0 or 1 remove their file and return None."""
    path = f"{directory}/{LEADER_EPOCH_FILE}"
    if config.magic >= 2:
        return LeaderEpochCache.open(storage, path)
    if storage.exists(path):
        storage.remove(path)
    return None


def _kept_topic_id(storage: Storage, directory: str, topic_id: str | None) -> str | None:
    """Return the topic id in partition.metadata; write `topic_id` there if there is none yet."""
    path = f"{directory}/{PARTITION_METADATA_FILE}"
    known = read_partition_metadata(storage, path)
    if known is None:
        if topic_id is not None:
            write_partition_metadata(storage, path, PartitionMetadata(topic_id))
        return topic_id
    if topic_id is not None and known.topic_id != topic_id:
        raise InconsistentTopicIdError(
            f"{directory} belongs to the topic of id {known.topic_id}, not to that of {topic_id}"
        )
    return known.topic_id


def _remove_expired_producers(log: LogOffsets, now_ms: TimeMs) -> None:
    log.producers.remove_expired(now_ms)
    log.local.schedule.add(TimeMs(now_ms + PRODUCER_CHECK_INTERVAL_MS), partial(_remove_expired_producers, log))

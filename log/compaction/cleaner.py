"""Clean one log once: build the offset map, then rewrite the segments without superseded records.

The dirty part is read once to learn the latest offset of each key, as far as the map goes; then the log is rewritten
from its beginning up to there, one group of segments at a time. `selection` decides where a pass begins and may end,
`offset_map` which records are superseded, `fates` what transactions and producers need, `filter` what is left of a
batch, `io_chunks` how it is appended. The pass ends after the last segment that was mapped whole, or, when the map was
full, at the last record mapped.

1. For each key the latest record is there after the pass (or was a tombstone whose time had come); offsets and order
   are as before; nothing at or above the end of the pass is touched.
2. A crash at any moment leaves either the old segments of a group or the new one: it is written under `.cleaned`,
   synced, renamed to `.swap`, and only then are the old ones renamed to `.deleted` and it to its name.

Left out: throttling, and giving up half way, which Kafka does when a partition is being deleted. A segment with an
offset too far from its base, left by brokers before 1.1, is refused where Kafka splits it first.

Source: kafka.log.Cleaner.doClean, cleanSegments and buildOffsetMap, LogCleanerManager (grabFilthiestCompactedLog,
updateCheckpoints, doneCleaning), 4.3.1 and 4.4.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import attrs

from broker.errors import BrokersideError, CorruptDataError, RefusedError, UsageError
from broker.ids import INT32_MAX, Offset, TopicPartition
from broker.releases import Release
from broker.units import DAY_MS, DurationMs, SizeBytes, TimeMs
from log.compaction.fates import CleanedTransactions, Fates, LastOfProducer
from log.compaction.filter import LOG_START, CleanerStats, TombstoneRule, filter_source, map_source
from log.compaction.io_chunks import BUFFER_SIZE_BYTES, MESSAGE_SIZE_BYTES_MAX, Appender, IoLimits
from log.compaction.offset_map import LOAD_FACTOR, SLOT_COUNT, OffsetMap
from log.compaction.selection import LogToClean, filthiest, log_to_clean
from log.compaction.source import SourceLog
from log.errors import SegmentOffsetOverflowError
from log.log_config import LogConfig
from log.partition.partition_log import PartitionLog
from log.segments.file_names import LOG
from log.segments.segment import Segment
from log.segments.txn_index import AbortedTransaction
from log.storage.checkpoints import CLEANER_FILE, read_offset_checkpoint, write_offset_checkpoint
from log.storage.protocol import Storage


def group_segments(
    segments: Sequence[Segment], first_uncleanable_offset: Offset, config: LogConfig
) -> tuple[tuple[Segment, ...], ...]:
    """Group consecutive `segments`; each group is cleaned into one segment."""
    groups: list[list[Segment]] = []
    for index, segment in enumerate(segments):
        is_last = index + 1 == len(segments)
        next_base_offset = first_uncleanable_offset if is_last else segments[index + 1].base_offset
        if groups and _fits(groups[-1], segment, next_base_offset - 1, config):
            groups[-1].append(segment)
        else:
            groups.append([segment])
    return tuple(map(tuple, groups))


def _fits(group: Sequence[Segment], segment: Segment, last_offset: int, config: LogConfig) -> bool:
    """Return whether `segment`, with its estimated last offset, may join `group`."""
    members = (*group, segment)
    return (
        sum(member.size_bytes for member in members) <= config.segment_size_bytes
        and sum(member.offset_index.size_bytes for member in members) <= config.index_size_bytes
        and sum(member.time_index.size_bytes for member in members) <= config.index_size_bytes
        and (segment.size_bytes == 0 or last_offset - group[0].base_offset <= INT32_MAX)
    )


UPGRADES_SINCE: Final = Release("4.0")
"""The first release whose cleaner writes old messages as magic 2."""
KEEPS_LAST_BATCH: Final = Release("3.9")
"""The first release whose cleaner keeps the last batch of a pass though it is empty; so does 3.9.2."""
KEEPS_BATCH_AT_HIGH_WATERMARK: Final = Release("4.4")
"""The first release that keeps the last batch below the high watermark so, and no longer that of the pass."""
NO_KEPT_END: Final = Offset(-1)
"""An offset at which no batch ends: no empty batch is kept."""
NO_PRODUCERS: Final[Mapping[int, LastOfProducer]] = MappingProxyType({})
NO_CLEAN_SEGMENT_HORIZON_MS: Final = TimeMs(0)


def kept_end(release: Release, *, high_watermark: Offset, end_offset: Offset) -> Offset:
    """Return the end offset of the batch that stays though it is empty, so that the log keeps its end.

    `end_offset` is that of the pass.
    """
    if release >= KEEPS_BATCH_AT_HIGH_WATERMARK:
        return high_watermark
    return end_offset if release >= KEEPS_LAST_BATCH else NO_KEPT_END


@attrs.frozen(kw_only=True)
class CleanerOptions:
    """Set the memory of a cleaner thread: log.cleaner.dedupe.buffer.size, log.cleaner.io.buffer.size."""

    map_slot_count: int = SLOT_COUNT
    map_load_factor: float = LOAD_FACTOR
    io_buffer_size_bytes: SizeBytes = BUFFER_SIZE_BYTES
    message_size_bytes_max: SizeBytes = MESSAGE_SIZE_BYTES_MAX


DEFAULTS: Final = CleanerOptions()


@attrs.frozen(kw_only=True)
class Cleaned:
    """Hold the result of a cleaning pass: statistics, and the end offset for the cleaner checkpoint."""

    end_offset: Offset
    stats: CleanerStats
    records_mapped: int
    """Records read while filling the map."""
    map_utilization: float
    """Keys in the map over its slots."""


def clean(target: LogToClean, *, now_ms: TimeMs, options: CleanerOptions = DEFAULTS) -> Cleaned:
    """Clean a log once and return the result; the log's schedule deletes the old files later.

    Raises UsageError for a target without anything dirty, CorruptDataError at damage and RefusedError for what Kafka's
    cleaner refuses; the groups of segments that were done by then stay done, the others are as they were.
    """
    log = target.log
    if target.end_offset <= target.first_dirty_offset:
        raise UsageError(f"{log.directory} has nothing to clean below {target.end_offset}")
    offset_map = OffsetMap(options.map_slot_count, options.map_load_factor)
    _fill_map(offset_map, target)
    end_offset = Offset(offset_map.latest_offset + 1)
    rewrite = _Rewrite(target, offset_map, now_ms, options)
    segments = log.local.segments.between(LOG_START, end_offset)
    for group in group_segments(segments, target.end_offset, log.config):
        rewrite.clean_group(group)
    return Cleaned(
        end_offset=end_offset,
        stats=rewrite.stats,
        records_mapped=offset_map.record_count,
        map_utilization=len(offset_map) / offset_map.slot_count,
    )


def source_of(segment: Segment) -> SourceLog:
    """Return the log file of a segment as the cleaner reads it."""
    return SourceLog(segment.records.view(), segment.place.path(LOG))


def _fill_map(offset_map: OffsetMap, target: LogToClean) -> None:
    """Take the keys of the dirty part into the map, until it is full."""
    log, start_offset, end_offset = target.log, target.first_dirty_offset, target.end_offset
    transactions = CleanedTransactions()
    transactions.add_aborted(_aborted_transactions(log, start_offset, end_offset))
    dirty = log.local.segments.between(start_offset, end_offset)
    bounds = [*(segment.base_offset for segment in dirty[1:]), end_offset]
    for segment, next_offset in zip(dirty, bounds, strict=True):
        # Kafka asks the index of each segment; the first is the only one in which an earlier record can stand.
        position = segment.offset_index.lookup(start_offset).position if segment.base_offset < start_offset else 0
        if not map_source(
            offset_map, source_of(segment), transactions, start_offset=start_offset, start_position=position
        ):
            return
        # A segment may end before the next one begins.
        offset_map.move_to(Offset(next_offset - 1))


class _Rewrite:
    """The second half of a pass: the groups of segments, one after the other."""

    def __init__(self, target: LogToClean, offset_map: OffsetMap, now_ms: TimeMs, options: CleanerOptions) -> None:
        log = target.log
        self.stats = CleanerStats()
        self._log = log
        self._offset_map = offset_map
        self._now_ms = now_ms
        self._limits = IoLimits(
            buffer_size_bytes=options.io_buffer_size_bytes,
            broker_message_size_bytes_max=options.message_size_bytes_max,
            topic_message_size_bytes_max=log.config.message_size_bytes_max,
        )
        release = log.config.release
        rule = TombstoneRule.of_pass(now_ms, log.config.delete_retention_ms)
        self._rule = attrs.evolve(rule, upgrades_messages=release >= UPGRADES_SINCE)
        end = kept_end(release, high_watermark=log.high_watermark, end_offset=target.end_offset)
        self._fates = Fates(end, now_ms)
        clean_segments = log.local.segments.between(LOG_START, target.first_dirty_offset)
        self._legacy_horizon_ms = (
            clean_segments[-1].modified_ms - log.config.delete_retention_ms
            if clean_segments
            else NO_CLEAN_SEGMENT_HORIZON_MS
        )

    def clean_group(self, group: Sequence[Segment]) -> None:
        """Write one new segment for a group and put it in the place of the old ones."""
        self._fates.producers = last_of_producers(self._log)
        cleaned = self._log.new_cleaned_segment(group[0].base_offset, now_ms=self._now_ms)
        try:
            ends = [*(segment.base_offset for segment in group[1:]), group[-1].read_next_offset()]
            for segment, end_offset in zip(group, ends, strict=True):
                aborted = _aborted_transactions(self._log, segment.base_offset, end_offset)
                self._fates.transactions.add_aborted(aborted)
                self._clean_into(cleaned, segment)
        except SegmentOffsetOverflowError:
            cleaned.delete_files()
            raise
        except BrokersideError:
            # Kafka leaves the files too: the next pass writes them anew, the next opening removes them.
            cleaned.abandon()
            raise
        cleaned.become_inactive()
        cleaned.flush()
        cleaned.set_modified_ms(group[-1].modified_ms)
        self._log.replace_segments([cleaned], group, now_ms=self._now_ms)

    def _clean_into(self, cleaned: Segment, segment: Segment) -> None:
        """Append what stays of an old segment to the new one."""
        source = source_of(segment)
        keeps_tombstones = segment.modified_ms > self._legacy_horizon_ms
        rule = attrs.evolve(self._rule, keeps_legacy_tombstones=keeps_tombstones)
        appender = Appender(cleaned, self._limits)
        for batches in filter_source(source, self._fates, self._offset_map, rule):
            # As Kafka: transactions are indexed as their markers are read, batches when a portion of them is full.
            self._index_retained(cleaned)
            appender.feed(batches)
            self.stats = self.stats.plus(batches)
        appender.finish()
        self._index_retained(cleaned)

    def _index_retained(self, cleaned: Segment) -> None:
        """Add the aborted transactions whose markers stay to the new segment's index."""
        for transaction in self._fates.take_retained():
            cleaned.txn_index.append(transaction)


def last_of_producers(log: PartitionLog) -> dict[int, LastOfProducer]:
    """Return the last data offset and epoch of each active producer, by producer id."""
    return {
        entry.producer_id: LastOfProducer(
            entry.last_data_offset if entry.last_data_offset >= 0 else None, entry.producer_epoch
        )
        for entry in log.producers.producers
    }


def _aborted_transactions(log: PartitionLog, start_offset: Offset, end_offset: Offset) -> Iterable[AbortedTransaction]:
    """Yield the aborted transactions that a walk over a range may meet, listed in the indexes from its segment on."""
    # As in Kafka from the start of the log, not of the range: what ended before the range is never met.
    for segment in log.local.segments.between(start_offset):
        found = segment.txn_index.collect(log.log_start_offset, end_offset)
        yield from found.transactions
        if found.is_complete:
            return


DELETE_RETENTION_MS: Final = DurationMs(DAY_MS)  # Kafka's default.


@attrs.frozen(kw_only=True)
class CompactionEstimate:
    """Estimate the bytes and records that one pass over all segments would read and leave."""

    stats: CleanerStats
    """Bytes and records read and left; `keyless_count` are records that a cleaner drops for having no key."""
    distinct_key_count: int
    """Distinct keys that were counted; as many as the map holds if not `is_complete`."""
    is_complete: bool
    """Whether the map held all keys. If not, what follows the last mapped record counts as kept."""

    @property
    def bytes_saved(self) -> int:
        """Return the bytes that the pass would remove; negative if delete horizons make batches larger."""
        return self.stats.bytes_read - self.stats.bytes_written


def estimate_compaction(
    segments: Sequence[SourceLog],
    *,
    now_ms: TimeMs,
    aborted: Sequence[AbortedTransaction] = (),
    delete_retention_ms: DurationMs = DELETE_RETENTION_MS,
    map_slot_count: int = SLOT_COUNT,
    log_start_offset: Offset = LOG_START,
    producers: Mapping[int, LastOfProducer] = NO_PRODUCERS,
    kept_end_offset: Offset = NO_KEPT_END,
) -> CompactionEstimate:
    """Return the estimate for `segments`, consecutive segments of one partition in order; change no file.

    Reads everything twice. `aborted` are the entries of the segments' transaction indexes, `producers` the active ones;
    `kept_end_offset` is the end of the batch that keeps the log's end. Raises CorruptDataError at
    the first damage, UsageError for a map of no more than one slot (one slot is 24 bytes).
    """
    offset_map = OffsetMap(map_slot_count)
    transactions = CleanedTransactions()
    transactions.add_aborted(aborted)
    is_complete = all(
        map_source(offset_map, segment, transactions, start_offset=log_start_offset) for segment in segments
    )
    fates = Fates(kept_end_offset, now_ms)
    fates.producers = producers
    fates.transactions.add_aborted(aborted)
    rule = TombstoneRule.of_pass(now_ms, delete_retention_ms)
    stats = CleanerStats()
    for segment in segments:
        for batches in filter_source(segment, fates, offset_map, rule):
            stats = stats.plus(batches)
    return CompactionEstimate(stats=stats, distinct_key_count=len(offset_map), is_complete=is_complete)


@attrs.frozen
class CleanedLog:
    """Hold a cleaned log: the dirty range at the start of the pass, and the result of the pass."""

    partition: TopicPartition
    target: LogToClean
    cleaned: Cleaned


class CleanerManager:
    """Choose and clean logs of one log directory; `logs` may change between calls.

    `uncleanable` are the partitions that are left alone, and why.
    """

    def __init__(
        self,
        storage: Storage,
        logs: Mapping[TopicPartition, PartitionLog],
        options: CleanerOptions = DEFAULTS,
    ) -> None:
        self._storage = storage
        self._logs = logs
        self._options = options
        self.uncleanable: dict[TopicPartition, CorruptDataError | RefusedError] = {}

    def candidates(self, *, now_ms: TimeMs) -> dict[TopicPartition, LogToClean]:
        """Return the cleanable range of each compacted log; correct checkpoints outside their logs."""
        checkpoints = self.checkpoints()
        found: dict[TopicPartition, LogToClean] = {}
        for partition in sorted(self._logs):
            log = self._logs[partition]
            if log.config.compacts and partition not in self.uncleanable:
                target = log_to_clean(log, checkpoints.get(partition), now_ms=now_ms)
                if target.resets_checkpoint:
                    self._write_checkpoint(partition, target.first_dirty_offset)
                found[partition] = target
        return found

    def clean_filthiest(self, *, now_ms: TimeMs) -> CleanedLog | None:
        """Clean the log with the largest dirty share that is due; return None if no log is due.

        Raises CorruptDataError or RefusedError if that log cannot be cleaned, which is then left alone.
        """
        candidates = self.candidates(now_ms=now_ms)
        target = filthiest(candidates.values())
        if target is None:
            return None
        partition = next(partition for partition, candidate in candidates.items() if candidate is target)
        try:
            cleaned = clean(target, now_ms=now_ms, options=self._options)
        except (CorruptDataError, RefusedError) as error:
            self.uncleanable[partition] = error
            self._write_checkpoint(partition, target.first_dirty_offset)
            raise
        self._write_checkpoint(partition, cleaned.end_offset)
        return CleanedLog(partition, target, cleaned)

    def checkpoints(self) -> Mapping[TopicPartition, Offset]:
        """Return the offset at which the last pass over each log ended; logs never cleaned are absent."""
        if not self._storage.exists(CLEANER_FILE):
            return {}
        return read_offset_checkpoint(self._storage, CLEANER_FILE)

    def _write_checkpoint(self, partition: TopicPartition, offset: Offset) -> None:
        """Write where cleaning of a log has got to, and leave out the logs that are gone."""
        kept = {known: end for known, end in self.checkpoints().items() if known in self._logs}
        write_offset_checkpoint(self._storage, CLEANER_FILE, {**kept, partition: offset})

"""Decide which records compaction keeps, by key and tombstone, and return the bytes of the new batches.

- A record stays if the offset map has no later record of its key, and it has a value or is a tombstone that has not
  expired. A record without key is dropped. A record above the last offset of the map stays, as its key is not known.
- A tombstone of magic 2 expires at its batch's delete horizon, now + delete.retention.ms of the first pass that keeps
  it; a tombstone of magic 0 or 1 expires when its segment is old enough.
- Messages of magic 0 and 1 are rewritten as batches of magic 2, all that stay (before Kafka 4.0 in their own magic).
- A batch that keeps all its records and gets no horizon is copied byte for byte; a batch that keeps some is rebuilt; a
  batch that keeps none is discarded, or becomes an empty batch if `log.compaction.fates` demands one. Empty batches
  exist in magic 2 only: a pass over a log of magic 0 or 1 that would have to leave one fails, as Kafka's does.

The masks are over the columns of a scan, one element per record or batch; `log.compaction.building` makes the bytes.

Left out: compressed messages whose wrapper has a different magic from its contents (KAFKA-4298), which Kafka rewrites
in passing, stay as they are. Names of headers that are not UTF-8 are copied; Kafka's would be U+FFFD.

Source: kafka.log.Cleaner.shouldRetainRecord, org.apache.kafka.common.record.MemoryRecords.filterTo, 4.3.1 and 3.9.1;
KIP-534 for the horizon.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int64Array
from broker.ids import INT64_MAX, Offset
from broker.units import DurationMs, SizeBytes, TimeMs
from log.batches.batch_v2 import DELETE_HORIZON_BIT
from log.batches.record_columns import HeaderColumns, RecordColumns
from log.compaction.building import MAGIC_V2, NO_HORIZON, Building
from log.compaction.fates import CleanedTransactions, Fates, ManyFates, is_transactional_or_control, mapped_fates
from log.compaction.key_kernels import BY_KEY, SKIP, BatchColumns, KeyColumns
from log.compaction.offset_map import LatestRecords, OffsetMap, hashed
from log.compaction.source import SourceLog
from log.storage.protocol import Buffer

NOTHING: Final = SizeBytes(0)
LOG_START: Final = Offset(0)


@attrs.frozen(kw_only=True)
class CleanerStats:
    """Count bytes, batches and records of a pass; records of batches discarded unread are not read."""

    bytes_read: SizeBytes = NOTHING
    bytes_written: SizeBytes = NOTHING
    records_read: int = 0
    records_written: int = 0
    keyless_count: int = 0
    """Records dropped for having no key."""

    def plus(self, batches: FilteredBatches) -> CleanerStats:
        """Return these counts plus those of one more chunk."""
        return CleanerStats(
            bytes_read=SizeBytes(self.bytes_read + batches.bytes_read),
            bytes_written=SizeBytes(self.bytes_written + batches.bytes_kept),
            records_read=self.records_read + batches.records_read,
            records_written=self.records_written + batches.records_kept,
            keyless_count=self.keyless_count + batches.keyless_count,
        )


_HORIZON_BIT: Final = np.int16(DELETE_HORIZON_BIT)


@attrs.frozen(kw_only=True)
class TombstoneRule:
    """Hold the times that decide on the tombstones in one segment of a pass."""

    now_ms: TimeMs
    horizon_ms: TimeMs
    """The delete horizon that is given in this pass."""
    keeps_legacy_tombstones: bool = True
    """Whether tombstones of magic 0 and 1 stay in this segment."""
    upgrades_messages: bool = True
    """Whether messages of magic 0 and 1 are written anew as magic 2, as since Kafka 4.0."""

    @classmethod
    def of_pass(cls, now_ms: TimeMs, delete_retention_ms: DurationMs) -> TombstoneRule:
        """Return the rule of a pass; a delete horizon beyond Java's long is stored as -1, no horizon."""
        horizon_ms = now_ms + delete_retention_ms
        return cls(now_ms=now_ms, horizon_ms=TimeMs(horizon_ms if horizon_ms <= INT64_MAX else NO_HORIZON))


@attrs.frozen(eq=False, kw_only=True)
class FilteredBatches:
    """Hold a chunk's batches after filtering, one row per batch; a discarded one has no bytes and -1 elsewhere."""

    end_position: Int64Array
    """Where each batch ended in the file it was read from."""
    pieces: list[Buffer]
    size_bytes: Int64Array
    """Sizes of the pieces."""
    max_timestamp: Int64Array
    max_offset: Int64Array
    """The last offset of a batch copied whole or emptied; of one built anew, that of its last record."""
    timestamp_offset: Int64Array
    """The offset that the time index gets for the batch's largest timestamp."""
    bytes_read: int
    bytes_kept: int
    records_read: int
    records_kept: int
    keyless_count: int


def key_columns(chunk: RecordColumns) -> KeyColumns:
    """Return the hashed keys of a chunk, for the look-up in the offset map."""
    return hashed(chunk.data, chunk.key_position, chunk.key_size, chunk.offset)


def first_records(chunk: RecordColumns) -> Int64Array:
    """Return int64[B + 1]: the row of each batch's first record, then the row after the last record."""
    return np.searchsorted(chunk.batch_index, np.arange(len(chunk.batches) + 1)).astype(np.int64)


def filter_source(
    source: SourceLog, fates: Fates, offset_map: OffsetMap, rule: TombstoneRule
) -> Iterator[FilteredBatches]:
    """Yield the filtered batches of a log file, chunk by chunk; `fates` must be at the file's first batch.

    Raises CorruptDataError at damage, and IllegalStateError where an older message would have to be left empty.
    """
    for headers in source.headers():
        of_batches = fates.of_headers(headers, source)
        # A batch of which every record is superseded is recognised by its offsets alone, and is never decompressed.
        # Not a transactional batch: its abort may be known now and not when the map was filled, or the other way
        # round. Nor one of magic 0 or 1: its header has the last offset only.
        is_plain = (headers.magic >= MAGIC_V2) & ~is_transactional_or_control(headers)
        is_superseded = is_plain & offset_map.superseded(headers.base_offset, headers.last_offset)
        of_batches.records[is_superseded] = SKIP
        for chunk in source.records(headers, of_batches.records != SKIP):
            yield filter_chunk(chunk.columns, of_batches.rows(chunk.start_row, chunk.end_row), offset_map, rule, source)


def filter_chunk(
    chunk: RecordColumns, fates: ManyFates, offset_map: OffsetMap, rule: TombstoneRule, source: SourceLog
) -> FilteredBatches:
    """Return the filtered batches of a chunk; raise IllegalStateError if magic 0 or 1 would need an empty batch."""
    headers = chunk.batches
    first = first_records(chunk)
    batches = BatchColumns(first, headers.base_offset, headers.last_offset, headers.record_count, fates.records)
    # First by key (Kafka's isLatestRecordForKey), then by tombstone: from here on `latest.kept` is final.
    latest = offset_map.latest(key_columns(chunk), batches)
    has_tombstone = _drop_tombstones(chunk, fates, latest, offset_map.latest_offset, rule)
    kept_count = latest.kept_count
    is_v2 = headers.magic >= MAGIC_V2
    has_horizon = is_v2 & (headers.attributes & _HORIZON_BIT != 0)
    # A horizon is set once, by the first pass that keeps a tombstone or the marker of an emptied transaction (KIP-534):
    # a later pass must not extend the time in which consumers can see it.
    is_new = is_v2 | rule.upgrades_messages
    is_stamped = is_new & ~has_horizon & (has_tombstone | fates.is_stamped)
    is_whole = (kept_count == np.diff(first)) & ~is_stamped & (is_v2 | (not rule.upgrades_messages))
    horizon_ms = np.where(is_stamped, rule.horizon_ms, np.where(has_horizon, headers.base_timestamp, NO_HORIZON))
    # Four outcomes: copied byte for byte, left as an empty batch, built anew, or (none of these) gone.
    building = Building(chunk, first, latest.kept, source)
    building.copy(np.flatnonzero((kept_count > 0) & is_whole))
    building.empty(np.flatnonzero((kept_count == 0) & fates.keeps_empty))
    cut = (kept_count > 0) & ~is_whole
    building.build(np.flatnonzero(cut & is_v2), np.maximum(horizon_ms[cut & is_v2], NO_HORIZON))
    old = cut & ~is_v2
    if rule.upgrades_messages:
        building.upgrade(np.flatnonzero(old), np.maximum(horizon_ms[old], NO_HORIZON))
    else:
        building.build_wrappers(np.flatnonzero(old))
    sizes = np.fromiter(map(len, building.pieces), np.int64, len(building.pieces))
    return FilteredBatches(
        end_position=headers.position + headers.size_bytes,
        pieces=building.pieces,
        size_bytes=sizes,
        max_timestamp=np.where(sizes > 0, building.max_timestamp, -1),
        max_offset=np.where(sizes > 0, building.max_offset, -1),
        timestamp_offset=building.timestamp_offset,
        bytes_read=int(headers.size_bytes.sum(dtype=np.int64)),
        bytes_kept=int(sizes.sum()),
        records_read=_read_count(np.diff(first), headers, fates),
        records_kept=int(kept_count.sum()),
        keyless_count=latest.keyless_count,
    )


def _read_count(counts: Int64Array, headers: HeaderColumns, fates: ManyFates) -> int:
    """Return the record count that Kafka's CleanerStats shows as read; batches discarded unread do not count."""
    announced = np.where(fates.records == SKIP, headers.record_count, counts)
    return int(announced[fates.is_read].sum())


def _drop_tombstones(
    chunk: RecordColumns, fates: ManyFates, latest: LatestRecords, latest_offset: Offset, rule: TombstoneRule
) -> NDArray[np.bool_]:
    """Remove expired tombstones from `latest`, and return a mask of the batches that keep a tombstone."""
    keeps_tombstone = np.zeros(len(chunk.batches), np.bool_)
    tombstones = np.flatnonzero(latest.kept & (chunk.value_size < 0))
    if len(tombstones):
        batch_index = chunk.batch_index[tombstones]
        drops = (fates.records == BY_KEY) & _is_expired(chunk.batches, rule)
        # Records above `latest_offset` stay, tombstones too: the next pass maps them.
        goes = drops[batch_index] & (chunk.offset[tombstones] <= latest_offset)
        latest.kept[tombstones[goes]] = False
        np.subtract.at(latest.kept_count, batch_index[goes], 1)
        keeps_tombstone[batch_index[~goes]] = True
    return keeps_tombstone


def _is_expired(headers: HeaderColumns, rule: TombstoneRule) -> NDArray[np.bool_]:
    """Return a mask of the batches whose tombstones have expired; a horizon equal to now has been reached."""
    is_v2 = headers.magic >= MAGIC_V2
    is_over = (headers.attributes & _HORIZON_BIT != 0) & (headers.base_timestamp <= rule.now_ms)
    return np.where(is_v2, is_over, not rule.keeps_legacy_tombstones)


def map_source(
    offset_map: OffsetMap,
    source: SourceLog,
    transactions: CleanedTransactions,
    *,
    start_offset: Offset = LOG_START,
    start_position: int = 0,
) -> bool:
    """Put the keys from `start_offset` on into the map; return False if the map was full before the end of the file.

    `transactions` know the aborted ones that reach into the file. Raises CorruptDataError at damage.
    """
    for headers in source.headers(start_position):
        fates, counts = mapped_fates(headers, transactions, source)
        for chunk in source.records(headers, fates != SKIP):
            rows = slice(chunk.start_row, chunk.end_row)
            batches = BatchColumns(
                first_records(chunk.columns),
                headers.base_offset[rows],
                headers.last_offset[rows],
                counts[rows],
                fates[rows],
            )
            if not offset_map.put(key_columns(chunk.columns), batches, start_offset):
                return False
    return True

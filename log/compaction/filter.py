"""Filter the batches of a chunk by key and tombstone, and return the bytes of what stays.

What it decides: the survivors of each batch, and the batch that is written with them.
- A record stays if the map knows no later one of its key and it has a value, or is a tombstone whose time has not
  come. In magic 2 the batch of a tombstone gets a delete horizon in the first pass that keeps it, and the tombstone
  goes in a pass at or after the horizon; before magic 2 it goes when its segment is old enough. A record without key
  goes. What lies beyond the map stays.
- A batch that keeps all its records and gets no horizon is copied byte for byte; one that keeps some is built anew; one
  that keeps none goes, or leaves an empty batch where `log.compaction.fates` says so.

Constraints: offsets never change, nor does their order. An empty batch exists in magic 2 only, so a pass over a
log of older messages fails, as Kafka's does, where it would have to leave one.

How: masks over the columns of a scan; batches of magic 2 are built in a kernel, which leaves size, checksum and
compression to be done here; wrappers of older messages are built by `log.batches.rewrite`.

Example: a batch with keys a, b, a at offsets 4, 5, 6 becomes one of the same offsets with b at 5 and a at 6.

Left out: batches of older messages whose wrapper is of another magic than its contents (KAFKA-4298), which Kafka
rewrites in passing, stay as they are. Names of headers that are not UTF-8 are copied; Kafka's would be U+FFFD.

The cost is linear in the bytes.

Source: kafka.log.Cleaner.shouldRetainRecord, org.apache.kafka.common.record.MemoryRecords.
filterTo, trunk 1eb7644 (2024-10); KIP-534 for the horizon.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int64Array
from broker.ids import INT64_MAX, Offset
from broker.units import DurationMs, TimeMs
from log.batches.batch_v2 import DELETE_HORIZON_BIT
from log.batches.record_columns import HeaderColumns, RecordColumns
from log.compaction.building import MAGIC_V2, NO_HORIZON, Building
from log.compaction.fates import Fates, ManyFates, is_transactional_or_control
from log.compaction.key_kernels import BY_KEY, SKIP, BatchColumns, KeyColumns
from log.compaction.offset_map import LatestRecords, OffsetMap, hashed
from log.compaction.source import SourceLog
from log.storage.protocol import Buffer

_HORIZON_BIT: Final = np.int16(DELETE_HORIZON_BIT)


@attrs.frozen(kw_only=True)
class TombstoneRule:
    """The times that decide on tombstones in one segment of a pass."""

    now_ms: TimeMs
    horizon_ms: TimeMs
    """The delete horizon that is given in this pass."""
    keeps_legacy_tombstones: bool = True
    """Whether tombstones of magic 0 and 1 stay in this segment."""

    @classmethod
    def of_pass(cls, now_ms: TimeMs, delete_retention_ms: DurationMs) -> TombstoneRule:
        """Return the rule of a pass; a horizon beyond Java's long is negative there, which means none."""
        horizon_ms = now_ms + delete_retention_ms
        return cls(now_ms=now_ms, horizon_ms=TimeMs(horizon_ms if horizon_ms <= INT64_MAX else NO_HORIZON))


@attrs.frozen(eq=False, kw_only=True)
class FilteredBatches:
    """The batches of a chunk after filtering, one a row; a discarded batch has an empty piece, and -1 elsewhere."""

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
    """Return the hashed keys of a chunk, to look them up in the offset map."""
    return hashed(chunk.data, chunk.key_position, chunk.key_size, chunk.offset)


def first_records(chunk: RecordColumns) -> Int64Array:
    """Return int64[B + 1]: where in the chunk each batch's records begin, and where the last one's end."""
    return np.searchsorted(chunk.batch_index, np.arange(len(chunk.batches) + 1)).astype(np.int64)


def filter_source(
    source: SourceLog, fates: Fates, offset_map: OffsetMap, rule: TombstoneRule
) -> Iterator[FilteredBatches]:
    """Yield the filtered batches of a file, chunk by chunk; `fates` must be at the file's first batch.

    Raises CorruptDataError at damage, and IllegalStateError where an older message would have to be left empty.
    """
    for headers in source.headers():
        of_batches = fates.of_headers(headers, source)
        # A batch whose keys are all superseded is recognised by its offsets alone, and is not read.
        # Not so transactional ones: whether they are aborted may be known now and not when the map was filled, or the
        # other way round. Nor older messages: their header has the last offset only.
        is_plain = (headers.magic >= MAGIC_V2) & ~is_transactional_or_control(headers)
        is_superseded = is_plain & offset_map.superseded(headers.base_offset, headers.last_offset)
        of_batches.records[is_superseded] = SKIP
        for chunk in source.records(headers, of_batches.records != SKIP):
            yield filter_chunk(chunk.columns, of_batches.rows(chunk.start_row, chunk.end_row), offset_map, rule, source)


def filter_chunk(
    chunk: RecordColumns, fates: ManyFates, offset_map: OffsetMap, rule: TombstoneRule, source: SourceLog
) -> FilteredBatches:
    """Return the filtered batches of a chunk; raises IllegalStateError where an older message would be left empty."""
    headers = chunk.batches
    first = first_records(chunk)
    batches = BatchColumns(first, headers.base_offset, headers.last_offset, headers.record_count, fates.records)
    latest = offset_map.latest(key_columns(chunk), batches)
    # After this `latest.kept` says of each record whether it stays.
    has_tombstone = _drop_tombstones(chunk, fates, latest, offset_map.latest_offset, rule)
    kept_count = latest.kept_count
    is_v2 = headers.magic >= MAGIC_V2
    has_horizon = is_v2 & (headers.attributes & _HORIZON_BIT != 0)
    # A horizon is given once, by the first pass that keeps a tombstone or a superfluous marker (KIP-534).
    is_stamped = is_v2 & ~has_horizon & (has_tombstone | fates.is_stamped)
    is_whole = (kept_count == np.diff(first)) & ~is_stamped
    horizon_ms = np.where(is_stamped, rule.horizon_ms, np.where(has_horizon, headers.base_timestamp, NO_HORIZON))
    # Four outcomes: copied byte for byte, left as an empty batch, built anew, or (none of these) gone.
    building = Building(chunk, first, latest.kept, source)
    building.copy(np.flatnonzero((kept_count > 0) & is_whole))
    building.empty(np.flatnonzero((kept_count == 0) & fates.keeps_empty))
    cut = (kept_count > 0) & ~is_whole
    building.build(np.flatnonzero(cut & is_v2), np.maximum(horizon_ms[cut & is_v2], NO_HORIZON))
    building.build_wrappers(np.flatnonzero(cut & ~is_v2))
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
        drops = (fates.records == BY_KEY) & _drops_tombstones(chunk.batches, rule)
        goes = drops[batch_index] & (chunk.offset[tombstones] <= latest_offset)
        latest.kept[tombstones[goes]] = False
        np.subtract.at(latest.kept_count, batch_index[goes], 1)
        keeps_tombstone[batch_index[~goes]] = True
    return keeps_tombstone


def _drops_tombstones(headers: HeaderColumns, rule: TombstoneRule) -> NDArray[np.bool_]:
    """Return a mask of the batches whose tombstones have expired; a horizon equal to now has been reached."""
    is_v2 = headers.magic >= MAGIC_V2
    is_over = (headers.attributes & _HORIZON_BIT != 0) & (headers.base_timestamp <= rule.now_ms)
    return np.where(is_v2, is_over, not rule.keeps_legacy_tombstones)

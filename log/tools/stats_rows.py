"""The figures of `stats` as JSON, and as rows of names and values for people.

Source: ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from broker.cluster import Int64Array
from broker.units import format_size
from log.compaction import CompactionEstimate
from log.tools.findings import counted
from log.tools.stats import SegmentTally

PERCENT: Final = 100


def tally_json(tally: SegmentTally) -> dict[str, Any]:
    """Return every figure; distributions as [from, to, count] with half-open ranges."""
    return {
        "sizeBytes": tally.size_bytes,
        "batches": tally.batch_count,
        "records": tally.record_count,
        "firstOffset": tally.first_offset,
        "lastOffset": tally.last_offset,
        "codecs": {
            name: {
                "batches": codec.batch_count,
                "records": codec.record_count,
                "storedBytes": codec.stored_size_bytes,
                "unpackedBytes": codec.unpacked_size_bytes,
                "ratio": round(codec.ratio, 3),
            }
            for name, codec in sorted(tally.codecs.items())
        },
        "keys": {
            "distinct": tally.keys.count,
            "isExact": tally.keys.is_exact,
            "null": tally.null_key_count,
            "tombstones": tally.tombstone_count,
        },
        "keyBytes": tally.key_size_bytes,
        "valueBytes": tally.value_size_bytes,
        "headers": tally.header_count,
        "batchBytes": {"max": tally.batch_size_bytes_max, "classes": list(classes(tally.batch_size_classes))},
        "batchRecords": {"max": tally.batch_record_count_max, "classes": list(classes(tally.batch_record_classes))},
        "timestamps": {
            "min": tally.timestamp_min,
            "max": tally.timestamp_max,
            "none": tally.no_timestamp_count,
            "late": tally.late_count,
            "latenessMsMax": tally.lateness_ms_max,
        },
        "transactions": {
            "batches": tally.transactional_batch_count,
            "commits": tally.commit_count,
            "aborts": tally.abort_count,
        },
        "otherControlRecords": tally.other_control_count,
        "producers": len(tally.producer_ids),
        "damages": tally.damage_count,
        "damagedBytes": tally.damaged_size_bytes,
    }


def compaction_json(estimate: CompactionEstimate) -> dict[str, Any]:
    """Return what one pass of a cleaner over everything would leave."""
    return {
        "bytesBefore": estimate.tally.bytes_read,
        "bytesAfter": estimate.tally.bytes_written,
        "recordsBefore": estimate.tally.records_read,
        "recordsAfter": estimate.tally.records_written,
        "recordsWithoutKey": estimate.tally.keyless_count,
        "isComplete": estimate.is_complete,
    }


def classes(counts: Int64Array) -> Iterator[tuple[int, int, int]]:
    """Yield the classes that are not empty: from, to (not included), how many."""
    for digits, count in enumerate(counts.tolist()):
        if count:
            yield (1 << digits) >> 1, 1 << digits, count


def tally_rows(tally: SegmentTally) -> Iterator[tuple[str, str]]:
    """Yield each figure with its name."""
    yield "size", f"{format_size(tally.size_bytes)} ({tally.size_bytes:,} bytes)"
    yield "batches, records", f"{tally.batch_count:,}, {tally.record_count:,}"
    if tally.first_offset is not None and tally.last_offset is not None:
        missing = tally.last_offset + 1 - tally.first_offset - tally.record_count
        yield "offsets", f"{tally.first_offset} to {tally.last_offset}, {missing:,} of them without a record"
    for name, codec in sorted(tally.codecs.items()):
        share = f"{codec.record_count:,} records in {codec.batch_count:,} batches"
        yield f"codec {name}", f"{share}, {format_size(codec.stored_size_bytes)}, ratio {codec.ratio:.2f}"
    about = "" if tally.keys.is_exact else "about "
    yield "different keys", f"{about}{tally.keys.count:,}"
    yield "null keys, tombstones", f"{tally.null_key_count:,}, {tally.tombstone_count:,}"
    yield "keys, values", f"{format_size(tally.key_size_bytes)}, {format_size(tally.value_size_bytes)}"
    if tally.header_count:
        yield "record headers", f"{tally.header_count:,}"
    yield "bytes a batch", _distribution(tally.batch_size_classes, tally.batch_size_bytes_max)
    yield "records a batch", _distribution(tally.batch_record_classes, tally.batch_record_count_max)
    yield from _time_rows(tally)
    if tally.transactional_batch_count or tally.commit_count or tally.abort_count:
        ends = f"{tally.commit_count:,} committed, {tally.abort_count:,} aborted"
        yield "transactions", f"{tally.transactional_batch_count:,} batches, {ends}"
    if tally.other_control_count:
        yield "other control records", f"{tally.other_control_count:,}"
    yield "producers with an id", f"{len(tally.producer_ids):,}"
    if tally.damage_count:
        yield "damage", f"{counted(tally.damage_count, 'place')}, {tally.damaged_size_bytes:,} bytes passed over"


def compaction_row(estimate: CompactionEstimate) -> tuple[str, str]:
    """Return what compaction would save, with its name."""
    before = estimate.tally.bytes_read
    saved = estimate.bytes_saved * PERCENT / before if before else 0
    kept = f"{estimate.tally.records_written:,} of {estimate.tally.records_read:,} records stay"
    more = "" if estimate.is_complete else "; more in later passes"
    return "compaction would save", f"{format_size(estimate.bytes_saved)} ({saved:.1f} %), {kept}{more}"


def _time_rows(tally: SegmentTally) -> Iterator[tuple[str, str]]:
    if tally.timestamp_min is not None and tally.timestamp_max is not None:
        yield "timestamps", f"{tally.timestamp_min} to {tally.timestamp_max}"
        late = f"{tally.late_count:,} records"
        yield "late", f"{late}, up to {tally.lateness_ms_max:,} ms" if tally.late_count else "none"
    if tally.no_timestamp_count:
        yield "without timestamp", f"{tally.no_timestamp_count:,}"


def _distribution(counts: Int64Array, largest: int) -> str:
    found = ", ".join(f"{start}-{end - 1}: {count:,}" for start, end, count in classes(counts))
    return f"{found}; largest {largest:,}" if found else "none"

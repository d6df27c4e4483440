"""Measure the contents of a log: codecs, keys, batches, times, transactions.

Source: Flajolet, Fusy, Gandouet, Meunier: HyperLogLog (2007), for keys above a million.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int64Array
from log.batches.batch_v2 import HEADER
from log.batches.record_columns import HeaderColumns, RecordColumns
from log.codecs.compression import CODEC_MASK, Codec
from log.compaction.key_kernels import hash_keys
from log.record import CONTROL_BIT, TRANSACTIONAL_BIT, ControlType, control_type
from log.tools.findings import Finding

Hashes: TypeAlias = NDArray[np.uint64]

EXACT_MAX: Final = 1 << 20
PENDING_MAX: Final = 1 << 18
REGISTER_BITS: Final = 14
REGISTER_COUNT: Final = 1 << REGISTER_BITS
_ALPHA: Final = 0.7213 / (1 + 1.079 / REGISTER_COUNT)


class Cardinality:
    """Count different key hashes; empty at first."""

    def __init__(self) -> None:
        self._seen: Hashes | None = np.zeros(0, np.uint64)
        self._pending: list[Hashes] = []
        self._pending_count = 0
        self._registers = np.zeros(REGISTER_COUNT, np.int32)  # As frexp's exponents: maximum.at is slow where it casts.

    @property
    def is_exact(self) -> bool:
        """Return whether `count` is exact and not an estimate."""
        return self._settled() is not None

    @property
    def count(self) -> int:
        """Return the number of different keys."""
        seen = self._settled()
        return self._estimate() if seen is None else len(seen)

    def take(self, low: Hashes, high: Hashes) -> None:
        """Add the hashes of some keys: two halves per key, uint64[N]."""
        run_of_zeros = 65 - np.frexp(high.astype(np.float64))[1]
        np.maximum.at(self._registers, (low & np.uint64(REGISTER_COUNT - 1)).astype(np.intp), run_of_zeros)
        if self._seen is not None:
            taken = _different(low)
            places = np.minimum(np.searchsorted(self._seen, taken), max(0, len(self._seen) - 1))
            self._add(taken[self._seen[places] != taken] if len(self._seen) else taken)

    def merge(self, other: Cardinality) -> None:
        """Add all keys of `other`."""
        np.maximum(self._registers, other._registers, out=self._registers)
        seen = other._settled()
        if seen is None:
            self._seen = None
        elif self._seen is not None:
            self._add(seen)

    def _add(self, hashes: Hashes) -> None:
        self._pending.append(hashes)
        self._pending_count += len(hashes)
        if self._pending_count > PENDING_MAX:
            self._settled()

    def _settled(self) -> Hashes | None:
        """Return all that was seen, sorted; None once that is too much."""
        if self._seen is not None and self._pending:
            self._seen = _different(np.concatenate((self._seen, *self._pending)))
            if len(self._seen) > EXACT_MAX:
                self._seen = None
        self._pending.clear()
        self._pending_count = 0
        return self._seen

    def _estimate(self) -> int:
        return round(_ALPHA * REGISTER_COUNT**2 / float(np.sum(2.0**-self._registers)))


def _different(hashes: Hashes) -> Hashes:
    """Return each of them once, in order; NumPy's own `unique` takes fifty times as long for a million of them."""
    ordered = np.sort(hashes)
    is_first = np.ones(len(ordered), np.bool_)
    is_first[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_first]


CLASS_COUNT: Final = 33
PRODUCER_COUNT_MAX: Final = 1 << 20
NOTHING_BEFORE: Final = np.iinfo(np.int64).min


@attrs.define
class CodecStats:
    """Count for one codec: batches, records, stored bytes and uncompressed bytes (headers included)."""

    batch_count: int = 0
    record_count: int = 0
    stored_size_bytes: int = 0
    unpacked_size_bytes: int = 0

    @property
    def ratio(self) -> float:
        """Return uncompressed bytes per stored byte."""
        return self.unpacked_size_bytes / self.stored_size_bytes if self.stored_size_bytes else 1.0

    def merge(self, other: CodecStats) -> None:
        """Add the counts of `other`."""
        for each in attrs.fields(CodecStats):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


def _classes() -> Int64Array:
    return np.zeros(CLASS_COUNT, np.int64)


@attrs.define(eq=False)
class SegmentStats:
    """Hold the figures of one or several segments; offsets and timestamps are None if no record was read."""

    size_bytes: int = 0
    log_start_offset: int = 0
    """Records below it are deleted for everybody and not counted; their batches are."""
    batch_count: int = 0
    record_count: int = 0
    first_offset: int | None = None
    last_offset: int | None = None
    codecs: dict[str, CodecStats] = attrs.field(factory=dict)
    keys: Cardinality = attrs.field(factory=Cardinality)
    null_key_count: int = 0
    tombstone_count: int = 0
    """Records with a key and no value."""
    key_size_bytes: int = 0
    value_size_bytes: int = 0
    header_count: int = 0
    batch_size_classes: Int64Array = attrs.field(factory=_classes)
    batch_record_classes: Int64Array = attrs.field(factory=_classes)
    batch_size_bytes_max: int = 0
    batch_record_count_max: int = 0
    timestamp_min: int | None = None
    timestamp_max: int | None = None
    no_timestamp_count: int = 0
    late_count: int = 0
    """Records older than one before them."""
    lateness_ms_max: int = 0
    transactional_batch_count: int = 0
    commit_count: int = 0
    abort_count: int = 0
    other_control_count: int = 0
    producer_ids: set[int] = attrs.field(factory=set)
    """At most `PRODUCER_COUNT_MAX` of them."""
    damage_count: int = 0
    damaged_size_bytes: int = 0
    unread_batch_count: int = 0
    """Batches whose records are not read as they stand for too much; they need no damage."""
    damage: Finding | None = None
    """The first damage, else the first batch not read, which keeps the partition from being compacted."""
    _position: int = -1
    _newest_ms: int = NOTHING_BEFORE

    def take(self, chunk: RecordColumns) -> None:
        """Add a chunk of one file's scan; a batch may have begun in the previous chunk."""
        self.damaged_size_bytes += sum(damage.size_bytes for damage in chunk.damages if not damage.is_limit)
        self.unread_batch_count += sum(damage.is_limit for damage in chunk.damages)
        first = int(np.searchsorted(chunk.batches.position, self._position, side="right"))
        batches = chunk.batches.rows(first, len(chunk.batches))
        if len(batches):
            self._take_batches(batches)
            self._position = int(batches.position[-1])
        chunk = chunk.from_offset(self.log_start_offset)
        if len(chunk):
            self._take_records(chunk)

    def merge(self, other: SegmentStats) -> None:
        """Add the figures of another segment."""
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in _MAXIMA:
            setattr(self, name, max(getattr(self, name), getattr(other, name)))
        for name, pick in _EXTREMES.items():
            found = [value for value in (getattr(self, name), getattr(other, name)) if value is not None]
            setattr(self, name, pick(found) if found else None)
        for codec, stats in other.codecs.items():
            self.codecs.setdefault(codec, CodecStats()).merge(stats)
        self.keys.merge(other.keys)
        self._note_producers(other.producer_ids)

    def _take_batches(self, batches: HeaderColumns) -> None:
        self.batch_count += len(batches)
        offset = max(int(batches.base_offset[0]), self.log_start_offset)
        last_offset = int(batches.last_offset.max())
        if last_offset >= self.log_start_offset:
            self.first_offset = offset if self.first_offset is None else min(self.first_offset, offset)
            self.last_offset = max(self.last_offset or 0, last_offset)
        codecs = batches.attributes & CODEC_MASK
        for code in np.unique(codecs).tolist():
            stats = self.codecs.setdefault(_codec_name(code), CodecStats())
            rows = codecs == code
            stats.batch_count += int(rows.sum())
            stats.stored_size_bytes += int(batches.size_bytes[rows].sum(dtype=np.int64))
            stats.unpacked_size_bytes += int((batches.magic[rows] >= 2).sum()) * HEADER.size
        self.batch_size_classes += _classed(batches.size_bytes)
        self.batch_record_classes += _classed(batches.record_count)
        self.batch_size_bytes_max = max(self.batch_size_bytes_max, int(batches.size_bytes.max()))
        self.batch_record_count_max = max(self.batch_record_count_max, int(batches.record_count.max()))
        is_transactional = (batches.magic >= 2) & (batches.attributes & TRANSACTIONAL_BIT != 0)
        is_control = (batches.magic >= 2) & (batches.attributes & CONTROL_BIT != 0)
        self.transactional_batch_count += int((is_transactional & ~is_control).sum())
        self._note_producers(set(np.unique(batches.producer_id[batches.producer_id >= 0]).tolist()))

    def _take_records(self, chunk: RecordColumns) -> None:
        self.record_count += len(chunk)
        codecs = (chunk.batches.attributes & CODEC_MASK)[chunk.batch_index]
        for code in np.unique(codecs).tolist():
            stats = self.codecs.setdefault(_codec_name(code), CodecStats())
            rows = codecs == code
            stats.record_count += int(rows.sum())
            stats.unpacked_size_bytes += int(chunk.record_size[rows].sum(dtype=np.int64))
        self._take_timestamps(chunk.timestamp)
        is_control = (chunk.batches.magic >= 2) & (chunk.batches.attributes & CONTROL_BIT != 0)
        control = is_control[chunk.batch_index]
        for row in np.flatnonzero(control).tolist():
            self._take_control(chunk.key(row))
        self._take_data(chunk, ~control)

    def _take_data(self, chunk: RecordColumns, rows: NDArray[np.bool_]) -> None:
        keyed = rows & (chunk.key_size >= 0)
        self.null_key_count += int((rows & (chunk.key_size < 0)).sum())
        self.tombstone_count += int((keyed & (chunk.value_size < 0)).sum())
        self.key_size_bytes += int(chunk.key_size[keyed].sum(dtype=np.int64))
        self.value_size_bytes += int(chunk.value_size[rows & (chunk.value_size >= 0)].sum(dtype=np.int64))
        self.header_count += int(chunk.header_count[rows].sum(dtype=np.int64))
        if keyed.any():
            low, high = np.zeros(len(chunk), np.uint64), np.zeros(len(chunk), np.uint64)
            hash_keys(chunk.data, chunk.key_position, chunk.key_size, low, high)
            self.keys.take(low[keyed], high[keyed])

    def _take_timestamps(self, timestamps: Int64Array) -> None:
        known = timestamps[timestamps >= 0]
        self.no_timestamp_count += len(timestamps) - len(known)
        if len(known) == 0:
            return
        before = np.maximum.accumulate(np.concatenate(([self._newest_ms], known[:-1])))
        late = known < before
        self.late_count += int(late.sum())
        if late.any():
            self.lateness_ms_max = max(self.lateness_ms_max, int((before[late] - known[late]).max()))
        self._newest_ms = max(int(before[-1]), int(known[-1]))
        lowest, highest = int(known.min()), int(known.max())
        self.timestamp_min = lowest if self.timestamp_min is None else min(self.timestamp_min, lowest)
        self.timestamp_max = highest if self.timestamp_max is None else max(self.timestamp_max, highest)

    def _take_control(self, key: bytes | None) -> None:
        kind = control_type(key) if key is not None and len(key) >= CONTROL_KEY_BYTES else ControlType.UNKNOWN
        self.commit_count += kind is ControlType.COMMIT
        self.abort_count += kind is ControlType.ABORT
        self.other_control_count += kind not in (ControlType.COMMIT, ControlType.ABORT)

    def _note_producers(self, producer_ids: set[int]) -> None:
        if len(self.producer_ids) + len(producer_ids) <= PRODUCER_COUNT_MAX:
            self.producer_ids |= producer_ids


CONTROL_KEY_BYTES: Final = 4
_SUMS: Final = tuple(
    each.name for each in attrs.fields(SegmentStats) if each.name.endswith(("_bytes", "_count", "_classes"))
)
_MAXIMA: Final = ("batch_size_bytes_max", "batch_record_count_max", "lateness_ms_max")
_EXTREMES: Final = {"first_offset": min, "last_offset": max, "timestamp_min": min, "timestamp_max": max}


def _classed(values: NDArray[np.integer[Any]]) -> Int64Array:
    """Count values by their number of binary digits."""
    digits = np.frexp(np.maximum(values, 0).astype(np.float64))[1]
    return np.bincount(digits, minlength=CLASS_COUNT).astype(np.int64)[:CLASS_COUNT]


def _codec_name(code: int) -> str:
    return Codec(code).name.lower() if code in Codec._value2member_map_ else f"unknown ({code})"

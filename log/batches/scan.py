"""Read a whole segment file as columns of records, in bounded memory.

At most one batch's decompressed records (`decompressed_bytes_max`) and `fill.ROWS_MAX` rows are held at a time, beside
about `step_bytes` of the file; what exceeds the file's `ReadingAllowance` is damage. A chunk stays as it is for as long
as anybody holds any part of it; then its memory is used again. With `keep_going`, damage is stepped over: by the
batch's size if what follows looks like a batch, else by a search for the next batch whose checksum is right.

    >>> from log.batches.build import BatchSpec, build_batch
    >>> from log.record import Record
    >>> data = build_batch(BatchSpec(), [Record(offset, 1_000, b"key", None) for offset in range(3)])
    >>> sum(len(columns) for columns in scan(data))
    3

Source: ours; what is accepted follows org.apache.kafka.common.record.FileRecords, 4.0.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

import attrs
import numpy as np

from broker.compiled import compiled_with
from broker.errors import CorruptDataError, UsageError
from broker.units import MIB
from log.batches.allowance import HEADERS_MAX, ReadingAllowance
from log.batches.batch import RecordBatch
from log.batches.batch_v2 import CHECKED_POSITION, HEADER
from log.batches.fill import RECORD_BYTES_MIN, ColumnFill, Payloads, plan_of
from log.batches.header_table import (
    CHUNK_BYTES,
    ColumnMemory,
    as_array,
    joined,
    signed32,
    unsigned16,
    unsigned32,
    walk,
)
from log.batches.in_buffer import BatchReader, batch_at, end_within
from log.batches.legacy import CHECKED_POSITION as CHECKED_POSITION_LEGACY
from log.batches.legacy import LegacyBatch, plain_columns
from log.batches.record_columns import ByteArray, Damage, HeaderColumns, RecordColumns
from log.codecs.compression import CODEC_MASK, DECOMPRESSED_BYTES_MAX, Codec, codec_of, decompress_into
from log.codecs.crc import BytesLike, crc32, crc32c
from log.errors import CorruptBatchError


def scan_headers(
    data: BytesLike, *, start_position: int = 0, end_position: int | None = None, reader: BatchReader = BatchReader.FILE
) -> HeaderColumns:
    """Return the headers of all batches up to the end or to the first impossible size (see `damage`).

    Checksums are not verified and records not read, so a batch costs about 10 ns. Damage in the data raises nothing, a
    start below 0 or an end outside `data` UsageError.
    """
    array = as_array(data)
    end = end_within(len(array), start_position, end_position)
    chunks = [walk(array, min(start_position, end), end, reader is BatchReader.FILE)]
    while chunks[-1].damage is None and chunks[-1].end_position < end:  # Each walk moves on by a batch at least.
        chunks.append(walk(array, chunks[-1].end_position, end, reader is BatchReader.FILE))
    return joined(chunks)


def header_chunks(data: BytesLike) -> Iterator[HeaderColumns]:
    """Yield the headers of `scan_headers` in bounded pieces, for files of any size."""
    array = as_array(data)
    position = 0
    while True:  # Each turn moves on by a batch at least, or ends.
        chunk = walk(array, position, len(array), is_file_reader=True)
        yield chunk
        position = chunk.end_position
        if chunk.damage is not None or position >= len(array):
            return


def looks_like_batch(data: ByteArray, position: int, end: int) -> bool:
    """Return whether the bytes at `position` may be the header of a batch of magic 2."""
    if end - position < 61 or data[np.uint64(position + 16)] != 2:
        return False
    size = 12 + signed32(data, position + 8)
    attributes = unsigned16(data, position + 21)
    last_offset_delta = signed32(data, position + 23)
    record_count = signed32(data, position + 57)
    return bool(
        61 <= size <= end - position
        and attributes < 0x80
        and attributes & 7 <= 4
        and signed32(data, position + 12) >= -1
        and 0 <= record_count <= last_offset_delta + 1
        and signed32(data, position + 43) >= -1
        and signed32(data, position + 53) >= -1
    )


@compiled_with(unsigned16, unsigned32, signed32, looks_like_batch, allocates=False)
def find_candidate(data: ByteArray, start: int, end: int) -> int:
    """Return the first position in `start`..`end` where a batch may begin, `end` if there is none."""
    for position in range(start, end - 60):
        if data[np.uint64(position + 16)] == 2 and looks_like_batch(data, position, end):
            return position
    return end


SEARCH_BYTES_MAX: Final = 256 * MIB
"""How many bytes all searches after damage may checksum in one scan; beyond, the rest of the file is skipped."""
_STEP_BYTES_AFTER_DAMAGE: Final = 4_096
"""How many bytes are looked at behind damage, where there may be more of it; doubled as long as there is none."""
STEP_BYTES_MAX: Final = 256 * MIB
"""How large `step_bytes` may be: the keys or values of a chunk are less than the 2 GiB of an Arrow column."""


@attrs.frozen
class ScanOptions:
    """Set what a scan checks, whether it continues after damage, and how much memory it uses."""

    check_crc: bool = True
    keep_going: bool = False
    """Whether to step over damage (to `RecordColumns.damages`) and read on, instead of raising at it."""
    passes_limits: bool = False
    """Whether to step over batches that stand for more than is read, though not over damage."""
    reader: BatchReader = BatchReader.FILE
    record_cost: int = 1
    """How many plain records one record costs of the `ReadingAllowance`."""
    decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX
    """How far one batch may grow."""
    step_bytes: int = CHUNK_BYTES
    """About how many bytes of a file one chunk covers: more give fewer chunks, whose columns do not fit the caches."""

    def __attrs_post_init__(self) -> None:
        if not 1 <= self.step_bytes <= STEP_BYTES_MAX:
            raise UsageError(f"step_bytes is {self.step_bytes}; allowed is 1 to {STEP_BYTES_MAX}")


DEFAULT_OPTIONS: Final = ScanOptions()


def scan(
    data: BytesLike,
    *,
    start_position: int = 0,
    end_position: int | None = None,
    options: ScanOptions = DEFAULT_OPTIONS,
    source: str = "",
) -> Iterator[RecordColumns]:
    """Yield the records of a file as columns, a bounded number of records at a time.

    Raises CorruptDataError (a subclass with `kafka_class`, position and `source`) at the first damage, after all that
    stands before it was yielded. With `keep_going` nothing is raised: `damages` of a chunk lists the damage skipped
    before it, and a last chunk without rows the damage at the end. An incomplete batch at the end is no error, as in
    Kafka, but is listed in the last chunk's `damages`. Raises UsageError for a start below 0 or an end outside
    `data`.
    """
    array = as_array(data)
    end = end_within(len(array), start_position, end_position)
    damages: list[Damage] = []
    for piece in _Scan(array, end, options, source).pieces(start_position):
        if isinstance(piece, RecordColumns):
            yield attrs.evolve(piece, damages=tuple(damages)) if damages else piece
            damages.clear()
            del piece  # Of two batches, which may be 64 MiB each, only one is held.
        elif options.keep_going or piece.is_torn_tail or (options.passes_limits and piece.is_limit):
            damages.append(piece)
        else:
            raise piece.error
    if damages:
        nothing = walk(array, end, end, is_file_reader=True)
        yield attrs.evolve(Payloads(ColumnMemory()).fill(nothing).next_columns(), damages=tuple(damages))


@attrs.define(eq=False)
class _Scan:
    """One scan: its input, its options, and how many bytes may still be searched after damage."""

    array: ByteArray
    end: int
    options: ScanOptions
    source: str
    search_bytes_left: int = SEARCH_BYTES_MAX
    memory: ColumnMemory = attrs.field(factory=ColumnMemory)
    allowance: ReadingAllowance = attrs.field(
        default=attrs.Factory(lambda self: ReadingAllowance(len(self.array), self.options.record_cost), takes_self=True)
    )

    def pieces(self, position: int) -> Iterator[RecordColumns | Damage]:
        """Yield columns and damages in the order of the file."""
        is_file_reader, step_bytes = self.options.reader is BatchReader.FILE, self.options.step_bytes
        while position < self.end:  # Each turn moves on by a batch at least.
            headers = walk(self.array, position, self.end, is_file_reader, self.memory, step_bytes=step_bytes)
            good = self._good_count(headers) if self.options.check_crc else len(headers)
            yield from self._read(headers.rows(0, good))
            position = headers.end_position
            if good < len(headers):
                damage = self._damaged(headers, good)
            elif headers.damage is not None:
                damage = self._stopped(headers.damage)
            else:
                step_bytes = min(2 * step_bytes, self.options.step_bytes)
                continue
            yield damage
            position = damage.position + damage.size_bytes
            step_bytes = min(_STEP_BYTES_AFTER_DAMAGE, self.options.step_bytes)

    def _good_count(self, headers: HeaderColumns) -> int:
        """Return how many batches precede the first one with a wrong checksum."""
        view, is_legacy = self.array.data, headers.magic < 2
        starts = headers.position + np.where(is_legacy, CHECKED_POSITION_LEGACY, CHECKED_POSITION)
        columns = (starts, headers.position + headers.size_bytes, headers.crc, is_legacy)
        for row, (start, end, crc, is_plain) in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
            if (crc32 if is_plain else crc32c)(view[start:end]) != crc:
                return row
        return len(headers)

    def _damaged(self, headers: HeaderColumns, row: int) -> Damage:
        """Return the damage of a batch with a wrong checksum, up to where reading can continue."""
        position, size = int(headers.position[row]), int(headers.size_bytes[row])
        error = self._error_of(position, is_checksum=True)
        resume = position + size
        if self.options.keep_going and resume < self.end and not self._is_credible(resume):
            resume = self._search(position + 1)
        return Damage(error, position, resume - position, int(headers.base_offset[row]))

    def _stopped(self, damage: Damage) -> Damage:
        """Return the damage that stopped the walk over headers, up to where reading can continue."""
        error = CorruptBatchError(damage.what, source=self.source, position=damage.position)
        resume = self._search(damage.position + 1) if self.options.keep_going else self.end
        is_torn_tail = damage.is_torn_tail and resume == self.end
        return Damage(error, damage.position, resume - damage.position, damage.base_offset, is_torn_tail)

    def _is_credible(self, position: int) -> bool:
        """Return whether a batch seems to begin at `position`, which confirms the size before it."""
        following = walk(self.array, position, self.end, is_file_reader=False, step_bytes=1)
        if len(following) == 0:
            return False
        is_message = following.magic[0] < 2 and 0 <= following.attributes[0] < 16
        return bool(
            is_message or find_candidate(self.array, position, position + int(following.size_bytes[0])) == position
        )

    def _search(self, position: int) -> int:
        """Return the position of the next batch of magic 2 with a right checksum, else the end."""
        while True:  # Each turn moves on by a byte at least.
            position = find_candidate(self.array, position, self.end)
            if position >= self.end:
                return self.end
            batch = self._batch(position)
            self.search_bytes_left -= batch.size_bytes
            if self.search_bytes_left < 0:
                return self.end
            if batch.is_valid():
                return position
            position += 1

    def _batch(self, position: int) -> RecordBatch:
        batch = batch_at(self.array.data, position, end_position=self.end, source=self.source)
        assert batch is not None, position
        return batch

    def _error_of(self, position: int, *, is_checksum: bool = False) -> CorruptDataError:
        """Return the error that the plain reader raises for a batch that a kernel refused."""
        batch = self._batch(position)
        try:
            if is_checksum:
                batch.ensure_valid()
            for _ in () if is_checksum else batch.record_slices(headers_max=0):
                pass
        except CorruptDataError as error:
            return error.with_traceback(None)  # Its frames would keep the headers of all batches behind.
        raise AssertionError(f"the batch at {position} was refused by a kernel only")

    def _read(self, headers: HeaderColumns) -> Iterator[RecordColumns | Damage]:
        """Yield the records of whole batches, split where the format or the way to read changes."""
        if len(headers) == 0:
            return
        is_legacy = headers.magic < 2
        if not is_legacy.any():
            yield from self._read_batches(headers)
            return
        # Plain messages are read in runs, wrappers one by one.
        is_wrapper = is_legacy & ((headers.attributes & CODEC_MASK) != 0)
        kind = np.where(is_wrapper, np.arange(2, len(headers) + 2), is_legacy)
        for start, stop in itertools.pairwise([0, *(np.flatnonzero(np.diff(kind)) + 1).tolist(), len(headers)]):
            run = headers.rows(start, stop)
            yield from self._read_messages(run) if is_legacy[start] else self._read_batches(run)

    def _read_batches(self, run: HeaderColumns) -> Iterator[RecordColumns | Damage]:
        """Yield the records of batches of magic 2: where they stand, if none is compressed."""
        if ((run.attributes & CODEC_MASK != 0) & (run.record_count != 0)).any():
            return self._read_compressed(run)
        plan = plan_of(run, run.position + HEADER.size, run.position + run.size_bytes)
        return self._filled(ColumnFill(self.array, run, plan, self.memory))

    def _read_messages(self, run: HeaderColumns) -> Iterator[RecordColumns | Damage]:
        """Yield the records of one wrapper, or of plain messages that follow one another."""
        first, end = int(run.position[0]), int(run.position[-1] + run.size_bytes[-1])
        batch = self._batch(first)
        assert isinstance(batch, LegacyBatch)
        try:
            if batch.is_wrapper:
                yield from self._read_wrapper(batch, run)
            else:
                yield plain_columns(self.array, first, end, run)
        except CorruptDataError as error:
            if len(run) == 1:
                yield self._unreadable(run, 0, batch.placed(error))
                return
            for row in range(len(run)):  # One of them does not add up; the others can be read.
                yield from self._read_messages(run.rows(row, row + 1))

    def _read_wrapper(self, batch: LegacyBatch, run: HeaderColumns) -> Iterator[RecordColumns]:
        limit = self.options.decompressed_bytes_max
        payload = self.allowance.take_from(lambda bytes_max: batch.payload(min(limit, bytes_max)))
        inner = batch.inner(payload)
        if not self.allowance.take_records(inner.count):
            raise self.allowance.refusal(f"its {inner.count:,} messages are")
        yield from batch.columns_in_pieces(run, payload, inner)

    def _read_compressed(self, run: HeaderColumns) -> Iterator[RecordColumns | Damage]:
        """Yield the records of batches, decompressed into one buffer while it has room."""
        payloads, first = Payloads(self.memory), 0
        data = self.array.data
        # Nobody looks into a batch without records.
        attributes = np.where(run.record_count == 0, 0, run.attributes).tolist()
        starts, ends = (run.position + HEADER.size).tolist(), (run.position + run.size_bytes).tolist()
        for row, (start, end, attribute_bits) in enumerate(zip(starts, ends, attributes, strict=True)):
            if payloads.is_full:
                yield from self._filled(payloads.fill(run.rows(first, row)))
                payloads, first = Payloads(self.memory), row
            try:
                codec, bytes_max = codec_of(attribute_bits), self.options.decompressed_bytes_max
                if codec is not Codec.NONE:
                    bytes_max = self.allowance.bytes_max(bytes_max)
                payload = decompress_into(codec, data[start:end], payloads.room, bytes_max=bytes_max)
                if codec is not Codec.NONE:
                    self._take(payload if isinstance(payload, int) else len(payload), int(run.record_count[row]))
            except CorruptDataError as error:
                self.allowance.take_bytes(getattr(error, "reached_bytes", 0))
                yield from self._filled(payloads.fill(run.rows(first, row)))
                placed = type(error)(error.what, source=self.source, position=int(run.position[row]))
                yield self._unreadable(run, row, placed)
                payloads, first = Payloads(self.memory), row + 1
                continue
            if not payloads.add(payload):
                yield from self._filled(payloads.fill(run.rows(first, row)))
                payloads, first = Payloads(self.memory), row
                payloads.add(payload)
            del payload  # Before the next is decompressed.
        yield from self._filled(payloads.fill(run.rows(first, len(run))))

    def _take(self, size_bytes: int, record_count: int) -> None:
        """Count a compressed batch against the allowance; raise DecompressionError where that is used up."""
        self.allowance.take_bytes(size_bytes)
        count = max(0, min(record_count, size_bytes // RECORD_BYTES_MIN))
        if not self.allowance.take_records(count):
            raise self.allowance.refusal(f"its {count:,} records are")

    def _filled(self, fill: ColumnFill) -> Iterator[RecordColumns | Damage]:
        """Yield the rows of a fill, and damages for its malformed batches and for records with too many headers."""
        while not fill.is_done:  # Each turn reads a row, or skips a batch, or ends.
            columns = fill.next_columns()
            if len(columns) > 0 or fill.is_done:
                yield from self._by_headers(columns)
            row = fill.broken_batch
            if row is not None:
                yield self._unreadable(fill.batches, row, self._error_of(int(fill.batches.position[row])))
                fill.skip_broken()

    def _by_headers(self, columns: RecordColumns) -> Iterator[RecordColumns | Damage]:
        """Yield columns, split where they have more than `HEADERS_MAX` headers; a record with more is damage."""
        counts = columns.header_count
        if int(counts.sum(dtype=np.int64)) <= HEADERS_MAX:
            yield columns
            return
        start = total = 0
        for row in np.flatnonzero(counts).tolist():
            if row < start:
                continue
            if total + int(counts[row]) > HEADERS_MAX:
                yield columns.rows(start, row)
                start, total = row, 0
            total += int(counts[row])
            if total > HEADERS_MAX:
                batch, offset = int(columns.batch_index[row]), int(columns.offset[row])
                what = f"the record at offset {offset} has {total:,} headers; at most {HEADERS_MAX:,} are read"
                error = CorruptBatchError(what, source=self.source, position=int(columns.batches.position[batch]))
                yield self._unreadable(columns.batches, batch, error)
                start, total = int(np.searchsorted(columns.batch_index, batch, side="right")), 0
        yield columns.rows(start, len(columns))

    def _unreadable(self, run: HeaderColumns, row: int, error: CorruptDataError) -> Damage:
        """Return the damage of a batch with a right checksum, whose size can be trusted."""
        return Damage(error, int(run.position[row]), int(run.size_bytes[row]), int(run.base_offset[row]))

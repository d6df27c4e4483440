"""Fuzzing of what reads batches, records, messages, streams of them, and compressed payloads."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Final

import numpy as np
import pytest

from broker.errors import CorruptDataError
from broker.ids import Offset, ProducerEpoch, ProducerId
from broker.units import TimeMs
from log.batches import header_table as headers
from log.batches.batch import RecordBatch
from log.batches.batch_v2 import CHECKED_POSITION, CRC_POSITION, HEADER, BatchV2
from log.batches.build import BatchSpec, build_batch, build_marker, emptied
from log.batches.fill import ColumnFill, plan_of
from log.batches.header_table import as_array, walk
from log.batches.in_buffer import BatchReader, batches_in
from log.batches.legacy import LegacyBatch
from log.batches.record_columns import RecordColumns
from log.batches.scan import ScanOptions, scan, scan_headers
from log.codecs.compression import CODEC_MASK, Codec, compress, decompress
from log.codecs.crc import crc32, crc32c
from log.errors import DecompressionError
from log.record import ControlType, EndTransactionMarker, Header, Record, TimestampType
from tests.log.fuzz.target import Target, fuzz

pytestmark = pytest.mark.usefixtures("input_count")

RECORDS: Final = (
    Record(Offset(3), TimeMs(1_700_000_000_000), b"key", b"value" * 3, (Header("h", b"x"), Header("", None))),
    Record(Offset(5), TimeMs(1_699_999_999_000), None, b""),
    Record(Offset(200), TimeMs(1_700_000_100_000), b"", None),
)
PLAIN: Final = tuple(Record(each.offset, each.timestamp, each.key, each.value) for each in RECORDS)
IDEMPOTENT: Final = BatchSpec(
    Offset(3), producer_id=ProducerId(7), producer_epoch=ProducerEpoch(1), base_sequence=2**31 - 2
)
PLAIN_BATCHES: Final = (
    build_batch(IDEMPOTENT, RECORDS),
    build_batch(BatchSpec(Offset(0), delete_horizon_ms=TimeMs(5)), RECORDS[:1]),
    build_batch(
        BatchSpec(Offset(0), timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time=TimeMs(9)), RECORDS[1:]
    ),
    build_marker(IDEMPOTENT, EndTransactionMarker(ControlType.COMMIT, 4), TimeMs(3)),
)
COMPRESSED_BATCHES: Final = tuple(
    build_batch(BatchSpec(Offset(3), codec=codec), RECORDS) for codec in Codec if codec is not Codec.NONE
)
EMPTY: Final = emptied(next(iter(batches_in(PLAIN_BATCHES[0]))))
MESSAGES: Final = tuple(
    build_batch(BatchSpec(Offset(3), magic=magic, codec=codec, timestamp_type=kind, log_append_time=TimeMs(8)), PLAIN)
    for magic, kind in (
        (0, TimestampType.NO_TIMESTAMP_TYPE),
        (1, TimestampType.CREATE_TIME),
        (1, TimestampType.LOG_APPEND_TIME),
    )
    for codec in (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4)
)
PAYLOAD: Final = b"".join(PLAIN_BATCHES) * 3
BYTES_MAX: Final = 1 << 13
TABLE: Final = np.empty((headers.ROW_COUNT, 64), np.int64)
"""Where the kernel writes what it finds; no input has as many batches."""
COMPARED: Final = (headers.POSITION, headers.SIZE_BYTES, headers.LAST_OFFSET, headers.CRC, headers.ATTRIBUTES)
BATCHES_AT_ONCE: Final = 32
STREAMS_AT_ONCE: Final = 25
"""Inputs that are scanned as one stream: a scan costs much more than a batch."""


def test_headers_are_walked_alike_by_kernel_and_careful_reader() -> None:
    damaged_count = 0

    def run(data: bytes) -> None:
        nonlocal damaged_count
        damaged_count += walk_both(data)

    outcome = fuzz(Target("headers", (*PLAIN_BATCHES, EMPTY, *MESSAGES), run, allowed=()))
    assert 0 < damaged_count < outcome.accepted_count


def walk_both(data: bytes) -> bool:
    """Compare the two, and return whether there was damage."""
    reader = BatchReader.FILE if len(data) % 2 else BatchReader.MEMORY
    span = np.array((0, len(data), len(data)), np.int64)
    count, position, code = headers.scan_rows(as_array(data), span, reader is BatchReader.FILE, TABLE)
    careful = []
    refusal = None
    try:
        for batch in batches_in(data, reader=reader):
            careful.append((batch.position, batch.size_bytes, batch.last_offset, batch.crc, batch.attributes))
    except CorruptDataError as error:
        refusal = error
    found = list(zip(*TABLE[COMPARED, :count].tolist(), strict=True))
    assert found == careful[: len(found)], (found, careful)
    is_damaged = code not in (headers.ROWS_FULL, headers.AT_END)
    assert is_damaged or (refusal is None and len(found) == len(careful))
    if is_damaged and position % 8 == 0:  # What goes around the kernel says the same; it costs more than all the rest.
        columns = scan_headers(data, reader=reader)
        assert (len(columns), columns.end_position, columns.damage is None) == (count, position, False)
    return is_damaged


def test_records_are_read_alike_by_kernel_and_careful_reader() -> None:
    held: list[tuple[RecordBatch, object]] = []

    def run(data: bytes) -> None:
        """The kernel reads many batches at once; every eighth is also read as a consumer would, alone."""
        for batch in batches_in(data):
            careful = outcome_of(careful_reader(batch))
            if is_read_alone(batch):
                compare(batch, careful)
            else:
                held.append((batch, careful))
            if len(held) >= BATCHES_AT_ONCE:
                read_at_once(held)
                held.clear()
            if not isinstance(careful, str):
                batch.ensure_valid()

    fuzz(Target("records", PLAIN_BATCHES, run, repair=with_checksum))
    read_at_once(held)


def with_checksum(data: bytearray) -> bytes:
    """The size and the checksum of the only batch are right again."""
    if len(data) >= HEADER.size:
        data[8:12] = (len(data) - 12).to_bytes(4, "big")
        data[16] = 2
        data[CRC_POSITION:CHECKED_POSITION] = crc32c(data[CHECKED_POSITION:]).to_bytes(4, "big")
    return bytes(data)


def read_both(data: bytes) -> None:
    """What one reader refuses the other refuses, what one reads the other reads."""
    for batch in batches_in(data):
        careful = outcome_of(careful_reader(batch))
        compare(batch, careful)
        if not isinstance(careful, str):
            batch.ensure_valid()


def careful_reader(batch: RecordBatch) -> object:
    return batch.records_one_by_one if isinstance(batch, BatchV2) else batch.records


def compare(batch: RecordBatch, careful: object) -> None:
    fast = outcome_of(batch.columns)
    if isinstance(careful, str) or isinstance(fast, str):
        assert careful == fast, (careful, fast)
    else:
        assert isinstance(fast, RecordColumns)
        assert careful == rows_of(batch, fast)
    if isinstance(batch, BatchV2) and batch.record_count != 0:
        assert careful == outcome_of(lambda: tuple(each for found in batch.record_slices() for each in found.records))


def is_read_alone(batch: RecordBatch) -> bool:
    """Every eighth batch, and what cannot stand in such a row: older, compressed, or without a whole header."""
    is_other = isinstance(batch, LegacyBatch) or batch.attributes & CODEC_MASK or batch.size_bytes < HEADER.size
    return bool(is_other) or batch.crc % 8 == 0


def read_at_once(held: Sequence[tuple[RecordBatch, object]]) -> None:
    """Read batches one behind the other with the kernel: it breaks off where the careful reader refuses, only there."""
    data = b"".join(batch.data for batch, _ in held)
    found = walk(as_array(data), 0, len(data), is_file_reader=True)
    starts, ends = found.position + HEADER.size, found.position + found.size_bytes
    fill = ColumnFill(as_array(data), found, plan_of(found, starts, ends))
    records: list[list[Record]] = [[] for _ in held]
    broken = set()
    while not fill.is_done:
        columns = fill.next_columns()
        for row, index in enumerate(columns.batch_index.tolist()):
            records[index].append(columns.record(row))
        if fill.broken_batch is not None:
            broken.add(fill.broken_batch)
            records[fill.broken_batch].clear()  # What the chunk before had room for.
            fill.skip_broken()
    for index, (batch, careful) in enumerate(held):
        expected = () if isinstance(careful, str) else careful
        assert (tuple(records[index]), index in broken) == (expected, isinstance(careful, str)), bytes(batch.data).hex()


def outcome_of(read: object) -> object:
    assert callable(read)
    try:
        return read()
    except CorruptDataError as error:
        return str(error)


def rows_of(batch: RecordBatch, columns: RecordColumns) -> tuple[Record, ...]:
    assert isinstance(batch, BatchV2 | LegacyBatch)
    return tuple(columns.record(row) for row in range(len(columns)))


def test_messages_are_read_alike_by_kernel_and_careful_reader() -> None:
    fuzz(Target("messages", MESSAGES, read_both, repair=with_message_checksum, share=4))


def with_message_checksum(data: bytearray) -> bytes:
    """The size and the checksum of the first message, made the only one, are right again."""
    if len(data) >= 26:
        data[8:12] = (len(data) - 12).to_bytes(4, "big")
        data[12:16] = crc32(data[16:]).to_bytes(4, "big")
    return bytes(data)


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec is not Codec.NONE])
def test_damaged_payloads_are_refused_or_stay_below_the_limit(codec: Codec) -> None:
    sound = (compress(codec, PAYLOAD), compress(codec, b""), compress(codec, bytes(5000)), compress(codec, bytes(9)))
    bomb = compress(codec, bytes(2 * BYTES_MAX))[:4096]

    def run(data: bytes) -> None:
        assert len(decompress(codec, data, bytes_max=BYTES_MAX)) <= BYTES_MAX

    fuzz(Target(f"{codec.label} payload", (*sound, bomb), run, allowed=(DecompressionError,)))


def test_damaged_streams_are_read_around_the_damage() -> None:
    streams = (
        *PLAIN_BATCHES,
        *COMPRESSED_BATCHES,
        PLAIN_BATCHES[0] + EMPTY,
        MESSAGES[0] + PLAIN_BATCHES[3],
        b"".join(MESSAGES[5:7]),
    )
    held: list[bytes] = []
    batch_count = damage_count = 0

    def run(data: bytes) -> None:
        """Every eighth input is scanned up to its damage; the others stand one behind the other in longer streams."""
        nonlocal batch_count, damage_count
        if len(data) % 8 == 0:
            with contextlib.suppress(CorruptDataError):
                read_around(data, keeps_going=False)
            return
        held.append(data)
        if len(held) == STREAMS_AT_ONCE:
            stream = b"".join(held)
            held.clear()
            batches, damages = read_around(stream, keeps_going=True)
            batch_count, damage_count = batch_count + batches, damage_count + damages

    fuzz(Target("streams", streams, run, allowed=()))
    read_around(b"".join(held), keeps_going=True)
    assert min(batch_count, damage_count) > 0


def read_around(data: bytes, *, keeps_going: bool) -> tuple[int, int]:
    """What is read and what is skipped are the whole input. Return how many batches and damages there were."""
    position = batch_count = damage_count = 0
    for columns in scan(data, options=ScanOptions(keep_going=keeps_going)):
        damage_count += len(columns.damages)
        for damage in columns.damages:
            assert 0 < damage.size_bytes <= len(data) - damage.position
            assert damage.position >= 0
            position = damage.position + damage.size_bytes
        batch_count += len(columns.batches)
        if len(columns.batches):
            position = int(columns.batches.position[-1] + columns.batches.size_bytes[-1])
    assert position == len(data) or (damage_count == 1 and not keeps_going)
    return batch_count, damage_count

"""Columns to batches: the bytes of the builder that takes records one by one."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import UsageError
from broker.ids import Offset, ProducerEpoch, ProducerId
from broker.units import TimeMs
from log.batches.batch_v2 import HEADER_FIELDS
from log.batches.build import BatchSpec, build_batch
from log.batches.build_columns import RUN_BYTES, PlainColumns, build_batches, each_run
from log.batches.in_buffer import batches_in
from log.codecs.compression import Codec
from log.codecs.crc import BytesLike
from log.record import Record, TimestampType
from log.strategies import payloads, times

IDEMPOTENT = BatchSpec(
    Offset(7),
    producer_id=ProducerId(3),
    producer_epoch=ProducerEpoch(0),
    base_sequence=2**31 - 2,
    is_transactional=True,
)
APPENDED = BatchSpec(timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time=TimeMs(77))


def columns_of(records: list[Record]) -> PlainColumns:
    data = b"".join(part or b"" for record in records for part in (record.key, record.value))
    sizes = [[-1 if part is None else len(part) for part in (record.key, record.value)] for record in records]
    flat = np.array(sizes, np.int64).reshape(-1)
    starts = np.cumsum(np.maximum(flat, 0)) - np.maximum(flat, 0)
    return PlainColumns(
        data=np.frombuffer(data, np.uint8),
        timestamps=np.array([record.timestamp for record in records], np.int64),
        key_positions=starts[::2],
        key_sizes=flat[::2],
        value_positions=starts[1::2],
        value_sizes=flat[1::2],
    )


def unpacked(data: BytesLike) -> list[tuple[object, ...]]:
    """All that batches say but their sizes and checksums, which are right."""
    batches = list(batches_in(data))
    assert all(batch.is_valid() for batch in batches)
    assert sum(batch.size_bytes for batch in batches) == len(data)
    names = [name for name, _ in HEADER_FIELDS if name not in ("length", "crc")]
    return [(*(getattr(batch, name) for name in names), batch.records()) for batch in batches]


@given(
    st.lists(st.tuples(times(), payloads(), payloads()), max_size=12),
    st.integers(1, 5),
    st.sampled_from((BatchSpec(), IDEMPOTENT, APPENDED)),
    st.sampled_from(list(Codec)),
)
def test_the_bytes_are_those_of_batches_built_one_by_one(
    parts: list[tuple[TimeMs, bytes | None, bytes | None]], per_batch: int, spec: BatchSpec, codec: Codec
) -> None:
    spec = attrs.evolve(spec, codec=codec)
    records = [Record(Offset(spec.base_offset + index), *part) for index, part in enumerate(parts)]
    expected = []
    for first in range(0, len(records), per_batch):
        sequence = -1 if spec.base_sequence < 0 else (spec.base_sequence + first) % 2**31
        each = attrs.evolve(spec, base_offset=Offset(spec.base_offset + first), base_sequence=sequence)
        expected.append(build_batch(each, records[first : first + per_batch]))
    found = build_batches(spec, columns_of(records), per_batch)
    if codec is Codec.ZSTD:
        assert unpacked(found) == unpacked(b"".join(expected))
    else:
        assert bytes(found) == b"".join(expected)


def test_a_batch_too_large_for_its_length_field_is_refused_before_memory_is_taken() -> None:
    count, size = 2100, 1 << 20
    same, sizes = np.zeros(count, np.int64), np.full(count, size)
    records = PlainColumns(
        data=np.zeros(size, np.uint8),
        timestamps=same,
        key_positions=same,
        key_sizes=same - 1,
        value_positions=same,
        value_sizes=sizes,
    )
    with pytest.raises(UsageError) as refusal:
        each_run(BatchSpec(), records, count)
    assert str(refusal.value) == "a batch would have 2202038997 bytes; allowed are 2147483647"


ONE = columns_of([Record(Offset(0), TimeMs(5), b"key", b"value")])


@pytest.mark.parametrize(
    ("spec", "records", "per_batch", "what"),
    [
        (BatchSpec(magic=1), ONE, 1, "columns are written as magic 2, without delete horizon and last offset"),
        (BatchSpec(), ONE, 0, "records per batch are 0; allowed are 1 to 2147483647"),
        (
            BatchSpec(),
            attrs.evolve(ONE, value_sizes=np.array([6])),
            1,
            "record 0 has a key or value outside the 8 bytes of data",
        ),
        (
            BatchSpec(),
            attrs.evolve(ONE, key_positions=np.array([-1])),
            1,
            "record 0 has a key or value outside the 8 bytes of data",
        ),
        (
            BatchSpec(),
            attrs.evolve(ONE, key_sizes=np.array([-2])),
            1,
            "record 0 has a key or value outside the 8 bytes of data",
        ),
        (
            BatchSpec(),
            attrs.evolve(ONE, key_sizes=np.array([1, 1])),
            1,
            "the columns of records are not of equal length",
        ),
        (BatchSpec(), attrs.evolve(ONE, timestamps=np.array([-2])), 1, "Invalid negative timestamp -2"),
    ],
)
def test_columns_that_cannot_be_written_are_refused(
    spec: BatchSpec, records: PlainColumns, per_batch: int, what: str
) -> None:
    with pytest.raises(UsageError) as refusal:
        build_batches(spec, records, per_batch)
    assert str(refusal.value) == what


def test_time_deltas_beyond_java_s_long_wrap_in_both_encoders() -> None:
    records = [Record(Offset(7 + row), TimeMs((-1, 2**63 - 1, 0)[row % 3]), b"k", b"v") for row in range(9)]
    spec = BatchSpec(Offset(7))
    made = bytes(build_batches(spec, columns_of(records), 3))
    one_by_one = [
        build_batch(attrs.evolve(spec, base_offset=Offset(7 + start)), records[start : start + 3])
        for start in (0, 3, 6)
    ]
    assert made == b"".join(one_by_one)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_batches_that_fill_the_buffer_many_times_are_those_built_one_by_one(codec: Codec) -> None:
    sizes = (RUN_BYTES // 3, 10, RUN_BYTES, 2 * RUN_BYTES, 0, RUN_BYTES // 2, 7, 9)
    generator = np.random.default_rng(1)
    records = [Record(Offset(at), TimeMs(at), None, generator.bytes(size)) for at, size in enumerate(sizes)]
    expected = [build_batch(BatchSpec(Offset(at), codec=codec), records[at : at + 1]) for at in range(len(records))]
    data, offsets = b"", list[int]()
    for run in each_run(BatchSpec(codec=codec), columns_of(records), 1):
        data += bytes(run.data)  # The next run is written over it.
        offsets += run.last_offsets.tolist()
    assert (data == b"".join(expected), offsets) == (True, [*range(len(records))])

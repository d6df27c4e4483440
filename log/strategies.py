"""Draw records, batches and whole logs with Hypothesis."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Final

import attrs
from hypothesis import strategies as st

from broker.ids import INT64_MAX, LeaderEpoch, Offset, ProducerEpoch, ProducerId
from broker.units import TimeMs
from log.batches.build import BatchSpec, build_batch, build_marker
from log.codecs.compression import Codec
from log.record import (
    NO_SEQUENCE,
    NO_TIMESTAMP,
    ControlType,
    EndTransactionMarker,
    Header,
    Record,
    TimestampType,
    increment_sequence,
)

SIZES_AT_THE_EDGE: Final = (0, 1, 63, 64, 127, 128, 8191, 8192)
"""Where a size's number, or a record's, grows by a byte."""
OFFSET_MAX: Final = 2**62
TIME_MAX: Final = 2**53
EDGES: Final = (0, 1, 2**31 - 1, 2**31, OFFSET_MAX)


@attrs.frozen
class Written:
    """Hold an encoded batch and the records that a reader must find in it."""

    spec: BatchSpec
    records: tuple[Record, ...]
    """As readers see them: with sequences, and with the append time where that counts."""
    data: bytes


@functools.cache
def payloads() -> st.SearchStrategy[bytes | None]:
    """Draw a key or a value: null, empty, short, or of a size at which a varint grows."""
    at_the_edge = st.sampled_from(
        [bytes(range(251)) * (size // 251) + bytes(range(size % 251)) for size in SIZES_AT_THE_EDGE]
    )
    return st.none() | st.binary(max_size=12) | at_the_edge


@functools.cache
def headers() -> st.SearchStrategy[tuple[Header, ...]]:
    """Draw the headers of a record."""
    names = st.text(st.characters(codec="utf-8"), max_size=5)
    return st.lists(st.builds(Header, names, st.none() | st.binary(max_size=5)), max_size=3).map(tuple)


@functools.cache
def times() -> st.SearchStrategy[TimeMs]:
    """Draw a timestamp in milliseconds, -1 for none."""
    return st.builds(TimeMs, st.sampled_from((NO_TIMESTAMP, 0, 1_700_000_000_000)) | st.integers(0, TIME_MAX))


@st.composite
def records(draw: st.DrawFn, base_offset: int = 0, magic: int = 2, count_max: int = 6) -> tuple[Record, ...]:
    """Draw one to `count_max` records from about `base_offset` on, with gaps; before magic 2 without headers."""
    offset = base_offset
    drawn = []
    for _ in range(draw(st.integers(1, count_max))):
        offset += draw(st.sampled_from((0, 0, 0, 1, 100)))
        timestamp = draw(times()) if magic > 0 else NO_TIMESTAMP
        given = draw(headers()) if magic == 2 else ()
        drawn.append(Record(Offset(offset), timestamp, draw(payloads()), draw(payloads()), given))
        offset += 1
    return tuple(drawn)


@st.composite
def specs(draw: st.DrawFn, base_offset: int | None = None, magic: int | None = None) -> BatchSpec:
    """Draw a BatchSpec; base offset and magic may be given."""
    drawn_magic = draw(st.sampled_from((0, 1, 2, 2, 2))) if magic is None else magic
    base = draw(st.sampled_from(EDGES) | st.integers(0, OFFSET_MAX)) if base_offset is None else base_offset
    spec = BatchSpec(base_offset=Offset(base), magic=drawn_magic)
    if drawn_magic == 0:
        spec = attrs.evolve(spec, timestamp_type=TimestampType.NO_TIMESTAMP_TYPE)
    elif draw(st.booleans()):
        spec = attrs.evolve(spec, timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time=draw(times()))
    codecs = tuple(Codec) if drawn_magic == 2 else (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4)
    spec = attrs.evolve(spec, codec=draw(st.sampled_from(codecs)))
    if drawn_magic < 2:
        return spec
    spec = attrs.evolve(
        spec,
        partition_leader_epoch=LeaderEpoch(draw(st.integers(-1, 2**31 - 1))),
        delete_horizon_ms=draw(st.none() | st.integers(0, TIME_MAX).map(TimeMs)),
    )
    return _with_producer(draw, spec) if draw(st.booleans()) else spec


def _with_producer(draw: st.DrawFn, spec: BatchSpec) -> BatchSpec:
    return attrs.evolve(
        spec,
        producer_id=ProducerId(draw(st.integers(0, INT64_MAX))),
        producer_epoch=ProducerEpoch(draw(st.integers(0, 2**15 - 1))),
        base_sequence=draw(st.sampled_from((0, 2**31 - 2, 2**31 - 1)) | st.integers(0, 2**31 - 1)),
        is_transactional=draw(st.booleans()),
    )


@st.composite
def written_batches(draw: st.DrawFn, base_offset: int | None = None, magic: int | None = None) -> Written:
    """Draw a batch, or for uncompressed magic 0 and 1 a set of plain messages."""
    spec = draw(specs(base_offset, magic))
    drawn = draw(records(spec.base_offset, spec.magic))
    return Written(spec, tuple(_as_read(spec, record) for record in drawn), build_batch(spec, drawn))


@st.composite
def markers(draw: st.DrawFn, base_offset: int | None = None) -> Written:
    """Draw the control batch that ends a transaction."""
    spec = attrs.evolve(_with_producer(draw, draw(specs(base_offset, magic=2))), codec=Codec.NONE)
    kind = draw(st.sampled_from((ControlType.ABORT, ControlType.COMMIT)))
    marker = EndTransactionMarker(kind, draw(st.integers(-1, 2**31 - 1)))
    timestamp = draw(times())
    data = build_marker(spec, marker, timestamp)
    spec = attrs.evolve(spec, base_sequence=NO_SEQUENCE, is_transactional=True, is_control=True)
    record = Record(spec.base_offset, timestamp, marker.key(), marker.value())
    return Written(spec, (_as_read(spec, record),), data)


@st.composite
def streams(draw: st.DrawFn, magics: Sequence[int] = (0, 1, 2), count_max: int = 4) -> tuple[Written, ...]:
    """Draw up to `count_max` consecutive batches of a log, with transaction markers among magic 2."""
    offset = draw(st.sampled_from(EDGES[:-1]))
    drawn: list[Written] = []
    for _ in range(draw(st.integers(0, count_max))):
        magic = draw(st.sampled_from(tuple(magics)))
        is_marker = magic == 2 and draw(st.integers(0, 4)) == 0
        drawn.append(draw(markers(offset) if is_marker else written_batches(offset, magic)))
        offset = drawn[-1].records[-1].offset + 1
    return tuple(drawn)


def _as_read(spec: BatchSpec, record: Record) -> Record:
    """Return the record as readers see it once it is in a batch."""
    if spec.timestamp_type is TimestampType.LOG_APPEND_TIME:
        record = attrs.evolve(record, timestamp=spec.log_append_time)
    if spec.base_sequence < 0:
        return record
    return attrs.evolve(record, sequence=increment_sequence(spec.base_sequence, record.offset - spec.base_offset))

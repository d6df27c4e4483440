"""Hostile values for the public functions of `log`: none may do what is not declared, whatever it is given.

Numbers beyond every field, lone surrogates, empty and large sequences, arrays of other shapes and kinds. What a
function gives is read to its end, as most of them are iterators.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import log
from broker.entropy import SplitMix64
from broker.errors import BrokersideError, UsageError
from broker.ids import Offset, PartitionId, TopicPartition
from broker.units import TimeMs
from log import (
    BatchReader,
    BatchSpec,
    Codec,
    DirectoryRole,
    Header,
    PlainColumns,
    Record,
    ScanOptions,
    TimestampType,
    batches_in,
    build_batch,
    build_batches,
    directory_name,
    find_offsets,
    find_timestamps,
    parse_directory_name,
    rebuild,
    scan,
    scan_headers,
)
from tests.log.made import put, segment

EDGES: Final = tuple(sign * 2**bits + more for bits in (15, 31, 32, 63, 70) for sign in (1, -1) for more in (-1, 0))
NUMBERS: Final = st.one_of(st.sampled_from((0, 1, -1, -2, 7, 61, 78)), st.sampled_from(EDGES))
TEXTS: Final = st.one_of(
    st.sampled_from(("", "\ud800", "a\udfff-1", "\0", "-", "t-0", "a/b-1", "t-99999999999", "t-\u0663", "x" * 70_000)),
    st.text(max_size=8),
)
BYTES: Final = st.one_of(st.none(), st.just(b"\0" * 70_000), st.binary(max_size=9))
HEADERS: Final = st.lists(st.builds(Header, TEXTS, BYTES), max_size=2).map(tuple)
"""Names that Java cannot write in UTF-8 among them."""
SMALL: Final = st.integers(-1, 5)
ROWS: Final = st.lists(st.tuples(st.integers(-1, 9), BYTES, BYTES, HEADERS), min_size=1, max_size=3).map(
    lambda rows: [Record(Offset(place), TimeMs(row[0]), *row[1:]) for place, row in enumerate(rows)]
)
"""Records that a batch can hold, whatever their fields."""
WILD: Final = st.lists(
    st.one_of(
        st.builds(Record, SMALL, SMALL, BYTES, BYTES, HEADERS),
        st.builds(Record, NUMBERS, NUMBERS, BYTES, BYTES, HEADERS, NUMBERS),
    ),
    max_size=3,
).map(lambda records: sorted(records, key=lambda record: record.offset))
RECORDS: Final = st.one_of(ROWS, WILD)
SPECS: Final = st.one_of(
    st.builds(BatchSpec, codec=st.sampled_from(Codec)),
    st.builds(
        BatchSpec,
        magic=st.sampled_from((0, 1, 2)),
        codec=st.sampled_from(Codec),
        timestamp_type=st.sampled_from(TimestampType),
        compression_level=st.one_of(st.none(), NUMBERS),
    ),
    st.builds(
        BatchSpec,
        base_offset=NUMBERS,
        magic=st.one_of(st.just(2), NUMBERS),
        producer_id=NUMBERS,
        producer_epoch=NUMBERS,
        base_sequence=NUMBERS,
        log_append_time=NUMBERS,
        partition_leader_epoch=NUMBERS,
        delete_horizon_ms=st.one_of(st.none(), NUMBERS),
        last_offset=st.one_of(st.none(), NUMBERS),
        is_transactional=st.booleans(),
        is_control=st.booleans(),
    ),
)
PAIR: Final = (Record(Offset(0), TimeMs(0), b"k", b"v", (Header("h", b""),)), Record(Offset(1), TimeMs(5), None, b"v"))
SOUND: Final = build_batch(BatchSpec(), PAIR) + build_batch(
    BatchSpec(base_offset=Offset(2), codec=Codec.GZIP), [Record(Offset(2), TimeMs(0), b"k", b"v")]
)
DATA: Final = st.sampled_from((b"", SOUND, SOUND[:-3], bytes(200)))
COLUMN: Final = st.lists(st.one_of(st.integers(-2, 12), st.sampled_from((2**31, 2**63 - 1, -(2**63)))), max_size=3)
ARRAYS: Final = st.one_of(
    st.lists(NUMBERS, max_size=3),
    NUMBERS,
    st.sampled_from(([1.5], ["x"], [None], [[1, 2]], [[1], [1, 2]], [True], np.array([2**63], np.uint64))),
)
FUZZED: Final = {
    *(batches_in, build_batch, build_batches, directory_name, find_offsets, find_timestamps, parse_directory_name),
    *(rebuild, scan, scan_headers),
}


def tried(call: Callable[[], object]) -> bool:
    """Tell whether a call gives an answer; what is no error of this library goes through."""
    try:
        call()
    except BrokersideError:
        return False
    return True


def test_every_public_function_is_fuzzed_here() -> None:
    public = {getattr(log, name) for name in log.__all__}
    assert {each.__name__ for each in public if inspect.isfunction(each)} == {each.__name__ for each in FUZZED}


@given(spec=SPECS, records=RECORDS)
def test_what_is_built_can_be_read_back(spec: BatchSpec, records: list[Record]) -> None:
    made: list[bytes] = []
    if tried(lambda: made.append(build_batch(spec, records))):
        assert sum(len(columns) for columns in scan(made[0])) == len(records)


@example(spec=BatchSpec(), data=b"ab", columns=([5], [0], [1], [0], [2]), cut=True, each=1)
@given(spec=SPECS, data=st.binary(max_size=12), columns=st.tuples(*[COLUMN] * 5), cut=st.booleans(), each=NUMBERS)
def test_columns_of_any_kind_are_built_or_refused(
    spec: BatchSpec, data: bytes, columns: tuple[list[int], ...], cut: bool, each: int
) -> None:
    length = min(map(len, columns)) if cut else None
    arrays = [np.array(column[:length], np.int64) for column in columns]
    plain = PlainColumns(np.frombuffer(data, np.uint8), *arrays)
    made: list[bytes] = []
    if tried(lambda: made.append(bytes(build_batches(spec, plain, each)))):
        assert sum(len(batch) for batch in scan(made[0])) == len(plain)


@example(data=SOUND, start=0, end=len(SOUND) + 40, reader=BatchReader.FILE, keeps_going=True, limit=1)
@example(data=SOUND, start=-1, end=None, reader=BatchReader.MEMORY, keeps_going=False, limit=1)
@given(
    data=DATA,
    start=NUMBERS,
    end=st.one_of(st.none(), NUMBERS),
    reader=st.sampled_from(BatchReader),
    keeps_going=st.booleans(),
    limit=NUMBERS,
)
def test_nothing_is_read_outside_the_data(
    data: bytes, start: int, end: int | None, reader: BatchReader, keeps_going: bool, limit: int
) -> None:
    between: Any = {"start_position": start, "end_position": end}
    options = ScanOptions(keep_going=keeps_going, reader=reader, decompressed_bytes_max=limit)
    is_inside = start >= 0 and 0 <= (len(data) if end is None else end) <= len(data)
    for read in (
        lambda: [batch.records() for batch in batches_in(data, reader=reader, **between)],
        lambda: list(scan(data, options=options, **between)),
        lambda: scan_headers(data, reader=reader, **between),
    ):
        if is_inside:
            tried(read)
        else:
            with pytest.raises(UsageError, match=f"are to be read of {len(data)}; allowed"):
                read()


@given(topic=TEXTS, number=NUMBERS, role=st.sampled_from(DirectoryRole), has_chance=st.booleans())
def test_names_of_directories_are_made_and_read_or_refused(
    topic: str, number: int, role: DirectoryRole, has_chance: bool
) -> None:
    partition = TopicPartition(topic, PartitionId(number))
    is_named = tried(lambda: directory_name(partition, role, SplitMix64(1) if has_chance else None))
    assert is_named == (0 <= number < 2**31 and (has_chance or role is DirectoryRole.CURRENT))
    tried(lambda: parse_directory_name(topic))


@example(marks=[], place=0, horizon=None, upgrades=False)
@example(marks=[True], place=0, horizon=None, upgrades=False)
@example(marks=[False, False], place=0, horizon=None, upgrades=False)
@given(
    marks=st.lists(st.booleans(), max_size=4),
    place=st.integers(0, 1),
    horizon=st.one_of(st.none(), NUMBERS),
    upgrades=st.booleans(),
)
def test_a_batch_is_rebuilt_only_with_a_mark_for_each_record(
    marks: list[bool], place: int, horizon: int | None, upgrades: bool
) -> None:
    batch = list(batches_in(SOUND))[place]
    at = None if horizon is None else TimeMs(horizon)
    is_made = tried(lambda: rebuild(batch, np.array(marks, np.bool_), delete_horizon_ms=at, upgrades=upgrades))
    is_in_range = horizon is None or -(2**63) <= horizon < 2**63
    assert is_made == (len(marks) == len(batch.records()) and any(marks) and is_in_range)


@given(targets=ARRAYS, start=NUMBERS)
def test_lookups_take_lists_of_whole_numbers_only(targets: Any, start: int) -> None:
    found = segment()
    put(found, SOUND)
    is_list = isinstance(targets, list) and all(type(one) is int and -(2**63) <= one < 2**63 for one in targets)
    assert tried(lambda: find_offsets(found, targets)) == is_list
    is_start = -(2**63) <= start < 2**63
    assert tried(lambda: find_timestamps(found, targets, Offset(start))) == (is_list and is_start)

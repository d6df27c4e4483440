"""Hostile values for the public functions of `log`: none may do what is not declared, whatever it is given."""

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
    batches_in,
    build_batch,
    build_batches,
    directory_name,
    parse_directory_name,
    rebuild,
    scan,
    scan_headers,
)

EDGES: Final = tuple(sign * 2**bits + more for bits in (15, 31, 32, 63, 70) for sign in (1, -1) for more in (-1, 0))
NUMBERS: Final = st.sampled_from((0, 1, -1, -2, 7, 61, 78, *EDGES))
TEXTS: Final = st.sampled_from(("", "\ud800", "a\udfff-1", "\0", "-", "t-0", "a/b-1", "t-99999999999", "t-\u0663", "é"))
BYTES: Final = st.none() | st.binary(max_size=9)
PAIR: Final = (Record(Offset(0), TimeMs(0), b"k", b"v", (Header("h", b""),)), Record(Offset(1), TimeMs(5), None, b"v"))
SOUND: Final = build_batch(BatchSpec(), PAIR) + build_batch(
    BatchSpec(base_offset=Offset(2), codec=Codec.GZIP), [Record(Offset(2), TimeMs(0), b"k", b"v")]
)
COLUMN: Final = st.lists(st.one_of(st.integers(-2, 12), st.sampled_from((2**31, 2**63 - 1, -(2**63)))), max_size=3)
FUZZED: Final = {
    *(batches_in, build_batch, build_batches, directory_name, parse_directory_name),
    *(rebuild, scan, scan_headers),
}


def tried(call: Callable[[], object]) -> bool:
    """Return whether a call gives an answer; what is no error of this library goes through."""
    try:
        call()
    except BrokersideError:
        return False
    return True


def test_every_public_function_is_fuzzed_here() -> None:
    public = {getattr(log, name) for name in log.__all__}
    assert {each.__name__ for each in public if inspect.isfunction(each)} == {each.__name__ for each in FUZZED}


@given(
    spec=st.builds(BatchSpec, base_offset=NUMBERS, magic=st.sampled_from((0, 1, 2)), producer_id=NUMBERS),
    record=st.builds(Record, NUMBERS, NUMBERS, BYTES, BYTES, st.tuples(st.builds(Header, TEXTS, BYTES)), NUMBERS),
)
def test_what_is_built_can_be_read_back(spec: BatchSpec, record: Record) -> None:
    made: list[bytes] = []
    if tried(lambda: made.append(build_batch(spec, [record]))):
        assert sum(len(columns) for columns in scan(made[0])) == 1


@example(data=b"ab", columns=([5], [0], [1], [0], [2]), cut=True, each=1)
@given(data=st.binary(max_size=12), columns=st.tuples(*[COLUMN] * 5), cut=st.booleans(), each=NUMBERS)
def test_columns_of_any_kind_are_built_or_refused(
    data: bytes, columns: tuple[list[int], ...], cut: bool, each: int
) -> None:
    length = min(map(len, columns)) if cut else None
    arrays = [np.array(column[:length], np.int64) for column in columns]
    plain = PlainColumns(np.frombuffer(data, np.uint8), *arrays)
    made: list[bytes] = []
    if tried(lambda: made.append(bytes(build_batches(BatchSpec(), plain, each)))):
        assert sum(len(batch) for batch in scan(made[0])) == len(plain)


@example(start=0, end=len(SOUND) + 40, reader=BatchReader.FILE, limit=1)
@example(start=-1, end=None, reader=BatchReader.MEMORY, limit=1)
@given(start=NUMBERS, end=st.none() | NUMBERS, reader=st.sampled_from(BatchReader), limit=NUMBERS)
def test_nothing_is_read_outside_the_data(start: int, end: int | None, reader: BatchReader, limit: int) -> None:
    between: Any = {"start_position": start, "end_position": end}
    options = ScanOptions(reader=reader, decompressed_bytes_max=limit)
    for read in (
        lambda: [batch.records() for batch in batches_in(SOUND, reader=reader, **between)],
        lambda: list(scan(SOUND, options=options, **between)),
        lambda: scan_headers(SOUND, reader=reader, **between),
    ):
        if start >= 0 and 0 <= (len(SOUND) if end is None else end) <= len(SOUND):
            tried(read)
        else:
            with pytest.raises(UsageError, match=f"are to be read of {len(SOUND)}; allowed"):
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
    horizon=st.none() | NUMBERS,
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

"""The segments that the log's benchmarks read: records of 100 bytes or 1 KiB in batches of 100, by codec.

Values are cut out of a text of words, which lz4 makes about 1.7 times smaller; keys are `key-N`, and each record is a
millisecond younger than the one before.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Final

import attrs
import numpy as np

from broker.ids import LeaderEpoch, Offset
from broker.units import format_size
from log.batches.build import BatchSpec
from log.batches.build_columns import PlainColumns, build_batches
from log.codecs.compression import Codec
from log.codecs.crc import BytesLike
from log.segments.file_names import LOG, file_name
from tests.benchmarks.rounds import say

DIRECTORY: Final = "topic-0"
RECORDS_PER_BATCH: Final = 100
RECORDS_AT_ONCE: Final = 20_000
TEXT_SIZE_BYTES: Final = 4 << 20
FIRST_TIMESTAMP: Final = 1_700_000_000_000
WORDS: Final = (
    b"alpha bravo charlie delta echo foxtrot golf hotel india juliet kilo lima mike november oscar papa".split()
)


@attrs.frozen
class Case:
    """One file: how large its values are, and how it is compressed."""

    value_size_bytes: int
    codec: Codec

    @property
    def name(self) -> str:
        """Say so."""
        return f"{self.value_size_bytes} B {self.codec.label}"


CASES: Final = tuple(Case(size, codec) for size in (100, 1024) for codec in (Codec.NONE, Codec.LZ4, Codec.ZSTD))
PLAIN: Final = tuple(case for case in CASES if case.codec is Codec.NONE)


@attrs.frozen
class CaseFile:
    """A segment of base offset 0 that was written: its directory, its `.log`, how many records and bytes it has."""

    case: Case
    path: Path
    record_count: int
    size_bytes: int

    @property
    def directory(self) -> Path:
        """Where the segment's files are."""
        return self.path.parent


def columns(case: Case, first: int) -> PlainColumns:
    """Return `RECORDS_AT_ONCE` records from the number `first` on."""
    generator = np.random.default_rng(first)
    keys = [b"key-%d" % number for number in range(first, first + RECORDS_AT_ONCE)]
    key_sizes = np.array([len(key) for key in keys], np.int64)
    text, size = text_of_words(), case.value_size_bytes
    cuts = generator.integers(0, len(text) - size, RECORDS_AT_ONCE).tolist()
    # One value after the other, as columns hold them.
    values = b"".join([text[cut : cut + size] for cut in cuts])
    return PlainColumns(
        data=np.frombuffer(values + b"".join(keys), np.uint8),
        timestamps=FIRST_TIMESTAMP + np.arange(first, first + RECORDS_AT_ONCE),
        key_positions=len(values) + np.cumsum(key_sizes) - key_sizes,
        key_sizes=key_sizes,
        value_positions=np.arange(0, len(values), size),
        value_sizes=np.full(RECORDS_AT_ONCE, size, np.int64),
    )


@functools.cache
def text_of_words() -> bytes:
    """Return four mebibytes of words."""
    chosen = np.random.default_rng(7).integers(0, len(WORDS), TEXT_SIZE_BYTES // 6)
    return b" ".join(WORDS[index] for index in chosen)[:TEXT_SIZE_BYTES]


def batches(case: Case, first: int) -> BytesLike:
    """Return `RECORDS_AT_ONCE` records from the number `first` on, in batches."""
    spec = BatchSpec(Offset(first), codec=case.codec, partition_leader_epoch=LeaderEpoch(0))
    return build_batches(spec, columns(case, first), RECORDS_PER_BATCH)


def write_segment_file(case: Case, folder: Path, size_bytes: int) -> CaseFile:
    """Write a segment of as many records as make `size_bytes` uncompressed, below `folder`."""
    say(f"{case.name}: writing {format_size(size_bytes)} of records")
    plain_bytes = len(batches(Case(case.value_size_bytes, Codec.NONE), 0))
    chunk_count = max(1, size_bytes // plain_bytes)
    directory = folder / DIRECTORY
    directory.mkdir(parents=True)
    path = directory / file_name(Offset(0), LOG)
    with path.open("wb") as file:
        for chunk in range(chunk_count):
            file.write(batches(case, chunk * RECORDS_AT_ONCE))
    return CaseFile(case, path, chunk_count * RECORDS_AT_ONCE, path.stat().st_size)

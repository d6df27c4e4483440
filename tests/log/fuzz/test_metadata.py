"""Fuzzing of what reads the metadata log: single records, and whole files played."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final

import pytest

from broker.errors import CorruptDataError, UsageError
from log import batches_in
from log.batches.batch_v2 import CHECKED_POSITION, CRC_POSITION
from log.codecs.crc import crc32c
from log.metadata import (
    MetadataFile,
    RejectedRecords,
    Replay,
    arrange,
    decode_record,
    looks_like_metadata,
    record_json,
    view_of,
)
from log.metadata.state import MetadataState
from tests.log.fuzz.target import Target, fuzz
from tests.log.metadata.drawn import image_of
from tests.log.metadata.made import START_MS, broker, change, config, fenced, log_file, partition, snapshot_file, topic

pytestmark = pytest.mark.usefixtures("input_count")

REAL: Final = Path(__file__).parents[2] / "real_data" / "kraft" / "__cluster_metadata-0"
VALUES: Final = tuple(
    sorted(
        {
            record.value
            for path in sorted(REAL.iterdir())
            for batch in batches_in(path.read_bytes())
            if not batch.is_control
            for record in batch.records()
            if record.value is not None
        }
    )
)
"""A whole file takes milliseconds; what reads its batches and its records is fuzzed for itself."""
SMALL: Final = log_file((broker(1), topic(), partition(1, 2), change(leader=2), fenced(1)))
SNAPSHOT: Final = snapshot_file(3, broker(1), topic(), partition(1, 2), time_ms=START_MS)


def test_a_damaged_metadata_record_is_refused_or_written_and_read_alike() -> None:
    def run(data: bytes) -> None:
        record = decode_record(data)
        if record.is_of_later_release:  # Its unknown fields were skipped, so it must not be written again.
            with pytest.raises(UsageError, match="has versions 0 to"):
                record.to_bytes()
        else:
            assert decode_record(record.to_bytes()) == record
        assert record_json(record).isascii() or record.data

    outcome = fuzz(Target("metadata records", VALUES, run, allowed=(CorruptDataError,)))
    assert min(outcome.accepted_count, outcome.refused_count) > 0


def test_damaged_records_are_played_as_far_as_they_go() -> None:
    def run(data: bytes) -> None:
        state, position = MetadataState(), 0
        while position < len(data):
            size = data[position]
            with contextlib.suppress(CorruptDataError):
                state.apply(decode_record(data[position + 1 : position + 1 + size]))
            position += 1 + size
        image_of(state)

    records = (broker(1), broker(2), topic(), partition(1, 2), change(leader=2, isr=(2,)), fenced(1), config("a", "b"))
    values = [record.to_bytes() for record in records]
    seed = b"".join(bytes([len(value)]) + value for value in values)
    outcome = fuzz(Target("metadata records played", (seed, seed[::-1]), run))
    assert outcome.refused_count == 0


def test_a_damaged_metadata_log_is_played_as_far_as_it_goes() -> None:
    def run(data: bytes) -> None:
        if not looks_like_metadata(data):
            raise CorruptDataError("no batch at its beginning")
        rejected = RejectedRecords()
        replay = Replay(arrange([MetadataFile("any", "any", data)]), rejected=rejected)
        steps = sum(1 for _ in replay.steps())
        assert steps <= replay.entry_count
        view_of(replay.image(), name="any", source="any")

    def repaired(data: bytearray) -> bytes:
        """Make the checksum of the first batch right, so that its records are reached."""
        size = 12 + int.from_bytes(data[8:12], "big", signed=True)
        if CHECKED_POSITION < size <= len(data):
            data[CRC_POSITION:CHECKED_POSITION] = crc32c(bytes(data[CHECKED_POSITION:size])).to_bytes(4, "big")
        return bytes(data)

    seeds = (bytes(SMALL.data), bytes(SNAPSHOT.data))
    outcome = fuzz(Target("metadata logs", seeds, run, repair=repaired), share=20)
    assert min(outcome.accepted_count, outcome.refused_count) > 0

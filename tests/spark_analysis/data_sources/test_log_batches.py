"""The table of batches: a row per batch however a scan cuts it, with what the plain reader finds in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from log.batches.batch_v2 import HEADER
from log.batches.record_columns import RecordColumns
from log.batches.scan import scan
from spark_analysis.data_sources.log_batches import BatchRows
from spark_analysis.data_sources.log_filter import LogFilter
from spark_analysis.data_sources.options import DROP
from spark_analysis.tables.schemas import LOG_BATCHES
from spark_analysis.tables.view_columns import Constants
from tests.log.samples import DIRECTORY, SAMPLES, write_sample
from tests.spark_analysis.data_sources.logs import batches_of, rows, tier


def plain(folder: Path) -> list[dict[str, Any]]:
    """The same by the reader that makes an object of every record."""
    found = []
    for path, batch in batches_of(folder):
        times = [record.timestamp for record in batch.records() if record.timestamp >= 0]
        found.append(
            {
                "base_offset": batch.base_offset,
                "last_offset": batch.last_offset,
                "record_count": len(list(batch.records())),
                "magic": 2,
                "codec": batch.codec.name.lower(),
                "size_bytes": batch.size_bytes,
                "min_timestamp_ms": min(times, default=-1),
                "max_timestamp_ms": max(times, default=-1),
                "producer_id": batch.producer_id,
                "leader_epoch": batch.partition_leader_epoch,
                "is_transactional": batch.is_transactional,
                "is_control": batch.is_control,
                "position": batch.position,
                "source": str(path),
                "topic": "topic",
                "partition": 0,
                "fault": None,
            }
        )
    return found


@pytest.mark.parametrize("sample", sorted(SAMPLES))
def test_rows_are_the_batches_that_the_plain_reader_finds(tmp_path: Path, sample: str) -> None:
    write_sample(sample, tmp_path)
    found = rows(tmp_path, table="batches")
    unpacked = [row.pop("unpacked_bytes") for row in found]
    assert found == plain(tmp_path / DIRECTORY)
    if sample == "none":
        assert unpacked == [row["size_bytes"] for row in found]
    else:
        assert min(unpacked) >= HEADER.size


def cut(chunk: RecordColumns, at: int) -> list[RecordColumns]:
    """Cut a chunk of one batch into two that both begin with it, as a scan does with a large batch."""
    names = [field.name for field in attrs.fields(RecordColumns) if field.name not in ("data", "batches", "damages")]
    return [
        attrs.evolve(chunk, **{name: getattr(chunk, name)[part] for name in names})
        for part in (slice(None, at), slice(at, None))
    ]


def test_a_batch_that_a_scan_cuts_is_one_row_with_the_sums(tmp_path: Path) -> None:
    write_sample("zstd", tmp_path)
    first = next(iter(sorted((tmp_path / DIRECTORY).glob("*.log"))))
    (chunk,) = scan(first.read_bytes())
    whole = together(BatchRows(), [chunk])
    for at in range(1, len(chunk)):
        head, tail = cut(chunk, at)
        last = int(head.batch_index[-1])
        begins = int(tail.batch_index[0])
        head = attrs.evolve(head, batches=chunk.batches.rows(0, last + 1))
        tail = attrs.evolve(
            tail,
            batches=chunk.batches.rows(begins, len(chunk.batches)),
            batch_index=(tail.batch_index - begins).astype(np.int32),
        )
        assert together(BatchRows(), [head, tail]) == whole


def together(made: BatchRows, chunks: list[RecordColumns]) -> list[dict[str, Any]]:
    parts = [part for chunk in chunks for part in made.add(100, chunk)] + list(made.end())
    return [row for part in parts for row in part.batch(LOG_BATCHES, Constants()).to_pylist()]


def test_batches_of_a_tiered_segment_in_windows_are_those_of_the_raw_one(tmp_path: Path) -> None:
    write_sample("lz4", tmp_path / "raw")
    tier(tmp_path / "raw" / DIRECTORY, tmp_path / "tiered")
    raw, tiered = (rows(tmp_path / name, table="batches") for name in ("raw", "tiered"))
    assert [row | {"source": ""} for row in tiered] == [row | {"source": ""} for row in raw]


def test_damage_is_a_row_unless_it_is_dropped_and_a_filter_leaves_out_batches(tmp_path: Path) -> None:
    write_sample("none", tmp_path)
    path = sorted((tmp_path / DIRECTORY).glob("*.log"))[-1]
    path.write_bytes(path.read_bytes()[:-5])
    found = rows(tmp_path, table="batches")
    (damaged,) = [row for row in found if row["fault"] is not None]
    assert damaged["topic"] == "topic"
    assert damaged["size_bytes"] is None
    assert rows(tmp_path, table="batches", mode=DROP) == [row for row in found if row["fault"] is None]
    few = rows(tmp_path, table="batches", wanted=LogFilter(start_offset=40, end_offset=50))
    assert [row["base_offset"] for row in few] == [39, 42, 45, 48]

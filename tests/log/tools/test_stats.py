"""The figures of `stats` against a slow and obvious count."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from broker.ids import Offset
from broker.units import TimeMs
from log import BatchSpec, Record, build_batch
from log.batches.in_buffer import batches_in
from log.cli.stats import compaction_json, compaction_row, segment_json, segment_rows
from log.codecs.compression import Codec
from log.compaction import SourceLog, estimate_compaction
from log.record import ControlType, control_type
from log.segments.file_names import LOG
from log.tools.open_log import measure_segment
from log.tools.sources import SourceFile, expand
from log.tools.stats import EXACT_MAX, Cardinality, SegmentStats
from tests.log.samples import SAMPLES, START_MS, write_sample


def files_of(path: Path) -> list[SourceFile]:
    return [file for folder in expand(path) for file in folder.of_kind(LOG)]


def total_of(path: Path) -> SegmentStats:
    total = SegmentStats()
    for file in files_of(path):
        total.merge(measure_segment(file, lambda _: None))
    return total


@pytest.mark.parametrize("sample", sorted(SAMPLES))
def test_every_figure_is_what_counting_record_by_record_gives(tmp_path: Path, sample: str) -> None:
    write_sample(sample, tmp_path)
    batches = [batch for file in files_of(tmp_path) for batch in batches_in(file.view())]
    records = [(batch, record) for batch in batches for record in batch.records()]
    user = [record for batch, record in records if not batch.is_control]
    ends = [control_type(record.key) for batch, record in records if batch.is_control]
    found = segment_json(total_of(tmp_path), START_MS)
    assert found["batches"] == len(batches)
    assert found["records"] == len(records)
    assert (found["firstOffset"], found["lastOffset"]) == (batches[0].base_offset, batches[-1].last_offset)
    assert found["keys"] == {
        "distinct": len({record.key for record in user if record.key is not None}),
        "isExact": True,
        "null": sum(record.key is None for record in user),
        "tombstones": sum(record.value is None for record in user),
    }
    assert found["keyBytes"] == sum(len(record.key or b"") for record in user)
    assert found["valueBytes"] == sum(len(record.value or b"") for record in user)
    assert found["headers"] == sum(len(record.headers) for record in user)
    assert found["transactions"] == {
        "batches": sum(batch.is_transactional and not batch.is_control for batch in batches),
        "commits": ends.count(ControlType.COMMIT),
        "aborts": ends.count(ControlType.ABORT),
    }
    assert found["producers"] == len({batch.producer_id for batch in batches if batch.has_producer_id})
    assert found["batchBytes"]["max"] == max(batch.size_bytes for batch in batches)
    assert sum(count for _, _, count in found["batchRecords"]["classes"]) == len(batches)
    assert {name: codec["records"] for name, codec in found["codecs"].items()} == {
        codec.name.lower(): sum(batch.codec is codec for batch, _ in records)
        for codec in Codec
        if any(batch.codec is codec for batch in batches)
    }


def test_damage_is_passed_over_and_counted(tmp_path: Path) -> None:
    write_sample("none", tmp_path)
    path = Path(files_of(tmp_path)[0].shown)
    content = bytearray(path.read_bytes())
    content[70] ^= 1
    path.write_bytes(content)
    total = total_of(tmp_path)
    assert (total.damage_count, total.record_count) == (1, 177)
    assert ("damage", f"1 place, {total.damaged_size_bytes:,} bytes passed over") in list(segment_rows(total, START_MS))


def hashes(count: int, seed: int) -> tuple[np.ndarray[tuple[int], np.dtype[np.uint64]], ...]:
    chance = np.random.default_rng(seed)
    return tuple(chance.integers(0, 2**64, count, dtype=np.uint64) for _ in range(2))


@pytest.mark.parametrize("count", [0, 1, 1000, 300_000])
def test_few_keys_are_counted_however_often_they_come(count: int) -> None:
    low, high = hashes(count, 1)
    counter = Cardinality()
    for start in range(0, count, 70_000):
        counter.take(low[start : start + 70_000], high[start : start + 70_000])
    counter.take(low[: count // 2], high[: count // 2])
    assert (counter.count, counter.is_exact) == (count, True)


def test_many_keys_are_estimated_within_three_standard_errors() -> None:
    count = EXACT_MAX + EXACT_MAX // 4
    low, high = hashes(count, 2)
    counter = Cardinality()
    counter.take(low, high)
    assert not counter.is_exact
    assert abs(counter.count - count) < 3 * 0.0081 * count


@pytest.mark.parametrize(
    ("keys", "name", "text", "can_be"),
    [
        ((None, None), "compaction", "no keys: cannot be compacted", False),
        ((b"a", b"a"), "compaction would save", ", 1 of 2 records stay", True),
        ((b"a", None), "compaction would save", ", 1 of 2 records stay; 1 without a key would be lost", True),
        ((), "compaction would save", "0 B (0.0 %), 0 of 0 records stay", True),
    ],
)
def test_a_log_without_keys_cannot_be_compacted(
    keys: tuple[bytes | None, ...], name: str, text: str, can_be: bool
) -> None:
    records = [Record(Offset(offset), TimeMs(0), key, b"v") for offset, key in enumerate(keys)]
    data = build_batch(BatchSpec(), records) if records else b""
    estimate = estimate_compaction([SourceLog(memoryview(data), "0.log")], now_ms=TimeMs(0))
    found = compaction_row(estimate)
    assert found[0] == name
    assert found[1].endswith(text)
    assert compaction_json(estimate)["canBeCompacted"] is can_be

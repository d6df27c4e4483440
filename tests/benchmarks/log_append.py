"""How fast records become batches in a segment: encoded, compressed, checksummed, written to a file, indexed.

Ours takes columns, Kafka's MemoryRecordsBuilder and LogSegment.append take records that are objects in memory; both
make batches of 100 and append as many at a time as have two mebibytes before they are compressed, as a follower appends
what it has fetched: for Java, too, that is at least as fast as batch by batch. The work is 64 MiB of records, as Java
keeps them all in memory.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from broker.ids import LeaderEpoch, Offset
from broker.units import MIB, TimeMs
from log.batches.build import BatchSpec
from log.batches.build_columns import RUN_BYTES, PlainColumns, each_run
from log.codecs.compression import Codec
from log.log_config import LogConfig
from log.segments.segment import Segment
from log.segments.segment_files import SegmentPlace
from log.storage import FileStorage
from tests.benchmarks import java_log
from tests.benchmarks.log_files import (
    DIRECTORY,
    FIRST_TIMESTAMP,
    RECORDS_AT_ONCE,
    RECORDS_PER_BATCH,
    Case,
    CaseFile,
    columns,
    write_segment_file,
)
from tests.benchmarks.rounds import Line, Took, in_turn, measured
from tests.kafka.jvm import KafkaJvm

SAMPLE_BYTES_MAX: Final = 64 * MIB
RUNS_A_TURN: Final = 3  # Runs are short.
BOUNDS: Final = {
    Codec.NONE: "new pages of the file; then reading the values, and checksums",
    Codec.LZ4: "lz4's own compression",
    Codec.ZSTD: "zstd's own compression",
}


def append_lines(case: Case, kafka: KafkaJvm | None, rounds: int, size_bytes: int, folder: Path) -> list[Line]:
    """Return the line of one case; files are written below `folder`."""
    with tempfile.TemporaryDirectory(prefix="append-", dir=folder) as name:
        folder = Path(name)
        sample = write_segment_file(Case(case.value_size_bytes, Codec.NONE), folder, min(size_bytes, SAMPLE_BYTES_MAX))
        firsts = range(0, sample.record_count, RECORDS_AT_ONCE)
        chunks = [columns(case, first) for first in firsts]
        contestants: dict[str, Callable[[], Took]] = {
            "ours": lambda: repeated(case, chunks, folder / "ours"),
        }
        if kafka is not None:
            contestants["Java"] = lambda: append_java(kafka, sample, case.codec)
        found = in_turn(contestants, rounds, f"encode and append, {case.name}")
    return [
        Line(
            what="encode and append",
            case=case.name,
            unit="M records/s",
            found=found,
            bound=BOUNDS[case.codec],
        )
    ]


def append_java(kafka: KafkaJvm, sample: CaseFile, codec: Codec) -> Took:
    """Let Kafka encode and append the sample's records."""
    batch_size_bytes = sample.size_bytes * RECORDS_PER_BATCH // sample.record_count
    return java_log.encode_and_append(
        kafka,
        sample.path,
        scratch=sample.directory.parent,
        compression=codec.label,
        batch_records=RECORDS_PER_BATCH,
        batches_at_once=max(1, RUN_BYTES // batch_size_bytes),
        repeats=RUNS_A_TURN,
    )


def repeated(case: Case, chunks: Sequence[PlainColumns], folder: Path) -> Took:
    """Return the median run of a turn, by the thread's own time."""
    runs = []
    for _ in range(RUNS_A_TURN):
        segment = new_segment(folder)
        runs.append(measured(lambda: append_ours(case, chunks, segment)))  # noqa: B023  # It runs at once.
        segment.close()
        shutil.rmtree(folder)
    return sorted(runs, key=lambda run: run.cpu_s)[RUNS_A_TURN // 2]


def new_segment(folder: Path) -> Segment:
    """Return an empty segment in a directory of real files."""
    storage = FileStorage(folder)
    storage.make_directory(DIRECTORY)
    return Segment(SegmentPlace(storage, DIRECTORY, Offset(0)), LogConfig(), now_ms=TimeMs(FIRST_TIMESTAMP))


def append_ours(case: Case, chunks: Sequence[PlainColumns], segment: Segment) -> int:
    """Encode all records and append them, a run of batches at a time; return how many records those were."""
    first = 0
    for records in chunks:
        spec = BatchSpec(Offset(first), codec=case.codec, partition_leader_epoch=LeaderEpoch(0))
        for run in each_run(spec, records, RECORDS_PER_BATCH):
            segment.append_run(run)
        first += len(records)
    return first

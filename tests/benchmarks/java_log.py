"""Times of Kafka's own log classes, for benchmarks that print ratios of one run.

Each function runs the Java side `repeats` times on files that are there already, and returns every run in wall time
and in CPU time of the Java thread (garbage collection runs on other threads and is not counted, in Kafka's favour).
Take the medians: the first runs are the compiler's. Files are read on the machine's own file system, as they are.

Example:

    with KafkaLogs.start(build_directory) as kafka:
        java = scan(kafka, segment, repeats=5)
        print(f"{java.records / java.cpu_seconds:,.0f} records/s in Java")

A main program prints all of them on a segment of its own making: python -m tests.benchmarks.java_log --mib 64
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

import attrs

from broker.ids import LeaderEpoch, Offset
from broker.units import MIB, TimeMs
from log.batches.build import BatchSpec, build_batch
from log.codecs.compression import Codec
from log.log_config import LogConfig
from log.partition.partition_log import PartitionLog
from log.record import Record
from log.segments.file_names import LOG, file_name
from log.storage import FileStorage
from tests.benchmarks.rounds import Took
from tests.kafka.log_jvm import KafkaLogs

LookUp = Literal["index-offset", "index-timestamp", "offset", "timestamp"]
"""OffsetIndex.lookup, TimeIndex.lookup, LogSegment.translateOffset, LogSegment.findOffsetByTimestamp."""

START_MS: Final = TimeMs(1_700_000_000_000)
WORDS: Final = ("alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india", "juliet", "kilo")
NS_PER_SECOND: Final = 1e9


@attrs.frozen
class JavaTimes:
    """The runs of one measurement, and what was done in each."""

    wall_ns: tuple[int, ...]
    cpu_ns: tuple[int, ...]
    records: int = 0
    size_bytes: int = 0

    @property
    def cpu_seconds(self) -> float:
        """Median CPU time of a run."""
        return statistics.median(self.cpu_ns) / NS_PER_SECOND

    @property
    def wall_seconds(self) -> float:
        """Median wall time of a run."""
        return statistics.median(self.wall_ns) / NS_PER_SECOND

    def took(self) -> Took:
        """Return the median run, its records as what was done."""
        return Took(self.records, self.wall_seconds, self.cpu_seconds)


def scan(kafka: KafkaLogs, segment: Path, *, repeats: int = 5) -> JavaTimes:
    """FileRecords.batches over a `.log`: CRC of every batch, then every record, decompressed."""
    return _times(kafka.timing("scan", file=str(segment), repeats=repeats))


def scan_headers(kafka: KafkaLogs, segment: Path, *, repeats: int = 5) -> JavaTimes:
    """FileRecords.batches over a `.log`: headers alone, no CRC."""
    return _times(kafka.timing("headers", file=str(segment), repeats=repeats))


def encode_and_append(
    kafka: KafkaLogs,
    segment: Path,
    *,
    scratch: Path,
    compression: str = "none",
    batch_records: int = 100,
    batches_at_once: int = 1,
    repeats: int = 5,
) -> JavaTimes:
    """MemoryRecordsBuilder and LogSegment.append: the records of a `.log` (in memory before) encoded in new batches.

    `batches_at_once` go into the segment by one call; together they must have less than 4 MiB.
    Segments are written below `scratch` and removed. Memory for all records is needed: take 64 MiB or so.
    """
    return _times(
        kafka.timing(
            "append",
            file=str(segment),
            scratch=str(scratch),
            compression=compression,
            batchRecords=batch_records,
            batchesAtOnce=batches_at_once,
            repeats=repeats,
        )
    )


def recover(kafka: KafkaLogs, directory: Path, *, scratch: Path, base_offset: int = 0, repeats: int = 5) -> JavaTimes:
    """LogSegment.recover of one segment of a partition's directory, which is copied below `scratch` for each run."""
    return _times(
        kafka.timing("recover", directory=str(directory), scratch=str(scratch), baseOffset=base_offset, repeats=repeats)
    )


def clean(
    kafka: KafkaLogs,
    directory: Path,
    config: Mapping[str, Any],
    *,
    scratch: Path,
    now_ms: int = START_MS,
    map_size_bytes: int = 128 * MIB,
    repeats: int = 3,
) -> JavaTimes:
    """Cleaner.clean of a whole closed log up to its active segment; the directory is copied for each run.

    `config` are Kafka's settings. `records` and `size_bytes` are what the cleaner read while it wrote.
    """
    return _times(
        kafka.timing(
            "clean",
            directory=str(directory),
            scratch=str(scratch),
            config=dict(config),
            nowMs=now_ms,
            mapBytes=map_size_bytes,
            repeats=repeats,
        )
    )


def look_up(
    kafka: KafkaLogs,
    directory: Path,
    by: LookUp,
    *,
    count: int = 100_000,
    base_offset: int = 0,
    lowest: int = START_MS,
    seed: int = 1,
    repeats: int = 5,
) -> JavaTimes:
    """One segment asked for `count` random targets, one call each; `records` is `count`.

    Offsets are drawn from the whole segment, timestamps from `lowest` to the largest in it.
    """
    return _times(
        kafka.timing(
            "look-ups",
            directory=str(directory),
            baseOffset=base_offset,
            by=by,
            count=count,
            lowest=lowest,
            seed=seed,
            repeats=repeats,
        )
    )


def write_segment(
    directory: Path,
    *,
    size_bytes: int,
    value_size_bytes: int = 100,
    codec: Codec = Codec.NONE,
    batch_records: int = 100,
) -> Path:
    """Write a segment of base offset 0 with its indexes, of word-like values and keys `key-N`; return the `.log`."""
    log = PartitionLog.open(FileStorage(directory.parent), directory.name, LogConfig(), now_ms=START_MS)
    text = " ".join(WORDS[(index * index) % len(WORDS)] for index in range(value_size_bytes)).encode()
    offset = 0
    while log.size_bytes < size_bytes:
        records = [
            Record(
                Offset(offset + index),
                TimeMs(START_MS + offset + index),
                f"key-{offset + index}".encode(),
                text[index % 50 : index % 50 + value_size_bytes],
            )
            for index in range(batch_records)
        ]
        log.append_as_follower(
            build_batch(
                BatchSpec(base_offset=Offset(offset), codec=codec, partition_leader_epoch=LeaderEpoch(0)), records
            ),
            now_ms=START_MS,
        )
        offset += batch_records
    log.close(now_ms=START_MS)
    return directory / file_name(Offset(0), LOG)


def _times(answer: Mapping[str, Any]) -> JavaTimes:
    return JavaTimes(tuple(answer["wallNs"]), tuple(answer["cpuNs"]), answer.get("records", 0), answer.get("bytes", 0))


def main() -> None:
    """Print every measurement on a segment of the asked size."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.java_log", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--mib", type=int, default=64, help="size of the segment (default: %(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, KafkaLogs.start(Path(name) / "build") as kafka:
        folder = Path(name)
        directory = folder / "topic-0"
        segment = write_segment(directory, size_bytes=options.mib * MIB)
        _show("scan, CRC and every record", scan(kafka, segment))
        _show("headers", scan_headers(kafka, segment))
        _show("encode and append", encode_and_append(kafka, segment, scratch=folder))
        _show("recover", recover(kafka, directory, scratch=folder))
        for by in ("index-offset", "index-timestamp", "offset", "timestamp"):
            _show(f"look up {by}", look_up(kafka, directory, by))


def _show(what: str, times: JavaTimes) -> None:
    records = f"{times.records / times.cpu_seconds:>14,.0f} records/s" if times.records else ""
    print(f"{what:<28}{times.cpu_seconds:9.3f} s CPU{times.wall_seconds:9.3f} s wall {records}")


if __name__ == "__main__":
    main()

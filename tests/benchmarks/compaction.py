"""How fast a log is compacted: a million records with a hundred thousand keys.

    python -m tests.benchmarks.compaction [--records 1000000] [--keys 100000] [--rounds 5] [--codec none] [--json]

What it measures: one whole pass of the cleaner, from reading the first header to the last swap, over records of
100 bytes of word-like text with keys `key-N` drawn at random, in batches of 100 and segments of 16 MiB, with a map of
128 MiB. The files are real ones in a temporary directory, not synced, as in Kafka's own measurement. Wall clock and the
CPU time of the one thread are told, medians of the rounds; each round cleans a fresh copy of the same log.

Beside it stands what Kafka's `Cleaner.clean` took for the same work on an idle machine of this kind (JDK 17, tmpfs):
1.16 M records/s uncompressed, 1.07 M with lz4. "times Kafka" goes by the wall clock, so on a busy machine look at
"by CPU", which leaves out the waiting.

Left out: the disk. The files are in the page cache when they are read.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Final

import attrs
import numpy as np

from broker.ids import LeaderEpoch, Offset
from broker.units import MIB, TimeMs
from log.batches.build import build_batch
from log.batches.build_spec import BatchSpec
from log.codecs.compression import Codec
from log.compaction import Cleaned, clean, log_to_clean
from log.log_config import LogConfig
from log.partition.partition_log import PartitionLog
from log.record import Record
from log.storage import FileStorage, SyncPolicy
from tests.benchmarks.report import describe_machine, show

DIRECTORY: Final = "topic-0"
BATCH_RECORD_COUNT: Final = 100
VALUE_SIZE_BYTES: Final = 100
START_MS: Final = 1_700_000_000_000
SEED: Final = 20_241_025
KAFKA_RECORDS_PER_S: Final = {Codec.NONE: 1.16e6, Codec.LZ4: 1.07e6}
WORDS: Final = ("alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india", "juliet", "kilo")
CONFIG: Final = LogConfig.parse({"cleanup.policy": "compact", "segment.bytes": 16 * MIB})


@attrs.frozen(kw_only=True)
class Round:
    """What one pass took, and what it did."""

    wall_s: float
    cpu_s: float
    cleaned: Cleaned


def main() -> int:
    """Measure and print; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.compaction", description="Measure how fast a log is compacted."
    )
    parser.add_argument("--records", type=int, default=1_000_000, help="records of the log (default: %(default)s)")
    parser.add_argument("--keys", type=int, default=100_000, help="different keys (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="measured passes of each codec (default: %(default)s)")
    parser.add_argument("--codec", action="append", choices=[codec.label for codec in Codec], help="default: none, lz4")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")
    options = parser.parse_args()
    codecs = [Codec[label.upper()] for label in options.codec or ("none", "lz4")]
    rows = [measure(codec, options.records, options.keys, options.rounds) for codec in codecs]
    show("One pass of the cleaner", describe_machine("numpy", "numba"), rows, as_json=options.json)
    return 0


def measure(codec: Codec, record_count: int, key_count: int, rounds: int) -> dict[str, object]:
    """Return the medians of the passes over a log of one codec; one pass before them compiles and warms up."""
    with tempfile.TemporaryDirectory(prefix="compaction-") as name:
        prepared = Path(name) / "prepared"
        write_log(prepared, codec, record_count, key_count)
        measured = [clean_copy(prepared, Path(name) / "copy") for _ in range(rounds + 1)][1:]
    wall_s = statistics.median(one.wall_s for one in measured)
    cpu_s = statistics.median(one.cpu_s for one in measured)
    stats = measured[0].cleaned.stats
    kafka = KAFKA_RECORDS_PER_S.get(codec)
    return {
        "codec": codec.label,
        "MB in": round(stats.bytes_read / 1e6, 1),
        "MB out": round(stats.bytes_written / 1e6, 1),
        "survivors": stats.records_written,
        "wall ms": round(1000 * wall_s),
        "CPU ms": round(1000 * cpu_s),
        "M records/s": round(record_count / wall_s / 1e6, 2),
        "M records/CPU s": round(record_count / cpu_s / 1e6, 2),
        "times Kafka": None if kafka is None else round(record_count / wall_s / kafka, 2),
        "by CPU": None if kafka is None else round(record_count / cpu_s / kafka, 2),
    }


def write_log(folder: Path, codec: Codec, record_count: int, key_count: int) -> None:
    """Write the log that is cleaned; its last segment is empty, so that all records are in rolled ones."""
    chance = np.random.default_rng(SEED)
    folder.mkdir()
    log = open_log(folder)
    keys = chance.integers(0, key_count, record_count)
    for start in range(0, record_count, BATCH_RECORD_COUNT):
        numbers = chance.integers(0, len(WORDS), (BATCH_RECORD_COUNT, VALUE_SIZE_BYTES // 4))
        records = [
            Record(
                Offset(index),
                TimeMs(START_MS + start + index),
                b"key-%d" % key,
                " ".join([WORDS[number] for number in row]).encode()[:VALUE_SIZE_BYTES],
            )
            for index, (key, row) in enumerate(
                zip(keys[start : start + BATCH_RECORD_COUNT].tolist(), numbers.tolist(), strict=False)
            )
        ]
        log.append_as_leader(
            build_batch(BatchSpec(codec=codec), records), leader_epoch=LeaderEpoch(0), now_ms=TimeMs(START_MS)
        )
    log.roll(now_ms=TimeMs(START_MS))
    log.close(now_ms=TimeMs(START_MS))


def clean_copy(prepared: Path, copy: Path) -> Round:
    """Clean a copy of the log and return what that took."""
    shutil.copytree(prepared, copy)
    log = open_log(copy)
    log.update_high_watermark(log.log_end_offset)
    target = log_to_clean(log, None, now_ms=TimeMs(START_MS))
    wall_s, cpu_s = time.perf_counter(), time.thread_time()
    cleaned = clean(target, now_ms=TimeMs(START_MS))
    measured = Round(wall_s=time.perf_counter() - wall_s, cpu_s=time.thread_time() - cpu_s, cleaned=cleaned)
    log.close(now_ms=TimeMs(START_MS))
    shutil.rmtree(copy)
    return measured


def open_log(folder: Path) -> PartitionLog:
    """Open the log in `folder`."""
    storage = FileStorage(folder, sync_policy=SyncPolicy.NEVER)
    return PartitionLog.open(storage, DIRECTORY, CONFIG, now_ms=TimeMs(START_MS))


if __name__ == "__main__":
    raise SystemExit(main())

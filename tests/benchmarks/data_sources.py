"""Measure kafka_log: records that a worker reads and hands over in a second of its CPU time.

`python -m tests.benchmarks.data_sources` writes segments of 128 MiB of records to a temporary folder and reads each
five times in a session, after one round that is not counted. CPU time is that of Spark's Python workers. Spark ends a
worker that was idle for a minute, and a new one spends two seconds on imports: rounds on a busy machine may have these.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Final

from pyspark.sql import functions as F

from log.codecs.compression import Codec
from spark_analysis import register
from spark_analysis.session.spark_session import spark_session
from tests.benchmarks.log_files import Case, write_segment_file

SIZE_BYTES: Final = 128 << 20
CASES: Final = (*(Case(100, codec) for codec in (Codec.NONE, Codec.LZ4, Codec.ZSTD)), Case(1024, Codec.NONE))
ROUNDS: Final = 5
TICKS: Final = os.sysconf("SC_CLK_TCK")


def worker_seconds() -> float:
    """Return the CPU seconds of Spark's Python workers, with those of workers that have ended and were waited for."""
    total = 0
    for folder in Path("/proc").iterdir():
        try:
            command = (folder / "cmdline").read_bytes() if folder.name.isdecimal() else b""
            if b"pyspark.daemon" in command or (b"java" in command and str(os.getpid()) == _parent(folder)):
                fields = (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
                own = b"pyspark.daemon" in command
                total += sum(int(each) for each in (fields[11:15] if own else fields[13:15]))
        except OSError:
            continue
    return total / TICKS


def _parent(folder: Path) -> str:
    return (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1]


def main() -> None:
    """Print millions of records per CPU second of the workers, for each case and round."""
    with tempfile.TemporaryDirectory() as name, spark_session(app_name="kafka_log", master="local[2]") as spark:
        register(spark)
        for case in CASES:
            file = write_segment_file(case, Path(name) / case.name, SIZE_BYTES)
            frame = spark.read.format("kafka_log").load(str(file.directory))
            found = []
            for _ in range(ROUNDS + 1):
                cpu, wall = worker_seconds(), time.perf_counter()
                (row,) = frame.agg(F.count("*").alias("n"), F.sum(F.length("value"))).collect()
                assert row["n"] == file.record_count
                found.append((worker_seconds() - cpu, time.perf_counter() - wall))
            rates = " ".join(f"{file.record_count / cpu / 1e6:.1f}" for cpu, _ in found[1:])
            walls = " ".join(f"{wall:.1f}" for _, wall in found[1:])
            print(f"{case.name:>12}: {file.record_count:>9,} records, M per worker CPU s: {rates}, wall s: {walls}")


if __name__ == "__main__":
    main()

"""Measure kafka_log: records that a Python worker of Spark reads and hands over in a second of its CPU time.

`python -m tests.benchmarks.data_sources` writes segments of 128 MiB of records to a temporary folder and reads each
five times in a session, all columns, after one round that is not counted. CPU time is that of the worker from the
beginning of its task until it has handed over its last batch but one, without its imports.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from log.codecs.compression import Codec
from spark_analysis.data_sources.kafka_log import KafkaLogSource
from spark_analysis.session.spark_session import spark_session
from tests.benchmarks.log_files import Case, write_segment_file

SIZE_BYTES: Final = 128 << 20
CASES: Final = (*(Case(100, codec) for codec in (Codec.NONE, Codec.LZ4, Codec.ZSTD)), Case(1024, Codec.NONE))
ROUNDS: Final = 5


def timed_source(times: Path) -> type[DataSource]:
    """Return kafka_log as a source that appends the CPU seconds of each task to the file `times`."""

    class TimedReader(DataSourceReader):
        def __init__(self, reader: DataSourceReader) -> None:
            self._reader = reader

        def partitions(self) -> list[InputPartition]:
            return list(self._reader.partitions())

        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
            start = time.process_time()
            yield from self._reader.read(partition)  # type: ignore[misc]  # Spark's type allows tuples, too.
            with times.open("a", encoding="utf-8") as file:
                file.write(f"{time.process_time() - start}\n")

    class TimedSource(KafkaLogSource):
        def reader(self, schema: StructType) -> DataSourceReader:
            return TimedReader(super().reader(schema))

    return TimedSource


def main() -> None:
    """Print millions of records per CPU second of the worker, for each case and round."""
    with tempfile.TemporaryDirectory() as name, spark_session(app_name="kafka_log", master="local[1]") as spark:
        times = Path(name) / "times"
        spark.dataSource.register(timed_source(times))
        for case in CASES:
            file = write_segment_file(case, Path(name) / case.name, SIZE_BYTES)
            frame = spark.read.format("kafka_log").load(str(file.directory))
            times.write_text("")
            for _ in range(ROUNDS + 1):
                (row,) = frame.agg(F.count("*").alias("n"), F.sum(F.length("value"))).collect()
                assert row["n"] == file.record_count
            rates = [file.record_count / float(line) / 1e6 for line in times.read_text().splitlines()][1:]
            shown = " ".join(f"{rate:.1f}" for rate in rates)
            print(f"{case.name:>12}: {file.record_count:>9,} records, median {statistics.median(rates):.1f} of {shown}")


if __name__ == "__main__":
    main()

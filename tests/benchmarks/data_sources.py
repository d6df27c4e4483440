"""Measure kafka_log: records that a Python worker of Spark reads and hands over in a second of its CPU time.

`python -m tests.benchmarks.data_sources [--rounds 5] [--json]` writes segments of 128 MiB of records to a temporary
folder and reads each in a session, all columns, after one round that is not counted. Beside each stands the bound: a
data source that sends as many rows of the same bytes and reads nothing, a batch of kafka_log's own again and again.
CPU time is that of the worker from the beginning of its task until it has handed over its last batch but one, without
its imports. Figures are medians of the rounds, in which both take turns.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from log.codecs.compression import Codec
from spark_analysis.data_sources.kafka_log import KafkaLogSource
from spark_analysis.session.spark_session import spark_session
from tests.benchmarks.log_files import Case, CaseFile, write_segment_file
from tests.benchmarks.report import describe_machine, show

SIZE_BYTES: Final = 128 << 20
CASES: Final = (*(Case(100, codec) for codec in (Codec.NONE, Codec.LZ4, Codec.ZSTD)), Case(1024, Codec.NONE))
AIM: Final = 1.5
"""Million records a second of a worker's CPU time."""


def timed_source(times: Path, record_count: int | None) -> type[DataSource]:
    """Return kafka_log as a source that appends the CPU seconds of each task to the file `times`.

    With `record_count` it is the bound: it sends the first batch so often that the rows are as many.
    """

    class TimedReader(DataSourceReader):
        def __init__(self, reader: DataSourceReader) -> None:
            self._reader = reader

        def partitions(self) -> list[InputPartition]:
            return list(self._reader.partitions())

        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
            batches: Iterator[pa.RecordBatch] = self._reader.read(partition)  # type: ignore[assignment]  # Or tuples.
            if record_count is not None:
                batches = repeated(next(batches), record_count)
            start = time.process_time()
            yield from batches
            with times.open("a", encoding="utf-8") as file:
                file.write(f"{time.process_time() - start}\n")

    class TimedSource(KafkaLogSource):
        @classmethod
        def name(cls) -> str:
            return "kafka_log" if record_count is None else "bound"

        def reader(self, schema: StructType) -> DataSourceReader:
            return TimedReader(super().reader(schema))

    return TimedSource


def repeated(batch: pa.RecordBatch, record_count: int) -> Iterator[pa.RecordBatch]:
    """Yield a batch again and again, the last time a part of it, until the rows are `record_count`."""
    for start in range(0, record_count, batch.num_rows):
        yield batch.slice(0, min(batch.num_rows, record_count - start))


def measured(spark: SparkSession, file: CaseFile, times: Path, rounds: int) -> dict[str, object]:
    """Return the row of one case."""
    frames = {}
    for source in (timed_source(times, None), timed_source(times, file.record_count)):
        spark.dataSource.register(source)
        frames[source.name()] = spark.read.format(source.name()).load(str(file.directory))
    rates: dict[str, list[float]] = {name: [] for name in frames}
    for _ in range(rounds + 1):
        for name, frame in frames.items():
            times.write_text("")
            assert counted(frame) == file.record_count
            rates[name].append(file.record_count / float(times.read_text()) / 1e6)
    ours, bound = (statistics.median(rates[name][1:]) for name in frames)
    return {
        "records": file.case.name,
        "million a CPU s": round(ours, 2),
        "least": round(min(rates["kafka_log"][1:]), 2),
        "aim": AIM,
        "sending alone": round(bound, 2),
        "share of CPU that sending takes": f"{100 * ours / bound:.0f} %",
    }


def counted(frame: DataFrame) -> int:
    """Return how many rows Spark is given; it looks at every value."""
    (row,) = frame.agg(F.count("*").alias("n"), F.sum(F.length("value"))).collect()
    return int(row["n"])


def main() -> None:
    """Print millions of records per CPU second of the worker, for each case."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, spark_session(app_name="kafka_log", master="local[1]") as spark:
        times = Path(name) / "times"
        rows = [
            measured(spark, write_segment_file(case, Path(name) / case.name, SIZE_BYTES), times, options.rounds)
            for case in CASES
        ]
    show("Records read with kafka_log", describe_machine("pyarrow", "pyspark"), rows, as_json=options.json)


if __name__ == "__main__":
    main()

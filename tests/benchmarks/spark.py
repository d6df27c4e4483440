"""What the Spark side costs: dumps, DataFrame functions, records of logs, and reports on both engines, in CPU seconds.

`python -m tests.benchmarks.spark PART [--rounds 3] [--json]` measures one of

- frames: the DataFrame functions on `--clusters` of 3 brokers and 12 partitions, a tenth of them with a replica out of
  sync. Rows are read from Parquet and answers thrown away: reading, shuffle and answers.
- dumps: 300 dumps of 3,000 partitions through `kafka_cluster` on a warm session.
- records: segments of 128 MiB through `kafka_log`, in millions of records a CPU second of the worker, beside a source
  that sends as many rows of the same bytes and reads nothing.
- reports: `brokerside report` in a process of its own, on both engines, whose tables are compared byte for byte.

CPU seconds are user and system time of whole process trees: driver, JVM, workers. Figures are medians of the rounds,
after one that is not counted: it compiles loops and modules, which an installation does once.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import attrs
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

import spark_analysis
from broker.entropy import SplitMix64
from log.codecs.compression import Codec
from spark_analysis.data_sources.kafka_log import KafkaLogSource
from spark_analysis.questions import availability, balance, durability, movement, outages, storage, violations
from spark_analysis.session.spark_session import spark_session
from tests.architecture.house import ROOT
from tests.benchmarks.log_files import Case, CaseFile, write_segment_file
from tests.benchmarks.process_tree import MAIN, POLL_SECONDS, tree_cpu_seconds
from tests.benchmarks.report import describe_machine, show

SIZE_BYTES: Final = 128 << 20
LOGS: Final = (*(Case(100, codec) for codec in (Codec.NONE, Codec.LZ4, Codec.ZSTD)), Case(1024, Codec.NONE))
PARTITIONS: Final = 12
TOPICS: Final = 3
FUNCTIONS: Final[dict[str, Callable[..., DataFrame]]] = {
    "balance": balance.measures,
    "violations": violations.violations,
    "outages": outages.outages,
    "clusters": balance.clusters,
    "partitions": violations.partitions,
    "copysets": durability.copysets,
    "held": storage.held,
    "availability": lambda *rows: availability.availability(*rows, assume={"draws": 64}),
    "plans": movement.plans,
    "movement": movement.costs,
}


@attrs.frozen(kw_only=True)
class Dumps:
    """Dumps of clusters that are alike: how many, and their topics, partitions a topic and brokers."""

    dump_count: int
    topic_count: int
    partition_count: int
    broker_count: int


DUMPS: Final = {
    "1 dump of 15 partitions": Dumps(dump_count=1, topic_count=3, partition_count=5, broker_count=5),
    "300 dumps of 3,000": Dumps(dump_count=300, topic_count=100, partition_count=30, broker_count=12),
    "1 dump of 1,000,000": Dumps(dump_count=1, topic_count=20_000, partition_count=50, broker_count=100),
}


def write_dumps(folder: Path, case: Dumps) -> None:
    """Write the dumps of a case, whose replicas are drawn."""
    folder.mkdir()
    for number in range(case.dump_count):
        with (folder / f"cluster-{number:03d}.txt").open("w") as file:
            file.writelines(lines(case, SplitMix64(number)))


def lines(case: Dumps, source: SplitMix64) -> Iterator[str]:
    """Yield the lines of one dump."""
    for topic in range(case.topic_count):
        start = f"Topic: topic-{topic}\t"
        settings = "Configs: min.insync.replicas=2,segment.bytes=1073741824"
        yield f"{start}TopicId: Ab12cdEFghIJklMNopQRst\tPartitionCount: {case.partition_count}\tReplicationFactor: 3\t"
        yield f"{settings}\n"
        for partition in range(case.partition_count):
            first = source.next_int_bound(case.broker_count)
            step = 1 + source.next_int_bound(case.broker_count // 2 - 1)
            replicas = ",".join(str((first + step * place) % case.broker_count) for place in range(3))
            end = f"Leader: {first}\tReplicas: {replicas}\tIsr: {replicas}\tElr: \tLastKnownElr: \n"
            yield f"\t{start}Partition: {partition}\t{end}"


def spent(work: Callable[[], object]) -> float:
    """CPU seconds of this process and all below it while it works."""
    start = tree_cpu_seconds(os.getpid())
    work()
    return tree_cpu_seconds(os.getpid()) - start


def used(frame: DataFrame) -> None:
    """Let Spark take every row with every column."""
    frame.write.format("noop").mode("overwrite").save()


def tiny_clusters(spark: SparkSession, count: int) -> DataFrame:
    """Rows of so many clusters; leaders and their followers go round the brokers, from another one in each topic."""
    rows = spark.range(count * PARTITIONS).select(
        F.format_string("cluster-%07d", F.expr(f"id div {PARTITIONS}")).alias("cluster"),
        F.expr(f"concat('topic-', id % {TOPICS})").alias("topic"),
        F.expr(f"cast(id % {PARTITIONS} div {TOPICS} as int)").alias("partition"),
        F.expr("cast((xxhash64(id) & 1023) % 3 as int)").alias("first"),
        F.expr(f"xxhash64(id div {PARTITIONS}) % 10 = 0 and id % {PARTITIONS} = 5").alias("is_lagging"),
    )
    replicas = F.expr("array(first, (first + 1) % 3, (first + 2) % 3)")
    return rows.select(
        "cluster", "topic", "partition", F.col("first").alias("leader"), replicas.alias("replicas"),
        F.when(F.col("is_lagging"), F.slice(replicas, 1, 2)).otherwise(replicas).alias("isr"),
        F.lit(2).alias("min_insync_replicas"),
    )  # fmt: skip


def frames(cluster_counts: list[int]) -> list[dict[str, object]]:
    """Ask each function about tiny clusters."""
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as name, spark_session(app_name="frames", master="local[2]") as spark:
        for count in (100, *cluster_counts):
            path = str(Path(name) / str(count))
            tiny_clusters(spark, count).write.parquet(path)
            for function, asked in FUNCTIONS.items():
                asks = functools.partial(asked_of, spark, asked, path)
                taken = spent(asks)
                rows.append(
                    {"function": function, "clusters": count, "CPU ms a cluster": round(1e3 * taken / count, 3)}
                )
    return rows[len(FUNCTIONS) :]


def asked_of(spark: SparkSession, function: Callable[[DataFrame], DataFrame], path: str) -> None:
    """Ask a function about the clusters of a Parquet folder, and use all of its answer."""
    used(function(spark.read.parquet(path)))


def dumps(rounds: int) -> list[dict[str, object]]:
    """Read 300 dumps: a row a cluster, a row a partition, and partitions counted by cluster."""
    with tempfile.TemporaryDirectory() as name, spark_session(app_name="dumps", master="local[2]") as spark:
        write_dumps(Path(name) / "dumps", DUMPS["300 dumps of 3,000"])
        spark_analysis.register(spark)
        frame = spark.read.format("kafka_cluster")
        of_clusters = spark.read.format("kafka_cluster").option("table", "clusters").load(f"{name}/dumps")
        of_partitions = frame.load(f"{name}/dumps")
        reads = {
            "a row per cluster": of_clusters,
            "a row per partition": of_partitions,
            "leaderless partitions by cluster": of_partitions.where("leader = -1").groupBy("cluster").count(),
        }
        taken = {what: [spent(functools.partial(used, one)) for _ in range(rounds + 1)] for what, one in reads.items()}
    return [{"read": what, "CPU s": round(statistics.median(some[1:]), 2)} for what, some in taken.items()]


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
        "sending alone": round(bound, 2),
        "share of CPU that sending takes": f"{100 * ours / bound:.0f} %",
    }


def counted(frame: DataFrame) -> int:
    """Return how many rows Spark is given; it looks at every value."""
    (row,) = frame.agg(F.count("*").alias("n"), F.sum(F.length("value"))).collect()
    return int(row["n"])


def records(rounds: int) -> list[dict[str, object]]:
    """Read the segments of each case."""
    with tempfile.TemporaryDirectory() as name, spark_session(app_name="kafka_log", master="local[1]") as spark:
        files = [write_segment_file(case, Path(name) / case.name, SIZE_BYTES) for case in LOGS]
        return [measured(spark, file, Path(name) / "times", rounds) for file in files]


def process_cpu_seconds(words: list[str]) -> float:
    """Return the CPU of a process and of all that it starts."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(words, cwd=ROOT, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    seen = 0.0
    while process.poll() is None:
        with contextlib.suppress(KeyError):  # It has just ended.
            seen = max(seen, tree_cpu_seconds(process.pid))
        time.sleep(POLL_SECONDS)
    assert process.returncode == 0, words
    return seen


def digests(out: Path) -> dict[str, str]:
    """Return the digest of each file of the tables."""
    paths = sorted((out / "tables").rglob("*.parquet"))
    return {str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def reports(rounds: int) -> list[dict[str, object]]:
    """Write each report on both engines."""
    rows: list[dict[str, object]] = []
    for name, case in DUMPS.items():
        with tempfile.TemporaryDirectory() as folder:
            write_dumps(Path(folder) / "dumps", case)
            found, taken = {}, {}
            for engine in ("local", "spark"):
                out = Path(folder) / engine
                words = ["report", f"{folder}/dumps", "--engine", engine, "--quiet", "--out", str(out)]
                command = [sys.executable, "-c", MAIN, *words]
                taken[engine] = [process_cpu_seconds(command) for _ in range(rounds + 1)][1:]
                found[engine] = digests(out)
            assert found["local"] == found["spark"], "the engines differ"
        rows += [{"report": name, "engine": one, "CPU s": statistics.median(some)} for one, some in taken.items()]
    return rows


def main() -> None:
    """Measure one part, and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("frames", "dumps", "records", "reports"))
    parser.add_argument("--clusters", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    parts = {"dumps": dumps, "records": records, "reports": reports}
    rows = frames(options.clusters) if options.part == "frames" else parts[options.part](options.rounds)
    show(f"Spark: {options.part}", describe_machine("pyarrow", "pyspark"), rows, as_json=options.json)


if __name__ == "__main__":
    main()

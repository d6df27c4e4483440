"""The parts of the table of costs: what each measures, by the benchmarks that also run alone."""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

import attrs
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from log.codecs.compression import Codec
from spark_analysis.fleet.reading import load_recipe
from spark_analysis.session.spark_session import spark_session
from tests.benchmarks import data_sources, dumps_on_spark, engines, fleet, fleet_tail, log_jobs, risks, traffic
from tests.benchmarks.log_files import Case, write_segment_file
from tests.benchmarks.process_tree import tree_cpu_seconds

DUMPED: Final = Case(100, Codec.NONE)
DUMPED_BYTES: Final = 512 << 20
DUMPED_AT_ONCE: Final = 8
SHARED: Final = ("verify", "stats")
SHARED_BYTES: Final = 8 << 30
AIM_OF_REPLICAS: Final = 45.0
SHUFFLED_ROWS: Final = 2_400_000
MOVED_CLUSTERS: Final = 200


@attrs.frozen(kw_only=True)
class Figure:
    """Hold one figure, its unit, and the aim that it is to reach, None where it has none."""

    what: str
    found: float
    unit: str = "CPU s"
    aim: float | None = None
    sign: Literal["at most", "at least"] = "at most"


def records(options: Namespace) -> list[Figure]:
    """Measure kafka_log beside a data source that sends the same batches and reads nothing."""
    figures = []
    with (
        tempfile.TemporaryDirectory() as name,
        spark_session(app_name="kafka_log", master="local[1]") as spark,
    ):
        for case in data_sources.CASES:
            file = write_segment_file(case, Path(name) / case.name, data_sources.SIZE_BYTES)
            row = data_sources.measured(spark, file, Path(name) / "times", options.rounds)
            unit = "M records per worker CPU s"
            said = f"`kafka_log` with values, {case.name}"
            found, sent = float(str(row["million a CPU s"])), float(str(row["sending alone"]))
            figures.append(Figure(what=said, found=found, unit=unit, aim=data_sources.AIM, sign="at least"))
            figures.append(Figure(what=f"the same rows sent, nothing read, {case.name}", found=sent, unit=unit))
    return figures


def replicas(options: Namespace) -> list[Figure]:
    """Measure the fleet job on Spark, DuckDB and Polars, and its growth."""
    base, figures = load_recipe("three-hundred-million"), []
    sizes = {"100 M": 100_000_000, "300 M": 300_000_000} | ({"1,000 M": 1_000_000_000} if options.billion else {})
    with (
        tempfile.TemporaryDirectory() as name,
        spark_session(app_name="fleet", master="local[2]") as spark,
    ):
        for _ in range(fleet.WARM_UP_ROUNDS):
            fleet.run_spark(spark, attrs.evolve(base, cluster_count=1_000), Path(name) / "warm")
        for said, count in sizes.items():
            recipe = attrs.evolve(base, cluster_count=count // fleet.REPLICAS_PER_CLUSTER)
            beside = said == "300 M"
            rounds = 1 if count == sizes.get("1,000 M") else options.rounds
            asked = Namespace(rounds=rounds, only_spark=not beside, by_topic=False)
            for row in fleet.compared(spark, recipe, Path(name), asked):
                figures += _of_engine(said, row, beside)
    return figures


def _of_engine(said: str, row: dict[str, float | str], beside: bool) -> list[Figure]:
    rate = Figure(
        what=f"{said} replicas with a row per broker, {row['engine']}",
        found=float(row["replicas_per_cpu_second"]) / 1e6,
        unit="M replicas per CPU s",
        aim=AIM_OF_REPLICAS if row["engine"] == "Spark" else None,
        sign="at least",
    )
    if row["engine"] == "Spark":
        return [rate]
    ratio = float(row["cpu_ratio_to_spark"])
    return [
        rate,
        Figure(what=f"CPU of {row['engine']} against Spark's", found=ratio, unit="times", aim=2.0, sign="at least"),
    ]


def tail(options: Namespace) -> list[Figure]:
    """Measure fleets of clusters of 3 brokers: what cannot be shared out, and how the rest grows."""
    figures = []
    costs = fleet_tail.tail_costs(fleet_tail.CLUSTER_COUNTS)
    for cost in costs:
        of = f"of {cost.cluster_count:,} clusters of 3 brokers"
        each = Figure(what=f"workers a cluster, {of}", found=cost.workers_ms_per_cluster, unit="CPU ms")
        figures += [each, Figure(what=f"workers, {of}", found=cost.workers_cpu_s)]
    last = costs[-1]
    of = f"of {last.cluster_count:,} clusters"
    return [
        *figures,
        Figure(what=f"driver {of}: rank, read, page", found=last.driver_cpu_s, aim=5.0),
        Figure(what=f"JVM {of}: planning, and rows of the workers", found=last.jvm_cpu_s),
        Figure(what=f"page {of}", found=last.page_bytes / 1e6, unit="MB", aim=5.0),
        Figure(what=f"memory of the driver {of}", found=last.driver_memory_bytes / 1e9, unit="GB", aim=0.5),
    ]


def dumps(options: Namespace) -> list[Figure]:
    """Measure 300 dumps on a warm session."""
    found = dumps_on_spark.dumps_cpu_seconds(options.rounds)
    name = dumps_on_spark.CASE.name
    return [Figure(what=f"{name}, `kafka_cluster`, {what}", found=taken, aim=5.0) for what, taken in found.items()]


def reports(options: Namespace) -> list[Figure]:
    """Measure `brokerside report` in a process of its own, on both engines."""
    figures = []
    with tempfile.TemporaryDirectory() as name:
        for key, case in engines.CASES.items():
            folder = Path(name) / key
            folder.mkdir()
            for row in engines.measured(case, folder, options.rounds):
                aim = case.aim_cpu_s if row["engine"] == "local" else None
                said = f"`brokerside report --engine {row['engine']}`, {case.name}"
                figures.append(Figure(what=said, found=float(str(row["CPU s"])), aim=aim))
    return figures


def dumped(options: Namespace) -> list[Figure]:
    """Measure `brokerside log dump --out` of a segment of 512 MiB, of eight, and of a small one: the process's start.

    The eight are one file under eight names. A round before the others compiles loops, and is not counted.
    """
    taken: dict[str, list[float]] = {"whole": [], "small": [], "eight": []}
    with tempfile.TemporaryDirectory() as name:
        files = {
            "whole": write_segment_file(DUMPED, Path(name) / "whole", DUMPED_BYTES),
            "small": write_segment_file(DUMPED, Path(name) / "small", 1),
        }
        given = {size: [str(file.path)] for size, file in files.items()} | {"eight": []}
        for number in range(DUMPED_AT_ONCE):
            directory = Path(name) / f"eight-{number}"
            directory.mkdir()
            (directory / files["whole"].path.name).hardlink_to(files["whole"].path)
            given["eight"].append(str(directory))
        for _ in range(options.rounds + 1):
            for size, paths in given.items():
                with tempfile.TemporaryDirectory(dir=name) as out:
                    words = ["log", "dump", *paths, "--out", out]
                    taken[size].append(engines.cpu_seconds([sys.executable, "-c", engines.MAIN, *words]))
    whole, small, eight = (statistics.median(some[1:]) for some in taken.values())
    unit, said = "M records per CPU s", f"`log dump --out`, {DUMPED_BYTES >> 20} MiB of records of {DUMPED.name}"
    more_count = files["whole"].record_count - files["small"].record_count
    return [
        Figure(what=said, found=files["whole"].record_count / whole / 1e6, unit=unit, aim=3.0, sign="at least"),
        Figure(
            what=f"{DUMPED_AT_ONCE} of these",
            found=DUMPED_AT_ONCE * files["whole"].record_count / eight / 1e6,
            unit=unit,
        ),
        Figure(what="the same without the start of the process", found=more_count / (whole - small) / 1e6, unit=unit),
        Figure(what="the start of the process, with 20,000 records", found=small),
    ]


def shared(options: Namespace) -> list[Figure]:
    """Measure what two jobs bring to commands on logs, and the recovery of a directory of small partitions."""
    said = f"two jobs against one by the clock, {SHARED_BYTES >> 30} GiB of records, `log "
    figures = [
        Figure(what=f"{said}{row['log']}`", found=float(str(row["clock"])), unit="times", aim=1.8, sign="at least")
        for row in log_jobs.speed_ups(SHARED, SHARED_BYTES, options.rounds)
    ]
    count = log_jobs.PARTITION_COUNT
    taken = log_jobs.recovery_cpu_seconds(count)
    return [*figures, Figure(what=f"`log recover` of {count:,} small partitions", found=taken, aim=40.0)]


def crossing(options: Namespace) -> list[Figure]:
    """Measure what 10,000 groups fetch across zones."""
    name = f"{traffic.PLAN.group_count * traffic.CLUSTER_COUNT:,} groups across zones"
    model, on_spark = traffic.group_costs(options.rounds)
    return [
        Figure(what=f"{name}, all questions in process", found=model, aim=60.0),
        Figure(what=f"{name}, `traffic.groups` on Spark", found=on_spark, aim=60.0),
    ]


def risky(_options: Namespace) -> list[Figure]:
    """Measure draws of outages and years of losses."""
    alone, whole = risks.draw_costs(10)
    figures = [
        Figure(what="10^11 partition-draws of outages, drawing alone", found=alone, aim=20.0),
        Figure(what="the same with making and placing the clusters", found=whole, aim=20.0),
    ]
    for placer, rate in risks.year_rates(10).items():
        said = f"years of losses, 1,000 brokers in 3 racks, {placer}"
        figures.append(Figure(what=said, found=rate, unit="cluster-years per CPU s", aim=500.0, sign="at least"))
    return figures


def shuffled(options: Namespace) -> list[Figure]:
    """Measure a groupBy of 2.4 million rows with adaptive execution, as our sessions have it, and without."""
    key = "spark.sql.adaptive.enabled"
    with spark_session(app_name="adaptive", master="local[2]") as spark:
        taken: dict[str, list[float]] = {"true": [], "false": []}
        for _ in range(options.rounds + 1):
            for value, some in taken.items():
                spark.conf.set(key, value)
                before = tree_cpu_seconds(os.getpid())
                grouped(spark)
                some.append(tree_cpu_seconds(os.getpid()) - before)
    return [
        Figure(what=f"groupBy of {SHUFFLED_ROWS:,} rows, adaptive execution {said}", found=statistics.median(some[1:]))
        for said, some in zip(("on", "off"), taken.values(), strict=True)
    ]


def grouped(spark: SparkSession) -> None:
    """Count rows by cluster and broker."""
    rows = spark.range(SHUFFLED_ROWS).select((F.col("id") % 300).alias("cluster"), (F.col("id") % 12).alias("broker"))
    rows.groupBy("cluster", "broker").count().write.format("noop").mode("overwrite").save()


def moved(options: Namespace) -> list[Figure]:
    """Measure certified plans of clusters of a recipe, in process."""
    with tempfile.TemporaryDirectory() as name:
        words = ["fleet", "uneven-racks", "--engine", "local", "--quiet", "--out", name, "--clusters"]
        command = [sys.executable, "-c", engines.MAIN, *words, str(MOVED_CLUSTERS)]
        with_plans, without = engines.cpu_seconds([*command, "--ask", "movement"]), engines.cpu_seconds(command)
    each = 1e3 * (with_plans - without) / MOVED_CLUSTERS
    return [Figure(what="four certified plans of a cluster of uneven racks, both placers", found=each, unit="CPU ms")]


PARTS: Final[dict[str, Callable[[Namespace], list[Figure]]]] = {
    "records": records,
    "replicas": replicas,
    "tail": tail,
    "dumps": dumps,
    "reports": reports,
    "dumped": dumped,
    "jobs": shared,
    "risks": risky,
    "traffic": crossing,
    "movement": moved,
    "adaptive": shuffled,
}

"""Measure what a fleet of many small clusters costs where it cannot be shared out: on the driver.

`python -m tests.benchmarks.fleet_tail [--clusters 1000 10000 100000]` makes fleets of clusters of 3 brokers and 20
partitions on local[2], from the recipe to the written page, as `brokerside fleet` does, after one small fleet that
warms the session. CPU seconds are of this process (the driver: ranking, reading, drawing), of the JVM, whose threads
plan jobs and carry rows, and of the Python workers, which are the executors' part; memory is the most that this
process held, every fifth of a second.
"""

from __future__ import annotations

import argparse
import functools
import os
import tempfile
from pathlib import Path
from typing import Final

import attrs
from pyspark.sql import SparkSession

from spark_analysis.engines.spark import SparkEngine
from spark_analysis.fleet.recipe import RackPlan, Recipe, Shape, Span, TopicPlan
from spark_analysis.jobs import analyse_fleet
from spark_analysis.report.load import load_report
from spark_analysis.report.model import RunInfo
from spark_analysis.report.write import write_for_programs, write_page
from spark_analysis.session.spark_session import spark_session
from tests.benchmarks.fleet import QUIET, Account, measured, own_cpu_seconds, own_memory_bytes
from tests.benchmarks.process_tree import jvm_of, process_cpu_seconds, tree_cpu_seconds

CLUSTER_COUNTS: Final = (1_000, 10_000, 100_000)
WARM_UP_CLUSTERS: Final = 8_000  # Long enough for the JVM to have compiled what a task needs.
INFO: Final = RunInfo(kind="fleet", title="small clusters", command="benchmark", version="0")


@attrs.frozen(kw_only=True)
class TailCost:
    """Hold what one fleet costs: CPU seconds of driver, JVM and workers; bytes of memory and of the page."""

    cluster_count: int
    driver_cpu_s: float
    jvm_cpu_s: float
    workers_cpu_s: float
    driver_memory_bytes: int
    page_bytes: int

    @property
    def workers_ms_per_cluster(self) -> float:
        """Return the workers' CPU milliseconds of one cluster."""
        return 1e3 * self.workers_cpu_s / self.cluster_count


def recipe_of(cluster_count: int) -> Recipe:
    """Return a recipe of clusters of 3 brokers and 20 partitions."""
    shape = Shape(
        name="3 brokers",
        brokers=Span(3, 3),
        racks=RackPlan(()),
        topics=TopicPlan(Span(4, 4), (5,), ((3, 1),)),
    )
    return Recipe(name="small clusters", cluster_count=cluster_count, seed=1, shapes=(shape,))


def run_fleet(spark: SparkSession, cluster_count: int, out: Path) -> None:
    """Make the fleet, its tables, its page and the files for programs."""
    analyse_fleet(SparkEngine(spark), recipe_of(cluster_count), out, progress=QUIET, overwrite=True)
    report = load_report(out, INFO)
    write_page(out, report)
    write_for_programs(out, report)


def tail_cost(spark: SparkSession, cluster_count: int, out: Path) -> TailCost:
    """Return what one fleet costs."""
    jvm = jvm_of(os.getpid())
    before = process_cpu_seconds(jvm), tree_cpu_seconds(jvm)
    cost = measured(functools.partial(run_fleet, spark, cluster_count, out), Account(own_cpu_seconds, own_memory_bytes))
    jvm_cpu_s, tree_cpu_s = process_cpu_seconds(jvm) - before[0], tree_cpu_seconds(jvm) - before[1]
    return TailCost(
        cluster_count=cluster_count,
        driver_cpu_s=cost.cpu_seconds,
        jvm_cpu_s=jvm_cpu_s,
        workers_cpu_s=tree_cpu_s - jvm_cpu_s,
        driver_memory_bytes=cost.memory_bytes,
        page_bytes=(out / "report.html").stat().st_size,
    )


def tail_costs(cluster_counts: tuple[int, ...]) -> list[TailCost]:
    """Return what fleets of these sizes cost, in one session."""
    with (
        tempfile.TemporaryDirectory() as name,
        spark_session(app_name="fleet tail", master="local[2]") as spark,
    ):
        run_fleet(spark, WARM_UP_CLUSTERS, Path(name) / "warm-up")
        return [tail_cost(spark, count, Path(name) / str(count)) for count in cluster_counts]


def main() -> None:
    """Print a line for each size."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--clusters", nargs="+", type=int, default=list(CLUSTER_COUNTS))
    for cost in tail_costs(tuple(parser.parse_args().clusters)):
        print(
            f"{cost.cluster_count:>9,} clusters: driver {cost.driver_cpu_s:.2f} CPU s, JVM {cost.jvm_cpu_s:.2f}, "
            f"workers {cost.workers_cpu_s:.2f}, {cost.workers_ms_per_cluster:.3f} ms a cluster; driver "
            f"{cost.driver_memory_bytes / 1e9:.2f} GB, page {cost.page_bytes / 1e6:.1f} MB"
        )


if __name__ == "__main__":
    main()

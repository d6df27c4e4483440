"""What jobs on Spark cost: CPU seconds of driver, JVM and Python workers, by what is asked of how many clusters.

    python -m tests.benchmarks.spark_costs [--clusters 2000] [--small 2000] [--rounds 1] [--cold] [--json]

Clusters are those of the recipe `demo`, as its placers place them; small ones have 3 brokers and 20 partitions. Rows go
to Parquet, as Spark's writer or the job writes it. The session has two cores, shuffles to eight tasks, and each job has
run before on two clusters. The last row is a whole command in a process of its own, with the start of Spark.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import attrs
from pyspark.sql import DataFrame, SparkSession

from spark_analysis import register
from spark_analysis.fleet.reading import load_recipe
from spark_analysis.fleet.recipe import Recipe
from spark_analysis.jobs import analyse_fleet
from spark_analysis.questions import balance
from spark_analysis.session.spark_session import spark_session
from spark_analysis.spark_engine import SparkEngine
from tests.benchmarks.fleet import QUIET, Account, measured, median, tree_cpu_seconds, tree_memory_bytes
from tests.benchmarks.report import describe_machine, show

WARM_UP_CLUSTERS = 2
OPTIONS = {"spark.sql.shuffle.partitions": "8"}
KEYS = ("cluster", "placer")
DUMPS = Path(__file__).parents[1] / "real_data" / "multiregion"
SMALL = """
[fleet]
name = "small clusters"
clusters = 1
seed = 1

[[shape]]
name = "3 brokers"
brokers = 3
racks = "none"
placer = "classic"
topics = { count = 4, partitions = 5, factor = 3 }
"""
Job = Callable[[int, Path], object]


def questions(spark: SparkSession) -> Mapping[str, Job]:
    """Jobs on the rows of the data source kafka_fleet, by name."""

    def rows(table: str, count: int) -> DataFrame:
        source = spark.read.format("kafka_fleet").option("table", table).option("clusters", count)
        return source.load("demo")

    def asked(question: Callable[..., DataFrame], count: int, out: Path) -> None:
        found = question(rows("partitions", count), rows("brokers", count), by=KEYS)
        found.write.mode("overwrite").parquet(str(out))

    def read(count: int, out: Path) -> None:
        rows("partitions", count).write.mode("overwrite").parquet(str(out))

    return {
        "kafka_fleet": read,
        "balance.measures": partial(asked, balance.measures),
        "balance.clusters": partial(asked, balance.clusters),
    }


def run_fleet(spark: SparkSession, recipe: Recipe, count: int, out: Path) -> None:
    """The job of `brokerside fleet`, without the page."""
    analyse_fleet(SparkEngine(spark), attrs.evolve(recipe, cluster_count=count), out, progress=QUIET, overwrite=True)


def command_seconds(*words: str, **environment: str) -> float:
    """CPU seconds of a command of ours, with all processes that it starts and awaits."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    given = [sys.executable, "-m", "spark_analysis", *words, "--engine", "spark", "--quiet"]
    subprocess.run(given, check=True, capture_output=True, env=os.environ | environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compiling(out: Path) -> Iterator[dict[str, object]]:
    """What compiling kernels costs a first job where none is compiled, as on a fresh executor: the same run again."""
    dumps = [str(path.resolve()) for path in sorted(DUMPS.glob("?-*.txt"))]
    for command in (["fleet", "uneven-racks", "--clusters", "40"], ["report", *dumps]):
        cache = {"NUMBA_CACHE_DIR": str(out / f"cache-{command[0]}")}
        first, again = (command_seconds(*command, "--out", str(out / "cold"), **cache) for _ in range(2))
        yield row(f"{command[0]}: kernels compiled in a first run", 1, first - again)


def costs(clusters: int, small: int, rounds: int) -> list[dict[str, object]]:
    """Run every job."""
    found = []
    with tempfile.TemporaryDirectory() as name:
        out = Path(name)
        (out / "small.toml").write_text(SMALL, encoding="utf-8")
        with spark_session(app_name="costs", master="local[2]", options=OPTIONS) as spark:
            register(spark)
            demo, few = load_recipe("demo"), load_recipe(str(out / "small.toml"))
            jobs = {what: (job, clusters) for what, job in questions(spark).items()}
            jobs["fleet"] = partial(run_fleet, spark, demo), clusters
            jobs["fleet of small clusters"] = partial(run_fleet, spark, few), small
            account = Account(partial(tree_cpu_seconds, os.getpid()), partial(tree_memory_bytes, os.getpid()))
            for what, (job, count) in jobs.items():
                job(WARM_UP_CLUSTERS, out / "out")
                cost = median([measured(partial(job, count, out / "out"), account) for _ in range(rounds)])
                found.append(row(what, count, cost.cpu_seconds))
        report = ["report", *map(str, sorted(DUMPS.glob("?-*.txt"))), "--out", str(out / "report")]
        found.append(row("report of six dumps, with the start of Spark", 1, command_seconds(*report)))
    return found


def row(what: str, count: int, cpu_seconds: float) -> dict[str, object]:
    """The row of one job."""
    ms = round(1e3 * cpu_seconds / count, 1)
    return {"what": what, "clusters": count, "CPU s": round(cpu_seconds, 1), "CPU ms a cluster": ms}


def main() -> None:
    """Run what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clusters", type=int, default=2_000, help="clusters of the recipe demo")
    parser.add_argument("--small", type=int, default=2_000, help="clusters of 3 brokers")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--cold", action="store_true", help="only what compiling kernels costs a first job")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.cold:
        with tempfile.TemporaryDirectory() as name:
            rows = list(compiling(Path(name)))
    else:
        rows = costs(options.clusters, options.small, options.rounds)
    show("Spark's costs", describe_machine("numpy", "pyarrow", "pyspark"), rows, as_json=options.json)


if __name__ == "__main__":
    main()

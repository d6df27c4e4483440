"""How many replicas a CPU-second of the fleet job places, counts and measures; DuckDB and Polars beside it.

`python -m tests.benchmarks.fleet --replicas 300M` makes clusters of 100 brokers and 200 topics of 50
partitions, factor 3 (no multiple of the brokers, or round robin would come out even by itself), and
prints the median of several rounds. What is timed ends with two Parquet tables on disk: a row per broker,
and the measures of each cluster over its brokers.

CPU seconds are those of the JVM and all Python workers, ended ones included, from /proc, after a smaller job
has warmed the session; DuckDB and Polars run in this process and are charged what it uses. They get the
start index and shift of every topic as an input table, made outside the timing, which the Spark
job draws itself; their counts and measures must come out equal.

Left out: topics and pairs of brokers, which `--by-topic` adds to the Spark job alone.
"""

from __future__ import annotations

import argparse
import functools
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import duckdb
import numpy as np
import polars as pl
import pyarrow as pa

from pyspark.sql import SparkSession

from broker.entropy import JavaRandom
from spark_analysis import balance, schemas
from spark_analysis.fleet.generate import Fleet, make_cluster
from spark_analysis.fleet.place import classic_draws, placer_seed
from spark_analysis.fleet.reading import load_recipe
from spark_analysis.fleet.recipe import Recipe

from spark_analysis.session import spark_session
from spark_analysis.tables import read_table, write_table

REPLICAS_PER_CLUSTER = 30_000
BROKERS, PARTITIONS = 100, 50
COLUMNS = ("total", "min", "max", "stdev", "gini", "moves")
TICKS = os.sysconf("SC_CLK_TCK")


@attrs.frozen
class Cost:
    """What one round took."""

    wall_seconds: float
    cpu_seconds: float


def tree_cpu_seconds(root: int) -> float:
    """CPU of a process and everything below it; children that ended are in their parent's account."""
    stats: dict[int, tuple[int, int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            stats[int(entry.name)] = int(fields[1]), sum(map(int, fields[11:15]))

    def below(process: int) -> int:
        return stats[process][1] + sum(below(child) for child, (parent, _) in stats.items() if parent == process)

    return below(root) / TICKS


def own_cpu_seconds() -> float:
    """CPU of this process, all threads."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def measured(work: Callable[[], Any], cpu: Callable[[], float]) -> Cost:
    """Run `work` once."""
    started, used = time.perf_counter(), cpu()
    work()
    return Cost(time.perf_counter() - started, cpu() - used)


def run_spark(spark: SparkSession, recipe: Recipe, out: Path, *, by_topic: bool = False) -> None:
    """The fleet job up to its rows per broker and its measures, as jobs.py runs it."""
    stage = fleet_stage(spark, Fleet.of(recipe), by_topic=by_topic).persist(StorageLevel.MEMORY_AND_DISK)
    write_table(balance.measures(stage), schemas.MEASURES, out, overwrite=True)
    write_table(balance.nested_table(stage, schemas.BROKERS), schemas.BROKERS, out, overwrite=True)
    if by_topic:
        write_table(balance.nested_table(stage, schemas.TOPICS), schemas.TOPICS, out, overwrite=True)
    stage.unpersist()


def draws(recipe: Recipe) -> pa.Table:
    """Start index and first shift of each topic: what the classic placer draws."""
    fleet = Fleet.of(recipe)
    starts, shifts = [], []
    for number in range(recipe.cluster_count):
        cluster = make_cluster(fleet, number)
        start, shift = classic_draws(cluster, JavaRandom(placer_seed(cluster, "classic", seed=recipe.seed)))
        starts.append(start)
        shifts.append(shift)
    clusters = np.repeat(np.arange(recipe.cluster_count, dtype=np.int32), len(starts[0]))
    return pa.table({"cluster": clusters, "start": np.concatenate(starts), "shift": np.concatenate(shifts)})


PLACED = f"""
    with placed as (
        select cluster, (p + start) % {BROKERS} as leader, shift + p // {BROKERS} as shift
        from draws, range({PARTITIONS}) r(p)
    ), held as (
        select cluster, j, case when j = 0 then leader
            else (leader + 1 + (shift + j - 1) % {BROKERS - 1}) % {BROKERS} end as broker
        from placed, range(3) f(j)
    ), counted as (
        select cluster, broker, count(*) as replicas, count(*) filter (j = 0) as leaders from held group by all
    )
    select c.cluster, b.broker, coalesce(replicas, 0) as replicas, coalesce(leaders, 0) as leaders
    from (select distinct cluster from draws) c cross join range({BROKERS}) b(broker)
    left join counted using (cluster, broker)
"""
MEASURED = """
    with long as (unpivot brokers on replicas, leaders into name quantity value x),
    ranked as (
        select *, row_number() over (partition by cluster, quantity order by x) as i,
            count(*) over w as n, sum(x) over w as total from long window w as (partition by cluster, quantity)
    )
    select cluster, quantity, any_value(total)::bigint as total, min(x) as min, max(x) as max, stddev_pop(x) as stdev,
        sum((2 * i - n - 1) * x) / any_value(n * total) as gini,
        greatest(sum(greatest(x - ceil(total / n), 0)), sum(greatest(floor(total / n) - x, 0)))::bigint as moves
    from ranked group by all
"""


def run_duckdb(given: pa.Table, out: Path) -> None:
    """The same in DuckDB, on as many threads as there are cores."""
    with duckdb.connect() as database:
        database.register("draws", given)
        database.execute(f"copy ({PLACED}) to '{out / 'brokers.parquet'}' (codec zstd)")
        database.execute(f"create view brokers as from '{out / 'brokers.parquet'}'")
        database.execute(f"copy ({MEASURED}) to '{out / 'measures.parquet'}' (codec zstd)")


def run_polars(given: pa.Table, out: Path) -> None:
    """The same in Polars."""
    topics = pl.from_arrow(given).lazy()  # type: ignore[union-attr]
    placed = (
        topics.with_columns(p=pl.lit(list(range(PARTITIONS))))
        .explode("p")
        .select(
            "cluster", leader=(pl.col("p") + pl.col("start")) % BROKERS, shift=pl.col("shift") + pl.col("p") // BROKERS
        )
    )
    follower = [
        ((pl.col("leader") + 1 + (pl.col("shift") + j) % (BROKERS - 1)) % BROKERS).alias(f"f{j}") for j in range(2)
    ]
    held = placed.select("cluster", "leader", *follower).unpivot(index="cluster", value_name="broker")
    counted = held.group_by("cluster", "broker").agg(
        replicas=pl.len().cast(pl.Int64), leaders=(pl.col("variable") == "leader").sum().cast(pl.Int64)
    )
    grid = (
        topics.select("cluster")
        .unique()
        .join(pl.LazyFrame({"broker": range(BROKERS)}, schema={"broker": pl.Int64}), how="cross")
    )
    whole = grid.join(counted.with_columns(pl.col("broker").cast(pl.Int64)), on=["cluster", "broker"], how="left")
    brokers = whole.with_columns(pl.col("replicas", "leaders").fill_null(0)).collect(engine="streaming")
    brokers.write_parquet(out / "brokers.parquet")
    x, n = pl.col("x"), pl.len()
    total = x.sum()
    weights = 2 * pl.int_range(1, n + 1) - n.cast(pl.Int64) - 1
    floor, ceiling = total // n, (total + n - 1) // n
    brokers.lazy().unpivot(["replicas", "leaders"], index="cluster", variable_name="quantity", value_name="x").group_by(
        "cluster", "quantity"
    ).agg(
        total=total,
        min=x.min(),
        max=x.max(),
        stdev=x.std(ddof=0),
        gini=(weights * x.sort()).sum() / (n * total),
        moves=pl.max_horizontal((x - ceiling).clip(0).sum(), (floor - x).clip(0).sum()),
    ).collect(engine="streaming").write_parquet(out / "measures.parquet")


def ours(out: Path) -> pl.DataFrame:
    """The measures of the Spark job in the columns of the others."""
    rows: Any = pl.from_arrow(read_table(out, schemas.MEASURES))
    return rows.select(pl.col("cluster_id").alias("cluster").cast(pl.Int64), "quantity", *COLUMNS)


def check_equal(expected: pl.DataFrame, found: pl.DataFrame) -> None:
    """Refuse to print figures of different work."""
    key = ["cluster", "quantity"]
    one, other = (
        frame.select(pl.col("cluster").cast(pl.Int64), "quantity", *(pl.col(c).cast(pl.Float64) for c in COLUMNS)).sort(
            key
        )
        for frame in (expected, found)
    )
    assert one.select(key).equals(other.select(key)), "not the same clusters"
    for column in COLUMNS:
        assert np.allclose(one[column], other[column], rtol=1e-9, atol=1e-9), column


def count(text: str) -> int:
    """Read 300M, 1B or a plain number."""
    scale = {"k": 10**3, "m": 10**6, "b": 10**9}.get(text[-1].lower())
    return int(text) if scale is None else int(float(text[:-1]) * scale)


def report(name: str, replica_count: int, costs: list[Cost]) -> None:
    """Print one line: medians."""
    wall, cpu = (statistics.median(getattr(cost, field) for cost in costs) for field in ("wall_seconds", "cpu_seconds"))
    rates = f"{replica_count / cpu / 1e6:8.1f} M/cpu-s {replica_count / wall / 1e6:8.1f} M/s"
    print(f"{name:8} {replica_count / 1e6:7.0f} M replicas {wall:8.2f} s wall {cpu:8.2f} s cpu {rates}", flush=True)


def main() -> None:
    """Run what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicas", nargs="+", default=["30M", "100M", "300M"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--only-spark", action="store_true")
    parser.add_argument("--by-topic", action="store_true")
    arguments = parser.parse_args()
    base = load_recipe("three-hundred-million")
    with (
        tempfile.TemporaryDirectory() as name,
        spark_session(app_name="benchmark", master=arguments.master) as spark,
    ):
        out = Path(name)
        jvm = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
        for _ in range(2):
            run_spark(spark, attrs.evolve(base, cluster_count=500), out / "warm", by_topic=arguments.by_topic)
        for replicas in map(count, arguments.replicas):
            recipe = attrs.evolve(base, cluster_count=max(1, replicas // REPLICAS_PER_CLUSTER))
            whole = recipe.cluster_count * REPLICAS_PER_CLUSTER

            job = functools.partial(run_spark, spark, recipe, out / "spark", by_topic=arguments.by_topic)
            costs = [measured(job, lambda: tree_cpu_seconds(jvm)) for _ in range(arguments.rounds)]
            report("Spark", whole, costs)
            if arguments.only_spark:
                continue
            given, expected = draws(recipe), ours(out / "spark")
            for title, run in (("DuckDB", run_duckdb), ("Polars", run_polars)):
                (out / title).mkdir(exist_ok=True)
                work = functools.partial(run, given, out / title)
                costs = [measured(work, own_cpu_seconds) for _ in range(arguments.rounds)]
                check_equal(expected, pl.read_parquet(out / title / "measures.parquet"))
                report(title, whole, costs)


if __name__ == "__main__":
    main()

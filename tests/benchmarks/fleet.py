"""How many replicas a CPU-second of the fleet job places, counts and measures; DuckDB and Polars beside it.

`python -m tests.benchmarks.fleet` makes clusters of 100 brokers and 200 topics of 50 partitions, factor 3, of 30, 100
and 300 million replicas; `--millions 1000` is a billion. What is timed is the whole job without topics. CPU seconds are
those of the driver, the JVM and all Python workers, ended ones included, from /proc, after smaller jobs have warmed the
session. DuckDB and Polars run in this process, and get the start index and shift of every topic as an input table,
made outside the timing, which the Spark job draws itself; their measures must come out equal. Figures are medians of
the rounds; memory is the most that was seen at once, every fifth of a second.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import statistics
import tempfile
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
from pyspark.sql import SparkSession

from spark_analysis.fleet.generate import Fleet, make_clusters
from spark_analysis.fleet.place import classic_starts, placer_random
from spark_analysis.fleet.reading import load_recipe
from spark_analysis.fleet.recipe import Recipe
from spark_analysis.jobs import analyse_fleet
from spark_analysis.session.progress import progress
from spark_analysis.session.spark_session import spark_session
from spark_analysis.spark_engine import SparkEngine
from spark_analysis.tables import schemas
from spark_analysis.tables.write import read_table
from tests.benchmarks.report import describe_machine, show

REPLICAS_PER_CLUSTER = 30_000
BROKERS, PARTITIONS = 100, 50
COLUMNS = ("total", "min", "max", "stdev", "gini", "moves")
QUIET = partial(progress, quiet=True)
WARM_UP_ROUNDS = 3
TICKS = os.sysconf("SC_CLK_TCK")


@attrs.frozen
class Cost:
    """What one round took."""

    cpu_seconds: float
    memory_bytes: int


@attrs.frozen
class Account:
    """How to read what a piece of work costs: CPU seconds so far, and bytes held now."""

    cpu_seconds: Callable[[], float]
    memory_bytes: Callable[[], int]


def own_cpu_seconds() -> float:
    """CPU of this process, all threads."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def own_memory_bytes(before_bytes: int = 0) -> int:
    """Resident memory of this process, beyond what it held before."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") - before_bytes


def measured(work: Callable[[], Any], account: Account) -> Cost:
    """Run `work` once."""
    seen, ended = [account.memory_bytes()], threading.Event()

    def watch() -> None:
        while not ended.wait(0.2):
            seen.append(account.memory_bytes())

    watcher = threading.Thread(target=watch, daemon=True)
    used = account.cpu_seconds()
    watcher.start()
    work()
    used = account.cpu_seconds() - used
    ended.set()
    watcher.join()
    return Cost(used, max(seen))


def processes_below(root: int) -> dict[int, list[str]]:
    """The fields of /proc/PID/stat, from the state on, of a process and all below it."""
    stats: dict[int, list[str]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            # A process may end while we look.
            with contextlib.suppress(OSError):
                stats[int(entry.name)] = (entry / "stat").read_text().rsplit(")", 1)[1].split()
    below = {root: stats[root]}
    grown = True
    while grown:
        more = {pid: stat for pid, stat in stats.items() if int(stat[1]) in below and pid not in below}
        below |= more
        grown = bool(more)
    return below


def tree_cpu_seconds(root: int) -> float:
    """CPU of a process and everything below it; children that ended are in their parent's account."""
    return sum(sum(map(int, stat[11:15])) for stat in processes_below(root).values()) / TICKS


def tree_memory_bytes(root: int) -> int:
    """Resident memory of a process and everything below it; pages that they share count for each."""
    return sum(int(stat[21]) for stat in processes_below(root).values()) * os.sysconf("SC_PAGE_SIZE")


def run_spark(spark: SparkSession, recipe: Recipe, out: Path) -> None:
    """The fleet job as `brokerside fleet` runs it, without what only the report asks for: pairs of brokers."""
    analyse_fleet(SparkEngine(spark), recipe, out, progress=QUIET, overwrite=True, by_topic=False, shown_in_full_max=0)


def draws(recipe: Recipe) -> pa.Table:
    """Start index and first shift of each topic: what the classic placer draws."""
    drawn = [
        classic_starts(cluster, placer_random(cluster, "classic", seed=recipe.seed))
        for cluster in make_clusters(Fleet.of(recipe), range(recipe.cluster_count))
    ]
    clusters = np.repeat(np.arange(recipe.cluster_count, dtype=np.int32), len(drawn[0]))
    starts, shifts = np.concatenate(drawn).T
    columns: dict[str, Any] = {"cluster": clusters, "start": starts, "shift": shifts}
    return pa.table(columns)


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
    topics = pl.from_arrow(given).lazy()  # type: ignore[union-attr]  # A table becomes a frame, never a series.
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
    rows = rows.filter(pl.col("scope") == "broker")
    chosen: pl.DataFrame = rows.select(pl.col("cluster_id").alias("cluster").cast(pl.Int64), "quantity", *COLUMNS)
    return chosen


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


def median(costs: list[Cost]) -> Cost:
    """The median of each figure."""
    return Cost(*(statistics.median(column) for column in zip(*map(attrs.astuple, costs), strict=True)))


def report(name: str, replica_count: int, cost: Cost, spark_cost: Cost) -> dict[str, object]:
    """The row of one engine."""
    return {
        "engine": name,
        "M replicas": replica_count / 1e6,
        "CPU s": round(cost.cpu_seconds, 2),
        "M a CPU s": round(replica_count / cost.cpu_seconds / 1e6, 1),
        "GB": round(cost.memory_bytes / 1e9, 2),
        "times Spark's CPU": round(cost.cpu_seconds / spark_cost.cpu_seconds, 2),
    }


def engines(rounds: int, sizes_millions: list[int]) -> list[dict[str, object]]:
    """Run each size on every engine."""
    base, rows = load_recipe("three-hundred-million"), []
    with tempfile.TemporaryDirectory() as name, spark_session(app_name="benchmark", master="local[2]") as spark:
        out = Path(name)
        for _ in range(WARM_UP_ROUNDS):
            run_spark(spark, attrs.evolve(base, cluster_count=1_000), out / "warm")
        for millions in sizes_millions:
            recipe = attrs.evolve(base, cluster_count=max(1, millions * 10**6 // REPLICAS_PER_CLUSTER))
            whole = recipe.cluster_count * REPLICAS_PER_CLUSTER
            account = Account(partial(tree_cpu_seconds, os.getpid()), partial(tree_memory_bytes, os.getpid()))
            job = partial(run_spark, spark, recipe, out / "spark")
            spent = median([measured(job, account) for _ in range(rounds)])
            rows.append(report("Spark", whole, spent, spent))
            given, expected = draws(recipe), ours(out / "spark")
            for title, run in (("DuckDB", run_duckdb), ("Polars", run_polars)):
                (out / title).mkdir(exist_ok=True)
                account = Account(own_cpu_seconds, partial(own_memory_bytes, own_memory_bytes()))
                costs = [measured(partial(run, given, out / title), account) for _ in range(rounds)]
                check_equal(expected, pl.read_parquet(out / title / "measures.parquet"))
                rows.append(report(title, whole, median(costs), spent))
    return rows


def main() -> None:
    """Run what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--millions", type=int, nargs="+", default=[30, 100, 300], help="replicas")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = engines(options.rounds, options.millions)
    show("Fleets", describe_machine("numpy", "pyarrow", "pyspark"), rows, as_json=options.json)


if __name__ == "__main__":
    main()

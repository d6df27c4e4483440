"""How many replicas a CPU-second of the fleet job places, counts and measures; DuckDB and Polars beside it.

`python -m tests.benchmarks.fleet engines` makes clusters of 100 brokers and 200 topics of 50 partitions, factor 3 (no
multiple of the brokers, or round robin would come out even by itself), of 30, 100 and 300 million replicas;
`--replicas 1B` is a billion. No row per replica exists anywhere in the Spark job.

What is timed is the whole job without topics: a row per broker and the measures of each cluster over its
brokers, on disk as Parquet, and with them facts, ranks and pairs of brokers. CPU seconds are those of the JVM and all
Python workers, ended ones included, from /proc, after smaller jobs have warmed the session; DuckDB and Polars run in
this process, are charged what it uses, and write counts per broker and six figures of each cluster. They get the
start index and shift of every topic as an input table, made outside the timing, which the Spark job draws
itself; their measures must come out equal. Figures are medians of the rounds; memory is the most that was
seen at once, every fifth of a second: of JVM and workers, or of this process beyond what it held before.

`python -m tests.benchmarks.fleet tail` makes fleets of clusters of 3 brokers and 20 partitions, from the recipe to the
written page, and shows what cannot be shared out: the driver (ranking, reading, drawing), the JVM, the workers.

`python -m tests.benchmarks.fleet topics` makes, places, counts and writes clusters with their topics in this process,
and one cluster of a million partitions: CPU milliseconds. Run it on two trees to compare them.
"""

from __future__ import annotations

import argparse
import functools
import os
import resource
import statistics
import tempfile
import threading
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

from spark_analysis.engines import SparkEngine
from spark_analysis.fleet.generate import Fleet, make_clusters
from spark_analysis.fleet.place import classic_starts, placer_random
from spark_analysis.fleet.reading import load_recipe
from spark_analysis.fleet.recipe import RackPlan, Recipe, Shape, Span, TopicPlan
from spark_analysis.jobs import analyse_fleet
from spark_analysis.report.load import load_report
from spark_analysis.report.model import RunInfo
from spark_analysis.report.write import write_for_programs, write_page
from spark_analysis.session.progress import progress
from spark_analysis.session.spark_session import spark_session
from spark_analysis.tables import schemas
from spark_analysis.tables.write import COUNT_FOLDER, read_table
from spark_analysis.tasks import fleet_task
from tests.benchmarks.process_tree import jvm_of, process_cpu_seconds, tree_cpu_seconds, tree_memory_bytes
from tests.benchmarks.report import describe_machine, show

REPLICAS_PER_CLUSTER = 30_000
BROKERS, PARTITIONS = 100, 50
COLUMNS = ("total", "min", "max", "stdev", "gini", "moves")
QUIET = functools.partial(progress, quiet=True)
WARM_UP_ROUNDS = 3
CLUSTERS = 60


@attrs.frozen
class Cost:
    """What one round took."""

    wall_seconds: float
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
    started, used = time.perf_counter(), account.cpu_seconds()
    watcher.start()
    work()
    cost = time.perf_counter() - started, account.cpu_seconds() - used
    ended.set()
    watcher.join()
    return Cost(*cost, max(seen))


def run_spark(spark: SparkSession, recipe: Recipe, out: Path, *, by_topic: bool = False) -> None:
    """The fleet job as `brokerside fleet` runs it, without what only the report asks for: pairs of brokers."""
    analyse_fleet(
        SparkEngine(spark), recipe, out, progress=QUIET, overwrite=True, by_topic=by_topic, shown_in_full_max=0
    )


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
        jvm = jvm_of(os.getpid())
        for millions in sizes_millions:
            recipe = attrs.evolve(base, cluster_count=max(1, millions * 10**6 // REPLICAS_PER_CLUSTER))
            whole = recipe.cluster_count * REPLICAS_PER_CLUSTER
            account = Account(lambda: tree_cpu_seconds(jvm), lambda: tree_memory_bytes(jvm))
            job = functools.partial(run_spark, spark, recipe, out / "spark")
            spent = median([measured(job, account) for _ in range(rounds)])
            rows.append(report("Spark", whole, spent, spent))
            given, expected = draws(recipe), ours(out / "spark")
            for title, run in (("DuckDB", run_duckdb), ("Polars", run_polars)):
                (out / title).mkdir(exist_ok=True)
                account = Account(own_cpu_seconds, functools.partial(own_memory_bytes, own_memory_bytes()))
                costs = [measured(functools.partial(run, given, out / title), account) for _ in range(rounds)]
                check_equal(expected, pl.read_parquet(out / title / "measures.parquet"))
                rows.append(report(title, whole, median(costs), spent))
    return rows


def tail(cluster_counts: list[int]) -> list[dict[str, object]]:
    """Make fleets of clusters of 3 brokers, with tables and page, after one that warms the session."""
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as name, spark_session(app_name="tail", master="local[2]") as spark:
        for number in (8_000, *cluster_counts):
            out, jvm = Path(name) / str(number), jvm_of(os.getpid())
            before = process_cpu_seconds(jvm), tree_cpu_seconds(jvm)
            work = functools.partial(small_clusters, spark, number, out)
            cost = measured(work, Account(own_cpu_seconds, own_memory_bytes))
            jvm_s, tree_s = process_cpu_seconds(jvm) - before[0], tree_cpu_seconds(jvm) - before[1]
            rows.append(
                {
                    "clusters": number,
                    "driver CPU s": round(cost.cpu_seconds, 2),
                    "JVM CPU s": round(jvm_s, 2),
                    "workers CPU s": round(tree_s - jvm_s, 2),
                    "driver GB": round(cost.memory_bytes / 1e9, 2),
                    "page MB": round((out / "report.html").stat().st_size / 1e6, 1),
                }
            )
    return rows[1:]


def small_clusters(spark: SparkSession, cluster_count: int, out: Path) -> None:
    """Make a fleet of clusters of 3 brokers, its tables, its page and the files for programs."""
    topics = TopicPlan(Span(4, 4), (5,), ((3, 1),))
    shape = Shape(name="3 brokers", brokers=Span(3, 3), racks=RackPlan(()), topics=topics)
    recipe = Recipe(name="small clusters", cluster_count=cluster_count, seed=1, shapes=(shape,))
    run_spark(spark, recipe, out, by_topic=True)
    info = RunInfo(kind="fleet", title="small clusters", command="benchmark", version="0")
    loaded = load_report(out, info)
    write_page(out, loaded)
    write_for_programs(out, loaded)


def topics(rounds: int) -> list[dict[str, object]]:
    """Make, place, count and write clusters with topics in this process, and one of a million partitions."""
    rows = []
    for recipe, fenced, brokers in (
        ("demo", 0.0, None),
        ("uneven-racks", 0.0, None),
        ("uneven-racks", 0.05, None),
        ("three-hundred-million", 0.0, None),
        ("uneven-racks", 0.0, 100_000),
    ):
        loaded = load_recipe(recipe)
        shapes = tuple(attrs.evolve(one, fenced=fenced) for one in loaded.shapes)
        if brokers is not None:  # One cluster of so many topics of ten partitions.
            shapes = (attrs.evolve(shapes[0], topics=TopicPlan(Span(brokers, brokers), (10,), ((3, 1),))),)
        loaded, count = attrs.evolve(loaded, shapes=shapes), CLUSTERS if brokers is None else 1
        times = [own_cost(loaded, count) for _ in range(rounds + 1)]
        name = f"{recipe}, {fenced:.0%} fenced" + ("" if brokers is None else f", {brokers:,} topics")
        rows.append({"clusters": count, "of": name, "CPU ms": round(1e3 * statistics.median(times[1:]), 1)})
    return rows


def own_cost(recipe: Recipe, cluster_count: int) -> float:
    """CPU seconds of one task of a fleet."""
    with tempfile.TemporaryDirectory() as name:
        for folder in (*(table.name for table in (*schemas.TABLES, *schemas.WORK)), COUNT_FOLDER):
            (Path(name) / folder).mkdir()
        task = fleet_task(Fleet.of(recipe), Path(name))
        started = time.process_time()
        task(range(cluster_count), "00000")
        return time.process_time() - started


def main() -> None:
    """Run what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("engines", "tail", "topics"))
    parser.add_argument("--millions", type=int, nargs="+", default=[30, 100, 300], help="replicas of the engines")
    parser.add_argument("--clusters", type=int, nargs="+", default=[1_000, 10_000, 100_000], help="of the tail")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.part == "engines":
        rows = engines(options.rounds, options.millions)
    else:
        rows = tail(options.clusters) if options.part == "tail" else topics(options.rounds)
    show(f"Fleets: {options.part}", describe_machine("numpy", "pyarrow", "pyspark"), rows, as_json=options.json)


if __name__ == "__main__":
    main()

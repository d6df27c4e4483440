"""The main jobs, end to end: a fleet or dumps in, the tables of schemas.py out.

How: executors make the stage, which is kept in memory, or on disk where memory ends, while
each table is selected from it and written. A fleet's pairs of brokers are counted afterwards, for
the clusters that are shown in full: those that rank first.

Constraints: every table is written, an empty one where nothing is to say. An input that cannot
be used at all ends the job with one InputError before any table is written.

Example:
    with spark_session(app_name="fleet") as spark:
        summary = analyse_fleet(spark, load_recipe("demo"), Path("out"))

Left out: the report, which reads the tables (report/), and the terminal (cli.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from broker.errors import InputError
from placement.formats.racks import Racks
from spark_analysis import balance, schemas
from spark_analysis.fleet.generate import Fleet
from spark_analysis.fleet.place import load_placer
from spark_analysis.fleet.recipe import Recipe
from spark_analysis.kernels import DumpInput, dumps_kernel, fleet_kernel, pairs_kernel
from spark_analysis.progress import Bar
from spark_analysis.progress import progress as show_progress
from spark_analysis.schemas import Table
from spark_analysis.sources.files import check_readable
from spark_analysis.staging import PER_INPUT, STAGE_SCHEMA
from spark_analysis.summary import RunSummary, summarise
from spark_analysis.tables import arrow_to_table, read_table, table_path, write_table

SHOWN_IN_FULL_MAX: Final = 200  # Clusters that the report shows one by one.
CLUSTERS_PER_TASK: Final = 250  # A second or two of work: few enough tasks, and a bar that moves.
OF_CLUSTERS: Final = (schemas.BROKERS, schemas.RACKS, schemas.TOPICS, schemas.VIOLATIONS)
Progress: TypeAlias = Callable[..., AbstractContextManager[Bar]]


def analyse_fleet(
    spark: SparkSession,
    recipe: Recipe,
    out: Path,
    *,
    progress: Progress = show_progress,
    overwrite: bool = False,
    by_topic: bool = True,
) -> RunSummary:
    """Make and place every cluster of `recipe`, and write all tables under `out`/tables.

    Without `by_topic` the table of topics is empty and nothing is measured over topics: a fleet of
    10,000 clusters has millions of them. `progress` is spark_analysis.progress.progress, or it with some
    arguments given. Raises UsageError when a placer is not installed, and what `write_table` raises.
    """
    for placer in sorted({placer for shape in recipe.shapes for placer in shape.placers}):
        load_placer(placer)
    fleet = Fleet.of(recipe)
    done = spark.sparkContext.accumulator(0)
    staged = fleet_stage(spark, fleet, done, by_topic=by_topic)
    title = f"Placing {recipe.name}"
    with _kept(staged) as stage:
        with progress(title, total=recipe.cluster_count, unit="clusters", done=lambda: done.value):
            stage.count()
        _write(stage, OF_CLUSTERS, out, progress, overwrite)
    _write_fleet_pairs(spark, fleet, out, overwrite)
    for table, rows in _recipe_tables(recipe).items():
        arrow_to_table(pa.Table.from_pylist(rows, schema=table.arrow_schema()), table, out, overwrite=overwrite)
    return summarise(out, title=recipe.name)


def analyse_dumps(
    spark: SparkSession,
    inputs: Sequence[DumpInput],
    racks: Racks | None,
    out: Path,
    *,
    progress: Progress = show_progress,
    min_insync_replicas_default: int | None = None,
    overwrite: bool = False,
) -> RunSummary:
    """Read every dump, and write all tables under `out`/tables; clusters are numbered in the order of the inputs.

    `min_insync_replicas_default` holds for topics that do not show theirs. Inputs of one series are
    compared, each with the one before it. Raises InputError for the first input that cannot be used.
    """
    for dump_input in inputs:
        check_readable(dump_input.path)
    done = spark.sparkContext.accumulator(0)
    series = _series(inputs)
    kernel = dumps_kernel(series, racks, min_insync_replicas_default, done)
    staged = spark.range(0, len(series), 1, max(1, len(series))).mapInArrow(kernel, _stage_type())
    with _kept(staged) as stage:
        with progress("Reading dumps", total=len(inputs), unit="files", done=lambda: done.value):
            _refuse_failures(stage)
        _write(_numbered(stage), (*OF_CLUSTERS, *PER_INPUT, schemas.PAIRS), out, progress, overwrite)
    return summarise(out, title=", ".join(dump_input.path for dump_input in inputs[:3]))


def _stage_type() -> Any:
    return from_arrow_schema(STAGE_SCHEMA)


def fleet_stage(spark: SparkSession, fleet: Fleet, done: Any = None, *, by_topic: bool = True) -> DataFrame:
    """One row per (cluster_id, placer) of the fleet; nothing is computed yet."""
    cluster_count = fleet.recipe.cluster_count
    least = 2 * spark.sparkContext.defaultParallelism
    task_count = min(cluster_count, max(least, cluster_count // CLUSTERS_PER_TASK))
    numbers = spark.range(0, cluster_count, 1, task_count)
    rows = numbers.mapInArrow(fleet_kernel(fleet, done, by_topic=by_topic), _stage_type())
    return rows.withColumn("cluster_id", F.col("cluster_index"))


@contextmanager
def _kept(stage: DataFrame) -> Iterator[DataFrame]:
    kept = stage.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield kept
    finally:
        kept.unpersist()


def _series(inputs: Sequence[DumpInput]) -> list[list[tuple[int, DumpInput]]]:
    """Return the inputs with their places, those of one series together, each other one by itself."""
    together: dict[tuple[str | None, int], list[tuple[int, DumpInput]]] = {}
    for index, dump_input in enumerate(inputs):
        key = (dump_input.series, -1 if dump_input.series is not None else index)
        together.setdefault(key, []).append((index, dump_input))
    return list(together.values())


def _refuse_failures(stage: DataFrame) -> None:
    """Raise the InputError of the first input that could not be used."""
    failures = stage.where(F.col("failure").isNotNull()).orderBy("input_index").select("failure.*").limit(1).collect()
    for failure in failures:
        raise InputError(failure["what"], source=failure["source"], line=failure["line"], value=failure["value"])


def _numbered(stage: DataFrame) -> DataFrame:
    """The stage with `cluster_id`: 0, 1, 2, … in the order of inputs, and of clusters within an input."""
    order = Window.orderBy("input_index", "cluster_index").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    places = stage.where(F.col("cluster_index").isNotNull()).select("input_index", "cluster_index").distinct()
    ids = places.withColumn("cluster_id", F.count("*").over(order) - 1)
    return stage.join(F.broadcast(ids), on=["input_index", "cluster_index"], how="left")


def _recipe_tables(recipe: Recipe) -> dict[Table, list[dict[str, Any]]]:
    """The tables about inputs, made on the driver: the recipe as an input, of which every cluster is used."""
    count = recipe.cluster_count
    account = {"rows_in": count, "rows_analysed": count, "rows_rejected": 0, "lines_passed_over": 0, "notes": []}
    about = {"source": recipe.source, "format": "recipe", "cluster_count": count} | account
    return {schemas.INPUTS: [about], schemas.REJECTS: [], schemas.CHANGES: []}


def _write(stage: DataFrame, tables: Sequence[Table], out: Path, progress: Progress, overwrite: bool) -> None:
    """Write measures, clusters and `tables`, in this order: pairs are of the clusters shown in full, by rank."""
    clusters = stage.where(F.col("cluster_id").isNotNull())
    read = stage.sparkSession.read.parquet
    with progress("Writing tables", total=len(tables) + 2, unit="tables") as bar:
        write_table(balance.measures(clusters), schemas.MEASURES, out, overwrite=overwrite)
        bar.advance()
        measured = read(str(table_path(out, schemas.MEASURES)))
        write_table(balance.clusters(clusters, measured), schemas.CLUSTERS, out, overwrite=overwrite)
        bar.advance()
        for table in tables:
            rows = balance.nested_table(stage, table)
            if table is schemas.PAIRS:
                ranked = read(str(table_path(out, schemas.CLUSTERS)))
                shown = ranked.where(F.col("rank") <= SHOWN_IN_FULL_MAX).select("cluster_id", "placer")
                rows = rows.join(F.broadcast(shown), on=["cluster_id", "placer"], how="left_semi")
            write_table(rows.select(*table.column_names), table, out, overwrite=overwrite)
            bar.advance()


def _write_fleet_pairs(spark: SparkSession, fleet: Fleet, out: Path, overwrite: bool) -> None:
    ranks = read_table(out, schemas.CLUSTERS, columns=["cluster_id", "placer", "rank"]).to_pylist()
    wanted = sorted((row["cluster_id"], row["placer"]) for row in ranks if row["rank"] <= SHOWN_IN_FULL_MAX)
    tasks = min(len(wanted), 2 * spark.sparkContext.defaultParallelism)
    places = spark.range(0, len(wanted), 1, max(1, tasks))
    rows = places.mapInArrow(pairs_kernel(fleet, wanted), from_arrow_schema(schemas.PAIRS.arrow_schema()))
    write_table(rows, schemas.PAIRS, out, overwrite=overwrite)

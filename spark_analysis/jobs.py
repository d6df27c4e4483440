"""Run the main jobs end to end: from a fleet or dumps to the tables of schemas.py.

Every table is written, an empty one where there are no rows. An input that cannot be used is a reject, one row in and
one put aside; if no input can be used, the job ends with one InputError before any table is written, and so it does
for a file of sizes or groups that cannot be used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from broker.errors import InputError, UsageError
from placement.formats.member_zones import MemberZones
from placement.formats.racks import Racks
from placement.placers.registry import load_placer
from spark_analysis.answers.registry import QUESTIONS, Asked
from spark_analysis.engines import Engine, Task
from spark_analysis.fleet.generate import Fleet
from spark_analysis.fleet.recipe import Recipe
from spark_analysis.session.progress import Bar
from spark_analysis.session.progress import progress as show_progress
from spark_analysis.sources.dumps import DumpInput, none_usable, size_bytes
from spark_analysis.sources.files import check_readable
from spark_analysis.tables import schemas
from spark_analysis.tables.cluster_rows import ranked
from spark_analysis.tables.columns import Table
from spark_analysis.tables.limits import DETAILED_CLUSTERS_MAX
from spark_analysis.tables.scan import scan_batches, sorted_rows
from spark_analysis.tables.schemas import ADVICE
from spark_analysis.tables.write import StagedRun, Written, arrow_to_table, read_table, remove_table, staged_run
from spark_analysis.tasks import dumps_task, error_of, even_parts, fleet_task, pairs_task, parts_by_size

TASK_COUNT_MIN: Final = 8  # Work for as many cores, however small the fleet.
CLUSTERS_PER_TASK_MAX: Final = 1_000  # A second of work at most; a task itself costs a tenth of one.
CLUSTERS_PER_PAIRS_TASK: Final = 50
DUMP_BYTES_PER_TASK: Final = 64 << 20  # Half a million partitions, read and described in seconds.
OF_CLUSTERS: Final = (
    schemas.BROKERS,
    schemas.LOG_DIRS,
    schemas.RACKS,
    schemas.TOPICS,
    schemas.VIOLATIONS,
    schemas.PARTITIONS,
    schemas.MEASURES,
)
PER_INPUT: Final = (schemas.INPUTS, schemas.REJECTS, schemas.CHANGES)
Progress: TypeAlias = Callable[..., AbstractContextManager[Bar]]


def analyse_fleet(
    engine: Engine,
    recipe: Recipe,
    out: Path,
    *,
    progress: Progress = show_progress,
    overwrite: bool = False,
    by_topic: bool = True,
    partitions: bool = False,
    shown_in_full_max: int = DETAILED_CLUSTERS_MAX,
    asked: Sequence[Asked] = (),
) -> None:
    """Make and place every cluster of `recipe`, and write all tables under `out`/tables.

    Without `by_topic` the table of topics is empty and nothing is measured over topics: a fleet of
    10,000 clusters has millions of them. With `partitions` every partition has a row, too: that is hundreds of
    millions. Pairs of brokers are counted for the `shown_in_full_max` clusters that rank first.
    Each question `asked` has a table of its own.
    `progress` is spark_analysis.session.progress.progress, or it with some arguments given. Raises
    UsageError when a placer is not installed, and what `arrow_to_table` raises.
    """
    for placer in sorted({placer for shape in recipe.shapes for placer in shape.placers}):
        load_placer(placer)
    fleet = Fleet.of(recipe)
    count = recipe.cluster_count
    of_clusters = (
        *OF_CLUSTERS,
        *ADVICE,
        *_tables(asked),
    )  # Of a simulated fleet nothing is advised: these have no rows.
    with staged_run((*of_clusters, schemas.PAIRS), schemas.WORK, out, overwrite=overwrite) as run:
        with progress(f"Placing {recipe.name}", total=count, unit="clusters", done=run.done_count):
            function = fleet_task(fleet, run.root, by_topic=by_topic, partitions=partitions, asked=asked)
            results = _run(engine, function, even_parts(count, task_count(count)))
            _keep(run, (*of_clusters, *schemas.WORK), results)
        _rank(run, progress, overwrite)
        wanted = _shown_in_full(out, shown_in_full_max)
        parts = even_parts(len(wanted), -(-len(wanted) // CLUSTERS_PER_PAIRS_TASK))
        _keep(run, (schemas.PAIRS,), _run(engine, pairs_task(fleet, run.root, wanted), parts))
        for table in (*of_clusters, schemas.PAIRS):
            run.publish(table)
    _remove_others(out, asked)
    for table, rows in _recipe_tables(recipe).items():
        arrow_to_table(pa.Table.from_pylist(rows, schema=table.arrow_schema()), table, out, overwrite=overwrite)


def analyse_dumps(
    engine: Engine,
    inputs: Sequence[DumpInput],
    racks: Racks | None,
    out: Path,
    *,
    progress: Progress = show_progress,
    min_insync_replicas_default: int | None = None,
    overwrite: bool = False,
    asked: Sequence[Asked] = (),
    zones: MemberZones | None = None,
) -> None:
    """Read every dump, and write all tables under `out`/tables; clusters are numbered by their inputs.

    `min_insync_replicas_default` holds for topics that do not show theirs. Inputs of one series are
    compared, each with the one before it. Each question `asked` has a table of its own; `zones` are those of the
    consumers in the files of groups. Raises InputError if no input can be used, and for the first file of sizes or
    groups that cannot be.
    """
    _check_readable(inputs)
    # Executors have working folders of their own.
    series = _series([dump_input.located() for dump_input in inputs])
    tables = (*OF_CLUSTERS, *PER_INPUT, *ADVICE, *_tables(asked))
    with staged_run(tables, (*schemas.WORK, schemas.PAIRS), out, overwrite=overwrite) as run:
        with progress("Reading dumps", total=len(inputs), unit="files", done=run.done_count):
            function = dumps_task(series, run.root, racks, min_insync_replicas_default, asked, zones)
            sizes = [sum(size_bytes(dump_input.path) for _, dump_input in one) for one in series]
            results = _run(engine, function, parts_by_size(sizes, DUMP_BYTES_PER_TASK))
            _refuse_failures(results, inputs)
            _keep(run, (*tables, *schemas.WORK, schemas.PAIRS), results)
        _rank(run, progress, overwrite)
        _write_pairs(run, _shown_in_full(out, DETAILED_CLUSTERS_MAX), overwrite=overwrite)
        for table in tables:
            run.publish(table)
    _remove_others(out, asked)


def task_count(cluster_count: int) -> int:
    """Return the number of tasks for the clusters of a fleet: the same on every machine.

    >>> task_count(3), task_count(150), task_count(100_000)
    (3, 8, 100)
    """
    return min(cluster_count, max(TASK_COUNT_MIN, cluster_count // CLUSTERS_PER_TASK_MAX))


def _tables(asked: Sequence[Asked]) -> list[Table]:
    return [one.question.run_table for one in asked]


def _remove_others(out: Path, asked: Sequence[Asked]) -> None:
    """Remove what an earlier run answered to questions that were not asked now."""
    for name in sorted(set(QUESTIONS) - {one.name for one in asked}):
        remove_table(out, name)


def _run(engine: Engine, task: Task, parts: Sequence[range]) -> list[dict[str, Any]]:
    """Run the task on each part of the work; return all result rows, or raise a fault."""
    results = engine.run(task, parts)
    faults = sorted(one["fault"] for one in results if one["fault"] is not None)
    if faults:
        raise UsageError(faults[0])
    return results


def _keep(run: StagedRun, tables: Sequence[Table], results: Sequence[dict[str, Any]]) -> None:
    written = [Written(one["table"], one["file"], one["row_count"]) for one in results if one["file"] is not None]
    for table in tables:
        run.keep(table, written)


def _rank(run: StagedRun, progress: Progress, overwrite: bool) -> None:
    """Write the clusters with their ranks, in this process on any engine.

    Of 100,000 clusters that is half a second of CPU and 90 MB; as two tasks of Spark's it was ten times the CPU.
    """
    with progress("Ranking", total=1, unit="tables") as bar:
        rows = ranked(run.kept_rows(schemas.FACTS)).select(schemas.CLUSTERS.column_names)
        arrow_to_table(rows, schemas.CLUSTERS, run.out, overwrite=overwrite)
        bar.advance()


def _shown_in_full(out: Path, count: int) -> list[tuple[int, str]]:
    """Return the keys of the clusters that rank first, in their order."""
    rows = read_table(out, schemas.CLUSTERS, columns=["cluster_id", "placer", "rank"])
    first = rows.filter(pa.array(rows["rank"].to_numpy() <= count))
    return sorted((row["cluster_id"], row["placer"]) for row in first.to_pylist())


def _write_pairs(run: StagedRun, shown: Sequence[tuple[int, str]], *, overwrite: bool) -> None:
    """Write the kept pairs of brokers of these clusters, sorted, as the table of pairs."""
    numbers = np.array([number for number, _ in shown], dtype=np.int64)
    batches = scan_batches(run.root / schemas.PAIRS.name, schemas.PAIRS, clusters=numbers)
    rows = pa.Table.from_batches(batches, schema=schemas.PAIRS.arrow_schema())
    arrow_to_table(sorted_rows(rows, rows.column_names), schemas.PAIRS, run.out, overwrite=overwrite)


def _series(inputs: Sequence[DumpInput]) -> list[list[tuple[int, DumpInput]]]:
    """Return the inputs with their places, those of one series together, each other one by itself."""
    together: dict[tuple[str | None, int], list[tuple[int, DumpInput]]] = {}
    for index, dump_input in enumerate(inputs):
        key = (dump_input.series, -1 if dump_input.series is not None else index)
        together.setdefault(key, []).append((index, dump_input))
    return list(together.values())


def _check_readable(inputs: Sequence[DumpInput]) -> None:
    """Raise InputError for the first file of sizes or groups that cannot be opened, or if no input can be."""
    failures = []
    for dump_input in inputs:
        for path in (dump_input.sizes, *dump_input.groups):
            if path is not None:
                check_readable(path)
        try:
            check_readable(dump_input.path)
        except InputError as error:
            failures.append(error)
    if inputs and len(failures) == len(inputs):
        raise none_usable(failures)


def _refuse_failures(results: Sequence[dict[str, Any]], inputs: Sequence[DumpInput]) -> None:
    """Raise the InputError of the first file of sizes or groups that cannot be used, or if no input can be."""
    failures = sorted(
        (one["failure"] for one in results if one["failure"] is not None), key=lambda one: one["input_index"]
    )
    fatal = [error_of(one) for one in failures if one["is_fatal"]]
    if fatal:
        raise fatal[0]
    if inputs and len(failures) == len(inputs):
        raise none_usable([error_of(one) for one in failures])


def _recipe_tables(recipe: Recipe) -> dict[Table, list[dict[str, Any]]]:
    """The tables about inputs, made on the driver: the recipe as an input, of which every cluster is used."""
    count = recipe.cluster_count
    account = {"rows_in": count, "rows_analysed": count, "rows_rejected": 0, "lines_passed_over": 0, "notes": []}
    about = {"source": recipe.source, "format": "recipe", "cluster_count": count} | account
    return {schemas.INPUTS: [about], schemas.REJECTS: [], schemas.CHANGES: []}

"""Run the main jobs end to end: from a fleet or dumps, through one kernel, to the tables of schemas.py.

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
from spark_analysis.engines import Engine, Found
from spark_analysis.fleet.generate import Fleet
from spark_analysis.fleet.recipe import Recipe
from spark_analysis.kernels import dumps_kernel, error_of, even_parts, fleet_kernel, pairs_kernel, parts_by_size
from spark_analysis.session.progress import Bar
from spark_analysis.session.progress import progress as show_progress
from spark_analysis.sources.dumps import DumpInput, none_usable, size_bytes
from spark_analysis.sources.files import check_readable
from spark_analysis.tables import schemas
from spark_analysis.tables.cluster_rows import ranked
from spark_analysis.tables.columns import Table
from spark_analysis.tables.limits import DETAILED_CLUSTERS_MAX
from spark_analysis.tables.place import Place
from spark_analysis.tables.schemas import ADVICE
from spark_analysis.tables.write import check_places

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
    out: Place,
    *,
    progress: Progress = show_progress,
    overwrite: bool = False,
    by_topic: bool = True,
    partitions: bool = False,
    shown_in_full_max: int = DETAILED_CLUSTERS_MAX,
    asked: Sequence[Asked] = (),
) -> None:
    """Make and place every cluster of `recipe`, and write all tables under `out`/tables, a folder or a URI of Spark's.

    Without `by_topic` the table of topics is empty and nothing is measured over topics: a fleet of
    10,000 clusters has millions of them. With `partitions` every partition has a row, too: that is hundreds of
    millions. Pairs of brokers are counted for the `shown_in_full_max` clusters that rank first.
    Each question `asked` has a table of its own.
    `progress` is spark_analysis.session.progress.progress, or it with some arguments given. Raises
    UsageError when a placer is not installed, and for a place that is taken.
    """
    for placer in sorted({placer for shape in recipe.shapes for placer in shape.placers}):
        load_placer(placer)
    fleet = Fleet.of(recipe)
    count = recipe.cluster_count
    # Of a simulated fleet nothing is advised: these have no rows.
    of_clusters = (*OF_CLUSTERS, *ADVICE, *_tables(asked))
    about = _recipe_tables(recipe)
    _check_places((*of_clusters, schemas.PAIRS, schemas.CLUSTERS, *about), out, overwrite=overwrite)
    kernel = fleet_kernel(fleet, by_topic=by_topic, partitions=partitions, asked=asked)
    with engine.found(kernel, even_parts(count, task_count(count)), out) as found:
        placing = progress(f"Placing {recipe.name}", total=count, unit="clusters", done=_done(engine, count))
        _compute(found, placing, count)
        clusters = _ranked(found)
        wanted = _shown_in_full(clusters, shown_in_full_max)
        parts = even_parts(len(wanted), -(-len(wanted) // CLUSTERS_PER_PAIRS_TASK))
        with progress("Writing", total=len(of_clusters) + len(about) + 2, unit="tables") as bar:
            for table in of_clusters:
                found.write(table, out)
                bar.advance()
            for table, rows in {schemas.CLUSTERS: clusters, **about}.items():
                engine.write(rows, table, out)
                bar.advance()
            with engine.found(pairs_kernel(fleet, wanted), parts, out) as pairs:
                pairs.compute()
                pairs.write(schemas.PAIRS, out)
                bar.advance()
                _remove_others(engine, out, asked)
                engine.finish()


def analyse_dumps(
    engine: Engine,
    inputs: Sequence[DumpInput],
    racks: Racks | None,
    out: Place,
    *,
    progress: Progress = show_progress,
    min_insync_replicas_default: int | None = None,
    overwrite: bool = False,
    asked: Sequence[Asked] = (),
    zones: MemberZones | None = None,
) -> None:
    """Read every dump, and write all tables under `out`/tables, a folder or a URI of Spark's.

    Clusters are numbered by their inputs.

    `min_insync_replicas_default` holds for topics that do not show theirs. Inputs of one series are
    compared, each with the one before it. Each question `asked` has a table of its own; `zones` are those of the
    consumers in the files of groups. Raises InputError if no input can be used, and for the first file of sizes or
    groups that cannot be.
    """
    _check_readable(inputs)
    # Executors have working folders of their own.
    series = _series([dump_input.located() for dump_input in inputs])
    tables = (*OF_CLUSTERS, *PER_INPUT, *ADVICE, *_tables(asked))
    _check_places((*tables, schemas.CLUSTERS, schemas.PAIRS), out, overwrite=overwrite)
    sizes = [sum(size_bytes(dump_input.path) for _, dump_input in one) for one in series]
    kernel = dumps_kernel(series, racks, min_insync_replicas_default, asked, zones)
    with engine.found(kernel, parts_by_size(sizes, DUMP_BYTES_PER_TASK), out) as found:
        count = len(inputs)
        reading = progress("Reading dumps", total=count, unit="files", done=_done(engine, count))
        _compute(found, reading, count)
        _refuse_failures(found.rows(schemas.FAILURES).to_pylist(), inputs)
        clusters = _ranked(found)
        numbers = [number for number, _ in _shown_in_full(clusters, DETAILED_CLUSTERS_MAX)]
        shown = np.unique(np.array(numbers, dtype=np.int64))
        with progress("Writing", total=len(tables) + 2, unit="tables") as bar:
            for table in tables:
                found.write(table, out)
                bar.advance()
            found.write(schemas.PAIRS, out, clusters=shown)
            engine.write(clusters, schemas.CLUSTERS, out)
            bar.advance(2)
        _remove_others(engine, out, asked)
        engine.finish()


def task_count(cluster_count: int) -> int:
    """Return the number of tasks for the clusters of a fleet: the same on every machine.

    >>> task_count(3), task_count(150), task_count(100_000)
    (3, 8, 100)
    """
    return min(cluster_count, max(TASK_COUNT_MIN, cluster_count // CLUSTERS_PER_TASK_MAX))


def _tables(asked: Sequence[Asked]) -> list[Table]:
    return [one.question.run_table for one in asked]


def _check_places(tables: Sequence[Table], out: Place, *, overwrite: bool) -> None:
    if isinstance(out, Path):
        check_places(tables, out, overwrite=overwrite)
    elif not overwrite:
        raise UsageError(f"{out} is a URI, where tables are replaced unseen; allow to overwrite them")


def _remove_others(engine: Engine, out: Place, asked: Sequence[Asked]) -> None:
    """Remove what an earlier run answered to questions that were not asked now."""
    for name in sorted(set(QUESTIONS) - {one.name for one in asked}):
        engine.remove(Table(name, "", ()), out)


def _done(engine: Engine, count: int) -> Callable[[], int]:
    return lambda: int(count * engine.done_share())


def _compute(found: Found, bar: AbstractContextManager[Bar], count: int) -> None:
    """Run the kernel; raise UsageError for a fault of the kernel itself."""
    with bar as shown:
        found.compute()
        shown.reach(count)
    faults = [row["what"] for row in found.rows(schemas.FAILURES).to_pylist() if row["input_index"] is None]
    if faults:
        raise UsageError(min(faults))


def _ranked(found: Found) -> pa.Table:
    """Return the clusters with their ranks, in this process on any engine.

    Of 100,000 clusters that is half a second of CPU and 90 MB; as two tasks of Spark's it was ten times the CPU.
    """
    return ranked(found.rows(schemas.FACTS)).select(schemas.CLUSTERS.column_names).cast(schemas.CLUSTERS.arrow_schema())


def _shown_in_full(clusters: pa.Table, count: int) -> list[tuple[int, str]]:
    """Return the keys of the clusters that rank first, in their order."""
    first = clusters.filter(pa.array(clusters["rank"].to_numpy() <= count)).select(["cluster_id", "placer"])
    return sorted((row["cluster_id"], row["placer"]) for row in first.to_pylist())


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


def _refuse_failures(found: Sequence[dict[str, Any]], inputs: Sequence[DumpInput]) -> None:
    """Raise the InputError of the first file of sizes or groups that cannot be used, or if no input can be."""
    failures = sorted(found, key=lambda one: one["input_index"])
    fatal = [error_of(one) for one in failures if one["is_fatal"]]
    if fatal:
        raise fatal[0]
    if inputs and len(failures) == len(inputs):
        raise none_usable([error_of(one) for one in failures])


def _recipe_tables(recipe: Recipe) -> dict[Table, pa.Table]:
    """The tables about inputs, made on the driver: the recipe as an input, of which every cluster is used."""
    count = recipe.cluster_count
    account = {"rows_in": count, "rows_analysed": count, "rows_rejected": 0, "lines_passed_over": 0, "notes": []}
    about = {"source": recipe.source, "format": "recipe", "cluster_count": count} | account
    of_tables: dict[Table, list[dict[str, Any]]] = {schemas.INPUTS: [about], schemas.REJECTS: [], schemas.CHANGES: []}
    return {table: pa.Table.from_pylist(rows, schema=table.arrow_schema()) for table, rows in of_tables.items()}

"""The only Python that runs on executors: Arrow batches in, Arrow batches out.

Goals: what a task makes depends on the numbers it is given and on nothing else; memory holds
one cluster and one batch of rows; input that cannot be used becomes a row that says so.

A fleet's kernel takes cluster numbers and places, counts and audits each cluster once per
placer. A dumps' kernel takes numbers of series; the inputs of a series are read one after another,
so that each can be compared with the one before it. Both answer with rows of the stage
(staging.py), and tell the driver how many clusters are done through an accumulator.

Example: spark.range(10).mapInArrow(fleet_kernel(fleet), stage_schema).

Left out: writing tables, which needs rows in order (tables.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import attrs
import numpy as np
import pyarrow as pa

from broker.cluster import ClusterView
from broker.errors import InputError
from placement.changes import changes
from placement.formats.parsed import ParsedDump
from placement.formats.racks import Racks
from placement.formats.read import read_dump
from spark_analysis import schemas
from spark_analysis.describe import PAIR_BROKER_COUNT_MAX, count_pairs, describe_simulated, describe_view
from spark_analysis.fleet.generate import Fleet, make_cluster
from spark_analysis.fleet.place import place_cluster
from spark_analysis.sources.files import read_chunks
from spark_analysis.staging import Columns, StagedRow, batches

Kernel: TypeAlias = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
PAIRS_SCHEMA: Final = schemas.PAIRS.arrow_schema()


@attrs.frozen
class DumpInput:
    """One dump to read. `name` and `format` win over what the text says; a `series` is one cluster in time."""

    path: str
    name: str | None = None
    format: str | None = None
    series: str | None = None


def fleet_kernel(fleet: Fleet, done: Any = None, *, by_topic: bool = True) -> Kernel:
    """Return the kernel that makes, places and describes the clusters whose numbers come in, a row per placer.

    `done` is an accumulator of clusters. Topics are listed if `by_topic`.
    """

    def rows(numbers: Iterable[int]) -> Iterator[StagedRow]:
        recipe = fleet.recipe
        for number in numbers:
            cluster = make_cluster(fleet, number)
            for placer in cluster.shape.placers:
                placed = place_cluster(cluster, placer, seed=recipe.seed)
                row = describe_simulated(cluster, placed, placer=placer, source=recipe.source, by_topic=by_topic)
                yield StagedRow(row.scalars | {"input_index": 0, "cluster_index": number}, row.nested)
            if done is not None:
                done.add(1)

    return lambda given: batches(rows(_numbers(given)))


def pairs_kernel(fleet: Fleet, wanted: Sequence[tuple[int, str]]) -> Kernel:
    """Return the kernel that makes the table of pairs for the clusters and placers `wanted`, by their places in it."""

    def run(given: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for place in _numbers(given):
            number, placer = wanted[place]
            cluster = make_cluster(fleet, number)
            if cluster.broker_count > PAIR_BROKER_COUNT_MAX:
                continue
            rows = place_cluster(cluster, placer, seed=fleet.recipe.seed)
            pairs = count_pairs(rows, np.arange(cluster.broker_count, dtype=np.int32))
            key = (np.full(pairs.row_count, number, dtype=np.int64), [placer] * pairs.row_count)
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array(part, type=field.type)
                    for part, field in zip((*key, *pairs.parts), PAIRS_SCHEMA, strict=True)
                ],
                schema=PAIRS_SCHEMA,
            )

    return run


def dumps_kernel(
    series: Sequence[Sequence[tuple[int, DumpInput]]],
    racks: Racks | None,
    min_insync_replicas_default: int | None,
    done: Any = None,
) -> Kernel:
    """Return the kernel that reads the inputs of the series whose numbers come in; inputs carry their index."""

    def rows(numbers: Iterable[int]) -> Iterator[StagedRow]:
        for number in numbers:
            before: ClusterView | None = None
            for index, dump_input in series[number]:
                try:
                    parsed = _with_racks(_read(dump_input), racks)
                    yield from _dump_rows(index, parsed, before, min_insync_replicas_default)
                    before = parsed.clusters[-1] if parsed.clusters else before
                except InputError as error:
                    yield StagedRow({"input_index": index, "failure": _failure(error)}, {})
                if done is not None:
                    done.add(1)

    return lambda given: batches(rows(_numbers(given)))


def _numbers(given: Iterable[pa.RecordBatch]) -> Iterator[int]:
    for batch in given:
        numbers: Any = batch.column(0)
        yield from numbers.to_pylist()


def _read(dump_input: DumpInput) -> ParsedDump:
    chunks = read_chunks(dump_input.path)
    return read_dump(chunks, source=dump_input.path, format=dump_input.format, name=dump_input.name)


def _with_racks(parsed: ParsedDump, racks: Racks | None) -> ParsedDump:
    if racks is None:
        return parsed
    views = (view.with_racks(racks.for_cluster(view.name)) for view in parsed.clusters)
    return attrs.evolve(parsed, clusters=tuple(views))


def _dump_rows(
    index: int, parsed: ParsedDump, before: ClusterView | None, min_insync_replicas: int | None
) -> Iterator[StagedRow]:
    """Yield a row per cluster of one dump; its account, rejects and changes stand on the first."""
    about = _about(parsed, before)
    if not parsed.clusters:
        yield StagedRow({"input_index": index}, about)
    for place, view in enumerate(parsed.clusters):
        row = describe_view(view, min_insync_replicas=min_insync_replicas, pairs=True)
        nested = row.nested | about if place == 0 else row.nested
        yield StagedRow(row.scalars | {"input_index": index, "cluster_index": place}, nested)


def _about(parsed: ParsedDump, before: ClusterView | None) -> dict[str, Columns]:
    values = [getattr(parsed, name) for name in schemas.INPUTS.column_names if name not in ("cluster_count", "notes")]
    account = (*values[:2], len(parsed.clusters), *values[2:], list(parsed.notes))
    about = {
        "inputs": Columns(1, tuple([value] for value in account)),
        "rejects": Columns.of_rows(schemas.REJECTS, parsed.rejects),
    }
    if before is not None and parsed.clusters:
        after = parsed.clusters[0]
        found = changes(before, after)
        names = [before.name] * len(found), [after.name] * len(found)
        rest = schemas.CHANGES.column_names[2:]
        about["changes"] = Columns(
            len(found), (*names, *([getattr(change, name) for change in found] for name in rest))
        )
    return about


def _failure(error: InputError) -> dict[str, Any]:
    return {"what": error.what, "source": error.source, "line": error.line, "value": error.value}

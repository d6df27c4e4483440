"""Turn numbers of clusters or dumps into files of rows, on executors or in process.

Goals, most important first: the rows of a task depend on the numbers it is given and on nothing else; memory holds one
cluster, or small ones that wait for advice, and one batch of rows; an input that cannot be used becomes a row that says
so.

How: a job is cut into parts, ranges of numbers, by its work alone: `even_parts` of clusters, `parts_by_size` of dumps.
A fleet's task takes cluster numbers and places, counts and audits each cluster once per placer. A dumps' task takes
numbers of series; the inputs of a series are read one after another, so that each can be compared with the one before
it. All append their rows to files of their own task (tables/staging.py), and answer with `RESULT_SCHEMA`: the
files written, inputs that could not be used, and a fault that ended the task, if any; an error thus crosses to the
driver as a row, not as a traceback. While a task works, its counting file (tables/write.py) grows by a byte a
cluster or a dump, which shows the driver how many are done: an accumulator reports only when a task ends. The clusters
of a fleet have the fleet's numbers; the first cluster of input i of n has number i, its second n + i, and so on, so
that a task need not know the others' results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np

from broker.cluster import ClusterView
from broker.errors import InputError, UsageError
from broker.min_isr import with_min_isr
from placement.balance.changes import changes
from placement.consumer.described_groups import described_groups
from placement.formats.member_zones import MemberZones
from placement.formats.parsed import ParsedDump
from placement.formats.racks import Racks
from spark_analysis.answers.question import Groups
from spark_analysis.answers.registry import Asked
from spark_analysis.engines import RESULT_SCHEMA, Task
from spark_analysis.fleet.count import Placed, count_placed, describe_placed
from spark_analysis.fleet.generate import Fleet, make_cluster, make_clusters
from spark_analysis.fleet.place import place_cluster
from spark_analysis.fleet.views import simulated_view
from spark_analysis.sources.dumps import (
    LAST,
    DumpInput,
    as_input_error,
    fault_of,
    read_groups,
    read_named,
    unusable,
    with_racks,
    with_sizes,
)
from spark_analysis.sources.series import continued, series_note
from spark_analysis.tables import schemas
from spark_analysis.tables.advice_rows import advice_of
from spark_analysis.tables.schemas import ADVICE
from spark_analysis.tables.staging import TaskWriter
from spark_analysis.tables.view_rows import DUMP, PAIR_BROKER_COUNT_MAX, count_pairs, describe_view, every_partition

HELD_CLUSTER_COUNT_MAX: Final = 128
HELD_ROW_COUNT_MAX: Final = 65_536  # Some megabytes: what a task holds of brokers and topics before it writes.
WAITING_PARTITION_COUNT_MAX: Final = 1 << 17  # Some ten megabytes of clusters.
_RESULT: Final[dict[str, Any]] = dict.fromkeys(RESULT_SCHEMA.names)


@attrs.frozen(eq=False)
class Earlier:
    """Hold the cluster that was read last, its number, and its consumer groups where they are given."""

    view: ClusterView
    cluster_id: int
    groups: Groups | None = None


def fleet_task(
    fleet: Fleet, root: Path, *, by_topic: bool = True, partitions: bool = False, asked: Sequence[Asked] = ()
) -> Task:
    """Return the function that makes, places and describes the clusters of given numbers, once per placer.

    Files go under `root`. Topics are listed if `by_topic`, every partition of them with `partitions`. Each placement is
    `asked` the questions.
    """

    def work(numbers: Iterable[int], writer: TaskWriter) -> Iterator[dict[str, Any]]:
        recipe, row_count = fleet.recipe, 0
        held: list[Placed] = []
        for cluster in make_clusters(fleet, list(numbers)):
            other: Placed | None = None
            for placer in cluster.shape.placers:
                rows = place_cluster(cluster, placer, seed=recipe.seed)
                other = count_placed(cluster, rows, placer=placer, source=recipe.source, by_topic=by_topic, other=other)
                held.append(other)
                row_count += held[-1].row_count
                if partitions or asked:
                    view = simulated_view(cluster, rows, recipe.source)
                    if partitions:
                        writer.add_further(cluster.number, placer, every_partition(view))
                    _ask(asked, view, (cluster.number, placer), writer)
            writer.tick()
            if len(held) >= HELD_CLUSTER_COUNT_MAX or row_count >= HELD_ROW_COUNT_MAX:
                write(held, writer)
                held, row_count = [], 0
        if held:
            write(held, writer)
        yield from ()

    def write(held: Sequence[Placed], writer: TaskWriter) -> None:
        writer.add(np.array([one.cluster.number for one in held]), describe_placed(held, fleet.recipe.source))

    return _task(root, work)


def pairs_task(fleet: Fleet, root: Path, wanted: Sequence[tuple[int, str]]) -> Task:
    """Return the function that counts pairs of brokers for the clusters and placers at the given places of `wanted`."""

    def work(places: Iterable[int], writer: TaskWriter) -> Iterator[dict[str, Any]]:
        for place in places:
            number, placer = wanted[place]
            cluster = make_cluster(fleet, number)
            if cluster.broker_count <= PAIR_BROKER_COUNT_MAX:
                rows = place_cluster(cluster, placer, seed=fleet.recipe.seed)
                pairs = count_pairs(rows, np.arange(cluster.broker_count, dtype=np.int32))
                row_count = len(pairs.parts[0])
                writer.append(schemas.PAIRS, ([number] * row_count, [placer] * row_count, *pairs.parts))
        yield from ()

    return _task(root, work)


def dumps_task(
    series: Sequence[Sequence[tuple[int, DumpInput]]],
    root: Path,
    racks: Racks | None,
    min_insync_replicas_default: int | None,
    asked: Sequence[Asked] = (),
    zones: MemberZones | None = None,
) -> Task:
    """Return the function that reads the inputs of the series with the given numbers; inputs carry their index.

    What to do next is said of the last moment of each cluster alone: the past cannot be changed; that moment is `asked`
    the questions, too, about the groups in its files of groups if it has any.
    """
    input_count = sum(map(len, series))

    def take(
        index: int, dump_input: DumpInput, read: ParsedDump, last_of: dict[str, Earlier], writer: TaskWriter
    ) -> Iterator[Earlier]:
        """Write the rows of an input; yield the clusters that have no later moment, and keep the last in `last_of`."""
        of_racks = with_racks(read, racks, dump_input)
        sized = with_sizes(of_racks, dump_input.sizes, source=dump_input.sizes_source)
        before, parsed = _continued(dump_input, sized.parsed, last_of)
        _write_account(writer, parsed)
        if sized.account is not None:
            _write_account(writer, sized.account)
        last = before
        for place, shown in enumerate(parsed.clusters):
            view = with_min_isr(shown, min_insync_replicas_default)
            earlier = last if not place or dump_input.moments != LAST else None
            if earlier is not None:
                _write_changes(writer, earlier.view, view)
            elif last is not None:
                yield last
            found = describe_view(view, pairs=True, partitions=True)
            previous = {"previous_cluster_id": [None if earlier is None else earlier.cluster_id]}
            last = Earlier(view, index + place * input_count)
            writer.add(np.array([last.cluster_id]), attrs.evolve(found, facts=found.facts | previous))
        if last is not None and dump_input.groups:
            last = attrs.evolve(last, groups=_groups(dump_input, last.view, zones, writer))
        if last is not None:
            key = dump_input.cluster or str(index)
            yield from [last_of.pop(key)] if key in last_of else []
            last_of[key] = last

    def work(numbers: Iterable[int], writer: TaskWriter) -> Iterator[dict[str, Any]]:
        advised = _Advised(writer, asked, min_insync_replicas_default)
        for number in numbers:
            last_of: dict[str, Earlier] = {}
            done: list[Earlier] = []
            for index, dump_input in series[number]:
                try:
                    read = read_named(dump_input)
                except UsageError as error:
                    _write_account(writer, unusable(dump_input, error), fault_of(error))
                    yield _failure(index, as_input_error(error), is_fatal=False)
                else:
                    try:
                        done += take(index, dump_input, read, last_of, writer)
                    except InputError as error:  # Of sizes or groups, which the user has given for this cluster.
                        yield _failure(index, error, is_fatal=True)
                writer.tick()
            for last in sorted((*done, *last_of.values()), key=lambda one: one.cluster_id):
                advised.add(last)
        advised.flush()

    return _task(root, work)


def _continued(dump: DumpInput, parsed: ParsedDump, last_of: dict[str, Earlier]) -> tuple[Earlier | None, ParsedDump]:
    """Take from `last_of` the cluster that an input shows at a later moment; return it, and the input with a note."""
    if dump.series is None or not parsed.clusters:
        return None, parsed
    view, last = parsed.clusters[0], {key: one.view for key, one in last_of.items()}
    key = continued(dump, view, last)
    before = None if key is None else last_of.pop(key)
    refused = last.get(dump.cluster) if dump.cluster is not None else next(reversed(last.values()), None)
    note = series_note(dump, view, None if before is None else before.view, refused)
    return before, attrs.evolve(parsed, notes=(*parsed.notes, note)) if note else parsed


@attrs.define(eq=False)
class _Advised:
    """Write the advice on all waiting clusters, table by table, which costs an eighth less than cluster by cluster."""

    writer: TaskWriter
    asked: Sequence[Asked]
    min_insync_replicas_default: int | None
    _waiting: list[Earlier] = attrs.field(factory=list)
    _partition_count: int = 0

    def add(self, last: Earlier) -> None:
        """Queue a cluster for advice, and advise all queued ones once they have many partitions."""
        self._waiting.append(attrs.evolve(last, view=with_min_isr(last.view, self.min_insync_replicas_default)))
        self._partition_count += last.view.partitions.count
        if self._partition_count >= WAITING_PARTITION_COUNT_MAX:
            self.flush()

    def flush(self) -> None:
        """Advise all clusters that wait."""
        for table in ADVICE:
            for one in self._waiting:
                rows = advice_of(table, one.view)
                self.writer.add_further(one.cluster_id, DUMP, () if rows is None else [(table, rows)])
        for one in self._waiting:
            _ask(self.asked, one.view, (one.cluster_id, DUMP), self.writer, one.groups)
        self._waiting, self._partition_count = [], 0


def even_parts(count: int, part_count: int) -> tuple[range, ...]:
    """Return the numbers below `count` in so many parts, which differ by one in length at most.

    >>> even_parts(5, 2)
    (range(0, 2), range(2, 5))
    """
    return tuple(range(count * part // part_count, count * (part + 1) // part_count) for part in range(part_count))


def parts_by_size(sizes_bytes: Sequence[int], part_size_bytes: int) -> tuple[range, ...]:
    """Return the numbers of the sizes in parts of successive numbers, each as large as may be up to `part_size_bytes`.

    A larger one is a part by itself.

    >>> parts_by_size([30, 30, 30, 100, 1], 64)
    (range(0, 2), range(2, 3), range(3, 4), range(4, 5))
    """
    starts, held = [0], 0
    for number, size_bytes in enumerate(sizes_bytes):
        if number > starts[-1] and held + size_bytes > part_size_bytes:
            starts.append(number)
            held = 0
        held += size_bytes
    return tuple(range(start, end) for start, end in pairwise((*starts, len(sizes_bytes))))


def _task(root: Path, work: Callable[[Iterable[int], TaskWriter], Iterator[dict[str, Any]]]) -> Task:
    """Return the task that lets `work` write to this attempt's files."""

    def run(numbers: Sequence[int], name: str) -> list[dict[str, Any]]:
        with TaskWriter(root, name) as writer:
            try:
                results = [_RESULT | {"failure": failure} for failure in work(numbers, writer)]
                return results + [_RESULT | attrs.asdict(written) for written in writer.close()]
            except UsageError as error:
                return [_RESULT | {"fault": str(error)}]

    return run


def _groups(dump_input: DumpInput, view: ClusterView, zones: MemberZones | None, writer: TaskWriter) -> Groups:
    """Return the consumer groups of a cluster, and write the account of the files that they are read from."""
    named = zip(dump_input.groups, dump_input.groups_sources or dump_input.groups, strict=True)
    files = [read_groups(path, source=source) for path, source in named]
    found = described_groups(files, cluster=view.name, zones=zones)
    for one in found.tables:
        _write_account(writer, one.account)
    return tuple(found.by_group())


def _ask(
    asked: Sequence[Asked], view: ClusterView, key: tuple[int, str], writer: TaskWriter, groups: Groups | None = None
) -> None:
    for one in asked:
        rows = one.question.rows(view, one.values, groups)
        keys = ([part] * rows.num_rows for part in key)
        writer.append(one.question.run_table, (*keys, *(column.combine_chunks() for column in rows.columns)))


def _write_account(writer: TaskWriter, parsed: ParsedDump, fault: str | None = None) -> None:
    more = {"cluster_count": len(parsed.clusters), "notes": list(parsed.notes), "fault": fault}
    account = [more[name] if name in more else getattr(parsed, name) for name in schemas.INPUTS.column_names]
    writer.append(schemas.INPUTS, [[value] for value in account])
    writer.append(schemas.REJECTS, _columns(schemas.REJECTS.column_names, parsed.rejects))


def _write_changes(writer: TaskWriter, before: ClusterView, after: ClusterView) -> None:
    found = changes(before, after)
    names = [before.name] * len(found), [after.name] * len(found)
    writer.append(schemas.CHANGES, (*names, *_columns(schemas.CHANGES.column_names[2:], found)))


def _columns(names: Sequence[str], rows: Sequence[Any]) -> list[list[Any]]:
    """Return these attributes of the rows, each as a column."""
    return [[getattr(row, name) for row in rows] for name in names]


def error_of(failure: Mapping[str, Any]) -> InputError:
    """Return the error in a row of `FAILURE`."""
    return InputError(failure["what"], source=failure["source"], line=failure["line"], value=failure["value"])


def _failure(index: int, error: InputError, *, is_fatal: bool) -> dict[str, Any]:
    results = {"what": error.what, "source": error.source, "line": error.line, "value": error.value}
    return {"input_index": index, "is_fatal": is_fatal} | results

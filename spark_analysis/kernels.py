"""Turn numbers of clusters or dumps into Arrow batches of every table, on executors or in process.

Goals, most important first: the rows of a kernel depend on the numbers it is given and on nothing else; memory holds
one cluster with its rows, or small ones that wait for advice, and one batch of rows of each table; an input that cannot
be used becomes a row that says so.

How: a kernel is a generator without side effects: numbers go in, and pairs of a table and a batch of its rows come out
(tables/batching.py). So Spark may run it again wherever an executor is lost. A job is cut into parts, ranges of
numbers, by its work alone: `even_parts` of clusters, `parts_by_size` of dumps. A fleet's kernel takes cluster numbers
and places, counts and audits each cluster once per placer. A dumps' kernel takes numbers of series; the inputs of a
series are read one after another, so that each can be compared with the one before it. An input that could not be used
and a fault that ends the kernel are rows of the table of failures; an error thus crosses to the driver as a row, not as
a traceback. The clusters of a fleet have the fleet's numbers; the first cluster of input i of n has number i, its
second n + i, and so on, so that a kernel need not know the others' results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, TypeAlias

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
from spark_analysis.tables.batching import TableBatch, TableBatches
from spark_analysis.tables.columns import batch_of
from spark_analysis.tables.schemas import ADVICE, FAILURES
from spark_analysis.tables.view_rows import DUMP, PAIR_BROKER_COUNT_MAX, count_pairs, describe_view, every_partition

HELD_CLUSTER_COUNT_MAX: Final = 128
HELD_ROW_COUNT_MAX: Final = 65_536  # Some megabytes: what a task holds of brokers and topics before it writes.
WAITING_PARTITION_COUNT_MAX: Final = 1 << 17  # Some ten megabytes of clusters.
Kernel: TypeAlias = Callable[[Iterable[int]], Iterator[TableBatch]]
"""Work on the given numbers, and yield batches of rows of tables."""


@attrs.frozen(eq=False)
class Earlier:
    """Hold the cluster that was read last, its number, and its consumer groups where they are given."""

    view: ClusterView
    cluster_id: int
    groups: Groups | None = None


def fleet_kernel(
    fleet: Fleet, *, by_topic: bool = True, partitions: bool = False, asked: Sequence[Asked] = ()
) -> Kernel:
    """Return the function that makes, places and describes the clusters of given numbers, once per placer.

    Topics are listed if `by_topic`, every partition of them with `partitions`. Each placement is `asked` the questions.
    """

    def work(numbers: Iterable[int], batches: TableBatches) -> Iterator[None]:
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
                        batches.add_further(cluster.number, placer, every_partition(view))
                    _ask(asked, view, (cluster.number, placer), batches)
            if len(held) >= HELD_CLUSTER_COUNT_MAX or row_count >= HELD_ROW_COUNT_MAX:
                describe(held, batches)
                held, row_count = [], 0
            yield
        if held:
            describe(held, batches)

    def describe(held: Sequence[Placed], batches: TableBatches) -> None:
        batches.add(np.array([one.cluster.number for one in held]), describe_placed(held, fleet.recipe.source))

    return _kernel(work)


def pairs_kernel(fleet: Fleet, wanted: Sequence[tuple[int, str]]) -> Kernel:
    """Return the function that counts pairs of brokers for the clusters and placers at the given places of `wanted`."""

    def work(places: Iterable[int], batches: TableBatches) -> Iterator[None]:
        for place in places:
            number, placer = wanted[place]
            cluster = make_cluster(fleet, number)
            if cluster.broker_count <= PAIR_BROKER_COUNT_MAX:
                rows = place_cluster(cluster, placer, seed=fleet.recipe.seed)
                pairs = count_pairs(rows, np.arange(cluster.broker_count, dtype=np.int32))
                row_count = len(pairs.parts[0])
                batches.append(schemas.PAIRS, ([number] * row_count, [placer] * row_count, *pairs.parts))
            yield

    return _kernel(work)


def dumps_kernel(
    series: Sequence[Sequence[tuple[int, DumpInput]]],
    racks: Racks | None,
    min_insync_replicas_default: int | None,
    asked: Sequence[Asked] = (),
    zones: MemberZones | None = None,
) -> Kernel:
    """Return the function that reads the inputs of the series with the given numbers; inputs carry their index.

    What to do next is said of the last moment of each cluster alone: the past cannot be changed; that moment is `asked`
    the questions, too, about the groups in its files of groups if it has any.
    """
    input_count = sum(map(len, series))

    def take(
        index: int, dump_input: DumpInput, read: ParsedDump, last_of: dict[str, Earlier], batches: TableBatches
    ) -> Iterator[Earlier]:
        """Take the rows of an input; yield the clusters that have no later moment, and keep the last in `last_of`."""
        of_racks = with_racks(read, racks, dump_input)
        sized = with_sizes(of_racks, dump_input.sizes, source=dump_input.sizes_source)
        before, parsed = _continued(dump_input, sized.parsed, last_of)
        _add_account(batches, parsed)
        if sized.account is not None:
            _add_account(batches, sized.account)
        last = before
        for place, shown in enumerate(parsed.clusters):
            view = with_min_isr(shown, min_insync_replicas_default)
            earlier = last if not place or dump_input.moments != LAST else None
            if earlier is not None:
                _add_changes(batches, earlier.view, view)
            elif last is not None:
                yield last
            found = describe_view(view, pairs=True, partitions=True)
            previous = {"previous_cluster_id": [None if earlier is None else earlier.cluster_id]}
            last = Earlier(view, index + place * input_count)
            batches.add(np.array([last.cluster_id]), attrs.evolve(found, facts=found.facts | previous))
        if last is not None and dump_input.groups:
            last = attrs.evolve(last, groups=_groups(dump_input, last.view, zones, batches))
        if last is not None:
            key = dump_input.cluster or str(index)
            yield from [last_of.pop(key)] if key in last_of else []
            last_of[key] = last

    def work(numbers: Iterable[int], batches: TableBatches) -> Iterator[None]:
        advised = _Advised(batches, asked, min_insync_replicas_default)
        for number in numbers:
            last_of: dict[str, Earlier] = {}
            done: list[Earlier] = []
            for index, dump_input in series[number]:
                try:
                    read = read_named(dump_input)
                except UsageError as error:
                    _add_account(batches, unusable(dump_input, error), fault_of(error))
                    _add_failure(batches, index, as_input_error(error), is_fatal=False)
                else:
                    try:
                        done += take(index, dump_input, read, last_of, batches)
                    except InputError as error:  # Of sizes or groups, which the user has given for this cluster.
                        _add_failure(batches, index, error, is_fatal=True)
                yield
            for last in sorted((*done, *last_of.values()), key=lambda one: one.cluster_id):
                advised.add(last)
        advised.flush()

    return _kernel(work)


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
    """Give the advice on all waiting clusters, table by table, which costs an eighth less than cluster by cluster."""

    batches: TableBatches
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
                self.batches.add_further(one.cluster_id, DUMP, () if rows is None else [(table, rows)])
        for one in self._waiting:
            _ask(self.asked, one.view, (one.cluster_id, DUMP), self.batches, one.groups)
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


def _kernel(work: Callable[[Iterable[int], TableBatches], Iterator[None]]) -> Kernel:
    """Return the kernel that lets `work` collect rows, and yields what is full whenever `work` pauses."""

    def run(numbers: Iterable[int]) -> Iterator[TableBatch]:
        batches = TableBatches()
        try:
            for _ in work(numbers, batches):
                yield from batches.full()
            yield from batches.rest()
        except UsageError as error:
            yield FAILURES, batch_of(FAILURES, [[value] for value in (None, True, str(error), None, None, None)])

    return run


def _groups(dump_input: DumpInput, view: ClusterView, zones: MemberZones | None, batches: TableBatches) -> Groups:
    """Return the consumer groups of a cluster, and take the account of the files that they are read from."""
    named = zip(dump_input.groups, dump_input.groups_sources or dump_input.groups, strict=True)
    files = [read_groups(path, source=source) for path, source in named]
    found = described_groups(files, cluster=view.name, zones=zones)
    for one in found.tables:
        _add_account(batches, one.account)
    return tuple(found.by_group())


def _ask(
    asked: Sequence[Asked], view: ClusterView, key: tuple[int, str], batches: TableBatches, groups: Groups | None = None
) -> None:
    for one in asked:
        rows = one.question.rows(view, one.values, groups)
        keys = ([part] * rows.num_rows for part in key)
        batches.append(one.question.run_table, (*keys, *(column.combine_chunks() for column in rows.columns)))


def _add_account(batches: TableBatches, parsed: ParsedDump, fault: str | None = None) -> None:
    more = {"cluster_count": len(parsed.clusters), "notes": list(parsed.notes), "fault": fault}
    account = [more[name] if name in more else getattr(parsed, name) for name in schemas.INPUTS.column_names]
    batches.append(schemas.INPUTS, [[value] for value in account])
    batches.append(schemas.REJECTS, _columns(schemas.REJECTS.column_names, parsed.rejects))


def _add_changes(batches: TableBatches, before: ClusterView, after: ClusterView) -> None:
    found = changes(before, after)
    names = [before.name] * len(found), [after.name] * len(found)
    batches.append(schemas.CHANGES, (*names, *_columns(schemas.CHANGES.column_names[2:], found)))


def _columns(names: Sequence[str], rows: Sequence[Any]) -> list[list[Any]]:
    """Return these attributes of the rows, each as a column."""
    return [[getattr(row, name) for row in rows] for name in names]


def error_of(failure: Mapping[str, Any]) -> InputError:
    """Return the error in a row of the table of failures."""
    return InputError(failure["what"], source=failure["source"], line=failure["line"], value=failure["value"])


def _add_failure(batches: TableBatches, index: int, error: InputError, *, is_fatal: bool) -> None:
    results = (index, is_fatal, error.what, error.source, error.line, error.value)
    batches.append(FAILURES, [[value] for value in results])

"""Turn dumps into rows of one table, a fault row for each input or entry that cannot be used.

One input is held at a time. Racks and sizes are the user's own files: a mistake in them is an error in every mode."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import attrs
import pyarrow as pa

from broker.cluster import ClusterView
from broker.errors import BrokersideError, InputError
from placement.formats.parsed import ParsedDump, Reject
from placement.formats.racks import Racks
from spark_analysis.data_sources.options import DROP, FAILFAST
from spark_analysis.sources.dumps import DumpInput, fault_of, read_named, unusable, with_racks, with_sizes
from spark_analysis.sources.inputs import racks_in
from spark_analysis.tables import schemas as tables
from spark_analysis.tables.columns import Table
from spark_analysis.tables.view_columns import ColumnRows, Constants, broker_columns, cluster_columns, partition_columns

FAULTS_PER_BATCH: Final = 1 << 13


@attrs.frozen
class DumpRequest:
    """Choose what to make of dumps: the table, its columns, the mode of faults, racks and min.insync.replicas."""

    table: Table
    columns: tuple[str, ...]
    mode: str
    racks: str | None = None
    min_insync_replicas: int | None = None


def table_batches(request: DumpRequest, dumps: Iterable[DumpInput]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the request's table, of one dump after another.

    Raises InputError for racks or sizes that cannot be used, and with FAILFAST for the first fault.
    """
    racks = None if request.racks is None else racks_in(request.racks)
    for dump in dumps:
        yield from dump_batches(request, dump, racks)


def dump_batches(
    request: DumpRequest, dump: DumpInput, racks: Racks | None, read: Callable[[DumpInput], ParsedDump] = read_named
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the request's table of one dump, as `read` parses it; raise InputError as `table_batches`."""
    for rows in _rows(request, dump, racks, read):
        yield rows.select(list(request.columns))


def view_rows(table: Table, view: ClusterView, min_insync_replicas: int | None = None) -> Iterator[ColumnRows]:
    """Yield what the tables of partitions, brokers and clusters say of one cluster; nothing for other tables."""
    if table.name == tables.CLUSTER_PARTITIONS.name:
        yield from partition_columns(view, min_insync_replicas)
    elif table.name == tables.CLUSTER_BROKERS.name:
        yield broker_columns(view)
    elif table.name == tables.CLUSTER_CLUSTERS.name:
        yield cluster_columns(view)


def fault_batches(table: Table, faults: Sequence[tuple[str, str]]) -> Iterator[pa.RecordBatch]:
    """Yield a row for each fault, given as the source and the text, with nulls in the other columns."""
    for start in range(0, len(faults), FAULTS_PER_BATCH):
        some = faults[start : start + FAULTS_PER_BATCH]
        values = {"source": [source for source, _ in some], "fault": [text for _, text in some]}
        yield ColumnRows(len(some), values).batch(table, Constants())


def account_batch(table: Table, parsed: ParsedDump, fault: str | None, cluster_count: int | None) -> pa.RecordBatch:
    """Return the row of the table of inputs that accounts for one input."""
    counted = ("source", "format", "rows_in", "rows_analysed", "rows_rejected", "lines_passed_over")
    values = {name: [getattr(parsed, name)] for name in counted}
    values |= {"cluster_count": [len(parsed.clusters) if cluster_count is None else cluster_count]}
    values |= {"notes": [list(parsed.notes)], "fault": [fault]}
    return ColumnRows(1, values).batch(table, Constants())


def reject_batch(table: Table, rejects: Sequence[Reject]) -> pa.RecordBatch:
    """Return the rows of the table of rejects."""
    values = {name: [getattr(one, name) for one in rejects] for name in table.column_names}
    return ColumnRows(len(rejects), values).batch(table, Constants())


def account_batches(
    table: Table, mode: str, parsed: ParsedDump, fault: str | None, *, cluster_count: int | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield what a table says of an input beside its clusters; `fault` is set if it could not be used at all.

    `cluster_count` is given where `parsed` is the account alone, and holds no cluster.

    The first table of a data source has a row for each entry that was put aside. Raises InputError with FAILFAST.
    """
    if parsed.rejects and mode == FAILFAST:
        first = parsed.rejects[0]
        raise InputError(first.reason, source=first.source, line=first.line, value=first.value or None)
    if table == tables.CLUSTER_INPUTS:
        yield account_batch(table, parsed, fault, cluster_count)
    elif table == tables.CLUSTER_REJECTS:
        yield reject_batch(table, parsed.rejects)
    elif mode != DROP:
        lists_entries = fault is None and table.name in (tables.CLUSTER_PARTITIONS.name, tables.METADATA_EVENTS.name)
        texts = [reject_text(one) for one in parsed.rejects] if lists_entries else [] if fault is None else [fault]
        yield from fault_batches(table, [(parsed.source, text) for text in texts])


def reject_text(reject: Reject) -> str:
    """Return a rejected entry as one sentence with its place and the value found."""
    return str(InputError(reject.reason, source=reject.source, line=reject.line, value=reject.value or None))


def _rows(
    request: DumpRequest, dump: DumpInput, racks: Racks | None, read: Callable[[DumpInput], ParsedDump]
) -> Iterator[pa.RecordBatch]:
    try:
        parsed = read(dump)
    except BrokersideError as error:
        if request.mode == FAILFAST:
            raise
        yield from account_batches(request.table, request.mode, unusable(dump, error), fault_of(error))
        return
    sized = with_sizes(with_racks(parsed, racks, dump), dump.sizes)
    yield from _read(request, sized.parsed)
    if sized.account is not None:
        yield from account_batches(request.table, request.mode, sized.account, None)


def _missing(request: DumpRequest, view: ClusterView, source: str) -> Iterator[pa.RecordBatch]:
    """Yield fault rows of the table of partitions: for partitions not listed, and for racks of other clusters."""
    faults = [each for each in (view.wholeness.sentence, view.racks_missing) if each is not None]
    if not faults or request.mode == DROP:
        return
    if request.mode == FAILFAST:
        raise InputError(faults[0], source=source)
    if request.table.name == tables.CLUSTER_PARTITIONS.name:
        known = Constants({"cluster": view.name, "source": source})
        yield ColumnRows(len(faults), {"fault": faults}).batch(request.table, known)


def _read(request: DumpRequest, parsed: ParsedDump) -> Iterator[pa.RecordBatch]:
    """Yield the rows of an input that could be read: its clusters, and its account."""
    for view in parsed.clusters:
        known = Constants({"cluster": view.name, "source": parsed.source})
        for rows in view_rows(request.table, view, request.min_insync_replicas):
            yield rows.batch(request.table, known)
    yield from account_batches(request.table, request.mode, parsed, None)
    for view in parsed.clusters:
        yield from _missing(request, view, parsed.source)

"""Turn metadata logs into rows of one table: the state at moments, or the history as events.

It decides which moments a log is shown at: those of the option `at`, or with `by_brokers` each one before the set of
unfenced brokers changed, or its end. A log is replayed once for its rows, and with `by_brokers` once before for its
moments; the state at one moment is held at a time, with `by_brokers` at all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa

from broker.cluster import ClusterView
from broker.errors import BrokersideError, CorruptDataError, InputError
from log.metadata import (
    END,
    FORMAT,
    Moment,
    RejectedRecords,
    Replay,
    images_at,
    live_moments,
    replay_notes,
)
from log.metadata.durations import ClusterHistory
from log.metadata.history import Event
from log.tools.sources import metadata_files
from placement.formats.parsed import ParsedDump, RowCounts
from spark_analysis.data_sources.dump_rows import account_batches, view_rows
from spark_analysis.data_sources.options import FAILFAST
from spark_analysis.sources.dumps import DumpInput, fault_of, unusable
from spark_analysis.sources.moments import MomentView, that_differ, what_changed
from spark_analysis.tables.columns import Table
from spark_analysis.tables.schemas import CLUSTER_INPUTS, CLUSTER_REJECTS, METADATA_EVENTS
from spark_analysis.tables.view_columns import ColumnRows, Constants

EVENTS_PER_BATCH: Final = 1 << 13


@attrs.frozen
class MetadataRequest:
    """Choose what to make of metadata logs: the table, its columns, the mode of faults, and the moments."""

    table: Table
    columns: tuple[str, ...]
    mode: str
    at: tuple[Moment, ...] = (END,)
    by_brokers: bool = False


def metadata_batches(request: MetadataRequest, logs: Iterable[DumpInput]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the request's table, of one log after another; raise InputError with FAILFAST at a fault."""
    for log in logs:
        for batch in _rows(request, log):
            yield batch.select(list(request.columns))


def _rows(request: MetadataRequest, log: DumpInput) -> Iterator[pa.RecordBatch]:
    rejected = RejectedRecords()
    try:
        log.check_not_refused()
        replay = Replay(metadata_files(Path(log.path)), rejected=rejected)
        found = _events(replay) if request.table == METADATA_EVENTS else _states(request, log, replay, rejected)
        for constants, rows in found:
            known = Constants({"cluster": log.name, "source": log.said, **constants})
            yield rows.batch(request.table, known)
        parsed = _account(log, replay, rejected)
    except BrokersideError as error:
        if request.mode == FAILFAST:
            raise
        placed = InputError(error.what, source=log.said) if isinstance(error, CorruptDataError) else error
        yield from account_batches(request.table, request.mode, unusable(log, placed), fault_of(placed))
        return
    yield from account_batches(request.table, request.mode, parsed, None, cluster_count=1)


def _states(
    request: MetadataRequest, log: DumpInput, replay: Replay, rejected: RejectedRecords
) -> Iterator[tuple[Mapping[str, Any], ColumnRows]]:
    """Yield the rows of the state at each moment, with what they have in common; none for a table of the account."""
    before: ClusterView | None = None
    latest = None
    for one in _moments(request, log, replay, rejected):
        if one.offset == latest or request.table in (CLUSTER_INPUTS, CLUSTER_REJECTS):
            continue
        constants = {"offset": one.offset, "time_ms": one.time_ms, "moment": what_changed(before, one.view)}
        for rows in view_rows(request.table, one.view):
            yield constants, rows
        before, latest = one.view, one.offset


def _moments(
    request: MetadataRequest, log: DumpInput, replay: Replay, rejected: RejectedRecords
) -> Iterator[MomentView]:
    name = log.name or log.said
    if not request.by_brokers:
        yield from (MomentView.of(image, name, log.said, rejected) for image in images_at(replay, request.at))
        return
    at = live_moments(Replay(metadata_files(Path(log.path)), rejected=RejectedRecords()))
    yield from that_differ([MomentView.of(image, name, log.said, rejected) for image in images_at(replay, at)])


def _events(replay: Replay) -> Iterator[tuple[Mapping[str, Any], ColumnRows]]:
    """Yield the events of a log in batches."""
    events = ClusterHistory(replay).events()
    while batch := list(islice(events, EVENTS_PER_BATCH)):
        yield {}, ColumnRows(len(batch), _columns(batch))


def _columns(events: Sequence[Event]) -> dict[str, list[Any]]:
    names = [field.name for field in attrs.fields(Event) if field.name != "what"]
    return {name: [getattr(event, name) for event in events] for name in names} | {
        "what": [event.what.value for event in events]
    }


def _account(log: DumpInput, replay: Replay, rejected: RejectedRecords) -> ParsedDump:
    """Return the account of a log's records; raise NothingUsableError where none could be used."""
    notes = [*replay.disagreements, *replay_notes(replay, rejected)]
    tally = RowCounts(log.said, FORMAT, rows_analysed=replay.entry_count, notes=notes)
    for found in rejected.errors:
        tally.reject(found.what, found.source)
    return tally.dump(())

"""Read the Parquet tables of one run, without Spark, into the values of the report.

It decides which clusters are shown in full (the first `DETAILED_CLUSTERS_MAX` by rank), which clusters of a fleet have
a row (the first `ROWS_MAX`) and which are only counted, and how many rows of every list are shown."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker.cluster import Int64Array
from broker.errors import InputError
from spark_analysis.report.answers import load_answers
from spark_analysis.report.model import (
    QUANTITIES,
    Advice,
    ClusterDetail,
    ClusterRow,
    DumpComparison,
    PairCounts,
    Report,
    RunInfo,
    ShortenedList,
    Spreads,
)
from spark_analysis.report.rest import SHARE_COLUMNS, Rest
from spark_analysis.report.rows import (
    BrokerLoad,
    ClusterFacts,
    InputCount,
    LeastPlan,
    LogDir,
    PartitionChange,
    RackLoad,
    RecoveryStep,
    Reject,
    RestartBatches,
    Spread,
    TopicSpread,
    Violation,
    WorstOutage,
)
from spark_analysis.report.states import healthy_in_words, worst_in_words
from spark_analysis.tables import schemas
from spark_analysis.tables.columns import Table
from spark_analysis.tables.limits import DETAILED_CLUSTERS_MAX, ROWS_MAX, VIOLATIONS_MAX
from spark_analysis.tables.scan import row_count, scan_batches, scan_table, sorted_rows

Row = TypeVar("Row")
Key = tuple[int, str]

LIST_MAX: Final = 100  # Rejects and inputs listed; the tables beside the page hold the rest.
TOPICS_MAX: Final = 10  # The topics of one cluster that skew most.
CHANGES_MAX: Final = 50  # Changes of one kind between two dumps.
VIOLATIONS_OF_MANY_MAX: Final = 10  # Of one constraint, when many clusters are shown: 200 times eight constraints.
MANY: Final = 20


def load_report(out: Path, run: RunInfo) -> Report:
    """Return the report of the tables under `out`/tables.

    Raises InputError when there is no table of clusters, or a table cannot be read.
    """
    if not (out / "tables" / schemas.CLUSTERS.name).is_dir():
        raise InputError("no table of clusters to report on", source=str(out / "tables" / schemas.CLUSTERS.name))
    try:
        return _load(out, run)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"the tables cannot be read: {error}", source=str(out / "tables")) from error


def _load(out: Path, run: RunInfo) -> Report:
    rows, rest = _cluster_rows(out, run)
    shown = rows[:DETAILED_CLUSTERS_MAX]
    inputs = sorted(_scan(out, schemas.INPUTS, InputCount), key=_input_order)
    unusable = [row for row in inputs if row.fault is not None]
    rejects = _first(_scan(out, schemas.REJECTS, Reject), _reject_order, LIST_MAX)
    return Report(
        run=run,
        rows=rows,
        details=_details(out, shown),
        inputs=ShortenedList(len(inputs), tuple(inputs[:LIST_MAX])),
        unusable=ShortenedList(len(unusable), tuple(unusable[:LIST_MAX])),
        rows_in=sum(row.rows_in for row in inputs),
        rows_analysed=sum(row.rows_analysed for row in inputs),
        rows_rejected=sum(row.rows_rejected for row in inputs),
        rejects=rejects,
        lines_passed_over=sum(row.lines_passed_over for row in inputs),
        changes=_changes(out, rows),
        lists_partitions=row_count(_folder(out, schemas.PARTITIONS)) > 0,
        rest=rest,
        answers=load_answers(out, run.asked),
    )


def _folder(out: Path, table: Table) -> Path:
    return out / "tables" / table.name


def _scan(out: Path, table: Table, kind: type[Row], clusters: Int64Array | None = None) -> Iterator[Row]:
    for batch in scan_batches(_folder(out, table), table, clusters=clusters):
        yield from _rows_of(batch, table, kind)


def _of_brokers(
    out: Path, clusters: Int64Array | None = None, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the measures over brokers, of these clusters if they are given."""
    wanted = None if columns is None else (*columns, "scope")
    table = schemas.MEASURES
    for batch in scan_batches(_folder(out, table), table, columns=wanted, clusters=clusters):
        scope: Any = pa.scalar("broker")
        yield batch.filter(pc.equal(batch.column("scope"), scope)).select(list(columns or table.column_names))


def _rows_of(batch: pa.RecordBatch | pa.Table, table: Table, kind: type[Row]) -> Iterator[Row]:
    names = table.column_names
    columns = [
        [tuple(value) if isinstance(value, list) else value for value in column.to_pylist()]
        if pa.types.is_list(column.type)
        else column.to_pylist()
        for column in batch.columns
    ]
    for values in zip(*columns, strict=True):
        yield kind(**dict(zip(names, values, strict=True)))


@attrs.define
class _Group:
    """Holds the first rows of one group while more arrive; cut back when it holds four times its limit."""

    order: Callable[[Any], Any]
    limit: int
    count: int = 0
    rows: list[Any] = attrs.field(factory=list)

    def add(self, row: Any) -> None:
        self.count += 1
        self.rows.append(row)
        if len(self.rows) > 4 * self.limit:
            self.rows = heapq.nsmallest(self.limit, self.rows, key=self.order)

    def kept(self) -> ShortenedList[Any]:
        return ShortenedList(self.count, tuple(heapq.nsmallest(self.limit, self.rows, key=self.order)))


def _first(rows: Iterable[Row], order: Callable[[Row], Any], limit: int) -> ShortenedList[Row]:
    return _grouped(rows, lambda _: None, order, limit).get(None, ShortenedList(0, ()))


def _grouped(
    rows: Iterable[Row], group: Callable[[Row], Any], order: Callable[[Row], Any], limit: int
) -> dict[Any, ShortenedList[Row]]:
    groups: dict[Any, _Group] = {}
    for row in rows:
        groups.setdefault(group(row), _Group(order, limit)).add(row)
    return {key: groups[key].kept() for key in sorted(groups)}


def _key(row: Any) -> Key:
    return row.cluster_id, row.placer


def _input_order(row: InputCount) -> tuple[Any, ...]:
    """Order what could not be used first, then what has rejected rows."""
    return row.fault is None, -row.rows_rejected, row.source


def _reject_order(row: Reject) -> tuple[Any, ...]:
    return row.source, row.line or 0, row.reason, row.value


def _violation_order(row: Violation) -> tuple[Any, ...]:
    return row.topic or "", -1 if row.partition is None else row.partition, row.brokers, row.detail


def _topic_order(row: TopicSpread) -> tuple[Any, ...]:
    return -(row.replica_moves + (row.leader_moves or 0)), row.topic


def _log_dir_order(row: LogDir) -> tuple[Any, ...]:
    return row.error is None, -row.size_bytes, row.broker_id, row.log_dir


def _cluster_rows(out: Path, run: RunInfo) -> tuple[tuple[ClusterRow, ...], Rest]:
    """Return the clusters by rank: rows, and of a large simulated fleet the rest as columns.

    Dumps all have rows: each has gauges and gates of its own, and moments that may lie anywhere.
    """
    table = schemas.CLUSTERS
    clusters = sorted_rows(scan_table(_folder(out, table), table), ("rank", "cluster_id", "placer"))
    limit = ROWS_MAX if run.kind == "fleet" else clusters.num_rows
    with_rows, rest = None, Rest()
    if clusters.num_rows > limit:
        rest = Rest.of(clusters.slice(limit), _of_brokers(out, columns=SHARE_COLUMNS), QUANTITIES)
        clusters = clusters.slice(0, limit)
        with_rows = np.unique(clusters["cluster_id"].to_numpy())
    spreads: dict[Key, dict[str, Spread]] = {}
    for batch in _of_brokers(out, with_rows):
        for spread in _rows_of(batch, schemas.MEASURES, Spread):
            spreads.setdefault(_key(spread), {})[spread.quantity] = spread
    rows = []
    for place, fact in enumerate(_rows_of(clusters, table, ClusterFacts), start=1):
        over_brokers = Spreads(**spreads.get(_key(fact), {}))
        worst = worst_in_words(fact, over_brokers, run.tolerance)
        healthy = healthy_in_words(fact, over_brokers, run.tolerance)
        rows.append(ClusterRow(place, fact, over_brokers, worst or healthy, worst is None))
    return tuple(rows), rest


def _details(out: Path, shown: tuple[ClusterRow, ...]) -> tuple[ClusterDetail, ...]:
    keys = {_key(row.facts) for row in shown}
    clusters = np.array(sorted({cluster_id for cluster_id, _ in keys}), dtype=np.int64)

    def scan(table: Table, kind: type[Row]) -> Iterator[Row]:
        return (row for row in _scan(out, table, kind, clusters) if _key(row) in keys)

    spreads = _by_key(scan(schemas.MEASURES, Spread))
    brokers = _by_key(scan(schemas.BROKERS, BrokerLoad))
    racks = _by_key(scan(schemas.RACKS, RackLoad))
    topics = _grouped(scan(schemas.TOPICS, TopicSpread), _key, _topic_order, TOPICS_MAX)
    limit = VIOLATIONS_MAX if len(shown) <= MANY else VIOLATIONS_OF_MANY_MAX
    violations = _grouped(
        scan(schemas.VIOLATIONS, Violation), lambda row: (*_key(row), row.constraint), _violation_order, limit
    )
    of_cluster: dict[Key, list[ShortenedList[Violation]]] = {}
    for (cluster_id, placer, _), kept in violations.items():
        of_cluster.setdefault((cluster_id, placer), []).append(kept)
    pairs = _pairs(out, clusters)
    plans = _by_key(scan(schemas.PLANS, LeastPlan))
    outages = _by_key(scan(schemas.OUTAGES, WorstOutage))
    restarts = _by_key(scan(schemas.RESTARTS, RestartBatches))
    recovery = _by_key(scan(schemas.RECOVERY, RecoveryStep))
    log_dirs = _grouped(scan(schemas.LOG_DIRS, LogDir), _key, _log_dir_order, LIST_MAX)
    return tuple(
        ClusterDetail(
            row=row,
            spreads=tuple(spreads.get(key, ())),
            brokers=tuple(sorted(brokers.get(key, ()), key=_rack_order)),
            racks=tuple(sorted(racks.get(key, ()), key=lambda rack: (rack.rack is None, rack.rack or ""))),
            topics=topics.get(key, ShortenedList(0, ())),
            violations=tuple(of_cluster.get(key, ())),
            pairs=pairs.get(key, PairCounts()),
            log_dirs=log_dirs.get(key, ShortenedList(0, ())),
            advice=Advice(
                plans=tuple(plans.get(key, ())),
                outages=tuple(outages.get(key, ())),
                restarts=next(iter(restarts.get(key, ())), None),
                recovery=tuple(recovery.get(key, ())),
            ),
        )
        for row, key in ((row, _key(row.facts)) for row in shown)
    )


def _by_key(rows: Iterable[Row]) -> dict[Key, list[Row]]:
    found: dict[Key, list[Row]] = {}
    for row in rows:
        found.setdefault(_key(row), []).append(row)
    return found


def _rack_order(broker: BrokerLoad) -> tuple[bool, str, int]:
    return broker.rack is None, broker.rack or "", broker.broker_id


def _pairs(out: Path, clusters: Int64Array) -> dict[Key, PairCounts]:
    columns: dict[Key, list[tuple[Any, ...]]] = {}
    for batch in scan_batches(_folder(out, schemas.PAIRS), schemas.PAIRS, clusters=clusters):
        cluster_ids, placers = batch.column("cluster_id").to_numpy(), np.asarray(batch.column("placer").to_pylist())
        numbers = [batch.column(name).to_numpy() for name in ("broker_id", "other_broker_id", "shared_count")]
        for cluster_id, placer in sorted(set(zip(cluster_ids.tolist(), placers.tolist(), strict=True))):
            rows = (cluster_ids == cluster_id) & (placers == placer)
            columns.setdefault((cluster_id, placer), []).append(tuple(column[rows] for column in numbers))
    return {key: PairCounts(*(np.concatenate(parts) for parts in zip(*columns[key], strict=True))) for key in columns}


def _changes(out: Path, rows: tuple[ClusterRow, ...]) -> tuple[DumpComparison, ...]:
    kinds = _grouped(
        _scan(out, schemas.CHANGES, PartitionChange),
        lambda row: (row.from_cluster, row.to_cluster, row.change),
        lambda row: (row.topic, row.partition, row.detail),
        CHANGES_MAX,
    )
    steps: dict[tuple[str, str], list[ShortenedList[PartitionChange]]] = {}
    for (before, after, _), kept in kinds.items():
        steps.setdefault((before, after), []).append(kept)
    place = {row.facts.cluster: row.facts.cluster_id for row in rows}
    ordered = sorted(steps, key=lambda step: (place.get(step[1], -1), step))
    return tuple(DumpComparison(before, after, tuple(steps[before, after])) for before, after in ordered)

"""Turn what kafka-consumer-groups printed into rows of one table of kafka_groups.

The files of one cluster are read together, since one says who is in a group and another what each holds. The files of
one cluster are held at a time. Zones are the user's own file: a mistake in it is an error in every mode.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import attrs
import pyarrow as pa

from broker.errors import BrokersideError
from broker.wording import encodable
from placement.consumer.described_groups import DescribedMember, described_groups
from placement.formats.group_tables import GroupTable, GroupTables, OffsetRow, StateRow
from placement.formats.member_zones import MemberZones
from spark_analysis.data_sources.dump_rows import account_batches, fault_batches, reject_text
from spark_analysis.data_sources.options import DROP, FAILFAST
from spark_analysis.sources.dumps import DumpInput, fault_of, read_groups, read_zones, unusable
from spark_analysis.sources.files import check_readable
from spark_analysis.tables.columns import Table
from spark_analysis.tables.schemas import DESCRIBED_MEMBERS, DESCRIBED_OFFSETS, DESCRIBED_STATES
from spark_analysis.tables.view_columns import BATCH_ROWS, ColumnRows, Constants

_FORMS: Final = {
    table.name: GroupTable(table.name) for table in (DESCRIBED_MEMBERS, DESCRIBED_OFFSETS, DESCRIBED_STATES)
}


@attrs.frozen
class GroupRequest:
    """Choose what to make of the groups: the table, its columns, the mode of faults, the file of zones."""

    table: Table
    columns: tuple[str, ...]
    mode: str
    zones: str | None = None


@attrs.frozen
class ClusterFiles:
    """Name the files about the groups of one cluster, and the bytes that reading them is likely to take."""

    cluster: str
    paths: tuple[str, ...]
    size_bytes: int


def group_batches(request: GroupRequest, clusters: Iterable[ClusterFiles]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the request's table, of one cluster after another.

    Raises InputError for zones that cannot be used, and with FAILFAST for the first fault.
    """
    zones = None if request.zones is None else read_zones(request.zones)
    for cluster in clusters:
        for rows in _rows(request, cluster, zones):
            yield rows.select(list(request.columns))


def _rows(request: GroupRequest, cluster: ClusterFiles, zones: MemberZones | None) -> Iterator[pa.RecordBatch]:
    files: list[GroupTables] = []
    for path in cluster.paths:
        said = encodable(path)
        try:
            check_readable(path, source=said)
            files.append(read_groups(path, source=said))
        except BrokersideError as error:
            if request.mode == FAILFAST:
                raise
            account = unusable(DumpInput(path, cluster.cluster, source=said), error)
            yield from account_batches(request.table, request.mode, account, fault_of(error))
    described = described_groups(files, cluster=cluster.cluster, zones=zones)
    for one in described.tables:
        yield from account_batches(request.table, request.mode, one.account, None, cluster_count=1)
        form = _FORMS.get(request.table.name)
        if form is not None and request.mode != DROP:
            faults = [(one.source, reject_text(reject)) for table, reject in one.rejects if table is form]
            yield from fault_batches(request.table, faults)
    if request.table == DESCRIBED_MEMBERS:
        yield from _batches(request.table, cluster.cluster, [_member(one) for one in described.members])
    for one in described.tables:
        rows: Sequence[OffsetRow | StateRow] = ()
        if request.table == DESCRIBED_OFFSETS:
            rows = one.offsets
        elif request.table == DESCRIBED_STATES:
            rows = one.states
        yield from _batches(request.table, cluster.cluster, [_plain(row) | {"source": one.source} for row in rows])


def _batches(table: Table, cluster: str, rows: Sequence[dict[str, Any]]) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(rows), BATCH_ROWS):
        some = rows[start : start + BATCH_ROWS]
        columns = {name: [row.get(name) for row in some] for name in table.column_names if name != "cluster"}
        yield ColumnRows(len(some), columns).batch(table, Constants({"cluster": cluster}))


def _member(one: DescribedMember) -> dict[str, Any]:
    member = one.member
    return {
        "group": one.group,
        "member_id": member.id,
        "topics": list(member.topics),
        "rack": member.rack,
        "instance_id": member.instance_id,
        "held": [f"{held.topic}-{held.partition}" for held in member.owned],
        "client_id": one.client_id or None,
        "host": one.host or None,
        "assignor": one.assignor,
        "source": one.source,
    }


def _plain(row: OffsetRow | StateRow) -> dict[str, Any]:
    return {field.name: getattr(row, field.name) for field in attrs.fields(type(row))}

"""Compute what changes save for one cluster, from its partitions and what its groups read from each zone.

A row of readers whose partition the cluster does not list is a fault, and so is a cluster of which no replica stands in
a known rack. An assignor that is not answered for one group is a fault for the cluster: a sum without it is too small.

Source: placement/traffic/savings.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from broker.cluster import Int64Array
from broker.errors import BrokersideError, UsageError
from placement.traffic.consumers import NOW
from placement.traffic.crossing import Crossing, even_shares
from placement.traffic.savings import LEAST, changes_of, no_readers
from placement.traffic.zones import ZonedPartitions
from spark_analysis.answers.group_rows import ELSEWHERE, change_rows
from spark_analysis.frames.answering import REJECTED, is_named, shown_name
from spark_analysis.frames.views import usable_partitions, view_of
from spark_analysis.tables.columns import Table


def changes_table(
    keys: Sequence[str], key: Sequence[Any], found: pa.Table, readers: pa.Table, table: Table, price_per_gib: float
) -> pa.Table:
    """Return the rows of one cluster, with its keys; what cannot be used is a row with a fault."""
    values = dict(zip(keys, key, strict=True))
    rows = list(_rows(values, found, readers, price_per_gib))
    documented = [pa.field(field.name, field.type) for field in table.arrow_schema()]
    answered = pa.Table.from_pylist(rows, schema=pa.schema(documented))
    constants: list[Any] = [pa.repeat(scalar, len(rows)) for scalar in values.values()]
    fields = [pa.field(name, scalar.type) for name, scalar in values.items()]
    return pa.table([*constants, *answered.columns], schema=pa.schema([*fields, *documented]))


def _rows(values: dict[str, Any], found: pa.Table, readers: pa.Table, price_per_gib: float) -> Iterator[dict[str, Any]]:
    partitions = usable_partitions(found)
    rejected: dict[str, int] = {}
    unanswered: dict[str, list[str]] = {}
    for row in readers.select(["assignor", "fault", REJECTED.name]).to_pylist():
        if row["fault"] is not None and row["assignor"] is not None:
            unanswered.setdefault(row["assignor"], []).append(row["fault"])
        elif row["fault"] is not None:
            rejected[row["fault"]] = rejected.get(row["fault"], 0) + (row[REJECTED.name] or 0)
    if partitions.fault is not None:
        rejected[partitions.fault] = rejected.get(partitions.fault, 0) + partitions.rejected_count
    yield from ({"fault": fault, REJECTED.name: rejected[fault]} for fault in sorted(rejected))
    if not is_named(values):
        return
    name = shown_name(values)
    try:
        zoned = ZonedPartitions.of(view_of(name, partitions.rows, None))
        if not zoned.zones:
            raise UsageError(f"no replica of cluster {name!r} is in a known rack, so that nothing is known of zones")
        yield from ({"change": one, "fault": _said(unanswered[one])} for one in sorted(unanswered))
        matrices, least = _readers(zoned, readers)
        matrices = {one: matrix for one, matrix in matrices.items() if one not in unanswered}
        changes = changes_of(zoned, even_shares(len(zoned.zones)), matrices, least=least)
        yield from change_rows(changes, price_per_gib)
    except BrokersideError as error:
        yield {"fault": str(error), REJECTED.name: partitions.rows.num_rows}


def _said(faults: list[str]) -> str:
    """Return the fault of one group, or how many groups have one and the least of the texts."""
    return min(faults) if len(faults) == 1 else f"{len(faults)} groups are not answered; one of them: {min(faults)}"


def _readers(partitions: ZonedPartitions, rows: pa.Table) -> tuple[dict[str, Int64Array], Crossing]:
    """Return the matrix of readers of each assignor, and the least that all groups fetch across zones."""
    matrices = {NOW: no_readers(partitions)}
    zones: dict[str | None, int] = {zone: place for place, zone in enumerate(partitions.zones)}
    zones |= {ELSEWHERE: len(zones), None: len(zones) + 1}
    is_sized = partitions.sizes is not None
    least = np.zeros(5, np.float64)
    for row in rows.to_pylist():
        if row["assignor"] == LEAST:
            names = ("reader_count", "crossing_count", "unknown_count", "fetched_bytes", "crossing_bytes")
            least += [float(row[name] or 0) for name in names]
        elif row["topic"] is not None:
            rows_of_topic = partitions.rows_of(row["topic"])
            if not 0 <= row["partition"] < len(rows_of_topic):
                raise UsageError(f"partition {row['partition']} of topic {row['topic']!r} is read, but not listed")
            matrix = matrices.setdefault(row["assignor"], no_readers(partitions))
            matrix[rows_of_topic[row["partition"]], zones[row["zone"]]] += row["reader_count"]
    count, crossing, unknown, size, crossing_bytes = least.tolist()
    return matrices, Crossing(
        count=count,
        crossing_count=crossing,
        unknown_count=unknown,
        size_bytes=size if is_sized else None,
        crossing_bytes=crossing_bytes if is_sized else None,
    )

"""Estimate on executors what one cleaning pass would leave of a partition, from rows that name its segments.

One log is the segments of one folder, in order of their base offsets; the last is the active one. Files are mapped, and
none is written. What stands in the way, such as damage or a segment's own fault, is the row's `fault`.

Source: log/tools/rework.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from broker.errors import BrokersideError, InputError
from broker.units import TimeMs
from log.tools.rework import estimate_of_files
from log.tools.sources import named_file
from spark_analysis.data_sources.log_listing import MANIFEST
from spark_analysis.tables.schemas import COMPACTION

FOLDER: Final = "folder"


def compaction_rows(
    keys: Mapping[str, Any], segments: pa.Table, now_ms: TimeMs, *, include_active: bool = True
) -> pa.Table:
    """Return the row of one partition, with the keys of its group as Arrow scalars.

    Without `include_active` the last segment is not read, and counts in nothing but `segment_count` and faults.
    """
    ordered = segments.sort_by([("base_offset", "ascending"), ("source", "ascending")])
    faults = [fault for fault in ordered["fault"].to_pylist() if fault is not None]
    row: dict[str, Any] = {"segment_count": ordered.num_rows}
    try:
        sources = [str(one) for one in ordered["source"].to_pylist()]
        cleaned = sources if include_active else sources[:-1]
        row |= {"fault": min(faults)} if faults else _estimate(cleaned, now_ms)
    except BrokersideError as error:
        row["fault"] = str(error)
    documented = COMPACTION.arrow_schema()
    extra = [pa.field(name, value.type) for name, value in keys.items() if name not in documented.names]
    columns: list[Any] = [pa.array([keys[field.name].as_py()], field.type) for field in extra]
    for field in documented:
        value = keys[field.name].as_py() if field.name in keys else row.get(field.name)
        columns.append(pa.array([value], field.type))
    schema = pa.schema([*extra, *(pa.field(field.name, field.type) for field in documented)])
    return pa.table(columns, schema=schema)


def _estimate(sources: list[str], now_ms: TimeMs) -> dict[str, Any]:
    for source in sources:
        if Path(source).with_suffix(MANIFEST).exists():
            raise InputError("a tiered segment in chunks, which no cleaner touches", source=source)
    found = estimate_of_files([named_file(Path(source)) for source in sources], now_ms=now_ms)
    return {
        "bytes_before": found.stats.bytes_read,
        "bytes_after": found.stats.bytes_written,
        "bytes_dropped": found.bytes_saved,
        "records_before": found.stats.records_read,
        "records_after": found.stats.records_written,
        "keyless_count": found.stats.keyless_count,
        "distinct_key_count": found.distinct_key_count,
        "is_complete": found.is_complete,
    }

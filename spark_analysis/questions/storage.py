"""Measure what logs and replicas take: bytes by topic, codec and broker, keys, and what a compaction would drop.

- `codecs`: batches, records, stored and unpacked bytes and the span of time, by topic, codec and magic, of the table
  `batches` of the data source kafka_log.
- `keys`: distinct and missing keys, tombstones, bytes of keys and values by topic, of its table `records`.
- `compaction`: what one cleaning pass would leave of each partition, to the byte, of its table `segments`; the last
  segment of each counts, or does not.
- `held`: bytes of each topic on each broker, of rows of kafka_cluster that say sizes.
A row with a `fault` counts in `rejected_count` of the answer's row: rows in = rows analysed + rows rejected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from broker.cluster import ClusterView
from broker.errors import BrokersideError, InputError, UsageError
from broker.units import TimeMs
from log.tools.open_log import estimate_of_files
from log.tools.sources import named_file
from spark_analysis.answers.storage import held_rows
from spark_analysis.data_sources.log_listing import MANIFEST
from spark_analysis.frames.inputs import chosen
from spark_analysis.frames.log_inputs import (
    answer_schema,
    as_documented,
    checked,
    is_good,
    log_keys,
    rejected,
    with_fault,
)
from spark_analysis.frames.per_cluster import Rows, per_cluster
from spark_analysis.frames.transforming import question
from spark_analysis.frames.views import JUDGED, SIZES
from spark_analysis.tables.schemas import CODECS, COMPACTION, HELD, KEYS, LOG_BATCHES, LOG_RECORDS, LOG_SEGMENTS

__all__ = ("CODECS", "COMPACTION", "HELD", "KEYS", "codecs", "compaction", "held", "keys")
_BATCHES: Final = ("topic", "partition", "record_count", "magic", "codec", "size_bytes")
_BATCHES_TOO: Final = ("unpacked_bytes", "min_timestamp_ms", "max_timestamp_ms", "fault")
_RECORDS: Final = ("topic", "key")
_RECORDS_TOO: Final = ("is_control", "timestamp_ms", "value_size_bytes", "value", "fault")
_SEGMENTS: Final = ("topic", "partition", "base_offset", "source")
_SUMS_OF_BATCHES: Final = {"record_count": "record_count", "size_bytes": "stored_bytes"}
FOLDER: Final = "folder"


@question
def codecs(batches: DataFrame, *, by: Sequence[str] | None = None) -> DataFrame:
    """Return one row per topic, codec and magic: batches, records, bytes stored and unpacked, span of time.

    Damage that was passed over is counted in rows without a codec. Raises UsageError for columns that do not fit.
    """
    of = log_keys(batches, "batches", by)
    rows = with_fault(chosen(batches, "batches", _BATCHES, _BATCHES_TOO, of))
    needed = {"record_count": 0, "magic": 0, "size_bytes": 0}
    rows = checked(rows, LOG_BATCHES, needed, {"partition": 0, "unpacked_bytes": 0})
    for name in _BATCHES_TOO[:-1]:
        rows = rows if name in rows.columns else rows.withColumn(name, F.lit(None).cast("long"))
    good = rows.groupBy(*of, "topic", "codec", "magic").agg(
        F.count_distinct(F.when(is_good(), F.col("partition"))).alias("partition_count"),
        F.count_if(is_good()).alias("batch_count"),
        *(_sum_where(is_good(), F.col(name)).alias(to) for name, to in _SUMS_OF_BATCHES.items()),
        F.sum(F.when(is_good(), F.col("unpacked_bytes"))).alias("unpacked_bytes"),
        _least_time("min_timestamp_ms").alias("min_timestamp_ms"),
        _most_time("max_timestamp_ms").alias("max_timestamp_ms"),
        *rejected(),
    )
    return as_documented(good, of, CODECS)


@question
def keys(records: DataFrame, *, by: Sequence[str] | None = None) -> DataFrame:
    """Return one row per topic: records with and without a key, distinct keys, tombstones, bytes of keys and values.

    Values may be left out (`values=false`) where `value_size_bytes` is there. Raises UsageError as `codecs` does.
    """
    of = log_keys(records, "records", by)
    rows = with_fault(chosen(records, "records", _RECORDS, _RECORDS_TOO, of))
    if "value_size_bytes" not in rows.columns:
        if "value" not in rows.columns:
            raise UsageError(
                "the DataFrame of records has no column 'value_size_bytes', nor 'value' to compute it from"
            )
        rows = rows.withColumn("value_size_bytes", F.coalesce(F.octet_length("value"), F.lit(-1)))
    rows = checked(rows, LOG_RECORDS, {"value_size_bytes": -1})
    is_control = F.col("is_control") if "is_control" in rows.columns else F.lit(False)
    is_user = is_good() & ~F.coalesce(is_control, F.lit(False))
    keyed = is_user & F.col("key").isNotNull()
    size = F.col("value_size_bytes")
    time = "timestamp_ms" if "timestamp_ms" in rows.columns else None
    found = rows.groupBy(*of, "topic").agg(
        F.count_if(is_good()).alias("record_count"),
        F.count_if(is_good() & F.coalesce(is_control, F.lit(False))).alias("control_record_count"),
        F.count_if(is_user & F.col("key").isNull()).alias("null_key_count"),
        F.count_distinct(F.when(keyed, F.col("key"))).alias("distinct_key_count"),
        F.count_if(keyed & (size < 0)).alias("tombstone_count"),
        _sum_where(keyed, F.octet_length("key")).alias("key_bytes"),
        _sum_where(is_user & (size >= 0), size).alias("value_bytes"),
        (F.lit(None) if time is None else _least_time(time)).alias("min_timestamp_ms"),
        (F.lit(None) if time is None else _most_time(time)).alias("max_timestamp_ms"),
        *rejected(),
    )
    return as_documented(found, of, KEYS)


@question
def compaction(
    segments: DataFrame, *, now_ms: int, include_active: bool = True, by: Sequence[str] | None = None
) -> DataFrame:
    """Return one row per partition: bytes and records before and after one cleaning pass over its segments.

    The last segment of a folder counts, as in `brokerside log stats`: what is dropped is what a pass could drop at the
    most, if that segment were rolled first. A broker appends to it, and its cleaner leaves it alone, as
    `brokerside log compact` does: with `include_active=False` it does not count.

    `now_ms` decides which tombstones have expired. Files are read where tasks run. A partition that cannot be cleaned
    has a `fault`. Raises UsageError as `codecs` does.
    """
    if now_ms < 0:
        raise UsageError(f"now_ms is {now_ms}; allowed are ms since 1970, 0 or more")
    of = log_keys(segments, "segments", by)
    rows = with_fault(chosen(segments, "segments", _SEGMENTS, ("fault",), of))
    rows = checked(rows, LOG_SEGMENTS, {"source": None, "base_offset": 0}, {"partition": 0})
    rows = rows.withColumn(FOLDER, F.coalesce(F.regexp_extract("source", r"^(.*)/[^/]*$", 1), F.lit("")))
    keys_of_partition, moment = (*of, "topic", "partition", FOLDER), TimeMs(now_ms)
    # Spark reads a function's annotations; without any, a table goes in and a table comes out.
    return rows.groupBy(*keys_of_partition).applyInArrow(
        lambda values, found: compaction_rows(
            dict(zip(keys_of_partition, values, strict=True)), found, moment, include_active=include_active
        ),
        answer_schema(rows, of, COMPACTION),
    )


@question
def held(partitions: DataFrame, brokers: DataFrame | None = None, *, by: Sequence[str] | None = None) -> DataFrame:
    """Return one row per cluster, topic and broker that holds some of it: replicas, leaders and bytes.

    Raises UsageError for a column that is missing or of another type.
    """

    def kernel(view: ClusterView) -> pa.Table:
        return held_rows(view)

    return per_cluster(Rows(partitions, brokers, by), HELD, kernel, reads=(*JUDGED, *SIZES))


def _sum_where(condition: Any, value: Any) -> Any:
    return F.coalesce(F.sum(F.when(condition, value)), F.lit(0))


def _least_time(name: str) -> Any:
    return F.min(F.when(is_good() & (F.col(name) >= 0), F.col(name)))


def _most_time(name: str) -> Any:
    return F.max(F.when(is_good() & (F.col(name) >= 0), F.col(name)))


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

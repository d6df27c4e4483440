"""List the tables that the data source kafka_log gives to Spark: records, batches, damage, segments.

What it decides: names, types and units. Numbers that Kafka writes as -1 for "none" (producers, sequences, epochs,
timestamps) stay -1; a null means that the source does not say.

Example:
    >>> LOG_RECORDS.column_names[:5]
    ('topic', 'partition', 'offset', 'timestamp_ms', 'timestamp_type')

Source: Kafka's record batch, magic 2; Spark's own source of Kafka records, for `timestamp_type` and `headers`.
"""

from __future__ import annotations

from typing import Final

from spark_analysis.tables.columns import Column, Table
from spark_analysis.tables.source_schemas import FAULT, SOURCE

_PLACE: Final = (
    Column("topic", "string", "Topic, or its id where the layout has no name; null where the folder names none"),
    Column("partition", "int", "Partition; null where the folder names none"),
)

LOG_RECORDS: Final = Table(
    "records",
    "one row per record, and one per damage that was passed over",
    (
        *_PLACE,
        Column("offset", "long", "Offset"),
        Column("timestamp_ms", "long", "Timestamp as consumers see it; -1 for none", "ms since 1970"),
        Column("timestamp_type", "int", "0 CreateTime, 1 LogAppendTime, -1 none"),
        Column("key", "bytes", "Key; null for none", nullable=True),
        Column("value", "bytes", "Value; null for none, a tombstone, or without values", nullable=True),
        Column("headers", "headers", "Headers, in order; null without values", nullable=True),
        Column("producer_id", "long", "Producer; -1 for none"),
        Column("producer_epoch", "short", "Epoch of the producer; -1 for none"),
        Column("sequence", "int", "Sequence of the record among its producer's; -1 for none"),
        Column("is_transactional", "boolean", "Whether it is part of a transaction"),
        Column("is_control", "boolean", "Whether it is a control record: a transaction's marker, or KRaft's own"),
        Column("codec", "string", "Compression of its batch: none, gzip, snappy, lz4, zstd"),
        Column("leader_epoch", "int", "Leader epoch of its batch; -1 for none"),
        Column("size_bytes", "int", "Bytes of the record in its batch, not compressed", "bytes"),
        Column("batch_base_offset", "long", "First offset of its batch"),
        Column("batch_position", "long", "Where its batch begins in the segment", "bytes"),
        Column("value_size_bytes", "int", "Bytes of the value; -1 for none, a tombstone", "bytes"),
        SOURCE,
        FAULT,
    ),
)
LOG_BATCHES: Final = Table(
    "batches",
    "one row per batch, and one per damage that was passed over",
    (
        *_PLACE,
        Column("base_offset", "long", "First offset of the batch; of a wrapper of magic 0 or 1 its last"),
        Column("last_offset", "long", "Last offset of the batch"),
        Column("record_count", "long", "Records in it", "records"),
        Column("magic", "int", "Version of its format: 0, 1 or 2"),
        Column("codec", "string", "Compression: none, gzip, snappy, lz4, zstd"),
        Column("size_bytes", "long", "Bytes of the batch in the segment", "bytes"),
        Column("unpacked_bytes", "long", "Bytes of the batch if it were not compressed", "bytes"),
        Column("min_timestamp_ms", "long", "Least timestamp of its records; -1 for none", "ms since 1970"),
        Column("max_timestamp_ms", "long", "Largest timestamp of its records; -1 for none", "ms since 1970"),
        Column("producer_id", "long", "Producer; -1 for none"),
        Column("leader_epoch", "int", "Leader epoch; -1 for none"),
        Column("is_transactional", "boolean", "Whether it is part of a transaction"),
        Column("is_control", "boolean", "Whether it holds control records"),
        Column("position", "long", "Where it begins in the segment", "bytes"),
        SOURCE,
        FAULT,
    ),
)
LOG_DAMAGE: Final = Table(
    "damage",
    "one row per damage: bytes of a segment that could not be read, or a segment that cannot be opened",
    (
        *_PLACE,
        Column("position", "long", "Where reading stopped; null where the segment cannot be opened", "bytes", True),
        Column("size_bytes", "long", "Bytes that were passed over", "bytes", nullable=True),
        Column("base_offset", "long", "Offset that the damaged batch claims", nullable=True),
        Column("is_torn_tail", "boolean", "Whether an incomplete batch stands at the end, which Kafka cuts off"),
        SOURCE,
        FAULT,
    ),
)
LOG_SEGMENTS: Final = Table(
    "segments",
    "one row per segment: size_bytes = read_bytes + damaged_bytes",
    (
        *_PLACE,
        Column("base_offset", "long", "Offset in the segment's name"),
        Column("end_offset", "long", "Offset after the last batch; the base offset where there is none"),
        Column("max_timestamp_ms", "long", "Largest timestamp; -1 for none", "ms since 1970"),
        Column("batch_count", "long", "Batches that could be read", "batches"),
        Column("record_count", "long", "Records in them", "records"),
        Column("size_bytes", "long", "Bytes of the segment, of a tiered one before chunks were compressed", "bytes"),
        Column("read_bytes", "long", "Bytes of batches that could be read", "bytes"),
        Column("damaged_bytes", "long", "Bytes that could not be read, the torn tail too", "bytes"),
        SOURCE,
        FAULT,
    ),
)
LOG_TABLES: Final = (LOG_RECORDS, LOG_BATCHES, LOG_DAMAGE, LOG_SEGMENTS)
"""Tables of the data source kafka_log, the default first."""

"""List the tables that answer what logs and replicas take, each column with its type, unit and meaning.

Example:
    >>> CODECS.column_names[:3]
    ('topic', 'codec', 'magic')

Source: log/tools/stats.py and log/compaction/estimate.py, for what is counted.
"""

from __future__ import annotations

from typing import Final

from spark_analysis.tables.columns import KEY, Column, Table
from spark_analysis.tables.source_schemas import FAULT

_BYTES: Final = "bytes"
_RECORDS: Final = "records"
_MS: Final = "ms since 1970"
_ACTIVE: Final = "of the active segment, too, unless include_active is false"
_TOPIC: Final = Column("topic", "string", "Topic; null where the folder names none", nullable=True)
_SPAN: Final = (
    Column("min_timestamp_ms", "long", "Least timestamp; null for none", _MS, nullable=True),
    Column("max_timestamp_ms", "long", "Largest timestamp; null for none", _MS, nullable=True),
)
_REJECTED: Final = (Column("rejected_count", "long", "Rows that could not be used", "rows"), FAULT)

CODECS: Final = Table(
    "codecs",
    "one row per topic, codec and magic of its batches, and one per topic for damage, without a codec",
    (
        _TOPIC,
        Column("codec", "string", "Compression: none, gzip, snappy, lz4, zstd; null for damage", nullable=True),
        Column("magic", "int", "Version of the format of batches: 0, 1 or 2; null for damage", nullable=True),
        Column("partition_count", "long", "Partitions with such batches", "partitions"),
        Column("batch_count", "long", "Batches", "batches"),
        Column("record_count", "long", "Records in them, control records included", _RECORDS),
        Column("stored_bytes", "long", "Bytes of the batches in their segments", _BYTES),
        Column("unpacked_bytes", "long", "Bytes of the batches if they were not compressed", _BYTES, nullable=True),
        *_SPAN,
        *_REJECTED,
    ),
)
KEYS: Final = Table(
    "keys",
    "one row per topic",
    (
        _TOPIC,
        Column("record_count", "long", "Records, control records included", _RECORDS),
        Column("control_record_count", "long", "Markers of transactions and KRaft's own; not counted below", _RECORDS),
        Column("null_key_count", "long", "Records without a key, which compaction would drop", _RECORDS),
        Column("distinct_key_count", "long", "Different keys", "keys"),
        Column("tombstone_count", "long", "Records with a key and no value", _RECORDS),
        Column("key_bytes", "long", "Bytes of keys", _BYTES),
        Column("value_bytes", "long", "Bytes of values", _BYTES),
        *_SPAN,
        *_REJECTED,
    ),
)
COMPACTION: Final = Table(
    "compaction",
    "one row per partition and folder that holds its segments",
    (
        _TOPIC,
        Column("partition", "int", "Partition; null where the folder names none", nullable=True),
        Column("folder", "string", "Folder of the segments"),
        Column("segment_count", "long", "Segments, the last (active) one included", "segments"),
        Column("bytes_before", "long", f"Bytes of their batches; {_ACTIVE}", _BYTES, nullable=True),
        Column("bytes_after", "long", "Bytes that one cleaning pass would leave", _BYTES, nullable=True),
        Column("bytes_dropped", "long", f"Bytes that it would drop; {_ACTIVE}", _BYTES, nullable=True),
        Column("records_before", "long", f"Records read; {_ACTIVE}", _RECORDS, nullable=True),
        Column("records_after", "long", "Records left", _RECORDS, nullable=True),
        Column("keyless_count", "long", "Records dropped for having no key", _RECORDS, nullable=True),
        Column("distinct_key_count", "long", "Different keys that the pass counts", "keys", nullable=True),
        Column(
            "is_complete", "boolean", "Whether the offset map held all keys; if not, less is dropped", nullable=True
        ),
        FAULT,
    ),
)
HELD: Final = Table(
    "held",
    "one row per cluster, topic and broker that holds some of it",
    (
        *KEY,
        Column("topic", "string", "Topic"),
        Column("broker_id", "int", "Broker"),
        Column("replica_count", "long", "Replicas of the topic on the broker", "replicas"),
        Column("leader_count", "long", "Partitions of the topic that it leads", "leaders", nullable=True),
        Column(
            "size_bytes", "long", "Bytes of these replicas; null when the input does not say", _BYTES, nullable=True
        ),
    ),
)
STORAGE_TABLES: Final = (CODECS, KEYS, COMPACTION, HELD)

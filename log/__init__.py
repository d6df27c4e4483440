"""Model one partition's log on one disk: batches, segments, indexes, recovery, retention and compaction.

`PartitionLog` is the log, on any `log.storage`; `scan` and `batches_in` read any segment file, `build_batch` makes its
bytes; `LogDir` is a broker's whole log directory.

The packages in reading order; each imports only what stands above it:

    errors       Raise RefusedError, CorruptDataError or StorageError subclasses, under Kafka's names where it has them.
    record       Hold one record, its headers and timestamps, and read control records.
    log_config   Hold a log's settings, parsed from Kafka's topic settings.
    codecs/      Read and write varints, checksums, compressed payloads and Java's texts.
    storage/     Keep files on disk or in memory, among them checkpoints; inject disk faults.
    batches/     Read and write record batches of magic 0, 1 and 2, as objects and as columns.
    segments/    Append to and read one segment: a .log file with its indexes.
    partition/   Append to, read, recover, truncate and retain one partition's log; track its producers.
    compaction/  Remove records that newer ones with the same key supersede.
    log_dir      Open, create and delete the logs of a broker's log directory.
    metadata/    Replay the KRaft metadata log to the cluster that it describes.
    tools/       Dump, verify, measure and rework files without a broker.
    cli/         Run `brokerside log`, one module a command.
    strategies   Draw records, batches and logs for property tests with Hypothesis.
"""

from __future__ import annotations

from log.batches.batch import RecordBatch
from log.batches.build import BatchSpec, build_batch, rebuild
from log.batches.build_columns import PlainColumns, build_batches
from log.batches.in_buffer import BatchReader, batches_in
from log.batches.record_columns import Damage, RecordColumns
from log.batches.scan import ScanOptions, scan, scan_headers
from log.codecs.compression import Codec
from log.log_config import LogConfig
from log.log_dir import LogDir, LogDirOptions
from log.partition.appending import AppendInfo
from log.partition.epoch_cache import LeaderEpochCache
from log.partition.log_offsets import LogDescription, SegmentState
from log.partition.partition_log import PartitionLog
from log.partition.producer_append import AppendOrigin
from log.partition.producer_state import ProducerState
from log.partition.reading import FetchData, Isolation, OffsetPlace
from log.partition.recovery import LastShutdown
from log.record import Header, Record, TimestampType
from log.segments.offset_index import OffsetIndex
from log.segments.search import FoundOffset
from log.segments.segment import Segment
from log.segments.segment_files import SegmentPlace
from log.segments.time_index import TimeIndex
from log.segments.txn_index import TransactionIndex
from log.storage.directory_names import DirectoryRole, PartitionDirectory, directory_name, parse_directory_name

__all__ = (
    "AppendInfo",
    "AppendOrigin",
    "BatchReader",
    "BatchSpec",
    "Codec",
    "Damage",
    "DirectoryRole",
    "FetchData",
    "FoundOffset",
    "Header",
    "Isolation",
    "LastShutdown",
    "LeaderEpochCache",
    "LogConfig",
    "LogDescription",
    "LogDir",
    "LogDirOptions",
    "OffsetIndex",
    "OffsetPlace",
    "PartitionDirectory",
    "PartitionLog",
    "PlainColumns",
    "ProducerState",
    "Record",
    "RecordBatch",
    "RecordColumns",
    "ScanOptions",
    "Segment",
    "SegmentPlace",
    "SegmentState",
    "TimeIndex",
    "TimestampType",
    "TransactionIndex",
    "batches_in",
    "build_batch",
    "build_batches",
    "directory_name",
    "parse_directory_name",
    "rebuild",
    "scan",
    "scan_headers",
)

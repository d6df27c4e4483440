"""Bytes in order: one partition's segments on one disk.

`PartitionLog` is the log, on any `log.storage`; `scan` and `batches_in` read any segment file,
`build_batch` makes its bytes; `LogDir` is a broker's whole log directory.

Rooms, each on those before it: `codecs` (varints, checksums, compression), `columns` (records as columns, by the
loops in `kernels`), `batches` (all three formats), `storage`, `indexes`, `segments`, `producers`, `files` (what stands
beside the segments); then the log itself, here; on it `compaction` rewrites, `tools` measure and check, and `metadata`
plays the KRaft metadata log.
"""

from __future__ import annotations

from log.batches.batch import RecordBatch
from log.batches.build import build_batch
from log.batches.build_columns import PlainColumns, build_batches
from log.batches.build_spec import BatchSpec
from log.batches.header_scan import scan_headers
from log.batches.in_buffer import Reader, batches_in
from log.batches.record_columns import Damage, RecordColumns
from log.batches.rewrite import rebuild
from log.batches.scan import ScanOptions, scan
from log.codecs.compression import Codec
from log.files.directory_names import DirectoryRole, PartitionDirectory, directory_name, parse_directory_name
from log.indexes.offset_index import OffsetIndex
from log.indexes.time_index import TimeIndex
from log.indexes.txn_index import TransactionIndex
from log.log_config import LogConfig
from log.log_dir import LogDir, LogDirOptions
from log.partition.appending import AppendInfo
from log.partition.epoch_cache import LeaderEpochCache
from log.partition.log_description import LogDescription, SegmentState
from log.partition.partition_log import PartitionLog
from log.partition.reading import FetchData, Isolation, OffsetPlace
from log.partition.recovery import LastShutdown
from log.producers.append import AppendOrigin
from log.producers.state import ProducerState
from log.record import Header, Record, TimestampType
from log.segments.lookups import BatchPlaces, find_offsets, find_timestamps
from log.segments.search import FoundOffset
from log.segments.segment import Segment
from log.segments.segment_files import SegmentPlace

__all__ = (
    "AppendInfo",
    "AppendOrigin",
    "BatchPlaces",
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
    "Reader",
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
    "find_offsets",
    "find_timestamps",
    "parse_directory_name",
    "rebuild",
    "scan",
    "scan_headers",
)

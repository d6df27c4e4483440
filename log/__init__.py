"""Bytes in order: one partition's segments on one disk.
`PartitionLog` is the log, on any `log.storage`; `log.scan.scan` and `batches_in` read any segment file,
`build_batch` makes its bytes; `LogDir` is a broker's whole log directory. `log.compaction` rewrites, `log.tools`
measures and checks, `log.metadata` plays the KRaft metadata log."""

from __future__ import annotations

from log.batch import RecordBatch
from log.batches import Reader, batches_in
from log.build import build_batch
from log.build_columns import PlainColumns, build_batches
from log.build_spec import BatchSpec
from log.columns import Damage, RecordColumns
from log.compression import Codec
from log.directory_names import DirectoryRole, PartitionDirectory, directory_name, parse_directory_name
from log.epoch_cache import LeaderEpochCache
from log.header_scan import scan_headers
from log.log_config import LogConfig
from log.log_dir import LogDir, LogDirOptions
from log.log_state import AppendInfo, LogState, SegmentState
from log.offset_index import OffsetIndex
from log.partition_log import PartitionLog
from log.producer_append import AppendOrigin
from log.producer_state import ProducerState
from log.reading import FetchData, Isolation, OffsetPlace
from log.record import Header, Record, TimestampType
from log.recovery import LastShutdown
from log.rewrite import rebuild
from log.scan import ScanOptions
from log.segment import Segment, SegmentPlace
from log.segment_lookups import BatchPlaces, find_offsets, find_timestamps
from log.segment_search import FoundOffset
from log.time_index import TimeIndex
from log.txn_index import TransactionIndex

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
    "LogDir",
    "LogDirOptions",
    "LogState",
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
    "scan_headers",
)

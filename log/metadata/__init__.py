"""Read the KRaft metadata log and replay its records to the cluster's metadata at any offset or time.

`decode_record` and `decode_control` read one record; `arrange` orders the files of a directory; `Replay` replays them;
`view_of` converts the metadata of one moment to a ClusterView.

- reading: Read a segment or snapshot of the metadata log as records with offset, epoch and time.
- records: Decode and encode one metadata record: its frame, type, version and fields.
- replay: Replay a metadata log from its beginning: the change at every offset, and the image at any moment.
- image: Hold the metadata after one offset as an immutable value; apply records to its brokers and partitions.
- state: Apply metadata records one after another to a cluster's metadata.
- view: Convert a metadata image to a ClusterView, the input of every measure and every report.
- history: Derive the events of every step of a metadata log's replay.
- durations: Sum up how long partitions were leaderless or under-replicated, and how often brokers were fenced.
- json_text: Print metadata and control records as the JSON of Kafka's tools.
- schemas: Read the schemas of the records of internal topics from a table.
"""

from __future__ import annotations

from log.metadata.image import BrokerImage, MetadataImage, PartitionImage, Resource, TopicImage
from log.metadata.json_text import control_json, record_json
from log.metadata.reading import (
    MetadataEntry,
    MetadataFile,
    MetadataFiles,
    RejectedRecords,
    SnapshotId,
    UnreadableEntryError,
    arrange,
    entries_of,
    is_metadata_file,
    looks_like_metadata,
    snapshot_id,
)
from log.metadata.records import ControlRecord, MetadataRecord, decode_control, decode_record
from log.metadata.replay import END, Moment, Replay, Step, beyond_end, images_at, live_moments, replay_notes
from log.metadata.schemas import RecordType
from log.metadata.view import FORMAT, view_of

__all__ = (
    "END",
    "FORMAT",
    "BrokerImage",
    "ControlRecord",
    "MetadataEntry",
    "MetadataFile",
    "MetadataFiles",
    "MetadataImage",
    "MetadataRecord",
    "Moment",
    "PartitionImage",
    "RecordType",
    "RejectedRecords",
    "Replay",
    "Resource",
    "SnapshotId",
    "Step",
    "TopicImage",
    "UnreadableEntryError",
    "arrange",
    "beyond_end",
    "control_json",
    "decode_control",
    "decode_record",
    "entries_of",
    "images_at",
    "is_metadata_file",
    "live_moments",
    "looks_like_metadata",
    "record_json",
    "replay_notes",
    "snapshot_id",
    "view_of",
)

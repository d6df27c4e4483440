"""Read the KRaft metadata log and replay its records to the cluster's metadata at any offset or time.

`decode_record` and `decode_control` read one record; `arrange` takes the files of a directory; `Replay` plays them;
`view_of` tells a moment as a ClusterView.
"""

from __future__ import annotations

from log.files.snapshot_names import SnapshotId, is_metadata_file, snapshot_id
from log.metadata.control import ControlRecord, decode_control
from log.metadata.image import BrokerImage, MetadataImage, PartitionImage, Resource, TopicImage
from log.metadata.json_text import control_json, record_json
from log.metadata.moments import END, Moment, images_at, live_moments
from log.metadata.play_order import MetadataFile, MetadataFiles, arrange
from log.metadata.reading import MetadataEntry, RejectedRecords, UnreadableEntryError, entries_of, looks_like_metadata
from log.metadata.records import MetadataRecord, decode_record
from log.metadata.replay import Replay, Step
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
    "control_json",
    "decode_control",
    "decode_record",
    "entries_of",
    "images_at",
    "is_metadata_file",
    "live_moments",
    "looks_like_metadata",
    "record_json",
    "snapshot_id",
    "view_of",
)

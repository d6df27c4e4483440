"""Read the KRaft metadata log and replay its records to the cluster's metadata at any offset or time.

`decode_record` and `decode_control` read one record; `arrange` orders the files of a directory; `Replay` replays them;
`view_of` converts the metadata of one moment to a ClusterView.

- play_order: Decide the order in which the files of a metadata log are replayed.
- reading: Read a segment or snapshot of the metadata log as records with offset, epoch and time.
- records: Decode and encode one metadata record: its frame, type, version and fields.
- control: Decode KRaft's control records: leader changes, voters, headers and footers of snapshots.
- replay: Replay a metadata log from its beginning: the change at every offset, and the image at any moment.
- image: Hold a cluster's metadata after one offset of the metadata log as an immutable value.
- state: Apply metadata records one after another to a cluster's metadata.
- partition_records: Apply PartitionRecord, PartitionChangeRecord and ClearElrRecord to a partition's image.
- broker_records: Apply registration records to a broker's image.
- deltas: Define the change that one metadata record makes, with the state before and after it.
- moments: Choose the moments of a metadata log to show, and return the cluster's metadata at each.
- replay_notes: Describe what a replay could not read: later versions of records, and uncertain brokers.
- view: Convert a metadata image to a ClusterView, the input of every measure and every report.
- events: Define the kinds of events in a cluster's history, and one event.
- unclean: Decide whether a change of a partition is an unclean leader election.
- history: Derive the events of every step of a metadata log's replay.
- durations: Sum up how long partitions were leaderless or under-replicated, and how often brokers were fenced.
- schemas: Define the schemas of the metadata records: one table per record type, with its versions.
- json_text: Print metadata records as the JSON of Kafka's tools.
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
from log.metadata.replay_notes import replay_notes
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
    "replay_notes",
    "snapshot_id",
    "view_of",
)

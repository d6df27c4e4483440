"""Parse the names of the metadata log's snapshots: NNNNNNNNNNNNNNNNNNNN-EEEEEEEEEE.checkpoint.

What it decides: which end offset (20 digits) and epoch (10 digits) a name says.

Example:

    >>> snapshot_id("00000000000000000262-0000000002.checkpoint")
    SnapshotId(end_offset=262, epoch=2)
    >>> snapshot_id("bootstrap.checkpoint") is None
    True

Source: org.apache.kafka.snapshot.Snapshots and org.apache.kafka.metadata.bootstrap.BootstrapDirectory, 4.0.
"""

from __future__ import annotations

import re
from typing import Final

import attrs

from broker.ids import LeaderEpoch, Offset
from log.segments.file_names import LOG, OFFSET_DIGITS, base_offset_of, kind_of

SNAPSHOT: Final = ".checkpoint"
BOOTSTRAP_FILE: Final = "bootstrap.checkpoint"
"""The snapshot from which a new cluster is formatted; its name says neither offset nor epoch."""
_EPOCH_DIGITS: Final = 10
_NAME: Final = re.compile(rf"(\d{{{OFFSET_DIGITS}}})-(\d{{{_EPOCH_DIGITS}}}){re.escape(SNAPSHOT)}", re.ASCII)


@attrs.frozen
class SnapshotId:
    """Identify a snapshot by its end offset (exclusive) and the epoch of the last record before it."""

    end_offset: Offset
    epoch: LeaderEpoch


def snapshot_id(name: str) -> SnapshotId | None:
    """Return the end offset and epoch in the name of a snapshot; None for any other name."""
    match = _NAME.fullmatch(name)
    return None if match is None else SnapshotId(Offset(int(match[1])), LeaderEpoch(int(match[2])))


def is_metadata_file(name: str) -> bool:
    """Return whether a file name in a metadata log's directory is that of a segment or a snapshot."""
    return snapshot_id(name) is not None or (kind_of(name) == LOG and base_offset_of(name) is not None)

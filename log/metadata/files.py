"""Which files make a metadata log, and in which order they are played.

Decides, of segments and snapshots that stand in one directory, where to begin and what follows.

A log that is whole begins at offset 0 and needs no snapshot. One whose beginning was deleted begins with the earliest
snapshot that ends at or after its first segment: the earliest, as the most of its history is told then. The
records before the snapshot's end are passed over. Every later snapshot must say what the records before its end say.
Without any segment the last snapshot is all there is.

Constraints: names are Kafka's: 20 digits and .log; 20 digits of the end offset, 10 of the epoch, and .checkpoint. A
file that was given alone is what it holds, whatever its name. bootstrap.checkpoint, from which a cluster is
formatted, is no part of the log, as its records are the log's first.

Example: 00000000000000000262-0000000002.checkpoint holds all that the records below offset 262 say.

Source: org.apache.kafka.snapshot.Snapshots and org.apache.kafka.metadata.bootstrap.BootstrapDirectory, 4.0.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import attrs

from broker.errors import CorruptDataError, InputError
from broker.ids import LeaderEpoch, Offset
from log.batches.in_buffer import batches_in
from log.codecs.crc import BytesLike
from log.metadata.reading import is_snapshot
from log.segments.file_names import LOG, OFFSET_DIGITS, base_offset_of, kind_of

SNAPSHOT: Final = ".checkpoint"
BOOTSTRAP_FILE: Final = "bootstrap.checkpoint"
_EPOCH_DIGITS: Final = 10
_SNAPSHOT_NAME: Final = re.compile(rf"(\d{{{OFFSET_DIGITS}}})-(\d{{{_EPOCH_DIGITS}}}){re.escape(SNAPSHOT)}", re.ASCII)


@attrs.frozen
class SnapshotId:
    """What a snapshot holds: everything below `end_offset`, of which the last was written in `epoch`."""

    end_offset: Offset
    epoch: LeaderEpoch


@attrs.frozen(eq=False)
class MetadataFile:
    """One file: its name, as `source` shows it to people, and its bytes."""

    name: str
    source: str
    data: BytesLike


@attrs.frozen(eq=False)
class MetadataFiles:
    """The files in the order of playing: `start`, a snapshot or None, then segments; `checks` are later snapshots."""

    start: MetadataFile | None
    segments: tuple[MetadataFile, ...]
    checks: tuple[tuple[SnapshotId, MetadataFile], ...]
    start_id: SnapshotId | None = None


def snapshot_id(name: str) -> SnapshotId | None:
    """Return what the name of a snapshot says; None if it is no such name."""
    match = _SNAPSHOT_NAME.fullmatch(name)
    return None if match is None else SnapshotId(Offset(int(match[1])), LeaderEpoch(int(match[2])))


def is_metadata_file(name: str) -> bool:
    """Tell whether a file of a directory is read: a segment or a snapshot, by its name."""
    return snapshot_id(name) is not None or (kind_of(name) == LOG and base_offset_of(name) is not None)


def arrange(files: Sequence[MetadataFile]) -> MetadataFiles:
    """Return how to play the files of one directory, or one file given alone.

    Raises InputError if there are none, or the beginning is missing.
    """
    if len(files) == 1 and is_snapshot(files[0].data, source=files[0].source):
        return MetadataFiles(files[0], (), (), snapshot_id(files[0].name))
    named = [(snapshot_id(file.name), file) for file in files]
    snapshots = sorted(
        ((found, file) for found, file in named if found is not None), key=lambda pair: pair[0].end_offset
    )
    segments = sorted((file for found, file in named if found is None), key=lambda file: file.name)
    if not files:
        raise InputError("there is no segment and no snapshot of a metadata log")
    if not segments:
        found, file = snapshots[-1]
        return MetadataFiles(file, (), (), found)
    first_offset = _first_offset(segments[0])
    if first_offset == 0:
        # The snapshot that a new log begins with holds only the quorum's own records.
        return MetadataFiles(None, tuple(segments), tuple(pair for pair in snapshots if pair[0].end_offset > 0))
    usable = [pair for pair in snapshots if pair[0].end_offset >= first_offset]
    if not usable:
        raise InputError(
            f"the log begins at offset {first_offset}, and no snapshot holds what stood before; give the directory",
            source=segments[0].source,
        )
    (start_id, start), *later = usable
    return MetadataFiles(start, tuple(segments), tuple(later), start_id)


def _first_offset(segment: MetadataFile) -> Offset:
    """Return the first offset of the log; an empty segment has it in its name."""
    try:
        first = next(batches_in(segment.data, source=segment.source), None)
    except CorruptDataError:
        first = None  # The damage is told when the records are read.
    named = base_offset_of(segment.name)
    if first is not None:
        return first.base_offset
    return Offset(0) if named is None else named

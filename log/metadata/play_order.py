"""Arrange the files of a metadata log in the order in which they are replayed.

What it decides: with which file a replay begins, and what follows.

A log that is whole begins at offset 0 and needs no snapshot. One whose beginning was deleted begins with the earliest
snapshot that ends at or after its first segment: the earliest, as it leaves the most history to the segments. Records
before the snapshot's end are skipped. Every later snapshot must agree with the records before its end. Without any
segment the last snapshot is all there is.

Constraints: a file that is given alone is what it holds, whatever its name. bootstrap.checkpoint, from which a cluster
is formatted, is no part of the log, as its records are the log's first.

Example: a first segment 300 and the snapshots of 262 and 340: the replay begins with that of 340, as the records from
262 to 300 are gone.

Left out: which files a path names, see `log.tools.sources`.

Source: org.apache.kafka.snapshot.Snapshots and org.apache.kafka.metadata.bootstrap.BootstrapDirectory, 4.0.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from broker.errors import CorruptDataError, InputError
from broker.ids import Offset
from log.batches.in_buffer import batches_in
from log.codecs.crc import BytesLike
from log.files.snapshot_names import SnapshotId, snapshot_id
from log.metadata.reading import is_snapshot
from log.segments.file_names import base_offset_of


@attrs.frozen(eq=False)
class MetadataFile:
    """Hold one file: its name, its name as shown to users (`source`), and its bytes."""

    name: str
    source: str
    data: BytesLike


@attrs.frozen(eq=False)
class MetadataFiles:
    """Hold files in replay order: `start`, a snapshot or None, then segments; `checks` are later snapshots."""

    start: MetadataFile | None
    segments: tuple[MetadataFile, ...]
    checks: tuple[tuple[SnapshotId, MetadataFile], ...]
    start_id: SnapshotId | None = None

    @property
    def all(self) -> tuple[MetadataFile, ...]:
        """Return every file that is read: the start, the segments and the later snapshots."""
        starts = () if self.start is None else (self.start,)
        return (*starts, *self.segments, *(file for _, file in self.checks))


def arrange(files: Sequence[MetadataFile]) -> MetadataFiles:
    """Return the replay order of the files of one directory, or of one file given alone.

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
        first = None  # The damage is reported when the records are read.
    named = base_offset_of(segment.name)
    if first is not None:
        return first.base_offset
    return Offset(0) if named is None else named

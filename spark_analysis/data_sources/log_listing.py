"""Find the segments below the paths of kafka_log, and the topic and partition of each by its folder's name.

The driver lists folders and opens no file. Folders that a broker is to delete, does not own any more, or is only
moving (-delete, -stray, -future) are passed over, as are files that are being replaced (.deleted, .swap): their
records are elsewhere, too.

Source: Kafka's UnifiedLog for log directories; org.apache.kafka.server.log.remote.storage.RemoteLogSegmentFileset
(LocalTieredStorage) and io.aiven.kafka.tieredstorage.ObjectKeyFactory (May 2026) for tiered storage.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

import attrs

from broker.errors import InputError
from broker.ids import INT64_MAX
from log.storage.directory_names import DirectoryRole, UnexpectedDirectoryError, parse_directory_name
from spark_analysis.sources.listing import matches

MANIFEST: Final = ".rsm-manifest"
_ID: Final = r"[A-Za-z0-9_-]{22}"  # A UUID in URL-safe base64.
_FILE: Final = re.compile(rf"(?P<offset>\d{{20}})(?P<id>-{_ID})?\.log")
_LOCAL_TIERED: Final = re.compile(rf"(?P<topic>.+)-(?P<partition>\d{{1,9}})-{_ID}")
_TOPIC_FOLDER: Final = re.compile(rf"(?P<topic>.+)-{_ID}")
_NUMBER: Final = re.compile(r"\d{1,9}")


@attrs.frozen
class LogSegment:
    """Name one segment to read: its file, its topic and partition, and the offsets that it can hold.

    `end_offset` is the base offset of the next segment in a log directory; None where nothing bounds it. `manifest` is
    the path of the manifest of a segment in chunks.
    """

    path: str
    topic: str | None
    partition: int | None
    base_offset: int
    size_bytes: int
    end_offset: int | None = None
    is_tiered: bool = False
    manifest: str | None = None


@attrs.frozen
class _Place:
    topic: str | None
    partition: int | None
    is_current: bool = True


def log_segments(paths: Sequence[str]) -> list[LogSegment]:
    """Return the segments below the paths, each once; raise InputError for a path without any."""
    found: dict[str, LogSegment] = {}
    for path in paths:
        inside = [segment for match in matches(path) for segment in _below(Path(match))]
        if not inside:
            raise InputError("neither is this a segment of a log nor is there one below it", source=path)
        found |= {segment.path: segment for segment in inside if segment.path not in found}
    return list(found.values())


def _below(path: Path) -> Iterator[LogSegment]:
    if not path.is_dir():
        if _FILE.fullmatch(path.name):
            yield from _of_folder(path.absolute().parent, [path])
        return
    refused: list[str] = []
    folders: list[tuple[Path, list[Path]]] = []
    for name, folders_inside, names in os.walk(path, onerror=lambda error: refused.append(str(error.filename))):
        links = (Path(name) / each for each in sorted(folders_inside) if (Path(name) / each).is_symlink())
        refused.extend(str(link.absolute()) for link in links if _place(link).is_current)
        files = [Path(name) / each for each in sorted(names) if _FILE.fullmatch(each)]
        folders += [(Path(name), files)] if files else []
    for folder, files in sorted(folders):
        yield from _of_folder(folder.absolute(), files)
    yield from (LogSegment(folder, None, None, 0, 0) for folder in refused)


def _of_folder(folder: Path, files: Sequence[Path]) -> Iterator[LogSegment]:
    place = _place(folder)
    if not place.is_current:
        return
    found = [_segment(file, place) for file in files]
    for segment, after in pairwise([*found, None]):
        assert segment is not None
        follows = after is not None and not segment.is_tiered and not after.is_tiered
        yield attrs.evolve(segment, end_offset=after.base_offset) if after is not None and follows else segment


def _segment(file: Path, place: _Place) -> LogSegment:
    match = _FILE.fullmatch(file.name)
    assert match is not None
    base_offset = int(match["offset"])
    if base_offset > INT64_MAX:
        raise InputError(f"its name begins with an offset above {INT64_MAX}", source=str(file))
    manifest = file.with_suffix(MANIFEST)
    is_tiered = match["id"] is not None
    return LogSegment(
        str(file),
        place.topic,
        place.partition,
        base_offset,
        _size_bytes(file),
        is_tiered=is_tiered,
        manifest=str(manifest) if is_tiered and manifest.exists() else None,
    )


def _place(folder: Path) -> _Place:
    local = _LOCAL_TIERED.fullmatch(folder.name)
    if local is not None:
        return _Place(local["topic"], int(local["partition"]))
    topic = _TOPIC_FOLDER.fullmatch(folder.parent.name)
    if _NUMBER.fullmatch(folder.name) and topic is not None:
        return _Place(topic["topic"], int(folder.name))
    try:
        named = parse_directory_name(folder.name)
    except UnexpectedDirectoryError:
        return _Place(None, None)
    return _Place(named.partition.topic, int(named.partition.partition), named.role is DirectoryRole.CURRENT)


def _size_bytes(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0  # Whoever reads it says why.

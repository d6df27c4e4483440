"""Golden segments: what appends write, and what look-ups and reads answer after a reopen."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from broker.clock import ManualClock
from broker.errors import CorruptDataError, RefusedError
from broker.ids import Offset
from broker.units import TimeMs
from log.batches.in_buffer import batches_in
from log.segments.search import largest_timestamp
from log.segments.segment import Segment
from log.segments.segment_files import SegmentPlace
from log.storage import MemoryStorage
from tests.golden.log.cases import Json
from tests.golden.log.compressors import kafkas_compressors
from tests.golden.log.states import batch_bytes, file_contents, files_json, listed
from tests.golden.runners import compare
from tests.golden.sources import config_of

DIRECTORY = "topic-0"


def run(case: Mapping[str, Json], folder: Path) -> str | None:
    """Return where the appends, the files, the look-ups or the reads first differ."""
    clock = ManualClock(TimeMs(0))
    storage = MemoryStorage(clock)
    storage.make_directory(DIRECTORY)
    place = SegmentPlace(storage, DIRECTORY, Offset(case["baseOffset"]))
    config = config_of(case)
    segment = Segment(place, config, now_ms=clock.now_ms())
    with kafkas_compressors(folder):
        trace = [appended(segment, b"".join(map(batch_bytes, batches))) for batches in case["input"]["appends"]]
    answer = {
        "appendTrace": trace,
        "preallocatedIndexBytes": segment.offset_index.file_size_bytes,
        "preallocatedTimeIndexBytes": segment.time_index.file_size_bytes,
        "nextOffset": segment.read_next_offset(),
        "maxTimestamp": segment.max_timestamp.timestamp,
        "offsetOfMaxTimestamp": segment.max_timestamp.offset,
    }
    segment.become_inactive()
    segment.close()
    answer["files"] = files_json(file_contents(storage, DIRECTORY))
    reopened = Segment(place, config, now_ms=clock.now_ms())
    answer["offsetLookups"] = [offset_lookup(reopened, row[0]) for row in case["offsetLookups"]]
    answer["timestampLookups"] = [timestamp_lookup(reopened, row[0], row[5]) for row in case["timestampLookups"]]
    answer["reads"] = [read(reopened, *row[:3]) for row in case["reads"]]
    expected = {key: case[key] for key in answer}
    return compare(answer, {**expected, "files": [listed(file) for file in case["files"]]}, "")


def appended(segment: Segment, data: bytes) -> Json:
    """Append a set of batches and return what is said of it."""
    batches = tuple(batches_in(data))
    largest = largest_timestamp(batches)
    row = {
        "position": segment.size_bytes,
        "sizeInBytes": len(data),
        "largestOffset": batches[-1].last_offset,
        "largestTimestamp": largest.timestamp,
        "shallowOffsetOfMaxTimestamp": largest.offset,
    }
    result = {}
    try:
        segment.append(data, last_offset=batches[-1].last_offset, max_timestamp=largest, batches=batches)
    except (RefusedError, CorruptDataError) as refusal:
        result["exception"] = str(getattr(refusal, "kafka_class", refusal)).rpartition(".")[2]
    counts = {
        "indexEntries": segment.offset_index.entry_count,
        "timeIndexEntries": segment.time_index.entry_count,
    }
    return {**row, "result": result, **counts}


def offset_lookup(segment: Segment, target: int) -> Json:
    """Return the index entry below an offset, and the batch that holds it."""
    entry = segment.offset_index.lookup(target)
    found = segment.translate_offset(Offset(target))
    batch = [None] * 3 if found is None else [found.last_offset, found.position, found.size_bytes]
    return [target, entry.offset, entry.position, *batch]


def timestamp_lookup(segment: Segment, target: int, starting_offset: int) -> Json:
    """Return the index entry below a time, and the first record at or after it from the base and from an offset."""
    entry = segment.time_index.lookup(target)
    row = [target, entry.timestamp, entry.offset]
    for start, shown in ((segment.base_offset, []), (starting_offset, [starting_offset])):
        found = segment.find_offset_by_timestamp(target, Offset(start))
        row += [*shown, *([None, None] if found is None else [found.offset, found.timestamp_ms])]
    return row


def read(segment: Segment, start_offset: int, max_bytes: int, min_one_message: bool) -> Json:
    """Return where a read begins and how many bytes it gives."""
    found = segment.read(Offset(start_offset), max_bytes, min_one_message=min_one_message)
    answer = [None, None] if found is None else [found.position, len(found.data)]
    return [start_offset, max_bytes, min_one_message, *answer]

"""How long a look-up by offset or by timestamp takes, over an array of targets, in one segment.

In the index only, and to the batch: an index entry, then headers from there. Kafka is asked one target after the other,
as it has no other way; by timestamp it goes on to the record, ours to the batch that holds it. Targets are random, the
indexes decoded before: those of a 1 GiB segment have some 90,000 entries each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from log.segments.lookups import find_offsets, find_timestamps
from log.segments.segment import Segment
from tests.benchmarks import java_log
from tests.benchmarks.log_files import FIRST_TIMESTAMP, CaseFile
from tests.benchmarks.log_recovery import opened, recover_ours
from tests.benchmarks.rounds import Line, Took, in_turn, measured
from tests.kafka.jvm import KafkaJvm

INDEX_TARGET_COUNT: Final = 1_000_000
BATCH_TARGET_COUNT: Final = 200_000
JAVA_TARGET_COUNT: Final = 100_000
NAMES: Final[Mapping[java_log.LookUp, str]] = {
    "index-offset": "offset, index",
    "index-timestamp": "timestamp, index",
    "offset": "offset, to the batch",
    "timestamp": "timestamp, to the batch",
}


def lookup_lines(file: CaseFile, kafka: KafkaJvm | None, rounds: int) -> list[Line]:
    """Return the lines of all look-ups in one file, whose indexes are made first."""
    recover_ours(file)
    segment = opened(file)
    lines = [_line(by, name, segment, file, (kafka, rounds)) for by, name in NAMES.items()]
    segment.close()
    return lines


def _line(by: java_log.LookUp, name: str, segment: Segment, file: CaseFile, turns: tuple[KafkaJvm | None, int]) -> Line:
    kafka, rounds = turns
    run = lookups(by, segment)
    contestants: dict[str, Callable[[], Took]] = {"ours": lambda: measured(run)}
    if kafka is not None:
        contestants["Java"] = lambda: java_log.look_up(
            kafka, file.directory, by, count=JAVA_TARGET_COUNT, lowest=FIRST_TIMESTAMP
        )
    return Line(
        what=f"look up {name}",
        case=file.case.name,
        unit="µs each",
        found=in_turn(contestants, rounds, f"look up {name}"),
        java_least=1.0,
        bound="cache misses in the index" if by.startswith("index") else "cache misses in the file, one header each",
    )


def lookups(by: java_log.LookUp, segment: Segment) -> Callable[[], int]:
    """Return a run that looks up random targets and returns how many."""
    count = INDEX_TARGET_COUNT if by.startswith("index") else BATCH_TARGET_COUNT
    offsets = np.random.default_rng(1).integers(0, segment.read_next_offset(), count)
    timestamps = offsets + FIRST_TIMESTAMP
    ways: Mapping[java_log.LookUp, Callable[[], object]] = {
        "index-offset": lambda: segment.offset_index.lookup_many(offsets),
        "index-timestamp": lambda: segment.time_index.lookup_many(timestamps),
        "offset": lambda: find_offsets(segment, offsets),
        "timestamp": lambda: find_timestamps(segment, timestamps, segment.base_offset),
    }

    def run() -> int:
        ways[by]()
        return count

    return run

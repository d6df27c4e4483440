"""How fast a segment is recovered: every checksum, both indexes, leader epochs.

Ours recovers the same files again and again, Kafka's LogSegment.recover a copy each time; copying is not measured.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from broker.ids import Offset
from broker.units import TimeMs
from log.log_config import LogConfig
from log.partition.epoch_cache import LeaderEpochCache
from log.partition.producer_state import ProducerState
from log.partition.segment_recovery import recover_segment
from log.segments.segment import Segment
from log.segments.segment_files import SegmentPlace
from log.storage import FileStorage
from tests.benchmarks import java_log
from tests.benchmarks.log_files import DIRECTORY, FIRST_TIMESTAMP, CaseFile
from tests.benchmarks.rounds import Line, Took, in_turn, measured
from tests.kafka.jvm import KafkaJvm


def recovery_lines(file: CaseFile, kafka: KafkaJvm | None, rounds: int) -> list[Line]:
    """Return the line of one file."""
    contestants: dict[str, Callable[[], Took]] = {"ours": lambda: recover_ours(file)}
    if kafka is not None:
        contestants["Java"] = lambda: recover_java(kafka, file)
    return [
        Line(
            what="recovery",
            case=file.case.name,
            unit="GB/s",
            found=in_turn(contestants, rounds, f"recovery, {file.case.name}"),
            bound="the checksums' memory traffic; faults of the mapped pages",
        )
    ]


def recover_ours(file: CaseFile) -> Took:
    """Recover the segment, which is whole, and leave its indexes behind."""
    segment = opened(file)
    storage = segment.place.storage
    producers = ProducerState.open(storage, DIRECTORY, name=DIRECTORY)
    epochs = LeaderEpochCache.open(storage, f"{DIRECTORY}/leader-epoch-checkpoint")

    def run() -> int:
        assert recover_segment(segment, producers, epochs) == 0
        return file.size_bytes

    took = measured(run)
    segment.close()
    return took


def recover_java(kafka: KafkaJvm, file: CaseFile) -> Took:
    """Let Kafka recover a copy of the segment."""
    times = java_log.recover(kafka, file.directory, scratch=file.directory.parent)
    return attrs.evolve(times, count=file.size_bytes)


def opened(file: CaseFile) -> Segment:
    """Open the segment."""
    storage = FileStorage(file.directory.parent)
    return Segment(SegmentPlace(storage, DIRECTORY, Offset(0)), LogConfig(), now_ms=TimeMs(FIRST_TIMESTAMP))

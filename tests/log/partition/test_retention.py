"""What a log may delete, against a filter that asks each segment by itself."""

from __future__ import annotations

from broker.ids import Offset
from broker.units import DurationMs, SizeBytes, TimeMs
from log.partition.retention import RetainedSegment, deletable_count, too_old
from tests.log.made import NOW, appended, batch, config, opened


def retained(*sizes: int, timestamps: tuple[int, ...] | None = None) -> list[RetainedSegment]:
    """Segments of ten offsets each; the last is active."""
    return [
        RetainedSegment(
            size_bytes=SizeBytes(size),
            end_offset=Offset(10 * (index + 1)),
            largest_timestamp_ms=TimeMs(timestamps[index] if timestamps else 0),
            is_active=index + 1 == len(sizes),
        )
        for index, size in enumerate(sizes)
    ]


EVERYTHING = Offset(10**6)


def test_a_segment_exactly_as_old_as_the_retention_stays() -> None:
    segments = retained(1, 1, 1, timestamps=(100, 101, 500))
    for now, count in ((1100, 0), (1101, 1), (1102, 2)):
        breach = too_old(TimeMs(now), DurationMs(1000))
        assert deletable_count(segments, high_watermark=EVERYTHING, breach=breach) == count


def test_one_late_timestamp_holds_back_everything_behind_it() -> None:
    segments = retained(1, 1, 1, timestamps=(5, 10**9, 5))
    assert deletable_count(segments, high_watermark=EVERYTHING, breach=too_old(TimeMs(10**6), DurationMs(10))) == 1


def test_an_empty_active_segment_stays() -> None:
    breach = too_old(TimeMs(10**6), DurationMs(1))
    assert deletable_count(retained(1, 0), high_watermark=EVERYTHING, breach=breach) == 1
    assert deletable_count(retained(0), high_watermark=EVERYTHING, breach=breach) == 0


def test_the_active_segment_goes_only_after_a_new_one_has_begun() -> None:
    log = opened(settings=config(retention_ms=1000, segment_bytes=10_000))
    appended(log, batch(3))
    assert log.delete_old_segments(now_ms=TimeMs(NOW + 5000)) == 1
    assert (log.log_start_offset, log.log_end_offset, [each.base_offset for each in log.segments]) == (3, 3, [3])
    assert log.delete_old_segments(now_ms=TimeMs(NOW + 9000)) == 0
    log.check_invariants()


def test_a_compacted_log_deletes_only_before_its_start() -> None:
    log = opened(settings=config(cleanup_policy="compact", retention_ms=1, retention_bytes=0, segment_bytes=80))
    appended(log, *[batch() for _ in range(4)])
    assert log.delete_old_segments(now_ms=TimeMs(NOW + 10**6)) == 0
    log.increment_log_start_offset(Offset(2))
    assert log.delete_old_segments(now_ms=TimeMs(NOW + 10**6)) == 2


def test_deleted_files_stay_for_the_delay() -> None:
    log = opened(settings=config(retention_ms=1, file_delete_delay_ms=50, segment_bytes=80))
    appended(log, batch(), batch())
    log.delete_old_segments(now_ms=TimeMs(NOW + 100))
    waiting = [name for name in log.storage.list(log.directory) if name.endswith(".deleted")]
    log.run_scheduled(TimeMs(NOW + 149))
    assert [name for name in log.storage.list(log.directory) if name.endswith(".deleted")] == waiting != []
    log.run_scheduled(TimeMs(NOW + 150))
    assert not [name for name in log.storage.list(log.directory) if name.endswith(".deleted")]


def test_a_log_that_is_closed_deletes_what_has_waited_for_long_enough() -> None:
    log = opened(settings=config(retention_ms=1, file_delete_delay_ms=50, segment_bytes=80))
    appended(log, batch(), batch())
    assert log.delete_old_segments(now_ms=TimeMs(NOW + 10)) > 0
    log.close(now_ms=TimeMs(NOW + 10 + 50))
    assert not [name for name in log.storage.list(log.directory) if name.endswith(".deleted")]

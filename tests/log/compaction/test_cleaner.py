"""A whole pass of the cleaner, against a plain dictionary and against Kafka's rules."""

from __future__ import annotations

import pytest

from broker.errors import CorruptDataError, UsageError
from broker.releases import Release
from broker.units import TimeMs
from log.codecs.compression import Codec
from log.errors import CorruptBatchError, IllegalStateError
from log.partition.partition_log import PartitionLog
from log.partition.recovery import LastShutdown
from log.record import ControlType, TimestampType
from tests.log.compaction.logs import RETENTION_MS, START_MS, Written, bytes_of, pairs_of


def markers_of(written: Written) -> list[int]:
    return [
        batch.base_offset
        for segment in written.log.segments
        for batch in segment.batches()
        if batch.is_control and batch.record_count
    ]


def indexed_of(written: Written) -> list[int]:
    return [entry.last_offset for segment in written.log.segments for entry in segment.txn_index.entries()]


def horizons_of(written: Written) -> list[int | None]:
    return [batch.delete_horizon_ms for segment in written.log.segments for batch in segment.batches()]


def test_a_log_without_anything_dirty_is_refused_in_one_sentence() -> None:
    written = Written.empty()
    with pytest.raises(UsageError, match=r"^topic-0 has nothing to clean below 0$"):
        written.clean()


def test_a_horizon_beyond_javas_long_is_none() -> None:
    written = Written.empty(delete_retention_ms=2**63 - 1)
    written.append((b"a", None))
    written.roll()
    written.clean()
    assert horizons_of(written) == [None]


def test_a_marker_goes_a_retention_after_the_pass_that_finds_nothing_of_its_transaction() -> None:
    written = Written.empty()
    for producer, kind in ((7, ControlType.COMMIT), (8, ControlType.ABORT)):
        written.append((b"a", b"1"), producer=producer, transactional=True)
        written.end_transaction(producer, kind)
    written.append((b"a", b"2"), producer=7)
    written.append((b"a", b"3"), producer=8)
    written.roll()
    written.clean()  # Drops the data, and keeps the markers for it.
    assert (markers_of(written), indexed_of(written)) == ([1, 3], [3])
    written.clean()  # Meets only markers, and stamps them.
    assert (markers_of(written), indexed_of(written)) == ([1, 3], [])
    written.sleep(RETENTION_MS - 1)
    written.clean()
    assert markers_of(written) == [1, 3]
    written.sleep(1)
    written.clean()
    assert markers_of(written) == []


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
@pytest.mark.parametrize("magic", [0, 1])
def test_a_tombstone_of_an_older_message_goes_by_the_age_of_its_segment(magic: int, codec: Codec) -> None:
    """As before Kafka 4.0, whose cleaner writes old messages as magic 2."""
    written = Written.empty(release=Release("3.9"))
    written.append((b"a", b"1"), (b"b", b"2"), magic=magic, codec=codec)
    written.append((b"a", None), (b"c", b"3"), magic=magic, codec=codec)
    written.roll()
    written.clean()
    assert pairs_of(written.log) == [(1, b"b", b"2"), (2, b"a", None), (3, b"c", b"3")]
    written.sleep(RETENTION_MS)
    written.append((b"d", b"4"), magic=magic, codec=codec)
    written.roll()
    written.clean(checkpoint=4)  # The clean segment is as old as itself: not older than its own age less retention.
    assert (2, b"a", None) in pairs_of(written.log)
    assert written.log.segments[0].modified_ms == START_MS + RETENTION_MS
    written.append((b"e", b"5"), magic=magic, codec=codec)
    written.roll()
    first, _second, _active = written.log.segments
    first.set_modified_ms(TimeMs(START_MS))
    written.clean(checkpoint=5)
    assert (2, b"a", None) in pairs_of(written.log)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
@pytest.mark.parametrize("magic", [0, 1])
def test_the_cleaner_writes_older_messages_as_magic_2_with_a_horizon_for_tombstones(magic: int, codec: Codec) -> None:
    written = Written.empty()
    written.append((b"a", b"1"), (b"b", b"2"), magic=magic, codec=codec)
    written.append((b"a", None), (b"c", b"3"), magic=magic, codec=codec)
    written.roll()
    written.clean()
    assert pairs_of(written.log) == [(1, b"b", b"2"), (2, b"a", None), (3, b"c", b"3")]
    cleaned = tuple(written.log.segments[0].batches())
    assert {(batch.magic, batch.codec, batch.timestamp_type) for batch in cleaned} == {
        (2, codec, TimestampType.CREATE_TIME)
    }
    horizons = [batch.delete_horizon_ms for batch in cleaned if 2 in {record.offset for record in batch.records()}]
    assert horizons == [START_MS + RETENTION_MS]


@pytest.mark.parametrize(
    ("release", "has_more", "kept"),
    [
        ("3.8", False, [0]),
        ("3.9", False, [0, 1]),
        ("3.9", True, [0, 1]),
        ("4.3", True, [0, 1]),
        ("4.4", False, [0, 1]),
        ("4.4", True, [0]),
    ],
)
def test_an_empty_last_batch_stays_up_to_4_3_at_the_end_of_a_pass_and_then_at_the_high_watermark(
    release: str, has_more: bool, kept: list[int]
) -> None:
    """Cleaner.cleanInto: before 3.9 none stays; without it a log would seem to end below where it does."""
    written = Written.empty(release=Release(release))
    written.append((b"a", b"1"))
    written.append((None, b"2"))
    written.roll()
    if has_more:
        written.append((b"b", b"3"))
    written.clean()
    assert [batch.base_offset for batch in written.log.segments[0].batches()] == kept


def test_older_messages_cannot_be_left_empty_at_the_end_of_a_pass() -> None:
    written = Written.empty()
    written.append((b"a", b"1"), magic=1)
    written.append((None, b"2"), magic=1)
    written.roll()
    before = bytes_of(written.log)
    with pytest.raises(IllegalStateError) as refusal:
        written.clean()
    assert str(refusal.value) == "Empty batches are only supported for magic v2 and above"
    assert bytes_of(written.log) == before
    # What Kafka's cleaner had begun to write stays until the next pass or opening.
    left = [name for name in written.log.storage.list(written.log.directory) if name.endswith(".cleaned")]
    assert left == [f"{0:020}.log.cleaned"]
    storage, directory = written.log.storage, written.log.directory
    PartitionLog.open(storage, directory, written.log.config, LastShutdown(), now_ms=START_MS).close(now_ms=START_MS)
    assert not [name for name in storage.list(directory) if name.endswith(".cleaned")]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_damage_is_reported_with_its_place_and_changes_nothing(codec: Codec) -> None:
    written = Written.empty()
    written.append((b"a", b"1"))
    written.append((b"a", b"2" * 50), codec=codec)
    written.roll()
    segment = written.log.segments[0]
    position = list(segment.batches())[1].position
    segment.records.write_at(position + 61, b"\xff" * 8)
    before = bytes_of(written.log)
    with pytest.raises(CorruptDataError) as damage:
        written.clean()
    assert (damage.value.position, damage.value.source) == (position, "topic-0/00000000000000000000.log")
    assert bytes_of(written.log) == before


def test_half_a_batch_at_the_end_of_a_rolled_segment_is_damage() -> None:
    written = Written.empty()
    written.append((b"a", b"1"))
    written.append((b"a", b"2"))
    written.roll()
    segment = written.log.segments[0]
    second = segment.size_bytes // 2
    segment.records.truncate(segment.size_bytes - 1)
    with pytest.raises(CorruptBatchError) as damage:
        written.clean()
    assert str(damage.value) == (
        f"topic-0/00000000000000000000.log at byte {second}: an incomplete batch stands at the end"
    )

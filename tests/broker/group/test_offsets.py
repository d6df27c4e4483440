"""Offsets, member ids and the partition of a group: what holds, what a transaction holds back, what expires."""

from __future__ import annotations

import pytest

from broker.config.setting import Scope
from broker.config.settings import Settings
from broker.entropy import SplitMix64
from broker.error_codes import ErrorCode
from broker.errors import UsageError
from broker.group.members import random_uuid
from broker.group.offsets import Commit, CommittedOffsets, ExpiryRule, OffsetOptions
from broker.group.records import CommittedOffset, OffsetKey
from broker.group.routing import offsets_partition, positive_hash
from broker.ids import Offset, PartitionId, ProducerId, TopicPartition
from broker.java.string_hash import java_string_hash
from broker.units import DurationMs, SizeBytes, TimeMs

P0 = TopicPartition("t", PartitionId(0))
KEY = OffsetKey("g", "t", PartitionId(0))
PRODUCER = ProducerId(5)


def offsets(**named: object) -> CommittedOffsets:
    return CommittedOffsets(OffsetOptions(**named))  # type: ignore[arg-type]  # The names are checked by attrs.


def value(offset: int, committed_ms: int = 0, expires_ms: int | None = None) -> CommittedOffset:
    expiry = None if expires_ms is None else TimeMs(expires_ms)
    return CommittedOffset(offset=Offset(offset), committed_ms=TimeMs(committed_ms), expires_ms=expiry)


def fetched(known: CommittedOffsets) -> int | None:
    found = known.fetch("g", P0)
    return None if found is None else found.offset


def test_a_commit_is_a_record_and_is_known_once_that_is_stored() -> None:
    known = offsets()
    records, errors = known.records("g", [Commit(P0, Offset(7), metadata="note")], TimeMs(1000))
    assert (fetched(known), errors) == (None, (ErrorCode.NONE,))
    ((key, committed),) = records
    known.apply(key, committed, Offset(0))
    assert (key, known.fetch("g", P0)) == (KEY, committed)
    assert (committed.metadata, committed.committed_ms) == ("note", 1000)


def test_a_note_too_long_refuses_its_partition_and_no_other() -> None:
    known = offsets(metadata_size_bytes_max=SizeBytes(3))
    commits = [
        Commit(P0, Offset(1), metadata="four"),
        Commit(TopicPartition("t", PartitionId(1)), Offset(2), metadata="äöü"),
    ]
    records, errors = known.records("g", commits, TimeMs(0))
    assert errors == (ErrorCode.OFFSET_METADATA_TOO_LARGE, ErrorCode.NONE)
    assert [key.partition for key, _ in records] == [1]


def test_a_tombstone_removes_an_offset_and_what_a_transaction_would_have_made_of_it() -> None:
    known = offsets()
    known.apply(KEY, value(1), Offset(0))
    known.apply(KEY, value(2), Offset(1), producer_id=PRODUCER)
    known.apply(KEY, None, Offset(2))
    known.end_transaction(PRODUCER, committed=True)
    assert fetched(known) is None


@pytest.mark.parametrize(("committed", "expected"), [(True, 2), (False, 1)])
def test_what_a_transaction_commits_holds_when_it_is_decided(committed: bool, expected: int) -> None:
    known = offsets()
    known.apply(KEY, value(1), Offset(0))
    known.apply(KEY, value(2), Offset(1), producer_id=PRODUCER)
    assert (fetched(known), known.is_pending("g", P0)) == (1, True)
    known.end_transaction(PRODUCER, committed=committed)
    assert (fetched(known), known.is_pending("g", P0)) == (expected, False)


def test_a_transaction_that_was_overtaken_does_not_bring_its_older_offset_back() -> None:
    known = offsets()
    known.apply(KEY, value(2), Offset(10), producer_id=PRODUCER)
    known.apply(KEY, value(3), Offset(11))
    known.end_transaction(PRODUCER, committed=True)
    assert fetched(known) == 3


def expired(known: CommittedOffsets, rule: ExpiryRule | None, now_ms: int) -> list[OffsetKey]:
    return list(known.expired("g", rule, TimeMs(now_ms)))


def test_a_stable_group_keeps_what_it_subscribes_to_and_loses_the_rest_by_the_time_of_commit() -> None:
    known = offsets(retention_ms=DurationMs(1000))
    known.apply(KEY, value(1, committed_ms=100), Offset(0))
    other = OffsetKey("g", "u", PartitionId(0))
    known.apply(other, value(1, committed_ms=100), Offset(1))
    rule = ExpiryRule(kept_topics=frozenset({"t"}))
    assert expired(known, rule, 1099) == []
    assert expired(known, rule, 1100) == [other]


def test_an_offset_with_a_time_of_its_own_goes_by_that() -> None:
    known = offsets(retention_ms=DurationMs(1))
    known.apply(KEY, value(1, expires_ms=5000), Offset(0))
    assert expired(known, ExpiryRule(), 4999) == []
    assert expired(known, ExpiryRule(), 5000) == [KEY]


def test_nothing_expires_that_a_transaction_still_decides() -> None:
    known = offsets(retention_ms=DurationMs(1))
    known.apply(KEY, value(1), Offset(0))
    known.apply(KEY, value(2), Offset(1), producer_id=PRODUCER)
    assert expired(known, ExpiryRule(), 5000) == []


def test_the_settings_are_the_brokers() -> None:
    settings = Settings.parse(Scope.BROKER, {"offsets.retention.minutes": "2", "offset.metadata.max.bytes": "9"})
    assert OffsetOptions.of(settings) == OffsetOptions(
        retention_ms=DurationMs(120_000), metadata_size_bytes_max=SizeBytes(9)
    )


def test_each_id_is_the_next_128_bits_in_the_form_of_a_uuid() -> None:
    same, entropy = SplitMix64(7), SplitMix64(7)
    digits = "".join(f"{same.next_int() % 2**32:08x}" for _ in range(8))
    for bits in (digits[:32], digits[32:]):
        assert random_uuid(entropy) == "-".join((bits[:8], bits[8:12], bits[12:16], bits[16:20], bits[20:]))


def test_the_least_int_has_no_absolute_value_and_counts_as_zero() -> None:
    text = "polygenelubricants"  # The well-known English word of this hash.
    assert java_string_hash(text) == -(2**31)
    assert positive_hash(text) == offsets_partition(text, 50) == 0


def test_a_negative_hash_goes_by_its_absolute_value_not_by_its_remainder() -> None:
    assert java_string_hash("my-group") == -1_906_497_762
    assert offsets_partition("my-group", 50) == 12
    assert -1_906_497_762 % 50 == 38


@pytest.mark.parametrize("partition_count", [0, -1, 2**31])
def test_a_topic_without_partitions_is_refused(partition_count: int) -> None:
    message = f"offsets.topic.num.partitions is {partition_count}; allowed are 1 to 2147483647"
    with pytest.raises(UsageError, match=message):
        offsets_partition("group", partition_count)

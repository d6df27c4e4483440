"""Committed offsets: what holds, what a transaction holds back, and what is forgotten."""

from __future__ import annotations

import pytest

from broker.config.setting import Scope
from broker.config.settings import Settings
from broker.error_codes import ErrorCode
from broker.group.offsets import Commit, CommittedOffsets, ExpiryRule, OffsetOptions
from broker.group.records import CommittedOffset, OffsetKey
from broker.ids import Offset, PartitionId, ProducerId, TopicPartition
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

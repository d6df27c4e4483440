"""Fuzzing of what reads `__consumer_offsets`: keys, committed offsets, classic groups."""

from __future__ import annotations

from typing import Final

import pytest

from broker.errors import CorruptDataError
from broker.group.members import GroupRecord, InstanceId, MemberId, StoredMember
from broker.group.records import (
    CommittedOffset,
    GroupKey,
    OffsetKey,
    OtherKey,
    read_committed_offset,
    read_group,
    read_key,
    write_group,
)
from broker.ids import LeaderEpoch, Offset, PartitionId
from broker.units import DurationMs, TimeMs
from tests.log.fuzz.target import Target, fuzz

pytestmark = pytest.mark.usefixtures("input_count")

MEMBER: Final = StoredMember(
    member_id=MemberId("consumer-1"),
    instance_id=InstanceId("one"),
    client_id="consumer",
    client_host="/10.0.0.1",
    rebalance_timeout_ms=DurationMs(300_000),
    session_timeout_ms=DurationMs(45_000),
    subscription=b"\0\3\0\0",
    assignment=b"",
)
GROUP: Final = GroupRecord(
    group_id="g",
    protocol_type="consumer",
    generation=7,
    protocol_name="range",
    leader_id=MemberId("consumer-1"),
    state_time_ms=TimeMs(10**12),
    members=(MEMBER, MEMBER),
)
COMMITTED: Final = CommittedOffset(offset=Offset(42), leader_epoch=LeaderEpoch(3), metadata="é", committed_ms=TimeMs(9))


def test_a_damaged_key_is_refused_or_written_alike() -> None:
    def run(data: bytes) -> None:
        key = read_key(data)
        if not isinstance(key, OtherKey) and "\ufffd" not in str(key):  # Java replaces what is not UTF-8.
            assert key.to_bytes()[2:] == data[2:]

    outcome = fuzz(
        Target("group keys", (OffsetKey("g", "topic", PartitionId(3)).to_bytes(), GroupKey("group").to_bytes()), run)
    )
    assert min(outcome.accepted_count, outcome.refused_count) > 0


def test_a_damaged_committed_offset_is_refused_or_read_alike_when_written_again() -> None:
    flexible = b"\0\4" + COMMITTED.to_bytes()[2:14] + b"\3\xc3\xa9" + bytes(7) + b"\x09\0"
    assert read_committed_offset(flexible) == COMMITTED
    expiring = CommittedOffset(offset=Offset(1), committed_ms=TimeMs(2), expires_ms=TimeMs(3)).to_bytes()

    def run(data: bytes) -> None:
        found = read_committed_offset(data)
        if found.expires_ms is None:
            assert read_committed_offset(found.to_bytes()) == found

    outcome = fuzz(
        Target("committed offsets", (COMMITTED.to_bytes(), flexible, expiring), run, allowed=(CorruptDataError,))
    )
    assert min(outcome.accepted_count, outcome.refused_count) > 0


def test_a_damaged_group_is_refused_or_read_alike_when_written_again() -> None:
    def run(data: bytes) -> None:
        found = read_group("g", data)
        assert len(found.members) <= len(data)
        if found.state_time_ms >= 0:
            assert read_group("g", write_group(found)) == found

    empty = GroupRecord(
        group_id="g",
        protocol_type="",
        generation=0,
        protocol_name=None,
        leader_id=None,
        state_time_ms=TimeMs(1),
        members=(),
    )
    outcome = fuzz(Target("groups", (write_group(GROUP), write_group(empty), b"\0\0" + write_group(empty)[2:12]), run))
    assert min(outcome.accepted_count, outcome.refused_count) > 0

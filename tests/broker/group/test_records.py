"""The records of __consumer_offsets in bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import CorruptDataError
from broker.group.members import (
    GroupRecord,
    InstanceId,
    MemberId,
    StoredMember,
)
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

TEXT = st.text(max_size=20)
INT32 = st.integers(0, 2**31 - 1)
INT64 = st.integers(0, 2**63 - 1)
COMMITTED = st.builds(
    CommittedOffset,
    offset=INT64.map(Offset),
    leader_epoch=st.none() | INT32.map(LeaderEpoch),
    metadata=TEXT,
    committed_ms=INT64.map(TimeMs),
)
MEMBERS = st.builds(
    StoredMember,
    member_id=TEXT.map(MemberId),
    instance_id=st.none() | TEXT.map(InstanceId),
    client_id=TEXT,
    client_host=TEXT,
    rebalance_timeout_ms=INT32.map(DurationMs),
    session_timeout_ms=INT32.map(DurationMs),
    subscription=st.binary(max_size=20),
    assignment=st.binary(max_size=20),
)
GROUPS = st.builds(
    GroupRecord,
    group_id=st.just("g"),
    protocol_type=TEXT,
    generation=INT32,
    protocol_name=st.none() | TEXT,
    leader_id=st.none() | TEXT.map(MemberId),
    state_time_ms=INT64,
    members=st.lists(MEMBERS, max_size=4).map(tuple),
)


def test_keys_are_the_bytes_that_kafka_writes() -> None:
    assert OffsetKey("grp", "top", PartitionId(3)).to_bytes().hex() == "000100036772700003746f7000000003"
    assert GroupKey("grp").to_bytes().hex() == "00020003677270"


def test_an_offset_is_the_bytes_that_kafka_writes() -> None:
    value = CommittedOffset(offset=Offset(42), metadata="m", committed_ms=TimeMs(1000), leader_epoch=LeaderEpoch(7))
    assert value.to_bytes().hex() == "0003000000000000002a0000000700016d00000000000003e8"
    old = CommittedOffset(offset=Offset(42), committed_ms=TimeMs(1000), expires_ms=TimeMs(2000))
    assert old.to_bytes().hex() == "0001000000000000002a000000000000000003e800000000000007d0"


@given(COMMITTED)
def test_an_offset_comes_back_as_it_was_written(value: CommittedOffset) -> None:
    assert read_committed_offset(value.to_bytes()) == value


@given(GROUPS)
def test_a_group_comes_back_as_it_was_written(record: GroupRecord) -> None:
    assert read_group("g", write_group(record)) == record


def test_the_flexible_version_of_an_offset_is_read_and_its_tagged_fields_skipped() -> None:
    data = bytes.fromhex("0004000000000000002affffffff026d00000000000003e8010502aabb")
    assert read_committed_offset(data) == CommittedOffset(offset=Offset(42), metadata="m", committed_ms=TimeMs(1000))


def test_a_group_of_version_0_has_its_session_for_rebalances_too() -> None:
    member = "00016100016300016800001770000000000000000161"
    record = read_group("g", bytes.fromhex("000000017400000005ffffffff00000001" + member))
    assert (record.generation, record.protocol_name, record.state_time_ms) == (5, None, -1)
    (read,) = record.members
    assert (read.rebalance_timeout_ms, read.session_timeout_ms, read.assignment) == (6000, 6000, b"a")


def test_a_key_of_a_newer_kind_is_named_and_left_alone() -> None:
    assert read_key(bytes.fromhex("0003000167")) == OtherKey(3)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("00", r"^key of __consumer_offsets at byte 0: a field of 2 bytes does not fit into the 1 that are left$"),
        ("0001000567", r"^key of __consumer_offsets at byte 4: a length of 5 does not fit into the 1 bytes that are"),
        ("0002ffff", r"^key of __consumer_offsets at byte 4: non-nullable field group was serialized as null$"),
        ("000200016700", r"^key of __consumer_offsets at byte 5: 1 bytes follow where the record ends$"),
    ],
)
def test_a_damaged_key_is_reported_with_its_place(data: str, message: str) -> None:
    with pytest.raises(CorruptDataError, match=message):
        read_key(bytes.fromhex(data))


def test_a_value_of_an_unknown_version_is_refused() -> None:
    with pytest.raises(CorruptDataError, match=r"^committed offset at byte 2: version is 5; known are 0 to 4$"):
        read_committed_offset(b"\x00\x05")


@given(st.binary(max_size=60), st.sampled_from(["key", "offset", "group"]))
def test_arbitrary_bytes_are_read_or_refused(data: bytes, what: str) -> None:
    readers = {"key": read_key, "offset": read_committed_offset, "group": lambda data: read_group("g", data)}
    try:
        readers[what](data)
    except CorruptDataError as damage:
        position = damage.position
    else:
        return
    assert position is not None
    assert 0 <= position <= len(data)

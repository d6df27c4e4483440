"""What is counted of consumers: records handed out once and again, and commits by how they ended."""

from __future__ import annotations

import pytest

from broker.error_codes import ErrorCode
from broker.ids import Offset, TopicPartition, partition_id
from replication.groups.client.messages import Committed, Read
from replication.groups.history import GroupCounts

PARTITION = TopicPartition("t", partition_id(0))


def read(counts: GroupCounts, start: int, end: int, group_id: str = "g") -> str:
    return counts.note(group_id, Read(PARTITION, Offset(start), Offset(end)))


def test_a_record_is_a_duplicate_each_time_that_its_group_had_it_before() -> None:
    counts = GroupCounts()
    assert [read(counts, 0, 10), read(counts, 5, 8), read(counts, 5, 12)] == ["", "", ""]
    assert (counts.read_count, counts.duplicate_count) == (10 + 3 + 7, 3 + 5)
    read(counts, 0, 4, "other")
    assert counts.duplicate_count == 3 + 5


def test_records_that_nobody_was_handed_are_skipped() -> None:
    counts = GroupCounts()
    read(counts, 0, 10)
    read(counts, 2, 5)
    assert read(counts, 10, 11) == ""
    assert read(counts, 12, 13) == "t-0 was read from 12 on, of which 11 was the last handed out"


@pytest.mark.parametrize(
    "error",
    ["ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "STALE_MEMBER_EPOCH", "FENCED_INSTANCE_ID", "FENCED_MEMBER_EPOCH"],
)
def test_a_commit_of_no_current_member_is_fenced_and_not_lost(error: str) -> None:
    counts = GroupCounts()
    for each in (ErrorCode.NONE, ErrorCode[error], ErrorCode.REQUEST_TIMED_OUT):
        counts.note("g", Committed(PARTITION, Offset(1), each))
    assert counts.lines()[1] == "commits: 1 accepted, 1 fenced, 1 lost, 2 not accepted in all"

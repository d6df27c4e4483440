"""What is counted of consumers, and which offsets no order of the commits explains."""

from __future__ import annotations

import pytest

from broker.error_codes import ErrorCode
from broker.ids import Offset, TopicPartition, partition_id
from broker.units import TimeMs
from replication.groups.client.messages import Committed, Read
from replication.groups.history import CommitHistory, CommitMade, GroupCounts, Loss, OffsetShown
from tests.replication.groups.builders import t

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


KEY = ("g", t(0))


def commit(offset: int, start_ms: int, end_ms: int | None, error: ErrorCode = ErrorCode.NONE) -> CommitMade:
    made = CommitMade(KEY, Offset(offset), "a", TimeMs(start_ms))
    if end_ms is not None:
        made.answer(error, TimeMs(end_ms))
    return made


def why(
    shown: int | None, start_ms: int, end_ms: int, *commits: CommitMade, lost_ms: tuple[int, int] | None = None
) -> list[str]:
    history = CommitHistory()
    history.commits += commits
    history.shown.append(
        OffsetShown(KEY, None if shown is None else Offset(shown), "b", TimeMs(start_ms), TimeMs(end_ms))
    )
    if lost_ms is not None:
        history.losses["g"] = [Loss(TimeMs(lost_ms[0]), TimeMs(lost_ms[1]))]
    return [each.why for each in history.impossible()]


def test_the_last_acknowledged_commit_is_shown() -> None:
    assert why(9, 30, 31, commit(7, 0, 5), commit(9, 10, 15)) == []


def test_an_overtaken_commit_is_not_shown() -> None:
    assert why(7, 30, 31, commit(7, 0, 5), commit(9, 10, 15)) == ["a later commit, of 9 by a, was acknowledged before"]


def test_of_two_commits_side_by_side_either_may_be_shown() -> None:
    assert why(7, 30, 31, commit(7, 0, 12), commit(9, 10, 15)) == []


def test_nothing_may_be_shown_only_while_nothing_is_acknowledged() -> None:
    assert why(None, 4, 6, commit(7, 0, 5)) == []
    assert why(None, 6, 8, commit(7, 0, 5)) == ["offset 7 was acknowledged to a before"]


@pytest.mark.parametrize("error", [ErrorCode.ILLEGAL_GENERATION, ErrorCode.STALE_MEMBER_EPOCH])
def test_a_refused_commit_is_never_shown(error: ErrorCode) -> None:
    assert why(7, 30, 31, commit(7, 0, 5, error)) == ["the commit of a was refused"]


def test_a_refused_commit_does_not_bring_an_overtaken_one_back() -> None:
    refused = commit(7, 20, 25, ErrorCode.ILLEGAL_GENERATION)
    told = ["a later commit, of 9 by a, was acknowledged before"]
    assert why(7, 30, 31, commit(7, 0, 5), commit(9, 10, 15), refused) == told


@pytest.mark.parametrize("error", [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR])
def test_a_commit_of_unknown_outcome_may_be_shown_at_any_time(error: ErrorCode) -> None:
    assert why(7, 30, 31, commit(7, 0, 5, error), commit(9, 10, 15)) == []
    assert why(9, 30, 31, commit(7, 0, None), commit(9, 10, 15)) == []


def test_what_nobody_committed_is_not_shown() -> None:
    assert why(8, 30, 31, commit(7, 0, 5)) == ["nobody committed it"]
    assert why(7, 30, 31, commit(7, 40, 45)) == ["nobody committed it"]


def test_after_an_unclean_election_older_commits_may_be_gone() -> None:
    assert why(None, 30, 31, commit(7, 0, 5), lost_ms=(20, 20)) == []
    assert why(None, 30, 31, commit(7, 22, 25), lost_ms=(20, 20)) == ["offset 7 was acknowledged to a before"]
    assert why(None, 10, 11, commit(7, 0, 5), lost_ms=(20, 20)) == ["offset 7 was acknowledged to a before"]


def test_what_a_deposed_leader_acknowledges_may_be_gone() -> None:
    """The commit at 22 to 25 may be its own; one that begins after it has heard of its successor is the successor's."""
    assert why(None, 30, 31, commit(7, 22, 25), lost_ms=(20, 24)) == []
    assert why(None, 30, 31, commit(7, 24, 26), lost_ms=(20, 24)) == []
    assert why(None, 30, 31, commit(7, 25, 26), lost_ms=(20, 24)) == ["offset 7 was acknowledged to a before"]

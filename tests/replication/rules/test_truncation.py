"""Where a follower cuts its log."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.error_codes import ErrorCode
from broker.ids import LeaderEpoch, Offset
from replication.rules.epochs import UNDEFINED_END
from replication.rules.fetch import after_answer, answer_fetch
from replication.rules.leadership import unassigned
from replication.rules.partition import EpochEnd, LogState
from replication.rules.switches import CURRENT, rules_of
from replication.rules.truncation import (
    Cut,
    FencedReaction,
    FirstStep,
    OutOfRange,
    answer_epoch_end,
    cut_for,
    first_step,
    may_apply,
    on_fenced,
    out_of_range,
    start_raised,
    truncated,
)
from tests.oracles.logs import common_prefix, state_of
from tests.replication.builders import fetch, ids, leader, log

# Follower and leader after an election, the leader's epoch and the answer, as in the figures of VAN, section 3.3.
CASES = {
    "A": (log(2, (1, 0)), log(4, (1, 0), (2, 4)), None, None),
    "B": (log(2, (1, 0)), log(4, (1, 0), (2, 2), (3, 4)), None, None),
    "C": (log(4, (1, 0)), log(2, (1, 0), (2, 2)), (1, 2), 2),
    "D": (log(4, (1, 0), (2, 2)), log(2, (1, 0), (3, 2)), (1, 2), 2),
    "E": (log(4, (1, 0), (2, 2)), log(4, (1, 0), (3, 2), (4, 4)), (1, 2), 2),
    "F": (log(3, (1, 0), (2, 1)), log(2, (1, 0), (3, 2)), (1, 2), 1),
    "G": (log(1, (2, 0)), log(2, (1, 0), (3, 1), (4, 2)), (1, 1), 0),
}


@pytest.mark.parametrize("case", CASES)
def test_the_seven_cases_of_divergence(case: str) -> None:
    own, led, diverging, cut_to = CASES[case]
    epoch = led.epochs[-1].epoch
    request = fetch(2, own.end_offset, epoch=epoch, last=own.epochs[-1].epoch)
    answer = answer_fetch(leader(epoch=epoch), led, request, CURRENT)
    expected = None if diverging is None else EpochEnd(LeaderEpoch(diverging[0]), Offset(diverging[1]))
    assert answer.error is ErrorCode.NONE
    assert answer.diverging == expected
    if answer.diverging is not None:
        assert after_answer(own, answer, CURRENT).end_offset == cut_to


def test_until_0_10_2_a_follower_cuts_at_its_own_high_watermark() -> None:
    assert first_step(log(3, (1, 0)), rules_of("0.10.2")) is FirstStep.CUT_TO_HIGH_WATERMARK


@pytest.mark.parametrize("release", ["0.11", "2.0", "2.7"])
def test_until_2_7_a_follower_asks_first(release: str) -> None:
    assert first_step(log(3, (1, 0)), rules_of(release)) is FirstStep.ASK_EPOCH_END


def test_a_log_without_epochs_has_nothing_to_ask() -> None:
    assert first_step(log(3), rules_of("2.0")) is FirstStep.CUT_TO_HIGH_WATERMARK


def test_now_a_follower_just_fetches() -> None:
    assert first_step(log(3, (1, 0)), CURRENT) is FirstStep.FETCH


def test_kip101_answers_with_an_offset_alone() -> None:
    error, end = answer_epoch_end(leader(), log(4, (1, 0), (5, 2)), LeaderEpoch(1), LeaderEpoch(5), rules_of("0.11"))
    assert (error, end) == (ErrorCode.NONE, EpochEnd(LeaderEpoch(-1), Offset(2)))


def test_a_broker_that_does_not_lead_gives_no_answer() -> None:
    role = unassigned(ids(2)[0])
    assert answer_epoch_end(role, log(4), LeaderEpoch(1), LeaderEpoch(-1), CURRENT) == (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        UNDEFINED_END,
    )


@pytest.mark.parametrize(
    ("answer", "cut"),
    [
        (UNDEFINED_END, Cut(Offset(1), complete=True)),
        (EpochEnd(LeaderEpoch(-1), Offset(3)), Cut(Offset(3), complete=True)),
        (EpochEnd(LeaderEpoch(-1), Offset(9)), Cut(Offset(6), complete=True)),
        (EpochEnd(LeaderEpoch(1), Offset(4)), Cut(Offset(2), complete=True)),
        (EpochEnd(LeaderEpoch(3), Offset(4)), Cut(Offset(4), complete=True)),
        (EpochEnd(LeaderEpoch(3), Offset(9)), Cut(Offset(6), complete=True)),
        (EpochEnd(LeaderEpoch(2), Offset(4)), Cut(Offset(2), complete=False)),
        (EpochEnd(LeaderEpoch(7), Offset(4)), Cut(Offset(4), complete=True)),
    ],
)
def test_where_a_follower_cuts(answer: EpochEnd, cut: Cut) -> None:
    assert cut_for(log(6, (1, 0), (3, 2), committed=1), answer, CURRENT) == cut


def test_three_fast_failovers_take_two_questions() -> None:
    """Scenario 3 of KIP-279: at the first question the two logs share no epoch below the one asked for."""
    rules = rules_of("2.0")
    own, led = log(4, (1, 0), (3, 2)), log(4, (1, 0), (2, 1), (5, 3))
    questions = []
    for _ in range(3):
        asked = own.epochs[-1].epoch
        questions.append(asked)
        _, end = answer_epoch_end(leader(), led, asked, LeaderEpoch(5), rules)
        cut = cut_for(own, end, rules)
        own = truncated(own, cut.end_offset, rules)
        if cut.complete:
            break
    assert questions == [3, 1]
    assert own == log(1, (1, 0))


def test_a_cut_lowers_the_high_watermark_and_drops_epochs() -> None:
    assert truncated(log(6, (1, 0), (3, 2), committed=5), Offset(2), CURRENT) == log(2, (1, 0), committed=2)


def test_a_cut_past_the_end_is_none() -> None:
    own = log(6, (1, 0), (3, 2), committed=5)
    assert truncated(own, Offset(9), CURRENT) == own


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, 4, OutOfRange(Offset(4), cut_to=Offset(4), starts_anew=False)),
        (0, 8, OutOfRange(Offset(6), cut_to=None, starts_anew=False)),
        (6, 8, OutOfRange(Offset(6), cut_to=None, starts_anew=False)),
        (7, 8, OutOfRange(Offset(7), cut_to=None, starts_anew=True)),
    ],
)
def test_what_a_follower_does_out_of_range(start: int, end: int, expected: OutOfRange) -> None:
    assert out_of_range(log(6), Offset(start), Offset(end)) == expected


def test_a_fenced_follower_waits_unless_it_has_heard_more() -> None:
    assert on_fenced(LeaderEpoch(4), LeaderEpoch(4)) is FencedReaction.PARK
    assert on_fenced(LeaderEpoch(4), LeaderEpoch(5)) is FencedReaction.RETRY


def test_an_answer_to_an_older_place_is_dropped() -> None:
    assert may_apply(Offset(4), Offset(4), parked=False)
    assert not may_apply(Offset(4), Offset(2), parked=False)
    assert not may_apply(Offset(4), Offset(4), parked=True)


@st.composite
def lineages(draw: st.DrawFn) -> tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]:
    """Two logs of (epoch, leader) records with a common beginning and epochs of different leaders after it."""
    common = sorted(draw(st.lists(st.integers(0, 3), max_size=4)))
    after = common[-1] if common else 0
    theirs = sorted(draw(st.lists(st.integers(after, 6).filter(lambda epoch: epoch % 2 == 0), max_size=4)))
    ours = sorted(draw(st.lists(st.integers(after, 6).filter(lambda epoch: epoch % 2 == 1), max_size=4)))
    return tuple((epoch, 0) for epoch in common + ours), tuple((epoch, 0) for epoch in common + theirs)


@given(lineages())
def test_fetching_ends_at_the_last_common_record(
    logs: tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]],
) -> None:
    ours, theirs = logs
    led = state_of(theirs, leads=8)
    own: LogState = state_of(ours)
    for _ in range(len(ours) + 2):
        last = own.epochs[-1].epoch if own.epochs else -1
        answer = answer_fetch(leader(epoch=8), led, fetch(2, own.end_offset, epoch=8, last=last), CURRENT)
        assert answer.error is ErrorCode.NONE
        if answer.diverging is None:
            break
        own = after_answer(own, answer, CURRENT)
    assert own.end_offset == common_prefix(ours, theirs)


@pytest.mark.parametrize("offset", [0, 2, 3, 4])
def test_a_log_start_that_is_not_raised_is_the_same_log(offset: int) -> None:
    """UnifiedLog.maybeIncrementLogStartOffset changes nothing at an offset at or below the log start."""
    own = log(6, (1, 2), (2, 4), start=2, committed=5)
    raised = start_raised(own, Offset(offset))
    assert (raised is own) is (offset <= 2)
    assert raised.start_offset == max(2, offset)


@pytest.mark.parametrize(
    ("release", "error"),
    [("2.0", ErrorCode.NONE), ("2.1", ErrorCode.FENCED_LEADER_EPOCH), ("4.1", ErrorCode.FENCED_LEADER_EPOCH)],
)
def test_since_2_1_a_question_of_a_former_epoch_is_fenced(release: str, error: ErrorCode) -> None:
    """KIP-320 gave OffsetsForLeaderEpoch the current leader epoch."""
    answer = answer_epoch_end(leader(), log(4, (1, 0)), LeaderEpoch(1), LeaderEpoch(4), rules_of(release))
    assert answer[0] is error

"""Where a follower cuts its log, as specifications and KIPs name it; `test_truncation_facts` has the other cases."""

from __future__ import annotations

import pytest

from broker.error_codes import ErrorCode
from broker.ids import LeaderEpoch, Offset
from replication.rules.epochs import UNDEFINED_END
from replication.rules.fetch import after_answer, answer_fetch
from replication.rules.partition import EpochEnd
from replication.rules.switches import CURRENT, rules_of
from replication.rules.truncation import Cut, FirstStep, answer_epoch_end, cut_for, first_step, truncated
from tests.replication.builders import fetch, leader, log

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


@pytest.mark.parametrize(
    ("release", "step"),
    [
        ("0.10.2", FirstStep.CUT_TO_HIGH_WATERMARK),
        ("0.11", FirstStep.ASK_EPOCH_END),
        ("2.0", FirstStep.ASK_EPOCH_END),
        ("2.7", FirstStep.ASK_EPOCH_END),
        ("2.8", FirstStep.FETCH),
    ],
)
def test_how_a_follower_of_each_release_begins(release: str, step: FirstStep) -> None:
    assert first_step(log(3, (1, 0)), rules_of(release)) is step


def test_kip101_answers_with_an_offset_alone() -> None:
    error, end = answer_epoch_end(leader(), log(4, (1, 0), (5, 2)), LeaderEpoch(1), LeaderEpoch(5), rules_of("0.11"))
    assert (error, end) == (ErrorCode.NONE, EpochEnd(LeaderEpoch(-1), Offset(2)))


@pytest.mark.parametrize(
    ("answer", "cut"),
    [
        (UNDEFINED_END, Cut(Offset(1), complete=True)),
        (EpochEnd(LeaderEpoch(-1), Offset(3)), Cut(Offset(3), complete=True)),
        (EpochEnd(LeaderEpoch(-1), Offset(9)), Cut(Offset(6), complete=True)),
        (EpochEnd(LeaderEpoch(1), Offset(4)), Cut(Offset(2), complete=True)),
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


@pytest.mark.parametrize(
    ("release", "error"),
    [("2.0", ErrorCode.NONE), ("2.1", ErrorCode.FENCED_LEADER_EPOCH), ("4.1", ErrorCode.FENCED_LEADER_EPOCH)],
)
def test_since_2_1_a_question_of_a_former_epoch_is_fenced(release: str, error: ErrorCode) -> None:
    """KIP-320 gave OffsetsForLeaderEpoch the current leader epoch."""
    answer = answer_epoch_end(leader(), log(4, (1, 0)), LeaderEpoch(1), LeaderEpoch(4), rules_of(release))
    assert answer[0] is error

"""A consumer's place in a log whose leader has changed."""

from __future__ import annotations

import pytest

from broker.ids import LeaderEpoch, Offset
from replication.rules.partition import UNKNOWN_EPOCH, UNKNOWN_OFFSET, EpochEnd
from replication.rules.position import Position, PositionCheck, check_position

AT_THREE = Position(Offset(3), LeaderEpoch(1))


@pytest.mark.parametrize(
    ("answer", "check", "offset"),
    [
        (EpochEnd(LeaderEpoch(1), Offset(3)), PositionCheck.STANDS, 3),
        (EpochEnd(LeaderEpoch(1), Offset(9)), PositionCheck.STANDS, 3),
        (EpochEnd(LeaderEpoch(1), Offset(2)), PositionCheck.CUT, 2),
        (EpochEnd(LeaderEpoch(0), Offset(1)), PositionCheck.CUT, 1),
        (EpochEnd(), PositionCheck.LOST, 0),
        # SubscriptionState.maybeCompleteValidation needs both; a broker before 2.0 names no epoch.
        (EpochEnd(UNKNOWN_EPOCH, Offset(9)), PositionCheck.LOST, 0),
        (EpochEnd(LeaderEpoch(1), UNKNOWN_OFFSET), PositionCheck.LOST, 0),
    ],
)
def test_a_position_stands_unless_its_epoch_ends_before_it(answer: EpochEnd, check: PositionCheck, offset: int) -> None:
    checked = check_position(AT_THREE, answer)
    assert checked.check is check
    assert checked.position.offset == offset


def test_after_a_cut_the_epoch_is_the_one_that_the_leader_named() -> None:
    checked = check_position(AT_THREE, EpochEnd(LeaderEpoch(0), Offset(1)))
    assert checked.position == Position(Offset(1), LeaderEpoch(0))


def test_who_has_read_nothing_has_nothing_to_check() -> None:
    start = Position(Offset(0))
    assert check_position(start, EpochEnd()).position is start

"""Circles let more stay, whatever table they start from, and never lead a unit to a member that may not hold it."""

from __future__ import annotations

import numpy as np

from placement.consumer.optimum import keep_more

Rows = list[list[int]]


def kept_after(table: Rows, held: Rows, may_hold: Rows) -> tuple[int, Rows]:
    changed = np.array(table)
    keep_more(changed, np.array(held), np.array(may_hold, bool))
    return int(np.minimum(changed, held).sum()), changed.tolist()


def test_a_circle_may_give_up_one_that_was_held_for_two_that_were() -> None:
    # The last member gives its t0, which it held, and gets its t1 back; the first gets the t0 that it held.
    kept, table = kept_after([[0, 1], [1, 0], [1, 0]], [[1, 0], [0, 0], [1, 1]], [[1, 1], [1, 0], [1, 1]])
    assert (kept, table) == (2, [[1, 0], [1, 0], [0, 1]])


def test_no_circle_goes_through_a_member_that_may_not_hold_the_topic() -> None:
    # Five members with one unit each: in three circles out of reach more would stay than the one that is allowed.
    table = [[0, 0, 1, 0, 0], [0, 0, 0, 1, 0], [0, 0, 1, 0, 0], [1, 0, 0, 0, 0], [0, 0, 0, 0, 1]]
    held = [[0, 0, 0, 0, 1], [0, 0, 0, 0, 0], [1, 0, 2, 0, 0], [0, 0, 0, 0, 0], [0, 0, 0, 1, 0]]
    may_hold = [[0, 0, 1, 0, 1], [0, 1, 0, 1, 0], [1, 0, 1, 0, 0], [1, 1, 0, 0, 1], [1, 0, 0, 1, 1]]
    kept, changed = kept_after(table, held, may_hold)
    assert kept == 1
    assert not (np.array(changed) > np.array(may_hold)).any()

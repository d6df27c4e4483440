"""What was on its way to a process that has ended does not reach the process that its member starts next."""

from __future__ import annotations

import pytest

from tests.replication.mutants.lone_members import members_noticed


@pytest.mark.parametrize("seed", [4, 27, 41])
def test_no_answer_and_no_timer_of_a_former_process_reaches_the_next(seed: int) -> None:
    """A timer of the former process had the number of a fetch of the next one (27, 41), or let it probe twice."""
    assert members_noticed(seed) == ""


def test_who_observes_a_member_is_told_what_is_due_as_its_application_is_held_up() -> None:
    """A poll is due in the very millisecond in which the application ceases to poll."""
    assert members_noticed(7) == ""

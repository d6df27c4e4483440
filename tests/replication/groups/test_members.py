"""What was on its way to a process that has ended does not reach the process that its member starts next."""

from __future__ import annotations

import pytest

from tests.replication.mutants.lone_members import members_noticed


@pytest.mark.parametrize("seed", [14, 22, 116])
def test_no_answer_and_no_timer_of_a_former_process_reaches_the_next(seed: int) -> None:
    """A timer of the former process had the number of a fetch of the next one (22, 116), or let it probe twice."""
    assert members_noticed(seed) == ""

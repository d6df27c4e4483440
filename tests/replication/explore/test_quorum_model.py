"""The search of the quorum's histories: what holds in every state, and what a lost disk does without KIP-853."""

from __future__ import annotations

import pytest

from replication.explore import QuorumModel, QuorumScope, Violation
from replication.explore.search import described, search


@pytest.mark.parametrize(
    ("scope", "state_count", "depth"),
    [
        (QuorumScope(records=0), 18_792, 18),
        (QuorumScope(records=0, lost_disks=0, restarts=1), 15_740, 15),
        pytest.param(QuorumScope(epochs=1, records=2, lost_disks=0, restarts=2), 44_520, 18, marks=pytest.mark.deep),
        (QuorumScope(voters=2, records=2), 2_753, 20),
        (QuorumScope(voters=1, records=2), 19, 5),
    ],
    ids=str,
)
def test_nothing_committed_is_lost_in_any_state(scope: QuorumScope, state_count: int, depth: int) -> None:
    """Any other vote, commit or cut of a log reaches other states."""
    outcome = search(QuorumModel(scope))
    assert (outcome.holds, outcome.state_count, outcome.depth) == (True, state_count, depth)


@pytest.mark.parametrize(("violation", "depth"), [(Violation.TWO_LEADERS, 5), (Violation.LOSS, 8)])
def test_a_voter_known_by_its_id_alone_breaks_the_quorum_once_its_disk_is_lost(
    violation: Violation, depth: int
) -> None:
    outcome = search(QuorumModel(QuorumScope(directory_ids=False, violations=(violation,))))
    assert outcome.depth == depth
    assert outcome.fault is not None


def test_the_shortest_history_is_told_in_words() -> None:
    model = QuorumModel(QuorumScope(directory_ids=False, violations=(Violation.TWO_LEADERS,)))
    outcome = search(model)
    assert list(described(model, outcome.history)) == [
        "  1. 0 becomes a candidate in epoch 1",
        "  2. 1 becomes a candidate in epoch 1",
        "  3. 0 gets the vote of 2 in epoch 1, and leads",
        "  4. 2 loses its disk and comes back empty",
        "  5. 1 gets the vote of 2 in epoch 1, and leads",
    ]
    assert outcome.fault == "voters [0, 1] lead in the same epoch"
    assert model.state_text(outcome.history[-1]) == (
        "0: [led@1] committed 0 epoch 1; 1: [led@1] committed 0 epoch 1; 2: [empty] committed 0 epoch 1"
    )


def test_names_make_no_difference_to_how_many_states_there_are() -> None:
    class Named(QuorumModel):
        def renamed(self, state: int) -> tuple[int, int]:
            return state, 1

    scope = QuorumScope(epochs=1, records=1)
    assert search(Named(scope)).state_count == search(QuorumModel(scope)).state_count

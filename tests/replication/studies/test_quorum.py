"""The majority quorum that studies compare with: nothing committed is lost while a majority keeps its disks."""

from __future__ import annotations

import pytest

from replication.studies import Parameters
from replication.studies.quorum import NOBODY, QuorumReplica
from replication.studies.quorum_run import run_quorum


def replica(epochs: list[int], epoch: int, *, voter: int = 0, voters: int = 3) -> QuorumReplica:
    """Return a replica with a log of these epochs."""
    return QuorumReplica(voter, voters, epoch=epoch, epochs=list(epochs), values=list(range(len(epochs))))


@pytest.mark.parametrize("failure", ["crash", "power"])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(1, 6))])
def test_no_acknowledged_write_is_lost_whoever_stops(failure: str, seed: int) -> None:
    parameters = Parameters(
        replication="quorum", failure=failure, mttf_minutes=0.5, repair_seconds=5, minutes=5, produce_ms=100
    )
    measures, broken = run_quorum(parameters, seed)
    assert broken == ""
    assert (measures.acked_all > 500, measures.lost_all, measures.duplicate_count) == (True, 0, 0)
    assert measures.clean_elections > 3


def test_without_failures_a_write_takes_four_messages() -> None:
    """Each takes 1 to 4 ms: the write, the fetch's answer, the next fetch, the acknowledgement."""
    measures, broken = run_quorum(Parameters(replication="quorum", minutes=3), 2)
    assert (broken, measures.unavailable_ms, measures.clean_elections) == ("", 0, 0)
    assert 4 <= measures.latency_p50_ms <= 16
    assert measures.write_count == measures.acked_all


def test_two_disks_of_three_lost_is_a_loss() -> None:
    parameters = Parameters(replication="quorum", failure="disk", mttf_minutes=0.3, repair_seconds=60, minutes=5)
    assert any(run_quorum(parameters, seed)[0].lost_all for seed in range(4))


def test_one_disk_of_three_lost_is_none() -> None:
    parameters = Parameters(
        replication="quorum", failure="disk", mttf_minutes=3, repair_seconds=1, minutes=3, produce_ms=100
    )
    for seed in range(8):
        measures, _ = run_quorum(parameters, seed)
        if measures.loss_count == 1:
            assert measures.lost_all == 0
            return
    pytest.fail("no seed lost just one disk")


def test_a_vote_goes_to_a_log_that_is_not_behind() -> None:
    voter = replica([1, 1, 2], epoch=2)
    assert not voter.grants(1, 3, (2, 2))
    assert voter.grants(1, 3, (2, 3))
    assert not voter.grants(2, 3, (9, 9))
    assert voter.grants(2, 4, (2, 4))


def test_nothing_is_committed_before_a_record_of_the_own_epoch_is() -> None:
    leader = replica([1, 1], epoch=3)
    leader.leader = 0
    assert not leader.hear_fetch(1, 2, is_counted=True)
    assert leader.high_watermark == 0
    leader.append(7)
    assert leader.hear_fetch(1, 3, is_counted=True)
    assert leader.high_watermark == 3


def test_who_lost_its_disk_does_not_count() -> None:
    leader = replica([1], epoch=1)
    leader.leader = 0
    assert not leader.hear_fetch(1, 1, is_counted=False)
    leader.wipe()
    assert not leader.grants(1, 5, (9, 9))
    assert leader.voted_for == NOBODY


def test_logs_agree_up_to_the_last_common_epoch() -> None:
    leader = replica([1, 1, 3, 3], epoch=3)
    assert leader.agreed_end(4, 3) == 4
    assert leader.agreed_end(4, 2) == 2
    assert leader.agreed_end(3, 1) == 2
    assert leader.agreed_end(0, NOBODY) == 0

"""The majority quorum that studies compare with: nothing committed is lost while a majority keeps its disks."""

from __future__ import annotations

import pytest

from broker.entropy import SplitMix64
from replication.studies import Parameters
from replication.studies.quorum import FETCH_TIMEOUT_MS, NOBODY, Machines, PartitionQuorum, run_quorum


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


def led() -> tuple[Machines, PartitionQuorum]:
    """Return three voters, of which one leads."""
    machines = Machines(3, SplitMix64(1))
    quorum = PartitionQuorum(machines)
    quorum.elect_later(0)
    machines.run_until(2_000)
    assert (quorum.leader, quorum.high_watermark, quorum.held) == (0, 1, [1, 1, 1])
    return machines, quorum


def stop(machines: Machines, quorum: PartitionQuorum, voter: int, *, loses_disk: bool = False) -> None:
    machines.is_up[voter] = False
    machines.incarnation[voter] += 1
    machines.loss_count += loses_disk
    quorum.stopped(voter, loses_disk=loses_disk)


def test_the_running_voter_with_the_longest_log_leads_next() -> None:
    machines, quorum = led()
    quorum.values += [7, 8]
    quorum.held = [3, 1, 2]
    stop(machines, quorum, 0)
    assert quorum.leader == NOBODY
    machines.run_until(machines.now_ms + FETCH_TIMEOUT_MS + 1_100)
    assert (quorum.leader, quorum.values, quorum.broken) == (2, [NOBODY, 7, NOBODY], "")
    stop(machines, quorum, 1)
    assert quorum.leader == NOBODY, "no majority is left"


def test_an_election_that_cuts_what_is_committed_is_found() -> None:
    machines, quorum = led()
    quorum.values += [7, 8]
    quorum.held, quorum.high_watermark = [3, 2, 2], 3
    stop(machines, quorum, 0)
    machines.run_until(machines.now_ms + FETCH_TIMEOUT_MS + 1_100)
    assert quorum.broken == "voter 1 leads with 2 of 3 committed records"


def test_who_lost_its_disk_does_not_count_until_it_has_caught_up() -> None:
    machines, quorum = led()
    stop(machines, quorum, 2, loses_disk=True)
    machines.is_up[2] = True
    stop(machines, quorum, 1)
    assert quorum.leader == NOBODY, "two run, and one of them does not count"
    machines.is_up[1] = True
    quorum.started(1)
    machines.run_until(machines.now_ms + FETCH_TIMEOUT_MS + 1_100)
    assert (quorum.leader, quorum.is_counted) == (0, [True, True, True])

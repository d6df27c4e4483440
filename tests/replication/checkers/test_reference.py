"""The reference log grows by what clients were told and what logs hold; a high watermark alone commits nothing."""

from __future__ import annotations

from typing import Any, Final

import attrs
import pytest

from broker.ids import BrokerId
from broker.units import DurationMs, TimeMs
from replication.checkers.elections import Ground
from replication.roles.leader import LeaderRole
from replication.roles.replica_log import ReplicaLog
from replication.roles.states.write import WriteInput
from replication.simulation import Fault, FaultKind, NetworkOptions, Options, Simulation, quiet, run
from replication.simulation.options import with_partition_settings
from replication.simulation.report import verdict_line

FAR: Final = attrs.evolve(
    quiet(1, DurationMs(40_000)),
    partitions=1,
    producers=4,
    produce_ms=DurationMs(50),
    network=NetworkOptions(delay_ms_max=400),
)
LEADER: Final = BrokerId(1)
"""Who leads first in `FAR`, as broker 0 is late; broker 0 leads next."""
NEXT: Final = BrokerId(0)
FAILOVER: Final = (Fault(TimeMs(5_750), FaultKind.KILL, LEADER, DurationMs(20_000)),)
BASE: Final = attrs.evolve(
    quiet(1, DurationMs(110_000)), partitions=1, network=NetworkOptions(delay_ms_max=50), produce_ms=DurationMs(200)
)
UNCLEAN: Final[Options] = with_partition_settings(BASE, attrs.evolve(BASE.settings, unclean_election=True))


def leaders_begin_at_their_ends(patch: pytest.MonkeyPatch) -> None:
    """Let a new leader take all that it has for committed: a high watermark that was restored too high."""
    original = LeaderRole.__init__

    def begin(self: LeaderRole, partition: int, state: Any, log: ReplicaLog, *given: Any) -> None:
        original(self, partition, state, log, *given)
        log.set_high_watermark(log.log.log_end_offset)

    patch.setattr(LeaderRole, "__init__", begin)


def acknowledge_at_once(patch: pytest.MonkeyPatch) -> None:
    """Let a leader acknowledge before its followers have the record."""
    original = LeaderRole.advance

    def advance(self: LeaderRole, moment: Any, out: Any) -> None:
        original(self, moment, out)
        self._answer_committed(out)

    def answer(self: LeaderRole, out: Any) -> None:
        for waiting in self._waiting:
            self._end(waiting, WriteInput.COMMITTED, out)
        self._waiting.clear()

    patch.setattr(LeaderRole, "advance", advance)
    patch.setattr(LeaderRole, "_answer_committed", answer)


def test_a_high_watermark_restored_too_high_commits_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the next leader begins, the reference is what every member of the ISR holds, whatever the leader shows."""
    leaders_begin_at_their_ends(monkeypatch)
    simulation = Simulation(FAR, FAILOVER)
    node, now_ms, before = simulation.cluster.nodes[NEXT], 5_000, 0
    while node.role is None or not isinstance(node.role.roles.get(0), LeaderRole):
        simulation.run_until(now_ms)
        before = len(simulation.checker.references[0].committed)
        now_ms += 1
        assert now_ms < 20_000
    reference = simulation.checker.references[0]
    assert reference.state is not None
    ends = [simulation.cluster.nodes[broker].logs[0].log.log_end_offset for broker in reference.state.isr]
    assert before <= len(reference.committed) <= min(ends) < node.logs[0].log.high_watermark
    assert "I29" in {finding.code for finding in simulation.findings}


def test_what_a_client_was_told_counts_as_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a leader acknowledges too soon is missed where the next leader, cleanly elected, does not have it."""
    acknowledge_at_once(monkeypatch)
    codes = {finding.code for finding in run(FAR, FAILOVER).findings}
    assert {"I19", "I7"} <= codes
    assert codes & {"I9", "I10"}


@pytest.mark.parametrize("end", [FaultKind.KILL, FaultKind.POWER_LOSS])
def test_a_leader_elected_while_its_log_is_not_open_is_accounted_for(end: FaultKind) -> None:
    """Broker 1 restarts; before it is registered again, it is elected as if it were still the process of before."""
    plan = (
        Fault(TimeMs(5_000), FaultKind.CUT_PEERS, 1, DurationMs(70_000)),
        Fault(TimeMs(50_000), FaultKind.KILL, 0, DurationMs(20_000)),
        Fault(TimeMs(50_000), FaultKind.KILL, 2, DurationMs(20_000)),
        Fault(TimeMs(57_000), end, 1, DurationMs(500)),
    )
    simulation = Simulation(UNCLEAN, plan)
    outcome = simulation.finish()
    assert outcome.findings == ()
    reference = simulation.checker.references[0]
    assert reference.losses[0].election.leader == 1
    assert reference.losses[0].election.ground is Ground.SETTING
    assert reference.losses[0].values
    assert "allowed by unclean.leader.election.enable=true" in verdict_line(outcome)


def test_what_a_model_raises_as_it_begins_ends_its_own_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def begin(_self: Any, _out: Any) -> None:
        raise ZeroDivisionError("of the model")

    monkeypatch.setattr("replication.roles.broker_role.BrokerRole.begin", begin)
    simulation = Simulation(FAR)
    simulation.run_until(10)
    (finding,) = (each for each in simulation.finish().findings if each.code == "A")
    assert finding.what == "ZeroDivisionError at seed 1, step 0: of the model"

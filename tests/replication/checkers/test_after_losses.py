"""Checks go on after an unclean election: what is broken later is found, and what the election took is no fault."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import attrs
import pytest

import replication.roles.broker_role
from broker.error_codes import ErrorCode
from broker.ids import BrokerId, Offset
from broker.units import DurationMs, TimeMs
from log.batches.in_buffer import batches_in
from replication.roles.leader import LeaderRole
from replication.roles.states.write import WriteInput
from replication.rules.produce import Fate
from replication.simulation import Fault, FaultKind, NetworkOptions, Outcome, Simulation, quiet, run, swarm
from replication.simulation.options import Options, with_partition_settings
from replication.simulation.report import verdict_line

BASE: Final = attrs.evolve(
    quiet(1, DurationMs(110_000)), partitions=1, network=NetworkOptions(delay_ms_max=50), produce_ms=DurationMs(200)
)
OPTIONS: Final[Options] = with_partition_settings(BASE, attrs.evolve(BASE.settings, unclean_election=True))
PLAN: Final = (
    Fault(TimeMs(5_000), FaultKind.CUT_PEERS, 1, DurationMs(70_000)),
    Fault(TimeMs(50_000), FaultKind.KILL, 0, DurationMs(20_000)),
    Fault(TimeMs(50_000), FaultKind.KILL, 2, DurationMs(20_000)),
)
"""Broker 1 lags and leaves the ISR; then it alone is alive and is elected uncleanly before 60 s."""
ELECTED_MS: Final = 60_000
LAST_KNOWN_SEED: Final = 51
"""A seed in which the last known leader is elected without records that all in sync had acknowledged."""
Break = Callable[[pytest.MonkeyPatch], None]


def test_the_run_is_clean_though_an_unclean_election_loses_records() -> None:
    outcome = run(OPTIONS, PLAN)
    assert outcome.findings == ()
    assert outcome.unclean_count == 1
    assert not outcome.is_clean


def test_acks_of_one_and_of_all_are_counted_apart() -> None:
    """The counts are those of the clients' history and of the leader's log at the end."""
    simulation = Simulation(attrs.evolve(OPTIONS, acks=(-1, 1, -1)), PLAN)
    outcome = simulation.finish()
    view = simulation.partition(0)
    assert view is not None
    log = simulation.cluster.nodes[view.leader].logs[0].log
    held = {
        int.from_bytes(record.value or b"", "big")
        for batch in batches_in(bytes(log.read(Offset(0), 1 << 24).records))
        for record in batch.records()
    }
    acked = [write for write in simulation.cluster.history.writes if write.fate is Fate.ACKED]
    by_all = [write.value for write in acked if write.acks == -1]
    by_one = [write.value for write in acked if write.acks == 1]
    report = outcome.durability
    assert (report.acked_count, report.acked_by_one_count) == (len(by_all), len(by_one))
    assert [record.value for record in report.lost_by_all] == [value for value in by_all if value not in held]
    assert [record.value for record in report.lost_by_one] == [value for value in by_one if value not in held]
    assert len(report.lost_by_all) != len(report.lost_by_one)
    assert report.lost_by_one


def test_the_verdict_names_what_was_lost_and_the_election_that_lost_it() -> None:
    outcome = run(OPTIONS, PLAN)
    count, acked = len(outcome.durability.lost_by_all), outcome.durability.acked_count
    assert verdict_line(outcome) == (
        f"nothing is broken, but {count} of {acked} records acknowledged by all are lost: {count} to the unclean "
        "election of broker 1 at 58000 ms (epoch 2), allowed by unclean.leader.election.enable=true"
    )
    assert verdict_line(run(OPTIONS, ())) == "nothing is broken"


def test_what_a_last_known_leader_lost_is_named_too() -> None:
    outcome = run(swarm(LAST_KNOWN_SEED, DurationMs(180_000)))
    assert not outcome.is_broken
    assert not outcome.is_clean
    assert "allowed by KIP-966: the last known leader of an empty ISR and ELR" in verdict_line(outcome)


def is_later(state: Any) -> bool:
    """Whether a leader leads in an epoch after the unclean election."""
    return bool(state.leader_epoch >= 2)


def later_writes_are_acknowledged_at_once(patch: pytest.MonkeyPatch) -> None:
    original = LeaderRole._answer_committed

    def answer(self: LeaderRole, out: Any) -> None:
        if not is_later(self.state):
            original(self, out)
            return
        for waiting in self._waiting:
            self._end(waiting, WriteInput.COMMITTED, out)
        self._waiting.clear()

    patch.setattr(LeaderRole, "_answer_committed", answer)


def later_tails_are_shown(patch: pytest.MonkeyPatch) -> None:
    original = replication.roles.broker_role.answer_consumer

    def answer(role: Any, replica: Any, ask: Any, *given: Any) -> Any:
        told = original(role, replica, ask, *given)
        if not is_later(role) or told.error is not ErrorCode.NONE:
            return told
        return attrs.evolve(told, records=replica.read(ask.offset, given[-1].fetch_bytes_max))

    patch.setattr(replication.roles.broker_role, "answer_consumer", answer)


def later_offsets_are_told_wrong(patch: pytest.MonkeyPatch) -> None:
    original = LeaderRole._answer

    def answer(self: LeaderRole, *given: Any, offset: Offset | None = None) -> None:
        original(self, *given, offset=offset and Offset(offset % 3) if is_later(self.state) else offset)

    patch.setattr(LeaderRole, "_answer", answer)


@pytest.mark.parametrize(
    ("code", "break_it"),
    [
        ("I18", later_tails_are_shown),
        ("I19", later_writes_are_acknowledged_at_once),
        ("I22", later_offsets_are_told_wrong),
    ],
)
def test_what_is_broken_after_the_election_is_found(
    code: str, break_it: Break, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_it(monkeypatch)
    outcome: Outcome = run(OPTIONS, PLAN)
    assert code in {finding.code for finding in outcome.findings}
    assert all(finding.at_ms > ELECTED_MS for finding in outcome.findings)


def test_a_member_that_cuts_what_is_committed_after_the_election_is_found() -> None:
    simulation = Simulation(OPTIONS, PLAN)
    simulation.run_until(95_000)
    assert simulation.findings == ()
    view = simulation.partition(0)
    assert view is not None
    member = next(broker for broker in view.isr if broker != view.leader)
    log = simulation.cluster.nodes[BrokerId(member)].logs[0]
    simulation.cluster.at(95_000, lambda: log.cut(Offset(0), TimeMs(0)))
    simulation.run_until(97_000)
    assert "I16" in {finding.code for finding in simulation.findings}

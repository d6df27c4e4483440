"""Checks go on after an unclean election: what is broken later is found, and what the election took is no fault."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import attrs
import pytest

import replication.roles.broker_role
from broker.ids import BrokerId, Offset
from broker.units import DurationMs, TimeMs
from replication.checkers import check_history
from replication.checkers.observed_log import Entry
from replication.checkers.reference_log import ReferenceLog
from replication.roles.leader import LeaderRole
from replication.roles.states.write import WriteInput
from replication.rules.produce import Fate
from replication.simulation import Fault, FaultKind, NetworkOptions, Outcome, Simulation, quiet, run
from replication.simulation.history import ConsumedRecord, Write
from replication.simulation.options import Options, with_partition_settings

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
Break = Callable[[pytest.MonkeyPatch], None]


def test_the_run_is_clean_though_an_unclean_election_loses_records() -> None:
    outcome = run(OPTIONS, PLAN)
    assert outcome.findings == ()
    assert outcome.unclean_count == 1
    assert outcome.durability.lost


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
        return (
            attrs.evolve(told, records=replica.read(ask.offset, given[-1].fetch_bytes_max)) if is_later(role) else told
        )

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


def cut_short(*values: int, keep: int) -> dict[int, ReferenceLog]:
    """A reference log of `values` that an unclean election cut, and of one more value in the next epoch."""
    made = ReferenceLog(0)
    made.committed = [Entry(0, value) for value in values]
    made.give_up(keep, TimeMs(40), 1, "unclean election of broker 2")
    made.committed += [Entry(1, 90), Entry(1, 91)]
    return {0: made}


def seen(offset: int, value: int, *, is_reset: bool = False) -> ConsumedRecord:
    return ConsumedRecord(7, 0, Offset(offset), value, TimeMs(0), is_reset)


def written(value: int, offset: int, sent: int, answered: int) -> Write:
    made = Write(value, 0, -1, TimeMs(sent))
    made.fate, made.answered_ms, made.offset = Fate.ACKED, TimeMs(answered), Offset(offset)
    return made


def codes(writes: list[Write], consumed: list[ConsumedRecord], references: dict[int, ReferenceLog]) -> set[str]:
    found = check_history(writes, consumed, references, TimeMs(0), is_idempotent=False)
    return {finding.code for finding in found}


def test_readers_are_held_to_their_order_after_the_election_too() -> None:
    references = cut_short(1, 2, 3, keep=1)
    assert codes([], [seen(0, 1), seen(1, 90), seen(0, 1)], references) == {"H1"}
    assert codes([], [seen(0, 1), seen(2, 91)], references) == {"H3"}
    assert codes([], [seen(1, 90, is_reset=True), seen(2, 90)], references) == set(), "one place may be of old"
    references[0].committed.append(Entry(1, 90))
    assert codes([], [seen(1, 90, is_reset=True), seen(2, 91), seen(3, 90)], references) == {"H2"}


def test_an_order_is_asked_of_what_was_kept_only() -> None:
    references = cut_short(1, 2, 3, keep=1)
    lost, late = written(3, 2, 0, 10), written(90, 1, 50, 60)
    assert codes([lost, late], [], references) == set(), "offset 2 was removed, offset 1 written anew"
    assert codes([late, written(91, 1, 70, 80)], [], references) == {"I22"}

"""Which elections from outside ISR and ELR are allowed, by what, and which break I28."""

from __future__ import annotations

from typing import Final

import attrs
import pytest

from broker.ids import NO_LEADER, BrokerId
from broker.units import DurationMs, TimeMs
from replication.checkers.elections import Cause, Ground
from replication.checkers.rare import RareStates
from replication.checkers.records import RecordReader
from replication.roles.messages import BrokerRecord, ElectLeaders, MetadataRecord, PartitionRecord
from replication.rules.election import Election
from replication.rules.partition import BrokerStatus, PartitionEpoch, PartitionState
from replication.rules.settings import PartitionSettings
from replication.rules.switches import CURRENT, rules_of, without
from replication.scenarios.extension import ScenarioExtension
from replication.scenarios.operations import AskController
from replication.simulation import Fault, FaultKind, quiet, run

ZERO, ONE, TWO = BrokerId(0), BrokerId(1), BrokerId(2)
KRAFT: Final = PartitionSettings(min_isr=2)
UNCLEAN: Final = PartitionSettings(min_isr=2, unclean_election=True)
LED: Final = PartitionState(replicas=(ZERO, ONE, TWO), isr=(ZERO,), leader=ZERO)
LEADERLESS: Final = attrs.evolve(LED, isr=(), leader=NO_LEADER, leader_epoch=1, partition_epoch=1, last_known=(ZERO,))
"""Broker 0 led last; ISR and ELR are empty."""
NOTHING: Final = Cause()
ELIGIBLE: Final = attrs.evolve(LEADERLESS, elr=(TWO,))


def elected(before: PartitionState, leader: BrokerId) -> PartitionState:
    return attrs.evolve(
        before,
        leader=leader,
        isr=(leader,),
        elr=(),
        last_known=(),
        leader_epoch=before.leader_epoch + 1,
        partition_epoch=PartitionEpoch(before.partition_epoch + 1),
    )


def found(
    settings: PartitionSettings,
    before: PartitionState,
    leader: BrokerId,
    cause: Cause = NOTHING,
    *,
    alive: tuple[BrokerId, ...] = (),
    order: PartitionState | None = None,
) -> tuple[set[str], list[Ground]]:
    """The codes of what is found as `leader` is elected after `before`, and the grounds of the unclean elections."""
    reader = RecordReader(settings, RareStates())
    brokers = (
        BrokerRecord(each, BrokerStatus(epoch=each, fenced=each not in alive))  # type: ignore[arg-type] # A NewType.
        for each in before.replicas
    )
    created = attrs.evolve(LED, elr=before.elr)
    log: list[MetadataRecord] = [*brokers, PartitionRecord(0, created), PartitionRecord(0, before)]
    # Broker 0, if it left the ISR, left it as it restarted uncleanly; who led last must then be noted.
    is_noted = before.has_leader or before.last_known == (ZERO,) or not settings.rules.elr
    made = [code for code, _, _ in reader.read_on(log, Cause(registers=ZERO, is_unclean=True))]
    assert made == ([] if is_noted else ["I28"])
    if order is not None:
        reader.note_order(0, order)
    after = elected(before, leader)
    if leader in cause.proposed:
        after = attrs.evolve(after, elr=before.isr)  # A clean election: who was in sync stays eligible.
    log.append(PartitionRecord(0, after))
    codes = {code for code, _, _ in reader.read_on(log, cause)}
    return codes, [each.ground for each in reader.take_unclean(0)]


FORBIDDEN: Final = ({"I28"}, [Ground.NONE])
OLD: Final = attrs.evolve(KRAFT, rules=rules_of("3.5"))
LAST_KNOWN: Final[tuple[set[str], list[Ground]]] = (set(), [Ground.LAST_KNOWN])
ORDERED: Final[tuple[set[str], list[Ground]]] = (set(), [Ground.ORDER])
LED_ON: Final = attrs.evolve(LED, partition_epoch=1)


def noted(*brokers: BrokerId) -> PartitionState:
    """A partition without a leader and these as the last known ones."""
    return attrs.evolve(LEADERLESS, last_known=brokers)


@pytest.mark.parametrize(
    ("settings", "before", "leader", "cause", "alive", "verdict"),
    [
        # Nobody from outside with unclean election off, anybody with it on; a member that could lead comes first.
        (KRAFT, noted(), ONE, NOTHING, (), FORBIDDEN),
        (OLD, noted(), ONE, NOTHING, (), FORBIDDEN),
        (UNCLEAN, LEADERLESS, ONE, NOTHING, (), (set(), [Ground.SETTING])),
        (UNCLEAN, ELIGIBLE, ONE, NOTHING, (ONE,), (set(), [Ground.SETTING])),
        (UNCLEAN, ELIGIBLE, ONE, NOTHING, (ONE, TWO), ({"I28"}, [Ground.SETTING])),
        # The last known leader when ISR and ELR are empty; who is noted as such must have led last.
        (KRAFT, LEADERLESS, ZERO, NOTHING, (), LAST_KNOWN),
        (KRAFT, ELIGIBLE, ZERO, NOTHING, (), FORBIDDEN),
        (KRAFT, noted(ONE), ONE, NOTHING, (), FORBIDDEN),
        (KRAFT, noted(ZERO, ONE), ZERO, NOTHING, (), FORBIDDEN),
        # An eligible replica that has just stopped uncleanly is not waited for.
        (KRAFT, ELIGIBLE, ZERO, Cause(registers=TWO, is_unclean=True), (), LAST_KNOWN),
        (KRAFT, ELIGIBLE, ZERO, Cause(registers=TWO, is_unclean=False), (), FORBIDDEN),
        (KRAFT, ELIGIBLE, ZERO, Cause(registers=ONE, is_unclean=True), (), FORBIDDEN),
        # Without ELR there is no last known leader.
        (OLD, LEADERLESS, ZERO, NOTHING, (), FORBIDDEN),
        (attrs.evolve(KRAFT, rules=rules_of("3.9")), LEADERLESS, ZERO, NOTHING, (), FORBIDDEN),
        (attrs.evolve(KRAFT, rules=without(CURRENT, "elr")), LEADERLESS, ZERO, NOTHING, (), FORBIDDEN),
        # An operator's order allows one partition without a leader.
        (KRAFT, LEADERLESS, ONE, Cause(ordered=0), (), ORDERED),
        (KRAFT, LEADERLESS, ONE, Cause(ordered=1), (), FORBIDDEN),
        (KRAFT, LED_ON, ONE, Cause(ordered=0), (), FORBIDDEN),
        # As a reassignment ends, the replica that its leader asks to add leads from the same record on.
        (KRAFT, LED_ON, ONE, Cause(proposed=(ZERO, ONE)), (), (set(), [])),
    ],
)
def test_an_election_is_allowed_or_forbidden(
    settings: PartitionSettings,
    before: PartitionState,
    leader: BrokerId,
    cause: Cause,
    alive: tuple[BrokerId, ...],
    verdict: tuple[set[str], list[Ground]],
) -> None:
    assert found(settings, before, leader, cause, alive=alive) == verdict


def test_a_zookeeper_controller_writes_what_it_was_ordered() -> None:
    cause, ordered = Cause(by_zookeeper=True), elected(LEADERLESS, ONE)
    assert found(OLD, LEADERLESS, ONE, cause, order=ordered) == ORDERED
    assert found(OLD, LEADERLESS, TWO, cause, order=ordered) == FORBIDDEN
    assert found(OLD, LEADERLESS, ONE, cause) == FORBIDDEN


OUTSIDER: Final = (
    Fault(TimeMs(5_000), FaultKind.CUT_PEERS, 1, DurationMs(100_000)),
    Fault(TimeMs(50_000), FaultKind.KILL, 0, DurationMs(60_000)),
    Fault(TimeMs(50_000), FaultKind.KILL, 2, DurationMs(60_000)),
)
"""Broker 1 lags and leaves the ISR; then it alone is alive."""


@pytest.mark.parametrize("has_zookeeper", [False, True])
def test_an_ordered_unclean_election_is_allowed_in_a_whole_run(*, has_zookeeper: bool) -> None:
    options = attrs.evolve(quiet(1, DurationMs(110_000)), partitions=1)
    settings = attrs.evolve(options.settings, rules=rules_of("3.5") if has_zookeeper else CURRENT)
    role_settings = attrs.evolve(options.role_settings, settings=settings, has_zookeeper=has_zookeeper)
    options = attrs.evolve(options, role_settings=role_settings)
    order = AskController(80_000, ElectLeaders(0, Election.UNCLEAN))
    outcome = run(options, OUTSIDER, extension=ScenarioExtension((order,), ()))
    assert (outcome.findings, outcome.unclean_count) == ((), 1)
    assert any("leader 1 " in line for line in outcome.lines)
    assert not any("leader 1 " in line for line in run(options, OUTSIDER).lines)

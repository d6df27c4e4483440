"""Which elections from outside ISR and ELR are allowed, by what, and which break I28."""

from __future__ import annotations

from typing import Final

import attrs
import pytest

from broker.ids import NO_LEADER, BrokerId
from broker.units import DurationMs, TimeMs
from replication.checkers.elections import Ground, Occasion
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
NOTHING: Final = Occasion()
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


def judged(
    settings: PartitionSettings,
    before: PartitionState,
    leader: BrokerId,
    occasion: Occasion = NOTHING,
    *,
    alive: tuple[BrokerId, ...] = (),
    led: PartitionState = LED,
    order: PartitionState | None = None,
) -> tuple[set[str], list[Ground]]:
    """The codes of what is found as `leader` is elected after `before`, and the grounds of the unclean elections."""
    reader = RecordReader(settings, RareStates())
    brokers = (
        BrokerRecord(each, BrokerStatus(epoch=each, fenced=each not in alive))  # type: ignore[arg-type] # A NewType.
        for each in before.replicas
    )
    log: list[MetadataRecord] = [*brokers, PartitionRecord(0, led), PartitionRecord(0, before)]
    assert list(reader.read_on(log, Occasion())) == []
    if order is not None:
        reader.note_order(0, order)
    log.append(PartitionRecord(0, elected(before, leader)))
    codes = {code for code, _, _ in reader.read_on(log, occasion)}
    return codes, [each.ground for each in reader.take_unclean(0)]


FORBIDDEN: Final = ({"I28"}, [Ground.NONE])


@pytest.mark.parametrize("settings", [KRAFT, attrs.evolve(KRAFT, rules=rules_of("3.5"))])
def test_nobody_from_outside_is_elected_with_unclean_election_off(settings: PartitionSettings) -> None:
    assert judged(settings, attrs.evolve(LEADERLESS, last_known=()), ONE) == FORBIDDEN


def test_with_unclean_election_on_anybody_is_elected() -> None:
    assert judged(UNCLEAN, LEADERLESS, ONE) == (set(), [Ground.SETTING])


def test_even_so_a_member_that_could_lead_comes_first() -> None:
    assert judged(UNCLEAN, ELIGIBLE, ONE, alive=(ONE,)) == (set(), [Ground.SETTING])
    assert judged(UNCLEAN, ELIGIBLE, ONE, alive=(ONE, TWO)) == ({"I28"}, [Ground.SETTING])


def test_the_last_known_leader_is_elected_when_isr_and_elr_are_empty() -> None:
    assert judged(KRAFT, LEADERLESS, ZERO) == (set(), [Ground.LAST_KNOWN])


def test_the_last_known_leader_waits_for_the_eligible() -> None:
    assert judged(KRAFT, ELIGIBLE, ZERO) == FORBIDDEN


def test_an_eligible_replica_that_has_just_stopped_uncleanly_is_not_waited_for() -> None:
    assert judged(KRAFT, ELIGIBLE, ZERO, Occasion(registers=TWO, is_unclean=True)) == (set(), [Ground.LAST_KNOWN])
    assert judged(KRAFT, ELIGIBLE, ZERO, Occasion(registers=TWO, is_unclean=False)) == FORBIDDEN
    assert judged(KRAFT, ELIGIBLE, ZERO, Occasion(registers=ONE, is_unclean=True)) == FORBIDDEN


def test_who_is_noted_as_last_known_must_have_led_last() -> None:
    assert judged(KRAFT, attrs.evolve(LEADERLESS, last_known=(ONE,)), ONE) == FORBIDDEN
    assert judged(KRAFT, attrs.evolve(LEADERLESS, last_known=(ZERO, ONE)), ZERO) == FORBIDDEN


@pytest.mark.parametrize("rules", [rules_of("3.5"), rules_of("3.9"), without(CURRENT, "elr")])
def test_without_elr_there_is_no_last_known_leader(rules: object) -> None:
    assert judged(attrs.evolve(KRAFT, rules=rules), LEADERLESS, ZERO) == FORBIDDEN


def test_an_operators_order_allows_one_partition_without_a_leader() -> None:
    assert judged(KRAFT, LEADERLESS, ONE, Occasion(ordered=0)) == (set(), [Ground.ORDER])
    assert judged(KRAFT, LEADERLESS, ONE, Occasion(ordered=1)) == FORBIDDEN
    led_on = attrs.evolve(LED, partition_epoch=1)
    assert judged(KRAFT, led_on, ONE, Occasion(ordered=0)) == FORBIDDEN


def test_a_zookeeper_controller_writes_what_it_was_ordered() -> None:
    settings, occasion = attrs.evolve(KRAFT, rules=rules_of("3.5")), Occasion(by_zookeeper=True)
    ordered = elected(LEADERLESS, ONE)
    assert judged(settings, LEADERLESS, ONE, occasion, order=ordered) == (set(), [Ground.ORDER])
    assert judged(settings, LEADERLESS, TWO, occasion, order=ordered) == FORBIDDEN
    assert judged(settings, LEADERLESS, ONE, occasion) == FORBIDDEN


def test_who_joins_by_its_leaders_word_and_leads_at_once_is_no_outsider() -> None:
    """As a reassignment ends, the replica that its leader asks to add leads from the same record on."""
    assert judged(KRAFT, attrs.evolve(LED, partition_epoch=1), ONE, Occasion(proposed=(ZERO, ONE))) == (set(), [])


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

"""Whole clusters with ZooKeeper under faults: the rules hold, and an old bug is found."""

from __future__ import annotations

import attrs
import pytest

from broker.errors import UsageError
from broker.units import DurationMs, TimeMs
from replication.groups import GroupsExtension, with_groups
from replication.rules.settings import PartitionSettings
from replication.rules.switches import rules_of, sound
from replication.scenarios import ExpectedState, Scenario
from replication.scenarios.operations import HoldMessages
from replication.simulation import Fault, FaultKind, Options, harsh, quiet, run, swarm

LOSING = (FaultKind.POWER_LOSS, FaultKind.WIPE, FaultKind.RACK_OUTAGE)
"""Without ELR the last replica in sync may lose records, whatever the rules."""
TARGETED = (FaultKind.CRASH_AT_COMMIT, FaultKind.CRASH_AT_ISR)
"""They take power away, too."""


def _with_zookeeper(seed: int, release: str) -> Options:
    options = swarm(seed, DurationMs(60_000), rules_of(release))
    faults = tuple((kind, mean_ms) for kind, mean_ms in options.fault_ms if kind not in LOSING)
    return attrs.evolve(options, role_settings=attrs.evolve(options.role_settings, has_zookeeper=True), fault_ms=faults)


def _harsh(seed: int, without: tuple[FaultKind, ...]) -> Options:
    options = harsh(seed, DurationMs(120_000), sound(rules_of("3.5")))
    faults = tuple((kind, mean_ms) for kind, mean_ms in options.fault_ms if kind not in without)
    return attrs.evolve(options, role_settings=attrs.evolve(options.role_settings, has_zookeeper=True), fault_ms=faults)


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 9, 17])
def test_a_cluster_with_zookeeper_keeps_every_invariant_under_faults(seed: int) -> None:
    assert run(_with_zookeeper(seed, "3.5")).findings == ()


@pytest.mark.parametrize("seed", [37, 201, 218, 407, 419])
def test_brokers_that_lose_sessions_and_answers_get_on(seed: int) -> None:
    """Seeds that told something once.

    37: a follower in another session asked as of the former one. 201: leader 1 hears nobody for 53 s and counts 2 in;
    meanwhile others lead, 2 is moved away, its log is deleted, and it is moved back; I4 held leader 1 to 2's new and
    empty log, though it could not have heard of the move. 218: a leader did not hear that its ISR stands.
    407: the answer to a late ping of a former session ended the present one. 419: to ask for a move again ended it.
    """
    assert run(_harsh(seed, (*LOSING, *TARGETED))).findings == ()


def test_a_broker_that_leads_again_is_heard_when_it_asks_for_another_isr() -> None:
    """454: broker 1 had sent many requests as leader before, in the same life, and was taken to repeat old ones."""
    assert "L" not in {finding.code for finding in run(_harsh(454, LOSING)).findings}


def test_the_end_of_another_log_is_counted_under_the_rules_of_2_8() -> None:
    # KAFKA-13141: a follower that was mute fetches beyond the leader's end, is counted, and joins.
    options = attrs.evolve(swarm(18, DurationMs(60_000), rules_of("2.8")), is_strict=False)
    options = attrs.evolve(options, role_settings=attrs.evolve(options.role_settings, has_zookeeper=True))
    assert {finding.code for finding in run(options).findings} >= {"I5", "I6"}


def test_a_controller_that_missed_its_end_learns_of_it_when_it_writes() -> None:
    """456: deaf, it wrote, was refused and read again without end, as nothing told it of the next controller."""
    options = with_groups(_harsh(456, LOSING))
    assert run(options, extension=GroupsExtension.drawn(options, 2)).event_count < 50_000


def test_groups_have_coordinators_in_a_cluster_with_zookeeper() -> None:
    options = with_groups(_with_zookeeper(4, "3.5"))
    life = GroupsExtension.drawn(options, 2)
    assert run(options, extension=life).findings == ()
    assert life.counts.read_count > 0


def test_a_broker_that_stops_has_handed_over_before_its_session_ends() -> None:
    """Broker 0 leads and is told to stop; broker 3, which holds no replica, is controller."""
    scenario = Scenario(
        name="stop",
        title="",
        how="",
        source="",
        settings=PartitionSettings(rules=rules_of("2.8"), min_isr=2),
        role_settings=_with_zookeeper(1, "2.8").role_settings,
        brokers=4,
        plan=(Fault(TimeMs(5_000), FaultKind.STOP, 0, DurationMs(20_000)),),
        operations=tuple(HoldMessages(0, 500, "RegisterController", sender=broker) for broker in range(3)),
        expected_states=(
            ExpectedState(5_000, leader=0, isr=(0, 1, 2)),
            ExpectedState(6_015, leader=1, isr=(1, 2)),
            ExpectedState(59_000, leader=1, isr=(1, 2, 0)),
        ),
    )
    lines: list[str] = []
    assert scenario.play(lines.append).differences == ()
    told = [place for place, line in enumerate(lines) if "leader 1 (epoch 1), ISR 1,2," in line]
    ended = [place for place, line in enumerate(lines) if "broker 0 is fenced" in line]
    assert told[0] < ended[0]


def test_rules_that_zookeeper_never_had_are_refused() -> None:
    options = quiet(1, DurationMs(60_000))
    with pytest.raises(UsageError) as refused:
        attrs.evolve(options, role_settings=attrs.evolve(options.role_settings, has_zookeeper=True))
    assert str(refused.value) == (
        "with ZooKeeper there is no ELR, and each shrink begins a leader epoch: take rules before 3.6"
    )

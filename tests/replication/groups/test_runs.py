"""Groups in random runs: clean, the same each time, and counted; and what a member is told while brokers fail."""

from __future__ import annotations

import attrs
import pytest
from click.testing import CliRunner

from broker.error_codes import ErrorCode
from broker.errors import UsageError
from broker.units import DurationMs, TimeMs
from replication.cli.simulate import simulate
from replication.groups import GroupsExtension, with_groups
from replication.groups.client.assigning import GroupProtocol
from replication.groups.plan import CLUSTER_KINDS, EventKind, draw_plan
from replication.scenarios.catalogue.groups import GROUP_COORDINATORS, S71
from replication.simulation import Fault, FaultKind, harsh, run, swarm
from tests.replication.groups.builders import OPTIONS, act, groups_of, member, ran, t


def swarm_groups(seed: int, minutes: float, groups: int) -> GroupsExtension:
    options = with_groups(swarm(seed, DurationMs(int(minutes * 60_000))))
    groups = GroupsExtension.drawn(options, groups)
    assert run(options, extension=groups).findings == ()
    return groups


@pytest.mark.parametrize("seed", [2, 5, 70])
def test_a_seed_with_groups_breaks_nothing(seed: int) -> None:
    """5 loses acknowledged commits by unclean elections; in 70 a commit arrives twice across a pause."""
    assert swarm_groups(seed, 3, 2).counts.read_count > 0


def test_harsh_faults_break_nothing() -> None:
    options = with_groups(harsh(1, DurationMs(120_000)))
    assert run(options, extension=GroupsExtension.drawn(options, 2)).findings == ()


def test_the_same_seed_goes_the_same_way() -> None:
    options = with_groups(swarm(3, DurationMs(60_000)))
    digests = {run(options, extension=GroupsExtension.drawn(options, 2)).digest for _ in range(2)}
    assert len(digests) == 1


def test_groups_do_not_change_the_faults() -> None:
    options = swarm(3, DurationMs(60_000))
    assert run(options).plan == run(with_groups(options), extension=GroupsExtension.drawn(with_groups(options), 2)).plan


def test_every_protocol_and_kind_of_act_is_drawn() -> None:
    plans = [draw_plan(with_groups(swarm(seed, DurationMs(300_000))), 3) for seed in range(20)]
    members = [member for plan in plans for member in plan.members]
    assert {member.protocol for member in members} == set(GroupProtocol)
    assert {event.kind for member in members for event in member.events} == set(CLUSTER_KINDS)
    assert all(member.stays for member in members)
    assert {member.spec.instance_id is None for member in members} == {True, False}


def test_too_many_groups_are_refused() -> None:
    with pytest.raises(UsageError, match="the number of groups is 51; allowed are whole numbers from 1 to 50"):
        draw_plan(OPTIONS, 51)


def test_commits_are_kept_and_members_go_on_when_the_coordinator_dies() -> None:
    """Nobody is told that it is no member: the next coordinator has read the group."""
    groups = groups_of(member("a", GroupProtocol.COOPERATIVE), member("b", GroupProtocol.COOPERATIVE))
    outcome = ran(groups, Fault(TimeMs(20_000), FaultKind.KILL, 0, DurationMs(20_000)))
    assert outcome.is_clean
    assert groups.counts.load_count == 2
    assert not [
        key for key in groups.counts.answers if key[2] in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION)
    ]
    assert groups.counts.duplicate_count == 0


def test_a_coordinator_that_hands_over_sends_its_members_on() -> None:
    """A broker that stops answers NOT_COORDINATOR, and the next one COORDINATOR_LOAD_IN_PROGRESS while it reads."""
    groups = groups_of(member("a", GroupProtocol.CONSUMER), member("b", GroupProtocol.EAGER))
    groups = GroupsExtension(OPTIONS, attrs.evolve(groups.plan, load_ms_max=DurationMs(30_000)))
    members = tuple(
        attrs.evolve(each, spec=attrs.evolve(each.spec, group_id=each.spec.name)) for each in groups.plan.members
    )
    groups = GroupsExtension(OPTIONS, attrs.evolve(groups.plan, members=members))
    options = attrs.evolve(OPTIONS, duration_ms=DurationMs(120_000))
    outcome = ran(groups, Fault(TimeMs(60_000), FaultKind.STOP, 0, DurationMs(20_000)), options=options)
    assert outcome.is_clean
    errors = {(kind, error) for _, kind, error in groups.counts.answers}
    assert ("ConsumerGroupHeartbeatResponse", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS) in errors
    assert ("OffsetCommitResponse", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS) in errors
    assert ("HeartbeatResponse", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS) not in errors
    assert {error for _, error in errors} >= {ErrorCode.NOT_COORDINATOR}


def test_without_enough_replicas_commits_are_refused_and_nobody_is_dropped() -> None:
    groups = groups_of(member("a", GroupProtocol.CONSUMER), member("b", GroupProtocol.CONSUMER))
    faults = [Fault(TimeMs(20_000), FaultKind.KILL, broker, DurationMs(15_000)) for broker in (1, 2)]
    assert ran(groups, *faults).is_clean
    errors = {(kind, error) for _, kind, error in groups.counts.answers}
    assert ("OffsetCommitResponse", ErrorCode.COORDINATOR_NOT_AVAILABLE) in errors
    assert not any(error is ErrorCode.FENCED_MEMBER_EPOCH for _, error in errors)


def test_a_member_whose_end_cannot_be_stored_is_removed_when_it_can() -> None:
    """Its session ends while the ISR is too small; the coordinator tries again, and a gets its partitions."""
    groups = groups_of(
        member("a", GroupProtocol.CONSUMER), member("b", GroupProtocol.CONSUMER, act(5_000, EventKind.CRASH))
    )
    faults = [Fault(TimeMs(45_000), FaultKind.KILL, broker, DurationMs(15_000)) for broker in (1, 2)]
    options = attrs.evolve(OPTIONS, duration_ms=DurationMs(100_000))
    assert ran(groups, *faults, options=options).is_clean
    client = groups.members[0].client
    assert client is not None
    assert client.subscriptions.owned == {t(0), t(1), t(2)}


def test_scenarios_of_groups_look_and_listen() -> None:
    """A scenario that expects something else says what was otherwise; that they go as described is tested with all."""
    look = attrs.evolve(S71.expected_states[0], generation=9)
    heard = attrs.evolve(S71.expected_responses[1], count_min=1, count_max=2)
    verdict = attrs.evolve(S71, expected_states=(look,), expected_responses=(heard,), deaths=1).play()
    assert verdict.differences == (
        "at 29000 ms generation is 1, expected 9",
        "members heard OffsetCommitResponse ILLEGAL_GENERATION (22) 0 times, expected 1 to 2",
        "0 programs ended by themselves, expected 1",
    )
    assert len({scenario.name for scenario in GROUP_COORDINATORS}) == len(GROUP_COORDINATORS)


def test_the_command_counts_what_groups_did() -> None:
    result = CliRunner().invoke(simulate, ["--groups", "1", "--seed", "2", "--minutes", "1"], standalone_mode=False)
    assert result.return_value == 0
    assert "group-0: consumer, 2 members, kept by partition 2" in result.output
    assert "groups were handed" in result.output
    assert "group-0-member-0 starts" in result.output
    result = CliRunner().invoke(simulate, ["--groups", "1", "--seeds", "2", "--minutes", "0.3"], standalone_mode=False)
    assert result.output.splitlines()[-2] == "0 broken; 0 of 2 runs lost acks=all records"

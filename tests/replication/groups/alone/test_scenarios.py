"""The named scenarios, through clients, network and coordinator, and what is known to come of each."""

from __future__ import annotations

import pytest

from broker.group.classic import GroupState, Ticket
from broker.group.consumer import ConsumerGroupHeartbeatRequest, MemberState
from broker.group.service import GroupEntry, OffsetRecord, Request
from replication.groups.alone.life import Life, live
from replication.groups.alone.scenario import Mode
from replication.groups.alone.scenarios import SCENARIOS
from replication.groups.alone.world import Watcher, World
from tests.replication.groups.alone.lives import CONSUMER, COOPERATIVE, EAGER, told, watched

CLASSIC = (EAGER, COOPERATIVE)


def held_by(life: Life, member: str, at_ms: int) -> set[str]:
    """Return what a member owned at one moment."""
    return {
        str(spell.partition)
        for spell in life.spells
        if spell.member == member and spell.start_ms <= at_ms < spell.end_ms
    }


@pytest.mark.parametrize(
    ("name", "mode"), [(scenario.name, mode) for scenario in SCENARIOS.values() for mode in scenario.modes]
)
def test_no_story_breaks_an_invariant(name: str, mode: Mode) -> None:
    assert told(name, mode).findings == ()


@pytest.mark.parametrize("mode", CLASSIC)
def test_a_classic_member_that_is_out_while_its_application_lets_go_loses_all_and_joins_again(mode: Mode) -> None:
    life = live(SCENARIOS["S70"], mode, 1)
    assert life.findings == ()
    assert held_by(life, "b", 400_000) == held_by(life, "a", 400_000), "a still lets go what b has by now"
    assert len(held_by(life, "a", 700_000)) == len(held_by(life, "b", 700_000)) == 3


@pytest.mark.parametrize("mode", CLASSIC)
def test_s60_members_that_come_within_the_initial_delay_share_one_generation(mode: Mode) -> None:
    life = told("S60", mode)
    assert life.rebalance_count == 1
    # The wait of 3 s is begun once more for those who came meanwhile.
    assert 6_000 <= life.generations_ms[0] < 6_100


@pytest.mark.parametrize("mode", Mode)
def test_s61_a_silent_member_is_out_after_its_session_and_the_others_share_its_partitions(mode: Mode) -> None:
    life = told("S61", mode)
    assert life.departures == {"session timeout": 1}
    last_heartbeat_ms = 60_000 - 5_000
    assert last_heartbeat_ms + 45_000 <= life.generations_ms[-1] <= 60_000 + 45_000 + 5_000
    assert len(held_by(life, "a", 239_000)) == len(held_by(life, "c", 239_000)) == 3


@pytest.mark.parametrize("mode", Mode)
def test_s62_a_consumer_leaves_when_its_application_does_not_poll_and_joins_when_it_does(mode: Mode) -> None:
    life = told("S62", mode)
    assert life.departures == {"max.poll.interval.ms": 1}
    assert not any(str(spell.partition) for spell in life.spells if spell.member == "b" and spell.start_ms == 400_000)
    assert len(held_by(life, "a", 400_000)) == len(held_by(life, "c", 400_000)) == 3
    assert len(held_by(life, "b", 599_000)) == 2


def test_s62_only_the_consumer_protocol_takes_the_partitions_from_an_application_that_hangs() -> None:
    assert told("S62", EAGER).shared_ms > 100_000
    assert told("S62", CONSUMER).shared_ms == 0


@pytest.mark.parametrize("mode", CLASSIC)
def test_s63_a_commit_from_an_older_generation_is_refused(mode: Mode) -> None:
    life = told("S63", mode)
    assert life.commits["ILLEGAL_GENERATION"] > 0
    assert life.departures == {}


@pytest.mark.parametrize("mode", CLASSIC)
def test_s64_a_leader_that_dies_before_it_assigns_is_out_when_its_time_to_sync_is_over(mode: Mode) -> None:
    life = told("S64", mode)
    assert life.departures == {"sync timeout": 1}
    first_ms, second_ms = life.generations_ms
    assert 20_000 <= second_ms - first_ms < 21_000
    assert len(held_by(life, "b", 100_000)) == len(held_by(life, "c", 100_000)) == 3


@pytest.mark.parametrize("mode", Mode)
def test_s65_a_static_member_that_is_back_within_its_session_gets_what_it_had_without_a_rebalance(mode: Mode) -> None:
    life = told("S65", mode)
    assert max(life.generations_ms) < 60_000
    assert held_by(life, "b", 59_000) == held_by(life, "b", 200_000) != set()
    assert life.departures == {"replaced": 1}


def test_s65_of_two_processes_with_one_instance_the_newer_wins_in_classic_groups_and_loses_in_consumer_groups() -> None:
    for mode in CLASSIC:
        assert [death.text for death in told("S65-twin", mode).deaths] == ["b: FENCED_INSTANCE_ID"]
    assert [death.text for death in told("S65-twin", CONSUMER).deaths] == ["b+: UNRELEASED_INSTANCE_ID"]


def test_s66_a_cooperative_move_takes_two_rebalances_and_nothing_is_given_up_that_need_not_be() -> None:
    life = told("S66", COOPERATIVE)
    assert life.rebalance_count == 1 + 2
    assert (life.move_count, life.least_move_count, life.return_count, life.shared_ms) == (2, 2, 0, 0)
    for spell in life.spells:
        if spell.member == "c":
            former = max(
                other.end_ms for other in life.spells if other.partition == spell.partition and other.member != "c"
            )
            assert former < spell.start_ms, "the partition is nobody's between the two rebalances"


def test_s66_an_eager_group_gives_up_everything_for_the_same_move() -> None:
    life = told("S66", EAGER)
    assert life.rebalance_count == 1 + 1
    assert life.return_count > 0
    assert life.move_count > life.least_move_count


class _Seen(Watcher):
    """Notes how far the members of a consumer group are at each moment."""

    def __init__(self) -> None:
        self.states: set[tuple[tuple[str, str], ...]] = set()
        self.given_back = False
        self.former_epochs = 0

    def asked(self, world: World, ticket: Ticket, request: Request) -> None:
        service = world.hosting.service
        assert service is not None
        if isinstance(request, ConsumerGroupHeartbeatRequest):
            member = service.consumer.group.members.get(request.member_id)
            if member is not None and request.epoch == member.previous_epoch and 0 < request.epoch < member.epoch:
                self.former_epochs += 1

    def stepped(self, world: World) -> None:
        service = world.hosting.service
        assert service is not None
        group = service.consumer.group
        self.states.add(tuple(sorted((one.client_id, one.state.name) for one in group.members.values())))
        for member in group.members.values():
            is_revoking = member.state is MemberState.UNREVOKED_PARTITIONS
            if is_revoking and member.revoking & group.target.get(member.member_id, frozenset()):
                self.given_back = True


def test_s67_a_member_waits_unreleased_for_what_another_has_not_yet_given_back() -> None:
    seen = _Seen()
    watched("S67", CONSUMER, seen)
    assert (("a", "UNREVOKED_PARTITIONS"), ("b", "UNRELEASED_PARTITIONS")) in seen.states
    assert told("S67", CONSUMER).shared_ms == 0


def test_s68_a_partition_that_comes_back_while_it_is_still_being_given_up_is_never_owned_twice() -> None:
    seen = _Seen()
    watched("S68", CONSUMER, seen)
    assert seen.given_back, "the scenario leads there"
    assert told("S68", CONSUMER).shared_ms == 0


def test_s69_a_member_that_missed_its_new_epoch_is_heard_in_its_former_one() -> None:
    seen = _Seen()
    watched("S69", CONSUMER, seen)
    assert seen.former_epochs > 0
    life = told("S69", CONSUMER)
    assert life.departures == {}
    assert len(held_by(life, "a", 200_000)) == len(held_by(life, "b", 200_000)) == 3


def test_s70_a_member_too_slow_to_let_go_is_fenced_after_the_rebalance_timeout_and_may_come_back() -> None:
    life = told("S70", CONSUMER)
    assert life.departures == {"revocation timeout": 1}
    fenced_ms = 60_000 + 300_000
    assert len(held_by(life, "b", fenced_ms + 20_000)) == 6
    assert len(held_by(life, "a", 700_000)) == 3


class _Forgotten(Watcher):
    """Notes in which states offsets were to be forgotten, and in which they were looked at long after retention."""

    def __init__(self) -> None:
        self.states: list[GroupState] = []

    def appended(self, world: World, entries: tuple[GroupEntry, ...]) -> None:
        assert world.hosting.service is not None
        if any(isinstance(entry, OffsetRecord) and entry.value is None for entry in entries):
            self.states.append(world.hosting.service.classic.group.state)


def test_s72_no_offset_is_forgotten_while_the_group_rebalances_for_longer_than_offsets_are_kept() -> None:
    forgotten = _Forgotten()
    world = watched("S72", EAGER, forgotten)
    assert forgotten.states == []
    assert world.hosting.service is not None
    assert len(world.hosting.service.offsets.of_group("group")) == 6
    assert told("S72", EAGER).rebalance_latency_max > 14 * 60_000


@pytest.mark.parametrize("mode", Mode)
def test_a_group_goes_on_under_another_coordinator_as_if_nothing_had_been(mode: Mode) -> None:
    life = told("failover", mode)
    assert max(life.generations_ms) < 60_000
    assert (life.departures, life.return_count, life.duplicate_count) == ({}, 0, 0)
    assert held_by(life, "b", 59_000) == held_by(life, "b", 170_000) != set()


def test_the_incident_a_program_that_clings_to_its_partitions_fails_where_they_are_given_up_needlessly() -> None:
    (death,) = told("shared-group-id", EAGER).deaths
    assert death.text == "reads-a: IllegalStateException: No current assignment for partition a-0"
    for mode in (COOPERATIVE, CONSUMER):
        life = told("shared-group-id", mode)
        assert (life.deaths, life.unowned_ms) == ((), 0)

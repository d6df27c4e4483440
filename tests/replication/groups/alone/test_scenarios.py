"""The named scenarios and their known outcomes."""

from __future__ import annotations

import pytest

from broker.group.consumer import ConsumerGroupHeartbeatRequest, MemberState
from replication.groups.alone.group_run import GroupRun, GroupSimulation, run_group
from replication.groups.alone.scenarios import SCENARIOS
from replication.groups.client.assigning import GroupProtocol
from replication.groups.connections import GroupRequest
from replication.roles.messages import Message
from tests.replication.groups.alone.runs import CONSUMER, COOPERATIVE, EAGER, named, watched

CLASSIC = (EAGER, COOPERATIVE)


def held_by(group_run: GroupRun, member: str, at_ms: int) -> set[str]:
    """Return what a member owned at one moment."""
    return {
        str(span.partition)
        for span in group_run.spans
        if span.member == member and span.start_ms <= at_ms < span.end_ms
    }


@pytest.mark.parametrize(
    ("name", "protocol"),
    [
        pytest.param(scenario.name, protocol, marks=[pytest.mark.deep] if scenario.name == "S72" else [])
        for scenario in SCENARIOS.values()
        for protocol in scenario.protocols
    ],
)
def test_no_scenario_breaks_an_invariant(name: str, protocol: GroupProtocol) -> None:
    assert named(name, protocol).findings == ()


@pytest.mark.parametrize("protocol", CLASSIC)
def test_a_classic_member_that_is_out_while_its_application_lets_go_loses_all_and_joins_again(
    protocol: GroupProtocol,
) -> None:
    group_run = run_group(SCENARIOS["S70"], protocol, 1)
    assert group_run.findings == ()
    assert held_by(group_run, "b", 400_000) == held_by(group_run, "a", 400_000), "a still lets go what b has by now"
    assert len(held_by(group_run, "a", 700_000)) == len(held_by(group_run, "b", 700_000)) == 3


@pytest.mark.parametrize("protocol", CLASSIC)
def test_s60_members_that_come_within_the_initial_delay_share_one_generation(protocol: GroupProtocol) -> None:
    group_run = named("S60", protocol)
    assert group_run.figures["rebalance_count"] == 1
    # The wait of 3 s is begun once more for those who came meanwhile.
    assert 6_000 <= group_run.generations_ms[0] < 6_100


@pytest.mark.parametrize("protocol", GroupProtocol)
def test_s61_a_silent_member_is_out_after_its_session_and_the_others_share_its_partitions(
    protocol: GroupProtocol,
) -> None:
    group_run = named("S61", protocol)
    assert group_run.figures["departures"] == {"session timeout": 1}
    last_heartbeat_ms = 60_000 - 5_000
    assert last_heartbeat_ms + 45_000 <= group_run.generations_ms[-1] <= 60_000 + 45_000 + 5_000
    assert len(held_by(group_run, "a", 239_000)) == len(held_by(group_run, "c", 239_000)) == 3


@pytest.mark.parametrize("protocol", GroupProtocol)
def test_s62_a_consumer_leaves_when_its_application_does_not_poll_and_joins_when_it_does(
    protocol: GroupProtocol,
) -> None:
    group_run = named("S62", protocol)
    assert group_run.figures["departures"] == {"max.poll.interval.ms": 1}
    assert not any(str(span.partition) for span in group_run.spans if span.member == "b" and span.start_ms == 400_000)
    assert len(held_by(group_run, "a", 400_000)) == len(held_by(group_run, "c", 400_000)) == 3
    assert len(held_by(group_run, "b", 599_000)) == 2


def test_s62_only_the_consumer_protocol_takes_the_partitions_from_an_application_that_hangs() -> None:
    assert named("S62", EAGER).figures["shared_ms"] > 100_000
    assert named("S62", CONSUMER).figures["shared_ms"] == 0


@pytest.mark.parametrize("protocol", CLASSIC)
def test_s63_a_commit_from_an_older_generation_is_refused(protocol: GroupProtocol) -> None:
    group_run = named("S63", protocol)
    assert group_run.figures["commits"]["ILLEGAL_GENERATION"] > 0
    assert group_run.figures["departures"] == {}


@pytest.mark.parametrize("protocol", CLASSIC)
def test_s64_a_leader_that_dies_before_it_assigns_is_out_when_its_time_to_sync_is_over(protocol: GroupProtocol) -> None:
    group_run = named("S64", protocol)
    assert group_run.figures["departures"] == {"sync timeout": 1}
    first_ms, second_ms = group_run.generations_ms
    assert 20_000 <= second_ms - first_ms < 21_000
    assert len(held_by(group_run, "b", 100_000)) == len(held_by(group_run, "c", 100_000)) == 3


@pytest.mark.parametrize("protocol", GroupProtocol)
def test_s65_a_static_member_that_is_back_within_its_session_gets_what_it_had_without_a_rebalance(
    protocol: GroupProtocol,
) -> None:
    group_run = named("S65", protocol)
    assert max(group_run.generations_ms) < 60_000
    assert held_by(group_run, "b", 59_000) == held_by(group_run, "b", 200_000) != set()
    assert group_run.figures["departures"] == {"replaced": 1}


def test_s65_of_two_processes_with_one_instance_the_newer_wins_in_classic_groups_and_loses_in_consumer_groups() -> None:
    for protocol in CLASSIC:
        assert [death.text for death in named("S65-twin", protocol).deaths] == ["b: FENCED_INSTANCE_ID"]
    assert [death.text for death in named("S65-twin", CONSUMER).deaths] == ["b+: UNRELEASED_INSTANCE_ID"]


def test_s66_a_cooperative_move_takes_two_rebalances_and_nothing_is_given_up_that_need_not_be() -> None:
    group_run = named("S66", COOPERATIVE)
    assert group_run.figures["rebalance_count"] == 1 + 2
    figures = [group_run.figures[name] for name in ("move_count", "least_move_count", "return_count", "shared_ms")]
    assert figures == [2, 2, 0, 0]
    for span in group_run.spans:
        if span.member == "c":
            former = max(
                other.end_ms for other in group_run.spans if other.partition == span.partition and other.member != "c"
            )
            assert former < span.start_ms, "the partition is nobody's between the two rebalances"


def test_s66_an_eager_group_gives_up_everything_for_the_same_move() -> None:
    group_run = named("S66", EAGER)
    assert group_run.figures["rebalance_count"] == 1 + 1
    assert group_run.figures["return_count"] > 0
    assert group_run.figures["move_count"] > group_run.figures["least_move_count"]


class _Seen:
    """The states of a consumer group's members in a run."""

    def __init__(self, name: str) -> None:
        self.states: set[tuple[tuple[str, str], ...]] = set()
        self.given_back = False
        self.former_epochs = 0
        watched(name, CONSUMER, self._look)

    def _look(self, simulation: GroupSimulation, message: Message) -> None:
        if simulation.service is None:
            return
        group = simulation.service.consumer.group
        self.states.add(tuple(sorted((one.client_id, one.state.name) for one in group.members.values())))
        for member in group.members.values():
            is_revoking = member.state is MemberState.UNREVOKED_PARTITIONS
            if is_revoking and member.revoking & group.target.get(member.member_id, frozenset()):
                self.given_back = True
        if isinstance(message, GroupRequest) and isinstance(message.request, ConsumerGroupHeartbeatRequest):
            request, known = message.request, group.members.get(message.request.member_id)
            if known is not None and request.epoch == known.previous_epoch and 0 < request.epoch < known.epoch:
                self.former_epochs += request.owned is not None


def test_s67_a_member_waits_unreleased_for_what_another_has_not_yet_given_back() -> None:
    seen = _Seen("S67")
    assert (("a", "UNREVOKED_PARTITIONS"), ("b", "UNRELEASED_PARTITIONS")) in seen.states
    assert named("S67", CONSUMER).figures["shared_ms"] == 0


def test_s68_a_partition_that_comes_back_while_it_is_still_being_given_up_is_never_owned_twice() -> None:
    seen = _Seen("S68")
    assert seen.given_back, "the scenario leads there"
    assert named("S68", CONSUMER).figures["shared_ms"] == 0


def test_s69_a_member_that_missed_its_new_epoch_is_heard_in_its_former_one() -> None:
    seen = _Seen("S69")
    assert seen.former_epochs > 0
    group_run = named("S69", CONSUMER)
    assert group_run.figures["departures"] == {}
    assert len(held_by(group_run, "a", 200_000)) == len(held_by(group_run, "b", 200_000)) == 3


def test_s70_a_member_too_slow_to_let_go_is_fenced_after_the_rebalance_timeout_and_may_come_back() -> None:
    group_run = named("S70", CONSUMER)
    assert group_run.figures["departures"] == {"revocation timeout": 1}
    # Its listener runs for 100 s more, and until it returns a owns its six partitions, which b has within 5 s.
    assert 560_000 < group_run.figures["shared_ms"] < 605_000
    fenced_ms = 60_000 + 300_000
    assert len(held_by(group_run, "b", fenced_ms + 20_000)) == 6
    assert len(held_by(group_run, "a", 700_000)) == 3


@pytest.mark.deep
def test_s72_no_offset_is_forgotten_while_the_group_rebalances_for_longer_than_offsets_are_kept() -> None:
    simulation = watched("S72", EAGER)
    assert simulation.service is not None
    assert len(simulation.service.offsets.of_group("group")) == 6
    assert named("S72", EAGER).figures["rebalance_latency_max"] > 14 * 60_000


def test_the_mean_latency_is_the_total_over_the_rebalances_to_a_tenth_of_a_millisecond() -> None:
    figures = named("S70", EAGER).figures
    total, count = figures["rebalance_latency_total"], figures["rebalance_total"]
    assert count > 1
    assert abs(figures["rebalance_latency_avg"] - total / count) <= 0.05


@pytest.mark.parametrize("protocol", GroupProtocol)
def test_a_group_goes_on_under_another_coordinator_as_if_nothing_had_been(protocol: GroupProtocol) -> None:
    group_run = named("failover", protocol)
    assert max(group_run.generations_ms) < 60_000
    assert (
        group_run.figures["departures"],
        group_run.figures["return_count"],
        group_run.figures["duplicate_count"],
    ) == ({}, 0, 0)
    assert held_by(group_run, "b", 59_000) == held_by(group_run, "b", 170_000) != set()


def test_the_incident_a_program_that_clings_to_its_partitions_fails_where_they_are_given_up_needlessly() -> None:
    (death,) = named("shared-group-id", EAGER).deaths
    assert death.text == "reads-a: IllegalStateException: No current assignment for partition a-0"
    for protocol in (COOPERATIVE, CONSUMER):
        group_run = named("shared-group-id", protocol)
        assert (group_run.deaths, group_run.figures["unowned_ms"]) == ((), 0)

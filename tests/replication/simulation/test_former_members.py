"""What L16 excuses: a leader that waits for a former member of the ISR until it looks again, and nothing near it."""

from __future__ import annotations

from typing import Final

import attrs
import pytest

from broker.ids import BrokerId, Offset
from broker.units import DurationMs, TimeMs
from replication.checkers.view import leader_role
from replication.roles.leader import LeaderRole
from replication.rules import high_watermark
from replication.rules.partition import Follower, PartitionState
from replication.simulation import Fault, FaultKind, Options, Simulation, quiet
from replication.simulation.former_members import FormerMembers
from replication.simulation.options import with_partition_settings

LAG_MS: Final = 10_000
TWO: Final = BrokerId(2)
DIRECTORY_FAILS: Final = (Fault(TimeMs(3_000), FaultKind.FAILED_DIRECTORY, 2, DurationMs(90_000), 0),)
"""The first record, at 35.9 s, is the write in which it fails; the second comes at 74 s."""


def options(produce_ms: int = 60_000) -> Options:
    told = attrs.evolve(quiet(1, DurationMs(70_000)), partitions=1, producers=1, consumers=0, acks=(-1,))
    told = attrs.evolve(told, produce_ms=DurationMs(produce_ms))
    told = with_partition_settings(told, attrs.evolve(told.settings, lag_ms_max=DurationMs(LAG_MS)))
    return attrs.evolve(told, role_settings=attrs.evolve(told.role_settings, directory_count=2))


class Stuck:
    """A leader whose high watermark is 0 and whose members have one record, 25 s after broker 2 left the ISR."""

    def __init__(self) -> None:
        self.simulation = Simulation(options(), DIRECTORY_FAILS)
        self.simulation.run_until(35_000)
        self.former = FormerMembers(self.simulation.cluster)
        for now_s in range(35, 62):
            self.look(now_s)

    def look(self, now_s: int) -> None:
        self.simulation.run_until(now_s * 1_000)
        self.former.look()

    @property
    def known(self) -> PartitionState:
        return self.simulation.cluster.controller.image.partitions[0]

    @property
    def leader(self) -> LeaderRole:
        leader = leader_role(self.simulation.cluster.nodes[BrokerId(0)], 0)
        assert leader is not None
        return leader

    @property
    def two(self) -> Follower:
        """What the leader knows of broker 2."""
        found = self.leader.state.follower(TWO)
        assert found is not None
        return found

    def with_two(self, **changes: object) -> None:
        self.leader.state = self.leader.state.with_follower(attrs.evolve(self.two, **changes))

    def set_fenced(self, is_fenced: bool) -> None:
        image = self.simulation.cluster.controller.image
        image.brokers = {**image.brokers, TWO: attrs.evolve(image.brokers[TWO], fenced=is_fenced)}

    def is_excused(self, known: PartitionState | None = None, end_offset: int = 1) -> bool:
        return self.former.are_waited_for(0, known or self.known, self.leader, end_offset)


def test_a_leader_waits_for_a_replica_whose_directory_failed_until_the_next_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stuck = Simulation(options(), DIRECTORY_FAILS)
    stuck.run_until(63_000)
    view = stuck.partition(0)
    assert (view.isr, view.high_watermark, stuck.findings) == ((0, 1), 0, ())
    assert stuck.finish().findings == ()
    monkeypatch.setattr(FormerMembers, "are_waited_for", lambda *_: False)
    (finding,) = Simulation(options(), DIRECTORY_FAILS).finish().findings
    what = "leader 0 had 1 records at 36000 ms, hears ISR (0, 1), and has committed 0"
    assert str(finding) == f"L16 broken at 62000 ms, partition 0: {what}"


def test_a_leader_that_waits_for_a_replica_that_lagged_when_it_looked_is_called_broken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Broker 2 is alive, cannot fetch and has left the ISR for its lag: each record after that finds it lagging."""
    plan = (Fault(TimeMs(5_000), FaultKind.CUT_PEERS, 2, DurationMs(80_000)),)
    assert Simulation(options(5_000), plan).finish().findings == ()
    monkeypatch.setattr(high_watermark, "is_caught_up", lambda *_: True)
    assert "L16" in {each.code for each in Simulation(options(5_000), plan).finish().findings}


def test_who_left_within_the_limit_is_waited_for() -> None:
    stuck = Stuck()
    assert stuck.is_excused()
    left_ms = stuck.two.caught_up_at_ms
    looked_ms = left_ms + LAG_MS - 1_000
    assert left_ms < looked_ms


@pytest.mark.parametrize(("later_ms", "is_excused"), [(0, True), (1, False)])
def test_who_lagged_when_the_leader_looked_is_not_waited_for(later_ms: int, is_excused: bool) -> None:
    """The leader looked last between 35 s and 36 s, by a clock that has gone right."""
    stuck = Stuck()
    looked_ms = stuck.simulation.cluster.nodes[BrokerId(0)].now_ms - 61_000 + 35_000
    stuck.with_two(caught_up_at_ms=TimeMs(looked_ms - LAG_MS - later_ms))
    assert stuck.is_excused() is is_excused


def test_a_member_is_no_former_member() -> None:
    stuck = Stuck()
    assert not stuck.is_excused(attrs.evolve(stuck.known, isr=(0, 1, 2)))


def test_a_member_that_lacks_a_record_is_waited_for_by_right() -> None:
    assert not Stuck().is_excused(end_offset=2)


def test_a_high_watermark_that_stands_elsewhere_does_not_wait_for_it() -> None:
    stuck = Stuck()
    stuck.with_two(end_offset=Offset(1))
    assert not stuck.is_excused()


def test_a_leader_that_looks_again_later_finds_the_former_member_lagging() -> None:
    """It looks as anything changes that it knows: here the end of a follower's log."""
    stuck = Stuck()
    stuck.look(62)
    assert stuck.is_excused()
    one = stuck.leader.state.follower(BrokerId(1))
    assert one is not None
    stuck.leader.state = stuck.leader.state.with_follower(attrs.evolve(one, end_offset=Offset(0)))
    stuck.former.look()
    assert not stuck.is_excused()


def test_a_broker_that_was_fenced_when_the_leader_looked_is_not_waited_for() -> None:
    """KAFKA-15021; one that is fenced later still holds the leader up."""
    stuck = Stuck()
    stuck.set_fenced(True)
    stuck.look(62)
    assert stuck.is_excused()
    stuck.former = FormerMembers(stuck.simulation.cluster)
    stuck.former.look()
    stuck.with_two(caught_up_at_ms=stuck.simulation.cluster.nodes[BrokerId(0)].now_ms)
    assert not stuck.is_excused()
    stuck.set_fenced(False)
    stuck.former = FormerMembers(stuck.simulation.cluster)
    stuck.former.look()
    assert stuck.is_excused()
    stuck.with_two(broker_epoch=stuck.two.leader_epoch + 1_000)
    stuck.former = FormerMembers(stuck.simulation.cluster)
    stuck.former.look()
    assert not stuck.is_excused(), "it has not fetched in its present life"

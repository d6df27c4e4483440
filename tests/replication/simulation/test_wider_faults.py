"""Disks, splits, controllers, clocks and cancelled moves: each changes what Kafka would change, and each is healed."""

from __future__ import annotations

from collections import Counter

import attrs
import pytest

from broker.entropy import SplitMix64
from broker.error_codes import ErrorCode
from broker.ids import BrokerId
from broker.units import DurationMs, TimeMs
from replication.roles.leader import LeaderRole
from replication.roles.messages import BrokerHeartbeatResponse, Message, NodeId, ProduceResponse
from replication.roles.outbox import Outbox
from replication.rules.partition import PartitionState
from replication.simulation import Fault, FaultKind, Options, Simulation, harsh, quiet, swarm, varied
from replication.simulation.cluster import Cluster
from replication.simulation.disks import BLOCK_BYTES, lose_blocks
from replication.simulation.options import with_partition_settings

pytestmark = pytest.mark.deep

MINUTE = DurationMs(60_000)
AT = TimeMs(5_000)
ZERO, ONE, TWO = BrokerId(0), BrokerId(1), BrokerId(2)
NEW_KINDS = list(FaultKind)[list(FaultKind).index(FaultKind.BLOCK_LOSS) :]


def started(
    kind: FaultKind, target: int = 0, for_ms: int = 20_000, detail: int = 0, options: Options | None = None
) -> Simulation:
    plan = (Fault(AT, kind, target, DurationMs(for_ms), detail),)
    return Simulation(quiet(1, MINUTE) if options is None else options, plan)


def state_of(simulation: Simulation, partition: int = 0) -> PartitionState:
    return simulation.cluster.controller.image.partitions[partition]


def healed(simulation: Simulation) -> bool:
    """Run to the end, and return whether the cluster is whole and nothing is broken or lost."""
    outcome = simulation.finish()
    assert outcome.findings == (), outcome.findings[0]
    return all(
        state.has_leader and len(state.isr) == 3 for state in simulation.cluster.controller.image.partitions.values()
    )


def two_disks() -> Options:
    options = quiet(1, MINUTE)
    return attrs.evolve(options, role_settings=attrs.evolve(options.role_settings, directory_count=2))


@pytest.mark.parametrize("kind", [FaultKind.FULL_DISK, FaultKind.FAILED_DIRECTORY])
def test_a_disk_that_fails_takes_its_partitions_alone(kind: FaultKind) -> None:
    # Partition 0 lies in disk-0 of each broker, partition 1 in disk-1.
    simulation = started(kind, options=two_disks())
    answers = write_answers(simulation)
    simulation.run_until(20_000)
    assert (state_of(simulation).leader, ZERO in state_of(simulation).isr) == (ONE, False)
    assert ZERO in state_of(simulation, 1).isr
    role = simulation.cluster.nodes[ZERO].role
    assert role is not None
    assert role.offline == {0}
    assert ErrorCode.KAFKA_STORAGE_ERROR in {each.error for each in answers}
    # 20 s later an operator has repaired it, and restarts the broker.
    simulation.run_until(45_000)
    assert ZERO in state_of(simulation).isr
    assert healed(simulation)


def test_a_broker_ends_with_its_last_directory_and_starts_when_there_is_room() -> None:
    simulation = started(FaultKind.FULL_DISK)
    simulation.run_until(24_000)
    assert simulation.cluster.nodes[ZERO].role is None
    assert state_of(simulation).leader == ONE
    simulation.run_until(26_000)
    assert simulation.cluster.nodes[ZERO].role is not None
    assert healed(simulation)


def test_a_full_disk_stays_full() -> None:
    # The process is killed and starts again while the disk is full: it loses the directory again.
    plan = (
        Fault(AT, FaultKind.FULL_DISK, 0, DurationMs(50_000)),
        Fault(TimeMs(8_000), FaultKind.KILL, 0, DurationMs(10_000)),
    )
    simulation = Simulation(two_disks(), plan)
    simulation.run_until(40_000)
    role = simulation.cluster.nodes[ZERO].role
    assert role is not None
    assert role.offline == {0}
    assert healed(simulation)


def test_a_broker_that_stops_without_one_of_its_directories_has_no_clean_stop() -> None:
    """The failed directory gets no clean shutdown file (LogManager.readBrokerEpochFromCleanShutdownFiles)."""
    simulation = started(FaultKind.FAILED_DIRECTORY, for_ms=50_000, options=two_disks())
    simulation.run_until(20_000)
    node = simulation.cluster.nodes[ZERO]
    node.stop()
    assert node.start().start.proof.epoch is None


def test_lost_blocks_leave_the_length_and_the_log_ends_before_the_first_of_them() -> None:
    simulation = Simulation(quiet(1, MINUTE), ())
    simulation.run_until(30_000)
    node = simulation.cluster.nodes[ZERO]
    log = node.logs[0].log
    path = f"{node.directory_of(0)}/{log.active_segment.base_offset:020d}.log"
    before = node.storage.read(path)
    node.kill()
    lost = lose_blocks(node, SplitMix64(4))
    after = node.storage.read(path)
    assert (len(after), after != before) == (len(before), True)
    zeroed = [start for start in range(0, len(before), BLOCK_BYTES) if not any(after[start : start + BLOCK_BYTES])]
    kept = [start for start in range(0, len(before), BLOCK_BYTES) if start not in zeroed]
    assert lost >= len(zeroed) * BLOCK_BYTES - BLOCK_BYTES
    # A later block is there though an earlier one is not: the end was not torn off.
    assert zeroed
    assert max(kept) > min(zeroed)
    simulation.cluster.start_broker(ZERO)
    assert node.lossy_incarnation == 1
    assert healed(simulation)
    gone = set(simulation.checker.references[0].gone.values())
    assert any("broker 0, the last to have it, came back with a log that ends at" in event for event in gone)


def test_what_is_flushed_keeps_its_blocks() -> None:
    simulation = Simulation(quiet(1, MINUTE), ())
    simulation.run_until(20_000)
    node = simulation.cluster.nodes[ZERO]
    for each in node.logs.values():
        each.log.flush(now_ms=node.now_ms)
    node.kill()
    assert lose_blocks(node, SplitMix64(4)) == 0
    assert node.lossy_incarnation == -1


def test_a_slow_disk_loses_its_place_in_the_isr_and_no_session() -> None:
    options = with_partition_settings(
        quiet(1, MINUTE), attrs.evolve(quiet(1, MINUTE).settings, lag_ms_max=DurationMs(5_000))
    )
    simulation = started(FaultKind.SLOW_DISK, target=2, for_ms=40_000, detail=3_000, options=options)
    simulation.run_until(30_000)
    assert TWO not in state_of(simulation).isr
    assert simulation.cluster.controller.image.brokers[TWO].is_active
    assert healed(simulation)


@pytest.mark.parametrize(
    ("detail", "fenced"),
    [
        # Bit 1 puts broker 1 beside broker 0; what is left of the detail says whom the controller hears.
        (0b0010, {ZERO, ONE}),
        (0b1010, {TWO}),
        (0b10010, set()),
    ],
)
def test_a_split_parts_groups_and_the_controller_hears_one_or_both(detail: int, fenced: set[BrokerId]) -> None:
    simulation = started(FaultKind.SPLIT, target=0, for_ms=40_000, detail=detail)
    simulation.run_until(20_000)
    brokers = simulation.cluster.controller.image.brokers
    assert {broker for broker, status in brokers.items() if not status.is_active} == fenced
    with_leader = {broker for broker in simulation.cluster.nodes if broker not in fenced}
    assert state_of(simulation).leader in with_leader
    assert healed(simulation)


def test_a_rack_that_is_split_off_is_fenced_whole() -> None:
    options = attrs.evolve(quiet(1, MINUTE), brokers=4, racks=2)
    simulation = started(FaultKind.SPLIT_RACK, target=1, detail=0, options=options)
    simulation.run_until(20_000)
    brokers = simulation.cluster.controller.image.brokers
    assert [broker for broker in sorted(brokers) if not brokers[broker].is_active] == [1, 3]
    assert healed(simulation)


def test_while_nobody_is_controller_nobody_is_elected() -> None:
    plan = (
        Fault(AT, FaultKind.CONTROLLER_AWAY, 0, DurationMs(20_000)),
        Fault(TimeMs(6_000), FaultKind.KILL, 0, DurationMs(60_000)),
        Fault(TimeMs(8_000), FaultKind.CONTROLLER_FAILOVER),
    )
    simulation = Simulation(quiet(1, MINUTE), plan)
    simulation.run_until(24_900)
    assert state_of(simulation).leader == ZERO
    # The next controller gives every session its whole time.
    simulation.run_until(36_000)
    assert state_of(simulation).leader == ONE
    assert healed(simulation)


def write_answers(simulation: Simulation) -> list[ProduceResponse]:
    """Return a list that fills with the answers to writes."""
    found: list[ProduceResponse] = []

    def note(_cluster: Cluster, _node: NodeId, _message: Message, out: Outbox) -> None:
        found.extend(each for _, each in out.sent if isinstance(each, ProduceResponse))

    simulation.cluster.watches.append(note)
    return found


def test_a_former_controller_answers_heartbeats_and_changes_nothing() -> None:
    simulation = started(FaultKind.ZOMBIE_CONTROLLER, for_ms=20_000, detail=0)
    heard: Counter[str] = Counter()

    def note(cluster: Cluster, _node: NodeId, _message: Message, out: Outbox) -> None:
        for to, each in out.sent:
            if cluster.former is not None and isinstance(each, BrokerHeartbeatResponse) and to.node == ZERO:
                heard[each.error.name] += 1

    simulation.cluster.watches.append(note)
    simulation.run_until(20_000)
    # The former one is content with broker 0; the one that counts has not heard of it, and fences it.
    assert heard["NONE"] > 3
    assert not simulation.cluster.controller.image.brokers[ZERO].is_active
    assert state_of(simulation).leader == ONE
    role = simulation.cluster.nodes[ZERO].role
    assert role is not None
    assert isinstance(role.roles[0], LeaderRole)
    assert healed(simulation)
    assert simulation.cluster.former is None


def test_a_broker_without_news_leads_on_in_an_old_epoch() -> None:
    plan = (
        Fault(AT, FaultKind.LATE_METADATA, 0, DurationMs(30_000)),
        Fault(TimeMs(6_000), FaultKind.CANCEL_REASSIGNMENT, 0, DurationMs(60_000), 0),
    )
    simulation = Simulation(attrs.evolve(quiet(1, MINUTE), brokers=4), plan)
    simulation.run_until(30_000)
    role = simulation.cluster.nodes[ZERO].role
    assert role is not None
    assert role.image.offset < simulation.cluster.controller.image.offset
    simulation.run_until(40_000)
    assert role.image.offset == simulation.cluster.controller.image.offset
    assert healed(simulation)


@pytest.mark.parametrize(("detail", "by_ms"), [(9, 10), (-41, -10)])
def test_a_clock_drifts_and_stops_to_drift(detail: int, by_ms: int) -> None:
    simulation = started(FaultKind.CLOCK_DRIFT, for_ms=10_000, detail=detail)
    node = simulation.cluster.nodes[ZERO]
    simulation.run_until(9_999)
    half = node.clock_ahead_ms
    simulation.run_until(30_000)
    assert (half, node.clock_ahead_ms) == (20 * by_ms, 40 * by_ms)
    assert healed(simulation)


def test_a_move_that_is_cancelled_leaves_the_replicas_as_they_were() -> None:
    simulation = started(
        FaultKind.CANCEL_REASSIGNMENT, for_ms=2, options=attrs.evolve(quiet(1, MINUTE), brokers=4), detail=0
    )
    moving: list[PartitionState] = []

    def note(cluster: Cluster, _node: NodeId, _message: Message, _out: Outbox) -> None:
        state = cluster.controller.image.partitions.get(0)
        if state is not None and state.is_reassigning:
            moving.append(state)

    simulation.cluster.controller_watches.append(note)
    simulation.run_until(4_000)
    replicas = set(state_of(simulation).replicas)
    simulation.run_until(20_000)
    assert moving
    assert (set(state_of(simulation).replicas), state_of(simulation).is_reassigning) == (replicas, False)
    assert healed(simulation)


@pytest.mark.parametrize(("unclean", "isr"), [(True, (ZERO,)), (False, ())])
def test_a_move_cancelled_with_nobody_in_sync_leaves_the_first_replica_in_the_isr(
    unclean: bool, isr: tuple[BrokerId, ...]
) -> None:
    """PartitionReassignmentRevert: it is in the ISR though it is fenced; without unclean elections it is refused."""
    settings = attrs.evolve(quiet(1, MINUTE).settings, min_isr=1, unclean_election=unclean)
    options = with_partition_settings(quiet(1, MINUTE), settings)
    options = attrs.evolve(options, brokers=2, racks=2, partitions=1, replication_factor=1)
    plan = (
        Fault(AT, FaultKind.KILL, 0, DurationMs(40_000)),
        Fault(TimeMs(20_000), FaultKind.CANCEL_REASSIGNMENT, 0, DurationMs(2_000)),
    )
    simulation = Simulation(options, plan)
    simulation.run_until(30_000)
    assert (state_of(simulation).isr, state_of(simulation).leader) == (isr, -1)
    assert simulation.finish().findings == ()


# What is drawn.


def test_each_new_kind_is_drawn_by_varied_and_by_nothing_else() -> None:
    drawn = {kind for seed in range(40) for kind, _ in varied(seed, MINUTE).fault_ms}
    assert set(NEW_KINDS) <= drawn
    before = {kind for seed in range(40) for make in (swarm, harsh) for kind, _ in make(seed, MINUTE).fault_ms}
    assert not before.intersection(NEW_KINDS)


def test_varied_draws_every_setting() -> None:
    options = [varied(seed, MINUTE) for seed in range(120)]
    assert {each.replication_factor for each in options} == {1, 2, 3, 4, 5}
    assert {each.settings.unclean_election for each in options} == {True, False}
    assert {each.settings.lag_ms_max for each in options} == {2_000, 10_000, 30_000}
    assert {each.role_settings.directory_count for each in options} == {1, 2, 3}
    assert {each.role_settings.balance_ms for each in options} == {5_000, 20_000, 300_000}
    for factor in range(1, 6):
        mins = {each.settings.min_isr for each in options if each.replication_factor == factor}
        assert mins == set(range(1, factor + 1))
    assert {each.is_strict for each in options if each.settings.min_isr == 1} == {True, False}


def test_a_machine_loses_power_where_min_isr_is_one() -> None:
    """A strict run with min.insync.replicas 1 loses nothing; one that is not strict says what it lost, and why."""
    lossy = []
    for seed in range(60):
        options = varied(seed, DurationMs(20_000))
        if options.settings.min_isr == 1 and options.replication_factor > 1:
            plan = tuple(
                Fault(TimeMs(6_000 + 10 * broker), FaultKind.POWER_LOSS, broker, DurationMs(3_000))
                for broker in range(options.brokers)
            )
            outcome = Simulation(options, plan).finish()
            assert outcome.findings == ()
            assert options.is_strict is False or outcome.loss_count == 0
            lossy.append(outcome.loss_count)
    assert max(lossy) > 1

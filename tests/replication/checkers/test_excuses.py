"""What two excuses of the checkers cover and when they end: I12 (a resumed epoch) and I8 (a request given up, S100)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from broker.ids import BrokerId, LeaderEpoch, Offset
from broker.units import DurationMs
from log.files.checkpoints import EpochEntry
from replication.checkers import replicas
from replication.rules.settings import PartitionSettings
from replication.rules.switches import rules_of
from replication.simulation import Simulation, swarm

# I12: where a leader that lost its end went on, the epoch of what it copies there later is dated.


def i12(epochs: tuple[int, ...], cache: tuple[tuple[int, int], ...], resumed: set[int]) -> list[str]:
    """What is found in a log whose records are of `epochs`."""
    cached = tuple(EpochEntry(epoch=LeaderEpoch(epoch), start_offset=Offset(start)) for epoch, start in cache)
    observed: Any = SimpleNamespace(
        entries=[SimpleNamespace(epoch=epoch) for epoch in epochs], resumed=resumed, epochs=None
    )
    node: Any = SimpleNamespace(broker=BrokerId(0))
    return [what for _, what in replicas._check_epochs(node, observed, cached)]


def test_an_epoch_may_be_dated_where_its_leader_had_gone_on() -> None:
    assert i12((1, 2, 2, 2), ((1, 0), (2, 3)), {3}) == []


@pytest.mark.parametrize("resumed", [set(), {2}, {1, 2, 4}])
def test_an_epoch_that_is_dated_elsewhere_is_called_broken(resumed: set[int]) -> None:
    assert i12((1, 2, 2, 2), ((1, 0), (2, 3)), resumed) == ["broker 0: epoch 2 does not begin at 3"]


def test_another_epoch_that_is_dated_where_its_leader_had_gone_on_is_called_broken() -> None:
    assert i12((1, 2, 2, 3), ((1, 0), (2, 3)), {3}) == [
        "broker 0: epoch 2 does not begin at 3",
        "broker 0 does not know epoch 3 of its last record",
    ]


@pytest.mark.parametrize(
    ("seed", "minutes", "expected"),
    [(905093, 10, {(0, 0): {111}, (1, 0): {48}, (2, 0): {66}}), (7, 2, {})],
    ids=["brokers begin to lead after losses and without", "broker 1 leads its epoch again and has lost nothing"],
)
def test_only_a_leader_that_lost_its_end_and_leads_the_same_epoch_again_has_gone_on(
    seed: int, minutes: int, expected: dict[tuple[int, int], set[int]]
) -> None:
    """The offsets noted in a ZooKeeper run, by partition and broker."""
    options = swarm(seed, DurationMs(minutes * 60_000), rules_of("3.5"))
    zookeeper = attrs.evolve(options.role_settings, has_zookeeper=True)
    simulation = Simulation(attrs.evolve(options, role_settings=zookeeper))
    assert simulation.finish().findings == ()
    noted = {
        (partition, int(broker)): observed.resumed
        for partition, reference in simulation.checker.references.items()
        for broker, observed in reference.observed_logs.items()
        if observed.resumed
    }
    assert noted == expected


# I8: a leader gives up a request that the controller takes, and counts too few until it hears of it.

SETTINGS = PartitionSettings(min_isr=1)
ZERO, ONE = BrokerId(0), BrokerId(1)


def leader(partition_epoch: int, pending: Any = None, leader_epoch: int = 4) -> Any:
    """A leader that knows itself to be alone in sync."""
    return SimpleNamespace(
        broker=ZERO,
        leader_epoch=leader_epoch,
        partition_epoch=partition_epoch,
        isr=(ZERO,),
        pending=pending,
        replica_count=2,
    )


def request(partition_epoch: int, leader_epoch: int = 4) -> Any:
    return SimpleNamespace(leader_epoch=leader_epoch, partition_epoch=partition_epoch, members=(ZERO, ONE))


def reference_at(partition_epoch: int, dropped: dict[BrokerId, int]) -> Any:
    """The controller has taken the request: both are in sync."""
    state = SimpleNamespace(isr=(ZERO, ONE), elr=(), partition_epoch=partition_epoch)
    return SimpleNamespace(state=state, dropped=dropped, leaders={}, asked={}, uncounted={})


def i8(reference: Any, claim: Any) -> list[str]:
    return [what for _, what in replicas.check_quorum(reference, claim, SETTINGS)]


def test_a_leader_that_gave_up_a_request_may_count_too_few_until_it_hears_of_it() -> None:
    assert i8(reference_at(8, {ZERO: 7}), leader(7)) == []


@pytest.mark.parametrize(
    ("dropped", "partition_epoch"),
    [({}, 7), ({ONE: 7}, 7), ({ZERO: 6}, 7), ({ZERO: 7}, 8), ({ZERO: 8}, 8)],
    ids=[
        "it gave nothing up",
        "another broker gave its request up",
        "it has heard of a later state since",
        "it has heard that the other joined",
        "it gave up what came after",
    ],
)
def test_a_leader_that_counts_too_few_for_another_reason_is_called_broken(
    dropped: dict[BrokerId, int], partition_epoch: int
) -> None:
    assert i8(reference_at(8, dropped), leader(partition_epoch)) == [
        "leader 0 counts [0], the controller (0, 1) and ()"
    ]


@pytest.mark.parametrize(
    ("by_metadata", "asked_epoch", "is_noted"), [(True, 4, True), (False, 4, False), (True, 3, False)]
)
def test_a_request_is_given_up_where_metadata_of_its_own_epoch_drops_it(
    by_metadata: bool, asked_epoch: int, is_noted: bool
) -> None:
    """An answer ends a request as well, and so does a new leader epoch; neither excuses anything."""
    reference = reference_at(8, {})
    reference.asked[ZERO] = request(7, asked_epoch)
    observed: Any = SimpleNamespace(broker=ZERO, high_watermark=5, shown_epoch=4, shown=5)
    found = replicas.check_claims(reference, leader(7), observed, SETTINGS, by_metadata=by_metadata)
    assert list(found) == []
    assert reference.dropped == ({ZERO: 7} if is_noted else {})
    assert reference.asked == {ZERO: None}


@pytest.mark.parametrize(("agreed", "left"), [(4, {ONE: 5}), (5, {})])
def test_a_member_that_was_not_counted_is_excused_until_it_has_what_was_shown(
    agreed: int, left: dict[BrokerId, int]
) -> None:
    reference = reference_at(8, {})
    reference.committed, reference.uncounted = [None] * 6, {ONE: 5}
    reference.observed_logs = {ONE: SimpleNamespace(agree=lambda _committed: agreed)}
    reference.state.leader, reference.state.leader_epoch = ZERO, 4
    cluster: Any = SimpleNamespace(nodes={})
    replicas._note_uncounted(cluster, reference, reference.state)
    assert reference.uncounted == left

"""The moves that fault injection draws: several replicas at once, other factors, in the place of moves under way."""

from __future__ import annotations

import attrs

from broker.ids import BrokerId
from replication.rules.partition import PartitionState
from replication.rules.reassign import started
from replication.simulation.moves import drawn_target

BROKERS = tuple(BrokerId(broker) for broker in range(5))
STATE = PartitionState(replicas=BROKERS[:3], isr=BROKERS[:3], leader=BROKERS[0])


def test_targets_add_and_remove_several_replicas_and_change_the_factor() -> None:
    targets = [set(drawn_target(STATE, BROKERS, 2, number) or ()) for number in range(200)]
    assert {len(target) for target in targets} == {2, 3, 4, 5}
    assert {len(target - set(STATE.replicas)) for target in targets} == {0, 1, 2}
    assert {len(set(STATE.replicas) - target) for target in targets} == {0, 1, 2, 3}
    assert set(STATE.replicas) not in targets


def test_a_move_in_the_place_of_another_is_one_that_kafka_can_end() -> None:
    phase = started(STATE, (BrokerId(1), BrokerId(2), BrokerId(3)))
    moving = attrs.evolve(STATE, replicas=phase.replicas, adding=phase.adding, removing=phase.removing)
    drawn = [drawn_target(moving, BROKERS, 2, number) for number in range(200)]
    for target in filter(None, drawn):
        following = started(moving, target)
        assert set(following.adding) <= set(target)
        assert not set(following.removing) & set(target)
    assert None not in drawn


def test_no_move_is_drawn_where_there_is_no_other_set_of_replicas() -> None:
    alone = PartitionState(replicas=BROKERS[:1], isr=BROKERS[:1], leader=BROKERS[0])
    assert drawn_target(alone, BROKERS[:1], 1, 7) is None

"""A leader's request to change the ISR, the controller's checks, the leader's reactions."""

from __future__ import annotations

import attrs
import pytest

from broker.error_codes import ErrorCode
from broker.ids import BrokerEpoch, BrokerId, LeaderEpoch
from replication.rules.alter_partition import Altered, Reaction, alter, react, validate
from replication.rules.isr import propose_shrink
from replication.rules.partition import AlterPartitionRequest, LeaderState, PartitionEpoch
from replication.rules.switches import CURRENT, rules_of, without
from tests.replication.builders import follower, ids, leader, partition, request, settings, statuses

E = ErrorCode


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (request(1, 2), E.NONE),
        (request(1, 2, 3), E.NONE),
        (request(1, 2, epoch=6), E.NOT_CONTROLLER),
        (request(1, 2, partition_epoch=8), E.NOT_CONTROLLER),
        (request(1, 2, epoch=4, partition_epoch=8), E.NOT_CONTROLLER),
        (request(1, 2, epoch=4), E.FENCED_LEADER_EPOCH),
        (request(2, 1, sender=2), E.INVALID_REQUEST),
        (request(2, 1, sender=2, partition_epoch=6), E.INVALID_REQUEST),
        (request(1, 2, partition_epoch=6), E.INVALID_UPDATE_VERSION),
        (request(1, 2, 2), E.INVALID_REQUEST),
        (request(1, 4), E.INVALID_REQUEST),
        (request(2, 3), E.INVALID_REQUEST),
        (request(1, 2, recovering=True), E.INVALID_REQUEST),
        (request(1, recovering=True), E.INVALID_REQUEST),
        (request(1, 2, broker_epochs={2: 3}), E.INELIGIBLE_REPLICA),
        (request(1, 2, broker_epochs={2: -1}), E.NONE),
    ],
)
def test_the_checks_in_their_order(asked: AlterPartitionRequest, error: ErrorCode) -> None:
    altered = alter(partition((1,)), asked, statuses(), settings())
    assert altered.error is error
    if error is not E.NONE:
        assert altered.partition == partition((1,))


@pytest.mark.parametrize(
    "brokers",
    [
        statuses(fenced=(2,)),
        statuses(stopping=(2,)),
        {broker: status for broker, status in statuses().items() if broker != 2},
    ],
)
def test_nobody_who_is_away_is_added(brokers: dict[BrokerId, object]) -> None:
    altered = alter(partition((1,)), request(1, 2), brokers, settings())  # type: ignore[arg-type] # - statuses all the same.
    assert altered.error is E.INELIGIBLE_REPLICA


def test_a_member_with_an_epoch_has_to_be_registered_with_it() -> None:
    """KIP-903 alone, without the demands of KIP-841."""
    rules = without(CURRENT, "isr_join_eligibility")
    brokers = {broker: status for broker, status in statuses(fenced=(2,)).items() if broker != 3}
    for asked, error in (
        (request(1, 2, broker_epochs={2: 0}), E.NONE),
        (request(1, 2, broker_epochs={2: 1}), E.OPERATION_NOT_ATTEMPTED),
        (request(1, 3, broker_epochs={3: 0}), E.OPERATION_NOT_ATTEMPTED),
        (request(1, 3, broker_epochs={3: -1}), E.NONE),
    ):
        assert validate(partition((1,)), asked, brokers, rules) is error


def test_a_leader_that_recovers_may_say_so_alone() -> None:
    recovering = partition((1,), recovering=True)
    assert validate(recovering, request(1, recovering=True), statuses(), CURRENT) is E.NONE
    assert validate(recovering, request(1, 2, recovering=True), statuses(), CURRENT) is E.INVALID_REQUEST
    done = alter(recovering, request(1), statuses(), settings())
    assert (done.error, done.partition.recovering) == (E.NONE, False)


def test_an_unknown_partition() -> None:
    assert validate(None, request(1, 2), statuses(), CURRENT) is E.UNKNOWN_TOPIC_OR_PARTITION


def test_a_change_is_one_partition_epoch() -> None:
    altered = alter(partition((1,)), request(1, 2), statuses(), settings()).partition
    assert (altered.isr, altered.partition_epoch, altered.leader_epoch) == (ids(1, 2), 8, 5)


def test_an_isr_that_is_the_same_is_no_change() -> None:
    assert alter(partition((1, 2)), request(1, 2), statuses(), settings()) == Altered(E.NONE, partition((1, 2)))


def test_before_3_3_a_controller_left_behind_took_the_request() -> None:
    assert validate(partition(), request(1, 2, epoch=6), statuses(), rules_of("3.2")) is E.NONE


def test_a_reassignment_that_moves_the_leader_is_both_an_error_and_a_change() -> None:
    moving = partition((1, 2, 3), replicas=(2, 3, 4, 1), adding=(4,), removing=(1,))
    altered = alter(moving, request(1, 2, 3, 4), statuses(), settings())
    assert altered.error is E.NEW_LEADER_ELECTED
    assert (altered.partition.leader, altered.partition.replicas) == (2, ids(2, 3, 4))
    assert (altered.partition.isr, altered.partition.leader_epoch) == (ids(2, 3, 4), 6)


WAITING: LeaderState = propose_shrink(leader(follower(2, 9), follower(3, 8)), ids(3), BrokerEpoch(0))


def asked() -> AlterPartitionRequest:
    assert WAITING.pending is not None
    return WAITING.pending


@pytest.mark.parametrize(
    ("error", "reaction"),
    [
        (E.INELIGIBLE_REPLICA, Reaction.ROLLED_BACK),
        (E.OPERATION_NOT_ATTEMPTED, Reaction.ROLLED_BACK),
        (E.UNKNOWN_TOPIC_OR_PARTITION, Reaction.PENDING),
        (E.UNKNOWN_TOPIC_ID, Reaction.PENDING),
        (E.FENCED_LEADER_EPOCH, Reaction.PENDING),
        (E.INVALID_UPDATE_VERSION, Reaction.PENDING),
        (E.INVALID_REQUEST, Reaction.PENDING),
        (E.NEW_LEADER_ELECTED, Reaction.PENDING),
        (E.NOT_CONTROLLER, Reaction.RETRY),
        (E.STALE_BROKER_EPOCH, Reaction.RETRY),
        (E.REQUEST_TIMED_OUT, Reaction.RETRY),
    ],
)
def test_what_a_leader_makes_of_an_error(error: ErrorCode, reaction: Reaction) -> None:
    did, state = react(WAITING, asked(), Altered(error, partition()))
    assert did is reaction
    assert state == (attrs.evolve(WAITING, pending=None) if reaction is Reaction.ROLLED_BACK else WAITING)


def test_success_makes_the_change_final() -> None:
    answer = attrs.evolve(partition((1, 2)), partition_epoch=PartitionEpoch(8))
    did, state = react(WAITING, asked(), Altered(E.NONE, answer))
    assert did is Reaction.COMMITTED
    assert (state.isr, state.partition_epoch, state.pending) == (ids(1, 2), 8, None)


def test_success_of_the_same_partition_epoch_is_final_too() -> None:
    assert react(WAITING, asked(), Altered(E.NONE, partition()))[0] is Reaction.COMMITTED


@pytest.mark.parametrize(("epoch", "partition_epoch"), [(6, 8), (4, 8), (5, 6)])
def test_an_answer_of_another_epoch_is_ignored(epoch: int, partition_epoch: int) -> None:
    answer = attrs.evolve(
        partition((1, 2)), leader_epoch=LeaderEpoch(epoch), partition_epoch=PartitionEpoch(partition_epoch)
    )
    assert react(WAITING, asked(), Altered(E.NONE, answer)) == (Reaction.IGNORED, WAITING)


def test_an_answer_to_another_request_is_ignored() -> None:
    idle = attrs.evolve(WAITING, pending=None)
    assert react(idle, asked(), Altered(E.NONE, partition((1, 2)))) == (Reaction.IGNORED, idle)

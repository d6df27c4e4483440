"""Becoming leader, becoming follower."""

from __future__ import annotations

import attrs
import pytest

from broker.ids import BrokerId, LeaderEpoch
from broker.units import TimeMs
from replication.rules.leadership import become_follower, become_leader, unassigned
from replication.rules.partition import (
    UNKNOWN_EPOCH,
    Follower,
    FollowerState,
    LeaderState,
    PartitionEpoch,
    PartitionState,
)
from replication.rules.switches import CURRENT, rules_of
from tests.replication.builders import epochs, follower, ids, leader, log, partition, request

AT = TimeMs(500)


def led(state: LeaderState | FollowerState, heard: PartitionState) -> LeaderState:
    result = become_leader(state, heard, log(9, (3, 0)), AT, CURRENT)
    assert result is not None
    return result.state


def news(
    epoch: int = 6,
    partition_epoch: int = 8,
    *,
    isr: tuple[int, ...] = (1,),
    replicas: tuple[int, ...] = (1, 2, 3),
    leader: int = 1,
) -> PartitionState:
    made = partition(isr, replicas=replicas, leader=leader)
    return attrs.evolve(made, leader_epoch=LeaderEpoch(epoch), partition_epoch=PartitionEpoch(partition_epoch))


def test_a_new_leader_knows_nothing_of_its_followers() -> None:
    state = led(unassigned(BrokerId(1)), news(isr=(1, 2)))
    assert state.followers == (
        Follower(BrokerId(2), caught_up_at_ms=AT),
        Follower(BrokerId(3)),
    )


def test_a_new_leader_notes_its_epoch_at_its_end() -> None:
    result = become_leader(unassigned(BrokerId(1)), partition(), log(9, (3, 0)), AT, CURRENT)
    assert result is not None
    assert result.state.epoch_start_offset == 9
    assert result.log.epochs == epochs((3, 0), (5, 9))


def test_before_2_1_it_did_not() -> None:
    result = become_leader(unassigned(BrokerId(1)), partition(), log(9, (3, 0)), AT, rules_of("2.0"))
    assert result is not None
    assert result.log.epochs == epochs((3, 0))


def test_a_leader_elected_again_keeps_what_it_knows() -> None:
    before = leader(follower(2, 7, broker_epoch=4, caught_up_at=3), follower(3, -1, broker_epoch=None, epoch=-1))
    state = led(before, news(isr=(1,)))
    assert state.epoch_start_offset == 9
    kept, unknown = state.followers
    assert (kept.end_offset, kept.broker_epoch, kept.leader_end_offset, kept.caught_up_at_ms) == (7, 4, 9, 0)
    assert kept.leader_epoch == 6
    assert unknown.leader_epoch == UNKNOWN_EPOCH


def test_news_of_the_same_epoch_changes_isr_and_replicas_only() -> None:
    before = attrs.evolve(leader(follower(2, 7), follower(3, 8), epoch_start=4), pending=request(1, 2))
    state = led(before, news(5, 8, replicas=(1, 3, 4), isr=(1, 3)))
    assert state.epoch_start_offset == 4
    assert state.isr == ids(1, 3)
    assert state.pending is None
    assert [known.broker for known in state.followers] == [3, 4]
    assert state.follower(BrokerId(3)) == follower(3, 8)


@pytest.mark.parametrize(("partition_epoch", "taken"), [(6, False), (7, True), (8, True)])
def test_old_news_is_ignored_and_equal_news_taken(partition_epoch: int, taken: bool) -> None:
    assert (become_leader(leader(), news(6, partition_epoch), log(9), AT, CURRENT) is not None) is taken
    assert (become_follower(leader(), news(6, partition_epoch, isr=(2,), leader=2)) is not None) is taken


@pytest.mark.parametrize(("epoch", "restarts"), [(5, False), (6, True)])
def test_a_follower_starts_anew_only_in_a_new_epoch(epoch: int, restarts: bool) -> None:
    known = attrs.evolve(
        unassigned(BrokerId(3)), leader_epoch=LeaderEpoch(5), leader=BrokerId(1), partition_epoch=PartitionEpoch(7)
    )
    following = become_follower(known, news(epoch))
    assert following is not None
    assert following.restarts is restarts
    assert (following.state.leader, following.state.leader_epoch) == (1, epoch)


def test_a_deposed_leader_forgets_its_books() -> None:
    following = become_follower(leader(), news(isr=(2,), leader=2))
    assert following is not None
    assert following.state.broker == 1
    assert following.restarts

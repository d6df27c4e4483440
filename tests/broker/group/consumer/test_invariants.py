"""A consumer group that breaks an invariant of its own is told of; the same group without that one thing is not."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from broker.group.consumer.group import ConsumerGroup
from broker.group.consumer.member import ConsumerMember, MemberState
from broker.group.members import MemberId
from tests.broker.group.consumer.test_consumer_group import parts

A, B = MemberId("a"), MemberId("b")
SOUND = ConsumerGroup(
    group_id="g",
    epoch=5,
    target_epoch=5,
    members={
        A: ConsumerMember(member_id=A, epoch=5, assigned=parts(0), assignment_epochs=dict.fromkeys(parts(0), 5)),
        B: ConsumerMember(
            member_id=B,
            epoch=4,
            state=MemberState.UNREVOKED_PARTITIONS,
            assigned=parts(1),
            revoking=parts(2),
        ),
    },
    target={A: parts(0), B: parts(1)},
)


def changed(name: MemberId, **changes: Any) -> ConsumerGroup:
    return SOUND.with_member(attrs.evolve(SOUND.members[name], **changes))


def test_a_sound_group_is_told_nothing() -> None:
    SOUND.check_invariants()


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(changed(B, assigned=parts(0, 1)), id="two are assigned the same partition"),
        pytest.param(changed(B, revoking=parts(0)), id="one revokes what another is assigned"),
        pytest.param(changed(B, assigned=parts(1, 2)), id="one is assigned what it revokes"),
        pytest.param(attrs.evolve(SOUND, target_epoch=6), id="the target is of an epoch to come"),
        pytest.param(attrs.evolve(SOUND, target={MemberId("c"): parts(3)}), id="the target names a stranger"),
        pytest.param(changed(B, epoch=6), id="a member is in an epoch to come"),
        pytest.param(changed(A, assignment_epochs=dict.fromkeys(parts(9), 5)), id="an epoch of a partition not held"),
        pytest.param(
            changed(A, assigned=parts(), assignment_epochs={}), id="a stable member holds less than its target"
        ),
        pytest.param(changed(A, assigned=parts(0, 3)), id="a stable member holds more than its target"),
        pytest.param(attrs.evolve(SOUND, target={B: parts(1)}), id="a stable member holds what no target gives it"),
        pytest.param(
            attrs.evolve(changed(A, assigned=parts(3), assignment_epochs={}), epoch=6),
            id="it holds another than its old target",
        ),
    ],
)
def test_each_broken_invariant_is_told_of(broken: ConsumerGroup) -> None:
    with pytest.raises(AssertionError):
        broken.check_invariants()


def test_a_stable_member_may_hold_less_than_a_target_that_is_about_to_be_replaced() -> None:
    """A changed subscription takes partitions away at once; the next target, which is due, knows of it."""
    attrs.evolve(changed(A, assigned=parts(), assignment_epochs={}), epoch=6).check_invariants()

"""When a plan's partitions complete, in columns, is what the controller's rules say of each of them, per release."""

from __future__ import annotations

import random

import attrs
import pytest

from broker.ids import BrokerId
from broker.releases import Release
from placement.planning.completion import completion
from replication.rules.partition import PartitionState
from replication.rules.reassign import completed, started
from replication.rules.switches import CURRENT, Rules, without
from tests.placement.planning.cases import lists, random_plan, random_view

BEFORE_4_3 = without(CURRENT, "reassignment_ignores_kept")
BEFORE_3_8 = without(BEFORE_4_3, "reassignment_needs_all_targets")


def ids(row: list[int]) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, row))


@pytest.mark.parametrize(
    ("release", "rules"), [("3.7", BEFORE_3_8), ("3.9", BEFORE_4_3), ("4.2", BEFORE_4_3), ("4.3", CURRENT)]
)
def test_a_plan_starts_and_completes_as_the_controllers_rules_say(release: str, rules: Rules) -> None:
    """New replicas have caught up; kept ones that are out of sync stay so, and may block."""
    chance = random.Random(30)
    complete = blocked = 0
    for _ in range(300):
        plan = random_plan(chance, random_view(chance, in_sync=0.6))
        done = completion(plan, Release(release))
        assert plan.view.partitions.isr is not None
        rows = zip(lists(plan.current), lists(plan.replicas), lists(plan.view.partitions.isr[plan.rows]), strict=True)
        for place, (now, target, isr) in enumerate(rows):
            phase = started(PartitionState(replicas=ids(now), isr=ids(isr), leader=BrokerId(isr[0])), ids(target))
            assert list(phase.adding) == sorted(plan.replicas[place][plan.added[place]].tolist())
            assert list(phase.removing) == sorted(plan.current[place][plan.removed[place]].tolist())
            if not phase.adding and not phase.removing:
                assert not done.is_blocked[place]
                continue
            caught_up = attrs.evolve(phase, isr=ids(sorted({*isr, *phase.adding})))
            end = completed(caught_up, rules)
            assert bool(done.is_blocked[place]) == (end is None), (now, target, isr)
            if end is not None:
                assert list(end.replicas) == target
                assert sorted(end.isr) == sorted(lists(done.isr[place : place + 1])[0])
            complete += end is not None
            blocked += end is None
    assert complete > 300
    assert blocked > (0 if release == "3.7" else 100)

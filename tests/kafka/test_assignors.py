"""Our assignors against the released Kafka's own classes, on random lives of groups."""

from __future__ import annotations

import random

import numpy as np
import pytest

from broker.entropy import RandomSource
from broker.java.hash_table import HashTable
from placement.consumer.assignment import GroupAssignment
from placement.consumer.client_range import RangeAssignor
from placement.consumer.group import Group
from tests.kafka import assignor_differential
from tests.kafka.assignor_differential import ASSIGNORS, compare, compare_life
from tests.kafka.assignor_jvm import AssignorJvm
from tests.placement.consumer.groups import group

pytestmark = pytest.mark.kafka

CASES = 400
SEED = 20250909


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_ours_says_what_kafka_says_at_every_step_of_a_groups_life(assignors: AssignorJvm, assignor: str) -> None:
    for case in range(CASES):
        difference, _ = compare_life(assignors, assignor, assignors.release, seed=SEED, case=case)
        assert difference is None, str(difference)


def test_a_difference_is_found_and_made_small(assignors: AssignorJvm, monkeypatch: pytest.MonkeyPatch) -> None:
    class Backwards(RangeAssignor):
        def assign(self, group: Group, entropy: RandomSource) -> GroupAssignment:
            return GroupAssignment(group, super().assign(group, entropy).rows.take(np.arange(len(group.members))[::-1]))

    monkeypatch.setattr(assignor_differential, "load_assignor", lambda *_, **__: Backwards())
    monkeypatch.setattr(assignor_differential, "ASSIGNORS", ("range",))
    compared = compare(assignors, assignors.release, seed=SEED, case_count=100, difference_count_max=1)
    found = compared.differences[0]
    assert [len(found.members), sum(topic.partition_count for topic in found.topics)] == [2, 1]
    assert compared.case_counts["range"] == found.case + 1


def test_the_oracle_lists_the_worked_example(assignors: AssignorJvm) -> None:
    assignors.begin("roundrobin")
    assert assignors.assign(group({"t0": 3, "t1": 3}, {"c0": "t0 t1", "c1": "t0 t1"})) == {
        "c0": [("t0", 0), ("t0", 2), ("t1", 1)],
        "c1": [("t0", 1), ("t1", 0), ("t1", 2)],
    }


@pytest.mark.parametrize("case", range(300))
def test_a_hash_set_that_loses_elements_is_walked_as_javas_is(assignors: AssignorJvm, case: int) -> None:
    chance = random.Random(f"set/{case}")
    # Few bins of a table of 64 and more, so that trees grow, shrink, are cut and become lists again.
    pool = [one * 64 + chance.randrange(1 + case % 4) for one in range(10 + case % 60)]
    hashes = [chance.choice(pool) - chance.choice((0, 2**31)) for _ in range(400)]
    table, there, first = HashTable(), set[int](), []
    for code in hashes:
        spread = (code % 2**32) ^ (code % 2**32 >> 16)
        key = (spread - 2**32 if spread >> 31 else spread, True, b"")
        (table.remove if code in there else table.add)(key)
        there ^= {code}
        first.append(_unspread(table.first()[0]) if there else 0)
    assert (first, [_unspread(key[0]) for key in table]) == assignors.walked_set(hashes)


def _unspread(spread: int) -> int:
    code = (spread % 2**32) ^ (spread % 2**32 >> 16)
    return code - 2**32 if code >> 31 else code

"""Each constraint is broken by exactly the partitions that break it, and says which, where and why."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.cluster import BrokerView
from broker.ids import BrokerId
from placement.balance.constraints import (
    DISTINCT_BROKERS,
    FACTOR_MET,
    LEADER_UNFENCED,
    RACK_SPREAD,
    REGISTERED_BROKERS,
    STANDARD,
    Constraint,
    Violation,
    check,
    factor_met,
)
from placement.spec import Assignment, concatenate
from placement.strategies import assignments, brokers
from tests.oracles.audit import rows_of

BROKERS = (
    BrokerView(id=BrokerId(1), rack="a"),
    BrokerView(id=BrokerId(2), rack="a", fenced=True),
    BrokerView(id=BrokerId(5), rack="b"),
    BrokerView(id=BrokerId(9)),
)


def of(*rows: list[int]) -> Assignment:
    return Assignment.of_topic("t", list(rows), start_partition=7)


@pytest.mark.parametrize(
    ("constraint", "assignment", "expected"),
    [
        (
            REGISTERED_BROKERS,
            of([1, 5], [1, 6]),
            Violation("registered-brokers", "t", 8, (1, 6), ("a", ""), "broker 6 is not registered"),
        ),
        (
            DISTINCT_BROKERS,
            of([1, 5, 1], [1, 5, 9]),
            Violation("distinct-brokers", "t", 7, (1, 5, 1), ("a", "b", "a"), "broker 1 holds more than one replica"),
        ),
        (
            FACTOR_MET,
            of([1, 5], [5, -1]),
            Violation("factor-met", "t", 8, (5,), ("b",), "1 replica where 2 are asked for"),
        ),
        (
            factor_met(3),
            of([1, 5, 9], [1, 5, -1]),
            Violation("factor-met", "t", 8, (1, 5), ("a", "b"), "2 replicas where 3 are asked for"),
        ),
        (
            LEADER_UNFENCED,
            of([1, 2], [2, 1]),
            Violation("leader-unfenced", "t", 8, (2, 1), ("a", "a"), "the preferred leader, broker 2, is fenced"),
        ),
        (
            RACK_SPREAD,
            of([1, 5, 9], [1, 9, 2]),
            Violation("rack-spread", "t", 8, (1, 9, 2), ("a", "", "a"), "on 1 rack where 2 are possible"),
        ),
    ],
)
def test_a_broken_constraint_names_partition_brokers_racks_and_reason(
    constraint: Constraint, assignment: Assignment, expected: Violation
) -> None:
    found = constraint.violations(assignment, BROKERS)
    assert found.count == 1
    assert found.explain() == (expected,)


def test_the_negative_id_that_is_no_pad_is_not_registered() -> None:
    assert REGISTERED_BROKERS.violations(of([1, -7], [1, -1]), BROKERS).subjects.tolist() == [0]


def test_only_the_first_violations_are_told_and_all_are_counted() -> None:
    found = DISTINCT_BROKERS.violations(of(*[[1, 1]] * 5), BROKERS)
    assert found.count == 5
    assert [violation.partition for violation in found.explain(2)] == [7, 8]


def test_check_returns_broken_constraints_only_in_their_order() -> None:
    found = check(of([2, 2]), BROKERS)
    names = [violations.constraint.name for violations in found]
    assert names == ["distinct-brokers", "leader-unfenced", "rack-spread"]
    assert check(of([1, 5]), BROKERS) == ()
    assert check(of([2, 5]), BROKERS, [RACK_SPREAD]) == ()


def test_an_empty_assignment_breaks_nothing() -> None:
    empty = concatenate([])
    assert check(empty, BROKERS) == ()
    assert check(empty, ()) == ()


@settings(max_examples=30)
@given(st.data())
def test_constraints_find_the_partitions_that_a_plain_loop_finds(data: st.DataObject) -> None:
    some = data.draw(brokers())
    drawn = data.draw(assignments(some, distinct=False))
    listed = [broker for index, broker in enumerate(some) if index % 3 < 2]
    racks = {broker.id: broker.rack for broker in listed}
    fenced = {broker.id for broker in listed if broker.fenced}
    rack_count = len({rack for rack in racks.values() if rack is not None})
    rows = rows_of(drawn.replicas)
    widest = {
        topic: max(len(row) for row, at in zip(rows, drawn.topic_index.tolist(), strict=True) if at == topic)
        for topic in drawn.topic_index.tolist()
    }
    expected: dict[str, list[int]] = {constraint.name: [] for constraint in STANDARD}
    for index, row in enumerate(rows):
        used = [racks[number] for number in row if racks.get(number) is not None]
        broken = {
            "registered-brokers": any(number not in racks for number in row),
            "distinct-brokers": len(set(row)) < len(row),
            "factor-met": len(row) != widest[int(drawn.topic_index[index])],
            "leader-unfenced": row[0] in fenced,
            "rack-spread": len(set(used)) < min(len(used), rack_count),
        }
        for name, is_broken in broken.items():
            if is_broken:
                expected[name].append(index)
    found = {constraint.name: constraint.violations(drawn, listed).subjects.tolist() for constraint in STANDARD}
    assert found == expected

"""Manual assignments: accepted as given, or refused with the controller's words in the controller's order."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest

from broker.cluster import BrokerView
from broker.errors import (
    InputError,
    InvalidPartitionsError,
    InvalidReplicaAssignmentError,
    InvalidRequestError,
    UsageError,
)
from broker.ids import BrokerId
from broker.releases import Release
from placement.placers.manual import (
    ManualPartition,
    parse_replica_assignment,
    validate_added_partitions,
    validate_manual_assignment,
)

BROKERS = [BrokerView(id=BrokerId(number), fenced=number == 4) for number in (1, 2, 3, 4)]
PREFIX = "The manual partition assignment includes"


def given(*lists: tuple[int, list[int]]) -> list[ManualPartition]:
    return [ManualPartition(partition, tuple(replicas)) for partition, replicas in lists]


def refusal_of(partitions: list[ManualPartition], **request: Any) -> str:
    with pytest.raises(InvalidReplicaAssignmentError) as refusal:
        validate_manual_assignment(partitions, BROKERS, **request)
    return str(refusal.value)


def test_what_is_right_comes_back_as_it_was_given_in_order_of_partition() -> None:
    rows = validate_manual_assignment(given((1, [3, 1]), (0, [2, 4])), BROKERS)
    assert rows.dtype == np.int32
    assert rows.tolist() == [[2, 4], [3, 1]]


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        ([(0, [])], f"{PREFIX} an empty replica list."),
        ([(0, [9, 9])], f"{PREFIX} broker 9, but no such broker is registered."),
        ([(0, [1, -1])], f"{PREFIX} broker -1, but no such broker is registered."),
        ([(0, [1, 9, 1])], f"{PREFIX} the broker 1 more than once."),
        ([(0, [2, 1, 2, 0])], f"{PREFIX} broker 0, but no such broker is registered."),
        (
            [(0, [1, 2]), (1, [3])],
            f"{PREFIX} a partition with 1 replica(s), but this is not consistent with previous partitions, "
            "which have 2 replica(s).",
        ),
        ([(0, [1]), (0, [])], "Found multiple manual partition assignments for partition 0"),
        (
            [(0, [4]), (5, [])],
            "All brokers specified in the manual partition assignment for partition 0 "
            "are fenced or in controlled shutdown.",
        ),
        ([(0, [1]), (2, [2])], "partitions should be a consecutive 0-based integer sequence"),
        ([(-1, [1])], "partitions should be a consecutive 0-based integer sequence"),
    ],
)
def test_the_first_broken_rule_is_reported(lists: list[tuple[int, list[int]]], message: str) -> None:
    assert refusal_of(given(*lists)) == message


def test_lists_and_numbers_exclude_each_other_and_the_factor_is_looked_at_first() -> None:
    with pytest.raises(InvalidRequestError) as refusal:
        validate_manual_assignment(given((0, [])), BROKERS, partition_count=1, replication_factor=1)
    assert (
        str(refusal.value) == "A manual partition assignment was specified, but replication factor was not set to -1."
    )
    with pytest.raises(InvalidRequestError) as refusal:
        validate_manual_assignment(given((0, [])), BROKERS, partition_count=1)
    assert str(refusal.value) == "A manual partition assignment was specified, but numPartitions was not set to -1."
    with pytest.raises(UsageError, match=r"^a manual assignment needs at least one partition$"):
        validate_manual_assignment([], BROKERS)


def test_the_text_has_commas_between_partitions_and_colons_between_brokers() -> None:
    assert parse_replica_assignment("1:2, 2 : 3") == (ManualPartition(0, (1, 2)), ManualPartition(1, (2, 3)))


@pytest.mark.parametrize(
    ("text", "partition", "wrong"),
    [("", 0, ""), ("1,", 1, ""), ("1:x", 0, "x"), ("1:2,3:1.5", 1, "1.5"), ("１", 0, "１")],
)
def test_what_is_not_a_number_is_named_with_its_partition(text: str, partition: int, wrong: str) -> None:
    with pytest.raises(InputError) as problem:
        parse_replica_assignment(text)
    assert str(problem.value) == f"replica assignment of partition {partition}: not a broker id (found {wrong!r})"


def test_partitions_added_by_hand_come_back_as_given() -> None:
    existing = np.array([[1, 2, -1], [2, 3, -1]], dtype=np.int32)
    assert validate_added_partitions("t", existing, 4, [[3, 1], [4, 2]], BROKERS).tolist() == [[3, 1], [4, 2]]


@pytest.mark.parametrize(
    ("count", "added", "error", "message"),
    [
        (2, [], InvalidPartitionsError, "Topic already has 2 partition(s)."),
        (1, [], InvalidPartitionsError, "The topic t currently has 2 partition(s); 1 would not be an increase."),
        (
            4,
            [[1, 2]],
            InvalidReplicaAssignmentError,
            "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
        ),
        (
            3,
            [[1]],
            InvalidReplicaAssignmentError,
            f"{PREFIX} a partition with 1 replica(s), but this is not consistent with previous partitions, "
            "which have 2 replica(s).",
        ),
        (3, [[1, 7]], InvalidReplicaAssignmentError, f"{PREFIX} broker 7, but no such broker is registered."),
    ],
)
def test_partitions_added_by_hand_are_refused_in_the_controller_s_words(
    count: int, added: list[list[int]], error: type[Exception], message: str
) -> None:
    existing = np.array([[1, 2], [2, 3]], dtype=np.int32)
    with pytest.raises(error) as refusal:
        validate_added_partitions("t", existing, count, added, BROKERS)
    assert str(refusal.value) == message


def test_an_added_partition_is_named_by_its_own_id_when_all_its_brokers_are_fenced() -> None:
    with pytest.raises(InvalidReplicaAssignmentError) as refusal:
        validate_added_partitions("t", np.array([[1]], dtype=np.int32), 3, [[1], [4]], BROKERS)
    assert str(refusal.value) == (
        "All brokers specified in the manual partition assignment for partition 2 are fenced or in controlled shutdown."
    )


def test_brokers_in_controlled_shutdown_count_as_fenced_ones_and_cordoned_ones_are_taken_by_4_3() -> None:
    brokers = [attrs.evolve(each, in_controlled_shutdown=each.id == 1, cordoned=each.id == 2) for each in BROKERS]
    with pytest.raises(InvalidReplicaAssignmentError) as refusal:
        validate_manual_assignment(given((0, [1, 4])), brokers)
    assert str(refusal.value) == (
        "All brokers specified in the manual partition assignment for partition 0 are fenced or in controlled shutdown."
    )
    assert validate_manual_assignment(given((0, [2, 1])), brokers, release=Release("4.3")).tolist() == [[2, 1]]
    for ask in (
        lambda: validate_manual_assignment(given((0, [2, 2, 9])), brokers),
        lambda: validate_added_partitions("t", np.array([[1]], dtype=np.int32), 2, [[2]], brokers),
    ):
        with pytest.raises(InvalidReplicaAssignmentError) as refusal:
            ask()
        assert str(refusal.value) == (
            "The manual partition assignment includes broker 2, but all its log directories are cordoned."
        )


def test_a_topic_of_no_partitions_cannot_grow() -> None:
    with pytest.raises(UsageError, match=r"^topic t has no partition to take the replication factor from$"):
        validate_added_partitions("t", np.empty((0, 1), dtype=np.int32), 1, [[1]], BROKERS)

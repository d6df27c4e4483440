"""Moves within one balancing: opposite ones of a topic cancel, and Java's set says which."""

from __future__ import annotations

from placement.consumer.sticky.balance import Movements
from tests.placement.consumer.groups import group

A, B, C = 0, 1, 2


def test_what_went_the_opposite_way_goes_back_instead() -> None:
    movements = Movements(group({"t": 9, "u": 1}, {"a": "t u", "b": "t u", "c": "t u"}))
    movements.record(3, A, B)
    assert movements.instead_of(5, B, A) == 3
    assert movements.instead_of(5, A, B) == 5, "the same way as before"
    assert movements.instead_of(5, C, A) == 5, "from another member"
    assert movements.instead_of(9, B, A) == 9, "of another topic"


def test_a_partition_that_moves_on_counts_from_where_it_came_first() -> None:
    movements = Movements(group({"t": 9}, {"a": "t", "b": "t", "c": "t"}))
    movements.record(3, A, B)
    movements.record(3, B, C)
    assert movements.instead_of(5, C, A) == 3
    assert movements.instead_of(5, B, A) == 5


def test_a_partition_that_is_back_has_not_moved() -> None:
    movements = Movements(group({"t": 9}, {"a": "t", "b": "t"}))
    movements.record(3, A, B)
    movements.record(3, B, A)
    assert movements.instead_of(5, B, A) == 5


def test_of_several_the_first_of_javas_set_goes_back() -> None:
    # "t" has the hash 116; spread over 16 bins, 31 * (31 + number) + 116 puts 4 before 0.
    movements = Movements(group({"t": 9}, {"a": "t", "b": "t"}))
    for number in (0, 4):
        movements.record(number, A, B)
    bins = {number: (31 * (31 + number) + 116) % 16 for number in (0, 4)}
    assert bins[4] < bins[0]
    assert movements.instead_of(8, B, A) == 4


def test_partitions_of_two_topics_whose_hashes_are_equal_are_not_confused() -> None:
    # TopicPartition.hashCode() is 31 * (31 + number) + the topic's hash: "Aa" and "BB" have the same, and that of
    # "t21" is 31 above that of "t11", so that t11-1 and t21-0 collide.
    same = Movements(group({"Aa": 2, "BB": 2}, {"a": "Aa BB", "b": "Aa BB"}))
    apart = Movements(group({"t11": 2, "t21": 2}, {"a": "t11 t21", "b": "t11 t21"}))
    for movements, first, second in ((same, 0, 2), (apart, 1, 2)):
        movements.record(first, A, B)
        movements.record(second, A, B)
        assert movements.instead_of(1 - first, B, A) == first
        assert movements.instead_of(3, B, A) == second

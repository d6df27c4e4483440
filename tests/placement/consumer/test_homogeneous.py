"""Uniform with equal subscriptions: what stays, what is revoked, and what is refused."""

from __future__ import annotations

import pytest

from broker.entropy import SplitMix64
from placement.consumer.errors import PartitionAssignorError
from placement.consumer.group import Group
from placement.consumer.uniform import homogeneous
from placement.consumer.uniform.assignor import UniformAssignor
from tests.placement.consumer.groups import group, rows


def answered(asked: Group) -> list[list[int]]:
    """Return each member's partitions by id."""
    return rows(UniformAssignor().assign(asked, SplitMix64(0)))


def test_nothing_is_ordered_where_everything_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(homogeneous, "walk_order", None)
    asked = group({"t": 4, "u": 2}, {"a": "t u", "b": "t u"}, {"a": "t-3 t-1", "b": "t-2"})
    assert answered(asked) == [[1, 3, 4], [2, 5, 0]]


def test_what_is_over_the_quota_is_met_in_the_order_of_javas_set() -> None:
    # A set made of 33 numbers has 64 bins, so that they are met in ascending order: the last twelve go.
    held = {"a": " ".join(f"t-{number}" for number in range(33)), "b": "u-1"}
    assert answered(group({"t": 40, "u": 2}, {"a": "t u", "b": "t u"}, held)) == [
        [*range(21)],
        [41, 40, *range(33, 40), *range(21, 33)],
    ]


@pytest.mark.parametrize(
    "asked",
    [
        group({"t": 3}, {"a": "t", "b": "t"}, {"a": "t-0", "b": "t-0"}),
        group({"t": 2}, {"a": "t", "b": "t"}, {"a": "t-2"}),
    ],
    ids=["claimed by two", "beyond the end"],
)
def test_claims_that_no_assignor_made_leave_partitions_over_as_in_kafka(asked: Group) -> None:
    with pytest.raises(PartitionAssignorError, match="Partitions were left unassigned"):
        answered(asked)

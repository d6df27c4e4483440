"""Former assignments as kafka-consumer-groups prints them."""

from __future__ import annotations

import pytest

from placement.consumer.group_spec import read_previous
from tests.placement.formats.samples import PRINTED


@pytest.mark.parametrize("name", ["groups-offsets.txt", "groups-offsets-verbose.txt"])
def test_a_groups_id_may_have_blanks(name: str) -> None:
    """What 4.3.1 printed of the group "billing group": two members with five and four partitions."""
    lines = (PRINTED / name).read_text(encoding="utf-8").splitlines()
    of_group = [line for line in lines if line.startswith(("GROUP ", "billing group "))]
    previous = read_previous("\n".join(of_group).encode(), source=name)
    assert sorted((member[:3], len(held)) for member, held in previous.held.items()) == [("b-1", 4), ("sta", 5)]
    assert {one.topic for held in previous.held.values() for one in held} == {"orders", "eu-west-1.payments"}

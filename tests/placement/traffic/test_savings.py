"""What a change saves is the sum of its groups, and never below the least."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

from placement.traffic import Consumers, GroupPlan, ZonedPartitions, group_traffic, sample_groups
from placement.traffic.consumers import NOW
from placement.traffic.crossing import NOTHING, Crossing
from placement.traffic.group_traffic import least_fetched
from placement.traffic.savings import CLOSEST, JOINED, LEAST, Change, add_readers, changes_of, no_readers
from tests.placement.traffic.naive import cluster

SHARES = np.array([0.7, 0.2, 0.1])
FLOWS = ("produce", "replicate", "consume")


def asked(seed: int, *, racks: bool = True) -> tuple[ZonedPartitions, dict[str, Change], list[Consumers]]:
    view = cluster(seed, racks=racks)
    partitions = ZonedPartitions.of(view)
    drawn = list(sample_groups(partitions, GroupPlan(4, 3, 2), seed=seed))
    drawn += [("far", tuple(attrs.evolve(one, rack="elsewhere") for one in drawn[0][1]))]
    groups = [Consumers.of(name, members, partitions) for name, members in drawn]
    readers, least = {NOW: no_readers(partitions), "sticky": no_readers(partitions)}, NOTHING
    for consumers in groups:
        # What is assigned by range now, and would be by sticky.
        for name, assignor in ((NOW, "range"), ("sticky", "sticky")):
            found = group_traffic(partitions, consumers, assignor)
            add_readers(readers[name], consumers.rows, found.reader_zones, found.is_read)
        least = least.plus(least_fetched(partitions, consumers))
    shares = SHARES[: len(partitions.zones)]
    changes = {one.name: one for one in changes_of(partitions, shares, readers, least=least)}
    return partitions, changes, groups


def added(partitions: ZonedPartitions, groups: list[Consumers], assignor: str, *, closest: bool) -> Crossing:
    total = NOTHING
    for consumers in groups:
        found = group_traffic(partitions, consumers, assignor)
        total = total.plus(found.closest if closest else found.leader)
    return total


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("racks", [True, False])
def test_consume_of_all_groups_is_the_sum_of_the_groups(seed: int, racks: bool) -> None:
    partitions, changes, groups = asked(seed, racks=racks)
    assert changes[NOW].consume == added(partitions, groups, "range", closest=False)
    assert changes[CLOSEST].consume == added(partitions, groups, "range", closest=True)
    assert changes["sticky"].consume == added(partitions, groups, "sticky", closest=False)
    assert changes[f"sticky{JOINED}{CLOSEST}"].consume == added(partitions, groups, "sticky", closest=True)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("racks", [True, False])
def test_no_change_is_below_the_least_of_any_flow(seed: int, racks: bool) -> None:
    _, changes, _ = asked(seed, racks=racks)
    for flow in FLOWS:
        least = getattr(changes[LEAST], flow)
        for change in changes.values():
            assert getattr(change, flow).crossing_bytes >= least.crossing_bytes - 1e-6
    after, before = changes[CLOSEST].total.crossing_bytes, changes[NOW].total.crossing_bytes
    assert after is not None
    assert before is not None
    assert after <= before + 1e-6


def test_bytes_that_are_not_known_stay_unknown() -> None:
    partitions = ZonedPartitions.of(cluster(4, sized=False))
    unsized = attrs.evolve(NOTHING, size_bytes=None, crossing_bytes=None)
    for change in changes_of(partitions, SHARES[: len(partitions.zones)], {NOW: no_readers(partitions)}, least=unsized):
        assert change.total.crossing_bytes is None
        assert change.total.crossing_count >= 0


def test_what_is_read_now_may_not_be_known_and_other_changes_are_the_same() -> None:
    partitions, least = ZonedPartitions.of(cluster(4)), NOTHING
    shares = SHARES[: len(partitions.zones)]
    both = {NOW: no_readers(partitions), "sticky": no_readers(partitions)}
    known = {change.name: change for change in changes_of(partitions, shares, both, least=least)}
    found = {change.name: change for change in changes_of(partitions, shares, {"sticky": both["sticky"]}, least=least)}
    assert found == {name: known[name] for name in ("sticky", f"sticky{JOINED}{CLOSEST}", LEAST)}
    assert set(known) - set(found) == {NOW, CLOSEST}

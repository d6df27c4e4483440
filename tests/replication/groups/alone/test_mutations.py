"""Each invariant is seen red by breaking the model once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import MappingProxyType

import attrs
import pytest

from broker.group.classic import GROUP_TRANSITIONS, GroupInput, GroupState
from broker.group.classic import group as classic_group
from broker.group.consumer import ConsumerGroup
from broker.group.members import GroupRecord
from broker.group.service import GroupEntry
from replication.groups.client.assigning import GroupProtocol
from replication.groups.offsets_log import StoredGroup
from tests.replication.groups.alone.runs import CONSUMER, EAGER, codes

Patch = pytest.MonkeyPatch


def entries_become(monkeypatch: Patch, change: Callable[[GroupEntry], GroupEntry | None]) -> None:
    """Let every reader of stored groups get other entries."""
    entries = StoredGroup.entries

    def changed(self: StoredGroup) -> Iterator[GroupEntry]:
        return (each for each in map(change, entries(self)) if each is not None)

    monkeypatch.setattr(StoredGroup, "entries", changed)


def test_g9_a_group_that_is_stable_before_its_members_have_synced(monkeypatch: Patch) -> None:
    hasty = {
        **GROUP_TRANSITIONS,
        (GroupState.PREPARING_REBALANCE, GroupInput.JOINED): GroupState.STABLE,
        (GroupState.STABLE, GroupInput.ASSIGNED): GroupState.STABLE,
    }
    monkeypatch.setattr(classic_group, "GROUP_TRANSITIONS", MappingProxyType(hasty))
    assert "G9" in codes("S60", EAGER)


@pytest.mark.parametrize("protocol", [EAGER, CONSUMER])
def test_g10_a_coordinator_that_reads_another_group(monkeypatch: Patch, protocol: GroupProtocol) -> None:
    def other(each: GroupEntry) -> GroupEntry:
        if isinstance(each, GroupRecord):
            return attrs.evolve(each, generation=each.generation + 1)
        return attrs.evolve(each, epoch=each.epoch + 1) if isinstance(each, ConsumerGroup) else each

    assert codes("S61", protocol) == set()
    entries_become(monkeypatch, other)
    assert codes("S61", protocol) == {"G10"}

"""What makes each scenario of groups go as it does: without it, the scenario says so."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from broker.group.consumer import ConsumerGroup
from broker.group.consumer.member import NOTHING
from replication.groups.offsets_log import Journal, StoredGroup
from replication.groups.shard import Shard
from replication.scenarios.catalogue.groups import S67, S71, SHARED_GROUP_ID


def test_nobody_owns_a_partition_twice_because_what_is_asked_back_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Journal.read

    def read(self: Journal, *given: Any) -> dict[str, StoredGroup]:
        groups = real(self, *given)
        for group in groups.values():
            if isinstance(group.consumer, ConsumerGroup):
                members = {name: attrs.evolve(one, revoking=NOTHING) for name, one in group.consumer.members.items()}
                group.consumer = attrs.evolve(group.consumer, members=members)
        return groups

    monkeypatch.setattr(Journal, "read", read)
    assert any("both own" in difference for difference in S67.play().differences)


def test_a_rebalance_goes_on_because_the_next_coordinator_reads_its_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Journal, "read", lambda self, *given: {})
    assert any("G10" in difference for difference in S71.play().differences)


def test_clients_wait_because_a_coordinator_says_that_it_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Shard.handle

    def handle(self: Shard, host: Any, asked: Any, now_ms: Any, out: Any) -> None:
        if self.is_loading:
            self.load(host, now_ms, out)
        real(self, host, asked, now_ms, out)

    monkeypatch.setattr(Shard, "handle", handle)
    assert any("COORDINATOR_LOAD_IN_PROGRESS (14) 0 times" in difference for difference in S71.play().differences)


def test_a_program_that_does_not_cling_to_its_partitions_lives() -> None:
    members = tuple(
        attrs.evolve(member, spec=attrs.evolve(member.spec, remembers_partitions=False))
        for member in SHARED_GROUP_ID.members
    )
    assert attrs.evolve(SHARED_GROUP_ID, members=members).play().differences == (
        "0 programs ended by themselves, expected 1",
    )

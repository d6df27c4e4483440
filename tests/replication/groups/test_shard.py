"""A coordinator holds a fetch of committed offsets back until they are stable."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from broker.clock import ManualClock
from broker.entropy import SplitMix64
from broker.error_codes import ErrorCode
from broker.group.messages import OffsetFetchRequest, OffsetFetchResponse
from broker.group.records import CommittedOffset, OffsetKey
from broker.group.service import OffsetRecord, Response
from broker.ids import BrokerId, LeaderEpoch, Offset
from broker.units import DurationMs, TimeMs
from replication.groups.client.protocols import DEFAULT_ASSIGNORS, GroupProtocol
from replication.groups.common.coordinator import service_options
from replication.groups.common.journal import StoredGroup, Uncommitted
from replication.groups.connection_messages import ShardDue
from replication.groups.hosted_coordinator import HostedCoordinator, HostedRoleOptions
from replication.groups.shard import STABLE_MS_MAX, Shard
from replication.roles.outbox import Outbox
from tests.replication.groups.builders import LAYOUT, t

ASK = OffsetFetchRequest(partitions=(t(0),))
KEY = OffsetKey("g", t(0).topic, t(0).partition)


def committed(offset: int) -> CommittedOffset:
    return CommittedOffset(offset=Offset(offset), leader_epoch=None, metadata="", committed_ms=TimeMs(0))


class Talk:
    """One coordinator whose broker's log ends at 8, with the committed offset 7; `told` are its responses."""

    def __init__(self, high_watermark: int) -> None:
        self.log = SimpleNamespace(high_watermark=8, log_end_offset=8)
        self.host: Any = SimpleNamespace(led_log=lambda _: SimpleNamespace(log=self.log))
        self.told: list[Response] = []
        self.out = Outbox()
        options = service_options(DEFAULT_ASSIGNORS[GroupProtocol.CONSUMER], {"t": 1}, 1)
        self.shard = Shard(
            3, 1, options, ("t",), SplitMix64(1), lambda _caller, response, _out: self.told.append(response)
        )
        self.shard.is_loading = False
        self.ask(0, OffsetFetchRequest(partitions=()))  # The group is there from its first request on.
        self.told.clear()
        self.commit(7, at=6)
        self.log.high_watermark = high_watermark

    def ask(self, now_ms: int, request: OffsetFetchRequest = ASK) -> None:
        caller: Any = None
        self.shard.handle(self.host, (caller, "g", request), TimeMs(now_ms), self.out)

    def commit(self, offset: int, at: int) -> None:
        self.shard.services["g"].offsets.apply(KEY, committed(offset), Offset(at))

    def due(self, now_ms: int) -> list[Response]:
        self.shard.on_due(self.host, ShardDue(3, 1), TimeMs(now_ms), self.out)
        return self.told


def told(offset: int) -> OffsetFetchResponse:
    return OffsetFetchResponse((Offset(offset),))


def test_what_is_committed_is_shown_at_once() -> None:
    talk = Talk(high_watermark=8)
    talk.ask(100)
    assert talk.told == [told(7)]


def test_a_fetch_waits_until_what_stood_in_the_log_is_committed() -> None:
    talk = Talk(high_watermark=7)
    talk.ask(100)
    assert talk.told == []
    assert min(delay for delay, _ in talk.out.woken) <= 20
    talk.log.log_end_offset = 9
    assert talk.due(120) == []
    talk.commit(9, at=7)
    talk.log.high_watermark = 8
    assert talk.due(140) == [told(9)], "what came after the fetch need not be committed"
    assert talk.due(160) == [told(9)]


def test_a_fetch_waits_no_longer_than_a_commit() -> None:
    talk = Talk(high_watermark=7)
    talk.ask(100)
    assert talk.due(100 + STABLE_MS_MAX - 1) == []
    assert talk.due(100 + STABLE_MS_MAX) == [OffsetFetchResponse(error=ErrorCode.NOT_COORDINATOR)]


def test_a_fetch_that_waits_is_refused_as_the_broker_ceases_to_lead() -> None:
    talk = Talk(high_watermark=7)
    talk.ask(100)
    talk.shard.close(TimeMs(200), talk.out)
    assert talk.told == [OffsetFetchResponse(error=ErrorCode.NOT_COORDINATOR)]


def test_offsets_of_all_groups_that_were_not_committed_are_applied_in_the_order_of_the_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Group a's record stands behind group b's; the high watermark passes b's first."""
    found = {"a": StoredGroup(), "b": StoredGroup()}
    for group_id, at in (("a", 8), ("b", 7)):
        entry = OffsetRecord(attrs.evolve(KEY, group_id=group_id), committed(at))
        found[group_id].uncommitted = [Uncommitted(Offset(at), entry)]
    monkeypatch.setattr("replication.groups.shard.read_groups", lambda _journal, _log: found)
    talk = Talk(high_watermark=7)
    talk.shard.load(talk.host, TimeMs(0), talk.out)
    talk.log.high_watermark = 8
    talk.due(10)
    offsets = {each: talk.shard.services[each].offsets.fetch(each, t(0)) for each in ("a", "b")}
    assert offsets == {"a": None, "b": committed(7)}


def test_a_new_epoch_of_the_same_leader_keeps_what_was_read() -> None:
    """What is under way goes on: as in Kafka, nothing is read again where a coordinator is active."""
    options = HostedRoleOptions(
        layout=LAYOUT,
        service=service_options(DEFAULT_ASSIGNORS[GroupProtocol.CONSUMER], {"t": 3}, 1),
        load_ms_max=DurationMs(500),
        wall_clock_ms=0,
    )
    host: Any = SimpleNamespace(broker=BrokerId(1))
    hosted, out = HostedCoordinator(host, options, ManualClock(), SplitMix64(1)), Outbox()
    partition = LAYOUT.of_group("g")
    hosted.on_gained(partition, LeaderEpoch(1), TimeMs(0), out)
    read, reads = hosted.shards[partition], list(out.woken)
    hosted.on_gained(partition, LeaderEpoch(2), TimeMs(900), out)
    assert hosted.shards[partition] is read
    assert (len(reads), out.woken) == (1, reads)

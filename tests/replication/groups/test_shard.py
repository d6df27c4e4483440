"""A coordinator holds back what it would answer until that is committed: offsets, and heartbeats of consumer groups."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from broker.clock import ManualClock
from broker.entropy import SplitMix64
from broker.error_codes import ErrorCode
from broker.group.classic import HeartbeatRequest, HeartbeatResponse, Ticket
from broker.group.consumer import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from broker.group.members import MemberId
from broker.group.messages import OffsetCommitRequest, OffsetCommitResponse, OffsetFetchRequest, OffsetFetchResponse
from broker.group.offsets import Commit
from broker.group.records import CommittedOffset, OffsetKey
from broker.group.service import OffsetRecord, Request, Response
from broker.ids import BrokerId, LeaderEpoch, Offset
from broker.units import DurationMs, TimeMs
from replication.groups.client.assigning import DEFAULT_ASSIGNORS, GroupProtocol
from replication.groups.connections import ShardDue, ShardRead
from replication.groups.hosted_coordinator import HostedCoordinator, HostedRoleOptions
from replication.groups.offsets_log import StoredGroup, Uncommitted
from replication.groups.shard import STABLE_MS_MAX, Shard, service_options
from replication.roles.hosted import HostedAppend
from replication.roles.messages import ProduceResponse
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
        self.host: Any = SimpleNamespace(led_log=lambda _: SimpleNamespace(log=self.log), append=self.append)
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

    def append(self, partition: int, _batch: bytes, _out: Outbox) -> HostedAppend:
        """Append one record, which its offset numbers."""
        self.log.log_end_offset += 1
        return HostedAppend(ErrorCode.NONE, self.log.log_end_offset - 1)

    def produced(self, number: int, error: ErrorCode, now_ms: int) -> None:
        """Report the result of an append."""
        response = ProduceResponse(3, number, -1, error, Offset(number), True)
        self.shard.on_produced(self.host, response, TimeMs(now_ms), self.out)

    def ask(self, now_ms: int, request: Request = ASK, group_id: str = "g") -> None:
        caller: Any = None
        self.shard.handle(self.host, (caller, group_id, request), TimeMs(now_ms), self.out)

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


def beat(epoch: int, member_id: str = "m") -> ConsumerGroupHeartbeatRequest:
    joins: dict[str, Any] = {"rebalance_timeout_ms": DurationMs(30_000), "subscribed_topics": frozenset("t")}
    return ConsumerGroupHeartbeatRequest(
        member_id=MemberId(member_id), epoch=epoch, client_id="x", **(joins | {"owned": frozenset()})
    )


def refused(error: ErrorCode, epoch: int, member_id: str = "m") -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error=error, member_id=MemberId(member_id), epoch=epoch)


def joined_too_late() -> Talk:
    """A member joins at 100 ms; its record at 8 is not replicated in time, and stands in the log all the same."""
    talk = Talk(high_watermark=8)
    talk.ask(100, beat(0))
    talk.produced(8, ErrorCode.REQUEST_TIMED_OUT, 5_100)
    assert talk.told == [refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, 0)]
    talk.told.clear()
    return talk


def joined(*, stored_ms: int = 110) -> Talk:
    """A member joins at 100 ms; its record at 8 is committed, and known to be at `stored_ms`."""
    talk = Talk(high_watermark=8)
    talk.ask(100, beat(0))
    talk.log.high_watermark = 9
    talk.produced(8, ErrorCode.NONE, stored_ms)
    return talk


def waiting_for_another_group() -> Talk:
    """A member that has joined beats while the record at 9, of another group, is not committed."""
    talk = joined()
    talk.ask(120, beat(0), "other")
    talk.told.clear()
    talk.ask(130, beat(0))
    return talk


def test_a_heartbeat_does_not_show_what_an_append_that_timed_out_has_made_of_its_member() -> None:
    """CoordinatorRuntime.waitForPendingWrites: a former leader that hears no follower gives nobody a partition."""
    talk = joined_too_late()
    talk.ask(5_200, beat(0))
    assert talk.told == [], "it was told its partitions, which no later coordinator knows of"
    assert min(delay for delay, _ in talk.out.woken) <= 20
    talk.log.log_end_offset = 10
    assert talk.due(5_220) == []
    talk.log.high_watermark = 9
    (answer,) = talk.due(5_240)
    assert isinstance(answer, ConsumerGroupHeartbeatResponse)
    assert (answer.error, answer.assignment) == (ErrorCode.NONE, frozenset({t(0)}))
    assert talk.due(5_260) == [answer]


def test_a_heartbeat_is_answered_at_once_where_all_is_committed() -> None:
    talk = joined_too_late()
    talk.log.high_watermark = 9
    talk.ask(5_200, beat(0))
    assert [each.error for each in talk.told if isinstance(each, ConsumerGroupHeartbeatResponse)] == [ErrorCode.NONE]


def test_a_heartbeat_waits_no_longer_than_an_append() -> None:
    talk = joined_too_late()
    talk.ask(5_200, beat(0))
    assert talk.due(5_200 + STABLE_MS_MAX - 1) == []
    assert talk.due(5_200 + STABLE_MS_MAX) == [refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, 0)]


def test_a_heartbeat_that_waits_is_refused_as_the_broker_ceases_to_lead() -> None:
    talk = joined_too_late()
    talk.ask(5_200, beat(0))
    talk.shard.close(TimeMs(5_300), talk.out)
    assert talk.told == [refused(ErrorCode.NOT_COORDINATOR, 0)]


def test_a_heartbeat_waits_for_records_of_other_groups_too() -> None:
    """The records of a partition are committed in order, whichever group they are of."""
    talk = waiting_for_another_group()
    assert talk.told == []
    talk.log.high_watermark = 10
    assert len(talk.due(150)) == 1


def test_what_waits_is_answered_as_the_result_of_the_append_comes_and_not_only_when_it_is_looked_for() -> None:
    talk = waiting_for_another_group()
    talk.log.high_watermark = 10
    talk.produced(9, ErrorCode.NONE, 140)
    assert [each.error for each in talk.told if isinstance(each, ConsumerGroupHeartbeatResponse)] == [
        ErrorCode.NONE
    ] * 2


def test_a_member_whose_session_is_over_as_a_result_comes_is_removed_with_it() -> None:
    talk = joined(stored_ms=45_100)
    assert talk.log.log_end_offset == 10
    talk.told.clear()
    talk.log.high_watermark = 10
    talk.produced(9, ErrorCode.NONE, 45_110)
    talk.ask(45_200, beat(1))
    assert talk.told == [refused(ErrorCode.UNKNOWN_MEMBER_ID, 1)]


def test_a_removal_that_could_not_be_stored_is_tried_again_though_nothing_else_happens() -> None:
    """The member's session of 45 s is over; its removal is not stored, is tried again after 500 ms, and holds."""
    talk = joined()
    talk.due(45_100)
    assert talk.log.log_end_offset == 10
    talk.out.woken.clear()
    talk.produced(9, ErrorCode.NOT_ENOUGH_REPLICAS, 45_200)
    assert [delay_ms for delay_ms, _ in talk.out.woken] == [500]
    talk.due(45_700)
    talk.told.clear()
    talk.ask(45_800, beat(1))
    assert talk.told == [refused(ErrorCode.UNKNOWN_MEMBER_ID, 1)]


def test_a_heartbeat_that_is_refused_waits_for_nothing() -> None:
    """Kafka's coordinator throws, and an operation that fails has no records to wait for."""
    talk = joined_too_late()
    talk.ask(5_200, beat(7, "stranger"))
    assert talk.told == [refused(ErrorCode.UNKNOWN_MEMBER_ID, 7, "stranger")]


def loaded(monkeypatch: pytest.MonkeyPatch, **offsets: int) -> Talk:
    """A coordinator has read commits above its high watermark, 7: of each group the one that stands at this offset."""
    found = {group_id: StoredGroup() for group_id in offsets}
    for group_id, at in offsets.items():
        entry = OffsetRecord(attrs.evolve(KEY, group_id=group_id), committed(at))
        found[group_id].uncommitted = [Uncommitted(Offset(at), entry)]
    monkeypatch.setattr("replication.groups.shard.read_groups", lambda _journal, _log: found)
    talk = Talk(high_watermark=7)
    talk.shard.load(talk.host, TimeMs(0), talk.out)
    return talk


def test_offsets_of_all_groups_that_were_not_committed_are_applied_in_the_order_of_the_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Group a's record stands behind group b's; the high watermark passes b's first."""
    talk = loaded(monkeypatch, a=8, b=7)
    talk.log.high_watermark = 8
    talk.due(10)
    offsets = {each: talk.shard.services[each].offsets.fetch(each, t(0)) for each in ("a", "b")}
    assert offsets == {"a": None, "b": committed(7)}


def test_a_fetch_that_waited_for_the_result_of_an_append_shows_what_is_committed_by_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    talk = loaded(monkeypatch, a=7)
    talk.ask(10, OffsetCommitRequest(commits=(Commit(t(0), Offset(3), None, ""),)), "b")
    talk.ask(20, group_id="a")
    assert talk.told == []
    talk.log.high_watermark = 9
    talk.produced(8, ErrorCode.NONE, 30)
    assert talk.told == [OffsetCommitResponse((ErrorCode.NONE,)), told(7)]


def test_a_new_group_that_is_due_already_is_looked_at_in_the_same_millisecond() -> None:
    """Offsets are looked through every 10 minutes; the group's first request waits for what is not committed."""
    talk = Talk(high_watermark=7)
    talk.due(600_000)
    talk.ask(700_000, ASK, "new")
    assert talk.out.woken[-1] == (0, ShardDue(3, 1))


def test_a_member_whose_session_is_over_as_a_fetch_has_waited_enough_is_removed_with_it() -> None:
    talk = joined()
    talk.ask(45_080, beat(0), "other")
    talk.ask(45_090)
    talk.told.clear()
    talk.log.high_watermark = 10
    talk.produced(9, ErrorCode.NONE, 45_150)
    assert told(7) in talk.told
    assert talk.log.log_end_offset == 11, "the removal of the member is appended"


def test_a_timer_of_a_former_coordinator_runs_nothing_and_plans_nothing() -> None:
    talk = Talk(high_watermark=7)
    talk.ask(100)
    planned = list(talk.out.woken)
    talk.log.high_watermark = 8
    talk.shard.on_due(talk.host, ShardDue(3, 2), TimeMs(120), talk.out)
    assert (talk.told, talk.out.woken) == ([], planned)


def test_a_coordinator_that_still_reads_refuses_all_but_heartbeats_of_classic_members() -> None:
    """GroupCoordinatorService.heartbeat: a classic member goes on as before; CoordinatorRuntime refuses the rest."""
    talk = Talk(high_watermark=8)
    talk.shard.is_loading = True
    talk.ask(100, HeartbeatRequest(ticket=Ticket(0), member_id=MemberId("m"), generation=3))
    talk.ask(100)
    talk.ask(100, beat(1))
    (heartbeat, *refusals) = talk.told
    assert isinstance(heartbeat, HeartbeatResponse)
    assert heartbeat.error is ErrorCode.NONE
    assert refusals == [
        OffsetFetchResponse(error=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 1),
    ]


def hosted_by(broker: BrokerId) -> HostedCoordinator:
    """Return the coordinator of a broker."""
    options = HostedRoleOptions(
        layout=LAYOUT,
        service=service_options(DEFAULT_ASSIGNORS[GroupProtocol.CONSUMER], {"t": 3}, 1),
        load_ms_max=DurationMs(500),
        wall_clock_ms=0,
    )
    host: Any = SimpleNamespace(broker=broker)
    return HostedCoordinator(host, options, ManualClock(), SplitMix64(1))


def test_a_new_epoch_of_the_same_leader_keeps_what_was_read() -> None:
    """What is under way goes on: as in Kafka, nothing is read again where a coordinator is active."""
    hosted, out = hosted_by(BrokerId(1)), Outbox()
    partition = LAYOUT.of_group("g")
    hosted.on_gained(partition, LeaderEpoch(1), TimeMs(0), out)
    read, reads = hosted.shards[partition], list(out.woken)
    hosted.on_gained(partition, LeaderEpoch(2), TimeMs(900), out)
    assert hosted.shards[partition] is read
    assert (len(reads), out.woken) == (1, reads)


def test_a_partition_counts_as_read_only_while_the_coordinator_that_read_it_is_there() -> None:
    hosted, out = hosted_by(BrokerId(1)), Outbox()
    partition = LAYOUT.of_group("g")
    hosted.on_gained(partition, LeaderEpoch(1), TimeMs(0), out)
    ((_, read),) = out.woken
    assert isinstance(read, ShardRead)
    assert hosted.has_read(read)
    hosted.on_lost(partition, TimeMs(10), out)
    assert not hosted.has_read(read)
    hosted.on_gained(partition, LeaderEpoch(2), TimeMs(20), out)
    assert not hosted.has_read(read)

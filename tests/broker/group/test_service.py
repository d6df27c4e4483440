"""A group's service: what is answered when, what is stored, and what another coordinator makes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import pytest

from broker.entropy import SplitMix64
from broker.error_codes import ErrorCode
from broker.group.assignors import Subscriber
from broker.group.classic import (
    ClassicOptions,
    GroupState,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    Protocol,
    SyncGroupRequest,
    SyncGroupResponse,
    Ticket,
)
from broker.group.consumer import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerOptions,
    GroupContext,
)
from broker.group.members import Departure, MemberId
from broker.group.messages import OffsetCommitRequest, OffsetCommitResponse, OffsetFetchRequest, OffsetFetchResponse
from broker.group.offsets import Commit, OffsetOptions
from broker.group.protocol import Subscription, write_assignment
from broker.group.service import (
    EXPIRY_CHECK_MS,
    Append,
    GroupEntry,
    GroupService,
    OffsetRecord,
    Output,
    Reply,
    Response,
    ServiceOptions,
)
from broker.ids import Offset, PartitionId, TopicPartition
from broker.releases import Release
from broker.units import DurationMs, TimeMs

P0 = TopicPartition("t", PartitionId(0))
RETENTION_MS = 60_000
OWN = Ticket(0)
"""Requests carry a ticket of their own too; the service goes by the one that it is handed."""


class ToFirst:
    """Gives everything to the first member."""

    name = "uniform"

    def assign(
        self, members: Sequence[Subscriber], partition_counts: Mapping[str, int]
    ) -> Mapping[MemberId, frozenset[TopicPartition]]:
        return {members[0].member_id: frozenset({P0})}


OPTIONS = ServiceOptions(
    classic=ClassicOptions(),
    context=GroupContext(options=ConsumerOptions(), assignors=(ToFirst(),), topics={"t": 1}),
    offsets=OffsetOptions(retention_ms=DurationMs(RETENTION_MS)),
)


class Driver:
    """One service, and a store that says when it stored."""

    def __init__(self, options: ServiceOptions = OPTIONS) -> None:
        self.service = GroupService("g", options, SplitMix64(1))
        self.now_ms = 0
        self.replies: dict[int, Response] = {}
        self.appends: list[Append] = []
        self.kept: list[GroupEntry] = []
        self._count = 0

    def take(self, outputs: tuple[Output, ...]) -> None:
        for output in outputs:
            if isinstance(output, Reply):
                assert output.ticket not in self.replies, "a request is answered once"
                self.replies[output.ticket] = output.response
            else:
                self.appends.append(output)

    def send(self, request: object) -> int:
        """Hand a request in and return its ticket."""
        self._count += 1
        self.take(self.service.handle(Ticket(self._count), request, TimeMs(self.now_ms)))  # type: ignore[arg-type]  # Any request.
        return self._count

    def store(self, error: ErrorCode = ErrorCode.NONE) -> None:
        """Say of all appends how they went."""
        appends, self.appends = self.appends, []
        for append in appends:
            if error is ErrorCode.NONE:
                self.kept += append.entries
            self.take(self.service.stored(append.token, error, TimeMs(self.now_ms)))

    def at(self, now_ms: int) -> None:
        while self.service.next_ms() <= now_ms:
            self.now_ms = max(self.now_ms, self.service.next_ms())
            self.take(self.service.advance(TimeMs(self.now_ms)))
        self.now_ms = now_ms

    def took_over(self) -> Driver:
        """Return another coordinator that has read what was stored."""
        other = Driver()
        other.now_ms = self.now_ms
        other.service.load(self.kept, TimeMs(self.now_ms))
        return other

    def join(self, **named: Any) -> int:
        """Send a JoinGroup and return its ticket."""
        fields: dict[str, Any] = {
            "protocols": (Protocol("range", Subscription(topics=("t",)).to_bytes()),),
            "session_timeout_ms": DurationMs(45_000),
            "rebalance_timeout_ms": DurationMs(300_000),
            **named,
        }
        return self.send(JoinGroupRequest(ticket=OWN, client_id="c", **fields))

    def joined_and_committed(self) -> MemberId:
        """Bring one classic member into generation 1, and store a commit of its."""
        me = self.joined()
        self.commit(me, 1)
        self.store()
        return me

    def beat(self, me: MemberId, count: int) -> None:
        """Send heartbeats of a member of generation 1, each 30 s after the last thing that happened."""
        for _ in range(count):
            self.at(self.now_ms + 30_000)
            self.send(HeartbeatRequest(ticket=OWN, member_id=me, generation=1))

    def joined(self) -> MemberId:
        """Bring one classic member into generation 1."""
        ticket = self.join(knows_two_steps=False)
        self.at(self.now_ms + 3_000)
        answer = self.replies[ticket]
        assert isinstance(answer, JoinGroupResponse)
        me = answer.member_id
        share = ((me, write_assignment([P0])),)
        self.send(SyncGroupRequest(ticket=OWN, member_id=me, generation=answer.generation, assignments=share))
        self.store()
        return me

    def commit(self, member_id: str, generation: int, offset: int = 7) -> int:
        commits = (Commit(P0, Offset(offset)),)
        return self.send(OffsetCommitRequest(commits=commits, member_id=MemberId(member_id), generation=generation))

    def committed(self) -> int | None:
        answer = self.replies[self.send(OffsetFetchRequest(partitions=(P0,)))]
        assert isinstance(answer, OffsetFetchResponse)
        return answer.offsets[0]


def test_an_assignment_and_a_commit_are_answered_when_they_are_stored() -> None:
    driver = Driver()
    me = driver.joined()
    ticket = driver.commit(me, 1)
    assert ticket not in driver.replies
    assert driver.committed() is None
    driver.store()
    assert driver.replies[ticket] == OffsetCommitResponse((ErrorCode.NONE,))
    assert driver.committed() == 7


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ],
)
def test_a_commit_that_is_not_stored_is_refused_and_not_known(failure: ErrorCode, told: ErrorCode) -> None:
    driver = Driver()
    me = driver.joined()
    ticket = driver.commit(me, 1)
    driver.store(failure)
    assert driver.replies[ticket] == OffsetCommitResponse((told,))
    assert driver.committed() is None


def test_a_member_that_commits_needs_no_heartbeat() -> None:
    driver = Driver()
    me = driver.joined()
    for _ in range(3):
        driver.at(driver.now_ms + 40_000)
        driver.commit(me, 1)
        driver.store()
    assert list(driver.service.members) == [me]
    driver.at(driver.now_ms + 46_000)
    assert driver.service.take_departed() == (("c", Departure.SESSION),)


def test_another_coordinator_goes_on_with_the_generation_and_the_offsets() -> None:
    driver = Driver()
    me = driver.joined_and_committed()
    other = driver.took_over()
    assert (other.service.classic.group.state, other.service.generation) == (GroupState.STABLE, 1)
    ticket = other.send(HeartbeatRequest(ticket=OWN, member_id=me, generation=1))
    assert other.replies[ticket] == HeartbeatResponse(ticket=Ticket(ticket))
    assert other.committed() == 7
    sync = other.send(SyncGroupRequest(ticket=OWN, member_id=me, generation=1))
    answer = other.replies[sync]
    assert isinstance(answer, SyncGroupResponse)
    assert answer.assignment == write_assignment([P0])


def test_whoever_waits_when_the_coordinator_moves_is_told_to_look_for_it() -> None:
    driver = Driver()
    me = driver.joined()
    ticket = driver.commit(me, 1)
    joining = driver.join(knows_two_steps=False)
    driver.take(driver.service.unload(TimeMs(driver.now_ms)))
    assert driver.replies[ticket] == OffsetCommitResponse((ErrorCode.NOT_COORDINATOR,))
    answer = driver.replies[joining]
    assert isinstance(answer, JoinGroupResponse)
    assert answer.error is ErrorCode.NOT_COORDINATOR


def beat(driver: Driver, **named: object) -> int:
    full = {"rebalance_timeout_ms": DurationMs(300_000), "subscribed_topics": frozenset({"t"}), "owned": frozenset()}
    return driver.send(ConsumerGroupHeartbeatRequest(client_id="c", **{**full, **named}))  # type: ignore[arg-type]  # Named by the tests.


def test_a_consumer_member_is_answered_when_the_group_that_it_is_told_of_is_stored() -> None:
    driver = Driver()
    ticket = beat(driver)
    assert ticket not in driver.replies
    driver.store()
    answer = driver.replies[ticket]
    assert isinstance(answer, ConsumerGroupHeartbeatResponse)
    assert (answer.epoch, answer.assignment) == (2, frozenset({P0}))
    other = driver.took_over()
    assert other.service.consumer.group == driver.service.consumer.group
    other.at(driver.now_ms + 45_000)
    assert other.service.take_departed() == (("c", Departure.SESSION),)


def test_a_consumer_group_that_cannot_be_stored_is_again_what_it_was() -> None:
    driver = Driver()
    ticket = beat(driver)
    driver.store(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    answer = driver.replies[ticket]
    assert isinstance(answer, ConsumerGroupHeartbeatResponse)
    assert answer.error is ErrorCode.NOT_COORDINATOR
    assert dict(driver.service.members) == {}


def test_members_of_the_two_protocols_do_not_meet() -> None:
    driver = Driver()
    driver.joined()
    answer = driver.replies[beat(driver)]
    assert isinstance(answer, ConsumerGroupHeartbeatResponse)
    assert answer.error is ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize(("release", "first_epoch"), [("4.2", 1), ("4.3", 2)])
def test_a_consumer_group_is_one_from_its_first_member_on_and_stays_one_when_it_is_empty(
    release: str, first_epoch: int
) -> None:
    """Groups begin at epoch 0, and at 1 since 4.3: the first member brings the first rebalance, and its end another."""
    options = ConsumerOptions(release=Release(release))
    driver = Driver(attrs.evolve(OPTIONS, context=attrs.evolve(OPTIONS.context, options=options)))
    service = driver.service
    assert (service.is_consumer_group, service.generation, service.rebalance_count) == (False, 0, 0)
    beat(driver, member_id=MemberId("m"))
    driver.store()
    assert (dict(service.members), service.generation, service.rebalance_count) == ({"m": "c"}, first_epoch, 1)
    beat(driver, member_id=MemberId("m"), epoch=-1)
    driver.store()
    assert (dict(service.members), service.generation, service.rebalance_count) == ({}, first_epoch + 1, 2)
    assert service.is_consumer_group


def test_offsets_are_forgotten_when_the_group_has_long_been_empty_and_not_before() -> None:
    driver = Driver()
    me = driver.joined_and_committed()
    driver.send(LeaveGroupRequest(ticket=OWN, members=((me, None),)))
    driver.store()
    left_ms = driver.now_ms
    driver.at(600_000)
    assert driver.now_ms - left_ms > RETENTION_MS
    assert [entry for append in driver.appends for entry in append.entries if isinstance(entry, OffsetRecord)] != []
    assert driver.committed() == 7, "what is not stored is not known"
    driver.store(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert driver.committed() == 7, "what could not be stored is not known either"
    driver.at(2 * EXPIRY_CHECK_MS)
    driver.store()
    assert driver.committed() is None


def test_offsets_of_a_group_age_from_when_its_last_member_left_and_not_from_the_commit() -> None:
    """KIP-211: the commit is older than the retention when the coordinator looks, and the group's end is not."""
    driver = Driver()
    me = driver.joined_and_committed()
    driver.beat(me, 19)
    driver.send(LeaveGroupRequest(ticket=OWN, members=((me, None),)))
    driver.store()
    driver.at(EXPIRY_CHECK_MS)
    assert (driver.appends, driver.committed()) == ([], 7)
    driver.at(2 * EXPIRY_CHECK_MS)
    driver.store()
    assert driver.committed() is None


def test_a_coordinator_that_takes_over_looks_for_old_offsets_ten_minutes_later() -> None:
    """GroupCoordinatorShard.onLoaded sets the timer of offsets.retention.check.interval.ms (4.3.1)."""
    driver = Driver()
    driver.commit("", -1)
    driver.store()
    driver.now_ms = 3 * EXPIRY_CHECK_MS
    other = driver.took_over()
    other.at(4 * EXPIRY_CHECK_MS - 1)
    assert (other.appends, other.committed()) == ([], 7)
    other.at(4 * EXPIRY_CHECK_MS)
    other.store()
    assert other.committed() is None

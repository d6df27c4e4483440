"""A service of groups: what is answered when, what is stored, and what another coordinator makes of it."""

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
from broker.group.consumer.member import STATIC_LEAVING_EPOCH
from broker.group.members import Departure, InstanceId, MemberId
from broker.group.messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
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
    ("failure", "response_error"),
    [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ],
)
def test_a_commit_that_is_not_stored_is_refused_and_not_known(failure: ErrorCode, response_error: ErrorCode) -> None:
    driver = Driver()
    me = driver.joined()
    ticket = driver.commit(me, 1)
    driver.store(failure)
    assert driver.replies[ticket] == OffsetCommitResponse((response_error,))
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


def test_whoever_waits_when_the_coordinator_moves_is_asked_to_look_for_it() -> None:
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


def test_a_consumer_member_is_answered_when_the_group_of_its_answer_is_stored() -> None:
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


SESSION_MS = 45_000
RETRY_MS = 500


def joining(name: str) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        member_id=MemberId(name),
        subscribed_topics=frozenset({"t"}),
        rebalance_timeout_ms=DurationMs(300_000),
        owned=frozenset(),
    )


def store_first(driver: Driver, error: ErrorCode) -> None:
    """Say of the oldest append how it went."""
    append = driver.appends.pop(0)
    driver.take(driver.service.stored(append.token, error, TimeMs(driver.now_ms)))


def test_what_is_refused_is_gone_and_what_was_appended_before_stays() -> None:
    """b's join is refused while a's is not yet replicated: the log holds a, and so does the coordinator."""
    driver = Driver()
    first = driver.send(joining("a"))
    second = driver.send(joining("b"))
    refused = driver.appends.pop(1)
    driver.take(driver.service.stored(refused.token, ErrorCode.NOT_ENOUGH_REPLICAS, TimeMs(0)))
    assert set(driver.service.consumer.group.members) == {"a"}
    store_first(driver, ErrorCode.NONE)
    answers = [driver.replies[ticket] for ticket in (first, second)]
    assert [answer.error for answer in answers if isinstance(answer, ConsumerGroupHeartbeatResponse)] == [
        ErrorCode.NONE,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ]


def test_what_is_not_replicated_in_time_stays_as_it_stays_in_the_log() -> None:
    driver = Driver()
    ticket = driver.send(joining("a"))
    store_first(driver, ErrorCode.REQUEST_TIMED_OUT)
    answer = driver.replies[ticket]
    assert isinstance(answer, ConsumerGroupHeartbeatResponse)
    assert answer.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert set(driver.service.consumer.group.members) == {"a"}


@pytest.mark.parametrize("refused_ms", [SESSION_MS, SESSION_MS + 400])
def test_a_member_whose_end_was_refused_is_removed_half_a_second_later(refused_ms: int) -> None:
    driver = Driver()
    driver.send(joining("a"))
    driver.store()
    driver.at(SESSION_MS)
    assert driver.service.consumer.group.members == {}
    driver.at(refused_ms)
    driver.store(ErrorCode.NOT_ENOUGH_REPLICAS)
    driver.at(refused_ms + RETRY_MS - 1)
    assert set(driver.service.consumer.group.members) == {"a"}
    driver.at(refused_ms + RETRY_MS)
    driver.store()
    assert driver.service.consumer.group.members == {}


def test_a_static_member_that_left_for_a_while_is_removed_as_well_when_its_end_was_refused() -> None:
    """Kafka's session timer is set again after each refusal, whatever the member's epoch."""
    driver = Driver()
    driver.send(attrs.evolve(joining("a"), instance_id=InstanceId("i")))
    driver.store()
    driver.send(
        ConsumerGroupHeartbeatRequest(member_id=MemberId("a"), instance_id=InstanceId("i"), epoch=STATIC_LEAVING_EPOCH)
    )
    driver.store()
    driver.at(SESSION_MS)
    driver.store(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert set(driver.service.consumer.group.members) == {"a"}
    driver.at(SESSION_MS + RETRY_MS)
    driver.store()
    assert driver.service.consumer.group.members == {}


A, B = MemberId("a"), MemberId("b")
OTHER = TopicPartition("u", PartitionId(0))
LONG = "x" * 4097
"""One character more than offset.metadata.max.bytes allows."""


def joined(driver: Driver, name: MemberId) -> int:
    """Bring a member in and return its epoch."""
    ticket = beat(driver, member_id=name)
    driver.store()
    answer = driver.replies[ticket]
    assert isinstance(answer, ConsumerGroupHeartbeatResponse)
    return answer.epoch


def commit(driver: Driver, name: MemberId, epoch: int, *commits: Commit) -> tuple[ErrorCode, ...]:
    ticket = driver.send(OffsetCommitRequest(commits=commits, member_id=name, generation=epoch))
    driver.store()
    answer = driver.replies[ticket]
    assert isinstance(answer, OffsetCommitResponse)
    return answer.errors


def test_a_heartbeat_that_changes_nothing_stores_nothing_and_is_answered_at_once() -> None:
    driver = Driver()
    epoch = joined(driver, A)
    again = beat(driver, member_id=A, epoch=epoch, owned=frozenset({P0}))
    assert driver.appends == []
    assert again in driver.replies


@pytest.mark.parametrize(
    ("commits", "errors"),
    [
        ((Commit(P0, Offset(1)),), (ErrorCode.NONE,)),
        ((Commit(OTHER, Offset(1)),), (ErrorCode.STALE_MEMBER_EPOCH,)),
        ((Commit(P0, Offset(1)), Commit(OTHER, Offset(1))), (ErrorCode.STALE_MEMBER_EPOCH,) * 2),
        (
            (Commit(P0, Offset(1)), Commit(OTHER, Offset(1), metadata=LONG)),
            (ErrorCode.NONE, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ),
        ((Commit(P0, Offset(1), metadata=LONG),), (ErrorCode.STALE_MEMBER_EPOCH,)),
    ],
)
def test_a_commit_of_a_former_epoch_is_judged_by_the_partitions_whose_notes_are_short_enough(
    commits: tuple[Commit, ...], errors: tuple[ErrorCode, ...]
) -> None:
    """KIP-1251: a holds P0 since its first epoch, and is in a later one since b came and a second went by."""
    driver = Driver()
    driver.at(1_000)
    first = joined(driver, A)
    driver.at(3_000)
    joined(driver, B)
    beat(driver, member_id=A, epoch=first, owned=frozenset({P0}))
    driver.store()
    assert driver.service.consumer.group.members[A].epoch > first
    assert commit(driver, A, first, *commits) == errors


def test_a_consumer_group_keeps_the_offsets_of_the_topics_that_it_reads_and_no_others() -> None:
    """KIP-211, ConsumerGroup.offsetExpirationCondition: others age from their commit, also while there are members."""
    driver = Driver()
    epoch = joined(driver, A)
    assert commit(driver, A, epoch, Commit(P0, Offset(7)), Commit(OTHER, Offset(8))) == (ErrorCode.NONE,) * 2
    while driver.now_ms < EXPIRY_CHECK_MS:
        driver.at(driver.now_ms + 30_000)
        beat(driver, member_id=A, epoch=epoch, owned=frozenset({P0}))
    driver.store()
    answer = driver.replies[driver.send(OffsetFetchRequest(partitions=(P0, OTHER)))]
    assert answer == OffsetFetchResponse((Offset(7), None))


def leave_classic(driver: Driver, me: MemberId) -> None:
    driver.send(LeaveGroupRequest(ticket=OWN, members=((me, None),)))
    driver.store()


def join_error(driver: Driver, **named: Any) -> ErrorCode:
    answer = driver.replies[driver.join(**named)]
    assert isinstance(answer, JoinGroupResponse)
    return answer.error


def test_each_protocol_begins_anew_after_an_empty_group_of_the_other() -> None:
    """GroupMetadataManager.maybeDeleteEmptyConsumerGroup and maybeDeleteEmptyClassicGroup, 4.4.0; offsets stay."""
    driver = Driver()
    leave_classic(driver, driver.joined_and_committed())
    beat(driver, member_id=A)
    driver.store()
    assert (driver.service.is_consumer_group, driver.service.generation) == (True, 2)
    beat(driver, member_id=A, epoch=-1)
    driver.store()
    me = driver.joined()
    assert (driver.service.is_consumer_group, driver.service.generation) == (False, 1)
    leave_classic(driver, me)
    assert joined(driver, A) == 2
    assert driver.committed() == 7


def test_a_named_member_ends_an_empty_consumer_group_and_is_unknown_to_it() -> None:
    driver = Driver()
    beat(driver, member_id=A)
    beat(driver, member_id=A, epoch=-1)
    driver.store()
    assert join_error(driver, member_id=MemberId("stranger")) is ErrorCode.UNKNOWN_MEMBER_ID
    assert not driver.service.is_known


def test_a_consumer_group_takes_no_classic_member() -> None:
    """As with group.consumer.migration.policy=disabled; otherwise Kafka takes the member (KIP-848's migration)."""
    driver = Driver()
    beat(driver, member_id=A)
    driver.store()
    for member_id in ("", A, B):
        assert join_error(driver, member_id=MemberId(member_id)) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def deleted(driver: Driver, topic: str) -> ErrorCode:
    ticket = driver.send(OffsetDeleteRequest((TopicPartition(topic, PartitionId(0)),)))
    driver.store()
    answer = driver.replies[ticket]
    assert isinstance(answer, OffsetDeleteResponse)
    return answer.errors[0]


def test_offsets_of_a_subscribed_topic_are_not_deleted_as_of_the_last_generation() -> None:
    """ClassicGroup.isSubscribedToTopic, 4.4.0: before a first generation, consumers may subscribe to any topic."""
    driver = Driver()
    driver.join(knows_two_steps=False)
    assert deleted(driver, "u") is ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    driver = Driver()
    me = driver.joined()
    assert (deleted(driver, "t"), deleted(driver, "u")) == (ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NONE)
    assert deleted(driver.took_over(), "t") is ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    leave_classic(driver, me)
    assert deleted(driver, "t") is ErrorCode.NONE
    driver.join(knows_two_steps=False)
    assert deleted(driver, "t") is ErrorCode.NONE


def test_a_subscription_is_read_as_version_0() -> None:
    """The owned partitions behind the topics are damaged here, and are not looked at."""
    driver = Driver()
    data = bytes.fromhex("00010000000100017400000000ffffffff")
    driver.join(knows_two_steps=False, protocols=(Protocol("range", data),))
    driver.at(3_000)
    assert (deleted(driver, "t"), deleted(driver, "u")) == (ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NONE)

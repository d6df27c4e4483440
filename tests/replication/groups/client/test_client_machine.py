"""One consumer of any protocol and a coordinator that errs: it keeps its promises, and recovers when all is well again.

For a while all goes wrong; then all is answered truly, and after some minutes the consumer must own what it was given,
read on, commit, and send heartbeats. What it says is compared with what its coordinator (`one_member`) answered last.

Source: Kafka's ConsumerCoordinator, AbstractCoordinator and ConsumerMembershipManager, as facts: who sends what after
which error; one heartbeat, one JoinGroup or SyncGroup, one OffsetFetch and one FindCoordinator are under way at most.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import attrs
import pytest
from hypothesis import given, settings

from broker.entropy import SplitMix64
from broker.error_codes import ErrorCode
from broker.group.classic import (
    HeartbeatResponse,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from broker.group.consumer import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from broker.group.members import InstanceId
from broker.group.messages import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from broker.ids import BrokerId, Offset, TopicPartition
from broker.units import DurationMs, TimeMs
from replication.groups.client.assigning import GroupProtocol
from replication.groups.client.link import ClientOptions, ClientSpec
from replication.groups.client.messages import (
    Committed,
    Died,
    Disconnected,
    PartitionsAssigned,
    PartitionsRevoked,
    Read,
    Send,
    TopicMetadataRequest,
)
from replication.groups.member import new_client
from tests.replication.groups.client.one_member import EVERY, TOPICS, OneMember
from tests.support.drawing import DRAWS, Draws

STORM_MS: Final = 90_000
CALM_MS: Final = 150_000
_ASSIGNORS: Final = {
    GroupProtocol.EAGER: ("range", "roundrobin"),
    GroupProtocol.COOPERATIVE: ("cooperative-sticky",),
    GroupProtocol.CONSUMER: ("uniform",),
}
_ALONE: Final = (JoinGroupRequest, SyncGroupRequest)


class _Feed:
    """Ten records a second in each partition."""

    def end_offset(self, partition: TopicPartition, now_ms: TimeMs) -> Offset:
        """Return the offset after the last record."""
        return Offset(now_ms // 100)


class _Life(OneMember):
    """Run one consumer."""

    def __init__(self, draws: Draws, protocol: GroupProtocol) -> None:
        is_consumer = protocol is GroupProtocol.CONSUMER
        super().__init__(draws, draws.one((None, None, InstanceId("i"))), is_consumer=is_consumer)
        self._options = ClientOptions(
            max_poll_interval_ms=DurationMs(60_000),
            metadata_age_ms_max=DurationMs(20_000),
            request_timeout_ms=DurationMs(10_000),
            max_poll_records=draws.one((50, 500)),
        )
        spec = ClientSpec(
            name="c",
            group_id="g",
            topics=tuple(TOPICS),
            assignors=_ASSIGNORS[protocol],
            instance_id=self._instance,
            revoke_ms=DurationMs(draws.one((0, 0, 2_000))),
            options=self._options,
        )
        self._feed = _Feed()
        self._client = new_client(spec, protocol, self._feed, SplitMix64(draws.number(0, 10**6)))
        self._now_ms = TimeMs(0)
        self._asked: dict[int, Send] = {}
        self._broker: BrokerId | None = None
        self._said_as: tuple[str, int] = ("", 0)
        self._owned: set[TopicPartition] = set()
        self._at: dict[TopicPartition, int | None] = {}
        self._held: dict[TopicPartition, int] = {}
        self._beat_ms = 0

    def run(self) -> str:
        """Run the storm, the calm and the end."""
        self._take(self._client.start(self._now_ms))
        while not self._told and self._now_ms < STORM_MS and not self._client.is_over:
            self._step()
        if self._client.is_over:
            return self._told or ("" if self._is_fenced else "it is over without a reason")
        self._is_calm = True
        while not self._told and self._now_ms < STORM_MS + CALM_MS:
            self._step()
        return self._told or self._settled() or self._closed()

    # The world.

    def _step(self) -> None:
        draws = self._draws
        if self._asked and (self._is_calm or not draws.is_one_in(3)):
            ticket = min(self._asked) if self._is_calm or self._is_consumer else draws.one(sorted(self._asked))
            self._now_ms = TimeMs(self._now_ms + draws.number(0, 20))
            self._answer(ticket)
            return
        next_ms = self._client.next_ms()
        due_ms = self._now_ms + 1_000 if next_ms is None else max(next_ms, self._now_ms)
        if not self._is_calm and draws.is_one_in(25):
            self.share = frozenset(draws.some(EVERY))
            self.is_calling = True
        if not self._is_calm and draws.is_one_in(40):
            for_ms = DurationMs(draws.one((3_000, 70_000)))
            self._take(self._client.stall(for_ms, self._now_ms))
        self._now_ms = TimeMs(min(due_ms, self._now_ms + 3_000))
        self._take(self._client.advance(self._now_ms))

    def _answer(self, ticket: int) -> None:
        draws, send = self._draws, self._asked.pop(ticket)
        if not self._is_calm and draws.is_one_in(12):
            if draws.is_one_in(2):
                self._hear(send, Disconnected())
            return
        self._hear(send, self._answer_to(send.request))

    def _hear(self, send: Send, response: Any) -> None:
        is_beat = isinstance(response, HeartbeatResponse | ConsumerGroupHeartbeatResponse)
        if is_beat and response.error is ErrorCode.NONE:
            self._beat_ms = self._now_ms
        if isinstance(send.request, FindCoordinatorRequest) and isinstance(response, FindCoordinatorResponse):
            self._broker = response.broker if response.error is ErrorCode.NONE else self._broker
        is_known = isinstance(response, OffsetFetchResponse) and response.error is ErrorCode.NONE
        if is_known and isinstance(send.request, OffsetFetchRequest):
            for partition, offset in zip(send.request.partitions, response.offsets, strict=True):
                self._held[partition] = offset or 0
        self._take(self._client.handle(send.ticket, response, self._now_ms))

    # What the consumer says and does.

    def _take(self, outputs: tuple[Any, ...]) -> None:
        for output in outputs:
            told = self._sent(output) if isinstance(output, Send) else self._noted(output)
            self._told = self._told or told
        self._said_as = (self._client.member_id, self._client.generation)
        if self._owned != self._client.subscriptions.owned:
            self._told = self._told or f"it owns {self._client.subscriptions.owned}, and said {self._owned}"

    def _sent(self, send: Send) -> str:
        request = send.request
        self._asked = {ticket: each for ticket, each in self._asked.items() if not self._is_given_up(each)}
        kinds = Counter(
            "join" if isinstance(each.request, _ALONE) else type(each.request) for each in self._asked.values()
        )
        kind = "join" if isinstance(request, _ALONE) else type(request)
        is_single = isinstance(request, FindCoordinatorRequest | OffsetFetchRequest | JoinGroupRequest)
        if is_single and kinds[kind] and kind != "join":
            return f"it sends {request} while another is under way"
        is_free = isinstance(request, FindCoordinatorRequest | TopicMetadataRequest)
        if send.broker != (None if is_free else self._broker):
            return f"it sends {request} to {send.broker}, its coordinator is {self._broker}"
        if send.ticket in self._asked:
            return f"it uses the ticket {send.ticket} again"
        self._asked[send.ticket] = attrs.evolve(send, timeout_ms=DurationMs(self._now_ms + send.timeout_ms))
        instance = getattr(request, "instance_id", self._instance)
        if instance != self._instance:
            return f"it speaks as {instance}: {request}"
        if isinstance(request, OffsetCommitRequest):
            return self._committing(request)
        if isinstance(request, OffsetFetchRequest) and not set(request.partitions) <= self._owned:
            return f"it fetches offsets of {request.partitions}, and owns {self._owned}"
        return ""

    def _is_given_up(self, send: Send) -> bool:
        return send.timeout_ms <= self._now_ms

    def _committing(self, request: OffsetCommitRequest) -> str:
        for commit in request.commits:
            position = self._at.get(commit.partition)
            if commit.partition not in self._owned or commit.offset != (
                position if position is not None else commit.offset
            ):
                return f"it commits {commit}, and is at {position}"
        # What a consumer sends before it leaves its generation, in one step, it sends in that generation.
        as_whom = (self._said_as, (self._client.member_id, self._client.generation))
        if (request.member_id, request.generation) not in as_whom:
            return f"it commits as {request.member_id} in {request.generation}"
        return ""

    def _noted(self, note: Any) -> str:
        match note:
            case PartitionsAssigned(partitions):
                if partitions & self._owned:
                    return f"{partitions & self._owned} are assigned again"
                self._owned |= partitions
                for each in partitions:
                    self._at[each] = None
                    self._held.pop(each, None)
            case PartitionsRevoked(partitions, _):
                if not partitions <= self._owned:
                    return f"{partitions - self._owned} are revoked, and were not owned"
                self._owned -= partitions
                for each in partitions:
                    self._at.pop(each, None)
            case Read(partition, start, end):
                at = self._at.get(partition)
                wanted = self._held.get(partition) if at is None else at
                is_within = end <= self._feed.end_offset(partition, self._now_ms)
                if partition not in self._owned or start != wanted or not start < end or not is_within:
                    return f"it reads {partition} from {start} to {end}, and was at {wanted}"
                self._at[partition] = end
            case Committed(partition, offset, error):
                if error is ErrorCode.NONE and offset > self._committed.get(partition, -1):
                    return f"it takes {offset} of {partition} for committed"
            case Died(reason):
                return "" if self._is_fenced else f"it dies: {reason}"
        return ""

    # The end.

    def _settled(self) -> str:
        """Return what a consumer lacks that all has been answered truly for long enough."""
        wanted = self._given if self._is_consumer else self.share
        if self._owned != wanted or (self._is_consumer and self._given != self.share):
            return f"at last it owns {sorted(self._owned)}, and {sorted(wanted)} are its share"
        if self._client.generation != self._epoch:
            return f"at last it is in {self._client.generation}, its group in {self._epoch}"
        if self._now_ms - self._beat_ms > 2 * 5_000:
            return f"its last heartbeat was answered {self._now_ms - self._beat_ms} ms ago"
        end = self._feed.end_offset(EVERY[0], self._now_ms)
        for each in sorted(self._owned):
            at, committed = self._at.get(each), self._committed.get(each)
            # A consumer of few records a poll is behind, and reads what it has missed in bursts.
            is_slow = self._options.max_poll_records < 500
            if at is None or (end - at > 25 and not is_slow):
                return f"at last it has read {each} up to {at} of {end}"
            if committed is None or at - committed > (700 if is_slow else 80):
                return f"at last it is at {at} of {each}, and has committed {committed}"
        return ""

    def _closed(self) -> str:
        """Close the consumer: it commits where it is, says that it goes, and is over."""
        before, owned = dict(self._at), sorted(self._owned)
        self._asked.clear()
        self._take(self._client.close(self._now_ms))
        said: list[Any] = []
        for _ in range(20):
            said += [each.request for each in self._asked.values()]
            if not self._asked:
                break
            self._answer(min(self._asked))
        if self._told:
            return self._told
        if not self._client.is_over or self._owned:
            return f"closed it owns {self._owned}, over: {self._client.is_over}"
        left = [each for each in said if isinstance(each, LeaveGroupRequest)]
        epochs = [each.epoch for each in said if isinstance(each, ConsumerGroupHeartbeatRequest)]
        says = epochs[-1:] == [-1 if self._instance is None else -2] if self._is_consumer else bool(left)
        if says != (self._is_consumer or self._instance is None):
            return f"closed it says {said}"
        late = [each for each in owned if self._committed.get(each) != before[each]]
        return f"closed it has not committed where it is in {late}" if late else ""


@pytest.mark.parametrize("protocol", GroupProtocol)
@settings(max_examples=8)
@given(draws=DRAWS)
def test_a_consumer_recovers(protocol: GroupProtocol, draws: Draws) -> None:
    assert _Life(draws, protocol).run() == ""


@pytest.mark.deep
@pytest.mark.parametrize("protocol", GroupProtocol)
@settings(max_examples=200)
@given(draws=DRAWS)
def test_many_consumers_recover(protocol: GroupProtocol, draws: Draws) -> None:
    assert _Life(draws, protocol).run() == ""

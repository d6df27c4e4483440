"""Answer one client of a group by hand: what it asks is kept open until the test answers it."""

from __future__ import annotations

from typing import TypeVar

import attrs

from broker.entropy import SplitMix64
from broker.error_codes import ErrorCode
from broker.group.classic import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinedMember,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    MemberId,
    SyncGroupRequest,
    SyncGroupResponse,
)
from broker.group.consumer import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from broker.group.members import InstanceId
from broker.group.messages import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from broker.group.protocol import write_assignment
from broker.ids import BrokerId, Offset, PartitionId, TopicPartition
from broker.units import DurationMs, TimeMs
from replication.groups.client.classic_client import ClassicClient
from replication.groups.client.client import Client, Feed
from replication.groups.client.consumer_client import ConsumerClient
from replication.groups.client.link import ClientOptions, ClientSpec
from replication.groups.client.messages import (
    Output,
    Request,
    Response,
    Send,
    TopicMetadataRequest,
    TopicMetadataResponse,
)

GroupRequest = TypeVar("GroupRequest", bound=object)

P0, P1 = (TopicPartition("t", PartitionId(number)) for number in range(2))
BOTH = frozenset({P0, P1})
NOTHING_COMMITTED = OffsetFetchResponse((None, None))


class Ten:
    """A feed with ten records in each partition."""

    def end_offset(self, partition: TopicPartition, now_ms: TimeMs) -> Offset:
        return Offset(10)


class Growing:
    """A feed with ten records a second in each partition."""

    def end_offset(self, partition: TopicPartition, now_ms: TimeMs) -> Offset:
        return Offset(now_ms // 100)


class Script:
    """One client, and who answers it."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.now_ms = 0
        self.open: list[Send] = []
        self.sent: list[Send] = []
        """All that was sent, in order."""
        self.notes: list[Output] = []
        self._take(client.start(TimeMs(0)))

    def _take(self, outputs: tuple[Output, ...]) -> None:
        sent = [output for output in outputs if isinstance(output, Send)]
        self.open += sent
        self.sent += sent
        self.notes += [output for output in outputs if not isinstance(output, Send)]

    def at(self, now_ms: int) -> None:
        """Let time pass, waking the client whenever it wants to be woken."""
        while (next_ms := self.client.next_ms()) is not None and next_ms <= now_ms:
            self.now_ms = max(self.now_ms, next_ms)
            self._take(self.client.advance(TimeMs(self.now_ms)))
        self.now_ms = now_ms

    def close(self) -> None:
        self._take(self.client.close(TimeMs(self.now_ms)))

    def stall(self, for_ms: int) -> None:
        self._take(self.client.stall(DurationMs(for_ms), TimeMs(self.now_ms)))

    def asked(self, kind: type[GroupRequest]) -> GroupRequest:
        """Return the oldest open request of a kind."""
        return next(send.request for send in self.open if isinstance(send.request, kind))

    def has_asked(self, kind: type[GroupRequest]) -> bool:
        return any(isinstance(send.request, kind) for send in self.open)

    def answer(self, kind: type[Request], response: Response) -> None:
        """Answer the oldest open request of a kind."""
        self.answer_to(next(send for send in self.open if isinstance(send.request, kind)), response)

    def answer_to(self, send: Send, response: Response) -> None:
        """Answer an open request."""
        self.open.remove(send)
        self._take(self.client.handle(send.ticket, response, TimeMs(self.now_ms)))

    def of(self, kind: type[GroupRequest]) -> list[GroupRequest]:
        return [note for note in self.notes if isinstance(note, kind)]


def named(*assignors: str, instance_id: str | None = None, **settings: int) -> ClientSpec:
    """Return a client's settings; `revoke_ms` and `remembers` are its application's, all others its consumer's."""
    revoke_ms, remembers = DurationMs(settings.pop("revoke_ms", 0)), bool(settings.pop("remembers", 0))
    return ClientSpec(
        name="c",
        group_id="g",
        topics=("t",),
        assignors=assignors,
        instance_id=None if instance_id is None else InstanceId(instance_id),
        revoke_ms=revoke_ms,
        remembers_partitions=remembers,
        options=ClientOptions(**{name: DurationMs(value) for name, value in settings.items()}),
    )


def classic(*assignors: str, instance_id: str | None = None, feed: Feed | None = None, **settings: int) -> Script:
    spec = named(*(assignors or ("range",)), instance_id=instance_id, **settings)
    return Script(ClassicClient(spec, Ten() if feed is None else feed, SplitMix64(1)))


def in_generation(generation: int, request: JoinGroupRequest) -> JoinGroupResponse:
    """Return the answer to a follower."""
    return JoinGroupResponse(
        ticket=request.ticket,
        member_id=MemberId("m"),
        generation=generation,
        protocol_name=request.protocols[0].name,
        leader_id=MemberId("leader"),
    )


def hear(script: Script, error: ErrorCode = ErrorCode.NONE) -> None:
    """Answer a heartbeat."""
    ticket = script.asked(HeartbeatRequest).ticket
    script.answer(HeartbeatRequest, HeartbeatResponse(ticket=ticket, error=error))


def joined(script: Script, generation: int = 1) -> Script:
    """Bring a member into a generation with both partitions."""
    script.answer(FindCoordinatorRequest, FindCoordinatorResponse(BrokerId(1)))
    request = script.asked(JoinGroupRequest)
    ticket = request.ticket
    script.answer(JoinGroupRequest, in_generation(generation, request))
    script.answer(SyncGroupRequest, SyncGroupResponse(ticket=ticket, assignment=write_assignment(BOTH)))
    script.answer(OffsetFetchRequest, OffsetFetchResponse((Offset(4), None)))
    return script


def joining_again() -> tuple[Script, JoinGroupRequest]:
    """Return a cooperative member of P0 and P1 that was told of a rebalance, and what it asks to join again."""
    script = joined(classic("cooperative-sticky"))
    script.at(3_100)
    hear(script, ErrorCode.REBALANCE_IN_PROGRESS)
    script.at(3_600)
    script.answer(OffsetCommitRequest, OffsetCommitResponse((ErrorCode.NONE, ErrorCode.NONE)))
    request = script.asked(JoinGroupRequest)
    return script, request


def leading(script: Script) -> JoinGroupRequest:
    """Make a lone member the leader of generation 1, and tell it of both partitions; return how it joined."""
    script.answer(FindCoordinatorRequest, FindCoordinatorResponse(BrokerId(1)))
    request = script.asked(JoinGroupRequest)
    me = MemberId("m")
    members = (JoinedMember(me, None, request.protocols[0].metadata),)
    script.answer(JoinGroupRequest, attrs.evolve(in_generation(1, request), leader_id=me, members=members))
    script.answer(TopicMetadataRequest, TopicMetadataResponse({"t": 2}))
    return request


def consumer(instance_id: str | None = None, feed: Feed | None = None, **settings: int) -> Script:
    spec = named("uniform", instance_id=instance_id, **settings)
    script = Script(ConsumerClient(spec, Ten() if feed is None else feed))
    script.answer(FindCoordinatorRequest, FindCoordinatorResponse(BrokerId(1)))
    return script


def accepted(
    epoch: int, *partitions: TopicPartition, error: ErrorCode = ErrorCode.NONE
) -> ConsumerGroupHeartbeatResponse:
    return attrs.evolve(kept(epoch), error=error, assignment=frozenset(partitions))


def kept(epoch: int, interval_ms: int = 5_000) -> ConsumerGroupHeartbeatResponse:
    """Return the answer to a heartbeat after which the member owns what it owned."""
    return ConsumerGroupHeartbeatResponse(
        member_id=MemberId("m"), epoch=epoch, heartbeat_interval_ms=DurationMs(interval_ms)
    )


def settled(script: Script, offsets: Response = NOTHING_COMMITTED, interval_ms: int = 5_000) -> Script:
    """Bring a member of a consumer group into epoch 1 with both partitions."""
    script.answer(ConsumerGroupHeartbeatRequest, accepted(1, P0, P1))
    script.answer(OffsetFetchRequest, offsets)
    script.answer(ConsumerGroupHeartbeatRequest, kept(1, interval_ms))
    return script


def consumer_told_to_give_back(feed: Feed | None = None, **settings: int) -> Script:
    """A member that owns both partitions and has committed, and is told at 5 s to keep the first only."""
    script = settled(consumer(feed=feed, **settings))
    script.at(5_000)
    script.answer(OffsetCommitRequest, OffsetCommitResponse((ErrorCode.NONE, ErrorCode.NONE)))
    script.answer(ConsumerGroupHeartbeatRequest, accepted(1, P0))
    return script


def leaves(script: Script) -> int:
    """Return how many open requests say that the member leaves."""
    kinds = [send.request for send in script.open]
    beats = [each.epoch for each in kinds if isinstance(each, ConsumerGroupHeartbeatRequest)]
    return sum(isinstance(each, LeaveGroupRequest) for each in kinds) + beats.count(-1)

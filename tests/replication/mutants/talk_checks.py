"""Check what holds of every talk of one consumer: its commits, its joins, and the times of its rebalances.

Constraints: only what was said and noted is read (`client_talk`), not the consumer.

Source: Kafka's consumers, as `cures`; Java's metrics rebalance-latency and failed-rebalance-total.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from broker.error_codes import ErrorCode
from broker.group.classic import (
    HeartbeatRequest,
    JoinGroupRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)
from broker.group.consumer import ConsumerGroupHeartbeatRequest
from broker.group.messages import OffsetCommitRequest, OffsetCommitResponse
from broker.group.protocol import read_assignment, read_subscription, sticky_memory
from broker.ids import TopicPartition
from replication.groups.client.messages import (
    Committed,
    PartitionsAssigned,
    PartitionsRevoked,
    Rebalanced,
    RebalanceFailed,
)
from replication.groups.client.protocols import GroupProtocol
from tests.replication.mutants.client_talk import MAX_POLL_MS, Talk
from tests.replication.mutants.one_member import TOPICS

_PATIENCE_MS: Final = MAX_POLL_MS + 5_000
"""Longer than a member may take to give up what is not its own any more."""


def always(talk: Talk) -> Iterator[str]:
    """Yield what holds of no run: of its commits, its joins, and the times of its rebalances."""
    yield from _commits(talk)
    yield from _given(talk) if talk.is_consumer else _joins(talk)
    yield from _rebalances(talk)


def _commits(talk: Talk) -> Iterator[str]:
    """Yield a commit whose result is not noted as it was answered."""
    wanted = []
    for each in talk.answers(OffsetCommitRequest):
        is_told = isinstance(each.response, OffsetCommitResponse)
        errors = each.response.errors if is_told else (ErrorCode.REQUEST_TIMED_OUT,) * len(each.sent.commits)
        wanted += [
            (each.at_ms, Committed(commit.partition, commit.offset, error))
            for commit, error in zip(each.sent.commits, errors, strict=True)
        ]
    if talk.notes(Committed) != wanted:
        yield f"it notes {talk.notes(Committed)[-3:]} of {wanted[-3:]}"


def _given(talk: Talk) -> Iterator[str]:
    """Yield partitions that a member takes and was not given since it joined, or a target that it never reached."""
    given: set[TopicPartition] = set()
    began_ms: int | None = None
    for each in talk.log:
        share = getattr(each.response, "assignment", None)
        if isinstance(each.sent, ConsumerGroupHeartbeatRequest) and each.response is None and each.sent.epoch == 0:
            given, began_ms = set(), None
        elif isinstance(each.sent, ConsumerGroupHeartbeatRequest) and share is not None:
            given |= share
            began_ms = each.at_ms
        elif isinstance(each.noted, Rebalanced):
            began_ms = None
        elif isinstance(each.noted, PartitionsAssigned) and not each.noted.partitions <= given:
            yield f"it takes {sorted(each.noted.partitions)}, and was given {sorted(given)}"
    if began_ms is not None and talk.now_ms - began_ms > _PATIENCE_MS and not talk.client.is_over:
        yield f"it was given a share at {began_ms}, and has not come to that at {talk.now_ms}"


def _joins(talk: Talk) -> Iterator[str]:
    """Yield a JoinGroup that says something else than the member is, and heartbeats while the member joins."""
    owned: set[TopicPartition] = set()
    is_joining = False
    memory = b""
    """What a sticky assignor is told of the assignment before: KIP-54's user data; nothing to any other."""
    for each in talk.log:
        is_given = isinstance(each.response, SyncGroupResponse) and each.response.error is ErrorCode.NONE
        if is_given and each.response.assignment != b"\0" and talk.protocol is GroupProtocol.EAGER:
            memory = sticky_memory(read_assignment(each.response.assignment), each.sent.generation)
        if isinstance(each.noted, PartitionsAssigned):
            owned |= each.noted.partitions
        elif isinstance(each.noted, PartitionsRevoked):
            owned -= each.noted.partitions
        elif isinstance(each.sent, JoinGroupRequest):
            is_joining = each.response is None
            subscription = read_subscription(each.sent.protocols[0].metadata)
            said = (set(subscription.owned), subscription.topics, subscription.rack, each.sent.instance_id)
            is_as_it_is = said == (owned, tuple(TOPICS), "r", talk.spec.instance_id)
            if is_joining and not (is_as_it_is and subscription.user_data == memory):
                yield f"it joins with {subscription}, and owns {sorted(owned)}"
        elif isinstance(each.sent, HeartbeatRequest) and is_joining and each.response is None:
            yield f"it beats while it joins, at {each.at_ms}"
    failed = [
        each.at_ms
        for each in talk.log
        if isinstance(each.sent, JoinGroupRequest | SyncGroupRequest)
        and getattr(each.response, "error", each.response) not in (None, ErrorCode.NONE)
    ]
    noted = [when for when, _ in talk.notes(RebalanceFailed)]
    if noted != failed:
        yield f"it notes failures at {noted}, and failed at {failed}"


def _rebalances(talk: Talk) -> Iterator[str]:
    """Yield a rebalance that took another time than is noted."""
    began_ms: int | None = None
    share: frozenset[TopicPartition] | None = None
    is_next = False
    """Whether another target has come meanwhile, for which the next rebalance begins with the next heartbeat."""
    for each in talk.log:
        if isinstance(each.sent, JoinGroupRequest) and each.response is None and began_ms is None:
            began_ms = each.at_ms
        elif isinstance(each.sent, ConsumerGroupHeartbeatRequest) and each.response is None and each.sent.epoch == 0:
            began_ms, share, is_next = None, None, False
        elif isinstance(each.sent, ConsumerGroupHeartbeatRequest) and each.response is None:
            began_ms, is_next = (each.at_ms, False) if is_next and began_ms is None else (began_ms, is_next)
        elif isinstance(each.sent, ConsumerGroupHeartbeatRequest) and each.response is not None:
            told = getattr(each.response, "assignment", None)
            if told is not None and told != share:
                is_next, share = began_ms is not None, told
                began_ms = each.at_ms if began_ms is None else began_ms
        elif isinstance(each.noted, Rebalanced):
            if began_ms is None or each.noted.latency_ms != each.at_ms - began_ms:
                yield f"at {each.at_ms} {each.noted} is noted, it began at {began_ms}"
            began_ms = None

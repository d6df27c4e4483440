"""Check what holds of every talk of one consumer: its commits, its joins, and the times of its rebalances.

Constraints: only what was said and noted is read (`client_talk`), not the consumer.

Source: Kafka's consumers, as `cures`; Java's metrics rebalance-latency and failed-rebalance-total.
"""

from __future__ import annotations

from collections.abc import Iterator

from broker.error_codes import ErrorCode
from broker.group.classic import (
    HeartbeatRequest,
    JoinGroupRequest,
    SyncGroupRequest,
)
from broker.group.consumer import ConsumerGroupHeartbeatRequest
from broker.group.messages import OffsetCommitRequest, OffsetCommitResponse
from broker.group.protocol import read_subscription
from broker.ids import TopicPartition
from replication.groups.client.messages import (
    Committed,
    PartitionsAssigned,
    PartitionsRevoked,
    Rebalanced,
    RebalanceFailed,
)
from tests.replication.mutants.client_talk import Talk
from tests.replication.mutants.one_member import TOPICS


def always(talk: Talk) -> Iterator[str]:
    """Yield what holds of no run: of its commits, its joins, and the times of its rebalances."""
    yield from _commits(talk)
    if not talk.is_consumer:
        yield from _joins(talk)
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


def _joins(talk: Talk) -> Iterator[str]:
    """Yield a JoinGroup that says something else than the member is, and heartbeats while the member joins."""
    owned: set[TopicPartition] = set()
    is_joining = False
    for each in talk.log:
        if isinstance(each.noted, PartitionsAssigned):
            owned |= each.noted.partitions
        elif isinstance(each.noted, PartitionsRevoked):
            owned -= each.noted.partitions
        elif isinstance(each.sent, JoinGroupRequest):
            is_joining = each.response is None
            subscription = read_subscription(each.sent.protocols[0].metadata)
            said = (set(subscription.owned), subscription.topics, subscription.rack, each.sent.instance_id)
            if is_joining and said != (owned, tuple(TOPICS), "r", talk.spec.instance_id):
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
    for each in talk.log:
        if isinstance(each.sent, JoinGroupRequest) and each.response is None and began_ms is None:
            began_ms = each.at_ms
        elif isinstance(each.sent, ConsumerGroupHeartbeatRequest) and each.response is not None:
            if getattr(each.response, "assignment", None) is not None:
                began_ms = each.at_ms
        elif isinstance(each.noted, Rebalanced):
            if began_ms is None or each.noted.latency_ms != each.at_ms - began_ms:
                yield f"at {each.at_ms} {each.noted} is noted, it began at {began_ms}"
            began_ms = None

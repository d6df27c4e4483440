"""Check the answers of brokers: each refusal has its reason in the replica as it is, and none is forgotten (I30).

It reads states and calls no rule. A fetch that is held counts as accepted: the follower's log is a part of the
leader's, and the follower's incarnation the last that the leader has heard of.

Source: Kafka core Partition.checkCurrentLeaderEpoch, readRecords (lastFetchedEpoch) and appendRecordsToLeader,
ReplicaManager.fetchMessages, 4.0; KIP-320, KIP-595, KIP-392.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from broker.error_codes import ErrorCode
from replication.checkers.view import NodeView
from replication.roles.broker_role import BrokerRole
from replication.roles.follower import FollowerRole
from replication.roles.leader import LeaderRole
from replication.roles.messages import (
    ConsumerFetch,
    ConsumerFetchResponse,
    Fetch,
    FetchResponse,
    Message,
    Produce,
    ProduceResponse,
)
from replication.roles.outbox import Outbox
from replication.rules.fetch import FetchAnswer
from replication.rules.partition import UNKNOWN_BROKER_EPOCH, EpochEnd
from replication.rules.produce import ACKS_ALL
from replication.rules.settings import PartitionSettings
from replication.rules.switches import Truncation

_NONE: Final = ErrorCode.NONE
_NOT_LEADER: Final = ErrorCode.NOT_LEADER_OR_FOLLOWER
_ABSENT: Final = frozenset({_NOT_LEADER, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
_OUT_OF_RANGE: Final = ErrorCode.OFFSET_OUT_OF_RANGE
_HELD: Final = FetchAnswer()
ASKED: Final = frozenset({Fetch, ConsumerFetch, Produce})
"""The requests whose answers are checked."""

Role = LeaderRole | FollowerRole


def unfounded(node: NodeView, message: Message, out: Outbox, settings: PartitionSettings) -> Iterator[str]:
    """Yield what is wrong with the answer to a request that `node` has just handled."""
    if node.role is None:
        return
    role = node.role.roles.get(getattr(message, "partition", -1))
    if isinstance(message, Produce):
        yield from _refused_write(node, role, message, out, settings)
        return
    if isinstance(message, Fetch):
        responses = [each for _, each in out.sent if isinstance(each, FetchResponse) and each.number == message.number]
        fetched = responses[0].answer if responses else _HELD
        if wrong := _wrong_fetch(node.role, role, message, fetched, settings):
            yield f"broker {node.broker} answers {_shown(fetched.error)}, {wrong}"
        return
    for _, answer in out.sent:
        if isinstance(answer, ConsumerFetchResponse) and isinstance(message, ConsumerFetch):
            wrong = _wrong_read(role, message, answer.error, settings)
            if wrong:
                yield f"broker {node.broker} answers {_shown(answer.error)}, {wrong}"


def _shown(error: ErrorCode) -> str:
    return "a fetch" if error is _NONE else f"{error.name} to a fetch"


def _wrong_fetch(
    broker: BrokerRole, role: Role | None, message: Fetch, answer: FetchAnswer, settings: PartitionSettings
) -> str:
    """Return why a follower's fetch has the wrong answer, "" if it has the right one."""
    error, request = answer.error, message.request
    if role is None:
        return "" if error in _ABSENT else "and has no replica"
    own, named = role.state.leader_epoch, request.leader_epoch
    if settings.rules.fetch_epoch_check and named >= 0 and named != own:
        expected = ErrorCode.FENCED_LEADER_EPOCH if named < own else ErrorCode.UNKNOWN_LEADER_EPOCH
        return "" if error is expected else f"which names epoch {named} of {own}"
    if isinstance(role, FollowerRole):
        return "" if error is _NOT_LEADER else "and does not lead"
    status = broker.image.brokers.get(request.replica)
    known = UNKNOWN_BROKER_EPOCH if status is None or status.fenced else status.epoch
    is_former = 0 <= request.broker_epoch < known
    if error is _NONE and answer.diverging is None:
        if is_former and settings.rules.isr_join_broker_epoch:
            return f"of broker {request.replica} in epoch {request.broker_epoch}, which is in {known}"
        return _wrongly_accepted(role, message, settings)
    if all(each.broker != request.replica for each in role.state.followers):
        return "" if error in (ErrorCode.UNKNOWN_LEADER_EPOCH, _NOT_LEADER) else "of who is no replica"
    if error is _NOT_LEADER:
        return "" if settings.rules.isr_join_broker_epoch and is_former else "and leads"
    return _wrong_place(role, message, answer, settings)


def _wrongly_accepted(role: LeaderRole, message: Fetch, settings: PartitionSettings) -> str:
    """Return why a fetch should not have been accepted, as the follower's log is no part of the leader's."""
    log, offset, last = role.log.state, message.request.offset, message.request.last_fetched_epoch
    if settings.rules.truncation is not Truncation.ON_FETCH or last < 0:
        return ""
    if log.epochs and log.epochs[-1].epoch == last and offset <= log.end_offset:
        return ""  # Nearly every fetch.
    end = _end_of(role, last)
    return f"though the logs part at {end}" if end is None or _parts(end, last, offset) else ""


def _wrong_place(role: LeaderRole, message: Fetch, answer: FetchAnswer, settings: PartitionSettings) -> str:
    """Return why a fetch is refused, or answered with a divergence though the logs agree."""
    log, offset, last = role.log.state, message.request.offset, message.request.last_fetched_epoch
    is_inside = log.start_offset <= offset <= log.end_offset
    asks = settings.rules.truncation is Truncation.ON_FETCH and last >= 0
    end = _end_of(role, last) if asks else None
    if answer.diverging is not None:
        return "" if end is not None and answer.diverging == end and _parts(end, last, offset) else f"and says {end}"
    if answer.error is not _OUT_OF_RANGE:
        return "and has the records"
    return "and holds the offset" if is_inside and (not asks or end is not None) else ""


def _parts(end: EpochEnd, last: int, offset: int) -> bool:
    return end.epoch < last or end.end_offset < offset


def _end_of(role: LeaderRole, epoch: int) -> EpochEnd | None:
    """Return the largest epoch up to `epoch` with its end, read from the leader's epochs; None if it is newer."""
    log = role.log.state
    if not log.epochs or epoch > log.epochs[-1].epoch:
        return None
    before = [each for each in log.epochs if each.epoch <= epoch]
    after = [each for each in log.epochs if each.epoch > epoch]
    end_offset = after[0].start_offset if after else log.end_offset
    return EpochEnd(before[-1].epoch if before else type(log.epochs[0].epoch)(epoch), end_offset)


def _wrong_read(role: Role | None, message: ConsumerFetch, error: ErrorCode, settings: PartitionSettings) -> str:
    """Return why a consumer's fetch has the wrong answer, "" if it has the right one."""
    if role is None:
        return "" if error in _ABSENT else "and has no replica"
    log, offset = role.log.state, message.offset
    expected = _NONE
    if isinstance(role, FollowerRole) and not settings.rules.follower_reads:
        expected = _NOT_LEADER
    elif not log.start_offset <= offset <= log.end_offset:
        expected = _OUT_OF_RANGE
    elif isinstance(role, FollowerRole) and offset > log.high_watermark:
        expected = ErrorCode.OFFSET_NOT_AVAILABLE
    return "" if error is expected else f"from {offset} of {log.start_offset} to {log.end_offset}"


def _refused_write(
    node: NodeView, role: Role | None, message: Produce, out: Outbox, settings: PartitionSettings
) -> Iterator[str]:
    """Yield what is wrong with the refusal of a write, or with a write that is not refused."""
    answers = [
        answer
        for _, answer in out.sent
        if isinstance(answer, ProduceResponse) and answer.number == message.number and answer.error is not _NONE
    ]
    if not isinstance(role, LeaderRole):
        # A directory that fails in the middle of a write ends the role.
        if message.acks != 0 and not any(answer.error in _ABSENT for answer in answers):
            yield f"broker {node.broker} does not lead, and does not refuse a write"
        return
    refusals = [answer.error for answer in answers if not answer.appended]
    count, least = len(role.state.isr), settings.min_isr
    is_short = message.acks == ACKS_ALL and count < least
    for error in refusals:
        if error is ErrorCode.NOT_ENOUGH_REPLICAS and not is_short:
            yield f"broker {node.broker} refuses a write, and {count} of {least} are in sync"
        elif error is _NOT_LEADER:
            yield f"broker {node.broker} refuses a write as if it did not lead"
    if is_short and count < min(least, role.state.replica_count) and not refusals:
        yield f"broker {node.broker} takes a write, and {count} of {least} are in sync"

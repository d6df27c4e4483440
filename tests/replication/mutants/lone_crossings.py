"""Let answers of a former coordinator cross those of the present one, and check what a classic consumer makes of them.

What it decides: which answer comes late, and its error, from draws.

Constraints: all else is answered at once. Each function yields what the consumer does that Kafka's does not.

Source: AbstractCoordinator.JoinGroupResponseHandler (who is not joining any more does not go on with SyncGroup) and
SyncGroupResponseHandler (a generation is reset by an error of its own only) of Kafka's clients, as facts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from broker.error_codes import ErrorCode
from broker.group.classic import HeartbeatRequest, JoinGroupRequest, SyncGroupRequest
from broker.group.messages import OffsetCommitRequest
from broker.units import TimeMs
from replication.groups.client.messages import RebalanceFailed
from replication.groups.client.protocols import GroupProtocol
from tests.replication.mutants.client_talk import Talk, erring, settled
from tests.replication.mutants.drawing import Draws

_REST_MS: Final = 9_000


def refuse_while_joining(draws: Draws, protocol: GroupProtocol) -> Iterator[str]:
    """Refuse a commit of long ago while the consumer waits for its JoinGroup."""
    talk = settled(draws, protocol)
    if talk.is_consumer or not talk.client.subscriptions.owned:
        return
    talk.silent.add(OffsetCommitRequest)
    _run_until_sent(talk, OffsetCommitRequest)
    talk.silent.clear()
    member_id = talk.client.member_id
    talk.replies[HeartbeatRequest] = erring(ErrorCode.REBALANCE_IN_PROGRESS)
    _run_until_sent(talk, JoinGroupRequest)
    begin_ms, error = talk.now_ms, draws.one((ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION))
    (late,) = talk.unanswered
    talk.answer(late, erring(error)(late.request))
    talk.run_until(begin_ms + _REST_MS)
    joined = [(each.at_ms, each.sent.member_id) for each in talk.log if isinstance(each.sent, JoinGroupRequest)]
    again = [name for when, name in joined if when > begin_ms]
    if again[1:2] != [member_id if error is ErrorCode.ILLEGAL_GENERATION else ""]:
        yield f"after {error} for its commit, {member_id} joins again as {again[1:]}"
    if len(talk.notes(RebalanceFailed, begin_ms)) < 1 or talk.client.subscriptions.owned != talk.share:
        yield f"it owns {sorted(talk.client.subscriptions.owned)} of {sorted(talk.share)}"


def reset_while_syncing(draws: Draws, protocol: GroupProtocol) -> Iterator[str]:
    """Say of a generation that it is over, by a heartbeat, and after that by the answer to its SyncGroup."""
    talk = settled(draws, protocol)
    if talk.is_consumer:
        return
    talk.replies[HeartbeatRequest] = erring(ErrorCode.REBALANCE_IN_PROGRESS)
    talk.silent.add(SyncGroupRequest)
    _run_until_sent(talk, SyncGroupRequest)
    member_id = talk.client.member_id
    talk.silent.clear()
    first, second = draws.one(
        (
            (ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID),
            (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION),
        )
    )
    talk.replies[HeartbeatRequest] = erring(first)
    talk.run_until(talk.now_ms + 4_000)
    (late,) = talk.unanswered
    begin_ms = talk.now_ms
    talk.answer(late, erring(second)(late.request))
    talk.run_until(begin_ms + _REST_MS)
    again = [each.member_id for _, each in talk.sends(JoinGroupRequest, begin_ms)]
    if again[:1] != [member_id if first is ErrorCode.ILLEGAL_GENERATION else ""]:
        yield f"after {first} for its heartbeat and {second} for its SyncGroup, {member_id} joins as {again[:1]}"
    if talk.client.subscriptions.owned != talk.share:
        yield f"it owns {sorted(talk.client.subscriptions.owned)} of {sorted(talk.share)}"


def _run_until_sent(talk: Talk, kind: type) -> None:
    """Let time pass until a request of a kind has been sent."""
    since = len(talk.log)
    for _ in range(20_000):
        if any(isinstance(each.sent, kind) and each.response is None for each in talk.log[since:]):
            return
        talk.run_until(TimeMs(talk.now_ms + 1))
    raise AssertionError(f"no {kind.__name__} is sent until {talk.now_ms}")

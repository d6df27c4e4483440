"""Give a consumer another share while its commits are refused, and check how it comes to its new share.

What it decides: the share, the error that commits meet, and for how long, from draws.

Constraints: all else is answered at once. Each function yields what the consumer does that Kafka's does not.

Source: ConsumerCoordinator.onJoinPrepare and AbstractMembershipManager.maybeReconcile of Kafka's clients, as facts: a
commit that may succeed is sent again for max.poll.interval.ms; then the member goes on without.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from broker.error_codes import ErrorCode
from broker.group.classic import HeartbeatRequest, JoinGroupRequest, SyncGroupRequest
from broker.group.consumer import ConsumerGroupHeartbeatRequest
from broker.group.messages import OffsetCommitRequest
from broker.group.protocol import read_assignment, read_sticky_memory, read_subscription
from replication.groups.client.messages import PartitionsRevoked, Read, Why
from replication.groups.client.protocols import GroupProtocol
from tests.replication.mutants.client_talk import MAX_POLL_MS, POLL_MS, Entry, Talk, erring, settled
from tests.replication.mutants.drawing import Draws
from tests.replication.mutants.one_member import EVERY
from tests.replication.mutants.talk_checks import always


def change(draws: Draws, protocol: GroupProtocol) -> Iterator[str]:
    """Give the member another share, and refuse its commits for a while."""
    talk = settled(draws, protocol)
    before, begin_ms = talk.client.subscriptions.owned, talk.now_ms
    talk.share, talk.is_calling = frozenset(draws.some(EVERY)), True
    error = draws.one((None, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.STALE_MEMBER_EPOCH))
    for_ms = draws.one((0, 7_000, 75_000))
    if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS or (error and talk.is_consumer):
        _refuse_commits(talk, error, begin_ms + for_ms)
    else:
        for_ms = 0
    talk.run_until(begin_ms + for_ms + 20_000)
    if for_ms and before != talk.share:
        yield from _repeated(talk, begin_ms, begin_ms + for_ms)
    if talk.client.subscriptions.owned != talk.share:
        yield f"it owns {sorted(talk.client.subscriptions.owned)} of {sorted(talk.share)}"
    shares = [
        read_assignment(each.response.assignment) for each in talk.answers(SyncGroupRequest) if each.at_ms > begin_ms
    ]
    gone = before - {GroupProtocol.EAGER: frozenset(), GroupProtocol.CONSUMER: talk.share}.get(
        protocol, (*shares, before)[0]
    )
    revoked = [note for _, note in talk.notes(PartitionsRevoked, begin_ms)]
    if [each.partitions for each in revoked] != ([gone] if gone else []) or any(
        each.why is not Why.REVOKED for each in revoked
    ):
        yield f"of {sorted(before)} {sorted(gone)} are asked back, and it gives up {revoked}"
    elif gone and for_ms < MAX_POLL_MS:
        yield from _given_up(talk, begin_ms, gone)
    yield from always(talk)


def waver(draws: Draws, protocol: GroupProtocol) -> Iterator[str]:
    """Give a member of a consumer group more, then most, then more again, while it still reconciles for the first."""
    if protocol is not GroupProtocol.CONSUMER:
        return
    talk = settled(draws, protocol)
    order = draws.some(EVERY, len(EVERY))
    talk.share = frozenset(order[: draws.number(1, 3)])
    talk.run_until(talk.now_ms + 20_000)
    begin_ms, before = talk.now_ms, talk.share
    more = before.union(order[: len(before) + 1])
    _refuse_commits(talk, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, begin_ms + 20_000)
    for share in (more, more.union(order[: len(more) + 1]), more):
        talk.share = share
        talk.run_until(talk.now_ms + 6_000)
    talk.run_until(begin_ms + 40_000)
    told = [each.owned for _, each in talk.sends(ConsumerGroupHeartbeatRequest, begin_ms) if each.owned is not None]
    if told != [more, more]:
        yield f"it was given {sorted(more)} twice, and acknowledges {told}"
    yield from always(talk)


def fence(draws: Draws, protocol: GroupProtocol) -> Iterator[str]:
    """Fence a member of a consumer group that reconciles, and give it another share as it joins again."""
    if protocol is not GroupProtocol.CONSUMER:
        return
    talk = settled(draws, protocol)
    begin_ms = talk.now_ms
    _refuse_commits(talk, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, begin_ms + 20_000)
    talk.share = frozenset(draws.some(EVERY))
    talk.run_until(begin_ms + 7_000)
    talk.share = frozenset(draws.some(EVERY))
    error = draws.one((ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID))
    talk.replies[ConsumerGroupHeartbeatRequest] = erring(error)
    talk.run_until(begin_ms + 40_000)
    if talk.client.subscriptions.owned != talk.share:
        yield f"fenced it owns {sorted(talk.client.subscriptions.owned)} of {sorted(talk.share)}"
    yield from always(talk)


def _refuse_commits(talk: Talk, error: ErrorCode, until_ms: int) -> None:
    """Answer the next commit, and all until a time, by an error."""

    def refuse(request: OffsetCommitRequest) -> Any:
        if talk.now_ms < until_ms:
            talk.replies[OffsetCommitRequest] = refuse
        return erring(error)(request)

    talk.replies[OffsetCommitRequest] = refuse


def _repeated(talk: Talk, begin_ms: int, until_ms: int) -> Iterator[str]:
    """Yield what a member does not do that commits in vain before it moves: repeat that, for max.poll.interval.ms."""
    if talk.is_consumer:
        asked = [each.at_ms for each in talk.answers(ConsumerGroupHeartbeatRequest) if _has_news(each, begin_ms)]
        moves = [when for when, each in talk.sends(ConsumerGroupHeartbeatRequest, begin_ms) if each.owned is not None]
    else:
        asked = [each.at_ms for each in talk.answers(HeartbeatRequest) if _has_news(each, begin_ms)]
        moves = [when for when, _ in talk.sends(JoinGroupRequest, begin_ms)]
    wanted_ms = min(until_ms, asked[0] + MAX_POLL_MS)
    if not moves or not wanted_ms <= moves[0] <= wanted_ms + 2 * POLL_MS + talk.revoke_ms:
        yield f"asked at {asked[:1]}, its commits refused until {until_ms}, it moves at {moves[:1]}"
    commits = [when for when, _ in talk.sends(OffsetCommitRequest, asked[0] + POLL_MS) if when < wanted_ms - POLL_MS]
    if any(later - earlier > POLL_MS for earlier, later in pairwise(commits)):
        yield f"refused it commits again at {commits}"


def _has_news(entry: Entry, begin_ms: int) -> bool:
    """Return whether a heartbeat was answered, after a time, by another assignment or by a call to join again."""
    is_called = getattr(entry.response, "error", None) is ErrorCode.REBALANCE_IN_PROGRESS
    return entry.at_ms >= begin_ms and (is_called or getattr(entry.response, "assignment", None) is not None)


def _given_up(talk: Talk, begin_ms: int, gone: frozenset[Any]) -> Iterator[str]:
    """Yield what a member that gives up partitions does not do before: commit, stop reading, tell its listener."""
    at_ms = talk.notes(PartitionsRevoked, begin_ms)[0][0]
    cause = SyncGroupRequest if talk.protocol is GroupProtocol.COOPERATIVE else OffsetCommitRequest
    known = [each.at_ms for each in talk.answers(cause) if begin_ms <= each.at_ms <= at_ms]
    told_ms = max((each for each in known if each <= at_ms - talk.revoke_ms), default=None)
    if told_ms is None:
        yield f"at {at_ms} {sorted(gone)} are given up, and {cause.__name__} was answered at {known}"
        return
    reads = [(when, each) for when, each in talk.notes(Read, told_ms + 1) if when <= at_ms and each.partition in gone]
    if reads:
        yield f"it reads {reads}, and gives it up at {at_ms}"
    commits = [each for each in talk.answers(OffsetCommitRequest) if begin_ms <= each.at_ms <= at_ms]
    if not commits or (cause is OffsetCommitRequest and set(commits[-1].response.errors) != {ErrorCode.NONE}):
        yield f"it gives up {sorted(gone)} after {commits[-1:]}"
    if talk.protocol is GroupProtocol.EAGER:
        memory = read_sticky_memory(
            read_subscription(talk.sends(JoinGroupRequest, at_ms)[0][1].protocols[0].metadata).user_data
        )
        if set(memory[0]) != gone:
            yield f"it remembers {memory}, and had {sorted(gone)}"

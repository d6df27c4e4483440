"""Let a consumer's application be late or close, or its coordinator fall silent, and check what it does.

What it decides: when each trouble begins and how long it lasts, from draws.

Constraints: before and after the trouble all is answered at once. Each function yields what the consumer does that
Kafka's does not.

Source: Kafka's consumers, as `cures`; heartbeat.interval.ms 3 s, of a consumer group 5 s; auto.commit.interval.ms 5 s.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

from broker.error_codes import ErrorCode
from broker.group.classic import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)
from broker.group.consumer import ConsumerGroupHeartbeatRequest
from broker.group.messages import FindCoordinatorRequest, OffsetCommitRequest
from broker.units import DurationMs, TimeMs
from replication.groups.client.messages import (
    Died,
    PartitionsRevoked,
    PollExpired,
    Read,
    TopicMetadataRequest,
    Why,
)
from replication.groups.client.protocols import GroupProtocol
from tests.replication.mutants.client_talk import MAX_POLL_MS, METADATA_MS, POLL_MS, Talk, erring, settled
from tests.replication.mutants.drawing import Draws
from tests.replication.mutants.one_member import EVERY
from tests.replication.mutants.talk_checks import always

_REST_MS: Final = 9_000
_BEAT_MS: Final = {True: 5_000, False: 3_000}
_COMMIT_MS: Final = 5_000


def watch(draws: Draws, protocol: GroupProtocol) -> Iterator[str]:
    """Let nothing happen."""
    talk = settled(draws, protocol)
    since_ms = talk.now_ms
    talk.run_until(since_ms + 30_000)
    beats = talk.sends(ConsumerGroupHeartbeatRequest if talk.is_consumer else HeartbeatRequest, since_ms)
    gaps = {later - earlier for (earlier, _), (later, _) in pairwise(beats)}
    if gaps != {_BEAT_MS[talk.is_consumer]}:
        yield f"it beats every {gaps} ms"
    if talk.is_consumer and any((each.owned, each.subscribed_topics) != (None, None) for _, each in beats):
        yield f"nothing has changed, and it says {beats}"
    polls = sorted({when for when, _ in talk.notes(Read, since_ms)})
    if {later - earlier for earlier, later in pairwise(polls)} != {POLL_MS}:
        yield f"it reads at {polls[:9]}"
    commits = talk.sends(OffsetCommitRequest, since_ms)
    gaps = {later - earlier for (earlier, _), (later, _) in pairwise(commits)}
    if not all(_COMMIT_MS <= gap < _COMMIT_MS + POLL_MS for gap in gaps):
        yield f"it commits every {gaps} ms"
    if any({each.partition for each in request.commits} != talk.client.subscriptions.owned for _, request in commits):
        yield f"it commits {commits}"
    looks = [when for when, _ in talk.sends(TopicMetadataRequest, since_ms)]
    if bool(looks) != talk.leads or any(later - earlier != METADATA_MS for earlier, later in pairwise(looks)):
        yield f"it leads: {talk.leads}, and asks for topics at {looks}"
    if talk.leads:
        talk.counts = {"t": 3, "u": 1}
        talk.run_until(talk.now_ms + METADATA_MS + 2 * POLL_MS)
        if not talk.sends(JoinGroupRequest, since_ms + 30_000):
            yield "of another count of partitions it does not join again"
    yield from always(talk)


def stall(draws: Draws, protocol: GroupProtocol) -> Iterator[str]:
    """Keep the application from polling."""
    talk = settled(draws, protocol)
    begin_ms, is_long = talk.now_ms, draws.is_one_in(2)
    for_ms = draws.number(65_000, 90_000) if is_long else draws.number(5_000, 45_000)
    end_ms, owned, member_id = begin_ms + for_ms, talk.client.subscriptions.owned, talk.client.member_id
    polled_ms = _polled_ms(talk)
    talk.do(talk.client.stall(DurationMs(for_ms), TimeMs(begin_ms)))
    talk.run_until(end_ms + _REST_MS)
    kind = ConsumerGroupHeartbeatRequest if talk.is_consumer else HeartbeatRequest
    reads = [when for when, _ in talk.notes(Read, begin_ms + 1)]
    busy = [when for when, _ in talk.sends(OffsetCommitRequest, begin_ms + 1) if when < end_ms]
    if busy or not reads or reads[0] < end_ms or (not is_long and reads[0] != end_ms):
        yield f"held up until {end_ms} it reads at {reads[:1]} and commits at {busy}"
    expired = [when for when, _ in talk.notes(PollExpired)]
    left_ms = polled_ms + MAX_POLL_MS if is_long else end_ms
    if expired != ([left_ms] if is_long else []):
        yield f"polled at {polled_ms}, held up until {end_ms} it is too late at {expired}"
    beats = [when for when, each in talk.sends(kind, begin_ms) if when < left_ms]
    if any(later - earlier != _BEAT_MS[talk.is_consumer] for earlier, later in pairwise(beats)):
        yield f"held up it beats at {beats}"
    if is_long:
        yield from _left(talk, (left_ms, end_ms), owned, member_id)
    yield from always(talk)


def _polled_ms(talk: Talk) -> int:
    """Return when the application polled last; a poll may find nothing to read."""
    read_ms = max((when for when, _ in talk.notes(Read)), default=0)
    return read_ms + (talk.now_ms - read_ms) // POLL_MS * POLL_MS


def close(draws: Draws, protocol: GroupProtocol) -> Iterator[str]:
    """Close a consumer that has not polled for long, and do not answer its last commit."""
    talk = settled(draws, protocol)
    late_ms = _polled_ms(talk) + MAX_POLL_MS
    talk.do(talk.client.stall(DurationMs(MAX_POLL_MS), TimeMs(talk.now_ms)))
    talk.run_until(talk.now_ms + draws.number(40_000, 59_000))
    talk.silent.add(OffsetCommitRequest)
    begin_ms, end_ms = talk.now_ms, talk.now_ms + talk.spec.options.request_timeout_ms
    talk.do(talk.client.close(TimeMs(begin_ms)))
    talk.run_until(end_ms + POLL_MS)
    expired = [when for when, _ in talk.notes(PollExpired)]
    if end_ms != late_ms and expired != ([late_ms] if late_ms < end_ms else []):
        yield f"closed from {begin_ms} to {end_ms} it polls too late at {expired}, and should at {late_ms}"
    kind = ConsumerGroupHeartbeatRequest if talk.is_consumer else HeartbeatRequest
    beats = [when for when, _ in talk.sends(kind, begin_ms - 2 * _BEAT_MS[talk.is_consumer]) if when < late_ms]
    if any(later - earlier != _BEAT_MS[talk.is_consumer] for earlier, later in pairwise(beats)):
        yield f"closed from {begin_ms} to {end_ms} it beats at {beats}"
    busy = talk.notes(Read, begin_ms)
    if busy or not talk.client.is_over or talk.client.subscriptions.owned:
        yield f"closed it reads {busy}, is over: {talk.client.is_over}, owns {talk.client.subscriptions.owned}"


def _left(talk: Talk, between: tuple[int, int], owned: frozenset[Any], member_id: str) -> Iterator[str]:
    """Yield what a member that polls too late does not do: it leaves, loses all, and joins at its next poll."""
    left_ms, end_ms = between
    if talk.is_consumer:
        said = [
            (when, each.epoch) for when, each in talk.sends(ConsumerGroupHeartbeatRequest, left_ms) if when < end_ms
        ]
        wanted: list[tuple[int, Any]] = [(left_ms, -2 if talk.is_static else -1)]
        joins = [each.epoch for when, each in talk.sends(ConsumerGroupHeartbeatRequest, end_ms)]
        is_back = joins[:1] == [0]
    else:
        said = [(when, each.members[0][0]) for when, each in talk.sends(LeaveGroupRequest, left_ms)]
        wanted = [] if talk.is_static else [(left_ms, member_id)]
        said += [(when, "beats") for when, _ in talk.sends(HeartbeatRequest, left_ms + 1) if when < end_ms]
        is_back = [each.member_id for _, each in talk.sends(JoinGroupRequest, end_ms)][:1] == [""]
    if said != wanted or not is_back:
        yield f"too late it says {said}, then joins: {is_back}"
    lost = [(when, note.partitions, note.why) for when, note in talk.notes(PartitionsRevoked, left_ms)][:1]
    if lost != [(left_ms if talk.is_consumer else end_ms, owned, Why.LOST)]:
        yield f"too late at {left_ms} it loses {lost} of {sorted(owned)}"


def silence(draws: Draws, protocol: GroupProtocol) -> Iterator[str]:
    """Let the coordinator not answer heartbeats any more."""
    talk = settled(draws, protocol, request_timeout_ms=DurationMs(100_000))
    kind = ConsumerGroupHeartbeatRequest if talk.is_consumer else HeartbeatRequest
    begin_ms = talk.now_ms
    talk.silent.add(kind)
    talk.run_until(begin_ms + 50_000)
    heard_ms = max((each.at_ms for each in talk.answers(kind)), default=0)
    found = [when - heard_ms for when, _ in talk.sends(FindCoordinatorRequest, begin_ms)]
    beats = [when for when, _ in talk.sends(kind, begin_ms)]
    if talk.is_consumer:
        if found or len(beats) > 1:
            yield f"it beats at {beats} while another is under way, and looks after {found} ms"
    elif not found or not 44_000 <= found[0] <= 48_100:
        yield f"it looks for its coordinator after {found} ms of silence"


def remember(draws: Draws, protocol: GroupProtocol) -> Iterator[str]:
    """Let the application ask for partitions that it was assigned first."""
    talk = settled(draws, protocol, remembers_partitions=True)
    before = talk.client.subscriptions.owned
    # What is assigned later, and taken back, the application has not remembered.
    for share in (before.union(draws.some(EVERY)), frozenset(draws.some(EVERY))):
        talk.share, talk.is_calling = share, True
        talk.run_until(talk.now_ms + 20_000)
    missing = sorted(before if protocol is GroupProtocol.EAGER else before - talk.share)
    died = [note.reason for _, note in talk.notes(Died)]
    wanted = [f"IllegalStateException: No current assignment for partition {each}" for each in missing[:1]]
    if protocol is not GroupProtocol.EAGER and died != wanted:
        yield f"of {sorted(before)} it keeps {sorted(talk.share)}, and dies: {died}"


def garble(draws: Draws, protocol: GroupProtocol) -> Iterator[str]:
    """Let a leader send an assignment that nobody can read."""
    talk = settled(draws, protocol)
    if talk.is_consumer:
        return
    talk.replies[HeartbeatRequest] = erring(ErrorCode.REBALANCE_IN_PROGRESS)
    talk.replies[SyncGroupRequest] = lambda request: SyncGroupResponse(ticket=request.ticket, assignment=b"\0")
    talk.run_until(talk.now_ms + _REST_MS)
    died = [(when, note.reason.partition(":")[0]) for when, note in talk.notes(Died)]
    if died != [(talk.trouble_ms, "IllegalStateException")]:
        yield f"of an assignment that nobody can read it dies: {died}"

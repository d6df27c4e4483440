"""Define a consumer's interface, and the parts that both protocols share: poll loop, positions, offsets, commits.

Constraints: the application is one thread. While it works on records, or runs its rebalance listener, it does not poll,
and actions that need it wait for the next poll; heartbeats and responses go on beside it. Only partitions that are
owned, have a position and are not paused are read; partitions that are given up lose their position.

Source: ClassicKafkaConsumer.poll, AsyncKafkaConsumer.poll, ConsumerCoordinator.maybeAutoCommitOffsetsAsync,
SubscriptionState and FetchCollector, 4.3.1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable
from typing import Final, Protocol

from broker.error_codes import ErrorCode
from broker.group.classic import Ticket
from broker.group.members import MemberId
from broker.group.messages import OffsetCommitRequest, OffsetCommitResponse, OffsetFetchRequest, OffsetFetchResponse
from broker.group.offsets import Commit
from broker.group.timers import Timers
from broker.ids import Offset, TopicPartition
from broker.units import DurationMs, TimeMs
from replication.groups.client.link import LOOK_AGAIN, ClientSpec, Link
from replication.groups.client.messages import (
    Committed,
    Died,
    Output,
    PartitionsAssigned,
    PartitionsRevoked,
    Read,
    Response,
    Why,
)


class Feed(Protocol):
    """Define the records that a consumer can read, known by their offsets alone."""

    def end_offset(self, partition: TopicPartition, now_ms: TimeMs) -> Offset:
        """Return the offset after the last record that may be read."""
        ...


class SubscriptionState:
    """Hold the owned partitions of one consumer and their positions."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._positions: dict[TopicPartition, Offset | None] = {}
        self._paused: frozenset[TopicPartition] = frozenset()
        self._first: TopicPartition | None = None

    @property
    def owned(self) -> frozenset[TopicPartition]:
        """Return the partitions that the consumer owns in its own view."""
        return frozenset(self._positions)

    def assign(self, partitions: frozenset[TopicPartition]) -> None:
        """Replace the owned partitions; those that were owned before keep their position."""
        self._positions = {one: self._positions.get(one) for one in sorted(partitions)}
        self._paused = frozenset()

    def pause(self, partitions: frozenset[TopicPartition]) -> None:
        """Stop reading these partitions, which are about to be revoked."""
        self._paused = partitions & self.owned

    def without_position(self) -> tuple[TopicPartition, ...]:
        """Return the owned partitions whose committed offset is not known yet."""
        return tuple(one for one, position in self._positions.items() if position is None)

    def seek(self, partition: TopicPartition, offset: Offset) -> None:
        """Set the offset from which a partition is read next; do nothing if it is no longer owned."""
        if partition in self._positions:
            self._positions[partition] = offset

    def commits(self) -> tuple[Commit, ...]:
        """Return a commit of every position."""
        return tuple(Commit(one, position) for one, position in self._positions.items() if position is not None)

    def read(self, count_max: int, now_ms: TimeMs) -> tuple[Read, ...]:
        """Return the records of one poll, at most `count_max`, and move the positions after them.

        After a full poll, the next poll begins with the next partition, so that none starves.
        """
        reads: list[Read] = []
        left = count_max
        for partition in self._in_turn():
            position = self._positions[partition]
            if position is None or partition in self._paused:
                continue
            end = Offset(min(self._feed.end_offset(partition, now_ms), position + left))
            if end > position:
                reads.append(Read(partition, position, end))
                self._positions[partition] = end
                left -= end - position
                self._first = partition
        if left:
            self._first = None
        return tuple(reads)

    def _in_turn(self) -> Iterable[TopicPartition]:
        partitions = list(self._positions)
        if self._first not in self._positions:
            return partitions
        place = partitions.index(self._first) + 1
        return partitions[place:] + partitions[:place]


_POLL: Final = "poll"
_POLL_TIMEOUT: Final = "max poll"
_CALLBACK: Final = "callback"
RETRY: Final = "retry"
RETRIABLE: Final = LOOK_AGAIN | {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.REQUEST_TIMED_OUT}
"""Errors of a commit after which it is sent again."""


class Client(ABC):
    """Model one consumer and its application; every call returns requests to send and notes of events, in order."""

    def __init__(self, spec: ClientSpec, feed: Feed) -> None:
        self.spec = spec
        self.subscriptions = SubscriptionState(feed)
        self.is_over = False
        """Whether the application has ended; nothing comes of it any more."""
        self._timers = Timers()
        self._link = Link(spec, self._timers)
        self._waiting: list[Callable[[], None]] = []
        self._is_busy = False
        self._stalled_until_ms = TimeMs(0)
        self._next_commit_ms = TimeMs(0)
        self._is_fetching_offsets = False
        self._remembered: frozenset[TopicPartition] = frozenset()

    # What the surroundings call.

    @property
    @abstractmethod
    def member_id(self) -> MemberId:
        """Return the member id that the coordinator knows, empty before it has given one."""

    @property
    @abstractmethod
    def generation(self) -> int:
        """Return the generation, or member epoch, in the consumer's own view; below 1 outside a group."""

    @property
    @abstractmethod
    def can_commit(self) -> bool:
        """Return whether the consumer would send a commit: not while it joins."""

    @property
    def coming(self) -> frozenset[TopicPartition]:
        """Return the partitions that the consumer is about to own, as it has begun to reconcile."""
        return frozenset()

    def start(self, now_ms: TimeMs) -> tuple[Output, ...]:
        """Begin to poll."""
        self._link.now_ms = now_ms
        self._tick()
        return self._link.take()

    def handle(self, ticket: Ticket, response: Response, now_ms: TimeMs) -> tuple[Output, ...]:
        """Take a response, after running every timer that is due by `now_ms`."""
        self._fire(now_ms)
        if not self.is_over:
            self._link.answer(ticket, response)
        return self._link.take()

    def advance(self, now_ms: TimeMs) -> tuple[Output, ...]:
        """Run every timer that is due by `now_ms`."""
        self._fire(now_ms)
        return self._link.take()

    def next_ms(self) -> TimeMs | None:
        """Return the time of the consumer's next timer in ms; None if there is none."""
        return None if self.is_over else self._timers.next_ms()

    def stall(self, for_ms: DurationMs, now_ms: TimeMs) -> tuple[Output, ...]:
        """Keep the application from polling for `for_ms` milliseconds; the consumer's own threads go on."""
        self._fire(now_ms)
        self._stalled_until_ms = max(self._stalled_until_ms, TimeMs(now_ms + for_ms))
        return self._link.take()

    def close(self, now_ms: TimeMs) -> tuple[Output, ...]:
        """Begin to close: commit, give up all partitions, leave the group; `is_over` turns True at the end."""
        self._fire(now_ms)
        if not self.is_over:
            # Polling ends, and what waits for the next poll never happens. max.poll.interval.ms goes on while the last
            # commit is under way: in Kafka, too, a member that polled too long ago leaves before that is answered.
            self._timers.cancel(_POLL)
            self._close()
        return self._link.take()

    # What a protocol adds.

    @abstractmethod
    def _poll_group(self) -> None:
        """Do what the group needs from the application's thread at each poll."""

    @abstractmethod
    def _close(self) -> None:
        """Commit and leave the group."""

    @abstractmethod
    def _on_poll_timeout(self) -> None:
        """React to an application that has not polled for max.poll.interval.ms."""

    @abstractmethod
    def _on_commit_error(self, error: ErrorCode, sent_generation: int) -> None:
        """React to a refused commit that was sent in generation `sent_generation`."""

    # The application's thread.

    @property
    def _now_ms(self) -> TimeMs:
        return self._link.now_ms

    def _fire(self, now_ms: TimeMs) -> None:
        """Run the timers that are due; those of a process that stood still run now, all at once."""
        assert now_ms >= self._link.now_ms, (now_ms, self._link.now_ms)
        self._link.now_ms = now_ms
        for _, action in self._timers.due(now_ms):
            if self.is_over:
                break
            action()

    def _tick(self) -> None:
        """Poll once; while the application is held up, plan the next poll for the moment when it is free."""
        options = self.spec.options
        if self._now_ms < self._stalled_until_ms:
            self._timers.set(_POLL, self._now_ms, DurationMs(self._stalled_until_ms - self._now_ms), self._tick)
            return
        self._is_busy = False
        self._on_polled()
        waiting, self._waiting = self._waiting, []
        for action in waiting:
            self._on_application(action)
        if not self._is_held:
            self._poll_group()
        self._check_remembered()
        if not self._is_held:
            self._commit_if_due()
            self._fetch_offsets()
            reads = self.subscriptions.read(options.max_poll_records, self._now_ms)
            for read in reads:
                self._link.note(read)
            self._is_busy = bool(reads)
        self._timers.set(_POLL, self._now_ms, options.poll_ms, self._tick)

    def _on_polled(self) -> None:
        """Note that the application has polled: max.poll.interval.ms begins again."""
        self._timers.set(_POLL_TIMEOUT, self._now_ms, self.spec.options.max_poll_interval_ms, self._on_poll_timeout)

    @property
    def _is_held(self) -> bool:
        """Whether the application is doing something other than waiting in a poll."""
        return self._is_busy or self._now_ms < self._stalled_until_ms

    def _on_application(self, action: Callable[[], None]) -> None:
        """Do `action` on the application's thread: now if it waits in a poll, else at its next poll."""
        if self._is_held:
            self._waiting.append(action)
        else:
            action()

    def _call_back(self, action: Callable[[], None]) -> None:
        """Call the rebalance listener, which takes `revoke_ms`, then do `action`."""
        delay_ms = self.spec.revoke_ms
        if delay_ms == 0:
            action()
            return
        self._stalled_until_ms = max(self._stalled_until_ms, TimeMs(self._now_ms + delay_ms))
        self._timers.set(_CALLBACK, self._now_ms, delay_ms, action)

    def _check_remembered(self) -> None:
        """End a program that asks for the position of a partition that it no longer owns (SPARK-22968)."""
        if not self.spec.remembers_partitions:
            return
        missing = sorted(self._remembered - self.subscriptions.owned)
        if missing:
            self._die(f"IllegalStateException: No current assignment for partition {missing[0]}")
        self._remembered = self._remembered or self.subscriptions.owned

    def _die(self, reason: str) -> None:
        """End without a LeaveGroup, and say why."""
        self._own(frozenset(), Why.LOST)
        self._link.note(Died(reason))
        self.is_over = True

    # What is owned.

    def _own(self, partitions: frozenset[TopicPartition], why: Why = Why.REVOKED) -> None:
        """Own exactly these partitions, and note what was assigned and revoked."""
        owned = self.subscriptions.owned
        if owned - partitions:
            self._link.note(PartitionsRevoked(owned - partitions, why))
        if partitions - owned:
            self._link.note(PartitionsAssigned(partitions - owned))
        self.subscriptions.assign(partitions)

    def _fetch_offsets(self) -> None:
        """Fetch the committed offsets of partitions without a position, unless a fetch is under way."""
        partitions = self.subscriptions.without_position()
        if not partitions or self._is_fetching_offsets or self._link.coordinator is None:
            return
        self._is_fetching_offsets = True
        request = OffsetFetchRequest(partitions=partitions, member_id=self.member_id, generation=self.generation)
        self._link.ask(request, lambda response: self._on_offsets(partitions, response))

    def _on_offsets(self, partitions: tuple[TopicPartition, ...], response: Response) -> None:
        """Start reading at the committed offsets, at 0 (auto.offset.reset=earliest) where nothing was committed."""
        self._is_fetching_offsets = False
        if isinstance(response, OffsetFetchResponse) and response.error is ErrorCode.NONE:
            for partition, offset in zip(partitions, response.offsets, strict=True):
                self.subscriptions.seek(partition, Offset(0) if offset is None else offset)
        elif not isinstance(response, OffsetFetchResponse) or response.error in LOOK_AGAIN:
            self._link.lose_coordinator()

    # Commits.

    def _commit_if_due(self) -> None:
        if self._now_ms >= self._next_commit_ms:
            self._restart_commit_timer()
            self._commit(lambda error: None)

    def _restart_commit_timer(self) -> None:
        self._next_commit_ms = TimeMs(self._now_ms + self.spec.options.auto_commit_interval_ms)

    def _commit(self, then: Callable[[ErrorCode], None]) -> None:
        """Commit all positions and pass the result to `then`, at once if nothing can be committed.

        An answer that does not come is REQUEST_TIMED_OUT, the first error among the partitions stands for all.
        """
        commits = self.subscriptions.commits()
        if not commits or not self.can_commit:
            then(ErrorCode.NONE)
            return
        if self._link.coordinator is None:
            self._link.look()
            then(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        generation = self.generation
        request = OffsetCommitRequest(
            commits=commits, member_id=self.member_id, generation=generation, instance_id=self.spec.instance_id
        )
        self._link.ask(request, lambda response: self._on_committed(commits, generation, response, then))

    def _commit_until_late(self, retriable: Container[ErrorCode], then: Callable[[], None]) -> None:
        """Commit, and again after each retriable error for at most max.poll.interval.ms; then do `then`."""
        options, since_ms = self.spec.options, self._now_ms

        def commit() -> None:
            self._commit(committed)

        def committed(error: ErrorCode) -> None:
            if error in retriable and self._now_ms - since_ms < options.max_poll_interval_ms:
                self._timers.set(RETRY, self._now_ms, options.retry_backoff_ms, commit)
            else:
                then()

        commit()

    def _on_committed(
        self, commits: tuple[Commit, ...], generation: int, response: Response, then: Callable[[ErrorCode], None]
    ) -> None:
        lost = (ErrorCode.REQUEST_TIMED_OUT,) * len(commits)
        errors = response.errors if isinstance(response, OffsetCommitResponse) else lost
        for commit, error in zip(commits, errors, strict=True):
            self._link.note(Committed(commit.partition, commit.offset, error))
        first = next((error for error in errors if error is not ErrorCode.NONE), ErrorCode.NONE)
        if first in LOOK_AGAIN or first is ErrorCode.REQUEST_TIMED_OUT:
            self._link.lose_coordinator()
        elif first is not ErrorCode.NONE:
            self._on_commit_error(first, generation)
        if first in RETRIABLE:
            self._next_commit_ms = min(self._next_commit_ms, TimeMs(self._now_ms + self.spec.options.retry_backoff_ms))
        if not self.is_over:
            then(first)

"""Coordinate the groups of one partition of `__consumer_offsets`, on the broker that leads it.

What it decides: when a coordinator may answer: after it has read its partition, and after the records behind the
response are committed.

Goals, most important first:
1. Every later coordinator knows the state that a response reports.
2. A coordinator whose broker no longer leads the partition answers NOT_COORDINATOR to every waiting request.

Constraints: a coordinator remembers only what stands in the log. A refused append changes nothing; one that is not
committed in time (offsets.commit.timeout.ms) is answered with an error and stands in the log all the same.

How: `GroupService` is one group; it asks for appends, and gets the result of each when the high watermark has passed
it, or when it was refused. While the partition is read, requests are answered COORDINATOR_LOAD_IN_PROGRESS, except
heartbeats of classic members, which succeed.

Example: a commit is appended at offset 7 and answered when the high watermark is 8. If the broker ceases to lead
before, it is answered NOT_COORDINATOR, and the member cannot know whether it will be committed.

A consumer's OffsetFetch asks for stable offsets (KIP-447): it waits until all that stood in the log as it came is
committed, at most as long as a commit does. So a new coordinator whose high watermark has not reached its log's end
shows no offset that a later commit, acknowledged before, has replaced.

A heartbeat of a consumer group that changes nothing is answered with what earlier records made of its member, so its
response waits for them as well, whichever group they are of: also for those whose append has timed out, and for those
that a new coordinator has read above its high watermark (`held`).

Left out: several writes gathered in one batch (group.coordinator.append.linger.ms). Heartbeats and departures of
classic members wait in Kafka as those of consumer groups do; here they are answered at once.

Source: Kafka CoordinatorRuntime, GroupCoordinatorService, CoordinatorPartitionWriter; 4.3.1;
GroupCoordinatorService.fetchOffsets, CoordinatorRuntime.waitForPendingWrites and CoordinatorLoaderImpl, 4.3.1.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final, TypeAlias

import attrs

from broker.entropy import RandomSource, SplitMix64
from broker.error_codes import ErrorCode
from broker.group.classic import (
    ClassicOptions,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
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
from broker.group.messages import (
    DeleteGroupRequest,
    DeleteGroupResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from broker.group.offsets import OffsetOptions
from broker.group.service import (
    Append,
    GroupService,
    OffsetRecord,
    Output,
    Reply,
    Request,
    Response,
    ServiceOptions,
)
from broker.ids import Offset
from broker.releases import NEWEST, Release
from broker.units import DurationMs, TimeMs
from replication.groups.client.assigning import ServerSideAssignor
from replication.groups.connections import Caller, ShardDue
from replication.groups.offsets_log import Journal, Uncommitted, batch_of, read_groups
from replication.roles.hosted import Host
from replication.roles.messages import ProduceResponse
from replication.roles.outbox import Outbox
from replication.roles.replica_log import ReplicaLog


def service_options(
    assignor: str,
    topics: Mapping[str, int],
    seed: int,
    *,
    offsets_retention_ms: DurationMs | None = None,
    assignment_interval_ms: DurationMs | None = None,
    release: Release = NEWEST,
) -> ServiceOptions:
    """Return the settings of a coordinator that assigns consumer groups by `assignor`.

    The coordinator looks up the partition counts in `topics` whenever it assigns, so a topic may grow there.
    """
    options = ConsumerOptions(release=release)
    if assignment_interval_ms is not None:
        options = attrs.evolve(options, assignment_interval_ms=assignment_interval_ms)
    return ServiceOptions(
        classic=ClassicOptions(),
        context=GroupContext(
            options=options,
            assignors=(ServerSideAssignor.load(assignor, SplitMix64(seed)),),
            topics=topics,
        ),
        offsets=OffsetOptions() if offsets_retention_ms is None else OffsetOptions(retention_ms=offsets_retention_ms),
    )


def refusal(request: Request, ticket: Ticket, error: ErrorCode) -> Response:
    """Return the response that refuses `request` as a whole with `error`."""
    match request:
        case JoinGroupRequest():
            return JoinGroupResponse(ticket=ticket, error=error, member_id=request.member_id)
        case SyncGroupRequest():
            return SyncGroupResponse(ticket=ticket, error=error)
        case HeartbeatRequest():
            return HeartbeatResponse(ticket=ticket, error=error)
        case LeaveGroupRequest():
            return LeaveGroupResponse(ticket=ticket, error=error)
        case ConsumerGroupHeartbeatRequest():
            return ConsumerGroupHeartbeatResponse(error=error, member_id=request.member_id, epoch=request.epoch)
        case OffsetCommitRequest():
            return OffsetCommitResponse((error,) * len(request.commits))
        case OffsetFetchRequest():
            return OffsetFetchResponse(error=error)
        case DeleteGroupRequest():
            return DeleteGroupResponse(error)
        case OffsetDeleteRequest():
            return OffsetDeleteResponse(error=error)


Finish: TypeAlias = Callable[[ErrorCode, TimeMs], tuple[Output, ...]]
"""What comes of what is held: NONE if all before it is committed, REQUEST_TIMED_OUT if that has taken too long, and
NOT_COORDINATOR if the broker has ceased to lead."""


@attrs.frozen
class Held:
    """Hold a request until the records before `end_offset` are committed, at most until `due_ms`."""

    service: GroupService
    finish: Finish
    end_offset: Offset
    due_ms: TimeMs


def shows_state(request: Request, reply: Reply) -> bool:
    """Return whether a response is that of a ConsumerGroupHeartbeat without an error.

    In Kafka an operation that is refused has no records to wait for.
    """
    response = reply.response
    if not isinstance(response, ConsumerGroupHeartbeatResponse):
        return False
    assert isinstance(request, ConsumerGroupHeartbeatRequest), request
    return response.error is ErrorCode.NONE


def fetch_later(service: GroupService, ticket: Ticket, request: OffsetFetchRequest) -> Finish:
    """Return a function that handles an OffsetFetch later, or answers NOT_COORDINATOR."""

    def finish(error: ErrorCode, now_ms: TimeMs) -> tuple[Output, ...]:
        if error is ErrorCode.NONE:
            return service.handle(ticket, request, now_ms)
        return (Reply(ticket, refusal(request, ticket, ErrorCode.NOT_COORDINATOR)),)

    return finish


def reply_later(request: Request, reply: Reply) -> Finish:
    """Return a function that sends a response later, or refuses its request."""

    def finish(error: ErrorCode, now_ms: TimeMs) -> tuple[Output, ...]:
        if error is ErrorCode.NONE:
            return (reply,)
        is_late = error is ErrorCode.REQUEST_TIMED_OUT
        answered = ErrorCode.COORDINATOR_NOT_AVAILABLE if is_late else ErrorCode.NOT_COORDINATOR
        return (Reply(reply.ticket, refusal(request, reply.ticket, answered)),)

    return finish


_COMMITTED = (ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
"""Results after which the high watermark has passed an append; a coordinator ignores that the ISR is small by then."""


STABLE_MS_MAX: Final = DurationMs(5_000)
"""The time that a request waits for what is not committed: offsets.commit.timeout.ms by default."""
_LOOK_MS: Final = 20
"""How often in ms waiting requests look at the high watermark, of which a coordinator is not notified."""


@attrs.frozen
class _Waiting:
    """An append whose result is not known yet."""

    service: GroupService
    append: Append


class Shard:
    """Coordinate the groups of one partition; `tell` sends a response to a caller."""

    def __init__(
        self,
        partition: int,
        number: int,
        options: ServiceOptions,
        topics: Collection[str],
        entropy: RandomSource,
        tell: Callable[[Caller, Response, Outbox], None],
    ) -> None:
        self.partition = partition
        self.number = number
        self.is_loading = True
        self.services: dict[str, GroupService] = {}
        self._options = options
        self._journal = Journal(topics)
        self._entropy = entropy
        self._tell = tell
        self._waiting: dict[int, _Waiting] = {}
        self._uncommitted: list[Uncommitted] = []
        self._held: list[Held] = []
        self._asked: dict[Ticket, Caller] = {}
        self._ticket = Ticket(0)
        self._wakes_ms: TimeMs | None = None

    @property
    def request_count(self) -> int:
        """Return the number of requests handled."""
        return self._ticket

    @property
    def is_waiting(self) -> bool:
        """Return whether the result of an append is not known yet."""
        return bool(self._waiting)

    def load(self, host: Host, now_ms: TimeMs, out: Outbox) -> None:
        """Read the partition, and begin to coordinate."""
        led = host.led_log(self.partition)
        assert led is not None, self.partition
        for group_id, read in sorted(read_groups(self._journal, led.log).items()):
            service = self.services[group_id] = self._new_service(group_id)
            service.load(read.entries(), now_ms)
            self._uncommitted += read.uncommitted
        self._uncommitted.sort(key=lambda each: each.offset)
        self.is_loading = False
        self._await(now_ms, out)

    def handle(self, host: Host, asked: tuple[Caller, str, Request], now_ms: TimeMs, out: Outbox) -> None:
        """Take a request of a group's client."""
        caller, group_id, request = asked
        self._show_committed(host)
        self._ticket = Ticket(self._ticket + 1)
        if self.is_loading:
            self._tell(caller, _loading(request, self._ticket), out)
            return
        if group_id not in self.services:
            self.services[group_id] = self._new_service(group_id)
        service = self.services[group_id]
        self._asked[self._ticket] = caller
        led = host.led_log(self.partition)
        if isinstance(request, OffsetFetchRequest) and led is not None and _is_unstable(led):
            self._hold(led, service, fetch_later(service, self._ticket, request), now_ms)
        else:
            for reply in self._replies(host, service, service.handle(self._ticket, request, now_ms), now_ms, out):
                if led is not None and _is_unstable(led) and shows_state(request, reply):
                    self._hold(led, service, reply_later(request, reply), now_ms)
                else:
                    self._reply(reply, out)
        self._await(now_ms, out)

    def on_due(self, host: Host, due: ShardDue, now_ms: TimeMs, out: Outbox) -> None:
        """Run the coordinators' timers that are due by `now_ms`."""
        if due.number != self.number:
            return
        self._wakes_ms = None
        self._show_committed(host)
        for _, service in sorted(self.services.items()):
            self._do(host, service, service.advance(now_ms), now_ms, out)
        self._finish_held(host, now_ms, out)
        self._await(now_ms, out)

    def on_produced(self, host: Host, response: ProduceResponse, now_ms: TimeMs, out: Outbox) -> None:
        """Take the result of an append."""
        waiting = self._waiting.pop(response.number, None)
        if waiting is None:
            return
        self._show_committed(host)
        error = ErrorCode.NONE if response.error in _COMMITTED else response.error
        if error is ErrorCode.REQUEST_TIMED_OUT:
            entries = [entry for entry in waiting.append.entries if isinstance(entry, OffsetRecord)]
            self._uncommitted += [Uncommitted(response.offset, entry) for entry in entries]
        service = waiting.service
        self._do(host, service, service.stored(waiting.append.token, error, now_ms), now_ms, out)
        self._finish_held(host, now_ms, out)
        self._await(now_ms, out)

    def close(self, now_ms: TimeMs, out: Outbox) -> None:
        """Answer NOT_COORDINATOR to every waiting caller."""
        for _, service in sorted(self.services.items()):
            self._reply_all(service.unload(now_ms), out)
        for held in self._held:
            self._reply_all(held.finish(ErrorCode.NOT_COORDINATOR, now_ms), out)

    def _new_service(self, group_id: str) -> GroupService:
        return GroupService(group_id, self._options, self._entropy)

    def _do(self, host: Host, service: GroupService, outputs: tuple[Output, ...], now_ms: TimeMs, out: Outbox) -> None:
        """Append entries and send responses."""
        for reply in self._replies(host, service, outputs, now_ms, out):
            self._reply(reply, out)

    def _replies(
        self, host: Host, service: GroupService, outputs: tuple[Output, ...], now_ms: TimeMs, out: Outbox
    ) -> Iterator[Reply]:
        """Append entries and yield responses; outputs of an append that fails at once come before the next output."""
        for output in outputs:
            if isinstance(output, Reply):
                yield output
                continue
            error = self._append(host, service, output, now_ms, out)
            if error is not None:
                yield from self._replies(host, service, service.stored(output.token, error, now_ms), now_ms, out)

    def _append(
        self, host: Host, service: GroupService, append: Append, now_ms: TimeMs, out: Outbox
    ) -> ErrorCode | None:
        """Append entries, and return the error if it is known at once; None when the result comes later."""
        batch = batch_of(self._journal.records(append.entries), now_ms)
        if not batch:
            return ErrorCode.NONE
        appended = host.append(self.partition, batch, out)
        if appended.error is not ErrorCode.NONE:
            return appended.error
        self._journal.written(append.entries)
        self._waiting[appended.number] = _Waiting(service, append)
        return None

    def _reply_all(self, outputs: tuple[Output, ...], out: Outbox) -> None:
        """Send a coordinator's responses, none of which waits for an append."""
        for output in outputs:
            assert isinstance(output, Reply), output
            self._reply(output, out)

    def _reply(self, reply: Reply, out: Outbox) -> None:
        self._tell(self._asked.pop(reply.ticket), reply.response, out)

    def _show_committed(self, host: Host) -> None:
        """Apply the offsets that were above the high watermark and are committed now."""
        led = host.led_log(self.partition)
        while self._uncommitted and led is not None and self._uncommitted[0].offset < led.log.high_watermark:
            each = self._uncommitted.pop(0)
            self.services[each.entry.key.group_id].offsets.apply(each.entry.key, each.entry.value, each.offset)

    def _hold(self, led: ReplicaLog, service: GroupService, finish: Finish, now_ms: TimeMs) -> None:
        """Hold a request until the high watermark has reached the present log end offset."""
        self._held.append(Held(service, finish, led.log.log_end_offset, TimeMs(now_ms + STABLE_MS_MAX)))

    def _finish_held(self, host: Host, now_ms: TimeMs, out: Outbox) -> None:
        """Finish the held requests whose records are committed now, and those that have timed out."""
        led = host.led_log(self.partition)
        waiting, self._held = self._held, []
        for held in waiting:
            if led is not None and led.log.high_watermark >= held.end_offset:
                self._do(host, held.service, held.finish(ErrorCode.NONE, now_ms), now_ms, out)
            elif now_ms >= held.due_ms:
                self._reply_all(held.finish(ErrorCode.REQUEST_TIMED_OUT, now_ms), out)
            else:
                self._held.append(held)

    def _await(self, now_ms: TimeMs, out: Outbox) -> None:
        """Plan the next timer of the groups."""
        due_ms = [service.next_ms() for service in self.services.values()]
        due_ms += [TimeMs(now_ms + _LOOK_MS)] if self._held else []
        next_ms = min(due_ms, default=None)
        if next_ms is not None and (self._wakes_ms is None or next_ms < self._wakes_ms):
            self._wakes_ms = next_ms
            out.wake(DurationMs(max(next_ms - now_ms, 0)), ShardDue(self.partition, self.number))


def _is_unstable(led: ReplicaLog) -> bool:
    """Return whether a log holds records that are not committed."""
    return led.log.high_watermark < led.log.log_end_offset


def _loading(request: Request, ticket: Ticket) -> Response:
    """Return the response of a coordinator that still reads: classic heartbeats succeed, all else is refused."""
    if isinstance(request, HeartbeatRequest):
        return HeartbeatResponse(ticket=ticket)
    return refusal(request, ticket, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

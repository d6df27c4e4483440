"""Serve one group under either protocol, with its offsets: requests go in, responses and records come out.

Goals, most important first:
1. No response reveals a state that a new coordinator would not know after a failover: a response waits for its records.
2. A broker that is not the coordinator, or has not yet loaded the group, refuses requests and changes nothing.

The caller stores the records in order and reports the result of each `Append` (`stored`), in order. The first member
that asks to join decides the group's protocol; an empty group can change to the other protocol.

Left out: transactions, members of both protocols in one group (group.consumer.migration.policy=disabled).

Source: GroupCoordinatorService, GroupCoordinatorShard, OffsetMetadataManager and CoordinatorRuntime, 4.0.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

import attrs

from broker.entropy import RandomSource
from broker.error_codes import ErrorCode
from broker.group.classic import (
    ClassicCoordinator,
    ClassicGroup,
    ClassicOptions,
    GroupState,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    Store,
    SyncGroupRequest,
    SyncGroupResponse,
    Ticket,
)
from broker.group.classic import Output as ClassicOutput
from broker.group.classic.group import CONSUMER
from broker.group.consumer import (
    ConsumerCoordinator,
    ConsumerGroup,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    GroupContext,
    new_group,
)
from broker.group.members import UNKNOWN_MEMBER, Departure, GroupRecord, MemberId
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
from broker.group.offsets import CommittedOffsets, ExpiryRule, OffsetOptions
from broker.group.records import CommittedOffset, OffsetKey
from broker.ids import Offset
from broker.units import MINUTE_MS, TimeMs

EXPIRY_CHECK_MS: Final = 10 * MINUTE_MS
"""offsets.retention.check.interval.ms by default."""

_NOT_STORED: Final = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_COORDINATOR: ErrorCode.NOT_COORDINATOR,
}
"""The error that a member receives, by the error of the append; COORDINATOR_NOT_AVAILABLE for any other error."""

Request: TypeAlias = (
    JoinGroupRequest
    | SyncGroupRequest
    | HeartbeatRequest
    | LeaveGroupRequest
    | ConsumerGroupHeartbeatRequest
    | OffsetCommitRequest
    | OffsetFetchRequest
    | DeleteGroupRequest
    | OffsetDeleteRequest
)
Response: TypeAlias = (
    JoinGroupResponse
    | SyncGroupResponse
    | HeartbeatResponse
    | LeaveGroupResponse
    | ConsumerGroupHeartbeatResponse
    | OffsetCommitResponse
    | OffsetFetchResponse
    | DeleteGroupResponse
    | OffsetDeleteResponse
)


@attrs.frozen
class OffsetRecord:
    """Store a committed offset; None removes the offset."""

    key: OffsetKey
    value: CommittedOffset | None


@attrs.frozen
class GroupRemoval:
    """Remove a group, of either protocol."""

    group_id: str


GroupEntry: TypeAlias = GroupRecord | ConsumerGroup | OffsetRecord | GroupRemoval
"""A stored entry of a group; the newest of each kind, and of each offset key, is valid."""


@attrs.frozen
class Reply:
    """Send the response to the request `ticket`."""

    ticket: Ticket
    response: Response


@attrs.frozen
class Append:
    """Append these entries, all or none, and report the result under `token`: an effect for the caller."""

    token: int
    entries: tuple[GroupEntry, ...]


Output: TypeAlias = Reply | Append


@attrs.frozen(kw_only=True)
class ServiceOptions:
    """Hold a coordinator's settings, its topics and its assignors."""

    classic: ClassicOptions
    context: GroupContext
    offsets: OffsetOptions


class GroupService:
    """Serve one group on one coordinator, from `load` to `unload`."""

    def __init__(self, group_id: str, options: ServiceOptions, entropy: RandomSource) -> None:
        self.group_id = group_id
        self.offsets = CommittedOffsets(options.offsets)
        self.classic = ClassicCoordinator(ClassicGroup(group_id), options.classic, entropy)
        self.consumer = ConsumerCoordinator(
            new_group(group_id, options.context.options.release), options.context, entropy
        )
        self._entropy = entropy
        self._kept = self.consumer.group
        """The consumer group as last appended."""
        self._outputs: list[Output] = []
        self._storing: dict[int, Callable[[ErrorCode, TimeMs], None]] = {}
        self._token = 0
        self._end_offset = 0
        self._has_been_asked = False
        """Whether a join or commit has made a classic group in memory, even if it was refused afterwards."""
        self._check_ms = TimeMs(EXPIRY_CHECK_MS)

    @property
    def is_consumer_group(self) -> bool:
        """Return whether the group has, or last had, members of the KIP-848 protocol."""
        return self.classic.group.state is GroupState.EMPTY and not self.consumer.group.is_new

    @property
    def is_known(self) -> bool:
        """Return whether there is such a group: it has had members, or has committed offsets."""
        classic = self.classic.group
        has_been_joined = bool(classic.members or classic.pending_joins or classic.generation or self._has_been_asked)
        return has_been_joined or not self.consumer.group.is_new or bool(self.offsets.of_group(self.group_id))

    @property
    def members(self) -> Mapping[MemberId, str]:
        """Return the members, each with its client id."""
        if self.is_consumer_group:
            return {member_id: member.client_id for member_id, member in self.consumer.group.members.items()}
        return {member_id: member.client_id for member_id, member in self.classic.group.members.items()}

    @property
    def generation(self) -> int:
        """Return the classic group's generation or the consumer group's epoch."""
        return self.consumer.group.epoch if self.is_consumer_group else self.classic.group.generation

    @property
    def rebalance_count(self) -> int:
        """Return how many generations or group epochs there have been; since 4.3 the first epoch is the second."""
        first = new_group(self.group_id, self.consumer.context.options.release).epoch
        return self.generation - first if self.is_consumer_group else self.generation

    def take_departed(self) -> tuple[tuple[str, Departure], ...]:
        """Return the client ids of the members that have left since the last call, each with the reason."""
        classic = tuple((member.client_id, why) for member, why in self.classic.take_departed())
        return classic + tuple((member.client_id, why) for member, why in self.consumer.take_departed())

    def load(self, entries: Iterable[GroupEntry], now_ms: TimeMs) -> None:
        """Load the entries that another coordinator stored, oldest first; restart every member's session timer."""
        for entry in entries:
            match entry:
                case GroupRecord():
                    group = ClassicGroup.of_record(entry)
                    self.classic = ClassicCoordinator(group, self.classic.options, self._entropy)
                case ConsumerGroup():
                    self.consumer.group = self._kept = entry
                case OffsetRecord():
                    self._apply(entry)
                case GroupRemoval():
                    self._forget_group()
        self.classic.loaded(now_ms)
        self.consumer.loaded(now_ms)
        self._check_ms = TimeMs(now_ms + EXPIRY_CHECK_MS)

    def handle(self, ticket: Ticket, request: Request, now_ms: TimeMs) -> tuple[Output, ...]:
        """Handle a request; a later call may return the response, named by `ticket`."""
        self._advance(now_ms)
        match request:
            case ConsumerGroupHeartbeatRequest():
                self._heartbeat(ticket, request, now_ms)
            case OffsetCommitRequest():
                self._commit(ticket, request, now_ms)
            case OffsetFetchRequest():
                self._outputs.append(Reply(ticket, self._fetch(request)))
            case DeleteGroupRequest():
                self._delete(ticket)
            case OffsetDeleteRequest():
                self._delete_offsets(ticket, request)
            case JoinGroupRequest():
                self._join(attrs.evolve(request, ticket=ticket), now_ms)
            case _:
                self._take(self.classic.handle(attrs.evolve(request, ticket=ticket), now_ms))
        return self._given()

    def advance(self, now_ms: TimeMs) -> tuple[Output, ...]:
        """Fire the timers that are due by `now_ms`."""
        self._advance(now_ms)
        return self._given()

    def next_ms(self) -> TimeMs:
        """Return the time at which `advance` next has work."""
        return min(
            each for each in (self.classic.next_ms(), self.consumer.next_ms(), self._check_ms) if each is not None
        )

    def stored(self, token: int, error: ErrorCode, now_ms: TimeMs) -> tuple[Output, ...]:
        """Continue after the entries of `token` were stored or failed; ignore unknown tokens."""
        self._advance(now_ms)
        if token in self._storing:
            self._storing.pop(token)(error, now_ms)
        return self._given()

    def unload(self, now_ms: TimeMs) -> tuple[Output, ...]:
        """Stop, because another broker now coordinates the group; answer all pending requests NOT_COORDINATOR."""
        storing, self._storing = self._storing, {}
        for then in storing.values():
            then(ErrorCode.NOT_COORDINATOR, now_ms)
        self._take(self.classic.unload(now_ms))
        return tuple(output for output in self._given() if isinstance(output, Reply))

    def _given(self) -> tuple[Output, ...]:
        outputs, self._outputs = tuple(self._outputs), []
        return outputs

    def _advance(self, now_ms: TimeMs) -> None:
        self._take(self.classic.advance(now_ms))
        self.consumer.advance(now_ms)
        if self.consumer.group is not self._kept:
            self._keep_group(lambda error: None)
        if now_ms >= self._check_ms:
            self._check_ms = TimeMs(now_ms + EXPIRY_CHECK_MS)
            self._expire(now_ms)

    def _append(self, entries: tuple[GroupEntry, ...], then: Callable[[ErrorCode, TimeMs], None]) -> None:
        self._token += 1
        self._storing[self._token] = then
        self._outputs.append(Append(self._token, entries))

    # Groups.

    def _take(self, outputs: tuple[ClassicOutput, ...]) -> None:
        for output in outputs:
            if isinstance(output, Store):
                self._store(output)
            else:
                self._outputs.append(Reply(output.ticket, output))

    def _store(self, store: Store) -> None:
        classic = self.classic
        self._append((store.record,), lambda error, now_ms: self._take(classic.stored(store.token, error, now_ms)))

    def _join(self, request: JoinGroupRequest, now_ms: TimeMs) -> None:
        """Join the classic group; it takes the place of a consumer group that is empty."""
        ticket, member_id, error = request.ticket, request.member_id, ErrorCode.NONE
        if self.consumer.group.members:
            error, member_id = ErrorCode.INCONSISTENT_GROUP_PROTOCOL, UNKNOWN_MEMBER
        elif not self.consumer.group.is_new:
            self._forget_consumer_group()
        if member_id and not self.is_known:
            error = ErrorCode.UNKNOWN_MEMBER_ID
        if error is not ErrorCode.NONE:
            self._outputs.append(Reply(ticket, JoinGroupResponse(ticket=ticket, error=error, member_id=member_id)))
            return
        self._has_been_asked |= not member_id
        self._take(self.classic.handle(request, now_ms))

    def _heartbeat(self, ticket: Ticket, request: ConsumerGroupHeartbeatRequest, now_ms: TimeMs) -> None:
        refusal = ConsumerGroupHeartbeatResponse(member_id=request.member_id, epoch=request.epoch)
        if self.classic.group.state is not GroupState.EMPTY:
            self._outputs.append(Reply(ticket, attrs.evolve(refusal, error=ErrorCode.GROUP_ID_NOT_FOUND)))
            return
        was_new = self.consumer.group.is_new
        found = self.consumer.handle(request, now_ms)
        if was_new and found.answer.error is ErrorCode.NONE:
            self._forget_classic_group()  # It is empty, and the consumer group takes its place.

        def answer(error: ErrorCode) -> None:
            refused = attrs.evolve(refusal, error=_error_of_append(error))
            self._outputs.append(Reply(ticket, found.answer if error is ErrorCode.NONE else refused))

        if found.group != self._kept:
            self._keep_group(answer)
        elif self._storing:
            self._after_last(answer)
        else:
            answer(ErrorCode.NONE)

    def _keep_group(self, then: Callable[[ErrorCode], None]) -> None:
        """Append the consumer group; if the append is refused, restore the group that was appended last.

        What was appended and is not replicated in time stands in the log all the same, and so it stays here.
        """
        before, self._kept = self._kept, self.consumer.group

        def finish(error: ErrorCode, now_ms: TimeMs) -> None:
            if error not in (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT) and not self.consumer.group.is_new:
                self.consumer.revert(before)
                self._kept = before
            then(error)

        self._append((self._kept,), finish)

    def _after_last(self, then: Callable[[ErrorCode], None]) -> None:
        """Run `then` once the last append is stored, because a response must not show unstored state."""
        token = max(self._storing)
        former = self._storing[token]

        def finish(error: ErrorCode, now_ms: TimeMs) -> None:
            former(error, now_ms)
            then(error)

        self._storing[token] = finish

    # Offsets.

    def commit_error(self, request: OffsetCommitRequest) -> ErrorCode:
        """Return the error of an offset commit; NONE if it is accepted."""
        if self.is_consumer_group:
            partitions = [each.partition for each in request.commits if self.offsets.takes_metadata_of(each)]
            return self.consumer.group.commit_error(request.member_id, request.generation, partitions)
        return self.classic.group.commit_error(request.member_id, request.instance_id, request.generation)

    def _commit(self, ticket: Ticket, request: OffsetCommitRequest, now_ms: TimeMs) -> None:
        error = self.commit_error(request)
        if error is not ErrorCode.NONE:
            self._outputs.append(Reply(ticket, OffsetCommitResponse((error,) * len(request.commits))))
            return
        self._has_been_asked |= request.generation < 0
        if not self.is_consumer_group:
            self.classic.renew_session(request.member_id, now_ms)
        records, errors = self.offsets.records(self.group_id, request.commits, now_ms)
        entries = tuple(OffsetRecord(key, value) for key, value in records)

        def answer(failure: ErrorCode, at_ms: TimeMs) -> None:
            if failure is ErrorCode.NONE:
                for entry in entries:
                    self._apply(entry)
                self._outputs.append(Reply(ticket, OffsetCommitResponse(errors)))
            else:
                self._outputs.append(Reply(ticket, OffsetCommitResponse((_error_of_append(failure),) * len(errors))))

        self._append(entries, answer)

    def _apply(self, entry: OffsetRecord) -> None:
        self.offsets.apply(entry.key, entry.value, Offset(self._end_offset))
        self._end_offset += 1

    def _fetch(self, request: OffsetFetchRequest) -> OffsetFetchResponse:
        """Return the committed offsets; members of a consumer group are checked, those of a classic group never."""
        if self.is_consumer_group and request.member_id:
            error = self.consumer.group.commit_error(request.member_id, request.generation)
            if error is not ErrorCode.NONE:
                return OffsetFetchResponse(error=error)
        found = tuple(self.offsets.fetch(self.group_id, partition) for partition in request.partitions)
        return OffsetFetchResponse(tuple(None if one is None else one.offset for one in found), committed=found)

    # Deletion.

    def _delete(self, ticket: Ticket) -> None:
        error = ErrorCode.NONE if self.is_known else ErrorCode.GROUP_ID_NOT_FOUND
        if self.members:
            error = ErrorCode.NON_EMPTY_GROUP
        if error is not ErrorCode.NONE:
            self._outputs.append(Reply(ticket, DeleteGroupResponse(error)))
            return
        offsets = tuple(
            OffsetRecord(OffsetKey(self.group_id, each.topic, each.partition), None)
            for each in sorted(self.offsets.of_group(self.group_id))
        )

        def answer(failure: ErrorCode, at_ms: TimeMs) -> None:
            self._forget(offsets, failure)
            if failure is ErrorCode.NONE:
                self._forget_group()
            error = ErrorCode.NONE if failure is ErrorCode.NONE else _error_of_append(failure)
            self._outputs.append(Reply(ticket, DeleteGroupResponse(error)))

        self._append((*offsets, GroupRemoval(self.group_id)), answer)

    def _forget_group(self) -> None:
        self._forget_classic_group()
        self._forget_consumer_group()

    def _forget_classic_group(self) -> None:
        self._has_been_asked = False
        self.classic = ClassicCoordinator(ClassicGroup(self.group_id), self.classic.options, self._entropy)

    def _forget_consumer_group(self) -> None:
        self.consumer.group = self._kept = new_group(self.group_id, self.consumer.context.options.release)

    def _delete_offsets(self, ticket: Ticket, request: OffsetDeleteRequest) -> None:
        """Delete the offsets of partitions to whose topics no member subscribes (KIP-496)."""
        group, subscribed = self.classic.group, self._subscribed()
        if not self.is_known or (group.members and group.protocol_type != CONSUMER):
            error = ErrorCode.NON_EMPTY_GROUP if self.is_known else ErrorCode.GROUP_ID_NOT_FOUND
            self._outputs.append(Reply(ticket, OffsetDeleteResponse(error=error)))
            return
        errors = tuple(
            ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed is None or each.topic in subscribed else ErrorCode.NONE
            for each in request.partitions
        )
        held = self.offsets.of_group(self.group_id)
        entries = tuple(
            OffsetRecord(OffsetKey(self.group_id, each.topic, each.partition), None)
            for each, error in zip(request.partitions, errors, strict=True)
            if error is ErrorCode.NONE and each in held
        )

        def answer(failure: ErrorCode, at_ms: TimeMs) -> None:
            self._forget(entries, failure)
            error = ErrorCode.NONE if failure is ErrorCode.NONE else _error_of_append(failure)
            self._outputs.append(Reply(ticket, OffsetDeleteResponse(errors, error)))

        self._append(entries, answer)

    def _subscribed(self) -> frozenset[str] | None:
        """Return the topics that members subscribe to; None if they may be any, as before a first generation."""
        if self.is_consumer_group:
            return self.consumer.group.subscribed_topics()
        return self.classic.group.subscribed_topics if self.classic.group.protocol_type == CONSUMER else frozenset()

    def expiry_rule(self) -> ExpiryRule | None:
        """Return the rule by which the group's offsets expire now; None if they do not expire."""
        if self.is_consumer_group:
            return ExpiryRule(kept_topics=self.consumer.group.subscribed_topics())
        return self.classic.group.expiry_rule(self.classic.group.subscribed_topics)

    def _expire(self, now_ms: TimeMs) -> None:
        entries = tuple(
            OffsetRecord(key, None) for key in self.offsets.expired(self.group_id, self.expiry_rule(), now_ms)
        )
        if entries:
            self._append(entries, lambda error, at_ms: self._forget(entries, error))

    def _forget(self, entries: tuple[OffsetRecord, ...], error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            for entry in entries:
                self._apply(entry)


def _error_of_append(error: ErrorCode) -> ErrorCode:
    return _NOT_STORED.get(error, ErrorCode.COORDINATOR_NOT_AVAILABLE)

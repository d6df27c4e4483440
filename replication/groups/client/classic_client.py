"""Model a consumer of the classic protocol, eager or cooperative, after Kafka's Java client.

A rebalance begins at a poll: commit positions, give up partitions (all, or those of topics no longer subscribed), join.
A cooperative member gives up only what another member gets (KIP-429), and then joins once more. A member that the
coordinator does not know loses its partitions without a commit. Heartbeats stop while the member joins. A leader
compares partition counts every metadata.max.age.ms, and joins again when they have changed.

Source: AbstractCoordinator, ConsumerCoordinator, Heartbeat, 4.3.1.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import attrs

from broker.entropy import RandomSource
from broker.error_codes import ErrorCode
from broker.errors import CorruptDataError, RefusedError
from broker.group.classic import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    Protocol,
    SyncGroupRequest,
    SyncGroupResponse,
)
from broker.group.members import UNKNOWN_MEMBER, MemberId
from broker.group.protocol import Subscription, read_assignment, read_subscription
from broker.ids import TopicPartition
from broker.machines import step
from broker.units import DurationMs
from replication.groups.client.assigning import COOPERATIVE, ClientAssignor
from replication.groups.client.client import RETRIABLE, RETRY, Client, Feed
from replication.groups.client.link import LOOK_AGAIN, ClientSpec
from replication.groups.client.messages import (
    PollExpired,
    Rebalanced,
    RebalanceFailed,
    Response,
    TopicMetadataRequest,
    TopicMetadataResponse,
    Why,
)


class JoinState(enum.Enum):
    """Name the states of a classic member, as Kafka's AbstractCoordinator.MemberState does."""

    UNJOINED = enum.auto()
    """The member is in no generation."""

    PREPARING_REBALANCE = enum.auto()
    """The member has sent JoinGroup and waits for the response; it sends no heartbeats."""

    COMPLETING_REBALANCE = enum.auto()
    """The member is in a generation and waits for its assignment."""

    STABLE = enum.auto()
    """The member has its assignment."""


class JoinInput(enum.Enum):
    """Name the events that change the state of a classic member."""

    JOIN_SENT = enum.auto()
    """The member sends JoinGroup."""

    JOINED = enum.auto()
    """The JoinGroup response carries the generation."""

    SYNCED = enum.auto()
    """The SyncGroup response carries the member's assignment."""

    RESET = enum.auto()
    """The coordinator refused the member for its id or generation, or the member left."""


JOIN_TRANSITIONS: Final[Mapping[tuple[JoinState, JoinInput], JoinState]] = MappingProxyType(
    {
        **{(state, JoinInput.JOIN_SENT): JoinState.PREPARING_REBALANCE for state in JoinState},
        (JoinState.PREPARING_REBALANCE, JoinInput.JOINED): JoinState.COMPLETING_REBALANCE,
        (JoinState.COMPLETING_REBALANCE, JoinInput.SYNCED): JoinState.STABLE,
        **{(state, JoinInput.RESET): JoinState.UNJOINED for state in JoinState},
    }
)
"""Every step that a classic member can take; a join may be sent again after one that failed."""


@attrs.frozen
class Membership:
    """Hold generation and member id in a member's own view; a member id without a generation is used to join."""

    generation: int = -1
    member_id: MemberId = UNKNOWN_MEMBER
    protocol_name: str | None = None


NO_MEMBERSHIP: Final = Membership()


JOIN_TIMEOUT_LAPSE_MS: Final = 5_000
"""The time that a client waits for its JoinGroup beyond the rebalance timeout; a constant of Kafka's."""

_HEARTBEAT: Final = "heartbeat"
_SESSION: Final = "session"
_METADATA: Final = "metadata"
_RESETS: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})
_AT_ONCE: Final = _RESETS | {ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.MEMBER_ID_REQUIRED}
"""Errors after which it joins again without waiting."""


class ClassicClient(Client):
    """Model one member of a classic group, with its application."""

    def __init__(self, spec: ClientSpec, feed: Feed, entropy: RandomSource) -> None:
        super().__init__(spec, feed)
        self.state = JoinState.UNJOINED
        self.is_leader = False
        self._assignors = {name: ClientAssignor.load(name, entropy) for name in spec.assignors}
        self._is_cooperative = all(name in COOPERATIVE for name in spec.assignors)
        self._membership = NO_MEMBERSHIP
        self._must_join = True
        self._must_prepare = True
        self._is_joining = False
        self._is_closing = False
        self._began_ms: int | None = None
        self._partition_counts: Mapping[str, int] = {}
        self._assigned_counts: Mapping[str, int] | None = None
        """The partition counts from which the leader made the last assignment."""

    @property
    def member_id(self) -> MemberId:
        """Return the member id that the coordinator gave; empty before."""
        return self._membership.member_id

    @property
    def generation(self) -> int:
        """Return the generation in the member's own view, -1 for none."""
        return self._membership.generation

    @property
    def can_commit(self) -> bool:
        """Return whether the member is in a generation and not joining another."""
        return self.state is JoinState.STABLE

    # Joining.

    def _poll_group(self) -> None:
        if self._must_join and not self._is_joining and not self._is_closing:
            self._link.after_finding(self._join)

    def _join(self) -> None:
        # Who closes without a coordinator is over at once, so that nothing has changed while one was looked for.
        assert self._must_join
        assert not self._is_joining
        assert not self._is_closing
        self._is_joining = True
        if self._must_prepare:
            self._must_prepare = False
            if not self._is_cooperative:
                self.subscriptions.pause(self.subscriptions.owned)
            self._commit_until_late(RETRIABLE, lambda: self._on_application(self._give_up_partitions))
        else:
            self._send_join()

    def _give_up_partitions(self) -> None:
        """Give up the partitions that may not be held while joining, then join."""
        owned = self.subscriptions.owned
        self.is_leader = False
        if self._membership.generation < 0:
            self._own(frozenset(), Why.LOST)
            self._send_join()
            return
        kept = frozenset(one for one in owned if one.topic in self.spec.topics) if self._is_cooperative else frozenset()
        if owned == kept:
            self._send_join()
        else:
            self._call_back(lambda: self._revoke_and_join(kept))

    def _revoke_and_join(self, kept: frozenset[TopicPartition]) -> None:
        self._own(kept)
        self._send_join()

    def _send_join(self) -> None:
        if self._link.coordinator is None:
            self._fail(None)
            return
        options = self.spec.options
        self._move(JoinInput.JOIN_SENT)
        self._timers.cancel(_HEARTBEAT)
        self._timers.cancel(_SESSION)
        if self._began_ms is None:
            self._began_ms = self._now_ms
        sent = self._membership
        ticket = self._link.next_ticket()
        request = JoinGroupRequest(
            ticket=ticket,
            client_id=self.spec.name,
            protocols=tuple(self._protocol(assignor) for assignor in self._assignors.values()),
            session_timeout_ms=options.session_timeout_ms,
            rebalance_timeout_ms=options.max_poll_interval_ms,
            member_id=sent.member_id,
            instance_id=self.spec.instance_id,
        )
        timeout_ms = max(options.request_timeout_ms, options.max_poll_interval_ms + JOIN_TIMEOUT_LAPSE_MS)
        self._link.ask(
            request,
            lambda response: self._on_joined(sent, response),
            ticket=ticket,
            timeout_ms=DurationMs(timeout_ms),
        )

    def _protocol(self, assignor: ClientAssignor) -> Protocol:
        subscription = Subscription(
            topics=self.spec.topics,
            owned=tuple(sorted(self.subscriptions.owned)),
            generation=self._membership.generation,
            rack=self.spec.rack,
            user_data=assignor.user_data(),
        )
        return Protocol(assignor.name, subscription.to_bytes())

    def _on_joined(self, sent: Membership, response: Response) -> None:
        if not isinstance(response, JoinGroupResponse):
            self._fail(None)
        elif response.error is ErrorCode.MEMBER_ID_REQUIRED:
            self._membership = Membership(member_id=response.member_id)
            self._fail(response.error)
        elif response.error is not ErrorCode.NONE:
            if response.error is ErrorCode.UNKNOWN_MEMBER_ID and self._membership == sent:
                self._reset(keeps_name=False)
            self._fail(response.error)
        elif self.state is not JoinState.PREPARING_REBALANCE:
            self._fail(None)
        else:
            self._move(JoinInput.JOINED)
            self._membership = Membership(response.generation, response.member_id, response.protocol_name)
            self._beat_from_now()
            if response.leader_id == response.member_id:
                self._lead(response)
            else:
                self._sync(())

    def _lead(self, response: JoinGroupResponse) -> None:
        """Ask for the partition counts, assign and send the assignment; with KIP-814's skip only watch the topics."""
        self.is_leader = True
        topics = sorted({topic for member in response.members for topic in read_subscription(member.metadata).topics})
        sent = self._membership

        def assign(metadata: Response) -> None:
            if not isinstance(metadata, TopicMetadataResponse) or self._membership != sent:
                self._fail(ErrorCode.ILLEGAL_GENERATION)
                return
            self._partition_counts = self._assigned_counts = dict(metadata.partition_counts)
            if response.skip_assignment:
                self._sync(())
                return
            try:
                name = str(response.protocol_name)
                self._sync(self._assignors[name].assign(response.members, self._partition_counts))
            except RefusedError as error:
                self._die(str(error))

        self._link.ask(TopicMetadataRequest(tuple(topics)), assign, anyone=True)

    def _sync(self, assignments: tuple[tuple[MemberId, bytes], ...]) -> None:
        if self._link.coordinator is None:
            self._fail(None)
            return
        sent = self._membership
        ticket = self._link.next_ticket()
        request = SyncGroupRequest(
            ticket=ticket,
            member_id=sent.member_id,
            generation=sent.generation,
            instance_id=self.spec.instance_id,
            protocol_type="consumer",
            protocol_name=sent.protocol_name,
            assignments=assignments,
        )
        self._link.ask(request, lambda response: self._on_synced(sent, response), ticket=ticket)

    def _on_synced(self, sent: Membership, response: Response) -> None:
        if not isinstance(response, SyncGroupResponse):
            self._fail(None)
        elif response.error is not ErrorCode.NONE:
            if response.error in _RESETS and self._membership == sent:
                self._reset(keeps_name=response.error is ErrorCode.ILLEGAL_GENERATION)
            self._fail(response.error)
        elif self._membership != sent:
            self._fail(ErrorCode.ILLEGAL_GENERATION)
        else:
            self._move(JoinInput.SYNCED)
            self._must_join = False
            assert self._began_ms is not None
            self._link.note(Rebalanced(DurationMs(self._now_ms - self._began_ms)))
            self._began_ms = None
            try:
                assigned = read_assignment(response.assignment)
            except CorruptDataError:
                # A leader that forgot a member, or speaks another language: Kafka's consumer throws this too.
                self._die("IllegalStateException: insufficient bytes available to read assignment")
                return
            self._on_application(lambda: self._take_assignment(sent, assigned))

    def _take_assignment(self, sent: Membership, assigned: frozenset[TopicPartition]) -> None:
        """Own the assigned partitions; a cooperative member that has to give some up joins again afterwards."""
        if self._membership != sent:
            # Its own threads have left the generation since: what was given is given to others now.
            self._is_joining = False
            self._reset(keeps_name=False)
            return
        assert self.state is JoinState.STABLE, self.state
        if not self.is_leader:
            self._assigned_counts = None
        self._must_prepare = True
        if self.subscriptions.owned - assigned:
            self._must_join = True
            self._call_back(lambda: self._finish_assignment(sent, assigned))
        else:
            self._finish_assignment(sent, assigned)

    def _finish_assignment(self, sent: Membership, assigned: frozenset[TopicPartition]) -> None:
        """Own the partitions assigned in the generation `sent`; the next poll loses them if it has ended."""
        self._is_joining = False
        self._own(assigned)
        self._assignors[str(sent.protocol_name)].on_assignment(assigned, sent.generation)
        self._restart_commit_timer()
        self._fetch_offsets()
        self._refresh_topics()
        self._poll_group()

    def _fail(self, error: ErrorCode | None) -> None:
        """Join again after a failed JoinGroup or SyncGroup, at once or after a backoff, or end.

        An error of None means that no response came.
        """
        assert self._must_join
        self._is_joining = False
        self._link.note(RebalanceFailed())
        if error is None or error in LOOK_AGAIN:
            self._link.lose_coordinator()
        if error in _AT_ONCE:
            self._on_application(self._poll_group)
        elif error is None or error in RETRIABLE:
            backoff_ms = self.spec.options.retry_backoff_ms
            self._timers.set(RETRY, self._now_ms, backoff_ms, lambda: self._on_application(self._poll_group))
        else:
            self._die(error.name)

    def _reset(self, *, keeps_name: bool) -> None:
        """Leave the generation, and join again."""
        self._move(JoinInput.RESET)
        self._membership = Membership(member_id=self._membership.member_id) if keeps_name else NO_MEMBERSHIP
        self._timers.cancel(_HEARTBEAT)
        self._timers.cancel(_SESSION)
        self._must_join = self._must_prepare = True

    def _move(self, event: JoinInput) -> None:
        self.state = step(JOIN_TRANSITIONS, self.state, event, what="member")

    # Heartbeats.

    def _beat_from_now(self) -> None:
        self._on_polled()
        self._expect_session()
        self._timers.set(_HEARTBEAT, self._now_ms, self.spec.options.heartbeat_interval_ms, self._beat)

    def _expect_session(self) -> None:
        self._timers.set(_SESSION, self._now_ms, self.spec.options.session_timeout_ms, self._link.lose_coordinator)

    def _beat(self) -> None:
        options = self.spec.options
        if self._link.coordinator is None:
            self._link.look()
            self._timers.set(_HEARTBEAT, self._now_ms, options.retry_backoff_ms, self._beat)
            return
        sent = self._membership
        ticket = self._link.next_ticket()
        request = HeartbeatRequest(
            ticket=ticket,
            member_id=sent.member_id,
            generation=sent.generation,
            instance_id=self.spec.instance_id,
        )
        self._timers.set(_HEARTBEAT, self._now_ms, options.heartbeat_interval_ms, self._beat)
        self._link.ask(request, lambda response: self._on_beat(sent, response), ticket=ticket)

    def _on_beat(self, sent: Membership, response: Response) -> None:
        error = response.error if isinstance(response, HeartbeatResponse) else ErrorCode.NOT_COORDINATOR
        if error in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
            if _SESSION in self._timers:
                self._expect_session()
            if error is ErrorCode.REBALANCE_IN_PROGRESS and self.state is JoinState.STABLE:
                self._must_join = True
                self._on_application(self._poll_group)
        elif error in LOOK_AGAIN or error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            if error in LOOK_AGAIN:
                self._link.lose_coordinator()
            if _HEARTBEAT in self._timers:
                self._timers.set(_HEARTBEAT, self._now_ms, self.spec.options.retry_backoff_ms, self._beat)
        elif self._membership == sent:
            if error is ErrorCode.FENCED_INSTANCE_ID:
                self._die(error.name)
                return
            self._reset(keeps_name=error is ErrorCode.ILLEGAL_GENERATION)
            self._on_application(self._poll_group)

    def _on_commit_error(self, error: ErrorCode, sent_generation: int) -> None:
        has_changed = sent_generation != self._membership.generation
        if error is ErrorCode.REBALANCE_IN_PROGRESS:
            self._must_join = True
        elif has_changed and self.state is JoinState.PREPARING_REBALANCE:
            return
        elif error in _RESETS:
            self._reset(keeps_name=error is ErrorCode.ILLEGAL_GENERATION)
        elif error is ErrorCode.FENCED_INSTANCE_ID and not has_changed:
            self._die(error.name)

    def _on_poll_timeout(self) -> None:
        """Leave the group, unless the member is joining; a static member only stops its heartbeats."""
        if self.state in (JoinState.COMPLETING_REBALANCE, JoinState.STABLE):
            self._link.note(PollExpired())
            self._tell_leaving()
            self._reset(keeps_name=False)

    # Leaving, and topics that grow.

    def _close(self) -> None:
        self._is_closing = True
        self._commit(lambda error: self._leave())

    def _leave(self) -> None:
        self._own(frozenset(), Why.CLOSED)
        self._tell_leaving()
        self.is_over = True

    def _tell_leaving(self) -> None:
        # Who has lost its generation tells nothing, with its id or without (shouldSendLeaveGroupRequest, 4.3.1).
        is_in = self.state is not JoinState.UNJOINED and bool(self.member_id)
        if self.spec.instance_id is None and is_in and self._link.coordinator is not None:
            ticket = self._link.next_ticket()
            self._link.ask(LeaveGroupRequest(ticket=ticket, members=((self.member_id, None),)), _ignore, ticket=ticket)

    def _refresh_topics(self) -> None:
        """Ask for the topics' partitions every metadata.max.age.ms, as a leader."""
        age_ms = self.spec.options.metadata_age_ms_max
        if self._assigned_counts is None:
            self._timers.cancel(_METADATA)
        else:
            self._timers.set(_METADATA, self._now_ms, age_ms, self._ask_topics)

    def _ask_topics(self) -> None:
        if self._assigned_counts is not None:
            topics = tuple(sorted(self._assigned_counts))
            self._link.ask(TopicMetadataRequest(topics), self._on_topics, anyone=True)
            self._refresh_topics()

    def _on_topics(self, response: Response) -> None:
        counts = self._assigned_counts
        if (
            isinstance(response, TopicMetadataResponse)
            and counts is not None
            and dict(response.partition_counts) != dict(counts)
        ):
            self._must_join = True
            self._on_application(self._poll_group)


def _ignore(response: Response) -> None:
    """Drop the response to a LeaveGroup: the consumer is gone."""

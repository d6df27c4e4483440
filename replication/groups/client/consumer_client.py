"""Model a consumer of the consumer protocol (KIP-848) after Kafka's Java client; it sends only heartbeats.

Partitions to revoke are committed and given up before they are reported as released; reading all others goes on. One
heartbeat is under way at a time, and one reconciliation. A fenced member loses all partitions without a commit, and
joins again with epoch 0 under its member id; with a rebalance listener (`revoke_ms`) it owns them until the listener,
called at the application's next poll, has returned. A heartbeat is sent every interval that the coordinator named, and
at once to join, to leave, or to report an assignment that is now owned. Fields are sent when they change, all of them
when joining and after an error.

Source: AbstractMembershipManager, ConsumerMembershipManager, AbstractHeartbeatRequestManager,
ConsumerHeartbeatRequestManager and CommitRequestManager, MemberState, 4.3.1; KIP-848.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.group.consumer import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, Partitions
from broker.group.consumer.member import JOINING_EPOCH, LEAVING_EPOCH, NOTHING, STATIC_LEAVING_EPOCH
from broker.group.members import UNKNOWN_MEMBER, MemberId
from broker.ids import TopicPartition
from broker.machines import step
from broker.units import DurationMs, TimeMs
from replication.groups.client.client import RETRIABLE, Client, Feed
from replication.groups.client.link import LOOK_AGAIN, ClientSpec
from replication.groups.client.messages import PollExpired, Rebalanced, Response, Why


class EpochState(enum.Enum):
    """Name the states of a consumer group's member in its own view, as Kafka's MemberState does."""

    UNSUBSCRIBED = enum.auto()
    """The member is in no group and subscribes to no topic."""

    JOINING = enum.auto()
    """The member sends heartbeats with epoch 0 to join."""

    RECONCILING = enum.auto()
    """The member has a target assignment that differs from its owned partitions, and reconciles."""

    ACKNOWLEDGING = enum.auto()
    """The member owns its target assignment, and has not sent the acknowledging heartbeat yet."""

    STABLE = enum.auto()
    """The member owns its target assignment, and has acknowledged it in a heartbeat."""

    FENCED = enum.auto()
    """The coordinator has fenced the member, which loses its partitions."""

    LEAVING = enum.auto()
    """The member sends the heartbeat that leaves the group."""

    STALE = enum.auto()
    """The member has left the group, as its application does not poll."""

    FATAL = enum.auto()
    """The member has failed with an error that it cannot recover from."""


class EpochInput(enum.Enum):
    """Name the events that change the state of a consumer group's member."""

    JOIN = enum.auto()
    """The member begins to join."""

    GIVEN = enum.auto()
    """A heartbeat response carries an assignment that differs from the owned partitions."""

    UNCHANGED = enum.auto()
    """A heartbeat response carries the owned assignment, or the member has acknowledged it."""

    RECONCILED = enum.auto()
    """The member owns its target assignment."""

    FENCE = enum.auto()
    """The coordinator does not know the member, or fences its member epoch."""

    LEAVE = enum.auto()
    """The member closes, or its application did not poll in time."""

    LEFT = enum.auto()
    """The member has sent the heartbeat that leaves the group."""

    LEFT_STALE = enum.auto()
    """The member has sent that heartbeat, and joins again when its application polls."""

    FAIL = enum.auto()
    """A heartbeat response carries a fatal error."""


_IN_GROUP: Final = (EpochState.JOINING, EpochState.RECONCILING, EpochState.ACKNOWLEDGING, EpochState.STABLE)

EPOCH_TRANSITIONS: Final[Mapping[tuple[EpochState, EpochInput], EpochState]] = MappingProxyType(
    {
        (EpochState.UNSUBSCRIBED, EpochInput.JOIN): EpochState.JOINING,
        (EpochState.FENCED, EpochInput.JOIN): EpochState.JOINING,
        (EpochState.STALE, EpochInput.JOIN): EpochState.JOINING,
        **{(state, EpochInput.GIVEN): EpochState.RECONCILING for state in _IN_GROUP},
        (EpochState.JOINING, EpochInput.UNCHANGED): EpochState.STABLE,
        (EpochState.RECONCILING, EpochInput.UNCHANGED): EpochState.STABLE,
        (EpochState.ACKNOWLEDGING, EpochInput.UNCHANGED): EpochState.STABLE,
        (EpochState.RECONCILING, EpochInput.RECONCILED): EpochState.ACKNOWLEDGING,
        **{(state, EpochInput.FENCE): EpochState.FENCED for state in _IN_GROUP},
        **{(state, EpochInput.LEAVE): EpochState.LEAVING for state in _IN_GROUP},
        (EpochState.LEAVING, EpochInput.LEFT): EpochState.UNSUBSCRIBED,
        (EpochState.LEAVING, EpochInput.LEFT_STALE): EpochState.STALE,
        **{(state, EpochInput.FAIL): EpochState.FATAL for state in EpochState if state is not EpochState.FATAL},
    }
)
"""Every step that a member can take."""


_HEARTBEAT: Final = "heartbeat"
_RETRIABLE: Final = RETRIABLE | {ErrorCode.STALE_MEMBER_EPOCH}
_FENCED: Final = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID})
_SILENT: Final = frozenset({EpochState.UNSUBSCRIBED, EpochState.FENCED, EpochState.STALE, EpochState.FATAL})
_URGENT: Final = frozenset({EpochState.JOINING, EpochState.ACKNOWLEDGING})
NO_ASSIGNMENT: Final = -1


@attrs.frozen
class LocalAssignment:
    """Hold a target assignment with the client's own number for it; equal assignments keep one number."""

    number: int = NO_ASSIGNMENT
    partitions: Partitions = NOTHING

    def updated(self, partitions: Partitions) -> LocalAssignment:
        """Return this assignment, or the next one if `partitions` differ or none was received before."""
        if self.number != NO_ASSIGNMENT and partitions == self.partitions:
            return self
        return LocalAssignment(self.number + 1, partitions)


_NONE: Final = LocalAssignment()


class ConsumerClient(Client):
    """Model one member of a consumer group, with its application."""

    def __init__(self, spec: ClientSpec, feed: Feed) -> None:
        super().__init__(spec, feed)
        self.state = EpochState.UNSUBSCRIBED
        self._member_id = UNKNOWN_MEMBER
        self._epoch = JOINING_EPOCH
        self._target = _NONE
        self._current = _NONE
        self._reported: LocalAssignment | None = None
        """The assignment that the last heartbeat reported; None when the next one says everything."""
        self._wanted: LocalAssignment | None = None
        """The assignment to which the member is reconciling; None while it is not."""
        self._has_rejoined = False
        self._is_beating = False
        self._interval_ms = DurationMs(0)
        self._beat_at_ms = self._pause_until_ms = TimeMs(0)
        self._began_ms: TimeMs
        """When the state last changed from another than RECONCILING."""

    @property
    def member_id(self) -> MemberId:
        """Return the member id that the coordinator gave; empty before."""
        return self._member_id

    @property
    def generation(self) -> int:
        """Return the member epoch; below 1 outside the group."""
        return self._epoch

    @property
    def can_commit(self) -> bool:
        """Return whether the member is in the group."""
        return self._epoch > JOINING_EPOCH

    @property
    def coming(self) -> frozenset[TopicPartition]:
        """Return the partitions that the member is about to own, once its commit and its listener are through."""
        wanted = None if self._has_rejoined else self._wanted
        return frozenset() if wanted is None else wanted.partitions - self.subscriptions.owned

    # The application's polls.

    def _poll_group(self) -> None:
        if self.state in (EpochState.UNSUBSCRIBED, EpochState.STALE):
            self._join()

    def _on_poll_timeout(self) -> None:
        if self.state in _IN_GROUP:
            self._link.note(PollExpired())
            self._send_leaving()
            self._move(EpochInput.LEFT_STALE)
            self._with_listener(self._lose_all)

    def _close(self) -> None:
        if self.state not in _IN_GROUP:
            self._own(NOTHING, Why.LOST)
            self.is_over = True
            return
        self._commit(lambda error: self._leave())

    def _leave(self) -> None:
        self._own(NOTHING, Why.CLOSED)
        if self.state in _IN_GROUP:
            self._send_leaving()
            self._move(EpochInput.LEFT)
        self.is_over = True

    # Joining, leaving, being fenced.

    def _join(self) -> None:
        self._has_rejoined = True
        self._reported = None
        self._epoch = JOINING_EPOCH
        self._move(EpochInput.JOIN)
        self._beat()

    def _send_leaving(self) -> None:
        self._epoch = LEAVING_EPOCH if self.spec.instance_id is None else STATIC_LEAVING_EPOCH
        self._move(EpochInput.LEAVE)
        if self._link.coordinator is not None:
            self._send_heartbeat()

    def _lose_all(self) -> None:
        self._own(NOTHING, Why.LOST)
        self._current = self._target = _NONE

    def _be_fenced(self) -> None:
        if self.state not in _IN_GROUP:
            return
        self._move(EpochInput.FENCE)
        self._epoch = JOINING_EPOCH
        self._with_listener(self._rejoin_fenced)

    def _rejoin_fenced(self) -> None:
        self._lose_all()
        self._join()

    def _move(self, event: EpochInput) -> None:
        before, self.state = self.state, step(EPOCH_TRANSITIONS, self.state, event, what="member")
        if before is not EpochState.RECONCILING:
            self._began_ms = self._now_ms
        elif self.state in (EpochState.STABLE, EpochState.ACKNOWLEDGING):
            self._link.note(Rebalanced(DurationMs(self._now_ms - self._began_ms)))

    # Heartbeats.

    def _beat(self) -> None:
        """Send a heartbeat if one is due or something changed, and plan the next one."""
        if self.state in _SILENT or self._is_beating:
            return
        due_ms = self._pause_until_ms if self.state in _URGENT else self._beat_at_ms
        if self._now_ms < due_ms:
            self._timers.set(_HEARTBEAT, self._now_ms, DurationMs(due_ms - self._now_ms), self._beat)
        else:
            self._link.after_finding(self._send_heartbeat)

    def _send_heartbeat(self) -> None:
        if self.state in _SILENT:
            return
        assert not self._is_beating or self.state is EpochState.LEAVING, self.state
        request = self._heartbeat()
        self._is_beating = True
        self._beat_at_ms = TimeMs(self._now_ms + self._interval_ms)
        self._link.ask(request, self._on_beat)
        if self.state is EpochState.ACKNOWLEDGING:
            self._move(EpochInput.UNCHANGED if self._current == self._target else EpochInput.GIVEN)
            self._reconcile()

    def _heartbeat(self) -> ConsumerGroupHeartbeatRequest:
        """Return a heartbeat with the fields that have changed; with all fields when joining and after an error."""
        says_all = self._reported is None
        owned = self._current.partitions if self._reported != self._current else None
        self._reported = self._current
        return ConsumerGroupHeartbeatRequest(
            member_id=self._member_id,
            epoch=self._epoch,
            instance_id=self.spec.instance_id,
            client_id=self.spec.name,
            rack=self.spec.rack,
            rebalance_timeout_ms=self.spec.options.max_poll_interval_ms if says_all else None,
            subscribed_topics=frozenset(self.spec.topics) if says_all else None,
            assignor=next(iter(self.spec.assignors), None) if says_all else None,
            owned=owned,
        )

    def _on_beat(self, response: Response) -> None:
        self._is_beating = False
        if isinstance(response, ConsumerGroupHeartbeatResponse) and response.error is ErrorCode.NONE:
            # AbstractMembershipManager.onHeartbeatSuccess: the answer to leaving may come as the member joins again.
            if self.state in _IN_GROUP and response.epoch >= JOINING_EPOCH:
                self._on_answer(response)
        else:
            self._on_beat_error(response.error if isinstance(response, ConsumerGroupHeartbeatResponse) else None)
        self._beat()

    def _on_answer(self, answer: ConsumerGroupHeartbeatResponse) -> None:
        self._member_id, self._epoch = answer.member_id, answer.epoch
        if self._interval_ms != answer.heartbeat_interval_ms:
            self._interval_ms = answer.heartbeat_interval_ms
            self._beat_at_ms = TimeMs(self._now_ms + self._interval_ms)
        if answer.assignment is None:
            return
        self._target = self._target.updated(answer.assignment)
        if self._target != self._current:
            self._move(EpochInput.GIVEN)
            self._reconcile()
        else:  # Who joins owns nothing yet, and who reconciles owns an earlier target: both were given another one.
            assert self.state in (EpochState.ACKNOWLEDGING, EpochState.STABLE), self.state

    def _on_beat_error(self, error: ErrorCode | None) -> None:
        """Find the coordinator, try again, join anew, or end, as the error of a heartbeat demands."""
        self._reported = None
        pause_ms = 0 if error in _FENCED else self.spec.options.retry_backoff_ms
        self._beat_at_ms = self._pause_until_ms = TimeMs(self._now_ms + pause_ms)
        if error is None or error in LOOK_AGAIN:
            self._link.lose_coordinator()
        elif error in _FENCED:
            self._be_fenced()
        elif error is not ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and self.state in _IN_GROUP:
            self._move(EpochInput.FAIL)
            self._die(error.name)

    # Reconciling.

    def _reconcile(self) -> None:
        """Take the next step towards the target, unless a step is under way or there is nothing to reconcile."""
        if self.state is not EpochState.RECONCILING or self._wanted is not None:
            return
        # RECONCILING begins with another target, and what is owned changes only where it ends; targets get new numbers.
        assert self._target != self._current, self._target
        if self._current.number != NO_ASSIGNMENT and self._target.partitions == self._current.partitions:
            self._acknowledge(self._target)
            return
        self._wanted, self._has_rejoined = self._target, False
        # What is about to be revoked is not read any more, so that the commit covers all that was read.
        self.subscriptions.pause(self.subscriptions.owned - self._target.partitions)
        self._commit_until_late(_RETRIABLE, partial(self._on_committed_before_revoking, self._target))

    def _on_committed_before_revoking(self, wanted: LocalAssignment) -> None:
        if not self._is_aborted():
            self._with_listener(lambda: self._revoke(wanted))

    def _with_listener(self, action: Callable[[], None]) -> None:
        """Do `action` on the application's thread if it has a rebalance listener, else at once beside it."""
        if self.spec.revoke_ms:
            self._on_application(action)
        else:
            action()

    def _revoke(self, wanted: LocalAssignment) -> None:
        if self._is_aborted():
            return
        if self.subscriptions.owned - wanted.partitions:
            self._call_back(lambda: self._own_wanted(wanted))
        else:
            self._own_wanted(wanted)

    def _own_wanted(self, wanted: LocalAssignment) -> None:
        if self._is_aborted():
            return
        self._own(wanted.partitions)
        self._fetch_offsets()
        self._restart_commit_timer()
        self._wanted = None
        self._acknowledge(wanted)

    def _acknowledge(self, wanted: LocalAssignment) -> None:
        self._current = wanted
        self._move(EpochInput.RECONCILED)
        self._beat()

    def _is_aborted(self) -> bool:
        """Drop the reconciliation and return True if the member has left RECONCILING, or the group, meanwhile."""
        if self.state is EpochState.RECONCILING and not self._has_rejoined:
            return False
        self._wanted, self._has_rejoined = None, False
        self._reconcile()
        return True

    def _on_commit_error(self, error: ErrorCode, sent_generation: int) -> None:
        """Ignore a refused commit: a member of a consumer group learns from heartbeats what it means."""

"""Check requests and sessions of brokers against an account of their incarnations (I24, I35).

Kept from the registrations and answers that the controller gives, not from what it knows of a session.
- I24: a heartbeat and an AlterPartition are answered STALE_BROKER_EPOCH exactly when they carry another epoch than that
  of the last registration; an accepted ISR has no member that fetched in another one.
- I35: a broker's session lasts for broker.session.timeout.ms from each accepted heartbeat, and from a failover of the
  controller. Until then nobody else registers with its id and it is not fenced; at the next look it is. A broker is
  unfenced when it has read its registration. Who has handed over leaderships may stop when no active broker takes it
  for a leader any more.

While a former controller still answers some brokers, heartbeats may have gone to it, and sessions are not checked.

Source: Kafka metadata ClusterControlManager, BrokerHeartbeatManager, ReplicationControlManager.processBrokerHeartbeat
and validateAlterPartitionData, 4.4.0; KIP-631, KIP-841, KIP-903.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.ids import BrokerEpoch, BrokerId
from broker.registration import BrokerState
from replication.checkers.view import CheckedCluster, is_known
from replication.roles.messages import (
    AlterPartition,
    AlterPartitionResponse,
    BrokerHeartbeat,
    BrokerHeartbeatResponse,
    BrokerRegistration,
    BrokerRegistrationResponse,
    Message,
    SessionsDue,
)
from replication.roles.outbox import Outbox
from replication.rules.partition import UNKNOWN_BROKER_EPOCH, BrokerStatus

_STALE: Final = ErrorCode.STALE_BROKER_EPOCH
_ACCEPTED: Final = (ErrorCode.NONE, ErrorCode.NEW_LEADER_ELECTED)
WATCHED: Final = frozenset({AlterPartition, BrokerHeartbeat, BrokerRegistration, SessionsDue})
"""The controller's messages that are checked."""
Broken = tuple[str, str]


@attrs.define
class _Session:
    """Hold a broker's last incarnation: its last heartbeat and the state in the controller's last response."""

    incarnation: str
    registered_offset: int
    heard_ms: int | None = None
    told: BrokerState = BrokerState.FENCED
    is_unsure: bool = False
    """Whether a former controller may have answered its last heartbeats."""
    handed_over: int = 0
    """The end of the metadata log when the broker's leaderships were handed over, as it began to stop."""


class IncarnationChecker:
    """Keep an account of the brokers' incarnations and sessions, by what the controller answers."""

    def __init__(self) -> None:
        self._sessions: dict[BrokerId, _Session] = {}
        self._started_ms = 0

    def after(
        self, cluster: CheckedCluster, brokers: Mapping[BrokerId, BrokerStatus], message: Message, out: Outbox
    ) -> Iterator[Broken]:
        """Check one of the `WATCHED` messages; `brokers` are the registered ones as the metadata had them before it."""
        if cluster.controller_started_ms != self._started_ms:
            self._fail_over(cluster)
        if cluster.is_asked_apart:
            for session in self._sessions.values():
                session.is_unsure = True
        answers = [each for _, each in out.sent]
        if isinstance(message, BrokerHeartbeat):
            for answer in answers:
                if isinstance(answer, BrokerHeartbeatResponse):
                    if not cluster.is_asked_apart:
                        status = brokers.get(message.broker)
                        yield from _judged("a heartbeat", message.broker, status, message.epoch, answer.error)
                    if answer.error is ErrorCode.NONE:
                        yield from self._note_heartbeat(cluster, brokers, message, answer)
        elif isinstance(message, AlterPartition):
            for answer in answers:
                if isinstance(answer, AlterPartitionResponse) and not cluster.is_asked_apart:
                    yield from _judged_change(cluster, brokers, message, answer.altered.error)
        elif isinstance(message, BrokerRegistration):
            for answer in answers:
                if isinstance(answer, BrokerRegistrationResponse):
                    yield from self._note_registration(cluster, brokers, message, answer)
        else:
            yield from self._check_sessions(cluster, brokers)

    def _fail_over(self, cluster: CheckedCluster) -> None:
        """Begin every session anew: who is alive counts as heard when another controller takes over."""
        self._started_ms = cluster.controller_started_ms
        for broker, session in self._sessions.items():
            status = cluster.controller.image.brokers.get(broker)
            is_alive = status is not None and not status.fenced
            session.heard_ms = self._started_ms if is_alive else None
            session.told = BrokerState.UNFENCED if is_alive else BrokerState.FENCED

    def _is_valid(self, cluster: CheckedCluster, brokers: Mapping[BrokerId, BrokerStatus], broker: BrokerId) -> bool:
        """Return whether a broker's session goes on; its last ms counts."""
        session, status = self._sessions.get(broker), brokers.get(broker)
        if session is None or session.heard_ms is None or status is None:
            return False
        settings = cluster.controller.role_settings
        if status.fenced and not settings.settings.rules.fenced_broker_has_session:
            return False
        return session.heard_ms + settings.session_ms >= cluster.now_ms

    def _note_registration(
        self,
        cluster: CheckedCluster,
        brokers: Mapping[BrokerId, BrokerStatus],
        message: BrokerRegistration,
        answer: BrokerRegistrationResponse,
    ) -> Iterator[Broken]:
        broker = message.broker
        known = self._sessions.get(broker)
        if known is not None and known.incarnation == message.incarnation:
            return
        is_valid, is_taken = self._is_valid(cluster, brokers, broker), answer.epoch is not None
        if is_valid is is_taken and not (known is not None and known.is_unsure):
            verb, session = ("registers", "goes on") if is_taken else ("is refused", "is over")
            yield "I35", f"{message.incarnation} {verb} as broker {broker}, whose former session {session}"
        if is_taken:
            self._sessions[broker] = _Session(message.incarnation, len(cluster.controller.log) - 1)

    def _note_heartbeat(
        self,
        cluster: CheckedCluster,
        brokers: Mapping[BrokerId, BrokerStatus],
        message: BrokerHeartbeat,
        answer: BrokerHeartbeatResponse,
    ) -> Iterator[Broken]:
        broker, read = message.broker, message.heartbeat.metadata_offset
        session = self._sessions.get(broker)
        if session is None:
            return
        before, session.told, session.heard_ms = session.told, answer.state, cluster.now_ms
        session.is_unsure = cluster.is_asked_apart
        if session.is_unsure:
            # It may be that another controller has handed its leaderships over.
            session.told, session.handed_over = BrokerState.CONTROLLED_SHUTDOWN, 0
            return
        if answer.state is BrokerState.UNFENCED and brokers[broker].fenced and read < session.registered_offset:
            yield "I35", f"broker {broker} is unfenced, and has read {read} of {session.registered_offset}"
        if answer.state is BrokerState.CONTROLLED_SHUTDOWN and before is not answer.state:
            session.handed_over = len(cluster.controller.log)
        if answer.state is BrokerState.SHUTDOWN_NOW and before is BrokerState.CONTROLLED_SHUTDOWN:
            for other, node in sorted(cluster.nodes.items()):
                status = cluster.controller.image.brokers.get(other)
                is_active = status is not None and status.is_active and is_known(cluster, node)
                if is_active and node.role is not None and node.role.image.offset < session.handed_over:
                    yield "I35", f"broker {broker} may stop, and broker {other} has not read that it leads no more"

    def _check_sessions(self, cluster: CheckedCluster, brokers: Mapping[BrokerId, BrokerStatus]) -> Iterator[Broken]:
        """Check who is fenced as the controller looks at the sessions."""
        for broker, session in sorted(self._sessions.items()):
            before, after = brokers[broker], cluster.controller.image.brokers[broker]
            is_valid = self._is_valid(cluster, brokers, broker)
            if session.is_unsure:
                continue
            if is_valid and after.fenced and not before.fenced:
                yield "I35", f"broker {broker} is fenced, and was heard at {session.heard_ms} ms"
            elif not is_valid and not after.fenced:
                yield "I35", f"broker {broker} is not fenced, and was heard at {session.heard_ms} ms last"
            if not is_valid and session.heard_ms is not None:
                session.heard_ms = None


def _judged(
    what: str, broker: BrokerId, status: BrokerStatus | None, epoch: BrokerEpoch, error: ErrorCode
) -> Iterator[Broken]:
    """Yield what is wrong with the answer to a request of a broker in `epoch` (I24)."""
    is_stale = status is None or status.epoch != epoch
    if is_stale is not (error is _STALE):
        current = "none" if status is None else status.epoch
        yield "I24", f"{what} of broker {broker} in epoch {epoch} is answered {error.name}; its epoch is {current}"


def _judged_change(
    cluster: CheckedCluster, brokers: Mapping[BrokerId, BrokerStatus], message: AlterPartition, error: ErrorCode
) -> Iterator[Broken]:
    request = message.request
    yield from _judged("a change of the ISR", request.leader, brokers.get(request.leader), message.broker_epoch, error)
    if error not in _ACCEPTED or not cluster.controller.role_settings.settings.rules.isr_join_broker_epoch:
        return
    for member in request.isr:
        status = brokers.get(member.broker)
        if member.epoch != UNKNOWN_BROKER_EPOCH and (status is None or status.epoch != member.epoch):
            yield "I24", f"broker {member.broker} is in sync, by what it fetched in its former epoch {member.epoch}"

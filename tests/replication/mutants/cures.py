"""Say what a consumer does after each error of each answer, as a table, and see whether it does.

What it decides: after which error a consumer looks for its coordinator, asks again and when, joins again and as whom,
loses its partitions, or ends.

Constraints: times are bounds in ms after the answer; a consumer whose application is at work acts at its next poll.

Source: AbstractCoordinator's response handlers, ConsumerCoordinator.OffsetCommitResponseHandler,
ConsumerHeartbeatRequestManager and CommitRequestManager of Kafka's clients, as facts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs

from broker.error_codes import ErrorCode
from broker.group.classic import HeartbeatRequest, JoinGroupRequest, SyncGroupRequest
from broker.group.consumer import ConsumerGroupHeartbeatRequest
from broker.group.messages import FindCoordinatorRequest, OffsetCommitRequest, OffsetFetchRequest
from replication.groups.client.messages import Died, PartitionsRevoked, Why
from tests.replication.mutants.client_talk import POLL_MS, Talk

_E: Final = ErrorCode
GONE: Final = (_E.NOT_COORDINATOR, _E.COORDINATOR_NOT_AVAILABLE, None)
"""What says that the coordinator is elsewhere; None is a broken connection."""
_BUSY: Final = (_E.COORDINATOR_LOAD_IN_PROGRESS,)
_POLLED: Final = POLL_MS + 20
"""An application's next poll, and the answers that it needs before."""
_FOUND_MS: Final = 3_200
"""A heartbeat later, and an answer."""
_QUIET_MS: Final = 2_900
"""Before anything else would look for the coordinator."""


@attrs.frozen(kw_only=True)
class Cure:
    """Hold what follows one of some errors in the answer to a kind of request."""

    asked: type
    errors: tuple[ErrorCode | None, ...]
    finds: bool = False
    again_ms: tuple[int, int] | None = None
    joins: str | None = None
    """As whom the member joins again: "" as a new one, "same" by its id, None for not at all."""
    loses: bool = False
    """Whether the member's partitions are lost without a commit."""
    dies: bool = False


CLASSIC: Final = (
    Cure(asked=HeartbeatRequest, errors=GONE, finds=True, again_ms=(1, 350)),
    Cure(asked=HeartbeatRequest, errors=_BUSY, again_ms=(100, 100)),
    Cure(asked=HeartbeatRequest, errors=(_E.REBALANCE_IN_PROGRESS,), joins="same"),
    Cure(asked=HeartbeatRequest, errors=(_E.ILLEGAL_GENERATION,), joins="same", loses=True),
    Cure(asked=HeartbeatRequest, errors=(_E.UNKNOWN_MEMBER_ID,), joins="", loses=True),
    Cure(asked=HeartbeatRequest, errors=(_E.FENCED_INSTANCE_ID,), dies=True),
    Cure(asked=JoinGroupRequest, errors=GONE, finds=True, again_ms=(100, 100 + 2 * _POLLED)),
    Cure(asked=JoinGroupRequest, errors=_BUSY, again_ms=(100, 100 + _POLLED)),
    Cure(asked=JoinGroupRequest, errors=(_E.REBALANCE_IN_PROGRESS,), again_ms=(0, _POLLED), joins="same"),
    Cure(asked=JoinGroupRequest, errors=(_E.UNKNOWN_MEMBER_ID,), again_ms=(0, _POLLED), joins=""),
    Cure(asked=JoinGroupRequest, errors=(_E.INCONSISTENT_GROUP_PROTOCOL, _E.FENCED_INSTANCE_ID), dies=True),
    Cure(asked=SyncGroupRequest, errors=GONE, finds=True, joins="same"),
    Cure(asked=SyncGroupRequest, errors=(_E.REBALANCE_IN_PROGRESS, _E.ILLEGAL_GENERATION), joins="same"),
    Cure(asked=SyncGroupRequest, errors=(_E.UNKNOWN_MEMBER_ID,), joins=""),
    Cure(asked=SyncGroupRequest, errors=(_E.FENCED_INSTANCE_ID,), dies=True),
    Cure(asked=OffsetCommitRequest, errors=(*GONE, _E.REQUEST_TIMED_OUT), finds=True, again_ms=(100, 6_300)),
    Cure(asked=OffsetCommitRequest, errors=_BUSY, again_ms=(100, 100 + _POLLED)),
    Cure(asked=OffsetCommitRequest, errors=(_E.REBALANCE_IN_PROGRESS,), joins="same"),
    Cure(asked=OffsetCommitRequest, errors=(_E.ILLEGAL_GENERATION,), joins="same", loses=True),
    Cure(asked=OffsetCommitRequest, errors=(_E.UNKNOWN_MEMBER_ID,), joins="", loses=True),
    Cure(asked=OffsetCommitRequest, errors=(_E.FENCED_INSTANCE_ID,), dies=True),
    Cure(asked=OffsetFetchRequest, errors=GONE, finds=True, again_ms=(1, _FOUND_MS + _POLLED)),
    Cure(asked=OffsetFetchRequest, errors=_BUSY, again_ms=(1, _POLLED)),
    Cure(asked=FindCoordinatorRequest, errors=(_E.COORDINATOR_NOT_AVAILABLE, None), again_ms=(100, 100)),
)
CONSUMER: Final = (
    Cure(asked=ConsumerGroupHeartbeatRequest, errors=GONE, finds=True, again_ms=(100, 120)),
    Cure(asked=ConsumerGroupHeartbeatRequest, errors=_BUSY, again_ms=(100, 100)),
    Cure(
        asked=ConsumerGroupHeartbeatRequest,
        errors=(_E.FENCED_MEMBER_EPOCH, _E.UNKNOWN_MEMBER_ID),
        again_ms=(0, _POLLED),
        joins="same",
        loses=True,
    ),
    Cure(asked=ConsumerGroupHeartbeatRequest, errors=(_E.UNRELEASED_INSTANCE_ID, _E.GROUP_MAX_SIZE_REACHED), dies=True),
    Cure(asked=OffsetCommitRequest, errors=(*GONE, _E.REQUEST_TIMED_OUT), again_ms=(100, 6_300)),
    Cure(asked=OffsetCommitRequest, errors=_BUSY, again_ms=(100, 100 + _POLLED)),
    Cure(asked=OffsetCommitRequest, errors=(_E.STALE_MEMBER_EPOCH,), again_ms=(4_000, 5_600)),
    Cure(asked=OffsetFetchRequest, errors=GONE, again_ms=(1, 6_300)),
    Cure(asked=OffsetFetchRequest, errors=_BUSY, again_ms=(1, _POLLED)),
    Cure(asked=FindCoordinatorRequest, errors=(_E.COORDINATOR_NOT_AVAILABLE, None), again_ms=(100, 100)),
)


def cured(talk: Talk, cure: Cure, error: ErrorCode | None, owned: frozenset[Any], member_id: str) -> Iterator[str]:
    """Yield what a consumer does not do that it should, or does that it should not, after an error."""
    at_ms = talk.trouble_ms
    died = [when for when, _ in talk.notes(Died, at_ms)]
    if died != ([at_ms] if cure.dies else []):
        yield f"died at {died}"
    if talk.client.is_over != cure.dies or (cure.dies and talk.client.subscriptions.owned):
        yield f"over: {talk.client.is_over}, it owns {sorted(talk.client.subscriptions.owned)}"
    if cure.dies:
        return
    found = [when - at_ms for when, _ in talk.sends(FindCoordinatorRequest, at_ms + 1)]
    is_other = cure.asked is not FindCoordinatorRequest and cure.finds != any(when <= _FOUND_MS for when in found)
    if is_other and (cure.finds or (min(found) <= _QUIET_MS and error not in (*GONE, _E.REQUEST_TIMED_OUT))):
        yield f"it looks for the coordinator after {found} ms"
    if cure.again_ms is not None:
        again = [when - at_ms for when, _ in _after(talk, cure.asked)]
        if not again or not cure.again_ms[0] <= again[0] <= cure.again_ms[1] + talk.revoke_ms:
            yield f"it asks again after {again[:3]} ms"
    yield from _joined(talk, cure, at_ms, member_id)
    gone = [note for when, note in talk.notes(PartitionsRevoked, at_ms) if when - at_ms <= _POLLED + talk.revoke_ms]
    lost = [note.partitions for note in gone if note.why is Why.LOST]
    if cure.loses and lost != ([owned] if owned else []):
        yield f"of {sorted(owned)} it loses {lost}"
    if not cure.loses and cure.joins is None and gone and cure.asked not in (JoinGroupRequest, SyncGroupRequest):
        yield f"it gives up {gone}"


def _after(talk: Talk, kind: type) -> list[tuple[int, Any]]:
    """Return the requests of a kind that were sent after the trouble."""
    place = max(at for at, each in enumerate(talk.log) if each.response is not None and each.at_ms == talk.trouble_ms)
    return [
        (each.at_ms, each.sent) for each in talk.log[place:] if isinstance(each.sent, kind) and each.response is None
    ]


def _joined(talk: Talk, cure: Cure, at_ms: int, member_id: str) -> Iterator[str]:
    if talk.is_consumer:
        beats = [each for when, each in _after(talk, ConsumerGroupHeartbeatRequest) if when <= at_ms + _QUIET_MS]
        joins = [each for each in beats if each.epoch == 0]
        wanted = [member_id] if cure.joins is not None else []
        if cure.asked is ConsumerGroupHeartbeatRequest and [each.member_id for each in joins] != wanted:
            yield f"it joins by {joins}"
        is_full = all(None not in (each.owned, each.subscribed_topics, each.rebalance_timeout_ms) for each in beats[:1])
        if cure.asked is ConsumerGroupHeartbeatRequest and not is_full:
            yield f"after an error it says {beats[:1]}"
        return
    if cure.asked in (JoinGroupRequest, FindCoordinatorRequest, OffsetFetchRequest) and cure.joins is None:
        return
    joins = [(when - at_ms, each) for when, each in _after(talk, JoinGroupRequest)]
    if cure.joins is None:
        if joins and joins[0][0] <= _QUIET_MS:
            yield f"it joins again after {joins[0][0]} ms"
    elif not joins or joins[0][0] > 2 * _POLLED + 100 + talk.revoke_ms:
        yield f"it joins again {joins[:1]}"
    elif joins[0][1].member_id != (member_id if cure.joins else ""):
        yield f"it joins again as {joins[0][1].member_id!r}, and was {member_id!r}"

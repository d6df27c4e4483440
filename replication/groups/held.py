"""Hold back a coordinator's response until the records before it are committed.

What it decides: what comes of a request that waits, once these records are committed, have not been in time, or the
broker has ceased to lead.

Goals, most important first:
1. No response shows a state that a later coordinator may not know.
2. No request waits for longer than an append may take.

How: an OffsetFetch is handled when it has waited, and shows stable offsets (KIP-447). A response to a heartbeat is
made as the heartbeat comes, and waits for what was written before it.

Example: a heartbeat is answered with the partitions that a record at offset 8 gives its member. While the high
watermark is 8, the response is held with end offset 9.

Source: CoordinatorRuntime.waitForPendingWrites, CoordinatorOperationExceptionHelper and
GroupCoordinatorService.handleOffsetFetchException, 4.3.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import attrs

from broker.error_codes import ErrorCode
from broker.group.classic import Ticket
from broker.group.consumer import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from broker.group.messages import OffsetFetchRequest
from broker.group.service import GroupService, Output, Reply, Request
from broker.ids import Offset
from broker.units import TimeMs
from replication.groups.common.coordinator import refusal

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
        told = ErrorCode.COORDINATOR_NOT_AVAILABLE if is_late else ErrorCode.NOT_COORDINATOR
        return (Reply(reply.ticket, refusal(request, reply.ticket, told)),)

    return finish

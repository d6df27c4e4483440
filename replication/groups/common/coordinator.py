"""Set up a group coordinator, and refuse the requests that a broker cannot pass to it.

Constraints: settings are Kafka's defaults of a release, except where a scenario sets the retention of offsets. The
oldest rules of consumer groups are those of 4.0, for every release before it as well.

Source: KafkaApis and GroupCoordinatorService (the errors of a broker that does not coordinate), 4.0.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from broker.entropy import SplitMix64
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
from broker.group.messages import OffsetCommitRequest, OffsetCommitResponse, OffsetFetchRequest, OffsetFetchResponse
from broker.group.offsets import OffsetOptions
from broker.group.service import Request, Response, ServiceOptions
from broker.releases import NEWEST, Release
from broker.units import DurationMs
from replication.groups.client.assigning import ServerSideAssignor


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

"""Define the requests and responses of a consumer group: ConsumerGroupHeartbeat and nothing else.

Source: ConsumerGroupHeartbeatRequest and -Response, clients/src/main/resources/common/message, 4.0; KIP-848.
"""

from __future__ import annotations

import attrs

from broker.error_codes import ErrorCode
from broker.group.consumer.member import JOINING_EPOCH, Partitions
from broker.group.members import UNKNOWN_MEMBER, InstanceId, MemberId
from broker.units import DurationMs


@attrs.frozen(kw_only=True)
class ConsumerGroupHeartbeatRequest:
    """A member joins (epoch 0), reports, leaves (-1) or leaves temporarily (-2); None is an unchanged field."""

    member_id: MemberId = UNKNOWN_MEMBER
    epoch: int = JOINING_EPOCH
    instance_id: InstanceId | None = None
    client_id: str = ""
    rack: str | None = None
    rebalance_timeout_ms: DurationMs | None = None
    subscribed_topics: frozenset[str] | None = None
    assignor: str | None = None
    owned: Partitions | None = None

    @property
    def is_full(self) -> bool:
        """Return whether the request has every field, as the first one does and each one after an error."""
        return self.epoch == JOINING_EPOCH or None not in (
            self.rebalance_timeout_ms,
            self.subscribed_topics,
            self.owned,
        )


@attrs.frozen(kw_only=True)
class ConsumerGroupHeartbeatResponse:
    """The response to a ConsumerGroupHeartbeatRequest; `assignment` is None when it has not changed."""

    error: ErrorCode = ErrorCode.NONE
    member_id: MemberId = UNKNOWN_MEMBER
    epoch: int = JOINING_EPOCH
    heartbeat_interval_ms: DurationMs = attrs.field(default=DurationMs(0))
    assignment: Partitions | None = None

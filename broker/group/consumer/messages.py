"""Define the request and the response of ConsumerGroupHeartbeat.

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
    """Join (epoch 0), report, leave (-1) or leave for a while (-2); None means an unchanged field."""

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
        """Return whether every optional field is set, as in the first heartbeat of a member or after an error."""
        return None not in (self.rebalance_timeout_ms, self.subscribed_topics, self.owned)


@attrs.frozen(kw_only=True)
class ConsumerGroupHeartbeatResponse:
    """Answer a ConsumerGroupHeartbeat; `assignment` is None if it has not changed."""

    error: ErrorCode = ErrorCode.NONE
    member_id: MemberId = UNKNOWN_MEMBER
    epoch: int = JOINING_EPOCH
    heartbeat_interval_ms: DurationMs = attrs.field(default=DurationMs(0))
    assignment: Partitions | None = None

"""Check what each message does to a leader's AlterPartition request under way and to its ISR (I27).

No rule is called.
- A follower is added as a fetch of it arrives, which asks for the high watermark or more; not as a held one is
  answered, when its broker may be gone.
- INELIGIBLE_REPLICA or OPERATION_NOT_ATTEMPTED ends the request and leaves the ISR. An answer without an error that is
  not older than the leader is its ISR. An answer in older epochs is forgotten. After any other answer the change may
  have been made, so the request stays, for metadata to settle or to be sent again.

Source: Kafka core Partition.submitAlterPartition, handleAlterPartitionError and handleAlterPartitionUpdate, and
ReplicaManager.readFromLog, 4.4.0; KIP-497.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from broker.error_codes import ErrorCode
from broker.ids import BrokerId
from replication.roles.messages import AlterPartitionResponse, Fetch, Message
from replication.rules.partition import LeaderState
from replication.rules.switches import Rules

_REFUSED: Final = (ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED)


def wrong_change(before: LeaderState, after: LeaderState, message: Message, high: int, rules: Rules) -> Iterator[str]:
    """Yield what is wrong with a leader's pending request and ISR after `message`.

    `before` is its state before the message, `high` its high watermark then. A leader of another epoch begins anew.
    """
    if before.leader_epoch != after.leader_epoch:
        return
    if isinstance(message, AlterPartitionResponse):
        expected = _settled(before, message)
        if (after.isr, after.pending) != expected:
            error = message.altered.error.name
            yield f"leader {after.broker} makes {after.isr} and {after.pending} of {error}, which makes {expected}"
    elif after.pending is not None and after.pending != before.pending:
        added = set(after.pending.members).difference(after.isr)
        request = message.request if isinstance(message, Fetch) else None
        least = max(high, after.epoch_start_offset) if rules.isr_join_epoch_start else high
        if added and (request is None or added != {request.replica} or request.offset < least):
            yield f"leader {after.broker} adds {sorted(added)} by {message}, and not by a fetch from {least} on"


def _settled(before: LeaderState, response: AlterPartitionResponse) -> tuple[tuple[BrokerId, ...], object]:
    """Return the ISR and the pending request of a leader after an AlterPartition response."""
    answer, error = response.altered.partition, response.altered.error
    if before.pending != response.request:
        return before.isr, before.pending
    if error in _REFUSED:
        return before.isr, None
    is_old = answer.leader_epoch != before.leader_epoch or answer.partition_epoch < before.partition_epoch
    return (before.isr, before.pending) if error is not ErrorCode.NONE or is_old else (answer.isr, None)

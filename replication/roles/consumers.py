"""A replica that answers a consumer, as leader or as follower.

It decides nothing beyond `replication.rules.follower_read`: records below the replica's own high watermark are shown.

Source: Kafka core ReplicaManager.fetchMessages for consumers, commit 1eb7644 (2024-10); KIP-392.
"""

from __future__ import annotations

from broker.error_codes import ErrorCode
from broker.units import SizeBytes
from log.partition.reading import Isolation
from replication.roles.messages import ConsumerFetch, ConsumerFetchResponse
from replication.roles.replica_log import ReplicaLog
from replication.rules.follower_read import check_consumer_fetch
from replication.rules.partition import FollowerState, LeaderState
from replication.rules.switches import Rules


def answer_consumer(
    role: LeaderState | FollowerState, log: ReplicaLog, ask: ConsumerFetch, rules: Rules, bytes_max: SizeBytes
) -> ConsumerFetchResponse:
    """Return what a consumer is shown by this replica."""
    state = log.state
    error = check_consumer_fetch(role, state, ask.offset, rules)
    records = b""
    if error is ErrorCode.NONE and ask.offset < state.high_watermark:
        records = bytes(log.log.read(ask.offset, bytes_max, isolation=Isolation.HIGH_WATERMARK).records)
    return ConsumerFetchResponse(ask.partition, ask.number, error, records, state.start_offset, state.high_watermark)

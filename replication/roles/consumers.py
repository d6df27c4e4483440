"""Answer a consumer's fetch from a leader's or a follower's log.

Source: Kafka core ReplicaManager.fetchMessages for consumers, 4.3.1; KIP-392.
"""

from __future__ import annotations

from broker.error_codes import ErrorCode
from log.partition.reading import Isolation
from replication.roles.messages import ConsumerFetch, ConsumerFetchResponse
from replication.roles.replica_log import ReplicaLog
from replication.roles.settings import RoleSettings
from replication.rules.follower_read import check_consumer_fetch, preferred_replica
from replication.rules.partition import FollowerState, LeaderState
from replication.rules.settings import Moment


def answer_consumer(
    role: LeaderState | FollowerState, log: ReplicaLog, ask: ConsumerFetch, moment: Moment, role_settings: RoleSettings
) -> ConsumerFetchResponse:
    """Return a replica's answer to a consumer's fetch: records, an error, or the replica to fetch from instead."""
    state, rules = log.state, role_settings.settings.rules
    if isinstance(role, LeaderState):
        preferred = preferred_replica(role, ask.offset, ask.rack, moment, rules)
        if preferred is not None:
            bounds = (state.start_offset, state.high_watermark)
            return ConsumerFetchResponse(ask.partition, ask.number, ErrorCode.NONE, b"", *bounds, preferred)
    error = check_consumer_fetch(role, state, ask.offset, rules)
    records = b""
    if error is ErrorCode.NONE:
        records = bytes(
            log.log.read(ask.offset, role_settings.fetch_bytes_max, isolation=Isolation.HIGH_WATERMARK).records
        )
    return ConsumerFetchResponse(ask.partition, ask.number, error, records, state.start_offset, state.high_watermark)

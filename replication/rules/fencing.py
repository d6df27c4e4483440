"""Decide whether a broker is alive, whether its request is current, and whether its last shutdown was clean.

A broker epoch is the metadata offset of the registration, so it rises with each incarnation. The clean shutdown file is
removed before anything else is done at a start: a crash during the start must not find it.

Example: a broker in epoch 12 shuts down cleanly, starts, and crashes while it loads its logs: it starts uncleanly.

>>> from replication.rules.switches import CURRENT
>>> left = proof_at_stop(BrokerEpoch(12), logs_recovered=True, rules=CURRENT)
>>> registered = BrokerStatus(epoch=BrokerEpoch(12))
>>> is_clean_registration(left, registered)
True
>>> is_clean_registration(proof_while_loading(left, CURRENT), registered)
False

Source: Kafka metadata ClusterControlManager.checkBrokerEpoch and BrokerHeartbeatManager, 4.3.1; core LogManager and
CleanShutdownFileHandler; KIP-380, KIP-631, KIP-966, KAFKA-10471, KAFKA-15375.
"""

from __future__ import annotations

import attrs

from broker.error_codes import ErrorCode
from broker.ids import BrokerEpoch
from broker.units import DurationMs, TimeMs
from replication.rules.partition import UNKNOWN_BROKER_EPOCH, BrokerStatus
from replication.rules.switches import Rules


@attrs.frozen
class StopProof:
    """Hold the clean shutdown file on a broker's disk: the broker epoch in it, None if there is no file."""

    epoch: BrokerEpoch | None = None


def check_broker_epoch(status: BrokerStatus | None, epoch: BrokerEpoch) -> ErrorCode:
    """Return STALE_BROKER_EPOCH unless a request carries the current epoch of a registered broker."""
    return ErrorCode.NONE if status is not None and status.epoch == epoch else ErrorCode.STALE_BROKER_EPOCH


def check_control_request(own_epoch: BrokerEpoch, epoch: BrokerEpoch, rules: Rules) -> ErrorCode:
    """Return STALE_BROKER_EPOCH for a ZooKeeper controller's request to an earlier incarnation."""
    if rules.control_request_broker_epoch and epoch != UNKNOWN_BROKER_EPOCH and epoch < own_epoch:
        return ErrorCode.STALE_BROKER_EPOCH
    return ErrorCode.NONE


def is_session_valid(heard_at_ms: TimeMs, now_ms: TimeMs, session_ms: DurationMs) -> bool:
    """Return whether a broker last heard of at `heard_at_ms` has a session; the session's last ms counts."""
    return heard_at_ms + session_ms >= now_ms


def has_session(heard_at_ms: TimeMs | None, *, fenced: bool, rules: Rules) -> bool:
    """Return whether a broker has a session that can end: it has sent a heartbeat, and counts though it is fenced."""
    return heard_at_ms is not None and (rules.fenced_broker_has_session or not fenced)


def may_stop(*, leaderships: int, shutdown_offset: int, least_metadata_offset: int) -> bool:
    """Return whether a broker in controlled shutdown may stop: it leads nothing, as all active brokers have read."""
    return leaderships == 0 and shutdown_offset <= least_metadata_offset


def proof_at_stop(epoch: BrokerEpoch, *, logs_recovered: bool, rules: Rules) -> StopProof:
    """Return the clean shutdown file that an orderly shutdown leaves on disk."""
    return StopProof(epoch) if logs_recovered or not rules.clean_marker_removed_first else StopProof()


def proof_while_loading(found: StopProof, rules: Rules) -> StopProof:
    """Return the clean shutdown file that a crash during the loading of logs leaves on disk."""
    return StopProof() if rules.clean_marker_removed_first else found


def is_clean_registration(found: StopProof, registered: BrokerStatus | None) -> bool:
    """Return whether a registering broker has lost no record since it was registered last."""
    if registered is None:
        return False
    return found.epoch == registered.epoch

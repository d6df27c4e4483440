"""Who is alive, and whose word counts: sessions, broker epochs, and the proof of a clean stop.

It decides whether a request comes from a broker's present life, when a session is over, when a stopping broker may
go, and whether a starting one has stopped cleanly before. The states themselves are a table in
`broker.registration`.

Goals, most important first
1. A former life of a broker changes nothing any more.
2. A broker that may have lost the end of its logs never passes for one that has not.
3. Fencing may come late, never early.

Constraints: a broker epoch is the metadata offset of the registration, so it rises with each life. The proof of a
clean stop is removed before anything else is done at a start: a crash during the start must not find it.

How: the proof is a file with the broker epoch, written last at a clean stop, and not at all if the logs had not
been recovered; a registration counts as clean if it shows the epoch that the controller holds.

Worked example: a broker in epoch 12 stops cleanly and leaves 12. It starts, takes the 12 away, crashes while
loading, starts again: no proof, so its registration is unclean.

Left out: heartbeats and incarnation ids (`broker.registration`).

Source: Kafka metadata ClusterControlManager.checkBrokerEpoch and BrokerHeartbeatManager, commit 1eb7644 (2024-10);
core LogManager and CleanShutdownFileHandler; KIP-380, KIP-966, KAFKA-10471, KAFKA-15375.
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
    """What a broker's disk says about its last stop: the epoch left by a clean one, None for none."""

    epoch: BrokerEpoch | None = None


def check_broker_epoch(status: BrokerStatus | None, epoch: BrokerEpoch) -> ErrorCode:
    """Return STALE_BROKER_EPOCH for a request to the controller from a broker's former life."""
    return ErrorCode.NONE if status is not None and status.epoch == epoch else ErrorCode.STALE_BROKER_EPOCH


def check_control_request(own_epoch: BrokerEpoch, epoch: BrokerEpoch, rules: Rules) -> ErrorCode:
    """Return STALE_BROKER_EPOCH for an order of a ZooKeeper controller that was meant for a former life."""
    if rules.control_request_broker_epoch and epoch != UNKNOWN_BROKER_EPOCH and epoch < own_epoch:
        return ErrorCode.STALE_BROKER_EPOCH
    return ErrorCode.NONE


def is_session_valid(heard_at_ms: TimeMs, now_ms: TimeMs, session_ms: DurationMs) -> bool:
    """Return whether a broker heard of last at `heard_at_ms` still has its session; the last instant counts."""
    return heard_at_ms + session_ms >= now_ms


def may_stop(*, leaderships: int, shutdown_offset: int, least_metadata_offset: int) -> bool:
    """Return whether a stopping broker may go: it leads nothing and every active broker has read that."""
    return leaderships == 0 and shutdown_offset <= least_metadata_offset


def proof_at_stop(epoch: BrokerEpoch, *, logs_recovered: bool, rules: Rules) -> StopProof:
    """Return what a clean stop leaves behind."""
    return StopProof(epoch) if logs_recovered or not rules.clean_marker_removed_first else StopProof()


def proof_while_loading(found: StopProof, rules: Rules) -> StopProof:
    """Return what is on disk while a starting broker loads its logs, which a crash during loading leaves behind."""
    return StopProof() if rules.clean_marker_removed_first else found


def is_clean_registration(found: StopProof, registered: BrokerStatus | None) -> bool:
    """Return whether a broker that registers with what it found has lost nothing since it was registered last."""
    if registered is None:
        return False
    return found.epoch is not None and found.epoch == registered.epoch

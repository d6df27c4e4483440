"""Decide whether a broker is alive, its request current, its last shutdown clean, and a log on its disk a stray.

A broker epoch is the metadata offset of the registration, so it rises with each incarnation. The clean shutdown file is
removed before anything else is done at a start: a crash during the start must not find it. A topic
is known by its id, which is in the partition.metadata file beside the log; without ids (before 3.1) only the name is
known, and a log whose topic's name exists is kept.

Example: a broker in epoch 12 shuts down cleanly, starts, and crashes while it loads its logs: it starts uncleanly.

>>> from replication.rules.switches import CURRENT
>>> left = proof_at_stop(BrokerEpoch(12), logs_recovered=True, rules=CURRENT)
>>> registered = BrokerStatus(epoch=BrokerEpoch(12))
>>> is_clean_registration(left, registered)
True
>>> is_clean_registration(proof_while_loading(left, CURRENT), registered)
False
>>> one = BrokerId(1)  # Topic "a" with id 1 was deleted and created again with id 2.
>>> partitions = {2: PartitionState(replicas=(one,), isr=(one,), leader=one)}
>>> is_stray(StoredReplica("a", topic_id=1), one, {2: "a"}, partitions, CURRENT)
True

Source: Kafka metadata ClusterControlManager.checkBrokerEpoch and BrokerHeartbeatManager, 4.3.1; core LogManager and
CleanShutdownFileHandler, storage LogManager.isStrayKraftReplica;
KIP-380, KIP-516, KIP-631, KIP-966, KAFKA-10471, KAFKA-14616, KAFKA-15375.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from broker.error_codes import ErrorCode
from broker.ids import BrokerEpoch, BrokerId
from broker.units import DurationMs, TimeMs
from replication.rules.partition import UNKNOWN_BROKER_EPOCH, BrokerStatus, PartitionState
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
    """Return whether a broker's session can expire: after a heartbeat, unfenced or by rules that count fenced ones."""
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


@attrs.frozen
class StoredReplica:
    """Describe a log on disk: the name of its topic, and the topic id in its partition.metadata file."""

    topic: str
    topic_id: int


def is_stray(
    stored: StoredReplica,
    broker: BrokerId,
    topics: Mapping[int, str],
    partitions: Mapping[int, PartitionState],
    rules: Rules,
) -> bool:
    """Return whether a log is stray; `topics` are the topic names by id, and each topic has one partition."""
    if rules.topic_id_check:
        state = partitions.get(stored.topic_id)
        return state is None or broker not in state.replicas
    namesakes = [partitions[topic_id] for topic_id, name in topics.items() if name == stored.topic]
    return all(broker not in state.replicas for state in namesakes)

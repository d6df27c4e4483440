"""Check liveness after all faults (L1 to L7, L10 to L13), and restart replaced brokers.

Nothing is sent or changed; the writes that prove L10 are the producers' own. With ZooKeeper a consumer may read from a
former leader that was removed while it had no session, until its metadata is as old as metadata.max.age.ms. A broker
stays fenced for good if a registration of its earlier incarnation has come between the present one's registration and
first heartbeat: an operator must restart it; no ticket of Kafka's is known for that.

Source: ClusterControlManager.registerBroker, BrokerLifecycleManager.BrokerHeartbeatResponseEvent, 4.3.1;
Vanlightly/kafka-tlaplus (2025-01) for L3 to L8; the liveness phase of TigerBeetle's VOPR.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import attrs

from broker.ids import NO_LEADER, BrokerEpoch
from broker.registration import Registration
from replication.roles.leader import LeaderRole
from replication.roles.messages import Incarnation
from replication.roles.states.lifecycle import LifecycleState
from replication.rules.partition import PartitionState
from replication.simulation.clients import METADATA_MS_MAX, POLL_MS, Consumer, Producer
from replication.simulation.cluster import Cluster

_STOPPING = (LifecycleState.PENDING_CONTROLLED_SHUTDOWN, LifecycleState.SHUTTING_DOWN)


@attrs.frozen
class Missing:
    """Describe an unsatisfied liveness property: the code of its invariant, and the missing condition."""

    code: str
    what: str

    def __str__(self) -> str:
        return self.what


def settled(cluster: Cluster, arrived: Collection[int] = ()) -> Missing | None:
    """Return the first liveness property that does not hold yet; None if all hold. Cost: linear in the replicas.

    Partitions in `arrived` are not asked again whether their logs are level.
    """
    parts = (_brokers(cluster), _partitions(cluster, arrived), _clients(cluster))
    return next((missing for part in parts for missing in part), None)


def level_partitions(cluster: Cluster) -> Iterator[int]:
    """Yield each partition whose logs all end where all of their high watermarks are."""
    for partition, state in sorted(cluster.controller.image.partitions.items()):
        if next(_logs(cluster, partition, state), None) is None:
            yield partition


def _brokers(cluster: Cluster) -> Iterator[Missing]:
    image = cluster.controller.image
    for broker, node in sorted(cluster.nodes.items()):
        status = image.brokers.get(broker)
        if node.role is not None and node.role.lifecycle in _STOPPING:
            yield Missing("L13", f"broker {broker} was told to stop and has not ended its controlled shutdown")
        if node.role is None or status is None or not status.is_active or status.epoch != node.role.epoch:
            yield Missing("L", f"broker {broker} is not unfenced in its present life (L6)")
        elif node.role.image.offset != image.offset:
            yield Missing("L", f"broker {broker} has not read all metadata (L7)")


def _partitions(cluster: Cluster, arrived: Collection[int]) -> Iterator[Missing]:
    partitions = cluster.controller.image.partitions
    if not partitions.keys() | cluster.deleted >= set(range(cluster.options.partition_count)):
        yield Missing("L", "a partition could not be made (L1)")
    for partition, state in sorted(partitions.items()):
        if not state.has_leader:
            yield Missing("L", f"partition {partition} has no leader (L1)")
        elif set(state.isr) != set(state.replicas):
            yield Missing("L", f"partition {partition} has ISR {state.isr}, replicas {state.replicas} (L2)")
        elif state.is_reassigning:
            yield Missing("L", f"partition {partition} is still being reassigned (L5)")
        elif partition not in arrived:
            yield from _logs(cluster, partition, state)


def _logs(cluster: Cluster, partition: int, state: PartitionState) -> Iterator[Missing]:
    absent = [broker for broker in state.replicas if partition not in cluster.nodes[broker].logs]
    if absent:
        yield Missing("L", f"partition {partition} has no log on broker {absent[0]}, which is in its ISR (L4)")
        return
    logs = [cluster.nodes[broker].logs[partition].log for broker in state.replicas]
    ends = {log.log_end_offset for log in logs}
    highs = {log.high_watermark for log in logs}
    if len(ends) != 1:
        yield Missing("L", f"partition {partition} has logs that end at {sorted(ends)} (L4)")
    elif highs != ends:
        what = f"has high watermarks {sorted(highs)}, and all its logs end at {ends.pop()}"
        yield Missing("L11", f"partition {partition} {what}")


def _clients(cluster: Cluster) -> Iterator[Missing]:
    partitions = cluster.controller.image.partitions
    for client in cluster.clients.values():
        if isinstance(client, Producer) and client.is_busy:
            yield Missing("L", f"client {client.node} waits for an answer (L3)")
        elif isinstance(client, Producer) and client.owed:
            what = f"has no new write acknowledged by all on partition {client.owed[0]}"
            yield Missing("L10", f"client {client.node} {what}")
        elif isinstance(client, Consumer) and client.partition in partitions and not client.has_given_up:
            high = cluster.nodes[partitions[client.partition].leader].logs[client.partition].log.high_watermark
            if client.position < high and not _reads_from_removed(cluster, client, partitions[client.partition]):
                what = f"has read partition {client.partition} up to {client.position} of {high}"
                yield Missing("L12", f"client {client.node} {what}")


def _reads_from_removed(cluster: Cluster, client: Consumer, state: PartitionState) -> bool:
    """Return whether a consumer with old metadata reads from a leader that has not heard of its removal.

    Kafka's controller of the ZooKeeper era sends StopReplica to brokers with a session only, and tells a broker that
    comes back of the replicas that it has (ControllerBrokerRequestBatch.sendStopReplicaRequests and
    KafkaController.onBrokerStartup, 3.9). Until then the removed one leads on, and answers consumers without an error.
    """
    if not cluster.options.role_settings.has_zookeeper or client.reads_from in (NO_LEADER, *state.replicas):
        return False
    role = cluster.nodes[client.reads_from].role
    part = None if role is None else role.roles.get(client.partition)
    # A fetch that waits for its answer, and the next one, come after the metadata's end.
    due_ms = client.metadata_ms + METADATA_MS_MAX + 2 * POLL_MS
    leads = isinstance(part, LeaderRole) and part.state.leader_epoch < state.leader_epoch
    return leads and cluster.now_ms < due_ms


def restart_where_replaced(cluster: Cluster) -> None:
    """Restart each broker whose registration was replaced by one of its earlier incarnation."""
    if cluster.options.role_settings.has_zookeeper:
        return
    for broker, node in sorted(cluster.nodes.items()):
        registration = cluster.controller.registrations.get(broker)
        if node.role is None or registration is None:
            continue
        if is_replaced(node.incarnation, node.role.epoch, registration):
            what = f"broker {broker} is registered as its life {registration.incarnation_id}"
            cluster.trace.line(cluster.now_ms, f"{what}, which has ended; an operator restarts it")
            node.kill()
            cluster.start_broker(broker)


def is_replaced(incarnation: Incarnation, epoch: BrokerEpoch | None, registration: Registration) -> bool:
    """Return whether a registration of an earlier incarnation has replaced that of this one."""
    _, _, life = registration.incarnation_id.rpartition("/")
    return epoch is not None and registration.epoch > epoch and int(life) < incarnation

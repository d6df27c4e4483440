"""Do what an operator must do after the faults where Kafka alone never becomes whole again.

What it decides: which partitions have no leader and cannot get one, and the order that helps: an UNCLEAN election; and
which brokers stay fenced for good, and are restarted.

Constraints: only where Kafka has the hole. A partition: the ISR is empty, and the ELR holds former replicas only, which
a reassignment has removed. Nobody in it can be elected, and as it is not empty the last known leader is not, either.
What the election loses is listed with the order as its cause. A broker: a registration of an earlier life of it, late
on its way, has come between its present life's registration and first heartbeat, as no session is valid then
(ClusterControlManager.registerBroker). It goes on with its epoch, which is stale, and never registers again
(BrokerLifecycleManager). No ticket of Kafka's is known for that.

Example: the replicas are 0 and 3, the ISR is empty, the ELR is 4: broker 0 is elected, as an operator orders it. Broker
3 has epoch 559 in its life 11, and the controller has 560 for its life 10: an operator restarts it.

Source: Kafka metadata PartitionChangeBuilder.maybePopulateTargetElr and canElectLastKnownLeader, 4.0 to 4.3.1; since
KAFKA-19975 (4.3) a move ends with fewer in sync than min.insync.replicas, which leaves its former replicas in the ELR.
ClusterControlManager.registerBroker and BrokerLifecycleManager.BrokerHeartbeatResponseEvent, 4.3.1.
"""

from __future__ import annotations

from broker.ids import BrokerEpoch
from broker.registration import Registration
from replication.roles.messages import CONTROLLER, ElectLeaders, Incarnation
from replication.rules.election import Election
from replication.rules.partition import PartitionState
from replication.simulation.cluster import Cluster


def elect_where_stuck(cluster: Cluster) -> None:
    """Order an UNCLEAN election for each partition that only former replicas could lead, once a replica is alive."""
    image = cluster.controller.image
    for partition, state in sorted(image.partitions.items()):
        alive = [broker for broker in state.replicas if broker in image.brokers and image.brokers[broker].is_active]
        if is_stuck(state) and alive:
            elr = ", ".join(map(str, state.elr))
            what = f"partition {partition} can get no leader, as its ELR ({elr}) holds former replicas only"
            cluster.trace.line(cluster.now_ms, f"{what}; an operator orders an unclean election")
            cluster.deliver(CONTROLLER, ElectLeaders(partition, Election.UNCLEAN))


def is_stuck(state: PartitionState) -> bool:
    """Return whether a partition has no leader, nobody in sync, and only former replicas in its ELR."""
    return not state.has_leader and not state.isr and bool(state.elr) and not set(state.elr) & set(state.replicas)


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

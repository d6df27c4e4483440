"""Restart brokers that stay fenced for good after the faults, as an operator must.

A registration of an earlier incarnation, late on its way, has come between the present one's registration and first
heartbeat, as no session is valid then (ClusterControlManager.registerBroker). The broker goes on with its epoch, which
is stale, and never registers again (BrokerLifecycleManager). No ticket of Kafka's is known for that.

Source: ClusterControlManager.registerBroker and BrokerLifecycleManager.BrokerHeartbeatResponseEvent, 4.3.1.
"""

from __future__ import annotations

from broker.ids import BrokerEpoch
from broker.registration import Registration
from replication.roles.messages import Incarnation
from replication.simulation.cluster import Cluster


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

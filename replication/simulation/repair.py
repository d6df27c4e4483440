"""Do what an operator must do after the faults where Kafka alone never gives a partition a leader again.

What it decides: which partitions have no leader and cannot get one, and the order that helps: an UNCLEAN election.

Constraints: only where Kafka has the hole: the ISR is empty, and the ELR holds former replicas only, which a
reassignment has removed. Nobody in it can be elected, and as it is not empty the last known leader is not, either. What
the election loses is listed with the order as its cause.

Example: the replicas are 0 and 3, the ISR is empty, the ELR is 4: broker 0 is elected, as an operator orders it.

Source: Kafka metadata PartitionChangeBuilder.maybePopulateTargetElr and canElectLastKnownLeader, 4.0 to 4.3.1; since
KAFKA-19975 (4.3) a move ends with fewer in sync than min.insync.replicas, which leaves its former replicas in the ELR.
"""

from __future__ import annotations

from replication.roles.messages import CONTROLLER, ElectLeaders
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

"""What is asked of a controller about a topic that has been deleted meanwhile."""

from __future__ import annotations

import pytest

from broker.error_codes import ErrorCode
from broker.ids import BrokerEpoch, BrokerId, LeaderEpoch
from broker.units import DurationMs, TimeMs
from replication.roles.messages import (
    Address,
    AlterPartition,
    AlterPartitionResponse,
    NodeId,
    PartitionRemoved,
)
from replication.roles.outbox import Outbox
from replication.rules.partition import AlterPartitionRequest, IsrMember, PartitionEpoch
from replication.simulation import quiet
from replication.simulation.cluster import Cluster
from replication.simulation.trace import Trace


@pytest.mark.parametrize(("behind", "error"), [(0, ErrorCode.UNKNOWN_TOPIC_ID), (1, ErrorCode.STALE_BROKER_EPOCH)])
def test_an_isr_change_that_arrives_after_the_deletion_is_refused(behind: int, error: ErrorCode) -> None:
    cluster = Cluster(quiet(1, DurationMs(8_000)), Trace())
    cluster.begin()
    cluster.run_until(TimeMs(5_000))
    controller, leader = cluster.controller, BrokerId(0)
    controller._write(PartitionRemoved(0))
    count, out = len(controller.log), Outbox()
    epoch = controller.image.brokers[leader].epoch
    request = AlterPartitionRequest(
        leader=leader,
        leader_epoch=LeaderEpoch(0),
        partition_epoch=PartitionEpoch(0),
        isr=(IsrMember(leader),),
    )
    ask = AlterPartition(0, 1, request, BrokerEpoch(epoch - behind))
    controller.handle(ask, Address(NodeId(leader)), TimeMs(5_001), out)
    ((receiver, answer),) = [each for each in out.sent if isinstance(each[1], AlterPartitionResponse)]
    assert isinstance(answer, AlterPartitionResponse)
    assert (receiver.node, answer.request, answer.altered.error) == (leader, request, error)
    assert len(controller.log) == count

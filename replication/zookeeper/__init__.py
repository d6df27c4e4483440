"""The older mode: ZooKeeper keeps who is alive and what was decided, and one of the brokers is the controller."""

from __future__ import annotations

from replication.zookeeper.broker import ZooKeeperBrokerRole
from replication.zookeeper.ensemble import ZooKeeperRole

__all__ = ("ZooKeeperBrokerRole", "ZooKeeperRole")

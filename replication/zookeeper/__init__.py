"""Model ZooKeeper mode: ZooKeeper keeps brokers and partition states, and one of the brokers is the controller."""

from __future__ import annotations

from replication.zookeeper.broker import ZooKeeperBrokerRole
from replication.zookeeper.ensemble import ZooKeeperRole

__all__ = ("ZooKeeperBrokerRole", "ZooKeeperRole")

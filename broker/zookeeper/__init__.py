"""ZooKeeper's tree of nodes: versions, nodes that go with their session, watches that tell once."""

from __future__ import annotations

from broker.zookeeper.refusals import ZnodeCode, ZnodeRefusedError
from broker.zookeeper.tree import ANY_VERSION, Kind, Made, Session, Stat, Told, WatchKind, Znode, ZnodeTree

__all__ = (
    "ANY_VERSION",
    "Kind",
    "Made",
    "Session",
    "Stat",
    "Told",
    "WatchKind",
    "Znode",
    "ZnodeCode",
    "ZnodeRefusedError",
    "ZnodeTree",
)

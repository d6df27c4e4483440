"""Model ZooKeeper's tree of znodes: versions, sessions and ephemeral nodes, one-time watches."""

from __future__ import annotations

from broker.zookeeper.refusals import ZnodeCode, ZnodeRefusedError
from broker.zookeeper.tree import (
    ANY_VERSION,
    CreateResult,
    EventType,
    NodeKind,
    Session,
    Stat,
    WatchedEvent,
    Znode,
    ZnodeTree,
)

__all__ = (
    "ANY_VERSION",
    "CreateResult",
    "EventType",
    "NodeKind",
    "Session",
    "Stat",
    "WatchedEvent",
    "Znode",
    "ZnodeCode",
    "ZnodeRefusedError",
    "ZnodeTree",
)

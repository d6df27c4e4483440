"""Apply the rules as leader, follower, broker and controller: each handles messages and fills an outbox."""

from __future__ import annotations

from replication.roles.broker_role import BrokerRole
from replication.roles.broker_start import BrokerStart
from replication.roles.controller import ControllerRole
from replication.roles.follower import FollowerRole
from replication.roles.leader import LeaderRole
from replication.roles.outbox import Outbox
from replication.roles.replica_log import ReplicaLog
from replication.roles.settings import RoleSettings

__all__ = (
    "BrokerRole",
    "BrokerStart",
    "ControllerRole",
    "FollowerRole",
    "LeaderRole",
    "Outbox",
    "ReplicaLog",
    "RoleSettings",
)

"""Apply the rules as leader, follower, broker and controller: each handles messages and fills an outbox.

- leader: Model a leader: it answers followers' fetches, accepts writes, and shrinks and expands the ISR.
- follower: Model a follower: it makes its log a prefix of its leader's log, and keeps it one.
- controller: Model the active controller: it decides which brokers are live, and which partitions an event changes.
- broker_role: Model one broker process: it registers, applies metadata, and leads or follows each partition.
- messages: Define the messages between brokers, controller and clients, and the timers that each sets for itself.
- states/: Define every state machine of the simulation as a table: the roles step by it, and commands draw it.
- metadata: Apply the records of the metadata log, in order, to a broker's or the controller's image.
- replica_log: Hold one replica's real log beside the value that the rules read, and answer consumers from it.
- outbox: Collect the messages and timers that result from one handled message.
- hosted: Define what a broker process is started with, and the further roles that it hosts.
- settings: Hold the intervals and sizes that the roles use, with Kafka's defaults.
"""

from __future__ import annotations

from replication.roles.broker_role import BrokerRole
from replication.roles.controller import ControllerRole
from replication.roles.follower import FollowerRole
from replication.roles.hosted import BrokerStart
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

"""Define the messages between brokers, controller and clients, and the timers that each of them sets for itself.

Values are frozen. A response carries the number of its request, so that late and duplicate responses are recognised. A
request names the sender's incarnation, and its response reaches that incarnation only, as a connection ends with its
process.

Source: Kafka clients/src/main/resources/common/message: FetchRequest, AlterPartitionRequest, BrokerHeartbeatRequest,
BrokerRegistrationRequest, ProduceRequest (4.0).
"""

from __future__ import annotations

from typing import Final, NewType, TypeAlias

from broker.error_codes import ErrorCode
from broker.ids import NO_LEADER, BrokerEpoch, BrokerId, LeaderEpoch, Offset
from broker.registration import BrokerState, Heartbeat
from broker.values import value
from replication.rules.alter_partition import Altered
from replication.rules.election import Election
from replication.rules.fencing import StopProof
from replication.rules.fetch import FetchAnswer, FetchRequest
from replication.rules.partition import UNKNOWN_EPOCH, AlterPartitionRequest, BrokerStatus, EpochEnd, PartitionState

NodeId = NewType("NodeId", int)
"""A process of the simulation: a broker by its id, the controller, or a client."""

Incarnation = NewType("Incarnation", int)
"""The number of a process's incarnation; messages to an earlier incarnation are dropped."""

CONTROLLER: Final = NodeId(100_000)
"""The address of the controller; the ids of brokers lie below."""
CLIENT_FIRST: Final = NodeId(CONTROLLER + 2_000)
ANY_INCARNATION: Final = Incarnation(-1)


def node_name(node: int) -> str:
    """Return a node's name: "broker 1", "the controller", or "client 2000"."""
    if node == CONTROLLER:
        return "the controller"
    return f"broker {node}" if node < CONTROLLER else f"client {node - CONTROLLER}"


@value
class Address:
    """Address a message: to a process for a request, to the requesting incarnation of a process for a response."""

    node: NodeId
    incarnation: Incarnation = ANY_INCARNATION


NOBODY: Final = Address(NodeId(-1))
"""The address of no process."""


class Message:
    """Mark the messages that a process can receive: over the network, or from its own timers."""

    __slots__ = ()


class HostedMessage(Message):
    """Mark a message between brokers' hosted roles and their clients; see `replication.roles.hosted`."""

    __slots__ = ()


class ReplicaMessage(Message):
    """Mark a message that changes nothing on a broker but its replica of the message's partition."""

    __slots__ = ()

    @property
    def partition(self) -> int:
        """Return the number of the partition."""
        raise NotImplementedError


@value
class Fetch(ReplicaMessage):
    """A follower asks its leader for records."""

    partition: int
    number: int
    request: FetchRequest


@value
class FetchResponse(ReplicaMessage):
    """The leader answers Fetch; `records` are whole batches as the leader's log has them."""

    partition: int
    number: int
    answer: FetchAnswer
    records: bytes


@value
class OffsetsForLeaderEpoch(ReplicaMessage):
    """A follower asks where epoch `asked` ends in the leader's log; `believed` is its own leader epoch."""

    partition: int
    number: int
    asked: LeaderEpoch
    believed: LeaderEpoch


@value
class OffsetsForLeaderEpochResponse(ReplicaMessage):
    """The leader answers OffsetsForLeaderEpoch."""

    partition: int
    number: int
    error: ErrorCode
    end: EpochEnd


@value
class ListOffsets(ReplicaMessage):
    """A follower that is out of range, or a client without a leader epoch, asks for a log's start and end."""

    partition: int
    number: int
    believed: LeaderEpoch = UNKNOWN_EPOCH
    is_of_client: bool = False


@value
class ListOffsetsResponse(ReplicaMessage):
    """The leader answers ListOffsets."""

    partition: int
    number: int
    error: ErrorCode
    start_offset: Offset
    end_offset: Offset


@value
class AlterPartition(Message):
    """A leader asks the controller to change the ISR; `number` counts its attempts."""

    partition: int
    number: int
    request: AlterPartitionRequest
    broker_epoch: BrokerEpoch


@value
class AlterPartitionResponse(ReplicaMessage):
    """The controller answers AlterPartition."""

    partition: int
    request: AlterPartitionRequest
    altered: Altered


@value
class BrokerRegistration(Message):
    """A starting broker registers; `proof` is its clean shutdown file, `rack` its broker.rack."""

    broker: BrokerId
    incarnation: str
    proof: StopProof
    rack: str = ""


@value
class BrokerRegistrationResponse(Message):
    """The controller answers BrokerRegistration with an epoch, or with None while an old session stands."""

    epoch: BrokerEpoch | None


@value
class BrokerHeartbeat(Message):
    """A broker renews its session; `offline` are the partitions in directories that have failed.

    Kafka names the directories, and the controller knows which replicas are in them.
    """

    broker: BrokerId
    epoch: BrokerEpoch
    heartbeat: Heartbeat
    offline: frozenset[int] = frozenset()


@value
class BrokerHeartbeatResponse(Message):
    """The controller answers BrokerHeartbeat with the broker's state at the controller."""

    error: ErrorCode
    state: BrokerState


@value
class PartitionRecord:
    """Record the new state of a partition in the metadata log; the partition's number is the id of its topic.

    A topic has no other partition. `topic` is the topic's name, "" for a name made from the number.
    """

    partition: int
    state: PartitionState
    topic: str = ""


@value
class PartitionRemoved:
    """Record in the metadata log that the topic of a partition was deleted."""

    partition: int


@value
class BrokerRecord:
    """Record the new status of a broker in the metadata log."""

    broker: BrokerId
    status: BrokerStatus


@value
class ConfigRecord:
    """Record the settings of a partition's topic in the metadata log, None where those of the brokers hold."""

    partition: int
    min_isr: int | None = None
    unclean_election: bool | None = None


MetadataRecord: TypeAlias = PartitionRecord | PartitionRemoved | BrokerRecord | ConfigRecord


@value
class MetadataFetch(Message):
    """A broker asks the controller for the metadata records from an offset on."""

    broker: BrokerId
    number: int
    offset: int


@value
class MetadataFetchResponse(Message):
    """The controller answers MetadataFetch with the metadata records from `offset` on."""

    number: int
    offset: int
    records: tuple[MetadataRecord, ...]


@value
class Produce(ReplicaMessage):
    """A client sends one batch; acks is -1 (all), 0 or 1."""

    partition: int
    number: int
    acks: int
    records: bytes


@value
class ProduceResponse(Message):
    """The leader answers Produce; `acks` and `appended` are known to the model and not on the wire."""

    partition: int
    number: int
    acks: int
    error: ErrorCode
    offset: Offset
    appended: bool


@value
class ConsumerFetch(ReplicaMessage):
    """A consumer asks a replica for records below the high watermark; `rack` is its client.rack, "" for none."""

    partition: int
    number: int
    offset: Offset
    rack: str = ""


@value
class ConsumerFetchResponse(Message):
    """A replica answers ConsumerFetch; `preferred` is the replica to fetch from instead, -1 for none."""

    partition: int
    number: int
    error: ErrorCode
    records: bytes
    start_offset: Offset
    high_watermark: Offset
    preferred: BrokerId = NO_LEADER


@value
class MetadataRequest(ReplicaMessage):
    """A client asks any broker for the leader of a partition."""

    partition: int
    number: int


@value
class MetadataResponse(Message):
    """A broker answers MetadataRequest; the leader epoch is -1 if the partition is unknown."""

    partition: int
    number: int
    leader: BrokerId
    leader_epoch: LeaderEpoch = UNKNOWN_EPOCH


@value
class CreateTopic(Message):
    """An operator asks to create a partition; replicas on live brokers are in sync at first.

    `topic` is the topic's name, "" for a name made from the number; the number is the topic's id, never used twice.
    `leader` leads at first if it is in sync, as where a cluster is set up like another one; else the first replica.
    """

    partition: int
    replicas: tuple[BrokerId, ...]
    topic: str = ""
    leader: BrokerId = NO_LEADER


@value
class CreateTopics(Message):
    """An operator asks to create several partitions, all in one batch of metadata records or none."""

    orders: tuple[CreateTopic, ...]


@value
class DeleteTopic(Message):
    """An operator asks to delete a partition's topic."""

    partition: int


@value
class AlterPartitionReassignments(Message):
    """An operator asks to move a partition to other replicas; an empty list of replicas cancels a move."""

    partition: int
    replicas: tuple[BrokerId, ...]


@value
class AlterPartitionReassignmentsResponse(HostedMessage):
    """The controller answers AlterPartitionReassignments."""

    partition: int
    error: ErrorCode


@value
class AlterConfigs(Message):
    """An operator changes the settings of a partition's topic."""

    config: ConfigRecord


@value
class ElectLeaders(Message):
    """An operator asks for an election, PREFERRED or UNCLEAN."""

    partition: int
    election: Election


@value
class ElectLeadersResponse(HostedMessage):
    """The controller answers ElectLeaders."""

    partition: int
    error: ErrorCode


@value
class FetchExpired(ReplicaMessage):
    """Tell a leader that a held fetch has waited for fetch_wait_ms."""

    partition: int
    number: int
    follower: BrokerId


@value
class ProduceExpired(ReplicaMessage):
    """Tell a leader that a write has waited for produce_ms_max; each client numbers its own writes."""

    partition: int
    number: int
    client: Address = NOBODY


@value
class FetchDue(ReplicaMessage):
    """Tell a follower to send the next request, unless a later one than `number` was sent."""

    partition: int
    number: int


@value
class LagCheckDue(Message):
    """Tell a broker to look for ISR members that lag."""


@value
class AlterPartitionRetryDue(ReplicaMessage):
    """Tell a leader to send an unanswered AlterPartition again."""

    partition: int
    request: AlterPartitionRequest


@value
class HeartbeatDue(Message):
    """Tell a broker to send BrokerHeartbeat."""


@value
class MetadataFetchDue(Message):
    """Tell a broker to send MetadataFetch, unless a later one than `number` was sent."""

    number: int


@value
class RegistrationDue(Message):
    """Tell a broker to send BrokerRegistration again."""


@value
class CheckpointDue(Message):
    """Tell a broker to write the high watermark checkpoint."""


@value
class SessionsDue(Message):
    """Tell the controller to fence brokers whose sessions have expired."""


@value
class BalanceDue(Message):
    """Tell the controller to elect preferred leaders, and leaders for leaderless partitions."""


@value
class ClientDue(Message):
    """Tell a client to go on, unless a later request than `number` was sent."""

    number: int


def error_of(message: Message) -> ErrorCode | None:
    """Return the error that a message carries, NONE for success; None for a message without one."""
    for holder in (message, getattr(message, "answer", None), getattr(message, "altered", None)):
        error = getattr(holder, "error", None)
        if isinstance(error, ErrorCode):
            return error
    return None

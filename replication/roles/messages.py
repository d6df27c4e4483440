"""What brokers, controller and clients say to each other, and what each says to itself later.

It decides the contents of every message of the simulation, which are those of Kafka's requests as far as the rules of
replication look at them. One value is one request or one answer for one partition.

Constraints: frozen values; an answer carries the number of its request, so that a late or doubled one can be told
from the one waited for; a request names the sender's life, and its answer reaches that life only, as a connection
does not outlive its process.

Example: Fetch(0, 17, FetchRequest(replica=2, offset=5)) is broker 2's 17th question; FetchResponse(0, 17, ...)
answers it.

Left out: requests of several partitions, versions, sizes of requests, sessions of fetches.

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

Life = NewType("Life", int)
"""How often a process has been started; messages of an earlier life find nobody."""

CONTROLLER: Final = NodeId(1_000)
CLIENT_FIRST: Final = NodeId(2_000)
ANY_LIFE: Final = Life(-1)


@value
class Address:
    """Where a message goes; a request goes to whoever is there, an answer to the life that asked."""

    node: NodeId
    life: Life = ANY_LIFE


NOBODY: Final = Address(NodeId(-1))
"""Where nobody is."""


@value
class Fetch:
    """A follower asks a leader for records."""

    partition: int
    number: int
    request: FetchRequest


@value
class FetchResponse:
    """The answer to a fetch; `records` are whole batches as the leader has them."""

    partition: int
    number: int
    answer: FetchAnswer
    records: bytes


@value
class OffsetsForLeaderEpoch:
    """A follower asks where an epoch ends in the leader's log; `believed` is the epoch it follows in."""

    partition: int
    number: int
    asked: LeaderEpoch
    believed: LeaderEpoch


@value
class OffsetsForLeaderEpochResponse:
    """The answer to OffsetsForLeaderEpoch."""

    partition: int
    number: int
    error: ErrorCode
    end: EpochEnd


@value
class ListOffsets:
    """A follower out of range asks where the leader's log starts and ends; or a client, which has no leader epoch."""

    partition: int
    number: int
    believed: LeaderEpoch = UNKNOWN_EPOCH
    is_of_client: bool = False


@value
class ListOffsetsResponse:
    """The answer to ListOffsets."""

    partition: int
    number: int
    error: ErrorCode
    start_offset: Offset
    end_offset: Offset


@value
class AlterPartition:
    """A leader asks the controller to change the ISR; `broker_epoch` is the sender's, `number` counts its attempts."""

    partition: int
    number: int
    request: AlterPartitionRequest
    broker_epoch: BrokerEpoch


@value
class AlterPartitionResponse:
    """The answer to AlterPartition."""

    partition: int
    request: AlterPartitionRequest
    altered: Altered


@value
class BrokerRegistration:
    """A starting broker registers; `proof` is its clean shutdown file, `rack` its broker.rack."""

    broker: BrokerId
    incarnation: str
    proof: StopProof
    rack: str = ""


@value
class BrokerRegistrationResponse:
    """The answer to BrokerRegistration: an epoch, or None while an earlier life's session stands."""

    epoch: BrokerEpoch | None


@value
class BrokerHeartbeat:
    """A broker's heartbeat; `offline` are the partitions in directories that have failed.

    Kafka names the directories, and the controller knows which replicas are in them.
    """

    broker: BrokerId
    epoch: BrokerEpoch
    heartbeat: Heartbeat
    offline: frozenset[int] = frozenset()


@value
class BrokerHeartbeatResponse:
    """The answer to a heartbeat: what the controller holds the broker for."""

    error: ErrorCode
    state: BrokerState


@value
class PartitionRecord:
    """Metadata: a partition as it is from here on. Its number is the id of its topic, which has no other partition.

    `topic` is the topic's name, "" for a name made from the number.
    """

    partition: int
    state: PartitionState
    topic: str = ""


@value
class PartitionRemoved:
    """Metadata: a partition's topic was deleted."""

    partition: int


@value
class BrokerRecord:
    """Metadata: a broker as it is from here on."""

    broker: BrokerId
    status: BrokerStatus


MetadataRecord: TypeAlias = PartitionRecord | PartitionRemoved | BrokerRecord


@value
class MetadataFetch:
    """A broker asks for the metadata from an offset on."""

    broker: BrokerId
    number: int
    offset: int


@value
class MetadataFetchResponse:
    """Records of the metadata log from `offset` on."""

    number: int
    offset: int
    records: tuple[MetadataRecord, ...]


@value
class Produce:
    """A client sends one batch; acks is -1 (all), 0 or 1."""

    partition: int
    number: int
    acks: int
    records: bytes


@value
class ProduceResponse:
    """The answer to Produce; `acks` and `appended` are what the model knows and the wire does not say."""

    partition: int
    number: int
    acks: int
    error: ErrorCode
    offset: Offset
    appended: bool


@value
class ConsumerFetch:
    """A consumer asks a replica for records below the high watermark; `rack` is its client.rack, "" for none."""

    partition: int
    number: int
    offset: Offset
    rack: str = ""


@value
class ConsumerFetchResponse:
    """The answer to ConsumerFetch; `preferred` is the replica to fetch from instead, -1 for the one that answers."""

    partition: int
    number: int
    error: ErrorCode
    records: bytes
    start_offset: Offset
    high_watermark: Offset
    preferred: BrokerId = NO_LEADER


@value
class MetadataRequest:
    """A client asks any broker who leads."""

    partition: int
    number: int


@value
class MetadataResponse:
    """The answer to MetadataRequest; the leader epoch is -1 if the partition is not known."""

    partition: int
    number: int
    leader: BrokerId
    leader_epoch: LeaderEpoch = UNKNOWN_EPOCH


@value
class CreateTopic:
    """An operator tells the controller to make a partition; replicas that are alive are in sync at first.

    `topic` is the name of its topic, "" for one made from the number; the number is the topic's id, never used twice.
    """

    partition: int
    replicas: tuple[BrokerId, ...]
    topic: str = ""


@value
class DeleteTopic:
    """An operator tells the controller to delete a partition's topic."""

    partition: int


@value
class AlterPartitionReassignments:
    """An operator tells the controller to move a partition to other replicas; no replicas at all cancel a move."""

    partition: int
    replicas: tuple[BrokerId, ...]


@value
class AlterPartitionReassignmentsResponse:
    """The answer to AlterPartitionReassignments."""

    partition: int
    error: ErrorCode


@value
class ElectLeaders:
    """An operator asks the controller for an election, PREFERRED or UNCLEAN."""

    partition: int
    election: Election


@value
class ElectLeadersResponse:
    """The answer to ElectLeaders."""

    partition: int
    error: ErrorCode


@value
class FetchExpired:
    """To itself: a fetch has waited for long enough."""

    partition: int
    number: int
    follower: BrokerId


@value
class ProduceExpired:
    """To itself: a write of a client has waited for long enough; clients number their writes each for itself."""

    partition: int
    number: int
    client: Address = NOBODY


@value
class FetchDue:
    """To itself: fetch now, if `number` is still the last question."""

    partition: int
    number: int


@value
class LagCheckDue:
    """To itself: look for followers that lag."""


@value
class AlterPartitionRetryDue:
    """To itself: ask again for a change of the ISR that was not answered."""

    partition: int
    request: AlterPartitionRequest


@value
class HeartbeatDue:
    """To itself: report to the controller."""


@value
class MetadataFetchDue:
    """To itself: ask for metadata, if `number` is still the last question."""

    number: int


@value
class RegistrationDue:
    """To itself: ask for an epoch."""


@value
class CheckpointDue:
    """To itself: write the high watermarks to disk."""


@value
class SessionsDue:
    """To the controller by itself: look for brokers that fell silent."""


@value
class BalanceDue:
    """To the controller by itself: give leadership back to preferred replicas, elect for leaderless partitions."""


class HostedMessage:
    """Base of what hosted roles of brokers and their clients say to each other; see `replication.roles.hosted`."""

    __slots__ = ()


@value
class ClientDue:
    """To a client by itself: go on, if `number` is still the last request."""

    number: int


Message: TypeAlias = (
    Fetch
    | FetchResponse
    | OffsetsForLeaderEpoch
    | OffsetsForLeaderEpochResponse
    | ListOffsets
    | ListOffsetsResponse
    | AlterPartition
    | AlterPartitionResponse
    | BrokerRegistration
    | BrokerRegistrationResponse
    | BrokerHeartbeat
    | BrokerHeartbeatResponse
    | MetadataFetch
    | MetadataFetchResponse
    | Produce
    | ProduceResponse
    | ConsumerFetch
    | ConsumerFetchResponse
    | MetadataRequest
    | MetadataResponse
    | CreateTopic
    | DeleteTopic
    | AlterPartitionReassignments
    | AlterPartitionReassignmentsResponse
    | ElectLeaders
    | ElectLeadersResponse
    | FetchExpired
    | ProduceExpired
    | FetchDue
    | LagCheckDue
    | AlterPartitionRetryDue
    | HeartbeatDue
    | MetadataFetchDue
    | RegistrationDue
    | CheckpointDue
    | SessionsDue
    | BalanceDue
    | ClientDue
    | HostedMessage
)

PARTITION_MESSAGES: Final = frozenset(
    {
        Fetch,
        FetchResponse,
        FetchDue,
        FetchExpired,
        Produce,
        ProduceExpired,
        ConsumerFetch,
        OffsetsForLeaderEpoch,
        OffsetsForLeaderEpochResponse,
        ListOffsets,
        ListOffsetsResponse,
        AlterPartitionResponse,
        AlterPartitionRetryDue,
        MetadataRequest,
    }
)
"""The messages that touch nothing on a broker but its part in their `partition`."""

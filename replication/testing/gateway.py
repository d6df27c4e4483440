"""Answer the requests of real clients on one broker: a hosted role that speaks Kafka's protocol.

A connection has one request under way, as Kafka mutes a channel until it has answered. Each handler answers at once, or
leaves a `Waiting` behind, which is asked again after every event of the broker whether it is done, and at its deadline.

Source: Kafka core KafkaApis, SocketServer.processNewResponses, DelayedFetch, DelayedOperationPurgatory; 4.4.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any, Final, Protocol, TypeAlias

import attrs

from broker.error_codes import ErrorCode
from broker.group.classic import Ticket
from broker.ids import BrokerId, LeaderEpoch, Offset
from broker.units import DurationMs, TimeMs
from replication.groups.client.messages import Request as GroupBody
from replication.groups.client.messages import Response as GroupAnswer
from replication.groups.connections import GroupRequest, GroupResponse
from replication.retention.messages import DeleteRecords, DeleteRecordsResponse
from replication.roles.broker_role import BrokerRole
from replication.roles.messages import (
    CONTROLLER,
    Address,
    AlterPartitionReassignments,
    AlterPartitionReassignmentsResponse,
    ElectLeaders,
    ElectLeadersResponse,
    HostedMessage,
    Message,
    NodeId,
    ProduceResponse,
)
from replication.roles.outbox import Outbox
from replication.roles.replica_log import ReplicaLog
from replication.rules.partition import FollowerState, LeaderState
from replication.rules.settings import Moment
from replication.testing.entities import Request
from replication.testing.topics import Topics

WAITING_COUNT_MAX: Final = 2_000
"""The requests that wait on a broker; one more, and the oldest is answered with what there is."""
Values = Mapping[str, object]
"""The fields of a response by Kafka's names; see `entities.build`."""


@attrs.frozen
class ClientRequest(HostedMessage):
    """Carry a client's request to a broker; `number` is unique in the cluster."""

    number: int
    request: Request


@attrs.frozen
class ClientResponse(HostedMessage):
    """Carry the response to request `number`; None where the protocol has no response (acks=0).

    A write with acks=0 that failed ends the connection, which is all that its client hears of it. `notes` are called
    once the response has gone out to the client.
    """

    number: int
    values: Values | None
    ends_connection: bool = False
    notes: tuple[Callable[[], None], ...] = ()


@attrs.frozen
class WaitOver(HostedMessage):
    """Tell a gateway that what waits under `number` has waited long enough."""

    number: int


@attrs.frozen
class Endpoint:
    """Hold where clients reach a broker, and its broker.rack, None for none."""

    host: str
    port: int
    rack: str | None = None

    def shown(self, broker: BrokerId) -> dict[str, object]:
        """Return the fields of a response that name a broker at this endpoint."""
        return {"node_id": broker, "host": self.host, "port": self.port, "rack": self.rack}


@attrs.frozen
class Call:
    """Hold a request under way on a broker, its caller, and the time by the broker's clock."""

    gateway: Gateway
    caller: Address
    number: int
    request: Request
    now_ms: TimeMs

    def answer(self, values: Values | None, out: Outbox, notes: Iterable[Callable[[], None]] = ()) -> None:
        """Send the response; `notes` are called once it has gone out to the client."""
        out.send(self.caller, ClientResponse(self.number, values, notes=tuple(notes)))

    def end_connection(self, out: Outbox) -> None:
        """End the client's connection instead of a response."""
        out.send(self.caller, ClientResponse(self.number, None, ends_connection=True))

    @property
    def timeout_ms(self) -> int:
        """Return how long the client lets the request take."""
        return in_ms(self.request.body.timeout)


def in_ms(duration: timedelta) -> DurationMs:
    """Return a duration of a request in ms."""
    return DurationMs(round(duration.total_seconds() * 1_000))


def authorized(call: Call, operations: int, of: str = "") -> dict[str, object]:
    """Return the operations that a client may carry out, as a field of a response, where the client asks for them."""
    wants = getattr(call.request.body, f"include_{of}authorized_operations", False)
    return {f"{of}authorized_operations": operations} if wants else {}


class Waiting(Protocol):
    """Define a request that waits for something to happen on its broker."""

    def is_done(self, out: Outbox) -> bool:
        """Answer the request if what it waits for has happened; return whether it is answered."""
        ...

    def expire(self, out: Outbox) -> None:
        """Answer the request because its time is over."""
        ...


Handler = Callable[[Call, Outbox], None]


NoteAcknowledged: TypeAlias = Callable[[Offset, LeaderEpoch], None]
"""Notes that a write was acknowledged: the offset and epoch of the first record in the leader's log."""


@attrs.frozen(kw_only=True)
class Shared:
    """Hold what the gateways of a cluster share: topics, endpoints, handlers by API key, and the clients' history."""

    topics: Topics
    endpoints: Mapping[BrokerId, Endpoint]
    handlers: Mapping[int, Handler]
    note_write: Callable[[int, int, bytes], NoteAcknowledged]
    """Notes that a batch was sent to a partition with acks; returns the function that notes the response."""
    auto_create: bool = True
    """auto.create.topics.enable."""
    default_partitions: int = 1
    """num.partitions."""
    default_factor: int = 1
    """default.replication.factor."""
    static_configs: Mapping[str, str] = attrs.field(factory=dict)
    """The settings in every broker's server.properties."""
    altered: dict[tuple[int, str], dict[str, str]] = attrs.field(factory=dict)
    """The settings of brokers and groups that clients altered, by kind and name."""
    configure_logs: Callable[[tuple[int, ...], Mapping[str, Any]], None]
    """Sets the settings of the logs of partitions, by Kafka's names; those not named are the brokers'."""
    cluster_id: str = "simulated-cluster-0000"


class Gateway:
    """Serve one broker's clients."""

    def __init__(self, broker: BrokerRole, shared: Shared) -> None:
        self.broker = broker
        self.shared = shared
        self._waiting: dict[int, Waiting] = {}
        self._writes: dict[tuple[int, int], Callable[[ProduceResponse, Outbox], None]] = {}
        self._group_requests: dict[int, Callable[[GroupAnswer, Outbox], None]] = {}
        self._orders: dict[tuple[type[Message], int], list[Callable[[ErrorCode, Outbox], None]]] = {}
        self._deletions: dict[int, Callable[[DeleteRecordsResponse, Outbox], None]] = {}
        self._count = 0
        self._session = int(broker.start.incarnation.rpartition("/")[2])

    @property
    def address(self) -> Address:
        """Return the address of this broker, for messages between its own roles."""
        return Address(NodeId(self.broker.broker))

    @property
    def topics(self) -> Topics:
        """Return the topics of the cluster."""
        return self.shared.topics

    @property
    def static_configs(self) -> Mapping[str, str]:
        """Return the settings in this broker's server.properties."""
        own = {"node.id": str(self.broker.broker)}
        rack = self.shared.endpoints[self.broker.broker].rack
        return {**self.shared.static_configs, **own, **({} if rack is None else {"broker.rack": rack})}

    # Events.

    def handle(self, message: Message, sender: Address, now_ms: TimeMs, out: Outbox) -> None:
        """Take a client's request, or the answer of another role to a request under way."""
        if isinstance(message, ClientRequest):
            call = Call(self, sender, message.number, message.request, now_ms)
            self.shared.handlers[message.request.api](call, out)
        elif isinstance(message, ProduceResponse):
            done = self._writes.pop((message.partition, message.number), None)
            if done is not None:
                done(message, out)
        elif isinstance(message, GroupResponse):
            answer = self._group_requests.pop(message.ticket, None)
            if answer is not None:
                answer(message.response, out)
        elif isinstance(message, AlterPartitionReassignmentsResponse | ElectLeadersResponse):
            waiting_orders = self._orders.get((type(message), message.partition))
            if waiting_orders:
                waiting_orders.pop(0)(message.error, out)
        elif isinstance(message, DeleteRecordsResponse):
            deleted = self._deletions.pop(message.number, None)
            if deleted is not None:
                deleted(message, out)
        elif isinstance(message, WaitOver):
            waiting = self._waiting.pop(message.number, None)
            if waiting is not None and not waiting.is_done(out):
                waiting.expire(out)

    def on_gained(self, partition: int, leader_epoch: LeaderEpoch, now_ms: TimeMs, out: Outbox) -> None:
        """Do nothing: requests that wait are looked at after every event."""

    def on_lost(self, partition: int, now_ms: TimeMs, out: Outbox) -> None:
        """Do nothing: requests that wait are looked at after every event."""

    def look(self, out: Outbox) -> None:
        """Answer the requests for which what has just happened is enough."""
        if self._waiting:
            for number, waiting in list(self._waiting.items()):
                if waiting.is_done(out):
                    del self._waiting[number]

    # What handlers use.

    def wait(self, waiting: Waiting, for_ms: int, out: Outbox) -> None:
        """Let a request wait, at most `for_ms`, unless what it waits for has happened."""
        if waiting.is_done(out):
            return
        self._count += 1
        self._waiting[self._count] = waiting
        if len(self._waiting) > WAITING_COUNT_MAX:
            # More than there are connections: the client of the oldest is likely to be gone.
            self._waiting.pop(next(iter(self._waiting))).expire(out)
        out.wake(DurationMs(max(for_ms, 0)), WaitOver(self._count))

    def append(
        self, number: int, records: bytes, acks: int, done: Callable[[ProduceResponse, Outbox], None], out: Outbox
    ) -> ErrorCode:
        """Append a client's batch; `done` gets the response, which may come later, unless an error is returned."""
        role = self.broker.roles.get(number)
        if role is None:
            return self.broker.absence(number)
        appended = self.broker.append(number, records, out, acks)
        if appended.error is ErrorCode.NONE and acks != 0:
            self._writes[number, appended.number] = done
        return appended.error

    def ask_group(
        self, group_id: str, body: GroupBody, answer: Callable[[GroupAnswer, Outbox], None], out: Outbox
    ) -> None:
        """Pass a request to the group coordinator of this broker."""
        self._count += 1
        ticket = self._count
        self._group_requests[ticket] = answer
        floor = min(self._group_requests)
        node = self.address.node
        out.send(self.address, GroupRequest(node, self._session, Ticket(ticket), Ticket(floor), group_id, body))

    def order(
        self,
        order: AlterPartitionReassignments | ElectLeaders,
        number: int,
        answer: Callable[[ErrorCode, Outbox], None],
        out: Outbox,
    ) -> None:
        """Send an order about a partition to the controller; `answer` gets its error."""
        is_move = isinstance(order, AlterPartitionReassignments)
        response = AlterPartitionReassignmentsResponse if is_move else ElectLeadersResponse
        self._orders.setdefault((response, number), []).append(answer)
        out.send(Address(CONTROLLER), order)

    def delete_records(
        self, number: int, offset: Offset, answer: Callable[[DeleteRecordsResponse, Outbox], None], out: Outbox
    ) -> None:
        """Have the log manager of this broker delete the records of a partition below an offset."""
        self._count += 1
        self._deletions[self._count] = answer
        out.send(self.address, DeleteRecords(number, self._count, offset))

    def replica(self, number: int | None) -> tuple[LeaderState | FollowerState, ReplicaLog] | ErrorCode:
        """Return the state and log of a replica; the error if this broker has none online, or there is no partition."""
        if number is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        role = self.broker.roles.get(number)
        return self.broker.absence(number) if role is None else (role.state, role.log)

    def moment(self, now_ms: TimeMs) -> Moment:
        """Return the time and the brokers that this broker knows."""
        return Moment(now_ms, self.broker.image.brokers)

"""Define the messages between group members and the coordinators on brokers, and their timers.

What it decides: what a connection carries: requests and responses of `replication.groups.client`, named by tickets, and
the probe by which a client finds out that a connection is broken.

Constraints: `session` counts a client's starts, so that a response to a former process is not taken for the present
one's. A response names its broker.

Source: ours; it stands for what TCP does for Kafka's clients.
"""

from __future__ import annotations

import attrs

from broker.group.classic import Ticket
from broker.ids import BrokerId
from replication.groups.client.messages import Request, Response
from replication.roles.messages import HostedMessage, NodeId


@attrs.frozen
class GroupRequest(HostedMessage):
    """A client's request; responses to tickets below `floor` need not be kept any more."""

    client: NodeId
    session: int
    ticket: Ticket
    floor: Ticket
    group_id: str
    request: Request


@attrs.frozen
class GroupResponse(HostedMessage):
    """The response to a request."""

    broker: BrokerId
    session: int
    ticket: Ticket
    response: Response


@attrs.frozen
class RequestProbe(HostedMessage):
    """A client's question whether these requests are still under way."""

    session: int
    tickets: tuple[Ticket, ...]


@attrs.frozen
class ProbeResult(HostedMessage):
    """The broker's answer to a probe: it works on `waiting`; other requests, or their responses, are lost."""

    broker: BrokerId
    session: int
    tickets: tuple[Ticket, ...]
    waiting: frozenset[Ticket]


@attrs.frozen
class ShardRead(HostedMessage):
    """A broker's timer: its shard has read the partition of `__consumer_offsets`; `number` tells shards apart."""

    partition: int
    number: int


@attrs.frozen
class ShardDue(HostedMessage):
    """A broker's timer: a coordinator has something to do now."""

    partition: int
    number: int


@attrs.frozen
class MemberDue(HostedMessage):
    """A member's timer: its consumer has something to do, if `number` is still the newest."""

    number: int


@attrs.frozen
class ProbeDue(HostedMessage):
    """A member's timer: probe the requests that are under way."""

    session: int


@attrs.frozen
class EventDue(HostedMessage):
    """A member's timer: the event at this place of its plan happens."""

    place: int


@attrs.frozen
class FetchNext(HostedMessage):
    """A member's timer: fetch a partition, if `number` is still the newest request for it."""

    partition: int
    number: int
